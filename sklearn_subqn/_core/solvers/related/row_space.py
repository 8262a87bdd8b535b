"""Wide data in coordinates of the span of their rows, where products are short.

A squared norm makes optimal coefficients combinations of rows (Kimeldorf and Wahba
1971): with n rows of many more features, n coordinates a score are enough. Norms and
scores are the same there, and so are the methods, step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...driver import Iterate, Stopping
from ...losses._base import Floats
from ...objectives.objective import Dual, Objective, Point
from ...objectives.risk import Risk
from ...regularizers import L2
from . import Related
from .coordinates import in_coordinates


def row_space(objective: Objective, stopping: Stopping) -> Related:
    """Return the problem in the span of the rows.

    Rows of features of very different scales lose digits there. Bounds are those of X,
    and so is the objective in the end.

    Parameters
    ----------
    objective : Objective
        L2-regularized, of dense data with fewer rows than features.
    stopping : Stopping
        What gap ends the run.
    """
    return in_coordinates(objective, stopping, _RowSpace(objective))


class _RowSpace:
    """X = A Qᵀ with orthonormal columns of Q, of shape (d, n).

    Attributes
    ----------
    objective : Objective
        That of A, of shape (n, n).
    """

    def __init__(self, objective: Objective) -> None:
        self._whole = objective
        design = objective.design
        reduced, self._basis = design.in_row_space()
        self.objective = Objective(
            Risk(reduced, objective.loss, objective.targets, objective.weights),
            L2(reduced.n_coef),
            objective.alpha,
        )

    def coordinates(self, w: Floats) -> Floats:
        """Return parameters of the same scores, of the least norm."""
        coef, free = self._parts(w, self._whole.design)
        return np.concatenate([(self._basis.T @ coef).ravel(), free])

    def point(self, point: Point) -> Point:
        """Return a point of the reduced objective as one of the whole."""
        coef, free = self._parts(point.w, self.objective.design)
        w = np.concatenate([(self._basis @ coef).ravel(), free])
        # The basis is as large as X.
        self._whole.design.passes += 1.0
        # However few its updates are, its scores are not a product with X.
        return self._whole.at(w, point.scores, drift=np.inf)

    def dual(self, dual: Dual) -> Dual:
        """Return the dual point alone: its bound is one of X itself."""
        return Dual(dual.u)

    def bound(self, iterate: Iterate, last: bool) -> float:
        """Return the bound of the dual point that proves one, by X itself."""
        if iterate.proof is None:
            return -np.inf
        return self._whole.dual_value(self._whole.cut(self.dual(iterate.proof)))

    def _parts(self, w: Floats, design: Any) -> tuple[Floats, Floats]:
        """Return coefficients of shape (features, k), and intercepts."""
        coef = w[: design.n_coef].reshape(design.n_features, -1)
        return coef, w[design.n_coef :]
