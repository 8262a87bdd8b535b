"""Dual ascent for the log-likelihood, with potentials as dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Floats, Indices
from .._core.kernels import chain_ascent
from .._core.rounding import rounding
from .design import ChainDesign
from .pairs import followers
from .sweeps_base import ChainDual, ChainSweeps

# First step size after a warm start. With step size 1, the potentials become the
# current scores.
_FIRST_RATE = 0.5


class EntropySweeps(ChainSweeps):
    """Dual ascent for the log-likelihood, where h is minus the entropy.

    The dual variables are marginals, stored as the potentials that generate them; see
    ``kernels.chain_ascent``.

    Attributes
    ----------
    nodes : ndarray of shape (T, width)
        Marginals mu of labels, initially one for each true label. Rows are padded from
        k to ``width`` entries.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        design, chains = self._design, self._chains
        k, n, width = design.n_labels, design.n_rows, _width(design.n_labels)
        pattern = np.full((k, width), -np.inf)
        pattern[:, :k] = 0.0
        if chains.allowed is not None:
            pattern[:, :k][~chains.allowed] = -np.inf
        first, second = np.nonzero(self._free)
        places = (first * width + second).astype(np.intc)
        ends = np.zeros((0, width))
        if chains.ends is not None:
            ends = np.zeros((2, width))
            ends[:, :k][~chains.ends] = -np.inf
        self._rules = pattern, places, ends
        shapes = (design.n_tokens, width), (n, len(places))
        self._theta, self._theta_pairs = map(np.zeros, shapes)
        self.nodes, self._pairs = map(np.zeros, shapes)
        self._entropies, self._sizes, self._rates = np.zeros((3, n))
        second = followers(design.starts)
        labels = self._targets.astype(np.intp)
        # ``_true_pairs`` contains the indices of the transitions in the true labels
        # that have a parameter. ``_of_pairs`` contains the sequence of each.
        self._true_pairs = self._numbers[labels[second - 1] * k + labels[second]]
        sequences = np.repeat(np.arange(n), np.diff(design.starts))
        self._of_pairs = sequences[second][self._true_pairs >= 0]
        self._true_pairs = self._true_pairs[self._true_pairs >= 0]
        self.reset()

    @staticmethod
    def n_bytes(design: ChainDesign) -> int:
        n_free = int(np.count_nonzero(design.transitions))
        tokens = design.n_tokens * _width(design.n_labels)
        return 16 * (tokens + design.n_rows * n_free)

    def run(self, order: Indices) -> None:
        chain_ascent.sweep(
            *self._features,
            self._w,
            self._transitions,
            *self._rules,
            order,
            *(self._theta, self._theta_pairs, self.nodes, self._pairs),
            *(self._entropies, self._sizes, self._rates, self.gaps),
        )
        self._count(order)

    def round(self, order: Indices, random: np.random.Generator) -> None:
        self.run(random.permutation(order))
        self.run(random.permutation(self._worst()))

    def begin(self, scores: Floats) -> None:
        k = self._design.n_labels
        self._theta[:, :k] = scores[:-k]
        self._theta_pairs[:] = scores[-k:][self._free]
        chain_ascent.begin(
            *self._rules,
            self._design.starts,
            *(self._theta, self._theta_pairs, self.nodes, self._pairs),
            *(self._entropies, self._sizes),
        )
        self._rates[:] = _FIRST_RATE

    def dual(self) -> ChainDual:
        design, starts, k = self._design, self._design.starts, self._design.n_labels
        s = np.repeat(self._weights, np.diff(starts))
        dual = np.zeros((len(s) + k, k))
        np.multiply(self.nodes[:, :k], s[:, np.newaxis], out=dual[:-k])
        dual[np.arange(len(s)), self._targets] -= s
        pairs = self._weights @ self._pairs
        shares = self._weights[self._of_pairs]
        pairs -= np.bincount(self._true_pairs, shares, len(pairs))
        dual[-k:][self._free] = pairs
        # An entropy is the difference of two larger numbers and has their rounding
        # error. A bound on this error is added to the cost.
        lengths = np.diff(design.starts)
        lost = 8.0 * rounding(1.0) * (self._sizes + 8.0 * lengths)
        return ChainDual(dual, lost * (self._rates > 0.0) - self._entropies)

    def _to_truth(self) -> None:
        self.nodes[:] = 0.0
        self.nodes[np.arange(len(self.nodes)), self._targets] = 1.0
        self._pairs[:] = 0.0
        np.add.at(self._pairs, (self._of_pairs, self._true_pairs), 1.0)
        self._entropies[:] = self._sizes[:] = self._rates[:] = 0.0


def _width(k: int) -> int:
    """Return k rounded up to a multiple of four."""
    return -(-k // 4) * 4
