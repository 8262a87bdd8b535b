"""Sweeps of dual coordinate ascent over the sequences of chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .chain_design import ChainDesign
from .kernels import chain, chain_ascent
from .losses._base import Chains, Floats, Rows, chain_scores

# Marginals of so many bytes at most are kept; beyond that, other methods take over.
_MOST_BYTES = 1 << 30


def soft_threshold(v: Floats, threshold: float) -> Floats:
    """Return what is left of v nearer to zero by ``threshold``."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0) if threshold else v


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


class ChainSweeps(ABC):
    """The dual of a regularized loss of chains, and ascent on it.

    Parameters
    ----------
    design : ChainDesign
    chains : Chains
        The loss.
    weights : ndarray of shape (n,)
    strength : float
        Of the quadratic part of the penalty, and of a proximal term.
    threshold : float
        The strength of L1 in units of ``strength``. Models are soft thresholds of the
        parameters that the dual stands for.

    Attributes
    ----------
    nodes : ndarray of shape (T, k)
        The dual variables mu of labels, at first those of the true ones.
    edges : ndarray of shape (m, k, k)
        Those of pairs, ``edges[t]`` of the one that ends at token t, or their sums over
        each sequence.
    values : ndarray of shape (n,)
        -h(mu) of each sequence.
    """

    def __init__(
        self,
        design: ChainDesign,
        chains: Chains,
        weights: Floats,
        strength: float,
        threshold: float = 0.0,
    ) -> None:
        X, k, n = design.X, design.n_labels, design.n_rows
        self._design = design
        self._chains = chains
        self._weights = weights
        self._steps = weights / strength
        self._targets = chains.targets
        last = np.zeros(design.n_features, dtype=np.intc)
        local = np.empty(len(X.indices), dtype=np.intc)
        own = np.empty(len(X.indices), dtype=np.intc)
        own_ptr = np.empty(n + 1, dtype=np.intp)
        arrays = X.indices, X.indptr, design.starts
        chain_ascent.localize(*arrays, last, local, own, own_ptr)
        mask = np.zeros(design.n_features * design.stride, dtype=np.uint8)
        if design.stride:
            mask[design.pairs.places(design.stride)] = 1
        free, ends = design.transitions, np.zeros((2, k))
        if chains.allowed is not None:
            free = free & chains.allowed
        if chains.ends is not None:
            ends[~chains.ends] = -np.inf
        self._arrays = (
            design.data.astype(np.float64, copy=False),
            local,
            X.indptr.astype(np.intp, copy=False),
            design.starts,
            own[: own_ptr[-1]].copy(),
            own_ptr,
            *design.pairs,
            mask,
            design.stride,
            free.astype(np.uint8),
            ends,
            threshold,
        )
        self.nodes = np.empty((design.n_tokens, k))
        self.edges = np.empty((self.n_edges(design), k, k))
        self.values = np.zeros(n)
        self.reset()

    @classmethod
    def n_bytes(cls, design: ChainDesign) -> int:
        """Return what the marginals take."""
        k = design.n_labels
        return 8 * k * (design.n_tokens + cls.n_edges(design) * k)

    @staticmethod
    @abstractmethod
    def n_edges(design: ChainDesign) -> int:
        """Return the number m."""

    def run(self, order: npt.NDArray[np.intp]) -> None:
        """Ascend along each sequence of ``order`` once."""
        rescaling = self._chains.rescaling
        chain_ascent.sweep(
            *self._arrays,
            self._steps,
            None if rescaling is None else self._targets,
            rescaling == "slack",
            order,
            self.nodes,
            self.edges,
            self.values,
            self._w,
            self._transitions,
        )

    def reset(self) -> None:
        """Go back to the true labels, w = 0."""
        self._go_to(self._targets)
        self.recenter(np.zeros(self._design.n_params))

    @abstractmethod
    def begin(self, scores: Floats) -> None:
        """Go to the marginals at scores of shape (T + k, k)."""

    def recenter(self, w: Floats) -> None:
        """Go on from parameters computed anew from the dual, before any threshold."""
        self._w = self._design.pad(w).copy()
        self._transitions = self._design.transition_scores(w)
        if self._chains.allowed is not None:
            self._transitions[~self._chains.allowed] = -np.inf

    def dual(self) -> ChainDual:
        """Return the dual point."""
        k, starts = self._design.n_labels, self._design.starts
        s = np.repeat(self._weights, np.diff(starts))
        dual = np.empty((len(s) + k, k))
        np.multiply(self.nodes, s[:, np.newaxis], out=dual[:-k])
        dual[np.arange(len(s)), self._targets] -= s
        second = _inner(starts)
        places = self._targets[second - 1] * k + self._targets[second]
        rates = s if len(self.edges) == len(s) else self._weights
        dual[-k:] = (rates @ self.edges.reshape(len(rates), k * k)).reshape(k, k)
        dual[-k:] -= np.bincount(places, s[second], k * k).reshape(k, k)
        return ChainDual(dual, -self.values)

    @abstractmethod
    def _go_to(self, labels: Rows) -> None:
        """Go to the marginals of a labeling."""

    def _split(self, scores: Floats) -> tuple[Floats, Floats]:
        chains = self._chains
        return chain_scores(scores, self._design.starts, chains.allowed, chains.ends)


class EntropySweeps(ChainSweeps):
    """Of the log-likelihood, where h is minus the entropy."""

    @staticmethod
    def n_edges(design: ChainDesign) -> int:
        return design.n_tokens

    def begin(self, scores: Floats) -> None:
        starts = self._design.starts
        log_z = np.empty(len(starts) - 1)
        chain.marginals(*self._split(scores), starts, log_z, self.nodes, self.edges)
        chain.entropies(self.nodes, self.edges, starts, self.values)

    def _go_to(self, labels: Rows) -> None:
        self.nodes[:] = 0.0
        self.nodes[np.arange(len(labels)), labels] = 1.0
        self.edges[:] = 0.0
        second = _inner(self._design.starts)
        self.edges[second, labels[second - 1], labels[second]] = 1.0
        self.values[:] = 0.0


class VertexSweeps(ChainSweeps):
    """Of the hinge, where h is minus the mean number of wrong labels.

    With slack rescaling the labelings y of a mixture have their number D of wrong
    labels as a factor: in place of marginals there are means of truth + D (y - truth).
    """

    @staticmethod
    def n_edges(design: ChainDesign) -> int:
        return design.n_rows

    def begin(self, scores: Floats) -> None:
        starts = self._design.starts
        labels = np.empty(len(self.nodes), dtype=np.intp)
        losses = np.empty(len(starts) - 1)
        chain.most_violated_margins(
            *self._split(scores),
            starts,
            self._targets,
            np.ones(len(losses)),
            self._chains.rescaling == "slack",
            labels,
            losses,
        )
        self._go_to(labels)

    def _go_to(self, labels: Rows) -> None:
        starts, k = self._design.starts, self._design.n_labels
        second = _inner(starts)
        sequences = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        n_wrong = np.bincount(sequences, labels != self._targets, len(self.values))
        slack = self._chains.rescaling == "slack"
        rates = n_wrong if slack else np.ones_like(n_wrong)
        self.values[:] = n_wrong
        self.nodes[:] = 0.0
        self.edges[:] = 0.0
        for some, shares in ((labels, rates), (self._targets, 1.0 - rates)):
            s = shares[sequences]
            self.nodes[np.arange(len(some)), some] += s
            places = (sequences[second] * k + some[second - 1]) * k + some[second]
            np.add.at(self.edges.reshape(-1), places, s[second])


def _kind(chains: Chains) -> type[ChainSweeps]:
    return EntropySweeps if chains.rescaling is None else VertexSweeps


def marginals_fit(design: ChainDesign, chains: Chains) -> bool:
    """Whether the marginals of all sequences take an acceptable amount of memory."""
    return _kind(chains).n_bytes(design) <= _MOST_BYTES


def chain_sweeps(
    design: ChainDesign,
    chains: Chains,
    weights: Floats,
    strength: float,
    threshold: float = 0.0,
) -> ChainSweeps:
    """Return the sweeps of a loss of chains."""
    return _kind(chains)(design, chains, weights, strength, threshold)


def _inner(starts: Rows) -> Rows:
    """Return the tokens that have one before them in their sequence."""
    inner = np.ones(starts[-1], dtype=bool)
    inner[starts[:-1]] = False
    return np.flatnonzero(inner)
