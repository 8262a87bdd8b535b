"""Wide data in coordinates of the span of their rows, where products are short.

A squared norm makes optimal coefficients combinations of rows (Kimeldorf and Wahba
1971): with n rows of many more features, n coordinates a score are enough. Norms and
scores are the same there, and so are the methods, step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...driver import Iterate, Start, Stopping
from ...losses._base import Floats
from ...objectives.objective import Dual, Objective, Point
from ...objectives.risk import Risk
from ...regularizers import L2
from . import Related

# Bounds are computed from X itself each time that the gap has shrunk by this factor.
_CLOSER = 0.5


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
    space = _RowSpace(objective)
    reduced = space.objective
    passes, gap, best, inner = 0.0, np.inf, np.inf, -np.inf

    def lift(iterate: Iterate, last: bool) -> Iterate:
        nonlocal passes, gap, best, inner
        point = space.point(iterate.point)
        objective.design.count(reduced.design, reduced.passes - passes)
        passes = reduced.passes
        best, inner = min(best, point.value), max(inner, iterate.lower_bound)
        proof, bound = iterate.proof, -np.inf
        if proof is not None:
            proof = Dual(proof.u)
        if proof is not None and iterate.lower_bound == inner:
            now = best - inner
            if now <= max(_CLOSER * gap, stopping.allowed_gap(best)):
                gap = now
                bound = objective.dual_value(objective.cut(proof))
        return Iterate(point, None, bound, iterate.phase, proof)

    def lower(start: Start) -> Start:
        return start._replace(w=space.coordinates(start.w), scores=None)

    return Related(
        reduced,
        lift,
        is_solved=lambda best: False,
        max_iter=np.inf,
        lower=lower,
    )


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

    def _parts(self, w: Floats, design: Any) -> tuple[Floats, Floats]:
        """Return coefficients of shape (features, k), and intercepts."""
        coef = w[: design.n_coef].reshape(design.n_features, -1)
        return coef, w[design.n_coef :]
