"""Bounds of held-out scores over intervals between two solved alphas.

Let R be the mean training loss of scores, and w(a) the minimizer of a ||w||² / 2 + R(Xw
+ b). Take any coefficients w with scores z and any dual point u whose entries sum to
zero, and let v = Xᵀu and e = R(z) + R*(u) - <u, z> >= 0. Convexity of R at w and at
w(a) gives <w(a) - w, a w(a) + v> <= e, hence

    ||w(a) - (w - v / a) / 2||² <= ||w + v / a||² / 4 + e / a.

(Ndiaye et al. 2019 and Shibagaki et al. 2015 have similar bounds with w alone.) Between
two solved alphas, w, z, u and v are the same convex combination of the values at both,
so that no product with X is needed. As functions of 1 / a the center is linear and the
squared radius convex, so that the bounds at the ends of an interval of 1 / a hold for
all of the interval.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Floats
from .._core.objectives.risk import Risk
from .._core.rounding import TINY, rounding
from .._core.solvers import Start
from .._solving.solution import Solution

# The change of intercepts per unit of the radius is similar for neighboring intervals.
# A guess that is too small is multiplied by 1.25, then by larger factors. A guess that
# holds is reduced by a 32nd for the next interval.
_LONGER = 1.25
_SHORTER = 1.0 - 1.0 / 32.0

# The loss and its conjugate are evaluated at up to 17 combinations of two solutions.
_NODES = 16


class Solved(NamedTuple):
    """A solution on the training rows of a fold, with its products with all rows.

    Attributes
    ----------
    alpha, intercept : float
        Strength, and the intercept for centered features.
    coef, slope : ndarray of shape (d,)
        Coefficients w, and v divided by the factors of the penalty.
    dual : ndarray of shape (n,)
        Dual variables u of the training rows.
    products : ndarray of shape (2, n + m)
        Products of the centered rows with ``coef`` and ``slope``, training rows first.
        Training rows are omitted if v belongs to the optimum.
    n : int
        Number of training rows in ``products``.
    start : Start
        The solution as the start of a fit, without scores, to save memory.
    size : float
        The denominator of relative gaps.
    error : float
        Bound of the distance between w and the optimum, if v belongs to the optimum.
    """

    alpha: float
    intercept: float
    coef: Floats
    slope: Floats
    dual: Floats
    products: Floats
    n: int
    start: Start
    size: float
    error: float = 0.0

    @property
    def held_scores(self) -> Floats:
        """The scores of the held-out rows."""
        return self.products[0, self.n :] + self.intercept


class Node(NamedTuple):
    """The loss and its conjugate at a convex combination of two solutions.

    Attributes
    ----------
    total, product : float
        The sum R(z) + R*(u), and the product <u, z>.
    lost : float
        Rounding error of both numbers.
    """

    total: float
    product: float
    lost: float


class SolvedPair:
    """Two solutions, and the quantities for convex combinations of them.

    Parameters
    ----------
    low, high : Solved
    factors : ndarray of shape (d,)
        Positive factors of the squares in the penalty.
    """

    def __init__(self, low: Solved, high: Solved, factors: Floats) -> None:
        self.low, self.high = low, high
        # Inner products of w and v of both solutions, in the norm of the penalty.
        both = np.array([low.coef, low.slope, high.coef, high.slope])
        self._products = (both * factors) @ both.T
        self._squares = np.array(
            [self._products[i::2, j::2] for i, j in ((0, 0), (0, 1), (1, 1))]
        )
        self._squares[1] *= 2.0
        #: Inner product of the change of w and the change of v between the solutions,
        #: equal to the product of the changes of scores and dual variables.
        self.change = float(
            (high.slope - low.slope) @ (factors * (high.coef - low.coef))
        )
        #: The node of each convex combination, whose weights are multiples of 1 /
        #: ``_NODES``.
        self.nodes: dict[int, Node] = {}

    @property
    def most_change(self) -> float:
        """An upper bound of ``change`` for the optima near both solutions."""
        errors = np.array([self.low.error, self.high.error])
        alphas = np.array([self.low.alpha, self.high.alpha])
        w, v = (
            np.sqrt(max(float(np.array([-1.0, 1.0]) @ part @ [-1.0, 1.0]), 0.0))
            for part in (self._products[::2, ::2], self._products[1::2, 1::2])
        )
        of_w, of_v = float(errors.sum()), float(errors @ alphas)
        return max(self.change, 0.0) + w * of_v + v * of_w + of_w * of_v

    def squares(self, share: float) -> list[float]:
        """Return the coefficients of ||w + v / a||² as a polynomial of 1 / a."""
        parts = np.array([1.0 - share, share])
        found: list[float] = (self._squares @ parts @ parts).tolist()
        return found


class Between(NamedTuple):
    """A convex combination of two solutions.

    Attributes
    ----------
    pair : SolvedPair
    share : float
        The weight of the second solution.
    gap : float
        Upper bound of e.
    squares : list of 3 floats
        Coefficients of ||w + v / a||² as a polynomial of 1 / a.
    errors : tuple of 2 floats
        Bounds of the errors of w and v, as coefficients of a polynomial of 1 / a.
    """

    pair: SolvedPair
    share: float
    gap: float
    squares: list[float]
    errors: tuple[float, float]

    def mixed(self, name: str) -> Any:
        """Return the convex combination of an attribute of both solutions."""
        low, high = getattr(self.pair.low, name), getattr(self.pair.high, name)
        return low + self.share * (high - low)


class HeldOutBounds:
    """The bounds of held-out scores on a fold.

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
        self._has_conjugate = risk.oracle.has_conjugate
        weights = risk.weights
        self._mean = np.zeros(X.shape[1])
        if fit_intercept:
            self._mean = np.asarray(X.T @ weights).ravel() / weights.sum()
        norms = self._norms_of(X)
        # Scores of training rows bound the intercepts.
        self._norms = np.append(norms if fit_intercept else [], self._norms_of(held))
        # Without features, or with one class, the model is the same for every alpha.
        self._is_constant = False
        if fit_intercept:
            targets = risk.targets[weights > 0.0]
            one_class = bool(np.all(targets == targets[0]))
            self._is_constant = one_class or not norms.any()
        # Change of the intercept per unit of the radius, downward and upward.
        self._moves = np.full(2, float(weights @ norms))
        self._pairs: dict[tuple[float, float], SolvedPair] = {}

    def _norms_of(self, X: Any) -> Floats:
        """Return the norms of centered rows, in units of the penalty."""
        scale, mean = 1.0 / self._factors, self._mean
        squares = X.multiply(X) @ scale if hasattr(X, "multiply") else X**2 @ scale
        squares = squares - 2.0 * (X @ (mean * scale)) + mean @ (mean * scale)
        # The difference of squares suffers from cancellation if features are far from
        # zero.
        lost = rounding(X.shape[1]) * (mean @ (mean * scale) + np.max(squares))
        return np.sqrt(np.maximum(np.asarray(squares).ravel(), 0.0) + lost)

    def solved(
        self, alpha: float, coef: Floats, intercept: float, solution: Solution
    ) -> Solved:
        """Return a solution with products of X and its coefficients and dual point.

        Solvers of smooth losses may return no dual point; then the gradient at the
        scores is used. Without a conjugate of the loss, v is -a w, as at the optimum.
        """
        fit = solution.start._replace(scores=None, origin=None), solution.size
        if not self._has_conjugate:
            held = np.asarray(self._held @ coef).ravel()
            products = np.array([held, -alpha * held])
            # The objective exceeds the optimum by at least a ||w - w(a)||² / 2.
            error = math.sqrt(2.0 * solution.dual_gap / alpha)
            none = np.empty(0)
            slope = -alpha * coef
            return Solved(alpha, 0.0, coef, slope, none, products, 0, *fit, error)
        dual = solution.dual
        if dual is None:
            dual = self._risk.subgradient(solution.scores)
        slope = np.asarray(self._X.T @ dual).ravel() - self._mean * dual.sum()
        slope = slope / self._factors
        both = np.column_stack([coef, slope])
        shift = self._mean @ both
        rows = np.concatenate([self._X @ both, self._held @ both]) - shift
        center = float(intercept + shift[0] if self._fit_intercept else intercept)
        products = np.ascontiguousarray(rows.T)
        return Solved(alpha, center, coef, slope, dual, products, len(dual), *fit)

    def square(self, solved: Solved) -> float:
        """Return the square of the norm of coefficients, in units of the penalty."""
        return float((self._factors * solved.coef) @ solved.coef)

    def between(self, low: Solved, high: Solved, share: float) -> Between:
        """Return a convex combination; ``share`` is the second solution's weight."""
        alphas = low.alpha, high.alpha
        pair = self._pairs.get(alphas)
        if pair is None or pair.low is not low or pair.high is not high:
            pair = self._pairs[alphas] = SolvedPair(low, high, self._factors)
        of_low, of_high = low.error * (1.0 - share), high.error * share
        errors = of_low + of_high, of_low * low.alpha + of_high * high.alpha
        gap = self._gap(pair, share)
        return Between(pair, share, gap, pair.squares(share), errors)

    def _gap(self, pair: SolvedPair, share: float) -> float:
        """Return an upper bound of e for a convex combination of two solutions.

        R and R* are convex, so they are at most their linear interpolation between two
        nodes. The product of dual variables and scores has a closed form. If R* is not
        known, the nodes are the two optima, where e is zero.
        """
        if not self._has_conjugate:
            return share * (1.0 - share) * pair.most_change
        place = share * _NODES
        first = min(int(place), _NODES - 1)
        for node in (first, first + 1):
            if node not in pair.nodes:
                pair.nodes[node] = self._node(pair, node / _NODES)
        part = place - first
        a, b = pair.nodes[first], pair.nodes[first + 1]
        total = (1.0 - part) * a.total + part * b.total
        # The product of two affine functions is its linear interpolation minus the
        # product of their changes.
        product = (1.0 - part) * a.product + part * b.product
        product -= part * (1.0 - part) * pair.change / _NODES**2
        return max(total - product, 0.0) + max(a.lost, b.lost)

    def _node(self, pair: SolvedPair, share: float) -> Node:
        low, high = pair.low, pair.high
        dual = (1.0 - share) * low.dual + share * high.dual
        intercept = (1.0 - share) * low.intercept + share * high.intercept
        scores = (1.0 - share) * low.products[0, : low.n]
        scores += share * high.products[0, : low.n] + intercept
        risk = self._risk
        value, product = risk.value(scores), float(dual @ scores)
        conjugate = risk.oracle.conjugate(dual, risk.targets, risk.weights)
        sizes = abs(value) + abs(conjugate) + float(np.abs(dual) @ np.abs(scores))
        lost = rounding(len(scores)) * sizes
        if self._fit_intercept:
            # Dual variables sum to zero up to rounding and the gap of the fit.
            largest = float(np.abs(scores).max(initial=0.0))
            lost += abs(float(dual.sum())) * largest
        return Node(value + conjugate, product, lost)

    def intervals(
        self, at: Between, first: float, last: float
    ) -> tuple[Floats, Floats, float]:
        """Return bounds of the held-out scores for all alphas in an interval.

        The third result is the radius in the middle of the interval as a share of the
        largest radius. It is near one if interpolation dominates the radius, not the
        width of the interval.
        """
        ends = 1.0 / first, 1.0 / last
        *radii, middle = [_radius(at, e) for e in (*ends, math.sqrt(ends[0] * ends[1]))]
        unit = max(*radii, middle, TINY)
        n, products = at.pair.low.n, at.mixed("products")
        if self._is_constant:
            scores = products[0, n:] + at.mixed("intercept")
            return scores, scores, middle / unit
        if not self._fit_intercept:
            products = products[:, n:]
        low, high = _ends(products[0], products[1], ends, radii, self._norms)
        if self._fit_intercept:
            lower, upper = self._intercepts(
                at.mixed("intercept"), low[:n], high[:n], unit
            )
            low, high = low[n:] + lower, high[n:] + upper
        slack = rounding(len(self._factors)) * (np.abs(low) + np.abs(high))
        return low - slack, high + slack, middle / unit

    def _intercepts(
        self, intercept: float, low: Floats, high: Floats, unit: float
    ) -> tuple[float, float]:
        """Return bounds of the intercept from bounds of the scores of training rows.

        The sum of slopes of the loss increases with the intercept and is zero at the
        optimum. ``unit`` is the radius.
        """
        bounds = []
        for side, (sign, scores) in enumerate(((-1.0, high), (1.0, low))):
            move, longer = self._moves[side], _LONGER
            while not self._beyond(scores, intercept + sign * move * unit, sign):
                move *= longer
                longer *= _LONGER
                if max(move, move * unit) > 1e100:
                    return -np.inf, np.inf
            # The guess for the next interval is a little smaller.
            self._moves[side] = move * _SHORTER
            bounds.append(intercept + sign * move * unit)
        return bounds[0], bounds[1]

    def _beyond(self, scores: Floats, intercept: float, sign: float) -> bool:
        slopes = self._risk.subgradient(scores + intercept)
        return bool(
            sign * float(slopes.sum()) > rounding(len(slopes)) * np.abs(slopes).sum()
        )


def _radius(at: Between, end: float) -> float:
    """Return the radius of the ball around the center at a value of 1 / a."""
    w, wv, v = at.squares
    errors = at.errors[0] + at.errors[1] * end
    apart = math.sqrt(max(w + end * (wv + end * v), 0.0)) + errors
    # The error of the center is at most half of the sum of both errors.
    return math.sqrt(0.25 * apart**2 + at.gap * end) + 0.5 * errors


def _ends(
    scores: Floats,
    slopes: Floats,
    ends: tuple[float, float],
    radii: list[float],
    norms: Floats,
) -> tuple[Floats, Floats]:
    """Return bounds of the scores of rows at all values of 1 / a between two ends."""
    parts = [
        (0.5 * (scores - end * slopes), radius * norms)
        for end, radius in zip(ends, radii, strict=True)
    ]
    low = np.minimum(*(center - apart for center, apart in parts))
    high = np.maximum(*(center + apart for center, apart in parts))
    return low, high
