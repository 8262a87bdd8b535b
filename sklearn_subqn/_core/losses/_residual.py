"""Losses of the residual r = y - z that are piecewise linear, and their envelope.

All are one function: the maximum over v in [low, high] of v r - epsilon |v|, with
low <= 0 <= high (Teo et al. 2010, Table 5). It is flat for |r| <= epsilon, where the
dual variable v is zero, and rises with slopes high and -low outside.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    DiagonalCurvature,
    Floats,
    Intervals,
    Loss,
    Mask,
    PiecewiseQuadratic,
    Rows,
)

# Rows this near to an edge of the band, in units of dual variables, lie on it.
_EDGE = 1e-9


class ResidualLoss(Loss):
    """Maximum over v in [low, high] of v r - epsilon |v|, for residuals r = y - z.

    Parameters
    ----------
    low, high : float
        Least and largest dual variable, low <= 0 <= high.
    epsilon : float
        Half-width of the insensitive tube, non-negative.
    """

    smooth = False
    has_envelope = True

    def __init__(self, low: float, high: float, epsilon: float = 0.0) -> None:
        self.low, self.high, self.epsilon = low, high, epsilon

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = targets - scores
        above = np.maximum(r - self.epsilon, 0.0)
        below = np.maximum(-r - self.epsilon, 0.0)
        return float(self.high * (weights @ above) - self.low * (weights @ below))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u_i = -s_i v_i, with v = 0 at kinks."""
        r = targets - scores
        edge = self.epsilon + _tolerance(scores, targets)
        u = np.where(r > edge, -self.high, 0.0)
        u[r < -edge] = -self.low
        u *= weights
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + epsilon ||u||_1, for v = -u / s within its bounds."""
        return float(dual @ targets) + self.epsilon * float(np.abs(dual).sum())

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        low, high = self.low * weights, self.high * weights
        return np.asarray((-dual >= low) & (-dual <= high))

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        distance = np.abs(np.abs(targets - scores) - self.epsilon)
        return np.flatnonzero(distance <= _tolerance(scores, targets))

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return v at its upper end where r grows, at its lower end where r falls."""
        low, high = self._ends(targets - scores)
        v = np.where(dscores < 0.0, high, np.where(dscores > 0.0, low, 0.0))
        return -weights * v

    def _ends(self, r: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the interval of v for rows on a kink."""
        if self.epsilon == 0.0:
            return np.full_like(r, self.low), np.full_like(r, self.high)
        upper = r > 0.0
        return np.where(upper, 0.0, self.low), np.where(upper, self.high, 0.0)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v = -u / s; zero for rows of no weight."""
        v = np.zeros_like(dual)
        np.divide(-dual, weights, out=v, where=weights > 0.0)
        return np.clip(v, self.low, self.high, out=v)

    def rowwise_dual(self, targets: Floats) -> Intervals | None:
        """Return the intervals of v, without a tube only."""
        if self.epsilon > 0.0:
            return None
        low, high = (np.full(targets.shape, end) for end in (self.low, self.high))
        return Intervals(targets, low, high, 0.0)

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return the middle of the interval."""
        return np.full(targets.shape, 0.5 * (self.low + self.high))

    def envelope(self, center: Floats, width: float) -> ResidualEnvelope:
        """Return the smooth envelope around dual variables of shape (n,)."""
        return ResidualEnvelope(self, center, width)

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the mean distance of the residuals from their median.

        Where they vanish, a small share of the targets takes its place.
        """
        r = targets - scores
        spread = float(weights @ np.abs(r - np.median(r)))
        return max(spread, 1e-6 * float(weights @ np.abs(targets)), self.epsilon) or 1.0

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        r = targets - scores
        tie = _tolerance(scores, targets)
        slope = 0.0
        kinks, jumps = [], []
        # The loss is a sum of two hinges, of r - epsilon and of -r - epsilon.
        for sign, height in ((1.0, self.high), (-1.0, -self.low)):
            if height == 0.0:
                continue
            m, dm = sign * r - self.epsilon, -sign * dscores
            m[np.abs(m) <= tie] = 0.0
            rises = np.where(m == 0.0, dm, m) > 0.0
            slope += height * float(weights[rises] @ dm[rises])
            ahead = np.flatnonzero(m * dm < 0.0)
            kinks.append(-m[ahead] / dm[ahead])
            jumps.append(height * weights[ahead] * np.abs(dm[ahead]))
        steps = np.concatenate(kinks)
        return PiecewiseQuadratic(
            slope=slope,
            curvature=0.0,
            kinks=steps,
            slope_jumps=np.concatenate(jumps),
            curvature_jumps=np.zeros(steps.size),
        )


class Quantile(ResidualLoss):
    """Quantile loss tau max(r, 0) + (1 - tau) max(-r, 0) (Koenker 2005).

    Parameters
    ----------
    tau : float
        The quantile, in (0, 1).
    """

    def __init__(self, tau: float) -> None:
        super().__init__(tau - 1.0, tau)


class Absolute(ResidualLoss):
    """Absolute loss |r|."""

    def __init__(self) -> None:
        super().__init__(-1.0, 1.0)


class EpsilonInsensitive(ResidualLoss):
    """Epsilon-insensitive loss max(0, |r| - epsilon) (Vapnik et al. 1997).

    Parameters
    ----------
    epsilon : float
        Non-negative.
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(-1.0, 1.0, epsilon)


class Novelty(ResidualLoss):
    """Novelty loss max(0, rho - z) (Schölkopf et al. 2001); the targets are rho."""

    has_margin = True

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the mean of rho."""
        return float(weights @ np.abs(targets)) or 1.0


class ResidualEnvelope(Loss):
    """Envelope of a ``ResidualLoss`` around dual variables.

    It subtracts ``width / 2 * (v - center)²`` inside the maximum over v, which then is
    attained at the soft threshold by epsilon / width of t = center + r / width, clipped
    to [low, high].

    Parameters
    ----------
    loss : ResidualLoss
    center : ndarray of shape (n,)
    width : float
        Positive.
    """

    smooth = True

    def __init__(self, loss: ResidualLoss, center: Floats, width: float) -> None:
        self._loss = loss
        self.center = center
        self.width = width

    def of_rows(self, rows: Rows) -> ResidualEnvelope:
        return ResidualEnvelope(self._loss, self.center[rows], self.width)

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self._loss.unit(scores, targets, weights)

    def _dual_variables(self, t: Floats) -> Floats:
        edge = self._loss.epsilon / self.width
        if edge > 0.0:
            t = t - np.clip(t, -edge, edge)
        return np.clip(t, self._loss.low, self._loss.high)

    def _bends(self, t: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
        """Return in which rows v changes with t."""
        low, high, edge = self._loss.low, self._loss.high, self._loss.epsilon
        edge /= self.width
        below = (t >= low - edge - tolerance) & (t <= -edge + tolerance)
        above = (t >= edge - tolerance) & (t <= high + edge + tolerance)
        if low == 0.0:
            return above
        return below | above if high > 0.0 else below

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        r = targets - scores
        v = self._dual_variables(self.center + r / self.width)
        shift = v - self.center
        each = v * r - self._loss.epsilon * np.abs(v) - 0.5 * self.width * shift * shift
        return float(weights @ each)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u_i = -s_i v_i."""
        t = (targets - scores) / self.width
        t += self.center
        u = self._dual_variables(t)
        u *= weights
        return np.negative(u, out=u)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return that of the loss plus width / 2 * sum_i s_i (v_i - center_i)²."""
        positive = weights > 0.0
        shift = -dual[positive] / weights[positive] - self.center[positive]
        penalty = 0.5 * self.width * float(weights[positive] @ (shift * shift))
        return self._loss.conjugate(dual, targets, weights) + penalty

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size of <u, y> and of both parts of the differences."""
        size = super().conjugate_size(dual, targets, weights, conjugate)
        return size + self.width * float(weights @ np.square(self.center))

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return self._loss.feasible(dual, targets, weights)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return the residuals: a parabola above the loss has its minimizer there."""
        return np.abs(targets - scores)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return s_i / width where v is between kinks, edges included, else zero."""
        t = (targets - scores) / self.width + self.center
        return DiagonalCurvature(
            np.where(self._bends(t, _EDGE), weights / self.width, 0.0)
        )

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        t = (targets - scores) / self.width + self.center
        dt = dscores / -self.width
        slopes = -(weights * dscores)

        def at(step: float) -> tuple[float, float]:
            now = t + step * dt
            slope = float(slopes @ self._dual_variables(now))
            bent = self._bends(now, 0.0)
            return slope, float(slopes[bent] @ dt[bent])

        return at


def _tolerance(scores: Floats, targets: Floats) -> Floats:
    """Return the half-width of bands around kinks, for targets as small as they are."""
    least = min(1.0, float(np.abs(targets).max(initial=0.0)))
    return TIE_TOLERANCE * np.maximum(least, np.abs(scores))
