"""Coordinate descent on columns, for one score per row and for several."""

from __future__ import annotations

import numpy as np

from ..kernels import coordinate_descent, products
from ..losses._base import Floats, Mask, Rows
from ..losses._curvature import Curvature
from ..rows.column_maps import ColumnMap, Copied
from ..rows.columns import MatrixColumns
from .column_descent import ByColumns, Face


class ColumnStep(ByColumns):
    """Coordinate descent on columns, for one score per row.

    With second derivatives h of the loss by scores, H = AᵀA for the columns A of
    diag(√h) X. Rows with the smallest h are left out, since their contribution to H is
    negligible.

    Parameters
    ----------
    columns : MatrixColumns
        Columns of X, of shape (n, m).
    h : ndarray of shape (n,)
    needed : ndarray of bool of shape (m,)
        Columns whose coefficients are likely to change. Rows are left out only if they
        contribute little to the squared norms of these columns.
    negligible : float
        Largest share of the sum of h in rows that are left out. l1, l2, n_free
        As in ``ByColumns``.
    """

    def __init__(
        self,
        columns: MatrixColumns,
        h: Floats,
        needed: Mask,
        negligible: float,
        l1: float,
        l2: float,
        n_free: int,
    ) -> None:
        roots = np.sqrt(h)
        self._columns = columns
        self._n_rows = len(h)
        self._likely = needed
        self._kept = without_smallest(h, negligible)
        self._arrays, (squares, lost) = columns.scaled(roots, self._kept)
        losing = np.flatnonzero(needed & (lost > squares))
        if len(losing):
            indptr, indices, _ = columns.arrays
            for j in columns.positions[losing]:
                self._kept[indices[indptr[j] : indptr[j + 1]]] = True
            self._arrays, (squares, _) = columns.scaled(roots, self._kept)
        self._roots = roots[self._kept, np.newaxis]
        free = np.full(n_free, np.vdot(self._roots, self._roots))
        diagonal = np.concatenate([squares, free])[:, np.newaxis]
        super().__init__(diagonal, l1, l2, n_free)

    def change_of_dual(self) -> Floats:
        change = np.zeros(self._n_rows)
        change[self._kept] = (self._roots * self.image)[:, 0]
        return change

    def _sweep(self, which: Rows, gradient: Floats, v: Floats, image: Floats) -> float:
        violation = 0.0
        if self._n_free:
            slope = float(gradient[-1, 0] + np.vdot(self._roots, image))
            total = float(self._diagonal[-1, 0])
            step = -slope / total if total > 0.0 else 0.0
            v[-1, 0] += step
            image += step * self._roots
            violation = abs(slope)
        coef = v[which, 0]
        worst = coordinate_descent.sweep_columns(
            *self._arrays,
            which,
            image[:, 0],
            gradient[which, 0],
            self._diagonal[which, 0],
            coef,
            self._l1,
            self._l2,
        )
        v[which, 0] = coef
        return max(violation, worst)

    def _no_image(self) -> Floats:
        return np.zeros_like(self._roots)

    def _face(self, used: Rows) -> Face:
        """Return the columns whose coefficients are or may become nonzero."""
        inside = self._likely.copy()
        inside[used] = True
        return super()._face(np.flatnonzero(inside))

    def _take(self, which: Rows) -> ColumnMap:
        return self._columns.in_place(self._arrays, which, len(self._roots))

    def _scores(self, columns: ColumnMap, x: Floats) -> Floats:
        """Return scores times √h, in the units of the scaled columns."""
        z = columns.forward(x[: len(x) - self._n_free, 0])[:, np.newaxis]
        if self._n_free:
            z += x[-1] * self._roots
        return z

    def _image(self, scores: Floats) -> Floats:
        return scores

    def _adjoint(self, columns: ColumnMap, image: Floats) -> Floats:
        slopes = columns.adjoint(image[:, 0])
        if self._n_free:
            slopes = np.append(slopes, np.vdot(self._roots, image))
        return slopes[:, np.newaxis]


class BlockStep(ByColumns):
    """Coordinate descent on columns for several scores per row, updated jointly.

    Parameters
    ----------
    columns : MatrixColumns
        Columns of X, of shape (n, m).
    curvature : Curvature
    added : ndarray of the shape of the scores
        Damping that is added to the diagonals of the curvature. l1, l2, n_free
        As in ``ByColumns``.
    """

    # Sweeps make short steps for several scores, because all scores of a feature are
    # updated jointly.
    _n_steps, _times = 60, 2

    def __init__(
        self,
        columns: MatrixColumns,
        curvature: Curvature,
        added: Floats,
        l1: float,
        l2: float,
        n_free: int,
    ) -> None:
        self._columns = columns
        self._curvature = curvature
        self._added = added
        a, s, p = curvature.rank_one()
        self._matrices: tuple[Floats, Floats, Floats] = a + added, s, p
        # The absolute off-diagonal entries of a row sum to at most its diagonal entry.
        bounds = 2.0 * (curvature.diagonal() + added)
        self._bounds = np.empty((len(columns.positions) + n_free, bounds.shape[1]))
        self._arrays = columns.arrays
        m = len(columns.positions)
        products.squares(*self._arrays, columns.positions, bounds, self._bounds[:m])
        self._bounds[m:] = bounds.sum(axis=0)
        super().__init__(0.5 * self._bounds, l1, l2, n_free)

    def change_of_dual(self) -> Floats:
        return self.image

    def _sweep(self, which: Rows, gradient: Floats, v: Floats, image: Floats) -> float:
        coef = v[which]
        violation = coordinate_descent.sweep_blocks(
            *self._arrays,
            self._columns.positions[which],
            *self._matrices,
            image,
            gradient[which],
            self._bounds[which],
            coef,
            self._l1,
            self._l2,
            # The arguments are views, because the kernel writes into the last one.
            gradient[self._m :].ravel(),
            self._bounds[self._m :].ravel(),
            v[self._m :].ravel(),
        )
        v[which] = coef
        return float(violation)

    def _no_image(self) -> Floats:
        return np.zeros_like(self._added)

    def _take(self, which: Rows) -> Copied:
        return Copied(self._columns.take(which))

    def _scores(self, columns: ColumnMap, x: Floats) -> Floats:
        m = len(x) - self._n_free
        z = columns.forward(x[:m])
        z += x[m:].sum(axis=0)
        return z

    def _image(self, scores: Floats) -> Floats:
        image = self._added * scores
        image += self._curvature.apply(scores.copy())
        return image

    def _adjoint(self, columns: ColumnMap, image: Floats) -> Floats:
        totals = np.repeat(image.sum(axis=0)[np.newaxis], self._n_free, axis=0)
        return np.concatenate([columns.adjoint(image), totals])


def without_smallest(h: Floats, share: float) -> Mask:
    """Return a mask without the smallest entries, given their share of the sum."""
    smallest_first = np.sort(h)
    total = np.cumsum(smallest_first)
    n = int(np.searchsorted(total, share * total[-1]))
    return np.asarray(h >= smallest_first[min(n, len(h) - 1)])
