"""Compensated sums."""

cdef struct Sum:
    # A sum, and its accumulated rounding error.
    double total, rest


cdef inline void add_to(Sum* sum, double x) noexcept nogil:
    """Add x, and accumulate the rounding error (Knuth's TwoSum).

    The error of a plain sum of similar terms grows with their number. The critical path
    is the same as in a plain sum, so the compensated sum takes no longer.
    """
    cdef double total = sum.total + x
    cdef double part = total - sum.total
    sum.rest += (sum.total - (total - part)) + (x - part)
    sum.total = total


cdef inline void add_all(Sum* sum, const double* x, Py_ssize_t size) noexcept nogil:
    """Add a few numbers, by eight plain partial sums.

    For at most 256 equal numbers, the rounding error is below the smallest error in the
    error bounds. Independent partial sums are faster than one chain of additions.
    """
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef Py_ssize_t i = 0
    while i + 8 <= size:
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
        e += x[i + 4]
        f += x[i + 5]
        g += x[i + 6]
        h += x[i + 7]
        i += 8
    while i < size:
        a += x[i]
        i += 1
    add_to(sum, ((a + b) + (c + d)) + ((e + f) + (g + h)))


cdef inline double result(const Sum* sum) noexcept nogil:
    """Return the sum, infinite where it overflows."""
    return sum.total + sum.rest if sum.rest == sum.rest else sum.total
