"""Sums over rows of the losses of one score, which ``row_losses.pxd`` defines.

All arrays are contiguous, of shape (n,) and float64. A loss is given by the eight
numbers ``form``, and by centers if it has a width.
"""

from .row_losses cimport BOX, RowLoss, conjugates, formulas, loss_of, slopes_on_line
from .rows cimport same_length
from .standard cimport INFINITY, fabs
from .sums cimport Sum, add_all, result


def value(
    form,
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
):
    """Return the weighted sum of the losses."""
    cdef RowLoss o = loss_of(form)
    cdef Py_ssize_t i, start, m, n = scores.shape[0]
    cdef double[256] f
    cdef Sum total = Sum(0.0, 0.0)
    check_lengths(&o, n, targets, weights, center)
    with nogil:
        for start in range(0, n, 256):
            m = min(256, n - start)
            formulas(
                &o, &scores[start], &targets[start], at(center, start), m, f, NULL, NULL
            )
            for i in range(m):
                f[i] *= weights[start + i]
            add_all(&total, f, m)
    return result(&total)


def derivatives(
    form,
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
    int order,
    double tie,
    double least,
    double[::1] out,
):
    """Write first or second derivatives by the scores to ``out``.

    Arguments within ``tie`` * max(least, |z|) of a kink count as ties, with v = 0. Ends
    of bends, within ``tie`` of v, count as inside.
    """
    cdef RowLoss o = loss_of(form)
    cdef Py_ssize_t i, start, m, n = scores.shape[0]
    cdef double* g
    cdef double* b
    o.tie, o.least = tie, least
    check_lengths(&o, n, targets, weights, center)
    same_length(n, out.shape[0])
    if order not in (1, 2) or (order == 2 and o.kind == BOX and o.ridge + o.width == 0.0):
        raise ValueError(f"the loss has no derivatives of order {order}")
    with nogil:
        for start in range(0, n, 256):
            m = min(256, n - start)
            g = &out[start] if order == 1 else NULL
            b = &out[start] if order == 2 else NULL
            formulas(
                &o, &scores[start], &targets[start], at(center, start), m, NULL, g, b
            )
            for i in range(m):
                out[start + i] *= weights[start + i]


def on_line(
    form,
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
    double step,
):
    """Return slope and second derivative of the weighted sum at scores + step * dscores.
    """
    cdef RowLoss o = loss_of(form)
    cdef Py_ssize_t n = scores.shape[0]
    cdef double slope = 0.0, curvature = 0.0
    check_lengths(&o, n, targets, weights, center)
    same_length(n, dscores.shape[0])
    if n:
        with nogil:
            slopes_on_line(
                &o, &scores[0], &dscores[0], &targets[0], &weights[0], at(center, 0), n,
                step, &slope, &curvature,
            )
    return slope, curvature


def conjugate(
    form,
    const double[::1] dual,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
):
    """Return the conjugate, infinite outside of its domain, and the size of its terms.
    """
    cdef RowLoss o = loss_of(form)
    cdef Py_ssize_t start, m, n = dual.shape[0]
    cdef double[256] h, size
    cdef bint outside = False
    cdef Sum total = Sum(0.0, 0.0), sizes = Sum(0.0, 0.0)
    check_lengths(&o, n, targets, weights, center)
    with nogil:
        for start in range(0, n, 256):
            m = min(256, n - start)
            outside |= conjugates(
                &o, &dual[start], &targets[start], &weights[start], at(center, start),
                m, h, size,
            )
            add_all(&total, h, m)
            add_all(&sizes, size, m)
    return INFINITY if outside else result(&total), result(&sizes)


def kinks_ahead(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    bint labels,
    double low,
    double high,
    double shift,
    double tie,
    double least,
    double[::1] kinks,
    double[::1] jumps,
):
    """Find the kinks of max over [low, high] of v (t - shift) on z + eta dz, eta > 0.

    Arguments within ``tie`` * max(least, |z|) of the kink count as ties. The first
    entries of ``kinks`` receive the steps, and those of ``jumps`` the changes of slope;
    returns the slope to the right of eta = 0 and the number of kinks.
    """
    cdef Py_ssize_t i, n_kinks = 0, n = scores.shape[0]
    cdef double t, dt, change, total = 0.0, height = high - low
    same_length(n, dscores.shape[0], targets.shape[0], weights.shape[0])
    same_length(n, kinks.shape[0], jumps.shape[0])
    with nogil:
        for i in range(n):
            dt = -targets[i] if labels else -1.0
            t = -dt * (targets[i] - scores[i]) - shift
            t = 0.0 if fabs(t) <= tie * max(least, fabs(scores[i])) else t
            dt *= dscores[i]
            change = weights[i] * dt
            total += change * (high if (t if t != 0.0 else dt) > 0.0 else low)
            # A row without a kink at eta > 0 is overwritten by the next row.
            kinks[n_kinks] = -t / dt
            jumps[n_kinks] = height * fabs(change)
            n_kinks += t * dt < 0.0
    return total, n_kinks


def balance(const double[::1] dual, double[::1] out):
    """Write the dual point with entries of the larger sign scaled down to sum to zero.

    Returns whether an entry changed.
    """
    cdef Py_ssize_t i, start, size, n = dual.shape[0]
    cdef double u, shrink_up = 1.0, shrink_down = 1.0, high, low
    cdef Sum up = Sum(0.0, 0.0), down = Sum(0.0, 0.0)
    cdef double[256] above, below
    same_length(n, out.shape[0])
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(size):
                u = dual[start + i]
                above[i] = u if u > 0.0 else 0.0
                below[i] = -u if u < 0.0 else 0.0
            add_all(&up, above, size)
            add_all(&down, below, size)
        high, low = result(&up), result(&down)
        if high > low:
            shrink_up = low / high
        elif low > high:
            shrink_down = high / low
        for i in range(n):
            u = dual[i]
            out[i] = u * (shrink_up if u > 0.0 else shrink_down)
    return high != low


cdef const double* at(const double[::1] center, Py_ssize_t start) noexcept nogil:
    return &center[start] if center is not None else NULL


cdef int check_lengths(
    const RowLoss* o,
    Py_ssize_t n,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
) except -1:
    same_length(n, targets.shape[0], weights.shape[0])
    if center is not None:
        same_length(n, center.shape[0])
    elif o.width > 0.0:
        raise ValueError("a width needs centers")
    return 0
