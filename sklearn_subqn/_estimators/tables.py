"""Coefficients of models as data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._core.arrays import Array, Floats
from .._core.names import Axis, in_order


def data_frame(columns: dict[str, Any], what: str) -> Any:
    """Return a DataFrame of columns.

    Raises
    ------
    ImportError
        If pandas is not installed; the message says that ``what`` needs it.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{what} needs pandas: pip install pandas.") from error
    return pd.DataFrame(columns)


def by_size(columns: dict[str, Any], sizes: Any) -> dict[str, Any]:
    """Return columns with rows sorted by descending absolute size."""
    order = np.argsort(-np.abs(sizes), kind="stable")
    return {name: values[order] for name, values in columns.items()}


def coefficients(
    coef: Any,
    outputs: tuple[str, Array] | None,
    names: Array,
    scale: Floats | None,
) -> dict[str, Any]:
    """Return the columns of a table of coefficients, the largest first.

    Parameters
    ----------
    coef : ndarray or sparse matrix of shape (k, d)
        Coefficients; only stored entries of a sparse matrix have a row.
    outputs : tuple of a name and an ndarray of shape (k,), or None
        Title of the column of outputs, and the output of each row of ``coef``.
    names : ndarray of shape (d,)
        Names of the features.
    scale : ndarray of shape (d,) or None
    """
    if sparse.issparse(coef):
        entries = coef.tocoo()
        rows, places, values = entries.row, entries.col, entries.data
    else:
        rows, places = (index.ravel() for index in np.indices(coef.shape))
        values = np.ravel(coef)
    columns: dict[str, Any] = {"feature": names[places]}
    if outputs is not None:
        columns[outputs[0]] = outputs[1][rows]
    columns["coefficient"] = sizes = values
    if scale is not None:
        columns["effect"] = sizes = values * scale[places]
    return by_size(columns, sizes)


def checked_names(names: Any, n_features: int) -> Array:
    """Return names of features as an array, by default x0, x1, ...

    Raises
    ------
    ValueError
        If the number of names is not the number of features.
    """
    if names is None:
        return np.array([f"x{j}" for j in range(n_features)], dtype=object)
    array = np.asarray(names, dtype=object)
    if array.shape != (n_features,):
        raise ValueError(
            f"feature_names must have one name for each of {n_features} features, got "
            f"shape {array.shape}."
        )
    return array


def checked_scale(scale: Any, n_features: int, axis: Axis) -> Floats | None:
    """Return scales of features as an array, in the order of their axis.

    Raises
    ------
    ValueError
        If the number of scales is not the number of features, a scale is negative or
        not finite, or the names are not the names of the features.
    """
    if scale is None:
        return None
    array = np.asarray(in_order("scale", scale, axis), dtype=np.float64)
    if array.shape != (n_features,):
        raise ValueError(
            f"scale must have one number for each of {n_features} features, got shape "
            f"{array.shape}."
        )
    if not np.all(array >= 0.0) or not np.all(np.isfinite(array)):
        raise ValueError("scale must be finite and not negative.")
    return array
