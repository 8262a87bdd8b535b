"""Groups of features: labels, lists of features, or the dummies of categories."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_unmasked
from .._core.arrays import Floats, Indices
from .._core.names import Axis, in_order, named
from .by_feature import by_feature, penalty_factors

#: The value of ``groups`` that makes the dummies of each category a group.
CATEGORIES = "categories"


class FeatureGroups(NamedTuple):
    """Groups of features and their factors in the penalty.

    Attributes
    ----------
    labels : ndarray of int, of shape (n_features,)
        The group of each feature, from zero on.
    factors : ndarray of shape (n_groups,)
        Zero for features without a penalty.
    """

    labels: Indices
    factors: Floats


def checked_groups(
    given: Any, factors: Any, n_features: int, axis: Axis, indicators: Any
) -> FeatureGroups:
    """Return the groups; by default, a factor is the square root of the group's size.

    Parameters
    ----------
    given : array-like, list, dict, "categories" or None
        Labels of the features; or lists of names or numbers of features, or a dict of
        lists by the names of groups, where each feature without a list is a group; or
        None, for groups of one feature.
    factors : array-like, dict, Series or None
        In the order of the groups, which is ascending for labels, or by their names.
    n_features : int
    axis : Axis
        The axis of the features.
    indicators : ndarray of bool of shape (n_features,)
        Which features are zeros and ones only; for groups of categories.

    Raises
    ------
    TypeError, ValueError
        If groups or factors are invalid.
    """
    names: list[Any]
    if isinstance(given, str):
        if given != CATEGORIES:
            root = given.rstrip("_")
            known = [] if axis.labels is None else list(axis.labels)
            own = [str(x) for x in known if f"{x}_".startswith(f"{root}_")]
            near = {given: own} if own else CATEGORIES
            raise ValueError(
                f"groups must be 'categories', for the dummies of all categories, one "
                f"label for each of the {n_features} features, lists of features, or "
                f"a dict of such lists; got {given!r}. Did you mean groups={near!r}?"
            )
        names, labels = _of_categories(axis, indicators)
    elif given is None:
        names, labels = list(range(n_features)), np.arange(n_features)
    elif _is_lists(given):
        names, labels = _of_lists(given, n_features, axis)
    else:
        names, labels = _of_labels(given, n_features, axis)
    sizes = np.bincount(labels, minlength=len(names))
    if factors is None:
        return FeatureGroups(labels, np.sqrt(sizes))
    values, keys, _ = named(factors)
    if keys is None or np.ndim(values) != 1:
        if np.shape(factors) != (len(names),):
            raise ValueError(
                f"penalty_factor must have one number for each of the {len(names)} "
                f"groups; got an array of shape {np.shape(factors)}."
            )
        by_place = Axis("groups", None)
        return FeatureGroups(labels, penalty_factors(factors, len(names), by_place))
    known = list(map(str, names))
    if len(set(known)) < len(known):
        raise ValueError(
            "penalty_factor has names, but some groups and features have the same "
            "one: give groups as a dict with names of their own."
        )
    roots = dict(zip(known, np.sqrt(sizes).tolist(), strict=True))
    all_of_them = roots | dict(zip(map(str, keys), values, strict=True))
    by_name = Axis("groups", known)
    numbers = by_feature("penalty_factor", all_of_them, len(names), by_name)
    return FeatureGroups(labels, penalty_factors(numbers, len(names), by_name))


def _is_list(given: Any) -> bool:
    return np.iterable(given) and not isinstance(given, str | bytes)


def _is_lists(given: Any) -> bool:
    """Whether groups are lists of features, and not one label for each feature."""
    if isinstance(given, Mapping):
        return any(map(_is_list, given.values()))
    return isinstance(given, list | tuple) and any(map(_is_list, given))


def _of_labels(given: Any, n_features: int, axis: Axis) -> tuple[list[Any], Indices]:
    """Return the distinct labels of features in ascending order, and their places."""
    array = np.asarray(in_order("groups", given, axis))
    check_unmasked("groups", given)
    if array.shape != (n_features,) or array.dtype.kind not in "biufUSO":
        raise ValueError(
            f"groups must be one label for each of the {n_features} features, "
            "lists of features, a dict of such lists, or 'categories'; got "
            f"an array of shape {array.shape}."
        )
    # A missing label is None, or is not equal to itself.
    missing = np.array([x is None or bool(x != x) for x in array.tolist()], dtype=bool)
    if missing.any() or (array.dtype.kind == "f" and np.isinf(array).any()):
        raise ValueError("labels in groups must be finite numbers or names.")
    try:
        names, labels = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise TypeError(
            f"labels in groups must be numbers only or names only; got {given!r}."
        ) from error
    return names.tolist(), labels


def _of_lists(given: Any, n_features: int, axis: Axis) -> tuple[list[Any], Indices]:
    """Return names and labels of groups; each feature without a list is a group."""
    lists = given if isinstance(given, Mapping) else dict(enumerate(given))
    known = {} if axis.labels is None else {n: j for j, n in enumerate(axis.labels)}
    labels = np.full(n_features, -1, dtype=np.intp)
    for g, (name, members) in enumerate(lists.items()):
        members = list(members) if _is_list(members) else [members]
        for member in members:
            hashable = isinstance(member, Hashable)
            place: Any = known.get(member, member) if hashable else None
            whole = isinstance(place, int | np.integer) and not isinstance(place, bool)
            if not (whole and 0 <= place < n_features):
                raise ValueError(
                    f"groups has {member!r} in the group {name!r}, which is neither a "
                    "name nor a number of a feature."
                )
            if labels[place] >= 0:
                raise ValueError(f"groups has the feature {member!r} more than once.")
            labels[place] = g
        if not members:
            raise ValueError(f"groups has no features in the group {name!r}.")
    rest = np.flatnonzero(labels < 0)
    labels[rest] = len(lists) + np.arange(len(rest))
    own = rest if axis.labels is None else np.asarray(axis.labels)[rest]
    return [*lists, *own.tolist()], labels


def _of_categories(axis: Axis, indicators: Any) -> tuple[list[Any], Indices]:
    """Return names and labels of the dummies of categories, by names up to a last _."""
    if axis.labels is None:
        raise ValueError(
            "groups='categories' needs names of the features: give X as a data frame, "
            "such as of a ColumnTransformer with set_output(transform='pandas')."
        )
    parts = [str(name).rpartition("_") for name in axis.labels]
    # The keys of single features differ from the keys of prefixes.
    keys = [
        (1, prefix) if is_dummy and separator and prefix else (0, str(name))
        for (prefix, separator, _), is_dummy, name in zip(
            parts, indicators, axis.labels, strict=True
        )
    ]
    places: dict[tuple[int, str], int] = {}
    labels = [places.setdefault(key, len(places)) for key in keys]
    return [name for _, name in places], np.array(labels, dtype=np.intp)
