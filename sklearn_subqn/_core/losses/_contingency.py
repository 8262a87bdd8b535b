"""Scores of contingency tables of binary labels, by enumeration of the tables.

The cost of f false negatives and p false positives among rows with targets y is
Delta(f, p), which is zero without errors. The loss is

    max over labels y' of sum_i s_i (y'_i - y_i) z_i / 2 + Delta(f, p),

an upper bound of the cost of the labels sign(z) (Joachims 2005; Teo et al. 2010, Alg.
11, where rows have the weight 2 instead of s_i, so that alpha and the scale of z
differ). If Delta is the error rate, the loss is the mean hinge. For given f and p the
maximizing labels are wrong for the f positive rows with the smallest scores and the p
negative rows with the largest scores.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rounding import ROUNDED, rounding
from ._arguments import check_positive
from ._base import Floats
from ._loss import WholeLoss

_Counts = npt.NDArray[Any]


class ContingencyLoss(WholeLoss):
    """Bound of a cost of contingency tables.

    The cost increases with the false negatives and is concave in the false positives.
    For each number of false negatives the objective is then concave in the number of
    false positives, and bisection finds its maximum. With the two sorts the time is O(m
    log m) instead of O(m²). Tables contain numbers of rows, so positive weights must be
    equal. If several tables attain the maximum, the table with the fewest false
    positives gives the subgradient.
    """

    counts_rows = True

    @abstractmethod
    def cost(
        self, missed: _Counts, false: _Counts, n_positive: int, n_negative: int
    ) -> Floats:
        """Return Delta of false negatives and false positives, arrays of one shape."""

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        return self.shifted(scores, targets, weights)(0.0)

    def shifted(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> Callable[[float], tuple[float, Floats]]:
        """Return value and subgradient as a function of a shift."""
        weight = float(weights.max())
        if np.any((weights != weight) & (weights != 0.0)):
            raise ValueError(
                f"{type(self).__name__} counts rows: weights must be equal or zero."
            )
        return _ShiftedTables(self, scores, targets, weights).evaluate

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return -Delta of the table that gives the subgradient."""
        if not np.all((dual == 0.0) | (np.abs(dual) == weights.max())):
            return super().conjugate_at(dual, scores, targets, weights)
        positive = targets > 0.0
        counted = weights > 0.0
        missed = np.array([np.count_nonzero(dual[positive])])
        false = np.array([np.count_nonzero(dual[~positive])])
        n_positive = int(np.count_nonzero(positive & counted))
        n_negative = int(np.count_nonzero(~positive & counted))
        cost = float(self.cost(missed, false, n_positive, n_negative)[0])
        return -cost * (1.0 - rounding(1.0))


class _Maxima(NamedTuple):
    """Bounds of the best tables at one shift.

    Attributes
    ----------
    shift, value, slope : float
        Value of the loss there, and its derivative by the shift.
    bounds : ndarray of shape (n_positive + 1,)
        For each number of false negatives an upper bound of the best table's objective.
    fewest, most : ndarray of shape (n_positive + 1,)
        Bounds of the best table's number of false positives.
    """

    shift: float
    value: float
    slope: float
    bounds: Floats
    fewest: _Counts
    most: _Counts


class _ShiftedTables:
    """The loss as a function of a number added to all scores, which keeps their order.

    For each number of false negatives the best number of false positives increases with
    the shift, and the objective of the best table is convex in the shift. So results at
    the nearest other shifts give bounds for the next shift, and few tables remain that
    may attain the maximum.

    Parameters
    ----------
    loss, scores, targets, weights
        As in ``ContingencyLoss.evaluate``.
    """

    def __init__(
        self, loss: ContingencyLoss, scores: Floats, targets: Floats, weights: Floats
    ) -> None:
        self._loss = loss
        self._n_rows = len(scores)
        self._weight = weight = float(weights.max())
        positive = np.flatnonzero((targets > 0.0) & (weights > 0.0))
        negative = np.flatnonzero((targets <= 0.0) & (weights > 0.0))
        self._positive = positive[np.argsort(scores[positive])]
        self._negative = negative[np.argsort(-scores[negative])]
        n_positive, n_negative = len(positive), len(negative)
        # The change of the objective if the first rows of either kind have wrong
        # labels.
        self._missed_gains = np.zeros(n_positive + 1)
        np.cumsum(-weight * scores[self._positive], out=self._missed_gains[1:])
        self._false_slopes = np.append(weight * scores[self._negative], 0.0)
        self._false_gains = np.zeros(n_negative + 1)
        np.cumsum(self._false_slopes[:-1], out=self._false_gains[1:])
        self._size = 1.0 + float(
            np.abs(self._missed_gains).max() + np.abs(self._false_gains).max()
        )
        fewest = np.zeros(n_positive + 1, dtype=np.intp)
        most = np.full(n_positive + 1, n_negative, dtype=np.intp)
        unknown = np.full(n_positive + 1, np.inf)
        self._known = [
            _Maxima(-np.inf, 0.0, 0.0, unknown, fewest, fewest),
            _Maxima(np.inf, 0.0, 0.0, unknown, most, most),
        ]

    def evaluate(self, shift: float) -> tuple[float, Floats]:
        """Return value and subgradient of the loss at the shifted scores."""
        place = bisect_left(self._known, shift, lo=1, hi=len(self._known) - 1, key=_key)
        below, above = self._known[place - 1], self._known[place]
        bounds, floor = _between(below, above, shift)
        fewest, most = below.fewest.copy(), above.most.copy()
        gains = self._missed_gains - self._weight * shift * np.arange(len(bounds))
        slack = ROUNDED * (self._size + self._weight * self._n_rows * abs(shift))
        likely = np.flatnonzero(bounds >= floor - slack)
        # Costs increase with the number of false negatives, so results for some of
        # these numbers give bounds for all numbers between them.
        some = likely[:: -math.isqrt(len(likely))][::-1]
        false, rest = self._best_false(some, fewest[some], most[some], shift)
        fewest[some] = most[some] = false
        floor = max(floor, float((gains[some] + rest).max()))
        caps = gains[likely] + rest[np.searchsorted(some, likely)]
        bounds[likely] = np.minimum(bounds[likely], caps)
        likely = likely[bounds[likely] >= floor - slack]
        false, rest = self._best_false(likely, fewest[likely], most[likely], shift)
        fewest[likely] = most[likely] = false
        bounds[likely] = heights = gains[likely] + rest
        best = int(np.argmax(heights))
        missed_rows = self._positive[: likely[best]]
        false_rows = self._negative[: false[best]]
        value = float(heights[best])
        slope = self._weight * float(len(false_rows) - len(missed_rows))
        known = _Maxima(shift, value, slope, bounds, fewest, most)
        near = [m for m in (below, known, above) if np.isfinite(m.shift)]
        self._known[1:-1] = near
        u = np.zeros(self._n_rows)
        u[missed_rows], u[false_rows] = -self._weight, self._weight
        return value, u

    def _best_false(
        self, missed: _Counts, low: _Counts, high: _Counts, shift: float
    ) -> tuple[_Counts, Floats]:
        """Return the best numbers of false positives, and their objectives.

        The objective is concave in these numbers, so bisection finds them.
        """
        slope = self._weight * shift
        next_one = np.array([[0], [1]])
        while np.any(low < high):
            middle = (low + high) // 2
            costs = self._cost(missed, middle + next_one)
            rising = self._false_slopes[middle] + costs[1] - costs[0] > -slope
            low = np.where(rising & (low < high), middle + 1, low)
            high = np.where(rising, high, np.minimum(middle, high))
        return low, self._false_gains[low] + slope * low + self._cost(missed, low)

    def _cost(self, missed: _Counts, false: _Counts) -> Floats:
        n_positive, n_negative = len(self._positive), len(self._negative)
        return self._loss.cost(missed, false, n_positive, n_negative)


def _key(known: _Maxima) -> float:
    return known.shift


def _between(below: _Maxima, above: _Maxima, shift: float) -> tuple[Floats, float]:
    """Return upper bounds of the tables' objectives and of the maximum at a shift.

    Objectives are convex in the shift, so chords are upper bounds.
    """
    width = above.shift - below.shift
    if not 0.0 < width < np.inf:
        return np.full_like(below.bounds, np.inf), -np.inf
    share = (shift - below.shift) / width
    bounds = (1.0 - share) * below.bounds + share * above.bounds
    floor = max(
        below.value + below.slope * (shift - below.shift),
        above.value + above.slope * (shift - above.shift),
    )
    return bounds, floor


class FBeta(ContingencyLoss):
    """Bound of one minus the F-beta score.

    Delta(f, p) = 1 - (1 + beta²) t / ((1 + beta²) t + beta² f + p) with t = m_+ - f
    true positives, concave in p as one minus the reciprocal of an affine function.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of the recall relative to the precision, positive.

    See Also
    --------
    PrecisionAtK, RecallAtK : Precision and recall of the k largest scores.
    RocArea : Counts pairs of rows, without a threshold.
    sklearn.metrics.fbeta_score : The measure.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import FBeta
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=FBeta(beta=2.0), alpha=1e-2, tol=1e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-2 * clf.objective_)
    True
    """

    def __init__(self, beta: float = 1.0) -> None:
        check_positive("beta", beta)
        self._beta2 = beta * beta

    def cost(
        self, missed: _Counts, false: _Counts, n_positive: int, n_negative: int
    ) -> Floats:
        wrong = self._beta2 * missed + false
        # The cost is not computed as one minus the score, because the cost of few
        # errors among many rows would be lost by rounding.
        cost: Floats = wrong / ((1.0 + self._beta2) * (n_positive - missed) + wrong)
        return cost
