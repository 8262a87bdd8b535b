"""Newton's method on the face of a box (Bertsekas 1982, two-metric projection).

Coordinates at a bound beyond which J would fall are left there. They leave a face of
the box, on which a step of Newton's method

    H_FF p_F = -g_F,    w <- the projection of w + t p onto the box,

is taken with the first t = 1, 1/2, ... that lowers J enough. Coordinates that reach
their bounds on the way stay on them. Once the face is that of the optimum the steps are
those of Newton's method without bounds, which squares the error.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..losses._base import Floats, Mask
from ..objectives.hessian import Hessian
from ..objectives.objective import Objective, Point
from ..regularizers import Bounded
from ..rounding import MOST_STEPS, ROUNDED
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import SUFFICIENT, rounding_of
from ..steps.newton_direction import CG_ACCURACY, conjugate_gradients, is_factorized


def bounded_newton(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of Newton's method on faces of a box.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, its regularizer is ``Bounded``,
        without an L1 norm.
    start : Start
        Starting point.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        lowers the objective, or "no_progress": neither does the largest violation of
        the conditions fall. Both happen where rounding is all that is left.
    """
    box = objective.regularizer
    assert isinstance(box, Bounded)
    point = minimize_intercept(start.or_origin(objective))
    value, worst = np.inf, np.inf
    while True:
        yield Iterate(point, None, point.lower_bound, "newton on a face")
        free = ~box.is_held(point.w, point.gradient)
        g = np.where(free, point.gradient, 0.0)
        last, worst = worst, float(np.abs(g).max())
        if not worst:
            return Status.STATIONARY
        if point.value >= value and worst >= last:
            return Status.NO_PROGRESS
        value = point.value
        new = _search(point, _direction(point, free, g), g, box)
        if new is None:
            return Status.NO_STEP
        point = minimize_intercept(new)


def _direction(point: Point, free: Mask, g: Floats) -> Floats:
    """Return the step of Newton's method for the free coordinates."""
    o = point.objective
    if o.risk.makes_matrix(point.curvature) and is_factorized(o, CG_ACCURACY):
        inside = np.flatnonzero(free)
        matrix = point.hessian.matrix()[np.ix_(inside, inside)]
        # Losses that are linear in places have no curvature there.
        matrix[np.diag_indices_from(matrix)] += ROUNDED * matrix.diagonal().max()
        p = np.zeros_like(g)
        p[inside] = np.linalg.solve(matrix, -g[inside])
        return p
    return conjugate_gradients(_OnFace(point, free), -g)[0]


class _OnFace(Hessian):
    """The Hessian of J on the free coordinates."""

    def __init__(self, point: Point, free: Mask) -> None:
        super().__init__(point.objective, point.w, point.curvature)
        self._free = free

    def apply(self, v: Floats) -> Floats:
        """Return the product with v, which vanishes off the face."""
        return np.where(self._free, super().apply(v), 0.0)


def _search(point: Point, p: Floats, g: Floats, box: Bounded) -> Point | None:
    """Return the first of the steps 1, 1/2, ... that lowers J enough, projected.

    Up to rounding, which near the optimum exceeds what a good step gains.
    """
    allowed = point.value + rounding_of(point)
    for n_halvings in range(MOST_STEPS):
        w = box.nearest(point.w + 0.5**n_halvings * p)
        new = point.objective.at(w)
        if new.value <= allowed + SUFFICIENT * float(g @ (w - point.w)):
            return new
    return None
