"""Dual coordinate ascent over the sequences of chains.

The dual of the log-likelihood of a linear-chain CRF, regularized by the entropies of
the sequences, has marginals of labels and of pairs of labels as variables (Collins,
Globerson, Koo, Carreras & Bartlett 2008). Each step maximizes the dual over the
variables of one sequence, as Shalev-Shwartz & Zhang (2013) do for one row (Le Priol,
Piché & Lacoste-Julien 2018).
"""

from __future__ import annotations

from typing import cast

import numpy as np

from .._core.arrays import Floats
from .._core.driver import Iterate, Options, Solver, Start, Status
from .._core.objectives.objective import Cut, Dual, Objective, Point
from .._core.regularizers import ElasticNet
from .._core.solvers.dual_ascent import Extrapolation
from .._core.steps.line_search import minimizer
from .design import ChainDesign
from .loss import ChainLoss, Chains
from .sweeps import chain_sweeps, marginals_fit
from .sweeps_base import ChainSweeps, soft_threshold

# Number of rounds before the first lower bound; an earlier bound would be weak.
_FIRST_ROUNDS = 3

# Number of rounds between lower bounds, by whether the loss is smooth. A round of the
# hinge takes little time compared with a bound. docs/constants.md has the figures.
_ROUNDS = {True: 1, False: 5}

# The proximal term raises the strong convexity to sqrt(alpha * c) / 6, where c is the
# mean curvature of the dual along a sequence. docs/constants.md has the figures.
_ROOT_SHARE = 6.0

_NO_ROOM = (
    "The dual variables of all sequences take too much room for dual ascent; take the "
    "solver 'auto'."
)


def chain_ascent(
    objective: Objective,
    start: Start,
    options: Options,
    *,
    patience: int | None = None,
) -> Solver:
    """Yield iterates of accelerated dual coordinate ascent over the sequences.

    A round consists of a few epochs over the sequences; an iterate follows one or
    several rounds. The dual objective of a round has a proximal term, centered at a
    point extrapolated from the last two parameter vectors, as in ``dual_ascent``.
    Without the proximal term, at small alpha, the step of one sequence would undo the
    steps of other sequences with the same features. With the hinge, the iterate is the
    minimizer on the line from the best point so far to the new one.

    With an L1 penalty, the parameters are the soft threshold of the vector that the
    dual variables determine. Where the objective rises, the extrapolation restarts
    (O'Donoghue & Candès 2015): on 2,000 sentences of base NP with L1 alone, c1 = .4,
    the gap is .9 % after 105 rounds; without restarts it stays at 10 %.

    Parameters
    ----------
    objective : Objective
        Loss of chains, with L2, L1 or both.
    start : Start
        Starting point, and center of the first proximal term. The marginals start at
        the model's marginals for w, or at the true labels where these give a higher
        lower bound.
    options : Options
        ``seed`` is the seed of the order in which sequences are visited.
    patience : int or None
        Number of iterations in which the gap must halve; None for no limit.

    Returns
    -------
    status : str
        "faded": the gap did not halve within ``patience`` iterations. "no room": the
        working set of labelings takes too much memory.

    Raises
    ------
    MemoryError
        If the dual variables take too much memory. The working set of labelings of the
        hinge grows during the run; if it becomes too large and ``patience`` is given,
        the run ends with "no room" instead.

    Notes
    -----
    Each lower bound is the dual objective at the current marginals. Its product Xᵀu is
    computed anew, because the sum of all steps accumulates rounding errors; a bound on
    the rounding error of the marginals is subtracted.
    """
    o = objective
    design, chains = chains_of(o)
    if not marginals_fit(design, chains):
        raise MemoryError(_NO_ROOM)
    l1, l2 = 0.0, o.alpha
    if isinstance(o.regularizer, ElasticNet):
        l1, l2 = o.penalties
    wanted = float(np.sqrt(o.alpha * _curvature(o, design))) / _ROOT_SHARE
    # Any positive strength is correct if there are no features and only an L1 penalty.
    strength = max(wanted, l2) or o.alpha
    proximity = strength - l2
    threshold = l1 / strength
    sweeps = chain_sweeps(design, chains, o.weights, strength, threshold)
    momentum = Extrapolation(l2 / strength)
    random = np.random.default_rng(options.seed)
    best = start.at(o)
    bound = o.risk.infimum
    w = center = last = best.w
    if w.any():
        sweeps.begin(best.scores)
        cut = _cut(sweeps, best)
        lower = o.dual_value(cut)
        if lower > bound:
            bound = lower
            sweeps.recenter((proximity * center - cut.normal) / strength)
        else:
            # The true labels give a higher lower bound, but w remains the better center
            # of the proximal term.
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
        # With L1 the strong convexity is unknown or zero, so the extrapolation restarts
        # where the objective rises.
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
    """Return the point at w with its value; gradients of smooth losses are omitted."""
    point = objective.at(w)
    if objective.loss.smooth:
        point.risk = objective.risk.value(point.scores)
    return point


def _curvature(objective: Objective, design: ChainDesign) -> float:
    """Return the mean squared norm of a sequence's features times its mean weight."""
    n = max(int(np.count_nonzero(objective.weights)), 1)
    return design.squared_norm / design.n_rows / n


def _cut(sweeps: ChainSweeps, point: Point) -> Cut:
    """Return the cut of the current dual, lowered by the rounding error at a point."""
    o = point.objective
    dual, costs = sweeps.dual()
    charge = 4.0 * o.risk.rounding(point.scores)
    return o.cut(Dual(dual, offset=-float(o.weights @ costs) - charge))


def chains_of(objective: Objective) -> tuple[ChainDesign, Chains]:
    """Return the design of an objective of chains, and the data of its maximum."""
    design, loss = cast(ChainDesign, objective.design), objective.risk.oracle
    return design, cast(ChainLoss, loss).chains(objective.targets)


def _improved(best: Point, point: Point) -> Point:
    if not best.objective.loss.smooth:
        point = minimizer(best.towards(point))
    return point if point.value < best.value else best
