"""Cox's partial likelihood: a sum over event times of the rows at risk there.

The weights are s_j. D_t are the rows with an event at time t, d is their number, and W
their weight. A and B are the sums of s exp(z) over the rows at risk at t and over D_t.
Then

    R(z) = sum over t of W / d * sum over k < d of
           log((A - c_k B) / (W (1 - c_k))) - sum over j in D_t of s_j z_j,

with c_k = 0 (Breslow 1974, Peto 1972) or c_k = k / d (Efron 1977). This is half of the
mean deviance from the saturated model: the infimum is zero, the limit for scores that
decrease fast enough with time. Each term is the logarithm of a sum of exponentials, so
R is a maximum of linear functions of z minus relative entropies. If u is the gradient,
the Fenchel-Young equality gives R*(u). By convexity R*(c u) <= c R*(u) for c in [0, 1],
since R*(0) = 0.

Targets have shape (n, 5). Their columns are the entry, after which a row is at risk,
the time of its event or censoring, whether it is an event, the number of the stratum,
and an offset, which is added to the score. Only rows of the same stratum are compared.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..kernels import at_risk as kernel
from ..lazy import cached_property
from ..memory import COPY_SIZE
from ..rounding import EPS, running_rounding
from ._base import Floats, Rows
from ._curvature import CoupledCurvature, crossed_by_columns
from ._of_sums import OfSums


class EventTimes:
    """The rows at risk at each event time of each stratum.

    Arrays of shape (m,) are in the order of ``order``.

    Parameters
    ----------
    targets : ndarray of shape (n, 5)
    weights : ndarray of shape (n,)
        Rows of weight zero are left out.
    ties : {"breslow", "efron"}

    Attributes
    ----------
    order : ndarray of shape (m,)
        The rows that are at risk at some time, in each stratum from the last to the
        first.
    weights, offset : ndarray of shape (m,)
        Their weights and offsets.
    has_event : ndarray of bool, of shape (m,)
        Which rows have an event.
    weights_of_events : ndarray of shape (m,)
        Weights of rows with an event, zero for others.
    last, ends : ndarray of shape (m,)
        Each row is at risk at the times with indices from ``last``, the latest one, to
        ``ends - 1``.
    times : ndarray of shape (g,)
        Times of events, in each stratum from the last to the first.
    strata : ndarray of shape (g,)
        The stratum of each time.
    event_weights : ndarray of shape (g,)
        The sum of the weights of the events at each time.
    parts : ndarray of shape (g,)
        The number of parts of each time: the number of its events by Efron, otherwise
        one. The events of a time leave in equal shares, one after each part.
    starts : ndarray of shape (g + 1,)
        The first part of each time.
    part_weights : ndarray of shape (p,)
        The weight of the events of a time, divided equally among its parts.
    infima : ndarray of shape (p,)
        Logarithms of W (1 - c_k) for each part.
    sets : RiskSets
        The graph of sums over rows at risk.
    nodes : ndarray of shape (p,)
        The nodes of the parts.
    """

    def __init__(self, targets: Floats, weights: Floats, ties: str) -> None:
        order = np.lexsort((-targets[:, 1], targets[:, 3]))
        order = order[weights[order] > 0.0]
        entry, time, event, strata, offset = targets[order].T
        has_event = event > 0.0
        # Times are numbered stratum after stratum, and backward in each.
        levels = np.unique(-time[has_event])
        k = len(levels) + 1
        place, begin = (
            np.searchsorted(levels, -each) + k * strata.astype(np.intp)
            for each in (time, entry)
        )
        known = np.unique(place[has_event])
        last, ends = np.searchsorted(known, place), np.searchsorted(known, begin)
        used = last < ends
        self.order, self.offset, self.has_event, self.last, self.ends = (
            each[used] for each in (order, offset, has_event, last, ends)
        )
        self.weights = weights[self.order]
        self.weights_of_events = self.weights * self.has_event
        self.strata, numbers = np.divmod(known, k)
        self.times, g = -levels[numbers], len(known)
        events = np.bincount(self.last[self.has_event], minlength=g)
        sums = np.bincount(self.last, self.weights_of_events, g)
        self.event_weights = sums.astype(np.float64)
        self.parts = parts = events if ties == "efron" else np.ones_like(events)
        self.starts = np.append(0, np.cumsum(parts))
        self.part_weights = np.repeat(self.event_weights / parts, parts)
        places = np.arange(len(self.part_weights)) - np.repeat(self.starts[:-1], parts)
        self.infima = np.log(self.part_weights * (places + 1))
        self.nodes, self.sets = self._graph()

    def _graph(self) -> tuple[Rows, kernel.RiskSets]:
        """Return the nodes of parts, and the graph of sums over rows at risk.

        Nodes are numbered in this order: inner nodes of the tree, its leaves, which are
        times, then a node for the events of each time with several parts, and a node
        for each of these parts. The first part adds a share of the events to the leaf,
        the others to the part before. If no row enters late, there is no tree: a row
        belongs to the leaf of its last time, from which edges lead to the next earlier
        time of the stratum.
        """
        g, parts, last = len(self.times), self.parts, self.last
        ends_of_strata = np.searchsorted(self.strata, self.strata[last], side="right")
        late = np.any(self.ends < ends_of_strata)
        first, tied, several = g if late else 1, parts > 1, np.repeat(parts > 1, parts)
        leaves = first + np.arange(g)
        # Nodes of the events of each time, or 0, of each part, and of the part before.
        events = np.where(tied, first + g - 1 + np.cumsum(tied), 0)
        n = first + g + np.count_nonzero(tied)
        nodes = np.where(several, n - 1 + np.cumsum(several), np.repeat(leaves, parts))
        before = nodes - 1
        before[self.starts[:-1]] = leaves
        own = events[last] * self.has_event
        if late:
            children = np.arange(2, 2 * g)
            sources = children // 2
            rows, places = _intervals(leaves[last] + (own > 0), first + self.ends)
            rows = np.append(np.flatnonzero(own), rows)
            places = np.append(own[own > 0], places)
        else:
            follow = np.diff(self.strata) == 0
            sources = np.append(events[:-1][follow], leaves[:-1][follow])
            children = np.tile(leaves[1:][follow], 2)
            rows, places = np.arange(len(last)), np.where(own > 0, own, leaves[last])
        # Sources, targets and factors of the edges to leaves, then to parts.
        shares = np.repeat(events, parts), nodes, np.repeat(1.0 / parts, parts)
        edges = [
            (sources, children, np.ones(len(children))),
            [each[several] for each in shares],
            [each[several] for each in (before, nodes, np.ones(len(nodes)))],
        ]
        n += np.count_nonzero(several)
        return nodes, kernel.RiskSets(
            *(len(last), n, rows, places),
            *map(np.concatenate, zip(*edges, strict=True)),
        )

    def means(self, values: Floats) -> Floats:
        """Return the means of the values of parts at each time."""
        sums = np.add.reduceat(values, self.starts[:-1]) if len(values) else values
        means: Floats = (sums.T / self.parts).T
        return means


def _intervals(begins: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Return pairs of a row and a node of a segment tree that covers its leaves.

    The leaves of row i are ``begins[i], ..., ends[i] - 1``.
    """
    rows, nodes = [begins[:0]], [begins[:0]]
    while np.any(begins < ends):
        for sides, before in ((begins, 0), (ends, 1)):
            some = np.flatnonzero((begins < ends) & (sides % 2 == 1))
            rows.append(some)
            nodes.append(sides[some] - before)
            sides[some] += 1 - 2 * before
        begins, ends = begins // 2, ends // 2
    return np.concatenate(rows), np.concatenate(nodes)


class Cox(OfSums):
    """Negative logarithm of Cox's partial likelihood.

    Parameters
    ----------
    ties : {"breslow", "efron"}
    """

    ranks = True
    analytic = True
    _memos: ClassVar[tuple[str, ...]] = ("_plan", "_last")

    def __init__(self, ties: str = "breslow") -> None:
        self.ties = ties
        self._plan: tuple[Floats, Floats, EventTimes] | None = None
        self._last: tuple[Floats, AtRisk] | None = None

    def times(self, targets: Floats, weights: Floats) -> EventTimes:
        """Return the event times of rows."""
        # Targets and weights are the same objects in all calls of a fit.
        plan = self._plan
        if plan is None or plan[0] is not targets or plan[1] is not weights:
            times = EventTimes(targets, weights, self.ties)
            plan = self._plan = targets, weights, times
        return plan[2]

    def sums_at(self, scores: Floats, targets: Floats, weights: Floats) -> AtRisk:
        """Return the sums at some scores; the last result is remembered."""
        times, last = self.times(targets, weights), self._last
        if last is None or last[0] is not scores or last[1].times is not times:
            last = self._last = scores, AtRisk(times, scores)
        return last[1]

    def conjugate_near(
        self,
        dual: Floats,
        scores: Floats,
        dscores: Floats,
        targets: Any,
        weights: Floats,
    ) -> float:
        """Return R*(u) - <R'' dz, z> + <dz, R'' dz>, an upper bound of R*(u - R'' dz).

        Each distribution q over rows at risk becomes q (1 - e) with e = dz - <q, dz>,
        a distribution if no two entries of dz differ by more than one. Its relative
        entropy has terms (1 - e) ln(1 - e) <= -e + e².
        """
        spread = float(np.ptp(dscores))
        if not spread <= 1.0:
            return np.inf
        sums = self.sums_at(scores, targets, weights)
        # Adding a constant has no effect, and smaller numbers have smaller rounding
        # errors.
        step = dscores - dscores.min()
        product = sums.apply(step)
        far = step - (scores - sums.center)
        # The product is a difference of two terms, each at most ``size``.
        size = spread * float(sums.diagonal() @ np.abs(far))
        height = self.conjugate_at(dual, scores, targets, weights)
        return height + float(product @ far) + 4.0 * sums.rounding * size


class AtRisk(CoupledCurvature):
    """The sums of the partial likelihood at some scores, and its second derivatives.

    Second derivatives are a diagonal minus a sum of outer products over all rows.
    Arrays of shape (m,) or (m, w) are in the order of ``times.order``.

    Parameters
    ----------
    times : EventTimes
    scores : ndarray of shape (n,)
        Without offsets.

    Attributes
    ----------
    logs : ndarray of shape (p,)
        Logarithms of A - c_k B for each part, from the last to the first k at a time.
    """

    def __init__(self, times: EventTimes, scores: Floats) -> None:
        self.times, self._n = times, len(scores)
        z = scores[times.order] + times.offset
        # Only differences within a stratum have an effect, and smaller numbers have
        # smaller rounding errors.
        self.center = float(np.median(z)) if z.size else 0.0
        self.z = z - self.center
        scales, totals = self._sums(np.ones((len(z), 1)))
        self.logs = (scales + np.log(totals))[:, 0]

    @cached_property
    def rounding(self) -> float:
        """A bound of the relative rounding errors of sums of positive numbers."""
        largest = max(np.abs(x).max(initial=0.0) for x in (self.z, self.logs))
        n_terms = len(self.z) + len(self.logs)
        return running_rounding(n_terms) + 8.0 * EPS * float(largest + 16.0)

    @cached_property
    def value(self) -> float:
        times, W = self.times, self.times.part_weights
        # Differences are formed for each event, so that large scores cancel before the
        # sum.
        heights = times.means(self.logs)[times.last] - self.z
        value = times.weights_of_events @ heights - W @ times.infima
        # A value below its rounding error is replaced by the infimum, zero.
        return 0.0 if value <= EPS * float(W @ self._log_sizes) else float(value)

    @property
    def _log_sizes(self) -> Floats:
        """Bounds of the terms of logarithms, whose arguments are near one."""
        return np.abs(self.logs) + np.abs(self.times.infima) + 1.0

    @cached_property
    def expected(self) -> Floats:
        """The expected weight of each row's events, of shape (m,).

        It is the positive part of the gradient.
        """
        return self.spread(self.times.part_weights[:, np.newaxis])[:, 0]

    def spread(self, values: Floats) -> Floats:
        """Return s exp(z) times each row's sum of values / exp(logs), of shape (m, w).

        The sum is over the parts in which the row is at risk.
        """
        nodes, times = self._nodes(values), self.times
        nodes[times.nodes, 0], nodes[times.nodes, 1:] = -self.logs, values
        out = np.zeros((len(self.z), values.shape[1]))
        times.sets.add(self.z, times.weights, out, nodes, to_rows=True)
        return out

    def means(self, values: Floats) -> Floats:
        """Return means of values (m, w) over the rows at risk in each part."""
        scales, totals = self._sums(np.ascontiguousarray(values))
        totals *= np.exp(scales - self.logs[:, np.newaxis])
        return totals

    def _sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return logarithms of factors of each part, and sums over rows at risk."""
        nodes, times = self._nodes(values), self.times
        times.sets.add(self.z, times.weights, values, nodes)
        sums = nodes[times.nodes]
        return sums[:, :1], sums[:, 1:]

    def _nodes(self, values: Floats) -> Floats:
        """Return sums of no values at all nodes, with their factors."""
        nodes = np.zeros((self.times.sets.n_nodes, values.shape[1] + 1))
        nodes[:, 0] = -np.inf
        return nodes

    def unsorted(self, values: Floats) -> Floats:
        """Return values (m,) or (m, w) as an array over all n rows, zero in others."""
        out = np.zeros((self._n, *values.shape[1:]))
        out[self.times.order] = values
        return out

    @cached_property
    def gradient(self) -> Floats:
        return self.unsorted(self.expected - self.times.weights_of_events)

    @cached_property
    def slope_sizes(self) -> Floats:
        """Absolute values of the terms of the gradient, of shape (n,)."""
        return self.unsorted(self.expected + self.times.weights_of_events)

    @cached_property
    def conjugate(self) -> tuple[float, float]:
        """R*(u) for the gradient u, and the sum of the absolute values of its terms."""
        times, v, W = self.times, self.expected, self.times.part_weights
        u = v - times.weights_of_events
        conjugate = v @ self.z - W @ (self.logs - times.infima) - u @ times.offset
        size = v @ np.abs(self.z) + abs(self.center) * v.sum() + W @ self._log_sizes
        return float(conjugate), float(size + np.abs(u) @ np.abs(times.offset))

    @property
    def curvature(self) -> AtRisk:
        return self

    def coupled(self, values: Floats) -> Floats:
        """Return the sum of (W / d) q qᵀ over all parts, times values (m, w).

        The vector q holds the rows' shares of the sum of a part.
        """
        return self.spread(self._weighted(self.means(values)))

    def _weighted(self, values: Floats) -> Floats:
        return self.times.part_weights[:, np.newaxis] * values

    def curved(self, values: Floats) -> Floats:
        """Return the product of second derivatives with values (m, w)."""
        return self.expected[:, np.newaxis] * values - self.coupled(values)

    def residuals(self, values: Floats) -> Floats:
        """Return the values of events less their means over the rows at risk.

        These are Schoenfeld's residuals (1982), and zeros for rows without an event.
        Means for Efron's likelihood are averages over the parts of a time.
        """
        means = self.times.means(self.means(values))[self.times.last]
        return np.where(self.times.has_event[:, np.newaxis], values - means, 0.0)

    def diagonal(self) -> Floats:
        return self.unsorted(self.expected)

    def apply(self, dscores: Floats) -> Floats:
        own = dscores[self.times.order, np.newaxis]
        return self.unsorted(self.curved(own)[:, 0])

    def crossed(self, design: Any) -> Floats:
        """Return half of Xᵀ (the sum of outer products) X."""
        d, n, order = design.n_features, design.n_rows, self.times.order
        if n * d <= COPY_SIZE:
            part = np.asarray(design.dense_columns(slice(0, d)), dtype=np.float64)
            means = self.means(part[order])
            return 0.5 * (means.T @ self._weighted(means))

        def coupled(part: Floats) -> Floats:
            return 0.5 * self.unsorted(self.coupled(part[order]))

        width = max(1, COPY_SIZE // max(n, 1))
        return crossed_by_columns(design, np.arange(n), width, coupled)
