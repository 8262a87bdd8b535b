"""Tables with names on their axes, such as data frames, in the order of what they name.

A table without names, and a data frame with the default index or the default column
names of its library on an axis, is in that order already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: Names that messages show.
MOST_NAMED = 5


class Axis(NamedTuple):
    """What the rows or the columns of a table stand for.

    Attributes
    ----------
    what : str
        Its name for messages, such as "classes".
    labels : sequence or None
        In the order that is wanted; None if these have no names.
    more : bool
        Whether the table may have others besides, which are left out.
    how : str
        How users give names where there are none, for messages.
    """

    what: str
    labels: Any
    more: bool = False
    how: str = "give the data as a data frame with names"


def classes_axis(classes: Any) -> Axis:
    """Return the axis of classes; classes that are not in the data are left out."""
    return Axis("classes", classes, more=True)


def features_axis(estimator: Any) -> Axis:
    """Return the axis of the features that an estimator has seen."""
    return Axis("features", getattr(estimator, "feature_names_in_", None))


def column_names(table: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame, None where there are none."""
    columns = getattr(table, "columns", None)
    if columns is None or getattr(table, "ndim", 2) != 2:
        return None
    names = list(columns)
    default = [f"column_{place}" for place in range(len(names))]
    return None if is_default(columns) or names == default else names


def by_name(name: str, table: Any, rows: Axis, columns: Axis) -> Any:
    """Return a table in the order of the labels of its axes, if it has names.

    Parameters
    ----------
    name : str
        Of the parameter, for messages.
    table : array-like
        Such as a data frame, of pandas with names on both axes.
    rows, columns : Axis

    Returns
    -------
    table : array-like
        The same, or an array of its values in order.

    Raises
    ------
    ValueError
        If names are not those of the axes, occur twice, or are missing on one of two
        axes that stand for the same.
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
    """Return values, their names if they have any, and what the names are on.

    Parameters
    ----------
    given : array-like, dict or Series
    """
    if isinstance(given, Mapping):
        return list(given.values()), list(given), "keys"
    index = getattr(given, "index", None)
    # The attribute ``index`` of lists and tuples is a method.
    if index is None or callable(index) or is_default(index):
        return given, None, ""
    return np.asarray(given), list(index), "index"


def in_order(name: str, given: Any, axis: Axis) -> Any:
    """Return values in the order of the labels of the last axis, if they have names.

    Parameters
    ----------
    name : str
        Of the parameter, for messages.
    given : array-like, dict, Series or data frame
        Rows of a data frame have no names.
    axis : Axis

    Raises
    ------
    ValueError
        If names are not those of the axis.
    """
    if hasattr(given, "columns"):
        how = "give a data frame without an index of its own"
        return by_name(name, given, Axis("outputs", None, how=how), axis)
    values, names, where = named(given)
    if names is None or np.ndim(values) != 1:
        return values
    return np.asarray(values)[places(name, names, axis, where)]


def check_same_rows(X: Any, **given: Any) -> None:
    """Raise ValueError if what is given for each row has the names of other rows.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, d)
    **given : array-like of shape (n,), number or None
        By their names. Where either of X and these has no index of its own, rows are in
        the same order; numbers that pandas gives itself say so as well, unless the
        other ones are the same numbers in another order.
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
    """Whether an index has the numbers that pandas gives to rows and columns itself."""
    return type(index).__name__ == "RangeIndex" and list(index) == list(
        range(len(index))
    )


def places(name: str, names: list[Any], axis: Axis, where: str) -> npt.NDArray[np.intp]:
    """Return where each label of an axis is among the names of a table."""
    if axis.labels is None:
        raise ValueError(
            f"{name} has names on its {where}, but the {axis.what} have none: "
            f"{axis.how}, or {name} as an array in the order of the {axis.what}."
        )
    labels = np.asarray(axis.labels).tolist()
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"{name} has the name {twice!r} twice on its {where}.")
    # Names of columns are strings in many a file and library, whatever they name.
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
    """Return the first names as they are shown in sentences."""
    shown = list(map(str, names))
    return ", ".join([*shown[:MOST_NAMED], *["..."] * (len(shown) > MOST_NAMED)])


def _shown(labels: list[Any]) -> str:
    """Return the first labels as users write them."""
    return listed(map(repr, labels))
