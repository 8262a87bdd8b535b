"""Optimization methods, one per file, and the driver that runs them.

``SOLVERS`` lists the batch solvers by name. To add one: write its file, import it here
and add an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..driver import (
    History,
    Iterate,
    Options,
    Result,
    Solver,
    Start,
    Status,
    Stopping,
    run,
    size_of,
)
from ..losses._base import Floats
from ..losses._loss import AnyLoss, Loss
from ..objectives.objective import Objective
from ..objectives.risk_by_oracle import OracleObjective
from ..options import Option
from ..regularizers import L2, ElasticNet, Regularizer
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import exact, wolfe
from ..steps.quasi_newton import (
    DenseInverseHessian,
    InverseHessian,
    LimitedMemoryInverseHessian,
)
from .aggregated import aggregated_bmrm
from .alm import alm
from .bfgs import bfgs
from .bundle import bmrm, ls_bmrm
from .cd import cd
from .cg import cg
from .common_options import (
    BETWEEN,
    CUTS,
    DIRECTION,
    FIRST_DIRECTION,
    GAP,
    LINE_SEARCH,
    MEMORY,
    MEMORY_OR_NONE,
    SUBGRADIENT,
)
from .fista import fista
from .n_slack import n_slack
from .narrowing import narrowing
from .newton import newton
from .owlqn import owlqn, owlqn_star
from .plans import auto
from .proximal_bundle import proximal_bundle, trust_region_bundle
from .sparse_alm import sparse_alm
from .subbfgs import subbfgs
from .trust_region import trust_region

__all__ = [
    "BUNDLE_SOLVERS",
    "CATALOGUE_SOLVERS",
    "JOINT_SOLVERS",
    "L1_SOLVERS",
    "SOLVERS",
    "STRUCTURED_SOLVERS",
    "History",
    "Iterate",
    "Options",
    "Result",
    "Solver",
    "SolverSpec",
    "Start",
    "Status",
    "Stopping",
    "aggregated_bmrm",
    "alm",
    "auto",
    "bfgs",
    "bmrm",
    "cd",
    "cg",
    "fista",
    "ls_bmrm",
    "minimize_intercept",
    "n_slack",
    "newton",
    "owlqn",
    "owlqn_star",
    "proximal_bundle",
    "run",
    "size_of",
    "sparse_alm",
    "subbfgs",
    "trust_region",
    "trust_region_bundle",
]


@dataclass(frozen=True)
class SolverSpec:
    """The record of a solver: how it is started, and what it needs.

    Attributes
    ----------
    start : callable
        From objective, starting point and options to the generator of iterates.
    smooth : bool or None
        Whether the loss must be differentiable, or must not be; None for any loss.
    proves : bool
        Whether it proves lower bounds by itself, so that its cuts need not be kept.
    l2_only : bool
        Whether the regularizer must be L2.
    l1 : bool
        Whether the regularizer must have an L1 norm.
    first_order : bool
        Whether values and subgradients of the loss are enough.
    steep : bool
        Whether the loss may grow exponentially.
    envelope : bool
        Whether losses that are not smooth must have an envelope.
    narrows : bool
        Whether the loss must offer ``narrowed`` ones.
    options : dict
        What it takes besides the parameters of estimators, by name.
    """

    start: Callable[[Objective, Start, Options], Solver]
    smooth: bool | None = None
    proves: bool = False
    l2_only: bool = True
    l1: bool = False
    first_order: bool = False
    steep: bool = True
    envelope: bool = False
    narrows: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)

    def supports(self, loss: AnyLoss, regularizer: Regularizer | None = None) -> bool:
        """Return whether the solver can minimize an objective; L2 is the default."""
        loss = Loss.of(loss)
        if self.l2_only and not (regularizer is None or isinstance(regularizer, L2)):
            return False
        if self.l1 and not isinstance(regularizer, ElasticNet):
            return False
        if self.narrows and not loss.narrows:
            return False
        if loss.steep and not self.steep:
            return False
        if not (loss.has_lines or self.first_order):
            return False
        if self.envelope and not (loss.smooth or loss.has_envelope):
            return False
        return self.smooth is None or self.smooth == loss.smooth


def _from_w(method: Callable[[Objective, Floats], Solver]) -> Any:
    """Make a method take a start, of which it reads the parameters only."""
    return lambda objective, start, options: method(objective, start.w)


def _limited(objective: Objective, options: Options) -> LimitedMemoryInverseHessian:
    return LimitedMemoryInverseHessian(objective.n_params, options.memory)


def _searching(options: Options) -> dict[str, Any]:
    """Return the settings of searches for descent directions."""
    return {
        "direction_tol": options.direction_tol,
        "direction_max_iter": options.direction_max_iter,
        "epsilon": options.epsilon,
    }


def _search(options: Options) -> Callable[[Any], float]:
    """Return the search along a line."""
    if options.line_search == "exact":
        return exact
    return partial(wolfe, c1=options.c1, c2=options.c2)


def _random(options: Options) -> np.random.Generator | None:
    """Return what draws subgradients at random, if anything."""
    seed = options.random_state
    return None if seed is None else np.random.default_rng(seed)


def _cuts(options: Options) -> dict[str, Any]:
    """Return the settings of bundles of cuts."""
    return {"size": options.bundle_size, "patience": options.patience}


def _sublbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    return _by_subgradients(objective, start, options, _limited(objective, options))


def _subbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = DenseInverseHessian(objective.n_params)
    return _by_subgradients(objective, start, options, hessian)


def _by_subgradients(
    objective: Objective, start: Start, options: Options, hessian: InverseHessian
) -> Solver:
    return subbfgs(
        objective,
        start.w,
        hessian,
        **_searching(options),
        epsilon_0=options.epsilon_0,
        search=_search(options),
    )


def _lbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = _limited(objective, options)
    return bfgs(objective, start.w, hessian, search=_search(options))


def _bfgs(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = DenseInverseHessian(objective.n_params)
    return bfgs(objective, start.w, hessian, search=_search(options))


def _alm(objective: Objective, start: Start, options: Options) -> Solver:
    return alm(objective, start)


_SUBBFGS = DIRECTION | FIRST_DIRECTION | LINE_SEARCH

SOLVERS: dict[str, SolverSpec] = {
    "auto": SolverSpec(auto, envelope=True),
    "sublbfgs": SolverSpec(_sublbfgs, options=MEMORY_OR_NONE | _SUBBFGS),
    "subbfgs": SolverSpec(_subbfgs, options=_SUBBFGS),
    "alm": SolverSpec(_alm, smooth=False, envelope=True),
    "lbfgs": SolverSpec(_lbfgs, smooth=True, options=MEMORY | LINE_SEARCH),
    "bfgs": SolverSpec(_bfgs, smooth=True, options=LINE_SEARCH),
    "newton-cg": SolverSpec(_from_w(newton), smooth=True),
    "trust-region": SolverSpec(_from_w(trust_region), smooth=True),
    "cg": SolverSpec(_from_w(cg), smooth=True),
}


def _cd(objective: Objective, start: Start, options: Options) -> Solver:
    return cd(objective, start, options.stopping)


def _owlqn(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = _limited(objective, options)
    return owlqn(objective, start.w, hessian, random=_random(options))


def _owlqn_star(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = _limited(objective, options)
    return owlqn_star(
        objective, start.w, hessian, **_searching(options), random=_random(options)
    )


#: Solvers of smooth losses with an L1 penalty, or with L2 alone.
L1_SOLVERS: dict[str, SolverSpec] = {
    "auto": SolverSpec(auto, smooth=True, l2_only=False),
    "cd": SolverSpec(_cd, smooth=True, l2_only=False, l1=True),
    "owlqn": SolverSpec(
        _owlqn, smooth=True, l2_only=False, l1=True, options=MEMORY | SUBGRADIENT
    ),
    "owlqn*": SolverSpec(
        _owlqn_star,
        smooth=True,
        l2_only=False,
        l1=True,
        options=MEMORY | DIRECTION | SUBGRADIENT,
    ),
    "fista": SolverSpec(_from_w(fista), smooth=True, l2_only=False, l1=True),
    "newton-cg": SOLVERS["newton-cg"],
    "lbfgs": SOLVERS["lbfgs"],
}


def _bmrm(objective: Objective, start: Start, options: Options) -> Solver:
    return bmrm(objective, start.w, **_cuts(options))


def _ls_bmrm(objective: Objective, start: Start, options: Options) -> Solver:
    return ls_bmrm(
        objective,
        start.w,
        **_cuts(options),
        theta=options.theta,
        cut_at_best=options.cut_at_best,
    )


#: Solvers of any convex loss, up to what their entries say.
BUNDLE_SOLVERS: dict[str, SolverSpec] = {
    "ls-bmrm": SolverSpec(
        _ls_bmrm,
        proves=True,
        l2_only=False,
        first_order=True,
        options=CUTS | GAP | BETWEEN,
    ),
    "bmrm": SolverSpec(
        _bmrm,
        proves=True,
        l2_only=False,
        first_order=True,
        steep=False,
        options=CUTS | GAP,
    ),
    "bmrm-aggregated": SolverSpec(
        _from_w(aggregated_bmrm),
        proves=True,
        first_order=True,
        steep=False,
        options=GAP,
    ),
    "proximal-bundle": SolverSpec(
        _from_w(proximal_bundle), first_order=True, steep=False, options=GAP
    ),
    "trust-region-bundle": SolverSpec(
        _from_w(trust_region_bundle), first_order=True, steep=False, options=GAP
    ),
}


#: Solvers of joint hinges: with an L1 penalty those of cuts, which "auto" takes there.
JOINT_SOLVERS: dict[str, SolverSpec] = {
    **SOLVERS,
    "auto": SolverSpec(auto, l2_only=False, envelope=True),
    "ls-bmrm": BUNDLE_SOLVERS["ls-bmrm"],
    "bmrm": BUNDLE_SOLVERS["bmrm"],
}


def _n_slack(objective: Objective, start: Start, options: Options) -> Solver:
    assert isinstance(objective, OracleObjective), "a risk by an oracle"
    return n_slack(
        objective, start, size=options.bundle_size, stopping=options.stopping
    )


#: Solvers of risks of which only an oracle is known.
STRUCTURED_SOLVERS: dict[str, SolverSpec] = {
    "n-slack": SolverSpec(_n_slack, proves=True, l2_only=False, first_order=True),
    **BUNDLE_SOLVERS,
}


def _narrowing(objective: Objective, start: Start, options: Options) -> Solver:
    return narrowing(objective, start)


#: All solvers of L2-regularized losses and bundle methods; "auto" takes any problem.
CATALOGUE_SOLVERS: dict[str, SolverSpec] = {
    **SOLVERS,
    **BUNDLE_SOLVERS,
    "narrowing": SolverSpec(_narrowing, first_order=True, narrows=True),
    "auto": SolverSpec(auto, l2_only=False, first_order=True),
}
