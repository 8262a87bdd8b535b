"""Step sizes along a line: exact, nearly exact, by Wolfe conditions, backtracking."""

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

#: Factor of the decrease predicted by the slope that an accepted step has to reach.
SUFFICIENT = 1e-4

# If exact steps take many trials, a step is accepted if at most a hundredth of the
# decrease along the line remains.
_NEARLY = 1e-2

# If a Newton step decreases J by more than a tenth, longer steps are tried while each
# decreases J by a further tenth. docs/constants.md has the figures.
_MUCH = 0.1

# Factor of each longer step relative to the previous step.
_LONGER = 1.5

# Longer steps are tried only while no score changes by more than 15. docs/constants.md
# has the figures.
_FAR = 15.0


class HasSlope(Protocol):
    """A line with values and right-hand slopes only."""

    def value(self, step: float) -> float: ...

    def slope(self, step: float) -> float: ...


def exact(line: Line) -> float:
    """Return the smallest minimizer of the objective on a line, or ``inf``.

    Piecewise linear losses are minimized by their kinks. Smooth ones are minimized by
    Newton's method in one dimension, which is finite for piecewise quadratic losses.
    Losses without slopes along lines are minimized by cutting planes.
    """
    if not line.is_known:
        return minimize_by_cuts(line, accuracy=_NEARLY)[0].step
    if line.smooth:
        return minimize_smooth(line.derivatives, negligible=_negligible(line))
    return minimize_piecewise(line.restriction)


def exact_on_function(line: FunctionLine) -> float:
    """Return the smallest minimizer on a line of a user's function.

    It uses the restriction to the line if the function has one. Otherwise cutting
    planes find a minimizer between two linear pieces in a few trials, and slopes refine
    it up to rounding.
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
    """Return an approximate minimizer along a Newton direction, 0 or ``inf`` if none.

    With ``rows_apart`` the second derivatives of each row are cheap along the line, and
    the step is exact if the slope has kinks, because the last step of a run has to end
    at the minimizer. Otherwise slopes are expensive, for example if they need a sort,
    and the step is 1 if the slope has decreased enough there.
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
    """Return the change of J if parameters change by their rounding errors.

    Near a minimizer J is quadratic, so the change is the squared relative rounding
    error times J.
    """
    return EPS * EPS * abs(line.start.value)


def minimizer(line: Line) -> Point:
    """Return the minimizer on a half-line, its start if there is no decrease.

    If the slopes along the line are inaccurate, the step is at most 1.
    """
    step = exact(line)
    if not line.is_accurate:
        step = min(step, 1.0)
    return line.point(step) if 0.0 < step < np.inf else line.start


def scaled(point: Point) -> Point:
    """Return the best positive multiple of the parameters, approximately."""
    longer = minimizer(Line(point, point.w, point.scores, share=1.0))
    if longer is not point:
        return longer
    scores = point.objective.risk.scaled(-1.0, point.scores)
    return minimizer(Line(point, -point.w, scores, share=-1.0))


def minimize_by_cuts(line: Line, *, accuracy: float = 0.0) -> tuple[Trial, Trial]:
    """Return both ends of a bracket of the minimizer on a line, the better one first.

    Without a bracket both are the last trial: its step is 0 if the line does not
    decrease, and ``inf`` if it decreases without bound. The domain of the regularizer
    may limit the step.
    """
    o = line.start.objective
    longest = o.regularizer.longest_step(line.start.w, line.p)

    def trial(step: float) -> Trial:
        point = line.point(step) if step else line.start
        return Trial(step, point.value, line.slope_of(point), point.dual)

    return bracket_by_cuts(trial, longest, accuracy)


def rounding_of(point: Point) -> float:
    """Return an estimate of the rounding error of J at a point.

    The estimate is proportional to J plus the scores times their slopes, since losses
    depend on differences of scores.
    """
    o = point.objective
    if o.loss.has_rounding:
        return o.risk.rounding(point.scores)
    scale = abs(point.value) + o.risk.dual_scale * o.risk.mean_size(point.scores)
    return float(4.0 * EPS * scale)


def is_rounding(point: Point, gap: float) -> bool:
    """Whether rounding the scores of a point changes J by more than its gap.

    The cheap estimate ``rounding_of`` may be far too large: for large targets with
    residuals of about zero, the squared residuals change only by squares of rounding
    errors.
    """
    if not gap <= rounding_of(point):
        return False
    loss = point.objective.loss
    if loss.has_conjugate and loss.has_rounding:
        # The loss defines a threshold below which values are negligible.
        return True
    risk, scores = point.objective.risk, point.scores
    rounded = (risk.scaled(1.0 + s * 4.0 * EPS, scores) for s in (1.0, -1.0))
    return gap <= max(map(risk.value, rounded)) - point.risk


def backtrack(line: Line, decrease: float) -> tuple[float, Point]:
    """Return the largest of 1, 1/2, 1/4, ... that decreases J enough, and its point.

    The result is 0 and the start if no step decreases J enough.

    Parameters
    ----------
    line : Line
    decrease : float
        The predicted change of J by the step 1, negative: the change with a linearized
        risk (Tseng and Yun 2009, eq. 9).
    """
    start = line.start
    # Near the optimum the decrease of a good step may be below the rounding error.
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
    """Return the step 1, which leads to ``point``, or a longer step and its point.

    In an exponential tail a loss decreases by a constant factor with each Newton step,
    until scores are large enough. If a step decreases J by much, longer steps are tried
    as long as they decrease J by much more and change no score too much. The reason is
    that quadratic models are inaccurate where curvature is small.
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
    """Return a step with the subgradient Wolfe conditions (Yu 2009, 3.17-3.18).

    For smooth objectives these are the Wolfe conditions (2.7-2.8). The bracket is
    doubled until it contains acceptable steps, then halved. By convexity the acceptable
    steps are an interval. On an ``Objective``'s line a trial costs O(n), since the
    scores f and their change Δf are cached (end of section 3.3.2).

    Returns ``inf`` if all of ``max_iter`` doublings decrease the objective enough. If
    there is a bracket but no trial satisfies both conditions, the largest one that
    satisfies (3.17) is returned, 0 if there is none.
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
