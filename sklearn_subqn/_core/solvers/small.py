"""Problems of few dense rows by one compiled loop, ``kernels/small.pyx``.

It has the same method as ``alm`` and, of smooth losses, ``newton``, in proximal form with
an L1 norm. Calls of Python functions would take most of the time of these where rows and
features are few. Points, bounds and dual points come from the objective as everywhere.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Start, Status, Stopping, size_of
from ..kernels import small as kernel
from ..objectives.objective import Dual, Objective
from ..regularizers import L2
from ..rows.row_views import dense_rows
from .alm import alm
from .cd import cd
from .newton import newton
from .sparse_alm import sparse_alm
from .widths import first_width

# The loop is asked for a tenth of the gap before if that was not small enough.
_SHARE = 0.1

# The loop is asked for a relative gap of no less than a rounding error.
_LEAST = 1e-14

# The loop is asked for half of the gap that the run needs: its own gap leaves out
# rounding, and is an estimate for free intercepts.
_OF_TOL = 0.5

# A gap above 1e-10 of the objective is not rounding alone.
_MORE_THAN_ROUNDING = 1e-10


def small(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Yield the start, and where the loop ends for smaller and smaller gaps.

    What it leaves, as where features are of very different units, is for ``newton`` or
    ``alm``.

    Parameters
    ----------
    objective : Objective
        With an L2 penalty or an elastic net, and a loss that has ``looped``.
    start : Start
        Its dual point, if any, is the first center.
    stopping : Stopping
        What gap ends the run.

    Returns
    -------
    status : str
        "no_progress": the gap is a rounding error; or that of the other method.
    """
    o, risk = objective, objective.risk
    first = point = start.at(o)
    yield Iterate(first, phase="loop")
    loss = o.loss.oracle.looped
    assert loss is not None, "one of the table of plans"
    n_rows, n_penalized = o.design.n_rows, o.regularizer.n_penalized
    targets, offsets = o.targets, np.zeros(n_rows)
    if targets.ndim == 2:
        targets, offsets = (np.ascontiguousarray(each) for each in targets.T)
    rows = np.ascontiguousarray(dense_rows(o.design.X))
    w, dual = start.w.copy(), np.empty(n_rows)
    width, center = 0.0, np.zeros(n_rows)
    if not o.loss.smooth:
        width = first_width(o) * risk.score_scale(point.scores)
        center = risk.center(point.dual if start.dual is None else start.dual)
    infimum = o.risk_infimum if np.isfinite(o.risk_infimum) else 0.0
    l1, l2 = (0.0, o.alpha) if isinstance(o.regularizer, L2) else o.penalties
    data = rows, targets, offsets, o.weights, *loss, l1, l2, n_penalized
    aim, reached = max(_OF_TOL * stopping.tol, _LEAST), True
    while reached and aim >= _LEAST:
        reached, width = kernel.minimize(*data, aim, infimum, width, w, center, dual)
        proof = Dual(risk.balance(dual) if o.n_free else dual)
        point, bound = o.at(w.copy()), o.dual_bound(proof)
        yield Iterate(point, None, bound, "loop", proof)
        aim *= _SHARE
    if point.value - bound <= _MORE_THAN_ROUNDING * size_of(point.value, infimum):
        return Status.NO_PROGRESS
    if point.value > first.value:
        # Where targets are as small as 1e-20 its line search does not reach them.
        point, proof = first, Dual(first.dual)
    start = Start.from_point(point, proof.u)
    if l1:
        method = cd(o, start, stopping) if o.loss.smooth else sparse_alm(o, start)
        return (yield from method)
    if o.loss.smooth:
        return (yield from newton(o, point.w))
    return (yield from alm(o, start))
