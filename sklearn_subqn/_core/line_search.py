"""Step sizes along a line: exact for piecewise quadratics, Wolfe for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from .kernels import piecewise
from .losses._base import EPS, Derivatives, Floats, PiecewiseQuadratic
from .objective import Dual, Line, Point

# A slope this small against that at the start is zero; below the second share it is
# rounding of larger slopes once it is not halved any more.
_ROUNDING, _NEARLY_ROUNDING = 1e-14, 1e-6

# A step that the next Newton step would change by less than this share of it is near.
_NEAR = 0.1

# After so many Newton steps in one dimension that are more than half as long as the
# ones before, the bracket is halved in place of further such steps: down the slope of
# an exponential function all of them are equally long.
_MAX_SLOW = 10

# Sums of dual variables this small, in units of their scale, need no further step of
# the intercepts, of which there are at most so many; where a whole step does not halve
# sums below the second number, they are rounding. Nor is there another one where so
# many searches have not lowered sums below the third.
_SETTLED, _ROUGHLY_MINIMAL, _NEARLY_MINIMAL = 1e-13, 1e-10, 1e-5
_MAX_SETTLE, _MAX_IDLE = 30, 3

# Each step of an intercept is at most so many times the largest score, or one.
_LONGEST_SETTLE = 10.0

# Slopes and curvatures beyond all kinks below this share of their parts are rounding.
_FLAT_TOLERANCE = 1e-12


# A step that leaves this share of the decrease on its line will do where exact steps
# take many trials.
_NEARLY = 1e-2

# A function that still falls at this step falls for ever.
_FARTHEST = 1e30

# After a step of Newton's method that lowers J by more than the first share of it, ones
# that are longer by this factor are tried, where they gain more by the second share and
# no score moves farther than that.
_STEEP, _LONGER, _MORE, _FAR = 0.1, 1.5, 0.1, 15.0


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
        return minimize_smooth(line.derivatives)
    return minimize_piecewise(line.restriction)


def newton_step(line: Line, *, rows_apart: bool = False) -> float:
    """Return about the minimizer on a line in a Newton direction, 0 or ``inf`` if none.

    With ``rows_apart`` each row has second derivatives of its own, which the line knows
    at little cost: of losses with kinks in their slopes, of which the last step is to
    end at the minimizer, the step is exact. Elsewhere slopes are dear, such as those
    that need a sort, and the step is 1 if the slope falls to a small share there.
    """
    if rows_apart:
        accuracy = _NEAR if line.start.objective.loss.analytic else _ROUNDING
        return minimize_smooth(line.derivatives, accuracy=accuracy)
    start = line.slope_of(line.start)
    if start < 0.0 and abs(line.slope_of(line.point(1.0))) <= _NEAR * -start:
        return 1.0
    return minimize_smooth(line.derivatives, accuracy=_NEAR)


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


class Trial(NamedTuple):
    """A step with value, slope and dual variables of the line."""

    step: float
    value: float
    slope: float
    dual: Floats


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

    return _bracket_by_cuts(trial, longest, accuracy)


def _bracket_by_cuts(
    trial: Callable[[float], Trial],
    longest: float = np.inf,
    accuracy: float = 0.0,
    max_iter: int = 60,
) -> tuple[Trial, Trial]:
    """Return the same for a function that returns value and slope at a step.

    The next trial is where the tangents at both ends meet. That is exact after a
    finite number of steps for piecewise linear functions; every third trial is the
    middle, for the sake of curved ones. The search ends where at most the share
    ``accuracy`` of the decrease is left to gain.
    """
    low = trial(0.0)
    start = low.value
    if low.slope >= 0.0:
        return low, low
    step = min(1.0, longest)
    high = trial(step)
    while high.slope < 0.0:
        if step >= longest:
            return high, high
        if step >= _FARTHEST:
            return high._replace(step=np.inf), high
        low, step = high, min(4.0 * step, longest)
        high = trial(step)
    for i in range(max_iter):
        width = high.step - low.step
        rise = low.value - high.value + high.slope * width
        meeting = low.step + rise / (high.slope - low.slope)
        floor = low.value + low.slope * (meeting - low.step)
        best = min(low.value, high.value)
        if best - floor <= max(_ROUNDING * abs(best), accuracy * (start - best)):
            break
        step = 0.5 * (low.step + high.step) if i % 3 == 2 else meeting
        if not low.step < step < high.step:
            break
        middle = trial(step)
        if middle.slope < 0.0:
            low = middle
        else:
            high = middle
    return (low, high) if low.value <= high.value else (high, low)


def minimize_smooth(derivatives: Derivatives, *, accuracy: float = _ROUNDING) -> float:
    """Return a zero of an increasing slope by safeguarded Newton steps.

    Parameters
    ----------
    derivatives : callable
        From a step size to slope and curvature.
    accuracy : float
        A slope smaller than this share of that at 0 will do near the minimizer.

    Returns
    -------
    step : float
        Where the slope vanishes; 0 if it is non-negative at 0, ``inf``
        if it stays negative.
    """
    slope, curvature = derivatives(0.0)
    if slope >= 0.0:
        return 0.0
    rounding, flat = _ROUNDING * -slope, accuracy * -slope
    nearly_rounding, last = _NEARLY_ROUNDING * -slope, -slope
    low, high = 0.0, np.inf
    # Longer steps than that of 1 only after trials: the curvature at 0 may be nearly 0.
    step = min(-slope / curvature, 1.0) if curvature > 0.0 else 1.0
    move, n_slow = step, 0
    for _ in range(120):
        slope, curvature = derivatives(step)
        if abs(slope) <= rounding:
            return step
        if slope < 0.0:
            low = step
        else:
            high = step
        newton = step - slope / curvature if curvature > 0.0 else np.inf
        small = abs(slope) <= flat or 0.5 * last < abs(slope) <= nearly_rounding
        # Where the slope is small but the minimizer far, a step too long may climb.
        if small and abs(newton - step) <= _NEAR * step:
            return step
        last = abs(slope)
        slow = high < np.inf and abs(newton - step) > 0.5 * move
        n_slow += slow
        if low < newton < high and not (slow and n_slow > _MAX_SLOW):
            trial = newton
        else:
            trial = 0.5 * (low + high) if high < np.inf else 4.0 * step
        if trial == step or not low < trial < high:
            return step
        move = abs(trial - step)
        step = trial
    return np.inf if high == np.inf else step


def minimize_piecewise(f: PiecewiseQuadratic) -> float:
    """Return the smallest eta >= 0 at which sup of the subdifferential of f is >= 0.

    The exact line search of Yu 2009, Alg. 3.3, for any piecewise quadratic function.
    The source sorts all kinks and walks through them; selection finds the same segment
    in O(n). Equal kinks are passed together. If no kink is left the minimizer lies on
    the last parabola, or nowhere: then ``inf`` is returned. A function that ends flat
    has its minimizer at the last kink, even where rounding leaves it a slope.
    """
    if f.slope >= 0.0:
        return 0.0
    step, a, c = piecewise.minimize(
        f.slope,
        f.curvature,
        f.kinks.copy(),
        f.slope_jumps.copy(),
        f.curvature_jumps.copy(),
    )
    if step >= 0.0:
        return step
    if f.kinks.size and _ends_flat(f, c):
        return float(f.kinks.max())
    return -a / c if c > 0.0 else np.inf


def _ends_flat(f: PiecewiseQuadratic, c: float) -> bool:
    """Whether slope and curvature c beyond the last kink are zero up to rounding."""
    curvatures = abs(f.curvature) + float(np.abs(f.curvature_jumps).sum())
    if c > _FLAT_TOLERANCE * curvatures:
        return False
    last = float(f.kinks.max())
    slopes = abs(f.slope) + float(np.abs(f.slope_jumps).sum()) + last * curvatures
    return f.slope_at(last) >= -_FLAT_TOLERANCE * slopes


def minimize_intercept(point: Point) -> Point:
    """Return the point with its free parameters minimized over, exactly.

    No product with X is needed. The subgradient of the result vanishes in the free
    parameters, so that its dual value is a lower bound and its cut is balanced: solvers
    thereby minimize the reduced function min_b J(w, b), whose cuts are bounded.

    Several free parameters stay as they are where the loss is not smooth.
    """
    o = point.objective
    if not o.n_free:
        return point
    if not o.loss.has_lines and o.n_free == 1:
        return _settle_by_cuts(point)
    if o.loss.smooth and (o.n_free > 1 or o.loss.analytic):
        return _settle_by_newton(point)
    if o.n_free > 1:
        return point
    signs = [1.0, -1.0]
    if o.loss.smooth:
        signs = [-1.0 if o.risk.column_sums(point.dual)[0] > 0.0 else 1.0]
    for sign in signs:
        line = point.along_free(np.array([sign]))
        step = exact(line)
        if 0.0 < step < np.inf:
            break
    else:
        step = 0.0
    if line.smooth:
        step = _middle_of_flat(line.derivatives, step)
    return line.point(step, balanced=True)


def _settle_by_cuts(point: Point) -> Point:
    """Minimize over one free parameter of a loss with subgradients only.

    The combination of the duals at both ends of the bracket that is balanced proves a
    bound; its height is that of the chord, which the minimum exceeds by rounding.
    """
    o = point.objective
    args = o.targets, o.weights
    shifted = o.risk.oracle.shifted(point.scores, *args)
    penalty = o.alpha * o.regularizer.value(point.w)
    start = shifted(0.0)
    sign = -1.0 if start[1].sum() > 0.0 else 1.0

    def trial(step: float) -> Trial:
        risk, dual = shifted(sign * step) if step else start
        return Trial(step, penalty + risk, sign * float(dual.sum()), dual)

    first, other = _bracket_by_cuts(trial)
    if first is other or first.step == np.inf:
        return point
    line = point.along_free(np.array([sign]))
    ends = [line.point(end.step) for end in (first, other)]
    minimal = ends[0]
    a, b = float(first.dual.sum()), float(other.dual.sum())
    if a * b > 0.0 or a == b:
        minimal.dual = first.dual
        return minimal
    share = a / (a - b)
    duals = [
        Dual(end.dual, offset=-o.risk.conjugate_at(end.dual, at.scores))
        for end, at in zip((first, other), ends, strict=True)
    ]
    minimal.mixture = mixture = Dual.mixed(o.risk, share, *duals)
    minimal.dual = mixture.u
    if not o.loss.ranks:
        # A little more of the end on the other side makes up for what rounding leaves.
        left = float(mixture.u.sum(dtype=np.longdouble))
        slope = a if a * left < 0.0 else b
        points = mixture, *duals
        sizes = (
            [o.risk.dual_norm(dual.u) for dual in points],
            [abs(dual.offset or 0.0) for dual in points],
        )
        larger = max(max(size) / (size[0] or 1.0) for size in sizes)
        share = abs(left) / max(abs(slope) - abs(left), 1e-300) * (1.0 + larger)
        share = min(o.imbalance(mixture.u), share)
        minimal.mixture = mixture._replace(imbalance=share)
    return minimal


def _settle_by_newton(point: Point) -> Point:
    """Minimize over the free parameters of a smooth loss by Newton's method.

    Whole steps mostly halve the slopes and need no search. What rounding leaves of the
    sums of the dual variables is taken out of them.
    """
    o, risk = point.objective, point.objective.risk
    # Where a label has no relevant rows slopes vanish, and steps have no end; those of
    # squares, whose scores are in units of the targets, are exact.
    exact_within = risk.curvature_radius(point.scores)
    farthest = max(_LONGEST_SETTLE * max(1.0, point.largest_score), exact_within)
    if o.n_free == 1:
        point = _moved_by_newton(point, farthest)
    n_idle = 0
    for _ in range(_MAX_SETTLE):
        sums = risk.column_sums(point.dual)
        size = float(np.abs(sums).max())
        if size <= _SETTLED * risk.dual_scale:
            break
        hessian = risk.total_curvature(point.curvature)
        if o.n_free > 1 and not hessian.sum(axis=0).max() > 1e-10 * hessian.max():
            # Adding a constant to all intercepts changes nothing.
            hessian += float(np.trace(hessian)) / o.n_free
        largest = float(hessian.diagonal().max())
        hessian[np.diag_indices_from(hessian)] += 1e-10 * largest or 1.0
        # Next to no curvature means far, not infinitely far.
        direction = -np.linalg.solve(hessian, sums).clip(-1e300, 1e300)
        reach = max(float(np.abs(direction).max()), 1e-300)
        if reach > farthest:
            direction *= farthest / reach
            reach = farthest
        line = point.along_free(direction)
        new = line.point(1.0)
        if not np.abs(risk.column_sums(new.dual)).max() <= 0.5 * size:
            if size <= _ROUGHLY_MINIMAL * risk.dual_scale:
                break
            step = minimize_smooth(line.derivatives, accuracy=_NEAR)
            if not 0.0 < step < np.inf:
                break
            new = line.point(min(step, farthest / reach))
            n_idle += not np.abs(risk.column_sums(new.dual)).max() < size
            if n_idle >= _MAX_IDLE and size <= _NEARLY_MINIMAL * risk.dual_scale:
                break
        point = new
    point.dual = risk.balance(point.dual)
    return point


def _moved_by_newton(point: Point, farthest: float) -> Point:
    """Return the point after steps of Newton's method in one free parameter.

    As long as these halve the slope. Slopes on the line cost no dual variables.
    """
    line, step = point.along_free(np.ones(1)), 0.0
    slope, curvature = line.derivatives(step)
    for _ in range(_MAX_SETTLE):
        if abs(slope) <= _SETTLED * point.objective.risk.dual_scale:
            break
        move = -slope / curvature if curvature > 0.0 else np.inf
        if abs(move) > farthest:
            break
        last, (slope, curvature) = abs(slope), line.derivatives(step + move)
        if not abs(slope) <= 0.5 * last:
            break
        step += move
    return line.point(step) if step else point


def _middle_of_flat(derivatives: Derivatives, step: float) -> float:
    """Return the middle of the interval of minimizers around ``step``.

    Where no row has a slope, as happens for separable data, the free parameter has an
    interval of minimizers. At an end of it the next step along another direction would
    be stopped at once by the row that begins there.
    """
    if derivatives(step) != (0.0, 0.0):
        return step
    ends = []
    for sign in (1.0, -1.0):
        inside, outside = 0.0, sign
        for _ in range(60):
            if derivatives(step + outside)[0] != 0.0:
                break
            inside, outside = outside, 2.0 * outside
        else:
            return step
        for _ in range(30):
            middle = 0.5 * (inside + outside)
            if derivatives(step + middle)[0] == 0.0:
                inside = middle
            else:
                outside = middle
        ends.append(inside)
    return step + 0.5 * sum(ends)


def rounding_of(point: Point) -> float:
    """Return about how much J at a point is off by rounding.

    That is a share of J itself, and of the scores, of whose differences losses are,
    times their slopes.
    """
    o = point.objective
    if o.loss.tells_rounding:
        return o.risk.rounding(point.scores)
    scale = abs(point.value) + o.risk.dual_scale * o.risk.mean_size(point.scores)
    return float(4.0 * EPS * scale)


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
    while fall > _STEEP * abs(start.value) and _LONGER * step * moved <= _FAR:
        longer = line.point(_LONGER * step)
        if not start.value - longer.value > (1.0 + _MORE) * fall:
            break
        step, point = _LONGER * step, longer
        fall = start.value - point.value
    return step, point


def wolfe(
    line: HasSlope,
    first: float = 1.0,
    *,
    c1: float = 1e-4,
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
