"""Scales of alpha for an L1 norm, where coefficients become zero, and for squares."""

from __future__ import annotations

import numpy as np

from .._core.objectives.objective import Point
from .._core.regularizers import L2
from .._core.rounding import rounding
from .._core.solvers import minimize_intercept
from .._core.steps.line_search import exact
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


def curvature_at_zero(problems: LinearProblems, index: int) -> float:
    """Return the scale of ``alpha`` for a problem, which is equivariant to all units.

    It is the inverse of the optimal step along the negative gradient at zero, excluding
    unpenalized features. For a quadratic loss it is the curvature along that line, and
    a penalty with the same curvature halves the optimal step.
    """
    # The penalty has to be positive, and is negligible at this strength.
    objective = problems.objective(index, 1e-200)
    objective = objective.with_regularizer(L2(problems.design.n_coef))
    origin = minimize_intercept(objective.origin())
    gradient = origin.risk_gradient.copy()
    gradient[problems.design.n_coef :] = 0.0
    if problems.free is not None:
        gradient[: problems.design.n_coef][problems.free.coef] = 0.0
    if not gradient.any() or not origin.objective.loss.has_lines:
        return 0.0
    step = exact(origin.along(-gradient))
    return 1.0 / step if step > 0.0 else 0.0


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
