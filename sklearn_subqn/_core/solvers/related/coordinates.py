"""A problem in other coordinates, with equal scores and separate lower bounds."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...driver import Iterate, Start, Stopping
from ...losses._base import Floats
from ...objectives.objective import Dual, Objective, Point
from . import Related

# Lower bounds are computed from the original X whenever the gap has been halved.
_CLOSER = 0.5


class OtherCoordinates(Protocol):
    """Other coordinates of the parameters of an objective.

    Attributes
    ----------
    objective : Objective
        Objective of parameters in these coordinates, with equal scores.
    """

    objective: Objective

    def coordinates(self, w: Floats) -> Floats:
        """Return the coordinates of parameters."""

    def point(self, point: Point) -> Point:
        """Return a point in these coordinates as a point of the original objective."""

    def dual(self, dual: Dual) -> Dual:
        """Return a dual point as a dual point of the original risk."""

    def bound(self, iterate: Iterate, last: bool) -> float:
        """Return a lower bound of the original objective by an iterate's dual point.

        For the ``last`` iterate it may cost many products with X.
        """


def in_coordinates(
    objective: Objective, stopping: Stopping, other: OtherCoordinates
) -> Related:
    """Return the problem in other coordinates, with bounds of the original one.

    Parameters
    ----------
    objective : Objective
    stopping : Stopping
        Defines the gap at which the run stops.
    other : OtherCoordinates
    """
    inner_objective = other.objective
    passes, gap, best, inner = 0.0, np.inf, np.inf, -np.inf

    def lift(iterate: Iterate, last: bool) -> Iterate:
        nonlocal passes, gap, best, inner
        point = other.point(iterate.point)
        best, inner = min(best, point.value), max(inner, iterate.lower_bound)
        now, bound = best - inner, -np.inf
        if -np.inf < iterate.lower_bound == inner and (
            last or now <= max(_CLOSER * gap, stopping.allowed_gap(best))
        ):
            gap, bound = now, other.bound(iterate, last)
        objective.design.count(inner_objective.design, inner_objective.passes - passes)
        passes = inner_objective.passes
        proof = None if iterate.proof is None else other.dual(iterate.proof)
        return Iterate(point, None, bound, iterate.phase, proof)

    def lower(start: Start) -> Start:
        return start._replace(w=other.coordinates(start.w), scores=None)

    return Related(
        inner_objective,
        lift,
        is_solved=lambda best: False,
        max_iter=np.inf,
        lower=lower,
    )
