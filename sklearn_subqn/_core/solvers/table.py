"""The table of solvers by name, with their functions and requirements.

To add a solver, write its file, import it here and add an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..driver import Options, Solver, Start
from ..losses._base import Floats
from ..objectives.objective import Objective
from ..objectives.risk_by_oracle import OracleObjective
from ..steps.line_search import exact, wolfe
from ..steps.quasi_newton import (
    DenseInverseHessian,
    InverseHessian,
    LimitedMemoryInverseHessian,
)
from .aggregated import aggregated_bmrm
from .alm import alm, narrowing
from .bfgs import bfgs
from .bundle import bmrm, ls_bmrm
from .cd import cd
from .cg import cg
from .common_options import (
    AT_KINKS,
    BETWEEN,
    CURVATURE,
    CUTS,
    DECAY,
    DIRECTION,
    FIRST_DIRECTION,
    FORMULA,
    GAP,
    GRADIENT,
    LINE_SEARCH,
    MEMORY,
    MEMORY_OR_NONE,
    PROXIMITY,
    REGION,
    RESTART,
    SERIOUS,
    SLOPES_AT_ZERO,
    STEP,
    SUBGRADIENT,
    TRUST,
)
from .cyclic import cyclic
from .fista import fista
from .ista import ista
from .n_slack import n_slack
from .newton import newton
from .owlqn import owlqn, owlqn_star
from .plans import auto
from .proximal_bundle import proximal_bundle, trust_region_bundle
from .spec import (
    ANY,
    BY_BLOCKS,
    BY_COORDINATES,
    DIFFERENTIABLE,
    FINITE,
    PROXIMAL,
    SQUARES,
    WITH_L1,
    SolverSpec,
)
from .subbfgs import subbfgs
from .subgradient import subgradient
from .trust_region import trust_region


def _from_w(method: Callable[[Objective, Floats], Solver]) -> Any:
    """Return a function of a start for a method that takes parameters only."""
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
    """Return the random generator of subgradients, None if they are not random."""
    seed = options.random_state
    return None if seed is None else np.random.default_rng(seed)


def _cuts(options: Options) -> dict[str, Any]:
    """Return the settings of bundles of cuts."""
    size, patience = options.bundle_size, options.patience
    endless = patience is None or _is_endless(options)
    return {"size": size, "patience": patience, "endless": endless}


def _is_endless(options: Options) -> bool:
    """Whether bundle methods continue without progress: no tolerance is set."""
    return options.stopping.tol == 0.0


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
        h=options.h,
        random=_random(options),
    )


def _lbfgs(objective: Objective, start: Start, options: Options) -> Solver:
    return _by_gradients(objective, start, options, _limited(objective, options))


def _bfgs(objective: Objective, start: Start, options: Options) -> Solver:
    hessian = DenseInverseHessian(objective.n_params)
    return _by_gradients(objective, start, options, hessian)


def _by_gradients(
    objective: Objective, start: Start, options: Options, hessian: InverseHessian
) -> Solver:
    return bfgs(
        objective,
        start.w,
        hessian,
        search=_search(options),
        epsilon=options.gradient or 0.0,
    )


def _by_wolfe(objective: Objective, start: Start, options: Options) -> Solver:
    # Each exact line search takes several calls of an oracle.
    return _lbfgs(objective, start, replace(options, line_search="wolfe"))


def _alm(objective: Objective, start: Start, options: Options) -> Solver:
    return alm(objective, start)


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


def _bmrm(objective: Objective, start: Start, options: Options) -> Solver:
    return bmrm(objective, start.w, **_cuts(options))


def _aggregated(objective: Objective, start: Start, options: Options) -> Solver:
    return aggregated_bmrm(objective, start.w, endless=_is_endless(options))


def _ls_bmrm(objective: Objective, start: Start, options: Options) -> Solver:
    return ls_bmrm(
        objective,
        start.w,
        **_cuts(options),
        theta=options.theta,
        cut_at_best=options.cut_at_best,
    )


def _narrowing(objective: Objective, start: Start, options: Options) -> Solver:
    return narrowing(objective, start)


def _trust_region(objective: Objective, start: Start, options: Options) -> Solver:
    return trust_region(
        objective, start.w, delta=options.delta, low=options.low, high=options.high
    )


def _cg(objective: Objective, start: Start, options: Options) -> Solver:
    return cg(objective, start.w, beta=options.beta)


def _proximal_bundle(objective: Objective, start: Start, options: Options) -> Solver:
    return proximal_bundle(objective, start.w, rho=options.rho, zeta=options.zeta)


def _trust_region_bundle(
    objective: Objective, start: Start, options: Options
) -> Solver:
    return trust_region_bundle(objective, start.w, rho=options.rho, kappa=options.kappa)


def _ista(objective: Objective, start: Start, options: Options) -> Solver:
    return ista(objective, start.w, eta0=options.eta0)


def _fista(objective: Objective, start: Start, options: Options) -> Solver:
    return fista(objective, start.w, eta0=options.eta0, restart=options.restart)


def _subgradient(objective: Objective, start: Start, options: Options) -> Solver:
    return subgradient(
        objective,
        start.w,
        eta0=options.eta0,
        tau=options.tau,
        random=_random(options),
    )


def _n_slack(objective: Objective, start: Start, options: Options) -> Solver:
    assert isinstance(objective, OracleObjective), "a risk by an oracle"
    return n_slack(
        objective, start, size=options.bundle_size, stopping=options.stopping
    )


_SUBBFGS = DIRECTION | FIRST_DIRECTION | LINE_SEARCH | CURVATURE | AT_KINKS

#: Bundle methods: solvers of any convex loss, within the limits of their entries.
BUNDLE_SOLVERS: dict[str, SolverSpec] = {
    "ls-bmrm": SolverSpec(
        _ls_bmrm,
        proves=True,
        penalties=ANY,
        first_order=True,
        options=CUTS | GAP | BETWEEN,
    ),
    "bmrm": SolverSpec(
        _bmrm,
        proves=True,
        penalties=ANY,
        first_order=True,
        options=CUTS | GAP,
    ),
    "bmrm-aggregated": SolverSpec(
        _aggregated,
        proves=True,
        penalties=SQUARES,
        first_order=True,
        options=GAP,
    ),
    "proximal-bundle": SolverSpec(
        _proximal_bundle,
        penalties=FINITE,
        first_order=True,
        options=GAP | SERIOUS | PROXIMITY,
    ),
    "trust-region-bundle": SolverSpec(
        _trust_region_bundle,
        penalties=FINITE,
        first_order=True,
        options=GAP | SERIOUS | REGION,
    ),
}

#: The solvers of linear scores, which all estimators of linear scores support.
SOLVERS: dict[str, SolverSpec] = {
    "auto": SolverSpec(auto, penalties=ANY, first_order=True),
    # Quasi-Newton methods.
    "sublbfgs": SolverSpec(
        _sublbfgs, penalties=DIFFERENTIABLE, options=MEMORY_OR_NONE | _SUBBFGS
    ),
    "subbfgs": SolverSpec(_subbfgs, penalties=DIFFERENTIABLE, options=_SUBBFGS),
    "lbfgs": SolverSpec(
        _lbfgs,
        smooth=True,
        penalties=DIFFERENTIABLE,
        options=MEMORY | LINE_SEARCH | GRADIENT,
    ),
    "bfgs": SolverSpec(
        _bfgs,
        smooth=True,
        penalties=DIFFERENTIABLE,
        options=LINE_SEARCH | GRADIENT,
    ),
    "owlqn": SolverSpec(
        _owlqn, smooth=True, penalties=WITH_L1, options=MEMORY | SUBGRADIENT
    ),
    "owlqn*": SolverSpec(
        _owlqn_star,
        smooth=True,
        penalties=WITH_L1,
        options=MEMORY | DIRECTION | SUBGRADIENT,
    ),
    # Second derivatives.
    "alm": SolverSpec(_alm, smooth=False, envelope=True),
    "narrowing": SolverSpec(_narrowing, first_order=True, narrows=True),
    "newton-cg": SolverSpec(_from_w(newton), smooth=True),
    "trust-region": SolverSpec(_trust_region, smooth=True, options=TRUST),
    "cd": SolverSpec(_cd, smooth=True, penalties=BY_BLOCKS, by_columns=True),
    "cyclic-cd": SolverSpec(_from_w(cyclic), penalties=BY_COORDINATES, quadratic=True),
    # Gradients alone.
    "cg": SolverSpec(_cg, smooth=True, penalties=DIFFERENTIABLE, options=FORMULA),
    "fista": SolverSpec(
        _fista, smooth=True, penalties=PROXIMAL, options=STEP | RESTART
    ),
    "ista": SolverSpec(_ista, smooth=True, penalties=PROXIMAL, options=STEP),
    "subgradient": SolverSpec(
        _subgradient,
        penalties=FINITE,
        first_order=True,
        steep=False,
        options=STEP | DECAY | SLOPES_AT_ZERO,
    ),
    # Cuts.
    **BUNDLE_SOLVERS,
}

#: Solvers of risks that are given by an oracle.
STRUCTURED_SOLVERS: dict[str, SolverSpec] = {
    "n-slack": SolverSpec(_n_slack, proves=True, penalties=ANY, first_order=True),
    **BUNDLE_SOLVERS,
}

#: Solvers of such risks that are smooth.
SMOOTH_STRUCTURED_SOLVERS: dict[str, SolverSpec] = {
    "lbfgs": SolverSpec(_by_wolfe, smooth=True, options=MEMORY | GRADIENT),
    "owlqn": SOLVERS["owlqn"],
    **STRUCTURED_SOLVERS,
}
