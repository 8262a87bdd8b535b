"""Shift of columns far from zero, such as times, where an intercept compensates it.

Let the entries of a column have mean m and standard deviation s. A second derivative of
size s² is smaller than rounding errors if (m / s)² approaches the inverse of the
machine epsilon, and the penalty even earlier. With a free intercept, and for losses of
differences of scores, J(w) is the same for X - 1 mᵀ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Floats, Indices
from .._core.memory import BLOCK_SIZE

# A column is read in all rows only if in a sample of the rows its mean is at least 30
# times its mean absolute deviation.
_SUSPECT = 30.0

# Mask of the upper half of the digits of a float64.
_UPPER = np.uint64(0xFFFFFFFFF8000000)


class Shift(NamedTuple):
    """Numbers that are subtracted from some of the columns.

    Attributes
    ----------
    columns : ndarray of int, shape (c,)
    by : ndarray of shape (c,)
        Subtracted numbers in the dtype of X, so that differences near them are exact.
    """

    columns: Indices
    by: Floats

    @classmethod
    def of(cls, X: Any, weights: Floats) -> Shift | None:
        """Return the weighted means of the columns far from zero, None without any.

        Columns of a sparse X are shifted only if all of their entries are stored.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n, d)
        weights : ndarray of shape (n,)
            Weights that sum to one.
        """
        columns, about = _suspects(X, weights)
        if not len(columns):
            return None
        if sparse.issparse(X):
            some = X[:, columns]
            full = np.bincount(some.indices, minlength=len(columns)) == X.shape[0]
            columns, about = columns[full], about[full]
            some = some[:, full].data.reshape(X.shape[0], -1)
        else:
            some = _Columns(X, columns)
        sums = _relative_sums(some, about, weights)
        return cls.of_sums(columns, about, sums, X.dtype)

    @classmethod
    def of_sums(
        cls, columns: Indices, about: Floats, sums: Floats, dtype: Any
    ) -> Shift | None:
        """Return the shift from ``relative_sums`` of all rows, None if not needed."""
        # The sums are over columns / about - 1, so the mean is about * (1 + mean).
        mean, square = sums
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        # Without a shift, a mean of 100 standard deviations would cost two digits.
        far = 1.0 + mean > 100.0 * deviation
        by = (about * (1.0 + mean)).astype(dtype)
        return cls(columns[far], by[far].astype(np.float64)) if far.any() else None

    def subtracted(self, X: Any) -> Any:
        """Return a copy of X minus the numbers of the shift.

        The copy has double precision where single precision would round a difference,
        as in rows far from the mean. A bound for rounded data may not hold for X.
        """
        dtype = X.dtype if self._is_exact(X) else np.float64
        by = self.by.astype(dtype)
        if not sparse.issparse(X):
            X = np.array(X, dtype, order="K")
            X[:, self.columns] -= by
            return X
        shifts = np.zeros(X.shape[1], dtype)
        shifts[self.columns] = by
        data = X.data - shifts[X.indices]
        return type(X)((data, X.indices, X.indptr), shape=X.shape)

    def _is_exact(self, X: Any) -> bool:
        """Whether the dtype of X holds the differences exactly."""
        if X.dtype == np.float64:
            return True
        pairs: Iterable[Any] = (
            (X[:, j], by) for j, by in zip(self.columns, self.by, strict=True)
        )
        if sparse.issparse(X):
            shifts = np.zeros(X.shape[1])
            shifts[self.columns] = self.by
            pairs = [(X.data, shifts[X.indices])]
        differences = (x.astype(np.float64) - by for x, by in pairs)
        return all(np.array_equal(x, x.astype(X.dtype)) for x in differences)

    def outward(self, coef: Any, intercept: Floats) -> Floats:
        """Return intercepts (k,) for X from intercepts for the copy; coef is (k, d)."""
        return self._moved(coef, intercept, -1.0)

    def inward(self, coef: Any, intercept: Floats) -> Floats:
        """Return intercepts (k,) for the copy from intercepts for X; coef is (k, d)."""
        return self._moved(coef, intercept, 1.0)

    def _moved(self, coef: Any, intercept: Floats, sign: float) -> Floats:
        """Return intercept + sign * coef @ by, rounded only once at the end.

        The terms are many times larger than their sum.
        """
        coef = np.asarray(coef, dtype=np.float64)[:, self.columns]
        by_upper, by_lower = _halves(sign * self.by)
        upper, lower = _halves(coef)
        terms = [upper * by_upper, upper * by_lower, lower * by_upper, lower * by_lower]
        rows = np.column_stack([*terms, intercept])
        return np.array([math.fsum(row) for row in rows.tolist()])


class _Columns:
    """Some of the columns of a dense array, copied in blocks of rows."""

    def __init__(self, X: Any, columns: Indices) -> None:
        self._X, self._columns = X, columns
        self.shape = len(X), len(columns)

    def __getitem__(self, rows: slice) -> Any:
        return self._X[rows][:, self._columns]


def _suspects(X: Any, weights: Floats) -> tuple[Indices, Floats]:
    """Return columns that may be far from zero, and their approximate means."""
    # The sample has about 32,000 entries.
    n_rows = min(max(2**15 // max(X.shape[1], 1), 16), 256)
    rows = np.flatnonzero(weights)
    rows = rows[:: -(-len(rows) // n_rows)]
    some = X[rows]
    columns = np.arange(X.shape[1])
    if sparse.issparse(some):
        counts = np.bincount(some.indices, minlength=X.shape[1])
        columns = np.flatnonzero(counts >= len(rows))
        some = some[:, columns].toarray()
    some = some.astype(np.float64, copy=False)
    about = some.sum(axis=0) / len(some)
    some -= about
    far = len(some) * np.abs(about) > _SUSPECT * np.abs(some, out=some).sum(axis=0)
    return columns[far], about[far]


def suspects_of_sums(mean: Floats, square: Floats, stored: Floats, n: int) -> Indices:
    """Return columns that may be far from zero, from weighted sums over all n rows."""
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    far = (np.abs(mean) > _SUSPECT * deviation) & (stored == n)
    return np.flatnonzero(far)


def relative_sums(X: Any, columns: Indices, about: Floats, weights: Floats) -> Floats:
    """Return weighted sums of X / about - 1 and of its squares, of shape (2, c).

    In a sparse X, all entries of these columns are stored.
    """
    if sparse.issparse(X):
        some = X[:, columns]
        return _relative_sums(some.data.reshape(X.shape[0], -1), about, weights)
    return _relative_sums(_Columns(X, columns), about, weights)


def _relative_sums(some: Any, about: Floats, weights: Floats) -> Floats:
    """Return weighted sums of columns / about - 1 and of its squares."""
    n, c = some.shape
    mean, square = sums = np.zeros((2, c))
    step = max(1, BLOCK_SIZE // max(c, 1))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        block = some[rows] / about - 1.0
        mean += weights[rows] @ block
        square += weights[rows] @ np.square(block, out=block)
    return sums


def _halves(numbers: Floats) -> tuple[Floats, Floats]:
    """Return numbers as exact sums of two terms with about half of the digits each."""
    upper = (np.ascontiguousarray(numbers).view(np.uint64) & _UPPER).view(np.float64)
    return upper, numbers - upper
