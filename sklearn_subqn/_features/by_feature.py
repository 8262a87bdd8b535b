"""Per-feature numbers from users: in column order, or by the names of the features."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._checks import check_matrix, check_unmasked
from .._core.arrays import Floats, Mask
from .._core.names import Axis, by_name, named, places


def by_feature(name: str, given: Any, n_features: int, axis: Axis) -> Floats:
    """Return numbers of shape (n_features,) in the order of the features.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    given : array-like of shape (n_features,), dict or Series
        Keys of a dict, and of a Series with an index of its own, are names of features.
    n_features : int
    axis : Axis
        The axis of the features.

    Raises
    ------
    TypeError
        If the values are not numbers.
    ValueError
        If there is not one value for each feature, a value is NaN, or names do not
        match.
    """
    values, names, where = named(given)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "buif" and array.dtype != object:
            raise TypeError
        numbers = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be numbers, one for each feature: an array, or a dict or "
            f"Series by the names of features; got {given!r}."
        ) from error
    check_unmasked(name, values)
    if names is not None and numbers.ndim == 1:
        numbers = numbers[places(name, names, axis, where)]
    if numbers.shape != (n_features,):
        raise ValueError(
            f"{name} must have one number for each of the {n_features} features; got "
            f"an array of shape {numbers.shape}."
        )
    if np.isnan(numbers).any():
        raise ValueError(f"{name} must not be NaN; got {given!r}.")
    return numbers


def penalty_factors(given: Any, n_features: int, axis: Axis) -> Floats:
    """Return ``penalty_factor`` in the order of the features, 1 for missing names.

    Raises
    ------
    TypeError, ValueError
        As in ``by_feature``, or if a factor is negative or infinite.
    """
    given = _completed(given, 1.0, axis)
    factors = by_feature("penalty_factor", given, n_features, axis)
    wrong = (factors < 0.0) | np.isinf(factors)
    if wrong.any():
        one = axis.what.removesuffix("s")
        raise ValueError(
            f"penalty_factor must be finite and >= 0 for each {one}; got "
            f"{factors[wrong][0]:g} for the {one} {_first(wrong, axis)}."
        )
    return factors


def coefficient_bounds(
    given: Any, n_features: int, axis: Axis
) -> tuple[Floats, Floats]:
    """Return the lower and upper bounds of ``coef_bounds`` in order of the features.

    Raises
    ------
    TypeError, ValueError
        As in ``by_feature``, or if there is no pair, or zero is not between the bounds.
    """
    try:
        low, high = (None, None) if given is None else given
    except (TypeError, ValueError) as error:
        raise ValueError(
            "coef_bounds must be a pair (low, high), each a number, None, or one "
            f"number for each feature; got {given!r}."
        ) from error
    bounds = []
    for bound, infinite in ((low, -np.inf), (high, np.inf)):
        scalar = infinite if bound is None else bound
        if isinstance(scalar, numbers.Real):
            scalar = np.full(n_features, float(scalar))
        scalar = _completed(scalar, infinite, axis)
        bounds.append(by_feature("coef_bounds", scalar, n_features, axis))
    wrong = (bounds[0] > 0.0) | (bounds[1] < 0.0)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            "coef_bounds must have low <= 0 <= high; got "
            f"({bounds[0][place]:g}, {bounds[1][place]:g}) for the feature "
            f"{_first(wrong, axis)}."
        )
    return bounds[0], bounds[1]


def coefficient_constraints(
    given: Any, n_features: int, axis: Axis
) -> tuple[Floats, Floats]:
    """Return A and b of ``coef_constraints``, A w <= b, in order of the features.

    Raises
    ------
    ValueError
        If ``given`` is not a pair, has infinite entries or other shapes, names do not
        match, or zero does not satisfy the inequalities.
    """
    name = "coef_constraints"
    try:
        A, b = given
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a pair (A, b) of inequalities A w <= b; got {given!r}."
        ) from error
    A = by_name(f"A of {name}", A, Axis("inequalities", None), axis)
    A = check_matrix(f"A of {name}", A, (len(A), n_features))
    b = check_matrix(f"b of {name}", np.broadcast_to(b, len(A)), (len(A),))
    if b.min(initial=0.0) < 0.0:
        raise ValueError(
            f"{name} must hold for coefficients of zero, b >= 0; got {b.min():g} in "
            f"row {int(np.argmin(b))}."
        )
    return A, b


def _first(mask: Mask, axis: Axis) -> str:
    """Return the name of the first selected feature, or its number."""
    place = int(np.argmax(mask))
    return repr(place if axis.labels is None else axis.labels[place])


def _completed(given: Any, default: float, axis: Axis) -> Any:
    """Return numbers by names, with a default for features that are missing."""
    values, names, _ = named(given)
    if names is None or axis.labels is None or np.ndim(values) != 1:
        return given
    known = {str(name) for name in names}
    rest = [name for name in np.asarray(axis.labels).tolist() if str(name) not in known]
    return dict(zip([*names, *rest], [*values, *[default] * len(rest)], strict=True))
