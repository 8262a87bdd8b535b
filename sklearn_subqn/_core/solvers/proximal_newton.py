"""Proximal Newton method on the whole Hessian (Lee, Sun and Saunders 2014).

For an L1 penalty or norms of groups if ``cd`` is not applicable: each iteration needs a
gradient and the full Hessian, which are available for rows in several processes, for
losses of pairs and for envelopes of losses of several scores.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..losses._base import Floats, Rows
from ..memory import COPY_SIZE
from ..objectives.objective import Line, Objective, Point
from ..objectives.risk_hessian import RiskHessian
from ..rounding import ROUNDED
from ..steps.gram_step import GramStep, Step
from ..steps.group_step import GroupStep
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import backtrack
from ..steps.newton_direction import CG_ACCURACY, is_factorized
from .cd import LONGEST, ROUGH, working_set

# Limit on the coordinates of a model, whose matrix takes at most 200 MB.
# docs/constants.md has the figures.
_MOST = 5000

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
        solver, models have the features of a working set, as in ``cd``. By default they
        have all features.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        decreases the objective. "no_progress": violations do not decrease either. The
        last two occur when only rounding errors remain.
    """
    o = objective
    regularizer = o.groups or o.elastic_net
    in_one_place = o.design.in_one_place
    # An elastic net may have far more nonzero coefficients than rows. A model takes no
    # more memory than a dense X, or in blocks than a copy of rows.
    least = 0 if in_one_place else COPY_SIZE
    entries = o.design.n_rows * o.design.n_features
    most = min(_MOST, isqrt(max(least, entries)))
    features, inside, own = None, np.arange(o.n_params), None
    point = start.or_origin(o)
    value, last = np.inf, np.inf
    # With rows in several processes, a fit starts at the solution of a sample, which
    # may be far from the optimum. Without damping, log loss with alpha 1e-5 takes 26
    # passes on a9a and 25 on covtype instead of 17 and 16.
    damps = not (in_one_place or o.design.several_scores)
    if damps:
        longest = first = LONGEST * o.risk.score_scale(point.scores)
    while True:
        yield Iterate(point, None, point.lower_bound, "proximal Newton")
        smooth = point.risk_gradient
        residual = regularizer.smallest_subgradient(point.w, smooth, o.alpha)
        worst = float(np.abs(residual).max())
        if not worst:
            return Status.STATIONARY
        if point.value >= value and worst >= last:
            return Status.NO_PROGRESS
        value, last = point.value, worst
        if otherwise is not None:
            features, inside = _working_features(point, worst, most)
            size = len(inside)
            slow = in_one_place and not is_factorized(o, CG_ACCURACY, size)
            if slow or size > most:
                return otherwise(point.w)
        curvature = point.curvature
        if damps:
            curvature = o.risk.damped(curvature, point.scores, point.dual, longest)
        if features is not None and in_one_place:
            own = o.design.of_features(features, fit_intercept=o.n_free > 0)
            hessian = RiskHessian(own, curvature)
            step = _step(o, hessian.matrix(), inside, hessian.n_rows)
        else:
            hessian = o.risk.hessian(curvature)
            step = _step(o, hessian.matrix(features), inside, hessian.n_rows)
        smooth, tol, length = smooth[inside], ROUGH * worst, 0.0
        # Steps on a working set take little time beside the gradient of all features,
        # so that a second one uses the same matrix (Shamanskii 1967).
        for n_before in range(1 if own is None else 2):
            if own is not None and n_before:
                smooth = own.adjoint(point.dual)
            v, begin = point.w.copy(), point.w[inside, np.newaxis]
            found = step.minimize(smooth[:, np.newaxis], begin, tol, _MAX_SWEEPS)
            v[inside] = found[:, 0]
            p, tol = v - point.w, ROUGH * tol
            change = regularizer.value(v) - regularizer.value(point.w)
            decrease = float(smooth @ p[inside]) + o.alpha * change
            if own is None:
                line = point.along(p)
            else:
                line = Line(point, p, own.forward(p[inside]))
            taken, point = backtrack(line, decrease)
            length = max(length, taken)
        if own is not None:
            o.design.passes += own.passes * own.n_features / o.design.n_features
        if damps:
            # Damping vanishes as steps become short, so that convergence stays
            # quadratic.
            moved = line.largest_change
            longest = first * max(1.0, first / moved) if moved else np.inf
        if not length:
            return Status.NO_STEP
        point = minimize_intercept(point)


def _working_features(point: Point, worst: float, most: int) -> tuple[Rows, Rows]:
    """Return the features of the next model, and its coordinates with the free ones."""
    o = point.objective
    k = o.design.n_coef // o.design.n_features
    features = np.unique(working_set(o, point, worst, most) // k)
    penalized = (features[:, np.newaxis] * k + np.arange(k)).ravel()
    free = np.arange(o.regularizer.n_penalized, o.n_params)
    return features, np.append(penalized, free)


def _step(objective: Objective, gram: Floats, inside: Rows, n_rows: int) -> Step:
    """Return the step on a model with this matrix for some coordinates."""
    diagonal = np.einsum("ii->i", gram)
    # A larger diagonal, in units of the features, keeps steps finite if the loss is
    # linear. With 1e-6 instead of this number, the squared hinge on a9a with alpha 1e-8
    # takes 100 iterations instead of 8.
    squares = np.append(objective.column_sizes**2, np.ones(objective.n_free))[inside]
    squares[squares == 0.0] = 1.0
    diagonal += ROUNDED * (diagonal / squares).max() * squares
    penalized = inside < objective.regularizer.n_penalized
    if objective.groups:
        places = np.where(penalized, inside, -1)
        penalty = objective.groups.restricted(places, objective.alpha)
        return GroupStep(np.ones((1, 1)), gram, penalty, is_formed=True)
    l1, l2 = (np.where(penalized, factor, 0.0) for factor in objective.penalties)
    rank = min(n_rows, len(gram))
    return GramStep(gram, l1, l2, np.ones((len(gram), 1), bool), rank)
