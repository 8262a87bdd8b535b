"""Solutions for larger alphas first, where a small one holds rows too tightly.

Each is the start for an alpha that is smaller by a factor. In the end two cases are
left. Where rows are apart, parameters w without a loss have the objective
alpha * Omega(w), which falls with alpha as the dual value of a dual point does that
shrinks with alpha: relative gaps are the same for all smaller alphas. Where they are
not, the penalty becomes negligible, and a dual point is as good for smaller alphas as
long as it does. So a solution for a larger alpha may end it all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np

from ..line_search import scaled, settle
from ..losses._base import Floats
from ..newton import is_wide
from ..objective import Objective, Point
from .run import Iterate, Solver, Start

_PHASE = "larger alphas"

# Alphas fall by this factor.
_FACTOR = 10.0

# Solutions are found to such a gap, the first one and later ones in so many iterations
# at most. Where such a gap is left, it is better to begin at zero after all.
_TOL = 1e-2
_MAX_ITER_FIRST, _MAX_ITER = 300, 100
_FAILED = 0.1

# They are found to this share of what is asked for, in so many more iterations, where
# the loss is less than such a share of the objective, or where the penalty would be
# less than such a share of it even if its gradient were that of the larger alpha.
_SHARE, _MAX_ITER_CLOSER = 0.5, 300
_APART, _ALONE = 0.1, 1e-3

# Those that are no more than a start are found to such a gap in so many iterations.
_TOL_ROUGH, _MAX_ITER_ROUGH = 0.1, 50

# With an L1 penalty the first alpha is about this share of the least one with w = 0.
# After so many rows are apart, or the penalty is negligible.
_OF_ALPHA_MAX = 0.03
_MOST = 6


def from_larger_alphas(
    objective: Objective,
    solver: Callable[[Objective, Start], Solver],
    excess: float,
    tol: float,
) -> Solver:
    """Yield the iterates of a solver for larger alphas, and then for the objective's.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss is bounded from below, so that zero is a dual point.
    solver : callable
        From an objective and a start to iterates with dual points.
    excess : float
        The first alpha is about so many times that of the objective.
    tol : float
        Relative gap at which the run is to end.

    Returns
    -------
    status : str
        That of the solver for the objective itself.
    """
    start, max_iter = Start(np.zeros(objective.n_params)), _MAX_ITER_FIRST
    for factor in _factors(excess):
        larger = objective.with_alpha(factor * objective.alpha)
        iterates = solver(larger, start)
        end = yield from _solve(objective, iterates, _TOL, max_iter)
        max_iter = _MAX_ITER
        if end.point.value - end.bound > _FAILED * end.point.value:
            start = Start(np.zeros(objective.n_params))
            break
        penalty = factor * (end.point.value - end.point.risk)
        if end.is_apart or penalty <= _ALONE * end.point.value:
            iterates = solver(larger, Start(end.point.w, end.dual))
            aim = _SHARE * tol
            end = yield from _solve(objective, iterates, aim, _MAX_ITER_CLOSER, end)
        point, dual = scaled(end.point.under(objective)), end.dual
        for u in dual, dual / factor:
            bound = objective.dual_value(objective.cut(u))
            yield Iterate(point, None, bound, _PHASE, u, preparing=True)
        following = objective.with_alpha(larger.alpha / _FACTOR)
        start = Start(scaled(end.point.under(following)).w, end.following_dual)
    return (yield from solver(objective, start))


def relaxed_start(
    objective: Objective,
    solver: Callable[[Objective, Start], Solver],
    excess: float,
    most: int | None = None,
) -> Generator[Iterate, None, Start]:
    """Yield a solver's iterates for ``most`` larger alphas; return where they lead.

    Of losses with kinks, or with kinks in their slopes. Where a small alpha holds rows
    tightly, steps are short: the rows within their margin change all the time.
    """
    start = Start(np.zeros(objective.n_params))
    for factor in _factors(excess)[:most]:
        larger = objective.with_alpha(factor * objective.alpha)
        iterates = solver(larger, start)
        end = yield from _solve(objective, iterates, _TOL_ROUGH, _MAX_ITER_ROUGH)
        start = Start(end.point.w, end.following_dual)
    return start


def sparse_start(
    objective: Objective, solver: Callable[[Objective, Start], Solver]
) -> Generator[Iterate, None, Start]:
    """Yield the like with an L1 penalty, where alpha is small and data are wide."""
    start = Start(np.zeros(objective.n_params))
    if objective.loss.analytic or not is_wide(objective):
        return start
    n = objective.regularizer.n_penalized
    gradient = settle(objective.origin()).risk_gradient[:n]
    excess = _OF_ALPHA_MAX * float(np.abs(gradient).max(initial=0.0)) / objective.alpha
    if excess <= 1.0:
        return start
    return (yield from relaxed_start(objective, solver, excess, _MOST))


def _factors(excess: float) -> list[float]:
    """Return powers, the first one at least ``excess``, the last one the base."""
    n_larger = int(np.ceil(np.log(excess) / np.log(_FACTOR)))
    return [_FACTOR**k for k in range(n_larger, 0, -1)]


class _End(NamedTuple):
    """The best point, lower bound and dual point for a larger alpha."""

    point: Point
    dual: Floats
    bound: float = -np.inf

    @property
    def is_apart(self) -> bool:
        """Whether there is little loss."""
        return bool(self.point.risk <= _APART * self.point.value)

    @property
    def following_dual(self) -> Floats:
        """A dual point for the next alpha."""
        return self.dual / _FACTOR if self.is_apart else self.dual


def _solve(
    objective: Objective,
    iterates: Solver,
    tol: float,
    max_iter: int,
    end: _End | None = None,
) -> Generator[Iterate, None, _End]:
    """Yield points of the objective from iterates for a larger alpha."""
    for n_iter, iterate in enumerate(iterates):
        point, bound, dual = iterate.point, iterate.lower_bound, iterate.dual
        yield Iterate(point.under(objective), phase=_PHASE, preparing=True)
        end = end or _End(point, point.dual)
        if point.value < end.point.value:
            end = end._replace(point=point)
        if bound >= end.bound:
            end = end._replace(bound=bound, dual=end.dual if dual is None else dual)
        gap = end.point.value - end.bound
        if gap <= tol * abs(end.point.value) or n_iter >= max_iter:
            break
    iterates.close()
    assert end is not None, "a solver yields its starting point"
    return end
