"""The likelihood of ordered classes by cumulative logits (proportional odds).

The score z_k of a row is the log odds that its class is above k. A row of class y has
the scores s = z_(y-1) and t = z_y beside it, and its class has the probability F(s) -
F(t) with the logistic function F (McCullagh 1980, Regression Models for Ordinal Data,
JRSS B 42, eq. 2.3). Minus the logarithm is

    ln(1 + exp(-s)) + ln(1 + exp(t)) - ln(1 - exp(t - s)),

which is convex in both scores (Pratt 1981, JASA 76; Burridge 1981, JRSS B 43), and
infinite unless s > t. Only the last term couples them, and it depends on the thresholds
only. The lowest class has s = inf, the highest has t = -inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ..rounding import ROUNDED
from ._base import Derivatives, Floats, Rows
from ._curvature import Curvature
from ._loss import Loss
from ._of_duals import ConjugateWithSize

# The scores beside the lowest and the highest class.
_ENDS = np.inf, -np.inf

# Smaller differences of scores, also negative ones, count as this one, so that slopes
# are finite and line searches find them too large.
_CROSSED = 1e-100


class CumulativeLogit(ConjugateWithSize, Loss):
    """Minus the mean log-likelihood of a row's class, for scores of shape (n, m).

    Targets are class numbers from zero to m.

    Parameters
    ----------
    base : ndarray of shape (m,) or float, default=0
        Log odds that are added to the scores of all rows.
    """

    analytic, joint = True, True
    # Where thresholds nearly meet, gradients are too large for useful cuts.
    steep = True
    by_columns = False

    def __init__(self, base: Any = 0.0) -> None:
        self.base = base

    @classmethod
    def of_classes(cls, targets: Floats, weights: Floats) -> CumulativeLogit:
        """Return the loss whose minimum over equal scores of all rows is at zero."""
        shares = np.bincount(targets.astype(int), weights)
        above = np.cumsum(shares[:0:-1])[::-1]
        return cls(np.log(above) - np.log(np.cumsum(shares[:-1])))

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        s, t = _beside(scores + self.base, targets, _ENDS)
        if not np.all(s > t):
            return np.inf
        logs = special.log_expit(s) + special.log_expit(-t) + np.log(-np.expm1(t - s))
        return -float(weights @ logs)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, with huge entries outside of the domain."""
        p, q, *_ = weights * _slopes(*_beside(scores + self.base, targets, _ENDS))
        return _spread(-p, q, targets, scores.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        s, t = _beside(scores + self.base, targets, _ENDS)
        ds, dt = _beside(dscores, targets)

        def at(step: float) -> tuple[float, float]:
            low, high = s + step * ds, t + step * dt
            if not np.all(low > high):
                return np.inf, 0.0
            p, q, *bends = _slopes(low, high)
            bend = bends[0] * ds**2 + bends[1] * dt**2 + bends[2] * (ds - dt) ** 2
            return float(weights @ (q * dt - p * ds)), float(weights @ bend)

        return at

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> CumulativeCurvature:
        slopes = _slopes(*_beside(scores + self.base, targets, _ENDS))
        return CumulativeCurvature(weights * slopes[2:], targets, scores.shape[1])

    def conjugate_and_rest(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return R*(u), and the sum of the absolute values of its terms minus |R*(u)|.

        The gradient of a row is -p for s and q for t, with p = F(-s) + c, q = F(t) + c
        and c = 1 / (exp(s - t) - 1). Hence c (1 + c) = p q, and F(t) = q (1 + q - p) /
        (q + c + 1). The conjugate -p s + q t + ln(F(s) - F(t)) follows; it is symmetric
        in p and q. The domain is |q - p| <= 1.
        """
        some = weights > 0.0
        w, u = weights[some], dual[some]
        low, high = _beside(u, targets[some])
        p, q = -low / w, high / w
        less, more = np.minimum(p, q), np.maximum(p, q)
        D = more - less
        others = np.count_nonzero(u) > np.count_nonzero(low) + np.count_nonzero(high)
        if others or np.any(less < 0.0) or np.any(D > 1.0 + ROUNDED):
            return np.inf, np.inf
        D = np.minimum(D, 1.0)
        share = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * p * q))
        c = p * q * share
        x = np.minimum(more * (1.0 + D) / (more + c + 1.0), 1.0)
        terms = (
            # The product of p and q may underflow.
            special.xlogy(less, less) + special.xlogy(less, more * share),
            -special.xlog1py(less, c),
            special.xlogy(D, x) + special.xlog1py(1.0 - D, -x),
            np.log1p(D) - np.log1p(more + c),
        )
        total = float(w @ sum(terms)) - float((u * self.base).sum())
        size = sum(float(w @ np.abs(each)) for each in terms)
        return total, size + float(np.abs(u * self.base).sum()) - abs(total)

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        return float(1.0 - _factors(dual).min()) if sums.any() else 0.0

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Shrink entries or rows, column by column, so that column sums vanish.

        Only two neighboring classes have entries in a column: positive ones of the
        lower class and negative ones of the higher class. The entries with the larger
        sum shrink. If that leaves the domain, which contains zero, all entries of their
        rows shrink, and those of all lower classes, whose columns are balanced.
        """
        low, q = _beside(dual, targets)
        p, y = -low, targets.astype(int)
        for k in range(dual.shape[1]):
            up, down = q[y == k].sum(), p[y == k + 1].sum()
            larger = max(up, down)
            share = min(up, down) / larger if larger else 0.0
            rows, part, other = (y == k, q, p) if up > down else (y == k + 1, p, q)
            shrunk = share * part[rows]
            if np.all(np.abs(other[rows] - shrunk) <= (1.0 + ROUNDED) * weights[rows]):
                part[rows] = shrunk
                continue
            rows = y <= k if up > down else rows
            p[rows] *= share
            q[rows] *= share
        return _spread(-p, q, targets, dual.shape[1])


class CumulativeCurvature(Curvature):
    """Second derivatives: a diagonal, and g (ds - dt)² for both scores beside a class.

    Parameters
    ----------
    parts : ndarray of shape (3, n)
        Second derivatives by s and by t without g, and g; weights included.
    targets : ndarray of shape (n,)
    n_scores : int
    """

    def __init__(self, parts: Floats, targets: Floats, n_scores: int) -> None:
        self._parts, self._targets, self._m = parts, targets, n_scores

    def take(self, rows: Rows | slice) -> CumulativeCurvature:
        return CumulativeCurvature(self._parts[:, rows], self._targets[rows], self._m)

    def apply(self, dscores: Floats) -> Floats:
        (low, high, both), targets = self._parts, self._targets
        ds, dt = _beside(dscores, targets)
        coupled = both * (ds - dt)
        return _spread(low * ds + coupled, high * dt - coupled, targets, self._m)

    def diagonal(self) -> Floats:
        low, high, both = self._parts
        return _spread(low + both, high + both, self._targets, self._m)

    def total(self) -> Floats:
        y, both = self._targets.astype(int), self._parts[2]
        sums: Any = np.bincount(y, both, self._m + 1)
        beside = np.diag(sums[1:-1], 1)
        return np.diag(self.diagonal().sum(axis=0)) - beside - beside.T


def _beside(
    scores: Floats, targets: Any, ends: tuple[float, float] = (0.0, 0.0)
) -> tuple[Floats, Floats]:
    """Return each row's entries below and above its class, or the given ends."""
    padded = np.pad(scores, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), ends))
    rows, y = np.arange(len(scores)), targets.astype(int)
    return padded[rows, y], padded[rows, y + 1]


def _spread(low: Floats, high: Floats, targets: Any, n_scores: int) -> Floats:
    """Return an array of shape (n, m) with entries below and above each row's class."""
    rows, y = np.arange(len(low)), targets.astype(int)
    out = np.zeros((len(low), n_scores + 2))
    out[rows, y], out[rows, y + 1] = low, high
    return np.ascontiguousarray(out[:, 1:-1])


def _slopes(s: Floats, t: Floats) -> Floats:
    """Return p, q, and second derivatives by s, by t and of the term of both."""
    a, b, distance = special.expit(-s), special.expit(t), np.maximum(s - t, _CROSSED)
    c = np.exp(-distance) / -np.expm1(-distance)
    bends = a * special.expit(s), b * special.expit(-t), c * (1.0 + c)
    return np.stack([a + c, b + c, *bends])


def _factors(dual: Floats) -> Floats:
    """Return the factors of classes that balance u; zeros if there are none."""
    up, down = np.maximum(dual, 0.0).sum(axis=0), -np.minimum(dual, 0.0).sum(axis=0)
    if not (up.all() and down.all()):
        return np.zeros(len(up) + 1)
    logs = np.append(0.0, np.cumsum(np.log(up) - np.log(down)))
    return np.asarray(np.exp(logs - logs.max()))
