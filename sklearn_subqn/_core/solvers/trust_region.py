"""Trust-region Newton method for smooth losses (Aggarwal 2020, section 5.6.3.1)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..rounding import EPS
from ..steps.intercepts import minimize_intercept
from ..steps.newton_direction import conjugate_gradients, preconditioner


def trust_region(
    objective: Objective,
    w: Floats,
    *,
    delta: float | None = None,
    low: float = 0.25,
    high: float = 0.75,
) -> Solver:
    """Yield the iterates of Newton's method with steps bounded by a trust region.

    The quadratic model is minimized within the region by conjugate gradients, which
    need products with the Hessian only. The radius adapts to the ratio of actual and
    predicted decrease; a step that does not decrease the objective is rejected.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss that has second derivatives, possibly generalized
        ones.
    w : ndarray of shape (q,)
        Starting point.
    delta : float, optional
        Initial radius in the Euclidean norm; see the notes for the default.
    low, high : float
        The radius is halved if the decrease of the objective is below the share ``low``
        of the predicted decrease. It is doubled if the decrease is above the share
        ``high`` and the step ended at the boundary.

    Returns
    -------
    status : str
        "no_step": the model predicts no decrease, as happens at an optimum.

    Notes
    -----
    By default lengths are measured in the norm of the diagonal of the first Hessian,
    which is independent of the scales of features. The initial radius is the length of
    a gradient step in this norm.
    """
    point = minimize_intercept(objective.at(w))
    yield Iterate(point, point.cut, point.lower_bound, "trust-region", Dual(point.dual))
    if delta is None:
        diagonal = preconditioner(point.hessian)
        radius = float(np.sqrt(point.gradient @ (point.gradient / diagonal)))
    else:
        diagonal, radius = np.ones_like(w), delta
    while True:
        hessian, g = point.hessian, point.gradient
        while True:
            p, _ = conjugate_gradients(
                hessian,
                -g,
                diagonal=diagonal,
                radius=radius,
            )
            promised = -float(g @ p) - 0.5 * float(p @ hessian.apply(p))
            if not promised > EPS * abs(point.value):
                return Status.NO_STEP
            new = minimize_intercept(point.along(p).point(1.0))
            ratio = (point.value - new.value) / promised
            length = float(np.sqrt(p @ (diagonal * p)))
            if ratio < low:
                radius = 0.5 * min(radius, length)
            elif ratio > high and length >= 0.99 * radius:
                radius *= 2.0
            if ratio > 0.0:
                break
        point = new
        yield Iterate(
            point, point.cut, point.lower_bound, "trust-region", Dual(point.dual)
        )
