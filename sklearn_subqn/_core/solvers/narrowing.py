"""Newton's method on smooth losses that approach one with kinks.

For losses of pairs of rows, whose dual variables are far too many to be the center of
an envelope as in ``alm``. The center stays at zero instead, and the width of the
envelope falls until the gap is small enough; the slopes of the smooth loss are feasible
dual variables all along, so that each iterate proves a bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..driver import Solver, Start
from ..objectives.objective import Objective
from ..rounding import CLOSE
from ..steps.line_search import newton_step
from ..steps.newton_direction import NewtonDirections
from .widths import Found, in_turn

# The factor by which widths fall.
_NARROWER = 0.1


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
    point, directions = start.at(objective), NewtonDirections()

    def newton(width: float, aim: float) -> Iterator[Found]:
        nonlocal point
        narrow = objective.narrowed(width)
        point = point.under(narrow)
        while True:
            height, error = narrow.risk.proof(point.scores).tolist()
            dual = point.dual_point
            dual = dual._replace(offset=height, error=dual.error + error)
            lower = objective.dual_value(objective.cut(dual))
            g = point.gradient
            left = float(g @ g) / (2.0 * objective.alpha)
            yield Found(point.under(objective), lower, dual, left)
            line = point.along(directions.at(point))
            step = newton_step(line)
            if not 0.0 < step < float("inf"):
                return
            point = line.point(step)

    return (
        yield from in_turn(
            newton, 1.0, "narrowing", factors=5 * (_NARROWER,), least=CLOSE
        )
    )
