"""Equal rows of the data, which one row with the sum of their weights replaces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..kernels import equal_rows as kernel
from ..losses._base import Floats, Rows
from .sampling import fractions

#: In so few rows a search for equal rows saves little time or none. docs/constants.md
#: has the figures.
FEW_ROWS = 5000

# A sample of 2 sqrt(n) rows has about 2 n / m pairs of equal rows if m distinct rows
# are equally frequent. All rows are compared if it has as many as for m = n / 2.
# docs/constants.md has the figures.
_SAMPLED = 2


class EqualRows(NamedTuple):
    """Groups of equal rows.

    Attributes
    ----------
    groups : ndarray of shape (n,)
        Group of each row.
    first : ndarray of shape (number of groups,)
        First row of each group, ascending.
    """

    groups: Rows
    first: Rows

    @classmethod
    def of(cls, X: Any, targets: list[Any]) -> EqualRows | None:
        """Return the groups of rows with equal entries and targets.

        None if most rows are distinct. A sample of the rows shows whether it is useful
        to compare all of them.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n, d)
            A sparse X is canonical.
        targets : list of ndarray
            Of shape (n,) or (n, k) each.
        """
        n = X.shape[0]
        rows = (n * fractions(_SAMPLED * math.isqrt(n))).astype(np.intp)
        hashes = np.zeros(len(rows), dtype=np.uint64)
        # Real numbers differ in their first columns already.
        few = targets if sparse.issparse(X) else [*targets, X[:, :8]]
        for part in _parts(X, few, rows):
            kernel.add_to_hashes(*part, hashes)
            if cls._of_hashes(hashes, len(rows) - _SAMPLED**2) is None:
                return None
        parts = list(_parts(X, targets))
        hashes = np.zeros(n, dtype=np.uint64)
        for part in parts:
            kernel.add_to_hashes(*part, hashes)
        found = cls._of_hashes(hashes, n // 2)
        if found and all(kernel.are_equal(*part, *found) for part in parts):
            return found
        return None

    @classmethod
    def _of_hashes(cls, hashes: Any, most: int) -> EqualRows | None:
        """Return the groups of equal hashes, None if there are more than ``most``."""
        groups, first = np.empty(len(hashes), dtype=np.intp), np.empty(most, np.intp)
        n_groups = kernel.group_hashes(hashes, groups, first)
        return None if n_groups > most else cls(groups, first[:n_groups])

    def sums(self, x: Floats) -> Floats:
        """Return the sums of the entries of x, of shape (n,), of each group.

        Entries are non-negative, and their sum is at most one. The sums are as accurate
        as sums in twice the precision: the multiples of 2^-52 that are nearest to the
        entries are added without rounding errors, and their remainders apart.
        """
        n, nearest = len(self.first), (x + 1.0) - 1.0
        sums = np.bincount(self.groups, nearest, n)
        return np.asarray(sums + np.bincount(self.groups, x - nearest, n))


def _parts(
    X: Any, targets: list[Any], rows: Any = ...
) -> Iterator[tuple[Any, Any, int]]:
    """Yield bytes of the entries of rows, bounds of the rows, and bytes of an entry."""
    dense = targets if sparse.issparse(X) else [*targets, X]
    for each in dense:
        some = np.ascontiguousarray(each[rows])
        bounds = np.arange(len(some) + 1) * math.prod(some.shape[1:])
        yield some.reshape(-1).view(np.uint8), bounds, some.itemsize
    if sparse.issparse(X):
        some = X if rows is ... else X[rows]
        for entries in (some.indices, some.data):
            yield entries.view(np.uint8), some.indptr, entries.itemsize
