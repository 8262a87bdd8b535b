"""The oracle of a loss composed with a linear map."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rounding import TINY, rounding
from ._base import TIE_TOLERANCE, Derivatives, Floats, Mask, PiecewiseQuadratic, Rows
from ._composition import ScoreMap
from ._curvature import Curvature, as_curvature
from ._loss import Loss


class Mapped(Loss):
    """The loss R(A z) for the R of another oracle; dual points are dual to z.

    Parameters
    ----------
    oracle : Loss
        The loss R.
    score_map : ScoreMap
        A.
    """

    by_columns = False

    def __init__(self, oracle: Loss, score_map: ScoreMap) -> None:
        self._R, self._A = oracle, score_map
        self.analytic, self.ranks = oracle.analytic, oracle.ranks
        self.counts_rows, self.steep = oracle.counts_rows, oracle.steep
        self.joint = oracle.joint or score_map.joint
        self.has_margin = oracle.has_margin and score_map.is_injective

    @property
    def has_conjugate(self) -> bool:
        return self._A.is_injective and self._R.has_conjugate

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self._R.value(*self._A.inputs(scores, targets, weights))

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        dual = self._R.subgradient(*self._A.inputs(scores, targets, weights))
        return self._A.adjoint(dual, scores)

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        value, dual = self._R.evaluate(*self._A.inputs(scores, targets, weights))
        return value, self._A.adjoint(dual, scores)

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        z, targets, _ = self._A.inputs(scores, targets, np.ones(len(scores)))
        return self._R.kink_rows(z, targets)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        dual = self._R.argsup(*self._line(scores, dscores, targets, weights))
        return self._A.adjoint(dual, scores)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        return self._R.restrict(*self._line(scores, dscores, targets, weights))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        return self._R.derivatives(*self._line(scores, dscores, targets, weights))

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> Curvature:
        z, *others = self._A.inputs(scores, targets, weights)
        found = self._R.curvature(z, *others)
        curvature = as_curvature(found, z, type(self._R).__name__)
        return self._A.curvature(curvature, scores)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        if not self.has_conjugate:
            return super().conjugate(dual, targets, weights)
        return self._R.conjugate(*self._duals(dual, targets, weights))

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        args = *self._duals(dual, targets, weights), conjugate
        return self._R.conjugate_size(*args)

    def rounding(self, scores: Floats, weights: Floats) -> float:
        # The tolerance of kinks includes the rounding errors of the scores of a row.
        largest = np.abs(self._A.forward(scores)).max(axis=1)
        share = 2.0 * TIE_TOLERANCE + 4.0 * rounding(scores.size)
        return share * float(weights @ np.maximum(largest, 1.0))

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        if not self._A.is_injective:
            return 0.0
        used = self._duals(dual, targets, weights)[0]
        left = dual - self._A.adjoint(used, dual)
        positive = np.maximum(weights, TINY)[:, np.newaxis]
        return float(np.sqrt(np.sum(left * (left / positive))))

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        if not self._A.joint:
            used = self._duals(dual, targets, weights)
            return self._R.imbalance(used[0], self._A.lifted(sums), *used[1:])
        columns = zip(dual.T, sums, strict=True)
        args = targets, weights
        return max(self._R.imbalance(u, np.atleast_1d(s), *args) for u, s in columns)

    def determined(self, free: Floats) -> Floats:
        if not self._R.invariant:
            return free
        return self._A.least(self._R.determined(self._A.forward(free)))

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        if not self._A.joint:
            balanced = self._R.balance(*self._duals(dual, targets, weights))
            return self._A.adjoint(balanced, dual)
        columns = [self._R.balance(u, targets, weights) for u in dual.T]
        return np.stack(columns, axis=1)

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        used = self._duals(dual, targets, weights)
        return self._A.adjoint(self._R.balance_near_optimum(*used), dual)

    def feasible(self, dual: Floats, targets: Any, weights: Floats) -> Mask:
        feasible = self._R.feasible(*self._duals(dual, targets, weights))
        if self._A.joint:
            feasible = np.asarray(feasible.reshape(dual.shape).all(axis=1))
        return feasible

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self._R.dual_variables(*self._duals(dual, targets, weights))

    def neutral_variables(self, targets: Any) -> Floats:
        return self._R.neutral_variables(targets)

    def overflows(self, scores: Floats, targets: Any, weights: Floats) -> bool:
        return self._R.overflows(*self._A.inputs(scores, targets, weights))

    def score_scale(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self._R.score_scale(*self._A.inputs(scores, targets, weights))

    def dual_scale(self, targets: Any, weights: Floats) -> float:
        return self._R.dual_scale(targets, weights)

    def _line(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Any:
        """Return scores and a direction in the set's rows, with targets and weights."""
        z, *others = self._A.inputs(scores, targets, weights)
        return z, self._A.forward(dscores), *others

    def _duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        """Return the set's dual point, targets and weights for a dual of scores."""
        u, *others = self._A.duals(dual, targets, weights)
        return self._R.projected(u, *others), *others
