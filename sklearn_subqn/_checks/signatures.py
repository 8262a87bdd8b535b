"""Parameters of functions and classes, with signatures that are read only once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, dataclass_transform

_Kind = TypeVar("_Kind", bound=type)


@lru_cache(maxsize=512)
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function or a class by name.

    Python parses a signature at each call, which takes as long as many checks. The
    parameters of a class are the parameters of its constructor: early versions of
    Python 3.11 prefer an inherited ``__new__`` to an inherited ``__init__``.
    """
    if not isinstance(function, type):
        return inspect.signature(function).parameters
    own: Any = function
    known = inspect.signature(own.__init__).parameters
    return {name: each for name, each in known.items() if name != "self"}


@lru_cache(maxsize=512)
def takes_any(function: Callable[..., Any]) -> bool:
    """Whether a function takes arbitrary keyword arguments."""
    kinds = [each.kind for each in parameters_of(function).values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


@dataclass_transform(eq_default=False)
def with_parameters(*, kw_only: bool = False) -> Callable[[_Kind], _Kind]:
    """Make the fields of an estimator's class its parameters, as in a data class.

    The result is an ordinary class for other packages. Dask, for example, copies only
    the fields of data classes, and would drop fitted attributes.
    """

    def decorated(kind: Any) -> Any:
        bases = [base for base in kind.__mro__[1:] if "_parameter_fields" in vars(base)]
        for base in bases:
            base.__dataclass_fields__ = base._parameter_fields
        dataclass(eq=False, kw_only=kw_only, repr=False)(kind)
        kind._parameter_fields = kind.__dataclass_fields__
        for each in (kind, *bases):
            del each.__dataclass_fields__
        return kind

    return decorated
