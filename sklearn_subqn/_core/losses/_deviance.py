"""Half deviances of positive means exp(z) whose variance is a power of the mean.

With a = power - 1 and b = 2 - power the loss of a row is y exp(-a z) / a + exp(b z) / b
(Jørgensen 1987), where exp(b z) / b becomes z for b = 0, the gamma distribution; for
a = 0 it would be Poisson's loss. Each exponential function is the maximum over v >= 0
of v t - (v ln v - v) at its argument t: u = s (v - w) has the conjugate

    R*(u) = min over v - w = u / s of s [(v ln v - v) / b + (w ln(w / y) - w) / a].

Any split of u into v and w is a bound. The least one has v = exp(b z), w = y exp(-a z).
"""

from __future__ import annotations

import numpy as np

from ..rounding import MOST_STEPS, TINY, rounding
from ._base import Derivatives, Floats, Mask
from ._curvature import DiagonalCurvature
from ._oracle import Oracle
from ._smoothings import Entropy, entropy

_EXPONENTIAL = Entropy()


class Deviance(Oracle):
    """Half the deviance of means exp(z) of positive targets, except for a constant.

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

    def _arguments(self, scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Return b z and ln y - a z."""
        falling = _logarithms(targets)
        falling -= self._a * scores
        return self._b * scores, falling

    def _variables(self, scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Return v and w at scores."""
        rising, falling = self._arguments(scores, targets)
        return _EXPONENTIAL.maximizer(rising), _EXPONENTIAL.maximizer(falling)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        rising, falling = self._arguments(scores, targets)
        total = float(weights @ _EXPONENTIAL.maximum(falling)) / self._a
        if self._b:
            return total + float(weights @ _EXPONENTIAL.maximum(rising)) / self._b
        return total + float(weights @ scores)

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        used = weights > 0.0
        largest = _EXPONENTIAL.largest_argument
        arguments = self._arguments(scores[used], targets[used])
        return any(t.max(initial=0.0) > largest for t in arguments)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        v, w = self._variables(scores, targets)
        v -= w
        v *= weights
        return v

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        v, w = self._variables(scores, targets)
        return DiagonalCurvature(weights * (self._b * v + self._a * w))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        rising, falling = self._arguments(scores, targets)
        slopes = weights * dscores
        curvatures = slopes * dscores

        def at(step: float) -> tuple[float, float]:
            v = _EXPONENTIAL.maximizer(rising + (step * self._b) * dscores)
            w = _EXPONENTIAL.maximizer(falling - (step * self._a) * dscores)
            curvature = self._b * (curvatures @ v) + self._a * (curvatures @ w)
            return float(slopes @ (v - w)), float(curvature)

        return at

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u), infinite out of its domain.

        That is u <= s of the gamma distribution, and else u >= 0 where y = 0.
        """
        if not self.feasible(dual, targets, weights).all():
            return np.inf
        v, w = self._split(dual, targets, weights)
        total = float(weights @ (entropy(w) - w - w * _finite_logarithms(targets)))
        total /= self._a
        return total + float(weights @ (entropy(v) - v)) / self._b if self._b else total

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size for u, and for u = 0 towards which dual variables shrink."""
        size, logarithms = abs(conjugate), np.abs(_finite_logarithms(targets))
        for u in (dual, np.zeros_like(dual)):
            v, w = self._split(u, targets, weights)
            size += float(weights @ (np.abs(entropy(w)) + w + w * logarithms)) / self._a
            if self._b:
                size += float(weights @ (np.abs(entropy(v)) + v)) / self._b
        return size

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding leaves between u and s (v - w)."""
        lost = rounding(1.0) * np.add(*self._split(dual, targets, weights))
        return float(np.sqrt(weights @ (lost * lost)))

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

    def _split(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return v and w whose difference is u / s, of the least conjugate.

        In units of y^b and with x >= 1 for the larger of the two, the smaller one is x
        to a negative power, and x minus that is |u| / s.
        """
        change = np.zeros_like(dual)
        np.divide(dual, weights, out=change, where=weights > 0.0)
        if not self._b:
            return np.ones_like(dual), np.maximum(1.0 - change, 0.0)
        unit, size = targets**self._b, np.abs(change)
        power = np.where(change > 0.0, self._a / self._b, self._b / self._a)
        # The smaller part of larger differences in units of y^b vanishes.
        unit_or_more = np.maximum(np.maximum(unit, 1e-300 * size), TINY)
        smaller = unit * _less(size / unit_or_more, power)
        v = smaller + np.maximum(change, 0.0)
        return v, smaller + np.maximum(-change, 0.0)


def _less(difference: Floats, power: Floats) -> Floats:
    """Return x^-power for the x >= 1 with x - x^-power = difference >= 0.

    The function is concave and increasing: Newton's method goes up to the solution.
    Powers next to 1 or 2 take up to ten steps, others four to six.
    """
    x = np.maximum(difference, 1.0)
    for _ in range(MOST_STEPS):
        less = x**-power
        step = (difference + less - x) / (1.0 + power * less / x)
        x += step
        if not np.any(step > rounding(1.0) * x):
            break
    return np.asarray(x**-power)


def _logarithms(targets: Floats) -> Floats:
    """Return ln y, a new array; minus infinity where y = 0."""
    out = np.full(targets.shape, -np.inf)
    return np.log(targets, out=out, where=targets > 0.0)


def _finite_logarithms(targets: Floats) -> Floats:
    """Return ln y, zero where y = 0: dual variables are zero there."""
    return np.log(targets, out=np.zeros(targets.shape), where=targets > 0.0)
