"""Gram matrices of the columns and rows of X, and their squared norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import lapack
from ..kernels import gram, products
from ..lazy import cached_property
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature
from ..memory import BLOCK_SIZE, COPY_SIZE
from .linear_map import LinearMap
from .row_views import (
    absolute,
    add_rows_times,
    array_of,
    dense_rows,
    products_of_rows,
    row_view,
)

# A sample of 2000 rows suffices to estimate the spectrum and size of features.
# docs/constants.md has the figures.
_SPECTRUM_ROWS = 2000

# If less than 0.3 of the entries of X are stored, Gram matrices are summed over pairs
# of stored entries, otherwise computed by BLAS. docs/constants.md has the figures.
_PAIRS_SHARE = 0.3


class SecondMoments(LinearMap):
    """A linear map with Gram matrices of its columns and rows.

    See ``LinearMap`` for the parameters.
    """

    _parent: SecondMoments | None

    @property
    def multiplies_pairs(self) -> bool:
        """Whether ``gram`` multiplies pairs of entries, in rows with weight only."""
        one_vector = self.n_outputs is None or self.shares_coef
        few = self.row_size < _PAIRS_SHARE * self.n_features
        return one_vector and self.is_sparse and few

    def gram(self, weights: Floats) -> Floats:
        """Return the q x q matrix Xᵀ diag(weights) X, intercept column included.

        For one score per row only. It counts as one pass, or as the share of the rows
        that are used.
        """
        q = self.n_params
        add = self._add_by_pairs if self.multiplies_pairs else self._add_by_blas
        used = np.count_nonzero(weights) if self.multiplies_pairs else self.n_rows
        self.passes += used / max(self.n_rows, 1)

        def multiply(rows: slice) -> Floats:
            total = np.zeros((q, q))
            add(total, row_view(self.X, rows), weights[rows])
            return total

        half = sum(self.each(multiply, self.row_slices))
        return half + half.T

    def gram_of(self, curvature: Curvature) -> Floats:
        """Return the q x q matrix for the second derivatives of one score per row."""
        return self.gram(curvature.diagonal())

    def coupled_gram(self, curvature: Curvature) -> Floats:
        """Return Xᵀ (diag(a) - C - Cᵀ) X, zero for an intercept.

        This is the Gram matrix of second derivatives that couple rows: one score per
        row, and rows of the matrix in parentheses sum to zero.
        """
        d = self.n_features
        matrix = self.gram(curvature.diagonal())
        matrix[d:], matrix[:, d:] = 0.0, 0.0
        half = curvature.crossed(self)
        matrix[:d, :d] -= half + half.T
        self.passes += 1.0
        return matrix

    def row_gram(self, rows: Rows) -> Floats:
        """Return the Gram matrix of some rows of X, without intercepts.

        If the Gram matrix of all rows takes no more memory than X, it is computed once
        and kept. Its computation counts as one pass over the rows.
        """
        if 8 * self.n_rows**2 <= self.nbytes:
            return self._row_gram[np.ix_(rows, rows)]
        some = self._map_of_rows(rows)
        self.count(some)
        return products_of_rows(some.X)

    @cached_property
    def _row_gram(self) -> Floats:
        self.passes += 1.0
        return products_of_rows(self.X)

    def _add_by_pairs(self, total: Floats, block: Any, weights: Floats) -> None:
        """Add half of the Gram matrix, from pairs of stored entries in each row."""
        position = np.arange(self.n_features, dtype=block.indices.dtype)
        rows = block.data, block.indices, block.indptr
        gram.add_half(*rows, weights, position, total)
        if self.fit_intercept:
            used = np.flatnonzero(weights)
            add_rows_times(block, used, weights[used], total[-1, :-1])
            total[-1, -1] += 0.5 * float(weights.sum())

    def _add_by_blas(self, total: Floats, block: Any, weights: Floats) -> None:
        """Add half of the Gram matrix, by BLAS on blocks of rows."""
        d = self.n_features
        # Blocks fit into the cache, unless there are many columns, since short blocks
        # are slow.
        size = min(max(BLOCK_SIZE, 8 * d * d), COPY_SIZE)
        n_rows = max(1, size // max(d, 1))
        for a in range(0, len(weights), n_rows):
            root = np.sqrt(weights[a : a + n_rows])
            scaled = dense_rows(block[a : a + n_rows]) * root[:, np.newaxis]
            total[:d, :d] += 0.5 * (scaled.T @ scaled)
            if self.fit_intercept:
                total[d, :d] += scaled.T @ root
                total[d, d] += 0.5 * float(root @ root)

    def block_gram(self, add: Callable[[Floats, slice, Floats], None]) -> Floats:
        """Return the q x q matrix sum_i M_i (x) x_i x_iᵀ, for k scores per row.

        Parameters
        ----------
        add : callable
            Adds the blocks j <= l of the sum over some rows to an array of shape (k, k,
            d, d), given their features with the intercept column, their slice and that
            array. Counts as one pass.
        """
        self.passes += 1.0
        k = self.n_outputs or 1
        d = self.n_features + self.fit_intercept
        n_rows = max(1, COPY_SIZE // max(d, 1))
        blocks = np.zeros((k, k, d, d))
        for a in range(0, self.n_rows, n_rows):
            rows = slice(a, min(a + n_rows, self.n_rows))
            X = np.ones((rows.stop - a, d))
            X[:, : self.n_features] = dense_rows(self.X[rows])
            add(X, rows, blocks)
        for j in range(k):
            blocks[j + 1 :, j] = blocks[j, j + 1 :]
        return blocks.transpose(2, 0, 3, 1).reshape(d * k, d * k)

    def squared_adjoint(self, weights: Floats) -> Floats:
        """Return the diagonal of ``gram(weights)``, of shape (q,).

        With k scores per row and weights of shape (n, k), it is the diagonal of
        ``block_gram`` for matrices with these diagonals.
        """
        diagonal = np.zeros(self.n_params)
        diagonal[: self.n_coef] = self._sums_of_squares(weights).ravel()
        if self.fit_intercept:
            diagonal[self.n_coef :] = weights.sum(axis=0)
        return diagonal

    def _sums_of_squares(self, weights: Floats) -> Floats:
        """Return weighted sums of the squares of the columns, counted as a pass."""
        self.passes += 1.0
        d = max(self.n_features, 1)
        # The squares of a block of dense rows fit into the cache. Sparse rows are
        # summed in short sums.
        n_rows = max(1, BLOCK_SIZE // d)
        if self.is_sparse:
            n_rows = self._summed_rows

        def multiply(part: list[tuple[int, int, Any]]) -> Floats:
            sums = np.zeros((self.n_features, *weights.shape[1:]))
            for start, stop, block in part:
                if isinstance(block, np.ndarray) and block.flags.f_contiguous:
                    n_columns = max(1, BLOCK_SIZE // max(stop - start, 1))
                    for j in range(0, self.n_features, n_columns):
                        columns = self._float64(block[:, j : j + n_columns]).T
                        squares = columns * columns
                        sums[j : j + n_columns] += squares @ weights[start:stop]
                    continue
                for a in range(start, stop, n_rows):
                    b = min(a + n_rows, stop)
                    if self.is_sparse:
                        rows = row_view(self.X, slice(a, b))
                        _add_squares(rows, weights[a:b], sums)
                    else:
                        some = row_view(block, slice(a - start, b - start))
                        some = self._float64(some)
                        sums += (some * some).T @ weights[a:b]
            return sums

        product, *others = self.each(multiply, self._blocks_of_threads)
        for other in others:
            product += other
        return np.asarray(product)

    def sizes_of_sums(self, dual: Floats) -> Floats:
        """Return the sums of the absolute terms of the entries of Xᵀu, of shape (q,).

        For one score per row. Counts as a pass.
        """
        self.passes += 1.0
        sizes = np.abs(dual)
        n_rows = max(1, int(BLOCK_SIZE / max(self.row_size, 1.0)))

        def multiply(part: slice) -> Floats:
            sums = np.zeros(self.n_params)
            for start in range(part.start, part.stop, n_rows):
                rows = slice(start, min(start + n_rows, part.stop))
                block = absolute(self._float64(row_view(self.X, rows)))
                sums[: self.n_coef] += block.T @ sizes[rows]
            return sums

        sums = sum(self.each(multiply, self.row_slices))
        sums[self.n_coef :] = sizes.sum()
        return np.asarray(sums)

    def mean_squares(self, weights: Floats) -> Floats:
        """Return weighted mean squares of the columns, of shape (q,).

        Weights sum to one. Each mean square is repeated for each output. Counts as a
        pass.
        """
        squares = np.ones(self.n_params)
        each = self.split(squares)[0]
        each.T[...] = self._sums_of_squares(weights)
        return squares

    def squared_size(self, weights: Floats) -> float:
        """Return the sum of ``mean_squares`` except for intercepts, at less cost."""
        return float(weights @ self.squares) * (self.n_outputs or 1)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the mean of x xᵀ, intercept column included.

        The mean is over a sample of the rows, which counts as their share of a pass.
        Designs of subsets of the rows use the spectrum of all rows.
        """
        if self._parent is not None:
            return self._parent.spectrum
        step = -(-self.n_rows // _SPECTRUM_ROWS)
        gram = self.sampled_gram(step)
        values, vectors = lapack.eigh_divide_and_conquer(gram)
        return np.maximum(values, 0.0) / self.n_sampled(step), vectors

    def n_sampled(self, step: int) -> int:
        """Return the number of rows that ``sampled_gram`` sums over."""
        return -(-self.n_rows // step)

    def sampled_gram(self, step: int) -> Floats:
        """Return the sum of x xᵀ over a sample of rows, intercept column included."""
        X = np.ones((self.n_sampled(step), self.n_features + self.fit_intercept))
        X[:, : self.n_features] = dense_rows(self.X[::step])
        self.passes += len(X) / max(self.n_rows, 1)
        return X.T @ X

    @property
    def matrix(self) -> Any:
        """X of shape (n, d), in memory, for kernels that visit rows."""
        return self.X if sparse.issparse(self.X) else array_of(self.X)

    @cached_property
    def squares(self) -> Floats:
        """Squared norms of the rows, of shape (n,)."""
        squares = np.empty(self.n_rows)
        if not self.is_sparse:
            for part in self._blocks_of_threads:
                for start, stop, block in part:
                    rows = array_of(block)
                    squares[start:stop] = np.einsum(
                        "ij,ij->i", rows, rows, dtype=np.float64
                    )
            return squares
        X = self.matrix
        products.squares_of_rows(X.indptr, X.data, squares)
        return squares

    @property
    def mean_square(self) -> float:
        """Mean squared norm of the rows, estimated from some rows of a large array."""
        step = -(-self.n_rows // _SPECTRUM_ROWS)
        if self.is_sparse or step <= 1:
            return self.sum_of_squares() / max(self.n_rows, 1)
        rows = dense_rows(self.X[::step])
        return float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) / len(rows)

    def sum_of_squares(self) -> float:
        """Return the sum of the squared norms of the rows."""
        return float(self.squares.sum())

    def entries_in(self, columns: Rows) -> float:
        """Estimate the mean number of stored entries of a row in some columns."""
        return self.share_of(columns) * self.row_size

    def share_of(self, columns: Rows) -> float:
        """Estimate the share of the stored entries in some columns."""
        return float(self._column_shares[columns].sum())

    def gram_cost(self, columns: Rows) -> float:
        """Return the approximate cost of a Gram matrix, in products with X."""
        if sparse.issparse(self.X):
            return 0.5 * self.entries_in(columns) ** 2 / max(self.row_size, 1.0)
        return len(columns) * (len(columns) / self.n_features) / 12.0

    def joint_gram_cost(self, n_coordinates: int) -> float:
        """Return ``gram_cost`` for a set of coefficients of several scores."""
        entries = max(self.row_size, 1.0) * (self.n_outputs or 1)
        return n_coordinates**2 / entries / 40.0


def _add_squares(rows: Any, weights: Floats, sums: Floats) -> None:
    """Add weighted sums of the squares of the entries of a CSR matrix to ``sums``.

    Each of several weights of a row has its own column of sums.
    """
    if not rows.nnz or not weights.size:
        return
    some = np.zeros((rows.shape[1], *weights.shape[1:]))
    several = len(weights), -1
    u = np.ascontiguousarray(weights, dtype=np.float64).reshape(several)
    out = some.reshape(len(some), -1)
    products.add_adjoint(rows.indptr, rows.indices, rows.data, 2, u, out)
    sums += some
