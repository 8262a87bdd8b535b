"""Losses of one score per row: a map, a box and a smoothing.

The loss of a row is the maximum over v in a box [low, high] of v t - h(v). A map makes
t of score and target (``_maps.py``), and h is nothing (hinge, absolute, quantile loss),
a quadratic (squared hinge, Huber's loss, squares; the Moreau envelopes of the former
around a center) or an entropy (logistic, exponential, Poisson's loss). These are
Fenchel-Young losses (Blondel, Martins and Niculae 2020): all else follows from the
three. At the end are the tables that name them.
"""

from __future__ import annotations

import numpy as np

from ..kernels import box as kernels
from ._base import (
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    DiagonalCurvature,
    Floats,
    Intervals,
    Loss,
    Mask,
    PiecewiseQuadratic,
    Rows,
)
from ._entropies import BinaryEntropy, Entropy
from ._maps import Counts, Margin, Residual
from ._metric import centered

_EPS = float(np.finfo(float).eps)

# Rows this near to an edge of the box, relative to its size, lie on it.
_EDGE = 1e-9


class BoxLoss(Loss):
    """The weighted sum of max over v in [low, high] of v t - h(v): what u determines.

    Parameters
    ----------
    to_argument : Margin, Residual or Counts
        From scores and targets to t.
    low, high : float
        With low <= 0 <= high.
    """

    def __init__(self, to_argument: Margin, low: float, high: float) -> None:
        self.map, self.low, self.high = to_argument, low, high

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding leaves out of the box."""
        slack = self.map.slack(targets)
        return float(np.sqrt(weights @ np.square(slack))) if np.ndim(slack) else 0.0

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        weighted = self.map.weighted(dual, targets, weights)
        inside = np.ones(len(weights), dtype=bool)
        # Infinity times a weight of zero is no number.
        if self.low > -np.inf:
            inside &= weighted >= weights * (self.low - self.map.slack(targets))
        if self.high < np.inf:
            inside &= weighted <= weights * self.high
        return inside

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v within the box; that of u = 0 in rows of no weight."""
        v = self._variables(dual, targets, weights)
        return np.clip(v, self.low, self.high, out=v)

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return the middle of the box."""
        return np.full(targets.shape, 0.5 * (self.low + self.high))

    def _variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.map.weighted(dual, targets, weights)
        return np.divide(v, weights, out=v, where=weights > 0.0)


class QuadraticLoss(BoxLoss):
    """A loss with h(v) = tube |v| + ridge / 2 (v - center)².

    Without a ridge it is piecewise linear, with a kink at t = 0, or at both ends of the
    tube. With one, v is the soft threshold by tube / ridge of center + t / ridge,
    within the box: a differentiable, piecewise quadratic function. Around a center of
    dual variables it is the Moreau envelope of the loss without a ridge, and its
    gradients are feasible dual points of that.

    Parameters
    ----------
    to_argument, low, high
        As for ``BoxLoss``.
    ridge, tube : float, default=0
        Non-negative.
    center : ndarray of shape (n,), optional
        Zeros by default.
    """

    def __init__(
        self,
        to_argument: Margin,
        low: float,
        high: float,
        *,
        ridge: float = 0.0,
        tube: float = 0.0,
        center: Floats | None = None,
    ) -> None:
        super().__init__(to_argument, low, high)
        self.ridge, self.tube, self.center = ridge, tube, center
        self.smooth = ridge > 0.0
        self.has_envelope = not self.smooth
        self.has_margin = low == 0.0
        self.analytic = self.smooth and low == -np.inf and high == np.inf and not tube
        self._box = to_argument.labels, low, high

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        args = scores, targets, weights, *self._box, self.tube
        if not self.smooth:
            return kernels.value(*args)
        return kernels.smooth_value(*args, self.ridge, self.center)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u, with v = 0 at kinks (for hinges Yu 2009, eq. 3.27)."""
        u = np.empty_like(scores)
        args = scores, targets, weights, *self._box, self.tube
        if not self.smooth:
            kernels.subgradient(*args, TIE_TOLERANCE, self._least(targets), u)
        else:
            kernels.smooth_gradient(*args, self.ridge, self.center, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + sum_i s_i h(v_i), finite for v in the box.

        The duals that this class returns are so; the caller answers for others.
        """
        total = float(dual @ targets)
        if self.tube:
            total += self.tube * float(np.abs(dual).sum())
        if self.smooth:
            v = self._variables(dual, targets, weights)
            shift = v if self.center is None else v - self.center
            total += 0.5 * self.ridge * float(weights @ (shift * shift))
        return total

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size of <u, y>, and of both parts of differences to the center."""
        size = super().conjugate_size(dual, targets, weights, conjugate)
        if self.center is None:
            return size
        return size + self.ridge * float(weights @ np.square(self.center))

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        if self.smooth:
            return super().kink_rows(scores, targets)
        distance = np.abs(np.abs(self.map.argument(scores, targets)) - self.tube)
        ties = TIE_TOLERANCE * np.maximum(self._least(targets), np.abs(scores))
        return np.flatnonzero(distance <= ties)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return v at its upper end where t grows, at its lower end where t falls.

        For hinges this is the choice of Yu (2009), eq. 3.28.
        """
        low, high = self.low, self.high
        change = self.map.change(dscores, targets)
        v = np.where(change > 0.0, high, np.where(change < 0.0, low, 0.0))
        if self.tube:
            above = self.map.argument(scores, targets) > 0.0
            v = np.where((v > 0.0) == above, v, 0.0)
        return self.map.dual(v, targets, weights)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope (for hinges Yu 2009, 3.31) with its jumps (3.33).

        A row on a kink at eta = 0 has left it at once, and has no kink ahead. With a
        tube the loss is the sum of two, of half of the box each.
        """
        if self.smooth:
            return super().restrict(scores, dscores, targets, weights)
        total = PiecewiseQuadratic.smooth(0.0, 0.0)
        parts = [(self.low, self.high, 0.0)]
        if self.tube:
            parts = [(0.0, self.high, self.tube), (self.low, 0.0, -self.tube)]
        ties = TIE_TOLERANCE, self._least(targets)
        for part in parts:
            kinks, jumps = np.empty_like(scores), np.empty_like(scores)
            args = scores, dscores, targets, weights, self.map.labels, *part, *ties
            slope, n = kernels.kinks_ahead(*args, kinks, jumps)
            total += PiecewiseQuadratic(slope, 0.0, kinks[:n], jumps[:n], np.zeros(n))
        return total

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return s_i / ridge in rows whose v changes with t, else zero.

        Rows at an edge, where both are generalized second derivatives, count as inside:
        a line search that ended there would end there again at once.
        """
        if not self.smooth:
            return super().curvature(scores, targets, weights)
        h = np.empty_like(scores)
        args = scores, targets, weights, *self._box, self.tube, self.ridge, self.center
        largest = max(-self.low, self.high)
        tolerance = _EDGE * (largest if largest < np.inf else 1.0)
        kernels.smooth_curvature(*args, tolerance, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        if not self.smooth:
            return super().derivatives(scores, dscores, targets, weights)
        q, dq = np.empty_like(scores), np.empty_like(scores)
        args = scores, dscores, targets, self.map.labels, self.ridge, self.center
        kernels.smooth_line(*args, q, dq)
        line = q, dq, weights, self.low, self.high, self.tube, self.ridge
        if self.analytic:
            slope, curvature = kernels.smooth_slope(*line, 0.0)
            return lambda step: (slope + step * curvature, curvature)
        return lambda step: kernels.smooth_slope(*line, step)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return how far the minimizer of a parabola above the loss is.

        Rows beyond the margin have none, and parabolas everywhere no end.
        """
        if self.analytic:
            return np.full(len(scores), np.inf)
        t = self.map.argument(scores, targets)
        return np.maximum(t, 0.0, out=t) if self.low == 0.0 else np.abs(t, out=t)

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return one for labels, and in units of the targets the width of a bend.

        That of piecewise linear losses is the mean distance of the residuals from their
        median, or a small share of the targets; that of half a box their mean.
        """
        if self.map.labels or self.analytic:
            return 1.0
        if self.smooth and self.center is None:
            return self.ridge * max(-self.low, self.high)
        size = float(weights @ np.abs(targets))
        if self.has_margin:
            return size or 1.0
        r = self.map.argument(scores, targets)
        spread = float(weights @ np.abs(r - np.median(r)))
        return max(spread, 1e-6 * size, self.tube) or 1.0

    def from_afar(self) -> tuple[Loss, float] | None:
        """Return the loss without its ridge, larger by that of the ends at most.

        Of residuals in any units; the margin of labels is not far from any.
        """
        largest = max(-self.low, self.high)
        if not self.smooth or self.center is not None or largest == np.inf:
            return None
        if self.map.labels:
            return None
        linear = QuadraticLoss(self.map, self.low, self.high, tube=self.tube)
        return linear, 0.5 * self.ridge * largest**2

    def rowwise_dual(self, targets: Floats) -> Intervals | None:
        """Return the intervals of v, or of y v for labels y; none of a tube."""
        if self.tube or self.center is not None:
            return None
        low, high = (np.full(targets.shape, end) for end in (self.low, self.high))
        if self.map.labels:
            up = targets > 0.0
            low, high = np.where(up, low, -high), np.where(up, high, -low)
        return Intervals(targets, low, high, self.ridge)

    def of_rows(self, rows: Rows) -> Loss:
        return self if self.center is None else self._around(self.center[rows])

    def envelope(self, center: Floats, width: float) -> QuadraticLoss:
        """Return the Moreau envelope around dual variables of shape (n,)."""
        return self._around(center, width)

    def _around(self, center: Floats, ridge: float | None = None) -> QuadraticLoss:
        ridge = self.ridge if ridge is None else ridge
        return QuadraticLoss(
            self.map, self.low, self.high, ridge=ridge, tube=self.tube, center=center
        )

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Shift all v alike where there are no ends."""
        if self.analytic:
            return dual - weights * float(dual.sum())
        return super().level(dual, targets, weights)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        if self.map.labels or not self.smooth or self.center is not None:
            return 1.0
        v = np.abs(centered(targets, weights)) / self.ridge
        return float(weights @ np.minimum(v, max(-self.low, self.high)))

    def _least(self, targets: Floats) -> float:
        """Return the least |z| to which ties are relative: targets may be small."""
        if self.map.labels:
            return 1.0
        return min(1.0, float(np.abs(targets).max(initial=0.0)))


class EntropyLoss(BoxLoss):
    """A loss with an entropy h, and all derivatives.

    Parameters
    ----------
    to_argument : Margin or Counts
    entropy : Entropy
        It has its own box.
    """

    smooth = True
    analytic = True

    def __init__(self, to_argument: Margin, entropy: Entropy) -> None:
        super().__init__(to_argument, entropy.low, entropy.high)
        self.entropy = entropy
        self.steep = entropy.high == np.inf

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        maxima = self.entropy.maximum(self.map.argument(scores, targets))
        return float(weights @ maxima) + self.map.linear(scores, targets, weights)

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        t = self.map.argument(scores, targets)
        return bool(np.any(t[weights > 0.0] > self.entropy.largest_argument))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.entropy.maximizer(self.map.argument(scores, targets))
        return self.map.dual(v, targets, weights)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sum_i s_i h(v_i), infinite out of the box."""
        v = self._variables(dual, targets, weights)
        # By rounding v may leave the box a little.
        lowest = (v + self.map.slack(targets)).min(initial=self.low)
        if lowest < self.low or v.max(initial=0.0) > self.high * (1.0 + 4.0 * _EPS):
            return np.inf
        return float(weights @ self.entropy.penalty(np.maximum(v, self.low, out=v)))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return that of u, and of u = 0 towards which dual variables shrink."""
        size = abs(conjugate)
        # Of labels u = 0 has v = 0, the size of which is zero.
        for u in (dual,) if self.map.labels else (dual, np.zeros_like(dual)):
            v = self._variables(u, targets, weights)
            sizes = self.entropy.penalty_size(np.maximum(v, self.low, out=v))
            size += float(weights @ sizes)
        return size

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        t = self.map.argument(scores, targets)
        return DiagonalCurvature(weights * self.entropy.curvature(t))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        entropy, constant = self.entropy, self.map.linear(dscores, targets, weights)
        t, dt = self.map.argument(scores, targets), self.map.change(dscores, targets)
        slopes = weights * dt
        curvatures = slopes * dt

        def at(step: float) -> tuple[float, float]:
            v = entropy.maximizer(t + step * dt)
            slope, bend = float(slopes @ v) + constant, entropy.bend(v)
            return slope, float(curvatures @ bend)

        return at

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Scale all means of counts alike, to the mean of the targets."""
        if self.map.labels:
            return super().level(dual, targets, weights)
        means = self.map.weighted(dual, targets, weights)
        total = float(means.sum())
        if total <= 0.0:
            return dual
        return means * (float(weights @ targets) / total) - weights * targets

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return 1.0 if self.map.labels else float(weights @ targets)


#: Losses of targets -1 or +1 by their names.
BINARY_LOSSES: dict[str, BoxLoss] = {
    "hinge": QuadraticLoss(Margin(1.0), 0.0, 1.0),
    "squared_hinge": QuadraticLoss(Margin(1.0), 0.0, np.inf, ridge=0.5),
    "modified_huber": QuadraticLoss(Margin(1.0), 0.0, 4.0, ridge=0.5),
    "log_loss": EntropyLoss(Margin(0.0), BinaryEntropy()),
    "exponential": EntropyLoss(Margin(0.0), Entropy()),
}

#: max(0, rho - z) (Schölkopf et al. 2001), of targets rho.
NOVELTY_LOSS = QuadraticLoss(Residual(), 0.0, 1.0)


def regression_losses(
    *, quantile: float = 0.5, epsilon: float = 1.35
) -> dict[str, BoxLoss]:
    """Return losses of numbers by their names.

    Parameters
    ----------
    quantile : float, default=0.5
        In (0, 1) (Koenker 2005).
    epsilon : float, default=1.35
        Half-width of the tube of the epsilon-insensitive loss (Vapnik et al. 1997), or
        largest residual with squares of Huber's loss.
    """
    residual = Residual()
    return {
        "squared_error": QuadraticLoss(residual, -np.inf, np.inf, ridge=1.0),
        "absolute_error": QuadraticLoss(residual, -1.0, 1.0),
        "quantile": QuadraticLoss(residual, quantile - 1.0, quantile),
        "epsilon_insensitive": QuadraticLoss(residual, -1.0, 1.0, tube=epsilon),
        "huber": QuadraticLoss(residual, -epsilon, epsilon, ridge=1.0),
        "poisson": EntropyLoss(Counts(), Entropy()),
    }
