"""Lower bounds for objectives with unpenalized columns, by convex combinations of cuts.

A cut proves a lower bound if its normal is zero along all free columns. At a solution
the normal is only nearly zero. At points on opposite sides of the solution along a
column, slopes along this column have different signs. So a convex combination of the
cut with small multiples of the cuts at these points has a normal of exactly zero. Its
exact weights are not computable because of rounding, but their known upper bound
suffices.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from .. import lapack
from ..losses._base import Floats, Rows
from ..memory import COPY_SIZE
from ..objectives.objective import Cut, Dual, Objective, Point
from ..regularizers import PartlyFree
from ..rounding import ROUNDED, rounding
from .intercepts import minimize_intercept

# Scores at points on both sides differ from the scores of the solution by at most 4,
# 16, ..., 1024.
_CHANGES = 4.0 ** np.arange(1, 6)

# Largest relative error of slopes for which their inverse is accurate within a factor
# of two.
_MOST_LOST = 0.4


def passes_for(objective: Objective) -> float:
    """Return an estimate of the passes over the data that ``bound_without`` takes."""
    return 6.0 * len(_free(objective))


def bound_without(objective: Objective, cut: Cut, point: Point) -> float:
    """Return a lower bound of an objective with free columns, or minus infinity.

    Parameters
    ----------
    objective : Objective
        Objective with the regularizer ``PartlyFree``.
    cut : Cut
        Cut whose normal is nearly zero along the free columns.
    point : Point
        A point near the solution.
    """
    free, n = _free(objective), objective.regularizer.n_penalized
    # The unpenalized columns are copied. If the copy would be large, no bound is
    # computed.
    n_copied = objective.design.n_rows * len(free)
    if n_copied > 8 * COPY_SIZE or not cut.is_balanced(n):
        return -np.inf
    found = _around(point.under(objective), free)
    if found is None:
        return -np.inf
    others, slopes, shares = found
    # The row of ones keeps the sum of the weights constant.
    m = len(others)
    rows = np.vstack([slopes, np.ones(m)])
    inverse = lapack.pinv(rows)
    reach = float(np.abs(inverse).sum(axis=1).max())
    errors = sum(each.error for each in others)
    lost = np.abs(rows @ inverse - np.eye(len(rows))).sum(axis=1).max()
    if not lost + errors * reach <= _MOST_LOST:
        return -np.inf
    reach *= 2.0
    left = float(np.abs(slopes @ shares).max()) + errors * float(shares.max())
    if not reach * left <= 0.5:
        return -np.inf
    sizes = objective.risk.column_sizes[free]
    own = float(np.abs(cut.normal[free] / sizes).max()) + cut.error
    amount = reach * own / (1.0 - reach * left)
    shares = np.append(1.0, amount * shares)
    total = float(shares.sum())
    cuts = [cut, *others]
    numbers = np.array([each[1:] for each in cuts])
    mixed = Cut.mixed(shares / total, _normals(cuts), numbers)
    # The exact weights differ by at most ``amount`` for each of the other cuts.
    change = amount / total
    heights = np.abs(numbers[1:, 0] - numbers[0, 0]).sum()
    heights += rounding(len(cuts)) * np.abs(numbers[:, 0]).sum()
    mixed = mixed._replace(
        offset=mixed.offset - change * float(heights),
        error=mixed.error + change * float(numbers[1:, 2].sum()),
    )
    # With the exact weights slopes along free columns are zero.
    mixed.normal[:n][_penalty(objective).free] = 0.0
    mixed.normal[n:] = 0.0
    return objective.dual_value(mixed)


def _around(point: Point, free: Rows) -> tuple[list[Cut], Floats, Floats] | None:
    """Return cuts at points around ``point``, and weights for a slope of zero.

    Slopes along the free columns, in units of the columns, have shape (p, m); weights
    of shape (m,) are at least one. Returns None if no such cuts were found.
    """
    sizes = point.objective.risk.column_sizes[free]
    directions = _directions(point.objective)
    cuts: list[Cut] = []
    new = [*directions, *-directions]
    for _ in range(1 + len(new)):
        for direction in new:
            cut = _beside(point, direction)
            if cut is None:
                return None
            cuts.append(cut)
        slopes = np.array([cut.normal[free] for cut in cuts]).T / sizes[:, np.newaxis]
        try:
            more, left = optimize.nnls(slopes, -slopes.sum(axis=1))
        except RuntimeError:
            return None
        if left <= ROUNDED * np.abs(slopes).sum():
            return cuts, slopes, 1.0 + more
        # No cut has a positive slope in this direction (Farkas' lemma).
        direction = np.zeros(point.objective.n_params)
        direction[free] = slopes @ (1.0 + more) / -sizes
        new = [direction]
    return None


def _free(objective: Objective) -> Rows:
    """Return the free parameters along which the slope of a cut has to vanish.

    They include intercepts over which points are not minimized.
    """
    o, design = objective, objective.design
    free = np.flatnonzero(_penalty(o).free)
    if _has_stiff_intercepts(o):
        free = np.append(free, np.arange(o.regularizer.n_penalized, o.n_params))
    if o.loss.invariant:
        # Slopes of all scores along one column sum to zero, so one of them is
        # redundant.
        free = free[(free + 1) % (design.n_outputs or 1) != 0]
    return free


def _penalty(objective: Objective) -> PartlyFree:
    assert isinstance(objective.regularizer, PartlyFree)
    return objective.regularizer


def _has_stiff_intercepts(objective: Objective) -> bool:
    return objective.n_free > 1 and not objective.loss.smooth


def _directions(objective: Objective) -> Floats:
    """Return a direction for each of ``_free``, of shape (p, q).

    Along this direction, scores change by the component of a column that is orthogonal
    to the other free columns.
    """
    o, design, free = objective, objective.design, _free(objective)
    each, n = design.n_coef // design.n_features, o.regularizer.n_penalized
    features = np.flatnonzero(_penalty(o).free[::each])
    # The parameters of these columns for the same score.
    sizes = o.column_sizes[each * features]
    columns = design.dense_columns(features) / sizes
    if o.n_free or o.loss.ranks:
        columns = np.column_stack([columns, np.ones(len(columns))])
    inverse = lapack.pinv(columns.T @ (o.weights[:, np.newaxis] * columns))
    directions = np.zeros((len(free), o.n_params))
    for p, j in zip(directions, free, strict=True):
        score = j % each
        row = inverse[np.searchsorted(features, j // each) if j < n else -1]
        p[each * features + score] = row[: len(features)] / sizes
        if o.n_free == 1:
            p[n:] = row[-1]
        elif o.n_free:
            p[n + score] = row[-1]
    return directions


def _normals(cuts: list[Cut]) -> Floats:
    return np.array([each.normal for each in cuts])


def _beside(point: Point, direction: Floats) -> Cut | None:
    """Return a cut with a positive slope in a direction, from a point along it."""
    o = point.objective
    line = point.along(direction)
    for change in _CHANGES / line.largest_change:
        end = minimize_intercept(line.point(change))
        if _has_stiff_intercepts(o):
            # The convex combination makes slopes along intercepts zero as well.
            cut = o.cut(Dual(end.dual, imbalance=np.inf))
        else:
            cut = end.cut
            if not cut.is_balanced(o.regularizer.n_penalized):
                return None
        if cut.normal @ direction > 0.0:
            return cut
    return None
