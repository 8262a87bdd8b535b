"""Rows of dense and sparse matrices: views, copies, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import products
from ..losses._base import Floats, Rows
from ..memory import BLOCK_SIZE, COPY_SIZE

# Dense rows are converted to sparse rows if at most a tenth of their entries are
# nonzero. docs/constants.md has the figures.
_MOST_STORED = 0.1

# Dense rows are converted to sparse rows only if they have at least 2^20 entries.
# docs/constants.md has the figures.
_FEWEST_ENTRIES = 1 << 20

# The fraction of nonzero entries is estimated from a thousand rows.
_SAMPLED_ROWS = 1000


class SomeRows:
    """A subset of the rows of a dense array X, copied on use.

    Parameters
    ----------
    X : ndarray
    rows : ndarray of int or range
    change : callable, optional
        Transforms rows of X, for example to other units.
    sizes : ndarray of shape (d,), optional
        Divisors of the columns, applied in double precision.

    Attributes
    ----------
    sizes : ndarray of shape (d,) or None
    """

    def __init__(
        self,
        X: Any,
        rows: Any,
        change: Callable[[Any], Any] | None = None,
        sizes: Floats | None = None,
    ) -> None:
        self._X, self._rows, self._change, self.sizes = X, rows, change, sizes
        none = X[:0] if change is None else change(X[:0])
        self.dtype = none.dtype
        if sizes is not None:
            self.dtype = np.dtype(np.float64)
        self.shape = len(rows), none.shape[1]
        self.size = len(rows) * none.shape[1]
        self.nbytes = self.size * self.dtype.itemsize

    def __getitem__(self, part: Any) -> SomeRows:
        rows = self._rows
        if isinstance(rows, range) and not isinstance(part, slice):
            part = np.flatnonzero(part) if part.dtype == bool else part
            place = np.where(part < 0, part + len(rows), part)
            some = rows.start + rows.step * place
        else:
            some = rows[part]
        return SomeRows(self._X, some, self._change, self.sizes)

    def copy(self, part: slice = slice(None)) -> Any:
        """Return a slice of the rows; consecutive rows without a change are a view."""
        X = self.undivided(part)
        if self.sizes is None:
            return X
        # Rows that are not consecutive, and selected columns, are copies already.
        copied = X.dtype == self.dtype and not np.may_share_memory(X, self._X)
        return np.divide(X, self.sizes, out=X if copied else None)

    def of_columns(self, columns: Any) -> SomeRows:
        """Return a subset of the columns, which is copied on use."""

        def change(rows: Any) -> Any:
            return columns_of(
                rows if self._change is None else self._change(rows), columns
            )

        sizes = None if self.sizes is None else self.sizes[columns]
        return SomeRows(self._X, self._rows, change, sizes)

    def divided(self, units: Floats) -> SomeRows:
        """Return the rows with columns divided by further units."""
        sizes = units if self.sizes is None else self.sizes * units
        return SomeRows(self._X, self._rows, self._change, sizes)

    @property
    def as_view(self) -> Any:
        """The rows in the units of X, as a view of X; None if this needs a copy."""
        apart = self._change is not None or not isinstance(self._rows, range)
        return None if apart else self.undivided()

    def undivided(self, part: slice = slice(None)) -> Any:
        """Return a slice of the rows in the units of X."""
        rows = self._rows[part]
        if isinstance(rows, range):
            X = self._X[rows.start : rows.stop : rows.step]
        else:
            # ``take`` is several times faster than indexing.
            X = self._X.take(rows, axis=0)
        return X if self._change is None else self._change(X)


def dense_rows(rows: Any) -> Floats:
    """Return rows of X as an array of float64."""
    return np.asarray(array_of(rows), dtype=np.float64)


def array_of(rows: Any) -> Any:
    """Return rows of X as an array of their dtype."""
    if sparse.issparse(rows):
        return rows.toarray()
    return rows.copy() if isinstance(rows, SomeRows) else rows


def products_of_rows(X: Any) -> Floats:
    """Return X Xᵀ in float64; a dense float32 X is converted in blocks of columns."""
    if sparse.issparse(X):
        X = X.astype(np.float64)
        return np.asarray((X @ X.T).toarray())
    X = array_of(X)
    if X.dtype == np.float64:
        return np.asarray(X @ X.T)
    total = np.zeros((len(X), len(X)))
    width = max(1, COPY_SIZE // max(len(X), 1))
    for start in range(0, X.shape[1], width):
        block = X[:, start : start + width].astype(np.float64)
        total += block @ block.T
    return total


def index_arrays(X: Any) -> tuple[Any, Any]:
    return X.indices, X.indptr


def absolute(X: Any) -> Any:
    """Return the absolute values of X; a sparse result shares the index arrays.

    SciPy's own ``abs`` sorts the index arrays in place.
    """
    if not sparse.issparse(X):
        return np.abs(X)
    return type(X)((np.abs(X.data), X.indices, X.indptr), shape=X.shape)


def compact_csr(X: Any) -> Any:
    """Return X as a CSR array whose two index arrays have one type, int32 if possible.

    SciPy converts index arrays of different types at every product. The result shares
    values, and index arrays of the right type, with X. Neither may be changed in place,
    not even by methods of SciPy that sort or sum entries.
    """
    fits = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    dtype = np.int32 if fits else np.int64
    indices, indptr = (a.astype(dtype, copy=False) for a in index_arrays(X))
    return sparse.csr_array((X.data, indices, indptr), shape=X.shape)


def add_rows_times(X: Any, rows: Rows, dual: Floats, v: Floats) -> None:
    """Add the product of some rows of a CSR matrix with their entries of u to v."""
    # Rows are the columns of the transpose.
    products.add_columns(X.indptr, X.indices, X.data, rows, dual, v)


def row_view(X: Any, rows: slice) -> Any:
    """Return a slice of the rows of X as a view of its values and indices.

    The view may not be changed in place, not even by methods of SciPy that sort or sum
    entries.
    """
    if not sparse.issparse(X):
        return X[rows]
    start, stop = rows.start, rows.stop
    if (start, stop) == (0, X.shape[0]):
        return X
    first, last = X.indptr[start], X.indptr[stop]
    # The arrays are set as attributes, because the constructor copies slices of less
    # than half of an array.
    view = sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    return view


def columns_of(X: Any, columns: Any) -> Any:
    """Return a copy of some of the columns."""
    if sparse.issparse(X):
        return X[:, columns]
    if isinstance(X, SomeRows):
        return X.of_columns(columns).copy()
    if isinstance(columns, slice):
        return X[:, columns]
    # ``take`` reads a mask as numbers.
    columns = np.arange(X.shape[1])[columns]
    # Columns in Fortran order are copied one by one.
    if X.flags.f_contiguous:
        return X.T.take(columns, axis=0).T
    # ``take`` needs a third of the time of X[:, columns].
    return X.take(columns, axis=1)


def mostly_zeros_as_csr(X: Any) -> Any:
    """Return large dense rows that are mostly zeros as a CSR array, else X itself.

    It takes less memory than a copy of X.
    """
    if sparse.issparse(X) or X.size < _FEWEST_ENTRIES:
        return X
    n, d = X.shape
    some = X[:: max(1, n // _SAMPLED_ROWS)]
    if np.count_nonzero(some != 0.0) > _MOST_STORED * some.size:
        return X
    sizes, columns, values = [], [], []
    n_rows, n_stored = max(1, BLOCK_SIZE // d), 0
    for start in range(0, n, n_rows):
        block = X[start : start + n_rows]
        places, firsts = np.flatnonzero(block != 0.0), d * np.arange(len(block) + 1)
        sizes.append(np.diff(np.searchsorted(places, firsts)))
        columns.append((places - np.repeat(firsts[:-1], sizes[-1])).astype(np.int32))
        values.append(block.ravel()[places])
        n_stored += len(places)
        if 2 * n_stored > X.size:
            return X
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    few = np.int32 if n_stored <= np.iinfo(np.int32).max else np.int64
    arrays = np.concatenate(values), np.concatenate(columns), indptr.astype(few)
    return sparse.csr_array(arrays, shape=X.shape)
