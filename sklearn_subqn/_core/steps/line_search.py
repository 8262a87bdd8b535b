"""Step sizes along a line: exact, near to that, by Wolfe's conditions, backtracking."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..losses._base import PiecewiseQuadratic
from ..objectives.generic import FunctionLine
from ..objectives.objective import Line, Point
from ..rounding import EPS
from .one_dimension import (
    EXACT,
    NEAR,
    Trial,
    bracket_by_cuts,
    minimize_piecewise,
    minimize_smooth,
    zero_between,
)

#: A step is accepted if it lowers a function by 1e-4 times what its slope promises.
SUFFICIENT = 1e-4

# Where exact steps take many trials, a step is accepted if it leaves at most a
# hundredth of the decrease on its line.
_NEARLY = 1e-2

# After a step of Newton's method that lowers J by more than a tenth of itself, longer
# steps are tried while they gain a tenth more. docs/constants.md has the figures.
_MUCH = 0.1

# Each longer step is 1.5 times as long as the step before.
_LONGER = 1.5

# Steps are not made longer where a score would move by more than 15. docs/constants.md
# has the figures.
_FAR = 15.0


class HasSlope(Protocol):
    """A line of which only values and right-hand slopes are known."""

    def value(self, step: float) -> float: ...

    def slope(self, step: float) -> float: ...


def exact(line: Line) -> float:
    """Return the smallest minimizer of the objective on a line, ``inf`` if none.

    Piecewise linear losses: by their kinks. Smooth ones: by Newton's method in one
    dimension, which is finite where the loss is piecewise quadratic. Losses that do not
    return their slopes on a line: by cutting planes.
    """
    if not line.is_known:
        return minimize_by_cuts(line, accuracy=_NEARLY)[0].step
    if line.smooth:
        return minimize_smooth(line.derivatives, negligible=_negligible(line))
    return minimize_piecewise(line.restriction)


def exact_on_function(line: FunctionLine) -> float:
    """Return the smallest minimizer on a line of a function of one's own.

    By the restriction to the line where the function offers it. Else by cutting planes,
    which find the minimizer between two linear pieces in a few trials, and then by
    slopes, up to rounding.
    """
    f = line.restriction
    if isinstance(f, PiecewiseQuadratic):
        return minimize_piecewise(f)
    if f is not None:
        return minimize_smooth(f)
    none = np.empty(0)

    def trial(step: float) -> Trial:
        return Trial(step, line.value(step), line.slope(step), none)

    ends = bracket_by_cuts(trial)
    if ends[0].step == np.inf:
        return np.inf
    low, high = sorted(ends, key=lambda end: end.slope)
    return zero_between(trial, low, high).step


def newton_step(line: Line, *, rows_apart: bool = False) -> float:
    """Return about the minimizer on a line in a Newton direction, 0 or ``inf`` if none.

    With ``rows_apart`` each row has second derivatives of its own, which the line knows
    at little cost: of losses with kinks in their slopes, of which the last step is to
    end at the minimizer, the step is exact. Elsewhere slopes are expensive, such as
    those that need a sort, and the step is 1 if the slope falls to a small share there.
    """
    negligible = _negligible(line)
    if rows_apart:
        accuracy = NEAR if line.start.objective.loss.analytic else EXACT
        return minimize_smooth(
            line.derivatives, accuracy=accuracy, negligible=negligible
        )
    start = line.slope_of(line.start)
    if start < 0.0 and abs(line.slope_of(line.point(1.0))) <= NEAR * -start:
        return 1.0
    return minimize_smooth(line.derivatives, accuracy=NEAR, negligible=negligible)


def _negligible(line: Line) -> float:
    """Return what J changes by where parameters change by their rounding unit.

    Near a minimizer J is quadratic, so that this is the square of the unit times J.
    """
    return EPS * EPS * abs(line.start.value)


def minimizer(line: Line) -> Point:
    """Return the minimizer on a half-line, its start if nothing is gained.

    Lines that are hardly known are followed no farther than to 1.
    """
    step = exact(line)
    if not line.is_accurate:
        step = min(step, 1.0)
    return line.point(step) if 0.0 < step < np.inf else line.start


def scaled(point: Point) -> Point:
    """Return the best positive multiple of the parameters, or nearly."""
    longer = minimizer(Line(point, point.w, point.scores, share=1.0))
    if longer is not point:
        return longer
    scores = point.objective.risk.scaled(-1.0, point.scores)
    return minimizer(Line(point, -point.w, scores, share=-1.0))


def minimize_by_cuts(line: Line, *, accuracy: float = 0.0) -> tuple[Trial, Trial]:
    """Return the ends of a bracket of the minimizer on a line, the better one first.

    Without a bracket both are the last trial, its step 0 where the line does not fall,
    ``inf`` where it falls without end. The domain of the regularizer may bound the
    step.
    """
    o = line.start.objective
    longest = o.regularizer.longest_step(line.start.w, line.p)

    def trial(step: float) -> Trial:
        point = line.point(step) if step else line.start
        return Trial(step, point.value, line.slope_of(point), point.dual)

    return bracket_by_cuts(trial, longest, accuracy)


def rounding_of(point: Point) -> float:
    """Return about how much J at a point is off by rounding.

    That is a share of J itself, and of the scores, of whose differences losses are,
    times their slopes.
    """
    o = point.objective
    if o.loss.has_rounding:
        return o.risk.rounding(point.scores)
    scale = abs(point.value) + o.risk.dual_scale * o.risk.mean_size(point.scores)
    return float(4.0 * EPS * scale)


def is_rounding(point: Point, gap: float) -> bool:
    """Whether rounding the scores of a point changes J by more than its gap.

    With ``rounding_of``, which is cheap but may be far too large: squares of residuals
    that vanish, of large targets, change by squares of rounding errors only.
    """
    if not gap <= rounding_of(point):
        return False
    loss = point.objective.loss
    if loss.has_conjugate and loss.has_rounding:
        # The loss says what is negligible.
        return True
    risk, scores = point.objective.risk, point.scores
    rounded = (risk.scaled(1.0 + s * 4.0 * EPS, scores) for s in (1.0, -1.0))
    return gap <= max(map(risk.value, rounded)) - point.risk


def backtrack(line: Line, decrease: float) -> tuple[float, Point]:
    """Return the largest of 1, 1/2, 1/4, ... that lowers J enough, and its point.

    That is 0 and the start if none does.

    Parameters
    ----------
    line : Line
    decrease : float
        What the step 1 promises, negative: the change of J with a linear risk (Tseng
        and Yun 2009, eq. 9).
    """
    start = line.start
    # Close to the optimum rounding hides what a good step gains.
    rounding = rounding_of(start)
    if not decrease < rounding:
        return 0.0, start
    step = 1.0
    for _ in range(40):
        point = line.point(step)
        if point.value <= start.value + 1e-2 * step * decrease + rounding:
            return step, point
        step *= 0.5
    return 0.0, start


def lengthen(line: Line, point: Point) -> tuple[float, Point]:
    """Return the step 1, which leads to ``point``, or a longer one and its point.

    Losses with tails like an exponential fall by a constant factor with each step of
    Newton's method, until scores are far enough. Where they still fall by much, longer
    steps are tried as long as they gain much more, and move no score too far: where
    none has much curvature left, models know little.
    """
    step, start = 1.0, line.start
    moved = line.largest_change
    fall = start.value - point.value
    while fall > _MUCH * abs(start.value) and _LONGER * step * moved <= _FAR:
        longer = line.point(_LONGER * step)
        if not start.value - longer.value > (1.0 + _MUCH) * fall:
            break
        step, point = _LONGER * step, longer
        fall = start.value - point.value
    return step, point


def wolfe(
    line: HasSlope,
    first: float = 1.0,
    *,
    c1: float = SUFFICIENT,
    c2: float = 0.9,
    max_iter: int = 60,
) -> float:
    """Return a step that obeys the subgradient Wolfe conditions (Yu 2009, 3.17-3.18).

    For smooth objectives these are the Wolfe conditions (2.7-2.8). The bracket is
    doubled until it holds acceptable steps, then halved: convexity makes the conditions
    hold on an interval. On an ``Objective``'s line a trial costs O(n), since the
    scores f and their change Δf are cached (end of section 3.3.2).

    Returns ``inf`` where all of ``max_iter`` doublings decrease the objective enough.
    Where the bracket holds but no trial obeys both conditions, the largest one that
    obeys (3.17) is returned, 0 if there is none.
    """
    start, slope = line.value(0.0), line.slope(0.0)
    low, high = 0.0, np.inf
    step = first
    for _ in range(max_iter):
        if not line.value(step) <= start + c1 * step * slope:
            high = step
        elif line.slope(step) < c2 * slope:
            low = step
        else:
            return step
        step = 0.5 * (low + high) if high < np.inf else 2.0 * step
    return np.inf if high == np.inf else low
