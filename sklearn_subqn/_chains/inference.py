"""Inference in chains: best labelings, log partition functions and marginals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.arrays import Floats, Indices, Mask
from .._core.kernels import chain, chain_pairs, chain_viterbi
from .design import ChainDesign
from .loss import chain_scores, each_block
from .pairs import Pairs


class Lattice:
    """The scores of all labelings of sequences, as a lattice of tokens and labels.

    Parameters
    ----------
    design : ChainDesign
        Design of n sequences, T tokens and k labels.
    w : ndarray of shape (q,)
        Parameters.
    allowed : ndarray of bool of shape (k, k)
        Which transitions are possible: [i, j] from label i to j.
    ends : ndarray of bool of shape (2, k)
        Which labels sequences may begin, and end, with.
    """

    def __init__(
        self, design: ChainDesign, w: Floats, allowed: Mask, ends: Mask
    ) -> None:
        starts = design.starts
        self._scores = chain_scores(design.forward(w), starts, allowed, ends)
        self._starts, self._pool = starts, design.pool
        self._n, self._shape = design.n_rows, self._scores[0].shape

    def _each(self, function: Callable[[Indices, slice], None]) -> None:
        each_block(function, self._starts, self._pool)

    def best(self) -> Indices:
        """Return the labels of the best labelings, of shape (T,).

        Raises
        ------
        ValueError
            If a sequence has no allowed labeling, as in all other methods.
        """
        labels = np.empty(self._shape[0], dtype=np.intp)
        scores = np.empty(self._n)
        self._each(
            lambda starts, own: chain_viterbi.viterbi(
                *self._scores, starts, labels, scores[own]
            )
        )
        return labels

    def n_best(self, n: int) -> tuple[Indices, Floats]:
        """Return the n best labelings, (n, T), and their scores, (n_sequences, n).

        Scores are minus infinity where a sequence has fewer than n labelings.
        """
        labels = np.empty((n, self._shape[0]), dtype=np.intp)
        scores = np.empty((self._n, n))
        self._each(
            lambda starts, own: chain_viterbi.n_best(
                *self._scores, starts, labels, scores[own]
            )
        )
        return labels, scores

    def log_partition(self) -> Floats:
        """Return ln of the sum of exp(score) over the labelings, (n_sequences,)."""
        log_z = np.empty(self._n)
        self._each(
            lambda starts, own: chain.log_partition(*self._scores, starts, log_z[own])
        )
        return log_z

    def marginals(self, edges: Floats | None = None) -> Floats:
        """Return label marginals, (T, k); pairwise marginals are put in ``edges``."""
        nodes, log_z = np.empty(self._shape), np.empty(self._n)
        self._each(
            lambda starts, own: chain.marginals(
                *self._scores, starts, log_z[own], nodes, edges
            )
        )
        return nodes

    def edge_marginals(self) -> Floats:
        """Return the probabilities of pairs of adjacent labels, of shape (T, k, k).

        Entry [t, i, j] is the probability of label i at token t - 1 and label j at
        token t; zero where t is the first token of a sequence.
        """
        n_tokens, k = self._shape
        edges = np.zeros((n_tokens, k, k))
        self.marginals(edges)
        return edges


def best_of_one(
    rows: tuple[Floats, Indices, Indices],
    pairs: Pairs,
    transitions: Mask,
    w: Floats,
    allowed: Mask,
    ends: Mask,
) -> Indices:
    """Return the labels of the best labeling of one sequence, of shape (T,).

    Parameters
    ----------
    rows : tuple of ndarray
        Data, indices and indptr of its tokens in CSR format; data is empty where all
        entries are one.
    pairs : Pairs
    transitions : ndarray of bool of shape (k, k)
        Which transitions have a parameter.
    w : ndarray of shape (q,)
    allowed, ends : ndarray of bool
        See ``Lattice``.

    Raises
    ------
    ValueError
        If there is no allowed labeling.
    """
    n, k, n_pairs = len(rows[-1]) - 1, len(transitions), len(pairs.labels)
    scores = np.zeros((n + k, k))
    chain_pairs.forward(*rows, *pairs, 0, w[:n_pairs], 0, n, scores[:n])
    scores[n:][transitions] = w[n_pairs:]
    starts = np.array([0, n], dtype=np.intp)
    masked = chain_scores(scores, starts, allowed, None if ends.all() else ends)
    labels = np.empty(n, dtype=np.intp)
    chain_viterbi.viterbi(*masked, starts, labels, np.empty(1))
    return labels
