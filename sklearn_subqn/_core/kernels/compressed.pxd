"""Checks of sparse matrices by rows (CSR) or columns (CSC), in every build.

Invalid indices would make loops write outside of their arrays. An index i is in [0, n)
if neither i nor n - 1 - i has its sign bit set. This test needs no branches, and takes
about a tenth of the time of a product.
"""

from .rows cimport index, row_index

cdef extern from "limits.h":
    const int INT_MAX


cdef inline int _check_indices(
    const row_index[::1] indices, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t n
) except -1 nogil:
    """Raise ValueError unless indices first to stop - 1 are in [0, n)."""
    cdef Py_ssize_t i
    cdef unsigned int last = <unsigned int> min(n - 1, <Py_ssize_t> INT_MAX), narrow = 0
    cdef unsigned long long last_wide = <unsigned long long> (n - 1), wide = 0
    if row_index is longlong:
        for i in range(first, stop):
            wide |= <unsigned long long> indices[i]
            wide |= last_wide - <unsigned long long> indices[i]
    else:
        for i in range(first, stop):
            narrow |= (<unsigned int> indices[i]) | (last - <unsigned int> indices[i])
    if narrow >> 31 or wide >> 63 or (n <= 0 and first < stop):
        with gil:
            raise ValueError(f"indices must lie in [0, {n}).")
    return 0


cdef inline int check_lines(
    const index[::1] indptr, Py_ssize_t n_values, Py_ssize_t n
) except -1 nogil:
    """Raise ValueError unless ``indptr`` ascends from n lines within the values."""
    cdef Py_ssize_t i
    cdef bint rises
    if indptr.shape[0] != n + 1:
        with gil:
            raise ValueError("arrays of a matrix differ in length.")
    rises = indptr[0] >= 0 and indptr[n] <= n_values
    for i in range(n):
        rises &= indptr[i] <= indptr[i + 1]
    if not rises:
        with gil:
            raise ValueError(f"indptr must rise from 0 to at most {n_values}.")
    return 0


cdef inline int check_all(
    const index[::1] indptr,
    const row_index[::1] indices,
    Py_ssize_t n_values,
    Py_ssize_t n_lines,
    Py_ssize_t n_others,
) except -1 nogil:
    """Raise ValueError unless a matrix has n lines with indices in [0, n_others)."""
    if indices.shape[0] != n_values:
        with gil:
            raise ValueError("indices and values differ in length.")
    check_lines(indptr, n_values, n_lines)
    return _check_indices(indices, indptr[0], indptr[n_lines], n_others)


cdef inline int check_some(
    const index[::1] indptr,
    const row_index[::1] indices,
    Py_ssize_t n_values,
    const Py_ssize_t[::1] lines,
    Py_ssize_t n_others,
) except -1 nogil:
    """Raise ValueError unless the given lines pass the checks of ``check_all``."""
    cdef Py_ssize_t k, line, n = indptr.shape[0] - 1, first = 0, stop = 0
    if indices.shape[0] != n_values:
        with gil:
            raise ValueError("indices and values differ in length.")
    for k in range(lines.shape[0]):
        line = lines[k]
        if not 0 <= line < n:
            with gil:
                raise ValueError(f"line {line} is none of {n}.")
        if not 0 <= indptr[line] <= indptr[line + 1] <= n_values:
            with gil:
                raise ValueError(f"indptr must rise from 0 to at most {n_values}.")
        # Adjacent lines are checked together.
        if indptr[line] != stop:
            _check_indices(indices, first, stop, n_others)
            first = indptr[line]
        stop = indptr[line + 1]
    return _check_indices(indices, first, stop, n_others)
