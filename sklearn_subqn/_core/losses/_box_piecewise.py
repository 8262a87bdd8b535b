"""Losses of one score per row: intervals, and what is piecewise linear or quadratic."""

from __future__ import annotations

import functools

import numpy as np

from ..kernels import box as kernel
from ..rounding import CLOSE, rounding
from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    Floats,
    Looped,
    Mask,
    PiecewiseQuadratic,
    Rows,
)
from ._curvature import Curvature, DiagonalCurvature
from ._loss import Loss
from ._maps import Margin
from ._metric import centered
from ._smoothings import Quadratic


class Interval:
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


class BoxOracle(Loss):
    """What all maxima over a box have in common.

    Parameters
    ----------
    box : Interval
    """

    def __init__(self, box: Interval) -> None:
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
        return weights * np.minimum(*self._rooms(v, weights))

    def inward(
        self, dual: Floats, targets: Floats, weights: Floats, share: float
    ) -> Floats:
        v = self.dual_variables(dual, targets, weights)
        below, above = self._rooms(v, weights)
        return self.map.dual(v + share * (above - below), targets, weights)

    def _rooms(self, v: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return how far v is above its lower and below its upper ends.

        Where there is no end, as far as dual variables usually are from zero.
        """
        usual = float(weights @ np.abs(v)) or 1.0
        # Ends are known up to rounding.
        least = 4.0 * rounding(1.0) * np.maximum(np.abs(v), usual)
        rooms = v - self.set.low, self.set.high - v
        below, above = (np.where(room > least, room, 0.0) for room in rooms)
        return np.minimum(below, usual), np.minimum(above, usual)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v within the box; rows of no weight have the v of u = 0."""
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

    def __init__(self, box: Interval) -> None:
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

    @property
    def looped(self) -> Looped:
        return Looped(0, *self._box, self.set.tube, 0.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return kernel.value(scores, targets, weights, *self._box, self.set.tube)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u, with v = 0 at kinks (for hinges Yu 2009, eq. 3.27)."""
        u = np.empty_like(scores)
        args = scores, targets, weights, *self._box, self.set.tube
        kernel.subgradient(*args, TIE_TOLERANCE, self._least(targets), u)
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
            slope, n = kernel.kinks_ahead(
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
    box : Interval
    smoothing : Quadratic
    """

    def __init__(self, box: Interval, smoothing: Quadratic) -> None:
        super().__init__(box)
        self._ridge, self._center = smoothing.ridge, smoothing.center
        self.analytic = box.low == -np.inf and box.high == np.inf and not box.tube
        self.quadratic = self.analytic
        self._smoothed = *self._box, box.tube, smoothing.ridge, smoothing.center

    @property
    def looped(self) -> Looped | None:
        if self._center is not None:
            return None
        return Looped(0, *self._box, self.set.tube, self._ridge)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return kernel.smooth_value(scores, targets, weights, *self._smoothed)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        u = np.empty_like(scores)
        kernel.smooth_gradient(scores, targets, weights, *self._smoothed, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the conjugate without smoothing, plus the quadratic."""
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
        tolerance = CLOSE * (largest if largest < np.inf else 1.0)
        args = scores, targets, weights, *self._smoothed
        kernel.smooth_curvature(*args, tolerance, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        q, dq = np.empty_like(scores), np.empty_like(scores)
        labels, low, high, tube, ridge, center = self._smoothed
        kernel.smooth_line(scores, dscores, targets, labels, ridge, center, q, dq)
        line = q, dq, weights, low, high, tube, ridge
        if self.analytic:
            slope, curvature = kernel.smooth_slope(*line, 0.0)
            return lambda step: (slope + step * curvature, curvature)
        return functools.partial(kernel.smooth_slope, *line)

    def curvature_radius(self, scores: Floats, targets: Floats) -> Floats:
        """Return how far the minimizer of a parabola above the loss is.

        Rows beyond the margin have none, and parabolas everywhere no end.
        """
        if self.analytic:
            return np.full(len(scores), np.inf)
        t = self.map.argument(scores, targets)
        return np.maximum(t, 0.0, out=t) if self.has_margin else np.abs(t, out=t)

    def score_scale(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the width of a bend; an envelope has the width of what it smooths."""
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
