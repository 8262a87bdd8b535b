"""Exact line search for convex piecewise quadratic functions, by selection."""

from .rows cimport same_length


def minimize(
    double slope,
    double curvature,
    double[::1] kinks,
    double[::1] slope_jumps,
    double[::1] curvature_jumps,
):
    """Find the smallest eta >= 0 where the slope a + c eta becomes non-negative.

    Initially a is ``slope`` < 0 and c is ``curvature``; passing ``kinks[i]`` adds
    ``slope_jumps[i]`` to a and ``curvature_jumps[i]`` to c. The arrays are contiguous,
    of shape (m,) and float64, and are overwritten. As in quickselect, each pivot
    discards all kinks on one side, so the expected time is O(m).

    Returns
    -------
    step : float
        The smallest eta; a negative number if it lies beyond all kinks.
    slope, curvature : float
        a and c of the parabola that ends at eta, or of the last parabola.
    """
    cdef Py_ssize_t i, n = kinks.shape[0]
    cdef double a = slope, c = curvature, a_below, c_below, a_passed, c_passed
    cdef double pivot, below, passed, end = -1.0, step = -1.0
    cdef unsigned long long state = 0x9E3779B97F4A7C15
    same_length(n, slope_jumps.shape[0], curvature_jumps.shape[0])
    with nogil:
        while n > 0:
            pivot = median(
                kinks[draw(&state, n)], kinks[draw(&state, n)], kinks[draw(&state, n)]
            )
            a_below = c_below = a_passed = c_passed = 0.0
            # Factors of 0 or 1 are faster than unpredictable branches.
            for i in range(n):
                below = kinks[i] < pivot
                passed = kinks[i] <= pivot
                a_below += below * slope_jumps[i]
                c_below += below * curvature_jumps[i]
                a_passed += passed * slope_jumps[i]
                c_passed += passed * curvature_jumps[i]
            if a + a_below + (c + c_below) * pivot >= 0.0:
                end = pivot
                n = keep(kinks, slope_jumps, curvature_jumps, n, pivot, 1.0)
                continue
            a += a_passed
            c += c_passed
            if a + c * pivot >= 0.0:
                step = pivot
                break
            n = keep(kinks, slope_jumps, curvature_jumps, n, pivot, -1.0)
        if step < 0.0 and end >= 0.0:
            step = min(-a / c, end) if c > 0.0 else end
    return step, a, c


cdef Py_ssize_t keep(
    double[::1] kinks,
    double[::1] slope_jumps,
    double[::1] curvature_jumps,
    Py_ssize_t n,
    double pivot,
    double sign,
) noexcept nogil:
    """Move kinks below the pivot to the front, or for sign -1 kinks above it.

    Returns their number.
    """
    cdef Py_ssize_t i, kept = 0
    cdef double kink
    for i in range(n):
        kink = kinks[i]
        kinks[kept] = kink
        slope_jumps[kept] = slope_jumps[i]
        curvature_jumps[kept] = curvature_jumps[i]
        kept += sign * kink < sign * pivot
    return kept


cdef inline Py_ssize_t draw(unsigned long long* state, Py_ssize_t n) noexcept nogil:
    """Return a pseudorandom index below n; ``minimize`` fixes the seed."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return <Py_ssize_t>(state[0] % <unsigned long long>n)


cdef inline double median(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))
