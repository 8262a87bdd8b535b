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


class CumulativeLogit(Loss):
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
        shares = np.bincount(targets.astype(np.intp), weights)
        above = np.cumsum(shares[:0:-1])[::-1]
        return cls(np.log(above) - np.log(np.cumsum(shares[:-1])))

    def _beside(self, scores: Floats, targets: Any) -> tuple[Floats, Floats]:
        """Return s and t of each row."""
        return _beside(scores + self.base, targets, (np.inf, -np.inf))

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        s, t = self._beside(scores, targets)
        if not np.all(s > t):
            return np.inf
        logs = special.log_expit(s) + special.log_expit(-t) + np.log(-np.expm1(t - s))
        return -float(weights @ logs)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, infinite outside of the domain."""
        s, t = self._beside(scores, targets)
        p, q, _ = _slopes(s, t)
        return _spread(-weights * p, weights * q, targets, scores.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        (s, t), ends = self._beside(scores, targets), (0.0, 0.0)
        ds, dt = _beside(dscores, targets, ends)

        def at(step: float) -> tuple[float, float]:
            low, high = s + step * ds, t + step * dt
            if not np.all(low > high):
                return np.inf, 0.0
            p, q, both = _slopes(low, high)
            bend = _bend(low) * ds**2 + _bend(high) * dt**2 + both * (ds - dt) ** 2
            return float(weights @ (q * dt - p * ds)), float(weights @ bend)

        return at

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> CumulativeCurvature:
        s, t = self._beside(scores, targets)
        bends = _bend(s), _bend(t), _slopes(s, t)[2]
        parts = np.stack([weights * each for each in bends])
        return CumulativeCurvature(parts, targets, scores.shape[1])

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), infinite outside of the domain."""
        return self._conjugate(dual, targets, weights)[0]

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        return self._conjugate(dual, targets, weights)[1] + abs(conjugate)

    def _conjugate(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return R*(u), and the sum of the absolute values of its terms.

        The gradient of a row is -p for s and q for t, with p = F(-s) + c, q = F(t) + c
        and c = 1 / (exp(s - t) - 1). Hence c (1 + c) = p q, and F(t) = q (1 + q - p) /
        (q + c + 1). The conjugate -p s + q t + ln(F(s) - F(t)) follows; it is symmetric
        in p and q. The domain is |q - p| <= 1.
        """
        some = weights > 0.0
        w, u = weights[some], dual[some]
        low, high = _beside(u, targets[some], (0.0, 0.0))
        p, q = -low / w, high / w
        less, more = np.minimum(p, q), np.maximum(p, q)
        D = more - less
        others = np.count_nonzero(u) > np.count_nonzero(low) + np.count_nonzero(high)
        if others or np.any(less < 0.0) or np.any(D > 1.0 + ROUNDED):
            return np.inf, np.inf
        D = np.minimum(D, 1.0)
        c = 2.0 * p * q / (1.0 + np.sqrt(1.0 + 4.0 * p * q))
        x = np.minimum(more * (1.0 + D) / (more + c + 1.0), 1.0)
        terms = (
            special.xlogy(less, c) - special.xlog1py(less, c),
            special.xlogy(D, x) + special.xlog1py(1.0 - D, -x),
            np.log1p(D) - np.log1p(more + c),
        )
        shift = u * np.broadcast_to(self.base, u.shape[1:])
        size = sum(float(w @ np.abs(each)) for each in terms)
        total = float(w @ sum(terms)) - float(shift.sum())
        return total, size + float(np.abs(shift).sum())

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        return float(1.0 - _factors(dual).min()) if sums.any() else 0.0

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Multiply the rows of each class by a factor, so that column sums vanish.

        Only two neighboring classes have entries in a column: positive ones of the
        lower class and negative ones of the higher class. Their sums determine the
        ratio of two successive factors, the largest of which is one.
        """
        return dual * _factors(dual)[targets.astype(np.intp), np.newaxis]


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
        ds, dt = _beside(dscores, targets, (0.0, 0.0))
        coupled = both * (ds - dt)
        return _spread(low * ds + coupled, high * dt - coupled, targets, self._m)

    def diagonal(self) -> Floats:
        low, high, both = self._parts
        return _spread(low + both, high + both, self._targets, self._m)

    def total(self) -> Floats:
        total, inner = np.diag(self.diagonal().sum(axis=0)), np.arange(1, self._m)
        sums = np.bincount(
            self._targets.astype(np.intp), self._parts[2], minlength=self._m + 1
        )
        total[inner - 1, inner] = total[inner, inner - 1] = -sums[1:-1]
        return total


def _beside(
    scores: Floats, targets: Any, ends: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return each row's entries below and above its class, or the given ends."""
    rows, y, m = np.arange(len(scores)), targets.astype(np.intp), scores.shape[1]
    low = np.where(y > 0, scores[rows, np.maximum(y - 1, 0)], ends[0])
    return low, np.where(y < m, scores[rows, np.minimum(y, m - 1)], ends[1])


def _spread(low: Floats, high: Floats, targets: Any, n_scores: int) -> Floats:
    """Return an array of shape (n, m) with entries below and above each row's class."""
    y, out = targets.astype(np.intp), np.zeros((len(low), n_scores))
    for rows, values, columns in (
        (np.flatnonzero(y > 0), low, y - 1),
        (np.flatnonzero(y < n_scores), high, y),
    ):
        out[rows, columns[rows]] = values[rows]
    return out


def _slopes(s: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
    """Return p, q and the second derivative c (1 + c) of the term of both scores."""
    with np.errstate(over="ignore", divide="ignore"):
        c = np.where(s > t, 1.0 / np.expm1(np.maximum(s - t, 0.0)), np.inf)
    return special.expit(-s) + c, special.expit(t) + c, c * (1.0 + c)


def _bend(z: Floats) -> Floats:
    """Return the derivative of the logistic function."""
    return np.asarray(special.expit(z) * special.expit(-z))


def _factors(dual: Floats) -> Floats:
    """Return the factors of classes that balance u; zeros if there are none."""
    up, down = np.maximum(dual, 0.0).sum(axis=0), -np.minimum(dual, 0.0).sum(axis=0)
    if not (up.all() and down.all()):
        return np.zeros(len(up) + 1)
    logs = np.append(0.0, np.cumsum(np.log(up) - np.log(down)))
    return np.asarray(np.exp(logs - logs.max()))
