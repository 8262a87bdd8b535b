"""Tables with names on their axes, such as data frames, in the order of given labels.

A table without names is assumed to be in this order, and so is a data frame with the
default index or default column names of its library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: Largest number of names in a message.
MOST_NAMED = 5


class Axis(NamedTuple):
    """The labels of the rows or the columns of a table.

    Attributes
    ----------
    what : str
        Kind of the labels, for messages, such as "classes".
    labels : sequence or None
        Labels in the required order; None if there are no labels.
    more : bool
        Whether the table may have further names, which are ignored.
    how : str
        Advice to users without names, for messages.
    """

    what: str
    labels: Any
    more: bool = False
    how: str = "give the data as a data frame with names"


def classes_axis(classes: Any) -> Axis:
    """Return the axis of classes; names of absent classes are ignored."""
    return Axis("classes", classes, more=True)


def features_axis(estimator: Any) -> Axis:
    """Return the axis of the features of an estimator's fit."""
    return Axis("features", getattr(estimator, "feature_names_in_", None))


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a data frame, None if there are none."""
    columns = getattr(table, "columns", None)
    if columns is None or getattr(table, "ndim", 2) != 2:
        return None
    names = list(columns)
    default = [f"column_{place}" for place in range(len(names))]
    return None if is_default(columns) or names == default else names


def by_name(name: str, table: Any, rows: Axis, columns: Axis) -> Any:
    """Return a table in the order of the labels of its axes, if the table has names.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    table : array-like
        Table, such as a data frame of pandas with names on both axes.
    rows, columns : Axis

    Returns
    -------
    table : array-like
        The table, or an array of its values in the required order.

    Raises
    ------
    ValueError
        If names do not match the labels, occur twice, or are on only one of two axes
        with the same labels.
    """
    if not hasattr(table, "columns") or getattr(table, "ndim", 2) != 2:
        return table
    index: Any = getattr(table, "index", None)
    unnamed = index is None or callable(index) or is_default(index)
    names = None if unnamed else list(index), column_names(table)
    values = np.asarray(table)
    if names == (None, None):
        return values
    named = [
        np.arange(values.shape[axis])
        if given is None
        else places(name, given, of, ("rows", "columns")[axis])
        for axis, (given, of) in enumerate(zip(names, (rows, columns), strict=True))
    ]
    if rows == columns and None in names:
        at = named[names.index(None) - 1]
        if len(at) != values.shape[0] or np.any(np.diff(at) != 1):
            axis = ("columns", "rows")[names.index(None) - 1]
            raise ValueError(
                f"{name} has names on one axis only, in another order than the "
                f"{rows.what}: name its {axis} as well, as in "
                "pandas.DataFrame(values, index=names, columns=names)."
            )
    return values[np.ix_(*named)]


def named(given: Any) -> tuple[Any, list[Any] | None, str]:
    """Return values, their names if there are any, and the place of the names.

    Parameters
    ----------
    given : array-like, dict or Series
    """
    if isinstance(given, Mapping):
        return list(given.values()), list(given), "keys"
    index = getattr(given, "index", None)
    # Lists and tuples have a method ``index``.
    if index is None or callable(index) or is_default(index):
        return given, None, ""
    return np.asarray(given), list(index), "index"


def in_order(name: str, given: Any, axis: Axis) -> Any:
    """Return values in the order of the labels of the last axis, if they have names.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    given : array-like, dict, Series or data frame
        Values; rows of a data frame have no names.
    axis : Axis

    Raises
    ------
    ValueError
        If names do not match the labels of the axis.
    """
    if hasattr(given, "columns"):
        how = "give a data frame without an index of its own"
        return by_name(name, given, Axis("outputs", None, how=how), axis)
    values, names, where = named(given)
    if names is None or np.ndim(values) != 1:
        return values
    return np.asarray(values)[places(name, names, axis, where)]


def check_same_rows(X: Any, **given: Any) -> None:
    """Raise ValueError if row-wise data have another index than X.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, d)
    **given : array-like of shape (n,), number or None
        Row-wise data by name. If X or the data have no index, rows correspond by order.
        This also holds for a default index of pandas, unless the other index is a
        permutation of it.
    """
    index = _index(X)
    if index is None:
        return
    for name, values in given.items():
        if isinstance(values, Mapping):
            continue
        other = _index(values)
        if other is None or len(other) != len(index) or index.equals(other):
            continue
        if is_default(index) or is_default(other):
            reordered = index.is_unique and other.is_unique and other.isin(index).all()
            if not reordered:
                continue
        raise ValueError(
            f"{name} has another index than X: rows would be confused. Give "
            f"{name}.reindex(X.index) if names of rows say what belongs together, or "
            f"{name}.to_numpy() if their order does."
        )


def _index(table: Any) -> Any:
    """Return the index of a pandas object, else None."""
    index = getattr(table, "index", None)
    return index if hasattr(index, "equals") else None


def is_default(index: Any) -> bool:
    """Whether an index is the default index of pandas."""
    return type(index).__name__ == "RangeIndex" and list(index) == list(
        range(len(index))
    )


def places(name: str, names: list[Any], axis: Axis, where: str) -> npt.NDArray[np.intp]:
    """Return the position of each label of an axis among the names of a table."""
    if axis.labels is None:
        raise ValueError(
            f"{name} has names on its {where}, but the {axis.what} have none: "
            f"{axis.how}, or {name} as an array in the order of the {axis.what}."
        )
    labels = np.asarray(axis.labels).tolist()
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"{name} has the name {twice!r} twice on its {where}.")
    # Column names are strings in many files and libraries, even for numeric labels.
    as_strings = {str(each): place for place, each in enumerate(names)}
    at = {each: place for place, each in enumerate(names)}
    if not set(labels) <= set(at) and len(as_strings) == len(names):
        at, found = as_strings, [str(each) for each in labels]
    else:
        found = labels
    missing = [each for each, key in zip(labels, found, strict=True) if key not in at]
    unknown = [] if axis.more and not missing else _without(names, found)
    if missing or unknown:
        parts = [
            f"{kind}: {_shown(each)}"
            for kind, each in (("missing", missing), ("unknown", unknown))
            if each
        ]
        raise ValueError(
            f"The names on the {where} of {name} do not match the {axis.what} "
            f"{_shown(labels)}: {'; '.join(parts)}."
        )
    return np.array([at[key] for key in found], dtype=np.intp)


def _without(names: Iterable[Any], found: list[Any]) -> list[Any]:
    known = {str(each) for each in found}
    return [each for each in names if str(each) not in known]


def listed(names: Iterable[Any]) -> str:
    """Return the first names, separated by commas."""
    shown = list(map(str, names))
    return ", ".join([*shown[:MOST_NAMED], *["..."] * (len(shown) > MOST_NAMED)])


def _shown(labels: list[Any]) -> str:
    """Return the first labels as Python literals."""
    return listed(map(repr, labels))
