"""Base class of dual coordinate ascent over the sequences of chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._core.arrays import Floats, Indices
from .._core.kernels import chain_ascent
from .design import ChainDesign
from .loss import Chains

# Limit on the memory of dual variables in bytes, a gigabyte; larger problems use a
# primal method.
_MOST_BYTES = 1 << 30

# Epochs visit the sequences with the largest gaps, which make 90 % of the total gap.
# The first epoch of a round, and the first over the working sets, visit all sequences.
# docs/constants.md has the figures.
_SHARE = 0.9


def soft_threshold(v: Floats, threshold: Floats | float) -> Floats:
    """Return v moved toward zero by ``threshold``, a scalar or one for each entry."""
    if not np.any(threshold):
        return v
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


class ChainDual(NamedTuple):
    """A dual point: a subgradient u of the risk with its cost.

    Attributes
    ----------
    dual : ndarray of shape (T + k, k)
        u = weights * (mu - truth), transitions summed over sequences.
    costs : ndarray of shape (n,)
        The value h(mu) for each sequence; the cut is R(z) >= <u, z> - <weights, costs>.
    """

    dual: Floats
    costs: Floats


class ChainSweeps(ABC):
    """Coordinate ascent on the dual of a regularized loss of chains.

    Parameters
    ----------
    design : ChainDesign
    chains : Chains
        The loss.
    weights : ndarray of shape (n,)
    strength : float
        Strength of the quadratic penalty plus the proximal term.
    threshold : float
        Strength of L1 divided by ``strength``. The model is the soft threshold of
        ``w``.

    Attributes
    ----------
    w : ndarray of shape (q,)
        The primal vector of the dual variables, before the soft threshold.
    gaps : ndarray of shape (n,)
        Approximate duality gap of each sequence at its last visit.
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
        # The index of each transition with a parameter.
        self._numbers = np.full(free.size, -1, dtype=np.intc)
        self._numbers[free.ravel()] = np.arange(np.count_nonzero(free))
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
        """Return the initial memory of the dual variables in bytes."""

    @property
    def fits(self) -> bool:
        """Whether the current dual variables fit into the limit on memory."""
        return True

    @abstractmethod
    def run(self, order: Indices) -> None:
        """Take one ascent step for each sequence of ``order``.

        A step runs inference on the sequence, at the cost of one product with its
        features and one with their transpose.
        """

    @abstractmethod
    def round(self, order: Indices, random: np.random.Generator) -> None:
        """Run a few epochs over the sequences of ``order``, each in random order."""

    def reset(self) -> None:
        """Reset the dual variables to the true labels, which gives w = 0."""
        self._to_truth()
        self.recenter(np.zeros(self._design.n_params))

    @abstractmethod
    def begin(self, scores: Floats) -> None:
        """Set the dual variables to the marginals at scores of shape (T + k, k)."""

    def recenter(self, w: Floats) -> None:
        """Set the primal vector, before the soft threshold."""
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
        """Set the marginals to the true labels."""

    def _worst(self) -> Indices:
        """Return the sequences with the largest gaps at their last visits."""
        gaps = self._weights * self.gaps
        worst = np.argsort(-gaps)
        n = np.searchsorted(np.cumsum(gaps[worst]), _SHARE * gaps.sum()) + 1
        return worst[:n]

    def _count(self, order: Indices) -> None:
        """Count the passes over X for one visit of each sequence of ``order``."""
        n_entries = max(len(self._design.X.indices), 1)
        self._design.passes += 2.0 * float(self._n_entries[order].sum()) / n_entries


def has_room(n_bytes: int) -> bool:
    """Whether dual variables of ``n_bytes`` fit into the limit on memory."""
    return n_bytes <= _MOST_BYTES


def _mask(design: ChainDesign) -> npt.NDArray[np.uint8]:
    """Return the mask of existing parameters in the padded array, four in a byte."""
    if not design.stride:
        return np.zeros(0, dtype=np.uint8)
    exists = np.zeros(design.n_features * design.stride, dtype=np.uint8)
    exists[design.pairs.places(design.stride)] = 1
    bits: npt.NDArray[np.uint8] = exists.reshape(-1, 4) @ np.array(
        [1, 2, 4, 8], np.uint8
    )
    return bits
