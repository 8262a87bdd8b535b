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
    parameters do.
    """
    return inspect.signature(function).parameters


@lru_cache(maxsize=512)
def takes_any(function: Callable[..., Any]) -> bool:
    """Whether a function takes keyword arguments of any name."""
    kinds = [each.kind for each in parameters_of(function).values()]
    return inspect.Parameter.VAR_KEYWORD in kinds
