"""Dual points whose columns sum to zero, as free intercepts ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .. import lapack
from ..kernels import flows
from ..rounding import CLOSE, MOST_STEPS, ROUNDED, TINY, rounding
from ._base import Floats, total_of_rows
from ._loss import Loss

# Newton steps leave a hundredth of the column sums that they are to remove.
_ACCURACY = 0.01


class FlowOracle(Loss):
    """A loss of several scores per row, of which only differences count.

    The rows of duals sum to zero, and remain in the domain if entries shrink such that
    they still do; the conjugate of what they shrink to is not positive.
    """

    invariant = True
    by_columns = False

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of the rows' sums."""
        sums = dual @ np.ones(dual.shape[1])
        positive = np.maximum(weights, TINY)
        return float(np.sqrt(np.sum(sums * (sums / positive))))

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the share of u by which flows change to make up for column sums.

        It is infinite where they cannot. As in ``balanced``, a point that differs from
        another by no more than that share of u then has columns that sum to zero.
        """
        if not sums.any():
            return 0.0
        laplacian, _, excess = _survey(dual)
        # Rows sum to zero once their negative entries are changed as rounding asks for.
        sums = sums - excess
        x = _potentials(laplacian, sums)
        left = np.abs(laplacian @ x - sums)
        # A solution leaves next to nothing of the sums.
        if np.any(
            left > 1e-3 * np.abs(sums).max() + rounding(1.0) * laplacian.diagonal()
        ):
            return np.inf
        # Twice the spread, and a little for what is left of the sums.
        return 3.0 * float(x.max() - x.min())

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return balanced(dual)


def balanced(dual: Floats) -> Floats:
    """Return a dual near by whose columns sum to zero, up to rounding.

    The rows of u = ``dual`` of shape (n, k) sum to zero, and remain feasible if entries
    shrink such that they still do. Each is a flow from its negative entries q to its
    positive ones p, t in total, of q_a p_b / t from a to b. Column sums vanish if the
    flows of all rows together leave as much at every label as they bring there.
    Multiplying the flow from a to b by 1 - (x_b - x_a) achieves that for the solution
    x of a k x k linear system, and a common factor makes all these factors at most one.
    Nothing is left of u where x is too large.
    """
    laplacian, sums, _ = _survey(dual)
    if np.all(np.abs(sums) <= rounding(1.0) * laplacian.diagonal()):
        return dual
    x = _potentials(laplacian, sums)
    spread = float(x.max() - x.min())
    if not spread < 0.5:
        return np.zeros_like(dual)
    balanced = np.empty_like(dual)
    flows.weaken(dual, x, 1.0 - spread, balanced)
    return balanced


def _survey(dual: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Laplacian and column sums of all flows, and what rows are off."""
    k = dual.shape[1]
    laplacian, sums, excess = np.zeros((k, k)), np.zeros(k), np.zeros(k)
    flows.survey(dual, laplacian, sums, excess)
    return laplacian, sums, excess


def _potentials(laplacian: Floats, sums: Floats) -> Floats:
    """Return x with L x = sums, or nearly if there is none.

    Flows of labels may be of very different sizes: those are scaled to be alike. A
    constant added to x changes nothing: the matrix becomes positive definite by its
    outer product, unless labels fall into parts without flows between them.
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
    """Return a dual near an optimal one whose columns nearly sum to zero.

    A row of weight s is shared by the flows from one label to another, as in
    ``balanced``, and by none at all, with what they leave of s. If both have a share,
    the row is about on a kink between them, and hardly minds what share that is: much
    less than that all its flows shrink. Shares in proportion to exp(x_b - x_a), and to
    one for none, make column sums vanish for the x that minimizes the sum of s times
    the logarithm of what they sum to, a smooth convex function with these column sums
    for its gradient. Newton's method finds it.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        Rows are feasible if positive and negative entries sum to at most s each and are
        at their places.
    weights : ndarray of shape (n,)
    neutral : ndarray of shape (n, k)
        Of some dual point without zeros at these places. A little of it is mixed to
        rows with flows: those that are on a kink may be too few.
    """
    k = dual.shape[1]
    before = np.abs(total_of_rows(dual))
    # Labels that have nothing of a row get a share of the sums before, unless the row
    # has flows of next to nothing of its weight: those are dropped.
    seed = min(0.01 * float(before.sum()), 0.5)
    p, q, u, none = *(np.empty(dual.shape) for _ in range(3)), np.empty(len(dual))
    flows.sides(dual, weights, neutral, seed, 1e-50, p, q, none)
    x = np.zeros(k)
    for _ in range(MOST_STEPS):
        sums, sizes = np.zeros(k), np.zeros(k)
        flows.tilt(p, q, none, weights, np.exp(x), np.exp(-x), u, sums, sizes)
        if np.abs(sums).max() <= 1e-4 * before.max():
            break
        step = _newton_step(u, weights, sums, sizes)
        # No step changes a ratio of shares by more than exp(2).
        x -= min(1.0, 2.0 / max(float(np.ptp(step)), 2.0)) * step
    return u


def _newton_step(dual: Floats, weights: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Return about H^-1 sums, by conjugate gradients scaled by the columns' sizes.

    Adding a constant to a solution changes nothing: its mean is taken off.
    """
    scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    step, product, rest = np.zeros_like(sums), np.empty_like(sums), sums.copy()
    scaled = scale * rest
    direction, square = scaled, float(rest @ scaled)
    enough = _ACCURACY**2 * square
    for _ in range(len(sums)):
        flows.multiply(dual, weights, direction, product)
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
