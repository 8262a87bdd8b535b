"""Data structures and helpers of kernels for losses with several scores per row.

The loss of a row is a maximum over pieces p. Each piece has a violation

    m_p = offset_p + rate_p * (z_plus - z_minus),

and a dual variable b_p >= 0. The pieces form one or two sides. With one side, the loss
in ``joint.pxi`` is max(0, largest m). With two separable sides, it is the sum of this
loss over both sides; with two inseparable sides it is max(0, sum of both largest m).
"""

from .rows cimport allocate, same_length
from .standard cimport fabs

cdef struct Set:
    # Numbers of rows; of scores and of labels of a row; largest number of pieces of a
    # row; number of pieces of all rows.
    Py_ssize_t n
    Py_ssize_t k
    Py_ssize_t l
    Py_ssize_t most
    Py_ssize_t n_pieces
    # Labels of shape (n,), or indicators of relevant labels of shape (n, l); costs.
    const Py_ssize_t* labels
    const unsigned char* relevant
    const double* offsets
    const double* rates
    # First piece of each row, of shape (n + 1,), if rows differ in their number of
    # pieces.
    const Py_ssize_t* starts

cdef struct Row:
    # Number of pieces, and first piece of the row among all pieces.
    Py_ssize_t size
    Py_ssize_t start
    # Index of the subtracted score: the true label's or the threshold's; -1 for none.
    Py_ssize_t minus
    Py_ssize_t l
    const unsigned char* relevant
    const double* offsets
    const double* rates
    # Workspace for pieces, and for 2 l labels; numbers of relevant and irrelevant
    # labels.
    Py_ssize_t* active
    Py_ssize_t* few
    Py_ssize_t n_relevant
    Py_ssize_t n_irrelevant


cdef inline double* room(const Set* rows, Py_ssize_t n_numbers, Row* row) except NULL:
    """Return a workspace of ``n_numbers`` numbers for each piece and each score."""
    cdef Py_ssize_t size = n_numbers * (rows.most + rows.k + 2)
    cdef double* memory = <double*> allocate(
        size * sizeof(double) + (rows.most + 2 * rows.l + 8) * sizeof(Py_ssize_t)
    )
    row.few = <Py_ssize_t*> (memory + size)
    row.active = row.few + 2 * rows.l
    return memory


cdef inline double tie_of(const double* z, Py_ssize_t k, double tolerance) noexcept nogil:
    """Return tolerance * max(1, |z|)."""
    cdef Py_ssize_t j
    cdef double largest = 1.0
    for j in range(k):
        largest = fabs(z[j]) if fabs(z[j]) > largest else largest
    return tolerance * largest


cdef inline double positive_part(
    const double* first,
    Py_ssize_t n_first,
    const double* second,
    Py_ssize_t n_second,
    Py_ssize_t stride,
    double height,
    double tie,
    double weight,
    double* kinks,
    double* jumps,
    Py_ssize_t* count,
) noexcept nogil:
    """Add the kinks of max(0, f) for the sum f of two segmented maxima.

    Returns the slope at 0, where f is ``height``.
    """
    cdef Py_ssize_t a = 0, b = 0
    cdef double slope = first[0] + second[0], at = 0.0, next_at, next_slope, zero, start
    cdef bint positive = height > tie or (height >= -tie and slope > 0.0)
    start = slope if positive else 0.0
    if fabs(height) <= tie:
        height = 0.0
    while True:
        # The end of the current segment, and the slope after it.
        next_at = -1.0
        next_slope = slope
        if a + 1 < n_first:
            next_at = first[2 * stride + a + 1]
        if b + 1 < n_second and (
            next_at < 0.0 or second[2 * stride + b + 1] < next_at
        ):
            next_at = second[2 * stride + b + 1]
            b += 1
            next_slope += second[b] - second[b - 1]
        elif next_at >= 0.0:
            a += 1
            next_slope += first[a] - first[a - 1]
        # A zero of f within the segment.
        if (positive and slope < 0.0) or (not positive and slope > 0.0):
            zero = at - height / slope
            if next_at < 0.0 or zero < next_at:
                kinks[count[0]] = zero if zero > at else at
                jumps[count[0]] = weight * fabs(slope)
                count[0] += 1
                positive = not positive
        if next_at < 0.0:
            return start
        height += slope * (next_at - at)
        if positive:
            kinks[count[0]] = next_at
            jumps[count[0]] = weight * (next_slope - slope)
            count[0] += 1
        at, slope = next_at, next_slope


cdef inline int check_square(const double[:, ::1] a, Py_ssize_t k) except -1:
    return same_length(k, a.shape[0], a.shape[1])


cdef inline int check_indicators(const unsigned char[:, ::1] targets) except -1:
    cdef Py_ssize_t i, j
    for i in range(targets.shape[0]):
        for j in range(targets.shape[1]):
            if targets[i, j] > 1:
                raise ValueError(f"targets must be 0 or 1, got {targets[i, j]}.")
    return 0


cdef inline int check_scores(
    const Set* rows, const double[:, ::1] scores, const double[:, ::1] others
) except -1:
    """Raise unless ``scores``, and ``others`` if given, have the shape (n, k)."""
    same_length(rows.n, scores.shape[0])
    same_length(rows.k, scores.shape[1])
    if others is not None:
        same_length(rows.n, others.shape[0])
        same_length(rows.k, others.shape[1])
    return 0
