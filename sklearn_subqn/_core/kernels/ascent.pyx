"""Dual coordinate ascent over the rows of a sparse matrix."""

from .compressed cimport check_all
from .rows cimport index, real, same_length

# Rows are shuffled in runs of neighbors, because consecutive memory is read faster.
# With an intercept the runs are shorter: the intercept changes with every row, and long
# runs of one class slow down its convergence.
cdef enum:
    LONG_RUN = 32
    SHORT_RUN = 8


def sweep(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const double[::1] targets,
    const double[::1] low,
    const double[::1] high,
    double ridge,
    const double[::1] steps,
    const double[::1] squares,
    double intercept,
    double intercept_step,
    unsigned long long seed,
    Py_ssize_t n_active,
    index[::1] order,
    double[::1] v,
    double[::1] w,
):
    """Maximize the dual over one variable after the other, once for each active row.

    The primal parameters are w = sum_i steps_i v_i x_i, and the intercept changes by
    intercept_step * steps_i times the change of v_i. The loss of row i is the maximum
    over v_i in [low_i, high_i] of v_i (targets_i - z_i) - ridge / 2 v_i².

    Parameters
    ----------
    data, indices, indptr : arrays
        CSR matrix of shape (n, d).
    targets, low, high, steps : ndarray of shape (n,)
    ridge : float
    squares : ndarray of shape (n,)
        Squared norms of the rows.
    intercept, intercept_step, seed : numbers
        ``seed``, not zero, determines the order of the runs of rows.
    n_active : int
        Number of rows to visit: the first rows in ``order``.
    order : ndarray of shape (n,)
        A permutation, reordered in place.
    v : ndarray of shape (n,)
    w : ndarray of shape (d,)
        Changed in place, like v.

    Returns
    -------
    intercept : float
    n_active : int
        Number of rows that remain active, now the first rows in ``order``: all except
        the rows whose dual variable stays at a bound.
    """
    cdef Py_ssize_t n = v.shape[0], n_kept = 0, k, i, j, other
    cdef Py_ssize_t run = SHORT_RUN if intercept_step > 0.0 else LONG_RUN
    cdef index swapped
    cdef double z, curvature, new, change
    same_length(n, targets.shape[0], low.shape[0], high.shape[0])
    same_length(n, steps.shape[0], squares.shape[0], order.shape[0])
    check_all(indptr, indices, data.shape[0], n, w.shape[0])
    if not 0 <= n_active <= n:
        raise ValueError(f"{n_active} of {n} rows cannot be active")
    with nogil:
        for k in range(n_active // run - 1, 0, -1):
            seed ^= seed << 13
            seed ^= seed >> 7
            seed ^= seed << 17
            other = <Py_ssize_t>(seed % <unsigned long long>(k + 1))
            for j in range(run):
                swapped = order[run * k + j]
                order[run * k + j] = order[run * other + j]
                order[run * other + j] = swapped
        for k in range(n_active):
            i = order[k]
            curvature = steps[i] * (squares[i] + intercept_step) + ridge
            if steps[i] == 0.0 or curvature == 0.0:
                continue
            z = intercept
            for j in range(indptr[i], indptr[i + 1]):
                z += data[j] * w[indices[j]]
            new = v[i] + (targets[i] - z - ridge * v[i]) / curvature
            new = min(max(new, low[i]), high[i])
            change = (new - v[i]) * steps[i]
            if change != 0.0 or low[i] < new < high[i]:
                order[k] = order[n_kept]
                order[n_kept] = <index>i
                n_kept += 1
            if change != 0.0:
                v[i] = new
                intercept += intercept_step * change
                for j in range(indptr[i], indptr[i + 1]):
                    w[indices[j]] += change * data[j]
    return intercept, n_kept
