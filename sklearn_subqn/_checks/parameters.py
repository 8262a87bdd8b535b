"""Checks of values, of the parameters of estimators and of the options of solvers."""

from __future__ import annotations

import functools
import numbers
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .._core.options import Option
from .callers import user_level
from .foreign_names import did_you_mean
from .signatures import parameters_of

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
        If the value is not a number, or not an integer where an integer is needed.
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
        # A Python integer may be too large for a float.
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


def _from(low: float, **limits: Any) -> Callable[[str, Any], None]:
    """Return the check of a number of at least ``low``, by ``check_number``."""
    return functools.partial(check_number, low=low, **limits)


def _optional(check: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    """Return a check that also accepts None."""
    return lambda name, value: None if value is None else check(name, value)


_STRENGTH_OR_ZERO = functools.partial(check_strength, may_be_zero=True)
_POSITIVE = _from(0.0, low_included=False)
_SHARE = _from(0.0, high=1.0)
_COUNT = _from(1, integer=True)

#: Checks of parameters by name; a name has the same meaning in all estimators.
_PARAMETERS: dict[str, Callable[[str, Any], None]] = {
    "alpha": check_strength,
    "tol": _from(0.0),
    "max_iter": _COUNT,
    "memory": _COUNT,
    "bundle_size": _optional(_from(2, integer=True)),
    "direction_tol": _from(0.0),
    "direction_max_iter": _COUNT,
    "l1_ratio": _SHARE,
    "min_freq": _from(0.0),
    "p": _from(1.0, low_included=False, high=10.0),
    "beta": _POSITIVE,
    "k": _optional(_COUNT),
    "quantile": check_fraction,
    "epsilon": _optional(_POSITIVE),
    "n_joint_features": _optional(_COUNT),
    "batch_size": _COUNT,
    "eta0": _optional(_POSITIVE),
    "tau": _optional(_POSITIVE),
    "validation_fraction": check_fraction,
    "n_iter_no_change": _COUNT,
    "average": check_flag,
    "early_stopping": check_flag,
    "fit_intercept": check_flag,
    "positive": check_flag,
    "refit": check_flag,
    "one_standard_error": check_flag,
    "threshold": check_flag,
    "all_possible_states": check_flag,
    "all_possible_transitions": check_flag,
    "warm_start": check_flag,
    "n_jobs": check_n_jobs,
    "callback": check_callback,
    "verbose": check_verbose,
}


def once(check: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a check, cached for plain values.

    Repeated fits, such as in a search, have the same parameters.
    """
    if type(args[-1]) in _PLAIN:
        return _known(check, *args)
    return check(*args)


_PLAIN = frozenset([str, bool, int, float, type(None)])


@functools.lru_cache(maxsize=1024, typed=True)
def _known(check: Callable[..., Any], *args: Any) -> Any:
    return check(*args)


def check_parameters(estimator: Any, but: Collection[str] = ()) -> None:
    """Raise for the first parameter with an invalid value.

    Parameters
    ----------
    estimator : estimator instance
    but : collection of str
        Names of parameters to skip: they have no effect, or have been checked before.
    """
    for name, value in vars(estimator).items():
        check = _PARAMETERS.get(name)
        if check is None or name in but:
            continue
        if name == "alpha" and getattr(estimator, "_may_have_no_penalty", False):
            check = _STRENGTH_OR_ZERO
        once(check, name, value)
    if hasattr(estimator, "solver_options"):
        checked_options(estimator)


def warn_of_unused(
    estimator: Any, defaults: Mapping[str, tuple[Any, str, Collection[str]]]
) -> list[str]:
    """Warn of parameters that have no effect with the chosen options.

    Returns all parameters without an effect, set or not.

    Parameters
    ----------
    estimator : estimator instance
    defaults : dict
        For each parameter: its default, the parameter that it depends on, and the
        values of that parameter for which it has an effect.
    """
    unused = []
    for name, (default, depends_on, users) in defaults.items():
        value, choice = getattr(estimator, name), getattr(estimator, depends_on)
        if isinstance(choice, str) and choice in users:
            continue
        unused.append(name)
        if value is default or (default is not None and _equal(value, default)):
            continue
        options = " or ".join(f"{depends_on}={user!r}" for user in users)
        got = repr(choice) if isinstance(choice, str) else type(choice).__name__
        shown = f"{name}={value!r}" if np.ndim(value) == 0 else name
        warnings.warn(
            f"{shown} has no effect with {depends_on}={got}: it belongs to {options}.",
            UserWarning,
            stacklevel=user_level(),
        )
    return unused


def _equal(value: Any, default: Any) -> bool:
    """Whether a parameter, of any type, equals its default."""
    return isinstance(value, type(default) | numbers.Number) and value == default


def checked_options(estimator: Any) -> dict[str, Any]:
    """Return ``solver_options``, by the names of the solver's settings.

    Raises
    ------
    TypeError
        If the options are not a dict, or a value has the wrong type.
    ValueError
        If the solver does not take an option, a value is out of range or has no effect,
        or a parameter contradicts an option.
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
    """Raise ValueError if options contradict, or need another option."""
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
