"""Checks of the arguments of losses."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._base import Floats, Rows


def check_positive(name: str, value: Any, *, integer: bool = False) -> None:
    """Raise ValueError unless ``value`` is a positive finite number."""
    kind = numbers.Integral if integer else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < np.inf:
        expected = "a positive integer" if integer else "a positive number"
        raise ValueError(f"{name} must be {expected}, got {value!r}.")


def check_choice(name: str, value: Any, options: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {list(options)}, got {value!r}.")


def checked_costs(
    name: str, costs: Any, shape: tuple[int, ...] | None = None
) -> Floats:
    """Return non-negative costs of a shape, by default of any square table."""
    array = np.asarray(costs, dtype=np.float64)
    wanted = array.shape[:1] * 2 if shape is None else shape
    if not array.ndim or array.shape != wanted:
        raise ValueError(f"{name} has the wrong shape {array.shape}.")
    if not np.all((array >= 0.0) & (array < np.inf)):
        raise ValueError(f"{name} must be finite and non-negative.")
    return np.ascontiguousarray(array)


def checked_rows(name: str, rows: Any, ndim: int) -> Rows:
    """Return an array of non-negative integers with ``ndim`` dimensions."""
    array = np.asarray(rows)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got {array.ndim}.")
    integers = array.astype(np.intp)
    if not np.array_equal(integers, array) or integers.min(initial=0) < 0:
        raise ValueError(f"{name} must be non-negative integers.")
    return np.ascontiguousarray(integers)
