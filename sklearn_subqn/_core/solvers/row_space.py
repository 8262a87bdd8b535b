"""Wide data in coordinates of the span of their rows, where products are short.

A squared norm makes optimal coefficients combinations of rows (Kimeldorf and Wahba
1971): with n rows of many more features, n coordinates a score are enough. Norms and
scores are the same there, and so are the methods, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..losses._base import Floats
from ..objective import Objective, Point
from ..regularizers import L2
from .run import Iterate, Solver, Start

# The basis takes the time of about a sixth of the rows in products for each score, and
# the room of X.
_MAX_ROWS = 2000
_MIN_FEATURES_PER_ROW = 2

# Bounds are computed from X itself each time that the gap has shrunk by this factor.
_CLOSER = 0.5


def has_short_rows(objective: Objective) -> bool:
    """Whether it pays to change to the span of the rows."""
    design = objective.design
    return (
        isinstance(objective.regularizer, L2)
        and not design.is_sparse
        and design.n_rows <= _MAX_ROWS
        and design.n_features >= _MIN_FEATURES_PER_ROW * design.n_rows
    )


def in_row_space(
    objective: Objective,
    start: Start,
    solver: Callable[[Objective, Start], Solver],
    tol: float,
) -> Solver:
    """Yield the iterates of a solver in the span of the rows, in terms of all features.

    Rows of features of very different scales lose digits there. Bounds are those of X,
    and so is the objective in the end.

    Parameters
    ----------
    objective : Objective
        L2-regularized, of dense data with fewer rows than features.
    start : Start
    solver : callable
        Returns the iterates for an objective and a start, with dual points where
        they have bounds.
    tol : float
        Relative gap at which the run is to end.

    Returns
    -------
    status : str
        That of the solver.
    """
    space = _RowSpace(objective)
    reduced = space.objective
    begin = start._replace(w=space.coordinates(start.w), scores=None)
    iterates = solver(reduced, begin)
    passes, gap, best, bound, inner = 0.0, np.inf, np.inf, -np.inf, -np.inf
    while True:
        try:
            iterate = next(iterates)
        except StopIteration as stop:
            return str(stop.value)
        point = space.point(iterate.point)
        objective.design.count(reduced.design, reduced.passes - passes)
        passes = reduced.passes
        best, inner = min(best, point.value), max(inner, iterate.lower_bound)
        dual = iterate.dual
        if dual is not None and iterate.lower_bound == inner:
            now = best - inner
            if now <= max(_CLOSER * gap, tol * abs(best)):
                gap = now
                bound = max(bound, objective.dual_value(objective.cut(dual)))
        yield Iterate(point, None, bound, iterate.phase, dual)


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
            reduced,
            objective.targets,
            objective.loss,
            L2(reduced.n_coef),
            objective.alpha,
            objective.weights,
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
