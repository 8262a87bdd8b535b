"""Search over an interval of alpha, with a proof that no other alpha is much better.

A set of alphas is solved on all folds; between neighbors, the mean held-out score has
bounds (``score_bounds``). An interval whose upper bound is too high is halved, or, if
the bound at its middle alone is too high, an alpha between the two solved alphas is
solved. The search ends if halving the interval with the highest bound does not reduce
this bound, since the other intervals cannot improve the proof. This happens for losses
with many optima, such as a hinge with a set of optimal intercepts. The search also ends
at the limit of work.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._core.arrays import Floats
from .._core.rounding import ROUNDED

#: The search begins with 13 alphas, from the lowest to the highest.
FIRST = 13

# Each solution is accurate enough for bounds between alphas that are four times closer
# in log(alpha). Few alphas then have to be solved again: on a9a one in five.
_AHEAD = 0.25

# An interval is halved if the radius of coefficients in its middle is less than 0.7
# times the radius at its ends; otherwise an alpha between its solved ends is solved.
_NARROW = 0.7

# Neighbors within a relative distance of 1e-6 have the best possible bounds.
_CLOSEST = 1e-6

# Halving stops if twenty times in a row it reduces the excess of a bound by less than a
# twentieth.
_MOST_IDLE = 20
_LEAST_GAIN = 0.05


class Fold(Protocol):
    """Interface of a fold in the search.

    Attributes
    ----------
    work_of_bounds : float
        The work to bound one interval, as a share of the mean work of a fit so far.
    """

    @property
    def work_of_bounds(self) -> float:
        """The attribute above."""

    def solve(self, alpha: float, ratio: float, near: Any) -> tuple[Any, float]:
        """Return the solution for an alpha, and the score of the held-out rows.

        Parameters
        ----------
        alpha : float
        ratio : float
            The smallest ratio, above one, of two neighboring alphas between which the
            solution has to be accurate enough for bounds.
        near : object or None
            The solution for a similar alpha, where the fit starts.
        """

    def between(self, low: Any, high: Any, share: float) -> Any:
        """Return a convex combination of the solutions for two alphas."""

    def bounds(self, at: Any, first: float, last: float) -> tuple[float, ...]:
        """Return bounds of the held-out score for all alphas of an interval.

        The third result is the ratio of the radius in its middle to the radius at its
        ends.
        """


class AlphaInterval(NamedTuple):
    """An interval of alpha with bounds of the mean score.

    Attributes
    ----------
    first, last : float
    lower, upper : float
    spread : float
        Ratio of the radius in the middle of the interval to the radius at its ends.
    pair : tuple of int
        Indices of the neighboring solved alphas.
    n_idle : int
        Number of successive halvings without gain.
    """

    first: float
    last: float
    lower: float
    upper: float
    spread: float
    pair: tuple[int, int]
    n_idle: int = 0


class Search(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        All solved alphas, in descending order.
    scores : ndarray of shape (n_folds, n_alphas)
    bounds : ndarray of shape (n_intervals, 4)
        Ends of intervals, and bounds of the mean score over each interval.
    gap : float
        Bound of how much the mean score of any alpha exceeds the best score.
    cut : bool
        Whether the search ended at the limit of work.
    """

    alphas: Floats
    scores: Floats
    bounds: Floats
    gap: float
    cut: bool


class ProvenSearch:
    """The state of a proven search.

    Parameters
    ----------
    folds : sequence of Fold
    each : callable
        Maps a function over the folds, perhaps in threads.
    report : callable
        Called after each alpha that is solved between two neighbors, with the number of
        solved alphas, the best mean score and the largest upper bound.
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        each: Callable[..., list[Any]],
        report: Callable[[int, float, float], None],
    ) -> None:
        self._folds, self._each, self._report = folds, each, report
        self._alphas: list[float] = []
        self._solved: list[list[Any]] = []
        self._scores: list[list[float]] = []
        # For each alpha, the ratio of neighboring alphas for which its solution is
        # accurate enough.
        self._ratios: list[float] = []
        # The index of the alpha that was solved between two neighbors.
        self._number: dict[tuple[int, int], int] = {}
        # The number of intervals that have bounds.
        self._n_bounded = 0

    def run(self, low: float, high: float, tol: float, most: float) -> Search:
        """Search from low to high until ``tol`` is proven, or cannot be proven.

        The search also ends once its work exceeds the fits for ``most`` alphas.
        """
        apart = (high / low) ** (1.0 / (FIRST - 1))
        for i, alpha in enumerate(np.geomspace(high, low, FIRST)):
            self._solve(float(alpha), apart, i - 1 if i else None)
        # Ties between bounds are broken in favor of the latest interval.
        serial = count(0, -1)
        queue: list[tuple[float, int, AlphaInterval]] = []
        for i in range(FIRST - 1):
            interval = self._bounded(self._alphas[i + 1], self._alphas[i], (i + 1, i))
            heapq.heappush(queue, (-interval.upper, next(serial), interval))
        while True:
            aim = self._best() + tol
            upper, _, interval = heapq.heappop(queue)
            n_solved = len(self._alphas)
            cut = -upper > aim and self._work() >= most
            parts = self._refined(interval, aim) if -upper > aim and not cut else []
            if len(self._alphas) > n_solved:
                self._report(n_solved + 1, self._best(), -upper)
            if not parts:
                # No other interval has a higher bound.
                ends = [interval, *(each for *_, each in queue)]
                break
            for part in parts:
                heapq.heappush(queue, (-part.upper, next(serial), part))
        order = np.argsort(self._alphas)[::-1]
        bounds = np.array(sorted(each[:4] for each in ends))
        gap = max(float(bounds[:, 3].max()) - self._best(), 0.0)
        if gap <= tol * (1.0 + ROUNDED):
            # The difference of scores may exceed ``tol`` by rounding only.
            gap = min(gap, tol)
        scores = np.array(self._scores)[order].T
        return Search(np.array(self._alphas)[order], scores, bounds, gap, cut)

    def _work(self) -> float:
        """Return the work so far, in fits to an alpha on all folds."""
        shares = [fold.work_of_bounds for fold in self._folds]
        return len(self._alphas) + self._n_bounded * sum(shares) / len(shares)

    def _best(self) -> float:
        return float(np.max(np.mean(self._scores, axis=1)))

    def _solve(self, alpha: float, apart: float, near: int | None) -> int:
        """Solve an alpha on all folds; return its number.

        ``apart`` is the ratio to the neighboring alpha, and ``near`` the number of the
        alpha whose solutions are the starts of the fits. An alpha that has already been
        solved is solved again, more accurately.
        """
        ratio = apart**_AHEAD
        starts = [None] * len(self._folds) if near is None else self._solved[near]
        found = self._each(lambda fold, start: fold.solve(alpha, ratio, start), starts)
        solved, scores = map(list, zip(*found, strict=True))
        if near is not None and alpha == self._alphas[near]:
            self._solved[near], self._scores[near] = solved, scores
            self._ratios[near] = ratio
            return near
        self._alphas.append(alpha)
        self._solved.append(solved)
        self._scores.append(scores)
        self._ratios.append(ratio)
        return len(self._alphas) - 1

    def _bounded(
        self, first: float, last: float, pair: tuple[int, int]
    ) -> AlphaInterval:
        """Return an interval between two solved alphas with its bounds."""
        self._n_bounded += 1
        share = self._share(math.sqrt(first) * math.sqrt(last), pair)
        a, b = (self._solved[i] for i in pair)

        def bounds(fold: Fold, low: Any, high: Any) -> tuple[float, ...]:
            return fold.bounds(fold.between(low, high, share), first, last)

        lower, upper, spread = np.mean(self._each(bounds, a, b), axis=0).tolist()
        return AlphaInterval(first, last, lower, upper, spread, pair)

    def _share(self, alpha: float, pair: tuple[int, int]) -> float:
        """Return the second solution's weight in the convex combination at an alpha."""
        a, b = (math.log(self._alphas[i]) for i in pair)
        share = (math.log(alpha) - a) / (b - a) if a != b else 0.5
        return min(max(share, 0.0), 1.0)

    def _refined(self, interval: AlphaInterval, aim: float) -> list[AlphaInterval]:
        """Return subintervals with better bounds, or an empty list."""
        first, last, pair = interval.first, interval.last, interval.pair
        middle = math.sqrt(first) * math.sqrt(last)
        if interval.spread < _NARROW:
            if interval.n_idle == _MOST_IDLE:
                return []
            halves = [
                self._bounded(first, middle, pair),
                self._bounded(middle, last, pair),
            ]
            enough = interval.upper - _LEAST_GAIN * (interval.upper - aim)
            return [
                half._replace(n_idle=interval.n_idle + 1 if half.upper > enough else 0)
                for half in halves
            ]
        low, high = (self._alphas[i] for i in pair)
        if high / low < 1.0 + _CLOSEST:
            return []
        # The middle of the pair may already be solved, for another interval of the
        # pair.
        at = math.sqrt(low) * math.sqrt(high)
        number = self._number.get(pair)
        if number is None:
            apart = math.sqrt(high / low)
            for i in pair:
                if self._ratios[i] > apart:
                    self._solve(self._alphas[i], apart, i)
            number = self._number[pair] = self._solve(at, apart, pair[0])
        cuts = [first, *([at] if first < at < last else []), last]
        return [
            self._bounded(a, b, (pair[0], number) if b <= at else (number, pair[1]))
            for a, b in pairwise(cuts)
        ]
