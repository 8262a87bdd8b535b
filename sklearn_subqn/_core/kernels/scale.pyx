"""Huber's loss with its scale minimized over: the scale, and slopes on a line.

All arrays are contiguous, of shape (n,) and float64; weights s sum to one. A row counts
as inside where its residual is at most epsilon times the scale.
"""

from .standard cimport DBL_EPSILON, fabs, sqrt
from .sums cimport Sum, add_all, result

cdef enum:
    # Newton's method ends after a few steps.
    MOST_STEPS = 60


def scale_of(
    const double[::1] residuals,
    const double[::1] weights,
    double epsilon,
    double start,
):
    """Return the scale sigma with sum_i s_i min(r_i² / sigma², epsilon²) = 1, or zero.

    The sum is a concave function of 1 / sigma² made of a few lines: no step of Newton's
    method ends above the root, and the last one ends there. It begins at a scale near
    by, or at an infinite one if ``start`` is zero.
    """
    cdef Py_ssize_t i, first, size, n = residuals.shape[0]
    cdef double[256] squares, counted
    cdef double t, largest = 0.0, factor = 0.0, before, slope, rest
    cdef double edge = epsilon * epsilon
    cdef Sum square, inside
    cdef bint is_below, is_inside
    cdef int step
    if weights.shape[0] != n:
        raise ValueError("residuals and weights differ in length")
    with nogil:
        for i in range(n):
            t = fabs(residuals[i])
            largest = t if t > largest else largest
        if start > 0.0:
            factor = (largest / start) * (largest / start)
        is_below = factor == 0.0
        for step in range(MOST_STEPS if largest > 0.0 else 0):
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
                    largest = 0.0
                    break
                factor, is_below = 0.0, True
                continue
            before, factor = factor, rest / slope
            if is_below and factor <= before * (1.0 + DBL_EPSILON):
                break
            is_below = True
    return largest / sqrt(factor) if largest > 0.0 else 0.0


def on_line(
    const double[::1] residuals,
    const double[::1] changes,
    const double[::1] weights,
    double step,
    double epsilon,
    double scale,
):
    """Return sums of s v dr over all rows, and s dr², s r dr and s r² over those inside.

    At the residuals r + step dr, with v = r within the scale times epsilon.
    """
    cdef Py_ssize_t i, n = residuals.shape[0]
    cdef double r, dr, s, slope = 0.0, square = 0.0, cross = 0.0, size = 0.0
    cdef double edge = epsilon * scale
    if changes.shape[0] != n or weights.shape[0] != n:
        raise ValueError("arrays differ in length")
    with nogil:
        for i in range(n):
            r, dr, s = residuals[i] + step * changes[i], changes[i], weights[i]
            s *= dr
            if fabs(r) <= edge:
                slope += s * r
                square += s * dr
                cross += s * r
                size += weights[i] * r * r
            else:
                slope += s * edge if r > 0.0 else -s * edge
    return slope, square, cross, size
