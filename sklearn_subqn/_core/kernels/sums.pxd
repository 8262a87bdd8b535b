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


cdef inline double result(const Sum* sum) noexcept nogil:
    """Return the sum, infinite where it overflows."""
    return sum.total + sum.rest if sum.rest == sum.rest else sum.total
