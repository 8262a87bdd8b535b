"""Weighted Gram matrices of columns of a sparse matrix."""

from .compressed cimport check_all
from .rows cimport allocate, index, real
from .standard cimport free


def add_half(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const double[::1] weights,
    const index[::1] position,
    double[:, ::1] out,
):
    """Add to ``out`` a matrix G such that G + Gᵀ = Aᵀ diag(weights) A.

    Parameters
    ----------
    data, indices, indptr : arrays
        CSR matrix X of shape (n, d); entries of a row may be unsorted.
    weights : ndarray of shape (n,)
        Rows of weight zero are skipped.
    position : ndarray of shape (d,)
        Column of A for each column of X; -1 for columns that are not in A.
    out : ndarray of shape (at least m, at least m)
        Result for A of shape (n, m).
    """
    cdef Py_ssize_t n = weights.shape[0], d = position.shape[0], m = out.shape[0]
    cdef Py_ssize_t i, j, k, length, longest = 0
    cdef double scaled
    cdef double* values
    cdef index* columns
    check_all(indptr, indices, data.shape[0], n, d)
    for i in range(d):
        if position[i] >= m or position[i] >= out.shape[1]:
            raise ValueError(f"position {position[i]} is outside of the products")
    for i in range(n):
        longest = max(longest, indptr[i + 1] - indptr[i])
    values = <double*> allocate((longest + 1) * (sizeof(double) + sizeof(index)))
    columns = <index*> (values + longest + 1)
    try:
        with nogil:
            for i in range(n):
                if weights[i] == 0.0:
                    continue
                length = 0
                for j in range(indptr[i], indptr[i + 1]):
                    # Writing unconditionally is faster than a branch.
                    columns[length] = position[indices[j]]
                    values[length] = data[j]
                    length += position[indices[j]] >= 0
                for j in range(length):
                    scaled = weights[i] * values[j]
                    out[columns[j], columns[j]] += 0.5 * scaled * values[j]
                    for k in range(j + 1, length):
                        out[columns[j], columns[k]] += scaled * values[k]
    finally:
        free(values)
