"""Columns of tables that are not numbers, or are so of several types."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._core.names import listed

# What names of types of columns of times contain, in pandas, polars and pyarrow.
_TIMES = re.compile("date|time|duration|period")

# Times that arrays of objects and lists may hold; those of pandas are among them.
_OBJECTS = (
    np.datetime64,
    np.timedelta64,
    datetime.date,
    datetime.time,
    datetime.timedelta,
)


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Say where text is, and what to do, if the conversion to numbers fails.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As the user gave it. If there is no text in it, y has some.

    Raises
    ------
    ValueError
        In place of that of NumPy, whose message it contains. Or of pandas, if columns
        are sparse around another number than zero.
    TypeError
        In place of that of NumPy, for objects that are no numbers.
    """
    try:
        yield
    except ValueError as error:
        if "fill value must be 0" in str(error):
            names = [
                repr(name) for name, of in _types(X) if getattr(of, "fill_value", 0)
            ]
            raise ValueError(
                "Sparse columns of X must have the fill value 0; others are in "
                f"{listed(names)}. Give X.sparse.to_dense()."
            ) from error
        if "could not convert string to float" not in str(error):
            raise
        found = str(error).rstrip(".")
        if _are_numbers(X):
            raise ValueError(f"y must be numbers: {found}.") from error
        names = _columns_of_others(X)
        where = f" There is text in {listed(names)}." if names else ""
        raise ValueError(
            f"X must be numbers: {found}.{where} Encode text before, for example by a "
            "OneHotEncoder in a ColumnTransformer."
        ) from error
    except TypeError as error:
        if "float() argument must be" not in str(error):
            raise
        names = _columns_of_others(X)
        where = f" See {listed(names)}." if names else ""
        name = "y" if _are_numbers(X) else "X"
        raise TypeError(f"{name} must be numbers: {error}.{where}") from error


def with_sparse_floats(X: Any) -> Any:
    """Return a data frame of sparse columns of several types as one of floats.

    The type that pandas finds for both truth values and numbers is that of objects,
    of which there are no sparse matrices. All else is returned as it is.
    """
    types = [of for _, of in _types(X)]
    kinds = {getattr(getattr(of, "subtype", None), "kind", None) for of in types}
    if len(kinds) < 2 or not kinds <= set("buif"):
        return X
    if any(of.fill_value for of in types):
        return X  # refused by ``naming_text``
    return X.astype(type(types[0])(np.float64, 0.0))


def check_no_times_in(X: Any) -> None:
    """Raise TypeError if some of the features are dates, times or durations.

    NumPy converts them to numbers of the unit that they happen to be stored in.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
        As the user gave it.
    """
    names = [
        repr(name)
        for name, of in _types(X)
        if _are_times(of) or (of == np.dtype(object) and has_times(X[name]))
    ]
    where = f" There are dates or times in {listed(names)}." if names else ""
    if not where and has_times(X):
        where = " There are dates or times among its entries."
    if where:
        raise TypeError(
            f"X must be numbers.{where} Turn them into numbers before, for example by "
            "(column - column.min()).dt.days."
        )


def _types(table: Any) -> list[tuple[Any, Any]]:
    """Return the names and the types of the columns of a data frame, if it is one."""
    if hasattr(table, "schema") and hasattr(table.schema, "types"):  # pyarrow
        return list(zip(table.schema.names, table.schema.types, strict=True))
    if not hasattr(table, "columns") or not hasattr(table, "dtypes"):
        return []
    return list(zip(table.columns, table.dtypes, strict=True))


def _are_times(of: Any) -> bool:
    """Whether a type of values, or that of their categories, is one of times."""
    categories = getattr(of, "categories", None)
    of = getattr(categories, "dtype", of)
    return _TIMES.search(str(of).lower()) is not None


def has_times(X: Any) -> bool:
    """Whether there are times in an array or in lists."""
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError:  # of rows of different lengths, which is said elsewhere
            return False
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind == "O":
        return any(isinstance(each, _OBJECTS) for each in np.ravel(X))
    return kind in ("m", "M")


def _columns_of_others(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that are not numbers."""
    columns = getattr(X, "columns", ())
    return [repr(name) for name in columns if not _are_numbers(X[name])]


def _are_numbers(values: Any) -> bool:
    """Whether all values are real numbers, or texts that read like these."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        return False
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
