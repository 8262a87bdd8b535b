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
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..kernels import at_risk as kernel
from ..lazy import cached_property
from ..memory import COPY_SIZE
from ..rounding import EPS, running_rounding
from ._base import Derivatives, Floats, Rows, norm_by_weights
from ._curvature import Curvature, crossed_by_columns
from ._loss import Loss


class EventTimes(NamedTuple):
    """The rows at risk at each event time of each stratum.

    Attributes
    ----------
    order : ndarray of shape (m,)
        The rows that are at risk at some time, sorted by their last time, events first.
    weights : ndarray of shape (m,)
        Their weights, in this order.
    has_event : ndarray of bool, of shape (m,)
        Which rows have an event, in this order.
    last, ends : ndarray of shape (m,)
        Each row is at risk at the times with indices from ``last`` to ``ends - 1``, in
        this order; ``last`` is the latest one.
    times : ndarray of shape (g,)
        Times of events, in each stratum from the last to the first.
    strata : ndarray of shape (g,)
        The stratum of each time.
    event_weights : ndarray of shape (g,)
        The sum of the weights of the events at each time.
    part_weights : ndarray of shape (p,)
        The weight of the events of a time, divided equally among its parts.
    starts : ndarray of shape (g + 1,)
        The first part of each time.
    infima : ndarray of shape (p,)
        Logarithms of the sums over events at risk, for scores of zero.
    parts : ndarray of shape (g,)
        The number of parts of each time.
    sets : RiskSets
    n_nodes : int
        Number of nodes of these sets.
    """

    order: Rows
    weights: Floats
    has_event: Any
    last: Rows
    ends: Rows
    times: Floats
    strata: Rows
    event_weights: Floats
    part_weights: Floats
    starts: Rows
    infima: Floats
    parts: Rows
    sets: kernel.RiskSets
    n_nodes: int

    @classmethod
    def of(cls, loss: Cox, weights: Floats) -> EventTimes:
        """Return the event times of rows; rows of weight zero are left out."""
        time, entry, strata = loss.time, loss.entry, loss.strata
        event = np.asarray(loss.event, dtype=bool) & (weights > 0.0)
        strata = np.zeros(len(time), dtype=np.intp) if strata is None else strata
        # Times are numbered stratum after stratum, and backward in each; equal numbers
        # mean equal times.
        keys = [time] if entry is None else [time, entry]
        levels, numbers = np.unique(-np.concatenate(keys), return_inverse=True)
        n, k = len(time), max(len(levels), 1)
        place = numbers[:n] + strata * k
        known = np.unique(place[event])
        last = np.searchsorted(known, place)
        ends = latest = np.searchsorted(known, (strata + 1) * k)
        if entry is not None:
            ends = np.searchsorted(known, numbers[n:] + strata * k)
        used = np.flatnonzero((last < ends) & (weights > 0.0))
        order = used[np.lexsort((~event[used], last[used]))]
        weights, event = weights[order], event[order]
        last, ends, latest = last[order], ends[order], latest[order]
        g, of_times = len(known), known // k
        events = np.bincount(last[event], minlength=g)
        parts = events if loss.ties == "efron" else np.ones_like(events)
        starts = np.append(0, np.cumsum(parts))
        event_weights = np.asarray(np.bincount(last[event], weights[event], g), float)
        part_weights = np.repeat(event_weights / parts, parts)
        numbers = np.arange(len(part_weights)) - np.repeat(starts[:-1], parts) + 1
        rows, places = np.arange(len(order)), last + 1
        parents = np.append(0, np.arange(g) * (np.diff(of_times, prepend=-1) == 0))
        if np.any(ends < latest):
            rows, places = _intervals(last + g, event, ends + g)
            parents = np.arange(2 * g) // 2
        bounds = np.searchsorted(places, np.arange(len(parents) + 1))
        nodes = rows, bounds, parents, events, parts
        return cls(
            order,
            weights,
            event,
            last,
            ends,
            -levels[known % k],
            of_times,
            event_weights,
            part_weights,
            starts,
            np.log(part_weights * numbers),
            parts,
            kernel.RiskSets(len(order), *nodes),
            len(parents),
        )

    def means(self, values: Floats) -> Floats:
        """Return the means of the values of parts at each time."""
        sums = np.add.reduceat(values, self.starts[:-1]) if len(values) else values
        means: Floats = (sums.T / self.parts).T
        return means


def _intervals(begins: Rows, event: Any, ends: Rows) -> tuple[Rows, Rows]:
    """Return the nodes of a segment tree that form intervals of leaves, and their rows.

    Nodes are sorted. The first leaf of a row with an event is a separate node, and
    comes first.
    """
    rows, nodes = [np.flatnonzero(event)], [begins[event]]
    begins = begins + event
    while np.any(begins < ends):
        for sides, before in ((begins, 0), (ends, 1)):
            some = np.flatnonzero((begins < ends) & (sides % 2 == 1))
            rows.append(some)
            nodes.append(sides[some] - before)
            sides[some] += 1 - 2 * before
        begins, ends = begins // 2, ends // 2
    all_rows, places = np.concatenate(rows), np.concatenate(nodes)
    order = np.argsort(places, kind="stable")
    return all_rows[order], places[order]


class Cox(Loss):
    """Negative logarithm of Cox's partial likelihood for given rows.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Time of the event of a row, or of its censoring.
    event : ndarray of shape (n,)
        Whether the row had an event.
    ties : {"breslow", "efron"}
    entry : ndarray of shape (n,), optional
        Time after which a row is at risk.
    strata : ndarray of shape (n,), optional
        Numbers of the strata; only rows of the same stratum are compared.
    offset : ndarray of shape (n,), optional
        Added to the scores.
    """

    ranks = True
    analytic = True
    _memos: ClassVar[tuple[str, ...]] = ("_plan", "_last")

    def __init__(
        self,
        time: Floats,
        event: Any,
        ties: str = "breslow",
        entry: Floats | None = None,
        strata: Rows | None = None,
        offset: Floats | None = None,
    ) -> None:
        self.time, self.event, self.ties = time, event, ties
        self.entry, self.strata, self.offset = entry, strata, offset
        self._plan: tuple[Floats, EventTimes] | None = None
        self._last: tuple[Floats, AtRisk] | None = None

    def of_rows(self, rows: Any) -> Cox:
        """Return the loss of some of the rows, by their numbers."""
        others: Any = self.entry, self.strata, self.offset
        some = (None if each is None else each[rows] for each in others)
        return Cox(self.time[rows], self.event[rows], self.ties, *some)

    def at(self, scores: Floats, weights: Floats) -> AtRisk:
        """Return the sums at some scores."""
        times, last = self.times(weights), self._last
        if last is None or last[0] is not scores or last[1].times is not times:
            z = scores if self.offset is None else scores + self.offset
            last = self._last = scores, AtRisk(times, z)
        return last[1]

    def times(self, weights: Floats) -> EventTimes:
        """Return the event times of rows with these weights."""
        if self._plan is None or self._plan[0] is not weights:
            self._plan = weights, EventTimes.of(self, weights)
        return self._plan[1]

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.at(scores, weights).value

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        return self.at(scores, weights).gradient

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return <u, z> - R(z), by Fenchel-Young equality, or an upper bound."""
        sums = self.at(scores, weights)
        conjugate, size = sums.conjugate
        if self.offset is not None:
            conjugate -= float(sums.gradient @ self.offset)
            size += float(np.abs(sums.gradient) @ np.abs(self.offset))
        return conjugate + sums.rounding * size

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
        sums = self.at(scores, weights)
        # Adding a constant has no effect, and smaller numbers have smaller rounding
        # errors.
        step = dscores - dscores.min()
        product = sums.curvature.apply(step)
        far = step - (scores - sums.center)
        # The product is a difference of two terms, each at most ``size``.
        size = spread * float(sums.unsorted(sums.expected) @ np.abs(far))
        height = self.conjugate_at(dual, scores, targets, weights)
        return height + float(product @ far) + 4.0 * sums.rounding * size

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return an upper bound on rounding errors of sums of positive numbers."""
        sums = self.at(scores, weights)
        return sums.rounding * norm_by_weights(sums.sizes, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        def at(step: float) -> tuple[float, float]:
            sums = self.at(scores + step * dscores, weights)
            product = sums.curvature.apply(dscores)
            return float(sums.gradient @ dscores), max(float(product @ dscores), 0.0)

        return at

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> CoxCurvature:
        return self.at(scores, weights).curvature


class AtRisk:
    """The sums of the partial likelihood at some scores.

    Parameters
    ----------
    times : EventTimes
    scores : ndarray of shape (n,)
        Offsets included.

    Attributes
    ----------
    logs : ndarray of shape (p,)
        Logarithms of A - c_k B for each part, from the last to the first k at a time.
    """

    def __init__(self, times: EventTimes, scores: Floats) -> None:
        self.times, self._n = times, len(scores)
        z = scores[times.order]
        # Only differences within a stratum have an effect, and smaller numbers have
        # smaller rounding errors.
        self.center = float(np.median(z)) if z.size else 0.0
        self.z = z - self.center
        scales, totals = self._sums(np.ones((len(z), 1)))
        self.logs = scales + np.log(totals[:, 0])

    @cached_property
    def rounding(self) -> float:
        """A bound of the relative rounding errors of sums of positive numbers."""
        largest = max(np.abs(x).max(initial=0.0) for x in (self.z, self.logs))
        n_terms = len(self.z) + len(self.logs)
        return running_rounding(n_terms) + 8.0 * EPS * float(largest + 16.0)

    @cached_property
    def value(self) -> float:
        times, W = self.times, self.times.part_weights
        weights = times.weights[times.has_event]
        # Differences are formed for each event, so that large scores cancel before the
        # sum.
        heights = times.means(self.logs)[times.last] - self.z
        value = weights @ heights[times.has_event] - W @ times.infima
        sizes = np.abs(self.logs) + np.abs(times.infima) + 1.0
        # A value below its rounding error is replaced by the infimum, zero.
        return 0.0 if value <= EPS * float(W @ sizes) else float(value)

    @cached_property
    def expected(self) -> Floats:
        """The positive part of the gradient, from rows at risk, by ``order``."""
        return self.spread(self.times.part_weights[:, np.newaxis])[:, 0]

    def spread(self, values: Floats) -> Floats:
        """Return s exp(z) times the sums of values of parts / exp(logs), by order."""
        out = np.zeros((len(self.z), values.shape[1]))
        self._call(self.times.sets.spread, out, self.logs, values)
        return out

    def means(self, values: Floats) -> Floats:
        """Return means of values, by order, over the rows at risk in each part."""
        scales, totals = self._sums(values)
        return np.exp(scales - self.logs)[:, np.newaxis] * totals

    def _sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return logarithms of factors of each part, and sums over rows at risk."""
        n_parts = len(self.times.infima)
        scales, out = np.empty(n_parts), np.empty((n_parts, values.shape[1]))
        self._call(self.times.sets.means, values, scales, out)
        return scales, out

    def _call(self, kernel: Any, by_row: Floats, logs: Floats, by_part: Floats) -> None:
        by_row, by_part = np.ascontiguousarray(by_row), np.ascontiguousarray(by_part)
        sums = np.empty((self.times.n_nodes + 1, by_row.shape[1] + 1))
        kernel(self.z, self.times.weights, sums, by_row, logs, by_part)

    def unsorted(self, values: Floats) -> Floats:
        """Return values by ``order`` as an array over all rows, zero in others."""
        out = np.zeros((self._n, *values.shape[1:]))
        out[self.times.order] = values
        return out

    @cached_property
    def gradient(self) -> Floats:
        return self.unsorted(self.expected - self.times.weights * self.times.has_event)

    @cached_property
    def sizes(self) -> Floats:
        """Absolute values of the terms of the gradient, of shape (n,)."""
        return self.unsorted(self.expected + self.times.weights * self.times.has_event)

    @cached_property
    def conjugate(self) -> tuple[float, float]:
        """R*(u) for the gradient u, and the sum of the absolute values of its terms."""
        v, W, infima = self.expected, self.times.part_weights, self.times.infima
        # Scores are centered, and the arguments of logarithms are near one.
        shift = abs(self.center) * v.sum()
        size = v @ np.abs(self.z) + shift
        size += W @ (np.abs(self.logs) + np.abs(infima) + 1.0)
        return float(v @ self.z - W @ (self.logs - infima)), float(size)

    @cached_property
    def curvature(self) -> CoxCurvature:
        return CoxCurvature(self)

    def coupled(self, values: Floats) -> Floats:
        """Return the sum of (W / d) q qᵀ over all parts, times values (m, w) by order.

        The vector q holds the rows' shares of the sum of a part.
        """
        return self.spread(self._weighted(self.means(values)))

    def coupled_gram(self, values: Floats) -> Floats:
        """Return valuesᵀ ``coupled(values)``."""
        means = self.means(values)
        return means.T @ self._weighted(means)

    def _weighted(self, values: Floats) -> Floats:
        return self.times.part_weights[:, np.newaxis] * values

    def curved(self, values: Floats) -> Floats:
        """Return the product of second derivatives with values (m, w) by order."""
        return self.expected[:, np.newaxis] * values - self.coupled(values)

    def residuals(self, values: Floats) -> Floats:
        """Return the values of events less their means over the rows at risk, by order.

        These are Schoenfeld's residuals (1982), and zeros for rows without an event.
        Means for Efron's likelihood are averages over the parts of a time.
        """
        means = self.times.means(self.means(values))[self.times.last]
        return np.where(self.times.has_event[:, np.newaxis], values - means, 0.0)

    def derivatives(self, values: Floats) -> Floats:
        """Return each row's term of the gradient by the coefficients.

        These are the score residuals of Lin and Wei (1989), of shape (m, d) by order.
        """
        weights = self.times.weights[:, np.newaxis]
        return self.curved(values) - weights * self.residuals(values)


class CoxCurvature(Curvature):
    """Second derivatives: a diagonal minus a sum of outer products over all rows."""

    by_rows = False

    def __init__(self, sums: AtRisk) -> None:
        self._sums = sums

    def take(self, rows: Rows | slice) -> Curvature:
        raise TypeError("Rows at risk are not separable.")

    def diagonal(self) -> Floats:
        return self._sums.unsorted(self._sums.expected)

    def total(self) -> Floats:
        """Return zero, since only differences of scores have an effect."""
        return np.zeros((1, 1))

    def apply(self, dscores: Floats) -> Floats:
        own = dscores[self._sums.times.order, np.newaxis]
        return self._sums.unsorted(self._sums.curved(own)[:, 0])

    def crossed(self, design: Any) -> Floats:
        """Return half of Xᵀ (the sum of outer products) X."""
        sums, d, n = self._sums, design.n_features, design.n_rows

        def coupled(part: Floats) -> Floats:
            return 0.5 * sums.unsorted(sums.coupled(part[sums.times.order]))

        if n * d <= COPY_SIZE:
            part = np.asarray(design.dense_columns(slice(0, d)), dtype=np.float64)
            return 0.5 * sums.coupled_gram(part[sums.times.order])
        width = max(1, COPY_SIZE // max(n, 1))
        return crossed_by_columns(design, np.arange(n), width, coupled)
