"""Squared loss of several scores per row, with a metric."""

from __future__ import annotations

import numpy as np

from .. import lapack
from ..rounding import ROUNDED, TINY, rounding
from ._base import Derivatives, Floats, Rows
from ._curvature import Curvature
from ._loss import Loss


class MultivariateSquared(Loss):
    """Multivariate regression (z - y)ᵀ M (z - y) / 2, scores of shape (n, k) (Table 6).

    Parameters
    ----------
    metric : ndarray of shape (k, k)
        M, symmetric and positive semidefinite.
    """

    analytic = True
    quadratic = True
    joint = True

    def __init__(self, metric: Floats) -> None:
        self._M = metric
        values, vectors = lapack.eigh(metric)
        used = values > ROUNDED * values.max(initial=0.0)
        # M⁺ is the sum of v vᵀ / lambda over these eigenpairs.
        self._values, self._vectors = values[used], vectors[:, used]

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = scores - targets
        return 0.5 * float(weights @ np.einsum("ik,ik->i", r @ self._M, r))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return s_i M (z_i - y_i)."""
        return weights[:, np.newaxis] * ((scores - targets) @ self._M)

    def curvature_radius(self, scores: Floats, targets: Floats) -> Floats:
        """Return infinity: second derivatives are constant."""
        return np.full(len(scores), np.inf)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return <u, y> + sum_i u_iᵀ M⁺ u_i / (2 s_i), for u in the range of M."""
        half = 0.5 * float(self._squares(dual, weights) @ (1.0 / self._values))
        return float(np.vdot(dual, targets)) + half

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the sum of absolute terms of R*(u)."""
        uncertain = self._values.max(initial=0.0) / np.square(self._values)
        size = float(np.vdot(np.abs(dual), np.abs(targets)))
        return size + float(self._squares(dual, weights) @ uncertain)

    def _squares(self, dual: Floats, weights: Floats) -> Floats:
        """Return for each axis of M the sum over rows of (u / root of s)²."""
        parts = dual @ self._vectors
        parts *= parts
        squares: Floats = (1.0 / np.maximum(weights, TINY)) @ parts
        return squares

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of the component of u orthogonal to the range of M."""
        rest = dual - (dual @ self._vectors) @ self._vectors.T
        squares = np.square(rest).sum(axis=1) / np.maximum(weights, TINY)
        return float(np.sqrt(squares.sum()))

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the relative change of u and R* by the shift that balances u."""
        if not sums.any():
            return 0.0
        squares = np.square(dual).sum(axis=1) / np.maximum(weights, TINY)
        share = float(np.linalg.norm(sums)) / float(np.sqrt(squares.sum()))
        height = float(np.abs(sums) @ np.abs(weights @ targets))
        size = float(np.vdot(np.abs(dual), np.abs(targets)))
        return max(share, height / size if size else share)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        spread = centered(targets, weights) @ self._M
        return float(weights @ np.abs(spread).sum(axis=1))

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u with column sums of zero, after an equal shift of residuals."""
        return dual - np.multiply.outer(weights, dual.sum(axis=0))

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> ConstantCurvature:
        return ConstantCurvature(self._M, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        weighted = weights[:, np.newaxis] * (dscores @ self._M)
        slope = float(np.vdot(weighted, scores - targets))
        curvature = float(np.vdot(weighted, dscores))
        return lambda step: (slope + step * curvature, curvature)


class ConstantCurvature(Curvature):
    """The matrices s_i M, for weights s_i of the rows and one k x k matrix M.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)
    weights : ndarray of shape (n,)
    """

    def __init__(self, matrix: Floats, weights: Floats) -> None:
        self._M, self._weights = matrix, weights

    def take(self, rows: Rows | slice) -> ConstantCurvature:
        return ConstantCurvature(self._M, self._weights[rows])

    def apply(self, dscores: Floats) -> Floats:
        return self._weights[:, np.newaxis] * (dscores @ self._M)

    def diagonal(self) -> Floats:
        return np.multiply.outer(self._weights, self._M.diagonal())

    def product(self) -> tuple[Floats, Floats]:
        return self._weights, self._M

    def total(self) -> Floats:
        return float(self._weights.sum()) * self._M

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        gram = X.T @ (self._weights[rows, np.newaxis] * X)
        for j, row in enumerate(self._M):
            for m in range(j, len(row)):
                out[j, m] += row[m] * gram


def centered(targets: Floats, weights: Floats) -> Floats:
    """Return targets minus their mean, unless differences are rounding errors."""
    centered = targets - weights @ targets / weights.sum()
    slack = rounding(len(targets)) * np.abs(targets).max(initial=0.0)
    return centered if np.abs(centered).max(initial=0.0) > slack else targets
