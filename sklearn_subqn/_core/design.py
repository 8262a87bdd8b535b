"""The linear map from parameters to scores and its adjoint.

The only file that knows intercept columns, row blocks and threads, and, beside
``columns`` and the sweeps over rows, the only one that knows dense from sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from .kernels import gram, products
from .lazy import cached_property
from .losses._base import Curvature, Floats, Rows, total_of_rows

# Below this share of stored entries, changing one row's dual variable costs next to
# nothing beside a product, and rows are nearly orthogonal.
_TEXT_SHARE = 0.01

# A product with a subset of the rows copies them; above this share of the rows the
# product with all of them is cheaper.
_SUBSET_SHARE = 0.3

# A product with a subset of the columns writes to the scores again and again; above
# this share of the entries the product with all of them is cheaper.
_COLUMNS_SHARE = 0.8

# Rows of float32 data are promoted to float64 in blocks of about this many bytes, small
# enough to stay in a core's cache, so that sums are as accurate as for float64 data.
_PROMOTED_BYTES = 1 << 18


# Products with columns are sums over so many roots of the number of rows at a time, and
# over more where features are so many that adding the sums would take some share of it.
_ROOTS, _ENTRIES_A_SUM = 16.0, 16

# Products of sparse columns with so many scores per row take .7 to .85 of the time of
# SciPy's (text, 20 to 105 classes), and less the more of the scores are zero; with only
# three scores they take up to twice that.
_MANY_SCORES = 8

# A product with fewer entries than this takes a thread about as long as starting it.
_PART_SIZE = 100_000

# About so many rows show enough of the spectrum of the features.
_SPECTRUM_ROWS = 2000

# Products of columns are made by pairs of stored entries where rows have fewer than
# this share of the features, elsewhere by BLAS.
_PAIRS_SHARE = 0.3

# About so many stored entries show in which columns they are.
_COUNTED = 100_000

# Dense copies of some rows, for products of matrices, are of about this many bytes.
DENSE_BYTES = 1 << 24

# Rows are scaled for Gram matrices in blocks of about this many bytes, which stay in a
# core's cache.
BLOCK_BYTES = 1 << 20


class Shape(NamedTuple):
    """What there is to know of a design without its data.

    Attributes
    ----------
    n_rows, n_features, n_entries, n_coef, n_params, n_outputs, nbytes : int
    fit_intercept, shares_coef, is_sparse : bool
        As of ``Design``.
    """

    n_rows: int
    n_features: int
    n_entries: int
    n_coef: int
    n_params: int
    n_outputs: int | None
    nbytes: int
    fit_intercept: bool
    shares_coef: bool
    is_sparse: bool


class Design:
    """Linear map w -> z = X W + b of parameters to scores.

    Parameters
    ----------
    X : ndarray, CSR matrix or CSR array of shape (n, d)
        Data, float64 or float32. Never copied, except for the index arrays of a sparse
        matrix where they are wider than its size needs.
    fit_intercept : bool
        Whether the parameters end with intercepts.
    n_outputs : int or None
        Number k of scores per row; ``None`` for one score per row in 1-D arrays.
    n_threads : int
        Number of threads, each with a contiguous part of the rows. Data too small to
        gain from them uses fewer.
    pool : ThreadPoolExecutor, optional
        Threads to share; default new ones.
    parent : Design, optional
        The design of which this one has some of the rows.

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
        The rows of each thread.
    n_entries : int
        Number of stored entries of X, at least one.
    passes : float
        Products with X or its transpose so far; products with some of the rows count
        by their share of the stored entries.
    shares_coef : bool
        Whether all scores of a row have the same coefficients.
    in_one_place : bool
        Whether the rows are all in one array.
    """

    shares_coef, in_one_place = False, True

    def __init__(
        self,
        X: Any,
        *,
        fit_intercept: bool = True,
        n_outputs: int | None = None,
        n_threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
        parent: Design | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.n_outputs = n_outputs
        self.fit_intercept = fit_intercept
        self.n_coef = self.n_features * (n_outputs or 1)
        self.n_params = self.n_coef + (n_outputs or 1) * fit_intercept
        self.passes = 0.0
        self._parent = parent
        # Rows of compact arrays are compact.
        compact = not sparse.issparse(X) or parent is not None
        self.X = X if compact else _compact_csr(X)
        self.n_entries = max(self.X.nnz if sparse.issparse(X) else self.X.size, 1)
        self._promote = self.X.dtype != np.float64
        self._in_blocks = self._promote or isinstance(self.X, _SomeRows)
        self._is_narrow = self._promote and sparse.issparse(self.X)
        self._n_threads = n_threads
        self._pool = pool or (ThreadPoolExecutor(n_threads) if n_threads > 1 else None)
        n_parts = max(1, min(n_threads, self.n_rows, self.n_entries // _PART_SIZE))
        bounds = [self.n_rows * i // n_parts for i in range(n_parts + 1)]
        self.row_slices = [slice(*pair) for pair in pairwise(bounds)]
        self._parts = [list(self._blocks(*pair)) for pair in pairwise(bounds)]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied to another process: these rows, and no others."""
        return {**vars(self), "_parent": None}

    def as_shape(self) -> Shape:
        """Return what there is to know of it without its data."""
        return Shape(*(getattr(self, name) for name in Shape._fields))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries of X."""
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    @property
    def row_size(self) -> float:
        """Mean number of stored entries in a row."""
        return self.n_entries / max(self.n_rows, 1)

    @property
    def several_scores(self) -> bool:
        """Whether rows have several scores, each by coefficients of its own or not."""
        return self.n_outputs is not None

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self.X))

    @property
    def is_text_like(self) -> bool:
        """Whether the data are so sparse that rows are nearly orthogonal."""
        return self._is_sparser_than(_TEXT_SHARE)

    @property
    def multiplies_pairs(self) -> bool:
        """Whether ``gram`` multiplies stored entries, in rows with a weight only."""
        one_vector = self.n_outputs is None or self.shares_coef
        return one_vector and self._is_sparser_than(_PAIRS_SHARE)

    @property
    def nbytes(self) -> int:
        """Size of the arrays of X in bytes."""
        if sparse.issparse(self.X):
            return sum(a.nbytes for a in (self.X.data, *_index_arrays(self.X)))
        return int(self.X.nbytes)

    def zero_scores(self) -> Floats:
        """Return the scores of w = 0."""
        outputs = () if self.n_outputs is None else (self.n_outputs,)
        return np.zeros((self.n_rows, *outputs))

    def forward(self, w: Floats) -> Floats:
        """Return the scores z of shape (n,) or (n, k) for w of shape (q,).

        Once X is known by columns, those in which w vanishes take no part.
        """
        coef, intercept = self.split(w)
        if "by_columns" in vars(self) and coef.ndim == 1:
            columns = np.flatnonzero(coef)
            share = self._share_of(columns)
            if share <= _COLUMNS_SHARE:
                self.passes += share
                X = self.by_columns
                arrays = X.indptr, X.indices, X.data
                used = InPlace(self, arrays, columns, self.n_rows)
                return used.forward(coef[columns]) + intercept
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
                    scores[start:stop] = self._float64(block) @ coef

        self.each(multiply, self._parts)
        if self.fit_intercept:
            scores += intercept
        return scores

    def adjoint(self, dual: Floats) -> Floats:
        """Return the q-vector of products of the columns with u of shape of the scores.

        Rows in which u vanishes take no part.
        """
        nonzero = dual != 0.0
        if dual.ndim == 2:
            nonzero = nonzero.any(axis=1)
        if np.count_nonzero(nonzero) <= _SUBSET_SHARE * self.n_rows:
            rows = np.flatnonzero(nonzero)
            if sparse.issparse(self.X) and dual.ndim == 1 and len(self._parts) == 1:
                return self._add_rows(rows, dual[rows])
            subset = self.rows(rows, copy=False)
            self.count(subset)
            return subset._adjoint(dual[rows])
        self.passes += 1.0
        return self._adjoint(dual)

    def _add_rows(self, rows: Rows, dual: Floats) -> Floats:
        """Return the product with entries u of some rows of a sparse X."""
        X = self.X
        sizes = X.indptr[rows + 1] - X.indptr[rows]
        self.passes += int(sizes.sum()) / self.n_entries
        v = np.zeros(self.n_params)
        _add_rows_times(X, rows, dual, v[: self.n_features])
        if self.fit_intercept:
            v[self.n_features] = dual.sum()
        return v

    def rows(self, rows: Rows, *, copy: bool = True) -> Design:
        """Return the design of some of the rows; its passes are counted by itself.

        Parameters
        ----------
        rows : ndarray of int
        copy : bool
            Whether to copy rows of a dense X now, for several products, or block by
            block in each product, which takes no memory.
        """
        if sparse.issparse(self.X):
            subset = self.X[rows]
        else:
            subset = _SomeRows(self.X, rows)
            if copy:
                subset = subset.copy()
        return self._like(subset, self)

    def above(self, others: Sequence[Design]) -> Design:
        """Return the design of these rows and below them those of others, copied."""
        matrices = [self.X, *(other.X for other in others)]
        if sparse.issparse(self.X):
            return self._like(sparse.vstack(matrices, format="csr"), None)
        return self._like(np.concatenate(matrices), None)

    def _like(self, X: Any, parent: Design | None) -> Design:
        """Return the design of other rows of the same features."""
        return Design(
            X,
            fit_intercept=self.fit_intercept,
            n_outputs=self.n_outputs,
            n_threads=self._n_threads,
            pool=self._pool,
            parent=parent,
        )

    def rows_and(self, rows: Rows, further: Floats) -> Design:
        """Return the design of some of the rows and further ones, rounded as X is.

        For one score per row.

        Parameters
        ----------
        rows : ndarray of int
        further : ndarray of shape (m, d)
        """
        dtype = self.X.dtype
        if sparse.issparse(self.X):
            parts = [self.X[rows], sparse.csr_array(further.astype(dtype))]
            X = sparse.vstack(parts, format="csr")
        else:
            X = np.empty((len(rows) + len(further), self.n_features), dtype)
            self.X.take(rows, axis=0, mode="clip", out=X[: len(rows)])
            X[len(rows) :] = further
        return Design(
            X,
            fit_intercept=self.fit_intercept,
            n_threads=self._n_threads,
            pool=self._pool,
            parent=self,
        )

    def joined(self, other: Design, order: Rows) -> Design:
        """Return the design of rows of this one and of another, in an order.

        Rows of the other one are numbered after all of these.
        """
        if sparse.issparse(self.X):
            X = sparse.vstack([self.X, other.X], format="csr")[order]
        else:
            X = np.concatenate([self.X, other.X])[order]
        return Design(X, fit_intercept=False, n_threads=self._n_threads)

    def zeros(self) -> Design:
        """Return the design of as many rows without entries."""
        shape = self.X.shape
        X = sparse.csr_array(shape) if sparse.issparse(self.X) else np.zeros(shape)
        return Design(X, fit_intercept=False, n_threads=self._n_threads)

    def in_row_space(self) -> tuple[Design, Floats]:
        """Return the design of A and Q of shape (d, n), orthonormal, with X = A Qᵀ.

        X is dense and has at least as many features as rows.
        """
        basis, triangle = np.linalg.qr(dense_rows(self.X).T)
        design = Design(
            np.ascontiguousarray(triangle.T),
            fit_intercept=self.fit_intercept,
            n_outputs=self.n_outputs,
        )
        return design, basis

    def products_so_far(self) -> float:
        """Return ``passes``."""
        return self.passes

    def count(self, subset: Design, products: float = 1.0) -> None:
        """Count ``products`` made with a design of some of the rows."""
        self.passes += products * subset.n_entries / self.n_entries

    def gram(self, weights: Floats) -> Floats:
        """Return the q x q matrix Xᵀ diag(weights) X, intercept column included.

        For one score per row only. Counts as one pass, or as the share of the rows that
        are used.
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

    def coupled_gram(self, curvature: Curvature) -> Floats:
        """Return Xᵀ (diag(a) - C - Cᵀ) X, zero for an intercept.

        For one score per row and second derivatives that rows do not have alone, whose
        rows sum to zero.
        """
        d = self.n_features
        matrix = self.gram(curvature.diagonal())
        matrix[d:], matrix[:, d:] = 0.0, 0.0
        half = curvature.crossed(self)
        matrix[:d, :d] -= half + half.T
        self.passes += 1.0
        return matrix

    def sums_of_rows(self, codes: Rows, n: int, weights: Floats) -> Floats:
        """Return weighted sums of the rows of each code below n, of shape (n, d)."""
        X, d = self.X, self.n_features
        if not sparse.issparse(X):
            X = self._float64(X)
            ones = weights, codes, np.arange(self.n_rows + 1)
            return np.asarray(sparse.csc_array(ones, shape=(n, self.n_rows)) @ X)
        sizes = np.diff(X.indptr)
        places = np.repeat(codes * d, sizes) + X.indices
        sums = np.bincount(places, np.repeat(weights, sizes) * X.data, n * d)
        return sums.astype(np.float64, copy=False).reshape(n, d)

    def row_gram(self, rows: Rows) -> Floats:
        """Return the products of some rows of X with each other, intercepts aside.

        Where those of all rows take no more memory than X, they are made at first and
        kept. Counts as one pass over the rows, when they are made.
        """
        if 8 * self.n_rows**2 <= self.nbytes:
            return self._row_gram[np.ix_(rows, rows)]
        subset = self.rows(rows)
        self.count(subset)
        return _products_of_rows(subset.X)

    @cached_property
    def _row_gram(self) -> Floats:
        self.passes += 1.0
        return _products_of_rows(self.X)

    def _add_by_pairs(self, total: Floats, block: Any, weights: Floats) -> None:
        """Add half of the products of the columns, by row pairs of stored entries."""
        position = np.arange(self.n_features, dtype=block.indices.dtype)
        rows = block.data, block.indices, block.indptr
        gram.add_half(*rows, weights, position, total)
        if self.fit_intercept:
            used = np.flatnonzero(weights)
            _add_rows_times(block, used, weights[used], total[-1, :-1])
            total[-1, -1] += 0.5 * float(weights.sum())

    def _add_by_blas(self, total: Floats, block: Any, weights: Floats) -> None:
        """Add half of the products of the columns, by BLAS on blocks of the rows."""
        d = self.n_features
        # Blocks stay in the cache, unless the columns are many: then few rows are slow.
        n_bytes = min(max(BLOCK_BYTES, 64 * d * d), DENSE_BYTES)
        n_rows = max(1, int(n_bytes / 8 / max(d, 1)))
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
            Given some rows of features, intercept column included, their slice and an
            array of shape (k, k, d, d), adds the blocks j <= l of these rows' sum.
            Counts as one pass.
        """
        self.passes += 1.0
        k = self.n_outputs or 1
        d = self.n_features + self.fit_intercept
        n_rows = max(1, int(DENSE_BYTES / 8 / max(d, 1)))
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

        For k scores per row, of ``block_gram`` of matrices with diagonals ``weights``
        of shape (n, k).
        """
        diagonal = np.zeros(self.n_params)
        diagonal[: self.n_coef] = self._sums_of_squares(weights).ravel()
        if self.fit_intercept:
            diagonal[self.n_coef :] = weights.sum(axis=0)
        return diagonal

    def _sums_of_squares(self, weights: Floats) -> Floats:
        """Return weighted sums of the squares of the columns; counts as a pass."""
        self.passes += 1.0
        d = max(self.n_features, 1)
        # Squares of dense rows stay in the cache; sparse ones are few at a time.
        n_rows = max(1, BLOCK_BYTES // 8 // d)
        if self.is_sparse:
            n_rows = self._summed_rows

        def multiply(part: list[tuple[int, int, Any]]) -> Floats:
            sums = np.zeros((self.n_features, *weights.shape[1:]))
            for start, stop, block in part:
                for a in range(start, stop, n_rows):
                    b = min(a + n_rows, stop)
                    some = row_view(block, slice(a - start, b - start))
                    sums += _squared(self._float64(some)).T @ weights[a:b]
            return sums

        product, *others = self.each(multiply, self._parts)
        for other in others:
            product += other
        return np.asarray(product)

    def row_weights(self, weights: Floats) -> Floats:
        """Return the weight of each row of scores."""
        return weights

    def mean_squares(self, weights: Floats) -> Floats:
        """Return weighted mean squares of the columns, of shape (q,).

        Weights sum to one; there are as many equal entries as outputs. Counts as a
        pass.
        """
        squares = np.ones(self.n_params)
        each = self._sums_of_squares(weights)
        squares[: self.n_coef] = np.repeat(each, self.n_outputs or 1)
        return squares

    def squared_size(self, weights: Floats) -> float:
        """Return the sum of ``mean_squares`` but for intercepts, at less cost."""
        return float(weights @ self.squares) * (self.n_outputs or 1)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the mean of x xᵀ, intercept column included.

        Of some of the rows, which costs their share of a pass; the same for the designs
        of subsets of the rows.
        """
        if self._parent is not None:
            return self._parent.spectrum
        step = -(-self.n_rows // _SPECTRUM_ROWS)
        gram = self.sampled_gram(step)
        values, vectors = linalg.eigh(gram, check_finite=False, driver="evd")
        return np.maximum(values, 0.0) / self.n_sampled(step), vectors

    def n_sampled(self, step: int) -> int:
        """Return how many rows ``sampled_gram`` is of."""
        return -(-self.n_rows // step)

    def dense_columns(self, columns: Rows) -> Floats:
        """Return a copy of some of the features, of shape (n, c)."""
        some = self.X[:, columns]
        dense = some.toarray() if sparse.issparse(some) else some
        return np.asarray(dense, dtype=np.float64)

    def sampled_gram(self, step: int) -> Floats:
        """Return the sum of x xᵀ over every so many rows, intercept column included."""
        X = np.ones((self.n_sampled(step), self.n_features + self.fit_intercept))
        X[:, : self.n_features] = dense_rows(self.X[::step])
        self.passes += len(X) / max(self.n_rows, 1)
        return X.T @ X

    @cached_property
    def matrix(self) -> Any:
        """X of shape (n, d), each entry stored once, for kernels that visit rows."""
        if not sparse.issparse(self.X) or self.X.has_canonical_format:
            return self.X
        X = self.X.copy()
        X.sum_duplicates()
        return X

    @cached_property
    def squares(self) -> Floats:
        """Squared norms of the rows, of shape (n,)."""
        X = self.matrix
        if not sparse.issparse(X):
            return np.einsum("ij,ij->i", X, X, dtype=np.float64)
        ones, squares = np.ones(self.n_features), np.empty(self.n_rows)
        step = max(1, int(BLOCK_BYTES / 8 / max(self.row_size, 1.0)))
        for first in range(0, self.n_rows, step):
            rows = slice(first, min(first + step, self.n_rows))
            block = row_view(X, rows)
            data = np.square(block.data, dtype=np.float64)
            arrays = data, block.indices, block.indptr
            squares[rows] = sparse.csr_array(arrays, shape=block.shape) @ ones
        return squares

    @property
    def mean_square(self) -> float:
        """Mean squared norm of the rows."""
        return self.sum_of_squares() / max(self.n_rows, 1)

    def sum_of_squares(self) -> float:
        """Return the sum of the squared norms of the rows."""
        return float(self.squares.sum())

    def entries_in(self, columns: Rows) -> float:
        """Return the mean number of stored entries in a row of some columns, about."""
        return float(self._column_shares[columns].sum()) * self.row_size

    def gram_cost(self, columns: Rows) -> float:
        """Return about how many products with X a Gram matrix of columns costs."""
        if sparse.issparse(self.X):
            return 0.5 * self.entries_in(columns) ** 2 / max(self.row_size, 1.0)
        return len(columns) * (len(columns) / self.n_features) / 12.0

    def joint_gram_cost(self, n_coordinates: int) -> float:
        """Return the like for a matrix of coordinates of several scores."""
        entries = max(self.row_size, 1.0) * (self.n_outputs or 1)
        return n_coordinates**2 / entries / 40.0

    @cached_property
    def by_columns(self) -> Any:
        """The columns of a sparse X one after the other (CSC)."""
        X = self.X
        parts = [row_view(X, rows) for rows in self.row_slices]
        counts = np.zeros((len(parts), self.n_features), X.indptr.dtype)
        numbers = range(len(parts))
        self.each(lambda i: products.count(parts[i].indices, counts[i]), numbers)
        # Where the entries of each part end in each column.
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
        columns = sparse.csc_array((data, indices, indptr), shape=X.shape)
        columns.sum_duplicates()
        return columns

    def _share_of(self, columns: Rows) -> float:
        """Return the share of the stored entries in some columns of a sparse X."""
        ends = self.by_columns.indptr
        return int((ends[columns + 1] - ends[columns]).sum()) / max(int(ends[-1]), 1)

    @cached_property
    def _column_shares(self) -> Floats:
        """Shares of the stored entries in the columns, of a sparse X about those."""
        if not sparse.issparse(self.X):
            return np.full(self.n_features, 1.0 / max(self.n_features, 1))
        step = -(-self.n_entries // _COUNTED)
        counts = np.bincount(self.X.indices[::step], minlength=self.n_features)
        return counts / max(counts.sum(), 1)

    def split(self, w: Floats) -> tuple[Floats, Floats | float]:
        """Return views of w: coefficients (d,) or (d, k), intercept scalar or (k,)."""
        coef, intercept = w[: self.n_coef], w[self.n_coef :]
        if self.n_outputs is None:
            return coef, float(intercept[0]) if self.fit_intercept else 0.0
        shape = (self.n_features, self.n_outputs)
        return coef.reshape(shape), intercept if self.fit_intercept else 0.0

    def _is_sparser_than(self, share: float) -> bool:
        return self.is_sparse and self.row_size < share * self.n_features

    def _adjoint(self, dual: Floats) -> Floats:
        v = np.empty(self.n_params)
        v[: self.n_coef] = self._products_of_columns(dual).ravel()
        if self.fit_intercept:
            v[self.n_coef :] = total_of_rows(dual)
        return v

    def _products_of_columns(self, dual: Floats) -> Floats:
        if "by_columns" in vars(self) and dual.ndim == 1:
            X = self.by_columns
            arrays = X.indptr, X.indices, X.data
            columns = np.arange(self.n_features)
            return InPlace(self, arrays, columns, self.n_rows).adjoint(dual)

        def multiply(part: list[tuple[int, int, Any]]) -> Floats:
            product = np.zeros((self.n_features, *dual.shape[1:]))
            for start, stop, block in part:
                if sparse.issparse(block) and dual[:1].size >= _MANY_SCORES:
                    u = np.ascontiguousarray(dual[start:stop])
                    arrays = block.indptr, block.indices, block.data
                    products.add_rows_several(*arrays, u, product)
                    continue
                size = max(stop - start, 1)
                if dual.ndim == 1 or not sparse.issparse(block):
                    size = min(self._summed_rows, size)
                for a in range(0, stop - start, size):
                    rows = slice(a, min(a + size, stop - start))
                    u = dual[start:stop][rows]
                    if dual.ndim == 1 and sparse.issparse(block):
                        some = np.zeros(self.n_features)
                        _add_rows_times(
                            block, np.arange(rows.start, rows.stop), u, some
                        )
                        product += some
                    else:
                        product += self._float64(row_view(block, rows)).T @ u
            return product

        product, *others = self.each(multiply, self._parts)
        for other in others:
            product += other
        return np.asarray(product)

    @cached_property
    def _summed_rows(self) -> int:
        """Of how many rows products with columns are summed by themselves at a time.

        Of equal rows each sum is rounded alike, so that errors grow with the number of
        its terms, and not with the root of that.
        """
        row_size = max(1, self.n_entries // max(1, self.n_rows))
        few = int(_ROOTS * np.sqrt(self.n_rows))
        return max(few, _ENTRIES_A_SUM * self.n_features // row_size, 1)

    def each(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Return results of a function of parts of the data, each by a thread."""
        if self._pool is None or len(parts) == 1:
            return [function(part) for part in parts]
        return list(self._pool.map(function, parts))

    def column_slices(self, indptr: Rows, columns: Rows) -> list[slice]:
        """Return slices of some columns, of about as many entries, for the threads."""
        if self._pool is None:
            return [slice(0, len(columns))]
        ends = np.cumsum(indptr[columns + 1] - indptr[columns])
        size = int(ends[-1]) if len(ends) else 0
        n_parts = max(1, min(self._n_threads, size // _PART_SIZE))
        shares = [size * i / n_parts for i in range(1, n_parts)]
        cuts = [0, *np.searchsorted(ends, shares), len(columns)]
        return [slice(*pair) for pair in pairwise(cuts)]

    def _blocks(self, start: int, stop: int) -> Iterable[tuple[int, int, Any]]:
        """Yield (first row, last row, view) for the products of one thread."""
        if not self._in_blocks:
            yield start, stop, row_view(self.X, slice(start, stop))
            return
        row_size = max(1, self.n_entries // max(1, self.n_rows))
        n_rows = max(1, _PROMOTED_BYTES // 8 // row_size)
        for a in range(start, stop, n_rows):
            b = min(a + n_rows, stop)
            yield a, b, row_view(self.X, slice(a, b))

    def _float64(self, block: Any) -> Any:
        if isinstance(block, _SomeRows):
            block = block.copy()
        return block.astype(np.float64) if self._promote else block


class Identity(Design):
    """The map w -> w: parameters are the scores.

    Parameters
    ----------
    n_params : int
    """

    def __init__(self, n_params: int) -> None:
        X = sparse.eye_array(n_params, format="csr")
        super().__init__(X, fit_intercept=False)

    def forward(self, w: Floats) -> Floats:
        return w

    def adjoint(self, dual: Floats) -> Floats:
        return dual


class InPlace:
    """Some columns of a matrix given by the arrays of the CSC format, as a linear map.

    Parameters
    ----------
    design : Design
        Its threads share the products.
    arrays : tuple of ndarrays indptr, indices, data
    columns : ndarray of shape (m,)
    n_rows : int
        Of the matrix.
    """

    def __init__(
        self, design: Design, arrays: tuple[Any, Any, Any], columns: Rows, n_rows: int
    ) -> None:
        self._design = design
        self._arrays, self._columns, self._n_rows = arrays, columns, n_rows
        self._slices = design.column_slices(arrays[0], columns)

    def forward(self, x: Floats) -> Floats:
        def multiply(part: slice) -> Floats:
            z = np.zeros(self._n_rows)
            products.add_columns(*self._arrays, self._columns[part], x[part], z)
            return z

        z, *others = self._design.each(multiply, self._slices)
        for other in others:
            z += other
        return np.asarray(z)

    def adjoint(self, y: Floats) -> Floats:
        out = np.empty(len(self._columns))

        def multiply(part: slice) -> None:
            columns = self._columns[part]
            products.multiply_columns(*self._arrays, columns, y, out[part])

        self._design.each(multiply, self._slices)
        return out


class _SomeRows:
    """Rows of a dense array X, to be copied when they are used."""

    def __init__(self, X: Any, rows: Rows) -> None:
        self._X = X
        self._rows = rows
        self.dtype = X.dtype
        self.shape = len(rows), X.shape[1]
        self.size = len(rows) * X.shape[1]

    def __getitem__(self, part: slice) -> _SomeRows:
        return _SomeRows(self._X, self._rows[part])

    def copy(self) -> Any:
        # Several times faster than indexing, which checks each index first.
        return self._X.take(self._rows, axis=0, mode="clip")


def dense_rows(rows: Any) -> Floats:
    """Return rows of X as an array of float64."""
    if sparse.issparse(rows):
        rows = rows.toarray()
    elif isinstance(rows, _SomeRows):
        rows = rows.copy()
    return np.asarray(rows, dtype=np.float64)


def _products_of_rows(X: Any) -> Floats:
    """Return X Xᵀ in float64, of a dense X by blocks of columns where it is not."""
    if sparse.issparse(X):
        X = X.astype(np.float64)
        return np.asarray((X @ X.T).toarray())
    if X.dtype == np.float64:
        return np.asarray(X @ X.T)
    total = np.zeros((len(X), len(X)))
    width = max(1, DENSE_BYTES // 8 // max(len(X), 1))
    for start in range(0, X.shape[1], width):
        block = X[:, start : start + width].astype(np.float64)
        total += block @ block.T
    return total


def _squared(rows: Any) -> Any:
    if not sparse.issparse(rows):
        return rows * rows
    if not rows.has_canonical_format:
        return rows.multiply(rows)
    # The product of two matrices compares their indices, which takes longer.
    squares = rows.data * rows.data, rows.indices, rows.indptr
    return type(rows)(squares, shape=rows.shape)


def _index_arrays(X: Any) -> tuple[Any, Any]:
    return X.indices, X.indptr


def _compact_csr(X: Any) -> Any:
    """Return X as a CSR array whose two index arrays have one type, int32 if possible.

    SciPy converts index arrays of unequal types at every product.
    """
    fits = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    dtype = np.int32 if fits else np.int64
    indices, indptr = (a.astype(dtype, copy=False) for a in _index_arrays(X))
    return sparse.csr_array((X.data, indices, indptr), shape=X.shape)


def _add_rows_times(X: Any, rows: Rows, dual: Floats, v: Floats) -> None:
    """Add the product with entries u of some rows of a CSR matrix to v."""
    # Rows are the columns of the transpose.
    products.add_columns(X.indptr, X.indices, X.data, rows, dual, v)


def row_view(X: Any, rows: slice) -> Any:
    """Return consecutive rows of X without copying its data."""
    if not sparse.issparse(X):
        return X[rows]
    start, stop = rows.start, rows.stop
    if (start, stop) == (0, X.shape[0]):
        return X
    first, last = X.indptr[start], X.indptr[stop]
    # The constructor would copy slices of less than half an array.
    view = sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    return view
