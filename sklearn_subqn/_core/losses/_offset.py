"""Losses of scores to which a given offset of each row is added."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import Floats, RowForm
from ._composition import ScoreMap
from ._mapped import Mapped


class Offsets(ScoreMap):
    """The map from scores z to z + o; columns of targets (n, 2) are y and o.

    Offsets are columns of targets, so that they are selected together with rows. The
    conjugate of R(z + o) at u is R*(u) - <u, o>.
    """

    is_identity = False

    def inputs(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        return scores + targets[:, 1], _first(targets), weights

    def duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        return dual, _first(targets), weights


class OffsetLoss(Mapped):
    """The loss R(z + o) for the R of another oracle, of one score per row."""

    by_columns = True

    @property
    def looped(self) -> RowForm | None:
        return self._R.looped

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        conjugate = super().conjugate(dual, targets, weights)
        return conjugate - float(dual @ targets[:, 1])

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        added = float(np.abs(dual) @ np.abs(targets[:, 1]))
        return super().conjugate_size(dual, targets, weights, conjugate) + 2.0 * added

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        return self._R.distance(*self._A.duals(dual, targets, weights))

    def leeway(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self._R.leeway(*self._A.duals(dual, targets, weights))

    def inward(
        self, dual: Floats, targets: Any, weights: Floats, share: float
    ) -> Floats:
        dual, targets, weights = self._A.duals(dual, targets, weights)
        return self._R.inward(dual, targets, weights, share)

    def curvature_radius(self, scores: Floats, targets: Any) -> Floats:
        return self._R.curvature_radius(scores + targets[:, 1], _first(targets))

    def neutral_variables(self, targets: Any) -> Floats:
        return self._R.neutral_variables(_first(targets))

    def dual_scale(self, targets: Any, weights: Floats) -> float:
        return self._R.dual_scale(_first(targets), weights)


def _first(targets: Any) -> Floats:
    return np.ascontiguousarray(targets[:, 0])
