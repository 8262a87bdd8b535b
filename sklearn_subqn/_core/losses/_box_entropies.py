"""Losses of one score per row that are maxima less an entropy."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..kernels import deviance, logistic
from ._base import Derivatives, Floats, Looped
from ._box_piecewise import BoxOracle, Interval
from ._curvature import DiagonalCurvature
from ._deviance import derivatives_on_line
from ._smoothings import Entropy


class BoxEntropy(BoxOracle):
    """The maximum over v >= 0 less v ln v - v, of labels.

    Parameters
    ----------
    box : Interval
    entropy : Entropy
    """

    analytic = True
    steep = True

    def __init__(self, box: Interval, entropy: Entropy) -> None:
        super().__init__(box)
        self.entropy = entropy

    @property
    def looped(self) -> Looped:
        return Looped(2, *self._box, 0.0, 0.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        maxima = self.entropy.maximum(self.map.argument(scores, targets))
        return float(weights @ maxima)

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        t = self.map.argument(scores, targets)
        return bool(np.any(t[weights > 0.0] > self.entropy.largest_argument))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.entropy.maximizer(self.map.argument(scores, targets))
        return self.map.dual(v, targets, weights)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sum_i s_i h(v_i), infinite out of the box."""
        v = self._variables(dual, targets, weights)
        if v.min(initial=0.0) < 0.0:
            return np.inf
        return float(weights @ self.entropy.penalty(np.maximum(v, 0.0, out=v)))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size for u; that of v = 0, towards which v shrinks, is zero."""
        v = self._variables(dual, targets, weights)
        sizes = self.entropy.penalty_size(np.maximum(v, 0.0, out=v))
        return abs(conjugate) + float(weights @ sizes)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        v = self.entropy.maximizer(self.map.argument(scores, targets))
        return DiagonalCurvature(weights * v)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        t = self.map.argument(scores, targets)
        dt = self.map.change(dscores, targets)
        slopes = weights * dt
        curvatures = slopes * dt

        def at(step: float) -> tuple[float, float]:
            v = self.entropy.maximizer(t + step * dt)
            return float(slopes @ v), float(curvatures @ v)

        return at


class BoxCounts(BoxOracle):
    """The maximum over v >= 0 less v ln v - v, of expected counts: Poisson's loss.

    By compiled loops.

    Parameters
    ----------
    box : Interval
        Its argument is t = z.
    """

    analytic = True
    steep = True

    @property
    def looped(self) -> Looped:
        return Looped(2, *self._box, 0.0, 0.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return deviance.value(scores, targets, weights, 0.0, 1.0)

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        return bool(np.any(scores[weights > 0.0] > Entropy.largest_argument))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        u = np.empty_like(scores)
        deviance.subgradient(scores, targets, weights, 0.0, 1.0, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sum_i s_i h(v_i), infinite out of the box."""
        return self.conjugate_and_size(dual, targets, weights)[0]

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size for u, and for u = 0 towards which dual variables shrink."""
        sums = deviance.conjugate(dual, targets, weights, 0.0, 1.0)
        return abs(conjugate) + sums[1]

    def conjugate_and_size(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        sums = deviance.conjugate(dual, targets, weights, 0.0, 1.0)
        return sums[0], abs(sums[0]) + sums[1]

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        h = np.empty_like(scores)
        deviance.curvature(scores, targets, weights, 0.0, 1.0, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        return derivatives_on_line(scores, dscores, targets, weights, 0.0, 1.0)

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Scale all means of counts alike, to the mean of the targets."""
        means = self.map.weighted(dual, targets, weights)
        total = float(means.sum())
        if total <= 0.0:
            return dual
        means *= float(weights @ targets) / total
        means -= weights * targets
        return means

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        return float(weights @ targets)


class BoxLogistic(BoxOracle):
    """The maximum over v in [0, 1] less the entropy of v and 1 - v.

    By compiled loops: fits to many rows take most of their time in exponentials.

    Parameters
    ----------
    box : Interval
        Its argument is t = -y z.
    """

    analytic = True

    def __init__(self, box: Interval) -> None:
        if (box.low, box.high, box.tube) != (0.0, 1.0, 0.0):
            raise ValueError("BinaryEntropy is an entropy of the interval [0, 1].")
        if not box.map.labels or box.map.offset:
            raise ValueError("BinaryEntropy is for margins of labels, without offset.")
        super().__init__(box)

    @property
    def looped(self) -> Looped:
        return Looped(1, *self._box, 0.0, 0.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return logistic.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        u = np.empty_like(scores)
        logistic.subgradient(scores, targets, weights, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sum_i s_i h(v_i), infinite out of the box."""
        return logistic.conjugate(dual, targets, weights)

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return that, and how much h changes with v where that is near one."""
        change = logistic.conjugate_change(dual, targets, weights)
        return abs(conjugate) + change

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        h = np.empty_like(scores)
        logistic.curvature(scores, targets, weights, h)
        return DiagonalCurvature(h)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        return partial(logistic.on_line, scores, dscores, targets, weights)
