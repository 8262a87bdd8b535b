"""Penalties on a subset of the parameters, and penalties with bounds on parameters."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats, Mask
from ._regularizer import L2, ElasticNet, Regularizer


class PartlyFree(Regularizer):
    """A penalty that leaves out the ``free`` parameters.

    The domain is the domain of the given penalty. If a free parameter is unbounded in
    it, the conjugate is finite only for v_j = 0. An entry v_j = 0 is exact; all other
    entries have rounding errors.

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
        if not self._penalty.contains(w):
            return np.inf
        return self._penalty.value(self._without(w))

    def gradient(self, w: Floats) -> Floats:
        return self._without(self._penalty.gradient(self._without(w)))

    def conjugate(self, v: Floats) -> float:
        return self.conjugate_within(v, np.zeros(self.n_penalized))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        others = self._without(v), self._without(radius)
        free = float(self.support_within(v, radius)[self.free].sum())
        return self._penalty.conjugate_within(*others) + free

    def support(self, v: Floats) -> Floats:
        return self._penalty.support(v)

    def support_within(self, v: Floats, radius: Floats) -> Floats:
        """Return the largest v_j w_j over the domain, for v_j known up to a radius.

        The result has shape (n_penalized,). An entry v_j = 0 is exact.
        """
        v = v[: self.n_penalized]
        radius = np.where(v == 0.0, 0.0, radius)
        values = self._penalty.support(v - radius), self._penalty.support(v + radius)
        return np.maximum(*values)

    def scaling(self, v: Floats) -> float:
        return self.scaling_within(v, np.zeros(self.n_penalized))

    def scaling_within(self, v: Floats, radius: Floats) -> float:
        if self.support_within(v, radius)[self.free].any():
            return 0.0
        others = self._without(v), self._without(radius)
        return self._penalty.scaling_within(*others)

    def nearest(self, w: Floats) -> Floats:
        return self._penalty.nearest(w)

    def limits(self) -> Floats:
        return np.where(self.free, 0.0, self._penalty.limits())


class Confined(Regularizer):
    """Squares on a convex set or an elastic net on a box, infinite elsewhere.

    Parameters
    ----------
    penalty : Regularizer
        The penalty without the limits of the set.
    """

    smooth = True
    has_lines = False

    def __init__(self, penalty: L2 | ElasticNet) -> None:
        super().__init__(penalty.n_penalized)
        self._penalty = penalty

    def value(self, w: Floats) -> float:
        return self._penalty.value(w) if self.contains(w) else np.inf

    def gradient(self, w: Floats) -> Floats:
        return self._penalty.gradient(w)

    def curvature(self, w: Floats) -> Floats:
        return self._penalty.curvature(w)

    def prox(self, v: Floats, step: float) -> Floats:
        """Return the proximal point without limits, projected onto the set."""
        return self.nearest(self._penalty.prox(v, step))


class Bounded(Confined):
    """rho ||w||_1 + (1 - rho) / 2 ||w||² for w between bounds, infinite elsewhere.

    Parameters
    ----------
    l1_ratio : float
        rho, in [0, 1).
    low, high : ndarray of shape (n_penalized,)
        Bounds with low <= 0 <= high; may be infinite.
    """

    _penalty: ElasticNet

    def __init__(self, l1_ratio: float, low: Floats, high: Floats) -> None:
        super().__init__(ElasticNet(len(low), l1_ratio))
        self.l1_ratio, self._low, self._high = l1_ratio, low, high

    def _attained(self, v: Floats) -> Floats:
        """Return the maximizer w of Omega*(v), a clipped soft threshold of v."""
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
            values = self._conjugates(v - radius), self._conjugates(v + radius)
        return float(np.maximum(*values).sum())

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

    def support(self, v: Floats) -> Floats:
        # Avoid 0 times infinity: the support at v_j = 0 is zero.
        bounds = np.where(v > 0.0, self._high, self._low)
        return v * np.where(v == 0.0, 0.0, bounds)

    def smallest_subgradient(self, w: Floats, gradient: Floats, alpha: float) -> Floats:
        """Return the smallest subgradient of the penalty without its bounds."""
        return self._penalty.smallest_subgradient(w, gradient, alpha)

    def is_held(self, w: Floats, g: Floats) -> Mask:
        """Return a mask of parameters that stay at a bound or zero, given g."""
        n, fixed = self.n_penalized, self._penalty.is_held(w, g)
        fixed[:n] |= (w[:n] <= self._low) & (g[:n] >= 0.0)
        fixed[:n] |= (w[:n] >= self._high) & (g[:n] <= 0.0)
        return fixed

    def nearest(self, w: Floats) -> Floats:
        inside = w.copy()
        inside[: self.n_penalized] = np.clip(
            w[: self.n_penalized], self._low, self._high
        )
        return inside

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        distances = np.where(p > 0.0, self._high, self._low) - w
        moving = p != 0.0
        return float(np.min(distances[moving] / p[moving], initial=np.inf))
