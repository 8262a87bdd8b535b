"""The structured hinge of chains (Taskar et al. 2004; Tsochantaridis et al. 2005)."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from .._core.arrays import Floats, Indices, Mask
from .._core.kernels import chain_viterbi
from .loss import ChainLoss, Targets, each_block
from .pairs import pair_counts


class ChainHinge(ChainLoss):
    """Structured hinge with Hamming cost (Teo et al. 2010, eq. 24).

    The loss of a sequence is the maximum over labelings y, with D wrong labels, of D +
    score(y) - score(truth) with margin rescaling, where Gamma = 1 (Taskar et al. 2004),
    or D (1 + score(y) - score(truth)) with slack rescaling, where Gamma = D
    (Tsochantaridis et al. 2005).

    Parameters
    ----------
    starts, allowed, ends, pool
        See ``ChainLoss``.
    rescaling : {"margin", "slack"}

    Notes
    -----
    With slack rescaling, dynamic programming finds the best labeling for each number of
    wrong labels in at most O(length² k²).

    Where several labelings attain the maximum, the subgradient belongs to the labeling
    with the lowest codes, compared from the last token backwards; with slack rescaling,
    to the one with the fewest wrong labels first.
    """

    def __init__(
        self,
        starts: Indices,
        allowed: Mask | None = None,
        ends: Mask | None = None,
        rescaling: str = "margin",
        *,
        pool: Executor | None = None,
    ) -> None:
        self.rescaling = rescaling
        super().__init__(starts, allowed, ends, pool=pool)

    def rounding(self, scores: Floats, weights: Floats) -> float:
        if self.rescaling == "slack":
            weights = weights * np.diff(self.starts)
        return super().rounding(scores, weights)

    def worst(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> tuple[Indices, Floats]:
        """Return the loss-maximizing labelings, (T,), and the losses, (n,)."""
        labels = np.empty(len(targets), dtype=np.intp)
        losses = np.empty(len(weights))
        emissions, transitions = self.split(scores)

        def of_block(starts: Indices, block: slice) -> None:
            chain_viterbi.most_violated_margins(
                emissions,
                transitions,
                starts,
                targets,
                weights[block],
                self.rescaling == "slack",
                labels,
                losses[block],
            )

        each_block(of_block, self.starts, self.pool)
        return labels, losses

    def value(self, scores: Floats, targets: Targets, weights: Floats) -> float:
        return float(weights @ self.worst(scores, targets, weights)[1])

    def evaluate(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> tuple[float, Floats]:
        labels, losses = self.worst(scores, targets, weights)
        k = scores.shape[1]
        dual = np.zeros_like(scores)
        wrong = labels != targets
        rates = weights
        if self.rescaling == "slack":
            rates = weights * np.add.reduceat(wrong, self.starts[:-1], dtype=np.intp)
        rows = np.flatnonzero(wrong)
        s = np.repeat(rates, np.diff(self.starts))
        dual[rows, labels[rows]] = s[rows]
        dual[rows, targets[rows]] = -s[rows]
        dual[-k:] = pair_counts(labels, self.starts, k, s)
        dual[-k:] -= pair_counts(targets, self.starts, k, s)
        return float(weights @ losses), dual
