"""Dual coordinate ascent, the fastest start where rows are nearly orthogonal.

Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), Algorithm 1, for losses whose dual
variables are confined to intervals, and Keerthi, Sundararajan, Chang, Hsieh, Lin
(2008) for simplices; here with unpenalized intercepts and the gap.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..line_search import settle
from ..losses._base import Floats
from ..objective import Cut, Objective
from .run import Iterate, Solver, Start

# Go on while rounds shrink the gap to less than this share.
_SHRINKING = 0.7


def dual_ascent(objective: Objective, start: Start, *, patience: int = 1) -> Solver:
    """Yield iterates while they shrink the gap fast; the last has a dual to go on from.

    An unpenalized intercept makes the dual variables sum to zero, which no change of a
    single row maintains. It is found by the proximal point method instead: each round
    penalizes its distance from where the round begins.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss has a ``rowwise_dual``, and its design is sparse if
        that is in intervals.
    start : Start
        Starting point.
    patience : int
        Number of rounds, each of some sweeps, in which the gap must shrink.
    """
    weights = objective.weights
    loss = objective.loss.rowwise_dual(objective.targets)
    if loss is None:
        name = type(objective.loss).__name__
        raise TypeError(f"The dual of {name} is not apart for each row.")
    point = settle(objective.origin() if start.dual is None else objective.at(start.w))
    yield Iterate(point, phase="dual ascent")
    sweeps = objective.design.row_sweeps(loss, weights, objective.alpha, start.dual)
    sweeps.recenter(point.w)
    best, bound = point.value, -np.inf
    gaps = deque([np.inf], maxlen=patience)
    while True:
        sweeps.run()
        point = settle(objective.at(sweeps.w))
        sweeps.recenter(point.w)
        dual = sweeps.dual
        if not objective.n_free:
            # The parameters are those of the dual variables.
            risk = -objective.loss.conjugate(dual, objective.targets, weights)
            cut = Cut(-objective.alpha * point.w, risk)
        else:
            if objective.n_free == 1:
                dual = _balanced(dual)
            else:
                dual = objective.loss.level(dual, objective.targets, weights)
            cut = objective.cut(dual)
        bound = max(bound, objective.dual_value(cut))
        best = min(best, point.value)
        yield Iterate(point, None, bound, "dual ascent", dual)
        gap = max(best - bound, 0.0)
        if not gap < _SHRINKING * gaps[0]:
            return "faded"
        gaps.append(gap)


def _balanced(dual: Floats) -> Floats:
    """Return u with its heavier side, positive or negative, scaled to the other."""
    up, down = float(dual[dual > 0.0].sum()), float(-dual[dual < 0.0].sum())
    if up == down:
        return dual
    heavier = dual > 0.0 if up > down else dual < 0.0
    return np.where(heavier, dual * (min(up, down) / max(up, down)), dual)
