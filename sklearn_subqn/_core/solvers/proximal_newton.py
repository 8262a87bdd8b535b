"""Proximal Newton method on the whole Hessian (Lee, Sun and Saunders 2014).

For an L1 penalty or norms of groups if ``cd`` is not applicable: each iteration needs a
gradient and the full Hessian, which are available for rows in several processes, for
losses of pairs and for envelopes of losses of several scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..losses._base import Floats, Mask
from ..objectives.objective import Objective
from ..objectives.risk_hessian import RiskHessian
from ..rounding import ROUNDED
from ..steps.gram_step import GramStep, Step
from ..steps.group_step import GroupStep
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import backtrack
from ..steps.newton_direction import CG_ACCURACY, is_factorized
from .cd import LONGEST, ROUGH

# Limit on the sweeps over the coordinates of a model.
_MAX_SWEEPS = 300


def proximal_newton(
    objective: Objective,
    start: Start,
    *,
    otherwise: Callable[[Floats], Solver] | None = None,
) -> Solver:
    """Yield the iterates of the proximal Newton method.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss whose Hessian can be formed, and an ``ElasticNet``
        or a ``GroupPenalty``.
    start : Start
        Starting point.
    otherwise : callable, optional
        Makes the solver that continues from w if a model becomes too large. With this
        solver, models have a working set: the coordinates that are not zero or violate
        the optimality conditions most. It requires all rows in one place. By default
        models have all coordinates.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        decreases the objective. "no_progress": violations do not decrease either. The
        last two occur when only rounding errors remain.
    """
    o, groups = objective, objective.groups
    regularizer = groups or objective.elastic_net
    places = np.arange(o.n_params)
    places[regularizer.n_penalized :] = -1
    l1, l2 = (
        np.where(places >= 0, factor, 0.0)
        for factor in ((0.0, 0.0) if groups else o.penalties)
    )
    point = start.or_origin(o)
    inside = np.ones((o.n_params, 1), dtype=bool)
    value, last = np.inf, np.inf
    # With rows in several processes, a fit starts at the solution of a sample, which
    # may be far from the optimum. Without damping, log loss with alpha 1e-5 takes 26
    # passes on a9a and 25 on covtype instead of 17 and 16.
    damps = not (o.design.in_one_place or o.design.several_scores)
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
        if otherwise is None:
            hessian = o.risk.hessian(curvature)
        else:
            inside[:, 0] = _working_set(w, residual, l1)
            # An elastic net may have far more nonzero coefficients than rows. A model
            # takes no more memory than a dense X.
            size = int(np.count_nonzero(inside))
            fits = size * size <= o.design.n_rows * o.design.n_features
            if not (fits and is_factorized(o, CG_ACCURACY, size)):
                return otherwise(w)
            features = np.flatnonzero(inside[: o.design.n_features])
            design = o.design.of_features(features, fit_intercept=o.n_free > 0)
            hessian = RiskHessian(design, curvature)
            o.design.passes += len(features) / o.design.n_features
        gram = hessian.matrix()
        diagonal = np.einsum("ii->i", gram)
        # A larger diagonal keeps steps finite if the loss is linear. With 1e-6 instead
        # of this number, the squared hinge on a9a with alpha 1e-8 takes 100 iterations
        # instead of 8.
        diagonal += ROUNDED * diagonal.max()
        some = inside[:, 0]
        step: Step
        if groups:
            penalty = groups.restricted(places, o.alpha)
            step = GroupStep(np.ones((1, 1)), gram, penalty, is_formed=True)
        else:
            rank = min(hessian.n_rows, len(gram))
            step = GramStep(gram, l1[some], l2[some], inside, rank)
        smooth = gradient[:, np.newaxis]
        v = step.minimize(smooth, w[:, np.newaxis], ROUGH * worst, _MAX_SWEEPS)
        p = v[:, 0] - w
        change = regularizer.value(v[:, 0]) - regularizer.value(w)
        decrease = float(gradient @ p) + o.alpha * change
        line = point.along(p)
        length, point = backtrack(line, decrease)
        if damps:
            # Damping vanishes as steps become short, so that convergence stays
            # quadratic.
            moved = line.largest_change
            longest = first * max(1.0, first / moved) if moved else np.inf
        if not length:
            return Status.NO_STEP
        point = minimize_intercept(point)


def _working_set(w: Floats, residual: Floats, l1: Floats) -> Mask:
    """Return all nonzero and free coordinates, and as many others, at least 100.

    The others are those with the largest violations.
    """
    inside = (w != 0.0) | (l1 == 0.0)
    violations = np.where(inside, 0.0, np.abs(residual))
    # With any number from 10 to 300 instead of 100, the time changes by at most a
    # quarter.
    most = max(100, int(np.count_nonzero(inside)))
    if most < len(w):
        violations[np.argpartition(-violations, most)[most:]] = 0.0
    return inside | (violations > 0.0)
