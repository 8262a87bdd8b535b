"""Rows of a matrix in their stored format, and products with arrays of k columns.

The matrix is dense with any strides, or CSR, of float32 or float64. Arrays of k columns
are C-contiguous.
"""

from scipy.linalg.cython_blas cimport dgemm

from .compressed cimport check_all
from .rows cimport add_sparse_row
from .standard cimport memset

cdef struct Matrix:
    # Dense rows with strides in bytes, or CSR rows if there are indices.
    const char* X
    bint single
    Py_ssize_t row_stride, column_stride
    const int* indices
    const long long* indptr
    Py_ssize_t n, d


cdef inline int read_matrix(Matrix* o, object X, Py_ssize_t n, Py_ssize_t d) except -1:
    """Store the addresses and strides of the n rows of d features."""
    cdef const double[:, :] dense
    cdef const float[:, :] single
    cdef const double[::1] data
    cdef const float[::1] single_data
    cdef const int[::1] indices
    cdef const long long[::1] indptr
    o.n, o.d = n, d
    if isinstance(X, tuple):
        values, indices, indptr = X
        check_all(indptr, indices, len(values), n, d)
        o.single = values.itemsize == sizeof(float)
        if o.single and len(values):
            single_data = values
            o.X = <const char*> &single_data[0]
        elif len(values):
            data = values
            o.X = <const char*> &data[0]
        o.indptr, o.indices = &indptr[0], &indices[0] if len(values) else <const int*> 1
        return 0
    if X.shape != (n, d):
        raise ValueError(f"rows are not of shape {(n, d)}")
    o.single = X.itemsize == sizeof(float)
    if o.single:
        single = X
        o.X = <const char*> &single[0, 0] if d else NULL
        o.row_stride, o.column_stride = single.strides[0], single.strides[1]
    else:
        dense = X
        o.X = <const char*> &dense[0, 0] if d else NULL
        o.row_stride, o.column_stride = dense.strides[0], dense.strides[1]
    return 0


cdef inline double entry_of(const Matrix* o, Py_ssize_t j) noexcept nogil:
    """Return a stored entry of a CSR matrix."""
    return (<const float*> o.X)[j] if o.single else (<const double*> o.X)[j]


cdef inline void copy_row(const Matrix* o, Py_ssize_t i, double* row) noexcept nogil:
    cdef Py_ssize_t j
    cdef const char* x
    if o.indices != NULL:
        memset(row, 0, o.d * sizeof(double))
        for j in range(o.indptr[i], o.indptr[i + 1]):
            row[o.indices[j]] += entry_of(o, j)
        return
    x = o.X + i * o.row_stride
    if o.single:
        for j in range(o.d):
            row[j] = (<const float*> (x + j * o.column_stride))[0]
    else:
        for j in range(o.d):
            row[j] = (<const double*> (x + j * o.column_stride))[0]


cdef inline const double* block_of_rows(
    const Matrix* o, Py_ssize_t i, Py_ssize_t m, double* room
) noexcept nogil:
    """Return m dense rows, copied unless BLAS can read them in place.

    CSR matrices have no such block.
    """
    cdef Py_ssize_t l
    if o.indices != NULL:
        return NULL
    if not o.single and o.column_stride == 8 and o.row_stride == 8 * o.d:
        return <const double*> o.X + i * o.d
    for l in range(m):
        copy_row(o, i + l, room + l * o.d)
    return room


cdef inline void add_products(
    const Matrix* o,
    const double* X,
    Py_ssize_t i,
    int m,
    const double* W,
    int k,
    double* Z,
) noexcept nogil:
    """Add the products of rows i to i + m - 1, the block X, with W of shape (d, k)."""
    cdef int d = <int> o.d
    cdef Py_ssize_t l, size, first
    cdef double one = 1.0
    if o.indices == NULL:
        if d > 0:
            dgemm(
                "N", "N", &k, &m, &d, &one, <double*> W, &k, <double*> X, &d, &one, Z,
                &k,
            )
        return
    for l in range(m):
        first = o.indptr[i + l]
        size = o.indptr[i + l + 1] - first
        if o.single:
            add_sparse_row(
                <const float*> o.X + first, o.indices + first, size, W, k, Z + l * k
            )
        else:
            add_sparse_row(
                <const double*> o.X + first, o.indices + first, size, W, k, Z + l * k
            )


cdef inline void add_transposed_products(
    const Matrix* o,
    const double* X,
    Py_ssize_t i,
    int m,
    double* U,
    int k,
    double* G,
) noexcept nogil:
    """Add the product of the transpose of m rows with U of shape (m, k) to G."""
    cdef int d = <int> o.d
    cdef Py_ssize_t l, c, j
    cdef double one = 1.0, x
    cdef double* g
    cdef const double* u
    if o.indices == NULL:
        if d > 0:
            dgemm("N", "T", &k, &d, &m, &one, U, &k, <double*> X, &d, &one, G, &k)
        return
    for l in range(m):
        u = U + l * k
        for j in range(o.indptr[i + l], o.indptr[i + l + 1]):
            x, g = entry_of(o, j), G + o.indices[j] * k
            for c in range(k):
                g[c] += x * u[c]
