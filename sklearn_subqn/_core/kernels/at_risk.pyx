"""Sums over the rows at risk at each event time, and sums over the times of each row.

Times are numbered, stratum after stratum and ascending in each; ``origins`` has the
first time of each time's stratum. Row j is at risk from the time ``entries[j]`` to its
last time. Rows are sorted by their last time: rows ``starts[t]`` to ``starts[t + 1] -
1`` have the last time t. The weight of a row in sums is s exp(z). Sums are scaled by
their largest exponential, so that nothing overflows. Rows that enter after the first
time of their stratum are summed in a segment tree over times (Bentley 1977), since
differences of running sums would cancel.
"""

from .rows cimport same_length
from .standard cimport INFINITY, exp


cdef inline double rescale(double *scale, double x, double *sums, Py_ssize_t w) noexcept nogil:
    """Return exp(x - scale), after rescaling sums to a scale of at least x."""
    cdef Py_ssize_t c
    cdef double factor
    if x <= scale[0]:
        return exp(x - scale[0]) if x > -INFINITY else 0.0
    factor = exp(scale[0] - x)
    for c in range(w):
        sums[c] *= factor
    scale[0] = x
    return 1.0


cdef inline void add(
    double *scale, double *sums, double x, const double *values, double factor, Py_ssize_t w
) noexcept nogil:
    """Add factor * exp(x) * values to scaled sums."""
    cdef Py_ssize_t c
    factor *= rescale(scale, x, sums, w)
    for c in range(w):
        sums[c] += factor * values[c]


cdef check(
    const double[::1] scores,
    const double[::1] weights,
    const Py_ssize_t[::1] entries,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] origins,
    double[:, ::1] tree,
    Py_ssize_t w,
):
    cdef Py_ssize_t n = scores.shape[0], m = origins.shape[0], t, j, late = 0
    same_length(n, weights.shape[0], entries.shape[0])
    same_length(m, starts.shape[0] - 1)
    if starts[0] != 0 or starts[m] != n:
        raise ValueError(f"Starts of times must rise from 0 to {n}.")
    for t in range(m):
        if starts[t] > starts[t + 1] or not 0 <= origins[t] <= t:
            raise ValueError("Times must rise, and strata begin before they end.")
        for j in range(starts[t], starts[t + 1]):
            if not origins[t] <= entries[j] <= t:
                raise ValueError("Rows must enter in their stratum, not after they end.")
            late |= entries[j] > origins[t]
    if late:
        same_length(2 * m, tree.shape[0])
        same_length(w + 1, tree.shape[1])
    return bool(late)


def sums(
    const double[::1] scores,
    const double[::1] weights,
    const Py_ssize_t[::1] entries,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] origins,
    double[:, ::1] tree,
    const double[:, ::1] values,
    double[::1] scales,
    double[:, ::1] out,
):
    """Write the sums of s exp(z) times values over the rows at risk at each time.

    Parameters
    ----------
    scores, weights, entries : (n,)
        Weights are positive.
    starts : (m + 1,)
    origins : (m,)
    tree : (2 m, w + 1), or any array if no rows enter late
        Overwritten.
    values : (n, w)
    scales : (m,)
        Receives the logarithms of the factors of the sums.
    out : (m, w)
        Receives the sums without these factors.
    """
    cdef Py_ssize_t m = origins.shape[0], w = values.shape[1], t, j
    same_length(scores.shape[0], values.shape[0])
    same_length(m, scales.shape[0], out.shape[0])
    same_length(w, out.shape[1])
    cdef bint late = check(scores, weights, entries, starts, origins, tree, w)
    if not w or not m:
        return
    with nogil:
        for t in range(m - 1, -1, -1):
            if t == m - 1 or origins[t + 1] == t + 1:
                scales[t] = -INFINITY
                out[t, :] = 0.0
            else:
                scales[t] = scales[t + 1]
                out[t, :] = out[t + 1, :]
            for j in range(starts[t], starts[t + 1]):
                if entries[j] == origins[t]:
                    add(&scales[t], &out[t, 0], scores[j], &values[j, 0], weights[j], w)
        if late:
            collect(scores, weights, entries, starts, origins, tree, values)
            for t in range(m):
                if tree[m + t, 0] > -INFINITY:
                    add(&scales[t], &out[t, 0], tree[m + t, 0], &tree[m + t, 1], 1.0, w)


cdef void clear(double[:, ::1] tree) noexcept nogil:
    cdef Py_ssize_t i, c
    for i in range(tree.shape[0]):
        tree[i, 0] = -INFINITY
        for c in range(1, tree.shape[1]):
            tree[i, c] = 0.0


cdef void collect(
    const double[::1] scores,
    const double[::1] weights,
    const Py_ssize_t[::1] entries,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] origins,
    double[:, ::1] tree,
    const double[:, ::1] values,
) noexcept nogil:
    """Write the sums over late rows to the leaves of the tree, rows m to 2 m - 1."""
    cdef Py_ssize_t m = origins.shape[0], w = values.shape[1], t, j, a, b, i
    cdef const double *row
    clear(tree)
    for t in range(m):
        for j in range(starts[t], starts[t + 1]):
            if entries[j] == origins[t]:
                continue
            row = &values[j, 0]
            a, b = entries[j] + m, t + 1 + m
            while a < b:
                if a & 1:
                    add(&tree[a, 0], &tree[a, 1], scores[j], row, weights[j], w)
                    a += 1
                if b & 1:
                    b -= 1
                    add(&tree[b, 0], &tree[b, 1], scores[j], row, weights[j], w)
                a >>= 1
                b >>= 1
    for i in range(2, 2 * m):
        a = i >> 1
        if tree[a, 0] > -INFINITY:
            add(&tree[i, 0], &tree[i, 1], tree[a, 0], &tree[a, 1], 1.0, w)


def spread(
    const double[::1] scores,
    const double[::1] weights,
    const Py_ssize_t[::1] entries,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] origins,
    double[:, ::1] tree,
    const double[::1] logs,
    const Py_ssize_t[::1] events,
    const double[:, ::1] values,
    const double[:, ::1] own,
    double[::1] running,
    double[:, ::1] out,
):
    """Write s exp(z) times the sums of values / exp(logs) over a row's times at risk.

    The first ``events[t]`` rows of time t use ``own[t]`` instead of ``values[t]`` at
    this time.

    Parameters
    ----------
    scores, weights, entries, starts, origins
        See ``sums``.
    tree : (2 m, w + 1), or any array if no rows enter late
        Overwritten.
    logs : (m,)
        Logarithms of the sums of s exp(z) at each time.
    events : (m,)
    values, own : (m, w)
    running : (w,)
        Overwritten.
    out : (n, w)
    """
    cdef Py_ssize_t m = origins.shape[0], w = values.shape[1], t, j, c, i, a, b, last
    cdef double scale = -INFINITY, factor
    same_length(m, values.shape[0], own.shape[0], logs.shape[0], events.shape[0])
    same_length(w, own.shape[1], running.shape[0], out.shape[1])
    same_length(scores.shape[0], out.shape[0])
    cdef bint late = check(scores, weights, entries, starts, origins, tree, w)
    for t in range(m):
        if not 0 <= events[t] <= starts[t + 1] - starts[t]:
            raise ValueError("Times cannot have more events than rows.")
    if not w or not m:
        return
    with nogil:
        if late:
            clear(tree)
            for t in range(m):
                add(&tree[m + t, 0], &tree[m + t, 1], -logs[t], &values[t, 0], 1.0, w)
            for i in range(2 * m - 1, 1, -1):
                a = i >> 1
                if tree[i, 0] > -INFINITY:
                    add(&tree[a, 0], &tree[a, 1], tree[i, 0], &tree[i, 1], 1.0, w)
        for t in range(m):
            if origins[t] == t:
                scale = -INFINITY
                for c in range(w):
                    running[c] = 0.0
            # Events use their own values, so their time is added after them.
            for j in range(starts[t], starts[t + 1]):
                last = t if j < starts[t] + events[t] else t + 1
                if j == starts[t] + events[t]:
                    add(&scale, &running[0], -logs[t], &values[t, 0], 1.0, w)
                factor = weights[j] * exp(scores[j] - logs[t]) if last == t else 0.0
                for c in range(w):
                    out[j, c] = factor * own[t, c]
                if entries[j] == origins[t]:
                    factor = weights[j] * exp(scores[j] + scale)
                    for c in range(w):
                        out[j, c] += factor * running[c]
                    continue
                a, b = entries[j] + m, last + m
                while a < b:
                    if a & 1:
                        add_node(&tree[a, 0], scores[j], weights[j], &out[j, 0], w)
                        a += 1
                    if b & 1:
                        b -= 1
                        add_node(&tree[b, 0], scores[j], weights[j], &out[j, 0], w)
                    a >>= 1
                    b >>= 1
            if starts[t] + events[t] == starts[t + 1]:
                add(&scale, &running[0], -logs[t], &values[t, 0], 1.0, w)


cdef inline void add_node(
    const double *node, double score, double weight, double *out, Py_ssize_t w
) noexcept nogil:
    cdef Py_ssize_t c
    cdef double factor = weight * exp(score + node[0])
    for c in range(w):
        out[c] += factor * node[1 + c]


def concordant(
    const Py_ssize_t[::1] leaving,
    const Py_ssize_t[::1] entering,
    const Py_ssize_t[::1] groups,
    const Py_ssize_t[::1] stops,
    const Py_ssize_t[::1] begins,
    const Py_ssize_t[::1] ranks,
    const unsigned char[::1] events,
    const double[::1] own,
    const double[::1] weights,
    double[::1] tree,
):
    """Return sums over pairs of an event and a later row at risk at its time.

    The time is O(n log n), by a Fenwick tree (1994) over ranks.

    Parameters
    ----------
    leaving, entering : (n,)
        All rows in ascending order of groups, and within a group in descending order of
        stops (``leaving``) and of begins (``entering``).
    groups, stops : (n,)
        A row is later than an event of its group with a smaller stop.
    begins : (n,)
        A row is at risk at events whose stop is at least this number.
    ranks : (n,)
        Ranks of the scores, below n, ascending from group to group.
    events : (n,)
    own, weights : (n,)
        The weight of a pair is ``own`` of the event times ``weights`` of the later row.
    tree : (n + 1,)
        Overwritten.

    Returns
    -------
    above, ties, pairs : float
        Sums over pairs whose event has the larger score, over ties, and over all pairs.
    """
    cdef Py_ssize_t n = leaving.shape[0], a = 0, b, i, k = 0, j, g
    cdef double above = 0.0, ties = 0.0, pairs = 0.0, before, total, below, upto
    same_length(n, entering.shape[0], groups.shape[0], stops.shape[0], begins.shape[0])
    same_length(n, ranks.shape[0], events.shape[0], own.shape[0], weights.shape[0])
    same_length(n + 1, tree.shape[0])
    for i in range(n):
        if not (0 <= leaving[i] < n and 0 <= entering[i] < n and 0 <= ranks[i] < n):
            raise ValueError(f"Rows and ranks must be numbers from 0 to {n - 1}.")
    with nogil:
        for i in range(n + 1):
            tree[i] = 0.0
        before = total = 0.0
        while a < n:
            g = groups[leaving[a]]
            if a and groups[leaving[a - 1]] != g:
                # Rows of earlier groups remain in the tree, but their ranks are
                # smaller.
                while k < n and groups[entering[k]] < g:
                    k += 1
                before += total
                total = 0.0
            b = a
            while b < n and groups[leaving[b]] == g and stops[leaving[b]] == stops[leaving[a]]:
                b += 1
            while k < n and groups[entering[k]] == g and begins[entering[k]] > stops[leaving[a]]:
                change(tree, ranks[entering[k]], -weights[entering[k]])
                total -= weights[entering[k]]
                k += 1
            for i in range(a, b):
                j = leaving[i]
                if events[j]:
                    below = cumulative(tree, ranks[j]) - before
                    upto = cumulative(tree, ranks[j] + 1) - before
                    above += own[j] * below
                    ties += own[j] * (upto - below)
                    pairs += own[j] * total
            for i in range(a, b):
                change(tree, ranks[leaving[i]], weights[leaving[i]])
                total += weights[leaving[i]]
            a = b
    return above, ties, pairs


cdef inline void change(double[::1] tree, Py_ssize_t i, double x) noexcept nogil:
    i += 1
    while i < tree.shape[0]:
        tree[i] += x
        i += i & -i


cdef inline double cumulative(double[::1] tree, Py_ssize_t i) noexcept nogil:
    cdef double total = 0.0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total
