"""Multilabel hinge with costs for pairs of labels, and its Moreau envelope.

Scores z are contiguous of shape (n, l) and float64; targets of shape (n, l) are 1 for
relevant labels. With ``costs`` of shape (l, l), each pair of a relevant label h and an
irrelevant label j of a row has the violation

    m_hj = costs[h, j] + z_j - z_h,

and the loss is the maximum of zero and all violations. Each pair has a non-negative
dual variable b, and the sum of b over a row is at most one. Row i has the entries
starts[i] to starts[i + 1] - 1 of one array, sorted by relevant, then by irrelevant
label.

The envelope of width s around a center c is the maximum of <b, m> - s / 2 ||b - c||²,
where 1 - sum b and 1 - sum c are an additional entry of b and of c.
"""

from .joint cimport (
    Row,
    Set,
    check_indicators,
    check_scores,
    check_square,
    positive_part,
    room,
    tie_of,
)
from .rows cimport allocate, same_length, simplex_shift, upper_envelope
from .standard cimport fabs, free, memcpy
from .sums cimport Sum, add_to, result
from .transport cimport transport_row


cdef class Rows:
    """Indicators of the labels of rows, with costs of pairs.

    Parameters
    ----------
    targets : ndarray of shape (n, l)
        1 for relevant labels, 0 for irrelevant ones.
    costs : ndarray of shape (l, l)
    """

    cdef Set set
    cdef object arrays
    cdef Py_ssize_t* starts

    def __cinit__(
        self,
        const unsigned char[:, ::1] targets,
        const double[:, ::1] costs,
    ):
        cdef Py_ssize_t i, j, n_relevant, n = targets.shape[0], l = targets.shape[1]
        check_square(costs, l)
        check_indicators(targets)
        self.starts = <Py_ssize_t*> allocate((n + 1) * sizeof(Py_ssize_t))
        self.starts[0] = 0
        for i in range(n):
            n_relevant = 0
            for j in range(l):
                n_relevant += targets[i, j]
            self.starts[i + 1] = self.starts[i] + n_relevant * (l - n_relevant)
        self.arrays = targets, costs
        self.set.n, self.set.k, self.set.l = n, l, l
        self.set.most, self.set.n_pieces = l * l // 4, self.starts[n]
        self.set.starts = self.starts
        if n:
            self.set.relevant = &targets[0, 0]
            self.set.offsets = &costs[0, 0]

    def __dealloc__(self):
        free(self.starts)


cdef enum:
    SIDES = 1
    ZERO_IS_LEFT = 1


cdef inline void open_row(const Set* of, Py_ssize_t i, Row* row) noexcept nogil:
    """Write the lists of relevant and of irrelevant labels of row i."""
    cdef Py_ssize_t j, l = of.l, n_relevant = 0, n_irrelevant = 0
    cdef const unsigned char* relevant = of.relevant + i * l
    for j in range(l):
        # Branches would be unpredictable, so both lists are written unconditionally.
        row.few[n_relevant] = row.few[l + n_irrelevant] = j
        n_relevant += relevant[j]
        n_irrelevant += 1 - relevant[j]
    row.n_relevant, row.n_irrelevant, row.l = n_relevant, n_irrelevant, l
    row.size = n_relevant * n_irrelevant
    row.start = of.starts[i]
    row.offsets = of.offsets


cdef inline bint separable(const Row* row) noexcept nogil:
    return True


cdef inline int side(const Row* row, Py_ssize_t p) noexcept nogil:
    return 0


cdef inline double sign(const Row* row, Py_ssize_t p) noexcept nogil:
    return 1.0


cdef inline Py_ssize_t plus(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.few[row.l + <unsigned int> p % <unsigned int> row.n_irrelevant]


cdef inline Py_ssize_t minus(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.few[<unsigned int> p / <unsigned int> row.n_irrelevant]


cdef inline double rate(const Row* row, Py_ssize_t p) noexcept nogil:
    return 1.0


cdef inline void lines(
    const Row* row, const double* z, bint rises, double* m
) noexcept nogil:
    cdef Py_ssize_t a, b, h, n_irrelevant = row.n_irrelevant
    cdef const Py_ssize_t* irrelevant = row.few + row.l
    cdef const double* costs
    for a in range(row.n_relevant):
        h = row.few[a]
        costs = row.offsets + h * row.l
        for b in range(n_irrelevant):
            m[b] = z[irrelevant[b]] - z[h]
            if not rises:
                m[b] += costs[irrelevant[b]]
        m += n_irrelevant


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
    """Return t of the additional entry, which is the last one."""
    cdef Py_ssize_t p
    cdef double rest = 1.0
    for p in range(row.size):
        rest -= center[p]
        t[p] = center[p] + t[p] / width
    # The sum of a center can exceed one by a rounding error.
    rest = max(rest, 0.0)
    t[row.size] = rest
    shift[0] = simplex_shift(t, row.size + 1, few)
    return rest


cdef inline void groups(
    const Row* row, const double* shift, double rest, unsigned char* codes
) noexcept nogil:
    codes[0] = 4 if rest > shift[0] else 1


include "joint.pxi"
include "joint_envelope.pxi"
include "joint_curvature.pxi"


def transport(
    Rows rows,
    const double[:, ::1] dual,
    double[::1] out,
):
    """Write the flow of maximum cost from relevant to irrelevant labels for each row.

    Row i of ``dual`` has the supplies of the relevant labels as negative entries, and
    the demands of the irrelevant labels as positive ones, with equal sums. Computed by
    successive shortest paths (Ahuja, Magnanti, Orlin 1993, section 9.7).

    Returns
    -------
    total : float
        Sum of flows times costs.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef double total = 0.0
    cdef double* left
    cdef Py_ssize_t* labels
    cdef Py_ssize_t i
    check_scores(of, dual, None)
    same_length(of.n_pieces, out.shape[0])
    left = room(of, 2, &row)
    # The array ``few`` is free here, and serves as workspace.
    labels = row.few
    with nogil:
        for i in range(of.n):
            if of.starts[i + 1] > of.starts[i]:
                total += transport_row(
                    &dual[i, 0], of.relevant + i * of.l, of.offsets, of.l, left, labels,
                    &out[of.starts[i]],
                )
        free(left)
    return total
