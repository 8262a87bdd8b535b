"""The solvers of chain estimators, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .._core.solvers import (
    BUNDLE_SOLVERS,
    SOLVERS,
    SolverSpec,
)
from .._core.solvers.common_options import MEMORY, WOLFE
from .._core.solvers.spec import ANY
from .ascent import chain_ascent
from .auto import chain_auto, chain_lbfgs
from .passes import CHAIN_STREAMS, chain_online, options_of_chains

__all__ = ["CHAIN_SOLVERS", "CHAIN_STREAMS"]


#: Solvers of chain estimators. "auto" supports all losses and penalties of chains.
CHAIN_SOLVERS: dict[str, SolverSpec] = {
    "auto": SolverSpec(chain_auto, proves=True, penalties=ANY, first_order=True),
    "dual-ascent": SolverSpec(
        chain_ascent, proves=True, penalties=ANY, first_order=True
    ),
    "lbfgs": SolverSpec(
        chain_lbfgs, smooth=True, first_order=True, options=MEMORY | WOLFE
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
