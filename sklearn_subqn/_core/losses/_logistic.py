"""Logistic losses: binary for targets -1 or +1, and softmax for k classes.

Exponentials are taken of non-positive numbers only, so that no score overflows.
"""

from __future__ import annotations

import numpy as np

from ._base import Curvature, Derivatives, DiagonalCurvature, Floats, Loss, Mask, Rows

# Duals that leave the domain of the conjugate by this share of a weight do so by
# rounding, and so do sums over classes by this share.
_ROUNDING, _ROUNDING_OF_SUMS = 1e-15, 1e-13


class Logistic(Loss):
    """Binary logistic loss ln(1 + exp(-y z)) (Yu 2009, eq. 3.59).

    With beta the probability of the wrong class, u_i = -s_i y_i beta_i.
    """

    smooth = True
    analytic = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        if not scores.any():
            # At w = 0, where fits begin, and some end.
            return float(np.log(2.0) * weights.sum())
        m = scores * targets
        tail = np.abs(m)
        np.negative(tail, out=tail)
        np.exp(tail, out=tail)
        np.log1p(tail, out=tail)
        np.minimum(m, 0.0, out=m)
        tail -= m
        return float(weights @ tail)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u of shape (n,)."""
        u = weights * targets
        u *= _sigmoid(-(scores * targets)) if scores.any() else 0.5
        return np.negative(u, out=u)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the negative weighted entropy of beta, finite for beta in [0, 1]."""
        beta = dual * targets
        # Rows without weight have no dual, so that any divisor will do.
        beta /= -np.maximum(weights, np.finfo(float).tiny)
        # Duals of this class may leave the interval by rounding.
        np.clip(beta, 0.0, 1.0, out=beta)
        entropies = _entropy(beta)
        entropies += _entropy(1.0 - beta)
        return float(weights @ entropies)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        excess = np.abs(-dual * targets - 0.5 * weights) - 0.5 * weights
        return np.asarray(excess <= _ROUNDING * weights)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return s_i p_i (1 - p_i)."""
        p = _sigmoid(-np.abs(scores))
        return DiagonalCurvature(weights * p * (1.0 - p))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        m, dm = -(scores * targets), -(targets * dscores)
        slopes = weights * dm
        curvatures = slopes * dm

        def at(step: float) -> tuple[float, float]:
            p = _sigmoid(m + step * dm)
            return float(slopes @ p), float(curvatures @ (p * (1.0 - p)))

        return at


class Softmax(Loss):
    """Multinomial logistic loss ln sum_k exp(z_k) - z_y (Teo et al. 2010, Table 6).

    Targets are the indices of the classes, as floats; scores have shape (n, k).
    """

    smooth = True
    analytic = True
    invariant = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        shifted = scores - scores.max(axis=1, keepdims=True)
        own = shifted[_own(targets)]
        np.exp(shifted, out=shifted)
        return float(weights @ (np.log(shifted.sum(axis=1)) - own))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u = s (P - Y), with probabilities P and one-hot Y."""
        u = softmax(scores)
        u[_own(targets)] -= 1.0
        u *= weights[:, np.newaxis]
        return u

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return twice how far the score of the own class is below the largest.

        A parabola above the loss has its minimizer about there, where the loss is
        linear: on the wrong side.
        """
        return 2.0 * (scores.max(axis=1) - scores[_own(targets)])

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the negative weighted entropy of u / s + Y, rows on the simplex."""
        positive = weights > 0.0
        q = self._probabilities(dual[positive], targets[positive], weights[positive])
        np.maximum(q, 0.0, out=q)
        return float(weights[positive] @ _entropy(q).sum(axis=1))

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        shifted = dual.copy()
        shifted[_own(targets)] += weights
        inside = np.all(shifted >= -_ROUNDING * weights[:, np.newaxis], axis=1)
        return inside & (np.abs(dual.sum(axis=1)) <= _ROUNDING_OF_SUMS * weights)

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Move probability from classes with too much to those with too little.

        Classes with more than their share of the weights are scaled down; what this
        frees in a row goes to the others in proportion to what they lack altogether.
        """
        excess = dual.sum(axis=0)
        if not excess.any():
            return dual
        shares = np.bincount(targets.astype(np.intp), weights, dual.shape[1])
        heavy, light = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
        if not heavy.any() or not light.any():
            return dual
        moved = dual.copy()
        moved[_own(targets)] += weights
        ratios = np.zeros_like(heavy)
        np.divide(heavy, shares + heavy, out=ratios, where=heavy > 0.0)
        freed = moved * ratios
        change = np.outer(freed.sum(axis=1), light / light.sum()) - freed
        return dual + change

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> SoftmaxCurvature:
        return SoftmaxCurvature(softmax(scores), weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        own = float(weights @ dscores[_own(targets)])

        def at(step: float) -> tuple[float, float]:
            p = softmax(scores + step * dscores)
            mean = np.einsum("ik,ik->i", p, dscores)
            square = np.einsum("ik,ik,ik->i", p, dscores, dscores)
            return float(weights @ mean) - own, float(weights @ (square - mean * mean))

        return at

    @staticmethod
    def _probabilities(dual: Floats, targets: Floats, weights: Floats) -> Floats:
        q = dual / weights[:, np.newaxis]
        q[_own(targets)] += 1.0
        return q


class SoftmaxCurvature(Curvature):
    """s_i (diag(P_i) - P_i P_iᵀ), a k x k matrix for each row.

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
    """

    def __init__(self, probabilities: Floats, weights: Floats) -> None:
        self._p = probabilities
        self._weights = weights
        self._weighted = weights[:, np.newaxis] * probabilities

    def take(self, rows: Rows) -> SoftmaxCurvature:
        return SoftmaxCurvature(self._p[rows], self._weights[rows])

    def apply(self, dscores: Floats) -> Floats:
        mean = np.einsum("ik,ik->i", self._p, dscores)
        return self._weighted * (dscores - mean[:, np.newaxis])

    def diagonal(self) -> Floats:
        return self._weighted * (1.0 - self._p)

    def total(self) -> Floats:
        return np.diag(self._weighted.sum(axis=0)) - self._weighted.T @ self._p

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        return self._weighted, self._weights, self._p


def softmax(scores: Floats) -> Floats:
    """Return probabilities exp(z_k) / sum_l exp(z_l) of shape (n, k)."""
    p = scores - scores.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def _own(targets: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each row's own class."""
    return np.arange(len(targets)), targets.astype(np.intp)


def _sigmoid(t: Floats) -> Floats:
    """Return 1 / (1 + exp(-t))."""
    total = np.abs(t)
    np.negative(total, out=total)
    np.exp(total, out=total)
    total += 1.0
    # A second exponential takes less time than a choice for each entry.
    p = np.minimum(t, 0.0)
    np.exp(p, out=p)
    p /= total
    return p


def _entropy(p: Floats) -> Floats:
    """Return p ln(p), zero at zero."""
    # The smallest number keeps the product exact, and is faster than a mask.
    entropy = np.maximum(p, np.finfo(float).tiny)
    np.log(entropy, out=entropy)
    entropy *= p
    return entropy
