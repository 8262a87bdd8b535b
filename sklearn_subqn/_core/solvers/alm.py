"""Proximal method of multipliers on the dual: a smooth path to a certified optimum.

The nonsmooth loss is replaced by its smooth envelope around a dual center. A semismooth
Newton method minimizes the regularized envelope until the gradient is small against the
gap; the gradient's dual variables then become the center, and the envelope narrows. At
every iterate these variables are feasible for the dual of the original problem, and
their dual value comes with the gradient, so that the gap is certified at no cost.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..driver import Solver, Start
from ..objectives.objective import Line, Objective, Point
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import scaled
from ..steps.newton_direction import NewtonDirections, is_short, is_wide
from ..steps.one_dimension import NEAR, minimize_smooth
from .widths import Found, first_width, in_turn

# Newton directions by conjugate gradients leave 0.3 times the gradient.
# docs/constants.md has the figures.
_CG_ACCURACY = 0.3


def alm(
    objective: Objective,
    start: Start,
    *,
    width: float | None = None,
) -> Solver:
    """Yield the iterates of the proximal method of multipliers.

    Parameters
    ----------
    objective : Objective
        Its loss offers ``envelope`` and ``dual_variables``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    width : float, optional
        Width of the first envelope in units of scores.

    Returns
    -------
    status : str
        "no_progress": the gap no longer shrinks; it is a rounding error.
    """
    risk = objective.risk
    point = start.at(objective)
    dual = point.dual if start.dual is None else start.dual
    if width is None:
        width = first_width(objective) * risk.score_scale(point.scores)
    # Where rows can be separated the objective is small, and rests on the last few
    # violations: too long a w is better by far than one a little too short.
    wide = is_wide(objective)
    # Several intercepts are left to directions: where classes are separable they do not
    # converge, and balanced dual variables are not those of a gradient.
    follows_intercept = objective.n_free <= 1
    directions = NewtonDirections()

    def newton(width: float, aim: float) -> Iterator[Found]:
        nonlocal point, dual, follows_intercept
        smooth = objective.with_envelope(risk.center(dual), width)
        point = point.refreshed(at_kinks=False).under(smooth)
        while True:
            minimal = minimize_intercept(point)
            dual = minimal.dual
            if follows_intercept:
                point = minimal
            lower = objective.dual_value(objective.cut(minimal.dual_point))
            primal = minimal.under(objective)
            if wide:
                primal = scaled(primal)
            g = minimal.gradient
            left = float(g @ g) / (2.0 * objective.alpha)
            yield Found(primal, lower, minimal.dual_point, left)
            line, step = newton_line(point, directions)
            if not step:
                return
            follows_intercept = follows_intercept and not (wide and is_short(step))
            point = line.point(step)

    return (yield from in_turn(newton, width, "alm"))


def newton_line(point: Point, directions: NewtonDirections) -> tuple[Line, float]:
    """Return the line in the Newton direction and the step on it, 0 if there is none.

    The point is one of an objective with an envelope. Steps are nearly right by
    themselves: the slope need only fall to a small share.
    """
    line = point.along(directions.at(point, rtol=_CG_ACCURACY))
    step = minimize_smooth(line.derivatives, accuracy=NEAR)
    return line, step if 0.0 < step < float("inf") else 0.0
