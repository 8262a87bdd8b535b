"""Online methods, each in a file: a picklable state, and one step for each batch.

``ONLINE_METHODS`` lists the methods by name; the hyperparameters of a method are the
fields of its class. To add a method, write its file, import the class here and add an
entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from ..options import Option, options_of
from .adaptive import AdaGrad, Adam, RMSProp
from .averaging import Averaged
from .convergence import ConvergenceTest
from .method import Batch, Method, State, check_finite, step_size
from .momentum import Momentum
from .natural_gradient import NaturalGradient
from .obfgs import OBFGS
from .olbfgs import OLBFGS
from .res import RES, LimitedRES
from .sgd import SGD
from .smd import SMD
from .sparse_columns import ColumnwiseLBFGS

__all__ = [
    "ONLINE_METHODS",
    "Averaged",
    "Batch",
    "ConvergenceTest",
    "Method",
    "State",
    "check_finite",
    "hyperparameters",
    "known_options",
    "online_method",
    "step_size",
]

ONLINE_METHODS: dict[str, Callable[..., Method[Any]]] = {
    # Takes a ``LinearBatch``, which has more methods than the ``Batch`` protocol.
    "auto": ColumnwiseLBFGS,  # type: ignore[dict-item]
    "olbfgs": OLBFGS,
    "obfgs": OBFGS,
    "res-bfgs": RES,
    "res-lbfgs": LimitedRES,
    "sgd": SGD,
    "smd": SMD,
    "ng": NaturalGradient,
    "momentum": Momentum,
    "nesterov": partial(Momentum, nesterov=True),
    "adagrad": AdaGrad,
    "rmsprop": RMSProp,
    "adam": Adam,
}


def hyperparameters(name: str) -> dict[str, Any]:
    """Return the hyperparameters of a method, with their defaults."""
    method = ONLINE_METHODS[name]()
    fixed = getattr(ONLINE_METHODS[name], "keywords", {})
    return {
        field.name: getattr(method, field.name)
        for field in fields(method)  # type: ignore[arg-type]
        if field.name not in fixed
    }


def known_options(name: str) -> Mapping[str, Option]:
    """Return the options of a method by name."""
    return options_of(ONLINE_METHODS[name]())


def online_method(name: str, **options: Any) -> Method[Any]:
    """Return the method of the given name.

    Raises
    ------
    TypeError
        If the method does not have one of the options.
    """
    unknown = sorted(options.keys() - hyperparameters(name).keys())
    if unknown:
        raise TypeError(f"The method {name!r} takes no {', '.join(unknown)}.")
    return ONLINE_METHODS[name](**options)
