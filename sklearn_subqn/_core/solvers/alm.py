"""Proximal method of multipliers on the dual: a smooth path to a certified optimum.

The nonsmooth loss is replaced by its smooth envelope around a dual center. A semismooth
Newton method minimizes the regularized envelope until the gradient is small against the
gap; the gradient's dual variables then become the center, and the envelope narrows. At
every iterate these variables are feasible for the dual of the original problem, and
their dual value comes with the gradient, so that the gap is certified at no cost.
"""

from __future__ import annotations

from ..intercepts import minimize_intercept
from ..line_search import scaled
from ..newton_direction import (
    NewtonDirections,
    has_rough_directions,
    is_short,
    is_wide,
)
from ..objective import Line, Objective, Point
from ..one_dimension import NEAR, minimize_smooth
from .run import Iterate, Solver, Start
from .widths import INNER_SHARE, MAX_INNER, MAX_STUCK, Gap, change_of_width

# Factors for the width, as of ``change_of_width``.
_FACTORS = 0.5, 0.7, 0.9

# Inner problems are solved to this share of the outer gap where directions are rough.
_INNER_SHARE_ROUGH = 0.2

# It becomes this many times smaller with each center in a row that brought nothing.
_STUCK_SHARE = 0.1

# Accuracy of Newton directions by conjugate gradients, and limit on their iterations:
# the second one after this many steps around a center, for which the first was too low.
_CG_ACCURACY, _CG_LIMIT, _CG_LIMIT_LATE, _LATE = 0.3, 30, 90, 5

# Newton steps are right up to a factor; where a step so much longer seems better, slope
# and curvature are rounding errors.
_LONGEST_STEP = 1e8

# Scores whose rounding errors change the objective by this many of its own are computed
# anew at a change of center.
_DRIFT = 1e4


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
        Width of the first envelope in units of scores. The default is 0.3 units of the
        loss, and 3 where features outnumber rows: there conjugate gradients profit from
        a smoother problem. For several scores per row it is 1 or 10, and 3 between,
        where parameters outnumber rows but features do not.

    Returns
    -------
    status : str
        "no_progress": the gap no longer shrinks; it is a rounding error.
    """
    risk = objective.risk
    point = start.at(objective)
    center = risk.center(point.dual if start.dual is None else start.dual)
    if width is None:
        width = _first_width(objective) * risk.score_scale(point.scores)
    rough = has_rough_directions(objective)
    inner_share = _INNER_SHARE_ROUGH if rough else INNER_SHARE
    gap, directions = Gap(point.value), NewtonDirections()
    # Where rows can be separated the objective is small, and rests on the last few
    # violations: too long a w is better by far than one a little too short.
    wide = is_wide(objective)
    # Several intercepts are left to directions: where classes are separable they do not
    # converge, and balanced dual variables are not those of a gradient.
    n_stuck, follows_intercept = 0, objective.n_free <= 1
    while True:
        point = point.refreshed(_DRIFT, at_kinks=False)
        point = point.under(objective.with_envelope(center, width))
        n_inner = 0
        before = gap.left
        while True:
            minimal = minimize_intercept(point)
            if follows_intercept:
                point = minimal
            lower = objective.dual_value(objective.cut(minimal.dual_point))
            primal = minimal.under(objective)
            if wide:
                primal = scaled(primal)
            gap.take(primal.value, lower)
            yield Iterate(primal, None, lower, "alm", minimal.dual_point)
            g = minimal.gradient
            square = float(g @ g) / (2.0 * objective.alpha)
            share = _STUCK_SHARE**n_stuck * inner_share
            if n_inner and square <= share * gap.left:
                break
            if n_inner >= MAX_INNER:
                break
            line, step = newton_step(
                point, directions, _CG_LIMIT if n_inner < _LATE else _CG_LIMIT_LATE
            )
            if not step:
                break
            follows_intercept = follows_intercept and not (wide and is_short(step))
            point = line.point(step)
            n_inner += 1
        n_stuck = n_stuck + 1 if gap.left >= before else 0
        if n_stuck > MAX_STUCK:
            return "no_progress"
        center = risk.center(minimal.dual)
        width *= change_of_width(n_inner, _FACTORS)


def newton_step(
    point: Point, directions: NewtonDirections, cg_limit: int = _CG_LIMIT
) -> tuple[Line, float]:
    """Return the line in the Newton direction and the step on it, 0 if there is none.

    The point is one of an objective with an envelope. Steps are nearly right without a
    search.
    """
    p = directions.at(point, rtol=_CG_ACCURACY, max_iter=cg_limit)
    line = point.along(p)
    step = minimize_smooth(line.derivatives, accuracy=NEAR)
    return line, step if 0.0 < step < _LONGEST_STEP else 0.0


def _first_width(objective: Objective) -> float:
    tall = objective.design.n_features < objective.design.n_rows
    if objective.design.several_scores and tall:
        # Of 400 labels in a hierarchy, 2,000 x 30, the wider one saves a third.
        return 1.0 if objective.n_params <= objective.design.n_rows else 3.0
    if objective.design.several_scores:
        return 10.0
    return 0.3 if tall else 3.0
