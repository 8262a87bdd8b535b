"""Minimizing a convex piecewise quadratic function of a step by selection."""


def minimize(
    double slope,
    double curvature,
    double[::1] kinks,
    double[::1] slope_jumps,
    double[::1] curvature_jumps,
):
    """Find the smallest eta at which the slope a + c eta is or becomes non-negative.

    Passing ``kinks[i]`` adds ``slope_jumps[i]`` to a and ``curvature_jumps[i]`` to c,
    at first ``slope`` < 0 and ``curvature``. The arrays, contiguous, of shape (m,) and
    float64, are reordered: kinks on the wrong side of a pivot are dropped together, so
    that the time is O(m) without sorting.

    Returns
    -------
    step : float
        That eta; a negative number if it lies beyond all kinks.
    slope, curvature : float
        a and c of the parabola that ends there or, beyond all kinks, of the last.
    """
    cdef Py_ssize_t low = 0, high = kinks.shape[0], less, greater
    cdef double a = slope, c = curvature, a_less, c_less, a_equal, c_equal
    cdef double pivot, end = -1.0, step = -1.0
    cdef unsigned long long state = 0x9E3779B97F4A7C15
    if slope_jumps.shape[0] != high or curvature_jumps.shape[0] != high:
        raise ValueError(
            f"{high} kinks, but {slope_jumps.shape[0]} and {curvature_jumps.shape[0]} "
            "jumps."
        )
    with nogil:
        while low < high:
            pivot = median(
                kinks[draw(&state, low, high)],
                kinks[draw(&state, low, high)],
                kinks[draw(&state, low, high)],
            )
            less = low
            greater = high
            partition(
                kinks, slope_jumps, curvature_jumps, pivot, &less, &greater,
                &a_less, &c_less, &a_equal, &c_equal,
            )
            if a + a_less + (c + c_less) * pivot >= 0.0:
                end = pivot
                high = less
                continue
            a += a_less + a_equal
            c += c_less + c_equal
            if a + c * pivot >= 0.0:
                step = pivot
                break
            low = greater
        if step < 0.0 and end >= 0.0:
            step = min(-a / c, end) if c > 0.0 else end
    return step, a, c


cdef void partition(
    double[::1] kinks,
    double[::1] slope_jumps,
    double[::1] curvature_jumps,
    double pivot,
    Py_ssize_t* less,
    Py_ssize_t* greater,
    double* a_less,
    double* c_less,
    double* a_equal,
    double* c_equal,
) noexcept nogil:
    """Move kinks below the pivot before ``less``, those above it behind ``greater``.

    On entry the two bound the range. Sums up the jumps of those below and of the equal.
    """
    cdef Py_ssize_t i = less[0]
    a_less[0] = c_less[0] = a_equal[0] = c_equal[0] = 0.0
    while i < greater[0]:
        if kinks[i] < pivot:
            a_less[0] += slope_jumps[i]
            c_less[0] += curvature_jumps[i]
            swap(kinks, slope_jumps, curvature_jumps, i, less[0])
            less[0] += 1
            i += 1
        elif kinks[i] > pivot:
            greater[0] -= 1
            swap(kinks, slope_jumps, curvature_jumps, i, greater[0])
        else:
            a_equal[0] += slope_jumps[i]
            c_equal[0] += curvature_jumps[i]
            i += 1


cdef inline void swap(
    double[::1] a, double[::1] b, double[::1] c, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    a[i], a[j] = a[j], a[i]
    b[i], b[j] = b[j], b[i]
    c[i], c[j] = c[j], c[i]


cdef inline Py_ssize_t draw(
    unsigned long long* state, Py_ssize_t low, Py_ssize_t high
) noexcept nogil:
    """Return an index of the range; the same sequence in every call of ``minimize``."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return low + <Py_ssize_t>(state[0] % <unsigned long long>(high - low))


cdef inline double median(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))
