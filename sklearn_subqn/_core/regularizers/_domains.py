"""Penalties of some of the parameters only, or of parameters within bounds."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats, Mask
from ._regularizer import Regularizer, elastic_net


class PartlyFree(Regularizer):
    """Another penalty with zeros in place of some of the parameters.

    Its conjugate is that of the other one, and takes v to be zero there.

    Parameters
    ----------
    penalty : Regularizer
    free : ndarray of bool, shape (n_penalized,)
    """

    def __init__(self, penalty: Regularizer, free: Mask) -> None:
        super().__init__(penalty.n_penalized)
        self.smooth, self.has_lines = penalty.smooth, penalty.has_lines
        self.free = free
        self._penalty = penalty

    def _without(self, w: Floats) -> Floats:
        w = w.copy()
        w[: self.n_penalized][self.free] = 0.0
        return w

    def value(self, w: Floats) -> float:
        return self._penalty.value(self._without(w))

    def gradient(self, w: Floats) -> Floats:
        return self._without(self._penalty.gradient(self._without(w)))

    def conjugate(self, v: Floats) -> float:
        return self._penalty.conjugate(self._without(v))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        others = self._without(v), self._without(radius)
        return self._penalty.conjugate_within(*others)

    def scaling(self, v: Floats) -> float:
        return self._penalty.scaling(self._without(v))


class Bounded(Regularizer):
    """rho ||w||_1 + (1 - rho) / 2 ||w||² for w between bounds, infinite elsewhere.

    Parameters
    ----------
    l1_ratio : float
        rho, in [0, 1).
    low, high : ndarray of shape (n_penalized,)
        With low <= 0 <= high, perhaps infinite.
    """

    smooth = True
    has_lines = False

    def __init__(self, l1_ratio: float, low: Floats, high: Floats) -> None:
        super().__init__(len(low))
        self.l1_ratio, self._low, self._high = l1_ratio, low, high
        self._penalty = elastic_net(len(low), l1_ratio)

    def value(self, w: Floats) -> float:
        return self._penalty.value(w) if self.contains(w) else np.inf

    def gradient(self, w: Floats) -> Floats:
        return self._penalty.gradient(w)

    def _attained(self, v: Floats) -> Floats:
        """Return the penalized w that attains Omega*(v): clipped soft thresholds."""
        shrunk = np.sign(v) * np.maximum(np.abs(v) - self.l1_ratio, 0.0)
        return np.clip(shrunk / (1.0 - self.l1_ratio), self._low, self._high)

    def _conjugates(self, v: Floats) -> Floats:
        w = self._attained(v)
        quadratic = 0.5 * (1.0 - self.l1_ratio) * w
        return np.asarray(w * (v - quadratic) - self.l1_ratio * np.abs(w))

    def conjugate(self, v: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(self._conjugates(v[: self.n_penalized]).sum())

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        with np.errstate(over="ignore"):
            ends = self._conjugates(v - radius), self._conjugates(v + radius)
        return float(np.maximum(*ends).sum())

    def conjugate_gradient(self, v: Floats) -> Floats:
        return self._padded(self._attained(v[: self.n_penalized]), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        w = self._attained(v[: self.n_penalized])
        inside = np.flatnonzero((w > self._low) & (w < self._high) & (w != 0.0))
        A = normals[:, inside]
        return A @ A.T / (1.0 - self.l1_ratio)

    def contains(self, w: Floats) -> bool:
        n = self.n_penalized
        return bool(np.all((w[:n] >= self._low) & (w[:n] <= self._high)))

    def curvature(self, w: Floats) -> Floats:
        return self._penalty.curvature(w)

    def is_held(self, w: Floats, gradient: Floats) -> Mask:
        """Return which parameters are at a bound beyond which a gradient descends."""
        n = self.n_penalized
        held = np.zeros(len(w), dtype=bool)
        held[:n] = (w[:n] <= self._low) & (gradient[:n] >= 0.0)
        held[:n] |= (w[:n] >= self._high) & (gradient[:n] <= 0.0)
        return held

    def nearest(self, w: Floats) -> Floats:
        inside = w.copy()
        inside[: self.n_penalized] = np.clip(
            w[: self.n_penalized], self._low, self._high
        )
        return inside

    def prox(self, v: Floats, step: float) -> Floats:
        """Return soft thresholds, as of the penalty without bounds, and clipped."""
        return self.nearest(self._penalty.prox(v, step))

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        ends = np.where(p > 0.0, self._high, self._low) - w
        moving = p != 0.0
        return float(np.min(ends[moving] / p[moving], initial=np.inf))
