"""Losses of pairs of rows that should be in a certain order.

A pair (i, j) of which j should have the larger score costs C max(0, 1 + z_i - z_j),
which is at least C where the order is wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ._arguments import check_choice, checked_costs, checked_rows
from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
    norm_by_weights,
    rounding,
    running_rounding,
)
from ._groups import Groups
from ._oracle import Oracle
from ._pairs import PairCurvature, Pairs, PairSums, Window, derivatives

_NO_VALUES = np.empty(0)
_NO_COSTS = np.empty((0, 0))


class OrderedPairs(Oracle):
    """Hinge of all pairs of rows with unequal targets: ordinal regression.

    R(z) = sum over y_i < y_j of s_i s_j C(y_i, y_j) max(0, 1 + z_i - z_j), divided by
    the sum of s_i s_j over these pairs (Teo et al. 2010, Alg. 8; Joachims 2006). With
    groups, only rows of the same group make pairs, and R is the mean over groups, each
    of the weight of its rows. Groups without pairs cost nothing.

    A pair counts as violated if z_j - z_i < 1; at the kink its subgradient is zero.
    The time is O(n log n) for costs that are constant or linear, whatever the number
    of levels, and O(n (k + log n)) for a table of costs of k levels. On a line there
    may be as many kinks as pairs: steps are found by values and subgradients.

    Parameters
    ----------
    cost : {"constant", "linear"} or ndarray of shape (k, k), default="constant"
        C = 1, or y_j - y_i, or for targets 0, ..., k - 1 a table with C(y_i, y_j) above
        the diagonal, non-negative.
    groups : Groups, optional
        Groups of rows, of which only those of the same one make pairs. Default one.

    See Also
    --------
    SquaredPairs, LogisticPairs : Smooth losses of the same pairs.
    RocArea : For two classes.
    Preferences : For pairs that are given.
    OrdinalLogistic : Ordered classes by thresholds, with probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import OrderedPairs
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BMRMClassifier(loss=OrderedPairs("linear"), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

    ranks = True
    _window = Window()

    _memos: ClassVar[tuple[str, ...]] = ("_plan", "_last")

    def __init__(
        self, cost: str | Floats = "constant", groups: Groups | None = None
    ) -> None:
        if isinstance(cost, str):
            check_choice("cost", cost, ("constant", "linear"))
            self._cost: str | Floats = cost
        else:
            self._cost = checked_costs("cost", cost)
        self._groups = groups
        self._plan: tuple[Floats, Floats, Pairs] | None = None
        self._last: tuple[tuple[Floats, Floats, Floats], PairSums] | None = None

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self.evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]

    def _levels(self, targets: Floats) -> tuple[Floats, Rows]:
        """Return the distinct targets and the number of each row's."""
        values, levels = np.unique(targets, return_inverse=True)
        return values.astype(np.float64), levels.astype(np.intp)

    def _pairs(self, targets: Floats, weights: Floats) -> Pairs:
        # Targets and weights are the same ones in all calls of a fit.
        plan = self._plan
        if plan is None or plan[0] is not targets or plan[1] is not weights:
            groups = self._groups or Groups.one(len(targets))
            values, costs = _NO_VALUES, _NO_COSTS
            if isinstance(self._cost, str):
                distinct, levels = self._levels(targets)
                n_levels = len(distinct)
                if self._cost == "linear":
                    values = distinct
            else:
                levels, costs = targets.astype(np.intp), self._cost
                n_levels = len(costs)
            pairs = Pairs(groups, levels, values, costs, n_levels, weights)
            plan = self._plan = targets, weights, pairs
        return plan[2]

    def _sums(self, scores: Floats, targets: Floats, weights: Floats) -> PairSums:
        """Return the sums at some scores, which are asked for several times."""
        last, args = self._last, (scores, targets, weights)
        if last is None or any(a is not b for a, b in zip(last[0], args, strict=True)):
            sums = PairSums(self._pairs(targets, weights), scores, self._window)
            last = self._last = args, sums
        return last[1]

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        sums = self._sums(scores, targets, weights)
        return float(sums.totals(1)[0]), sums.differences(0)

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the costs of the pairs that count, whatever their scores."""
        height = float(self._sums(scores, targets, weights).totals(0)[0])
        return -height * (1.0 - running_rounding(len(scores)))

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return what rounding takes from sums over pairs whose difference is u."""
        sizes = self._sizes(scores, targets, weights)
        return running_rounding(len(scores)) * norm_by_weights(sizes, weights)

    def _sizes(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the sizes of the terms of the subgradient, of shape (n,)."""
        return self._sums(scores, targets, weights).sizes(0)

    def narrowed(self, width: float) -> NarrowPairs:
        return NarrowPairs(self, width)


class SmoothPairs(OrderedPairs):
    """A loss of pairs that is a sum of a smooth function of their differences."""

    @abstractmethod
    def _smooth_sums(self, scores: Floats, targets: Floats, weights: Floats) -> Any:
        """Return what knows the value, gradient and conjugate of the sum at scores."""

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        value: float = self._smooth_sums(scores, targets, weights).value
        return value

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        sums = self._smooth_sums(scores, targets, weights)
        return sums.value, sums.gradient

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return <u, z> - R(z), by the equality of Fenchel and Young, or more."""
        conjugate, size = self._smooth_sums(scores, targets, weights).conjugate
        return float(conjugate + running_rounding(len(scores)) * size)

    def _sizes(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        sizes: Floats = self._smooth_sums(scores, targets, weights).slope_sizes
        return sizes


class WindowedPairs(SmoothPairs):
    """A loss of pairs that is a sum of squared violations of some margins.

    Dual variables b of the pairs are the slopes of that function of m; u is the sum of
    those of a row's pairs, with signs, times their weights.
    """

    def _smooth_sums(self, scores: Floats, targets: Floats, weights: Floats) -> Any:
        return self._sums(scores, targets, weights)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> PairCurvature:
        """Return generalized second derivatives; pairs on a margin do not count."""
        return self._sums(scores, targets, weights).curvature()

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        pairs = self._pairs(targets, weights)
        return derivatives(pairs, scores, dscores, self._window)


class SquaredPairs(WindowedPairs):
    """Squared hinge of all pairs of rows with unequal targets.

    As ``OrderedPairs``, with C max(0, 1 + z_i - z_j)² of a pair.

    Parameters
    ----------
    cost : {"constant", "linear"} or ndarray of shape (k, k), default="constant"
        C of pairs, as for :class:`OrderedPairs`.
    groups : Groups, optional
        Groups of rows, of which only those of the same one make pairs. Default one.

    See Also
    --------
    OrderedPairs, LogisticPairs : Other losses of the same pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import SquaredPairs
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BMRMClassifier(loss=SquaredPairs("linear"), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """


class NarrowPairs(WindowedPairs):
    """Hinge of pairs whose kink is rounded off within a width.

    The function max over b in [0, 1] of b m - width / 2 * b², which is below the hinge
    by half the width at most. Its slopes b are feasible dual variables of the hinge.

    Parameters
    ----------
    loss : OrderedPairs
        Whose pairs these are.
    width : float
        Positive.
    """

    def __init__(self, loss: OrderedPairs, width: float) -> None:
        super().__init__()
        self._loss = loss
        self._window = Window(0.5 / width, width)

    def _pairs(self, targets: Floats, weights: Floats) -> Pairs:
        return self._loss._pairs(targets, weights)

    def proof(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        height, size = self._sums(scores, targets, weights).slopes
        share = running_rounding(len(scores))
        return height - share * size, self.distance_at(
            _NO_VALUES, scores, targets, weights
        )


class RocArea(OrderedPairs):
    """Hinge of all pairs of a negative and a positive row (Teo et al. 2010, Alg. 7).

    With unit weights it bounds one minus the area under the ROC curve, (27). Targets
    are -1 and +1.

    Parameters
    ----------
    groups : Groups, optional
        Groups of rows, of which only those of the same one make pairs. Default one.

    See Also
    --------
    SquaredRocArea, LogisticRocArea : Smooth losses of the same pairs.
    OrderedPairs : For more than two ordered classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import RocArea
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=RocArea(), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

    def __init__(self, groups: Groups | None = None) -> None:
        super().__init__("constant", groups)

    def _levels(self, targets: Floats) -> tuple[Floats, Rows]:
        return np.arange(2.0), (targets > 0.0).astype(np.intp)


class SquaredRocArea(SquaredPairs, RocArea):
    """Squared hinge of all pairs of a negative and a positive row.

    As ``RocArea``, with max(0, 1 + z_i - z_j)² of a pair.

    Parameters
    ----------
    groups : Groups, optional
        Groups of rows, of which only those of the same one make pairs. Default one.

    See Also
    --------
    RocArea, LogisticRocArea : Other losses of the same pairs.
    SquaredPairs : For more than two ordered classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import SquaredRocArea
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=SquaredRocArea(), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """


class Preferences(Oracle):
    """Hinge of given pairs of rows (Teo et al. 2010, Alg. 9).

    R(z) is the mean of C_p max(0, 1 + z_i - z_j) over pairs p in which j is preferred
    to i, of weights s_i s_j. Targets are not looked at. At the kink the subgradient of
    a pair is zero.

    Parameters
    ----------
    pairs : array-like of shape (p, 2)
        Rows (j, i): the first is preferred.
    costs : array-like of shape (p,), optional
        Non-negative, default one.

    Raises
    ------
    ValueError
        If pairs or costs are not such numbers, and in a fit to too few rows.

    See Also
    --------
    OrderedPairs : The pairs of all rows with unequal targets.
    sklearn_subqn.BMRMRanker : Takes preferences as ``fit(X, pairs=pairs)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import Preferences
    >>> scores, equal = np.array([2.0, 1.0, 0.5]), np.full(3, 1 / 3)
    >>> Preferences([(0, 1), (2, 1)]).value(scores, np.zeros(3), equal)
    0.75
    """

    ranks = True

    def __init__(self, pairs: Any, costs: Any = None) -> None:
        pairs = checked_rows("pairs", pairs, 2)
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have 2 columns, got {pairs.shape[1]}.")
        self._better, self._worse = np.ascontiguousarray(pairs.T)
        self._n_rows = int(pairs.max(initial=-1)) + 1
        self._costs = np.ones(len(pairs))
        if costs is not None:
            self._costs = checked_costs("costs", costs, (len(pairs),))

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        m = 1.0 - self._differences(scores)
        return float(self._weights(weights) @ np.maximum(m, 0.0))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        worse, better = self._sums(scores, weights)
        return worse - better

    def _sums(self, scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weights of a row's active pairs, as the worse and the better."""
        m = 1.0 - self._differences(scores)
        active = np.where(m > TIE_TOLERANCE, self._weights(weights), 0.0)
        n = len(scores)
        worse, better = (
            np.bincount(rows, active, n).astype(np.float64, copy=False)
            for rows in (self._worse, self._better)
        )
        return worse, better

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the costs of the pairs that count, whatever their scores."""
        active = 1.0 - self._differences(scores) > TIE_TOLERANCE
        height = float(self._weights(weights)[active].sum())
        return -height * (1.0 - rounding(len(active)))

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return what rounding takes from sums over pairs whose difference is u."""
        worse, better = self._sums(scores, weights)
        both = self._worse, self._better
        longest = max(np.bincount(rows).max(initial=0) for rows in both)
        return running_rounding(longest) * norm_by_weights(worse + better, weights)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with a jump at the kink of each pair."""
        m, dm = 1.0 - self._differences(scores), -self._differences(dscores)
        m[np.abs(m) <= TIE_TOLERANCE] = 0.0
        weights = self._weights(weights)
        active = np.where(m == 0.0, dm > 0.0, m > 0.0)
        ahead = m * dm < 0.0
        jumps = (weights * np.abs(dm))[ahead]
        return PiecewiseQuadratic(
            slope=float((weights * dm)[active].sum()),
            curvature=0.0,
            kinks=-m[ahead] / dm[ahead],
            slope_jumps=jumps,
            curvature_jumps=np.zeros(len(jumps)),
        )

    def _differences(self, scores: Floats) -> Floats:
        if len(scores) < self._n_rows:
            raise ValueError(
                f"pairs name row {self._n_rows - 1}, but there are {len(scores)} rows."
            )
        differences: Floats = scores[self._better] - scores[self._worse]
        return differences

    def _weights(self, weights: Floats) -> Floats:
        products = weights[self._better] * weights[self._worse]
        total = float(products.sum())
        products *= self._costs
        if total > 0.0:
            products /= total
        return products
