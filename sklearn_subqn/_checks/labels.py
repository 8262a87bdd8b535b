"""Checks of labels of classes, and the classes that they are of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from .arrays import check_unmasked

# Kinds of dtypes that count as numbers: bool, integers, floats, complex. The last are
# refused by scikit-learn's check.
_NUMERIC = "biufc"


def check_labels(y: Any) -> None:
    """Raise ValueError if y has missing entries that are not numbers, or lists NUL.

    scikit-learn finds NaN among numbers, but turns it into the label "nan" among
    strings, fails with other errors at None and at NA of pandas, and drops masks.
    """
    check_unmasked("y", y)
    if hasattr(y, "isna"):  # pandas
        missing = bool(np.any(y.isna()))
    elif hasattr(y, "is_null"):  # polars, pyarrow
        missing = bool(np.any(np.asarray(y.is_null())))
    else:
        is_object = getattr(y, "dtype", None) == np.dtype(object)
        missing = (is_object or isinstance(y, (list, tuple))) and any(
            map(is_missing, np.ravel(y) if is_object else y)
        )
    if missing:
        raise ValueError(
            "Input y contains NaN, None or NA. Leave samples without a label out."
        )
    if isinstance(y, (list, tuple)):
        check_no_nul(y)


def check_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the sorted labels that a stream is going to have.

    Raises
    ------
    ValueError
        If ``classes`` is not one-dimensional or has missing entries.
    """
    labels = list(classes) if isinstance(classes, (set, frozenset)) else classes
    if np.ndim(labels) != 1:
        raise ValueError(
            f"classes must be a sequence of labels such as [0, 1], got {classes!r}."
        )
    check_no_nul(labels)
    if any(map(is_missing, labels)):
        raise ValueError(f"classes must not contain NaN, None or NA, got {classes!r}.")
    return np.unique(labels)


def check_no_nul(labels: Iterable[Any]) -> None:
    """Raise ValueError if a label ends with NUL, which arrays of strings leave out."""
    for label in labels:
        if isinstance(label, (str, bytes)) and label[-1:] in ("\0", b"\0"):
            raise ValueError(
                "Labels must not end with the character NUL, which arrays of strings "
                f"of NumPy leave out; got {label!r}."
            )


def is_missing(label: Any) -> bool:
    return (
        label is None
        or (isinstance(label, (float, np.floating)) and bool(label != label))
        or type(label).__name__ in ("NAType", "NaTType")
    )


def distinct_classes(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sorted classes of labels; raise ValueError if these are continuous."""
    if y.dtype.kind not in _NUMERIC:
        check_classification_targets(y)
        return distinct(y)
    classes = distinct(y)
    # scikit-learn's check takes longer, and refuses what is not whole; it warns if
    # there are many classes for the number of labels, as twenty are not.
    if len(classes) > 20 or np.any(classes != np.rint(classes)):
        check_classification_targets(y)
    return classes


def distinct(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sorted distinct entries, without sorting all where two are numbers."""
    if y.dtype.kind in _NUMERIC:
        low, high = y.min(), y.max()
        if np.count_nonzero(y == low) + np.count_nonzero(y == high) >= len(y):
            return np.unique(np.array([low, high]))
    return np.unique(y)
