"""Rows in blocks as samples that a search splits: fits to, and predictions of, some.

A fold is numbers of rows, in the order of the blocks. A fit to some rows is one to all
of them in which the others have weight zero, so that no rows are copied; predictions
look at the rows of each block that are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import as_sample_weights
from .blocks import Collection, Floats
from .row_blocks import WITHOUT_TARGETS, ChosenRows, RowBlocks


class SplitRows(ABC):
    """Data in blocks of which targets and weights are in this process.

    Parameters
    ----------
    X : collection
    y : array-like or collection
        As fits take it.
    targets : ndarray of shape (n,) or (n, n_targets)
        The same, in one array.
    weights : ndarray of shape (n,) or None

    Attributes
    ----------
    y : ndarray
        The targets.
    weights : ndarray or None
    """

    def __init__(self, X: Any, y: Any, targets: Any, weights: Any) -> None:
        self._X, self._given = X, y
        self.y, self.weights = targets, weights

    def opened(self, estimator: Any, weights: Floats) -> Collection:
        """Return the rows for a fit of an estimator, with other weights."""
        rows: Collection = estimator._opened(
            self._X, self._given, self._as_collection(weights)
        )
        return rows

    def some(self, rows: npt.NDArray[np.intp], n_features: int) -> ChosenRows:
        """Return some of the rows, for predictions."""
        return ChosenRows(rows, n_features, self._sizes(), self._results)

    @abstractmethod
    def close(self) -> None:
        """Release what is held for all fits."""

    def _as_collection(self, weights: Floats) -> Any:
        """Return numbers of all rows as a fit takes them."""
        return weights

    @abstractmethod
    def _sizes(self) -> Sequence[int]:
        """Return the numbers of rows of the blocks."""

    @abstractmethod
    def _results(
        self, method: Callable[..., Any], estimator: Any, rows: list[Any]
    ) -> list[Any]:
        """Return results of a method for some rows of each block that has any."""


class SplitRowBlocks(SplitRows):
    """The rows of ``RowBlocks``.

    Parameters
    ----------
    X : RowBlocks
    y, sample_weight : array-like or None
        Where the blocks have none of their own; a weight may be a number.
    """

    def __init__(self, X: RowBlocks, y: Any, sample_weight: Any) -> None:
        number = sample_weight is not None and np.ndim(sample_weight) == 0
        targets = X._all("y", y)
        if targets is None:
            raise ValueError(WITHOUT_TARGETS)
        weights = X._all("sample_weight", None if number else sample_weight)
        if weights is None and number:
            weights = as_sample_weights(sample_weight, len(targets))
        X = X._without_targets()
        super().__init__(X, targets, targets, weights)

    def close(self) -> None:
        del self._X, self._given

    def _sizes(self) -> Sequence[int]:
        return [reader.n_rows for reader in self._X._each()]

    def _results(
        self, method: Callable[..., Any], estimator: Any, rows: list[Any]
    ) -> list[Any]:
        return self._X._of_some(method, estimator, rows)


def split_rows(X: Any, y: Any, sample_weight: Any) -> SplitRows:
    """Return data in blocks as rows to split.

    Parameters
    ----------
    X, y, sample_weight
        As fits take them.
    """
    if isinstance(X, RowBlocks):
        return SplitRowBlocks(X, y, sample_weight)
    # Needs Dask.
    from .dask_collections import SplitCollection

    return SplitCollection(X, y, sample_weight)
