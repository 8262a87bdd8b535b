"""Hessians of the squared violations of the order of a row's labels.

Rows and weights are described in ``label_order.pyx``. Its kernel ``violated`` returns
the labels that are in a violated pair, ``order`` of shape (n, k) and ``sizes``.
"""

from .ordered_labels cimport Labels, check, kind, open_row
from .rows cimport allocate, same_length
from .standard cimport free


cdef int check_order(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
) except -1:
    cdef Py_ssize_t i, e, k = order.shape[1]
    check(targets, weights, order.shape[0], k)
    same_length(targets.shape[0], sizes.shape[0])
    for i in range(order.shape[0]):
        if not 0 <= sizes[i] <= k:
            raise ValueError(f"sizes must lie in [0, {k}].")
        for e in range(sizes[i]):
            if not 0 <= order[i, e] < k:
                raise ValueError(f"order must have numbers below {k}.")
    return 0


def apply(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    const double[:, ::1] vectors,
    double[:, ::1] out,
):
    """Write the product of each row's Hessian with a vector."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = order.shape[1]
    cdef int side
    cdef double count, total, single
    cdef bint passed
    cdef Labels row
    cdef const double* d
    cdef double* u
    check_order(targets, order, sizes, weights)
    same_length(order.shape[0], vectors.shape[0])
    same_length(k, vectors.shape[1])
    same_length(order.shape[0], out.shape[0])
    same_length(k, out.shape[1])
    with nogil:
        for i in range(order.shape[0]):
            for j in range(k):
                out[i, j] = 0.0
            if sizes[i] == 0:
                continue
            d, u = &vectors[i, 0], &out[i, 0]
            open_row(&targets[i, 0], l, k, weights[i], &row)
            # The ascending pass computes the entries of irrelevant labels, the
            # descending pass the entries of relevant labels.
            for side in range(2):
                count = total = 0.0
                passed = False
                for e in range(sizes[i]):
                    j = order[i, sizes[i] - 1 - e if side else e]
                    if j == l:
                        passed = True
                    elif row.relevant[j] != side:
                        count += 1.0
                        total += d[j]
                    else:
                        single = row.single * (d[j] - d[l]) if passed else 0.0
                        u[j] = row.pair * (count * d[j] - total) + single
                        if passed:
                            u[l] -= single


def diagonal(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    double[:, ::1] out,
):
    """Write the diagonals of the rows' Hessians."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = order.shape[1], a, b
    cdef int side
    cdef double count
    cdef bint passed
    cdef Labels row
    check_order(targets, order, sizes, weights)
    same_length(order.shape[0], out.shape[0])
    same_length(k, out.shape[1])
    with nogil:
        for i in range(order.shape[0]):
            for j in range(k):
                out[i, j] = 0.0
            if sizes[i] == 0:
                continue
            open_row(&targets[i, 0], l, k, weights[i], &row)
            for side in range(2):
                count, passed = 0.0, False
                for a in range(sizes[i]):
                    j = order[i, sizes[i] - 1 - a if side else a]
                    if j == l:
                        passed = True
                    elif row.relevant[j] == side:
                        out[i, j] = row.pair * count
                        if passed:
                            out[i, j] += row.single
                            out[i, l] += row.single
                    else:
                        count += 1.0


def entries(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    Py_ssize_t first,
    Py_ssize_t[::1] row_of,
    Py_ssize_t[::1] pairs,
    double[::1] values,
):
    """Write the entries (j, h), j <= h, of the rows' Hessians, as j * k + h.

    Stops at the first row whose entries might not fit. Returns the first row not
    processed, and the number of entries written.
    """
    cdef Py_ssize_t i = first, a, b, j, h, n = order.shape[0], l = targets.shape[1]
    cdef Py_ssize_t k = order.shape[1], count = 0, max_entries = k * (k + 1) // 2
    cdef Py_ssize_t size = values.shape[0]
    cdef double c
    cdef double* diagonals
    cdef Labels row
    check_order(targets, order, sizes, weights)
    same_length(size, row_of.shape[0], pairs.shape[0])
    if size < max_entries:
        raise ValueError(f"room for {size} entries where {max_entries} may come.")
    diagonals = <double*> allocate(k * sizeof(double))
    with nogil:
        while i < n and count + max_entries <= size:
            open_row(&targets[i, 0], l, k, weights[i], &row)
            for a in range(sizes[i]):
                diagonals[order[i, a]] = 0.0
            for b in range(1, sizes[i]):
                for a in range(b):
                    j, h = order[i, a], order[i, b]
                    if kind(&row, j) <= kind(&row, h):
                        continue
                    c = row.single if j == l or h == l else row.pair
                    diagonals[j] += c
                    diagonals[h] += c
                    row_of[count], pairs[count] = i, min(j, h) * k + max(j, h)
                    values[count] = -c
                    count += 1
            for a in range(sizes[i]):
                j = order[i, a]
                row_of[count], pairs[count] = i, j * k + j
                values[count] = diagonals[j]
                count += 1
            i += 1
        free(diagonals)
    return i, count
