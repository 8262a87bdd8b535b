"""Nonlinear conjugate gradients for smooth losses (Aggarwal 2020, section 5.7.1)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import exact


def cg(objective: Objective, w: Floats, *, beta: str = "polak-ribiere") -> Solver:
    """Yield the iterates of conjugate gradients with an exact line search.

    A direction is the negative gradient plus a multiple of the last direction. A
    direction that is not a descent direction is replaced by the negative gradient, a
    restart.

    Parameters
    ----------
    objective : Objective
        Differentiable objective.
    w : ndarray of shape (q,)
        Starting point.
    beta : {"fletcher-reeves", "hestenes-stiefel", "polak-ribiere"}
        The multiple, of gradients g, g' before and after a step along p: ``<g', g'> /
        <g, g>``; ``<g', g' - g> / <p, g' - g>``, which gives conjugacy if the gradient
        is linear along p (eq. 5.22 and 5.23); ``<g', g' - g> / <g, g>``. As conjugacy
        deteriorates, the last two tend to zero, which is a restart. Negative values are
        replaced by zero.

    Returns
    -------
    status : str
        "no_step": no direction decreases the objective, as happens at an optimum.
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
        p = _multiple(beta, old, new.gradient, p) * p - new.gradient
        if not float(new.gradient @ p) < 0.0:
            p = -new.gradient
        point = new


def _multiple(beta: str, old: Floats, new: Floats, p: Floats) -> float:
    """Return the multiple of the last direction in the next one."""
    if beta == "fletcher-reeves":
        return float(new @ new) / float(old @ old)
    change = new - old
    scale = float(p @ change) if beta == "hestenes-stiefel" else float(old @ old)
    return max(0.0, float(new @ change) / scale) if scale > 0.0 else 0.0
