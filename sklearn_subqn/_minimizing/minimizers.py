"""The methods that ``minimize`` knows, and what each of them takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._checks import check_number
from .._checks.foreign_names import did_you_mean
from .._core.objectives.generic import FunctionObjective
from .._core.solvers import Solver, bfgs, subbfgs
from .._core.steps.line_search import wolfe
from .._core.steps.quasi_newton import (
    DenseInverseHessian,
    InverseHessian,
    LimitedMemoryInverseHessian,
)
from .._solving.solution import Floats

# What options may be: the default, and the limits of ``check_number``.
_OPTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "memory": (15, {"low": 1, "integer": True}),
    "direction_tol": (1e-5, {"low": 0.0}),
    "direction_max_iter": (100, {"low": 1, "integer": True}),
    "c1": (1e-4, {"low": 0.0, "low_included": False, "high": 1.0}),
    "c2": (0.9, {"low": 0.0, "high": 1.0, "high_included": False}),
    "bundle_size": (None, {"low": 2, "integer": True}),
}
_DIRECTION = ("direction_tol", "direction_max_iter")
_WOLFE = ("c1", "c2")


@dataclass(frozen=True)
class Minimizer:
    """What a method takes.

    Attributes
    ----------
    options : tuple of str
    by_cuts : bool
        Whether it needs a penalty.
    l1 : bool or None
        Whether the penalty must have an L1 norm, or must not; None for any.
    smooth : bool
        Whether it is for differentiable functions.
    """

    options: tuple[str, ...] = ()
    by_cuts: bool = False
    l1: bool | None = False
    smooth: bool = False


MINIMIZERS = {
    "sublbfgs": Minimizer(("memory", *_DIRECTION, *_WOLFE)),
    "subbfgs": Minimizer((*_DIRECTION, *_WOLFE)),
    "lbfgs": Minimizer(("memory", *_WOLFE), smooth=True),
    "bfgs": Minimizer(_WOLFE, smooth=True),
    "owlqn": Minimizer(("memory",), l1=True, smooth=True),
    "owlqn*": Minimizer(("memory", *_DIRECTION), l1=True, smooth=True),
    "ls-bmrm": Minimizer(("bundle_size",), by_cuts=True, l1=None),
    "bmrm": Minimizer(("bundle_size",), by_cuts=True, l1=None),
    "bmrm-aggregated": Minimizer(by_cuts=True),
    "proximal-bundle": Minimizer(by_cuts=True),
    "trust-region-bundle": Minimizer(by_cuts=True),
}


def quasi_newton(
    method: str, function: FunctionObjective, w: Floats, given: Mapping[str, Any]
) -> Solver:
    """Return a run of a quasi-Newton method with steps by Wolfe's conditions."""
    settings = {name: given.get(name, _OPTIONS[name][0]) for name in _OPTIONS}
    hessian: InverseHessian = DenseInverseHessian(len(w))
    if method.endswith("lbfgs"):
        hessian = LimitedMemoryInverseHessian(len(w), settings["memory"])
    search = partial(wolfe, c1=settings["c1"], c2=settings["c2"])
    if not method.startswith("sub"):
        return bfgs(function, w, hessian, search=search)
    direction = {name: settings[name] for name in _DIRECTION}
    return subbfgs(function, w, hessian, search=search, **direction)


def check_penalty(method: str, alpha: float, l1_ratio: float, infimum: float) -> None:
    """Raise ValueError unless the method takes the penalty."""
    chosen, l1 = MINIMIZERS[method], l1_ratio > 0.0
    if l1 and not alpha:
        raise ValueError(f"l1_ratio={l1_ratio!r} needs alpha > 0, got alpha=0.")
    if not alpha and (chosen.by_cuts or chosen.l1):
        names = [k for k, v in MINIMIZERS.items() if not (v.by_cuts or v.l1)]
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
    if chosen.by_cuts and l1_ratio == 1.0 and infimum == -np.inf:
        raise ValueError(
            f"method={method!r} with l1_ratio=1 needs infimum, a lower bound of the "
            "function: cuts plus an L1 norm alone may fall without end."
        )


def options_of(method: str, options: Any) -> dict[str, Any]:
    """Return options that the method takes."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(
            f"options must be a dict or None, got {options!r} of type "
            f"{type(options).__name__}."
        )
    known = MINIMIZERS[method].options
    for name, value in options.items():
        if name not in known:
            its = f"are {', '.join(known)}" if known else "there are none"
            names = [repr(k) for k, v in MINIMIZERS.items() if name in v.options]
            other = f" Give method= one of {', '.join(names)} for it." if names else ""
            raise ValueError(
                f"options has {name!r}, but of method={method!r} {its}."
                + (other or did_you_mean(name, known))
            )
        default, limits = _OPTIONS[name]
        if value is not None or default is not None:
            check_number(f"options[{name!r}]", value, **limits)
    c1, c2 = (options.get(name, _OPTIONS[name][0]) for name in _WOLFE)
    if not c1 < c2:
        raise ValueError(f"options must have c1 < c2, got c1={c1!r} and c2={c2!r}.")
    return dict(options)
