"""Sums of partners' terms over all levels below, or above, the level of a row.

Fenwick trees give the sums in O(log k) time for k levels; with a table of costs the
time is O(k).

Violations m increase by t from row to row, so m² becomes m² + 2 t m + t². All terms are
positive, so the relative rounding error of a sum is small.
"""

from .groups cimport check_groups
from .rows cimport same_length

cdef struct Pairs:
    # Costs of pairs, and sums over levels: k + 1 nodes of ``width`` numbers. Node k is
    # not in any sum that is read.
    Py_ssize_t k
    Py_ssize_t width
    bint higher
    const double *values
    const double *costs
    double *sums


cdef inline int check(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    double[:, ::1] sums,
) except -1:
    """Raise ValueError unless rows, groups and levels are consistent."""
    cdef Py_ssize_t i, n = scores.shape[0]
    same_length(n, order.shape[0], levels.shape[0])
    check_groups(order, starts)
    for i in range(n):
        if not 0 <= levels[i] < sums.shape[0] - 1:
            raise ValueError(
                f"Levels must lie in [0, {sums.shape[0] - 1}), got {levels[i]}."
            )
    return 0


cdef inline Pairs pairs_of(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] values,
    const double[:, ::1] costs,
    double[:, ::1] sums,
    Py_ssize_t w,
) except *:
    """Return the pairs; raise ValueError unless the arrays are consistent."""
    cdef Pairs pairs
    check(scores, order, starts, levels, sums)
    pairs.k, pairs.width, pairs.higher = sums.shape[0] - 1, sums.shape[1], False
    same_length(pairs.k, values.shape[0] or pairs.k, costs.shape[0] or pairs.k)
    same_length(costs.shape[0], costs.shape[1])
    same_length(2 * w + 1, pairs.width)
    pairs.values = &values[0] if values.shape[0] else NULL
    pairs.costs = &costs[0, 0] if costs.shape[0] else NULL
    pairs.sums = &sums[0, 0]
    return pairs


cdef inline Py_ssize_t leaf(const Pairs *pairs, Py_ssize_t level) noexcept nogil:
    """Return the first node of the Fenwick tree that includes a level."""
    if pairs.costs != NULL:
        return level
    return level + 1 if pairs.higher else pairs.k - level


cdef inline Py_ssize_t after(const Pairs *pairs, Py_ssize_t node) noexcept nogil:
    """Return the next node that includes the same level."""
    return pairs.k if pairs.costs != NULL else node + (node & -node)


cdef inline void grow(double *node, Py_ssize_t w, double now) noexcept nogil:
    """Update a node's sums of (1, m, m²), or (1, m, d, m d, d²), to the time ``now``.

    Violations m increase with time. The last entry of a node is the time of its sums.
    """
    cdef double t = now - node[2 * w]
    if t == 0.0:
        return
    node[2 * w] = now
    grow_by(node, w, t)
    grow_by(node + w, w, t)


cdef inline void grow_by(double *sums, Py_ssize_t w, double t) noexcept nogil:
    if w == 3:
        sums[2] += t * (2.0 * sums[1] + t * sums[0])
    else:
        sums[3] += t * sums[2]
    sums[1] += t * sums[0]


cdef inline void put(
    Pairs *pairs, Py_ssize_t level, const double *terms, Py_ssize_t w, double now
) noexcept nogil:
    """Add a partner's terms to the sums of its level, also times its value."""
    cdef Py_ssize_t t = leaf(pairs, level), i
    cdef double *node
    while t < pairs.k:
        node = pairs.sums + t * pairs.width
        grow(node, w, now)
        for i in range(w):
            node[i] += terms[i]
        if pairs.values != NULL:
            for i in range(w):
                node[w + i] += pairs.values[level] * terms[i]
        t = after(pairs, t)


cdef inline void get(
    Pairs *pairs, Py_ssize_t level, double *out, Py_ssize_t w, double now
) noexcept nogil:
    """Set ``out`` to the sums of cost * terms over the levels of a row's partners."""
    cdef Py_ssize_t t, i, k = pairs.k
    for i in range(w):
        out[i] = 0.0
    if pairs.costs != NULL:
        for t in range(0 if pairs.higher else level + 1, level if pairs.higher else k):
            grow(pairs.sums + t * pairs.width, w, now)
    else:
        t = level if pairs.higher else k - 1 - level
        while t > 0:
            grow(pairs.sums + t * pairs.width, w, now)
            t -= t & -t
    get_terms(pairs, level, 1.0, w, out)


cdef inline void put_terms(
    Pairs *pairs,
    Py_ssize_t level,
    const double *terms,
    const int *places,
    Py_ssize_t w,
    double factor,
) noexcept nogil:
    """Add a multiple of terms, at ``places`` if given, without a time update."""
    cdef Py_ssize_t t = leaf(pairs, level), i, half = pairs.width // 2
    cdef double value
    cdef double *node
    while t < pairs.k:
        node = pairs.sums + t * pairs.width
        if places == NULL:
            for i in range(w):
                node[i] += factor * terms[i]
        else:
            for i in range(w):
                node[places[i]] += factor * terms[i]
        if pairs.values != NULL:
            value = factor * pairs.values[level]
            for i in range(w):
                node[half + (i if places == NULL else places[i])] += value * terms[i]
        t = after(pairs, t)


cdef inline void get_terms(
    const Pairs *pairs, Py_ssize_t level, double factor, Py_ssize_t w, double *out
) noexcept nogil:
    """Add ``factor`` times the sums of cost * terms over the levels of partners."""
    cdef Py_ssize_t t, i, k = pairs.k
    cdef double cost
    cdef const double *node
    if pairs.costs != NULL:
        for t in range(0 if pairs.higher else level + 1, level if pairs.higher else k):
            node = pairs.sums + t * pairs.width
            cost = pairs.costs[t * k + level if pairs.higher else level * k + t]
            for i in range(w):
                out[i] += factor * cost * node[i]
        return
    t = level if pairs.higher else k - 1 - level
    while t > 0:
        node = pairs.sums + t * pairs.width
        if pairs.values == NULL:
            for i in range(w):
                out[i] += factor * node[i]
        else:
            for i in range(w):
                cost = pairs.values[level] * node[i] - node[w + i]
                out[i] += factor * cost if pairs.higher else -factor * cost
        t -= t & -t


cdef inline void clear(Pairs *pairs, Py_ssize_t level) noexcept nogil:
    """Set all sums that include a level to zero."""
    cdef Py_ssize_t t = leaf(pairs, level), i
    while t < pairs.k:
        for i in range(pairs.width):
            pairs.sums[t * pairs.width + i] = 0.0
        t = after(pairs, t)
