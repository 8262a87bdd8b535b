"""Losses of chains: their common form as a maximum, and their base class.

The loss of a sequence is a maximum over distributions b on its labelings. The score
of b depends on its marginals mu only, for labels and for pairs of adjacent labels:

    loss_i(z) = max over mu of <mu, z> - <truth, z> - h(mu),

where h is minus the entropy of the chain with these marginals, or minus the mean number
of wrong labels. The scores z of shape (T + k, k) have one row for each token and,
below, the k rows of the transitions. There is one weight for each of the n sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from copy import copy
from itertools import pairwise
from typing import NamedTuple, Self, TypeVar

import numpy as np

from .._core.arrays import Array, Floats, Indices, Mask
from .._core.losses._loss import Loss
from .._core.rounding import rounding

#: Labels of shape (T,), of any integer type.
Targets = Array

# Each task of a thread is one block of sequences with about 4,096 tokens.
# docs/constants.md has the figures.
_BLOCK = 4096

Result = TypeVar("Result")


class Chains(NamedTuple):
    """Data of the maximum loss_i(z) = max over b of <b, z> - z(targets_i) - h(b).

    The maximum is over distributions b on the labelings of a sequence. If ``rescaling``
    is None, h is minus the entropy of the chain with the marginals of b; else h is
    minus the mean number of wrong labels. If ``rescaling`` is "slack", the score
    difference of each labeling is multiplied by its number of wrong labels. Transitions
    outside ``allowed``, and first and last labels outside ``ends``, are forbidden; None
    allows all.
    """

    targets: Indices
    allowed: Mask | None
    ends: Mask | None
    rescaling: str | None


class ChainLoss(Loss):
    """Base class of the losses of chains.

    Parameters
    ----------
    starts : ndarray of intp of shape (n + 1,)
        First token of each sequence, followed by T. No sequence is empty.
    allowed : ndarray of bool of shape (k, k), optional
        Which transitions are possible: [i, j] from label i to j. Default all. Scores of
        forbidden transitions are not read.
    ends : ndarray of bool of shape (2, k), optional
        Which labels sequences may begin, and end, with. Default all.
    pool : Executor, optional
        Threads that share the sequences. Results do not depend on the number of
        threads.

    Notes
    -----
    A dual u alone does not determine the marginals of pairs of labels. The conjugate is
    therefore known only at subgradients, and at zero, where it vanishes.
    """

    rescaling: str | None = None

    def __init__(
        self,
        starts: Indices,
        allowed: Mask | None = None,
        ends: Mask | None = None,
        *,
        pool: Executor | None = None,
    ) -> None:
        self.starts = starts
        self.pool = pool
        self.allowed = None if allowed is None or np.all(allowed) else allowed
        self.ends = None if ends is None or np.all(ends) else ends
        lengths = np.diff(starts).astype(np.float64)
        # The number of steps of dynamic programming for all sequences.
        n_steps = lengths @ lengths if self.rescaling == "slack" else lengths.sum()
        self.rows_each = float(n_steps) / max(len(lengths), 1)

    def split(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return emissions of shape (T, k) and transitions of shape (k, k).

        Scores of forbidden labels and transitions are minus infinity.
        """
        return chain_scores(scores, self.starts, self.allowed, self.ends)

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Targets, weights: Floats
    ) -> float:
        value = self.value(scores, targets, weights)
        return float(np.vdot(dual, scores)) - value

    def chains(self, targets: Targets) -> Chains:
        """Return the data of the loss as a maximum over distributions on labelings."""
        return Chains(targets, self.allowed, self.ends, self.rescaling)

    def subgradient(self, scores: Floats, targets: Targets, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return a bound on the rounding error of the value and of <dual, scores>."""
        k = scores.shape[1]
        largest = np.abs(scores[:-k]).max(axis=1)
        largest += float(np.abs(scores[-k:]).max()) + 4.0
        return (
            2.0
            * rounding(1.0)
            * float(weights @ np.add.reduceat(largest, self.starts[:-1]))
        )

    def of_sequences(self, starts: Indices) -> Self:
        """Return a copy of the loss for other sequences."""
        other = copy(self)
        other.starts = starts
        return other


def chain_scores(
    scores: Floats, starts: Indices, allowed: Mask | None, ends: Mask | None
) -> tuple[Floats, Floats]:
    """Return emissions of shape (T, k) and transitions, (k, k), of scores of chains.

    Scores of transitions that are not allowed, and of first and last tokens with labels
    that are not in ``ends``, are minus infinity.
    """
    k = scores.shape[1]
    emissions, transitions = scores[:-k], scores[-k:]
    if allowed is not None:
        transitions = np.where(allowed, transitions, -np.inf)
    if ends is not None:
        emissions = emissions.copy()
        for tokens, possible in zip((starts[:-1], starts[1:] - 1), ends, strict=True):
            emissions[np.ix_(tokens, ~possible)] = -np.inf
    return emissions, transitions


def each_block(
    function: Callable[[Indices, slice], Result], starts: Indices, pool: Executor | None
) -> list[Result]:
    """Return the results of ``function(starts, block)`` for blocks of sequences.

    The blocks do not depend on the number of threads, so neither do sums of the
    results.
    """
    marks = np.searchsorted(starts[:-1], np.arange(0, starts[-1], _BLOCK))
    bounds = np.unique(np.append(marks, len(starts) - 1)).tolist()
    # Without sequences there is one empty block.
    blocks = [slice(*pair) for pair in pairwise(bounds)] or [slice(0, 0)]
    starts_of = [starts[block.start : block.stop + 1] for block in blocks]
    if pool is None or len(blocks) == 1:
        return list(map(function, starts_of, blocks))
    return list(pool.map(function, starts_of, blocks))
