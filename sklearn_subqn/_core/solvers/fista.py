"""Accelerated proximal gradient descent (Aggarwal, section 5.8.2; Beck, Teboulle)."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Objective
from ..steps.intercepts import minimize_intercept
from .ista import LONGER, proximal, proximal_step


def fista(
    objective: Objective,
    w: Floats,
    *,
    eta0: float | None = None,
    restart: bool = True,
) -> Solver:
    """Yield the iterates of FISTA.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss, and a regularizer with a proximity operator.
    w : ndarray of shape (q,)
        Starting point.
    eta0 : float, optional
        The step size of all steps; by default the step size of a backtracking search.
    restart : bool, default=True
        Whether the momentum is reset to zero whenever a step would increase the
        objective (O'Donoghue and Candès 2015, eq. 12); the step is then discarded.

    Returns
    -------
    status : str
        "no_step": no step size is small enough, because only rounding errors remain.

    Notes
    -----
    The momentum is given by Beck and Teboulle (2009, eq. 4.2-4.3). Free parameters are
    minimized over at every iterate, which keeps the bounds valid.
    """
    point = minimize_intercept(objective.at(w))
    ahead, momentum, step = point, 1.0, 1.0
    while True:
        yield Iterate(point, None, point.lower_bound, "fista")
        if eta0 is not None:
            new = objective.at(proximal(ahead, eta0))
        else:
            found = proximal_step(ahead, step)
            if found is None:
                if ahead is point:
                    return Status.NO_STEP
                ahead, momentum = point, 1.0
                continue
            new, step = found
        new = minimize_intercept(new)
        if restart and new.value > point.value and ahead is not point:
            ahead, momentum = point, 1.0
            continue
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        factor = 1.0 + (momentum - 1.0) / following
        # Scores are linear in parameters, so extrapolation needs no product with X.
        ahead = (
            minimize_intercept(point.towards(new).point(factor))
            if factor > 1.0
            else new
        )
        point, momentum = new, following
        step *= LONGER
