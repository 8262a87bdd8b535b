"""Second derivatives of the risk of rows with respect to parameters."""

from __future__ import annotations

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature
from ..places.parts import summed
from ..rows.bordered import Bordered
from ..rows.design import Design

# If at most 0.6 of the rows have nonzero second derivatives, these rows are copied.
# docs/constants.md has the figures.
_COPY_SHARE = 0.6


class RiskHessian:
    """Xᵀ H X for second derivatives H, computed from the rows where H is nonzero.

    Parameters
    ----------
    design : Design
    curvature : Curvature

    Attributes
    ----------
    n_rows : int
        Number of rows with nonzero second derivatives.
    has_rows : bool
        Whether ``row_system`` is available: second derivatives couple no rows and have
        known roots, and rows are not divided into parts.
    """

    def __init__(self, design: Design, curvature: Curvature) -> None:
        rows = curvature.rows()
        self.n_rows = rows.size
        by_rows = curvature.by_rows
        self.has_rows = by_rows and type(curvature).roots is not Curvature.roots
        self._whole, self._of_all = design, curvature
        # A copy of most rows saves no time.
        self._rows = None
        if by_rows and rows.size <= _COPY_SHARE * design.n_rows:
            curvature = curvature.take(rows)
            self._rows = rows
        self._curvature = curvature

    def number_of_rows(self) -> int:
        """Return ``n_rows``."""
        return self.n_rows

    @cached_property
    def _subset(self) -> Design:
        return self._whole if self._rows is None else self._whole.rows(self._rows)

    @summed
    def apply(self, v: Floats) -> Floats:
        """Return the product with v of shape (q,)."""
        subset, curvature = self._subset, self._curvature
        if curvature.by_rows and subset.is_plain:
            product = subset.through(
                v, lambda rows, scores: curvature.take(rows).apply(scores)
            )
        else:
            product = subset.adjoint(curvature.apply(subset.forward(v)))
        self._count(subset, 2.0)
        return product

    @summed
    def diagonal(self) -> Floats:
        """Return the diagonal, of shape (q,)."""
        diagonal = self._subset.squared_adjoint(self._curvature.diagonal())
        self._count(self._subset, 1.0)
        return diagonal

    @summed
    def column_of_intercept(self) -> Floats:
        """Return the last column, of shape (q,), for one score per row."""
        subset = self._subset
        column = subset.adjoint(self._curvature.apply(np.ones(subset.n_rows)))
        self._count(subset, 1.0)
        return column

    @summed
    def matrix(self, features: Rows | None = None) -> Floats:
        """Return the matrix of some features and of intercepts; default all, (q, q)."""
        subset, curvature = self._whole, self._of_all
        if features is not None:
            own = subset.of_features(features, fit_intercept=subset.fit_intercept)
            # Rows that are not in memory are read whole.
            read = len(features) / subset.n_features if subset.holds_rows else 1.0
            subset.passes += read
            return RiskHessian(own, curvature).matrix()
        if self._rows is not None and not subset.multiplies_pairs:
            subset, curvature = subset.rows(self._rows, copy=False), self._curvature
        if not curvature.by_rows:
            matrix = subset.coupled_gram(curvature)
        elif not subset.several_scores or subset.shares_coef:
            matrix = subset.gram_of(curvature)
        else:
            matrix = subset.block_gram(curvature.add_gram)
        self._count(subset, 1.0)
        return matrix

    def bordered(self) -> Bordered:
        """Return the whole matrix, with the block of a category as its diagonal.

        For one score per row, and rows that are not divided into parts.
        """
        return self._whole.bordered_gram(self._of_all.diagonal())

    @summed
    def triangle(self, features: Rows | None) -> Floats:
        """Return the lower triangle of ``matrix``, row by row."""
        matrix = self.matrix(features)
        return matrix[np.tril_indices(len(matrix))]

    @summed
    def class_sums(self) -> Floats:
        """Return the sums over rows of the diagonals of H, one sum for each score."""
        sums: Floats = self._curvature.diagonal().sum(axis=0)
        return sums

    @property
    def rank(self) -> int:
        """An upper bound of the rank of R'', at most n_rows * n_scores."""
        return self._curvature.rank

    @cached_property
    def _roots(self) -> tuple[Rows, Floats]:
        return self._curvature.roots()

    def row_system(self) -> tuple[Floats, Floats]:
        """Return V and U Uᵀ, where R'' is Uᵀ U.

        Each row of U is the Kronecker product of a row v of V, of shape (m, k), and the
        features of a row of X. The second derivatives of a row of X are the sum of v vᵀ
        over its rows v of V.
        """
        rows, roots = self._roots
        own, place = np.unique(rows, return_inverse=True)
        system = self._whole.row_gram(own if self._rows is None else self._rows[own])
        if not np.array_equal(own, rows):
            system = system[np.ix_(place, place)]
        system *= roots @ roots.T
        return roots, system

    def forward(self, v: Floats) -> Floats:
        """Return U v for v of shape (q,), with V for the intercepts."""
        rows, roots = self._roots
        scores = self._subset.forward(v)
        scores = scores.reshape(len(scores), -1)
        self._count(self._subset, 1.0)
        return np.einsum("ij,ij->i", roots, scores[rows])

    def adjoint(self, t: Floats) -> Floats:
        """Return Uᵀ t."""
        rows, roots = self._roots
        dual = self._subset.zero_scores()
        np.add.at(dual.reshape(len(dual), -1), rows, t[:, np.newaxis] * roots)
        self._count(self._subset, 1.0)
        return self._subset.adjoint(dual)

    def _count(self, subset: Design, products: float) -> None:
        if subset is not self._whole:
            self._whole.count(subset, products)
