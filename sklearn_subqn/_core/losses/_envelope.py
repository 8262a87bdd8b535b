"""Smooth lower approximations of nonsmooth losses around a dual center."""

from __future__ import annotations

import numpy as np

from ._base import Derivatives, Floats, Loss

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
    center : ndarray of shape (n,)
        Dual variables in [0, 1].
    width : float
        Positive. As it vanishes, or as the center becomes optimal, the minimizers of
        the regularized envelope become those of the hinge.
    """

    smooth = True

    def __init__(self, center: Floats, width: float) -> None:
        self.center = center
        self.width = width

    def _maximizers(self, scores: Floats, targets: Floats) -> Floats:
        """Return beta of shape (n,)."""
        t = self._unclipped(scores, targets)
        return np.clip(t, 0.0, 1.0, out=t)

    def _unclipped(self, scores: Floats, targets: Floats) -> Floats:
        """Return t = center + m / width; rows with 0 < t < 1 are in the band."""
        t = scores * targets
        np.subtract(1.0, t, out=t)
        t /= self.width
        t += self.center
        return t

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        beta = self._maximizers(scores, targets)
        shift = beta - self.center
        shift *= shift
        return float(
            weights @ (beta * (1.0 - scores * targets) - 0.5 * self.width * shift)
        )

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u_i = -s_i y_i beta_i."""
        u = self._maximizers(scores, targets)
        u *= weights
        u *= targets
        return np.negative(u, out=u)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + width / 2 * sum_i s_i (beta_i - center_i)²."""
        positive = weights > 0.0
        beta = -(dual * targets)[positive] / weights[positive]
        shift = beta - self.center[positive]
        penalty = 0.5 * self.width * float(weights[positive] @ (shift * shift))
        return float(dual @ targets) + penalty

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return second derivatives: s_i / width for rows in the band, else zero.

        Rows at the very edge, where both values are generalized second derivatives,
        count as inside: a line search that ended there would end there again at once.
        """
        t = self._unclipped(scores, targets)
        inside = (t >= -_EDGE) & (t <= 1.0 + _EDGE)
        return np.where(inside, weights / self.width, 0.0)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        t = self._unclipped(scores, targets)
        dt = targets * dscores
        dt /= -self.width
        slopes = weights * dt
        slopes *= self.width
        buffer, clipped = np.empty_like(t), np.empty_like(t)

        def at(step: float) -> tuple[float, float]:
            np.multiply(dt, step, out=buffer)
            np.add(buffer, t, out=buffer)
            np.clip(buffer, 0.0, 1.0, out=clipped)
            inside = buffer == clipped
            np.multiply(dt, inside, out=buffer)
            return float(slopes @ clipped), float(slopes @ buffer)

        return at
