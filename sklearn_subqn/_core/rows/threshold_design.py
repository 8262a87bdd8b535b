"""The linear map of ordinal regression: one score minus each of several thresholds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..losses._base import Floats, Rows, total_of_rows
from .design import Design


class ThresholdDesign(Design):
    """Linear map (w, b) -> z of shape (n, m), z_ik = <x_i, w> + b_k.

    The intercepts b are the negative thresholds. They come last among the parameters,
    as in other designs.

    Parameters
    ----------
    X : ndarray, CSR matrix or CSR array of shape (n, d)
        Data, see ``Design``.
    n_thresholds : int
        m.
    n_threads, pool, parent
        See ``Design``.
    """

    shares_coef = True

    def __init__(
        self,
        X: Any,
        n_thresholds: int,
        *,
        n_threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
        parent: Design | None = None,
    ) -> None:
        super().__init__(
            X, fit_intercept=False, n_threads=n_threads, pool=pool, parent=parent
        )
        self.n_outputs = self.n_thresholds = n_thresholds
        self.n_params = self.n_coef + n_thresholds

    def forward(self, w: Floats) -> Floats:
        return super().forward(w)[:, np.newaxis] + w[self.n_coef :]

    def adjoint(self, dual: Floats) -> Floats:
        v = super().adjoint(dual.sum(axis=1))
        v[self.n_coef :] = total_of_rows(dual)
        return v

    def _like(self, X: Any, parent: Design | None) -> ThresholdDesign:
        return ThresholdDesign(
            X,
            self.n_thresholds,
            n_threads=self._n_threads,
            pool=self._pool,
            parent=parent,
        )

    def of_features(self, columns: Rows, fit_intercept: bool) -> Design:
        """Return the design of a subset of the features, with all thresholds."""
        return self._like(super().of_features(columns, fit_intercept=False).X, None)

    def gram(self, weights: Floats) -> Floats:
        """Return the q x q matrix for weights of shape (n, m), one for each score."""
        d = self.n_coef
        total = super().gram(weights.sum(axis=1))
        self.passes += 1.0
        total[:d, d:] = self.products_of_columns(weights)
        total[d:, :d] = total[:d, d:].T
        total[d:, d:] = np.diag(weights.sum(axis=0))
        return total

    def gram_of(self, curvature: Any) -> Floats:
        """Return the q x q matrix for a symmetric matrix over the scores of each row.

        Coefficients change all scores of a row alike, so that only the block of the
        intercepts depends on more than the sums of the matrices' rows.
        """
        matrix = self.gram(curvature.apply(np.ones((self.n_rows, self.n_thresholds))))
        matrix[self.n_coef :, self.n_coef :] = curvature.total()
        return matrix

    def squared_adjoint(self, weights: Floats) -> Floats:
        diagonal = super().squared_adjoint(weights.sum(axis=1))
        diagonal[self.n_coef :] = weights.sum(axis=0)
        return diagonal

    def mean_squares(self, weights: Floats) -> Floats:
        """Return weighted mean squares of the columns, summed over the scores."""
        squares = super().squared_adjoint(self.n_thresholds * weights)
        squares[self.n_coef :] = 1.0
        return squares

    def split(self, w: Floats) -> tuple[Floats, Floats]:
        """Return views of w: coefficients (d,) and intercepts (m,)."""
        return w[: self.n_coef], w[self.n_coef :]
