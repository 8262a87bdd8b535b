"""Huber's loss minimized over its scale: the scale, and derivatives on a line.

All arrays are contiguous, of shape (n,) and float64; the weights s sum to one. A row is
inside if its absolute residual is at most epsilon times the scale.
"""

from .scales cimport scale_of as search
from .rows cimport same_length
from .standard cimport fabs


def scale_of(
    const double[::1] residuals,
    const double[::1] weights,
    double epsilon,
    double start,
):
    """Return the scale of residuals; zero if the equation has no solution.

    ``start`` is an estimate of the scale, or zero.
    """
    cdef Py_ssize_t n = residuals.shape[0]
    cdef double scale = 0.0
    same_length(n, weights.shape[0])
    if n:
        with nogil:
            scale = search(&residuals[0], &weights[0], n, epsilon, start)
    return scale


def on_line(
    const double[::1] residuals,
    const double[::1] changes,
    const double[::1] weights,
    double step,
    double epsilon,
    double scale,
):
    """Return the sum of s v dr over all rows, and of s dr², s r dr, s r² inside.

    The residuals are r + step dr, and v is the residual clipped to epsilon times the
    scale.
    """
    cdef Py_ssize_t i, n = residuals.shape[0]
    cdef double r, dr, s, slope = 0.0, square = 0.0, cross = 0.0, size = 0.0
    cdef double edge = epsilon * scale
    same_length(n, changes.shape[0], weights.shape[0])
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
