"""Row-wise quantities such as scores and dual variables, and their use in bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Rows, total_of_rows
from ..losses._curvature import Curvature
from ..losses._dual_loss import DualLoss
from ..losses._loss import Loss
from ..places.condensed import OfRows, condensed, joined
from ..places.parts import maximal, root_of_squares, rowwise, summed
from ..rounding import TINY, rounding
from ..rows.design import Design
from ..rows.sampling import thinned


class RowNumbers:
    """Arithmetic on row-wise quantities, which stay in the processes of the rows.

    Results are row-wise quantities again, or sums and maxima over all rows. The
    decorator of each method defines how results of several parts are combined.
    """

    # Row-wise results.

    @rowwise
    def shifted(self, scores: Floats, shifts: Floats) -> Floats:
        """Return the scores after a change of the intercepts."""
        return scores + shifts

    @rowwise
    def moved(self, x: Floats, step: float, y: Floats) -> Floats:
        """Return x + step * y."""
        return x + step * y

    @rowwise
    def scaled(self, factor: float, x: Floats) -> Floats:
        """Return a multiple of x."""
        return factor * x

    @rowwise
    def difference(self, x: Floats, y: Floats) -> Floats:
        """Return x - y."""
        return x - y

    @rowwise
    def centered(self, scores: Floats) -> Floats:
        """Return the scores of each row less their mean."""
        return scores - scores.mean(axis=1, keepdims=True)

    @rowwise
    def take(self, x: Floats, rows: Rows) -> Floats:
        """Return the entries of some of the rows."""
        return x[rows]

    @rowwise
    def replaced(self, x: Floats, rows: Rows, values: Floats | float) -> Floats:
        """Return x with new entries for some of the rows."""
        x = x.copy()
        x[rows] = values
        return x

    @rowwise
    def mean(self, *xs: Floats) -> Floats:
        """Return the mean of several row-wise quantities."""
        mean: Floats = np.mean(xs, axis=0)
        return mean

    # Sums over rows.

    @summed
    def length(self, x: Any) -> int:
        """Return the number of rows of x."""
        return len(x)

    def has_fewer(self, x: Floats, y: Floats) -> bool:
        """Return whether x has fewer nonzero entries than y."""
        return self.surplus(x, y) < 0

    @summed
    def surplus(self, x: Floats, y: Floats) -> int:
        """Return the number of nonzero entries of x minus the number of y."""
        return int(np.count_nonzero(x)) - int(np.count_nonzero(y))

    @summed
    def n_curved(self, curvature: Curvature) -> int:
        """Return the number of scores with a nonzero second derivative."""
        return int(np.count_nonzero(curvature.diagonal()))

    @rowwise
    def thinned(self, curvature: Curvature, stride: int) -> Curvature:
        """Return the second derivatives of one row in ``stride``, see ``thinned``."""
        return thinned(curvature, stride)

    @summed
    def inner(self, x: Floats, y: Floats) -> float:
        """Return <x, y>."""
        return float(np.vdot(x, y))

    @summed
    def inner_size(self, x: Floats, y: Floats) -> float:
        """Return the sum of the absolute terms of <x, y>."""
        return float(np.vdot(np.abs(x), np.abs(y)))

    @summed
    def size(self, x: Floats) -> float:
        """Return the sum of the absolute values of x."""
        return float(np.abs(x).sum())

    @summed
    def column_sums(self, dual: Floats) -> Floats:
        """Return the sum of u over the rows: its product with an intercept column."""
        return np.atleast_1d(total_of_rows(dual))

    # Maxima and samples.

    @maximal
    def largest(self, x: Floats) -> float:
        """Return the largest absolute value of an entry."""
        return max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))

    def every(self, x: Any, step: int) -> Any:
        """Return the entries of every ``step``-th row."""
        return x[::step]


class DualsOfRisk(RowNumbers):
    """The quantities of the risk of rows that lower bounds by a dual point u need.

    Attributes
    ----------
    design : Design
    loss : DualLoss
    oracle : Loss
    targets : ndarray of shape (n,) or as the loss asks
    weights : ndarray of shape (n,)
    """

    design: Design
    loss: DualLoss
    oracle: Loss
    targets: Any
    weights: Floats
    _sizes: dict[str, Any]

    @rowwise
    def zero_scores(self) -> Floats:
        """Return the scores of w = 0."""
        return self.design.zero_scores()

    @rowwise
    def leeway(self, dual: Floats) -> Floats:
        """Return how far each u_i may move up and down in the domain of R*."""
        return self.oracle.leeway(dual, self.targets, self.weights)

    @rowwise
    def inward(self, dual: Floats, share: float) -> Floats:
        """Return u moved away from the boundary of the domain of R* by a share."""
        return self.oracle.inward(dual, self.targets, self.weights, share)

    @summed
    def derivatives_of_shift(self, scores: Floats, shift: Floats) -> Floats:
        """Return the derivatives of R with respect to a common shift of all scores.

        The first row has the first derivatives, further rows have the second
        derivatives.
        """
        args = scores, shift, self.targets, self.weights
        return np.vstack(self.oracle.derivatives_of_shift(*args))

    @summed
    def conjugate_and_size(self, dual: Floats) -> Floats:
        """Return R*(u) and approximately the sum of its absolute terms, in an array."""
        args = dual, self.targets, self.weights
        return np.array(self.oracle.conjugate_and_size(*args))

    @summed
    def conjugate_rest(self, dual: Floats) -> float:
        """Return the sum of the absolute terms of R*(u), minus |R*(u)|."""
        return self.oracle.conjugate_size(dual, self.targets, self.weights, 0.0)

    @summed
    def conjugate_at(self, dual: Floats, scores: Floats) -> float:
        """Return R*(u) of a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.conjugate_at(dual, scores, *args)

    @summed
    def slack(self, dual: Floats, scores: Floats, rows: Rows) -> float:
        """Return R(z) + R*(u) - <u, z> over some rows: zero for a subgradient u."""
        args = self.targets[rows], self.weights[rows]
        height = self.oracle.value(scores, *args)
        height += self.oracle.conjugate_at(dual, scores, *args)
        return height - float(np.vdot(dual, scores))

    @summed
    def rounding(self, scores: Floats) -> float:
        """Return an error bound of values, for losses without a conjugate."""
        return self.oracle.rounding(scores, self.weights)

    @root_of_squares
    def dual_norm(self, dual: Floats, rows: Rows | None = None) -> float:
        """Return the root of sum_i u_i² / s_i, optionally over some of the rows.

        By the Cauchy-Schwarz inequality, the sum of the absolute terms of each entry of
        Xᵀu is at most this norm times the entry of ``column_sizes``.
        """
        if "weights" not in self._sizes:
            # Rows of zero weight have dual variables of zero, so any divisor is valid.
            weights = self.design.row_weights(self.weights)
            self._sizes["weights"] = 1.0 / np.maximum(weights, TINY)
        inverse: Floats = self._sizes["weights"]
        shares = (dual.T * (inverse if rows is None else inverse[rows])).T
        return float(np.sqrt(np.vdot(dual, shares)))

    @root_of_squares
    def distance(self, dual: Floats) -> float:
        """Return the distance of u from the point at which R* is evaluated."""
        return self.oracle.distance(dual, self.targets, self.weights)

    @root_of_squares
    def distance_at(self, dual: Floats, scores: Floats) -> float:
        """Return the ``distance`` of a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.distance_at(dual, scores, *args)

    def imbalance(self, dual: Floats, sums: Floats) -> float:
        """Return the fraction of u that has to change for its column sums to vanish."""
        return self.oracle.imbalance(dual, sums, self.targets, self.weights)

    def balance(self, dual: Floats) -> Floats:
        """Return a nearby dual of the domain whose columns sum to zero."""
        return self.oracle.balance(dual, self.targets, self.weights)

    def balance_near_optimum(self, dual: Floats) -> Floats:
        """Return a balanced dual with the least increase of R*, near an optimum."""
        return self.oracle.balance_near_optimum(dual, self.targets, self.weights)

    def condensed(self, dual: Floats) -> OfRows:
        """Return a few rows that replace all rows in ``imbalance`` and ``balance``."""
        args = dual, self.targets, self.weights
        return condensed(*args, invariant=self.loss.invariant)

    def balance_with(self, dual: Floats, others: OfRows) -> Floats:
        """Return the dual point of these rows, balanced together with other rows."""
        both = joined([(dual, self.targets, self.weights), others])
        return self.oracle.balance(*both)[: len(dual)]

    @cached_property
    def infimum(self) -> float:
        """The infimum of R over all scores, -R*(0), minus its rounding error."""
        zero = self.zero_scores()
        height, size = self.conjugate_and_size(zero)
        return -float(height) - rounding(self.n_scored) * float(size) if height else 0.0

    @property
    def n_scored(self) -> int:
        """Number of rows of scores."""
        if "scored" not in self._sizes:
            self._sizes["scored"] = self.length(self.zero_scores())
        return int(self._sizes["scored"])
