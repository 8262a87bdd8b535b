"""Proximal gradient descent, iterative soft thresholding (Aggarwal, section 5.8.2)."""

from __future__ import annotations

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Objective, Point
from ..steps.intercepts import minimize_intercept

# Factor of the first trial of a backtracking search relative to the last step size.
LONGER = 1.25


def ista(objective: Objective, w: Floats, *, eta0: float | None = None) -> Solver:
    """Yield the iterates of proximal gradient descent.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss, and a regularizer with a proximity operator.
    w : ndarray of shape (q,)
        Starting point.
    eta0 : float, optional
        The step size of all steps; by default the largest one of a backtracking search
        for which a quadratic upper bound of the loss holds.

    Returns
    -------
    status : str
        "no_step": no step size is small enough, because only rounding errors remain.

    Notes
    -----
    A gradient step on the loss is followed by the proximity operator of the penalty
    (eq. 5.33 and 5.35). Free parameters are minimized over at every iterate, which
    keeps the bounds valid.
    """
    point, step = minimize_intercept(objective.at(w)), 1.0
    while True:
        yield Iterate(point, None, point.lower_bound, "ista")
        if eta0 is not None:
            point = minimize_intercept(objective.at(proximal(point, eta0)))
            continue
        found = proximal_step(point, step)
        if found is None:
            return Status.NO_STEP
        point, step = minimize_intercept(found[0]), LONGER * found[1]


def proximal(point: Point, step: float) -> Floats:
    """Return the result of a gradient step on the loss and the proximity operator."""
    o = point.objective
    return o.regularizer.prox(point.w - step * point.risk_gradient, step * o.alpha)


def proximal_step(point: Point, step: float) -> tuple[Point, float] | None:
    """Return the first point with a valid quadratic upper bound, and its step size.

    The step sizes ``step``, ``step / 2``, ``step / 4`` and so on are tried.
    """
    o = point.objective
    for _ in range(100):
        w = proximal(point, step)
        new = o.at(w)
        dw = w - point.w
        rise = float(point.risk_gradient @ dw) + float(dw @ dw) / (2.0 * step)
        if new.risk <= point.risk + rise:
            return new, step
        step *= 0.5
    return None
