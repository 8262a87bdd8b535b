"""Accelerated proximal gradient descent (Aggarwal, section 5.8.2; Beck, Teboulle)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Objective, Point
from ..steps.intercepts import minimize_intercept


def fista(objective: Objective, w: Floats) -> Solver:
    """Yield the iterates of FISTA with backtracking and restarts.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth, its regularizer an ``ElasticNet``.
    w : ndarray of shape (q,)
        Starting point.

    Returns
    -------
    status : str
        "no_step": no step size is small enough, as happens where rounding is all that
        is left.

    Notes
    -----
    The momentum of Beck and Teboulle (2009, eq. 4.2-4.3) is set back to zero whenever
    the objective rises (O'Donoghue and Candès 2015, eq. 12). Free parameters are
    minimized over at every iterate, which keeps the bounds valid.
    """
    point = minimize_intercept(objective.at(w))
    ahead, momentum, step = point, 1.0, 1.0
    while True:
        yield Iterate(point, None, point.lower_bound, "fista")
        found = _proximal_step(ahead, step)
        if found is None:
            if ahead is point:
                return Status.NO_STEP
            ahead, momentum = point, 1.0
            continue
        new, step = found
        new = minimize_intercept(new)
        if new.value > point.value and ahead is not point:
            ahead, momentum = point, 1.0
            continue
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        factor = 1.0 + (momentum - 1.0) / following
        # Scores are linear, so that going ahead takes no product with X.
        ahead = (
            minimize_intercept(point.towards(new).point(factor))
            if factor > 1.0
            else new
        )
        point, momentum = new, following
        step *= 1.25


def _proximal_step(point: Point, step: float) -> tuple[Point, float] | None:
    """Return the proximal gradient step whose quadratic upper bound holds."""
    o = point.objective
    for _ in range(100):
        w = o.elastic_net.prox(point.w - step * point.risk_gradient, step * o.alpha)
        new = o.at(w)
        dw = w - point.w
        rise = float(point.risk_gradient @ dw) + float(dw @ dw) / (2.0 * step)
        if new.risk <= point.risk + rise:
            return new, step
        step *= 0.5
    return None
