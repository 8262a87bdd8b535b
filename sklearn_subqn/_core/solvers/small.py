"""Problems of dense rows by one compiled loop, ``kernels/small.pyx``.

It has the same method as ``alm`` and, of smooth losses, ``rental``, in proximal form
with an L1 norm; the logistic loss of several classes has ``kernels/multinomial.pyx``.
Calls of Python functions would take most of the time where rows and features are few.
Points, bounds and dual points come from the objective as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..driver import Iterate, Solver, Start, Status, Stopping, size_of
from ..kernels import multinomial
from ..kernels import small as kernel
from ..losses._base import Floats
from ..objectives.free_columns import lower_bound
from ..objectives.objective import Dual, Objective, Point
from ..regularizers import L2
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

# The loop of classes then goes on to 1e-4 times the gap: coefficients for weighted and
# for repeated rows agree to seven digits.
_CLOSER = 1e-4

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
    # Nothing is worth while to prove of the start, which the loop leaves at once.
    yield Iterate(first, None, o.least, "loop")
    infimum = o.risk_infimum if np.isfinite(o.risk_infimum) else 0.0
    w = start.w.copy()
    if o.design.several_scores:
        minimize = _loop_of_classes(o, w)
    else:
        minimize = _loop(o, first, start.dual, infimum, w)
    first_aim = aim = max(_OF_TOL * stopping.tol, _LEAST)
    status = multinomial.MORE
    while status != multinomial.STUCK and aim >= _LEAST:
        status, dual = minimize(aim)
        proof = Dual(risk.balance(dual) if o.n_free else dual)
        point, bound = o.at(w.copy()), o.dual_bound(proof)
        rounding = _MORE_THAN_ROUNDING * size_of(point.value, infimum)
        enough = point.value - max(stopping.allowed_gap(point.value), rounding)
        # A dual point inside of its bounds takes longer to find than the next digit.
        is_last = status == multinomial.STUCK or aim * _SHARE < _LEAST
        is_late = is_last or aim < first_aim
        if is_late and bound < enough and not isinstance(o.regularizer, L2):
            bound = max(bound, lower_bound(point, [dual], enough))
        # Its balanced copy is kept: with many classes each of them takes much memory.
        del dual
        yield Iterate(point, None, bound, "loop", proof)
        aim *= 1.0 if status == multinomial.MORE else _SHARE
    if point.value - bound <= rounding:
        return Status.NO_PROGRESS
    if point.value > first.value:
        # Where targets are as small as 1e-20 its line search does not reach them.
        point, proof = first, Dual(first.dual)
    start = Start.from_point(point, proof.u)
    if not isinstance(o.regularizer, L2):
        method = cd(o, start, stopping) if o.loss.smooth else sparse_alm(o, start)
        return (yield from method)
    if o.loss.sharpens:
        return Status.NO_PROGRESS
    if o.loss.smooth:
        return (yield from newton(o, point.w))
    return (yield from alm(o, start))


def _loop(
    o: Objective,
    first: Point,
    dual: Floats | None,
    infimum: float,
    w: Floats,
) -> Callable[[float], tuple[int, Floats]]:
    """Return what minimizes to a relative gap from w and, if given, a dual point.

    It changes w, and returns whether the gap was reached, and its dual point.
    """
    loss = o.loss.oracle.looped
    assert loss is not None, "one of the table of plans"
    n = o.design.n_rows
    targets, offsets = o.targets, np.zeros(n)
    if targets.ndim == 2:
        targets, offsets = (np.ascontiguousarray(each) for each in targets.T)
    width, center = 0.0, np.zeros(n)
    if not o.loss.smooth:
        width = first_width(o) * o.risk.score_scale(first.scores)
        center = o.risk.center(first.dual if dual is None else dual)
    penalties = (0.0, o.alpha) if isinstance(o.regularizer, L2) else o.penalties
    data = *o.design.plain_rows(), targets, offsets, o.weights, loss, *penalties
    n_penalized = o.regularizer.n_penalized

    def minimize(aim: float) -> tuple[int, Floats]:
        nonlocal width
        numbers, found = (n_penalized, aim, infimum, width), np.empty(n)
        reached, width = kernel.minimize(*data, *numbers, w, center, found)
        return reached, found

    return minimize


def _loop_of_classes(o: Objective, w: Floats) -> Callable[[float], tuple[int, Floats]]:
    """Return what ``_loop`` does, for rows with a score for each class."""
    shape = o.design.n_rows, o.design.n_outputs or 1
    X: Any
    X, sizes = o.design.rows_in_memory() or o.design.plain_rows()
    if sparse.issparse(X):
        indices = X.indices.astype(np.int32, copy=False)
        X = X.data, indices, X.indptr.astype(np.int64, copy=False)
    labels, W = o.targets.astype(np.intp), w.reshape(-1, shape[1])
    numbers = o.alpha, o.regularizer.n_penalized
    steps = multinomial.Multinomial(X, sizes, labels, o.weights, *numbers, W)

    def minimize(aim: float) -> tuple[int, Floats]:
        closer = _CLOSER if aim < _MORE_THAN_ROUNDING else 1.0
        status, found = steps.minimize(closer * aim), np.empty(shape)
        steps.solution(W, found)
        return status, found

    return minimize
