"""Equal rows of the data, which one row with the sum of their weights replaces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..kernels import equal_rows as kernel
from ..losses._base import Floats, Rows

#: In so few rows a search for equal rows saves little time or none. docs/constants.md
#: has the figures.
FEW_ROWS = 5000

# If each of n rows occurs twice, a sample of 4 sqrt(n) rows has about 8 pairs of equal
# rows. All rows are compared if the sample has half as many. docs/constants.md has the
# figures.
_SAMPLED = 4


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
        # Equal rows may be neighbors or at equal distances: the sample is random.
        size = _SAMPLED * math.isqrt(n)
        rows = np.random.default_rng(0).choice(n, size, replace=False)
        some = [each[rows] for each in targets]
        # Real numbers differ in their first columns already, indicators may not.
        for columns in [X] if sparse.issparse(X) else [X[:, :8], X]:
            hashes = _hashes(columns[rows], some)
            if cls._of_hashes(hashes, size - _SAMPLED) is None:
                return None
        found = cls._of_hashes(_hashes(X, targets), n // 2)
        if found and all(
            kernel.are_equal(*part, *found) for part in _parts(X, targets)
        ):
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


def _hashes(X: Any, targets: list[Any]) -> Any:
    """Return hashes of rows with their targets."""
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    for part in _parts(X, targets):
        kernel.add_to_hashes(*part, hashes)
    return hashes


def _parts(X: Any, targets: list[Any]) -> Iterator[tuple[Any, Any, int]]:
    """Yield bytes of the entries of rows, bounds of the rows, and bytes of an entry."""
    if sparse.issparse(X):
        for entries in (X.indices, X.data):
            yield entries.view(np.uint8), X.indptr, entries.itemsize
    else:
        # Columns that are contiguous are read as they are, without a copy of X.
        targets = [*targets, *(X.T if X.flags.f_contiguous else [X])]
    for each in map(np.ascontiguousarray, targets):
        bounds = np.arange(len(each) + 1) * math.prod(each.shape[1:])
        yield each.reshape(-1).view(np.uint8), bounds, each.itemsize
