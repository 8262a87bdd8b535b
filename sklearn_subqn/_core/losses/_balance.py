"""Dual points whose columns sum to zero, as free intercepts require."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .. import lapack
from ..rounding import CLOSE, MOST_STEPS, ROUNDED, TINY, rounding
from ._base import Floats, total_of_rows
from ._loss import Loss

# Newton's method stops when column sums are below 1 % of their initial size.
_ACCURACY = 0.01


class FlowOracle(Loss):
    """A loss of several scores per row that depends on their differences only.

    Rows of a dual point sum to zero. If their entries shrink and rows still sum to
    zero, the point stays in the domain of R*, and R* is not positive there.
    """

    invariant = True
    by_columns = False

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of the row sums, which are zero up to rounding."""
        sums = dual @ np.ones(dual.shape[1])
        positive = np.maximum(weights, TINY)
        return float(np.sqrt(np.sum(sums * (sums / positive))))

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the fraction of u that has to change for its columns to sum to zero.

        The fraction is infinite if no such change exists. ``balanced`` constructs the
        changed point.
        """
        if not sums.any():
            return 0.0
        laplacian, _, excess = _survey(dual)
        # Entries may be negative by rounding. After their correction, rows sum to zero.
        sums = sums - excess
        x = _potentials(laplacian, sums)
        left = np.abs(laplacian @ x - sums)
        # The residual of the linear system has to be of the size of rounding errors.
        if np.any(
            left > 1e-3 * np.abs(sums).max() + rounding(1.0) * laplacian.diagonal()
        ):
            return np.inf
        # Twice the range of x bounds the change of the flows. Another range is added
        # for the residual.
        return 3.0 * float(x.max() - x.min())

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return balanced(dual)


def balanced(dual: Floats) -> Floats:
    """Return a dual point near ``dual`` whose columns sum to zero up to rounding.

    The rows of u = ``dual`` of shape (n, k) sum to zero, and remain feasible if entries
    shrink such that they still do. A row is a flow from its negative entries -q to its
    positive entries p, which sum to t each: the flow from label a to label b is q_a p_b
    / t. Column sums vanish if inflow and outflow of every label, summed over all rows,
    are equal. They are equal after the flow from a to b is multiplied by 1 - (x_b -
    x_a), where x solves a k x k linear system. A common factor then makes all these
    factors at most one. The result is zero where x is too large.
    """
    laplacian, sums, _ = _survey(dual)
    if np.all(np.abs(sums) <= rounding(1.0) * laplacian.diagonal()):
        return dual
    x = _potentials(laplacian, sums)
    spread = float(x.max() - x.min())
    if not spread < 0.5:
        return np.zeros_like(dual)
    p, q, total = _sides(dual)
    from_mean, to_mean = (q @ x / total)[:, np.newaxis], (p @ x / total)[:, np.newaxis]
    p *= 1.0 + (from_mean - x)
    q *= 1.0 + (x - to_mean)
    return np.asarray((1.0 - spread) * (p - q))


def _sides(dual: Floats) -> tuple[Floats, Floats, Floats]:
    """Return p, q, and t of each row."""
    p, q = np.maximum(dual, 0.0), np.maximum(-dual, 0.0)
    return p, q, np.maximum(p @ np.ones(dual.shape[1]), TINY)


def _survey(dual: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the Laplacian and column sums of all flows, and corrections by columns.

    The corrections are sums of amounts subtracted from negative entries, so that all
    rows sum to zero in spite of rounding errors.
    """
    p, q, total = _sides(dual)
    one = np.ones(dual.shape[1])
    excess = (dual @ one / np.maximum(q @ one, TINY)) @ q
    laplacian = -q.T @ (p / total[:, np.newaxis])
    laplacian += laplacian.T
    np.fill_diagonal(laplacian, total_of_rows(p) + total_of_rows(q))
    return laplacian, total_of_rows(dual), excess


def _potentials(laplacian: Floats, sums: Floats) -> Floats:
    """Return x with L x = sums, or an approximation if there is no solution.

    Flows of labels may differ by many orders of magnitude, so L is scaled to a unit
    diagonal. L x does not change if a constant is added to x. Adding the outer product
    of that null vector makes the matrix positive definite, unless the graph of flows is
    not connected.
    """
    diagonal = laplacian.diagonal()
    roots = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = laplacian / roots / roots[:, np.newaxis]
    target = sums / roots
    constant = roots / np.linalg.norm(roots)
    factor, info = linalg.lapack.dpotrf(scaled + np.outer(constant, constant))
    if info == 0 and float(factor.diagonal().min()) ** 2 > CLOSE:
        x = linalg.lapack.dpotrs(factor, target)[0]
    else:
        x = lapack.lstsq(scaled, target, rcond=ROUNDED)[0]
    return x / roots


def tilted(dual: Floats, weights: Floats, neutral: Floats) -> Floats:
    """Return a dual point near an optimal one whose columns nearly sum to zero.

    The weight s of a row is divided among its flows from label a to label b, as in
    ``balanced``, and the remainder without a flow. A row with several positive shares
    is close to a kink. Its conjugate depends much less on the shares than on the sum of
    its flows. The shares are multiplied by exp(x_b - x_a), the remainder by one, and
    normalized to sum to s. Column sums then are the gradient of the sum of s times the
    logarithms of the normalizing constants, a smooth convex function of x. Newton's
    method finds its minimizer, where column sums vanish.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        A row is feasible if positive entries and absolute negative entries sum to at
        most s each, and all entries have feasible signs.
    weights : ndarray of shape (n,)
    neutral : ndarray of shape (n, k)
        A dual point without zeros at these entries. A small share of it is added to
        rows with flows, because too few rows may lie on a kink.
    """
    before, one = np.abs(total_of_rows(dual)), np.ones(dual.shape[1])
    # Flows are mixed with flows of ``neutral``, with the weight ``seed``.
    seed = min(0.01 * float(before.sum()), 0.5)
    inverse = 1.0 / np.maximum(weights, TINY)
    p, q, mix = (np.maximum(u, 0.0) for u in (dual, -dual, neutral))
    total = p @ one * inverse
    share = (seed * total / np.maximum(mix @ one, TINY))[:, np.newaxis]
    inverse = ((1.0 - seed) * inverse)[:, np.newaxis]
    p, q = p * inverse + share * mix, q * inverse + share * (mix - neutral)
    none, x = np.maximum(1.0 - total, 0.0) * total, np.zeros(len(one))
    for _ in range(MOST_STEPS):
        sinks, sources = p * np.exp(x), q * np.exp(-x)
        taken, brought = sinks @ one, sources @ one
        flow = taken * brought
        total = weights * flow / np.maximum(none + flow, TINY)
        sinks *= (total / np.maximum(taken, TINY))[:, np.newaxis]
        sources *= (total / np.maximum(brought, TINY))[:, np.newaxis]
        u = sinks - sources
        sums = total_of_rows(u)
        if np.abs(sums).max() <= 1e-4 * before.max():
            break
        step = _newton_step(sinks, sources, total, weights, sums)
        # Steps are bounded so that no ratio of shares changes by more than exp(2).
        x -= min(1.0, 2.0 / max(float(np.ptp(step)), 2.0)) * step
    return u


def _newton_step(
    sinks: Floats, sources: Floats, total: Floats, weights: Floats, sums: Floats
) -> Floats:
    """Approximate H^-1 sums by conjugate gradients scaled by the columns' sizes.

    A row of weight s with entries p and -q, whose sums are t, contributes diag(p + q) -
    (p q' + q p') / t - (p - q) (p - q)' / s to H. Solutions are determined up to a
    constant, so their mean is subtracted.
    """
    sizes = total_of_rows(sinks) + total_of_rows(sources)
    of_flow, of_weight = (1.0 / np.maximum(x, TINY) for x in (total, weights))
    scale = 1.0 / np.maximum(sizes, TINY)
    step, rest = np.zeros_like(sums), sums.copy()
    scaled = scale * rest
    direction, square = scaled, float(rest @ scaled)
    enough = _ACCURACY**2 * square
    for _ in range(len(sums)):
        to, away = sinks @ direction, sources @ direction
        mean = of_weight * (to - away)
        product = sizes * direction - (of_flow * away + mean) @ sinks
        product -= (of_flow * to - mean) @ sources
        curvature = float(direction @ product)
        if not curvature > 0.0:
            break
        length = square / curvature
        step += length * direction
        rest -= length * product
        scaled = scale * rest
        before, square = square, float(rest @ scaled)
        if square <= enough:
            break
        direction = scaled + (square / before) * direction
    return step - step.mean()


def cost_of_labels(costs: Floats, dual: Floats, targets: Any) -> float:
    """Return sum_ij costs_j |u_ij| over irrelevant and over relevant labels."""
    u = dual[:, : targets.shape[1]]
    irrelevant = np.einsum("ij,ij->j", u, 1.0 - targets)
    relevant = np.einsum("ij,ij->j", u, targets)
    return float(costs[0] @ irrelevant - costs[1] @ relevant)
