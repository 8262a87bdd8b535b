"""Columns of tables that are not numeric, or have several numeric types."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._core.names import listed

# Pattern in the names of date and time types of pandas, polars and pyarrow.
_TIMES = re.compile("date|time|duration|period")

# Date and time types of entries in object arrays and in lists. The types of pandas are
# subclasses.
_OBJECTS = (
    np.datetime64,
    np.timedelta64,
    datetime.date,
    datetime.time,
    datetime.timedelta,
)


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Raise an error that names the columns with text if a conversion to floats fails.

    Parameters
    ----------
    X : array-like of shape (n, d)
        X as given by the user. If it has no text, y has.

    Raises
    ------
    ValueError
        In place of NumPy's error, whose message it contains. Also in place of the error
        of pandas, if columns are sparse with another fill value than zero.
    TypeError
        In place of NumPy's error, for objects that are not numbers.
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
    """Return a data frame with sparse columns of several types as floats.

    The common type of booleans and numbers is object in pandas, for which no sparse
    matrices exist. Everything else is returned unchanged.
    """
    types = [of for _, of in _types(X)]
    kinds = {getattr(getattr(of, "subtype", None), "kind", None) for of in types}
    if len(kinds) < 2 or not kinds <= set("buif"):
        return X
    if any(of.fill_value for of in types):
        return X  # refused by ``naming_text``
    return X.astype(type(types[0])(np.float64, 0.0))


def check_no_times_in(X: Any) -> None:
    """Raise TypeError if any feature is a date, time or duration.

    NumPy would convert it to a number in the unit in which it is stored.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
        X as given by the user.
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
    """Return names and types of the columns of a data frame, none for other types."""
    if hasattr(table, "schema") and hasattr(table.schema, "types"):  # pyarrow
        return list(zip(table.schema.names, table.schema.types, strict=True))
    if not hasattr(table, "columns") or not hasattr(table, "dtypes"):
        return []
    return list(zip(table.columns, table.dtypes, strict=True))


def _are_times(of: Any) -> bool:
    """Whether a type, or the type of its categories, is a type of times."""
    categories = getattr(of, "categories", None)
    of = getattr(categories, "dtype", of)
    return _TIMES.search(str(of).lower()) is not None


def has_times(X: Any) -> bool:
    """Whether an array or a list contains times."""
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of different lengths; another check raises
            return False
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind == "O":
        return any(isinstance(each, _OBJECTS) for each in np.ravel(X))
    return kind in ("m", "M")


def _columns_of_others(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that are not numeric."""
    columns = getattr(X, "columns", ())
    return [repr(name) for name in columns if not _are_numbers(X[name])]


def _are_numbers(values: Any) -> bool:
    """Whether all values are real numbers, or strings of real numbers."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        return False
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
