"""Parameters of functions and classes, read from their signatures once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=512)
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function or a class by their names.

    Python reads a signature anew each time, which takes as long as many checks of
    parameters do. Those of a class are of its constructor: early versions of Python
    3.11 take an inherited ``__new__`` before an inherited ``__init__``.
    """
    if not isinstance(function, type):
        return inspect.signature(function).parameters
    own: Any = function
    known = inspect.signature(own.__init__).parameters
    return {name: each for name, each in known.items() if name != "self"}


@lru_cache(maxsize=512)
def takes_any(function: Callable[..., Any]) -> bool:
    """Whether a function takes keyword arguments of any name."""
    kinds = [each.kind for each in parameters_of(function).values()]
    return inspect.Parameter.VAR_KEYWORD in kinds
