"""Limited-memory steps with a Hessian as metric, formed after equally costly steps.

A limited-memory step costs two products with X, and the Hessian costs many more. The
number of steps is unknown, so limited-memory steps come first. Once they have cost as
much as the Hessian, the Hessian is formed and factorized. The total is at most about
twice the cost of the better choice (the ski rental problem, Karlin et al. 1988). The
Hessian is the initial metric of later steps, whose curvature pairs correct it at later
points (Nocedal and Wright 2006, section 7.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..driver import Iterate, Solver, Stopping
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective, Point
from ..rounding import EPS
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import newton_step
from ..steps.newton_direction import solution_operator
from ..steps.quasi_newton import Pair, has_curvature, two_loop
from .newton import newton

# Number of pairs in limited memory.
_MEMORY = 10

# A Hessian that costs at most four products with X is formed before the first step.
_AT_ONCE = 4.0

# Least number of rows for each parameter in a sample that estimates the Hessian.
_ROWS_PER_PARAMETER = 8

# Number of rows that estimate a diagonal metric.
_ROWS_OF_DIAGONAL = 500

_PHASE = "rental"

# A lower bound is computed if the gradient predicts a gap of at most 1.5 times the
# allowed gap, and in every eighth step.
_NEARLY, _INTERVAL = 1.5, 8


class BoughtMetric(NamedTuple):
    """A matrix that approximates the Hessian.

    Attributes
    ----------
    solve : callable
        Returns the solution p of a system of the matrix with the right-hand side g.
    means : ndarray of shape (n_coef,) or float
        Decrease of the best intercept if a coefficient increases by one; zero without
        an intercept.
    is_diagonal : bool
        Whether the matrix is diagonal, apart from the intercept.
    """

    solve: Callable[[Floats], Floats]
    means: Floats | float
    is_diagonal: bool = False

    def reduced(self, gradient: Floats) -> Floats:
        """Return the gradient by coefficients after eliminating the intercept."""
        means = self.means
        if isinstance(means, float):
            return gradient
        return gradient[:-1] - means * gradient[-1]

    def initial(self, v: Floats, pairs: deque[Pair]) -> Floats:
        """Return the initial vector of the two-loop recursion."""
        p = self.solve(v)
        if self.is_diagonal and pairs:
            _, dg, curvature = pairs[-1]
            p *= curvature / float(dg @ self.solve(dg))
        return p


def rental(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    """Yield the iterates of limited-memory steps with a metric.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective with a smooth loss of one score per row that has second
        derivatives, or bounds of them, and few enough parameters to form the Hessian.
    w : ndarray of shape (q,)
        Starting point.
    stopping : Stopping, optional
        Defines the gap at which the run stops. A bound costs a product with X and is
        computed if the gradient predicts a small gap.

    Returns
    -------
    status : str
        The status of Newton's method, which follows when no step decreases the
        objective.
    """
    point = minimize_intercept(objective.at(w))
    price, stride = _price(objective)
    rows = objective.design.n_rows / objective.n_params
    spent, n_steps, last, gaps = _AT_ONCE, 0, np.inf, list[float]()
    pairs: deque[Pair] = deque(maxlen=_MEMORY)
    metric = _diagonal(point)
    while True:
        g = metric.reduced(point.gradient)
        gap = float(g @ g) / (2.0 * objective.alpha)
        allowed = stopping.allowed_gap(point.value) if stopping else 0.0
        gaps.append(gap)
        if _is_time_to_buy(spent, price / stride, rows / stride, gaps, allowed):
            metric, stride, spent = _full(point, stride), 1, 0.0
            pairs.clear()
            gaps.clear()
            continue
        proves = gap <= _NEARLY * allowed or n_steps % _INTERVAL == _INTERVAL - 1
        yield _proven(point) if proves else Iterate(point, phase=_PHASE)
        p = -two_loop(point.gradient, pairs, partial(metric.initial, pairs=pairs))
        line = point.along(p)
        step = newton_step(line)
        # The slope is twice the decrease of a Newton step.
        lost = -float(p @ point.gradient) <= EPS * abs(point.value)
        done = lost and not allowed < gap < 0.5 * last
        if done or not 0.0 < step < np.inf:
            return newton(objective, point.w, stopping)
        before, point, last = point, line.point(step), gap
        dw, dg = step * p, point.gradient - before.gradient
        if has_curvature(dw, dg):
            pairs.append(Pair(dw, dg, float(dw @ dg)))
        n_steps, spent = n_steps + 1, spent + 2.0


def _proven(point: Point) -> Iterate:
    """Return the point after minimization over its intercept, with its bound."""
    point = minimize_intercept(point)
    return Iterate(point, point.cut, point.lower_bound, _PHASE, Dual(point.dual))


def _price(objective: Objective) -> tuple[float, int]:
    """Return the cost of the Hessian in products with X, and a stride of rows.

    An estimate by one row in ``stride`` costs about ``_AT_ONCE``.
    """
    design, q = objective.design, objective.n_params
    price = design.gram_cost(np.arange(design.n_features))
    stride = min(design.n_rows // (_ROWS_PER_PARAMETER * q), int(price / _AT_ONCE))
    return price, max(stride, 1)


def _is_time_to_buy(
    spent: float, price: float, rows: float, gaps: list[float], allowed: float
) -> bool:
    """Whether forming another Hessian takes less time than continuing without it.

    Without the new Hessian, steps are assumed to reduce the gap at the average rate so
    far. With it, each step is assumed to divide the gap by the number of rows for each
    parameter. The Hessian is formed if past steps have cost half as much, and if the
    cost of past steps plus the savings in future steps is twice as large.
    """
    if len(gaps) < 2 or allowed <= 0.0:
        return spent >= price
    left = gaps[-1] / allowed
    each = (gaps[0] / gaps[-1]) ** (1.0 / (len(gaps) - 1)) if left > 0.0 else np.inf
    ahead = _products_ahead(left, each)
    ahead -= _products_ahead(left, max(rows, _ROWS_PER_PARAMETER))
    return spent >= 0.5 * price and spent + ahead >= 2.0 * price


def _products_ahead(shrinking: float, each: float) -> float:
    """Return the cost of the remaining steps, if each divides the gap by ``each``."""
    if shrinking <= 1.0:
        return 0.0
    return 2.0 * float(np.log(shrinking) / np.log(each)) if each > 1.0 else np.inf


def _full(point: Point, stride: int) -> BoughtMetric:
    """Return the Hessian, estimated from one row in ``stride``."""
    matrix = point.sampled_hessian(stride).matrix()
    means: Floats | float = 0.0
    if point.objective.n_free:
        means = matrix[-1, :-1] / (matrix[-1, -1] or 1.0)
    return BoughtMetric(solution_operator(matrix), means)


def _diagonal(point: Point) -> BoughtMetric:
    """Return the diagonal of the Hessian after eliminating the intercept.

    It is estimated from a sample of the rows.
    """
    o = point.objective
    hessian = point.sampled_hessian(max(1, o.design.n_rows // _ROWS_OF_DIAGONAL))
    diagonal = hessian.diagonal()
    means: Floats | float = 0.0
    if o.n_free:
        free = np.zeros(o.n_params)
        free[-1] = 1.0
        *products, total = hessian.apply(free)
        means = np.array(products) / (total or 1.0)
        # The exact differences are at least the penalty; computed ones may be smaller
        # by rounding.
        diagonal[:-1] = np.maximum(diagonal[:-1] - total * means**2, o.alpha)
    inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)

    def solve(g: Floats) -> Floats:
        if not o.n_free:
            return inverse * g
        p = inverse * g
        p[:-1] -= inverse[:-1] * means * g[-1]
        p[-1] -= float(means @ p[:-1])
        return p

    return BoughtMetric(solve, means, is_diagonal=True)
