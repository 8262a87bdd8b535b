"""Oracles of losses of one score per row.

The loss of a row is the maximum over v in a box of v t - h(v). The formulas of the
losses are branches in ``kernels/row_losses.pxd``, selected by a ``RowForm``.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..kernels import row_loss as kernel
from ..rounding import CLOSE, rounding
from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    Floats,
    Mask,
    PiecewiseQuadratic,
    RowForm,
    Rows,
    norm_by_weights,
)
from ._curvature import DiagonalCurvature
from ._loss import Loss
from ._maps import Counts, Margin
from ._metric import centered
from ._of_duals import ConjugateWithSize
from ._smoothings import Entropy, Quadratic


class RowLoss(ConjugateWithSize, Loss):
    """The maximum over a box, of one dual variable v for each row.

    Parameters
    ----------
    score_map : Margin
        Computes t from scores and targets.
    form : RowForm
    center : ndarray of shape (n,), optional
        Center of the envelope, for forms with a width.
    """

    def __init__(
        self, score_map: Margin, form: RowForm, center: Floats | None = None
    ) -> None:
        self.map, self._form, self._center = score_map, form, center
        self._largest = max(-form.low, form.high)
        self._is_box = form.kind == Quadratic.kind
        endless = form.low == -np.inf and form.high == np.inf and not form.tube
        self.quadratic = self._is_box and endless
        self.analytic = self.quadratic or not self._is_box
        self.has_margin = self._is_box and form.low == 0.0

    @property
    def looped(self) -> RowForm | None:
        return self._form if self._center is None else None

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return kernel.value(self._form, scores, targets, weights, self._center)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self._derivatives(1, scores, targets, weights)

    def _derivatives(
        self,
        order: int,
        scores: Floats,
        targets: Floats,
        weights: Floats,
        tie: float = 0.0,
        least: float = 1.0,
    ) -> Floats:
        out = np.empty_like(scores)
        args = scores, targets, weights, self._center
        kernel.derivatives(self._form, *args, order, tie, least, out)
        return out

    def score_scale(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the unit of scores: one for labels, else the width of the curved part.

        For piecewise linear losses it is the mean distance of the residuals from their
        median, at least a small share of the targets; if the box has an end at zero, it
        is the mean residual. An envelope returns the width of the loss that it smooths.
        """
        if self.map.labels or self.analytic:
            return 1.0
        if self._form.ridge and self._center is None and self._largest < np.inf:
            return self._form.ridge * self._largest
        size = float(weights @ np.abs(targets))
        if self.has_margin:
            return size or 1.0
        r = self.map.argument(scores, targets)
        spread = float(weights @ np.abs(r - np.median(r)))
        return max(spread, 1e-6 * size, self._form.tube) or 1.0

    # --- dual points -----------------------------------------------------------------

    def conjugate_and_rest(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        """Return R*(u), and its size at u or, if larger, at u = 0 without |R*(u)|."""
        arrays = map(np.ascontiguousarray, (dual, targets, weights))
        return kernel.conjugate(self._form, *arrays, self._center)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        weighted = self.map.weighted(dual, targets, weights)
        inside = np.ones(len(weights), dtype=bool)
        low, high = self._form.low, self._form.high
        # Infinity times a weight of zero is NaN.
        if low > -np.inf:
            inside &= weighted >= weights * (low - self.map.slack(targets))
        if high < np.inf:
            inside &= weighted <= weights * high
        return inside

    def leeway(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self._variables(dual, targets, weights)
        return weights * np.minimum(*self._distances(v, weights))

    def inward(
        self, dual: Floats, targets: Floats, weights: Floats, share: float
    ) -> Floats:
        v = self.dual_variables(dual, targets, weights)
        below, above = self._distances(v, weights)
        return self.map.dual(v + share * (above - below), targets, weights)

    def _distances(self, v: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the distances of v from its lower and upper ends.

        Without an end, the distance is a typical size of dual variables.
        """
        usual = float(weights @ np.abs(v)) or 1.0
        # Distances from the ends have rounding errors.
        uncertain = 4.0 * rounding(1.0) * np.maximum(np.abs(v), usual)
        distances = v - self._form.low, self._form.high - v
        below, above = (np.where(x > uncertain, x, 0.0) for x in distances)
        return np.minimum(below, usual), np.minimum(above, usual)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v projected onto the box; rows of zero weight have the v of u = 0."""
        v = self._variables(dual, targets, weights)
        return np.clip(v, self._form.low, self._form.high, out=v)

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return the middle of the box."""
        return np.full(targets.shape, 0.5 * (self._form.low + self._form.high))

    def _variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.map.weighted(dual, targets, weights)
        return np.divide(v, weights, out=v, where=weights > 0.0)


class KinkedRowLoss(RowLoss):
    """Piecewise linear losses, with a kink at t = 0, or at both ends of the tube."""

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u, with v = 0 at kinks (for hinges Yu 2009, eq. 3.27)."""
        ties = TIE_TOLERANCE, self._tie_unit(targets)
        return self._derivatives(1, scores, targets, weights, *ties)

    def _tie_unit(self, targets: Floats) -> float:
        """Return the unit of tie tolerances, small if all targets are small."""
        if self.map.labels:
            return 1.0
        return min(1.0, float(np.abs(targets).max(initial=0.0)))

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        t = np.abs(self.map.argument(scores, targets))
        ties = TIE_TOLERANCE * np.maximum(self._tie_unit(targets), np.abs(scores))
        return np.flatnonzero(np.abs(t - self._form.tube) <= ties)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return v at its upper end where t increases, else at its lower end.

        For hinges this subgradient is eq. 3.28 of Yu (2009).
        """
        change = self.map.change(dscores, targets)
        low, high = self._form.low, self._form.high
        v = np.where(change > 0.0, high, np.where(change < 0.0, low, 0.0))
        if self._form.tube:
            above = self.map.argument(scores, targets) > 0.0
            v = np.where((v > 0.0) == above, v, 0.0)
        return self.map.dual(v, targets, weights)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope (for hinges Yu 2009, 3.31) with its jumps (3.33).

        A row on a kink at eta = 0 leaves it immediately and has no kink at eta > 0.
        With a tube the loss is the sum of two losses, each over one half of the box.
        """
        form, total = self._form, PiecewiseQuadratic.smooth(0.0, 0.0)
        low, high, tube = form.low, form.high, form.tube
        parts = [(0.0, high, tube), (low, 0.0, -tube)] if tube else [(low, high, 0.0)]
        for part in parts:
            kinks, jumps = np.empty_like(scores), np.empty_like(scores)
            args = scores, dscores, targets, weights, form.labels, *part
            slope, n = kernel.kinks_ahead(
                *args, TIE_TOLERANCE, self._tie_unit(targets), kinks, jumps
            )
            total += PiecewiseQuadratic(slope, 0.0, kinks[:n], jumps[:n], np.zeros(n))
        return total


class SmoothRowLoss(RowLoss):
    """Losses that the smoothing h makes differentiable."""

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return second derivatives; rows at the end of a curved part count as inside.

        Both one-sided values are generalized second derivatives at such a row. With the
        values outside of the curved part, a line search that ended at this point ends
        there again.
        """
        tie = CLOSE * (self._largest if self._largest < np.inf else 1.0)
        return DiagonalCurvature(self._derivatives(2, scores, targets, weights, tie))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        args = scores, dscores, targets, weights, self._center
        line = partial(kernel.on_line, self._form, *args)
        if not self.quadratic:
            return line
        slope, curvature = line(0.0)
        return lambda step: (slope + step * curvature, curvature)

    def curvature_radius(self, scores: Floats, targets: Floats) -> Floats:
        """Return the distance to the minimizer of a parabola above the loss.

        For piecewise quadratic losses. It is zero for rows beyond the margin, and
        infinite for a loss that is a parabola.
        """
        if not self._is_box:
            return super().curvature_radius(scores, targets)
        if self.quadratic:
            return np.full(len(scores), np.inf)
        t = self.map.argument(scores, targets)
        return np.maximum(t, 0.0, out=t) if self.has_margin else np.abs(t, out=t)

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u after an equal shift of all v, if the box has no ends."""
        if self.quadratic:
            return dual - weights * float(dual.sum())
        return super().balance(dual, targets, weights)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        if self.map.labels or not self._form.ridge:
            return 1.0
        v = np.abs(centered(targets, weights)) / self._form.ridge
        return float(weights @ np.minimum(v, self._largest))


class SteepRowLoss(SmoothRowLoss):
    """Exponential functions of scores, whose dual points are unbounded."""

    steep = True

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        t = self.map.argument(scores, targets)
        return bool(np.any(t[weights > 0.0] > Entropy.largest_argument))


class Deviance(SteepRowLoss):
    """Half the deviance of means exp(z), up to a constant.

    Rows with y = 0 need only one exponential function; in insurance most claims are
    zero.

    Parameters
    ----------
    power : float
        Power of the mean to which variances are proportional (Jørgensen 1987): 1 for
        Poisson's distribution; in (1, 2) for Tweedie's compound of Poisson and gamma
        distributions, where targets may be zero; 2 for the gamma distribution, of
        positive targets.
    """

    def __init__(self, power: float) -> None:
        if not 1.0 <= power <= 2.0:
            raise ValueError(f"power must be in [1, 2]; got {power:g}.")
        self.power = power
        form = RowForm(Entropy.kind, False, 0.0, np.inf, a=power - 1.0)
        super().__init__(Counts(), form)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        """Return the slope and second derivative as a function of a step along a line.

        If all scores change equally, as with an intercept, exponential functions change
        by a common factor, and their sums need not be computed again.
        """
        line = super().derivatives(scores, dscores, targets, weights)
        shift = float(dscores[0]) if len(dscores) else 0.0
        if shift * shift == 0.0 or not np.all(dscores == shift):
            return line
        slope, curvature = line(0.0)
        a, b = self.power - 1.0, 2.0 - self.power
        slope, curvature = slope / shift, curvature / (shift * shift)
        rising, falling = curvature + a * slope, curvature - b * slope
        largest = self._most(scores, targets)

        def at(step: float) -> tuple[float, float]:
            change = step * shift
            if largest + abs(change) > Entropy.largest_argument:
                return line(step)
            v, w = rising * np.exp(b * change), falling * np.exp(-a * change)
            return shift * float(v - w), shift * shift * float(b * v + a * w)

        return at

    def _most(self, scores: Floats, targets: Floats) -> float:
        """Return an upper bound of the arguments of both exponential functions."""
        most = float(scores.max(initial=0.0))
        if self.power > 1.0:
            most = max(most, -float(scores.min(initial=0.0)))
            most += math.log(float(targets.max(initial=1.0)))
        return most

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        if self._most(scores, targets) <= Entropy.largest_argument:
            return False
        used, a = weights > 0.0, self.power - 1.0
        z, y = scores[used], targets[used]
        largest = (2.0 - self.power) * z
        if a:
            ln = np.log(y, out=np.full(y.shape, -np.inf), where=y > 0.0)
            largest = np.maximum(largest, ln - a * z)
        return bool(np.any(largest > Entropy.largest_argument))

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        if self.power == 1.0:
            return super().feasible(dual, targets, weights)
        if self.power < 2.0:
            return np.asarray((dual >= 0.0) | (targets > 0.0))
        return np.asarray(dual <= (1.0 + rounding(1.0)) * weights)

    def leeway(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        if self.power == 1.0:
            return super().leeway(dual, targets, weights)
        usual = float(np.abs(dual).sum()) or 1.0
        if self.power < 2.0:
            return np.where(targets > 0.0, usual * weights, np.maximum(dual, 0.0))
        return np.clip(weights - dual, 0.0, usual * weights)

    def inward(
        self, dual: Floats, targets: Floats, weights: Floats, share: float
    ) -> Floats:
        """Return u after a step away from the ends of the domain; only for counts."""
        if self.power > 1.0:
            return dual
        return super().inward(dual, targets, weights, share)

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return a bound of the rounding error of u = s (v - w), in norm.

        The larger of v and w is at most y^b + |u| / s.
        """
        size = targets ** (2.0 - self.power)
        size *= weights
        size += np.abs(dual)
        return 2.0 * rounding(1.0) * norm_by_weights(size, weights)

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Scale the means of counts by a common factor, to the mean of the targets."""
        if self.power > 1.0:
            return super().balance(dual, targets, weights)
        means = self.map.weighted(dual, targets, weights)
        total = float(means.sum())
        if total <= 0.0:
            return dual
        means *= float(weights @ targets) / total
        means -= weights * targets
        return means

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ targets) ** (2.0 - self.power)
