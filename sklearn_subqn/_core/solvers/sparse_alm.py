"""Proximal method of multipliers for losses with kinks and an L1 penalty.

As in ``alm`` the loss is replaced by its smooth envelope around a dual center, which
moves to the dual variables of the minimizer. Here minimizers with the L1 penalty, or
the elastic net, are found by ``cd``. Dual points of the envelope are dual points of the
loss, so that each iterate on the way proves a bound.
"""

from __future__ import annotations

import numpy as np

from ..intercepts import minimize_intercept
from ..objective import Dual, Objective
from .cd import cd
from .run import Iterate, Solver, Start
from .widths import MAX_INNER, MAX_STUCK, Gap, change_of_width

# The first width in units of the loss, and that where features outnumber rows: there
# rows are not to be held so tightly that steps are short.
_WIDTH, _WIDTH_WIDE = 1.0, 10.0

# Inner problems are solved until their own gap is this share of the outer one.
_INNER_SHARE = 0.3

# Factors for the width, as of ``change_of_width``.
_FACTORS = 0.2, 0.5, 0.7

# Dual variables have rounding errors in proportion to the inverse of the width, which
# becomes this many times larger where these are all that is left.
_ROUNDED = 10.0


def sparse_alm(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of the proximal method of multipliers.

    Parameters
    ----------
    objective : Objective
        Its loss, of one score per row, offers ``envelope`` and ``dual_variables``, and
        the envelope ``feasible``; its regularizer is an ``ElasticNet``.
    start : Start
        Starting point; its dual point, if there is one, is the first center.

    Returns
    -------
    status : str
        "no_progress": the gap no longer shrinks; it is a rounding error.
    """
    risk = objective.risk
    point = minimize_intercept(start.at(objective))
    dual = point.dual if start.dual is None else start.dual
    center = risk.center(dual)
    tall = objective.design.n_features < objective.design.n_rows
    width = _WIDTH if tall else _WIDTH_WIDE
    width *= risk.score_scale(point.scores)
    gap = Gap(point.value, point.lower_bound)
    yield Iterate(point, None, gap.bound, "alm", Dual(dual))
    n_stuck, own_gap = 0, np.inf
    while n_stuck < MAX_STUCK:
        before = own_gap
        smooth = objective.with_envelope(center, width)
        w, n_inner = point.w, 0
        aim = _INNER_SHARE * gap.left / abs(gap.best) if gap.best else 0.0
        for inner in cd(smooth, Start(w, None, point.scores, point.drift), aim):
            point = inner.point
            primal = minimize_intercept(point.under(objective))
            lower = objective.dual_bound(point.dual_point)
            lower = max(lower, inner.lower_bound)
            gap.take(primal.value, lower)
            yield Iterate(primal, None, gap.bound, "alm", point.dual_point)
            own_gap = primal.value - lower
            solved = point.value - inner.lower_bound <= _INNER_SHARE * gap.left
            if (n_inner and solved) or n_inner == MAX_INNER:
                break
            n_inner += 1
        rounded = not solved and n_inner < MAX_INNER
        # Its own gap is not less, or rounding kept it from being solved.
        n_stuck = n_stuck + 1 if rounded or own_gap >= before else 0
        center = risk.center(point.dual)
        width *= _ROUNDED if rounded else change_of_width(n_inner, _FACTORS)
    return "no_progress"
