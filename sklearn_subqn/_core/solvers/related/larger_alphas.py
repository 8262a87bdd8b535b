"""Continuation from larger alphas, for problems with a small alpha.

The solution for each alpha is the start for the next alpha, which is smaller by a
factor. For small alphas there are two cases. If rows are separable, parameters w with
zero loss have the objective alpha * Omega(w). The dual value of a dual point
proportional to alpha is proportional to alpha as well, so relative gaps are equal for
all smaller alphas. If rows are not separable, the penalty becomes negligible, and one
dual point is nearly optimal for all smaller alphas. In both cases the solution for a
larger alpha may be accurate enough to end the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...driver import Iterate, Start, Stopping
from ...objectives.objective import Dual, Objective, Point
from ...steps.line_search import scaled
from . import Related, within

_PHASE = "larger alphas"

# Factor between successive alphas.
_FACTOR = 10.0

# Relative gap of problems that prove lower bounds of the original one.
_TOL = 1e-2

# Limit on the iterations of problems that prove bounds.
_MAX_ITER = 300

# If the remaining relative gap is larger, the run starts at zero instead.
_FAILED = 0.1

# Relative gap of problems that only give a start.
_TOL_ROUGH = 0.1

# Limit on the iterations of problems that only give a start.
_MAX_ITER_ROUGH = 50

# Rows count as separated if the loss is at most a tenth of the objective. The solution
# for a larger alpha may then end the run.
_APART = 0.1

# The penalty is negligible if it is at most a thousandth of the objective even with the
# gradient for the larger alpha. The solution for a larger alpha may then end the run.
_ALONE = 1e-3


def larger_alphas(
    objective: Objective, excess: float, stopping: Stopping
) -> Iterator[Related]:
    """Return the problems of alphas from about ``excess`` times the original.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective whose loss is bounded from below, so that zero is a
        dual point.
    excess : float
    stopping : Stopping
        Defines the gap at which the run stops.
    """
    dual = None
    for factor in _factors(excess):
        stage = _Proving(objective, factor, stopping, dual)
        yield Related(stage.larger, stage.lift, stage.is_solved, _MAX_ITER, stage.lower)
        dual = stage.dual


def roughly(objective: Objective, excess: float) -> Iterator[Related]:
    """Return problems of larger alphas that give a start for any loss and penalty."""
    for factor in _factors(excess):
        larger = objective.with_alpha(factor * objective.alpha)

        def lift(iterate: Iterate, last: bool) -> Iterate:
            point, dual = iterate.point.under(objective), iterate.dual
            if last:
                dual = iterate.point.dual if dual is None else dual
                dual = _for_a_smaller_alpha(objective, iterate.point, dual)
            return Iterate(point, None, -np.inf, _PHASE, Dual(dual), preparing=True)

        yield Related(larger, lift, within(_TOL_ROUGH), _MAX_ITER_ROUGH)


class _Proving:
    """A problem with a larger alpha whose solution proves bounds of the original one.

    Parameters
    ----------
    objective : Objective
        The original objective.
    factor : float
        Ratio of the larger alpha and the original one.
    stopping : Stopping
    dual : ndarray or None
        Dual point to start from, of the next larger alpha.

    Attributes
    ----------
    larger : Objective
    dual : ndarray or None
        Dual point from which the next smaller alpha may start.
    """

    def __init__(
        self, objective: Objective, factor: float, stopping: Stopping, dual: Any
    ) -> None:
        self.larger = objective.with_alpha(factor * objective.alpha)
        self.dual = dual
        self._objective, self._factor, self._stopping = objective, factor, stopping

    def is_solved(self, best: Iterate) -> bool:
        value, risk = best.point.value, best.point.risk
        if best.gap > _TOL * value:
            return False
        ends = _is_apart(best.point) or self._factor * (value - risk) <= _ALONE * value
        return not ends or best.gap <= self._stopping.allowed_on_the_way(value)

    def lift(self, iterate: Iterate, last: bool) -> Iterate | None:
        o = self._objective
        point, dual = iterate.point.under(o), iterate.dual
        if not last:
            return Iterate(point, phase=_PHASE)
        if iterate.gap > _FAILED * iterate.point.value:
            return None
        dual = iterate.point.dual if dual is None else dual
        self.dual = _for_a_smaller_alpha(o, iterate.point, dual)
        duals = [Dual(u) for u in (dual, o.risk.scaled(1.0 / self._factor, dual))]
        bounds = [o.dual_value(o.cut(u)) for u in duals]
        # The dual point is returned with its lower bound, so that the bound can be
        # recomputed.
        best = int(np.argmax(bounds))
        point = scaled(point.refreshed())
        return Iterate(point, None, bounds[best], _PHASE, duals[best], preparing=True)

    def lower(self, start: Start) -> Start:
        if start.scores is None:
            return start
        dual = start.dual if self.dual is None else self.dual
        return Start.from_point(scaled(start.at(self.larger)), dual)


def _is_apart(point: Point) -> bool:
    """Whether a small loss makes optimal dual points proportional to alpha."""
    return point.risk <= _APART * point.value


def _for_a_smaller_alpha(objective: Objective, point: Point, dual: Any) -> Any:
    """Return a dual point for the next smaller alpha."""
    return objective.risk.scaled(1.0 / _FACTOR, dual) if _is_apart(point) else dual


def _factors(excess: float) -> list[float]:
    """Return descending powers of the factor; the first is at least ``excess``."""
    n_larger = int(np.ceil(np.log(excess) / np.log(_FACTOR)))
    return [_FACTOR**k for k in range(n_larger, 0, -1)]
