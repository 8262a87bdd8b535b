"""``alm`` on the rows near a kink, where the start is not far from the optimum.

Most rows end on the side of their kink where they are from the start. A first Newton
step on all rows predicts how far each score is going to move. Rows that stay on their
side if it moves about so far are taken out.

The solution is evaluated on all rows. Those that did cross join the others, and the
rest is repeated from there.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..driver import Iterate, Solver, Start, Stopping
from ..losses._base import Floats, Mask
from ..objectives.objective import Dual, Objective, Point
from ..steps.intercepts import minimize_intercept
from ..steps.newton_direction import NewtonDirections
from ..steps.one_dimension import NEAR, minimize_smooth
from .alm import CG_ACCURACY, alm
from .related import on_the_way, solve_related
from .related.few_rows import FewRows

# A score is taken to move by half of the sum of its move in the first Newton step and a
# margin.
_REACH = 0.5

# The margin is 0.2 units of the loss. docs/constants.md has the figures.
_MARGIN = 0.2

# Rows near kinks are treated by themselves only if they are at most 30 % of all rows.
_MOST = 0.3

# The envelope of the first step is 0.2 units of the loss wide.
_FIRST_WIDTH = 0.2

# The envelopes of later steps are 0.1 units of the loss wide.
_WIDTH = 0.1


def near_kinks(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Yield the iterates of ``alm`` on rows near a kink, then on all.

    Parameters
    ----------
    objective : Objective
        Its loss is piecewise linear, with one score per row, and has an envelope.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    stopping : Stopping
        What gap ends the run.

    Returns
    -------
    status : str
        That of ``alm``.
    """
    risk = objective.risk
    point = start.at(objective)
    unit = risk.score_scale(point.scores)
    dual = point.dual if start.dual is None else start.dual
    point, dual, near = _first_step(point, dual, unit)
    yield Iterate(point, phase="near kinks", proof=Dual(dual))
    method = partial(alm, width=_WIDTH * unit)
    while np.count_nonzero(near) <= _MOST * len(near):
        few = FewRows(objective, point, near)
        related = few.related(on_the_way(stopping))
        found = yield from solve_related(related, method, Start.from_point(point, dual))
        assert found is not None, "few rows always give a point"
        assert found.dual is not None, "and a dual point"
        point, dual = found.point, found.dual
        crossed = ~near & (risk.subgradient(point.scores) != few.fixed)
        if not crossed.any():
            break
        near |= crossed
    return (yield from method(objective, Start.from_point(point, dual)))


def _first_step(start: Point, dual: Floats, unit: float) -> tuple[Point, Floats, Mask]:
    """Return point and dual after a Newton step, and which rows are near a kink."""
    o = start.objective
    smooth = o.with_envelope(o.risk.center(dual), _FIRST_WIDTH * unit)
    point = minimize_intercept(start.under(smooth))
    line = point.along(NewtonDirections().at(point, rtol=CG_ACCURACY))
    step = minimize_smooth(line.derivatives, accuracy=NEAR)
    moved = minimize_intercept(line.point(step if 0.0 < step < np.inf else 0.0))
    reach = _REACH * (np.abs(line.dscores) + _MARGIN * unit)
    lower = o.risk.subgradient(moved.scores - reach)
    near = lower != o.risk.subgradient(moved.scores + reach)
    return moved.under(o), moved.dual, near
