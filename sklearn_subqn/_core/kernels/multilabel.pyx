"""Multilabel hinge, its Moreau envelope, and dual coordinate ascent.

Scores z and duals are contiguous of shape (n, k) and float64; targets of shape (n, l)
are 1 for relevant labels. With ``costs`` of shape (2, l), the labels of a row have the
violations

    m_j = costs[0, j] + z_j,    j irrelevant,
    m_j = costs[1, j] - z_j,    j relevant.

Without a threshold, k = l, the loss is max(0, max irrelevant m + max relevant m), and
zero for rows without relevant or without irrelevant labels. With a threshold, the last
score z_l of k = l + 1 is subtracted from the scores of all labels, and the loss is
max(0, max irrelevant m) + max(0, max relevant m).

The envelope of width s around a center c is the maximum of <b, m> - s / 2 ||b - c||²
over b >= 0 whose sums over relevant and over irrelevant labels are at most 1, and equal
unless there is a threshold. The maximizer is b = max(0, c + m / s - shift), with one
shift for each kind of label.
"""

from .coupled_shifts cimport coupled_shifts, kind_shift
from .compressed cimport check_all
from .joint cimport (
    Row,
    Set,
    check_indicators,
    check_scores,
    positive_part,
    room,
    tie_of,
)
from .rows cimport (
    add_dense_row,
    add_sparse_row,
    allocate,
    index,
    move_along_dense_row,
    move_along_sparse_row,
    real,
    same_length,
    shuffle,
    upper_envelope,
)
from .standard cimport fabs, free, memcpy
from .sums cimport Sum, add_to, result


cdef class Rows:
    """Indicators of the labels of rows, with their costs.

    Parameters
    ----------
    targets : ndarray of shape (n, l)
        1 for relevant labels, 0 for irrelevant ones.
    costs : ndarray of shape (2, l)
    k : int
        Number of scores, l, or l + 1 with a threshold.
    """

    cdef Set set
    cdef object arrays

    def __cinit__(
        self,
        const unsigned char[:, ::1] targets,
        const double[:, ::1] costs,
        Py_ssize_t k,
    ):
        cdef Py_ssize_t n = targets.shape[0], l = targets.shape[1]
        same_length(2, costs.shape[0])
        same_length(l, costs.shape[1])
        if not l <= k <= l + 1:
            raise ValueError(f"{k} scores a row for {l} labels.")
        check_indicators(targets)
        self.arrays = targets, costs
        self.set.n, self.set.k, self.set.l = n, k, l
        self.set.most, self.set.n_pieces = l, n * l
        if n:
            self.set.relevant = &targets[0, 0]
            self.set.offsets = &costs[0, 0]


cdef enum:
    SIDES = 2
    ZERO_IS_LEFT = 1


cdef inline void open_row(const Set* of, Py_ssize_t i, Row* row) noexcept nogil:
    row.size = row.l = of.l
    row.start = i * of.l
    row.minus = of.l if of.k > of.l else -1
    row.relevant = of.relevant + i * of.l
    row.offsets = of.offsets


cdef inline bint separable(const Row* row) noexcept nogil:
    """Whether there is a threshold."""
    return row.minus >= 0


cdef inline int side(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.relevant[p]


cdef inline double sign(const Row* row, Py_ssize_t p) noexcept nogil:
    return 1.0 - 2.0 * row.relevant[p]


cdef inline Py_ssize_t plus(const Row* row, Py_ssize_t p) noexcept nogil:
    return p


cdef inline Py_ssize_t minus(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.minus


cdef inline double rate(const Row* row, Py_ssize_t p) noexcept nogil:
    return 1.0 - 2.0 * row.relevant[p]


cdef inline void lines(
    const Row* row, const double* z, bint rises, double* m
) noexcept nogil:
    cdef Py_ssize_t j, l = row.size
    cdef double d, reference = z[row.minus] if row.minus >= 0 else 0.0
    cdef const unsigned char* relevant = row.relevant
    cdef const double* costs = row.offsets
    for j in range(l):
        d = z[j] - reference
        # Arithmetic is faster here than unpredictable branches.
        m[j] = (1.0 - 2.0 * relevant[j]) * d
        if not rises:
            m[j] += costs[l * relevant[j] + j]


cdef inline void worst(
    const Row* row, const double* z, double* m, double* top
) noexcept nogil:
    lines(row, z, False, m)
    largest(row, m, top)


cdef inline double project(
    const Row* row,
    const double* center,
    double width,
    double* t,
    double* few,
    double* shift,
) noexcept nogil:
    """Write t and the shifts, above all t if b = 0; return -1."""
    cdef Py_ssize_t j
    cdef double scale = 1.0 / width
    cdef double top[2]
    cdef double lift[2]
    cdef unsigned char s
    lift[0] = lift[1] = 0.0
    for j in range(row.size):
        t[j] = center[j] + scale * t[j]
    largest(row, t, top)
    if not separable(row):
        coupled_shifts(t, row.relevant, row.size, top, lift, False, 0.0, few, shift)
        return -1.0
    for s in range(2):
        shift[s] = max(kind_shift(t, row.relevant, s, row.size, top[s], few), 0.0)
    return -1.0


cdef inline void groups(
    const Row* row, const double* shift, double rest, unsigned char* codes
) noexcept nogil:
    if separable(row):
        codes[0] = 1 if shift[0] > 0.0 else 3
        codes[1] = 2 if shift[1] > 0.0 else 3
    else:
        codes[0] = 1
        codes[1] = 1 if shift[0] == -shift[1] else 2


include "joint.pxi"
include "joint_envelope.pxi"
include "joint_curvature.pxi"
include "joint_ascent.pxi"


cdef inline Py_ssize_t maximize(
    const Set* of,
    const Dual* dual,
    Py_ssize_t i,
    const double* z,
    double* change,
    Py_ssize_t* labels,
) noexcept nogil:
    """Maximize the dual over b_i; write the changed scores, and return their number.

    Without a threshold, the maximizer is the projection of b_i + m / a. With a
    threshold, the last entry of u_i couples both kinds of labels, and the maximizer
    follows from the root of one equation.
    """
    cdef Py_ssize_t l = of.l, j, size = 0
    cdef const double* costs = of.offsets
    cdef const unsigned char* relevant = of.relevant + l * i
    cdef double* b = dual.b + l * i
    cdef bint threshold = of.k > l
    cdef double step = dual.steps[i], scale, m, new, moved
    cdef double a = step * (dual.squares[i] + dual.intercept_step)
    cdef double reference = z[l] if threshold else 0.0
    cdef double excess = 0.0, last = 0.0
    cdef double* t = change + of.k
    cdef double top[2]
    cdef double worst[2]
    cdef double lift[2]
    cdef double shifts[2]
    cdef int kind
    # The cap keeps the scale finite where the dual has no curvature; the maximizer is
    # then a vertex of the dual set.
    scale = min(1.0 / a, 1e100)
    worst[0] = worst[1] = top[0] = top[1] = -1e300
    for j in range(l):
        m = z[j] - reference
        m = costs[l + j] - m if relevant[j] else costs[j] + m
        change[j] = m
        worst[relevant[j]] = max(worst[relevant[j]], m)
        excess += -b[j] if relevant[j] else b[j]
    # Subtracting the largest m, which ``lift`` restores, keeps t accurate for a large
    # ``scale``.
    for j in range(l):
        t[j] = b[j] + scale * (change[j] - worst[relevant[j]])
        top[relevant[j]] = max(top[relevant[j]], t[j])
    for kind in range(2):
        lift[kind] = scale * worst[kind] if worst[kind] > -1e299 else 0.0
    coupled_shifts(
        t, relevant, l, top, lift, threshold, excess, t + of.k, shifts
    )
    # ``change`` stores m up to here; an entry is overwritten only after it is read.
    for j in range(l):
        m = change[j]
        new = t[j] - shifts[relevant[j]]
        new = new if new > 0.0 else 0.0
        if new != b[j]:
            moved = new - b[j]
            dual.gains[i] += step * moved * (m - 0.5 * a * moved)
            if relevant[j]:
                moved = -moved
            last -= moved
            change[size] = step * moved
            labels[size] = j
            dual.intercept[j] -= dual.intercept_step * change[size]
            b[j] = new
            size += 1
    if threshold and size:
        dual.gains[i] -= 0.5 * step * a * last * last
        change[size] = step * last
        labels[size] = l
        dual.intercept[l] -= dual.intercept_step * change[size]
        size += 1
    return size
