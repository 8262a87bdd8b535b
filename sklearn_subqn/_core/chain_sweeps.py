"""Sweeps of dual coordinate ascent over the sequences of chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .chain_design import ChainDesign
from .kernels import chain, chain_ascent, chain_labelings
from .losses._base import EPS, Chains, Floats, Rows, chain_scores

# Dual variables take so many bytes at most; beyond that, other methods take over.
_MOST_BYTES = 1 << 30

# Epochs after the first of a round, or of those over labelings kept, go over the
# sequences that hold this share of the gap.
_SHARE = 0.9

# Epochs over labelings kept that follow one with inference.
_KEPT_EPOCHS = 5

# The share of the way towards the scores to try first after a warm start.
_FIRST_RATE = 0.5

# Entropies are off by at most this share of their terms, or nearly.
_ROUNDING = 32.0 * EPS


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
    w : ndarray of shape (q,)
        The parameters that the dual stands for, before any threshold.
    gaps : ndarray of shape (n,)
        About how far sequences were from their best when they were visited last.
    """

    def __init__(
        self,
        design: ChainDesign,
        chains: Chains,
        weights: Floats,
        strength: float,
        threshold: float = 0.0,
    ) -> None:
        X, n = design.X, design.n_rows
        self._design = design
        self._chains = chains
        self._weights = weights
        self._steps = weights / strength
        self._targets = chains.targets
        self.gaps = np.zeros(n)
        self._n_entries = np.diff(X.indptr[design.starts])
        last = np.zeros(design.n_features, dtype=np.intc)
        local = np.empty(len(X.indices), dtype=np.intc)
        own = np.empty(len(X.indices), dtype=np.intc)
        own_ptr = np.empty(n + 1, dtype=np.intp)
        arrays = X.indices, X.indptr, design.starts
        chain_ascent.localize(*arrays, last, local, own, own_ptr)
        free = design.transitions
        if chains.allowed is not None:
            free = free & chains.allowed
        self._free = free
        self._features = (
            design.data.astype(np.float64, copy=False),
            local,
            X.indptr.astype(np.intp, copy=False),
            design.starts,
            own[: own_ptr[-1]].copy(),
            own_ptr,
            *design.pairs,
            _mask(design),
            design.stride,
            threshold,
            self._steps,
            self._targets,
        )

    @staticmethod
    @abstractmethod
    def n_bytes(design: ChainDesign) -> int:
        """Return what the dual variables take at first."""

    @property
    def fits(self) -> bool:
        """Whether the dual variables take an acceptable amount of memory by now."""
        return True

    @abstractmethod
    def run(self, order: Rows) -> None:
        """Ascend along each sequence of ``order`` once.

        With inference, which takes a product with its features, and one with their
        transpose.
        """

    @abstractmethod
    def round(self, order: Rows, random: np.random.Generator) -> None:
        """Ascend along the sequences of ``order`` for some epochs, in random order."""

    def reset(self) -> None:
        """Go back to the true labels, w = 0."""
        self._to_truth()
        self.recenter(np.zeros(self._design.n_params))

    @abstractmethod
    def begin(self, scores: Floats) -> None:
        """Go to the marginals at scores of shape (T + k, k)."""

    def recenter(self, w: Floats) -> None:
        """Go on from parameters computed anew from the dual, before any threshold."""
        self._w = self._design.pad(w).copy()
        self._transitions = w[self._design.n_pairs :][
            self._free[self._design.transitions]
        ]

    @property
    def w(self) -> Floats:
        design = self._design
        w = np.zeros(design.n_params)
        w[: design.n_pairs] = design.unpad(self._w)[: design.n_pairs]
        w[design.n_pairs :][self._free[design.transitions]] = self._transitions
        return w

    @abstractmethod
    def dual(self) -> ChainDual:
        """Return the dual point."""

    @abstractmethod
    def _to_truth(self) -> None:
        """Go to the marginals of the true labels."""

    def _worst(self) -> Rows:
        """Return the sequences that hold most of the gap by their last visits."""
        gaps = self._weights * self.gaps
        worst = np.argsort(-gaps)
        n = np.searchsorted(np.cumsum(gaps[worst]), _SHARE * gaps.sum()) + 1
        return worst[:n]

    def _count(self, order: Rows) -> None:
        """Count the products that a visit of each sequence of ``order`` takes."""
        n_entries = max(len(self._design.X.indices), 1)
        self._design.passes += 2.0 * float(self._n_entries[order].sum()) / n_entries

    def _split(self, scores: Floats) -> tuple[Floats, Floats]:
        chains = self._chains
        return chain_scores(scores, self._design.starts, chains.allowed, chains.ends)


class EntropySweeps(ChainSweeps):
    """Of the log-likelihood, where h is minus the entropy.

    The dual variables are the marginals of potentials, see ``kernels.chain_ascent``.

    Attributes
    ----------
    nodes : ndarray of shape (T, width)
        Marginals mu of labels, at first those of the true ones; k padded to a width.
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
        second = _inner(design.starts)
        of_pairs = np.full(k * k, -1)
        of_pairs[np.flatnonzero(self._free)] = np.arange(len(places))
        labels = self._targets.astype(np.intp)
        # Which transitions with a parameter the true labels have, of which sequence.
        self._true_pairs = of_pairs[labels[second - 1] * k + labels[second]]
        self._of_pairs = _sequences(design.starts)[second][self._true_pairs >= 0]
        self._true_pairs = self._true_pairs[self._true_pairs >= 0]
        self.reset()

    @staticmethod
    def n_bytes(design: ChainDesign) -> int:
        n_free = int(np.count_nonzero(design.transitions))
        tokens = design.n_tokens * _width(design.n_labels)
        return 16 * (tokens + design.n_rows * n_free)

    def run(self, order: Rows) -> None:
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

    def round(self, order: Rows, random: np.random.Generator) -> None:
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
        # Entropies are differences of larger numbers, with the rounding of these.
        lengths = np.diff(design.starts)
        rounding = _ROUNDING * (self._sizes + 8.0 * lengths)
        return ChainDual(dual, rounding * (self._rates > 0.0) - self._entropies)

    def _to_truth(self) -> None:
        self.nodes[:] = 0.0
        self.nodes[np.arange(len(self.nodes)), self._targets] = 1.0
        self._pairs[:] = 0.0
        np.add.at(self._pairs, (self._of_pairs, self._true_pairs), 1.0)
        self._entropies[:] = self._sizes[:] = self._rates[:] = 0.0


class LabelingSweeps(ChainSweeps):
    """Of the hinge, where h is minus the mean number of wrong labels.

    The dual variables are shares of labelings y that are kept, see
    ``kernels.chain_labelings``. With slack rescaling labelings have their number D of
    wrong labels as a factor: in place of marginals there are means of truth +
    D (y - truth).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        design, chains, k = self._design, self._chains, self._design.n_labels
        ends, pattern = np.zeros((2, k)), np.zeros((k, k))
        if chains.ends is not None:
            ends[~chains.ends] = -np.inf
        if chains.allowed is not None:
            pattern[~chains.allowed] = -np.inf
        of_pairs = np.full(k * k, -1, dtype=np.intc)
        free = np.flatnonzero(self._free)
        of_pairs[free] = np.arange(len(free))
        self._rules = pattern, of_pairs, ends, chains.rescaling == "slack"
        self._labelings = chain_labelings.Labelings(design.n_rows)
        size = design.n_features * design.stride or design.n_pairs
        self._scratch = np.zeros(size + len(free))
        self.reset()

    @staticmethod
    def n_bytes(design: ChainDesign) -> int:
        # The true labels take nothing.
        return 0

    @property
    def fits(self) -> bool:
        return self._labelings.n_bytes <= _MOST_BYTES

    def run(self, order: Rows) -> None:
        self._sweep(order, True)

    def round(self, order: Rows, random: np.random.Generator) -> None:
        self._sweep(random.permutation(order), True)
        for n in range(_KEPT_EPOCHS):
            self._sweep(random.permutation(self._worst() if n else order), False)

    def _sweep(self, order: Rows, infer: bool, given: Rows | None = None) -> None:
        params = self._params, self._scratch
        rest = order, infer, given, self.gaps
        chain_labelings.sweep(
            self._labelings, *self._features, *params, *self._rules, *rest
        )
        if infer:
            self._count(order)

    def begin(self, scores: Floats) -> None:
        starts = self._design.starts
        labels = np.empty(len(self._targets), dtype=np.intp)
        losses = np.empty(len(starts) - 1)
        ones, slack = np.ones(len(losses)), self._rules[-1]
        rest = starts, self._targets, ones, slack, labels, losses
        chain.most_violated_margins(*self._split(scores), *rest)
        self.reset()
        self._sweep(np.arange(len(losses)), False, labels)

    def recenter(self, w: Floats) -> None:
        super().recenter(w)
        n = len(self._w)
        self._params = np.concatenate([self._w, self._transitions])
        self._w, self._transitions = self._params[:n], self._params[n:]

    def dual(self) -> ChainDual:
        design, k = self._design, self._design.n_labels
        dual = np.zeros((design.n_tokens + k, k))
        costs = np.zeros(design.n_rows)
        rest = self._targets, self._weights, dual[:-k], dual[-k:], costs
        self._labelings.write(design.starts, *rest)
        dual[-k:][~self._free] = 0.0
        return ChainDual(dual, -costs)

    def _to_truth(self) -> None:
        self._labelings.clear()


def _kind(chains: Chains) -> type[ChainSweeps]:
    return EntropySweeps if chains.rescaling is None else LabelingSweeps


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


def _sequences(starts: Rows) -> Rows:
    """Return the sequence of each token."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _width(k: int) -> int:
    """Return a number of labels padded to a multiple of four."""
    return -(-k // 4) * 4


def _mask(design: ChainDesign) -> npt.NDArray[np.uint8]:
    """Return a bit of each padded parameter: whether it exists, four to a byte."""
    if not design.stride:
        return np.zeros(0, dtype=np.uint8)
    exists = np.zeros(design.n_features * design.stride, dtype=np.uint8)
    exists[design.pairs.places(design.stride)] = 1
    bits: npt.NDArray[np.uint8] = exists.reshape(-1, 4) @ np.array(
        [1, 2, 4, 8], np.uint8
    )
    return bits
