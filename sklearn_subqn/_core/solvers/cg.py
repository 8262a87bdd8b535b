"""Nonlinear conjugate gradients for smooth losses (Aggarwal 2020, section 5.7.1)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import exact


def cg(objective: Objective, w: Floats) -> Solver:
    """Yield the iterates of conjugate gradients with an exact line search.

    A direction is the negative gradient plus ``beta`` times the last direction, with
    beta = max(0, <g', g' - g> / <g, g>) (Polak and Ribière). As conjugacy deteriorates
    beta becomes zero by itself, which is a restart; so is a direction that does not
    descend.

    Parameters
    ----------
    objective : Objective
        Differentiable.
    w : ndarray of shape (q,)
        Starting point.

    Returns
    -------
    status : str
        "no_step": no direction leads further down, as happens at an optimum.
    """
    point = minimize_intercept(objective.at(w))
    p = -point.gradient
    while True:
        yield Iterate(point, point.cut, point.lower_bound, "cg", Dual(point.dual))
        old = point.gradient
        line = point.along(p)
        step = exact(line)
        if not 0.0 < step < np.inf:
            return Status.NO_STEP
        new = minimize_intercept(line.point(step))
        beta = float(new.gradient @ (new.gradient - old)) / float(old @ old)
        p = max(0.0, beta) * p - new.gradient
        if not float(new.gradient @ p) < 0.0:
            p = -new.gradient
        point = new
