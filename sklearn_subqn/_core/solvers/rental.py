"""Limited-memory steps around a metric, which is bought once steps have cost as much.

A step of limited memory takes two products with X, second derivatives of all rows many
more. While it is not known how many steps a problem takes, the cheaper ones come first;
once they have cost what the matrix does, it is formed and factorized. Both together
then take at most about twice the time of the better way (as of renting or buying skis,
Karlin et al. 1988). The matrix is the metric of the steps that follow, whose pairs add
what it lacks at later points (Nocedal and Wright 2006, section 7.2).
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

# Directions remember ten steps.
_MEMORY = 10

# Second derivatives that take the time of up to four products with X come before the
# first step.
_AT_ONCE = 4.0

# A sample that estimates second derivatives has at least eight rows for each parameter.
_ROWS_PER_PARAMETER = 8

# A diagonal metric is estimated from 500 rows.
_ROWS_OF_DIAGONAL = 500

_PHASE = "rental"

# A bound is computed where the gradient promises a gap of at most 1.5 times what is
# allowed, and every eighth time.
_NEARLY, _INTERVAL = 1.5, 8


class BoughtMetric(NamedTuple):
    """A matrix in place of second derivatives.

    Attributes
    ----------
    solve : callable
        From a gradient g to the solution p of a system with the matrix.
    means : ndarray of shape (n_coef,) or float
        By how much the best intercept falls where a coefficient rises by one; zero
        without an intercept.
    is_diagonal : bool
        Whether it is diagonal, apart from the intercept.
    """

    solve: Callable[[Floats], Floats]
    means: Floats | float
    is_diagonal: bool = False

    def reduced(self, gradient: Floats) -> Floats:
        """Return the gradient by coefficients that the intercept follows."""
        means = self.means
        if isinstance(means, float):
            return gradient
        return gradient[:-1] - means * gradient[-1]

    def initial(self, v: Floats, pairs: deque[Pair]) -> Floats:
        """Return where the recursion over some pairs begins."""
        p = self.solve(v)
        if self.is_diagonal and pairs:
            _, dg, curvature = pairs[-1]
            p *= curvature / float(dg @ self.solve(dg))
        return p


def rental(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    """Yield the iterates of limited-memory steps around a metric.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss is smooth, of one score per row, and has second
        derivatives, or bounds of them, of few enough parameters for their matrix.
    w : ndarray of shape (q,)
        Starting point.
    stopping : Stopping, optional
        What gap ends the run. Bounds take a product with X: they are computed where
        the gradient says that they may be near enough.

    Returns
    -------
    status : str
        That of Newton's method, which goes on where no step leads further down.
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
        # Twice what a step of Newton's method gains is the slope.
        lost = -float(p @ point.gradient) <= EPS * abs(point.value)
        done = lost and not allowed < gap < 0.5 * last
        if done or not 0.0 < step < np.inf:
            return (yield from newton(objective, point.w, stopping))
        before, point, last = point, line.point(step), gap
        dw, dg = step * p, point.gradient - before.gradient
        if has_curvature(dw, dg):
            pairs.append(Pair(dw, dg, float(dw @ dg)))
        n_steps, spent = n_steps + 1, spent + 2.0


def _proven(point: Point) -> Iterate:
    """Return the point of the best intercept, with its bound."""
    point = minimize_intercept(point)
    return Iterate(point, point.cut, point.lower_bound, _PHASE, Dual(point.dual))


def _price(objective: Objective) -> tuple[float, int]:
    """Return what second derivatives cost in products with X, and a stride of rows.

    One row in ``stride`` estimates them for about ``_AT_ONCE``.
    """
    design, q = objective.design, objective.n_params
    price = design.gram_cost(np.arange(design.n_features))
    stride = min(design.n_rows // (_ROWS_PER_PARAMETER * q), int(price / _AT_ONCE))
    return price, max(stride, 1)


def _is_time_to_buy(
    spent: float, price: float, rows: float, gaps: list[float], allowed: float
) -> bool:
    """Whether it takes less time to form another matrix than to go on without.

    Steps to come without it are taken to divide the gap as those so far, and with it by
    its number of rows for each parameter. Steps cost half of the matrix before, and
    with those to come two more than those with another one.
    """
    if len(gaps) < 2 or allowed <= 0.0:
        return spent >= price
    left = gaps[-1] / allowed
    each = (gaps[0] / gaps[-1]) ** (1.0 / (len(gaps) - 1)) if left > 0.0 else np.inf
    ahead = _products_ahead(left, each)
    ahead -= _products_ahead(left, max(rows, _ROWS_PER_PARAMETER))
    return spent >= 0.5 * price and spent + ahead >= 2.0 * price


def _products_ahead(shrinking: float, each: float) -> float:
    """Return what steps cost that divide the gap by ``each`` until it has shrunk."""
    if shrinking <= 1.0:
        return 0.0
    return 2.0 * float(np.log(shrinking) / np.log(each)) if each > 1.0 else np.inf


def _full(point: Point, stride: int) -> BoughtMetric:
    """Return second derivatives, estimated from one row in ``stride``."""
    matrix = point.sampled_hessian(stride).matrix()
    means: Floats | float = 0.0
    if point.objective.n_free:
        means = matrix[-1, :-1] / (matrix[-1, -1] or 1.0)
    return BoughtMetric(solution_operator(matrix), means)


def _diagonal(point: Point) -> BoughtMetric:
    """Return the diagonal of second derivatives, with the intercept eliminated.

    Estimated from some of the rows.
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
        # What is left of variances by rounding is no less than the penalty.
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
