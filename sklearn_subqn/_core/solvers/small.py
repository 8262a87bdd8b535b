"""Problems of few dense rows by one compiled loop, ``kernels/small.pyx``.

It has the same method as ``alm`` and, of smooth losses, ``newton``. Calls of Python
functions would take most of the time of these where rows and features are few. Points,
bounds and dual points come from the objective as everywhere.
"""

from __future__ import annotations

import numpy as np

from ..driver.run import Iterate, Solver, Start
from ..kernels import small as kernel
from ..objectives.objective import Dual, Objective
from .widths import first_width

# From each gap that the loop ends at to the next, as a share; after the last one what
# is left is rounding.
_SHARE, _LEAST = 0.1, 1e-14

# The loop is asked for this share of what the run needs, since its gap is without
# rounding and for intercepts an estimate.
_OF_TOL = 0.5


def small(objective: Objective, start: Start, tol: float) -> Solver:
    """Yield the start, and where the loop ends for smaller and smaller gaps.

    Parameters
    ----------
    objective : Objective
        With an L2 penalty, and a loss that has ``looped``.
    start : Start
        Its dual point, if any, is the first center.
    tol : float
        The relative gap that the run asks for.

    Returns
    -------
    status : str
        "no_progress": the gap is a rounding error.
    """
    o, risk = objective, objective.risk
    point = start.at(o)
    yield Iterate(point, None, point.lower_bound, "loop", point.dual_point)
    loss = o.loss.oracle.looped
    assert loss is not None, "in the table of plans"
    targets, offsets = o.targets, np.zeros(o.design.n_rows)
    if targets.ndim == 2:
        targets, offsets = (np.ascontiguousarray(each) for each in targets.T)
    rows = np.ascontiguousarray(o.design.X, dtype=np.float64)
    w, dual = start.w.copy(), np.empty(o.design.n_rows)
    width, center = 0.0, np.zeros(o.design.n_rows)
    if not o.loss.smooth:
        width = first_width(o) * risk.score_scale(point.scores)
        center = risk.center(point.dual if start.dual is None else start.dual)
    infimum = o.risk_infimum if np.isfinite(o.risk_infimum) else 0.0
    n_penalized, aim = o.regularizer.n_penalized, _OF_TOL * tol
    while True:
        _, width, _ = kernel.minimize(
            rows,
            targets,
            offsets,
            o.weights,
            *loss,
            o.alpha,
            n_penalized,
            aim,
            infimum,
            width,
            w,
            center,
            dual,
        )
        balanced = risk.balance(dual) if o.n_free else dual
        proof = Dual(balanced)
        yield Iterate(o.at(w.copy()), None, o.dual_value(o.cut(proof)), "loop", proof)
        aim *= _SHARE
        if aim < _LEAST:
            return "no_progress"
