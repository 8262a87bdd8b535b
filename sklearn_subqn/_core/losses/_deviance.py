"""Half deviances of positive means exp(z) whose variance is a power of the mean.

With a = power - 1 and b = 2 - power the loss of a row is y exp(-a z) / a + exp(b z) / b
(Jørgensen 1987), where exp(b z) / b becomes z for b = 0, the gamma distribution; for
a = 0 it would be Poisson's loss. Each exponential function is the maximum over v >= 0
of v t - (v ln v - v) at its argument t: u = s (v - w) has the conjugate

    R*(u) = min over v - w = u / s of s [(v ln v - v) / b + (w ln(w / y) - w) / a].

Any split of u into v and w is a bound. The least one has v = exp(b z), w = y exp(-a z).
In units of y^b and with x >= 1 for the larger of the two, the smaller one is x to a
negative power.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..kernels import deviance
from ..rounding import rounding
from ._base import Derivatives, Floats, Looped, Mask, norm_by_weights
from ._curvature import DiagonalCurvature
from ._loss import Loss
from ._smoothings import Entropy


class Deviance(Loss):
    """Half the deviance of means exp(z) of positive targets, except for a constant.

    By compiled loops, in which rows with y = 0 have one exponential function only: most
    claims are zero.

    Parameters
    ----------
    power : float
        Of the mean, to which variances are proportional: in (1, 2) for Tweedie's
        compound of Poisson and gamma distributions, where targets may be zero; 2 for
        the gamma distribution, of positive targets.
    """

    analytic = True
    steep = True

    def __init__(self, power: float) -> None:
        if not 1.0 < power <= 2.0:
            raise ValueError(f"power must be in (1, 2]; got {power:g}.")
        self.power = power
        self._a, self._b = power - 1.0, 2.0 - power

    @property
    def looped(self) -> Looped | None:
        return None if self._b else Looped(4, False, 0.0, np.inf, 0.0, 0.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return deviance.value(scores, targets, weights, self._a, self._b)

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        used = weights > 0.0
        z, y = scores[used], targets[used]
        falling = np.log(y, out=np.full(y.shape, -np.inf), where=y > 0.0) - self._a * z
        largest = Entropy.largest_argument
        return any(t.max(initial=0.0) > largest for t in (self._b * z, falling))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        u = np.empty_like(scores)
        deviance.subgradient(scores, targets, weights, self._a, self._b, u)
        return u

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        h = np.empty_like(scores)
        deviance.curvature(scores, targets, weights, self._a, self._b, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        args = scores, dscores, targets, weights
        return derivatives_on_line(*args, self._a, self._b)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u), infinite out of its domain.

        That is u <= s of the gamma distribution, and else u >= 0 where y = 0.
        """
        return self.conjugate_and_size(dual, targets, weights)[0]

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size for u, and for u = 0 towards which dual variables shrink."""
        sums = deviance.conjugate(dual, targets, weights, self._a, self._b)
        return abs(conjugate) + sums[1]

    def conjugate_and_size(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        sums = deviance.conjugate(dual, targets, weights, self._a, self._b)
        return sums[0], abs(sums[0]) + sums[1]

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding leaves between u and s (v - w).

        The larger of v and w is at most y^b more than |u| / s.
        """
        size = targets**self._b
        size *= weights
        size += np.abs(dual)
        return 2.0 * rounding(1.0) * norm_by_weights(size, weights)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        if self._b:
            return np.asarray((dual >= 0.0) | (targets > 0.0))
        return np.asarray(dual <= (1.0 + rounding(1.0)) * weights)

    def leeway(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        usual = float(np.abs(dual).sum()) or 1.0
        if self._b:
            return np.where(targets > 0.0, usual * weights, np.maximum(dual, 0.0))
        return np.clip(weights - dual, 0.0, usual * weights)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ targets) ** self._b


def derivatives_on_line(
    scores: Floats,
    dscores: Floats,
    targets: Floats,
    weights: Floats,
    a: float,
    b: float,
) -> Derivatives:
    """Return the slope and second derivative as a function of a step along a line.

    Where all scores change alike, as with an intercept, exponential functions change by
    factors: their sums are known at once.
    """
    on_line = partial(deviance.on_line, scores, dscores, targets, weights, a, b)
    shift = float(dscores[0]) if len(dscores) else 0.0
    if shift == 0.0 or not np.all(dscores == shift):
        return on_line
    rising, falling, largest = deviance.sums(scores, targets, weights, a, b)

    def at(step: float) -> tuple[float, float]:
        change = step * shift
        if largest + abs(change) > Entropy.largest_argument:
            return on_line(step)
        v, w = rising * np.exp(b * change), falling * np.exp(-a * change)
        return shift * float(v - w), shift * shift * float(b * v + a * w)

    return at
