"""Scores of tokens by parameters of observed (feature, label) pairs, and the adjoint.

Rows are those of a CSR matrix of shape (T, d); ``data`` is empty where all of its
stored entries are one. Feature j has the labels ``labels[ptr[j] : ptr[j + 1]]``, and
parameters in the same places. Arrays may end with further parameters.
"""

from .pairs cimport add_row, add_scores
from .rows cimport index, real


def forward(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const double[::1] w,
    Py_ssize_t first,
    Py_ssize_t stop,
    double[:, ::1] out,
):
    """Write the scores of rows first to stop - 1 to the same rows of ``out``."""
    cdef Py_ssize_t k = out.shape[1], t, j, start
    cdef const real* entries = NULL
    _check(
        data.shape[0], indices, indptr, ptr, labels, w.shape[0], first, stop,
        out.shape[0],
    )
    if data.shape[0]:
        entries = &data[0]
    if indices.shape[0] == 0:
        out[first:stop] = 0.0
        return
    with nogil:
        for t in range(first, stop):
            for j in range(k):
                out[t, j] = 0.0
            start = indptr[t]
            add_scores(
                entries + start if entries != NULL else NULL, &indices[start],
                indptr[t + 1] - start, &ptr[0], &labels[0], &w[0], &out[t, 0],
            )


def adjoint(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const double[:, ::1] u,
    Py_ssize_t first,
    Py_ssize_t stop,
    double[::1] out,
):
    """Add the products of features with rows first to stop - 1 of ``u`` to ``out``."""
    cdef Py_ssize_t t, start
    cdef const real* entries = NULL
    _check(
        data.shape[0], indices, indptr, ptr, labels, out.shape[0], first, stop,
        u.shape[0],
    )
    if indices.shape[0] == 0:
        return
    if data.shape[0]:
        entries = &data[0]
    with nogil:
        for t in range(first, stop):
            start = indptr[t]
            add_row(
                entries + start if entries != NULL else NULL, &indices[start],
                indptr[t + 1] - start, &ptr[0], &labels[0], &u[t, 0], &out[0],
            )


cdef int _check(
    Py_ssize_t size,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    Py_ssize_t n_params,
    Py_ssize_t first,
    Py_ssize_t stop,
    Py_ssize_t n_rows,
) except -1:
    if size and size != indices.shape[0]:
        raise ValueError("indices and values differ in length.")
    if indptr.shape[0] != n_rows + 1 or indptr[n_rows] > indices.shape[0]:
        raise ValueError("arrays of a matrix and its rows differ in length.")
    if not 0 <= first <= stop <= n_rows:
        raise ValueError(f"rows {first} to {stop} are not within {n_rows}.")
    if ptr[ptr.shape[0] - 1] > labels.shape[0] or n_params < labels.shape[0]:
        raise ValueError("pairs and parameters differ in length.")
    return 0
