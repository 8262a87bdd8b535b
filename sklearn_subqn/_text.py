"""Errors where there is text in place of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._core.names import MOST_NAMED


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
        In place of that of NumPy, whose message it contains.
    """
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        found = str(error).rstrip(".")
        if not _is_text(X):
            raise ValueError(f"y must be numbers: {found}.") from error
        names = _columns_of_text(X)
        where = f" There is text in {', '.join(names[:MOST_NAMED])}" if names else ""
        where += ", ..." if len(names) > MOST_NAMED else "." if names else ""
        raise ValueError(
            f"X must be numbers: {found}.{where} Encode text before, for example by a "
            "OneHotEncoder in a ColumnTransformer."
        ) from error


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
