"""Helpers of active-set methods on the unit simplex."""

# A method stops after ten consecutive indices, plus the size of the support, have
# entered the active set without decreasing the objective.
cdef enum:
    MAX_IDLE = 10


cdef inline double longest_step() noexcept nogil:
    """Return a bound on all step sizes; an unbounded step on the simplex is zero."""
    return 1e30


cdef inline double mean_by(
    const double[::1] x, const double[::1] weights, Py_ssize_t n
) noexcept nogil:
    """Return sum(x) / sum(weights): x minus this multiple of weights sums to zero."""
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
    """Limit a step to the first zero of an entry of x; return its index, or -1."""
    cdef Py_ssize_t i, first = -1
    cdef double ratio
    for i in range(n):
        if direction[i] < 0.0:
            ratio = -x[support[i]] / direction[i]
            if ratio < limit[0]:
                limit[0] = ratio
                first = i
    return first
