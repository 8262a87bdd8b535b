"""The outer loop of methods that minimize smooth functions of changing width in turn.

A loss with kinks is replaced by a smooth one that has a width and perhaps a center. An
inner method minimizes it until that is accurate enough for the gap of the original
problem; then the center moves to the dual variables of the minimizer, and the width
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..driver import Iterate, Solver, Start, Status
from ..objectives.objective import Dual, Objective, Point
from ..regularizers import L2
from ..steps.line_search import scaled
from ..steps.newton_direction import is_wide

# Inner problems are solved to a fifth of the outer gap. docs/constants.md has the
# figures.
_INNER_SHARE = 0.2

# Inner problems are solved in at most 20 steps.
_MAX_INNER = 20

# Four centers in a row may bring nothing before the gap is taken for rounding.
_MAX_STUCK = 4

# Each center that brings nothing divides ``_INNER_SHARE`` by ten, since objectives may
# be more sensitive than smooth ones.
_STUCK = 0.1

# The factor for the next width depends on whether the last center took more inner steps
# than one, than three and than eight.
_STEPS = (1, 3, 8)

# A narrower width brings the center forward faster but is harder to minimize. The first
# four factors are for centers that took few to many inner steps. Dual variables have
# rounding errors in proportion to the inverse of the width: the last factor is for
# widths at which these keep an inner method from going on.
_FACTORS = (0.4, 0.6, 0.8, 2.0, 10.0)


class Found(NamedTuple):
    """The point and the bound that a step of an inner method has found.

    Attributes
    ----------
    point : Point
        Of the original objective.
    lower_bound : float
        Of that.
    proof : Dual
        The dual point that proves it.
    left : float
        By how much the smooth objective may be above its minimum, at most.
    """

    point: Point
    lower_bound: float
    proof: Dual
    left: float


#: An inner method takes a width and the most by which the smooth objective may exceed
#: its minimum. It yields its steps, the starting point first, and ends where no step
#: leads further down.
Inner = Callable[[float, float], Iterator[Found]]


def in_turn(
    inner: Inner,
    width: float,
    phase: str,
    *,
    gap: float = float("inf"),
    share: float = _INNER_SHARE,
    factors: tuple[float, ...] = _FACTORS,
    least: float = 0.0,
) -> Solver:
    """Yield iterates for one width after the other.

    Parameters
    ----------
    inner : callable
        The inner method, which remembers where it was and moves its center.
    width : float
        The first width.
    phase : str
        That of the iterates.
    gap : float
        The gap at the start.
    share : float
        Of the gap, to which inner problems are solved.
    factors : tuple of float
        From each width to the next, after at most one step, three, eight and more, and
        where rounding ended the inner method.
    least : float
        The smallest width.

    Returns
    -------
    status : str
        "no_progress": the gap no longer shrinks; it is a rounding error.
    """
    best, bound, n_stuck = float("inf"), -float("inf"), 0
    while n_stuck <= _MAX_STUCK and width > least:
        before, part = gap, share * _STUCK**n_stuck
        for n_inner, found in enumerate(inner(width, part * gap)):
            best = min(best, found.point.value)
            bound = max(bound, found.lower_bound)
            gap = min(gap, best - bound)
            yield Iterate(found.point, None, found.lower_bound, phase, found.proof)
            is_solved = n_inner > 0 and found.left <= part * gap
            if is_solved or n_inner == _MAX_INNER:
                rounded = False
                break
        else:
            rounded = gap >= before
        n_stuck = n_stuck + 1 if gap >= before else 0
        steps = sum(n_inner > most for most in _STEPS)
        width *= factors[-1 if rounded else steps]
    return Status.NO_PROGRESS


def newton_in_turn(
    objective: Objective,
    start: Start,
    steps: Callable[[Point], Iterator[tuple[Point, Point]]],
    width: float | None,
    phase: str,
    **options: Any,
) -> Solver:
    """Yield iterates of Newton's method on one smooth loss after the other.

    Parameters
    ----------
    objective : Objective
        Its loss offers ``envelope`` and ``dual_variables``, or ``narrowed``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    steps : callable
        From a point of the smooth objective to points on the way down from it, the
        starting point first. Each comes as it is and with the best intercepts.
    width : float, optional
        The first width, see ``in_turn``, which takes the ``options``, too.
    phase : str
    """
    risk, narrows = objective.risk, objective.loss.narrows
    bounded = not isinstance(objective.regularizer, L2)
    # Where rows can be separated the objective is small, and rests on the last few
    # violations: too long a w is better by far than one a little too short.
    wide, twice_alpha = is_wide(objective), 2.0 * objective.alpha
    point = start.at(objective)
    dual = point.dual if start.dual is None else start.dual
    if width is None:
        width = first_width(objective) * risk.score_scale(point.scores)

    def newton(width: float, aim: float) -> Iterator[Found]:
        nonlocal point, dual
        if narrows:
            smooth = objective.narrowed(width)
        else:
            smooth = objective.with_envelope(risk.center(dual), width)
        first = point.refreshed(at_kinks=False).under(smooth)
        for next_point, minimal in steps(first):
            point, dual, proof = next_point, minimal.dual, minimal.dual_point
            if narrows:
                height, error = smooth.risk.proof(minimal.scores).tolist()
                proof = proof._replace(offset=height, error=proof.error + error)
            lower = objective.dual_value(objective.cut(proof))
            primal = minimal.under(objective)
            if bounded:
                left = minimal.gap
            else:
                primal = scaled(primal) if wide else primal
                left = float(minimal.gradient @ minimal.gradient) / twice_alpha
            yield Found(primal, lower, proof, left)

    return in_turn(newton, width, phase, **options)


def first_width(objective: Objective) -> float:
    """Return the first width in units of the loss.

    It is larger where features outnumber rows: there directions and models are better
    for a smoother problem. With several scores per row it is larger, too, and between
    where parameters outnumber rows but features do not: of 400 labels in a hierarchy,
    2,000 x 30, that saves a third.
    """
    design = objective.design
    tall = design.n_features < design.n_rows
    if design.several_scores and tall:
        return 1.0 if objective.n_params <= design.n_rows else 3.0
    if design.several_scores:
        return 10.0
    return 0.3 if tall else 10.0
