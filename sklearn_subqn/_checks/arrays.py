"""Checks of arrays of numbers: features, targets, offsets, starts, costs."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array

from .._core import lapack
from .._core.arrays import Floats
from .._core.names import Axis, by_name, in_order
from .text import has_times

# The sum of squares of a row with entries of this size is still finite.
LARGEST_VALUE = 1e140

# Error messages show at most 100 characters of an invalid value.
_LONGEST_SHOWN = 100


def as_numpy(values: Any) -> Any:
    """Return arrays of other libraries as NumPy arrays, everything else unchanged.

    Unlike with scikit-learn's ``array_api_dispatch``, the result is always an array of
    NumPy, which compiled loops need. Arrays on other devices raise the error of their
    library.
    """
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    return np.asarray(values)


def check_unmasked(name: str, data: Any) -> None:
    """Raise ValueError if an array, or an array in a list, has masked entries.

    NumPy's conversions drop the mask, so masked entries would be used as data.
    """
    if sparse.issparse(data):
        data = getattr(data, "data", None)
    for part in data if isinstance(data, (list, tuple)) else [data]:
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} has masked entries, which are missing values. Fill them, for "
                "example by sklearn.impute.SimpleImputer of X.filled(numpy.nan), or "
                "leave them out."
            )


def check_no_file(
    name: str, data: Any, accepted: str = "an array, a sparse matrix or a data frame"
) -> None:
    """Raise TypeError if data are a path, an open file, or a single text.

    Parameters
    ----------
    name : str
        Name of the data, for the error.
    data : object
        Data as given by the user.
    accepted : str
        The accepted types, for the error.
    """
    if not isinstance(data, (str, bytes, os.PathLike, io.IOBase)):
        return
    given = repr(data)
    if len(given) > _LONGEST_SHOWN:
        given = f"{given[:_LONGEST_SHOWN]}..."
    raise TypeError(
        f"{name} must be {accepted}, got {given} of type {type(data).__name__}. If "
        "the data are in a file, read it first, for example by pandas.read_csv or "
        "sklearn.datasets.load_svmlight_file, or, where they do not fit into memory, "
        "by sklearn_subqn.RowBlocks. The page 'Your own files' of the user guide has "
        "recipes, for tagged sentences, too."
    )


def check_targets(y: Any) -> Floats:
    """Return targets as a new array of finite float64.

    Objects that are numbers are converted.

    Raises
    ------
    TypeError
        For dates and times, since their numbers depend on a unit, and for other
        objects.
    ValueError
        If the targets are not numbers, or not finite.
    """
    check_no_times(y)
    if np.iscomplexobj(y):
        raise ValueError("Complex data not supported; y must be real numbers.")
    try:
        targets = np.array(y, dtype=np.float64, order="F")
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must be numbers: {error}.") from error
    if not np.isfinite(targets).all():
        # scikit-learn's check takes ten times as long, and is called for its message
        # only.
        assert_all_finite(targets, input_name="y")
    return targets


def check_no_times(values: Any, name: str = "y") -> None:
    """Raise TypeError for dates, times or durations, which NumPy would convert.

    The resulting numbers would depend on the unit in which times are stored.
    """
    array = np.asarray(values)
    if has_times(array):
        raise TypeError(
            f"{name} must be numbers, got {array.ravel()[0]!r}, a time. Convert "
            f"times to numbers of a unit, for example by ({name} - {name}[0]) / "
            "np.timedelta64(1, 'D')."
        )


def check_offset(offset: Any, n: int) -> Floats:
    """Return offsets of shape (n,), from one number or one for each sample.

    Raises
    ------
    TypeError, ValueError
        If offsets are not numbers, not finite, or of another shape.
    """
    offsets = _real_numbers("offset", offset)
    if not offsets.ndim:
        offsets = np.full(n, offsets)
    if offsets.shape != (n,):
        raise ValueError(
            f"offset must have one number for each of the {n} samples, shape {(n,)}; "
            f"got shape {offsets.shape}."
        )
    if not np.all(np.isfinite(offsets)):
        raise ValueError(
            "offset must be finite. Logarithms of exposures are so of positive ones; "
            "leave out samples without exposure."
        )
    return offsets


def check_label_cost(label_cost: Any, labels: Axis) -> Floats:
    """Return the cost of predicting the second label of a pair instead of the first.

    ``None`` means cost one for every two different labels.

    Raises
    ------
    ValueError
        If costs have the wrong shape, are not finite, negative, or nonzero on the
        diagonal, or their names are not the labels.
    """
    if label_cost is None:
        return 1.0 - np.eye(len(labels.labels))
    costs = _checked_costs("label_cost", label_cost, labels, labels)
    if np.any(costs.diagonal()):
        raise ValueError("label_cost must be zero on the diagonal.")
    return costs


def check_rescaling(rescaling: Any, costs: Floats, labels: Axis) -> str | Floats:
    """Return the scaling of margins with label costs: its name or a matrix of rates.

    Raises
    ------
    ValueError
        If rates have the wrong shape, are not finite, negative, or zero where a cost is
        positive, or their names are not the labels.
    """
    if isinstance(rescaling, str):
        return rescaling
    rates = _checked_costs("rescaling", rescaling, labels, labels)
    lost = np.argwhere((rates == 0.0) & (costs > 0.0))
    if lost.size:
        y, j = lost[0]
        raise ValueError(
            f"rescaling must be positive where label_cost is, got 0 beside a cost of "
            f"{costs[y, j]:g} in row {y}, column {j}: no scores could avoid that cost."
        )
    return rates


def _checked_costs(name: str, values: Any, rows: Axis, columns: Axis) -> Floats:
    shape = len(rows.labels), len(columns.labels)
    costs = check_matrix(name, by_name(name, values, rows, columns), shape)
    if np.any(costs < 0.0):
        raise ValueError(f"{name} must be non-negative, got {costs.min():g}.")
    if costs.max(initial=0.0) > LARGEST_VALUE:
        raise ValueError(f"{name} must not exceed {LARGEST_VALUE:g}.")
    return costs


def check_matrix(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return a parameter of finite numbers as a new array with the given shape.

    Raises
    ------
    TypeError, ValueError
        If the value is invalid; the message names the parameter.
    """
    check_unmasked(name, values)
    try:
        matrix = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    except (TypeError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name} is not acceptable: {error}") from error
    if matrix.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {matrix.shape}.")
    return np.array(matrix, order="C")


def _real_numbers(name: str, values: Any) -> Floats:
    """Return an array-like as a new array in float64.

    Raises
    ------
    TypeError, ValueError
        If the values are not real numbers; strings of digits are not accepted.
    """
    check_unmasked(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "buifO":
            raise ValueError(f"got an array of type {given.dtype}")
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be an array of numbers: {error}") from error


def check_start(name: str, values: Any, shape: tuple[int, ...], axis: Axis) -> Floats:
    """Return initial coefficients or intercepts, with the shape of the attribute.

    If that shape has one row, the row itself is accepted, and a number for an array of
    one entry. Named values are put in the order of the last axis.

    Raises
    ------
    TypeError, ValueError
        If the values are not finite numbers, or have another shape.
    """
    if sparse.issparse(values):
        values = values.toarray()
    array = _real_numbers(name, in_order(name, values, axis))
    accepted = [shape]
    if shape[:1] == (1,):
        accepted.append(shape[1:])
    if not shape:
        accepted.append((1,))
    if array.shape not in accepted:
        shapes = " or ".join(map(str, accepted))
        raise ValueError(f"{name} must have shape {shapes}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return array.reshape(shape)


def check_label_margins(label_cost: Any, labels: Axis) -> Floats:
    """Return margins of irrelevant and of relevant labels, or costs of pairs of labels.

    Margins have shape (2, n_labels), costs of pairs (n_labels, n_labels); for two
    labels (2, 2) means margins. ``None`` means margins of one half.

    Raises
    ------
    ValueError
        If values have the wrong shape, are not finite, negative or too large, or their
        names are not the labels.
    """
    n_labels = len(labels.labels)
    if label_cost is None:
        return np.full((2, n_labels), 0.5)
    kinds = Axis("kinds of labels, irrelevant and relevant,", [0, 1])
    rows = kinds if np.shape(label_cost)[:1] == (2,) else labels
    label_cost = by_name("label_cost", label_cost, rows, labels)
    shape = np.shape(label_cost)
    if shape == (n_labels, n_labels) != (2, n_labels):
        return check_label_cost(label_cost, labels)
    if len(shape) == 2 and shape != (2, n_labels):
        raise ValueError(
            f"label_cost must have shape {(2, n_labels)} or {(n_labels, n_labels)}, "
            f"got {shape}."
        )
    return _checked_costs("label_cost", label_cost, kinds, labels)


def check_metric(
    name: str, matrix: Any, n: int, axis: Axis, *, definite: bool
) -> Floats:
    """Return a symmetric matrix of shape (n, n), whose two axes have the same names.

    Raises
    ------
    ValueError
        If the matrix has another shape, is not symmetric, or not positive
        (semi)definite, or its names are not the names of the axis.
    """
    M = check_matrix(name, by_name(name, matrix, axis, axis), (n, n))
    if not np.allclose(M, M.T, rtol=1e-10, atol=0.0):
        raise ValueError(f"{name} must be symmetric.")
    if lapack.is_definite(M, 1e-12):
        return M
    values = lapack.eigvalsh(M)
    floor = 1e-12 * float(np.abs(values).max(initial=0.0))
    if values[0] < (floor if definite else -floor) or (definite and values[0] <= 0.0):
        kind = "definite" if definite else "semidefinite"
        raise ValueError(
            f"{name} must be positive {kind}; its least eigenvalue is {values[0]:g}."
        )
    return M
