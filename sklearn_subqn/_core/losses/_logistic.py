"""Binary logistic loss, for targets -1 or +1.

Exponentials are taken of non-positive numbers only, so that no score overflows.
"""

from __future__ import annotations

import numpy as np

from ._base import Derivatives, DiagonalCurvature, Floats, Loss, Mask

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


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
        beta = self._beta(dual, targets, weights)
        if beta.min(initial=0.0) < 0.0 or beta.max(initial=0.0) > 1.0 + 4.0 * _EPS:
            return np.inf
        return float(weights @ _binary_entropy(beta))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return |R*(u)|, and how much it changes with beta where that is near one."""
        beta = self._beta(dual, targets, weights)
        large = beta > 0.5
        slopes = -np.log1p(-np.minimum(beta[large], 1.0 - _EPS))
        return abs(conjugate) + float(weights[large] @ slopes)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        wrong = -dual * targets
        return np.asarray((wrong >= 0.0) & (wrong <= weights))

    @staticmethod
    def _beta(dual: Floats, targets: Floats, weights: Floats) -> Floats:
        beta = dual * targets
        # Rows without weight have no dual, so that any divisor will do.
        beta /= -np.maximum(weights, _TINY)
        return beta

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


def _binary_entropy(p: Floats) -> Floats:
    """Return p ln(p) + (1 - p) ln(1 - p), accurate where p is small."""
    return entropy(p) + rest_entropy(p)


def rest_entropy(p: Floats) -> Floats:
    """Return (1 - p) ln(1 - p), zero from one on."""
    p = np.minimum(p, 1.0)
    return np.asarray((1.0 - p) * np.log1p(-np.minimum(p, 1.0 - 0.5 * _EPS)))


def entropy(p: Floats) -> Floats:
    """Return p ln(p), zero at zero."""
    # The smallest number keeps the product exact, and is faster than a mask.
    logs = np.maximum(p, _TINY)
    np.log(logs, out=logs)
    logs *= p
    return logs
