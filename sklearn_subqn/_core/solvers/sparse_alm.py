"""Proximal method of multipliers for losses with kinks and norms of coefficients.

As in ``alm`` the loss is replaced by its smooth envelope around a dual center. The dual
variables of the minimizer become the next center. Here a method for smooth losses
minimizes the envelope plus the penalty. Dual points of the envelope are feasible for
the loss, so each inner iterate proves a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..driver import Iterate, Solver, Start, Stopping, to_the_end
from ..objectives.free_columns import lower_bound
from ..objectives.objective import Dual, Objective
from ..steps.intercepts import minimize_intercept
from .widths import Found, first_width, in_turn

# Inner problems are solved to 0.3 times the outer gap.
_SHARE = 0.3

# Factors of the width, selected by the number of inner steps, as in ``widths``.
# docs/constants.md has the figures.
_FACTORS = (0.2, 0.5, 0.7, 2.0, 10.0)


#: A method for a smooth objective, with its start and the gap at which it may stop.
Smooth = Callable[[Objective, Start, Stopping], Solver]


def sparse_alm(objective: Objective, start: Start, method: Smooth) -> Solver:
    """Yield the iterates of the proximal method of multipliers.

    Parameters
    ----------
    objective : Objective
        Objective with an ``ElasticNet`` or a ``GroupPenalty``. Its loss has
        ``envelope`` and ``dual_variables``.
    start : Start
        Starting point; its dual point, if there is one, is the first center.
    method : callable
        Minimizes the objective of an envelope.

    Returns
    -------
    status : str
        "no_progress": the gap no longer decreases; it is a rounding error.
    """
    risk = objective.risk
    point = minimize_intercept(start.at(objective))
    dual = point.dual if start.dual is None else start.dual
    value, bound = point.value, point.lower_bound
    yield Iterate(point, None, bound, "alm", Dual(dual))

    def descend(width: float, aim: float) -> Iterator[Found]:
        nonlocal point, dual, value, bound
        smooth = objective.with_envelope(risk.center(dual), width)
        begin = Start(point.w, None, point.scores, point.drift)
        stopping = Stopping(aim if np.isfinite(aim) else 0.0, absolute=True)
        for inner in to_the_end(method(smooth, begin, stopping)):
            point = inner.point
            dual = point.dual
            primal = minimize_intercept(point.under(objective))
            value = min(value, primal.value)
            lower = objective.dual_bound(point.dual_point)
            bound = max(bound, lower, inner.lower_bound)
            left = point.value - inner.lower_bound
            yield Found(primal, bound, point.dual_point, left)

    width = first_width(objective) * risk.score_scale(point.scores)
    status = yield from in_turn(
        descend, width, "alm", gap=value - bound, share=_SHARE, factors=_FACTORS
    )
    # With a tiny alpha, dual points have to be scaled down to become feasible, so their
    # lower bounds are weak.
    point, proof = minimize_intercept(point.under(objective)), Dual(dual)
    bound = lower_bound(point, [dual], point.value)
    yield Iterate(point, None, bound, "alm", proof)
    return status
