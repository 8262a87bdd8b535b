"""Wide data in coordinates of the span of their rows, fewer than the features.

With a squared norm optimal coefficients are combinations of rows (Kimeldorf and Wahba
1971), so n rows need only n coordinates for each score. Norms and scores are equal in
these coordinates, and so are the steps of all methods.
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

    In these coordinates, features of small scale have large relative rounding errors.
    So lower bounds and the final objective are computed from the original X.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective of dense data with fewer rows than features.
    stopping : Stopping
        Defines the gap at which the run stops.
    """
    return in_coordinates(objective, stopping, _RowSpace(objective))


class _RowSpace:
    """X = A Qᵀ with orthonormal columns of Q, of shape (d, n).

    Attributes
    ----------
    objective : Objective
        Objective with the design A, of shape (n, n).
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
        """Return the coordinates of parameters: equal scores and least norm."""
        coef, free = self._parts(w, self._whole.design)
        return np.concatenate([(self._basis.T @ coef).ravel(), free])

    def point(self, point: Point) -> Point:
        """Return a point of the reduced objective as a point of the original one."""
        coef, free = self._parts(point.w, self.objective.design)
        w = np.concatenate([(self._basis @ coef).ravel(), free])
        # A product with the basis costs as much as one with X.
        self._whole.design.passes += 1.0
        # The scores count as inaccurate, since they are not computed from X.
        return self._whole.at(w, point.scores, drift=np.inf)

    def dual(self, dual: Dual) -> Dual:
        """Return the dual point without its bound, which must be computed from X."""
        return Dual(dual.u)

    def bound(self, iterate: Iterate, last: bool) -> float:
        """Return the lower bound of the iterate's dual point, computed from X."""
        if iterate.proof is None:
            return -np.inf
        return self._whole.dual_value(self._whole.cut(self.dual(iterate.proof)))

    def _parts(self, w: Floats, design: Any) -> tuple[Floats, Floats]:
        """Return coefficients of shape (features, k), and intercepts."""
        coef = w[: design.n_coef].reshape(design.n_features, -1)
        return coef, w[design.n_coef :]
