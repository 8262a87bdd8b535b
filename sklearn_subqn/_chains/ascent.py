"""Dual coordinate ascent over the sequences of chains.

The dual of the log-likelihood of a linear-chain CRF, regularized by the entropies of
the sequences, has marginals of labels and of pairs of labels as variables (Collins,
Globerson, Koo, Carreras & Bartlett 2008). Steps are those of Shalev-Shwartz & Zhang
(2013) with a sequence in place of a row (Le Priol, Piché & Lacoste-Julien 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.driver import Iterate, Solver, Start, Status
from .._core.losses._base import Floats
from .._core.objectives.objective import Cut, Dual, Objective, Point
from .._core.regularizers import ElasticNet
from .._core.solvers.dual_ascent import Extrapolation
from .._core.steps.line_search import minimizer
from .design import ChainDesign
from .loss import ChainLoss, Chains
from .sweeps import chain_sweeps, marginals_fit
from .sweeps_base import ChainSweeps, soft_threshold

# Rounds before the first bound, which proves little so early, and before each further
# one: of smooth losses and of others, whose rounds are shorter and bounds more
# expensive. docs/constants.md has the figures.
_FIRST_ROUNDS = 3
_ROUNDS = {True: 1, False: 5}

# The proximal term makes the root of the mean curvature along a sequence, in units of
# alpha, six times the strong convexity. docs/constants.md has the figures.
_ROOT_SHARE = 6.0

_NO_ROOM = (
    "The dual variables of all sequences take too much room for dual ascent; take the "
    "solver 'auto'."
)


def chain_ascent(
    objective: Objective,
    start: Start,
    *,
    patience: int | None = None,
    seed: int = 0,
) -> Solver:
    """Yield iterates, one a round or some rounds.

    A round has some epochs over the sequences. Each penalizes the distance from a point
    ahead of the parameters, as in ``dual_ascent``: sequences share features, and at
    small alpha changes of one undo those of others. With the hinge points are the best
    ones on lines.

    With an L1 penalty, parameters are soft thresholds of what the dual stands for.
    Where the objective rises, the point ahead is brought back (O'Donoghue & Candès
    2015): on 2,000 sentences of base NP with L1 alone, c1 = .4, the gap is .9 % after
    105 rounds, without that 10 %, where it stays.

    Parameters
    ----------
    objective : Objective
        Loss of chains, with L2, L1 or both.
    start : Start
        Starting point, from which the first epochs penalize the distance; marginals
        begin with those at w, unless the true labels prove more.
    patience : int or None
        Number of iterations in which the gap must halve; None for no limit.
    seed : int
        Of the order of the sequences.

    Returns
    -------
    status : str
        "faded": it did not. "no room": labelings kept take too much.

    Raises
    ------
    MemoryError
        If the dual variables take too much room. Of labelings that are kept, this is
        seen in the course of a run, which then only ends if ``patience`` is given.

    Notes
    -----
    Bounds are those of the dual u of the marginals, with products computed anew: sums
    of steps have rounding errors. What is left of these in the marginals is
    accounted for.
    """
    o, design, chains = objective, design_of(objective), chains_of(objective)
    if not marginals_fit(design, chains):
        raise MemoryError(_NO_ROOM)
    l1, l2 = 0.0, o.alpha
    if isinstance(o.regularizer, ElasticNet):
        l1, l2 = o.penalties
    wanted = float(np.sqrt(o.alpha * _curvature(o))) / _ROOT_SHARE
    # Without features, and with L1 alone, any is right.
    strength = max(wanted, l2) or o.alpha
    proximity = strength - l2
    threshold = l1 / strength
    sweeps = chain_sweeps(design, chains, o.weights, strength, threshold)
    momentum = Extrapolation(l2 / strength)
    random = np.random.default_rng(seed)
    best = start.at(o)
    bound = o.risk_infimum
    w = center = last = best.w
    if w.any():
        sweeps.begin(best.scores)
        cut = _cut(sweeps, best)
        lower = o.dual_value(cut)
        if lower > bound:
            bound = lower
            sweeps.recenter((proximity * center - cut.normal) / strength)
        else:
            # The true labels prove more, but w is where to look for the optimum.
            sweeps.reset()
            sweeps.recenter(proximity * center / strength)
    yield Iterate(best, None, bound, "dual ascent")
    order = np.flatnonzero(o.weights > 0.0)
    gaps = [best.value - bound]
    value = best.value
    rounds = _FIRST_ROUNDS
    while True:
        for n_left in reversed(range(rounds)):
            sweeps.round(order, random)
            if n_left:
                raw = sweeps.w
                w = soft_threshold(raw, threshold)
                ahead = w + momentum.next() * (w - last)
                sweeps.recenter(raw + proximity / strength * (ahead - center))
                center, last = ahead, w
        rounds = _ROUNDS[o.loss.smooth]
        cut = _cut(sweeps, best)
        w = soft_threshold((proximity * center - cut.normal) / strength, threshold)
        bound = max(bound, o.dual_value(cut))
        point = _valued(o, w)
        # With L1 little or no strong convexity is known in advance.
        if l1 and point.value > value:
            momentum = Extrapolation(l2 / strength)
        value = point.value
        best = _improved(best, point)
        center, last = w + momentum.next() * (w - last), w
        sweeps.recenter((proximity * center - cut.normal) / strength)
        yield Iterate(best, cut, bound, "dual ascent")
        gaps.append(best.value - bound)
        if not sweeps.fits:
            if patience is None:
                raise MemoryError(_NO_ROOM)
            return Status.NO_ROOM
        if patience and len(gaps) > patience and gaps[-1] > 0.5 * gaps[-1 - patience]:
            return Status.FADED


def _valued(objective: Objective, w: Floats) -> Point:
    """Return a point with its value, without the gradient that solvers ask for."""
    point = objective.at(w)
    if objective.loss.smooth:
        point.risk = objective.risk.value(point.scores)
    return point


def _curvature(objective: Objective) -> float:
    """Return the mean squared norm of the features of a sequence times its weight."""
    o, design = objective, design_of(objective)
    n = max(int(np.count_nonzero(o.weights)), 1)
    return design.squared_norm / design.n_rows / n


def _cut(sweeps: ChainSweeps, point: Point) -> Cut:
    """Return what the dual says, less what rounding at the scores of a point makes."""
    o = point.objective
    dual, costs = sweeps.dual()
    charge = 4.0 * o.risk.rounding(point.scores)
    return o.cut(Dual(dual, offset=-float(o.weights @ costs) - charge))


def chains_of(objective: Objective) -> Chains:
    o = objective
    loss = o.risk.oracle
    if not isinstance(loss, ChainLoss):
        raise TypeError(f"{type(o.loss.set).__name__} is no loss of chains.")
    return loss.chains(o.targets)


def design_of(objective: Objective) -> ChainDesign:
    design: Any = objective.design
    if not isinstance(design, ChainDesign):
        raise TypeError(f"{type(design).__name__} is no design of chains.")
    return design


def _improved(best: Point, point: Point) -> Point:
    if not best.objective.loss.smooth:
        point = minimizer(best.towards(point))
    return point if point.value < best.value else best
