"""Times and events of survival models, converted from all accepted forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._checks import (
    as_numpy,
    check_offset,
    check_targets,
    check_unmasked,
    names_of_rows,
)
from .._core.arrays import Array, Floats, Mask

_FORMS = (
    "y must be a structured array with a boolean and a numeric field, the columns "
    "(time, event) or (entry, time, event), or a tuple of such arrays"
)


def survival_targets(
    y: Any, n: int, strata: Any, offset: Any
) -> tuple[Floats, Array | None]:
    """Return the targets of Cox's likelihood, and the names of strata, if any.

    Parameters
    ----------
    y : array-like, structured array, data frame or tuple of arrays
        As ``CoxRegression.fit`` takes it.
    n : int
        Number of rows.
    strata, offset : array-like of shape (n,) or None

    Returns
    -------
    targets : ndarray of shape (n, 5)
        Entries, times, events, numbers of strata, and offsets; see ``Cox``.
    names : ndarray or None

    Raises
    ------
    TypeError, ValueError
        If y has another form, times are impossible, or strata or offsets invalid.
    """
    if y is None:
        raise ValueError(
            "CoxRegression requires y to be passed, but the target y is None."
        )
    check_unmasked("y", y)
    columns = _columns(y)
    check_consistent_length(np.empty(n), *columns)
    entry = np.full(n, -np.inf)
    if len(columns) == 1:
        # Times of censored rows are negative, as for xgboost's "survival:cox".
        signed = check_targets(column_or_1d(columns[0]))
        time, event = np.abs(signed), signed >= 0.0
    else:
        *times, event = columns
        *begins, time = (check_targets(column_or_1d(each)) for each in times)
        event = _events(event)
        if time.min(initial=0.0) < 0.0:
            raise ValueError("Times must not be negative.")
        if begins:
            entry = begins[0]
        if np.any(entry >= time):
            row = int((entry >= time).argmax())
            raise ValueError(f"entry must be before time; it is not in row {row}.")
    names, numbers = None, np.zeros(n, dtype=np.intp)
    if strata is not None:
        names, numbers = names_of_rows("strata", strata, n)
    offset = check_offset(0.0 if offset is None else offset, n)
    return np.column_stack([entry, time, event, numbers, offset]), names


def _columns(y: Any) -> list[Any]:
    """Return the columns of y: time and event, with the entry before, or one."""
    if isinstance(y, tuple) and len(y) in (2, 3) and np.ndim(y[0]) == 1:
        return [as_numpy(each) for each in y]
    names = getattr(y, "columns", None)
    if names is not None and len(names) in (2, 3):
        return [as_numpy(y[name]) for name in names]
    y = np.asarray(as_numpy(y))
    if y.dtype.names is not None:
        event = [name for name in y.dtype.names if y.dtype[name].kind == "b"]
        times = [name for name in y.dtype.names if name not in event]
        if len(event) != 1 or len(times) != 1:
            raise ValueError(f"{_FORMS}; got the fields {y.dtype.names}.")
        return [y[times[0]], y[event[0]]]
    if y.ndim == 2 and y.shape[1] in (2, 3):
        return list(y.T)
    return [column_or_1d(y, warn=True)]


def _events(event: Any) -> Mask:
    """Return events, which are booleans or 0 and 1."""
    event = column_or_1d(event)
    if event.dtype.kind != "b" and not np.isin(event, (0, 1)).all():
        raise ValueError(
            "Events must be booleans, or 1 for an event and 0 for a censored sample. "
            "Columns are in the order (time, event)."
        )
    return event.astype(bool)
