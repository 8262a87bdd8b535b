"""Sweeps of dual coordinate ascent over the sequences of chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .chain_design import ChainDesign
from .kernels import chain_ascent
from .losses._base import Floats, Mask, Rows


class ChainDual(NamedTuple):
    """A dual point: a subgradient u of the risk with its cost.

    Attributes
    ----------
    dual : ndarray of shape (T + k, k)
        u = weights * (mu - truth), transitions summed over sequences.
    costs : ndarray of shape (n,)
        Of each sequence h(mu); the cut is R(z) >= <u, z> - <weights, costs>.
    """

    dual: Floats
    costs: Floats


class ChainSweeps:
    """The dual of an L2-regularized log-likelihood of chains, and ascent on it.

    Parameters
    ----------
    design : ChainDesign
    targets : ndarray of intp of shape (T,)
    weights : ndarray of shape (n,)
    alpha : float
    allowed : ndarray of bool of shape (k, k) or None
        Possible transitions, default all.

    Attributes
    ----------
    nodes, edges : ndarray of shape (T, k), (T, k, k)
        The dual variables mu, at first those of the true labels.
    losses, gaps : ndarray of shape (n,)
        Losses at the last visits, and by how much these exceeded their parts of the
        dual; infinity before.
    n_trials : int
        Evaluations of entropies so far.
    """

    def __init__(
        self,
        design: ChainDesign,
        targets: Rows,
        weights: Floats,
        alpha: float,
        allowed: Mask | None,
    ) -> None:
        X, k, n = design.X, design.n_labels, design.n_rows
        self._design = design
        self._weights = weights
        self._alpha = alpha
        self._targets = targets
        self._forbidden = None if allowed is None else ~allowed
        last = np.zeros(design.n_features, dtype=np.intc)
        local = np.empty(len(X.indices), dtype=np.intc)
        own = np.empty(len(X.indices), dtype=np.intc)
        own_ptr = np.empty(n + 1, dtype=np.intp)
        arrays = X.indices, X.indptr, design.starts
        chain_ascent.localize(*arrays, last, local, own, own_ptr)
        own = own[: own_ptr[-1]].copy()
        self._features = (
            design.data.astype(np.float64, copy=False),
            local,
            X.indptr.astype(np.intp, copy=False),
            design.starts,
            own,
            own_ptr,
        )
        mask = np.zeros(design.n_features * design.stride, dtype=np.uint8)
        if design.stride:
            mask[design.pairs.places(design.stride)] = 1
        free = design.transitions if allowed is None else design.transitions & allowed
        self._pairs = *design.pairs, mask, design.stride, free.astype(np.uint8)
        self.nodes = np.zeros((design.n_tokens, k))
        self.nodes[np.arange(design.n_tokens), targets] = 1.0
        self.edges = np.zeros((design.n_tokens, k, k))
        second = _inner(design.starts)
        self.edges[second, targets[second - 1], targets[second]] = 1.0
        self.entropies = np.zeros(n)
        self.losses = np.full(n, np.inf)
        self.gaps = np.full(n, np.inf)
        self.n_trials = 0
        self._w = design.pad(np.zeros(design.n_params))
        self._transitions = self._masked(np.zeros((k, k)))

    def _masked(self, transitions: Floats) -> Floats:
        if self._forbidden is not None:
            transitions[self._forbidden] = -np.inf
        return transitions

    def run(self, order: npt.NDArray[np.intp]) -> None:
        """Ascend along each sequence of ``order`` once."""
        self.n_trials += chain_ascent.sweep(
            *self._features,
            *self._pairs,
            self._targets,
            self._weights / self._alpha,
            order,
            self.nodes,
            self.edges,
            self.entropies,
            self.losses,
            self.gaps,
            self._w,
            self._transitions,
        )

    def recenter(self, w: Floats) -> None:
        """Go on from parameters of shape (q,) computed anew from the dual."""
        self._w = self._design.pad(w)
        self._transitions = self._masked(self._design.transition_scores(w))

    def dual(self) -> ChainDual:
        """Return the dual point."""
        k, starts = self._design.n_labels, self._design.starts
        s = np.repeat(self._weights, np.diff(starts))
        dual = np.empty((len(s) + k, k))
        np.multiply(self.nodes, s[:, np.newaxis], out=dual[:-k])
        dual[np.arange(len(s)), self._targets] -= s
        sums = s @ self.edges.reshape(len(s), k * k)
        second = _inner(starts)
        places = self._targets[second - 1] * k + self._targets[second]
        sums -= np.bincount(places, s[second], k * k)
        dual[-k:] = sums.reshape(k, k)
        return ChainDual(dual, -self.entropies)


def _inner(starts: Rows) -> Rows:
    """Return the tokens that have one before them in their sequence."""
    inner = np.ones(starts[-1], dtype=bool)
    inner[starts[:-1]] = False
    return np.flatnonzero(inner)
