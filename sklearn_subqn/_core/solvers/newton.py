"""Line-searched Newton method for smooth losses (Aggarwal, ch. 5.4-5.7)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status, Stopping
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..rounding import EPS
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import newton_step
from ..steps.newton_direction import NewtonDirections, is_short, is_wide


def newton(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    """Yield the iterates of Newton's method with an exact line search.

    Once differentiable, piecewise quadratic losses have a generalized Hessian; where
    the rows in error no longer change, one step is exact.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, or generalized ones.
    w : ndarray of shape (q,)
        Starting point.
    stopping : Stopping, optional
        What gap ends the run; directions are no more accurate than that asks for.

    Returns
    -------
    status : str
        "no_step": no direction leads further down, as happens at an optimum.
    """
    point, follows_intercept = minimize_intercept(objective.at(w)), True
    directions, gap = NewtonDirections(), np.inf
    while True:
        minimal = point if follows_intercept else minimize_intercept(point)
        yield Iterate(
            minimal, minimal.cut, minimal.lower_bound, "newton", Dual(minimal.dual)
        )
        last, gap = gap, minimal.value - minimal.lower_bound
        allowed = stopping.allowed_gap(point.value) if stopping else 0.0
        p = directions.at(point, allowed=allowed)
        line = point.along(p)
        rows_apart = objective.risk.has_rows_apart(point.curvature)
        step = newton_step(line, rows_apart=rows_apart)
        # Twice what a Newton step gains is the slope: where that is lost in J, and the
        # last step has not helped the bound either, no further one would.
        lost = -float(p @ point.gradient) <= EPS * abs(point.value)
        if not 0.0 < step < np.inf or (lost and not gap < 0.5 * last):
            return Status.NO_STEP
        follows_intercept = follows_intercept and not (
            is_wide(objective) and is_short(step)
        )
        point = line.point(step)
        if follows_intercept:
            point = minimize_intercept(point)
