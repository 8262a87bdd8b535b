"""Dual coordinate ascent, the fastest start on text-like data.

Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), Algorithm 1, for losses whose dual
variables are confined to intervals; here with an unpenalized intercept and the gap.
"""

from __future__ import annotations

import numpy as np

from ..line_search import settle
from ..losses._base import Floats
from ..objective import Objective
from .run import Iterate, Solver, Start

# Sweeps over the rows between two looks at the gap.
_SWEEPS = 5

# Go on while so many sweeps shrink the gap to this share.
_SHRINKING = 0.5


def dual_ascent(objective: Objective, start: Start) -> Solver:
    """Yield iterates while they halve the gap; the last has the dual to go on from.

    An unpenalized intercept makes the dual variables sum to zero, which no change of a
    single one maintains. It is found by the proximal point method instead: each round
    penalizes its distance from where the round begins.

    Parameters
    ----------
    objective : Objective
        With a sparse design, L2-regularized; its loss offers ``intervals``.
    start : Start
        Starting point.
    """
    design, weights, alpha = objective.design, objective.weights, objective.alpha
    steps = weights / alpha
    v = np.zeros_like(weights)
    point = settle(objective.origin())
    if start.dual is not None:
        np.divide(-start.dual, weights, out=v, where=weights > 0.0)
        point = settle(objective.at(start.w))
    yield Iterate(point, phase="dual ascent")
    coef = np.asarray(design.split(design.adjoint(steps * v))[0])
    intercept = float(design.split(point.w)[1])
    sweeps = design.row_sweeps(objective.loss.intervals(objective.targets), steps)
    best, bound, gap = point.value, -np.inf, np.inf
    while True:
        intercept = sweeps.run(v, coef, intercept, _SWEEPS)
        point = settle(objective.at(design.join(coef, intercept)))
        intercept = float(design.split(point.w)[1])
        dual = -weights * (_balanced(v, weights) if objective.n_free else v)
        cut = objective.cut(dual)
        bound = max(bound, objective.dual_value(cut))
        best = min(best, point.value)
        yield Iterate(point, None, bound, "dual ascent", dual)
        before, gap = gap, max(best - bound, 0.0)
        if not gap < _SHRINKING * before:
            return "faded"


def _balanced(v: Floats, weights: Floats) -> Floats:
    """Return v with its heavier side, positive or negative, scaled to the other."""
    up = float(weights @ np.maximum(v, 0.0))
    down = float(weights @ np.maximum(-v, 0.0))
    if up == down:
        return v
    heavier = v > 0.0 if up > down else v < 0.0
    return np.where(heavier, v * (min(up, down) / max(up, down)), v)
