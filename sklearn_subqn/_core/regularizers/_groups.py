"""Norms of groups of parameters, with L1 norms and squares inside the groups."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..losses._base import Floats, Mask, Rows
from ..rounding import MOST_STEPS, rounding
from ._regularizer import Regularizer

# Vectors are scaled to a million times the largest norm of a feasible vector.
_FAR = 1e6


class GroupPenalty(Regularizer):
    """Omega(w) = sum_g a_g ||w_g||_1 + b_g ||w_g||_2 + c_g / 2 ||w_g||² over groups g.

    With the soft threshold T_g of v_g at a_g, the conjugate is the sum of max(||T_g|| -
    b_g, 0)² / (2 c_g), and for c_g = 0 the indicator of ||T_g|| <= b_g (Yuan and Lin
    2006; Simon et al. 2013, section 3.1; Ndiaye et al. 2017, section 4).

    Parameters
    ----------
    labels : ndarray of int, of shape (n_penalized,)
        The group 0, 1, ... of each parameter.
    l1, norm, square : ndarray of shape (n_groups,)
        a, b and c. Parameters of a group where all are zero are free.
    side : ndarray of shape (n_penalized,), optional
        Signs 1 or -1 of the parameters: Omega is infinite for other signs. Zero allows
        both signs.
    """

    smooth = False
    has_lines = False

    def __init__(
        self,
        labels: Rows,
        l1: Floats,
        norm: Floats,
        square: Floats,
        side: Floats | None = None,
    ) -> None:
        super().__init__(len(labels))
        self.labels, self.l1, self.norm, self.square = labels, l1, norm, square
        self.side = np.zeros(len(labels)) if side is None else side
        #: Whether the conjugate is finite and differentiable everywhere.
        self.bends = bool(np.all(square > 0.0))
        sizes = np.bincount(labels, minlength=len(norm))
        self._more = 1.0 + rounding(int(sizes.max(initial=0)))

    def with_side(self, side: Floats) -> Self:
        """Return the penalty with signs of the parameters."""
        return type(self)(self.labels, self.l1, self.norm, self.square, side)

    def restricted(self, places: Rows, factor: float) -> Self:
        """Return ``factor`` times the penalty of ``places``; -1 means free.

        Groups are numbered in the order of their first places.
        """
        n, free = len(self.norm), places < 0
        labels = np.where(free, n, self.labels[places])
        kept, first, labels = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first)
        kept, labels = kept[order], np.argsort(order)[labels]
        l1, norm, square = (
            np.append(factor * x, 0.0)[kept] for x in (self.l1, self.norm, self.square)
        )
        side = np.where(free, 0.0, self.side[places])
        return type(self)(labels, l1, norm, square, side)

    def norms(self, v: Floats) -> Floats:
        """Return ||v_g|| of all groups, rounded up; no squares overflow."""
        _, exponent = np.frexp(np.abs(v).max(initial=0.0))
        v = np.ldexp(v, -exponent)
        squares = np.bincount(self.labels, v * v, minlength=len(self.norm))
        with np.errstate(over="ignore"):
            return np.ldexp(self._more * np.sqrt(squares), exponent)

    def thresholded(self, v: Floats, factor: float = 1.0) -> Floats:
        """Return the soft threshold of v at ``factor`` times a_g, of shape (n,)."""
        sign = np.where(self.side == 0.0, np.sign(v), self.side)
        return sign * np.maximum(sign * v - factor * self.l1[self.labels], 0.0)

    def _shrunk(self, v: Floats, factor: float = 1.0) -> Floats:
        """Return the thresholds less their projections on balls of radius b_g."""
        t = self.thresholded(v, factor)
        norms = self.norms(t)
        beyond = np.maximum(norms - factor * self.norm, 0.0)
        share = np.divide(beyond, norms, out=np.zeros_like(norms), where=norms > 0.0)
        return np.asarray(t * share[self.labels])

    def value(self, w: Floats) -> float:
        if not self.contains(w):
            return np.inf
        w = w[: self.n_penalized]
        norms = self.norms(w) / self._more
        total = float((self.norm + 0.5 * self.square * norms) @ norms)
        return total + float(self.l1[self.labels] @ np.abs(w))

    def gradient(self, w: Floats) -> Floats:
        """Return the subgradient whose norm terms are zero where w is zero."""
        v, norms = w[: self.n_penalized], self.norms(w[: self.n_penalized])
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        factors = self.norm * inverse * self._more + self.square
        gradient = factors[self.labels] * v + self.l1[self.labels] * np.sign(v)
        return self._padded(gradient, len(w))

    def conjugate(self, v: Floats) -> float:
        beyond = self.norms(self.thresholded(v[: self.n_penalized])) - self.norm
        beyond = np.maximum(beyond, 0.0)
        which = beyond > 0.0
        if np.any(self.square[which] == 0.0):
            return np.inf
        with np.errstate(over="ignore"):
            return 0.5 * float(np.sum(beyond[which] ** 2 / self.square[which]))

    def _farthest(self, v: Floats, radius: Floats) -> Floats:
        """Return the entries within a radius of v that maximize the conjugate."""
        sign = np.where(self.side == 0.0, np.where(v < 0.0, -1.0, 1.0), self.side)
        return v + sign * radius

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        return self.conjugate(self._farthest(v, radius))

    def conjugate_gradient(self, v: Floats) -> Floats:
        if not self.bends:
            return super().conjugate_gradient(v)
        w = self._shrunk(v[: self.n_penalized]) / self.square[self.labels]
        return self._padded(w, len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        if not self.bends:
            return super().conjugate_gram(v, normals)
        t = self.thresholded(v[: self.n_penalized])
        norms = self.norms(t)
        beyond = norms > self.norm
        inside = np.flatnonzero((t != 0.0) & beyond[self.labels])
        own, A = self.labels[inside], normals[:, inside]
        share = self.norm[own] / norms[own]
        # Each Hessian block is (1 - b/||t||) I + b/||t|| tt'/||t||², over c.
        across = np.zeros((len(A), len(norms)))
        np.add.at(across.T, own, (A * (t[inside] / norms[own])).T)
        weights = np.zeros_like(norms)
        weights[own] = share / self.square[own]
        return (A * ((1.0 - share) / self.square[own])) @ A.T + (
            across * weights
        ) @ across.T

    def scaling_within(self, v: Floats, radius: Floats) -> float:
        """Return a c <= 1 with Omega*(c u) = 0 for all |u_i - v_i| <= radius_i."""
        v = self._farthest(v, radius)
        norms = self.norms(self.thresholded(v))
        beyond = norms > self.norm
        if not beyond.any():
            return 1.0
        # For c from b / ||v_g|| to 1 the norms of thresholds increase.
        # Groups of the restricted penalty are in the order of their numbers.
        some = np.argsort(self.labels, kind="stable")
        some = some[beyond[self.labels[some]]]
        low = np.ones(len(norms))
        low[beyond] = self.norm[beyond] / self.norms(self.thresholded(v, 0.0))[beyond]
        if self.l1[beyond].any():
            part = self.restricted(some, 1.0)
            low, high = low[beyond], np.ones(np.count_nonzero(beyond))
            for _ in range(MOST_STEPS):
                c = 0.5 * (low + high)
                norms = part.norms(part.thresholded(c[part.labels] * v[some]))
                held = norms <= part.norm
                low, high = np.where(held, c, low), np.where(held, high, c)
        return float(low.min()) / self._more

    def scaling(self, v: Floats) -> float:
        return self.scaling_within(v[: self.n_penalized], np.zeros(self.n_penalized))

    def critical(self, v: Floats) -> float:
        """Return the smallest alpha with Omega*(v / alpha) = 0."""
        largest = float(np.abs(self.thresholded(v, 0.0)).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        # The multiple unit * v violates the dual constraint of some group by a large
        # factor.
        unit = _FAR * float((self.l1 + self.norm).max()) / largest
        return 1.0 / (unit * self.scaling(unit * v))

    def limits(self) -> Floats:
        """Return a_g + b_g for groups of one parameter, infinity for the others.

        Limits of the parameters of a larger group do not imply its feasibility. With
        squares there are no limits, and with signs the constraints are one-sided.
        """
        single = np.bincount(self.labels, minlength=len(self.norm)) == 1
        is_norm = single & (self.square == 0.0)
        most = np.where(is_norm, self.l1 + self.norm, np.inf)[self.labels]
        return np.where(self.side == 0.0, most, np.inf)

    def contains(self, w: Floats) -> bool:
        return bool(np.all(self.side * w[: self.n_penalized] >= 0.0))

    def nearest(self, w: Floats) -> Floats:
        inside = w.copy()
        own = inside[: self.n_penalized]
        own[self.side * own < 0.0] = 0.0
        return inside

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        falling = self.side * p < 0.0
        return float(np.min(-w[falling] / p[falling], initial=np.inf))

    def support(self, v: Floats) -> Floats:
        return np.where((v == 0.0) | (self.side * v < 0.0), 0.0, np.inf)

    def prox(self, v: Floats, step: float) -> Floats:
        """Return argmin_w step * Omega(w) + ||w - v||² / 2, by two thresholds."""
        w = v.copy()
        shrunk = self._shrunk(v[: self.n_penalized], step)
        w[: self.n_penalized] = shrunk / (1.0 + step * self.square[self.labels])
        return w

    def smallest_subgradient(self, w: Floats, gradient: Floats, alpha: float) -> Floats:
        """Return the minimum norm element of gradient + alpha * dOmega(w)."""
        g = gradient + alpha * self.gradient(w)
        n = self.n_penalized
        used = self.used(w)[self.labels]
        own, v = g[:n], w[:n]
        at_zero = np.where(used, -self.thresholded(-own, alpha), 0.0)
        at_zero[~used] = -self._shrunk(-own, alpha)[~used]
        own[v == 0.0] = at_zero[v == 0.0]
        return g

    def used(self, w: Floats) -> Mask:
        """Return a mask of the groups that are not zero."""
        return np.bincount(
            self.labels, w[: self.n_penalized] != 0.0, minlength=len(self.norm)
        ).astype(bool)

    def nearness(self, gradient: Floats, alpha: float) -> Floats:
        """Return the excess of each group's slopes over its norm's dual constraint."""
        t = self.thresholded(-gradient[: self.n_penalized], alpha)
        return self.norms(t) - alpha * self.norm
