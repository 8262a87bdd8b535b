"""The roles of classes: their order, and which class is positive."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

from .._checks import is_missing
from .._checks.callers import user_level
from .._core.arrays import Array, Indices

# Labels of two classes for which the greater label is positive by convention.
_BINARY = ({0, 1}, {-1, 1})


def category_order(y: Any) -> list[Any] | None:
    """Return the ordered categories of labels, lowest first; None for unordered labels.

    Parameters
    ----------
    y : array-like
        Labels. Ordered categories of pandas and Enums of polars are recognized in a
        series, a frame of one column, or ``pandas.Categorical``.
    """
    dtype = getattr(y, "dtype", None)
    if getattr(y, "ndim", 1) == 2 or hasattr(y, "columns"):
        dtypes = list(getattr(y, "dtypes", []))
        dtype = dtypes[0] if len(dtypes) == 1 else dtype
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return list(dtype.categories)  # type: ignore[union-attr]
    return None


def class_order(
    classes: Array,
    given: Any,
    categories: list[Any] | None,
    needs: str,
) -> Indices:
    """Return the numbers of sorted classes from the lowest class to the highest.

    Parameters
    ----------
    classes : ndarray
        Sorted labels.
    given : array-like or None
        The parameter ``classes``.
    categories : list or None
        The order that the type of the labels defines.
    needs : str
        What requires the order, for messages.

    Raises
    ------
    ValueError
        If there is no order, or a label is missing from the given order.
    """
    labels = classes.tolist()
    if given is not None:
        categories = _checked(given)
    elif categories is None:
        if all(isinstance(label, numbers.Real) for label in labels):
            return np.arange(len(labels))
        raise ValueError(
            f"{needs} needs the order of classes, which labels such as {labels[0]!r} "
            "do not have: give classes=[...] with all labels from the lowest to the "
            "highest, or as y numbers or an ordered pandas.Categorical. The labels are "
            f"{labels}."
        )
    places = {label: place for place, label in enumerate(categories)}
    unknown = [label for label in labels if label not in places]
    if unknown:
        raise ValueError(
            f"y has labels that are not among classes={categories!r}: {unknown!r}."
        )
    return np.argsort([places[label] for label in labels]).astype(np.intp)


def _checked(given: Any) -> list[Any]:
    """Return the parameter ``classes`` as a list."""
    if isinstance(given, (str, bytes, set, frozenset)) or np.ndim(given) != 1:
        raise ValueError(
            "classes must be a list of labels from the lowest to the highest, got "
            f"{given!r}."
        )
    labels = [
        label.item() if isinstance(label, np.generic) else label for label in given
    ]
    if len(set(labels)) < len(labels) or any(map(is_missing, labels)):
        raise ValueError(
            f"classes must be different labels without NaN, None or NA, got {given!r}."
        )
    return labels


def positive_class(classes: Array, pos_label: Any, concerns: str | None) -> int | None:
    """Return the number of the positive class of two classes; None for more classes.

    Parameters
    ----------
    classes : ndarray
        Sorted labels.
    pos_label : object
        The parameter; None means the second class.
    concerns : str or None
        The option that treats the classes unequally, for a warning where ``pos_label``
        is None and the labels are not 0 and 1 or -1 and 1; None for no warning.

    Raises
    ------
    ValueError
        If ``pos_label`` is not one of two classes.
    """
    labels = classes.tolist()
    if pos_label is not None and (len(labels) != 2 or pos_label not in labels):
        raise ValueError(
            f"pos_label must be one of two classes, got {pos_label!r} with the classes "
            f"{labels}."
        )
    if len(labels) != 2:
        return None
    if pos_label is not None:
        return labels.index(pos_label)
    conventional = classes.dtype.kind in "biuf" and set(labels) in _BINARY
    if concerns is not None and not conventional:
        first, second = labels
        warnings.warn(
            f"{concerns} concerns the positive class, for which {second!r} is taken, "
            f"the last of the sorted classes. Give pos_label={second!r} to confirm "
            f"that, or pos_label={first!r} for the other class.",
            UserWarning,
            stacklevel=user_level(),
        )
    return 1


def warn_of_no_effect(name: str, loss: Any, users: str) -> None:
    """Warn that a parameter was given to a loss that does not use it."""
    got = repr(loss) if isinstance(loss, str) else type(loss).__name__
    warnings.warn(
        f"{name} has no effect with loss={got}: it belongs to {users}.",
        UserWarning,
        stacklevel=user_level(),
    )
