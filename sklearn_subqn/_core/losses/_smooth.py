"""Smooth losses of one score per row, and least squares of several.

Squares, Huber's loss and Poisson's of regression, and the exponential loss of
classification (Teo et al. 2010, Tables 5 and 6).
"""

from __future__ import annotations

import numpy as np

from ._base import (
    Curvature,
    Derivatives,
    DiagonalCurvature,
    Floats,
    Intervals,
    Loss,
    Mask,
    Rows,
)
from ._residual import ResidualLoss

# The exponential function goes on as its tangent beyond this number: nothing overflows
# on the way. Being below it, it proves the same bounds. Minimizers that lie there, as
# of counts beyond its exponential, are refused.
_STEEPEST = 50.0

# Numbers that differ by less than this share of the largest are the same.
_ROUNDING = 1e-14

# Means of counts below zero by this share of the targets are so by rounding.
_NEGATIVE = 4.0 * float(np.finfo(float).eps)

# Residuals this near to Huber's threshold, relative to it, lie on it.
_EDGE = 1e-9


class Squared(Loss):
    """Half the squared residual, (z - y)² / 2."""

    smooth = True
    analytic = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = targets - scores
        return 0.5 * float(weights @ (r * r))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * (scores - targets)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return infinity: second derivatives are the same everywhere."""
        return np.full(len(scores), np.inf)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + sum_i u_i² / (2 s_i)."""
        return float(dual @ targets) + _half_squares(dual, weights)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.ones(len(weights), dtype=bool)

    def rowwise_dual(self, targets: Floats) -> Intervals:
        infinite = np.full(targets.shape, np.inf)
        return Intervals(targets, -infinite, infinite, 1.0)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ np.abs(_centered(targets, weights)))

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Shift all residuals alike."""
        return dual - weights * float(dual.sum())

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        return DiagonalCurvature(weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        weighted = weights * dscores
        slope = float(weighted @ (scores - targets))
        curvature = float(weighted @ dscores)
        return lambda step: (slope + step * curvature, curvature)


class Huber(Loss):
    """Huber's loss: r² / 2 for |r| <= delta, else delta |r| - delta² / 2.

    Parameters
    ----------
    delta : float
        Positive; one in Table 5.
    """

    smooth = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = np.abs(targets - scores)
        bounded = np.minimum(r, self.delta)
        return float(weights @ (bounded * (r - 0.5 * bounded)))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * np.clip(scores - targets, -self.delta, self.delta)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + sum_i u_i² / (2 s_i), finite for |u| <= delta s."""
        return float(dual @ targets) + _half_squares(dual, weights)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.asarray(np.abs(dual) <= self.delta * weights)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return the residuals: a parabola above the loss has its minimizer there."""
        return np.abs(targets - scores)

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self.delta

    def from_afar(self) -> tuple[Loss, float]:
        """Return the absolute loss times delta, larger by delta² / 2 at most."""
        return ResidualLoss(-self.delta, self.delta), 0.5 * self.delta**2

    def rowwise_dual(self, targets: Floats) -> Intervals:
        ends = np.full(targets.shape, self.delta)
        return Intervals(targets, -ends, ends, 1.0)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        spread = np.abs(_centered(targets, weights))
        return float(weights @ np.minimum(spread, self.delta))

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return s_i where |r_i| <= delta, else zero; the edges count as inside."""
        inside = np.abs(targets - scores) <= self.delta * (1.0 + _EDGE)
        return DiagonalCurvature(np.where(inside, weights, 0.0))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        r, weighted = scores - targets, weights * dscores

        def at(step: float) -> tuple[float, float]:
            now = r + step * dscores
            clipped = np.clip(now, -self.delta, self.delta)
            inside = now == clipped
            return float(weighted @ clipped), float(weighted[inside] @ dscores[inside])

        return at


class Poisson(Loss):
    """Poisson's negative log-likelihood exp(z) - y z, for targets y >= 0."""

    smooth = True
    analytic = True
    steep = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return float(weights @ (_exp(scores) - targets * scores))

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        return bool(np.any(scores[weights > 0.0] > _STEEPEST))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * (_exp_slope(scores) - targets)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return sum_i s_i (p_i ln p_i - p_i) for the means p = u / s + y >= 0."""
        if not self.feasible(dual, targets, weights).all():
            return np.inf
        positive = weights > 0.0
        p = dual[positive] / weights[positive] + targets[positive]
        return _entropy_conjugate(np.maximum(p, 0.0), weights[positive])

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.asarray(dual >= -weights * targets * (1.0 + _NEGATIVE))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        positive = weights > 0.0
        s, y = weights[positive], targets[positive]
        p = np.maximum(dual[positive] / s + y, 0.0)
        # Also at u = 0, towards which dual variables shrink.
        return _entropy_size(p, s) + _entropy_size(y, s)

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding of u / s + y leaves out."""
        return _NEGATIVE * float(np.sqrt(weights @ np.square(targets)))

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Scale all means alike, to the mean of the targets."""
        means = dual + weights * targets
        total = float(means.sum())
        if total <= 0.0:
            return dual
        return means * (float(weights @ targets) / total) - weights * targets

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ targets)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        return DiagonalCurvature(weights * _exp_slope(scores))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        weighted = weights * dscores
        constant = float(weighted @ targets)

        def at(step: float) -> tuple[float, float]:
            p = _exp_slope(scores + step * dscores)
            return float(weighted @ p) - constant, float((weighted * dscores) @ p)

        return at


class Exponential(Loss):
    """Exponential loss exp(-y z) for targets y of -1 or +1.

    With b = exp(-y z), u_i = -s_i y_i b_i.
    """

    smooth = True
    analytic = True
    steep = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return float(weights @ _exp(-targets * scores))

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        return bool(np.any(-(targets * scores)[weights > 0.0] > _STEEPEST))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return -weights * targets * _exp_slope(-targets * scores)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return sum_i s_i (b_i ln b_i - b_i), for b >= 0."""
        if not self.feasible(dual, targets, weights).all():
            return np.inf
        positive = weights > 0.0
        b = -(dual * targets)[positive] / weights[positive]
        return _entropy_conjugate(b, weights[positive])

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        positive = weights > 0.0
        s = weights[positive]
        return _entropy_size(-(dual * targets)[positive] / s, s)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.asarray(dual * targets <= 0.0)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        return DiagonalCurvature(weights * _exp_slope(-targets * scores))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        m, dm = -targets * scores, -targets * dscores
        weighted = weights * dm

        def at(step: float) -> tuple[float, float]:
            b = _exp_slope(m + step * dm)
            return float(weighted @ b), float((weighted * dm) @ b)

        return at


class MultivariateSquared(Loss):
    """Multivariate regression (z - y)ᵀ M (z - y) / 2, scores of shape (n, k) (Table 6).

    Parameters
    ----------
    metric : ndarray of shape (k, k)
        M, symmetric and positive semidefinite.
    """

    smooth = True
    analytic = True
    joint = True

    def __init__(self, metric: Floats) -> None:
        self._M = metric
        values, vectors = np.linalg.eigh(metric)
        used = values > _ROUNDING * values.max(initial=0.0)
        # M⁺ is the sum of v vᵀ / lambda over these.
        self._values, self._vectors = values[used], vectors[:, used]

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = scores - targets
        return 0.5 * float(weights @ np.einsum("ik,ik->i", r @ self._M, r))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return s_i M (z_i - y_i)."""
        return weights[:, np.newaxis] * ((scores - targets) @ self._M)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return infinity: second derivatives are the same everywhere."""
        return np.full(len(scores), np.inf)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return <u, y> + sum_i u_iᵀ M⁺ u_i / (2 s_i), for u in the range of M."""
        half = 0.5 * float(self._squares(dual, weights) @ (1.0 / self._values))
        return float(np.vdot(dual, targets)) + half

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return that of all terms; small eigenvalues are uncertain by large ones."""
        uncertain = self._values.max(initial=0.0) / np.square(self._values)
        size = float(np.vdot(np.abs(dual), np.abs(targets)))
        return size + float(self._squares(dual, weights) @ uncertain)

    def _squares(self, dual: Floats, weights: Floats) -> Floats:
        """Return the sum over rows of the squares of (u / root of s) in M's axes."""
        parts = dual @ self._vectors
        parts *= parts
        squares: Floats = (1.0 / np.maximum(weights, np.finfo(float).tiny)) @ parts
        return squares

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what is beyond the range of M."""
        rest = dual - (dual @ self._vectors) @ self._vectors.T
        squares = np.square(rest).sum(axis=1) / np.maximum(
            weights, np.finfo(float).tiny
        )
        return float(np.sqrt(squares.sum()))

    def unlevel(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return what shifting all residuals alike takes, as a share of u and R*."""
        if not sums.any():
            return 0.0
        squares = np.square(dual).sum(axis=1) / np.maximum(
            weights, np.finfo(float).tiny
        )
        share = float(np.linalg.norm(sums)) / float(np.sqrt(squares.sum()))
        height = float(np.abs(sums) @ np.abs(weights @ targets))
        size = float(np.vdot(np.abs(dual), np.abs(targets)))
        return max(share, height / size if size else share)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        spread = _centered(targets, weights) @ self._M
        return float(weights @ np.abs(spread).sum(axis=1))

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Shift all residuals alike."""
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
    """s_i M, the same k x k matrix for all rows but for their weights.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)
    weights : ndarray of shape (n,)
    """

    def __init__(self, matrix: Floats, weights: Floats) -> None:
        self._M, self._weights = matrix, weights

    def take(self, rows: Rows) -> ConstantCurvature:
        return ConstantCurvature(self._M, self._weights[rows])

    def apply(self, dscores: Floats) -> Floats:
        return self._weights[:, np.newaxis] * (dscores @ self._M)

    def diagonal(self) -> Floats:
        return np.multiply.outer(self._weights, self._M.diagonal())

    def total(self) -> Floats:
        return float(self._weights.sum()) * self._M

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        gram = X.T @ (self._weights[rows, np.newaxis] * X)
        for j, row in enumerate(self._M):
            for m in range(j, len(row)):
                out[j, m] += row[m] * gram


def _half_squares(dual: Floats, weights: Floats) -> float:
    positive = weights > 0.0
    u = dual[positive]
    return 0.5 * float(u @ (u / weights[positive]))


def _exp(t: Floats) -> Floats:
    return np.exp(np.minimum(t, _STEEPEST)) * (1.0 + np.maximum(t - _STEEPEST, 0.0))


def _exp_slope(t: Floats) -> Floats:
    return np.exp(np.minimum(t, _STEEPEST))


def _entropy_conjugate(p: Floats, weights: Floats) -> float:
    """Return sum_i s_i (p_i ln p_i - p_i)."""
    logs = np.log(np.maximum(p, np.finfo(float).tiny))
    return float(weights @ (p * logs - p))


def _entropy_size(p: Floats, weights: Floats) -> float:
    """Return sum_i s_i (|p_i ln p_i| + p_i)."""
    logs = np.log(np.maximum(p, np.finfo(float).tiny))
    return float(weights @ (p * np.abs(logs) + p))


def _centered(targets: Floats, weights: Floats) -> Floats:
    """Return targets less their mean, or as they are if they differ by rounding."""
    centered = targets - weights @ targets / weights.sum()
    rounding = _ROUNDING * np.abs(targets).max(initial=0.0)
    return centered if np.abs(centered).max(initial=0.0) > rounding else targets
