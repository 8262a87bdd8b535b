"""Binary hinge, squared hinge and envelope: each function is one trip over the rows.

All arrays are contiguous, of shape (n,) and float64. Scores z and targets y of -1 or +1
give the violation m = 1 - y z, a step along dz its change dm = -y dz. The envelope around
dual variables c of width s is the maximum over b in [0, 1] of b m - s / 2 (b - c)²,
attained at t = c + m / s, clipped to [0, 1].

On which side of a kink a row lies is no more predictable than a coin: the loops compute
both sides and select, without branches.
"""

from .standard cimport fabs


def value(
    const double[::1] scores, const double[::1] targets, const double[::1] weights
):
    """Return sum_i weights_i max(0, m_i)."""
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double m, total = 0.0
    check_length(n, targets, weights)
    with nogil:
        for i in range(n):
            m = 1.0 - targets[i] * scores[i]
            total += weights[i] * (m if m > 0.0 else 0.0)
    return total


def subgradient(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double tolerance,
    double[::1] out,
):
    """Fill out_i with -weights_i targets_i where m_i > tolerance, elsewhere 0."""
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double m, u
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for i in range(n):
            m = 1.0 - targets[i] * scores[i]
            u = -weights[i] * targets[i]
            out[i] = u if m > tolerance else 0.0


def kinks_ahead(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    double tolerance,
    double[::1] kinks,
    double[::1] jumps,
):
    """Find where the hinge bends on the line z + eta dz, eta > 0.

    Violations within ``tolerance`` are zero. Fills the first entries of ``kinks`` with
    the steps and of ``jumps`` with the changes of slope; returns the slope to the right
    of eta = 0 and the number of kinks.
    """
    cdef Py_ssize_t i, n_kinks = 0, n = scores.shape[0]
    cdef double m, dm, change, slope = 0.0
    check_length(n, dscores, targets)
    check_length(n, weights, weights)
    check_length(n, kinks, jumps)
    with nogil:
        for i in range(n):
            m = 1.0 - targets[i] * scores[i]
            m = 0.0 if fabs(m) <= tolerance else m
            dm = -targets[i] * dscores[i]
            change = weights[i] * dm
            slope += change if (m if m != 0.0 else dm) > 0.0 else 0.0
            # What is no kink is overwritten by the next.
            kinks[n_kinks] = -m / dm
            jumps[n_kinks] = fabs(change)
            n_kinks += m * dm < 0.0
    return slope, n_kinks


def squared_line(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    double[::1] m,
    double[::1] dm,
):
    """Fill m and dm for ``squared_slope``."""
    cdef Py_ssize_t i, n = scores.shape[0]
    check_length(n, dscores, targets)
    check_length(n, m, dm)
    with nogil:
        for i in range(n):
            m[i] = 1.0 - targets[i] * scores[i]
            dm[i] = -targets[i] * dscores[i]


def squared_slope(
    const double[::1] m,
    const double[::1] dm,
    const double[::1] weights,
    double step,
):
    """Return slope and curvature of sum_i weights_i max(0, m_i + step dm_i)²."""
    cdef Py_ssize_t i, n = m.shape[0]
    cdef double at, change, slope = 0.0, curvature = 0.0
    check_length(n, dm, weights)
    with nogil:
        for i in range(n):
            at = m[i] + step * dm[i]
            change = weights[i] * dm[i] * <double>(at > 0.0)
            slope += change * at
            curvature += change * dm[i]
    return 2.0 * slope, 2.0 * curvature


def envelope_dual(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
    double width,
    double[::1] out,
):
    """Fill out_i with the derivative -weights_i targets_i clip(t_i, 0, 1)."""
    cdef Py_ssize_t i, n = scores.shape[0]
    check_length(n, targets, weights)
    check_length(n, center, out)
    with nogil:
        for i in range(n):
            out[i] = -weights[i] * targets[i] * clip(
                center[i] + (1.0 - targets[i] * scores[i]) / width
            )


def envelope_curvature(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    const double[::1] center,
    double width,
    double edge,
    double[::1] out,
):
    """Fill out_i with weights_i / width where -edge <= t_i <= 1 + edge, elsewhere 0."""
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double t, h, half = 0.5 + edge
    check_length(n, targets, weights)
    check_length(n, center, out)
    with nogil:
        for i in range(n):
            t = center[i] + (1.0 - targets[i] * scores[i]) / width
            h = weights[i] / width
            out[i] = h if fabs(t - 0.5) <= half else 0.0


def envelope_line(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] center,
    double width,
    double[::1] t,
    double[::1] dt,
):
    """Fill t and its derivative dt by the step for ``envelope_slope``."""
    cdef Py_ssize_t i, n = scores.shape[0]
    check_length(n, dscores, targets)
    check_length(n, center, center)
    check_length(n, t, dt)
    with nogil:
        for i in range(n):
            t[i] = center[i] + (1.0 - targets[i] * scores[i]) / width
            dt[i] = -targets[i] * dscores[i] / width


def envelope_slope(
    const double[::1] t,
    const double[::1] dt,
    const double[::1] weights,
    double width,
    double step,
):
    """Return slope and curvature of the weighted envelope at a step."""
    cdef Py_ssize_t i, n = t.shape[0]
    cdef double at, clipped, change, slope = 0.0, curvature = 0.0
    check_length(n, dt, weights)
    with nogil:
        for i in range(n):
            at = t[i] + step * dt[i]
            clipped = clip(at)
            change = weights[i] * dt[i]
            slope += change * clipped
            curvature += change * (dt[i] if at == clipped else 0.0)
    return width * slope, width * curvature


cdef inline double clip(double t) noexcept nogil:
    return min(max(t, 0.0), 1.0)


cdef int check_length(
    Py_ssize_t n, const double[::1] a, const double[::1] b
) except -1:
    if a.shape[0] != n or b.shape[0] != n:
        raise ValueError(f"arrays of {a.shape[0]} and {b.shape[0]} instead of {n} rows")
    return 0
