"""Second derivatives of losses: for each row a matrix over its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from .. import lapack
from ..memory import BLOCK_SIZE
from ..rounding import ROUNDED
from ._base import Floats, Rows, total_of_rows


def crossed_by_columns(
    design: Any, rows: Rows, width: int, product: Callable[[Floats], Floats]
) -> Floats:
    """Return Xᵀ C X, by blocks of columns.

    Parameters
    ----------
    design : Design
    rows : ndarray of shape (m,)
        The rows of C that are not zero.
    width : int
        Number of columns in a block.
    product : callable
        Returns these rows of the product of C with columns of X.
    """
    d, height = design.n_features, max(1, BLOCK_SIZE // max(design.n_features, 1))
    matrix = np.zeros((d, d))
    for a in range(0, d, width):
        columns = slice(a, min(a + width, d))
        part = np.ascontiguousarray(design.dense_columns(columns), dtype=np.float64)
        sums = product(part)
        for start in range(0, len(rows), height):
            some = slice(start, start + height)
            matrix[:, columns] += design.rows(rows[some]).X.T @ sums[some]
    return matrix


class Curvature(ABC):
    """Second derivatives R''(z): for each row a symmetric k x k matrix over its scores.

    Their shape is the shape of the scores, (n,) for one score per row. All classes
    define ``take``, ``apply``, ``diagonal`` and ``total``. Classes for several scores
    per row may also define ``add_gram`` for Newton directions by factorization, and
    ``rank_one`` for quadratic models.

    Attributes
    ----------
    by_rows : bool
        Whether R'' is block diagonal, with a matrix for each row. Otherwise R'' is
        diag(a) - C - Cᵀ, where ``diagonal`` returns a and ``crossed`` returns Xᵀ C X.
    has_entries : bool
        Whether entries are known, and not only products with vectors.
    """

    by_rows: bool = True
    has_entries: bool = True

    def rows(self) -> Rows:
        """Return the rows whose matrix is not zero."""
        nonzero = self.diagonal() != 0.0
        return np.flatnonzero(nonzero.any(axis=1) if nonzero.ndim == 2 else nonzero)

    @abstractmethod
    def take(self, rows: Rows | slice) -> Curvature:
        """Return the matrices of the given rows."""

    @abstractmethod
    def apply(self, dscores: Floats) -> Floats:
        """Return R''(z) dz for dz = ``dscores``, which may be overwritten."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the diagonals, of the shape of the scores."""

    @abstractmethod
    def total(self) -> Floats:
        """Return the sum of the matrices, of shape (k, k)."""

    def centered(self) -> Floats | None:
        """Return a of shape (n, k) if the matrices are diag(a) - a aᵀ / sum(a)."""
        return None

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        """Add the Kronecker products M_i (x) x_i x_iᵀ over a slice of the rows.

        X of shape (m, d) has these rows only. ``out`` has shape (k, k, d, d), and the
        products are added to its blocks j <= l.
        """
        raise TypeError(f"{type(self).__name__} makes no Gram matrices.")

    @property
    def rank(self) -> int:
        """An upper bound of the rank: the sum of the ranks of the matrices."""
        return int(np.count_nonzero(self.diagonal()))

    def roots(self) -> tuple[Rows, Floats]:
        """Return rows i and vectors v of shape (m, k): each matrix is a sum of v vᵀ."""
        raise TypeError(f"{type(self).__name__} has no roots.")

    def crossed(self, design: Any) -> Floats:
        """Return Xᵀ C X for the X of a design."""
        raise TypeError(f"{type(self).__name__} couples no rows.")

    def product(self) -> tuple[Floats, Floats] | None:
        """Return h of shape (n,) and M if the matrices are h_i M."""
        return None

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        """Return a, s and p of matrices diag(a_i) - s_i p_i p_iᵀ.

        Their shapes are (n, k), (n,) and (n, k); the rows of p sum to one, and
        a = s p.
        """
        raise TypeError(f"{type(self).__name__} is not of this form.")


class CoupledCurvature(Curvature):
    """Second derivatives of functions of differences between scores of rows."""

    by_rows = False

    def take(self, rows: Rows | slice) -> Curvature:
        raise TypeError(f"{type(self).__name__} couples rows, which are not separable.")

    def total(self) -> Floats:
        """Return zero, since only differences of scores have an effect."""
        return np.zeros((1, 1))


class DiagonalCurvature(Curvature):
    """Second derivatives with diagonal matrices; h has the shape of the scores."""

    def __init__(self, h: Floats) -> None:
        self._h = h

    def take(self, rows: Rows | slice) -> DiagonalCurvature:
        return DiagonalCurvature(self._h[rows])

    def apply(self, dscores: Floats) -> Floats:
        return self._h * dscores

    def diagonal(self) -> Floats:
        return self._h

    def total(self) -> Floats:
        return np.diag(np.atleast_1d(self._h.sum(axis=0)))

    def roots(self) -> tuple[Rows, Floats]:
        """Return rows and roots, for one score per row."""
        rows = np.flatnonzero(self._h)
        return rows, np.sqrt(self._h[rows])[:, np.newaxis]


class MatrixCurvature(Curvature):
    """Second derivatives by their matrices, of shape (n, k, k)."""

    def __init__(self, matrices: Floats) -> None:
        self._matrices = matrices

    def take(self, rows: Rows | slice) -> MatrixCurvature:
        return MatrixCurvature(self._matrices[rows])

    def apply(self, dscores: Floats) -> Floats:
        product: Floats = np.einsum("ijl,il->ij", self._matrices, dscores)
        return product

    def diagonal(self) -> Floats:
        return np.einsum("ijj->ij", self._matrices)

    def total(self) -> Floats:
        return np.asarray(total_of_rows(self._matrices))

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        matrices = self._matrices[rows]
        for j in range(len(out)):
            for k in range(j, len(out)):
                out[j, k] += X.T @ (matrices[:, j, k, np.newaxis] * X)


class CurvatureByProducts(Curvature):
    """The Hessian of a function of q parameters, given by its products only.

    The diagonal is replaced by ones, so conjugate gradients have no preconditioner.
    """

    by_rows = has_entries = False

    def __init__(self, product: Callable[[Floats], Floats], n_params: int) -> None:
        self._product, self._n_params = product, n_params

    def take(self, rows: Rows | slice) -> Curvature:
        raise TypeError("The Hessian of a function couples all parameters.")

    def apply(self, dscores: Floats) -> Floats:
        return self._product(dscores)

    def diagonal(self) -> Floats:
        return np.ones(self._n_params)

    def total(self) -> Floats:
        raise TypeError("The entries of the Hessian are not known.")


class Entries(NamedTuple):
    """Entries on and above the diagonal of matrices of rows, of shape (k, k)."""

    rows: Rows
    pairs: Rows
    """j * k + l, for j <= l."""
    values: Floats


class CurvatureByEntries(Curvature):
    """Second derivatives whose matrices have few nonzero entries."""

    @abstractmethod
    def take(self, rows: Rows | slice) -> CurvatureByEntries:
        """Return the matrices of the given rows."""

    @abstractmethod
    def entries(self, first: int, out: Entries) -> tuple[int, int]:
        """Write entries of the matrices, from row ``first`` until ``out`` is full.

        Returns
        -------
        row, count : int
            The first row that was not written, and the number of entries written.
        """

    @property
    def rank(self) -> int:
        used = self.diagonal() != 0.0
        # The rank of a centered k x k matrix is at most k - 1.
        centered = self.centered() is not None
        return int(used.sum()) - centered * int(used.any(axis=1).sum())

    def roots(self) -> tuple[Rows, Floats]:
        used = self.diagonal() != 0.0
        k = used.shape[1]
        place, sizes = used.cumsum(axis=1) - 1, used.sum(axis=1)
        rows, roots = [], []
        for size in np.unique(sizes[sizes > 0]):
            some = np.flatnonzero(sizes == size)
            matrices = np.zeros((len(some), size, size))
            for i, pairs, values in self.take(some)._pieces(len(some), k):
                j, m = np.divmod(pairs, k)
                matrices[i, place[some[i], m], place[some[i], j]] = values
            squares, vectors = lapack.eigh(matrices)
            i, a = np.nonzero(squares > ROUNDED * squares[:, -1:])
            root = np.zeros((len(i), k))
            labels = np.nonzero(used[some])[1].reshape(-1, size)
            root[np.arange(len(i))[:, np.newaxis], labels[i]] = (
                np.sqrt(squares[i, a])[:, np.newaxis] * vectors[i, :, a]
            )
            rows.append(some[i])
            roots.append(root)
        if not rows:
            return np.empty(0, dtype=np.intp), np.empty((0, k))
        return np.concatenate(rows), np.concatenate(roots)

    def _pieces(self, n: int, k: int) -> Iterator[Entries]:
        size = max(BLOCK_SIZE, k * (k + 1) // 2)
        entries = Entries(
            np.empty(size, dtype=np.intp), np.empty(size, dtype=np.intp), np.empty(size)
        )
        first = 0
        while first < n:
            first, count = self.entries(first, entries)
            rows, pairs, values = entries
            yield Entries(rows[:count], pairs[:count], values[:count])

    def total(self) -> Floats:
        n, k = self.diagonal().shape
        total = np.zeros(k * k)
        for entries in self._pieces(n, k):
            total += np.bincount(entries.pairs, entries.values, minlength=k * k)
        upper = total.reshape(k, k)
        return upper + np.triu(upper, 1).T

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        k = len(out)
        for entries in self.take(rows)._pieces(len(X), k):
            order = np.argsort(entries.pairs, kind="stable")
            pairs, first = np.unique(entries.pairs[order], return_index=True)
            bounds = pairwise([*first, len(order)])
            for pair, (start, stop) in zip(pairs, bounds, strict=True):
                part = order[start:stop]
                x = X[entries.rows[part]]
                scaled = entries.values[part, np.newaxis] * x
                block = out[pair // k, pair % k].T
                blas.dgemm(1.0, x.T, scaled.T, 1.0, block, 0, 1, overwrite_c=1)


def as_curvature(given: Any, scores: Floats, name: str) -> Curvature:
    """Return second derivatives as a ``Curvature``; they may be given as an array.

    Parameters
    ----------
    given : Curvature or array-like
        An array has the shape (n,) or (n, k) of the scores if matrices are diagonal, or
        else (n, k, k).
    scores : ndarray of shape (n,) or (n, k)
    name : str
        Name of the loss, for messages.

    Raises
    ------
    TypeError, ValueError
        If it is not an array of real and finite numbers of such a shape, or if
        diagonals have negative entries, so that the loss is not convex.
    """
    if isinstance(given, Curvature):
        return given
    h = np.asarray(given)
    if h.dtype.kind not in "fiu":
        raise TypeError(
            f"{name}.curvature must return an array of real numbers, got "
            f"{type(given).__name__}."
        )
    several = (*scores.shape, scores.shape[-1]) if scores.ndim == 2 else None
    if h.shape not in (scores.shape, several):
        shapes = str(scores.shape) + (f" or {several}" if several else "")
        raise ValueError(
            f"{name}.curvature must return second derivatives of shape {shapes}, got "
            f"shape {h.shape}."
        )
    h = h.astype(np.float64)
    found = DiagonalCurvature(h) if h.ndim == scores.ndim else MatrixCurvature(h)
    diagonal = found.diagonal()
    if not np.isfinite(h).all() or diagonal.min(initial=0.0) < 0.0:
        raise ValueError(
            f"{name}.curvature must return finite second derivatives that are not "
            f"negative, got {np.nanmin(diagonal):g} as the smallest"
            + ("." if np.isfinite(h).all() else ", and some that are not finite.")
        )
    return found
