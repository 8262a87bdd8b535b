"""Preferences between rows: the first row of a pair should have the larger score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_array

from .._checks import check_unmasked
from .._core.arrays import Floats, Indices
from .._core.names import check_same_rows


class PreferredRows(NamedTuple):
    """Pairs of rows, the first better than the second.

    Attributes
    ----------
    better, worse : ndarray of int of shape (p,)
        Indices of rows.
    weights : ndarray of shape (p,)
        Positive weights, which sum to one.
    """

    better: Indices
    worse: Indices
    weights: Floats

    @classmethod
    def of(cls, n: int, pairs: Any, pair_weight: Any = None) -> PreferredRows:
        """Return the user's pairs among n rows, without pairs of weight zero.

        Raises
        ------
        ValueError
            If an entry is not a pair of two different rows, or no pair has a positive
            weight.
        """
        check_unmasked("pairs", pairs)
        check_unmasked("pair_weight", pair_weight)
        check_same_rows(pairs, pair_weight=pair_weight)
        given = check_array(pairs, dtype=None, ensure_min_samples=1, input_name="pairs")
        if given.shape[1] != 2:
            raise ValueError(f"pairs must have 2 columns, got {given.shape[1]}.")
        rows = given.astype(np.intp)
        if given.dtype.kind not in "iuf" or not np.array_equal(rows, given):
            raise ValueError("pairs must be numbers of rows, integers from zero.")
        if rows.min() < 0 or rows.max() >= n:
            raise ValueError(
                f"pairs must be numbers of rows from 0 to {n - 1}, got {rows.min()} to "
                f"{rows.max()}. They are not split with X in cross-validation."
            )
        same = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if same.size:
            raise ValueError(
                f"pairs must be of two rows; pair {same[0]} is of row "
                f"{rows[same[0], 0]} twice."
            )
        weights = np.ones(len(rows))
        if pair_weight is not None:
            weights = check_array(
                pair_weight, ensure_2d=False, dtype=float, input_name="pair_weight"
            )
            if weights.shape != (len(rows),):
                raise ValueError(
                    f"pair_weight must be of shape {(len(rows),)}, got {weights.shape}."
                )
            if weights.min() < 0.0 or not weights.any():
                raise ValueError(
                    "pair_weight must be non-negative, and not zero for all pairs."
                )
        used = weights > 0.0
        share = weights[used] / weights.max()
        return cls(rows[used, 0], rows[used, 1], share / share.sum())

    @property
    def n_components(self) -> int:
        """Number of connected components of the graph whose edges are the pairs."""
        n = int(max(self.better.max(), self.worse.max())) + 1
        links = np.ones(len(self.better)), (self.better, self.worse)
        graph = sparse.coo_array(links, shape=(n, n))
        components = connected_components(graph, directed=False)[1]
        return len(np.unique(components[self.better]))
