"""Losses of online methods: value, subgradient and a positive curvature.

At kinks and on linear parts of a loss, the second derivative gives no step size. There
the curvature is the second derivative of a quadratic majorizer: a parabola above the
loss with the same value and slope, as in iteratively reweighted least squares. It is
bounded near kinks. Values and subgradients are computed by ``_core/losses``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..losses import (
    MULTINOMIAL_LOSS,
    Box,
    Composed,
    DualLoss,
    Quadratic,
    SoftmaxCurvature,
    softmax,
)
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature, DiagonalCurvature
from ..rounding import CLOSE, ROUNDED, TINY

# Far on the wrong side, a logistic or Poisson loss is nearly linear, with almost zero
# curvature. The curvature is raised so that the Newton step of a single row changes its
# score by at most max(6, 2 t), where t is the distance of the score from the point of
# largest curvature; for counts by at most max(1, t), where t is the distance from the
# logarithm of the count. docs/constants.md has the figures.
_REACH = 6.0

# Minimum curvature of a row, as a multiple of its weight. Far on the right side of the
# margin, slope and curvature vanish at the same rate, so each batch of one class would
# change the intercept by one unit. With a minimum curvature the intercept grows only
# like the logarithm of the number of batches. docs/constants.md has the figures.
_FLAT = 1e-4

# Minimum of the mean count before its logarithm is taken, because the first counts of a
# stream can all be zero.
_SMALLEST_MEAN = 1e-3

# Limit on counts: the exponential is continued linearly above exp(50), so larger counts
# have no optimum.
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
        """Return the second derivatives of the loss, or of a majorizer."""
        ...

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return the second derivatives of a smooth loss, without a minimum."""
        ...


class OfScores(Composed):
    """A loss of one score per row, with a positive curvature.

    Parameters
    ----------
    loss : DualLoss
        A loss whose dual set is a box.
    """

    def __init__(self, loss: DualLoss) -> None:
        assert isinstance(loss.set, Box), "a loss of one score per row"
        self.loss, self.box = loss, loss.set

    @staticmethod
    def takes(loss: DualLoss) -> bool:
        """Whether this class has a curvature for a loss of numbers."""
        of_steps = loss.steep or isinstance(loss.smoothing, Quadratic | None)
        return isinstance(loss.set, Box) and not loss.set.tube and of_steps

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return the curvature of quadratic majorizers with their minimum at t = 0.

        The argument t of the loss is the distance from its kink. For a loss with a
        kink, the curvature is half the jump of the slope divided by |t|, raised to at
        least its mean. For a loss smoothed by a ridge, it is the largest absolute slope
        on the side of t divided by |t|, at most 1 / ridge. Where |t| is of the order of
        rounding errors, as for all rows after a first batch of one class, the curvature
        is 1 / ridge.
        """
        box, smoothing = self.box, self.loss.smoothing
        t = box.map.argument(scores, targets)
        if smoothing is None:
            height = 0.5 * (box.high - box.low)
            return DiagonalCurvature(height * weights / _bounded(t, weights, targets))
        if not isinstance(smoothing, Quadratic):
            return self._damped(scores, targets, weights)
        bounds = np.where(t < 0.0, -box.low, box.high) / np.maximum(np.abs(t), TINY)
        bounds[np.abs(t) <= CLOSE * (np.abs(targets) + np.abs(scores))] = np.inf
        h = np.minimum(bounds, 1.0 / smoothing.ridge)
        return DiagonalCurvature(weights * h)

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        if not self.loss.smooth:
            return self.curvature(scores, targets, weights)
        return self.loss.oracle.curvature(scores, targets, weights)

    def constant(self, targets: Floats, weights: Floats) -> float:
        """Return approximately the best constant score; the mean weight is one."""
        loss = self.loss
        if loss.analytic:
            mean = float(weights @ targets) / len(targets)
            return float(np.log(max(mean, _SMALLEST_MEAN))) if loss.steep else mean
        box = self.box
        return _quantile(targets, weights, box.high / (box.high - box.low))

    def _damped(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return the second derivatives, raised far on the wrong side of the margin.

        The curvature of labels is at least |u_i| / max(6, 2 t_i) and s_i / 10000; the
        curvature of counts is at least |u_i| / max(1, ln y_i - z_i).
        """
        h = self.loss.oracle.curvature(scores, targets, weights).diagonal()
        u = self.subgradient(scores, targets, weights)
        if self.box.map.labels:
            t = self.box.map.argument(scores, targets)
            distance = 2.0 * np.maximum(t, 0.5 * _REACH, out=t)
            np.maximum(h, _FLAT * weights, out=h)
        else:
            distance = np.log(np.maximum(targets, _SMALLEST_MEAN)) - scores
            np.maximum(distance, 1.0, out=distance)
        u /= distance
        return DiagonalCurvature(np.maximum(h, np.abs(u, out=u), out=h))


class DampedSoftmax(Composed):
    """The multinomial logistic loss, with curvature raised far on the wrong side."""

    loss = MULTINOMIAL_LOSS

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DampedCurvature:
        """Return the Hessian with diagonals of at least |u_i| / max(6, 2 m_i).

        The deficit m_i is the largest score of the row minus the score of its own
        class. Rows with m_i <= ln 5 are not changed, because with many classes each
        probability is small at first. Where p_i (1 - p_i) of the own class is below
        1e-4, diagonals are at least 1e-4 times the weight.
        """
        p = softmax(scores)
        own = np.arange(len(scores)), targets.astype(np.intp)
        m = scores.max(axis=1) - scores[own]
        # The absolute gradient |u_i| follows from the probabilities, without another
        # exponential.
        minimum = p.copy()
        minimum[own] = 1.0 - p[own]
        minimum *= (weights / np.maximum(2.0 * m, _REACH))[:, np.newaxis]
        # The minimum has no effect where p (1 - p) is at least as large.
        minimum[m <= np.log(_REACH - 1.0)] = 0.0
        flat = p[own] * (1.0 - p[own]) < _FLAT
        minimum[flat] = np.maximum(minimum[flat], _FLAT * weights[flat, np.newaxis])
        lacking = minimum - weights[:, np.newaxis] * p * (1.0 - p)
        return DampedCurvature(p, weights, np.maximum(lacking, 0.0))

    def hessian(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        return self.loss.oracle.curvature(scores, targets, weights)


class DampedCurvature(SoftmaxCurvature):
    """The softmax Hessian of each row plus a diagonal matrix.

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
    """The sum of a binary loss over classes, for targets -1 or +1 of shape (b, k).

    Parameters
    ----------
    loss : OnlineLoss
        Binary loss of one score per row.
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
    """Return absolute distances, raised to at least their weighted mean."""
    distance = np.abs(distance)
    total = float(weights.sum())
    mean = float(weights @ distance) / total
    unit = 1.0 + float(weights @ np.abs(targets)) / total
    return np.maximum(distance, max(mean, ROUNDED * unit))


def _quantile(targets: Floats, weights: Floats, q: float) -> float:
    """Return the weighted quantile q of the targets."""
    order = np.argsort(targets)
    sums = np.cumsum(weights[order])
    return float(targets[order[np.searchsorted(sums, q * sums[-1])]])


__all__ = ["LARGEST_COUNT", "DampedSoftmax", "OfScores", "OneVsRest", "OnlineLoss"]
