"""Losses of pairs of rows with a required order.

The loss of a pair (i, j) in which j should have the larger score is C max(0, 1 + z_i -
z_j), which is at least C if the order is wrong.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ._arguments import check_choice, checked_costs
from ._base import Derivatives, Floats, Rows, norm_by_weights
from ._groups import Groups
from ._loss import WholeLoss
from ._of_sums import OfSums
from ._pair_sums import PairSums, derivatives
from ._pairs import RowPairs, Window

_NO_VALUES = np.empty(0)
_NO_COSTS = np.empty((0, 0))


class OrderedPairs(WholeLoss):
    """Hinge of all pairs of rows with unequal targets: ordinal regression.

    R(z) = sum over y_i < y_j of s_i s_j C(y_i, y_j) max(0, 1 + z_i - z_j), divided by
    the sum of s_i s_j over these pairs (Teo et al. 2010, Alg. 8; Joachims 2006). With
    groups, only rows of one group form pairs, and R is the mean over groups, weighted
    by their rows. Groups without pairs have no loss.

    A pair counts as violated if z_j - z_i < 1; at the kink its subgradient is zero.
    The time is O(n log n) for costs that are constant or linear, whatever the number
    of levels, and O(n (k + log n)) for a table of costs of k levels. A line may have as
    many kinks as there are pairs, so line searches use values and subgradients.

    Parameters
    ----------
    cost : {"constant", "linear"} or ndarray of shape (k, k), default="constant"
        C = 1, or y_j - y_i, or for targets 0, ..., k - 1 a table with C(y_i, y_j) above
        the diagonal, non-negative.
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

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
        self._plan: tuple[Floats, Floats, RowPairs] | None = None
        self._last: tuple[tuple[Floats, Floats, Floats], PairSums] | None = None

    def _levels(self, targets: Floats) -> tuple[Floats, Rows]:
        """Return the distinct targets, and each row's index among them."""
        values, levels = np.unique(targets, return_inverse=True)
        return values.astype(np.float64), levels.astype(np.intp)

    def _pairs(self, targets: Floats, weights: Floats) -> RowPairs:
        # Targets and weights are the same objects in all calls of a fit.
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
            pairs = RowPairs(groups, levels, values, costs, n_levels, weights)
            plan = self._plan = targets, weights, pairs
        return plan[2]

    def _sums(self, scores: Floats, targets: Floats, weights: Floats) -> PairSums:
        """Return the sums at some scores; the last result is remembered."""
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
        """Return minus the costs of the violated pairs."""
        sums = self._sums(scores, targets, weights)
        return -float(sums.totals(0)[0]) * (1.0 - sums.rounding)

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return a bound of rounding errors of u, a difference of sums over pairs."""
        sums = self._sums(scores, targets, weights)
        return sums.rounding * norm_by_weights(sums.sizes(0), weights)

    def narrowed(self, width: float) -> NarrowPairs:
        return NarrowPairs(self, width)


class WindowedPairs(OfSums, OrderedPairs):
    """A loss of pairs that is a combination of squared violations of margins.

    The dual variables b of pairs are the slopes of this function of m. Each entry of u
    is a signed sum of b times the weights over a row's pairs.
    """

    def sums_at(self, scores: Floats, targets: Floats, weights: Floats) -> PairSums:
        return self._sums(scores, targets, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        pairs = self._pairs(targets, weights)
        return derivatives(pairs, scores, dscores, self._window)


class SquaredPairs(WindowedPairs):
    """Squared hinge of all pairs of rows with unequal targets.

    As ``OrderedPairs``, with the loss C max(0, 1 + z_i - z_j)² of a pair.

    Parameters
    ----------
    cost : {"constant", "linear"} or ndarray of shape (k, k), default="constant"
        C of pairs, as for :class:`OrderedPairs`.
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

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
    """Hinge of pairs whose kink is smoothed within a width.

    It is the maximum over b in [0, 1] of b m - width / 2 * b², below the hinge by at
    most half the width. Its slopes b are feasible dual variables of the hinge.

    Parameters
    ----------
    loss : OrderedPairs
        The loss whose pairs are used.
    width : float
        Positive.
    """

    def __init__(self, loss: OrderedPairs, width: float) -> None:
        super().__init__()
        self._loss = loss
        self._window = Window(0.5 / width, width)

    def _pairs(self, targets: Floats, weights: Floats) -> RowPairs:
        return self._loss._pairs(targets, weights)

    def proof(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        sums = self._sums(scores, targets, weights)
        height, size = sums.slopes
        return height - sums.rounding * size, self.distance_at(
            _NO_VALUES, scores, targets, weights
        )
