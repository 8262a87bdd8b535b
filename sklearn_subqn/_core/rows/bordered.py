"""Symmetric matrices with a diagonal block, such as Gram matrices of categories.

Products of two columns vanish if no row has entries in both. The Gram matrix of such
columns is diagonal, and eliminating them leaves a system of the other columns. This is
the theorem of Frisch and Waugh (1933), by which fixed effects are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..losses._base import Floats, Rows
from .row_views import row_view

# For most data, the first 1000 rows suffice to detect that no columns form a category.
_FIRST_ROWS = 1000


class Bordered(NamedTuple):
    """A matrix [[D, Bᵀ], [B, C]] with a diagonal block D, in any order of parameters.

    Attributes
    ----------
    own, others : ndarray of int, of shapes (m,) and (p,)
        Parameters of D, and of C.
    diagonal : ndarray of shape (m,)
    border : csr_array or ndarray of shape (p, m)
        B.
    core : ndarray of shape (p, p)
        C.
    """

    own: Rows
    others: Rows
    diagonal: Floats
    border: Any
    core: Floats

    @classmethod
    def unsplit(cls, matrix: Floats) -> Bordered:
        """Return a matrix without a diagonal block."""
        none, q = np.arange(0), len(matrix)
        # A dense array is used because an empty sparse array takes most of the time of
        # small systems.
        return cls(none, np.arange(q), np.zeros(0), np.zeros((q, 0)), matrix)

    def plus(self, diagonal: Floats) -> Bordered:
        """Return the sum with a diagonal matrix."""
        core = self.core.copy()
        core[np.diag_indices_from(core)] += diagonal[self.others]
        own = self.diagonal + diagonal[self.own]
        return self._replace(diagonal=own, core=core)

    @property
    def divisors(self) -> Floats:
        """D, with ones for columns without entries."""
        return np.where(self.diagonal == 0.0, 1.0, self.diagonal)

    def complement(self) -> Floats:
        """Return the Schur complement C - B D⁻¹ Bᵀ, of shape (p, p)."""
        if not len(self.own):
            return self.core.copy()
        scaled = self.border @ sparse.diags_array(1.0 / self.divisors)
        complement: Floats = self.core - (scaled @ self.border.T).toarray()
        return complement

    def reduced(self, v: Floats) -> Floats:
        """Return [-B D⁻¹, I] v for v of shape (q,) or (q, k)."""
        own = (v[self.own].T / self.divisors).T
        reduced: Floats = v[self.others] - self.border @ own
        return reduced

    def extended(self, v: Floats) -> Floats:
        """Return [-D⁻¹ Bᵀ; I] v for v of shape (p,) or (p, k)."""
        full = np.empty((len(self.own) + len(self.others), *v.shape[1:]))
        full[self.own] = -((self.border.T @ v).T / self.divisors).T
        full[self.others] = v
        return full

    def solution(
        self, operator: Callable[[Floats], Callable[[Floats], Floats]], rhs: Floats
    ) -> Floats:
        """Return the solution p of a system.

        Parameters
        ----------
        operator : callable
            Returns the function that solves systems with a matrix, which may be
            overwritten.
        rhs : ndarray of shape (q,)
        """
        p = self.extended(operator(self.complement())(self.reduced(rhs)))
        p[self.own] += rhs[self.own] / self.divisors
        return p


def largest_category(X: Any) -> Rows:
    """Return adjacent columns of a CSR array with at most one entry in every row.

    The result is the longest run of such columns if it has most of the columns, else
    empty. Column indices ascend in each row.
    """
    n, d = X.shape
    starts, start, stop = np.arange(d), 0, 0
    if not d:
        return starts
    for rows in (slice(0, min(n, _FIRST_ROWS)), slice(0, n)):
        some = row_view(X, rows)
        # For each entry, the column of the previous entry in its row, or -1. A run that
        # contains both columns has two entries in this row, so it is invalid.
        last = np.full(some.nnz + 1, -1, some.indices.dtype)
        last[1:] = some.indices
        last[some.indptr] = -1
        before = np.full(d, -1, some.indices.dtype)
        np.maximum.at(before, some.indices, last[:-1])
        stops = np.searchsorted(np.maximum.accumulate(before), starts)
        start = int(np.argmax(stops - starts))
        stop = int(stops[start])
        if 2 * (stop - start) <= d:
            return starts[:0]
    return starts[start:stop]
