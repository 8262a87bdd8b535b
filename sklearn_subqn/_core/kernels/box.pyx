"""Losses of one score per row: maxima over a box, each in one pass over the rows.

All arrays are contiguous, of shape (n,) and float64. The loss of a row is the maximum
over v in [low, high], low <= 0 <= high, of v t - tube |v| - ridge / 2 (v - center)²,
where scores z and targets y give t = 1 - y z if ``labels`` and t = y - z else, so that
subgradients are -weights v y and -weights v. A step along dz changes t by -y dz or -dz.
In both cases t = sign (y - z), with signs of y or of one.

On which side of a kink a row lies is no more predictable than a coin: the loops compute
both sides and select, without branches.
"""

from .standard cimport fabs
from .sums cimport Sum, add_all, result


def value(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double tube,
):
    """Return the weighted sum of the losses without a ridge."""
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double t, above, below
    cdef double[256] terms
    cdef Sum total = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(start, start + size):
                t = sign(targets[i], labels) * (targets[i] - scores[i])
                above, below = t - tube, t + tube
                above = high * above if above > 0.0 else 0.0
                below = low * below if below < 0.0 else 0.0
                terms[i - start] = weights[i] * (above + below)
            add_all(&total, terms, size)
    return result(&total)


def subgradient(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double tube,
    double tolerance,
    double least,
    double[::1] out,
):
    """Fill ``out`` with a subgradient without a ridge: v = 0 in the tube and at kinks.

    Arguments within ``tolerance`` * max(least, |z|) of a kink lie on it.
    """
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double t, v, edge
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for i in range(n):
            t = sign(targets[i], labels) * (targets[i] - scores[i])
            edge = tube + tolerance * max(least, fabs(scores[i]))
            v = (high if t > edge else 0.0) + (low if t < -edge else 0.0)
            out[i] = -sign(targets[i], labels) * weights[i] * v


def kinks_ahead(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double shift,
    double tolerance,
    double least,
    double[::1] kinks,
    double[::1] jumps,
):
    """Find where max over [low, high] of v (t - shift) bends on z + eta dz, eta > 0.

    Arguments within ``tolerance`` * max(least, |z|) of the kink lie on it. Fills the
    first entries of ``kinks`` with the steps and of ``jumps`` with the changes of slope;
    returns the slope to the right of eta = 0 and the number of kinks.
    """
    cdef Py_ssize_t i, n_kinks = 0, n = scores.shape[0]
    cdef double t, dt, change, total = 0.0, height = high - low
    check_length(n, dscores, targets)
    check_length(n, weights, weights)
    check_length(n, kinks, jumps)
    with nogil:
        for i in range(n):
            t = sign(targets[i], labels) * (targets[i] - scores[i]) - shift
            t = 0.0 if fabs(t) <= tolerance * max(least, fabs(scores[i])) else t
            dt = -sign(targets[i], labels) * dscores[i]
            change = weights[i] * dt
            total += change * (high if (t if t != 0.0 else dt) > 0.0 else low)
            # A row without a kink on the way is overwritten by the next row.
            kinks[n_kinks] = -t / dt
            jumps[n_kinks] = height * fabs(change)
            n_kinks += t * dt < 0.0
    return total, n_kinks


def smooth_value(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double tube,
    double ridge,
    const double[::1] center,
):
    """Return the weighted sum of the losses with a ridge; ``center`` may be None."""
    cdef Py_ssize_t i, start, size, n = scores.shape[0]
    cdef double t, v, c, shift
    cdef double[256] terms
    cdef Sum total = Sum(0.0, 0.0)
    cdef double inverse = 1.0 / ridge, edge = tube * inverse
    cdef bint centered = check_center(n, center)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            size = min(256, n - start)
            for i in range(start, start + size):
                t = sign(targets[i], labels) * (targets[i] - scores[i])
                if centered:
                    c = center[i]
                    v = clip(c + t * inverse, low, high, edge)
                    shift = v - c
                    t = v * t - 0.5 * ridge * shift * shift
                else:
                    # A difference of squares may overflow, so that a product is taken.
                    v = clip(t * inverse, low, high, edge)
                    t = v * (t - 0.5 * ridge * v)
                terms[i - start] = weights[i] * (t - tube * fabs(v))
            add_all(&total, terms, size)
    return result(&total)


def smooth_gradient(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double tube,
    double ridge,
    const double[::1] center,
    double[::1] out,
):
    """Fill ``out`` with the gradient with a ridge."""
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double q, inverse = 1.0 / ridge, edge = tube * inverse
    cdef bint centered = check_center(n, center)
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for i in range(n):
            q = sign(targets[i], labels) * (targets[i] - scores[i]) * inverse
            if centered:
                q = center[i] + q
            q = clip(q, low, high, edge)
            out[i] = -sign(targets[i], labels) * weights[i] * q


def smooth_curvature(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double labels,
    double low,
    double high,
    double tube,
    double ridge,
    const double[::1] center,
    double tolerance,
    double[::1] out,
):
    """Fill ``out`` with weights / ridge in rows whose v changes with t, elsewhere 0.

    Ends of the box and of the tube count as inside, within a tolerance of v.
    """
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double q, h, inverse = 1.0 / ridge, edge = tube * inverse
    cdef double first = first_bend(low, edge) - tolerance
    cdef double last = last_bend(high, edge) + tolerance
    cdef bint centered = check_center(n, center)
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for i in range(n):
            q = sign(targets[i], labels) * (targets[i] - scores[i]) * inverse
            if centered:
                q = center[i] + q
            h = weights[i] * inverse
            h = h if (first <= q) & (q <= last) else 0.0
            out[i] = h if fabs(q) >= edge - tolerance else 0.0


def smooth_line(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    double labels,
    double ridge,
    const double[::1] center,
    double[::1] q,
    double[::1] dq,
):
    """Fill q = center + t / ridge and its change along a step, for ``smooth_slope``."""
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double inverse = 1.0 / ridge
    cdef bint centered = check_center(n, center)
    check_length(n, dscores, targets)
    check_length(n, q, dq)
    with nogil:
        for i in range(n):
            q[i] = sign(targets[i], labels) * (targets[i] - scores[i]) * inverse
            if centered:
                q[i] = center[i] + q[i]
            dq[i] = -sign(targets[i], labels) * dscores[i] * inverse


def smooth_slope(
    const double[::1] q,
    const double[::1] dq,
    const double[::1] weights,
    double low,
    double high,
    double tube,
    double ridge,
    double step,
):
    """Return slope and curvature of the weighted sum at a step."""
    cdef Py_ssize_t i, n = q.shape[0]
    cdef double at, change, total = 0.0, curvature = 0.0, edge = tube / ridge
    cdef double first = first_bend(low, edge), last = last_bend(high, edge)
    check_length(n, dq, weights)
    with nogil:
        for i in range(n):
            at = q[i] + step * dq[i]
            change = weights[i] * dq[i]
            total += change * clip(at, low, high, edge)
            change = change * dq[i] if (first <= at) & (at <= last) else 0.0
            curvature += change if fabs(at) >= edge else 0.0
    return ridge * total, ridge * curvature


def balance(const double[::1] dual, double[::1] out):
    """Fill ``out`` with the dual, entries of the heavier sign shrunk to sum to zero.

    Returns whether anything has changed.
    """
    cdef Py_ssize_t i, start, size, n = dual.shape[0]
    cdef double u, shrink_up = 1.0, shrink_down = 1.0, high, low
    cdef Sum up = Sum(0.0, 0.0), down = Sum(0.0, 0.0)
    cdef double[256] above, below
    check_length(n, out, out)
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


cdef inline double sign(double y, double labels) noexcept nogil:
    """Return y if ``labels`` is one, and one if it is zero: sums have no branches."""
    return labels * y + (1.0 - labels)


cdef inline double clip(double q, double low, double high, double edge) noexcept nogil:
    """Return q, nearer to zero by ``edge``, within the box."""
    return min(max(q - min(max(q, -edge), edge), low), high)


cdef inline double first_bend(double low, double edge) noexcept nogil:
    return low - edge if low < 0.0 else edge


cdef inline double last_bend(double high, double edge) noexcept nogil:
    return high + edge if high > 0.0 else -edge


cdef bint check_center(Py_ssize_t n, const double[::1] center) except? True:
    if center is None:
        return False
    check_length(n, center, center)
    return True


cdef int check_length(
    Py_ssize_t n, const double[::1] a, const double[::1] b
) except -1:
    if a.shape[0] != n or b.shape[0] != n:
        raise ValueError(f"arrays of {a.shape[0]} and {b.shape[0]} instead of {n} rows")
    return 0
