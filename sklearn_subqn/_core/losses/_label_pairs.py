"""Multilabel hinge with a cost of each pair of labels, and its smooth envelope.

Targets and scores have shape (n, l); targets are 1 for the relevant labels of a row and
0 for the others. Dual variables belong to the pairs of a relevant and an irrelevant
label: those of all rows, one after the other, have shape (m,).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import label_pairs as kernel
from ._base import (
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
)
from ._leveling import FlowLoss

# Pairs this near to the edge of the support, in units of dual variables, lie on it.
_EDGE = 1e-9

# Kinks on a line are collected in pieces of so many.
_N_KINKS = 1 << 16

# Matrices of second derivatives are formed for so many numbers at once.
_MATRIX_NUMBERS = 1 << 20


class LabelPairHinge(FlowLoss):
    """Multilabel hinge with costs of pairs of labels (Yu 2009, eq. 3.55).

    The loss of a row is the maximum of 0 and of costs[h, j] + z_j - z_h over its
    relevant labels h and irrelevant labels j. Rows without either kind have no loss.
    Costs that are sums of one for h and one for j give ``MultilabelHinge`` without a
    threshold, which never forms the pairs.

    Parameters
    ----------
    costs : ndarray of shape (l, l)
        Non-negative; what is on the diagonal does not matter.
    """

    smooth = False
    has_envelope = True
    has_margin = True

    def __init__(self, costs: Floats) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return kernel.value(scores, targets, self.costs, weights)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the subgradient (3.57) of the first worst pair, or zero if it is."""
        return self.argsup(scores, np.zeros_like(scores), targets, weights)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the oracle's choice below (3.57): the steepest of the worst pairs."""
        u = np.empty_like(scores)
        kernel.subgradient(
            scores, dscores, targets, self.costs, weights, TIE_TOLERANCE, u
        )
        return u

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        flags = np.empty(len(scores), dtype=np.uint8)
        kernel.kinks(scores, targets, self.costs, TIE_TOLERANCE, flags)
        return np.flatnonzero(flags)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with its jumps at the kinks of (3.58), by Alg. 3.4."""
        room = _N_KINKS + targets.shape[1] ** 2 // 4
        kinks, jumps = np.empty((2, room))
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

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -max <costs, flows> over the flows that make up u.

        It is finite where u_i = s_i (p - q) for p >= 0 on irrelevant and q >= 0 on
        relevant labels with equal sums of at most one. The flows from q to p are a
        transport problem for each row.
        """
        return -self._transport(dual, targets)[0]

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return those of the largest cost that make up a dual, of shape (m,).

        Rows of no weight have zeros.
        """
        _, flows = self._transport(dual, targets)
        scale = np.repeat(weights, np.diff(starts_of_pairs(targets)))
        b = np.zeros_like(flows)
        np.divide(flows, scale, out=b, where=scale > 0.0)
        return np.clip(b, 0.0, 1.0, out=b)

    def _transport(self, dual: Floats, targets: Any) -> tuple[float, Floats]:
        starts = starts_of_pairs(targets)
        flows = np.empty(starts[-1])
        total = kernel.transport(
            np.ascontiguousarray(dual), targets, self.costs, starts, flows
        )
        return total, flows

    def neutral_variables(self, targets: Any) -> Floats:
        """Return dual variables equal to one another, and to the rest, in each row."""
        sizes = np.diff(starts_of_pairs(targets))
        return np.repeat(1.0 / (sizes + 1.0), sizes)

    def envelope(self, center: Floats, width: float) -> LabelPairEnvelope:
        """Return the smooth envelope around dual variables of shape (m,)."""
        return LabelPairEnvelope(self, center, width)


class LabelPairEnvelope(FlowLoss):
    """Envelope of the hinge of pairs around dual variables.

    The loss of a row is the maximum of <b, m> over b >= 0 of sum at most one, with the
    violations m of its pairs. The envelope subtracts ``width / 2 * ||b - center||²``
    inside the maximum, the rests to one included, as ``MulticlassEnvelope``.

    Parameters
    ----------
    loss : LabelPairHinge
    center : ndarray of shape (m,)
    width : float
        Positive.
    """

    smooth = True

    def __init__(self, loss: LabelPairHinge, center: Floats, width: float) -> None:
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
            scores,
            self.center,
            starts_of_pairs(targets),
            targets,
            self._loss.costs,
            weights,
            self.width,
            u,
        )
        return value, u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Raise: u does not tell which of its flows maximize."""
        raise TypeError(
            "The envelope of the hinge of pairs has no conjugate of scores."
        )

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> LabelPairCurvature:
        """Return generalized second derivatives.

        Pairs at the edge of the support count as inside, as for ``HingeEnvelope``.
        """
        starts = starts_of_pairs(targets)
        pairs = np.empty((starts[-1], 2), dtype=np.intc)
        sizes = np.empty((len(scores), 2), dtype=np.intp)
        count = kernel.support(
            scores,
            self.center,
            starts,
            targets,
            self._loss.costs,
            self.width,
            _EDGE,
            pairs,
            sizes,
        )
        factors = weights / self.width
        return LabelPairCurvature(pairs[:count].copy(), sizes, factors, scores.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        starts = starts_of_pairs(targets)

        def at(step: float) -> tuple[float, float]:
            return kernel.envelope_slope(
                scores,
                dscores,
                self.center,
                starts,
                targets,
                self._loss.costs,
                weights,
                self.width,
                step,
            )

        return at


class LabelPairCurvature(Curvature):
    """Second derivatives, a k x k matrix a row: factor Dᵀ (I - 11ᵀ / size) D.

    D maps a row of scores to the differences z_j - z_h of its active pairs; ``size`` is
    their number, and one more where the rest is active.

    Parameters
    ----------
    pairs : ndarray of shape (a, 2)
        Labels h and j of the active pairs, row after row.
    sizes : ndarray of shape (n, 2)
        Number of active pairs of each row, and ``size``.
    factors : ndarray of shape (n,)
    n_scores : int
        Number k of scores.
    """

    def __init__(
        self,
        pairs: npt.NDArray[np.intc],
        sizes: npt.NDArray[np.intp],
        factors: Floats,
        n_scores: int,
    ) -> None:
        self._pairs = pairs
        self._sizes = sizes
        self._factors = factors
        self._n_scores = n_scores

    def rows(self) -> Rows:
        return np.flatnonzero((self._sizes[:, 1] > 1) & (self._factors > 0.0))

    def take(self, rows: Rows) -> LabelPairCurvature:
        ends = np.cumsum(self._sizes[:, 0])
        sizes = self._sizes[rows]
        # The places of the pairs of these rows, one after the other.
        shifts = ends[rows] - np.cumsum(sizes[:, 0])
        kept = np.arange(sizes[:, 0].sum()) + np.repeat(shifts, sizes[:, 0])
        return LabelPairCurvature(
            self._pairs[kept], sizes, self._factors[rows], self._n_scores
        )

    def apply(self, dscores: Floats) -> Floats:
        n, k = dscores.shape
        owners = self._owners()
        relevant, irrelevant = self._pairs.T + k * owners
        v = dscores.ravel()
        change = v[irrelevant] - v[relevant]
        change -= (np.bincount(owners, change, n) / self._divisors())[owners]
        change *= self._factors[owners]
        product = np.zeros(n * k)
        product += np.bincount(irrelevant, change, n * k)
        product -= np.bincount(relevant, change, n * k)
        return product.reshape(n, k)

    def diagonal(self) -> Floats:
        n, k = len(self._sizes), self._n_scores
        diagonal = np.empty((n, k))
        for rows, matrices in self._blocks(slice(0, n)):
            diagonal[rows] = np.einsum("ijj->ij", matrices)
        return diagonal

    def total(self) -> Floats:
        total = np.zeros((self._n_scores, self._n_scores))
        for _, matrices in self._blocks(slice(0, len(self._sizes))):
            total += matrices.sum(axis=0)
        return total

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        first = rows.indices(len(self._sizes))[0]
        for block, matrices in self._blocks(rows):
            x = X[block.start - first : block.stop - first]
            for j in range(self._n_scores):
                for m in range(j, self._n_scores):
                    out[j, m] += (matrices[:, j, m, np.newaxis] * x).T @ x

    def _owners(self) -> Rows:
        """Return the row of each active pair."""
        return np.repeat(np.arange(len(self._sizes)), self._sizes[:, 0])

    def _divisors(self) -> Floats:
        """Return ``size`` of each row, one where nothing is active."""
        return np.maximum(self._sizes[:, 1], 1).astype(np.float64)

    def _blocks(self, rows: slice) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of some rows and their matrices, of shape (m, k, k)."""
        k = self._n_scores
        start, stop, _ = rows.indices(len(self._sizes))
        step = max(1, _MATRIX_NUMBERS // (k * k))
        for first in range(start, stop, step):
            block = slice(first, min(first + step, stop))
            some = self.take(np.arange(block.start, block.stop))
            owners, n = some._owners(), block.stop - block.start
            h, j = some._pairs.T
            matrices = np.zeros((n, k, k))
            sums = np.zeros((n, k))
            np.add.at(sums, (owners, j), 1.0)
            np.add.at(sums, (owners, h), -1.0)
            for a, b, sign in ((h, h, 1.0), (j, j, 1.0), (h, j, -1.0), (j, h, -1.0)):
                np.add.at(matrices, (owners, a, b), sign)
            means = sums / some._divisors()[:, np.newaxis]
            matrices -= means[:, :, np.newaxis] * sums[:, np.newaxis]
            matrices *= some._factors[:, np.newaxis, np.newaxis]
            yield block, matrices


def starts_of_pairs(targets: Any) -> npt.NDArray[np.intp]:
    """Return where the pairs of each row begin, and where the last end: (n + 1,)."""
    relevant = targets.sum(axis=1, dtype=np.intp)
    starts = np.zeros(len(targets) + 1, dtype=np.intp)
    np.cumsum(relevant * (targets.shape[1] - relevant), out=starts[1:])
    return starts
