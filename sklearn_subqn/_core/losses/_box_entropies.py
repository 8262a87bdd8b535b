"""Losses of one score per row that are maxima less an entropy."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..kernels import logistic
from ._base import Derivatives, Floats, Looped
from ._box_oracle import BoxOracle, Interval
from ._curvature import DiagonalCurvature
from ._smoothings import Entropy


class BoxEntropy(BoxOracle):
    """The maximum over v >= 0 less v ln v - v.

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
        if (v + self.map.slack(targets)).min(initial=0.0) < 0.0:
            return np.inf
        return float(weights @ self.entropy.penalty(np.maximum(v, 0.0, out=v)))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return the size for u, and for u = 0 towards which dual variables shrink."""
        size = abs(conjugate)
        # With labels, u = 0 has v = 0, whose size is zero.
        for u in (dual,) if self.map.labels else (dual, np.zeros_like(dual)):
            v = self._variables(u, targets, weights)
            sizes = self.entropy.penalty_size(np.maximum(v, 0.0, out=v))
            size += float(weights @ sizes)
        return size

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        v = self.entropy.maximizer(self.map.argument(scores, targets))
        return DiagonalCurvature(weights * v)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        constant = self.map.linear(dscores, targets, weights)
        t = self.map.argument(scores, targets)
        dt = self.map.change(dscores, targets)
        slopes = weights * dt
        curvatures = slopes * dt

        def at(step: float) -> tuple[float, float]:
            v = self.entropy.maximizer(t + step * dt)
            return float(slopes @ v) + constant, float(curvatures @ v)

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
