"""Multilabel hinge with costs of labels, and its smooth envelope.

Targets have shape (n, l), 1 for the labels of a row and 0 for the others. Scores have
shape (n, l), or (n, l + 1) with a threshold as the last score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import multilabel as kernel
from ._base import (
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    Floats,
    LabelSets,
    PiecewiseQuadratic,
    Rows,
)
from ._leveling import FlowLoss, leveled, tilted

# Labels this near to the edge of the support, in units of dual variables, lie on it.
_EDGE = 1e-9

# Kinks on a line are collected in pieces of so many.
_N_KINKS = 1 << 16


class MultilabelHinge(FlowLoss):
    """Multilabel hinge with costs of labels (Yu 2009, eq. 3.54 and 3.55).

    Without a threshold the loss of a row is the maximum of 0 and of
    costs[0, j] + z_j + costs[1, h] - z_h over its irrelevant labels j and relevant
    labels h: the decoupled loss (3.54) where costs are tau / 2, and (3.55) for label
    losses that are sums of a cost for each. Rows without either kind of labels have no
    loss.

    With a threshold z_0, the last score, it is the sum of
    max(0, costs[0, j] + z_j - z_0) for the worst irrelevant label and
    max(0, costs[1, h] + z_0 - z_h) for the worst relevant one. That is (3.55) with the
    threshold as one more label, which is relevant for the irrelevant labels and
    irrelevant for the relevant ones, and bounds the loss without it from above.

    Parameters
    ----------
    costs : ndarray of shape (2, l)
        Non-negative margins of irrelevant and relevant labels.
    """

    smooth = False
    has_envelope = True
    has_margin = True

    def __init__(self, costs: Floats) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return kernel.value(scores, targets, self.costs, weights)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the subgradient (3.57) of the first worst labels, or zero if it is."""
        u = np.empty_like(scores)
        kernel.subgradient(scores, targets, self.costs, weights, TIE_TOLERANCE, u)
        return u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -sum_ij costs_j |u_ij| over the labels.

        It is finite where u_i = s_i (p - q) for p >= 0 on irrelevant and q >= 0 on
        relevant labels with equal sums of at most one; with a threshold the sums may
        differ, and the last entry is their difference. The duals that this class
        returns are of that form; the caller answers for others.
        """
        u = dual[:, : targets.shape[1]]
        irrelevant = np.einsum("ij,ij->j", u, 1.0 - targets)
        relevant = np.einsum("ij,ij->j", u, targets)
        return float(self.costs[1] @ relevant - self.costs[0] @ irrelevant)

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        flags = np.empty(len(scores), dtype=np.uint8)
        kernel.kinks(scores, targets, self.costs, TIE_TOLERANCE, flags)
        return np.flatnonzero(flags)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the oracle's choice below (3.57): the steepest of the worst labels."""
        u = np.empty_like(scores)
        kernel.steepest(scores, dscores, targets, self.costs, weights, TIE_TOLERANCE, u)
        return u

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with its jumps at the kinks of (3.58)."""
        kinks, jumps = np.empty((2, max(_N_KINKS, targets.shape[1] + 2)))
        parts, slope, row = [], 0.0, 0
        while row < len(scores):
            row, count, part = kernel.restrict(
                scores,
                dscores,
                targets,
                self.costs,
                weights,
                TIE_TOLERANCE,
                row,
                kinks,
                jumps,
            )
            parts.append((kinks[:count].copy(), jumps[:count].copy()))
            slope += part
        all_kinks, all_jumps = map(np.concatenate, zip(*parts, strict=True))
        return PiecewiseQuadratic(
            slope, 0.0, all_kinks, all_jumps, np.zeros(len(all_kinks))
        )

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return p and q, |u| = s (p + q), of shape (n, l); zero without weight."""
        b = np.zeros(targets.shape)
        scale = weights[:, np.newaxis]
        np.divide(dual[:, : targets.shape[1]], scale, out=b, where=scale > 0.0)
        b[targets > 0] *= -1.0
        return np.clip(b, 0.0, 1.0, out=b)

    def rowwise_dual(self, targets: Any) -> LabelSets:
        """Return the maximum over sets of labels."""
        return LabelSets(targets, self.costs)

    def neutral_variables(self, targets: Any) -> Floats:
        """Return p and q that sum to one half each, or vanish without their labels."""
        relevant = targets.sum(axis=1, dtype=np.float64, keepdims=True)
        irrelevant = targets.shape[1] - relevant
        sizes = np.where(targets > 0, relevant, irrelevant)
        return 0.5 / np.maximum(sizes, 1.0)

    def envelope(self, center: Floats, width: float) -> MultilabelEnvelope:
        """Return the smooth envelope around dual variables of shape (n, l)."""
        return MultilabelEnvelope(self, center, width)

    def level_near_optimum(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        neutral = self.neutral_variables(targets)
        neutral[targets > 0] *= -1.0
        if dual.shape[1] == targets.shape[1]:
            return leveled(tilted(dual, weights, neutral))
        # The sums over irrelevant and over relevant labels are maxima of their own.
        halves: list[Floats] = []
        others: list[Floats] = []
        for labels in (targets == 0, targets > 0):
            for u, parts in ((dual[:, :-1], halves), (neutral, others)):
                part = np.where(labels, u, 0.0)
                parts.append(np.column_stack([part, -part.sum(axis=1)]))
        both = tilted(np.vstack(halves), np.tile(weights, 2), np.vstack(others))
        return np.add(*np.split(leveled(both), 2))


class MultilabelEnvelope(FlowLoss):
    """Envelope of the multilabel hinge around dual variables.

    The loss of a row is the maximum of <b, m> over b = (p, q), with m_j = costs[0, j] +
    z_j of irrelevant and costs[1, j] - z_j of relevant labels. The envelope subtracts
    ``width / 2 * ||b - center||²`` inside the maximum, as ``MulticlassEnvelope``.

    Parameters
    ----------
    loss : MultilabelHinge
    center : ndarray of shape (n, l)
    width : float
        Positive.
    """

    smooth = True

    def __init__(self, loss: MultilabelHinge, center: Floats, width: float) -> None:
        self._loss = loss
        self.center = center
        self.width = width

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self._evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, of the shape of the scores."""
        return self._evaluate(scores, targets, weights)[1]

    def _evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        u = np.empty_like(scores)
        value = kernel.envelope_gradient(
            scores, self.center, targets, self._loss.costs, weights, self.width, u
        )
        return value, u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) of the hinge + width / 2 * sum_i s_i ||b_i - center_i||²."""
        shift = self._loss.dual_variables(dual, targets, weights)
        shift -= self.center
        penalty = (
            0.5 * self.width * float(weights @ np.einsum("ij,ij->i", shift, shift))
        )
        return self._loss.conjugate(dual, targets, weights) + penalty

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> GroupCurvature:
        """Return generalized second derivatives.

        Labels at the edge of the support count as inside, as for ``HingeEnvelope``.
        """
        groups = np.empty(targets.shape, dtype=np.uint8)
        kernel.support(
            scores,
            self.center,
            targets,
            self._loss.costs,
            weights,
            self.width,
            _EDGE,
            groups,
        )
        return GroupCurvature(groups, weights / self.width, scores.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        def at(step: float) -> tuple[float, float]:
            return kernel.envelope_slope(
                scores,
                dscores,
                self.center,
                targets,
                self._loss.costs,
                weights,
                self.width,
                step,
            )

        return at


class GroupCurvature(Curvature):
    """Second derivatives, a k x k matrix a row: scores centered in groups of labels.

    Parameters
    ----------
    groups : ndarray of uint8 of shape (n, l)
        0 for labels without; scores of group 1 and of group 2 are centered, and from
        those of group 3 the threshold is subtracted.
    factors : ndarray of shape (n,)
    n_scores : int
        Number k of scores, l or l + 1.
    """

    def __init__(
        self, groups: npt.NDArray[np.uint8], factors: Floats, n_scores: int
    ) -> None:
        self._groups = groups
        self._factors = factors
        self._n_scores = n_scores

    def rows(self) -> Rows:
        return np.flatnonzero(self._groups.any(axis=1))

    def take(self, rows: Rows) -> GroupCurvature:
        return GroupCurvature(self._groups[rows], self._factors[rows], self._n_scores)

    def apply(self, dscores: Floats) -> Floats:
        kernel.apply_curvature(self._groups, self._factors, dscores)
        return dscores

    def diagonal(self) -> Floats:
        diagonal = np.empty((len(self._groups), self._n_scores))
        kernel.curvature_diagonal(self._groups, self._factors, diagonal)
        return diagonal

    def total(self) -> Floats:
        n, k = len(self._groups), self._n_scores
        blocks = np.zeros((k, k, 1, 1))
        self.add_gram(np.ones((n, 1)), slice(None), blocks)
        upper = blocks[:, :, 0, 0]
        return upper + np.triu(upper, 1).T

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        kernel.gram(X, self._groups[rows], self._factors[rows], out)
