"""Bundle methods for regularized risk minimization (Teo et al. 2010).

The model replaces the risk by the maximum of its cuts at earlier points and keeps the
regularizer. The minimizer of the model is the next point, and the minimum of the model
is a lower bound. The objective is minimized over the unpenalized intercepts at each
point. So the cuts are cuts of w -> min_b R(Xw + b), and the model is bounded.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..driver import STALL_WINDOW, Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Cut, Dual, Line, Objective, Point
from ..steps.cut_model import CutModel, Unsolved, cut_model
from ..steps.intercepts import minimize_intercepts
from ..steps.line_search import minimizer

# Cuts are also taken at best points while all cuts use at most a quarter of the memory
# of X.
_BOTH_CUTS = 0.25

# Exponentials of scores beyond 1000 underflow or overflow.
_FARTHEST_SCORE = 1e3

#: A method stops if several iterations, and at least two for each parameter, leave more
#: than 95 % of the gap. The minimum of a model with fewer cuts may be unable to rise.
STALLED = 0.95


class _Gaps:
    """The best gaps so far, a measure of progress.

    Gaps use at least the trivial lower bound, the sum of the infima of risk and
    penalty, since models of hard data may take thousands of iterations to reach it.
    With ``endless`` a run continues without progress.
    """

    def __init__(self, objective: Objective, *, endless: bool) -> None:
        self._endless = endless
        q, infimum = objective.n_params, objective.risk.infimum
        self._bound = -np.inf
        if np.isfinite(infimum):
            self._bound = objective.dual_value(Cut(np.zeros(q), infimum))
        self._gaps: deque[float] = deque(maxlen=max(STALL_WINDOW, 2 * q) + 1)

    def shrink(self, best: float, lower_bound: float) -> bool:
        """Record the gap of an iteration; return whether to continue."""
        self._bound = max(self._bound, lower_bound)
        gaps = self._gaps
        gaps.append(best - self._bound)
        full = len(gaps) == gaps.maxlen
        return self._endless or not full or gaps[-1] < STALLED * gaps[0]


def bmrm(
    objective: Objective,
    w: Floats,
    *,
    size: int | None = None,
    patience: int | None = 10,
    endless: bool = False,
) -> Solver:
    """Yield the iterates of BMRM (Alg. 2).

    Parameters
    ----------
    objective : Objective
        Objective with any loss, and any regularizer that a model supports.
    w : ndarray of shape (q,)
        Starting point, in the domain of the regularizer.
    size : int or None
        Number of cuts to keep, at least 2, the aggregate included (section 3.1).
    patience : int or None
        Cuts inactive for this many iterations are removed (section 5.1.1).
    endless : bool
        Whether to continue without progress.

    Returns
    -------
    status : str
        "stalled": the gap hardly decreases any more, or the program over the cuts
        cannot be solved.
    """
    model = cut_model(objective, size=size, patience=patience)
    best = point = minimize_intercepts(objective.at(w))
    gaps, highest = _Gaps(objective, endless=endless), 2.0 * abs(best.value)
    yield Iterate(point, phase="bmrm", proof=Dual(point.dual))
    while gaps.shrink(best.value, model.lower_bound):
        model.add(point.cut)
        try:
            model.minimize()
        except Unsolved:
            break
        point = minimize_intercepts(next_point(best, point, model.w, highest))
        best = min(best, point, key=lambda point: point.value)
        bound, proof = model.lower_bound, Dual(point.dual)
        yield Iterate(point, None, bound, "bmrm", proof, preparing=endless)
    return Status.STALLED


def ls_bmrm(
    objective: Objective,
    w: Floats,
    *,
    size: int | None = None,
    patience: int | None = 10,
    theta: float = 0.2,
    cut_at_best: bool = True,
    model: CutModel | None = None,
    endless: bool = False,
) -> Solver:
    """Yield the iterates of BMRM with line search (Alg. 3).

    OCAS (Franc and Sonnenburg 2008) is the special case of the binary hinge. Unlike
    OCAS, a cut is also taken at the best point while the cuts take little memory
    relative to the data. This costs a product with the few rows whose dual variables
    differ between the two points, and saves up to half of the iterations.

    Parameters
    ----------
    objective, w, size, patience, endless
        As in ``bmrm``.
    theta : float
        The next cut is taken at this share of the way from the best point to the
        minimizer of the model. The source writes 0.9, which in Franc and Sonnenburg is
        the weight of the best point. Smaller shares take fewer iterations on dense
        data, larger shares on text.
    cut_at_best : bool
        Whether a cut is also taken at the best point while the cuts take little memory.
    model : CutModel, optional
        A model with earlier cuts of the risk; default a new one.

    Returns
    -------
    status : str
        "stalled": the gap hardly decreases any more, or the program over the cuts
        cannot be solved.
    """
    model = model or cut_model(objective, size=size, patience=patience)
    best = minimize_intercepts(objective.at(w))
    gaps, highest = _Gaps(objective, endless=endless), 2.0 * abs(best.value)
    yield Iterate(best, phase="ls-bmrm", proof=Dual(best.dual))
    model.add(best.cut)
    while gaps.shrink(best.value, model.lower_bound):
        try:
            model.minimize()
        except Unsolved:
            break
        line = _towards(best, model.w)
        new = minimize_intercepts(minimizer(line))
        if new.value < best.value:
            best = new
            size_of_cuts = model.cuts.normals.nbytes
            if cut_at_best and size_of_cuts <= _BOTH_CUTS * objective.design.nbytes:
                model.add(best.cut)
        cut, bound, proof = model.combination, model.lower_bound, Dual(best.dual)
        yield Iterate(best, cut, bound, "ls-bmrm", proof, preparing=endless)
        between = minimize_intercepts(_cut_point(best, line.point(1.0), theta, highest))
        model.add(between.cut)
        # After minimization over its intercept this point may be better than the best
        # one.
        if between.value < best.value:
            best = between
    return Status.STALLED


def next_point(best: Point, last: Point, w: Floats, highest: float) -> Point:
    """Return the minimizer w of a model with the free parameters of the last point.

    For steep losses, return a point between the best point and w whose value is at most
    ``highest``. The cut at any point with a larger value than the best point excludes
    w.
    """
    if not best.objective.loss.steep:
        return best.objective.at(_with_free(w, last))
    return _cut_point(best, _towards(best, w).point(1.0), 1.0, highest)


def _towards(best: Point, w: Floats) -> Line:
    """Return the line to w, whose free parameters are first minimized over."""
    return following(best.along(_with_free(w, best) - best.w))


def following(line: Line) -> Line:
    """Return the line to its end after minimization over free parameters there.

    The change of the scores is not computed as a difference of scores, which would be
    inaccurate if it is tiny and steps are long. Free parameters do not change if
    exponentials overflow at the end of the line.
    """
    o, end = line.start.objective, line.point(1.0)
    n = o.regularizer.n_penalized
    if n == len(line.p) or (o.loss.steep and end.largest_score > _FARTHEST_SCORE):
        return line
    change = minimize_intercepts(end).w[n:] - line.start.w[n:]
    dscores = o.risk.shifted(line.dscores, change)
    return Line(line.start, np.append(line.p[:n], change), dscores)


def _cut_point(best: Point, end: Point, theta: float, highest: float) -> Point:
    """Return (1 - theta) * best + theta * end.

    For steep losses theta is reduced until the value is at most ``highest``.
    """
    line = best.towards(end)
    point = line.point(theta)
    if best.objective.loss.steep:
        while point.value > highest:
            theta *= 0.25
            point = line.point(theta)
    return point


def _with_free(w: Floats, point: Point) -> Floats:
    """Return w with the free parameters of another point."""
    n = point.objective.regularizer.n_penalized
    return np.append(w[:n], point.w[n:])
