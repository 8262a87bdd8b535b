"""Dual points of the risk of rows: conjugates, what rounding leaves, and balance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Rows
from ..losses._dual_loss import DualLoss
from ..losses._loss import Loss
from ..places.condensed import OfRows, condensed, joined
from ..places.parts import root_of_squares, rowwise, summed
from ..places.row_numbers import RowNumbers
from ..rounding import TINY, rounding
from ..rows.design import Design


class DualsOfRisk(RowNumbers):
    """The quantities of the risk of rows that lower bounds by a dual point u ask for.

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
        """Return by how much each u_i may change either way in the domain of R*."""
        return self.oracle.leeway(dual, self.targets, self.weights)

    @summed
    def conjugate_and_size(self, dual: Floats) -> Floats:
        """Return R*(u), and about what the sizes of its terms sum to, in an array."""
        args = dual, self.targets, self.weights
        return np.array(self.oracle.conjugate_and_size(*args))

    @summed
    def conjugate_rest(self, dual: Floats) -> float:
        """Return the sum of the sizes of the terms of R*(u), less the size of R*(u)."""
        return self.oracle.conjugate_size(dual, self.targets, self.weights, 0.0)

    @summed
    def conjugate_at(self, dual: Floats, scores: Floats) -> float:
        """Return R*(u) of a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.conjugate_at(dual, scores, *args)

    @summed
    def slack(self, dual: Floats, scores: Floats, rows: Rows) -> float:
        """Return R(z) + R*(u) - <u, z> for some rows, zero for a subgradient u."""
        args = self.targets[rows], self.weights[rows]
        height = self.oracle.value(scores, *args)
        height += self.oracle.conjugate_at(dual, scores, *args)
        return height - float(np.vdot(dual, scores))

    @summed
    def rounding(self, scores: Floats) -> float:
        """Return by how much values may be off, of losses without a conjugate."""
        return self.oracle.rounding(scores, self.weights)

    @root_of_squares
    def dual_norm(self, dual: Floats, rows: Rows | None = None) -> float:
        """Return the root of sum_i u_i² / s_i, perhaps of some of the rows.

        By the inequality of Cauchy and Schwarz it bounds the absolute sums of the terms
        of Xᵀu, in units of ``column_sizes``.
        """
        inverse = self._inverse_weights
        shares = (dual.T * (inverse if rows is None else inverse[rows])).T
        return float(np.sqrt(np.vdot(dual, shares)))

    @root_of_squares
    def distance(self, dual: Floats) -> float:
        """Return how far u is from the point at which R* is evaluated."""
        return self.oracle.distance(dual, self.targets, self.weights)

    @root_of_squares
    def distance_at(self, dual: Floats, scores: Floats) -> float:
        """Return ``distance`` of a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.distance_at(dual, scores, *args)

    def imbalance(self, dual: Floats, sums: Floats) -> float:
        """Return a share of u, changed by which it makes up for column sums."""
        return self.oracle.imbalance(dual, sums, self.targets, self.weights)

    def balance(self, dual: Floats) -> Floats:
        """Return a dual near by, of the domain, whose columns sum to zero."""
        return self.oracle.balance(dual, self.targets, self.weights)

    def balance_near_optimum(self, dual: Floats) -> Floats:
        """Return ``balance`` at the least cost, where u is nearly optimal."""
        return self.oracle.balance_near_optimum(dual, self.targets, self.weights)

    def condensed(self, dual: Floats) -> OfRows:
        """Return a few rows that stand for all in ``imbalance`` and ``balance``."""
        args = dual, self.targets, self.weights
        return condensed(*args, invariant=self.loss.invariant)

    def balance_with(self, dual: Floats, others: OfRows) -> Floats:
        """Return the dual point of the rows, balanced with that of other rows."""
        both = joined([(dual, self.targets, self.weights), others])
        return self.oracle.balance(*both)[: len(dual)]

    @cached_property
    def infimum(self) -> float:
        """The infimum of R over all scores, -R*(0), or a little less."""
        zero = self.zero_scores()
        height, size = self.conjugate_and_size(zero)
        return -float(height) - rounding(self.n_scored) * float(size) if height else 0.0

    @property
    def n_scored(self) -> int:
        """Number of rows of scores."""
        if "scored" not in self._sizes:
            self._sizes["scored"] = self.length(self.zero_scores())
        return int(self._sizes["scored"])

    @property
    def knows_subgradients_only(self) -> bool:
        """Whether R* is known at subgradients and their scores only."""
        return not self.loss.has_conjugate

    @property
    def _inverse_weights(self) -> Floats:
        if "weights" not in self._sizes:
            # Rows without weight have no dual, so that any divisor is right.
            weights = self.design.row_weights(self.weights)
            self._sizes["weights"] = 1.0 / np.maximum(weights, TINY)
        inverse: Floats = self._sizes["weights"]
        return inverse
