"""Codes of categorical features: groups of columns with at most one entry in a row.

Products use tables with one number for each code.
"""

from .compressed cimport check_all
from .rows cimport index, real


def describe(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    Py_ssize_t[::1] counts,
    double[::1] first,
    unsigned char[::1] varies,
    Py_ssize_t[::1] following,
):
    """Return whether columns ascend in each row of a CSR matrix; summarize columns.

    The outputs are valid only if the columns ascend.

    Parameters
    ----------
    indptr, indices, values : arrays
        The matrix, of shape (n, d).
    counts : ndarray of shape (d,)
        Zeros; receives the number of entries of each column.
    first : ndarray of shape (d,)
        Receives the first value of each column with entries.
    varies : ndarray of shape (d,)
        Zeros; receives ones for columns with different values.
    following : ndarray of shape (d,)
        Receives, for each column, the minimum of the given value and the columns that
        directly follow this column in a row.
    """
    cdef Py_ssize_t i, j, column, last
    cdef bint ascend = True
    cdef Py_ssize_t d = counts.shape[0]
    if first.shape[0] != d or varies.shape[0] != d or following.shape[0] != d:
        raise ValueError("arrays of columns differ in length.")
    with nogil:
        check_all(indptr, indices, values.shape[0], indptr.shape[0] - 1, d)
        for i in range(indptr.shape[0] - 1):
            last = -1
            if not ascend:
                break
            for j in range(indptr[i], indptr[i + 1]):
                column = indices[j]
                if column <= last:
                    ascend = False
                    break
                if last >= 0 and column < following[last]:
                    following[last] = column
                if counts[column] == 0:
                    first[column] = values[j]
                varies[column] |= values[j] != first[column]
                counts[column] += 1
                last = column
    return ascend


def encode(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] places,
    const Py_ssize_t[::1] steps,
    unsigned short[:, ::1] codes,
    double[:, ::1] numbers,
):
    """Write the codes of the rows of a CSR matrix, and the values of numeric columns.

    Parameters
    ----------
    indptr, indices, values : arrays
        The matrix, of shape (n, d).
    places : ndarray of shape (d,)
        For each column its group of codes, or -1 - j for the j-th numeric column.
    steps : ndarray of shape (d,)
        Number that an entry of the column adds to the code of its group.
    codes : ndarray of shape (m, n)
        Zeros; receives the codes.
    numbers : ndarray of shape (p, n)
        Zeros; receives the values of the numeric columns.
    """
    cdef Py_ssize_t i, j, place, n = codes.shape[1], d = places.shape[0]
    if numbers.shape[1] != n or steps.shape[0] != d:
        raise ValueError("arrays of rows or columns differ in length.")
    for j in range(d):
        if not -numbers.shape[0] <= places[j] < codes.shape[0]:
            raise ValueError(f"column {j} has no place {places[j]}.")
    with nogil:
        check_all(indptr, indices, values.shape[0], n, d)
        for i in range(n):
            for j in range(indptr[i], indptr[i + 1]):
                place = places[indices[j]]
                if place >= 0:
                    codes[place, i] += <unsigned short> steps[indices[j]]
                else:
                    numbers[-1 - place, i] = values[j]


def add_entries(
    const unsigned short[::1] codes, const double[::1] table, double[::1] out
):
    """Add the table entry of each row's code to ``out``."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] += table[codes[i]]


def add_to_entries(
    const unsigned short[::1] codes, const double[::1] numbers, double[::1] table
):
    """Add the number of each row to the table entry of its code."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            table[codes[i]] += numbers[i]


def add_to_pairs(
    const unsigned short[::1] codes,
    const unsigned short[::1] others,
    const double[::1] numbers,
    double[:, ::1] table,
):
    """Add the number of each row to the table entry of its pair of codes."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            table[codes[i], others[i]] += numbers[i]
