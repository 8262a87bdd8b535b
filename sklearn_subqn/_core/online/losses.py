"""Losses of online methods: value, subgradient and a curvature that is never missing.

Where a loss has kinks or linear parts, its second derivative says nothing about how far
to step. Curvature here is then that of a parabola above the loss with the same value
and slope (the majorizers of iteratively reweighted least squares), bounded near kinks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from ..losses import Hinge, Logistic, Softmax, SquaredHinge
from ..losses._base import Curvature, DiagonalCurvature, Floats

# Distances that count as zero, against the size of targets.
_SMALLEST_SHARE = 1e-12

# The first counts of a stream may all be zero.
_SMALLEST_MEAN = 1e-3


class OnlineLoss(Protocol):
    """Loss of scores z of shape (b,) or (b, k), targets, and weights of shape (b,)."""

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the weighted sum of the losses of the rows."""
        ...

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return one subgradient, of the shape of scores."""
        ...

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return second derivatives, or those of a majorizer."""
        ...


class MajorizedHinge(Hinge):
    """The hinge max(0, m), m = 1 - y z, with the curvature of a parabola above it."""

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return s_i / (2 |m_i|), with |m_i| no less than its mean."""
        distance = _bounded(1.0 - targets * scores, weights, targets)
        return DiagonalCurvature(0.5 * weights / distance)


class RowLoss(ABC):
    """A loss of one score per row, by functions of single rows of shape (b,)."""

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return float(weights @ self.values(scores, targets))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * self.slopes(scores, targets)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        return DiagonalCurvature(weights * self.bends(scores, targets, weights))

    @abstractmethod
    def constant(self, targets: Floats, weights: Floats) -> float:
        """Return a score near the best one that is the same for all rows.

        Weights have the mean one.
        """

    @abstractmethod
    def values(self, scores: Floats, targets: Floats) -> Floats:
        """Return the losses."""

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """Return a derivative of each, at kinks zero."""

    @abstractmethod
    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return second derivatives, or those of a majorizer."""


class ModifiedHuber(RowLoss):
    """max(0, 1 - y z)² for y z >= -1, and -4 y z beyond (Zhang 2004)."""

    def constant(self, targets: Floats, weights: Floats) -> float:
        return 0.0

    def values(self, scores: Floats, targets: Floats) -> Floats:
        m = np.maximum(1.0 - targets * scores, 0.0)
        return np.where(m <= 2.0, m * m, 4.0 * m - 4.0)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        m = np.maximum(1.0 - targets * scores, 0.0)
        return -2.0 * targets * np.minimum(m, 2.0)

    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        m = 1.0 - targets * scores
        return np.where(m > 0.0, 4.0 / np.maximum(m, 2.0), 0.0)


class SquaredError(RowLoss):
    """(z - y)² / 2."""

    def constant(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ targets) / len(targets)

    def values(self, scores: Floats, targets: Floats) -> Floats:
        r = scores - targets
        return 0.5 * r * r

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return scores - targets

    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return np.ones_like(scores)


class Huber(RowLoss):
    """r² / 2 for |r| <= epsilon, r = z - y, and epsilon (|r| - epsilon / 2) beyond."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def constant(self, targets: Floats, weights: Floats) -> float:
        return _quantile(targets, weights, 0.5)

    def values(self, scores: Floats, targets: Floats) -> Floats:
        r = np.abs(scores - targets)
        inner = np.minimum(r, self.epsilon)
        return inner * (r - 0.5 * inner)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets, -self.epsilon, self.epsilon)

    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.epsilon / np.maximum(np.abs(scores - targets), self.epsilon)


class Quantile(RowLoss):
    """max(q r, (q - 1) r), r = y - z: the least for the q-quantile of y."""

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile

    def constant(self, targets: Floats, weights: Floats) -> float:
        return _quantile(targets, weights, self.quantile)

    def values(self, scores: Floats, targets: Floats) -> Floats:
        r = targets - scores
        return np.maximum(self.quantile * r, (self.quantile - 1.0) * r)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        r = targets - scores
        return np.where(r > 0.0, -self.quantile, 0.0) + np.where(
            r < 0.0, 1.0 - self.quantile, 0.0
        )

    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return 1 / (2 |r|), with |r| no less than its mean."""
        return 0.5 / _bounded(targets - scores, weights, targets)


class Poisson(RowLoss):
    """exp(z) - y z for counts y >= 0: negative log-likelihood up to a constant."""

    def constant(self, targets: Floats, weights: Floats) -> float:
        mean = float(weights @ targets) / len(targets)
        return float(np.log(max(mean, _SMALLEST_MEAN)))

    def values(self, scores: Floats, targets: Floats) -> Floats:
        return np.exp(scores) - targets * scores

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.exp(scores) - targets

    def bends(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return np.exp(scores)


class OneVsRest:
    """The sum over classes of a binary loss; targets of -1 or +1 have shape (b, k).

    Parameters
    ----------
    loss : OnlineLoss
        Of one score per row.
    """

    def __init__(self, loss: OnlineLoss) -> None:
        self.loss = loss

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        flat = np.repeat(weights, scores.shape[1])
        return self.loss.value(scores.ravel(), targets.ravel(), flat)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        flat = np.repeat(weights, scores.shape[1])
        u = self.loss.subgradient(scores.ravel(), targets.ravel(), flat)
        return u.reshape(scores.shape)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        flat = np.repeat(weights, scores.shape[1])
        h = self.loss.curvature(scores.ravel(), targets.ravel(), flat).diagonal()
        return DiagonalCurvature(h.reshape(scores.shape))


def _bounded(distance: Floats, weights: Floats, targets: Floats) -> Floats:
    """Return absolute distances, no less than their weighted mean."""
    distance = np.abs(distance)
    total = float(weights.sum())
    mean = float(weights @ distance) / total
    unit = 1.0 + float(weights @ np.abs(targets)) / total
    return np.maximum(distance, max(mean, _SMALLEST_SHARE * unit))


def _quantile(targets: Floats, weights: Floats, q: float) -> float:
    """Return the smallest target up to which the weights sum to the share q."""
    order = np.argsort(targets)
    sums = np.cumsum(weights[order])
    return float(targets[order[np.searchsorted(sums, q * sums[-1])]])


__all__ = [
    "Huber",
    "Logistic",
    "MajorizedHinge",
    "ModifiedHuber",
    "OneVsRest",
    "OnlineLoss",
    "Poisson",
    "Quantile",
    "Softmax",
    "SquaredError",
    "SquaredHinge",
]
