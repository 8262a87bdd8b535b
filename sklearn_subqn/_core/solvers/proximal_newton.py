"""Proximal Newton method on the whole Hessian (Lee, Sun and Saunders 2014).

For an L1 penalty where ``cd`` does not apply: each iteration takes a gradient and the
matrix of all second derivatives, which rows in several places make as well, and losses
of pairs.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..objectives.objective import Objective
from ..rounding import ROUNDED
from ..steps.gram_step import GramStep
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import backtrack
from .cd import LONGEST, ROUGH

# Models are minimized by at most 300 sweeps over the coordinates.
_MAX_SWEEPS = 300


def proximal_newton(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of the proximal Newton method.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and its Hessian can be formed; its regularizer is an
        ``ElasticNet``.
    start : Start
        Starting point.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        lowers the objective, or "no_progress": neither do violations fall. Both happen
        where rounding is all that is left.
    """
    o, regularizer = objective, objective.elastic_net
    l1, l2 = (
        np.where(np.arange(o.n_params) < regularizer.n_penalized, factor, 0.0)
        for factor in o.penalties
    )
    point = start.or_origin(o)
    inside = np.ones((o.n_params, 1), dtype=bool)
    value, last = np.inf, np.inf
    # Rows in several places begin with the solution of a sample, which may be far.
    # Without damping log loss on a9a and covtype, alpha 1e-5, takes 26 and 25 passes in
    # place of 17 and 16.
    damps = not (o.risk.in_one_place or o.design.several_scores)
    if damps:
        longest = first = LONGEST * o.risk.score_scale(point.scores)
    while True:
        yield Iterate(point, None, point.lower_bound, "proximal Newton")
        w, gradient = point.w, point.risk_gradient
        residual = regularizer.smallest_subgradient(w, gradient, o.alpha)
        worst = float(np.abs(residual).max())
        if not worst:
            return Status.STATIONARY
        if point.value >= value and worst >= last:
            return Status.NO_PROGRESS
        value, last = point.value, worst
        curvature = point.curvature
        if damps:
            curvature = o.risk.damped(curvature, point.scores, point.dual, longest)
        hessian = o.risk.hessian(curvature)
        gram = hessian.matrix()
        diagonal = np.einsum("ii->i", gram)
        # A little is added to the diagonal so that steps have an end where losses are
        # linear. With 1e-6 squared hinges on a9a, alpha 1e-8, take 100 iterations in
        # place of 8.
        diagonal += ROUNDED * diagonal.max()
        step = GramStep(gram, l1, l2, inside, min(hessian.n_rows, o.n_params))
        smooth = gradient[:, np.newaxis]
        v = step.minimize(smooth, w[:, np.newaxis], ROUGH * worst, _MAX_SWEEPS)
        p = v[:, 0] - w
        change = regularizer.value(v[:, 0]) - regularizer.value(w)
        decrease = float(gradient @ p) + o.alpha * change
        line = point.along(p)
        length, point = backtrack(line, decrease)
        if damps:
            # Damping vanishes with the steps, so that convergence stays quadratic.
            moved = line.largest_change
            longest = first * max(1.0, first / moved) if moved else np.inf
        if not length:
            return Status.NO_STEP
        point = minimize_intercept(point)
