"""The scale that minimizes Huber's loss with a concomitant scale."""

from .standard cimport DBL_EPSILON, fabs, sqrt
from .sums cimport Sum, add_all, result

cdef enum:
    # Limit on Newton steps; a few are enough.
    MOST_NEWTON = 60


cdef inline double scale_of(
    const double* residuals,
    const double* weights,
    Py_ssize_t n,
    double epsilon,
    double start,
) noexcept nogil:
    """Return the root sigma of sum_i s_i min(r_i² / sigma², epsilon²) = 1, or zero.

    The weights s sum to one. The sum is a concave, piecewise linear function of 1 /
    sigma², so Newton's method does not overshoot the root, and ends exactly at the root
    after finitely many steps. ``start`` is an estimate of the scale; zero starts at an
    infinite scale.
    """
    cdef Py_ssize_t i, first, size
    cdef double[256] squares, counted
    cdef double t, largest = 0.0, factor = 0.0, before, slope, rest
    cdef double edge = epsilon * epsilon
    cdef Sum square, inside
    cdef bint is_below, is_inside
    cdef int step
    for i in range(n):
        t = fabs(residuals[i])
        largest = t if t > largest else largest
    if start > 0.0:
        factor = (largest / start) * (largest / start)
    is_below = factor == 0.0
    for step in range(MOST_NEWTON if largest > 0.0 else 0):
        square, inside = Sum(0.0, 0.0), Sum(0.0, 0.0)
        for first in range(0, n, 256):
            size = min(256, n - first)
            for i in range(size):
                t = residuals[first + i] / largest
                t *= t
                is_inside = t * factor < edge
                counted[i] = weights[first + i] if is_inside else 0.0
                squares[i] = counted[i] * t
            add_all(&square, squares, size)
            add_all(&inside, counted, size)
        slope, rest = result(&square), 1.0 - edge * (1.0 - result(&inside))
        if slope <= 0.0 or rest <= 0.0:
            if is_below:
                return 0.0
            factor, is_below = 0.0, True
            continue
        before, factor = factor, rest / slope
        if is_below and factor <= before * (1.0 + DBL_EPSILON):
            break
        is_below = True
    return largest / sqrt(factor) if largest > 0.0 else 0.0
