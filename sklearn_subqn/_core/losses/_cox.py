"""Cox's partial likelihood: a sum over event times of the rows at risk there.

With s_j the weights, D_t the rows with an event at time t, d their number, W their
weight, and A and B the sums of s exp(z) over the rows at risk at t and over D_t,

    R(z) = sum over t of W / d * sum over k < d of
           log((A - c_k B) / (W (1 - c_k))) - sum over j in D_t of s_j z_j,

with c_k = 0 (Breslow 1974, Peto 1972) or c_k = k / d (Efron 1977). This is half of the
mean deviance from the saturated model: the infimum is zero, which scores approach if
they decrease fast enough with time. Each logarithm has a sum of exponentials, so that R
is a maximum of linear functions of z less relative entropies. At the gradient, R*(u) is
known by the equality of Fenchel and Young, and by convexity R*(c u) <= c R*(u) for c in
[0, 1], since R*(0) = 0.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..kernels import at_risk as kernel
from ..lazy import cached_property
from ..memory import COPY_SIZE
from ..rounding import EPS, running_rounding
from ._base import Derivatives, Floats, Rows, norm_by_weights
from ._curvature import Curvature
from ._loss import Loss

_NO_TREE = np.empty((0, 0))


class EventTimes(NamedTuple):
    """The rows at risk at each event time of each stratum.

    Attributes
    ----------
    order : ndarray of shape (m,)
        The rows that are at risk at some time, sorted by their last time, events first.
    weights : ndarray of shape (m,)
        Their weights, in this order.
    entries : ndarray of shape (m,)
        The index of the first time at which each row is at risk.
    starts : ndarray of shape (g + 1,)
        Where the rows of each last time begin in this order.
    origins : ndarray of shape (g,)
        For each time the index of the first time of its stratum.
    events : ndarray of shape (g,)
        The number of events at each time.
    times : ndarray of shape (g,)
    strata : ndarray of shape (g,)
        The stratum of each time.
    late : bool
        Whether rows enter later than at the first time of their stratum.
    """

    order: Rows
    weights: Floats
    entries: Rows
    starts: Rows
    origins: Rows
    events: Rows
    times: Floats
    strata: Rows
    late: bool

    @classmethod
    def of(
        cls,
        time: Floats,
        event: Any,
        weights: Floats,
        entry: Floats | None,
        strata: Rows | None,
    ) -> EventTimes:
        """Return the event times of rows; rows of weight zero are left out."""
        event = np.asarray(event, dtype=bool) & (weights > 0.0)
        strata = np.zeros(len(time), dtype=np.intp) if strata is None else strata
        # Times are numbered stratum after stratum; equal numbers mean equal times.
        keys = [time] if entry is None else [time, entry]
        levels, numbers = np.unique(np.concatenate(keys), return_inverse=True)
        place = numbers[: len(time)] + strata * len(levels)
        known = np.unique(place[event])
        last = np.searchsorted(known, place, side="right") - 1
        first = np.searchsorted(known, strata * len(levels))
        begins = first
        if entry is not None:
            entered = numbers[len(time) :] + strata * len(levels)
            begins = np.searchsorted(known, entered, side="right")
        used = np.flatnonzero((begins <= last) & (weights > 0.0))
        order = used[np.lexsort((~event[used], last[used]))]
        of_times = known // max(len(levels), 1)
        origins = np.searchsorted(of_times, of_times)
        starts = np.searchsorted(last[order], np.arange(len(known) + 1))
        return cls(
            order,
            weights[order],
            begins[order],
            starts,
            origins,
            np.bincount(last[event], minlength=len(known)),
            levels[known % max(len(levels), 1)],
            of_times,
            bool(np.any(begins[used] > first[used])),
        )

    @property
    def has_event(self) -> Any:
        """Which rows have an event, by ``order``."""
        places = np.arange(len(self.order))
        return places < np.repeat(self.starts[:-1] + self.events, np.diff(self.starts))

    def sums_of_events(self, values: Floats) -> Floats:
        """Return sums of values of rows, by ``order``, over the events of each time."""
        places = np.flatnonzero(self.has_event)
        if not places.size:
            return np.zeros((0, *values.shape[1:]))
        begins = np.cumsum(self.events) - self.events
        return np.add.reduceat(values[places], begins)

    def tree(self, width: int) -> Floats:
        """Return an array for a tree of sums."""
        return np.empty((2 * len(self.times), width + 1)) if self.late else _NO_TREE

    @property
    def rows(self) -> tuple[Floats, Rows, Rows, Rows]:
        """The arguments that kernels take after the scores."""
        return self.weights, self.entries, self.starts, self.origins


class Cox(Loss):
    """Negative logarithm of Cox's partial likelihood for given rows.

    Parameters
    ----------
    time : ndarray of shape (n,)
        When a row had its event, or was last seen.
    event : ndarray of shape (n,)
        Whether it had an event.
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
        self._data = time, event, entry, strata
        self.event = event
        self._efron, self._offset = ties == "efron", offset
        self._plan: tuple[Floats, EventTimes] | None = None
        self._last: tuple[Floats, AtRisk] | None = None

    def at(self, scores: Floats, weights: Floats) -> AtRisk:
        """Return the sums at some scores."""
        plan, last = self._plan, self._last
        if plan is None or plan[0] is not weights:
            time, event, entry, strata = self._data
            times = EventTimes.of(time, event, weights, entry, strata)
            plan, last = (weights, times), None
            self._plan = plan
        if last is None or last[0] is not scores:
            z = scores if self._offset is None else scores + self._offset
            last = self._last = scores, AtRisk(plan[1], z, self._efron)
        return last[1]

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
        if self._offset is not None:
            conjugate -= float(sums.gradient @ self._offset)
            size += float(np.abs(sums.gradient) @ np.abs(self._offset))
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
        # Constants change nothing, and smaller numbers have smaller rounding errors.
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
        """Return a bound of rounding errors of sums of positive numbers."""
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
    efron : bool
        Whether events at the same time leave the rows at risk one after the other.
    """

    def __init__(self, times: EventTimes, scores: Floats, efron: bool) -> None:
        self.times, self._n = times, len(scores)
        z = scores[times.order]
        # Only differences within a stratum count, and smaller numbers have smaller
        # rounding errors.
        self.center = float(np.median(z)) if z.size else 0.0
        self.z = z - self.center
        scales, totals = self._sums(np.ones((len(z), 1)))
        self.logs = scales + np.log(totals[:, 0])
        # One part for each event, or without ties for each time: its time's index, and
        # c_k.
        self.event_weights = times.sums_of_events(times.weights)
        self._efron = efron and bool(times.events.max(initial=0) > 1)
        self.parts = np.arange(len(self.logs))
        self.cuts = np.zeros(len(self.logs))
        self.part_weights = self.event_weights
        if self._efron:
            d = times.events
            self.parts = np.repeat(self.parts, d)
            self._begins = np.cumsum(d) - d
            places = np.arange(len(self.parts)) - self._begins[self.parts]
            self.cuts = places / d[self.parts]
            self.part_weights = (self.event_weights / d)[self.parts]

    @cached_property
    def rounding(self) -> float:
        """A bound of the relative rounding errors of sums of positive numbers."""
        largest = max(np.abs(x).max(initial=0.0) for x in (self.z, self.logs))
        share = running_rounding(len(self.z)) + 8.0 * EPS * (largest + 16.0)
        # Sums over the rows at risk that nearly equal the sum over events suffer from
        # cancellation when the rows with events leave the risk set.
        return float(share / self._left.min(initial=1.0))

    def _by_times(self, values: Floats) -> Floats:
        """Return the sums of the values of parts over each time."""
        return np.add.reduceat(values, self._begins) if self._efron else values

    @cached_property
    def shares(self) -> Floats:
        """B / A of each time, not needed without ties."""
        if not self._efron:
            return np.zeros(len(self.logs))
        own = self.z - np.repeat(self.logs, np.diff(self.times.starts))
        own = self.times.weights * np.exp(own)
        return np.minimum(self.times.sums_of_events(own), 1.0)

    @cached_property
    def _left(self) -> Floats:
        """(A - c_k B) / A of each part."""
        return 1.0 - self.cuts * self.shares[self.parts]

    @cached_property
    def _rests(self) -> Floats:
        """The logarithms in R of each part, minus the logarithm of A."""
        W = self.event_weights[self.parts]
        rests: Floats = np.log(self._left / (W * (1.0 - self.cuts)))
        return rests

    @cached_property
    def value(self) -> float:
        times, has_event = self.times, self.times.has_event
        # Differences are formed for each event, so that large scores cancel before the
        # sum.
        heights = np.repeat(self.logs, times.events) - self.z[has_event]
        value = times.weights[has_event] @ heights + self.part_weights @ self._rests
        sizes = np.abs(self.logs[self.parts]) + np.abs(self._rests) + 1.0
        # A value within its rounding error is taken as the infimum, zero.
        is_zero = value <= EPS * float(self.part_weights @ sizes)
        return 0.0 if is_zero else float(value)

    @cached_property
    def hazards(self) -> tuple[Floats, Floats]:
        """The hazard at each time, multiplied by A: for rows at risk, and for events.

        The hazards are Breslow's estimates with the weights of the events.
        """
        each = self.part_weights / self._left
        return self._by_times(each), self._by_times(each * (1.0 - self.cuts))

    @cached_property
    def expected(self) -> Floats:
        """The positive part of the gradient, from rows at risk, by ``order``."""
        return self.spread(*(x[:, np.newaxis] for x in self.hazards))[:, 0]

    def spread(self, values: Floats, own: Floats) -> Floats:
        """Return s exp(z) times the sums of values / A while rows are at risk."""
        times, w = self.times, values.shape[1]
        out = np.empty((len(self.z), w))
        args = times.tree(w), self.logs, times.events
        values, own = np.ascontiguousarray(values), np.ascontiguousarray(own)
        kernel.spread(self.z, *times.rows, *args, values, own, np.empty(w), out)
        return out

    def means(self, values: Floats) -> Floats:
        """Return means of values, by order, over the rows at risk at each time."""
        scales, totals = self._sums(values)
        return np.exp(scales - self.logs)[:, np.newaxis] * totals

    def _sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return logarithms of factors of each time, and sums over rows at risk."""
        times, w = self.times, values.shape[1]
        scales, out = np.empty(len(times.times)), np.empty((len(times.times), w))
        kernel.sums(self.z, *times.rows, times.tree(w), values, scales, out)
        return scales, out

    def means_of_events(self, values: Floats) -> Floats:
        """Return sums over events of s exp(z) / A times values, given by order."""
        own = np.exp(self.z - np.repeat(self.logs, np.diff(self.times.starts)))
        return self.times.sums_of_events((self.times.weights * own)[:, None] * values)

    def unsorted(self, values: Floats) -> Floats:
        """Return values given by order as values of all rows, zero for the others."""
        out = np.zeros((self._n, *values.shape[1:]))
        out[self.times.order] = values
        return out

    @cached_property
    def gradient(self) -> Floats:
        u = self.expected - np.where(self.times.has_event, self.times.weights, 0.0)
        return self.unsorted(u)

    @cached_property
    def sizes(self) -> Floats:
        """Absolute values of the terms of the gradient, of shape (n,)."""
        u = self.expected + np.where(self.times.has_event, self.times.weights, 0.0)
        return self.unsorted(u)

    @cached_property
    def conjugate(self) -> tuple[float, float]:
        """R*(u) for the gradient u, and the sum of the absolute values of its terms."""
        v, W, rests = self.expected, self.part_weights, self._rests
        logs = self.logs[self.parts]
        # Scores are centered, and logarithms are taken of numbers near one.
        shift = abs(self.center) * v.sum()
        size = v @ np.abs(self.z) + W @ (np.abs(logs) + np.abs(rests) + 1.0) + shift
        return float(v @ self.z - W @ (logs + rests)), float(size)

    @cached_property
    def curvature(self) -> CoxCurvature:
        return CoxCurvature(self)

    def coupled(self, values: Floats) -> Floats:
        """Return the sum of (W / d) q qᵀ over all parts, times values (m, w) by order.

        The vector q holds the rows' shares of the sum of a part.
        """
        return self.spread(*self._coupled(values)[2:])

    def coupled_gram(self, values: Floats) -> Floats:
        """Return valuesᵀ ``coupled(values)``."""
        a, b, at_risk, own = self._coupled(values)
        gram = a.T @ at_risk
        return gram if own is at_risk else gram + b.T @ (own - at_risk)

    def _coupled(self, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return means, sums over events, and what ``spread`` takes of them."""
        a = self.means(np.ascontiguousarray(values))
        each = self.part_weights / (self._left * self._left)
        c = self.cuts
        p0, p1, p2 = (self._by_times(each * c**k)[:, np.newaxis] for k in range(3))
        at_risk = p0 * a
        if not self._efron:
            return a, a, at_risk, at_risk
        b = self.means_of_events(values)
        at_risk -= p1 * b
        return a, b, at_risk, at_risk - p1 * a + p2 * b

    def means_at_events(self, values: Floats) -> Floats:
        """Return for each time the means of values over the rows at risk.

        Score residuals are differences of events from these means. For Efron's
        likelihood they are averages over the parts of a time.
        """
        a = self.means(values)
        if not self._efron:
            return a
        d = self.times.events[:, np.newaxis]
        shares = (x / self._left for x in (1.0, self.cuts))
        first, second = (self._by_times(x)[:, np.newaxis] / d for x in shares)
        means: Floats = first * a - second * self.means_of_events(values)
        return means

    def derivatives(self, values: Floats) -> Floats:
        """Return each row's term of the gradient by the coefficients.

        These are the score residuals of Lin and Wei (1989), of shape (m, d) by order.
        """
        own = np.repeat(
            self.means_at_events(values), np.diff(self.times.starts), axis=0
        )
        weights = np.where(self.times.has_event, self.times.weights, 0.0)
        terms = self.expected[:, np.newaxis] * values - self.coupled(values)
        return np.asarray(terms - weights[:, np.newaxis] * (values - own))


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
        """Return zero: only differences of scores count."""
        return np.zeros((1, 1))

    def apply(self, dscores: Floats) -> Floats:
        sums = self._sums
        own = dscores[sums.times.order]
        product = sums.expected * own
        product -= sums.coupled(own[:, np.newaxis])[:, 0]
        return sums.unsorted(product)

    def crossed(self, design: Any) -> Floats:
        """Return half of Xᵀ (the sum of outer products) X."""
        sums, d, n = self._sums, design.n_features, design.n_rows
        matrix = np.zeros((d, d))
        width = max(1, min(d, COPY_SIZE // max(n, 1)))
        # A design that is transformed on use is copied in blocks.
        height = n if hasattr(design.X, "T") else max(1, COPY_SIZE // max(d, 1))
        for a in range(0, d, width):
            columns = slice(a, min(a + width, d))
            part = np.asarray(design.dense_columns(columns), dtype=np.float64)
            part = part[sums.times.order]
            if width == d:
                return 0.5 * sums.coupled_gram(part)
            coupled = sums.unsorted(sums.coupled(part))
            for b in range(0, n, height):
                some = slice(b, min(b + height, n))
                X = design.X if height >= n else design.rows(np.arange(n)[some]).X
                matrix[:, columns] += 0.5 * (X.T @ coupled[some])
        return matrix
