"""The linear map from parameters to scores and its adjoint: formats, blocks, threads.

Only this file handles intercept columns, row blocks and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import products
from ..lazy import cached_property
from ..losses._base import Floats, Rows, total_of_rows
from ..memory import BLOCK_SIZE
from .column_maps import InPlace
from .row_views import (
    SomeRows,
    add_rows_times,
    compact_csr,
    dense_rows,
    index_arrays,
    row_view,
)

# Rows are text-like if less than one entry in a hundred is stored: then an update of
# one row's dual variable costs little relative to a product, and rows are nearly
# orthogonal.
_TEXT_SHARE = 0.01

# A product with at most 0.3 of the rows copies them; for more rows, a product with all
# rows is faster. docs/constants.md has the figures.
_SUBSET_SHARE = 0.3

#: A product with fewer entries takes about as long as starting a thread.
PART_SIZE = 100_000


class LinearMap:
    """Linear map w -> z = X W + b of parameters to scores, and its adjoint.

    Parameters
    ----------
    X : ndarray, CSR matrix or CSR array of shape (n, d)
        Data, float64 or float32. A sparse matrix is canonical: each entry is stored
        once, and columns ascend in each row. Data are never changed. They are never
        copied either, except for index arrays that are wider than necessary, and for
        the codes of categories, which take about a fifth of the memory of X.
    fit_intercept : bool
        Whether the parameters end with intercepts.
    n_outputs : int or None
        Number k of scores per row; ``None`` for one score per row in 1-D arrays.
    n_threads : int
        Number of threads, each with a contiguous slice of the rows. Small data use
        fewer.
    pool : ThreadPoolExecutor, optional
        Shared threads; by default new ones are started.
    parent : LinearMap, optional
        The design with all rows, if this design has a subset of its rows.

    Attributes
    ----------
    X : ndarray, CSR array or rows of one
        The data.
    n_rows, n_features, n_params : int
        n, d and q. The parameters w of shape (q,) hold W of shape (d, k) in C order,
        then b of shape (k,).
    n_coef : int
        Number d * k of entries of w that are not intercepts.
    row_slices : list of slice
        The slice of rows of each thread.
    is_sparse : bool
        Whether X is a sparse matrix.
    n_entries : int
        Number of stored entries of X, at least one.
    row_size : float
        Mean number of stored entries in a row.
    passes : float
        Products with X or its transpose so far; a product with some of the rows counts
        as their share of the stored entries.
    shares_coef : bool
        Whether all scores of a row have the same coefficients.
    in_one_place : bool
        Whether the rows are all in one array.
    holds_rows : bool
        Whether the rows are in memory.
    """

    shares_coef, in_one_place, holds_rows = False, True, True

    def __init__(
        self,
        X: Any,
        *,
        fit_intercept: bool = True,
        n_outputs: int | None = None,
        n_threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
        parent: LinearMap | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.n_outputs = n_outputs
        self.fit_intercept = fit_intercept
        self.n_coef = self.n_features * (n_outputs or 1)
        self.n_params = self.n_coef + (n_outputs or 1) * fit_intercept
        self.passes = 0.0
        self._parent = parent
        # Index arrays of a subset are compact already.
        compact = not sparse.issparse(X) or parent is not None
        self.X = X if compact else compact_csr(X)
        self.is_sparse = bool(sparse.issparse(self.X))
        self.n_entries = max(self.X.nnz if self.is_sparse else self.X.size, 1)
        self.row_size = self.n_entries / max(self.n_rows, 1)
        self._promote = self.X.dtype != np.float64
        self._in_blocks = self._promote or isinstance(self.X, SomeRows)
        # Dividing the coefficients by the column sizes is cheaper than dividing the
        # columns.
        self._column_sizes = self.X.sizes if isinstance(self.X, SomeRows) else None
        self._is_narrow = self._promote and sparse.issparse(self.X)
        self._n_threads = n_threads
        self._pool = pool or (ThreadPoolExecutor(n_threads) if n_threads > 1 else None)
        n_parts = max(1, min(n_threads, self.n_rows, self.n_entries // PART_SIZE))
        self.row_slices, self._blocks_of_threads = [], []
        for i in range(n_parts):
            start, stop = self.n_rows * i // n_parts, self.n_rows * (i + 1) // n_parts
            self.row_slices.append(slice(start, stop))
            self._blocks_of_threads.append(self._blocks(start, stop))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, without the parent."""
        return {**vars(self), "_parent": None}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries of X."""
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    @property
    def several_scores(self) -> bool:
        """Whether rows have several scores, with shared or separate coefficients."""
        return self.n_outputs is not None

    @property
    def is_text_like(self) -> bool:
        """Whether the data are so sparse that rows are nearly orthogonal."""
        return self.is_sparse and self.row_size < _TEXT_SHARE * self.n_features

    @property
    def nbytes(self) -> int:
        """Size of the arrays of X in bytes."""
        if sparse.issparse(self.X):
            return sum(a.nbytes for a in (self.X.data, *index_arrays(self.X)))
        return int(self.X.nbytes)

    def zero_scores(self) -> Floats:
        """Return the scores of w = 0."""
        outputs = () if self.n_outputs is None else (self.n_outputs,)
        return np.zeros((self.n_rows, *outputs))

    def forward(self, w: Floats) -> Floats:
        """Return the scores z of shape (n,) or (n, k) for w of shape (q,)."""
        coef, intercept = self.split(w)
        coef = self._divided(coef)
        self.passes += 1.0
        scores = np.empty((self.n_rows, *coef.shape[1:]))

        def multiply(part: list[tuple[int, int, Any]]) -> None:
            for start, stop, block in part:
                if self._is_narrow and coef.ndim == 1:
                    arrays = block.indptr, block.indices, block.data
                    products.multiply(*arrays, coef, scores[start:stop])
                elif coef.ndim == 2 and sparse.issparse(block):
                    arrays = block.indptr, block.indices, block.data
                    products.multiply_several(*arrays, coef, scores[start:stop])
                else:
                    scores[start:stop] = self._undivided(block) @ coef

        self.each(multiply, self._blocks_of_threads)
        if self.fit_intercept:
            scores += intercept
        return scores

    def adjoint(self, dual: Floats) -> Floats:
        """Return Xᵀu, of shape (q,), for u of the shape of the scores.

        Rows with zero dual variables are skipped.
        """
        nonzero = (dual if dual.ndim == 1 else dual[:, 0]) != 0.0
        few = np.count_nonzero(nonzero) <= _SUBSET_SHARE * self.n_rows
        if few and dual.ndim == 2:
            nonzero = (dual != 0.0).any(axis=1)
            few = np.count_nonzero(nonzero) <= _SUBSET_SHARE * self.n_rows
        if few:
            rows = np.flatnonzero(nonzero)
            dual = dual[rows]
        v = np.zeros(self.n_params)
        if self.fit_intercept:
            v[self.n_coef :] = total_of_rows(dual)
        out = self.split(v)[0]
        if not few:
            self.passes += 1.0
            self.products_of_columns(dual, out)
        elif self.is_sparse and dual.ndim == 1:
            # This takes no copy of the rows.
            X = self.X
            n_entries = int(np.sum(X.indptr[rows + 1] - X.indptr[rows]))
            self.passes += n_entries / self.n_entries
            add_rows_times(X, rows, dual, out)
        else:
            some = self._map_of_rows(rows)
            self.count(some)
            some.products_of_columns(dual, out)
        return v

    @property
    def is_plain(self) -> bool:
        """Whether X is a C-contiguous array of float64.

        Products may divide its columns by sizes.
        """
        if not (self.in_one_place and self.holds_rows) or self.shares_coef:
            return False
        X = self._rows_as_view
        plain = isinstance(X, np.ndarray) and X.dtype == np.float64
        return plain and bool(X.flags.c_contiguous)

    @property
    def _rows_as_view(self) -> Any:
        """X before columns are divided by their sizes; None if this needs a copy."""
        return self.X.as_view if isinstance(self.X, SomeRows) else self.X

    def rows_in_memory(self) -> tuple[Any, Floats] | None:
        """Return rows in any form, without a copy, and the divisors of their columns.

        None if rows of float32 or float64 need a copy.
        """
        if not (self.in_one_place and self.holds_rows) or self.shares_coef:
            return None
        X, sizes = self._rows_as_view, self._column_sizes
        if X is None or X.dtype not in (np.float32, np.float64):
            return None
        return X, np.ones(self.n_features) if sizes is None else sizes

    def plain_rows(self) -> tuple[Floats, Floats]:
        """Return rows of float64, and the sizes by which to divide their columns.

        The rows are a copy unless ``is_plain``.
        """
        ones = np.ones(self.n_features)
        if not self.is_plain:
            return np.ascontiguousarray(dense_rows(self.X)), ones
        sizes = self._column_sizes
        return self._rows_as_view, ones if sizes is None else sizes

    def through(self, w: Floats, change: Callable[[slice, Floats], Floats]) -> Floats:
        """Return Xᵀ change(Xw), for a plain X.

        Both products of a block of rows are made while the cache holds the block: for
        ten scores of 30,000 rows of 100 features this takes 0.4 times the time of
        ``forward`` and ``adjoint``.

        Parameters
        ----------
        w : ndarray of shape (q,)
        change : callable
            Maps a slice of the rows and their scores to an array of the same shape.
        """
        coef, intercept = self.split(w)
        coef, X = self._divided(coef), self._rows_as_view
        n_rows = max(1, BLOCK_SIZE // 2 // max(self.n_features, 1))

        def multiply(part: slice) -> Floats:
            total = np.zeros(self.n_params)
            products, _ = self.split(total)
            sums = total[self.n_coef :]
            for start in range(part.start, part.stop, n_rows):
                rows = slice(start, min(start + n_rows, part.stop))
                block = X[rows]
                scores = block @ coef
                if self.fit_intercept:
                    scores += intercept
                dual = change(rows, scores)
                products += (dual.T @ block).T
                if self.fit_intercept:
                    sums += dual.sum(axis=0)
            products[:] = self._divided(products)
            return total

        self.passes += 2.0
        return sum(self.each(multiply, self.row_slices))

    def _some_rows(self, rows: Rows) -> Any:
        """Return a subset of the rows of X; rows of a dense X are copied on use."""
        if sparse.issparse(self.X) or isinstance(self.X, SomeRows):
            return self.X[rows]
        return SomeRows(self.X, rows)

    def _map_of_rows(self, rows: Rows) -> LinearMap:
        """Return a subset of the rows as a map to one score per row."""
        some = self._some_rows(rows)
        return LinearMap(some, n_threads=self._n_threads, pool=self._pool, parent=self)

    def products_so_far(self) -> float:
        """Return ``passes``."""
        return self.passes

    def count(self, subset: LinearMap, products: float = 1.0) -> None:
        """Count ``products`` made with a design of a subset of the rows."""
        self.passes += products * subset.n_entries / self.n_entries

    def row_weights(self, weights: Floats) -> Floats:
        """Return the weight of each row of scores."""
        return weights

    @cached_property
    def by_columns(self) -> Any:
        """A sparse X in CSC format."""
        X = self.X
        parts = [row_view(X, rows) for rows in self.row_slices]
        counts = np.zeros((len(parts), self.n_features), X.indptr.dtype)
        numbers = range(len(parts))
        self.each(lambda i: products.count(parts[i].indices, counts[i]), numbers)
        # For each part and column, the number of entries up to the end of the part.
        ends = counts.cumsum(axis=0, dtype=counts.dtype)
        indptr = np.zeros(self.n_features + 1, counts.dtype)
        np.cumsum(ends[-1], out=indptr[1:])
        ends += indptr[:-1]
        indices, data = np.empty_like(X.indices), np.empty_like(X.data)

        def write(i: int) -> None:
            arrays = parts[i].indptr, parts[i].indices, parts[i].data
            first = self.row_slices[i].start
            products.to_columns(*arrays, first, ends[i], indices, data)

        self.each(write, numbers)
        return sparse.csc_array((data, indices, indptr), shape=X.shape)

    @cached_property
    def _column_shares(self) -> Floats:
        """Share of the stored entries in each column, estimated if X is sparse."""
        if not sparse.issparse(self.X):
            return np.full(self.n_features, 1.0 / max(self.n_features, 1))
        # A sample of the entries suffices.
        step = -(-self.n_entries // BLOCK_SIZE)
        counts = np.bincount(self.X.indices[::step], minlength=self.n_features)
        return counts / max(counts.sum(), 1)

    def split(self, w: Floats) -> tuple[Floats, Floats | float]:
        """Return views of w: coefficients (d,) or (d, k), intercept scalar or (k,)."""
        coef, intercept = w[: self.n_coef], w[self.n_coef :]
        if self.n_outputs is None:
            return coef, float(intercept[0]) if self.fit_intercept else 0.0
        shape = (self.n_features, self.n_outputs)
        return coef.reshape(shape), intercept if self.fit_intercept else 0.0

    def products_of_columns(self, dual: Floats, out: Floats | None = None) -> Floats:
        """Return Xᵀu without intercepts, in ``out`` of zeros; not counted as a pass."""
        out = np.zeros((self.n_features, *dual.shape[1:])) if out is None else out
        if "by_columns" in vars(self) and dual.ndim == 1:
            X = self.by_columns
            arrays = X.indptr, X.indices, X.data
            columns = np.arange(self.n_features)
            out[:] = InPlace(self, arrays, columns, self.n_rows).adjoint(dual)
            return out

        most = self._summed_rows

        def multiply(i: int) -> Floats:
            product = np.zeros_like(out) if i else out
            for start, stop, block in self._blocks_of_threads[i]:
                size = max(stop - start, 1)
                if dual.ndim == 1 or not sparse.issparse(block):
                    size = min(most, size)
                for a in range(0, stop - start, size):
                    rows = slice(a, min(a + size, stop - start))
                    u = dual[start:stop][rows]
                    if dual.ndim == 1 and sparse.issparse(block):
                        some = np.zeros(self.n_features)
                        add_rows_times(block, np.arange(rows.start, rows.stop), u, some)
                        product += some
                    elif sparse.issparse(block):
                        arrays = block.indptr, block.indices, block.data
                        u = np.ascontiguousarray(u)
                        products.add_adjoint(*arrays, 1, u, product)
                    else:
                        copied = isinstance(block, SomeRows)
                        some = block[rows] if copied else row_view(block, rows)
                        some = self._undivided(some)
                        if dual.ndim == 1:
                            product += some.T @ u
                        else:
                            # BLAS takes 1.3 to 2 times as long for few columns of u.
                            product += (u.T @ some).T
            return product

        _, *others = self.each(multiply, range(len(self._blocks_of_threads)))
        for other in others:
            out += other
        if self._column_sizes is not None:
            out[:] = self._divided(out)
        return out

    @property
    def _summed_rows(self) -> int:
        """Number of rows in each partial sum of a product with the columns.

        Equal rows have equal rounding errors, so the error of one long sum is
        proportional to the number of its terms, not to the root of this number.
        """
        row_size = max(1, self.n_entries // max(1, self.n_rows))
        few = int(16.0 * np.sqrt(self.n_rows))
        # Adding a partial sum takes at most as long as 16 entries for each feature.
        return max(few, 16 * self.n_features // row_size, 1)

    def each(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Return the results of a function for parts of the data, in threads."""
        if self._pool is None or len(parts) == 1:
            return list(map(function, parts))
        return list(self._pool.map(function, parts))

    def column_slices(self, indptr: Rows, columns: Rows) -> list[slice]:
        """Return slices of columns with about equal numbers of entries, by thread."""
        if self._pool is None:
            return [slice(0, len(columns))]
        ends = np.cumsum(indptr[columns + 1] - indptr[columns])
        size = int(ends[-1]) if len(ends) else 0
        n_parts = max(1, min(self._n_threads, size // PART_SIZE))
        shares = [size * i / n_parts for i in range(1, n_parts)]
        cuts = [0, *np.searchsorted(ends, shares), len(columns)]
        return [slice(*pair) for pair in pairwise(cuts)]

    def _blocks(self, start: int, stop: int) -> list[tuple[int, int, Any]]:
        """Return (first row, end row, view) for each block of one thread."""
        n_rows = max(1, stop - start)
        if self._in_blocks:
            row_size = max(1, self.n_entries // max(1, self.n_rows))
            n_rows = max(1, BLOCK_SIZE // row_size)
        X, blocks = self.X, []
        for a in range(start, stop, n_rows):
            b = min(a + n_rows, stop)
            whole = (a, b) == (0, self.n_rows)
            blocks.append((a, b, X if whole else row_view(X, slice(a, b))))
        return blocks

    def _float64(self, block: Any) -> Any:
        if isinstance(block, SomeRows):
            block = block.copy()
        return block.astype(np.float64) if self._promote else block

    def _undivided(self, block: Any) -> Any:
        """Return rows as float64, before the division by the column sizes."""
        if isinstance(block, SomeRows):
            block = block.undivided()
        return block if block.dtype == np.float64 else block.astype(np.float64)

    def _divided(self, coef: Floats) -> Floats:
        """Return an array of shape (d,) or (d, k), divided by the column sizes."""
        if self._column_sizes is None:
            return coef
        return coef / (
            self._column_sizes if coef.ndim == 1 else self._column_sizes[:, np.newaxis]
        )
