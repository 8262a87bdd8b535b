"""Checks and normalization of class labels, and of weights of samples and classes."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._core.arrays import Array, Floats
from .arrays import as_numpy, check_no_times, check_unmasked

#: Kinds of numeric dtypes: bool, integers, floats, complex. scikit-learn's check
#: rejects complex numbers.
NUMERIC = "biufc"


class Weighed(NamedTuple):
    """Weights of rows with classes.

    Attributes
    ----------
    shares : ndarray of shape (n_samples,)
        Weights that sum to one. A row of weight zero has no effect.
    classes : ndarray
        Sorted classes of the rows with positive weight.
    own : ndarray of shape (n_samples,)
        Weights times the factors of classes, as they are given.
    total : float
        Sum of ``own``, infinite beyond the range of numbers.
    """

    shares: Floats
    classes: Array
    own: Floats
    total: float


def check_weights(
    sample_weight: Any,
    y: Array,
    class_weight: Any,
    classes: Array | None = None,
) -> Weighed:
    """Return the weights of rows and the classes with positive weight.

    Parameters
    ----------
    sample_weight : None, number or array-like of shape (n_samples,)
    y : ndarray of shape (n_samples,)
    class_weight : None, "balanced" or dict
        As in scikit-learn; multiplies ``sample_weight``. A row of weight 2 counts as
        two rows when classes are balanced.
    classes : ndarray, optional
        The sorted distinct labels, where they are known and checked.

    Raises
    ------
    ValueError
        If labels are not classes, or weights are negative, not finite, all zero, of the
        wrong shape, or leave fewer than two classes.
    """
    classes = distinct_classes(y) if classes is None else classes
    weights = check_sample_weight(sample_weight, len(y))
    own = as_sample_weights(sample_weight, len(y))
    used = weights > 0.0
    if not used.all():
        classes = distinct(y[used])
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the "
            f"data contains only one class with positive weight: {classes[0]}."
        )
    if class_weight is not None:
        check_class_weight(class_weight)
        per_class = class_factors(class_weight, classes, y, weights)
        if np.count_nonzero(per_class) < 2:
            raise ValueError(
                "class_weight leaves fewer than 2 classes with positive weight: "
                f"{class_weight!r}."
            )
        factors = per_class[np.searchsorted(classes, y[used])]
        weights[used] *= factors / per_class.max()
        weights /= weights.sum()
        with np.errstate(over="ignore"):
            own[used] *= factors
        classes = classes[per_class > 0.0]
    with np.errstate(over="ignore"):
        return Weighed(weights, classes, own, float(own.sum()))


def check_sample_weight(sample_weight: Any, n: int) -> Floats:
    """Return row weights of shape (n,) that sum to one.

    Raises
    ------
    ValueError
        If weights are negative, not finite, all zero, or of the wrong shape.
    """
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = non_negative_weights(sample_weight, n)
    if not np.any(weights > 0.0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number; all are zero."
        )
    # Division by the largest weight first avoids overflow and underflow of the sum.
    weights = weights / weights.max()
    weights /= weights.sum()
    return weights


def non_negative_weights(sample_weight: Any, n: int) -> Floats:
    """Return ``sample_weight`` as a new array of shape (n,), not normalized.

    Raises
    ------
    ValueError
        If weights are negative, not finite, or of the wrong shape.
    """
    weights = as_sample_weights(sample_weight, n)
    if not np.all(np.isfinite(weights)):
        raise ValueError("sample_weight must be finite.")
    if np.any(weights < 0.0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    return weights


def total_of(sample_weight: Any, n: int) -> float:
    """Return the sum of checked weights of n rows."""
    if sample_weight is None or isinstance(sample_weight, numbers.Real):
        return n * float(1.0 if sample_weight is None else sample_weight)
    return float(np.sum(np.asarray(sample_weight, dtype=np.float64)))


def as_sample_weights(sample_weight: Any, n: int) -> Floats:
    """Return ``sample_weight`` as a new array of shape (n,)."""
    if sample_weight is None or isinstance(sample_weight, numbers.Real):
        return np.full(n, 1.0 if sample_weight is None else sample_weight, float)
    sample_weight = as_numpy(sample_weight)
    check_unmasked("sample_weight", sample_weight)
    try:
        check_no_times(sample_weight, "sample_weight")
        weights = check_array(
            sample_weight,
            ensure_2d=False,
            dtype=np.float64,
            input_name="sample_weight",
        )
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        raise type(error)(f"sample_weight is not acceptable: {error}") from error
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array."
        )
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}.")
    return np.array(weights, dtype=float)


def check_class_weight(class_weight: Any) -> None:
    """Raise ValueError unless the value is "balanced" or a dict to numbers >= 0."""
    if not isinstance(class_weight, dict):
        if not isinstance(class_weight, str) or class_weight != "balanced":
            raise ValueError(
                "class_weight must be a dict from labels to weights, 'balanced' or "
                f"None, got {class_weight!r}."
            )
        return
    for weight in class_weight.values():
        if not isinstance(weight, numbers.Real) or not 0.0 <= float(weight) < np.inf:
            raise ValueError(
                "class_weight must map labels to non-negative finite numbers, got "
                f"{class_weight!r}."
            )


def class_factors(
    class_weight: Any,
    classes: Array,
    y: Array,
    sample_weight: Floats,
) -> Floats:
    """Return the factor of each class on the weights of its rows, of shape (k,).

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        A checked class weight.
    classes : ndarray of shape (k,)
        Classes with positive weight.
    y, sample_weight : ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    used = sample_weight > 0.0
    labels = y[used]
    found = distinct(labels)
    factors: Floats = compute_class_weight(
        class_weight, classes=found, y=labels, sample_weight=sample_weight[used]
    )
    return factors[np.isin(found, classes)]


def row_weights(
    class_weight: Any,
    classes: Array,
    y: Array,
    sample_weight: Any,
) -> Floats:
    """Return row weights times the factors of their classes, not normalized.

    Parameters
    ----------
    class_weight, classes, y
        See ``class_factors``.
    sample_weight : None, number or array-like of shape (n,)
    """
    weights = as_sample_weights(sample_weight, len(y))
    if class_weight is None:
        return weights
    factors = class_factors(class_weight, classes, y, weights)
    return np.asarray(
        weights
        * factors[np.minimum(np.searchsorted(classes, y), len(classes) - 1)]
        * np.isin(y, classes)
    )


def distinct_classes(y: Array) -> Array:
    """Return the sorted classes of labels; raise ValueError for continuous labels."""
    if y.dtype.kind not in NUMERIC:
        check_classification_targets(y)
        return distinct(y)
    classes = distinct(y)
    # scikit-learn's slower check rejects continuous labels, and warns of many different
    # labels. It is not needed for up to twenty classes that are whole numbers.
    if len(classes) > 20 or np.any(classes != np.rint(classes)):
        check_classification_targets(y)
    return classes


def distinct(y: Array) -> Array:
    """Return the sorted distinct entries, without sorting if only two numbers occur."""
    if y.dtype.kind in NUMERIC:
        low, high = y.min(), y.max()
        if np.count_nonzero(y == low) + np.count_nonzero(y == high) >= len(y):
            return np.unique(np.array([low, high]))
    return np.unique(y)
