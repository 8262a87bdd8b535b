"""Losses of chains: the negative log-likelihood of a linear-chain CRF, and the hinge.

A loss is a maximum over mixtures b of labelings of a sequence, known by the marginals
mu of labels and of pairs of adjacent labels:

    loss_i(z) = max over mu of <mu, z> - <truth, z> - h(mu),

where h is minus the entropy of the chain with these marginals, or minus the mean number
of wrong labels. Scores z of shape (T + k, k) hold those of all tokens and below them
the transitions; the weights are those of the n sequences.
"""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..kernels import chain
from ._base import (
    EPS,
    Chains,
    Curvature,
    Floats,
    Mask,
    Rows,
    chain_scores,
    each_block,
)
from ._oracle import Oracle

#: Labels of shape (T,), of any integer type.
Targets = npt.NDArray[Any]

# Sums over tokens are off by at most this share of their terms, or nearly.
_ROUNDING = 8.0 * EPS


class ChainLoss(Oracle):
    """What the losses of chains share.

    Parameters
    ----------
    starts : ndarray of intp of shape (n + 1,)
        First token of each sequence, and T. No sequence is empty.
    allowed : ndarray of bool of shape (k, k), optional
        Which transitions are possible: [i, j] from label i to j. Default all. The
        scores of the others are not read.
    ends : ndarray of bool of shape (2, k), optional
        Which labels sequences may begin, and end, with. Default all.
    pool : Executor, optional
        Threads that share the sequences. Results do not depend on it.

    Notes
    -----
    Marginals of pairs are part of what a dual stands for, so that the conjugate is
    known at subgradients, and at zero, where it vanishes.
    """

    def __init__(
        self,
        starts: Rows,
        allowed: Mask | None = None,
        ends: Mask | None = None,
        *,
        pool: Executor | None = None,
    ) -> None:
        self.starts = starts
        self.pool = pool
        self.allowed = None if allowed is None or np.all(allowed) else allowed
        self.ends = None if ends is None or np.all(ends) else ends

    def split(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return emissions of shape (T, k) and transitions of shape (k, k).

        What is forbidden is minus infinity.
        """
        return chain_scores(scores, self.starts, self.allowed, self.ends)

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Targets, weights: Floats
    ) -> float:
        value = self.value(scores, targets, weights)
        return float(np.vdot(dual, scores)) - value

    @abstractmethod
    def chains(self, targets: Targets) -> Chains:
        """Return the loss as a maximum over mixtures of labelings of sequences."""

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return by how much the value and products with a dual may be off."""
        k = scores.shape[1]
        largest = np.abs(scores[:-k]).max(axis=1)
        largest += float(np.abs(scores[-k:]).max()) + 4.0
        return _ROUNDING * float(weights @ np.add.reduceat(largest, self.starts[:-1]))

    def of_sequences(self, starts: Rows) -> Self:
        """Return the same loss for other sequences."""
        other = copy(self)
        other.starts = starts
        return other


class ChainLogLoss(ChainLoss):
    """Negative log-likelihood of linear-chain CRFs, ln Z - score (Yu 2009, 6.3-6.5)."""

    analytic = True

    def chains(self, targets: Targets) -> Chains:
        return Chains(targets, self.allowed, self.ends, None)

    def value(self, scores: Floats, targets: Targets, weights: Floats) -> float:
        emissions, transitions = self.split(scores)

        def of_block(starts: Rows, block: slice) -> float:
            own = starts, targets, weights[block]
            return chain.log_loss(emissions, transitions, *own, None, None)

        return sum(each_block(of_block, self.starts, self.pool))

    def subgradient(self, scores: Floats, targets: Targets, weights: Floats) -> Floats:
        """Return the gradient u: weighted marginals less the indicators of targets."""
        return self.evaluate(scores, targets, weights)[1]

    def evaluate(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> tuple[float, Floats]:
        k = scores.shape[1]
        dual = np.empty_like(scores)
        emissions, transitions = self.split(scores)

        def of_block(starts: Rows, block: slice) -> tuple[float, Floats]:
            pairs = np.zeros((k, k))
            own = starts, targets, weights[block]
            value = chain.log_loss(emissions, transitions, *own, dual[:-k], pairs)
            return value, pairs

        values, pairs = zip(*each_block(of_block, self.starts, self.pool), strict=True)
        dual[-k:] = sum(pairs)
        return sum(values), dual

    def curvature(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> ChainCurvature:
        return ChainCurvature(self, scores, weights)


class ChainCurvature(Curvature):
    """Second derivatives of the negative log-likelihood: covariances of scores.

    They couple the tokens of a sequence, so that only products are offered.
    """

    def __init__(self, loss: ChainLogLoss, scores: Floats, weights: Floats) -> None:
        self._loss = loss
        self._scores = scores
        self._weights = weights

    def apply(self, dscores: Floats) -> Floats:
        k = dscores.shape[1]
        change = np.empty_like(dscores)
        change[-k:] = 0.0
        chain.tangent(
            *self._loss.split(self._scores),
            self._loss.starts,
            dscores[:-k],
            dscores[-k:],
            self._weights,
            change[:-k],
            change[-k:],
        )
        return change

    def take(self, rows: Rows) -> Curvature:
        raise TypeError("Second derivatives of chains do not go by rows.")

    def diagonal(self) -> Floats:
        raise TypeError("Second derivatives of chains do not go by rows.")

    def total(self) -> Floats:
        raise TypeError("Second derivatives of chains do not go by rows.")


class ChainHinge(ChainLoss):
    """Structured hinge with Hamming cost (Teo et al. 2010, eq. 24).

    The loss of a sequence is the maximum over labelings y, with D wrong labels, of D +
    score(y) - score(truth) with margin rescaling, where Gamma = 1 (Taskar et al. 2004),
    or D (1 + score(y) - score(truth)) with slack rescaling, where Gamma = D
    (Tsochantaridis et al. 2005).

    Parameters
    ----------
    starts, allowed, ends, pool
        As of all losses of chains.
    rescaling : {"margin", "slack"}

    Notes
    -----
    With slack rescaling the best labelings with each number of wrong labels are found,
    by dynamic programming in O(length² k²) at most.

    Where several labelings attain the maximum, the subgradient is that of the lowest
    one from the last token backwards, with slack rescaling of those with the fewest
    wrong labels.
    """

    def __init__(
        self,
        starts: Rows,
        allowed: Mask | None = None,
        ends: Mask | None = None,
        rescaling: str = "margin",
        *,
        pool: Executor | None = None,
    ) -> None:
        super().__init__(starts, allowed, ends, pool=pool)
        self.rescaling = rescaling

    def chains(self, targets: Targets) -> Chains:
        return Chains(targets, self.allowed, self.ends, self.rescaling)

    def rounding(self, scores: Floats, weights: Floats) -> float:
        if self.rescaling == "slack":
            weights = weights * np.diff(self.starts)
        return super().rounding(scores, weights)

    def worst(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the labelings of the maxima, (T,), and the losses, (n,)."""
        labels = np.empty(len(targets), dtype=np.intp)
        losses = np.empty(len(weights))
        emissions, transitions = self.split(scores)

        def of_block(starts: Rows, block: slice) -> None:
            chain.most_violated_margins(
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

    def subgradient(self, scores: Floats, targets: Targets, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]

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
        s = np.repeat(rates, np.diff(self.starts))[rows]
        dual[rows, labels[rows]] = s
        dual[rows, targets[rows]] = -s
        dual[-k:] = pair_counts(labels, self.starts, rates, k)
        dual[-k:] -= pair_counts(targets, self.starts, rates, k)
        return float(weights @ losses), dual


def pair_counts(labels: Rows, starts: Rows, weights: Floats, k: int) -> Floats:
    """Return how often a label follows another, by weights of sequences, (k, k)."""
    s = np.repeat(weights, np.diff(starts))
    inner = np.ones(len(labels), dtype=bool)
    inner[starts[:-1]] = False
    second = np.flatnonzero(inner)
    places = labels[second - 1] * k + labels[second]
    counts = np.bincount(places, s[second], k * k).astype(np.float64)
    return counts.reshape(k, k)
