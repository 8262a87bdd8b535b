"""A subset of the columns of a matrix as a linear map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..kernels import products
from ..losses._base import Floats, Rows


class ColumnMap(Protocol):
    """A subset of the columns of a matrix, as a linear map."""

    def forward(self, x: Floats) -> Floats: ...

    def adjoint(self, y: Floats) -> Floats: ...


class Threads(Protocol):
    """Threads that share products with columns."""

    def each(
        self, function: Callable[[Any], Any], parts: Sequence[Any]
    ) -> list[Any]: ...

    def column_slices(self, indptr: Rows, columns: Rows) -> list[slice]: ...


class Copied:
    """A copied submatrix as a linear map."""

    def __init__(self, A: Any) -> None:
        # The transpose is stored, since transposing a sparse matrix takes as long as a
        # small product.
        self._A, self._T = A, A.T

    def forward(self, x: Floats) -> Floats:
        return np.asarray(self._A @ x)

    def adjoint(self, y: Floats) -> Floats:
        return np.asarray(self._T @ y)


class InPlace:
    """A subset of the columns of CSC arrays, used in place, as a linear map.

    Parameters
    ----------
    threads : Threads
        Threads that share the products.
    arrays : tuple of ndarrays indptr, indices, data
    columns : ndarray of shape (m,)
    n_rows : int
        Number of rows of the matrix.
    """

    def __init__(
        self, threads: Threads, arrays: tuple[Any, Any, Any], columns: Rows, n_rows: int
    ) -> None:
        self._threads = threads
        self._arrays, self._columns, self._n_rows = arrays, columns, n_rows
        self._slices = threads.column_slices(arrays[0], columns)

    def forward(self, x: Floats) -> Floats:
        def multiply(part: slice) -> Floats:
            z = np.zeros(self._n_rows)
            products.add_columns(*self._arrays, self._columns[part], x[part], z)
            return z

        z, *others = self._threads.each(multiply, self._slices)
        for other in others:
            z += other
        return np.asarray(z)

    def adjoint(self, y: Floats) -> Floats:
        out = np.empty(len(self._columns))

        def multiply(part: slice) -> None:
            columns = self._columns[part]
            products.multiply_columns(*self._arrays, columns, y, out[part])

        self._threads.each(multiply, self._slices)
        return out
