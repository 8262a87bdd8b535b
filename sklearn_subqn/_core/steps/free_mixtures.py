"""Bounds where the penalty leaves columns free, by mixtures of cuts.

A cut proves one if its normal is zero along all free columns. That of a solution nearly
is. At points to both sides of it, with more and with less of a column, slopes along the
column have either sign; so a mixture with a little of their cuts has a normal of zero
there. How much of them that takes is known, although rounding hides which mixture it
is.
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

# Scores at points to both sides differ by at most 4, 16, ..., 1024 from those of the
# solution.
_CHANGES = 4.0 ** np.arange(1, 6)

# Slopes may be off by so much, as a share, for their inverse to be right within a
# factor of two.
_MOST_LOST = 0.4


def passes_for(objective: Objective) -> float:
    """Return about how many passes over the data ``bound_without`` takes."""
    return 6.0 * len(_free(objective))


def bound_without(objective: Objective, cut: Cut, point: Point) -> float:
    """Return a lower bound of an objective with free columns, or minus infinity.

    Parameters
    ----------
    objective : Objective
        Its regularizer is ``PartlyFree``.
    cut : Cut
        Its normal is nearly zero along the free columns.
    point : Point
        Of parameters near the solution.
    """
    free, n = _free(objective), objective.regularizer.n_penalized
    # Free columns are copied; larger copies are not worth a bound.
    n_copied = objective.design.n_rows * len(free)
    if n_copied > 8 * COPY_SIZE or not cut.is_balanced(n):
        return -np.inf
    found = _around(point.under(objective), free)
    if found is None:
        return -np.inf
    others, slopes, shares = found
    # An inverse of the slopes and a row of ones: what is mixed anew keeps its sum.
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
    # The exact mixture differs by up to ``amount`` of each of the others.
    change = amount / total
    heights = np.abs(numbers[1:, 0] - numbers[0, 0]).sum()
    heights += rounding(len(cuts)) * np.abs(numbers[:, 0]).sum()
    mixed = mixed._replace(
        offset=mixed.offset - change * float(heights),
        error=mixed.error + change * float(numbers[1:, 2].sum()),
    )
    # The exact mixture has slopes of zero.
    mixed.normal[:n][_penalty(objective).free] = 0.0
    mixed.normal[n:] = 0.0
    return objective.dual_value(mixed)


def _around(point: Point, free: Rows) -> tuple[list[Cut], Floats, Floats] | None:
    """Return cuts at points around one, and shares whose slopes have a sum of zero.

    Slopes are those along the free columns in units of their sizes, of shape (p, m),
    and shares, of shape (m,), are at least one. None where there are none.
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
        # No cut rises in this direction (Farkas).
        direction = np.zeros(point.objective.n_params)
        direction[free] = slopes @ (1.0 + more) / -sizes
        new = [direction]
    return None


def _free(objective: Objective) -> Rows:
    """Return the free parameters along which slopes have to be brought to zero.

    Intercepts are among them where they are not minimized over.
    """
    o, design = objective, objective.design
    free = np.flatnonzero(_penalty(o).free)
    if _has_stiff_intercepts(o):
        free = np.append(free, np.arange(o.regularizer.n_penalized, o.n_params))
    if o.loss.invariant:
        # Slopes of all scores along one column have a sum of zero.
        free = free[(free + 1) % (design.n_outputs or 1) != 0]
    return free


def _penalty(objective: Objective) -> PartlyFree:
    assert isinstance(objective.regularizer, PartlyFree)
    return objective.regularizer


def _has_stiff_intercepts(objective: Objective) -> bool:
    return objective.n_free > 1 and not objective.loss.smooth


def _directions(objective: Objective) -> Floats:
    """Return a direction for each of ``_free``, of shape (p, q).

    Scores change along it by what a column has apart from the other free ones.
    """
    o, design, free = objective, objective.design, _free(objective)
    each, n = design.n_coef // design.n_features, o.regularizer.n_penalized
    features = np.flatnonzero(_penalty(o).free[::each])
    # The parameters of one score that go with these columns.
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
    """Return a cut that rises in a direction, at a point in it, if there is one."""
    o = point.objective
    line = point.along(direction)
    for change in _CHANGES / line.largest_change:
        end = minimize_intercept(line.point(change))
        if _has_stiff_intercepts(o):
            # Slopes along intercepts are brought to zero with the others.
            cut = o.cut(Dual(end.dual, imbalance=np.inf))
        else:
            cut = end.cut
            if not cut.is_balanced(o.regularizer.n_penalized):
                return None
        if cut.normal @ direction > 0.0:
            return cut
    return None
