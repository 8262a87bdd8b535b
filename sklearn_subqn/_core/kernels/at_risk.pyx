"""Sums over the rows at risk at each event, and sums over the events of each row.

Both are sums along a graph. The term of a row is its weight times exp(score) times its
values. The sum at a node is the terms of its own rows, plus shares of the sums at the
nodes from which an edge leads to it. All factors are positive: differences of running
sums would cancel.

A row is at risk at an interval of times, the leaves of a segment tree (Bentley 1977).
Few nodes of the tree have these leaves as their descendants. The row belongs to these
nodes, and edges lead from each node to its children.

Sums are divided by their largest exponential, so that nothing overflows: each node has
the logarithm of this factor, and the scaled sums. Node 0 is empty.
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


cdef check(const Py_ssize_t[::1] numbers, Py_ssize_t n):
    """Raise ValueError unless all numbers are from 0 to n - 1."""
    for i in range(numbers.shape[0]):
        if not 0 <= numbers[i] < n:
            raise ValueError(f"Rows and nodes must be from 0 to {n - 1}.")


cdef class RiskSets:
    """A graph in which the sums at some nodes are sums over rows at risk.

    Parameters
    ----------
    n_rows, n_nodes : int
    rows, nodes : (r,)
        Pairs of a row and a node to which it belongs, other than 0.
    sources, targets : (e,)
        Edges; the edges to a node come before the edges from it.
    shares : (e,)
        Their factors.
    """

    cdef readonly Py_ssize_t n_rows, n_nodes
    cdef const Py_ssize_t[::1] rows, nodes, sources, targets
    cdef const double[::1] shares

    def __init__(self, n_rows, n_nodes, rows, nodes, sources, targets, shares):
        self.n_rows, self.n_nodes, self.rows, self.nodes = n_rows, n_nodes, rows, nodes
        self.sources, self.targets, self.shares = sources, targets, shares
        same_length(len(rows), len(nodes))
        same_length(len(sources), len(targets), len(shares))
        check(rows, n_rows)
        for numbers in (nodes, sources, targets):
            check(numbers, n_nodes)

    def add(self, scores, weights, values, sums, bint to_rows=False):
        """Add the terms of rows to nodes along all edges; or nodes to rows, back.

        Parameters
        ----------
        scores, weights : (n_rows,)
            Weights are positive.
        values : (n_rows, w)
            With ``to_rows`` each row receives the sums of all nodes that contain it,
            times the factors of its term there.
        sums : (n_nodes, w + 1)
            Logarithms of factors, and scaled sums; with ``to_rows`` overwritten.
        """
        cdef const double[::1] z = scores, s = weights
        cdef double[:, ::1] x = values, y = sums
        cdef Py_ssize_t w = x.shape[1], n_edges = self.shares.shape[0], i, e, a, b
        cdef double factor
        same_length(self.n_rows, z.shape[0], s.shape[0], x.shape[0])
        same_length(self.n_nodes, y.shape[0])
        same_length(w + 1, y.shape[1])
        with nogil:
            if not to_rows:
                for i in range(self.rows.shape[0]):
                    a, b = self.rows[i], self.nodes[i]
                    add(&y[b, 0], z[a], &x[a, 0], s[a], w)
            for i in range(n_edges):
                e = n_edges - 1 - i if to_rows else i
                a, b = self.sources[e], self.targets[e]
                if to_rows:
                    a, b = b, a
                add(&y[b, 0], y[a, 0], &y[a, 0] + 1, self.shares[e], w)
            if to_rows:
                for i in range(self.rows.shape[0]):
                    a, b = self.rows[i], self.nodes[i]
                    factor = s[a] * exp(z[a] + y[b, 0])
                    for e in range(w):
                        x[a, e] += factor * y[b, e + 1]


def pair_weight(
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] begins,
    const Py_ssize_t[::1] ends,
    const double[::1] weights,
    const double[::1] factors,
    double[::1] nodes,
):
    """Return the sum of factor * weight over pairs of an event and a row at risk then.

    Rows are added to a segment tree one after the other. All terms are positive, and
    none is subtracted, so that the relative rounding error is small.

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
