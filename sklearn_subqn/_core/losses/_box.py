"""Losses of one score per row: intervals of dual variables.

The loss of a row is the maximum over v in a box [low, high] of v t - h(v). Score and
target make t (``_maps.py``), and h is nothing (hinge, absolute, quantile loss), a
quadratic (squared hinge, Huber's loss, squares; the Moreau envelopes of the former
around a center) or an entropy (logistic, exponential, Poisson's loss). At the end are
the tables that name them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import box as kernels
from ._base import (
    EPS,
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    DiagonalCurvature,
    Floats,
    Intervals,
    Mask,
    PiecewiseQuadratic,
    Rows,
)
from ._deviance import Deviance
from ._loss import Composed, Loss
from ._maps import Counts, Margin, Residual, Thresholds
from ._metric import centered
from ._oracle import DualSet, Oracle, Smoothing
from ._smoothings import BinaryEntropy, Entropy, Quadratic

# Dual variables this near to an end, relative to them, have no leeway.
_ROUNDED = 16.0 * EPS

# Rows this near to an edge of the box, relative to its size, lie on it.
_EDGE = 1e-9


class Box(DualSet):
    """The interval [low, high] of one dual variable v for each row.

    Parameters
    ----------
    to_argument : Margin, Residual or Counts
        From scores and targets to t.
    low, high : float
        With low <= 0 <= high.
    tube : float, default=0
        Is subtracted times |v|, which makes kinks at both ends of a tube around t = 0.
    """

    def __init__(
        self, to_argument: Margin, low: float, high: float, tube: float = 0.0
    ) -> None:
        self.map, self.low, self.high, self.tube = to_argument, low, high, tube
        self.largest = max(-low, high)

    def oracle(self, smoothing: Smoothing | None) -> Oracle:
        if smoothing is None:
            return BoxHinge(self)
        if isinstance(smoothing, Quadratic):
            return BoxQuadratic(self, smoothing)
        assert isinstance(smoothing, Entropy), "an entropy of one variable"
        return BoxEntropy(self, smoothing)

    def envelope(self, center: Floats, width: float) -> Quadratic:
        return Quadratic(width, center)

    def largest_penalty(self, smoothing: Smoothing) -> float | None:
        """Return that of residuals: the margin of labels is not far from any."""
        if not isinstance(smoothing, Quadratic) or self.map.labels:
            return None
        if smoothing.center is not None or self.largest == np.inf:
            return None
        return 0.5 * smoothing.ridge * self.largest**2

    def rowwise(self, targets: Any, smoothing: Smoothing | None) -> Intervals | None:
        """Return the intervals of v, or of y v for labels y; none of a tube."""
        ridge = 0.0
        if isinstance(smoothing, Quadratic) and smoothing.center is None:
            ridge = smoothing.ridge
        elif smoothing is not None:
            return None
        if self.tube:
            return None
        low, high = (np.full(targets.shape, end) for end in (self.low, self.high))
        if self.map.labels:
            up = targets > 0.0
            low, high = np.where(up, low, -high), np.where(up, high, -low)
        return Intervals(targets, low, high, ridge)


class BoxOracle(Oracle):
    """What all maxima over a box have in common.

    Parameters
    ----------
    box : Box
    """

    def __init__(self, box: Box) -> None:
        self.set, self.map = box, box.map
        self._box = box.map.labels, box.low, box.high

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding leaves out of the box."""
        slack = self.map.slack(targets)
        return float(np.sqrt(weights @ np.square(slack))) if np.ndim(slack) else 0.0

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        weighted = self.map.weighted(dual, targets, weights)
        inside = np.ones(len(weights), dtype=bool)
        _, low, high = self._box
        # Infinity times a weight of zero is no number.
        if low > -np.inf:
            inside &= weighted >= weights * (low - self.map.slack(targets))
        if high < np.inf:
            inside &= weighted <= weights * high
        return inside

    def leeway(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self._variables(dual, targets, weights)
        room = np.minimum(self.set.high - v, v - self.set.low)
        usual = float(weights @ np.abs(v)) or 1.0
        # Ends are known up to rounding.
        room[room <= _ROUNDED * np.maximum(np.abs(v), usual)] = 0.0
        return weights * np.clip(room, 0.0, usual)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v within the box; that of u = 0 in rows of no weight."""
        v = self._variables(dual, targets, weights)
        return np.clip(v, self.set.low, self.set.high, out=v)

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return the middle of the box."""
        return np.full(targets.shape, 0.5 * (self.set.low + self.set.high))

    def _variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.map.weighted(dual, targets, weights)
        return np.divide(v, weights, out=v, where=weights > 0.0)


class PiecewiseBox(BoxOracle):
    """What is piecewise linear or quadratic of them."""

    def __init__(self, box: Box) -> None:
        super().__init__(box)
        self.has_margin = box.low == 0.0

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y> + sum_i s_i h(v_i), finite for v in the box.

        The duals that this class returns are so; the caller answers for others.
        """
        total = float(dual @ targets)
        if self.set.tube:
            total += self.set.tube * float(np.abs(dual).sum())
        return total

    def score_scale(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return one for labels, and in units of the targets the width of a bend.

        That of piecewise linear losses is the mean distance of the residuals from their
        median, or a small share of the targets; that of half a box their mean.
        """
        if self.map.labels:
            return 1.0
        size = float(weights @ np.abs(targets))
        if self.has_margin:
            return size or 1.0
        r = self.map.argument(scores, targets)
        spread = float(weights @ np.abs(r - np.median(r)))
        return max(spread, 1e-6 * size, self.set.tube) or 1.0


class BoxHinge(PiecewiseBox):
    """The maximum over a box, without smoothing.

    It is piecewise linear, with a kink at t = 0, or at both ends of the tube.
    """

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return kernels.value(scores, targets, weights, *self._box, self.set.tube)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u, with v = 0 at kinks (for hinges Yu 2009, eq. 3.27)."""
        u = np.empty_like(scores)
        args = scores, targets, weights, *self._box, self.set.tube
        kernels.subgradient(*args, TIE_TOLERANCE, self._least(targets), u)
        return u

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        t = np.abs(self.map.argument(scores, targets))
        ties = TIE_TOLERANCE * np.maximum(self._least(targets), np.abs(scores))
        return np.flatnonzero(np.abs(t - self.set.tube) <= ties)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return v at its upper end where t grows, at its lower end where t falls.

        For hinges this is the choice of Yu (2009), eq. 3.28.
        """
        _, low, high = self._box
        change = self.map.change(dscores, targets)
        v = np.where(change > 0.0, high, np.where(change < 0.0, low, 0.0))
        if self.set.tube:
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
        labels, low, high = self._box
        total, tube = PiecewiseQuadratic.smooth(0.0, 0.0), self.set.tube
        parts = [(0.0, high, tube), (low, 0.0, -tube)] if tube else [(low, high, 0.0)]
        for part in parts:
            kinks, jumps = np.empty_like(scores), np.empty_like(scores)
            args = scores, dscores, targets, weights, labels, *part
            slope, n = kernels.kinks_ahead(
                *args, TIE_TOLERANCE, self._least(targets), kinks, jumps
            )
            total += PiecewiseQuadratic(slope, 0.0, kinks[:n], jumps[:n], np.zeros(n))
        return total

    def _least(self, targets: Floats) -> float:
        """Return the least |z| to which ties are relative: targets may be small."""
        if self.map.labels:
            return 1.0
        return min(1.0, float(np.abs(targets).max(initial=0.0)))


class BoxQuadratic(PiecewiseBox):
    """The maximum over a box less a quadratic.

    v is the soft threshold by tube / ridge of center + t / ridge, within the box: a
    differentiable, piecewise quadratic function, or a quadratic one where the box has
    no ends.

    Parameters
    ----------
    box : Box
    smoothing : Quadratic
    """

    def __init__(self, box: Box, smoothing: Quadratic) -> None:
        super().__init__(box)
        self._ridge, self._center = smoothing.ridge, smoothing.center
        self.analytic = box.low == -np.inf and box.high == np.inf and not box.tube
        self._smoothed = *self._box, box.tube, smoothing.ridge, smoothing.center

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return kernels.smooth_value(scores, targets, weights, *self._smoothed)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        u = np.empty_like(scores)
        kernels.smooth_gradient(scores, targets, weights, *self._smoothed, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return that without smoothing, and the quadratic."""
        v = self._variables(dual, targets, weights)
        shift = v if self._center is None else v - self._center
        square = float(weights @ (shift * shift))
        return super().conjugate(dual, targets, weights) + 0.5 * self._ridge * square

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size of <u, y>, and of both parts of differences to the center."""
        size = super().conjugate_size(dual, targets, weights, conjugate)
        if self._center is None:
            return size
        return size + self._ridge * float(weights @ np.square(self._center))

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return s_i / ridge in rows whose v changes with t, else zero.

        Rows at an edge, where both are generalized second derivatives, count as inside:
        a line search that ended there would end there again at once.
        """
        h = np.empty_like(scores)
        largest = self.set.largest
        tolerance = _EDGE * (largest if largest < np.inf else 1.0)
        args = scores, targets, weights, *self._smoothed
        kernels.smooth_curvature(*args, tolerance, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        q, dq = np.empty_like(scores), np.empty_like(scores)
        labels, low, high, tube, ridge, center = self._smoothed
        kernels.smooth_line(scores, dscores, targets, labels, ridge, center, q, dq)
        line = q, dq, weights, low, high, tube, ridge
        if self.analytic:
            slope, curvature = kernels.smooth_slope(*line, 0.0)
            return lambda step: (slope + step * curvature, curvature)
        return lambda step: kernels.smooth_slope(*line, step)

    def curvature_radius(self, scores: Floats, targets: Floats) -> Floats:
        """Return how far the minimizer of a parabola above the loss is.

        Rows beyond the margin have none, and parabolas everywhere no end.
        """
        if self.analytic:
            return np.full(len(scores), np.inf)
        t = self.map.argument(scores, targets)
        return np.maximum(t, 0.0, out=t) if self.has_margin else np.abs(t, out=t)

    def score_scale(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the width of a bend, or of envelopes that of what they smooth."""
        if self.analytic:
            return 1.0
        endless = self.set.largest == np.inf
        if self._center is not None or self.map.labels or endless:
            return super().score_scale(scores, targets, weights)
        return self._ridge * self.set.largest

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Shift all v alike where there are no ends."""
        if self.analytic:
            return dual - weights * float(dual.sum())
        return super().balance(dual, targets, weights)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        if self.map.labels or self._center is not None:
            return 1.0
        v = np.abs(centered(targets, weights)) / self._ridge
        return float(weights @ np.minimum(v, self.set.largest))


class BoxEntropy(BoxOracle):
    """The maximum over a box less an entropy.

    Parameters
    ----------
    box : Box
    entropy : Entropy
        Of the same box.
    """

    analytic = True

    def __init__(self, box: Box, entropy: Entropy) -> None:
        super().__init__(box)
        if (box.low, box.high, box.tube) != (entropy.low, entropy.high, 0.0):
            raise ValueError(
                f"{type(entropy).__name__} is the entropy of another box, from "
                f"{entropy.low:g} to {entropy.high:g}."
            )
        self.entropy = entropy
        self.steep = box.high == np.inf

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
        lowest = (v + self.map.slack(targets)).min(initial=self.set.low)
        if lowest < self.set.low or v.max(initial=0.0) > self.set.high * (
            1.0 + 4.0 * EPS
        ):
            return np.inf
        return float(weights @ self.entropy.penalty(np.maximum(v, self.set.low, out=v)))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return that of u, and of u = 0 towards which dual variables shrink."""
        size = abs(conjugate)
        # Of labels u = 0 has v = 0, the size of which is zero.
        for u in (dual,) if self.map.labels else (dual, np.zeros_like(dual)):
            v = self._variables(u, targets, weights)
            sizes = self.entropy.penalty_size(np.maximum(v, self.set.low, out=v))
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
        entropy, constant = (
            self.entropy,
            self.map.linear(dscores, targets, weights),
        )
        t, dt = (
            self.map.argument(scores, targets),
            self.map.change(dscores, targets),
        )
        slopes = weights * dt
        curvatures = slopes * dt

        def at(step: float) -> tuple[float, float]:
            v = entropy.maximizer(t + step * dt)
            slope, bend = float(slopes @ v) + constant, entropy.bend(v)
            return slope, float(curvatures @ bend)

        return at

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Scale all means of counts alike, to the mean of the targets."""
        if self.map.labels:
            return super().balance(dual, targets, weights)
        means = self.map.weighted(dual, targets, weights)
        total = float(means.sum())
        if total <= 0.0:
            return dual
        return means * (float(weights @ targets) / total) - weights * targets

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return 1.0 if self.map.labels else float(weights @ targets)


#: Losses of targets -1 or +1 by their names.
BINARY_LOSSES: dict[str, Loss] = {
    "hinge": Loss(Box(Margin(1.0), 0.0, 1.0)),
    "squared_hinge": Loss(Box(Margin(1.0), 0.0, np.inf), Quadratic(0.5)),
    "modified_huber": Loss(Box(Margin(1.0), 0.0, 4.0), Quadratic(0.5)),
    "log_loss": Loss(Box(Margin(0.0), 0.0, 1.0), BinaryEntropy()),
    "exponential": Loss(Box(Margin(0.0), 0.0, np.inf), Entropy()),
}

#: max(0, rho - z) (Schölkopf et al. 2001), of targets rho.
NOVELTY_LOSS = Loss(Box(Residual(), 0.0, 1.0))


def regression_losses(
    *, quantile: float = 0.5, epsilon: float = 1.35, power: float = 1.5
) -> dict[str, Loss]:
    """Return losses of numbers by their names.

    Parameters
    ----------
    quantile : float, default=0.5
        In (0, 1) (Koenker 2005).
    epsilon : float, default=1.35
        Half-width of the tube of the epsilon-insensitive loss (Vapnik et al. 1997), or
        largest residual with squares of Huber's loss.
    power : float, default=1.5
        Of the mean, to which Tweedie's variances are proportional, in (1, 2).
    """
    residual = Residual()
    return {
        "squared_error": Loss(Box(residual, -np.inf, np.inf), Quadratic(1.0)),
        "absolute_error": Loss(Box(residual, -1.0, 1.0)),
        "quantile": Loss(Box(residual, quantile - 1.0, quantile)),
        "epsilon_insensitive": Loss(Box(residual, -1.0, 1.0, tube=epsilon)),
        "squared_epsilon_insensitive": Loss(
            Box(residual, -np.inf, np.inf, tube=epsilon), Quadratic(0.5)
        ),
        "huber": Loss(Box(residual, -epsilon, epsilon), Quadratic(1.0)),
        "poisson": Loss(Box(Counts(), 0.0, np.inf), Entropy()),
        "gamma": Loss(Deviance(2.0)),
        "tweedie": Loss(Deviance(power)),
    }


class OrdinalLogistic(Composed):
    """Sum over thresholds of ln(1 + exp(-s_ik z_ik)) (Rennie and Srebro 2005).

    Classes are numbered from zero to K - 1, and the K - 1 scores z_ik of a row are
    those of its class being above k: s_ik is 1 if it is, and else -1. Each score is
    that of a binary problem; what these share is for the design to say.

    Parameters
    ----------
    immediate : bool
        Whether only the thresholds next to the class of a row count: see
        ``Thresholds``.
    """

    def __init__(self, *, immediate: bool = False) -> None:
        box, entropy = Box(Margin(0.0), 0.0, 1.0), BinaryEntropy()
        self.loss = Loss(box, entropy, Thresholds(immediate=immediate))
