"""Joint multiclass hinge, its Moreau envelope, and dual coordinate ascent.

Scores z and duals are contiguous of shape (n, k) and float64; targets y of shape (n,)
are labels 0, ..., k - 1. The loss of a row is the maximum over labels j of

    m_j = offsets[y, j] + rates[y, j] * (z_j - z_y),

where offsets[y, y] = 0. The envelope of width s around a center c is the maximum over b
in the unit simplex of <b, m> - s / 2 ||b - c||². The maximizer is the projection of c +
m / s onto the simplex.
"""

from .compressed cimport check_all
from .joint cimport (
    Row,
    Set,
    check_scores,
    check_square,
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
    simplex_shift,
    upper_envelope,
)
from .standard cimport fabs, free, memcpy
from .sums cimport Sum, add_to, result


cdef class Rows:
    """Targets of rows, with the costs of labels.

    Parameters
    ----------
    targets : ndarray of shape (n,)
    offsets, rates : ndarray of shape (k, k)
    """

    cdef Set set
    cdef object arrays

    def __cinit__(
        self,
        const Py_ssize_t[::1] targets,
        const double[:, ::1] offsets,
        const double[:, ::1] rates,
    ):
        cdef Py_ssize_t i, n = targets.shape[0], k = offsets.shape[0]
        check_square(offsets, k)
        check_square(rates, k)
        for i in range(n):
            if not 0 <= targets[i] < k:
                raise ValueError(f"label {targets[i]} is none of {k}.")
        self.arrays = targets, offsets, rates
        self.set.n, self.set.k, self.set.l = n, k, k
        self.set.most, self.set.n_pieces = k, n * k
        if n:
            self.set.labels = &targets[0]
            self.set.offsets = &offsets[0, 0]
            self.set.rates = &rates[0, 0]


cdef enum:
    SIDES = 1
    # The violation of the true label is zero, so no additional zero is needed.
    ZERO_IS_LEFT = 0


cdef inline void open_row(const Set* of, Py_ssize_t i, Row* row) noexcept nogil:
    row.size = of.k
    row.start = i * of.k
    row.minus = of.labels[i]
    row.offsets = of.offsets + row.minus * of.k
    row.rates = of.rates + row.minus * of.k


cdef inline bint separable(const Row* row) noexcept nogil:
    return True


cdef inline int side(const Row* row, Py_ssize_t p) noexcept nogil:
    return 0


cdef inline double sign(const Row* row, Py_ssize_t p) noexcept nogil:
    return 1.0


cdef inline Py_ssize_t plus(const Row* row, Py_ssize_t p) noexcept nogil:
    return p


cdef inline Py_ssize_t minus(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.minus


cdef inline double rate(const Row* row, Py_ssize_t p) noexcept nogil:
    return row.rates[p]


cdef inline void lines(
    const Row* row, const double* z, bint rises, double* m
) noexcept nogil:
    cdef Py_ssize_t j, k = row.size
    cdef double reference = z[row.minus]
    cdef const double* rates = row.rates
    cdef const double* offsets = row.offsets
    if rises:
        for j in range(k):
            m[j] = rates[j] * (z[j] - reference)
    else:
        for j in range(k):
            m[j] = offsets[j] + rates[j] * (z[j] - reference)


cdef inline void worst(
    const Row* row, const double* z, double* m, double* top
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double violation, first = 0.0, reference = z[row.minus]
    for j in range(row.size):
        violation = row.offsets[j] + row.rates[j] * (z[j] - reference)
        first = violation if violation > first else first
    top[0] = first


cdef inline double project(
    const Row* row,
    const double* center,
    double width,
    double* t,
    double* few,
    double* shift,
) noexcept nogil:
    """Write t and the shift; return -1, as there is no additional entry."""
    cdef Py_ssize_t j
    cdef double scale = 1.0 / width
    for j in range(row.size):
        t[j] = center[j] + scale * t[j]
    shift[0] = simplex_shift(t, row.size, few)
    return -1.0


cdef inline void groups(
    const Row* row, const double* shift, double rest, unsigned char* codes
) noexcept nogil:
    codes[0] = 1


include "joint.pxi"
include "joint_envelope.pxi"
include "joint_curvature.pxi"
include "joint_ascent.pxi"


def conjugate(Rows rows, const double[:, ::1] dual, const double[:, ::1] ratios):
    """Return -sum_ij dual_ij ratios[y_i, j] for ratios = offsets / rates."""
    cdef const Set* of = &rows.set
    cdef Py_ssize_t i, j, y
    cdef double total = 0.0, row
    check_scores(of, dual, None)
    check_square(ratios, of.k)
    with nogil:
        for i in range(of.n):
            y = of.labels[i]
            row = 0.0
            for j in range(of.k):
                row += dual[i, j] * ratios[y, j]
            total -= row
    return total


cdef inline Py_ssize_t maximize(
    const Set* of,
    const Dual* dual,
    Py_ssize_t i,
    const double* z,
    double* change,
    Py_ssize_t* labels,
) noexcept nogil:
    """Maximize the dual over b_i; write the changed entries, and return their number.

    The maximizer is the projection of b_i + (offsets[y] + z) / a onto the simplex.
    ``labels`` receives the changed entries, and ``change`` their changes times the
    step.
    """
    cdef Py_ssize_t k = of.k, c, size = 0
    cdef const double* offsets = of.offsets + k * of.labels[i]
    cdef double* b = dual.b + k * i
    cdef double step = dual.steps[i], scale, shift, top, new, moved
    cdef double a = step * (dual.squares[i] + dual.intercept_step)
    cdef double* t = change + k
    # The cap keeps the scale finite where the dual has no curvature; the maximizer is
    # then a vertex of the simplex.
    scale = min(1.0 / a, 1e100)
    # Subtracting the maximum does not change the projection, but reduces rounding
    # errors.
    top = offsets[0] + z[0]
    for c in range(k):
        top = max(top, offsets[c] + z[c])
    for c in range(k):
        t[c] = b[c] + scale * (offsets[c] + z[c] - top)
    # ``change`` is a workspace here, before its entries are written.
    shift = simplex_shift(t, k, change)
    for c in range(k):
        new = t[c] - shift if t[c] > shift else 0.0
        if new != b[c]:
            moved = new - b[c]
            dual.gains[i] += step * moved * (offsets[c] + z[c] - top - 0.5 * a * moved)
            change[size] = step * moved
            labels[size] = c
            dual.intercept[c] -= dual.intercept_step * change[size]
            b[c] = new
            size += 1
    return size
