"""What the losses of chains share.

A loss is a maximum over mixtures b of labelings of a sequence, known by the marginals
mu of labels and of pairs of adjacent labels:

    loss_i(z) = max over mu of <mu, z> - <truth, z> - h(mu),

where h is minus the entropy of the chain with these marginals, or minus the mean number
of wrong labels. Scores z of shape (T + k, k) hold those of all tokens and below them
the transitions; the weights are those of the n sequences.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from .._core.losses._base import Floats, Mask, Rows
from .._core.losses._loss import Loss
from .._core.rounding import rounding

#: Labels of shape (T,), of any integer type.
Targets = npt.NDArray[Any]

# Threads share sequences by blocks of 4,096 tokens. docs/constants.md has the figures.
_BLOCK = 4096

Result = TypeVar("Result")


class Chains(NamedTuple):
    """loss_i(z) = max over mixtures b of labelings of <b, z> - z(targets_i) - h(b).

    Of sequences, with h minus the entropy of the chain that has the marginals of b or,
    unless ``rescaling`` is None, minus the mean number of wrong labels. The latter is
    also a factor on each labeling's z where ``rescaling`` is "slack". Transitions that
    are not ``allowed`` are forbidden, and first and last labels that are not in
    ``ends``, where these are given.
    """

    targets: npt.NDArray[np.intp]
    allowed: Mask | None
    ends: Mask | None
    rescaling: str | None


class ChainLoss(Loss):
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
        self.rows_each = self._n_steps() / max(len(starts) - 1, 1)

    def _n_steps(self) -> float:
        """Return in how many steps the sequences are gone through."""
        return float(self.starts[-1])

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
        return (
            2.0
            * rounding(1.0)
            * float(weights @ np.add.reduceat(largest, self.starts[:-1]))
        )

    def of_sequences(self, starts: Rows) -> Self:
        """Return the same loss for other sequences."""
        other = copy(self)
        other.starts = starts
        return other


def chain_scores(
    scores: Floats, starts: Rows, allowed: Mask | None, ends: Mask | None
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
    function: Callable[[Rows, slice], Result], starts: Rows, pool: Executor | None
) -> list[Result]:
    """Return results of a function of the starts of a block's sequences, and which.

    Blocks are in order, and the same whatever threads there are, so that sums are.
    """
    marks = np.searchsorted(starts[:-1], np.arange(0, starts[-1], _BLOCK))
    bounds = np.unique(np.append(marks, len(starts) - 1)).tolist()
    # Without sequences there is one block, of none.
    blocks = [slice(*pair) for pair in pairwise(bounds)] or [slice(0, 0)]
    starts_of = [starts[block.start : block.stop + 1] for block in blocks]
    if pool is None or len(blocks) == 1:
        return list(map(function, starts_of, blocks))
    return list(pool.map(function, starts_of, blocks))
