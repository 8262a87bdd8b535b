"""Lower bounds where the penalty leaves columns free, besides those of intercepts.

A dual point u proves one if X_jᵀu = 0 for all free columns j. Those of a problem with a
small penalty on these nearly have that. Rows whose dual variables may change either way
make up for the rest, each in proportion to how far: the way of affine scaling (Dikin
1967) to feasible points.

Where a coefficient has bounds, v_j = X_jᵀu is their multiplier and need not vanish. The
least v_j w_j between them is what J has there, and minus infinity without a bound on
that side. Only columns of which that is much less than at w are brought to v_j = 0.
"""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats, Rows
from ..memory import COPY_SIZE
from ..regularizers import PartlyFree
from ..rounding import CLOSE, MOST_STEPS, ROUNDED, rounding
from .bounds import MOST_IMBALANCED
from .objective import Cut, Dual, Objective, Point

# Dual variables at their ends change one way only, and those of all rows of a level
# may be there. Where a dual point proves nothing, it goes 1e-8 of the way to the
# middle of the domain, about the root of EPS: rounding is as little of the leeway as
# the way is of the bound.
_INWARD = (0.0, 1e-8)

# Multipliers of bounds may cost a tenth of the allowed gap in all.
_OF_GAP = 0.1

# QR factorizations of eight times as many rows as columns stay in the cache.
# docs/constants.md has the figures.
_ROWS_PER_COLUMN = 8


def lower_bound(point: Point, duals: list[Floats], enough: float) -> float:
    """Return the best lower bound that dual points prove, or that of the infimum.

    Dual points after one that proves ``enough`` are not looked at.

    Parameters
    ----------
    point : Point
        Of an objective whose regularizer is ``PartlyFree``.
    duals : list of ndarray of the shape of the scores
        In the domain of R*.
    """
    objective = point.objective
    risk, penalty = objective.risk, objective.regularizer
    assert isinstance(penalty, PartlyFree)
    free = np.flatnonzero(penalty.free)
    n_rows, n_columns = len(duals[0]), len(free) + objective.n_free
    best = objective.least
    if duals[0].ndim > 1 or not risk.in_one_place:
        return best
    if not risk.loss.has_leeway:
        return max(best, point.lower_bound)
    # Free columns are copied; larger copies are not worth a bound.
    if n_columns * n_rows > 8 * COPY_SIZE:
        return best
    F = np.ones((n_rows, n_columns))
    F[:, : len(free)] = objective.design.dense_columns(free)
    sizes = np.sqrt(risk.weights @ np.square(F))
    F /= np.where(sizes > 0.0, sizes, 1.0)
    most = _OF_GAP * (point.value - enough) / max(len(free), 1)
    for share in _INWARD:
        for u in duals:
            best = max(best, _bound(point, F, u, share, most))
            if best >= enough:
                return best
    return best


def _bound(point: Point, F: Floats, u: Floats, share: float, most: float) -> float:
    """Return the lower bound of a dual point near u, or minus infinity.

    F are the free columns and those of intercepts, in units of their sizes. Multipliers
    of bounds cost at most ``most`` each.
    """
    objective, n = point.objective, point.objective.regularizer.n_penalized
    assert isinstance(objective.regularizer, PartlyFree)
    free = objective.regularizer.free
    cut, balanced = objective.cut(Dual(u)), np.zeros(n, dtype=bool)
    while True:
        costly = free & ~balanced & ~(_costs(point, cut) <= most)
        if not costly.any():
            return objective.dual_value(cut)
        balanced |= costly
        some = np.append(balanced[free], np.ones(objective.n_free, dtype=bool))
        found = _balanced(objective, F[:, some], np.flatnonzero(balanced), u, share)
        if found is None:
            return -np.inf
        cut = found


def _costs(point: Point, cut: Cut) -> Floats:
    """Return by how much each column of a cut may lower the bound below a point."""
    objective, n = point.objective, point.objective.regularizer.n_penalized
    assert isinstance(objective.regularizer, PartlyFree)
    v, radius = objective.conjugate_point(cut)
    largest = objective.regularizer.support_within(v, radius)
    return objective.alpha * (largest - v * point.w[:n])


def _balanced(
    objective: Objective, F: Floats, columns: Rows, u: Floats, share: float
) -> Cut | None:
    """Return the cut of a dual point near u with X_jᵀu = 0 for some columns, or None.

    F are these columns and those of intercepts, in units of their sizes.
    """
    risk, n_columns = objective.risk, F.shape[1]
    # What rounding leaves of dual variables that vanish would have no leeway.
    u = np.where(np.abs(u) <= CLOSE * risk.weights, 0.0, u)
    u = risk.inward(u, share)
    size = np.abs(u)
    for _ in range(MOST_STEPS):
        leeway = risk.leeway(u)
        # Rows without leeway take no part. Near a vertex few rows have any.
        rows = np.flatnonzero(leeway)
        room = leeway[rows, np.newaxis]
        some = F[rows] if len(rows) < len(F) else F
        root = _inverse_root(np.sqrt(room) * some)
        change = some @ (root @ (root.T @ (F.T @ u)))
        way = float(np.abs(change).max(initial=0.0))
        # Whole steps may end at the ends: where a level of a category has one class,
        # its dual variables have to be zero. Others go nine tenths of the way there.
        u[rows] -= (1.0 if way <= 1.0 + CLOSE else 0.9 / way) * room[:, 0] * change
        u[np.abs(u) <= CLOSE * size] = 0.0
        # A whole step ends at X_jᵀu = 0, and half of the leeway of each row is left.
        if way <= 0.5:
            break
    # What is left is moved in proportion to the leeway before the last step.
    leeway = risk.leeway(u)
    left_over = leeway[rows]
    scale = room[:, 0] / np.maximum(left_over, np.finfo(np.float64).tiny)
    # A point of the domain with X_jᵀu = 0 differs from u by at most ``share`` of the
    # leeway, the rounding of these sums included.
    sums, lost = F.T @ u, rounding(len(u)) * (np.abs(F).T @ np.abs(u))
    G = some @ root
    rest = G @ (root.T @ sums)
    most = np.abs(G) @ (np.abs(root).T @ lost) * (1.0 + rounding(n_columns))
    share = float(((np.abs(rest) + most) * scale).max(initial=0.0))
    # What columns that depend on one another leave of the sums comes from rounding.
    beyond = np.eye(n_columns) - some.T @ (room * G) @ root.T
    left = np.abs(beyond @ sums) > 4.0 * np.abs(beyond) @ lost
    if not share <= MOST_IMBALANCED or np.any(left):
        return None
    # R* is convex: a share of the way to the ends of the leeway costs no more, of each
    # row whichever way it goes.
    part, half = risk.of_rows(rows) if len(rows) < len(F) else risk, 0.5 * left_over
    ends = [part.conjugate_and_size(u[rows] + x)[1] for x in (0.0, half, -half)]
    height = risk.conjugate_and_size(u)[0] + 2.0 * share * sum(ends)
    if not np.isfinite(height):
        return None
    error = share * risk.dual_norm(leeway)
    cut = objective.cut(Dual(u, None, -height, error, None, 0.0))
    cut.normal[columns] = 0.0
    return cut


def _inverse_root(columns: Floats) -> Floats:
    """Return R for which R Rᵀ is the inverse of the Gram matrix of columns.

    Their sizes may differ by much, and columns may depend on one another, as indicators
    do beside an intercept. What nearly does so shows in singular values, whose squares,
    the eigenvalues of the Gram matrix, would be lost to rounding.
    """
    triangle = _triangle(columns)
    sizes = np.linalg.norm(triangle, axis=0)
    sizes[sizes == 0.0] = 1.0
    _, values, rows = np.linalg.svd(triangle / sizes, full_matrices=False)
    kept = values > ROUNDED * values.max(initial=0.0)
    return np.asarray(rows[kept].T / values[kept] / sizes[:, np.newaxis])


def _triangle(columns: Floats) -> Floats:
    """Return R of the QR factorization, by those of blocks of rows in turn.

    J. Demmel, L. Grigori, M. Hoemmen, J. Langou (2012), Communication-optimal Parallel
    and Sequential QR and LU Factorizations, SIAM J. Sci. Comput. 34.
    """
    size = _ROWS_PER_COLUMN * columns.shape[1]
    while len(columns) > 2 * size:
        blocks = [columns[i : i + size] for i in range(0, len(columns), size)]
        columns = np.concatenate([np.linalg.qr(each, mode="r") for each in blocks])
    return np.asarray(np.linalg.qr(columns, mode="r"))
