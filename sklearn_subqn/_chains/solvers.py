"""The solvers of chain estimators, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .._core.objectives.objective import Objective
from .._core.solvers import (
    BUNDLE_SOLVERS,
    SOLVERS,
    Options,
    Solver,
    SolverSpec,
    Start,
)
from .._core.solvers.common_options import MEMORY, WOLFE
from .._core.solvers.spec import ANY
from .ascent import chain_ascent
from .auto import chain_auto, chain_lbfgs
from .passes import CHAIN_STREAMS, chain_online, options_of_chains

__all__ = ["CHAIN_SOLVERS", "CHAIN_STREAMS"]


def _chain_auto(objective: Objective, start: Start, options: Options) -> Solver:
    return chain_auto(objective, start, options.memory, options.seed)


def _chain_ascent(objective: Objective, start: Start, options: Options) -> Solver:
    return chain_ascent(objective, start, seed=options.seed)


def _chain_lbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    return chain_lbfgs(objective, start, options.memory, options.c1, options.c2)


#: Solvers of chain estimators; "auto" accepts every loss of chains and every penalty.
CHAIN_SOLVERS: dict[str, SolverSpec] = {
    "auto": SolverSpec(_chain_auto, proves=True, penalties=ANY, first_order=True),
    "dual-ascent": SolverSpec(
        _chain_ascent, proves=True, penalties=ANY, first_order=True
    ),
    "lbfgs": SolverSpec(
        _chain_lbfgs, smooth=True, first_order=True, options=MEMORY | WOLFE
    ),
    "owlqn": replace(SOLVERS["owlqn"], first_order=True),
    **{name: BUNDLE_SOLVERS[name] for name in ("ls-bmrm", "bmrm")},
    **{
        name: SolverSpec(
            partial(chain_online, name),
            smooth=True,
            first_order=True,
            options=options_of_chains(name),
        )
        for name in CHAIN_STREAMS
    },
}
