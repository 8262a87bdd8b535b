"""What follows from the scores of chains: best labelings, probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .chain_design import ChainDesign
from .kernels import chain
from .losses._base import Floats, Mask, chain_scores


class Lattice:
    """All labelings of sequences, with their scores.

    Parameters
    ----------
    design : ChainDesign
        Of n sequences, T tokens and k labels.
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
        emissions, transitions = chain_scores(design.forward(w), starts, allowed, ends)
        self._scores = emissions, transitions, starts
        self._n, self._shape = design.n_rows, emissions.shape

    def best(self) -> npt.NDArray[np.intp]:
        """Return the labels of the best labelings, of shape (T,).

        Raises
        ------
        ValueError
            If a sequence has no allowed labeling, here and below.
        """
        labels = np.empty(self._shape[0], dtype=np.intp)
        chain.viterbi(*self._scores, labels, np.empty(self._n))
        return labels

    def n_best(self, n: int) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the n best labelings, (n, T), and their scores, (n_sequences, n).

        Where a sequence has less, scores are minus infinity.
        """
        labels = np.empty((n, self._shape[0]), dtype=np.intp)
        scores = np.empty((self._n, n))
        chain.n_best(*self._scores, labels, scores)
        return labels, scores

    def log_partition(self) -> Floats:
        """Return ln of the sum of exp(score) over the labelings, (n_sequences,)."""
        log_z = np.empty(self._n)
        chain.log_partition(*self._scores, log_z)
        return log_z

    def marginals(self) -> Floats:
        """Return the probabilities of labels, of shape (T, k)."""
        nodes = np.empty(self._shape)
        chain.marginals(*self._scores, np.empty(self._n), nodes, None)
        return nodes

    def edge_marginals(self) -> Floats:
        """Return the probabilities of pairs of adjacent labels, of shape (T, k, k).

        Entry [t, i, j] is of label i at token t - 1 and j at t, zero for first tokens.
        """
        n_tokens, k = self._shape
        nodes, edges = np.empty(self._shape), np.zeros((n_tokens, k, k))
        chain.marginals(*self._scores, np.empty(self._n), nodes, edges)
        return edges
