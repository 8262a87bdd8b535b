"""The solver "auto" of chains: dual ascent, followed by a method for the primal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import count

from .._core.driver import Chosen, Options, Solver, Start, Status
from .._core.objectives.objective import Cut, Objective
from .._core.solvers.bfgs import bfgs
from .._core.solvers.bundle import ls_bmrm
from .._core.solvers.owlqn import owlqn
from .._core.steps.cut_model import CutBundle, cut_model
from .._core.steps.line_search import wolfe
from .._core.steps.quasi_newton import LimitedMemoryInverseHessian
from .ascent import chain_ascent, chains_of
from .sweeps import marginals_fit

# The bundle of L-BFGS's cuts is optimized in every fifth iteration only.
_BOUND_INTERVAL = 5

# Dual ascent ends once 60 iterations have not halved the gap.
_PATIENCE = 60


def chain_auto(objective: Objective, start: Start, options: Options) -> Solver:
    """Return the iterates of dual ascent, if it is chosen, and of a primal method.

    The primal method is L-BFGS, with L1 OWL-QN, and for the hinge the bundle method
    with line search, which begins with the last cut of the ascent. Dual ascent is not
    chosen if the marginals need too much memory, and ends if it converges slowly.
    """
    last = "L-BFGS" if objective.regularizer.smooth else "OWL-QN"
    if not objective.loss.smooth:
        last = "bundle method"
    ascends = objective.design.in_one_place and marginals_fit(*chains_of(objective))
    iterates = _carry_out(objective, start, options, ascends)
    yield from ()
    return Chosen(iterates, f"dual ascent, {last}" if ascends else last)


def _carry_out(
    objective: Objective, start: Start, options: Options, ascends: bool
) -> Solver:
    o = objective
    w = start.w
    last: list[Cut] = []
    if ascends:
        for iterate in chain_ascent(o, start, options, patience=_PATIENCE):
            yield iterate
            w = iterate.point.w
            if iterate.cut is not None:
                last = [iterate.cut]
    if not o.loss.smooth:
        model = cut_model(o)
        for cut in last:
            model.add(cut)
        return ls_bmrm(o, w, model=model)
    if not o.regularizer.smooth:
        hessian = LimitedMemoryInverseHessian(o.n_params, options.memory)
        return owlqn(o, w, hessian)
    return _proven(o, chain_lbfgs(o, Start(w), options), last)


def chain_lbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    """Yield the iterates of L-BFGS with steps that satisfy the Wolfe conditions.

    Each trial step costs one forward-backward pass, which returns value and slope.
    """
    hessian = LimitedMemoryInverseHessian(objective.n_params, options.memory)
    search = partial(wolfe, c1=options.c1, c2=options.c2)
    return bfgs(objective, start.w, hessian, search=search)


def _proven(objective: Objective, solver: Solver, cuts: Iterable[Cut]) -> Solver:
    """Yield a solver's iterates, with lower bounds from a bundle of all cuts."""
    bundle = CutBundle(objective)
    for cut in cuts:
        bundle.add(cut)
    for n in count():
        try:
            iterate = next(solver)
        except StopIteration as stop:
            status: Status = stop.value
            return status
        assert iterate.cut is not None
        bundle.add(iterate.cut)
        if n % _BOUND_INTERVAL == 0:
            bundle.improve()
        yield iterate._replace(lower_bound=bundle.lower_bound)
    raise AssertionError
