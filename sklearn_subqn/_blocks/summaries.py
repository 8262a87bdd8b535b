"""Statistics of blocks of rows, and the representative rows that follow from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._checks import exact_labels
from .._core.arrays import Array, Floats, Mask


class Summary(NamedTuple):
    """Statistics of a block: sizes, type of X, and sums over the targets.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : dtype
        Type of X.
    is_sparse : bool
        Whether X is a sparse matrix.
    labels : ndarray of shape (k,) or None
        Sorted labels that occur in the block; None for numeric targets.
    sums : ndarray of shape (k,), or (3,) or (3, n_targets)
        Weights of the labels; for numeric targets the sum of the weights, the mean, and
        the weighted sum of squared deviations from it.
    indicators : ndarray of bool, of shape (n_features,), or None
        Which features are zeros and ones; None where this is not needed.
    is_moved : bool or None
        Whether there are offsets other than zero; None if no offsets are given.
    """

    n_rows: int
    n_features: int
    dtype: Any
    is_sparse: bool
    labels: Array | None
    sums: Floats
    indicators: Mask | None
    is_moved: bool | None


def counts(summaries: list[Summary]) -> tuple[Array, Floats]:
    """Return all labels with their total weights."""
    parts = [summary.labels for summary in summaries if summary.labels is not None]
    same = len({labels.dtype.kind for labels in parts}) == 1
    every: Any = [label for labels in parts for label in labels.tolist()]
    if same:
        every = np.concatenate(parts)
    labels, places = np.unique(exact_labels("y", every), return_inverse=True)
    sums = np.concatenate([summary.sums for summary in summaries])
    totals: Floats = np.bincount(places, sums, len(labels)).astype(np.float64)
    return labels, totals


def moments(summaries: list[Summary]) -> tuple[Floats, Floats, Floats]:
    """Return two weighted numbers with the mean and variance of all targets.

    The moments of blocks are combined by the formula of Chan, Golub and LeVeque (1983).
    """
    total, mean, square = summaries[0].sums
    for summary in summaries[1:]:
        other_total, other_mean, other_square = summary.sums
        both = total + other_total
        share = other_total / np.where(both > 0.0, both, 1.0)
        far = other_mean - mean
        square = square + other_square + total * share * far * far
        total, mean = both, mean + share * far
    n = float(np.max(total))
    if not n > 0.0:
        raise ValueError(
            "Sample weights must contain at least one non-zero number; all are zero."
        )
    deviation = np.sqrt(square / n)
    y = np.stack([mean - deviation, mean + deviation])
    return y, np.full(2, 0.5 * n), np.full(2, 0.5)
