"""Subsets of the columns of X, for methods that work feature by feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import gram, products
from ..kernels import own_columns as kernel
from ..lazy import cached_property
from ..losses._base import Floats, Mask, Rows
from ..memory import BLOCK_SIZE, COPY_SIZE
from .column_maps import InPlace
from .design import Design
from .row_views import columns_of, dense_rows, row_view

# With over 2000 times more columns than entries, the columns that have entries are
# found by sorting the entries, otherwise by marking all columns. docs/constants.md has
# the figures.
_MANY = 2000


class MatrixColumns:
    """A subset A of the columns of a design's X, without intercepts.

    Parameters
    ----------
    design : Design
    columns : ndarray of shape (m,)
        Indices of the columns in X.

    Attributes
    ----------
    sparse : bool
        Whether X is sparse.
    row_size : float
        Mean number of stored entries of A in a row, estimated if X is sparse.
    """

    def __init__(self, design: Design, columns: Rows) -> None:
        self._design = design
        self._columns = columns
        self.sparse = design.is_sparse
        self.row_size = design.entries_in(columns)

    @cached_property
    def block(self) -> Any:
        """A, an ndarray or a CSC array of shape (n, m)."""
        if len(self._columns) == self._design.n_features:
            return self._matrix if self.sparse else self._design.matrix
        return columns_of(self._matrix, self._columns)

    @property
    def _is_small(self) -> bool:
        """Whether a copy of A is small, absolutely or relative to X."""
        m, design = len(self._columns), self._design
        return m * design.n_rows <= COPY_SIZE or 8 * m <= design.n_features

    def _rows(self, rows: slice) -> Any:
        """Return a slice of the rows of A, dense."""
        if self._is_small or "block" in vars(self):
            return self.block[rows]
        return dense_rows(columns_of(self._design.X[rows], self._columns))

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Arrays indptr, indices and data of a CSC matrix that contains A's columns."""
        columns = self._matrix if self.sparse else sparse.csc_array(self.block)
        return columns.indptr, columns.indices, columns.data

    @property
    def positions(self) -> Rows:
        """Positions of A's columns in that CSC matrix."""
        return self._columns if self.sparse else np.arange(len(self._columns))

    def take(self, which: Rows) -> Any:
        """Return a subset of A's columns, as a CSC array of float64."""
        indptr, indices, data = self.arrays
        shape = (self._design.n_rows, len(indptr) - 1)
        matrix = sparse.csc_array((data, indices, indptr), shape=shape)
        return matrix[:, self.positions[which]].astype(np.float64, copy=False)

    def scaled(
        self, scales: Floats, kept: Mask
    ) -> tuple[tuple[Any, Any, Any], tuple[Floats, Floats]]:
        """Return a subset of the rows of diag(scales) A in compact arrays.

        The result has the CSC arrays, then the squared norms of the columns in the kept
        rows and in the other rows. Row indices have two bytes and values are float32 if
        their ranges allow, which makes products faster.
        """
        indptr, indices, data = self.arrays
        sizes = np.diff(indptr)[self.positions]
        size = int(sizes.sum())
        n_rows = int(np.count_nonzero(kept))
        dtype = np.uint16 if n_rows <= np.iinfo(np.uint16).max else indices.dtype
        rows = np.where(kept, np.cumsum(kept) - 1, n_rows).astype(dtype)
        own = np.empty(len(self.positions) + 1, indptr.dtype)
        of_rows: Any = np.empty(size, dtype)
        values: Any = np.empty(size, np.float32)
        squares = np.empty((2, len(self.positions)))
        source = indptr, indices, data, self.positions, scales, rows, n_rows
        products.scale_columns(*source, own, of_rows, values, squares)
        least, most = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        if not np.all((squares <= most) & ((squares >= least) | (squares == 0.0))):
            befores = indptr[self.positions] - (np.cumsum(sizes) - sizes)
            entries = np.arange(size) + np.repeat(befores, sizes)
            entries = entries[kept[indices[entries]]]
            values = scales[indices[entries]] * data[entries]
        end = own[-1]
        return (own, of_rows[:end], values[:end]), (squares[0], squares[1])

    def in_place(
        self, arrays: tuple[Any, Any, Any], which: Rows, n_rows: int
    ) -> InPlace:
        """Return some columns of the result of ``scaled`` as a linear map."""
        return InPlace(self._design, arrays, which, n_rows)

    @property
    def are_copied(self) -> bool:
        """Whether A is a copy less than half as large as a dense X."""
        few = 2 * len(self._columns) < self._design.n_features
        return not self.sparse and few and "block" in vars(self)

    def forward(self, coef: Floats) -> Floats:
        """Return A times coefficients of shape (m,) or (m, k), for a dense X."""
        self._design.passes += len(self._columns) / self._design.n_features
        scores = np.empty((self._design.n_rows, *coef.shape[1:]))

        def multiply(part: slice) -> None:
            for rows in self._cached(part):
                scores[rows] = self._rows(rows) @ coef

        self._design.each(multiply, self._design.row_slices)
        return scores

    def _cached(self, part: slice) -> Iterable[slice]:
        """Yield slices of rows whose part of A fits into the cache."""
        n_rows = max(1, BLOCK_SIZE // max(len(self._columns), 1))
        for start in range(part.start, part.stop, n_rows):
            yield slice(start, min(start + n_rows, part.stop))

    def adjoint(self, dual: Floats) -> Floats:
        """Return Aᵀu for u of shape (n,), as float64."""
        if self.sparse:
            return np.asarray(self._design.X.T @ dual, np.float64)[self._columns]
        if "block" not in vars(self) and not (
            self._is_small and 2 * len(self._columns) < self._design.n_features
        ):
            # A copy of most columns takes longer than the product with all of X.
            return self._design.products_of_columns(dual)[self._columns]
        return np.asarray(self.block.T @ dual.astype(self.block.dtype), np.float64)

    @property
    def _matrix(self) -> Any:
        return self._design.by_columns if self.sparse else self._design.X

    def dense_blocks(self, part: slice, width: int) -> Iterable[tuple[slice, Floats]]:
        """Yield slices of rows, and the dense float64 rows of A.

        A slice of rows with ``width`` numbers each has at most ``BLOCK_SIZE`` numbers,
        or as many as a square matrix of this width.
        """
        X, n_rows = self._design.X, max(1, BLOCK_SIZE // max(width, 1), width)
        for start in range(part.start, part.stop, n_rows):
            rows = slice(start, min(start + n_rows, part.stop))
            yield rows, dense_rows(columns_of(X[rows], self._columns))

    def write_transpose(self, scales: Floats, center: Floats, out: Floats) -> None:
        """Write Aᵀ minus the center, times scales of the rows."""

        def write(part: slice) -> None:
            for rows in self._cached(part):
                some = dense_rows(self._rows(rows)) - center
                some *= scales[rows, np.newaxis]
                out[:, rows] = some.T

        self._design.each(write, self._design.row_slices)

    def gram(self, weights: Floats, center: Floats) -> Floats:
        """Return Aᵀ diag(weights) A, of shape (m, m), with A centered.

        ``center`` of shape (m,) is zero, or the weighted mean of the columns.
        """
        m = len(self._columns)
        if self.sparse:
            return self._gram_by_pairs(weights, center)
        roots = np.sqrt(weights)

        def multiply(part: slice) -> Floats:
            total = np.zeros((m, m))
            height = max(m, BLOCK_SIZE // max(m, 1))
            for start in range(part.start, part.stop, height):
                rows = slice(start, min(start + height, part.stop))
                some = self._rows(rows).T
                if center.any():
                    some = some - center[:, np.newaxis]
                some = some * roots[rows]
                total += some @ some.T
            return total

        return sum(self._design.each(multiply, self._design.row_slices))

    def _gram_by_pairs(self, weights: Floats, center: Floats) -> Floats:
        X, m = self._design.X, len(self._columns)
        position = np.full(X.shape[1], -1, dtype=X.indices.dtype)
        position[self._columns] = np.arange(m)

        def multiply(part: slice) -> Floats:
            total = np.zeros((m, m))
            rows = row_view(X, part)
            arrays = rows.data, rows.indices, rows.indptr
            gram.add_half(*arrays, weights[part], position, total)
            return total

        total = sum(self._design.each(multiply, self._design.row_slices))
        total = total + total.T
        total -= float(weights.sum()) * np.outer(center, center)
        return total


def own_columns(X: Any, others: Rows | None = None) -> tuple[Rows, Any]:
    """Return the columns in which a CSR matrix has entries, and their matrix.

    The columns ascend, and include ``others`` even if they have no entries.
    """
    columns, places = distinct_columns(X.indices, X.shape[1], others)
    own = type(X)((X.data, places, X.indptr), shape=(X.shape[0], len(columns)))
    return columns, own


def distinct_columns(
    indices: Rows, n: int, others: Rows | None = None
) -> tuple[Rows, Rows]:
    """Return the distinct columns, ascending, and the position of each given index.

    The columns ``others`` are included, but without positions.
    """
    touched = indices
    if others is not None and len(others):
        touched = np.concatenate([indices, others])
    if n > _MANY * len(touched):
        columns, places = np.unique(touched, return_inverse=True)
        columns = columns.astype(np.intp, copy=False)
        return columns, places[: len(indices)].astype(np.int32, copy=False)
    columns = np.empty(min(n, len(touched)), dtype=np.intp)
    places = np.empty(len(touched), dtype=np.int32)
    count = kernel.distinct(touched, n, columns, places)
    return columns[:count], places[: len(indices)]
