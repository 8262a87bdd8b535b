"""Smooth lower approximations of nonsmooth losses around a dual center."""

from __future__ import annotations

import numpy as np

from ..kernels import hinge
from ._base import Derivatives, DiagonalCurvature, Floats, Loss, Mask, Rows

# Rows this near to an edge of the band, in units of dual variables, lie on it.
_EDGE = 1e-9


class HingeEnvelope(Loss):
    """Envelope of the binary hinge around dual variables.

    With the violation m = 1 - y z the hinge is the maximum of beta * m over beta in
    [0, 1]. The envelope subtracts ``width / 2 * (beta - center)²`` inside the maximum,
    which then is attained at beta = clip(center + m / width, 0, 1): a continuously
    differentiable, piecewise quadratic function of m, whose gradient is a feasible
    dual point of the hinge itself.

    Parameters
    ----------
    loss : Hinge
    center : ndarray of shape (n,)
        Dual variables in [0, 1].
    width : float
        Positive. As it vanishes, or as the center becomes optimal, the minimizers of
        the regularized envelope become those of the hinge.
    """

    smooth = True

    def __init__(self, loss: Loss, center: Floats, width: float) -> None:
        self._loss = loss
        self.center = center
        self.width = width

    def of_rows(self, rows: Rows) -> HingeEnvelope:
        return HingeEnvelope(self._loss, self.center[rows], self.width)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        m = 1.0 - scores * targets
        beta = np.clip(self.center + m / self.width, 0.0, 1.0)
        shift = beta - self.center
        return float(weights @ (beta * m - 0.5 * self.width * shift * shift))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u_i = -s_i y_i beta_i."""
        u = np.empty_like(scores)
        hinge.envelope_dual(scores, targets, weights, self.center, self.width, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + width / 2 * sum_i s_i (beta_i - center_i)²."""
        positive = weights > 0.0
        beta = -(dual * targets)[positive] / weights[positive]
        shift = beta - self.center[positive]
        penalty = 0.5 * self.width * float(weights[positive] @ (shift * shift))
        return float(dual @ targets) + penalty

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size of <u, y> and of both parts of the differences."""
        size = super().conjugate_size(dual, targets, weights, conjugate)
        return size + self.width * float(weights @ np.square(self.center))

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return self._loss.feasible(dual, targets, weights)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return the violations: a parabola above the hinge has its minimizer there."""
        return np.maximum(1.0 - scores * targets, 0.0)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return second derivatives: s_i / width for rows in the band, else zero.

        Rows at the very edge, where both values are generalized second derivatives,
        count as inside: a line search that ended there would end there again at once.
        """
        h = np.empty_like(scores)
        hinge.envelope_curvature(
            scores, targets, weights, self.center, self.width, _EDGE, h
        )
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        t, dt = np.empty_like(scores), np.empty_like(scores)
        hinge.envelope_line(scores, dscores, targets, self.center, self.width, t, dt)
        return lambda step: hinge.envelope_slope(t, dt, weights, self.width, step)
