"""Rows of categories as codes: columns of a sparse X of which a row has one at most.

A row of ten categories has ten entries, but three codes of what it has of three or four
of them each. Products take the share of the time that this has of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..kernels import category_codes as kernel
from ..losses._base import Floats, Rows
from ..memory import BLOCK_SIZE
from .row_views import row_view

# With fewer entries codes save less time than finding them takes. docs/constants.md has
# the figures.
_FEWEST_ENTRIES = 500_000

# The first rows of most data show that too few columns exclude each other.
_FIRST_ROWS = 1000

# Categories share a code as long as it has no more values. docs/constants.md has the
# figures.
_MOST_CODES = 256

# A row has fewer codes and numbers than entries, or it stays as it is.
_MOST_PARTS = 0.7


class _Category(NamedTuple):
    """Columns of which a row has an entry in one at most, each of one value.

    Attributes
    ----------
    columns : ndarray of shape (c,)
    n_levels : int
        c, or c + 1 if some rows have no entry: that is the first level.
    """

    columns: Rows
    n_levels: int

    @property
    def levels(self) -> Rows:
        """The level of each column."""
        return np.arange(len(self.columns)) + self.n_levels - len(self.columns)


class _Group(NamedTuple):
    """Categories with one code: digits of it, the first one last, are their levels."""

    categories: list[_Category]
    n_codes: int

    def and_also(self, category: _Category) -> _Group:
        """Return the group with one more category."""
        n_codes = self.n_codes * category.n_levels
        return _Group([*self.categories, category], n_codes)


class CodedRows:
    """Rows of a sparse matrix X as codes of its categories and as numbers.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    groups : list of _Group
    numbers : ndarray of int
        Other columns.
    values : ndarray of shape (d,)
        The value of columns of categories.
    """

    def __init__(
        self, X: Any, groups: list[_Group], numbers: Rows, values: Floats
    ) -> None:
        n, d = X.shape
        self._n_features, self._columns = d, numbers
        self._codes: npt.NDArray[np.uint16] = np.zeros((len(groups), n), np.uint16)
        self._numbers = np.zeros((len(numbers), n))
        # Each group has its columns, and the values that each code has in them.
        self._groups: list[tuple[Rows, Any]] = []
        places, steps = np.zeros(d, np.intp), np.zeros(d, np.intp)
        places[numbers] = -1 - np.arange(len(numbers))
        for place, group in enumerate(groups):
            entries, step = [], 1
            for category in group.categories:
                own, n_levels = category
                places[own], steps[own] = place, step * category.levels
                # Some of the codes have an entry in a column of this category.
                at = np.arange(group.n_codes) // step % n_levels - category.levels[0]
                some = np.flatnonzero(at >= 0)
                entries.append((some, own[at[some]]))
                step *= n_levels
            of_codes, of_columns = map(np.concatenate, zip(*entries, strict=True))
            columns, at = np.unique(of_columns, return_inverse=True)
            shape = group.n_codes, len(columns)
            has = sparse.csr_array((values[of_columns], (of_codes, at)), shape=shape)
            self._groups.append((columns, has))
        arrays = X.indptr, X.indices, X.data
        kernel.encode(*arrays, places, steps, self._codes, self._numbers)

    @classmethod
    def of(cls, X: Any) -> CodedRows | None:
        """Return the rows of a CSR array, or None if they have about as many parts."""
        n, d = X.shape
        if d > n or X.nnz < _FEWEST_ENTRIES:
            return None
        groups: list[_Group] | None = None
        for rows in (slice(0, min(n, _FIRST_ROWS)), slice(0, n)):
            some = row_view(X, rows)
            described = _described(some)
            if described is None:
                return None
            categories, numbers, values = described
            groups = _grouped(categories, min(_MOST_CODES, int(n**0.5)))
            if groups is None or _n_pairs(groups) > X.nnz:
                return None
            if (len(groups) + len(numbers)) * rows.stop > _MOST_PARTS * some.nnz:
                return None
        assert groups is not None, "all rows have been looked at"
        return cls(X, groups, numbers, values)

    def forward(self, coef: Floats, rows: slice, out: Floats) -> None:
        """Write the products of some rows with coefficients of shape (d,)."""
        tables = [has @ coef[columns] for columns, has in self._groups]
        of_numbers = coef[self._columns]
        for some in _cut(rows):
            np.matmul(of_numbers, self._numbers[:, some], out=out[some])
            for codes, table in zip(self._codes, tables, strict=True):
                kernel.add_entries(codes[some], table, out[some])

    def adjoint(self, dual: Floats, rows: slice, n_summed: int) -> Floats:
        """Return the products of the columns of some rows with u, of shape (d,).

        ``n_summed`` rows are summed at a time.
        """
        product = np.zeros(self._n_features)
        tables = self._tables()
        for some in _cut(rows, n_summed):
            product[self._columns] += self._numbers[:, some] @ dual[some]
            for codes, table in zip(self._codes, tables, strict=True):
                sums = np.zeros(len(table))
                kernel.add_to_entries(codes[some], dual[some], sums)
                table += sums
        for (columns, has), table in zip(self._groups, tables, strict=True):
            product[columns] = has.T @ table
        return product

    def gram(self, weights: Floats, rows: slice) -> Floats:
        """Return Xᵀ diag(weights) X of some of the rows, of shape (d, d)."""
        d, p = self._n_features, len(self._columns)
        of_pairs = {
            pair: np.zeros([self._groups[i][1].shape[0] for i in pair])
            for pair in combinations(range(len(self._groups)), 2)
        }
        # The tables hold sums of the weights, and of each column's weighted numbers.
        tables = [self._tables() for _ in range(1 + p)]
        squares = np.zeros((p, p))
        for some in _cut(rows):
            numbers, u = self._numbers[:, some], weights[some]
            scaled = numbers * u
            squares += scaled @ numbers.T
            for own, factors in zip(tables, [u, *scaled], strict=True):
                for codes, table in zip(self._codes, own, strict=True):
                    kernel.add_to_entries(codes[some], factors, table)
            for (i, j), table in of_pairs.items():
                both = self._codes[i, some], self._codes[j, some]
                kernel.add_to_pairs(*both, u, table)
        gram = np.zeros((d, d))
        gram[np.ix_(self._columns, self._columns)] = squares
        for i, (columns, has) in enumerate(self._groups):
            scaled = sparse.diags_array(tables[0][i]) @ has
            gram[np.ix_(columns, columns)] = (has.T @ scaled).toarray()
            for column, own in zip(self._columns, tables[1:], strict=True):
                gram[column, columns] = gram[columns, column] = has.T @ own[i]
        for (i, j), table in of_pairs.items():
            (columns, has), (others, have) = self._groups[i], self._groups[j]
            block = has.T @ (table @ have)
            gram[np.ix_(columns, others)] = block
            gram[np.ix_(others, columns)] = block.T
        return gram

    def _tables(self) -> list[Floats]:
        """Return an empty table for each group."""
        return [np.zeros(has.shape[0]) for _, has in self._groups]


def _cut(rows: slice, n_rows: int = BLOCK_SIZE // 8) -> Iterator[slice]:
    """Yield slices of at most ``n_rows`` of some rows: by default caches hold them."""
    for start in range(rows.start, rows.stop, n_rows):
        yield slice(start, min(start + n_rows, rows.stop))


def _described(X: Any) -> tuple[list[_Category], Rows, Floats] | None:
    """Return categories of sorted rows, other columns, and values of the columns."""
    d = X.shape[1]
    counts, values = np.zeros(d, np.intp), np.zeros(d)
    varies, following = np.zeros(d, bool), np.full(d, d, np.intp)
    arrays = X.indptr, X.indices, X.data
    as_bytes = varies.view(np.uint8)
    if not kernel.describe(*arrays, counts, values, as_bytes, following):
        return None
    # Each category has as many columns as no row has two of, from left to right.
    categories, start = [], 0
    while start < d:
        stop, nearest = start + 1, following[start]
        while stop < nearest:
            nearest = min(nearest, following[stop])
            stop += 1
        columns = start + np.flatnonzero((counts[start:stop] > 0) & ~varies[start:stop])
        if len(columns):
            some_have_none = int(counts[columns].sum()) < X.shape[0]
            categories.append(_Category(columns, len(columns) + some_have_none))
        start = stop
    return categories, np.flatnonzero(varies), values


def _n_pairs(groups: list[_Group]) -> int:
    """Return the number of pairs of codes of two groups."""
    return sum(a.n_codes * b.n_codes for a, b in combinations(groups, 2))


def _grouped(categories: list[_Category], most_codes: int) -> list[_Group] | None:
    """Return groups of categories: the largest first, each in the first with room."""
    groups: list[_Group] = []
    for category in sorted(categories, key=lambda category: -category.n_levels):
        if category.n_levels > np.iinfo(np.uint16).max:
            return None
        for i, group in enumerate(groups):
            if group.n_codes * category.n_levels <= most_codes:
                groups[i] = group.and_also(category)
                break
        else:
            groups.append(_Group([category], category.n_levels))
    return groups
