"""Smooth lower approximations of nonsmooth losses around a dual centre."""

from __future__ import annotations

import numpy as np

from ._base import Floats, Loss, PiecewiseQuadratic

# Rows this near to an edge of the band, in units of dual variables, lie on it.
_EDGE = 1e-9


class HingeEnvelope(Loss):
    """Envelope of the binary hinge around dual variables.

    With the violation m = 1 - y z the hinge is the maximum of beta * m over beta in
    [0, 1]. The envelope subtracts ``width / 2 * (beta - centre)²`` inside the maximum,
    which then is attained at beta = clip(centre + m / width, 0, 1): a continuously
    differentiable, piecewise quadratic function of m, whose gradient is a feasible
    dual point of the hinge itself.

    Parameters
    ----------
    centre : ndarray of shape (n,)
        Dual variables in [0, 1].
    width : float
        Positive. As it vanishes, or as the centre becomes optimal, the minimizers of
        the regularized envelope become those of the hinge.
    """

    smooth = True
    piecewise = True

    def __init__(self, centre: Floats, width: float) -> None:
        self.centre = centre
        self.width = width

    def _maximizers(self, scores: Floats, targets: Floats) -> Floats:
        """Return beta of shape (n,)."""
        t = self._unclipped(scores, targets)
        return np.clip(t, 0.0, 1.0, out=t)

    def _unclipped(self, scores: Floats, targets: Floats) -> Floats:
        """Return t = centre + m / width; rows with 0 < t < 1 are in the band."""
        t = scores * targets
        np.subtract(1.0, t, out=t)
        t /= self.width
        t += self.centre
        return t

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        beta = self._maximizers(scores, targets)
        shift = beta - self.centre
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
        """Return R*(u) = <u, y> + width / 2 * sum_i s_i (beta_i - centre_i)²."""
        positive = weights > 0.0
        beta = -(dual * targets)[positive] / weights[positive]
        shift = beta - self.centre[positive]
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

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the continuous slope, with a kink where a row enters or leaves a band.

        In terms of t = centre + m / width the row's slope along the line is
        s dm clip(t, 0, 1), so that kinks are where t passes 0 or 1.
        """
        t = self._unclipped(scores, targets)
        dm = targets * dscores
        np.negative(dm, out=dm)
        slopes = weights * dm
        dt = dm / self.width
        # Immediately after eta = 0, a row at t = 0 or 1 is in the band if it moves in.
        inside = ((t > 0.0) & (t < 1.0)) | ((t == 0.0) & (dt > 0.0))
        inside |= (t == 1.0) & (dt < 0.0)
        above = ~inside & (t >= 1.0)
        steps, slope_jumps, curvature_jumps = [], [], []
        for edge, sign in ((0.0, 1.0), (1.0, -1.0)):
            # Upwards through 0 the band begins, through 1 it ends; downwards reversed.
            ahead = (edge - t) * dt > 0.0
            direction = sign * np.sign(dt[ahead])
            start, rate = t[ahead] - edge, dt[ahead]
            steps.append(-start / rate)
            slope_jumps.append(direction * slopes[ahead] * start)
            curvature_jumps.append(direction * slopes[ahead] * rate)
        return PiecewiseQuadratic(
            slope=float(slopes[above].sum() + slopes[inside] @ t[inside]),
            curvature=float(slopes[inside] @ dt[inside]),
            kinks=np.concatenate(steps),
            slope_jumps=np.concatenate(slope_jumps),
            curvature_jumps=np.concatenate(curvature_jumps),
        )
