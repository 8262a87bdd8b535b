# Dual coordinate ascent over rows, for losses with several scores per row. Kernels that
# include this file define ``maximize``.
#
# The primal parameters are W = -sum_i steps_i x_i u_iᵀ of shape (d, k), where u_i is
# the derivative of <b_i, m_i> by the scores. The dual objective has the curvature a =
# steps_i ||x_i||² in every direction of u_i.

cdef struct Dual:
    # Arrays as in ``sweep_sparse``.
    const double* steps
    const double* squares
    double intercept_step
    double* b
    double* intercept
    double* gains


def sweep_sparse(
    Rows rows,
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
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
    """Maximize the dual over the variables of one row after the other.

    Parameters
    ----------
    rows : Rows
    data, indices, indptr : arrays
        CSR matrix of shape (n, d).
    steps : ndarray of shape (n,)
        Step of each row; rows with step zero are skipped.
    squares : ndarray of shape (n,)
        Squared norms of the rows.
    intercept_step : float
        Squared value of the constant feature that represents the intercepts.
    seed : int
        Non-zero seed of the permutation of the rows.
    order : ndarray of shape (m,)
        The rows to visit, shuffled in place.
    gains : ndarray of shape (n,)
        Receives the increase of the dual objective, divided by alpha, for visited rows.
    b : ndarray of shape (n, l)
    w : ndarray of shape (d, k)
    intercept : ndarray of shape (k,)
        Changed in place, like b and w.
    """
    cdef const Set* of = &rows.set
    cdef Py_ssize_t n = of.n, k = of.k, p, i, c, start, size, n_entries
    cdef Dual dual = _dual(of, steps, squares, intercept_step, order, gains, b, w, intercept)
    cdef double* z
    cdef double* change
    cdef Py_ssize_t* labels
    check_all(indptr, indices, data.shape[0], n, w.shape[0])
    cdef const real* entries = &data[0] if data.shape[0] else NULL
    cdef const index* features = &indices[0] if indices.shape[0] else NULL
    z = <double*> allocate(k * (4 * sizeof(double) + sizeof(Py_ssize_t)))
    change = z + k
    labels = <Py_ssize_t*> (z + 4 * k)
    with nogil:
        shuffle(order, seed)
        for p in range(order.shape[0]):
            i = order[p]
            gains[i] = 0.0
            if steps[i] == 0.0:
                continue
            for c in range(k):
                z[c] = intercept[c]
            start = indptr[i]
            n_entries = indptr[i + 1] - start
            add_sparse_row(
                entries + start, features + start, n_entries, &w[0, 0], k, z
            )
            size = maximize(of, &dual, i, z, change, labels)
            if size:
                move_along_sparse_row(
                    entries + start, features + start, n_entries, change, labels,
                    size, k, &w[0, 0],
                )
        free(z)


def sweep_dense(
    Rows rows,
    const real[:, :] X,
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
    """Run ``sweep_sparse`` for a dense X of shape (n, d)."""
    cdef const Set* of = &rows.set
    cdef Py_ssize_t k = of.k, p, i, c, size, d = X.shape[1]
    cdef Dual dual = _dual(of, steps, squares, intercept_step, order, gains, b, w, intercept)
    cdef double* z
    cdef double* change
    cdef Py_ssize_t* labels
    if X.shape[0] != of.n:
        raise ValueError(f"an array has {X.shape[0]} instead of {of.n} rows")
    if d != w.shape[0]:
        raise ValueError(f"parameters of {w.shape[0]} instead of {d} features")
    z = <double*> allocate(k * (4 * sizeof(double) + sizeof(Py_ssize_t)))
    change = z + k
    labels = <Py_ssize_t*> (z + 4 * k)
    with nogil:
        shuffle(order, seed)
        for p in range(order.shape[0]):
            i = order[p]
            gains[i] = 0.0
            if steps[i] == 0.0:
                continue
            for c in range(k):
                z[c] = intercept[c]
            add_dense_row(&X[i, 0], X.strides[1], d, &w[0, 0], k, z)
            size = maximize(of, &dual, i, z, change, labels)
            if size:
                move_along_dense_row(
                    &X[i, 0], X.strides[1], d, change, labels, size, k, &w[0, 0]
                )
        free(z)


def gaps(
    Rows rows,
    const double[:, ::1] scores,
    const double[::1] weights,
    const double[:, ::1] b,
    double[::1] out,
):
    """Write the weighted duality gap of each row.

    The gap is the loss minus <b_i, m_i>, times the weight.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef double top[2]
    cdef double mean
    cdef double* m
    cdef Py_ssize_t i, p
    check_scores(of, scores, None)
    same_length(of.n, weights.shape[0], b.shape[0], out.shape[0])
    same_length(of.l, b.shape[1])
    m = room(of, 1, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, m)
            largest(&row, m, top)
            mean = 0.0
            for p in range(row.size):
                mean += b[i, p] * m[p]
            out[i] = weights[i] * (loss(&row, top) - mean)
        free(m)


cdef Dual _dual(
    const Set* of,
    const double[::1] steps,
    const double[::1] squares,
    double intercept_step,
    const Py_ssize_t[::1] order,
    double[::1] gains,
    double[:, ::1] b,
    const double[:, ::1] w,
    double[::1] intercept,
) except *:
    """Return the checked arrays; addresses stay unset if ``order`` is empty."""
    cdef Dual dual
    cdef Py_ssize_t p
    for length in (b.shape[0], steps.shape[0], squares.shape[0], gains.shape[0]):
        if length != of.n:
            raise ValueError(f"an array has {length} instead of {of.n} rows")
    for p in range(order.shape[0]):
        if not 0 <= order[p] < of.n:
            raise ValueError(f"row {order[p]} is none of {of.n}.")
    if b.shape[1] != of.l or w.shape[1] != of.k or intercept.shape[0] != of.k:
        raise ValueError(
            f"{b.shape[1]} labels and {w.shape[1]} and {intercept.shape[0]} scores "
            f"instead of {of.l} and {of.k}"
        )
    if order.shape[0]:
        dual = Dual(
            &steps[0], &squares[0], intercept_step, &b[0, 0], &intercept[0], &gains[0]
        )
    return dual
