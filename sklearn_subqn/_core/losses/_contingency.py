"""Scores of contingency tables of binary labels, by enumeration of the tables.

With f false negatives and p false positives among rows of targets y, a score costs
Delta(f, p), zero for none of either. The loss is

    max over labels y' of sum_i s_i (y'_i - y_i) z_i / 2 + Delta(f, p),

which bounds the cost of the labels sign(z) (Joachims 2005; Teo et al. 2010, Alg. 11,
where rows count 2 instead of s_i: alpha and the scale of z differ). With the error
rate as Delta it would be the mean hinge. For given f and p the best labels are wrong on
the f positives of smallest and on the p negatives of largest score.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arguments import check_positive
from ._base import FirstOrderLoss, Floats, rounding

_Counts = npt.NDArray[Any]


class ContingencyLoss(FirstOrderLoss):
    """Bound of a cost of contingency tables that is concave in the false positives.

    For each number of false negatives the objective then is concave in the number of
    false positives, and its maximum is found by bisection: with the two sorts, the time
    is O(m log m) instead of O(m²). Rows have equal weights or none, since tables count
    rows. At ties the subgradient is that of fewest errors among negatives.
    """

    counts_rows = True

    @abstractmethod
    def cost(
        self, missed: _Counts, false: _Counts, n_positive: int, n_negative: int
    ) -> Floats:
        """Return Delta of false negatives and false positives, arrays of one shape."""

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self.evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        value, _, u = self._evaluate(scores, targets, weights)
        return value, u

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the cost of the table, whatever the scores."""
        return -self._evaluate(scores, targets, weights)[1] * (1.0 - rounding(1.0))

    def _evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        """Return value, cost of the table and subgradient."""
        weight = float(weights.max())
        if np.any((weights != weight) & (weights != 0.0)):
            raise ValueError(
                f"{type(self).__name__} counts rows: weights must be equal or zero."
            )
        positive = np.flatnonzero((targets > 0.0) & (weights > 0.0))
        negative = np.flatnonzero((targets <= 0.0) & (weights > 0.0))
        n_positive, n_negative = len(positive), len(negative)
        positive = positive[np.argsort(scores[positive])]
        negative = negative[np.argsort(-scores[negative])]
        # What wrong labels of the first rows of either kind contribute.
        missed_gains = np.zeros(n_positive + 1)
        np.cumsum(-weight * scores[positive], out=missed_gains[1:])
        false_gains = np.zeros(n_negative + 1)
        np.cumsum(weight * scores[negative], out=false_gains[1:])
        missed = np.arange(n_positive + 1)

        def height(false: _Counts) -> Floats:
            cost = self.cost(missed, false, n_positive, n_negative)
            return false_gains[false] + cost

        low, high = np.zeros_like(missed), np.full_like(missed, n_negative)
        while np.any(low < high):
            middle = (low + high) // 2
            rising = height(np.minimum(middle + 1, n_negative)) > height(middle)
            low = np.where((low < high) & rising, middle + 1, low)
            high = np.where(rising, high, np.minimum(middle, high))
        heights = missed_gains + height(low)
        best = int(np.argmax(heights))
        u = np.zeros_like(scores)
        u[positive[:best]] = -weight
        u[negative[: low[best]]] = weight
        table = self.cost(
            missed[best : best + 1], low[best : best + 1], n_positive, n_negative
        )
        return float(heights[best]), float(table[0]), u


class FBeta(ContingencyLoss):
    """Bound of one minus the F-beta score.

    Delta(f, p) = 1 - (1 + beta²) t / ((1 + beta²) t + beta² f + p) with t = m_+ - f
    true positives, concave in p as one minus the reciprocal of an affine function.

    Parameters
    ----------
    beta : float, default=1.0
        Positive.
    """

    def __init__(self, beta: float = 1.0) -> None:
        check_positive("beta", beta)
        self._beta2 = beta * beta

    def cost(
        self, missed: _Counts, false: _Counts, n_positive: int, n_negative: int
    ) -> Floats:
        hits = (1.0 + self._beta2) * (n_positive - missed)
        cost: Floats = 1.0 - hits / (hits + self._beta2 * missed + false)
        return cost
