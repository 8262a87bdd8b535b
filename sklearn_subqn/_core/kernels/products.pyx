"""Products of matrices with vectors and diagonal matrices, in float64.

SciPy would copy a sparse float32 matrix to float64 for each product.
"""

from .compressed cimport check_all, check_lines, check_some
from .dense_rows cimport dense_round, dense_with_sizes
from .rows cimport (
    add_sparse_row,
    index,
    AHEAD,
    prefetch,
    real,
    row_index,
    same_length,
    sparse_product,
)
from .standard cimport memset, sqrt

# Minimum number of terms of a partial sum.
cdef Py_ssize_t _SUMMED = 256


def multiply(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const double[::1] coef,
    double[::1] out,
):
    """Write the product of a CSR matrix with ``coef`` to ``out``."""
    cdef Py_ssize_t n = out.shape[0], i, j
    cdef double product
    with nogil:
        check_all(indptr, indices, values.shape[0], n, coef.shape[0])
        for i in range(n):
            product = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                product += values[j] * coef[indices[j]]
            out[i] = product


def multiply_several(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const double[:, ::1] coef,
    double[:, ::1] out,
):
    """Write the product of a CSR matrix with a dense matrix ``coef`` to ``out``.

    The time is half to three quarters of SciPy's.
    """
    cdef Py_ssize_t n = out.shape[0], k = out.shape[1], i, start
    same_length(k, coef.shape[1])
    if n == 0 or k == 0:
        return
    memset(&out[0, 0], 0, n * k * sizeof(double))
    check_all(indptr, indices, values.shape[0], n, coef.shape[0])
    if values.shape[0] == 0:
        return
    with nogil:
        for i in range(n):
            start = indptr[i]
            add_sparse_row(
                &values[0] + start, &indices[0] + start, indptr[i + 1] - start,
                &coef[0, 0], k, &out[i, 0],
            )


def multiply_with_sizes(
    const double[:, ::1] X, const double[::1] coef, double[::1] out, double[::1] sizes
):
    """Write X times ``coef`` to ``out``, and |X| times |coef| to ``sizes``."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
    same_length(n, sizes.shape[0], out.shape[0])
    same_length(d, coef.shape[0])
    if d == 0:
        sizes[:] = 0.0
        out[:] = 0.0
    elif n:
        with nogil:
            dense_with_sizes(&X[0, 0], n, d, &coef[0], &out[0], &sizes[0])


def round_rows(
    const double[::1] sizes, double least, double share, double[:, ::1] scores
):
    """Round each row of scores to about ``share`` times its size plus ``least``.

    Units are powers of two, by which scaling is exact.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1]
    same_length(n, sizes.shape[0])
    if n and k:
        with nogil:
            dense_round(&sizes[0], least, share, n, k, &scores[0, 0])


def squares_of_rows(
    const index[::1] indptr, const real[::1] values, double[::1] out
):
    """Write the squared norms of the rows of a CSR matrix to ``out``."""
    cdef Py_ssize_t n = out.shape[0], i, j
    cdef double total
    with nogil:
        check_lines(indptr, values.shape[0], n)
        for i in range(n):
            total = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                total += (<double> values[j]) * values[j]
            out[i] = total


def add_columns(
    const index[::1] indptr,
    const row_index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    const double[::1] coef,
    double[::1] out,
):
    """Add the product of the given columns of a CSC matrix with ``coef`` to ``out``."""
    cdef Py_ssize_t m = columns.shape[0], i, k
    cdef double factor
    same_length(m, coef.shape[0])
    with nogil:
        check_some(indptr, indices, values.shape[0], columns, out.shape[0])
        for k in range(m):
            factor = coef[k]
            if factor != 0.0:
                for i in range(indptr[columns[k]], indptr[columns[k] + 1]):
                    out[indices[i]] += factor * values[i]


def multiply_columns(
    const index[::1] indptr,
    const row_index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    const double[::1] vector,
    double[::1] out,
):
    """Write the product of each given column of a CSC matrix with ``vector``.

    A product of n terms is a sum of about sqrt(n) partial sums. The rounding error then
    grows with sqrt(n); in a plain sum of similar terms it would grow with n.
    """
    cdef Py_ssize_t m = columns.shape[0], k, start, end, size
    same_length(m, out.shape[0])
    with nogil:
        check_some(indptr, indices, values.shape[0], columns, vector.shape[0])
        for k in range(m):
            start, end = indptr[columns[k]], indptr[columns[k] + 1]
            size = max(_SUMMED, <Py_ssize_t> sqrt(<double> (end - start)))
            out[k] = 0.0
            while start < end:
                out[k] += sparse_product(
                    &values[start], &indices[start], min(size, end - start), &vector[0]
                )
                start += size


def add_adjoint(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    int power,
    const double[:, ::1] u,
    double[:, ::1] out,
):
    """Add the product of the transpose of a CSR matrix with ``u`` to ``out``.

    Entries are raised to ``power``, 0, 1 or 2; zero entries stay zero.
    """
    cdef Py_ssize_t n = u.shape[0], k = u.shape[1], i, j, l
    cdef double entry
    same_length(k, out.shape[1])
    with nogil:
        check_all(indptr, indices, values.shape[0], n, out.shape[0])
        for i in range(n):
            for j in range(indptr[i], indptr[i + 1]):
                entry = values[j]
                if power == 2:
                    entry *= entry
                elif power == 0:
                    entry = entry != 0.0
                # The prologue of a vectorized loop takes longer than one number.
                if k == 1:
                    out[indices[j], 0] += entry * u[i, 0]
                    continue
                for l in range(k):
                    out[indices[j], l] += entry * u[i, l]


def is_canonical(
    const index[::1] indptr, const index[::1] indices, Py_ssize_t n_columns
):
    """Return whether a CSR matrix is valid, and columns rise strictly in each row."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, j, start, end
    cdef bint rises
    if n < 0 or indptr[0] != 0 or indptr[n] != indices.shape[0]:
        return False
    with nogil:
        rises = True
        for i in range(n):
            rises &= indptr[i] <= indptr[i + 1]
        for i in range(n if rises else 0):
            start, end = indptr[i], indptr[i + 1]
            for j in range(start + 1, end):
                rises &= indices[j - 1] < indices[j]
            if start < end:
                rises &= 0 <= indices[start] and indices[end - 1] < n_columns
    return bool(rises)


def count(const index[::1] indices, index[::1] out):
    """Add the number of entries in each column of a CSR matrix to ``out``."""
    cdef Py_ssize_t d = out.shape[0], j
    for j in range(indices.shape[0]):
        if not 0 <= indices[j] < d:
            raise ValueError(f"column {indices[j]} is none of {d}.")
    with nogil:
        for j in range(indices.shape[0]):
            out[indices[j]] += 1


def to_columns(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    Py_ssize_t first,
    index[::1] ends,
    index[::1] out_indices,
    real[::1] out_values,
):
    """Convert a block of rows of a CSR matrix to CSC, with ascending row indices.

    The rows are numbered from ``first``. Their entries in column j are written to the
    places before ``ends[j]``, which becomes the first of these places. Writes jump
    between columns, so the places are prefetched; the time is two thirds of SciPy's.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1
    cdef Py_ssize_t size = indices.shape[0], i, j, ahead
    cdef index end
    same_length(size, indptr[n])
    if out_indices.shape[0] != out_values.shape[0] or out_indices.shape[0] < size:
        raise ValueError("a matrix and its columns differ in length.")
    with nogil:
        check_all(indptr, indices, values.shape[0], n, ends.shape[0])
        # Columns are filled backwards, from their ends.
        for i in range(n - 1, -1, -1):
            for j in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
                ahead = ends[indices[max(j - AHEAD, 0)]]
                prefetch(&out_indices[0] + ahead - 1)
                prefetch(&out_values[0] + ahead - 1)
                end = ends[indices[j]] - 1
                ends[indices[j]] = end
                out_indices[end] = <index> (first + i)
                out_values[end] = values[j]


def squares(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    const double[:, ::1] weights,
    double[:, ::1] out,
):
    """Write the diagonals of Xᵀ diag(h) X for the given columns of X (CSC).

    ``weights`` of shape (n, k) has k vectors h, and ``out`` of shape (m, k) the
    diagonals.
    """
    cdef Py_ssize_t m = columns.shape[0], k = weights.shape[1], i, j, c, l
    cdef double square
    same_length(m, out.shape[0])
    same_length(k, out.shape[1])
    with nogil:
        check_some(indptr, indices, values.shape[0], columns, weights.shape[0])
        for c in range(m):
            j = columns[c]
            for l in range(k):
                out[c, l] = 0.0
            for i in range(indptr[j], indptr[j + 1]):
                square = <double> values[i] * values[i]
                for l in range(k):
                    out[c, l] += square * weights[indices[i], l]


def scale_columns(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    const double[::1] scales,
    const row_index[::1] positions,
    Py_ssize_t n_rows,
    index[::1] out_indptr,
    row_index[::1] out_indices,
    float[::1] out_values,
    double[:, ::1] squares,
):
    """Write the given columns of X (CSC) with rows multiplied by ``scales``.

    Row i becomes row ``positions[i]``, or is left out if ``positions[i] >= n_rows``.
    ``out_indices`` and ``out_values`` must have the size of all entries of the columns.
    ``squares`` of shape (2, m) receives the squared norms of the written and of the
    left-out part of each column.
    """
    cdef Py_ssize_t m = columns.shape[0], c, j, i, end = 0
    cdef double scaled, square, total
    cdef bint kept
    same_length(m, out_indptr.shape[0] - 1, squares.shape[1])
    same_length(2, squares.shape[0])
    same_length(scales.shape[0], positions.shape[0])
    check_some(indptr, indices, values.shape[0], columns, scales.shape[0])
    for c in range(m):
        end += indptr[columns[c] + 1] - indptr[columns[c]]
    if out_indices.shape[0] < end or out_values.shape[0] < end:
        raise ValueError("there is no room for the columns.")
    with nogil:
        end = 0
        out_indptr[0] = 0
        for c in range(m):
            j = columns[c]
            square = total = 0.0
            for i in range(indptr[j], indptr[j + 1]):
                # Writing unconditionally is faster than a branch.
                scaled = scales[indices[i]] * values[i]
                out_indices[end] = positions[indices[i]]
                out_values[end] = <float> scaled
                kept = <Py_ssize_t> positions[indices[i]] < n_rows
                end += kept
                total += scaled * scaled
                square += kept * (scaled * scaled)
            out_indptr[c + 1] = <index> end
            squares[0, c] = square
            squares[1, c] = total - square
