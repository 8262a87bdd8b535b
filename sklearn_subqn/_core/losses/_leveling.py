"""Dual points whose columns sum to zero, as free intercepts ask for."""

from __future__ import annotations

import numpy as np

from ._base import Floats

# Rows are handled in blocks of about this many numbers.
_BLOCK = 1 << 18

# Sums of numbers whose absolute values sum to about one or less; this much is rounding.
_LEVEL = 2e-15

# Shares of flows below this, relative to the largest, are rounding.
_RANK_TOLERANCE = 1e-13


def leveled(dual: Floats) -> Floats:
    """Return a dual near by whose columns sum to zero, up to rounding.

    The rows of u = ``dual`` of shape (n, k) sum to zero, and remain feasible if entries
    shrink such that they still do. Each is a flow from its negative entries q to its
    positive ones p, t in total, of q_a p_b / t from a to b. Column sums vanish if the
    flows of all rows together leave as much at every label as they bring there.
    Multiplying the flow from a to b by 1 - (x_b - x_a) achieves that for the solution
    x of a k x k linear system, and a common factor makes all these factors at most one.
    Nothing is left of u where x is too large.
    """
    sums = dual.sum(axis=0)
    if np.abs(sums).max() <= _LEVEL:
        return dual
    n, k = dual.shape
    laplacian = np.zeros((k, k))
    for rows in _row_blocks(n, k):
        p, q, total = _sides(dual[rows])
        cross = (p / total).T @ q
        laplacian -= cross
        laplacian -= cross.T
        laplacian[np.diag_indices(k)] += (p + q).sum(axis=0)
    x = np.linalg.lstsq(laplacian, sums, rcond=_RANK_TOLERANCE)[0]
    spread = float(x.max() - x.min())
    if not spread < 0.5:
        return np.zeros_like(dual)
    level = np.empty_like(dual)
    for rows in _row_blocks(n, k):
        p, q, total = _sides(dual[rows])
        mean_p, mean_q = (p @ x)[:, np.newaxis], (q @ x)[:, np.newaxis]
        p *= 1.0 + mean_q / total - x
        q *= 1.0 - mean_p / total + x
        level[rows] = p
        level[rows] -= q
    level *= 1.0 - spread
    return level


def _row_blocks(n: int, k: int) -> list[slice]:
    size = max(1, _BLOCK // k)
    return [slice(start, start + size) for start in range(0, n, size)]


def _sides(u: Floats) -> tuple[Floats, Floats, Floats]:
    """Return positive and negative parts, and the sums of the former, or 1 for 0."""
    p, q = np.maximum(u, 0.0), np.maximum(-u, 0.0)
    total = p.sum(axis=1, keepdims=True)
    total[total == 0.0] = 1.0
    return p, q, total
