"""Rows in blocks as samples of a search: fits to, and predictions for, subsets of rows.

A fold is an array of row numbers, in the order of the blocks. A fit to a subset of the
rows is a fit to all rows in which the other rows have weight zero, so that no rows are
copied. Predictions read only the selected rows of each block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from .._checks import as_sample_weights, check_offset
from .._core.arrays import Floats, Indices
from .blocks import Collection
from .row_blocks import WITHOUT_TARGETS, ChosenRows, RowBlocks


class SplitRows(ABC):
    """Data in blocks whose targets and weights are in this process.

    Parameters
    ----------
    X : collection
    y : array-like or collection
        Targets in the form that ``fit`` takes.
    targets : ndarray of shape (n,) or (n, n_targets)
        The same targets, in one array.
    weights, offset : ndarray of shape (n,) or None

    Attributes
    ----------
    y : ndarray
        The targets.
    weights, offset : ndarray or None
    """

    def __init__(self, X: Any, y: Any, targets: Any, weights: Any, offset: Any) -> None:
        self._X, self._given = X, y
        self.y, n = targets, len(targets)
        self.weights = None if weights is None else as_sample_weights(weights, n)
        self.offset = None if offset is None else check_offset(offset, n)

    def opened(self, estimator: Any, weights: Floats) -> Collection:
        """Return the rows for a fit of an estimator, with the given weights."""
        offset = {}
        if self.offset is not None:
            offset["offset"] = self._as_collection(self.offset)
        rows: Collection = estimator._opened(
            self._X, self._given, self._as_collection(weights), **offset
        )
        return rows

    def some(self, rows: Indices, n_features: int) -> ChosenRows:
        """Return a subset of the rows, for predictions."""
        return ChosenRows(rows, n_features, self._sizes(), self._results)

    @abstractmethod
    def close(self) -> None:
        """Release the resources shared by all fits."""

    def _as_collection(self, numbers: Floats) -> Any:
        """Return numbers of all rows in the form that ``fit`` takes."""
        return numbers

    @abstractmethod
    def _sizes(self) -> Sequence[int]:
        """Return the number of rows of each block."""

    @abstractmethod
    def _results(
        self, method: Callable[..., Any], estimator: Any, *rows: list[Any]
    ) -> list[Any]:
        """Return the results of a method for each non-empty selection of rows.

        ``rows`` are the selections of each block, perhaps followed by their offsets.
        """


class SplitRowBlocks(SplitRows):
    """The rows of ``RowBlocks``, for a search.

    Parameters
    ----------
    X : RowBlocks
    y, sample_weight, offset : array-like or None
        Targets and weights if the blocks have none; a weight may be a number.
    """

    def __init__(self, X: RowBlocks, y: Any, sample_weight: Any, offset: Any) -> None:
        targets = X._all("y", y)
        if targets is None:
            raise ValueError(WITHOUT_TARGETS)
        weights = X._all("sample_weight", sample_weight)
        offset = X._all("offset", offset)
        X = X._without_targets()
        super().__init__(X, targets, targets, weights, offset)

    def close(self) -> None:
        del self._X, self._given

    def _sizes(self) -> Sequence[int]:
        return [reader.n_rows for reader in self._X._each()]

    def _results(
        self, method: Callable[..., Any], estimator: Any, *rows: list[Any]
    ) -> list[Any]:
        return self._X._of_some(method, estimator, *rows)
