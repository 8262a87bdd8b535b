"""Checks of the options of solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.options import Option
from .foreign_names import did_you_mean
from .signatures import parameters_of
from .values import check_flag, check_number, check_option


def checked_options(estimator: Any) -> dict[str, Any]:
    """Return what ``solver_options`` says, by the names that solvers read.

    Raises
    ------
    TypeError
        If it is no dict, or a value of another type than it must be.
    ValueError
        If the solver does not take an option, a value is out of range or has no effect,
        or a parameter says something else.
    """
    given = getattr(estimator, "solver_options", None)
    if given is None or "solver_options" in getattr(estimator, "_without_effect", ()):
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            "solver_options must be a dict from names of options to values, or None; "
            f"got {given!r} of type {type(given).__name__}."
        )
    solver, known = estimator.solver, estimator._known_options()
    for name in given:
        if name not in known:
            accepted = ", ".join(f"{each} ({known[each].range})" for each in known)
            raise ValueError(
                f"solver_options has {name!r}, which solver={solver!r} does not take. "
                + (f"Its options are {accepted}." if known else "It has no options.")
                + did_you_mean(name, known)
            )
    kind: Any = type(estimator)
    defaults = parameters_of(kind)
    for name, value in given.items():
        option = known[name]
        check_option_of_solver(f"solver_options[{name!r}]", value, option)
        parameter = option.parameter
        if parameter in defaults:
            other = getattr(estimator, parameter)
            if other != defaults[parameter].default and other != value:
                raise ValueError(
                    f"{parameter}={other!r} and solver_options[{name!r}]={value!r} "
                    "contradict each other. Give one of them."
                )
    check_together("solver_options", f"solver={solver!r}", given, known)
    return {known[name].setting or name: value for name, value in given.items()}


def check_together(
    where: str, method: str, given: Mapping[str, Any], known: Mapping[str, Option]
) -> None:
    """Raise ValueError where options contradict, or have no effect without others."""
    values = {name: option.default for name, option in known.items()} | dict(given)
    for name in given:
        needs = known[name].needs
        if needs is not None and values[needs[0]] != needs[1]:
            raise ValueError(
                f"{where}[{name!r}] has no effect without {needs[0]}={needs[1]!r}."
            )
    for name, option in known.items():
        limit = values.get(option.below)
        if limit is not None and not values[name] < limit:
            raise ValueError(
                f"The option {name} of {method} must be less than "
                f"{option.below}, got {name}={values[name]!r} and "
                f"{option.below}={limit!r}."
            )


def check_option_of_solver(name: str, value: Any, option: Option) -> None:
    """Raise unless a value is in the range of an option."""
    if option.optional and value is None:
        return
    if option.choices:
        check_option(name, value, option.choices)
    elif option.flag:
        check_flag(name, value)
    else:
        check_number(
            name,
            value,
            low=option.low,
            low_included=option.low_included,
            high=option.high,
            high_included=option.high_included,
            integer=option.integer,
        )
