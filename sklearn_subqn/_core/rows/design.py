"""The data of a fit as a linear map, with subsets and transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..lazy import cached_property
from ..losses._base import Floats, Rows
from ..memory import COPY_SIZE
from .bordered import Bordered, largest_category
from .row_views import SomeRows, array_of, columns_of, dense_rows
from .second_moments import SecondMoments


class Shape(NamedTuple):
    """Properties of a design that do not need its data.

    Attributes
    ----------
    n_rows, n_features, n_entries, n_coef, n_params, n_outputs, nbytes : int
    fit_intercept, shares_coef, is_sparse, holds_rows : bool
        The attributes of ``Design``.
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
    holds_rows: bool


class Design(SecondMoments):
    """Linear map w -> z = X W + b of parameters to scores, with the data X.

    See ``LinearMap`` for the parameters.
    """

    def as_shape(self) -> Shape:
        """Return the properties that do not need the data."""
        return Shape(*(getattr(self, name) for name in Shape._fields))

    def rows(self, rows: Rows, *, copy: bool = True) -> Design:
        """Return the design of a subset of the rows, with its own pass count.

        Parameters
        ----------
        rows : ndarray of int
        copy : bool
            Whether rows of a dense X are copied now, for several products, or block by
            block within each product, which takes no memory.
        """
        subset = self._some_rows(rows)
        if copy and isinstance(subset, SomeRows):
            subset = subset.copy()
        return self._like(subset, self)

    def kept_rows(self, rows: Rows) -> Design:
        """Return the design of a subset of the rows, which stay in memory."""
        return self.rows(rows)

    def above(self, others: Sequence[Design]) -> Design:
        """Return the design of these rows above the rows of other designs, copied."""
        matrices = [self.X, *(other.X for other in others)]
        if sparse.issparse(self.X):
            return self._like(sparse.vstack(matrices, format="csr"), None)
        return self._like(np.concatenate(list(map(array_of, matrices))), None)

    def _like(self, X: Any, parent: Design | None) -> Design:
        """Return the design with other rows of the same features."""
        return Design(
            X,
            fit_intercept=self.fit_intercept,
            n_outputs=self.n_outputs,
            n_threads=self._n_threads,
            pool=self._pool,
            parent=parent,
        )

    def joined(self, other: Design, order: Rows) -> Design:
        """Return the design of rows of this design and of another, reordered.

        In ``order``, rows of the other design follow the rows of this one.
        """
        if sparse.issparse(self.X):
            X = sparse.vstack([self.X, other.X], format="csr")[order]
        else:
            X = np.concatenate([array_of(self.X), array_of(other.X)])[order]
        return Design(X, fit_intercept=False, n_threads=self._n_threads)

    def zeros(self) -> Design:
        """Return the design of equally many rows of zeros."""
        shape = self.X.shape
        X = sparse.csr_array(shape) if sparse.issparse(self.X) else np.zeros(shape)
        return Design(X, fit_intercept=False, n_threads=self._n_threads)

    def divided(self, units: Floats) -> Design:
        """Return the design with each feature divided by its unit, a power of two.

        Parameters
        ----------
        units : ndarray of shape (d,)
        """
        X, units = self.X, units.astype(self.X.dtype)
        if sparse.issparse(X):
            data = X.data / units[X.indices]
            X = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
            return self._like(X, None)
        if isinstance(X, SomeRows):
            return self._like(X.divided(units), None)
        return self._like(X / units, None)

    def in_row_space(self) -> tuple[Design, Floats]:
        """Return A and Q with X = A Qᵀ: a square design, and Q orthonormal, (d, n).

        X is dense and has at least as many features as rows.
        """
        basis, triangle = np.linalg.qr(dense_rows(self.X).T)
        design = Design(
            np.ascontiguousarray(triangle.T),
            fit_intercept=self.fit_intercept,
            n_outputs=self.n_outputs,
        )
        return design, basis

    def sums_of_rows(self, codes: Rows, n: int, weights: Floats) -> Floats:
        """Return weighted sums of the rows with each code below n, of shape (n, d)."""
        X, d = self.X, self.n_features
        if not sparse.issparse(X):
            X = self._float64(X)
            ones = weights, codes, np.arange(self.n_rows + 1)
            return np.asarray(sparse.csc_array(ones, shape=(n, self.n_rows)) @ X)
        sizes = np.diff(X.indptr)
        places = np.repeat(codes * d, sizes) + X.indices
        sums = np.bincount(places, np.repeat(weights, sizes) * X.data, n * d)
        return sums.astype(np.float64, copy=False).reshape(n, d)

    def dense_columns(self, columns: Rows) -> Floats:
        """Return a copy of some of the features, of shape (n, c)."""
        return dense_rows(columns_of(self.X, columns))

    def of_features(self, columns: Rows, fit_intercept: bool) -> Design:
        """Return the design of a subset of the features.

        Unless all are selected, the columns of a sparse X and a small number of columns
        are copied now, others of a dense X in blocks during each product.
        """
        X = self.X
        if len(columns) < self.n_features:
            if sparse.issparse(X):
                X = X[:, columns]
            else:
                X = X if isinstance(X, SomeRows) else SomeRows(X, range(self.n_rows))
                X = X.of_columns(columns)
                X = X.copy() if self.n_rows * len(columns) <= COPY_SIZE else X
        return Design(
            X,
            fit_intercept=fit_intercept,
            n_outputs=self.n_outputs,
            n_threads=self._n_threads,
            pool=self._pool,
        )

    @cached_property
    def category(self) -> Rows:
        """Adjacent columns with at most one entry per row, if they are most columns.

        For one score per row and a sparse X in memory, else none.
        """
        if not (self.is_sparse and self.in_one_place) or self.several_scores:
            return np.arange(0)
        return largest_category(self.X)

    @cached_property
    def _split(self) -> tuple[Rows, Design, Any]:
        """The parameters outside the category, their design, and Xᵀ of the category."""
        own = self.category
        others = np.delete(np.arange(self.n_params), own)
        kept = others[: self.n_features - len(own)]
        design = self.of_features(kept, fit_intercept=self.fit_intercept)
        return others, design, sparse.csr_array(columns_of(self.X, own).T)

    def bordered_gram(self, weights: Floats) -> Bordered:
        """Return ``gram``, with the block of ``category`` as its diagonal."""
        if not len(self.category):
            return Bordered.unsplit(self.gram(weights))
        self.passes += 1.0
        others, design, levels = self._split
        scaled = levels.copy()
        scaled.data = levels.data * weights[levels.indices]
        diagonal = scaled.multiply(levels).sum(axis=1)
        border = scaled @ sparse.csr_array(design.X)
        if self.fit_intercept:
            sums = sparse.csr_array(scaled.sum(axis=1)[:, np.newaxis])
            border = sparse.hstack([border, sums])
        core = design.gram(weights)
        return Bordered(self.category, others, diagonal, border.T.tocsr(), core)

    def of_outputs(self, n_outputs: int) -> Design:
        """Return the design of several scores per row, with separate coefficients."""
        return Design(
            self.X,
            fit_intercept=self.fit_intercept,
            n_outputs=n_outputs,
            n_threads=self._n_threads,
            pool=self._pool,
        )


class Identity(Design):
    """The map w -> w, whose scores are the parameters.

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
