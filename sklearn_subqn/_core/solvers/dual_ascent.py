"""Dual coordinate ascent, the fastest start if rows are nearly orthogonal.

Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), Algorithm 1, for losses whose dual
variables are confined to intervals, and Keerthi, Sundararajan, Chang, Hsieh, Lin (2008)
for simplices; this module adds sets of labels, unpenalized intercepts and duality gaps.

With a small alpha the dual has a large curvature along the variables of one row, and
updates of one row undo updates of others. Then each round penalizes the distance from
an extrapolated point, as in Nesterov's method. This is the accelerated proximal point
method of Shalev-Shwartz & Zhang (2016) and Lin, Mairal & Harchaoui (2018).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..driver import Iterate, Solver, Start, Status
from ..objectives.objective import Dual, Objective
from ..rounding import rounding
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import minimizer, scaled
from .sweeps_of_parts import sweeps_of

# Parameters accumulate rounding errors of the updates of single rows. Below this
# relative gap the lower bound is computed from parameters that are recomputed from the
# dual variables.
_DRIFT = 1e-6

# The method continues while each round reduces the gap to less than 0.7 times the
# previous gap.
SHRINKING = 0.7

# The proximal term changes the mean curvature c of the dual along one variable to this
# number times √c, in units of the objective's strong convexity. This balances the
# number of rounds and the number of sweeps. docs/constants.md has the figures.
_ROOT_CURVATURE = 1.3

# Limit on this curvature with several scores per row, in the same units. Without this
# limit, the run on 6000 rows of mnist with pixels up to 255 and alpha 0.01 ends at a
# gap of 1.
_MOST_CURVATURE_SEVERAL = 10.0


def dual_ascent(
    objective: Objective,
    start: Start,
    *,
    patience: int = 1,
    shrinking: float = SHRINKING,
    weaker: float = 1.0,
) -> Solver:
    """Yield iterates while the gap decreases fast; the last one has a dual point.

    With the proximal term, and for losses with kinks, iterates are minimizers on lines
    through the parameters of the dual points. The reason is that dual points are then
    nearly optimal long before their parameters.

    With an unpenalized intercept dual variables have to sum to zero, and no change of a
    single row maintains the sum. The proximal point method finds the intercept instead:
    each round penalizes its distance from its value at the start of the round.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective whose loss has a ``rowwise_dual``; if that is
        ``Intervals``, the design is sparse.
    start : Start
        Starting point.
    patience : int
        Number of rounds, each of several sweeps, in which the gap must decrease.
    shrinking : float
        Factor by which the gap must decrease.
    weaker : float
        Divisor of the proximal term, whose default strength suits rows with similar
        norms. A few rows with large norms would make it too strong for all others.
        Infinity means no proximal term.
    """
    if objective.risk.rowwise_dual() is None:
        name = type(objective.loss.set).__name__
        raise TypeError(f"The dual of {name} is not separable by rows.")
    design = objective.design
    point = minimize_intercept(
        objective.origin() if start.dual is None else start.at(objective)
    )
    yield Iterate(point, phase="dual ascent")
    curvature = design.mean_square / max(design.n_rows, 1)
    wanted = _ROOT_CURVATURE * np.sqrt(curvature / objective.alpha)
    if design.several_scores:
        wanted = min(wanted, _MOST_CURVATURE_SEVERAL)
    strength = curvature / wanted / weaker if wanted else 0.0
    proximity = max(strength - objective.alpha, 0.0)
    share = objective.alpha / (objective.alpha + proximity)
    sweeps = sweeps_of(objective.risk, objective.alpha, start.dual, proximity)
    sweeps.recenter(point.w)
    momentum = Extrapolation(share)
    best, last, bound = point, point.w, -np.inf
    scores = None if start.dual is None else point.scores
    gaps = deque([np.inf], maxlen=patience)
    passes = objective.passes
    while True:
        sweeps.run(scores)
        point = objective.at(sweeps.w)
        # Rows are selected by scores with the intercept of the sweeps, which
        # corresponds to these dual variables, not with the best intercept.
        scores = point.scores
        point = minimize_intercept(point)
        dual = sweeps.dual
        if not objective.n_free:
            # Each update of a row adds a rounding error to the parameters of its
            # columns.
            n_visits = objective.design.n_rows * (1.0 + objective.passes - passes)
            n_rounded = n_visits + sweeps.n_rounded
            error = rounding(16.0 * n_rounded) / share * objective.risk.dual_norm(dual)
            normal = -objective.alpha * sweeps.conjugate_point
            lower = objective.dual_value(objective.cut(Dual(dual, normal, error=error)))
            del normal
        else:
            dual = objective.risk.balance_near_optimum(dual)
            lower = objective.dual_value(objective.cut(Dual(dual)))
        drift = _DRIFT / share * abs(point.value)
        if not objective.n_free and point.value - lower < drift:
            lower = objective.dual_value(objective.cut(Dual(dual)))
        bound = max(bound, lower)
        if proximity:
            last = point.w - last
            last *= momentum.next()
            last += point.w
            sweeps.recenter(last)
            last = point.w
        else:
            sweeps.recenter(point.w)
        if proximity or not objective.loss.smooth:
            # The arrays of one point are freed before the next point needs such arrays.
            line = best.towards(point)
            del point
            best = minimizer(line)
            del line
            # Momentum makes the norm of the parameters too large or too small, so
            # scaling reduces the objective much.
            best = point = scaled(best)
            # Once the drift is computed, the points before are released.
            _ = best.drift
        elif point.value < best.value:
            best = point
        yield Iterate(point, None, bound, "dual ascent", Dual(dual))
        gap = max(best.value - bound, 0.0)
        if not gap < shrinking * gaps[0]:
            return Status.FADED
        gaps.append(gap)


class Extrapolation:
    """Nesterov's weights of the last change of the parameters.

    Parameters
    ----------
    share : float
        Ratio of the strong convexity without the proximal term to the strong convexity
        with it.
    """

    def __init__(self, share: float) -> None:
        root = np.sqrt(share)
        self._limit = float((1.0 - root) / (1.0 + root))
        self._t = 1.0

    def next(self) -> float:
        """Return the weight of the next extrapolation, below one."""
        t = self._t
        self._t = 0.5 + np.sqrt(0.25 + t * t)
        return min((t - 1.0) / self._t, self._limit)
