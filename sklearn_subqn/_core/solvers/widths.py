"""The outer loop of methods that minimize a sequence of smooth functions.

A loss with kinks is replaced by a smooth loss with a width and possibly a center. An
inner method minimizes the smooth objective to an accuracy relative to the gap of the
original problem. Then the dual variables of the minimizer become the center, and the
width changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..driver import Iterate, Solver, Start, Status
from ..objectives.objective import Dual, Objective, Point
from ..regularizers import L2
from ..steps.line_search import scaled
from ..steps.newton_direction import is_wide

# Inner problems are solved to 0.2 times the outer gap. docs/constants.md has the
# figures.
_INNER_SHARE = 0.2

# Limit on the steps of an inner problem.
_MAX_INNER = 20

# After more than four successive centers without progress, the gap counts as a rounding
# error.
_MAX_STUCK = 4

# Each center without progress multiplies ``_INNER_SHARE`` by this factor, since the
# original objective may change more than the smoothed one.
_STUCK = 0.1

# The factor of the next width depends on whether the last center took more than one,
# three and eight inner steps.
_STEPS = (1, 3, 8)

# With a smaller width the center converges faster, but the smooth loss is harder to
# minimize. The first four factors are for few to many inner steps. Rounding errors of
# dual variables are proportional to the inverse width. The last factor is for widths at
# which these errors stop the inner method.
_FACTORS = (0.4, 0.6, 0.8, 2.0, 10.0)


class Found(NamedTuple):
    """The point and the bound of a step of an inner method.

    Attributes
    ----------
    point : Point
        A point of the original objective.
    lower_bound : float
        A lower bound of the original objective.
    proof : Dual
        The dual point that proves the bound.
    left : float
        Upper bound of the smooth objective minus its minimum.
    """

    point: Point
    lower_bound: float
    proof: Dual
    left: float


#: An inner method takes a width and the allowed distance of the smooth objective from
#: its minimum. It yields its steps, the starting point first, and stops if no step
#: decreases the objective.
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
    """Yield iterates for successive widths.

    Parameters
    ----------
    inner : callable
        The inner method, which continues from its last point and updates its center.
    width : float
        The first width.
    phase : str
        Phase of the iterates.
    gap : float
        The gap at the start.
    share : float
        Share of the gap to which inner problems are solved.
    factors : tuple of float
        Factors of the next width: after at most one, three, eight and more inner steps,
        and after rounding errors stop the inner method.
    least : float
        The smallest width.

    Returns
    -------
    status : str
        "no_progress": the gap no longer decreases; it is a rounding error.
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
    """Yield iterates of Newton's method on successive smooth losses.

    Parameters
    ----------
    objective : Objective
        Objective whose loss has ``envelope`` and ``dual_variables``, or ``narrowed``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    steps : callable
        Yields points of decreasing smooth objectives from a starting point, which is
        the first. Each point is yielded unchanged and with the best intercepts.
    width : float, optional
        The first width, see ``in_turn``, which takes the ``options``, too.
    phase : str
    """
    risk, narrows = objective.risk, objective.loss.narrows
    bounded = not isinstance(objective.regularizer, L2)
    # If rows are separable, the objective is small and determined by few violations of
    # the margin. Then a w whose norm is too large has a much lower objective than a w
    # whose norm is slightly too small.
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

    The width is larger if there are more features than rows, since directions and
    models are more accurate for a smoother problem. It is also larger with several
    scores per row. It is intermediate if there are more parameters, but not more
    features, than rows: for 400 labels in a hierarchy, 2,000 x 30, this saves a third
    of the time.
    """
    design = objective.design
    tall = design.n_features < design.n_rows
    if design.several_scores and tall:
        return 1.0 if objective.n_params <= design.n_rows else 3.0
    if design.several_scores:
        return 10.0
    return 0.3 if tall else 10.0
