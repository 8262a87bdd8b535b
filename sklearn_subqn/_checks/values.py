"""Checks of single values: numbers, flags, names."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .foreign_names import did_you_mean

#: Value of ``alpha`` that selects a strength by rule.
AUTO = "auto"


def check_number(
    name: str,
    value: Any,
    *,
    low: float,
    low_included: bool = True,
    high: float = np.inf,
    high_included: bool = True,
    integer: bool = False,
) -> None:
    """Raise unless ``value`` is a finite number from ``low`` to ``high``.

    Raises
    ------
    TypeError
        If the value is no number, or no integer where an integer is needed.
    ValueError
        If the value is too small or too large, infinite or NaN.
    """
    kind = numbers.Integral if integer else numbers.Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        expected = "an integer" if integer else "a number"
        raise TypeError(
            f"{name} must be {expected}, got {value!r} of type {type(value).__name__}."
        )
    try:
        number = float(value)
    except OverflowError:
        # Integers may exceed every float.
        number = float(np.iinfo(np.int64).max) if integer else np.inf
    above = number >= low if low_included else number > low
    below = number <= high if high_included else number < high
    if not (above and below) or number == np.inf:
        bounds = f"{'>=' if low_included else '>'} {low:g}"
        if high == np.inf:
            bounds = f"finite and {bounds}"
        else:
            bounds += f" and {'<=' if high_included else '<'} {high:g}"
        raise ValueError(f"{name} must be {bounds}, got {value!r}.")


def check_strength(name: str, value: Any, *, may_be_zero: bool = False) -> None:
    """Raise unless ``value`` is "auto" or a positive number; zero only if allowed."""
    if isinstance(value, str):
        if value != AUTO:
            raise TypeError(
                f"{name} must be a number or 'auto', got {value!r} of type str."
            )
        return
    if isinstance(value, (list, tuple, np.ndarray)):
        raise TypeError(
            f"{name} must be a number or 'auto', got {value!r} of type "
            f"{type(value).__name__}. GridSearchCV and the estimators whose names end "
            "in CV choose among several values."
        )
    check_number(name, value, low=0.0, low_included=may_be_zero)


def check_fraction(name: str, value: Any) -> None:
    """Raise unless ``value`` is a number between 0 and 1."""
    check_number(
        name, value, low=0.0, low_included=False, high=1.0, high_included=False
    )


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{name} must be True or False, got {value!r} of type "
            f"{type(value).__name__}."
        )


def check_verbose(name: str, value: Any) -> None:
    """Raise unless ``value`` is an integer >= 0, or True or False."""
    if not isinstance(value, (bool, np.bool_)):
        check_number(name, value, low=0, integer=True)


def check_n_jobs(name: str, value: Any) -> None:
    """Raise unless ``value`` is None or an integer other than 0."""
    if value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be None or an integer, got {value!r} of type "
            f"{type(value).__name__}."
        )
    if value == 0:
        raise ValueError(
            f"{name} must be None, a positive number of threads, or negative to count "
            "from the number of processors; got 0."
        )


def check_callback(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is None or callable."""
    if value is not None and not callable(value):
        raise TypeError(
            f"{name} must be callable or None, got {value!r} of type "
            f"{type(value).__name__}."
        )


def check_option(name: str, value: Any, accepted: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the accepted strings."""
    if not isinstance(value, str) or value not in accepted:
        options = ", ".join(repr(option) for option in accepted)
        raise ValueError(
            f"{name} must be one of {options}; got {value!r}."
            + did_you_mean(value, accepted, of_losses=name == "loss")
        )
