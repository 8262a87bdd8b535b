"""The piecewise linear loss that a smooth loss approximates.

Huber's loss with a threshold far below the residuals has curvature in few rows, so
Newton models contain only these rows. The piecewise linear loss exceeds it by at most a
constant. Its solution is a good start, and its lower bounds minus this constant are
lower bounds for Huber's loss.
"""

from __future__ import annotations

from ...driver import Iterate, Stopping
from ...objectives.objective import Objective
from ...rounding import rounding
from . import Related

_MAX_ITER = 200


def relaxed(objective: Objective, stopping: Stopping) -> Related:
    """Return the problem of the piecewise linear loss.

    It is solved until its gap is at most the constant, or the gap at which the run
    stops.
    """
    other = objective.loss.asymptote()
    assert other is not None, "the loss approaches one"
    loss, excess = other

    def lift(iterate: Iterate, last: bool) -> Iterate | None:
        bound = iterate.lower_bound
        bound -= excess + rounding(1.0) * (abs(bound) + excess)
        return Iterate(iterate.point.under(objective), None, bound, "relaxed")

    def is_solved(best: Iterate) -> bool:
        return best.gap <= max(excess, stopping.allowed_on_the_way(best.point.value))

    return Related(objective.with_loss(loss), lift, is_solved, _MAX_ITER)
