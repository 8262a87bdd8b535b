"""Minimizers of convex functions of one variable, by slopes, kinks or values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..kernels import piecewise
from ..losses._base import Derivatives, Floats, PiecewiseQuadratic
from ..rounding import EPS, MOST_STEPS, ROUNDED

# Slopes below 1e-14 of the first slope count as zero.
EXACT = 1e-14

# Accuracy, as a fraction of the bracket, of a kink that is located by function values
# only.
_AT_KINK = 1e-12

# Distance from a minimizer, as a fraction of the bracket, at which the function is
# tested for a flat part.
_AT_SIDE = 1e-6

# A step is near the minimizer if the next Newton step would change it by less than a
# tenth.
NEAR = 0.1


class Trial(NamedTuple):
    """A step with value, slope and dual variables of the line."""

    step: float
    value: float
    slope: float
    dual: Floats


def bracket_by_cuts(
    trial: Callable[[float], Trial],
    longest: float = np.inf,
    accuracy: float = 0.0,
) -> tuple[Trial, Trial]:
    """Return the best trial step, and the other end of its bracket.

    ``trial`` returns value and slope at a step. The next trial is the intersection of
    the tangents at both ends, which finds minimizers of piecewise linear functions in
    finitely many steps. Every third trial is the midpoint, for convergence on curved
    functions. The search stops when the remaining decrease is at most the fraction
    ``accuracy`` of the decrease so far.
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
        # The function counts as unbounded if it still decreases at this step.
        if step >= 1e30:
            return high._replace(step=np.inf), high
        low, step = high, min(4.0 * step, longest)
        high = trial(step)
    for i in range(MOST_STEPS):
        width = high.step - low.step
        rise = low.value - high.value + high.slope * width
        meeting = low.step + rise / (high.slope - low.slope)
        floor = low.value + low.slope * (meeting - low.step)
        best = min(low.value, high.value)
        if best - floor <= max(EXACT * abs(best), accuracy * (start - best)):
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


def zero_between(trial: Callable[[float], Trial], low: Trial, high: Trial) -> Trial:
    """Return the first step in a bracket at which the slope is non-negative.

    The slope is negative at ``low`` and non-negative at ``high``. If the function is
    linear between them, ``high`` is a kink and no trial is needed.
    """
    first = abs(low.slope)
    if not low.slope < 0.0 <= high.slope:
        return high
    for i in range(MOST_STEPS):
        width = high.step - low.step
        rest = high.value - low.value - low.slope * width
        # Rounding error of the values. Divided by the jump of the slope, it is an error
        # bound of the kink.
        noise = 4.0 * EPS * max(abs(low.value), abs(high.value))
        jump = high.slope - low.slope
        on_kink = abs(rest) <= noise <= _AT_KINK * jump * width
        if on_kink or width <= 2.0 * EPS * high.step:
            break
        flat = high.slope <= EXACT * first
        if flat:
            # The flat part of the function may start further left.
            middle = trial(high.step - _AT_SIDE * width)
            if middle.slope < 0.0:
                break
            high = middle
        step = low.step + low.slope / (low.slope - high.slope) * width
        if flat:
            step = low.step + (high.value - low.value) / low.slope
        if i % 3 == 2:
            step = 0.5 * (low.step + high.step)
        if not low.step < step < high.step:
            break
        middle = trial(step)
        if middle.slope < 0.0:
            low = middle
        else:
            high = middle
    return high


def minimize_smooth(
    derivatives: Derivatives,
    *,
    accuracy: float = EXACT,
    negligible: float = 0.0,
    least: float = 0.0,
) -> float:
    """Return a zero of an increasing slope by safeguarded Newton steps.

    Parameters
    ----------
    derivatives : callable
        Returns slope and curvature for a step size.
    accuracy : float
        A slope below ``accuracy`` times the slope at 0 is accepted near the minimizer.
    negligible : float
        A step is accepted if the function changes by at most this number within the
        bracket. This ends the search if slopes are rounding errors, which do not
        vanish.
    least : float
        Slopes of at most this size count as rounding errors.

    Returns
    -------
    step : float
        The zero of the slope; 0 if the slope at 0 is not negative, ``inf`` if it
        remains negative.
    """
    slope, curvature = derivatives(0.0)
    if slope >= -least:
        return 0.0
    rounding, flat = max(EXACT * -slope, least), accuracy * -slope
    nearly_rounding, last = EPS**0.5 * -slope, -slope
    low, high = 0.0, np.inf
    fall, climb = -slope, 0.0
    # The first step is at most 1, since the curvature at 0 may be nearly zero.
    step = min(-slope / curvature, 1.0) if curvature > 0.0 else 1.0
    move, n_slow = step, 0
    for _ in range(2 * MOST_STEPS):
        slope, curvature = derivatives(step)
        if abs(slope) <= rounding:
            return step
        if slope < 0.0:
            low, fall = step, -slope
        else:
            high, climb = step, slope
        if max(fall, climb) * (high - low) <= negligible:
            return step
        newton = step - slope / curvature if curvature > 0.0 else np.inf
        # Slopes below the root of the machine epsilon count as rounding errors if they
        # are no longer halved.
        small = abs(slope) <= flat or 0.5 * last < abs(slope) <= nearly_rounding
        # If the slope is small but the minimizer is far, a long step may increase the
        # function.
        if small and abs(newton - step) <= NEAR * step:
            return step
        last = abs(slope)
        # Along an exponential function all Newton steps have equal length. After ten
        # steps of more than half of the previous length, the bracket is halved instead.
        # Halving from the start takes 1.3 times as long for Poisson's deviance on
        # 200,000 x 60.
        slow = high < np.inf and abs(newton - step) > 0.5 * move
        n_slow += slow
        if low < newton < high and not (slow and n_slow > 10):
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
    The source sorts all kinks and visits them in ascending order; selection finds the
    same segment in O(n). Equal kinks are treated as one. Beyond all kinks the minimizer
    is the minimizer of the last parabola, and ``inf`` if it has none. If the function
    is constant beyond the last kink, that kink is the minimizer, even if the slope is
    nonzero by rounding.
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
    if c > ROUNDED * curvatures:
        return False
    last = float(f.kinks.max())
    slopes = abs(f.slope) + float(np.abs(f.slope_jumps).sum()) + last * curvatures
    return f.slope_at(last) >= -ROUNDED * slopes


def middle_of_flat(derivatives: Derivatives, step: float) -> float:
    """Return the middle of the interval of minimizers around ``step``.

    For separable data all rows may have slope zero on an interval of the free
    parameter. At an end of the interval, a step in another direction is blocked
    immediately by the row whose kink is at this end.
    """
    if derivatives(step) != (0.0, 0.0):
        return step
    ends = []
    for sign in (1.0, -1.0):
        inside, outside = 0.0, sign
        for _ in range(MOST_STEPS):
            if derivatives(step + outside)[0] != 0.0:
                break
            inside, outside = outside, 2.0 * outside
        else:
            return step
        for _ in range(MOST_STEPS):
            middle = 0.5 * (inside + outside)
            if derivatives(step + middle)[0] == 0.0:
                inside = middle
            else:
                outside = middle
        ends.append(inside)
    return step + 0.5 * sum(ends)
