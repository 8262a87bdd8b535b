"""The start of a smooth loss that is piecewise linear from afar.

Huber's loss with a threshold far below the residuals has curvature in a few rows at
most, and Newton's method knows next to nothing of the others. The piecewise linear loss
that it is from afar is larger by a constant at most: its solution is a good start, and
its lower bounds, less that constant, are some of this loss.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from ..line_search import settle
from ..losses._base import Floats, rounding
from ..objective import Objective
from .run import Iterate, Solver, Start

# Less rows with curvature than so many for each parameter are few.
_FEW_CURVED = 4

# The other problem is solved for so many iterations at most.
_MAX_ITER = 200


def is_linear(objective: Objective) -> bool:
    """Whether at w = 0 too few rows have curvature, of a loss that has less from afar.

    Of one score per row.
    """
    if objective.loss.from_afar() is None:
        return False
    curvature = settle(objective.origin()).curvature.diagonal()
    return int(np.count_nonzero(curvature)) < _FEW_CURVED * objective.n_params


def from_afar(
    objective: Objective, solver: Callable[[Objective, Start], Solver], tol: float
) -> Generator[Iterate, None, Floats]:
    """Yield the iterates of a solver of the other problem; return the best parameters.

    They end where its gap is no more than the constant, or than ``tol`` asks for.

    Parameters
    ----------
    objective : Objective
        Its loss is another one from afar.
    solver : callable
        From the other objective and a start to iterates.
    tol : float
        Relative gap at which the run is to end.
    """
    other = objective.loss.from_afar()
    assert other is not None
    loss, excess = other
    far = objective.with_loss(loss)
    w = np.zeros(objective.n_params)
    bound, best = -np.inf, np.inf
    iterates = solver(far, Start(w))
    for n_iter, iterate in enumerate(iterates):
        point, bound = iterate.point, max(bound, iterate.lower_bound)
        if point.value < best:
            w, best = point.w, point.value
        relaxed = point.under(objective)
        lower = bound - excess - rounding(1.0) * (abs(bound) + excess)
        yield Iterate(relaxed, None, lower, "relaxed", preparing=True)
        aim = max(excess, 0.5 * tol * abs(best))
        if best - bound <= aim or n_iter >= _MAX_ITER:
            break
    iterates.close()
    return w
