"""Newton's method on the face of an orthant (Byrd, Chin, Nocedal and Oztoprak 2016).

The last digits of what OWL-QN has found. Its steps must lower J, which rounding hides
once J is right to about 1e-16 of itself; the gradient is then right to the root of that
times the curvature only, and a dual point no better than its gradient.

In the orthant of the signs s of w, or of -g where w is zero and the subgradient g of
least norm is not, the penalty is linear: J is as smooth as the risk,

    J(w) = R(w) + alpha (rho <s, w> + (1 - rho) / 2 ||w||²).

The coordinates that are to stay zero, w = g = 0, leave a face of it, on which g is the
gradient of J. A step of Newton's method

    H_FF p_F = -g_F,    w <- the projection of w + p onto the orthant,

squares the error of the gradient where the face is that of the optimum. Conjugate
gradients solve for p by products with H, which rows in several places answer as well.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..losses._base import Floats
from ..objectives.objective import Hessian, Objective, Point
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import SUFFICIENT, rounding_of
from ..steps.newton_direction import conjugate_gradients


def orthant_newton(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of Newton's method on faces of orthants.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, its regularizer is an
        ``ElasticNet``.
    start : Start
        Starting point, close to the optimum.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        lowers the objective, or "no_progress": neither does the largest violation of
        the conditions fall. Both happen where rounding is all that is left.
    """
    point = minimize_intercept(start.at(objective))
    value, worst = np.inf, np.inf
    while True:
        yield Iterate(point, None, point.lower_bound, "newton on a face")
        g = objective.elastic_net.smallest_subgradient(
            point.w, point.risk_gradient, objective.alpha
        )
        last, worst = worst, float(np.abs(g).max())
        if not worst:
            return Status.STATIONARY
        if point.value >= value and worst >= last:
            return Status.NO_PROGRESS
        value = point.value
        face = _Face(point, g)
        new = _search(point, face.direction(), face.signs, g)
        if new is None:
            return Status.NO_STEP
        point = minimize_intercept(new)


class _Face(Hessian):
    """The Hessian of J on the face at a point with the subgradient g of least norm."""

    def __init__(self, point: Point, g: Floats) -> None:
        super().__init__(point.objective, point.w, point.curvature)
        self._gradient = g
        self._free = (point.w != 0.0) | (g != 0.0)
        self._free[point.objective.regularizer.n_penalized :] = True
        self.signs = np.where(point.w == 0.0, -np.sign(g), np.sign(point.w))

    def apply(self, v: Floats) -> Floats:
        """Return the product with v, which vanishes off the face."""
        return np.where(self._free, super().apply(v), 0.0)

    def direction(self) -> Floats:
        """Return an approximate solution of H p = -g."""
        return conjugate_gradients(self, -self._gradient)[0]


def _search(point: Point, p: Floats, signs: Floats, g: Floats) -> Point | None:
    """Return the first of the steps 1, 1/2, ... that lowers J enough, projected.

    Up to rounding, which near the optimum exceeds what a good step gains.
    """
    o = point.objective
    n = o.regularizer.n_penalized
    allowed = point.value + rounding_of(point)
    step = 1.0
    for _ in range(40):
        w = point.w + step * p
        w[:n][w[:n] * signs[:n] < 0.0] = 0.0
        new = o.at(w)
        if new.value <= allowed + SUFFICIENT * float(g @ (w - point.w)):
            return new
        step *= 0.5
    return None
