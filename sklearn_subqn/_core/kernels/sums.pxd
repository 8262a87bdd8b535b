"""Sums that keep what rounding takes, of many terms that may be alike."""

cdef struct Sum:
    # A sum, and what rounding has taken from it.
    double total, rest


cdef inline void add_to(Sum* sum, double x) noexcept nogil:
    """Add x, keeping what rounding takes (Knuth's sum of two numbers).

    Errors of plain sums grow with the number of terms where these are alike. The chain of
    dependent operations is that of a plain sum, so that it takes no longer.
    """
    cdef double total = sum.total + x
    cdef double part = total - sum.total
    sum.rest += (sum.total - (total - part)) + (x - part)
    sum.total = total


cdef inline void add_all(Sum* sum, const double* x, Py_ssize_t size) noexcept nogil:
    """Add some numbers, few enough for plain sums of each eighth of them.

    Of 256 equal ones these are off by less than the smallest error that is accounted
    for. Sums that go from term to term would wait for each addition.
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
