"""Dual coordinate ascent for the multiclass hinge, over sparse or dense rows.

Row i of class y has dual variables b_i in the unit simplex; together they stand for the
parameters W = -sum_i steps_i x_i (b_i - e_y)ᵀ of shape (d, k). The dual is quadratic in
b_i with the curvature a = steps_i ||x_i||² in every direction, so that with the scores
z it is largest at the projection of b_i + (offsets[y] + z) / a onto the simplex.
"""

from .rows cimport (
    check_rows,
    index,
    real,
    simplex_shift,
    sweep_dense_rows,
    sweep_sparse_rows,
)


cdef struct Dual:
    # Arrays as of ``sweep_sparse``, and the number of labels.
    const Py_ssize_t* targets
    const double* offsets
    const double* steps
    const double* squares
    double intercept_step
    Py_ssize_t k
    double* b
    double* intercept
    double* gains


def sweep_sparse(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[::1] steps,
    const double[::1] squares,
    double intercept_step,
    unsigned long long seed,
    Py_ssize_t[::1] order,
    double[::1] gains,
    double[:, ::1] b,
    double[:, ::1] w,
    double[::1] intercept,
):
    """Maximize over the dual variables of one row after the other.

    Parameters
    ----------
    data, indices, indptr : arrays
        CSR matrix of shape (n, d) with valid indices.
    targets : ndarray of shape (n,)
    offsets : ndarray of shape (k, k)
    steps : ndarray of shape (n,)
        Rows of step zero are left out.
    squares : ndarray of shape (n,)
        Squared norms of the rows.
    intercept_step : float
        The intercepts change by this times what the entry of a feature would that is
        one in all rows.
    seed : int
        Not zero; of the permutation in which rows are visited.
    order : ndarray of shape (m,)
        The rows to visit, shuffled in place.
    gains : ndarray of shape (n,)
        Set to what the dual gained, divided by alpha, for the rows visited.
    b : ndarray of shape (n, k)
    w : ndarray of shape (d, k)
    intercept : ndarray of shape (k,)
        The last three are changed in place.
    """
    cdef Dual dual = _dual(
        targets, offsets, steps, squares, intercept_step, order, gains, b, w, intercept
    )
    sweep_sparse_rows(
        _maximize, &dual, data, indices, indptr, steps, seed, order, gains, w, intercept
    )


def sweep_dense(
    const real[:, :] X,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[::1] steps,
    const double[::1] squares,
    double intercept_step,
    unsigned long long seed,
    Py_ssize_t[::1] order,
    double[::1] gains,
    double[:, ::1] b,
    double[:, ::1] w,
    double[::1] intercept,
):
    """Do what ``sweep_sparse`` does, for X of shape (n, d)."""
    cdef Dual dual = _dual(
        targets, offsets, steps, squares, intercept_step, order, gains, b, w, intercept
    )
    sweep_dense_rows(_maximize, &dual, X, steps, seed, order, gains, w, intercept)


def gaps(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[::1] weights,
    const double[:, ::1] b,
    double[::1] out,
):
    """Write by how much the dual variables of each row miss the loss at ``scores``.

    That is weights_i (max_j m_ij - <b_i, m_i>) with m_i = offsets[y] + z_i.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i, c, y
    cdef double m, largest, mean
    for length in (targets.shape[0], weights.shape[0], b.shape[0], out.shape[0]):
        if length != n:
            raise ValueError(f"an array has {length} instead of {n} rows")
    for length in (offsets.shape[0], offsets.shape[1], b.shape[1]):
        if length != k:
            raise ValueError(f"an array has {length} instead of {k} labels")
    _check_targets(targets, k)
    with nogil:
        for i in range(n):
            y = targets[i]
            largest = offsets[y, 0] + scores[i, 0]
            mean = 0.0
            for c in range(k):
                m = offsets[y, c] + scores[i, c]
                largest = m if m > largest else largest
                mean += b[i, c] * m
            out[i] = weights[i] * (largest - mean)


cdef Py_ssize_t _maximize(
    void* dual, Py_ssize_t i, const double* z, double* change, Py_ssize_t* labels
) noexcept nogil:
    """Project b_i; return how many entries changed, write which and step times by what."""
    cdef const Dual* self = <const Dual*> dual
    cdef Py_ssize_t k = self.k, c, size = 0
    cdef const double* offsets = self.offsets + k * self.targets[i]
    cdef double* b = self.b + k * i
    cdef double step = self.steps[i], scale, shift, largest, new, moved
    cdef double a = step * (self.squares[i] + self.intercept_step)
    cdef double* t = change + k
    # Without curvature the maximum is at a vertex.
    scale = min(1.0 / a, 1e100)
    # Subtracting the largest from all changes nothing but rounding.
    largest = offsets[0] + z[0]
    for c in range(k):
        largest = max(largest, offsets[c] + z[c])
    for c in range(k):
        t[c] = b[c] + scale * (offsets[c] + z[c] - largest)
    # The entries of ``change`` are written after their use as room.
    shift = simplex_shift(t, k, change)
    for c in range(k):
        new = t[c] - shift if t[c] > shift else 0.0
        if new != b[c]:
            moved = new - b[c]
            self.gains[i] += step * moved * (
                offsets[c] + z[c] - largest - 0.5 * a * moved
            )
            change[size] = step * moved
            labels[size] = c
            self.intercept[c] -= self.intercept_step * change[size]
            b[c] = new
            size += 1
    return size


cdef Dual _dual(
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[::1] steps,
    const double[::1] squares,
    double intercept_step,
    const Py_ssize_t[::1] order,
    double[::1] gains,
    double[:, ::1] b,
    const double[:, ::1] w,
    double[::1] intercept,
) except *:
    """Return the arrays, checked; with no rows to visit their addresses stay unset."""
    cdef Py_ssize_t k = b.shape[1]
    cdef Dual dual
    lengths = targets.shape[0], steps.shape[0], squares.shape[0], gains.shape[0]
    check_rows(b.shape[0], lengths, order)
    for length in (
        offsets.shape[0], offsets.shape[1], w.shape[1], intercept.shape[0]
    ):
        if length != k:
            raise ValueError(f"an array has {length} instead of {k} labels")
    _check_targets(targets, k)
    if order.shape[0]:
        dual = Dual(
            &targets[0], &offsets[0, 0], &steps[0], &squares[0], intercept_step,
            k, &b[0, 0], &intercept[0], &gains[0],
        )
    return dual


cdef int _check_targets(const Py_ssize_t[::1] targets, Py_ssize_t k) except -1:
    cdef Py_ssize_t i
    for i in range(targets.shape[0]):
        if not 0 <= targets[i] < k:
            raise ValueError(f"label {targets[i]} is none of {k}.")
    return 0
