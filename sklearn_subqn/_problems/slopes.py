"""The smallest alpha at which an L1 penalty makes all coefficients zero."""

from __future__ import annotations

import numpy as np

from .._core.objectives.objective import Point
from .._core.rounding import rounding
from .._core.solvers import minimize_intercept
from .._solving.callbacks import FitTask
from .linear import LinearProblems


def largest_slope(problems: LinearProblems, index: int) -> float:
    """Return the smallest ``alpha`` at which all penalized coefficients are zero.

    For an L1 penalty it is the largest absolute derivative of the risk with respect to
    a penalized coefficient, at zero. For norms of groups it depends on their factors.
    """
    origin, design = _null_point(problems, index), problems.design
    slopes = -origin.risk_gradient[: design.n_coef]
    if problems.free is not None:
        slopes[problems.free.coef] = 0.0
    # Derivatives below their rounding error are set to zero.
    risk = origin.objective.risk
    total, *squares = risk.sizes_of_sums(origin.dual)
    sizes = np.sqrt(total * np.array(squares[: design.n_coef]))
    slopes[np.abs(slopes) <= rounding(risk.n_scored) * sizes] = 0.0
    if (groups := origin.objective.groups) is not None:
        return groups.critical(slopes)
    return float(np.abs(slopes).max(initial=0.0))


def _null_point(problems: LinearProblems, index: int) -> Point:
    """Return the minimizer over intercepts and unpenalized coefficients.

    It is fitted with an ``alpha`` for which all penalized coefficients are zero.
    """
    objective = problems.objective(index, 1.0)
    point = minimize_intercept(objective.origin())
    if problems.free is None:
        return point
    penalized = np.zeros(objective.n_params, dtype=bool)
    penalized[: len(problems.free.coef)] = ~problems.free.coef
    settings = problems.settings._replace(tol=1e-8)
    start = problems.starts[index]
    alpha = float(np.abs(point.risk_gradient[penalized]).max(initial=0.0)) or 1.0
    w = point.w
    for _ in range(4):
        at_alpha = problems.objective(index, alpha)
        w = problems.run_once(index, at_alpha, settings, FitTask.silent()).w.copy()
        problems.starts[index] = start
        if not w[penalized].any():
            break
        alpha *= 10.0
    w[penalized] = 0.0
    return minimize_intercept(objective.at(w))
