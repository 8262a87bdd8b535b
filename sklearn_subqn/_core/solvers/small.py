"""Small problems, solved by one compiled loop, ``kernels/small.pyx``.

The loop implements ``alm`` and, for smooth losses, ``rental``, in proximal form with an
L1 norm; the multinomial logistic loss has ``kernels/multinomial.pyx``. With few rows
and features, calls of Python functions would take most of the time. Points, bounds and
dual points come from the objective, as for all solvers.
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
from ..steps.intercepts import minimize_intercept
from .alm import alm
from .cd import cd
from .newton import newton
from .sparse_alm import sparse_alm
from .widths import first_width

# If the gap is too large, the next call requires a tenth of it.
_SHARE = 0.1

# The smallest relative gap that a call of the loop requires.
_LEAST = 1e-14

# The loop has to reach half of the run's tolerance, because its gap ignores rounding
# errors and is only an estimate with free intercepts.
_OF_TOL = 0.5

# The multinomial loop continues to 1e-4 of the gap, so that coefficients for weighted
# and for repeated rows agree to seven digits.
_CLOSER = 1e-4

# A gap above 1e-10 of the objective is not caused by rounding alone.
_MORE_THAN_ROUNDING = 1e-10


def small(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Yield the start, and the results of the loop for decreasing gaps.

    If it does not converge, for example with features in very different units,
    ``newton`` or ``alm`` continues.

    Parameters
    ----------
    objective : Objective
        Objective with an L2 penalty or an elastic net, and a loss that has ``looped``.
    start : Start
        Starting point. Its dual point, if any, is the first center.
    stopping : Stopping
        Defines the gap at which the run stops.

    Returns
    -------
    status : str
        "no_progress": the gap is a rounding error; or the status of the other method.
    """
    o, risk = objective, objective.risk
    first = point = start.at(o)
    # A bound at the start is not needed, since the loop moves on at once.
    yield Iterate(first, None, o.least, "loop")
    infimum = o.risk.infimum if np.isfinite(o.risk.infimum) else 0.0
    w = start.w.copy()
    minimize: Callable[[float], tuple[int, Floats | None]]
    if o.design.several_scores:
        minimize = _loop_of_classes(o, w)
    else:
        minimize = _loop(o, first, start.dual, infimum, w)
    tol = max(_OF_TOL * stopping.tol, _LEAST)
    status = multinomial.MORE
    while status != multinomial.STUCK and tol >= _LEAST:
        status, dual = minimize(tol)
        point = o.at(w.copy())
        if dual is None:
            point = minimize_intercept(point)
            # Once the drift is computed, the scores before the step are released.
            _ = point.drift
            balanced = dual = point.dual
        else:
            balanced = risk.balance(dual) if o.n_free else dual
        proof = Dual(balanced)
        bound = o.dual_bound(proof)
        rounding = _MORE_THAN_ROUNDING * size_of(point.value, infimum)
        enough = point.value - max(stopping.allowed_gap(point.value), rounding)
        # The search for a feasible dual point takes more time than a more accurate
        # solution.
        is_last = status == multinomial.STUCK or tol * _SHARE < _LEAST
        if is_last and bound < enough and not isinstance(o.regularizer, L2):
            bound = max(bound, lower_bound(point, [dual], enough))
        yield Iterate(point, None, bound, "loop", proof)
        tol *= 1.0 if status == multinomial.MORE else _SHARE
    if point.value - bound <= rounding:
        return Status.NO_PROGRESS
    if point.value > first.value:
        # The line search of the loop fails if targets are as small as 1e-20.
        point, proof = first, Dual(first.dual)
    start = Start.from_point(point, proof.u)
    if not isinstance(o.regularizer, L2):
        return cd(o, start, stopping) if o.loss.smooth else sparse_alm(o, start, cd)
    if o.loss.sharpens:
        return Status.NO_PROGRESS
    if o.loss.smooth:
        return newton(o, point.w)
    return alm(o, start)


def _loop(
    o: Objective,
    first: Point,
    dual: Floats | None,
    infimum: float,
    w: Floats,
) -> Callable[[float], tuple[int, Floats]]:
    """Return a function that minimizes to a relative gap from w and a dual point.

    The function changes w in place. It returns whether the gap was reached, and the
    dual point.
    """
    loss = o.loss.oracle.looped
    assert loss is not None, "one of the table of plans"
    n = o.design.n_rows
    # A smooth loss does not use the center.
    width, targets, center = 0.0, o.targets, np.zeros(n)
    offsets = center
    if targets.ndim == 2:
        targets, offsets = (np.ascontiguousarray(each) for each in targets.T)
    if not o.loss.smooth:
        width = first_width(o) * o.risk.score_scale(first.scores)
        center = o.risk.center(first.dual if dual is None else dual)
    penalties = (0.0, o.alpha) if isinstance(o.regularizer, L2) else o.penalties
    data = *o.design.plain_rows(), targets, offsets, o.weights, loss, *penalties
    n_penalized = o.regularizer.n_penalized

    def minimize(tol: float) -> tuple[int, Floats]:
        nonlocal width
        numbers, found = (n_penalized, tol, infimum, width), np.empty(n)
        reached, width = kernel.minimize(*data, *numbers, w, center, found)
        return reached, found

    return minimize


def _loop_of_classes(o: Objective, w: Floats) -> Callable[[float], tuple[int, None]]:
    """Return the function of ``_loop`` for the multinomial logistic loss.

    It returns no dual point: the subgradient at the best intercepts is one.
    """
    X: Any
    X, sizes = o.design.rows_in_memory() or o.design.plain_rows()
    if sparse.issparse(X):
        indices = X.indices.astype(np.int32, copy=False)
        X = X.data, indices, X.indptr.astype(np.int64, copy=False)
    labels, W = o.targets.astype(np.intp), w.reshape(-1, o.design.n_outputs or 1)
    numbers = o.alpha, o.regularizer.n_penalized
    steps = multinomial.Multinomial(X, sizes, labels, o.weights, *numbers, W)

    def minimize(tol: float) -> tuple[int, None]:
        closer, before = _CLOSER if tol < _MORE_THAN_ROUNDING else 1.0, steps.passes
        status = steps.minimize(closer * tol)
        o.design.passes += steps.passes - before
        return status, None

    return minimize
