"""The methods of ``minimize``, with the options and penalties of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._checks.foreign_names import did_you_mean
from .._checks.parameters import check_option_of_solver, check_together
from .._core.arrays import Floats
from .._core.objectives.generic import FunctionObjective
from .._core.options import Option
from .._core.regularizers import L2, ElasticNet
from .._core.solvers import SOLVERS, Options, Solver, bfgs, subbfgs
from .._core.steps.line_search import exact_on_function, wolfe
from .._core.steps.quasi_newton import (
    DenseInverseHessian,
    InverseHessian,
    LimitedMemoryInverseHessian,
)

#: Options with these names in estimators; the solvers use the same settings.
_RELATIVE = {
    "direction_tol": Option("tolerance of Alg. 3.2, relative to F", 1e-5, low=0.0),
    "direction_max_iter": Option("k_max by another name", 100, low=1, integer=True),
}


_QUASI_NEWTON = ("sublbfgs", "subbfgs", "lbfgs", "bfgs")

_BY_PRODUCTS = ("newton-cg", "trust-region")


@dataclass(frozen=True)
class Minimizer:
    """Options and requirements of a method.

    Attributes
    ----------
    options : dict of Option
    by_cuts : bool
        Whether the method is a bundle method.
    penalized : bool
        Whether the method needs a penalty.
    l1 : bool or None
        Whether the penalty must have an L1 norm (True) or must not (False); None for
        any penalty.
    smooth : bool
        Whether the function must be differentiable.
    by_products : bool
        Whether the method takes products with the Hessian, and needs them.
    """

    options: Mapping[str, Option]
    by_cuts: bool
    penalized: bool
    l1: bool | None
    smooth: bool
    by_products: bool


def _minimizer(name: str) -> Minimizer:
    """Return the options and requirements of a solver for user functions."""
    spec = SOLVERS[name]
    options = dict(spec.options)
    if "k_max" in options:
        options |= _RELATIVE
    if name in ("sublbfgs", "subbfgs"):
        # The seed selects subgradients of rows on kinks; user functions have no rows.
        options.pop("random_state")
    if "line_search" in options:
        # A Wolfe search needs the fewest function evaluations.
        options["line_search"] = replace(options["line_search"], default="wolfe")
    takes_l2, takes_l1 = map(spec.takes_penalty, (L2(1), ElasticNet(1)))
    return Minimizer(
        options,
        by_cuts="bmrm" in name or "bundle" in name,
        penalized=name not in (*_QUASI_NEWTON, *_BY_PRODUCTS),
        l1=None if takes_l2 and takes_l1 else takes_l1,
        smooth=spec.smooth is True,
        by_products=name in _BY_PRODUCTS,
    )


MINIMIZERS = {
    name: _minimizer(name)
    for name in (
        *_QUASI_NEWTON,
        *_BY_PRODUCTS,
        "owlqn",
        "owlqn*",
        "fista",
        "ista",
        "subgradient",
        "ls-bmrm",
        "bmrm",
        "bmrm-aggregated",
        "proximal-bundle",
        "trust-region-bundle",
    )
}


def quasi_newton(
    method: str, function: FunctionObjective, w: Floats, options: Options
) -> Solver:
    """Return the iterates of a quasi-Newton method."""
    hessian: InverseHessian = DenseInverseHessian(len(w))
    if method.endswith("lbfgs"):
        hessian = LimitedMemoryInverseHessian(len(w), options.memory)
    search: Any = exact_on_function
    if options.line_search == "wolfe":
        search = partial(wolfe, c1=options.c1, c2=options.c2)
    if not method.startswith("sub"):
        epsilon = options.gradient or 0.0
        return bfgs(function, w, hessian, search=search, epsilon=epsilon)
    return subbfgs(
        function,
        w,
        hessian,
        direction_tol=options.direction_tol,
        direction_max_iter=options.direction_max_iter,
        epsilon=options.epsilon,
        epsilon_0=options.epsilon_0,
        search=search,
        h=options.h,
    )


def check_penalty(method: str, alpha: float, l1_ratio: float, infimum: float) -> None:
    """Raise ValueError unless the method takes the penalty."""
    chosen, l1 = MINIMIZERS[method], l1_ratio > 0.0
    if l1 and not alpha:
        raise ValueError(f"l1_ratio={l1_ratio!r} needs alpha > 0, got alpha=0.")
    if not alpha and chosen.penalized:
        names = [k for k, v in MINIMIZERS.items() if not v.penalized]
        raise ValueError(
            f"method={method!r} needs a penalty, alpha > 0, got alpha=0; methods "
            f"without one are {', '.join(map(repr, names))}."
        )
    if chosen.l1 is not None and chosen.l1 != l1:
        names = [k for k, v in MINIMIZERS.items() if v.l1 in (None, l1)]
        raise ValueError(
            f"method={method!r} does not support l1_ratio={l1_ratio!r}; methods that "
            f"do are {', '.join(map(repr, names))}."
        )
    if "bmrm" in method and l1_ratio == 1.0 and infimum == -np.inf:
        raise ValueError(
            f"method={method!r} with l1_ratio=1 needs infimum, a lower bound of the "
            "function: cuts plus an L1 norm alone may fall without end."
        )


def given_options(method: str, options: Any) -> Options:
    """Return the checked options of a method."""
    table = {name: minimizer.options for name, minimizer in MINIMIZERS.items()}
    known = table[method]
    options = check_options(method, options, table)
    if {"k_max", "direction_max_iter"} <= options.keys():
        raise ValueError("options has k_max and direction_max_iter. Give one of them.")
    defaults = {"line_search": "wolfe"} if "line_search" in known else {}
    given = {known[name].setting or name: value for name, value in options.items()}
    return Options(**defaults | given)


def check_options(
    method: str, options: Any, table: Mapping[str, Mapping[str, Option]]
) -> Mapping[str, Any]:
    """Return the options, or raise unless the method takes them.

    Parameters
    ----------
    method : str
    options : dict or None
    table : mapping
        The options of all methods.
    """
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        raise TypeError(
            f"options must be a dict or None, got {options!r} of type "
            f"{type(options).__name__}."
        )
    known = table[method]
    for name, value in options.items():
        if name not in known:
            its = f"are {', '.join(known)}" if known else "there are none"
            names = [repr(k) for k, v in table.items() if name in v]
            other = f" Give method= one of {', '.join(names)} for it." if names else ""
            raise ValueError(
                f"options has {name!r}, but of method={method!r} {its}."
                + (other or did_you_mean(name, known))
            )
        check_option_of_solver(f"options[{name!r}]", value, known[name])
    check_together("options", f"method={method!r}", options, known)
    return options
