"""The logistic loss ln(1 + exp(-y z)) of labels y of -1 or +1.

All arrays are contiguous, of shape (n,) and float64. With t = -y z the loss of a row is
the maximum over v in [0, 1] of v t - v ln v - (1 - v) ln(1 - v); subgradients are
-weights v y. Exponentials are taken of -|t| only, so that nothing overflows, of 256 rows
at a time: each block's numbers stay in the cache, and loops over them vectorize.
"""

from .exponentials cimport exponentials
from .logarithms cimport log_of, log_of_one_less, logarithms_of_one_more
from .standard cimport DBL_EPSILON, DBL_MIN, INFINITY, fabs
from .sums cimport Sum, add_all, result


def value(
    const double[::1] scores, const double[::1] targets, const double[::1] weights
):
    """Return the weighted sum of the losses."""
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double[256] t, e
    cdef Sum total = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                t[i] = -targets[start + i] * scores[start + i]
                e[i] = -fabs(t[i])
            exponentials(e, size)
            logarithms_of_one_more(e, size)
            for i in range(size):
                e[i] = weights[start + i] * (e[i] + (t[i] if t[i] > 0.0 else 0.0))
            add_all(&total, e, size)
    return result(&total)


def subgradient(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double[::1] out,
):
    """Fill ``out`` with the derivatives by the scores."""
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double[256] t, e
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                t[i] = -targets[start + i] * scores[start + i]
                e[i] = -fabs(t[i])
            exponentials(e, size)
            for i in range(size):
                e[i] = (1.0 if t[i] > 0.0 else e[i]) / (1.0 + e[i])
                out[start + i] = -weights[start + i] * targets[start + i] * e[i]


def curvature(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double[::1] out,
):
    """Fill ``out`` with the second derivatives by the scores."""
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double[256] e
    cdef double total
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                e[i] = -fabs(targets[start + i] * scores[start + i])
            exponentials(e, size)
            for i in range(size):
                total = 1.0 + e[i]
                out[start + i] = weights[start + i] * (e[i] / (total * total))


def on_line(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    double step,
):
    """Return slope and second derivative of the weighted sum at scores + step * dscores.
    """
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double[256] t, e
    cdef double total, change
    cdef Sum slope = Sum(0.0, 0.0), curvature = Sum(0.0, 0.0)
    check_length(n, dscores, targets)
    check_length(n, weights, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                t[i] = scores[start + i] + step * dscores[start + i]
                t[i] = -targets[start + i] * t[i]
                e[i] = -fabs(t[i])
            exponentials(e, size)
            for i in range(size):
                total = 1.0 / (1.0 + e[i])
                change = -targets[start + i] * dscores[start + i]
                t[i] = weights[start + i] * change * (
                    (1.0 if t[i] > 0.0 else e[i]) * total
                )
                e[i] = weights[start + i] * change * change * (e[i] * total * total)
            add_all(&slope, t, size)
            add_all(&curvature, e, size)
    return result(&slope), result(&curvature)


def conjugate(
    const double[::1] dual, const double[::1] targets, const double[::1] weights
):
    """Return the weighted sum of v ln v + (1 - v) ln(1 - v), infinite out of [0, 1]."""
    cdef Py_ssize_t i, start, size, n = dual.shape[0]
    cdef double[256] v
    cdef double p, lowest = 0.0, highest = 0.0
    cdef Sum total = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                v[i] = variable(dual[start + i], targets[start + i], weights[start + i])
            for i in range(size):
                lowest = v[i] if v[i] < lowest else lowest
                highest = v[i] if v[i] > highest else highest
            for i in range(size):
                p = v[i] if v[i] < 1.0 else 1.0
                v[i] = p * log_of(p if p > DBL_MIN else DBL_MIN)
                v[i] += (1.0 - p) * log_of_one_less(
                    p if p < 1.0 - 0.5 * DBL_EPSILON else 1.0 - 0.5 * DBL_EPSILON
                )
                v[i] = weights[start + i] * v[i]
            add_all(&total, v, size)
    # By rounding v may leave the interval a little.
    if lowest < 0.0 or highest > 1.0 + 4.0 * DBL_EPSILON:
        return INFINITY
    return result(&total)


def conjugate_change(
    const double[::1] dual, const double[::1] targets, const double[::1] weights
):
    """Return by how much the conjugate changes with v where that is near one: the
    weighted sum of -ln(1 - v) where v is more than a half.
    """
    cdef Py_ssize_t i, start, size, n = dual.shape[0]
    cdef double[256] v
    cdef double p
    cdef Sum total = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                p = variable(dual[start + i], targets[start + i], weights[start + i])
                p = p if p > 0.5 else 0.0
                p = p if p < 1.0 - DBL_EPSILON else 1.0 - DBL_EPSILON
                v[i] = -weights[start + i] * log_of_one_less(p)
            add_all(&total, v, size)
    return result(&total)


cdef inline double variable(double u, double y, double weight) noexcept nogil:
    """Return v of a dual u; that of rows without weight does not matter."""
    return -(u * y) / (weight if weight > 0.0 else 1.0)


cdef int check_length(
    Py_ssize_t n, const double[::1] a, const double[::1] b
) except -1:
    if a.shape[0] != n or b.shape[0] != n:
        raise ValueError(f"arrays of {a.shape[0]} and {b.shape[0]} instead of {n} rows")
    return 0
