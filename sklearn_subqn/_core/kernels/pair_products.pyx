"""Products with Hessians of sums over pairs of rows of unequal level.

Rows, pairs and parameters are described in ``pair_sums.pyx``. Pairs with violations 0 <
m <= width count. The partners of a row form a sliding window over the sorted rows.
"""

from .level_sums cimport Pairs, clear, get_terms, pairs_of
from .partners cimport Group, Terms, Window, group_of, move, row_at
from .rows cimport same_length


def products(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] values,
    const double[:, ::1] costs,
    const double[:, ::1] terms,
    const double[::1] weights,
    double margin,
    double width,
    bint higher,
    const Py_ssize_t[::1] places,
    double factor,
    double[:, ::1] sums,
    double[:, ::1] out,
):
    """Add factor * cost * weight * terms of all partners with 0 < m <= width.

    All other parameters are described in ``moments`` of ``pair_sums.pyx``.

    Parameters
    ----------
    terms : (n, w)
        Terms of each row as a partner.
    width : float
        May be infinite.
    places : (n,)
        Index of the result of each row; negative for none.
    factor : float
    sums : (k + 1, 2 w + 1)
    out : (p, w)
    """
    cdef Py_ssize_t n = scores.shape[0], w = terms.shape[1]
    cdef Py_ssize_t g, step, row
    cdef Group group
    cdef Window window
    cdef Terms partners
    cdef Pairs pairs = pairs_of(scores, order, starts, levels, values, costs, sums, w)
    pairs.higher = higher
    same_length(n, terms.shape[0], weights.shape[0], places.shape[0])
    same_length(w, out.shape[1])
    for row in range(n):
        if places[row] >= out.shape[0]:
            raise ValueError(f"Places must be less than {out.shape[0]}.")
    if n == 0 or w == 0:
        return
    partners = Terms(&terms[0, 0], NULL, NULL, w, &weights[0])
    with nogil:
        for g in range(starts.shape[0] - 1):
            group = group_of(scores, order, starts[g], starts[g + 1], higher)
            window = Window(margin, width, 0, 0)
            for step in range(group.size):
                row = row_at(&group, step)
                if places[row] < 0:
                    continue
                move(&window, &group, scores[row], &levels[0], &partners, &pairs)
                get_terms(&pairs, levels[row], factor, w, &out[places[row], 0])
            for step in range(group.size):
                clear(&pairs, levels[group.order[step]])


def crossed(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] values,
    const double[:, ::1] costs,
    const double[::1] weights,
    const double[::1] factors,
    double margin,
    double width,
    bint higher,
    const int[::1] indptr,
    const int[::1] indices,
    const double[::1] data,
    double[:, ::1] sums,
    double[:, ::1] out,
):
    """Add factor_i * cost * weight_j * x_i x_jᵀ over pairs, 0 < m <= width.

    Row i has the partners j. All other parameters are described in ``moments`` of
    ``pair_sums.pyx``.

    Parameters
    ----------
    width : float
        May be infinite.
    factors : (n,)
        Zero for rows whose pairs do not count.
    indptr, indices, data : (n + 1,), (nnz,), (nnz,)
        X of shape (n, d), in CSR format.
    sums : (k + 1, 2 d + 1)
        Workspace of zeros; the last row is for the sum over one row's partners.
    out : (d, d)
    """
    cdef Py_ssize_t n = scores.shape[0], d = out.shape[1]
    cdef Py_ssize_t g, step, row, t, i
    cdef double value
    cdef double *total
    cdef Group group
    cdef Window window
    cdef Terms partners
    cdef Pairs pairs = pairs_of(scores, order, starts, levels, values, costs, sums, d)
    pairs.higher = higher
    same_length(n, weights.shape[0], factors.shape[0], indptr.shape[0] - 1)
    same_length(d, out.shape[0])
    same_length(indices.shape[0], data.shape[0])
    if indptr[0] < 0 or indptr[n] > indices.shape[0]:
        raise ValueError("Rows must lie within the entries.")
    for row in range(n):
        if indptr[row] > indptr[row + 1]:
            raise ValueError("Ends of rows must rise.")
    for t in range(indices.shape[0]):
        if not 0 <= indices[t] < d:
            raise ValueError(f"Indices must lie in [0, {d}), got {indices[t]}.")
    if d == 0 or data.shape[0] == 0:
        return
    partners = Terms(&data[0], &indptr[0], &indices[0], d, &weights[0])
    total = pairs.sums + pairs.k * pairs.width
    with nogil:
        for g in range(starts.shape[0] - 1):
            group = group_of(scores, order, starts[g], starts[g + 1], higher)
            window = Window(margin, width, 0, 0)
            for step in range(group.size):
                row = row_at(&group, step)
                if factors[row] == 0.0:
                    continue
                move(&window, &group, scores[row], &levels[0], &partners, &pairs)
                for i in range(d):
                    total[i] = 0.0
                get_terms(&pairs, levels[row], factors[row], d, total)
                for t in range(indptr[row], indptr[row + 1]):
                    value = data[t]
                    for i in range(d):
                        out[indices[t], i] += value * total[i]
            for step in range(group.size):
                clear(&pairs, levels[group.order[step]])
        for i in range(d):
            total[i] = 0.0
