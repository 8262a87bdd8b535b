"""Classical BFGS and limited-memory BFGS for smooth objectives (Yu 2009, ch. 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..steps.intercepts import minimize_intercept
from ..steps.quasi_newton import InverseHessian, has_curvature


def bfgs(
    objective: Any,
    w: Floats,
    hessian: InverseHessian,
    *,
    search: Callable[[Any], float],
    epsilon: float = 0.0,
) -> Solver:
    """Yield the iterates of BFGS (Alg. 2.1) or, with limited memory, L-BFGS (Alg. 2.2).

    Parameters
    ----------
    objective : Objective
        Differentiable; offers ``at(w)``.
    w : ndarray of shape (q,)
        Starting point.
    hessian : InverseHessian
        The estimate B of the inverse Hessian, full or of limited memory.
    search : callable
        Line search, from a line to a step size. Its steps satisfy the curvature
        condition (2.8), so that B remains positive definite.
    epsilon : float
        Norm of the gradient at which the method stops.

    Returns
    -------
    status : str
        "stationary": the gradient vanishes. "short": its norm is at most ``epsilon``.
        "no_descent": -B g is no descent direction, which happens on nonsmooth
        objectives. "unbounded", "no_step": outcome of the line search.
    """
    point = first = objective.at(w)
    yield Iterate(point, point.cut, point.lower_bound, "bfgs")
    while True:
        if not point.gradient.any():
            return Status.STATIONARY
        if epsilon and float(np.linalg.norm(point.gradient)) <= epsilon:
            return Status.SHORT
        p = -hessian.apply(point.gradient)
        if not float(point.steepest(p) @ p) < 0.0:
            if hessian.pristine:
                return Status.NO_DESCENT
            hessian.reset()
            continue
        line = point.along(p)
        step = search(line)
        if step == float("inf"):
            return Status.UNBOUNDED
        if not step > 0.0:
            if hessian.pristine:
                if point is not first:
                    # Scores are computed anew, since accumulated rounding errors weaken
                    # the lower bound.
                    point = objective.at(point.w)
                    yield Iterate(point, point.cut, point.lower_bound, "bfgs")
                return Status.NO_STEP
            hessian.reset()
            continue
        new = minimize_intercept(line.point(step))
        dw, dg = new.w - point.w, new.gradient - point.gradient
        # Minimization over free parameters after the line search may violate (2.8) for
        # dw, so pairs without positive curvature are skipped.
        if has_curvature(dw, dg):
            hessian.update(dw, dg)
        point = new
        yield Iterate(point, point.cut, point.lower_bound, "bfgs")
