"""Products of the columns of a sparse matrix with each other."""

ctypedef fused real:
    float
    double

ctypedef fused index:
    int
    long long


def add_half(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const double[::1] weights,
    double[:, ::1] out,
):
    """Add to ``out`` half of Xᵀ diag(weights) X: its sum with its transpose is that.

    Parameters
    ----------
    data, indices, indptr : arrays
        CSR matrix X of shape (n, d) with valid indices, in any order.
    weights : ndarray of shape (n,)
        Rows of weight zero cost nothing.
    out : ndarray of shape (at least d, at least d)
    """
    cdef Py_ssize_t n = weights.shape[0], i, j, k
    cdef double scaled
    if indptr.shape[0] - 1 != n:
        raise ValueError(f"{n} weights for {indptr.shape[0] - 1} rows")
    if indices.shape[0] < indptr[n] or data.shape[0] < indptr[n]:
        raise ValueError(f"indptr ends at {indptr[n]}, behind the end of the data")
    with nogil:
        for i in range(n):
            if weights[i] == 0.0:
                continue
            for j in range(indptr[i], indptr[i + 1]):
                scaled = weights[i] * data[j]
                out[indices[j], indices[j]] += 0.5 * scaled * data[j]
                for k in range(j + 1, indptr[i + 1]):
                    out[indices[j], indices[k]] += scaled * data[k]
