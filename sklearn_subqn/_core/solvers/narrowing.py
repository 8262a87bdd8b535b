"""Newton's method on smooth losses that approach one with kinks.

For losses of pairs of rows, whose dual variables are far too many to be the center of
an envelope as in ``alm``. The center stays at zero instead, and the width of the
envelope falls until the gap is small enough; the slopes of the smooth loss are feasible
dual variables all along, so that each iterate proves a bound.
"""

from __future__ import annotations

from ..line_search import newton_step
from ..newton_direction import NewtonDirections
from ..objective import Objective
from .run import Iterate, Solver, Start
from .widths import INNER_SHARE, MAX_INNER, Gap

# The first width in units of the margin, and the factor by which widths fall.
_WIDTH, _NARROWER = 1.0, 0.1

# Beyond this width rounding is all that is left.
_NARROWEST = 1e-8


def narrowing(objective: Objective, start: Start) -> Solver:
    """Yield the iterates for smooth losses of falling width.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss offers ``narrowed``.
    start : Start
        Starting point.

    Returns
    -------
    status : str
        "no_progress": the gap is a rounding error.
    """
    loss, args = objective.loss, (objective.targets, objective.weights)
    point = start.at(objective)
    gap, width, directions = Gap(point.value), _WIDTH, NewtonDirections()
    while width > _NARROWEST:
        narrow = loss.narrowed(width)
        point = point.under(objective.with_loss(narrow))
        for n_inner in range(MAX_INNER + 1):
            height, error = narrow.oracle.proof(point.scores, *args)
            dual = point.dual_point
            dual = dual._replace(offset=height, error=dual.error + error)
            lower = objective.dual_value(objective.cut(dual))
            primal = point.under(objective)
            gap.take(primal.value, lower)
            yield Iterate(primal, None, lower, "narrowing", dual)
            g = point.gradient
            square = float(g @ g) / (2.0 * objective.alpha)
            if square <= INNER_SHARE * gap.left or n_inner == MAX_INNER:
                break
            p = directions.at(point)
            line = point.along(p)
            step = newton_step(line)
            if not 0.0 < step < float("inf"):
                break
            point = line.point(step)
        width *= _NARROWER
    return "no_progress"
