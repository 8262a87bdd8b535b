"""Times and events of survival models, converted from all accepted forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._checks import as_numpy, check_no_times, check_unmasked
from .._core.arrays import Floats, Mask

_FORMS = (
    "y must be a structured array with a boolean and a numeric field, the columns "
    "(time, event) or (entry, time, event), or a tuple of such arrays"
)


class Survival(NamedTuple):
    """Times, events and entries of samples.

    Attributes
    ----------
    time : ndarray of shape (n,)
        Time of the event or of censoring of each sample; not negative.
    event : ndarray of bool, of shape (n,)
    entry : ndarray of shape (n,) or None
        Time from which a sample is under observation, before ``time``.
    """

    time: Floats
    event: Mask
    entry: Floats | None = None

    @classmethod
    def of(cls, y: Any, n: int | None = None) -> Survival:
        """Return the times and events of targets.

        Parameters
        ----------
        y : array-like, structured array, data frame or tuple of arrays
            As ``CoxRegression.fit`` takes it.
        n : int, optional
            Number of rows that y must have.

        Raises
        ------
        TypeError, ValueError
            If y has another form, or times are impossible.
        """
        if y is None:
            raise ValueError(
                "CoxRegression requires y to be passed, but the target y is None."
            )
        columns = _columns(y)
        if n is not None:
            check_consistent_length(np.empty(n), *columns)
        if len(columns) == 1:
            # Times of censored rows are negative, as for xgboost's "survival:cox".
            (signed,) = map(_numbers, columns)
            return cls(np.abs(signed), signed >= 0.0)
        *times, event = columns
        time = _numbers(times[-1])
        entry = _numbers(times[0]) if len(times) > 1 else None
        if time.min(initial=0.0) < 0.0:
            raise ValueError("Times must not be negative.")
        if entry is not None and np.any(entry >= time):
            row = int((entry >= time).argmax())
            raise ValueError(f"entry must be before time; it is not in row {row}.")
        return cls(time, _events(event), entry)


def _columns(y: Any) -> list[Any]:
    """Return the columns of y: time and event, with the entry before, or one."""
    if isinstance(y, tuple) and len(y) in (2, 3) and np.ndim(y[0]) == 1:
        return [as_numpy(each) for each in y]
    names = getattr(y, "columns", None)
    if names is not None and len(names) in (2, 3):
        return [as_numpy(y[name]) for name in names]
    y = as_numpy(y)
    check_unmasked("y", y)
    y = np.asarray(y)
    if y.dtype.names is not None:
        event = [name for name in y.dtype.names if y.dtype[name].kind == "b"]
        times = [name for name in y.dtype.names if name not in event]
        if len(event) != 1 or len(times) != 1:
            raise ValueError(f"{_FORMS}; got the fields {y.dtype.names}.")
        return [y[times[0]], y[event[0]]]
    if y.ndim == 2 and y.shape[1] in (2, 3):
        return list(y.T)
    return [column_or_1d(y, warn=True)]


def _numbers(times: Any) -> Floats:
    """Return times as finite numbers."""
    check_no_times(times)
    times = column_or_1d(times)
    if times.dtype.kind == "c":
        raise ValueError("Complex data not supported; y must be real numbers.")
    try:
        numbers = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_FORMS}; got {times.dtype} for numbers.") from error
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN, infinity or a value too large.")
    return numbers


def _events(event: Any) -> Mask:
    """Return events, which are booleans or 0 and 1."""
    event = column_or_1d(event)
    if event.dtype.kind != "b" and not np.isin(event, (0, 1)).all():
        raise ValueError(
            "Events must be booleans, or 1 for an event and 0 for a censored sample. "
            "Columns are in the order (time, event)."
        )
    return event.astype(bool)
