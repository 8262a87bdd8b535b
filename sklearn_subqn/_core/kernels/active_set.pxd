"""What active-set methods on the unit simplex share."""

# A method ends once ten indices in a row, and one more for each index of the support,
# have entered without a gain.
cdef enum:
    MAX_IDLE = 10


cdef inline double longest_step() noexcept nogil:
    """Return what no step exceeds; one without an end on the simplex changes nothing."""
    return 1e30


cdef inline double mean_by(
    const double[::1] x, const double[::1] weights, Py_ssize_t n
) noexcept nogil:
    """Return sum(x) / sum(weights): the multiple of weights that x has to lose."""
    cdef Py_ssize_t i
    cdef double total = 0.0, of_weights = 0.0
    for i in range(n):
        total += x[i]
        of_weights += weights[i]
    return total / of_weights


cdef inline Py_ssize_t first_to_leave(
    const double[::1] x,
    const Py_ssize_t[::1] support,
    const double[::1] direction,
    Py_ssize_t n,
    double* limit,
) noexcept nogil:
    """Shorten a step to where an entry of x vanishes; return its place, or -1."""
    cdef Py_ssize_t i, first = -1
    cdef double ratio
    for i in range(n):
        if direction[i] < 0.0:
            ratio = -x[support[i]] / direction[i]
            if ratio < limit[0]:
                limit[0] = ratio
                first = i
    return first
