"""Binary hinge and its smooth envelope: each function is one trip over the rows.

All arrays are contiguous, of shape (n,) and float64. With the violation m = 1 - y z the
envelope around dual variables c of width s is the maximum over b in [0, 1] of
b m - s / 2 (b - c)², attained at b = clip(c + m / s, 0, 1).
"""


def value(
    const double[::1] scores, const double[::1] targets, const double[::1] weights
):
    """Return sum_i weights_i max(0, 1 - targets_i scores_i)."""
    cdef Py_ssize_t i, n = _length(scores, targets, weights)
    cdef double m, total = 0.0
    with nogil:
        for i in range(n):
            m = 1.0 - targets[i] * scores[i]
            total += weights[i] * (m if m > 0.0 else 0.0)
    return total


cdef Py_ssize_t _length(
    const double[::1] a, const double[::1] b, const double[::1] c
) except -1:
    if a.shape[0] != b.shape[0] or a.shape[0] != c.shape[0]:
        raise ValueError(
            f"arrays have {a.shape[0]}, {b.shape[0]} and {c.shape[0]} rows."
        )
    return a.shape[0]
