"""Tables with names on their axes, such as data frames, in the order of what they name.

A table without names, and a data frame with the default index or the default column
names of its library on an axis, is in that order already.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """

    what: str
    labels: Any
    more: bool = False


def classes_axis(classes: Any) -> Axis:
    """Return the axis of classes; those that do not occur in the data are left out."""
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


def is_default(index: Any) -> bool:
    """Whether these are the numbers that pandas gives to rows and columns itself."""
    return type(index).__name__ == "RangeIndex" and list(index) == list(
        range(len(index))
    )


def places(name: str, names: list[Any], axis: Axis, where: str) -> npt.NDArray[np.intp]:
    """Return where each label of an axis is among the names of a table."""
    if axis.labels is None:
        raise ValueError(
            f"{name} has names on its {where}, but the {axis.what} have none: give the "
            f"data as a data frame with names, or {name} as an array in the order of "
            f"the {axis.what}."
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


def _shown(labels: list[Any]) -> str:
    """Return the first labels as users write them."""
    shown = ", ".join(map(repr, labels[:MOST_NAMED]))
    return shown + (", ..." if len(labels) > MOST_NAMED else "")
