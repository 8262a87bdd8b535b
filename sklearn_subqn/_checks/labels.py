"""Checks of labels of classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core.arrays import Array, Indices
from .arrays import as_numpy, check_unmasked


def check_labels(y: Any) -> None:
    """Raise ValueError if y has missing entries, or a list has labels ending with NUL.

    scikit-learn detects NaN among numbers. Among strings it turns NaN into the label
    "nan", it raises unclear errors at None and at NA of pandas, and it drops masks.
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


def exact_names(values: Any) -> Any:
    """Return names of classes or queries as an array in which different names differ.

    NumPy converts the entries of a list to one type, and scikit-learn does so with
    integers of pandas with missing values: large integers may become equal, and numbers
    may become strings.

    Parameters
    ----------
    values : array-like
        Names without missing entries.

    Returns
    -------
    names : ndarray
        An array of objects if no other type holds all entries. Tables of several
        columns, and sparse matrices, are returned unchanged.
    """
    if hasattr(values, "__array__") and not hasattr(values, "shape"):
        values = np.asarray(values)
    shape = np.shape(values)
    if len(shape) == 2 and shape[1] == 1 and hasattr(values, "iloc"):
        return np.asarray(values.iloc[:, 0]).reshape(shape)
    if len(shape) != 1:
        return values
    names = np.asarray(values)
    if not isinstance(values, (list, tuple)) or names.dtype == np.dtype(object):
        return names
    if all(a == b for a, b in zip(names.tolist(), values, strict=True)):
        return names
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return names


def names_of_rows(
    name: str, values: Any, n: int, instead: str = ""
) -> tuple[Array, Indices]:
    """Return the sorted distinct names of rows, and the position of each row's name.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    values : array-like of shape (n,)
    n : int
    instead : str
        Text that is appended to the message if the number of entries is not n.

    Raises
    ------
    ValueError
        If there is not one name for each of n rows.
    """
    check_unmasked(name, values)
    values = as_numpy(values)
    if np.ndim(values) != 1 and np.shape(values) != (n, 1):
        raise ValueError(
            f"{name} should be a 1d array, got one of shape {np.shape(values)}."
        )
    given = np.ravel(exact_names(values))
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} entries for {n} rows.{instead}")
    if given.dtype == np.dtype(object):
        missing = any(map(is_missing, given))
    else:
        # A missing value, of any type, is not equal to itself.
        missing = bool(np.any(given != given))
    if missing or (given.dtype.kind == "f" and np.any(np.isinf(given))):
        raise ValueError(f"{name} must not contain NaN, None or infinity.")
    try:
        names, codes = np.unique(given, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} must hold labels of one type, without None: {error}."
        ) from error
    return names, codes.astype(np.intp)


def exact_labels(name: str, values: Any) -> Any:
    """Return labels of classes as an array in which different labels differ.

    Numbers among strings become strings, as in scikit-learn.

    Raises
    ------
    ValueError
        If no array of numbers or of strings can hold the labels.
    """
    labels = exact_names(values)
    if not isinstance(values, (list, tuple)) or labels is values:
        return labels
    usual = np.asarray(values)
    if usual.dtype == labels.dtype:
        return labels
    are_texts = usual.dtype.kind in "US"
    if are_texts and len(set(values)) == len(set(usual.tolist())):
        return usual
    changed = next(
        (b, a) for a, b in zip(usual.tolist(), values, strict=True) if a != b
    )
    raise ValueError(
        f"{name} has labels of types that no array of NumPy holds all of: "
        f"{changed[0]!r} would become {changed[1]!r}. Give labels of one type, for "
        "example all as strings."
    )


def check_classes(classes: Any) -> Array:
    """Return the sorted labels that a stream may contain.

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
    return np.unique(exact_labels("classes", labels))


def check_no_nul(labels: Iterable[Any]) -> None:
    """Raise ValueError if a label ends with NUL, which arrays of strings drop."""
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
