"""Products of sparse rows with parameters of (feature, label) pairs.

Padded parameters have one row of shape (stride,) for each feature, with one entry per
label; the stride is a multiple of four, so that loops have no branches. Packed
parameters use less memory: feature j has the entries ptr[j] to ptr[j + 1] - 1, for the
labels ``labels[ptr[j] : ptr[j + 1]]``. ``data`` is NULL where all stored entries are
one.
"""

from .padded_rows cimport add_row, add_scaled_row
from .rows cimport index, real

cdef enum:
    WIDTH = 4


cdef inline void padded_scores(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    Py_ssize_t stride,
    const double* w,
    double* z,
) noexcept nogil:
    """Write the scores of one row to z of shape (stride,)."""
    cdef Py_ssize_t j, c, b = 0
    cdef double x
    cdef double sums[8]
    cdef double more[4]
    cdef const double* row
    while b + 8 <= stride:
        for c in range(8):
            sums[c] = 0.0
        if data == NULL:
            for j in range(size):
                row = w + stride * indices[j] + b
                for c in range(8):
                    sums[c] += row[c]
        else:
            for j in range(size):
                row = w + stride * indices[j] + b
                x = data[j]
                for c in range(8):
                    sums[c] += x * row[c]
        for c in range(8):
            z[b + c] = sums[c]
        b += 8
    if b == stride:
        return
    for c in range(4):
        sums[c] = more[c] = 0.0
    j = 0
    while j + 2 <= size:
        row = w + stride * indices[j] + b
        x = 1.0 if data == NULL else data[j]
        for c in range(4):
            sums[c] += x * row[c]
        row = w + stride * indices[j + 1] + b
        x = 1.0 if data == NULL else data[j + 1]
        for c in range(4):
            more[c] += x * row[c]
        j += 2
    if j < size:
        row = w + stride * indices[j] + b
        x = 1.0 if data == NULL else data[j]
        for c in range(4):
            sums[c] += x * row[c]
    for c in range(4):
        z[b + c] = sums[c] + more[c]


cdef inline void packed_scores(
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
    for j in range(size):
        x = 1.0 if data == NULL else data[j]
        for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
            z[labels[p]] += x * w[p]


cdef inline void add_padded_row(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    Py_ssize_t stride,
    const double* u,
    double* v,
) noexcept nogil:
    """Add the outer product of one row with u of shape (stride,) to padded v."""
    cdef Py_ssize_t j
    if data == NULL:
        for j in range(size):
            add_row(v + stride * indices[j], u, stride)
    else:
        for j in range(size):
            add_scaled_row(v + stride * indices[j], data[j], u, stride)


cdef inline void add_packed_row(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    const int* ptr,
    const unsigned short* labels,
    const double* u,
    double* v,
) noexcept nogil:
    """Add the outer product of one row with u of shape (k,) to packed v."""
    cdef Py_ssize_t j, p
    cdef double x
    for j in range(size):
        x = 1.0 if data == NULL else data[j]
        for p in range(ptr[indices[j]], ptr[indices[j] + 1]):
            v[p] += x * u[labels[p]]
