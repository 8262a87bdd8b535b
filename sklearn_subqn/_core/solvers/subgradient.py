"""The subgradient method that keeps the best iterate (Aggarwal, section 5.8.1)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Objective, Point
from ..regularizers import ElasticNet
from ..steps.intercepts import minimize_intercept


def subgradient(
    objective: Objective,
    w: Floats,
    *,
    eta0: float | None = None,
    tau: float | None = 10.0,
    random: np.random.Generator | None = None,
) -> Solver:
    """Yield the iterates of the subgradient method.

    Parameters
    ----------
    objective : Objective
        Objective whose loss does not grow exponentially and whose penalty is finite.
    w : ndarray of shape (q,)
        Starting point.
    eta0 : float, optional
        Step size; by default Polyak's step size (1969), at which a linear J reaches the
        best known lower bound.
    tau : float or None, default=10.0
        The step size of step t is multiplied by ``tau / (tau + t)``; None means
        constant step sizes.
    random : Generator, optional
        Draws the slope of the L1 norm at zero coefficients uniformly from [-1, 1] (eq.
        5.29); by default the slope is zero.

    Returns
    -------
    status : str
        "stationary": the subgradient vanishes, or the lower bound is reached.

    Notes
    -----
    A step may increase J; the driver keeps the best point. Free parameters are
    minimized over at every iterate, if that is possible.
    """
    point, bound, t = minimize_intercept(objective.at(w)), objective.least, 0
    while True:
        bound = max(bound, point.lower_bound)
        yield Iterate(point, point.cut, point.lower_bound, "subgradient")
        g = point.gradient if random is None else _drawn(point, random)
        square = float(g @ g)
        if not square or point.value <= bound:
            return Status.STATIONARY
        if eta0 is None:
            known = bound > -np.inf
            eta = (point.value - bound if known else abs(point.value)) / square
        else:
            eta = eta0
        if tau is not None:
            eta *= tau / (tau + t)
        point, t = minimize_intercept(point.along(-g).point(eta)), t + 1


def _drawn(point: Point, random: np.random.Generator) -> Floats:
    """Return a subgradient of J with random slopes of the penalty where w is zero."""
    o = point.objective
    if not isinstance(o.regularizer, ElasticNet):
        return point.gradient
    return point.risk_gradient + o.alpha * o.regularizer.random(point.w, random)
