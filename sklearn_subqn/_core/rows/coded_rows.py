"""Categorical columns of a sparse X as codes: a row has at most one entry among them.

Ten one-hot encoded categories give a row ten stored entries; codes that each combine
three or four categories need only three. Products take about as much less time.
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

# With fewer entries, codes save less time than the search for codes takes.
# docs/constants.md has the figures.
_FEWEST_ENTRIES = 500_000

# The first 1000 rows show for most data whether columns form categories.
_FIRST_ROWS = 1000

# Categories share a code as long as the code has at most 256 values. docs/constants.md
# has the figures.
_MOST_CODES = 256

# Rows are coded if they have at most 0.7 times as many codes and numbers as entries.
_MOST_PARTS = 0.7


class _Category(NamedTuple):
    """One-hot columns: each row has an entry in at most one of the columns.

    Attributes
    ----------
    columns : ndarray of shape (c,)
    n_levels : int
        c, or c + 1 if some rows have no entry, which is then the first level.
    """

    columns: Rows
    n_levels: int

    @property
    def levels(self) -> Rows:
        """The level of each column."""
        return np.arange(len(self.columns)) + self.n_levels - len(self.columns)


class _Group(NamedTuple):
    """Categories that share one code, whose mixed-radix digits are the levels."""

    categories: list[_Category]
    n_codes: int

    def and_also(self, category: _Category) -> _Group:
        """Return the group extended by a category."""
        n_codes = self.n_codes * category.n_levels
        return _Group([*self.categories, category], n_codes)


class CodedRows:
    """Rows of a sparse matrix X, stored as codes of categories and as numbers.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    groups : list of _Group
    numbers : ndarray of int
        The other columns.
    values : ndarray of shape (d,)
        The constant value of each column that belongs to a category.
    """

    def __init__(
        self, X: Any, groups: list[_Group], numbers: Rows, values: Floats
    ) -> None:
        n, d = X.shape
        self._n_features, self._columns = d, numbers
        self._codes: npt.NDArray[np.uint16] = np.zeros((len(groups), n), np.uint16)
        self._numbers = np.zeros((len(numbers), n))
        # For each group: its columns, and the value that each code has in each column.
        self._groups: list[tuple[Rows, Any]] = []
        places, steps = np.zeros(d, np.intp), np.zeros(d, np.intp)
        places[numbers] = -1 - np.arange(len(numbers))
        for place, group in enumerate(groups):
            entries, step = [], 1
            for category in group.categories:
                own, n_levels = category
                places[own], steps[own] = place, step * category.levels
                # The codes with an entry in a column of this category.
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
        """Return the coded rows of a CSR array, None if codes would save too little."""
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
        """Write the products of a slice of the rows with coefficients of shape (d,)."""
        tables = [has @ coef[columns] for columns, has in self._groups]
        of_numbers = coef[self._columns]
        for some in _cut(rows):
            np.matmul(of_numbers, self._numbers[:, some], out=out[some])
            for codes, table in zip(self._codes, tables, strict=True):
                kernel.add_entries(codes[some], table, out[some])

    def adjoint(self, dual: Floats, rows: slice, n_summed: int) -> Floats:
        """Return Xᵀu over a slice of the rows, of shape (d,).

        Partial sums are over ``n_summed`` rows.
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
        """Return Xᵀ diag(weights) X over a slice of the rows, of shape (d, d)."""
        d, p = self._n_features, len(self._columns)
        of_pairs = {
            pair: np.zeros([self._groups[i][1].shape[0] for i in pair])
            for pair in combinations(range(len(self._groups)), 2)
        }
        # The tables hold sums of the weights, and of the weighted numbers of each
        # column.
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
        """Return a table of zeros for each group."""
        return [np.zeros(has.shape[0]) for _, has in self._groups]


def _cut(rows: slice, n_rows: int = BLOCK_SIZE // 8) -> Iterator[slice]:
    """Yield slices of at most ``n_rows`` rows; the default size fits into the cache."""
    for start in range(rows.start, rows.stop, n_rows):
        yield slice(start, min(start + n_rows, rows.stop))


def _described(X: Any) -> tuple[list[_Category], Rows, Floats] | None:
    """Return categories of sorted rows, the other columns, and column values."""
    d = X.shape[1]
    counts, values = np.zeros(d, np.intp), np.zeros(d)
    varies, following = np.zeros(d, bool), np.full(d, d, np.intp)
    arrays = X.indptr, X.indices, X.data
    as_bytes = varies.view(np.uint8)
    if not kernel.describe(*arrays, counts, values, as_bytes, following):
        return None
    # From left to right, each category is the longest run of columns such that every
    # row has at most one of these columns.
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
    """Return the number of pairs of codes of two different groups."""
    return sum(a.n_codes * b.n_codes for a, b in combinations(groups, 2))


def _grouped(categories: list[_Category], most_codes: int) -> list[_Group] | None:
    """Return groups of categories: largest first, each in the first group that fits."""
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
