"""Means over the rows at risk at each event, and sums over the events of each row.

Sums over rows at risk are sums at the nodes of a tree: the sum at a node is the sum at
its parent plus the terms of its own rows. Without late entries the nodes are times, and
the parent is the next later time of the stratum. Rows that enter late belong to several
nodes of a segment tree over times (Bentley 1977), since differences of running sums
would cancel.

Node 0 has no rows, and every other node comes after its parent. Node i has the rows
``rows[starts[i]:starts[i + 1]]``. The last m nodes are the m times, and their rows begin
with the ``events[t]`` rows of events, which leave in ``parts[t]`` equal shares: part q
of d has (q + 1) / d of their terms. The term of a row is its weight times exp(score)
times its values. Sums are divided by their largest exponential, so that nothing
overflows: a node has the logarithm of this factor, and the scaled sums.

``pair_weight`` adds rows to a segment tree one after the other.
"""

from .rows cimport same_length
from .standard cimport INFINITY, exp


cdef inline void add(
    double *node, double x, const double *values, double factor, Py_ssize_t w
) noexcept nogil:
    """Add factor * exp(x) * values to the sums of a node."""
    cdef Py_ssize_t c
    cdef double change
    if x > node[0]:
        change = exp(node[0] - x)
        node[0] = x
        for c in range(1, w + 1):
            node[c] *= change
    elif x > -INFINITY:
        factor *= exp(x - node[0])
    else:
        return
    for c in range(w):
        node[1 + c] += factor * values[c]


cdef class RiskSets:
    """The rows at risk in each part of each time.

    Parameters
    ----------
    n : int
        Number of rows.
    rows : (r,)
    starts : (N + 1,)
    parents : (N,)
    events, parts : (m,)
    """

    cdef Py_ssize_t n, first, n_parts
    cdef const Py_ssize_t[::1] rows, starts, parents, events, parts

    def __init__(self, n, rows, starts, parents, events, parts):
        cdef Py_ssize_t i, t, N = len(parents)
        self.n, self.first, self.n_parts = n, N - len(events), 0
        self.rows, self.starts, self.parents = rows, starts, parents
        self.events, self.parts = events, parts
        if len(starts) != N + 1 or len(parts) != len(events) or self.first < 1:
            raise ValueError("Nodes, or times, differ in number.")
        if starts[1] != 0 or starts[N] != len(rows):
            raise ValueError("Nodes must have all rows, and the first one none.")
        for i in range(len(rows)):
            if not 0 <= self.rows[i] < self.n:
                raise ValueError(f"Rows must be numbers from 0 to {n - 1}.")
        for i in range(1, N):
            if not 0 <= self.parents[i] < i or self.starts[i] > self.starts[i + 1]:
                raise ValueError("Nodes must follow their parents, and starts rise.")
            t = i - self.first
            if t < 0:
                continue
            if not 0 <= self.events[t] <= self.starts[i + 1] - self.starts[i]:
                raise ValueError("Times cannot have more events than rows.")
            if self.parts[t] < 0:
                raise ValueError("Times cannot have a negative number of parts.")
            self.n_parts += self.parts[t]

    cdef check(self, scores, weights, sums, by_row, logs, by_part):
        """Raise ValueError unless arrays fit; sums become zero."""
        n, p, w = self.n, self.n_parts, by_row.shape[1]
        if not len(scores) == len(weights) == len(by_row) == n:
            raise ValueError(f"Each of {n} rows needs a score, a weight and values.")
        if len(logs) != p or by_part.shape != (p, w):
            raise ValueError(f"Each of {p} parts needs a logarithm and {w} values.")
        if sums.shape != (len(self.parents) + 1, w + 1):
            raise ValueError("Each node needs a scale and sums, and one more is needed.")
        sums[:], sums[:, 0] = 0.0, -INFINITY

    def means(self, scores, weights, sums, by_row, logs, by_part):
        """Write the sums of terms over the rows at risk in each part of each time.

        Parameters
        ----------
        scores, weights : (n,)
            Weights are positive.
        sums : (N + 1, w + 1)
            Overwritten.
        by_row : (n, w)
            Values.
        logs : (p,)
            Receives the logarithms of the factors of the sums.
        by_part : (p, w)
            Receives the sums without these factors.
        """
        self.check(scores, weights, sums, by_row, logs, by_part)
        cdef const double[::1] z = scores, s = weights
        cdef const double[:, ::1] values = by_row
        cdef double[::1] scales = logs
        cdef double[:, ::1] nodes = sums, out = by_part
        cdef Py_ssize_t N = len(self.parents), w = out.shape[1], p = 0, i, j, k, t, last
        cdef double *node
        cdef double *own
        if not w:
            return
        with nogil:
            own = &nodes[N, 0]
            for i in range(1, N):
                node, t, last = &nodes[i, 0], i - self.first, self.starts[i]
                k = self.parents[i]
                add(node, nodes[k, 0], &nodes[k, 1], 1.0, w)
                if t >= 0:
                    last += self.events[t]
                    own[0] = -INFINITY
                for j in range(self.starts[i], self.starts[i + 1]):
                    k = self.rows[j]
                    add(own if j < last else node, z[k], &values[k, 0], s[k], w)
                for j in range(self.parts[t] if t >= 0 else 0):
                    add(node, own[0], own + 1, 1.0 / self.parts[t], w)
                    scales[p], out[p, :] = node[0], nodes[i, 1:]
                    p += 1

    def spread(self, scores, weights, sums, by_row, logs, by_part):
        """Add the sums of values / exp(logs) over the parts in which a row is at risk.

        They are multiplied by the weight of the row and exp(score), and by the share of
        a row of an event that is at risk. Parts have values here, and rows receive
        results; see ``means`` for the parameters.
        """
        self.check(scores, weights, sums, by_row, logs, by_part)
        cdef const double[::1] z = scores, s = weights, scales = logs
        cdef const double[:, ::1] values = by_part
        cdef double[:, ::1] nodes = sums, out = by_row
        cdef Py_ssize_t N = len(self.parents), p = self.n_parts, w = out.shape[1]
        cdef Py_ssize_t i, j, k, c, t, last
        cdef double factor
        cdef double *node
        cdef double *own
        if not w:
            return
        with nogil:
            own = &nodes[N, 0]
            for i in range(N - 1, 0, -1):
                node, t, last = &nodes[i, 0], i - self.first, self.starts[i]
                if t >= 0:
                    last += self.events[t]
                    nodes[N, :] = nodes[i, :]
                    for j in range(self.parts[t], 0, -1):
                        p -= 1
                        factor = <double>j / self.parts[t]
                        add(own, -scales[p], &values[p, 0], factor, w)
                        add(node, -scales[p], &values[p, 0], 1.0, w)
                for j in range(self.starts[i], self.starts[i + 1]):
                    k = self.rows[j]
                    factor = s[k] * exp(z[k] + (own if j < last else node)[0])
                    for c in range(w):
                        out[k, c] += factor * (own if j < last else node)[1 + c]
                add(&nodes[self.parents[i], 0], node[0], node + 1, 1.0, w)


def pair_weight(
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] begins,
    const Py_ssize_t[::1] ends,
    const double[::1] weights,
    const double[::1] factors,
    double[::1] nodes,
):
    """Return the sum of factor * weight over pairs of an event and a row at risk then.

    All terms are positive, and none is subtracted, so that the relative rounding error
    is small.

    Parameters
    ----------
    order : (2 n,)
        Each row i, and each event as n + i. Events form pairs with the rows before.
    begins, ends : (n,)
        A row is at risk at the times from ``begins`` to ``ends - 1``, and has its event
        at the time ``begins - 1``.
    weights : (n,)
    factors : (n,)
        Factors of the events, zero for other rows.
    nodes : (2 k,)
        Workspace of zeros for k times; overwritten.
    """
    cdef Py_ssize_t n = weights.shape[0], k = nodes.shape[0] // 2, i, j, first, last
    cdef double total = 0.0, at_risk
    same_length(n, begins.shape[0], ends.shape[0], factors.shape[0])
    same_length(order.shape[0], 2 * n)
    for i in range(2 * n):
        if not (0 <= begins[i // 2] <= ends[i // 2] <= k and 0 <= order[i] < 2 * n):
            raise ValueError(f"Rows must be at risk at times from 0 to {k - 1}.")
    with nogil:
        for i in range(2 * n):
            j = order[i] % n
            first, last = begins[j] + k, ends[j] + k
            if order[i] < n:
                while first < last:
                    if first % 2:
                        nodes[first] += weights[j]
                        first += 1
                    if last % 2:
                        last -= 1
                        nodes[last] += weights[j]
                    first, last = first // 2, last // 2
            elif factors[j] > 0.0:
                at_risk, first = 0.0, first - 1
                while first > 0:
                    at_risk += nodes[first]
                    first //= 2
                total += factors[j] * at_risk
    return total
