"""Checks of parameters and data, and the errors that name what is accepted."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.class_weight import compute_class_weight

_Method = TypeVar("_Method", bound=Callable[..., Any])

# Squared sums over a row of this size still are finite.
_LARGEST_VALUE = 1e140


def check_number(
    name: str,
    value: Any,
    *,
    low: float,
    low_included: bool = True,
    integer: bool = False,
) -> None:
    """Raise unless ``value`` is a finite number above ``low``.

    Raises
    ------
    TypeError
        If it is no number, or no integer where one is needed.
    ValueError
        If it is too small, infinite or NaN.
    """
    kind = numbers.Integral if integer else numbers.Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        expected = "an integer" if integer else "a number"
        raise TypeError(
            f"{name} must be {expected}, got {value!r} of type {type(value).__name__}."
        )
    number = float(value)
    if not (number >= low if low_included else number > low) or number == np.inf:
        bound = f">= {low:g}" if low_included else f"> {low:g}"
        raise ValueError(f"{name} must be finite and {bound}, got {value!r}.")


def check_option(name: str, value: Any, accepted: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the accepted strings."""
    if not isinstance(value, str) or value not in accepted:
        options = ", ".join(repr(option) for option in accepted)
        raise ValueError(f"{name} must be one of {options}; got {value!r}.")


def check_sparse_structure(X: Any) -> None:
    """Raise ValueError if the index arrays of a sparse X point outside of it.

    SciPy's compiled routines trust those arrays: converting or multiplying a corrupted
    matrix can crash the interpreter, so this comes before anything else.
    """
    if not sparse.issparse(X):
        return
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            for axis, indices in enumerate((X.row, X.col)):
                outside = len(indices) and (
                    indices.min() < 0 or indices.max() >= X.shape[axis]
                )
                if outside or len(indices) != len(X.data):
                    raise ValueError(f"coordinates of axis {axis} are out of bounds")
        elif X.format == "lil":
            for columns, values in zip(X.rows, X.data, strict=True):
                outside = columns and not 0 <= min(columns) <= max(columns) < X.shape[1]
                if outside or len(columns) != len(values):
                    raise ValueError("column indices are out of bounds")
        elif X.format == "dia" and X.data.shape[0] != len(X.offsets):
            raise ValueError("the number of diagonals and of offsets differ")
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(
            f"X is a corrupted sparse matrix of format {X.format!r}: {error}. Build it "
            "anew from valid index arrays."
        ) from error


def check_range(X: Any) -> None:
    """Raise ValueError if products of values of X can overflow."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(values.max(), -values.min()) > _LARGEST_VALUE:
        raise ValueError(
            f"X contains values beyond {_LARGEST_VALUE:g} in magnitude, whose products "
            "overflow. Scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler."
        )


def check_weights(
    sample_weight: Any,
    X: Any,
    y: npt.NDArray[Any],
    class_weight: Any,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Return normalized row weights and the classes that have any.

    Parameters
    ----------
    sample_weight : None, number or array-like of shape (n_samples,)
    X : array or sparse matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    class_weight : None, "balanced" or dict
        As in scikit-learn; multiplies ``sample_weight``. A row of weight 2 counts as
        two rows when classes are balanced.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        Sum to one. A row of weight zero has no influence.
    classes : ndarray
        Sorted classes of the rows with positive weight.

    Raises
    ------
    ValueError
        If weights are negative, not finite, all zero, of the wrong shape, or leave
        fewer than two classes.
    """
    n = X.shape[0]
    if sample_weight is None or isinstance(sample_weight, numbers.Number):
        weights = np.full(n, 1.0 if sample_weight is None else sample_weight, float)
    else:
        weights = check_array(
            sample_weight,
            ensure_2d=False,
            dtype=np.float64,
            input_name="sample_weight",
        )
        if weights.ndim != 1:
            raise ValueError(
                f"Sample weights must be 1D array or scalar, got {weights.ndim}D array."
            )
        check_consistent_length(X, weights)
    if not np.all(np.isfinite(weights)):
        raise ValueError("sample_weight must be finite.")
    if np.any(weights < 0.0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not np.any(weights > 0.0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number; all are zero."
        )
    weights = weights / weights.max()
    weights /= weights.sum()
    classes = np.unique(y[weights > 0.0])
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the "
            f"data contains only one class with positive weight: {classes[0]!r}."
        )
    if class_weight is not None:
        used = weights > 0.0
        per_class = compute_class_weight(
            class_weight, classes=classes, y=y[used], sample_weight=weights[used]
        )
        if not np.all(np.isfinite(per_class)) or np.any(per_class < 0.0):
            raise ValueError(
                f"class_weight must be non-negative and finite, got {class_weight!r}."
            )
        factors = np.zeros(n)
        factors[used] = per_class[np.searchsorted(classes, y[used])]
        weights = weights * factors
        if np.count_nonzero(per_class) < 2:
            raise ValueError(
                "class_weight leaves fewer than 2 classes with positive weight: "
                f"{class_weight!r}."
            )
        weights /= weights.sum()
    return weights, classes


def unchanged_on_failure(method: _Method) -> _Method:
    """Make a method that raises leave the estimator's attributes as they were."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]
