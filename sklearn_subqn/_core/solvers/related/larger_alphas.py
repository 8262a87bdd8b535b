"""Larger alphas, where a small one holds rows too tightly.

The solution for each is the start for one that is smaller by a factor. In the end two
cases are left. Where rows are apart, parameters w without a loss have the objective
alpha * Omega(w), which falls with alpha as the dual value of a dual point does that
shrinks with alpha: relative gaps are the same for all smaller alphas. Where they are
not, the penalty becomes negligible, and a dual point is as good for smaller alphas as
long as it does. So a solution for a larger alpha may end it all.
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

# Alphas fall by this factor.
_FACTOR = 10.0

# A solution that proves something is found to a relative gap of 0.01.
_TOL = 1e-2

# A solution that proves something is sought for at most 300 iterations.
_MAX_ITER = 300

# Where a relative gap of a tenth is left, it is better to begin at zero after all.
_FAILED = 0.1

# A solution that is no more than a start is found to a relative gap of a tenth.
_TOL_ROUGH = 0.1

# A solution that is no more than a start is sought for at most 50 iterations.
_MAX_ITER_ROUGH = 50

# Rows are apart if the loss is at most a tenth of the objective: a larger alpha may
# then end the run.
_APART = 0.1

# The penalty is negligible, and a larger alpha may end the run, if the penalty would be
# at most a thousandth of the objective even with the gradient of the larger alpha.
_ALONE = 1e-3


def larger_alphas(
    objective: Objective, excess: float, stopping: Stopping
) -> Iterator[Related]:
    """Return the problems of alphas from about ``excess`` times the objective's on.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss is bounded from below, so that zero is a dual point.
    excess : float
    stopping : Stopping
        What gap ends the run.
    """
    dual = None
    for factor in _factors(excess):
        stage = _Proving(objective, factor, stopping, dual)
        yield Related(stage.larger, stage.lift, stage.is_solved, _MAX_ITER, stage.lower)
        dual = stage.dual


def roughly(objective: Objective, excess: float) -> Iterator[Related]:
    """Return problems of larger alphas that give a start, for any loss and penalty."""
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
    """A larger alpha whose solution proves something of the original problem.

    Parameters
    ----------
    objective : Objective
        The original one.
    factor : float
        By which the alpha is larger.
    stopping : Stopping
    dual : ndarray or None
        Where to begin, found for an even larger alpha.

    Attributes
    ----------
    larger : Objective
    dual : ndarray or None
        Where the next smaller alpha may begin.
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
        # The proof of the bound, too: it may be made anew elsewhere.
        best = int(np.argmax(bounds))
        point = scaled(point.refreshed())
        return Iterate(point, None, bounds[best], _PHASE, duals[best], preparing=True)

    def lower(self, start: Start) -> Start:
        if start.scores is None:
            return start
        dual = start.dual if self.dual is None else self.dual
        return Start.from_point(scaled(start.at(self.larger)), dual)


def _is_apart(point: Point) -> bool:
    """Whether there is little loss: optimal dual points shrink with alpha then."""
    return point.risk <= _APART * point.value


def _for_a_smaller_alpha(objective: Objective, point: Point, dual: Any) -> Any:
    """Return where to begin after a point and a dual point of the alpha before."""
    return objective.risk.scaled(1.0 / _FACTOR, dual) if _is_apart(point) else dual


def _factors(excess: float) -> list[float]:
    """Return powers, the first one at least ``excess``, the last one the base."""
    n_larger = int(np.ceil(np.log(excess) / np.log(_FACTOR)))
    return [_FACTOR**k for k in range(n_larger, 0, -1)]
