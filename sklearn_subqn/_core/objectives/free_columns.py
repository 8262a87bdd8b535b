"""Lower bounds where the penalty leaves columns free, besides those of intercepts.

A dual point u proves one if X_jᵀu = 0 for all free columns j. Those of a problem with a
small penalty on these nearly have that. Rows whose dual variables may change either way
make up for the rest, each in proportion to how far: the way of affine scaling (Dikin
1967) to feasible points.
"""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats
from ..memory import COPY_SIZE
from ..regularizers import PartlyFree
from ..rounding import CLOSE, MOST_STEPS, ROUNDED, rounding
from .bounds import MOST_IMBALANCED
from .objective import Dual, Objective


def lower_bound(objective: Objective, duals: list[Floats]) -> float:
    """Return the best lower bound that dual points prove, or that of the infimum.

    Parameters
    ----------
    objective : Objective
        Its regularizer is ``PartlyFree``.
    duals : list of ndarray of the shape of the scores
        In the domain of R*.
    """
    return max([objective.least, *(_bound(objective, dual) for dual in duals)])


def _bound(objective: Objective, u: Floats) -> float:
    """Return the lower bound of a dual point near u, or minus infinity."""
    risk, penalty = objective.risk, objective.regularizer
    assert isinstance(penalty, PartlyFree)
    free = np.flatnonzero(penalty.free)
    n_columns = len(free) + objective.n_free
    if u.ndim > 1 or not risk.in_one_place or not risk.loss.has_leeway:
        return -np.inf
    # Free columns are copied; larger copies are not worth a bound.
    if n_columns * len(u) > 8 * COPY_SIZE:
        return -np.inf
    F = np.ones((len(u), n_columns))
    F[:, : len(free)] = objective.design.dense_columns(free)
    sizes = np.sqrt(risk.weights @ np.square(F))
    F /= np.where(sizes > 0.0, sizes, 1.0)
    # What rounding leaves of dual variables that vanish would have no leeway.
    u = np.where(np.abs(u) <= CLOSE * risk.weights, 0.0, u)
    size = np.abs(u)
    for _ in range(MOST_STEPS):
        leeway = risk.leeway(u)
        root = _inverse_root(np.sqrt(leeway)[:, np.newaxis] * F)
        G = F @ root
        change = G @ (G.T @ u)
        way = float(np.abs(change[leeway > 0.0]).max(initial=0.0))
        # Whole steps may end at the ends: where a level of a category has one class,
        # its dual variables have to be zero. Others go nine tenths of the way there.
        u = u - (1.0 if way <= 1.0 + CLOSE else 0.9 / way) * leeway * change
        u[np.abs(u) <= CLOSE * size] = 0.0
        # Smaller steps are next to nothing.
        if way <= 1e-7:
            break
    # A point of the domain with X_jᵀu = 0 differs by no more than this share of the
    # leeway, the rounding of these sums included.
    lost = rounding(len(u)) * (np.abs(F).T @ np.abs(u))
    rest = G.T @ u
    share = float((np.abs(G) @ (np.abs(rest) + np.abs(root).T @ lost)).max())
    left = np.abs(F.T @ u - F.T @ (leeway * (G @ rest)))
    if not share <= MOST_IMBALANCED or np.any(left > 4.0 * lost):
        return -np.inf
    half = 0.5 * leeway
    heights = [risk.conjugate_and_size(u + x) for x in (0.0, half, -half)]
    # R* is convex: a share of the way to the ends of the leeway costs no more, of each
    # row whichever way it goes.
    height = heights[0][0] + 2.0 * share * sum(size for _, size in heights)
    if not np.isfinite(height):
        return -np.inf
    error = share * risk.dual_norm(leeway)
    cut = objective.cut(Dual(u, None, -height, error, None, 0.0))
    cut.normal[free] = 0.0
    return objective.dual_value(cut)


def _inverse_root(columns: Floats) -> Floats:
    """Return R for which R Rᵀ is the inverse of the Gram matrix of columns.

    Their sizes may differ by much, and columns may depend on one another, as indicators
    do beside an intercept. What nearly does so shows in singular values, whose squares,
    the eigenvalues of the Gram matrix, would be lost to rounding.
    """
    triangle = np.linalg.qr(columns, mode="r")
    sizes = np.linalg.norm(triangle, axis=0)
    sizes[sizes == 0.0] = 1.0
    _, values, rows = np.linalg.svd(triangle / sizes, full_matrices=False)
    kept = values > ROUNDED * values[0]
    return np.asarray(rows[kept].T / values[kept] / sizes[:, np.newaxis])
