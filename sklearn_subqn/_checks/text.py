"""Errors where there are text or dates in place of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._core.names import MOST_NAMED


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Say where text or dates are, and what to do, if the conversion to numbers fails.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As the user gave it. If there is no text in it, y has some.

    Raises
    ------
    ValueError
        In place of that of NumPy, whose message it contains.
    TypeError
        In place of that of NumPy, if columns of a data frame hold dates.
    """
    try:
        yield
    except TypeError as error:
        names = _columns_of_dates(X)
        if not names:
            raise
        raise TypeError(
            f"X must be numbers. There are dates or times in {_listed(names)} Turn "
            "them into numbers before, for example by (column - column.min()).dt.days."
        ) from error
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        found = str(error).rstrip(".")
        if not _is_text(X):
            raise ValueError(f"y must be numbers: {found}.") from error
        names = _columns_of_text(X)
        where = f" There is text in {_listed(names)}" if names else ""
        raise ValueError(
            f"X must be numbers: {found}.{where} Encode text before, for example by a "
            "OneHotEncoder in a ColumnTransformer."
        ) from error


def _listed(names: list[str]) -> str:
    """Return the first few of several names, to end a sentence."""
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else ".")


def _columns_of_dates(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that are dates or times."""
    columns = getattr(X, "columns", ())
    dates = ("date", "time", "period")  # beginnings of dtypes of pandas and polars
    return [repr(c) for c in columns if str(X[c].dtype).lower().startswith(dates)]


def _columns_of_text(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that are text."""
    columns = getattr(X, "columns", ())
    return [repr(name) for name in columns if _is_text(X[name])]


def _is_text(values: Any) -> bool:
    """Whether values are not all numbers."""
    try:
        np.asarray(values).astype(np.float64)
    except ValueError:
        return True
    return False
