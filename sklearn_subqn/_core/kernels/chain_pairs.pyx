"""Scores of tokens from parameters of (feature, label) pairs, and the adjoint map.

Tokens are rows of a CSR matrix of shape (T, d); ``data`` is empty where all stored
entries are one. See ``pairs.pxd`` for padded parameters of shape (d, stride), and for
packed parameters, whose ``stride`` is zero. Padded parameters do not read the pairs,
which may be empty.
"""

from .compressed cimport check_all
from .pairs cimport (
    WIDTH,
    add_packed_row,
    add_padded_row,
    packed_scores,
    padded_scores,
)
from .rows cimport allocate, index, real
from .standard cimport free, memset


def forward(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    Py_ssize_t stride,
    const double[::1] w,
    Py_ssize_t first,
    Py_ssize_t stop,
    double[:, ::1] out,
):
    """Write the scores of rows first to stop - 1 to the same rows of ``out``."""
    cdef Py_ssize_t k = out.shape[1], t, c, start
    cdef const real* entries = &data[0] if data.shape[0] else NULL
    cdef const index* features = &indices[0] if indices.shape[0] else NULL
    cdef const real* own = NULL
    cdef double* z
    _check(
        data.shape[0], indices, indptr, ptr, labels, stride, w.shape[0], first, stop,
        out.shape[0], k,
    )
    z = <double*> allocate((k + WIDTH) * sizeof(double))
    with nogil:
        for t in range(first, stop):
            start = indptr[t]
            own = entries + start if entries != NULL else NULL
            if stride:
                padded_scores(
                    own, features + start, indptr[t + 1] - start, stride, &w[0], z
                )
            else:
                memset(z, 0, k * sizeof(double))
                packed_scores(
                    own, features + start, indptr[t + 1] - start, &ptr[0], &labels[0],
                    &w[0], z,
                )
            for c in range(k):
                out[t, c] = z[c]
        free(z)


def adjoint(
    const real[::1] data,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    Py_ssize_t stride,
    const double[:, ::1] u,
    Py_ssize_t first,
    Py_ssize_t stop,
    double[::1] out,
):
    """Add the adjoint map of rows first to stop - 1 of ``u`` to ``out``."""
    cdef Py_ssize_t k = u.shape[1], t, c, start
    cdef const real* entries = &data[0] if data.shape[0] else NULL
    cdef const index* features = &indices[0] if indices.shape[0] else NULL
    cdef const real* own = NULL
    cdef double* row
    _check(
        data.shape[0], indices, indptr, ptr, labels, stride, out.shape[0], first, stop,
        u.shape[0], k,
    )
    row = <double*> allocate((k + WIDTH) * sizeof(double))
    memset(row, 0, (k + WIDTH) * sizeof(double))
    with nogil:
        for t in range(first, stop):
            start = indptr[t]
            own = entries + start if entries != NULL else NULL
            if stride:
                for c in range(k):
                    row[c] = u[t, c]
                add_padded_row(
                    own, features + start, indptr[t + 1] - start, stride, row, &out[0]
                )
            else:
                add_packed_row(
                    own, features + start, indptr[t + 1] - start, &ptr[0], &labels[0],
                    &u[t, 0], &out[0],
                )
        free(row)


cdef int _check(
    Py_ssize_t size,
    const index[::1] indices,
    const index[::1] indptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    Py_ssize_t stride,
    Py_ssize_t n_params,
    Py_ssize_t first,
    Py_ssize_t stop,
    Py_ssize_t n_rows,
    Py_ssize_t k,
) except -1:
    if size and size != indices.shape[0]:
        raise ValueError("indices and values differ in length.")
    if not 0 <= first <= stop <= n_rows:
        raise ValueError(f"rows {first} to {stop} are not within {n_rows}.")
    check_all(
        indptr[first:stop + 1], indices, indices.shape[0], stop - first,
        ptr.shape[0] - 1,
    )
    if stride:
        if not k <= stride < k + WIDTH or stride % WIDTH:
            raise ValueError(f"rows of {k} labels are not padded to {stride}.")
        if n_params < stride * (ptr.shape[0] - 1):
            raise ValueError("features and their parameters differ in number.")
    elif ptr[ptr.shape[0] - 1] > labels.shape[0] or n_params < labels.shape[0]:
        raise ValueError("pairs and parameters differ in length.")
    return 0
