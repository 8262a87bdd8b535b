"""Line-searched Newton method for smooth losses (Aggarwal, ch. 5.4-5.7)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..driver import Iterate, Solver, Status, Stopping
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective, Point
from ..rounding import EPS
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import newton_step
from ..steps.newton_direction import CG_ACCURACY, NewtonDirections, is_short, is_wide
from ..steps.one_dimension import NEAR, minimize_smooth


class NewtonSteps:
    """Newton's method from a point of one smooth objective after the other.

    Parameters
    ----------
    rtol : float
        What share of the gradient directions by conjugate gradients leave.
    follows_intercept : bool
        Whether intercepts are minimized over after each step, until a step on wide data
        is short; they are left to the directions then.
    exact : bool
        Whether steps are exact where that costs little, and end where rounding errors
        hide what they gain. Envelopes need neither: their centers move anyway.
    stopping : Stopping, optional
        What gap ends the run; directions are no more accurate than that asks for.
    """

    def __init__(
        self,
        *,
        exact: bool = True,
        rtol: float = CG_ACCURACY,
        follows_intercept: bool = True,
        stopping: Stopping | None = None,
    ) -> None:
        self._directions, self._rtol, self._exact = NewtonDirections(), rtol, exact
        self._follows, self._stopping = follows_intercept, stopping

    def __call__(self, point: Point) -> Iterator[tuple[Point, Point]]:
        """Yield the point and one after each step, each also with the best intercepts.

        Ends where no step leads further down.
        """
        o, stopping = point.objective, self._stopping
        last: Point | None = None
        while True:
            minimal = minimize_intercept(point)
            if self._follows:
                point = minimal
            yield point, minimal
            allowed = stopping.allowed_gap(point.value) if stopping else 0.0
            p = self._directions.at(point, rtol=self._rtol, allowed=allowed)
            line = point.along(p)
            if self._exact:
                apart = o.risk.has_rows_apart(point.curvature)
                step = newton_step(line, rows_apart=apart)
            else:
                step = minimize_smooth(line.derivatives, accuracy=NEAR)
            # Twice what a Newton step gains is the slope: where that is lost in J, and
            # the last step has not helped the bound either, no further one would.
            lost = self._exact and -float(p @ point.gradient) <= EPS * abs(point.value)
            if not 0.0 < step < np.inf:
                return
            if last is not None and lost and not minimal.gap < 0.5 * last.gap:
                return
            self._follows &= not (is_wide(o) and is_short(step))
            point, last = line.point(step), minimal


def newton(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    """Yield the iterates of Newton's method with an exact line search.

    Once differentiable, piecewise quadratic losses have a generalized Hessian; where
    the rows in error no longer change, one step is exact.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, or generalized ones.
    w : ndarray of shape (q,)
        Starting point.
    stopping : Stopping, optional
        What gap ends the run; directions are no more accurate than that asks for.

    Returns
    -------
    status : str
        "no_step": no direction leads further down, as happens at an optimum.
    """
    for _, point in NewtonSteps(stopping=stopping)(objective.at(w)):
        yield Iterate(point, point.cut, point.lower_bound, "newton", Dual(point.dual))
    return Status.NO_STEP
