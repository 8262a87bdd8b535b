"""Losses of online methods: value, subgradient and a curvature that is never missing.

Where a loss has kinks or linear parts, its second derivative says nothing about how far
to step. Curvature here is then that of a parabola above the loss with the same value
and slope (the majorizers of iteratively reweighted least squares), bounded near kinks.
Values and subgradients are those of ``_core/losses``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..losses import (
    MULTINOMIAL_LOSS,
    Box,
    DualLoss,
    Quadratic,
    SoftmaxCurvature,
    softmax,
)
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature, DiagonalCurvature
from ..rounding import CLOSE, ROUNDED, TINY

# Far on its wrong side a loss with exponentials is linear, with next to no curvature.
# It is taken for so large that on account of its own row no score moves by more than
# twice its distance from where the loss bends, as by a parabola above it, or this (one
# of counts). docs/constants.md has the figures.
_REACH = 6.0

# Each row has a curvature of at least 1e-4 times its weight. On the right side slope
# and curvature vanish at the same rate, so that batches of one class would move the
# intercept by one unit each, forever; with a least curvature it grows as the logarithm
# of the number of batches. docs/constants.md has the figures.
_FLAT = 1e-4

# The first counts of a stream may all be zero.
_SMALLEST_MEAN = 1e-3

# Exponentials go on linearly above exp(50): larger counts than that have no optimum.
LARGEST_COUNT = 1e20


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

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return second derivatives of a smooth loss, without more for safety."""
        ...


class OfScores:
    """A loss of one score per row, with a curvature that is never missing.

    Parameters
    ----------
    loss : DualLoss
        Over a box.
    """

    def __init__(self, loss: DualLoss) -> None:
        assert isinstance(loss.set, Box), "a loss of one score per row"
        self.loss, self.box = loss, loss.set

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self.loss.oracle.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.loss.oracle.subgradient(scores, targets, weights)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return the curvature of parabolas above the loss, which are least at t = 0.

        Their dual variables are v / t times t. Without a ridge it is half the height of
        the kink by |t|, with |t| no less than its mean. With one it is the larger of
        those of both sides where t is a rounding error, as of all rows after a first
        batch of one class.
        """
        box, smoothing = self.box, self.loss.smoothing
        t = box.map.argument(scores, targets)
        if smoothing is None:
            height = 0.5 * (box.high - box.low)
            return DiagonalCurvature(height * weights / _bounded(t, weights, targets))
        if not isinstance(smoothing, Quadratic):
            return self._damped(scores, targets, weights)
        ends = np.where(t < 0.0, -box.low, box.high) / np.maximum(np.abs(t), TINY)
        ends[np.abs(t) <= CLOSE * (np.abs(targets) + np.abs(scores))] = np.inf
        h = np.minimum(ends, 1.0 / smoothing.ridge)
        return DiagonalCurvature(weights * h)

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        if not self.loss.smooth:
            return self.curvature(scores, targets, weights)
        return self.loss.oracle.curvature(scores, targets, weights)

    def constant(self, targets: Floats, weights: Floats) -> float:
        """Return the score near the best of all rows' targets; mean weights are one."""
        loss = self.loss
        if loss.analytic:
            mean = float(weights @ targets) / len(targets)
            return float(np.log(max(mean, _SMALLEST_MEAN))) if loss.steep else mean
        box = self.box
        return _quantile(targets, weights, box.high / (box.high - box.low))

    def _damped(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return second derivatives, or more far on the wrong side.

        At least |u_i| / max(6, 2 t_i), and s_i / 10000, of labels; of counts at least
        |u_i| / max(1, ln y_i - z_i).
        """
        h = self.loss.oracle.curvature(scores, targets, weights).diagonal()
        u = np.abs(self.subgradient(scores, targets, weights))
        if self.box.map.labels:
            u /= np.maximum(2.0 * self.box.map.argument(scores, targets), _REACH)
            return DiagonalCurvature(np.maximum(np.maximum(h, u), _FLAT * weights))
        distance = np.log(np.maximum(targets, _SMALLEST_MEAN)) - scores
        u /= np.maximum(distance, 1.0)
        return DiagonalCurvature(np.maximum(h, u))


class DampedSoftmax:
    """The multinomial logistic loss, with more curvature far from y."""

    loss = MULTINOMIAL_LOSS

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self.loss.oracle.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.loss.oracle.subgradient(scores, targets, weights)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DampedCurvature:
        """Return the loss' own, with diagonals of at least |u_i| / max(6, 2 m_i).

        m_i is how far the score of the row's own class is below the largest. Rows with
        m_i <= ln 5 are as they are: each of many classes has a small share at first.
        Where p_i (1 - p_i) of the own class is below 1e-4, so are diagonals, at least.
        """
        p = softmax(scores)
        own = np.arange(len(scores)), targets.astype(np.intp)
        m = scores.max(axis=1) - scores[own]
        # This is |u_i|, without another exponential.
        least = p.copy()
        least[own] = 1.0 - p[own]
        least *= (weights / np.maximum(2.0 * m, _REACH))[:, np.newaxis]
        # The least curvature changes nothing where p (1 - p) is as large.
        least[m <= np.log(_REACH - 1.0)] = 0.0
        flat = p[own] * (1.0 - p[own]) < _FLAT
        least[flat] = np.maximum(least[flat], _FLAT * weights[flat, np.newaxis])
        lacking = least - weights[:, np.newaxis] * p * (1.0 - p)
        return DampedCurvature(p, weights, np.maximum(lacking, 0.0))

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        return self.loss.oracle.curvature(scores, targets, weights)


class DampedCurvature(SoftmaxCurvature):
    """Softmax curvature plus diagonal matrices.

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
    added : ndarray of shape (n, k)
    """

    def __init__(self, probabilities: Floats, weights: Floats, added: Floats) -> None:
        super().__init__(probabilities, weights)
        self._added = added

    def take(self, rows: Rows | slice) -> DampedCurvature:
        return DampedCurvature(self._p[rows], self._weights[rows], self._added[rows])

    def apply(self, dscores: Floats) -> Floats:
        return super().apply(dscores) + self._added * dscores

    def diagonal(self) -> Floats:
        return super().diagonal() + self._added

    def total(self) -> Floats:
        return super().total() + np.diag(self._added.sum(axis=0))

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        a, s, p = super().rank_one()
        return a + self._added, s, p


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

    def hessian(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        flat = np.repeat(weights, scores.shape[1])
        h = self.loss.hessian(scores.ravel(), targets.ravel(), flat).diagonal()
        return DiagonalCurvature(h.reshape(scores.shape))


def _bounded(distance: Floats, weights: Floats, targets: Floats) -> Floats:
    """Return absolute distances, no less than their weighted mean."""
    distance = np.abs(distance)
    total = float(weights.sum())
    mean = float(weights @ distance) / total
    unit = 1.0 + float(weights @ np.abs(targets)) / total
    return np.maximum(distance, max(mean, ROUNDED * unit))


def _quantile(targets: Floats, weights: Floats, q: float) -> float:
    """Return the smallest target up to which the weights sum to the share q."""
    order = np.argsort(targets)
    sums = np.cumsum(weights[order])
    return float(targets[order[np.searchsorted(sums, q * sums[-1])]])


__all__ = ["LARGEST_COUNT", "DampedSoftmax", "OfScores", "OneVsRest", "OnlineLoss"]
