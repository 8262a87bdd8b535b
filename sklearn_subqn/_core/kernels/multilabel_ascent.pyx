"""Dual coordinate ascent for the multilabel hinge, over sparse or dense rows.

Row i has dual variables b_i >= 0 of its l labels, whose sums over the irrelevant and over
the relevant ones are equal and at most 1; with a threshold they need not be equal. All
rows together stand for the parameters W = -sum_i steps_i x_i u_iᵀ of shape (d, k), where
u_i is b_i with the signs of relevant labels changed and, with a threshold, minus their
sum as the last of k = l + 1 entries. The dual has the curvature a = steps_i ||x_i||² in
every direction of u_i. Without a threshold it is largest where b_i is the projection of
b_i + m / a, with the violations m of ``multilabel``. With one the last entry couples both
kinds of labels, and the maximum is found by one root.
"""

from .labels cimport coupled_shifts
from .rows cimport check_rows, index, real, sweep_dense_rows, sweep_sparse_rows


cdef struct Dual:
    # Arrays as of ``sweep_sparse``, and the numbers of labels and of scores.
    const unsigned char* targets
    const double* costs
    const double* steps
    const double* squares
    double intercept_step
    Py_ssize_t l
    Py_ssize_t k
    double* b
    double* intercept
    double* gains


def sweep_sparse(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
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
    targets : ndarray of shape (n, l)
        1 for relevant labels, 0 for others.
    costs : ndarray of shape (2, l)
    steps, squares, intercept_step, seed, order, gains
        As in ``multiclass_ascent``.
    b : ndarray of shape (n, l)
    w : ndarray of shape (d, k)
    intercept : ndarray of shape (k,)
        The last three are changed in place.
    """
    cdef Dual dual = _dual(
        targets, costs, steps, squares, intercept_step, order, gains, b, w, intercept
    )
    sweep_sparse_rows(
        _maximize, &dual, data, indices, indptr, steps, seed, order, gains, w, intercept
    )


def sweep_dense(
    const real[:, :] X,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
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
        targets, costs, steps, squares, intercept_step, order, gains, b, w, intercept
    )
    sweep_dense_rows(_maximize, &dual, X, steps, seed, order, gains, w, intercept)


def gaps(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    const double[:, ::1] b,
    double[::1] out,
):
    """Write by how much the dual variables of each row miss the loss at ``scores``.

    That is weights_i times the maximum of <b, m> over dual variables b, less <b_i, m>.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], l = costs.shape[1], i, j
    cdef double m, reference, mean, total
    cdef double worst[2]
    for length in (targets.shape[0], weights.shape[0], b.shape[0], out.shape[0]):
        if length != n:
            raise ValueError(f"an array has {length} instead of {n} rows")
    for length in (targets.shape[1], b.shape[1]):
        if length != l:
            raise ValueError(f"an array has {length} instead of {l} labels")
    if costs.shape[0] != 2 or not l <= k <= l + 1:
        raise ValueError(f"{costs.shape[0]} rows of costs, {k} scores, {l} labels.")
    _check_targets(targets)
    with nogil:
        for i in range(n):
            reference = scores[i, l] if k > l else 0.0
            worst[0] = worst[1] = -1e300
            mean = 0.0
            for j in range(l):
                m = scores[i, j] - reference
                m = costs[1, j] - m if targets[i, j] else costs[0, j] + m
                worst[targets[i, j]] = max(worst[targets[i, j]], m)
                mean += b[i, j] * m
            if k > l:
                total = max(worst[0], 0.0) + max(worst[1], 0.0)
            else:
                total = max(worst[0] + worst[1], 0.0)
            out[i] = weights[i] * (total - mean)


cdef Py_ssize_t _maximize(
    void* dual, Py_ssize_t i, const double* z, double* change, Py_ssize_t* labels
) noexcept nogil:
    """Maximize over b_i; return how many scores change, write which and by what."""
    cdef const Dual* self = <const Dual*> dual
    cdef Py_ssize_t l = self.l, j, size = 0
    cdef const unsigned char* relevant = self.targets + l * i
    cdef double* b = self.b + l * i
    cdef bint threshold = self.k > l
    cdef double step = self.steps[i], scale, m, new, moved
    cdef double a = step * (self.squares[i] + self.intercept_step)
    cdef double reference = z[l] if threshold else 0.0
    cdef double excess = 0.0, last = 0.0
    cdef double* t = change + self.k
    cdef double top[2]
    cdef double worst[2]
    cdef double lift[2]
    cdef double shifts[2]
    cdef int kind
    # Without curvature the maximum is at a vertex.
    scale = min(1.0 / a, 1e100)
    worst[0] = worst[1] = top[0] = top[1] = -1e300
    for j in range(l):
        m = z[j] - reference
        m = self.costs[l + j] - m if relevant[j] else self.costs[j] + m
        change[j] = m
        worst[relevant[j]] = max(worst[relevant[j]], m)
        excess += -b[j] if relevant[j] else b[j]
    # Without the largest m, which ``lift`` has, t is accurate where ``scale`` is large.
    for j in range(l):
        t[j] = b[j] + scale * (change[j] - worst[relevant[j]])
        top[relevant[j]] = max(top[relevant[j]], t[j])
    for kind in range(2):
        lift[kind] = scale * worst[kind] if worst[kind] > -1e299 else 0.0
    coupled_shifts(
        t, relevant, l, top, lift, threshold, excess, t + self.k, shifts
    )
    # The entries of ``change`` are written after those of m are read.
    for j in range(l):
        m = change[j]
        new = t[j] - shifts[relevant[j]]
        new = new if new > 0.0 else 0.0
        if new != b[j]:
            moved = new - b[j]
            self.gains[i] += step * moved * (m - 0.5 * a * moved)
            if relevant[j]:
                moved = -moved
            last -= moved
            change[size] = step * moved
            labels[size] = j
            self.intercept[j] -= self.intercept_step * change[size]
            b[j] = new
            size += 1
    if threshold and size:
        self.gains[i] -= 0.5 * step * a * last * last
        change[size] = step * last
        labels[size] = l
        self.intercept[l] -= self.intercept_step * change[size]
        size += 1
    return size


cdef Dual _dual(
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
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
    cdef Py_ssize_t l = targets.shape[1], k = w.shape[1]
    cdef Dual dual
    lengths = targets.shape[0], steps.shape[0], squares.shape[0], gains.shape[0]
    check_rows(b.shape[0], lengths, order)
    if costs.shape[0] != 2:
        raise ValueError(f"costs have {costs.shape[0]} instead of 2 rows")
    for length in (costs.shape[1], b.shape[1]):
        if length != l:
            raise ValueError(f"an array has {length} instead of {l} labels")
    if not l <= k <= l + 1 or intercept.shape[0] != k:
        raise ValueError(f"{k} and {intercept.shape[0]} scores a row for {l} labels.")
    _check_targets(targets)
    if order.shape[0]:
        dual = Dual(
            &targets[0, 0], &costs[0, 0], &steps[0], &squares[0], intercept_step,
            l, k, &b[0, 0], &intercept[0], &gains[0],
        )
    return dual


cdef int _check_targets(const unsigned char[:, ::1] targets) except -1:
    cdef Py_ssize_t i, j
    for i in range(targets.shape[0]):
        for j in range(targets.shape[1]):
            if targets[i, j] > 1:
                raise ValueError(f"targets must be 0 or 1, got {targets[i, j]}.")
    return 0
