"""Bounds of held-out scores for intervals of alpha, between two solved ones.

Let R be the mean training loss of scores, and w(a) the coefficients that minimize
a ||w||² / 2 + R(Xw + b). For any coefficients w with scores z, any dual point u whose
entries sum to zero, v = Xᵀu and e = R(z) + R*(u) - <u, z> >= 0, convexity of R at w and
at w(a) gives <w(a) - w, a w(a) + v> <= e, and so

    ||w(a) - (w - v / a) / 2||² <= ||w + v / a||² / 4 + e / a.

(Ndiaye et al. 2019 and Shibagaki et al. 2015 have bounds of this kind with w alone.)
Between two solved alphas w, z, u and v are the same convex combination of those of
both: no product with X is made. In 1 / a the center is linear and the squared radius
convex, so that the ends of an interval of 1 / a bound all of it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._core.objectives.risk import Risk
from .._core.rounding import TINY, rounding
from .._solving.solution import Floats

# How far intercepts move for a unit of the radius differs little between neighboring
# intervals: a guess that is too small becomes longer by a quarter, one that holds is
# shorter by a 32nd the next time.
_LONGER = 1.25
_SHORTER = 1.0 - 1.0 / 32.0

# The loss and its conjugate are evaluated at up to 33 combinations of two solutions.
_NODES = 32


class Solved(NamedTuple):
    """A solution on the training rows of a fold, and its products with all rows.

    Attributes
    ----------
    alpha, intercept : float
        The intercept is that of centered features.
    coef, slope : ndarray of shape (d,)
        Coefficients w, and v divided by the factors of the penalty.
    dual : ndarray of shape (n,)
        u, one for each training row.
    scores, slopes : ndarray of shape (n,)
        Products of the centered training rows with both.
    held_scores, held_slopes : ndarray of shape (m,)
        Products of the centered held-out rows with both.
    """

    alpha: float
    intercept: float
    coef: Floats
    slope: Floats
    dual: Floats
    scores: Floats
    slopes: Floats
    held_scores: Floats
    held_slopes: Floats


class Between(NamedTuple):
    """A convex combination of two solutions.

    Attributes
    ----------
    solved : Solved
    gap : float
        A bound of e.
    squares : ndarray of shape (3,)
        Coefficients of ||w + v / a||² as a polynomial of 1 / a.
    """

    solved: Solved
    gap: float
    squares: Floats


class Node(NamedTuple):
    """What is known of the loss at a convex combination of two solutions.

    Attributes
    ----------
    total, product : float
        R(z) + R*(u), and <u, z>.
    lost : float
        What rounding leaves of both.
    """

    total: float
    product: float
    lost: float


class HeldOutBounds:
    """What bounds of held-out scores need of a fold.

    Parameters
    ----------
    risk : Risk
        The mean loss of the training rows.
    X, held : {ndarray, sparse matrix} of shape (n, d) and (m, d)
        Training rows and held-out rows.
    factors : ndarray of shape (d,)
        Positive factors of the squares in the penalty.
    fit_intercept : bool
    """

    def __init__(
        self, risk: Risk, X: Any, held: Any, factors: Floats, fit_intercept: bool
    ) -> None:
        self._risk, self._X, self._held = risk, X, held
        self._factors, self._fit_intercept = factors, fit_intercept
        weights = risk.weights
        self._mean = np.zeros(X.shape[1])
        if fit_intercept:
            self._mean = np.asarray(X.T @ weights).ravel() / weights.sum()
        self._norms, self._held_norms = self._norms_of(X), self._norms_of(held)
        # How far intercepts move for each unit of the radius, up and down.
        self._moves = np.full(2, float(weights @ self._norms))
        self._nodes: dict[tuple[float, float], dict[int, Node]] = {}

    def _norms_of(self, X: Any) -> Floats:
        """Return the norms of centered rows, in units of the penalty."""
        scale, mean = 1.0 / self._factors, self._mean
        squares = X.multiply(X) @ scale if hasattr(X, "multiply") else X**2 @ scale
        squares = squares - 2.0 * (X @ (mean * scale)) + mean @ (mean * scale)
        # Differences of squares lose digits where features are far from zero.
        lost = rounding(X.shape[1]) * (mean @ (mean * scale) + np.max(squares))
        return np.sqrt(np.maximum(np.asarray(squares).ravel(), 0.0) + lost)

    def solved(
        self, alpha: float, coef: Floats, intercept: float, dual: Floats
    ) -> Solved:
        """Return a solution with its products."""
        slope = np.asarray(self._X.T @ dual).ravel() - self._mean * dual.sum()
        slope = slope / self._factors
        both = np.column_stack([coef, slope])
        shift = self._mean @ both
        rows, held = self._X @ both - shift, self._held @ both - shift
        parts = (np.ascontiguousarray(x[:, i]) for x in (rows, held) for i in (0, 1))
        center = intercept + shift[0] if self._fit_intercept else intercept
        return Solved(alpha, float(center), coef, slope, dual, *parts)

    def between(self, low: Solved, high: Solved, share: float) -> Between:
        """Return a convex combination, with its share of the second one."""
        pairs: Any = zip(low, high, strict=True)
        mixed = Solved(*((1.0 - share) * a + share * b for a, b in pairs))
        w, g, f = mixed.coef, mixed.slope, self._factors
        squares = np.array([w @ (f * w), 2.0 * (w @ (f * g)), g @ (f * g)])
        return Between(mixed, self._gap(low, high, share), squares)

    def _gap(self, low: Solved, high: Solved, share: float) -> float:
        """Return a bound of e for a convex combination of two solutions.

        R and R* are convex: between two nodes they are at most what is interpolated,
        while the product of dual and scores is known everywhere.
        """
        known = self._nodes.setdefault((low.alpha, high.alpha), {})
        place = share * _NODES
        first = min(int(place), _NODES - 1)
        for node in (first, first + 1):
            if node not in known:
                known[node] = self._node(low, high, node / _NODES)
        part = place - first
        a, b = known[first], known[first + 1]
        total = (1.0 - part) * a.total + part * b.total
        # A product of two affine functions is below its chord by that of their changes.
        product = (1.0 - part) * a.product + part * b.product
        product -= part * (1.0 - part) * _change(low, high) / _NODES**2
        return max(total - product, 0.0) + max(a.lost, b.lost)

    def _node(self, low: Solved, high: Solved, share: float) -> Node:
        dual = (1.0 - share) * low.dual + share * high.dual
        intercept = (1.0 - share) * low.intercept + share * high.intercept
        scores = (1.0 - share) * low.scores + share * high.scores + intercept
        risk = self._risk
        value, product = risk.value(scores), float(dual @ scores)
        conjugate = risk.oracle.conjugate(dual, risk.targets, risk.weights)
        sizes = abs(value) + abs(conjugate) + float(np.abs(dual) @ np.abs(scores))
        lost = rounding(len(scores)) * sizes
        if self._fit_intercept:
            # Duals sum to zero up to rounding, and to what the fit has left.
            largest = float(np.abs(scores).max(initial=0.0))
            lost += abs(float(dual.sum())) * largest
        return Node(value + conjugate, product, lost)

    def spread(self, at: Between, first: float, last: float) -> float:
        """Return the radius in the middle of an interval as a share of its largest.

        It is near one where interpolation, and not the width, makes the radius.
        """
        ends = 1.0 / np.array([first, last, math.sqrt(first * last)])
        radii = _radii(at, ends)
        return float(radii[2] / max(radii.max(), TINY))

    def intervals(
        self, at: Between, first: float, last: float
    ) -> tuple[Floats, Floats]:
        """Return bounds of the held-out scores for all alphas in an interval."""
        mixed = at.solved
        ends = np.array([1.0 / first, 1.0 / last])
        radii = _radii(at, ends)
        low, high = _ends(
            mixed.held_scores, mixed.held_slopes, ends, radii, self._held_norms
        )
        if self._fit_intercept:
            lower, upper = self._intercepts(mixed, ends, radii)
            low, high = low + lower, high + upper
        slack = rounding(len(mixed.coef)) * (np.abs(low) + np.abs(high))
        return low - slack, high + slack

    def _intercepts(
        self, mixed: Solved, ends: Floats, radii: Floats
    ) -> tuple[float, float]:
        """Return bounds of the intercept for all alphas of an interval.

        The sum of slopes of the loss grows with scores, and is zero at the intercept.
        """
        low, high = _ends(mixed.scores, mixed.slopes, ends, radii, self._norms)
        unit, bounds = float(radii.max()), []
        for side, (sign, scores) in enumerate(((-1.0, high), (1.0, low))):
            move = self._moves[side]
            while not self._beyond(scores, mixed.intercept + sign * move * unit, sign):
                move *= _LONGER
                if move * unit > 1e100:
                    return -np.inf, np.inf
            # The next interval begins with a smaller move.
            self._moves[side] = move * _SHORTER
            bounds.append(mixed.intercept + sign * move * unit)
        return bounds[0], bounds[1]

    def _beyond(self, scores: Floats, intercept: float, sign: float) -> bool:
        slopes = self._risk.subgradient(scores + intercept)
        return bool(sign * float(slopes.sum()) > rounding(1.0) * np.abs(slopes).sum())


def _change(low: Solved, high: Solved) -> float:
    """Return the product of the changes of dual and scores between two solutions."""
    scores = high.scores - low.scores + (high.intercept - low.intercept)
    return float((high.dual - low.dual) @ scores)


def _radii(at: Between, ends: Floats) -> Floats:
    """Return the radii of the ball around coefficients for values of 1 / a."""
    squares = at.squares @ np.array([ends**0, ends, ends**2])
    return np.sqrt(0.25 * np.maximum(squares, 0.0) + at.gap * ends)


def _ends(
    scores: Floats, slopes: Floats, ends: Floats, radii: Floats, norms: Floats
) -> tuple[Floats, Floats]:
    """Return bounds of the scores of rows at all points between two ends."""
    centers = [0.5 * (scores - end * slopes) for end in ends]
    low = np.minimum(*(c - r * norms for c, r in zip(centers, radii, strict=True)))
    high = np.maximum(*(c + r * norms for c, r in zip(centers, radii, strict=True)))
    return low, high
