"""Dual coordinate ascent over the sequences of chains, with L2.

The dual of the log-likelihood of a linear-chain CRF, regularized by the entropies of
the sequences, has marginals of labels and of pairs of labels as variables (Collins,
Globerson, Koo, Carreras & Bartlett 2008). Steps are those of Shalev-Shwartz & Zhang
(2013) with a sequence in place of a row (Le Priol, Piché & Lacoste-Julien 2018).
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ..certificate import CutBundle
from ..chain_design import ChainDesign
from ..chain_sweeps import ChainSweeps, chain_sweeps, marginals_fit
from ..line_search import minimizer, wolfe
from ..losses._base import Chains, Floats
from ..objective import Objective, Point
from ..quasi_newton import LimitedMemoryInverseHessian
from .bfgs import bfgs
from .bundle import ls_bmrm
from .run import Iterate, Solver, Start

# Bounds are made anew where the parts of the gap at the visits fell by this factor, or
# are at most so many times what is asked for.
_FALLEN, _NEARLY = 0.5, 1.5

# And after so many epochs at least.
_MOST_EPOCHS = 8

# Cuts of L-BFGS are combined every so many iterations.
_BOUND_INTERVAL = 5

# The ascent is left where so many epochs do not halve the gap.
_PATIENCE = 25


def chain_ascent(
    objective: Objective,
    start: Start,
    *,
    tol: float = 0.0,
    patience: int | None = None,
) -> Solver:
    """Yield iterates, one an epoch, with points and bounds computed anew now and then.

    The hinge has its marginals at one labeling, whose steps are those of the
    block-coordinate Frank-Wolfe method; points are then the best ones on lines.

    Parameters
    ----------
    objective : Objective
        L2-regularized loss of chains.
    start : Start
        Starting point; marginals begin with those at w, unless the true labels prove
        more.
    tol : float
        Relative gap for whose sake bounds are made sooner.
    patience : int or None
        Number of epochs in which the gap must halve; None for no limit.

    Returns
    -------
    status : str
        "faded": it did not.

    Raises
    ------
    MemoryError
        If the marginals take too much room.

    Notes
    -----
    Bounds are those of w = -Xᵀu / alpha for the dual u of the marginals, with products
    computed anew: sums of steps have rounding errors. What is left of these in the
    marginals is charged.
    """
    o = objective
    chains = _chains(o)
    design = _design(o)
    if not marginals_fit(design, chains):
        raise MemoryError(
            "The marginals of all sequences take too much room for dual ascent; take "
            "the solver 'auto'."
        )
    sweeps = chain_sweeps(design, chains, o.weights, o.alpha)
    random = np.random.default_rng(0)
    best = start.at(o)
    bound = o.risk_infimum
    if start.w.any():
        sweeps.begin(best.scores)
        best, lower = _improved(best, sweeps)
        if lower > bound:
            bound = lower
        else:
            sweeps.reset()
    yield Iterate(best, None, bound, "dual ascent")
    order = np.flatnonzero(o.weights > 0.0)
    told, n_since = np.inf, 0
    gaps = [best.value - bound]
    while True:
        sweeps.run(random.permutation(order))
        n_since += 1
        estimate = float(o.weights[order] @ sweeps.gaps[order])
        wanted = _NEARLY * tol * abs(best.value)
        if estimate <= max(_FALLEN * told, wanted) or n_since >= _MOST_EPOCHS:
            told, n_since = estimate, 0
            best, lower = _improved(best, sweeps)
            bound = max(bound, lower)
        yield Iterate(best, None, bound, "dual ascent")
        gaps.append(best.value - bound)
        if patience and len(gaps) > patience and gaps[-1] > 0.5 * gaps[-1 - patience]:
            return "faded"


def _chains(objective: Objective) -> Chains:
    o = objective
    chains = o.loss.chains(o.targets)
    if chains is None:
        raise TypeError(f"{type(o.loss).__name__} is no loss of chains.")
    return chains


def _design(objective: Objective) -> ChainDesign:
    design: Any = objective.design
    if not isinstance(design, ChainDesign):
        raise TypeError(f"{type(design).__name__} is no design of chains.")
    return design


def _improved(best: Point, sweeps: ChainSweeps) -> tuple[Point, float]:
    """Return the best point, that of the dual if it is better, and the dual's bound."""
    o = best.objective
    dual, costs = sweeps.dual()
    w: Floats = o.design.adjoint(dual) / -o.alpha
    point = o.at(w)
    sweeps.recenter(w)
    value = -o.alpha * o.regularizer.conjugate(w) - float(o.weights @ costs)
    value -= 4.0 * o.loss.rounding(point.scores, o.weights)
    if not o.loss.smooth:
        point = minimizer(best.towards(point))
    return (point if point.value < best.value else best), value


def chain_lbfgs(objective: Objective, start: Start, memory: int) -> Solver:
    """Yield the iterates of L-BFGS, by steps that obey the Wolfe conditions.

    A trial step takes one forward-backward pass, which gives value and slope.
    """
    hessian = LimitedMemoryInverseHessian(objective.n_params, memory)
    return bfgs(objective, start.w, hessian, search=partial(wolfe, first=1.0))


def chain_auto(objective: Objective, start: Start, memory: int, tol: float) -> Solver:
    """Yield iterates of dual ascent, then those of a method of products.

    That is L-BFGS, for the hinge the bundle method with line search. It takes over
    where marginals take too much room, and L-BFGS where the ascent becomes slow.
    """
    o = objective
    w = start.w
    if marginals_fit(_design(o), _chains(o)):
        patience = _PATIENCE if o.loss.smooth else None
        ascent = chain_ascent(o, start, tol=tol, patience=patience)
        for iterate in ascent:
            yield iterate
            w = iterate.point.w
    if not o.loss.smooth:
        return (yield from ls_bmrm(o, w))
    return (yield from _proven(o, chain_lbfgs(o, Start(w), memory)))


def _proven(objective: Objective, solver: Solver) -> Solver:
    """Yield the iterates of a solver with bounds from their cuts."""
    bundle = CutBundle(objective)
    for n in count():
        try:
            iterate = next(solver)
        except StopIteration as stop:
            return str(stop.value)
        assert iterate.cut is not None
        bundle.add(iterate.cut)
        if n % _BOUND_INTERVAL == 0:
            bundle.improve()
        yield iterate._replace(lower_bound=bundle.lower_bound)
    raise AssertionError
