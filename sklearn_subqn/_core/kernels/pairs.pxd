"""Products of rows of a sparse matrix with parameters of observed (feature, label) pairs.

The labels of feature j are ``labels[ptr[j] : ptr[j + 1]]``, and its parameters have the
same places. Where all stored entries are one, ``data`` is NULL.
"""

from .rows cimport index, prefetch, real

cdef enum:
    AHEAD = 8


cdef inline void add_scores(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    const int* ptr,
    const unsigned short* labels,
    const double* w,
    double* z,
) noexcept nogil:
    """Add the scores of one row to z of shape (k,)."""
    cdef Py_ssize_t j, p
    cdef double x
    if data == NULL:
        for j in range(size):
            for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
                z[labels[p]] += w[p]
    else:
        for j in range(size):
            x = data[j]
            for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
                z[labels[p]] += x * w[p]


cdef inline void add_row(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    const int* ptr,
    const unsigned short* labels,
    const double* u,
    double* v,
) noexcept nogil:
    """Add the products of the features of one row with u of shape (k,) to v."""
    cdef Py_ssize_t j, p
    cdef double x
    if data == NULL:
        for j in range(size):
            for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
                v[p] += u[labels[p]]
    else:
        for j in range(size):
            x = data[j]
            for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
                v[p] += x * u[labels[p]]
