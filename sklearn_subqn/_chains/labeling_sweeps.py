"""Dual ascent for the structured hinge over working sets of labelings."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Floats, Indices
from .._core.kernels import chain_labelings, chain_viterbi
from .design import ChainDesign
from .loss import chain_scores
from .sweeps_base import ChainDual, ChainSweeps, has_room

# After each epoch with inference, five epochs only change the weights of labelings in
# the working sets. docs/constants.md has the figures.
_KEPT_EPOCHS = 5


class LabelingSweeps(ChainSweeps):
    """Dual ascent for the hinge, where h is minus the mean number of wrong labels.

    The dual variables are convex weights on the labelings y of each sequence's working
    set; see ``kernels.chain_labelings``. With slack rescaling each difference y - truth
    is multiplied by the labeling's number D of wrong labels, so the weighted mean of
    truth + D (y - truth) takes the place of the marginals.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        design, chains, k = self._design, self._chains, self._design.n_labels
        ends, pattern = np.zeros((2, k)), np.zeros((k, k))
        if chains.ends is not None:
            ends[~chains.ends] = -np.inf
        if chains.allowed is not None:
            pattern[~chains.allowed] = -np.inf
        self._rules = pattern, self._numbers, ends, chains.rescaling == "slack"
        self._labelings = chain_labelings.Labelings(design.n_rows)
        size = design.n_features * design.stride or design.n_pairs
        self._scratch = np.zeros(size + np.count_nonzero(self._free))
        self.reset()

    @staticmethod
    def n_bytes(design: ChainDesign) -> int:
        # Each working set initially contains only the true labels, which need no
        # memory.
        return 0

    @property
    def fits(self) -> bool:
        return has_room(self._labelings.n_bytes)

    def run(self, order: Indices) -> None:
        self._sweep(order, True)

    def round(self, order: Indices, random: np.random.Generator) -> None:
        self._sweep(random.permutation(order), True)
        for n in range(_KEPT_EPOCHS):
            self._sweep(random.permutation(self._worst() if n else order), False)

    def _sweep(self, order: Indices, infer: bool, given: Indices | None = None) -> None:
        params = self._params, self._scratch
        rest = order, infer, given, self.gaps
        chain_labelings.sweep(
            self._labelings, *self._features, *params, *self._rules, *rest
        )
        if infer:
            self._count(order)

    def begin(self, scores: Floats) -> None:
        starts, chains = self._design.starts, self._chains
        labels = np.empty(len(self._targets), dtype=np.intp)
        losses = np.empty(len(starts) - 1)
        ones, slack = np.ones(len(losses)), self._rules[-1]
        masked = chain_scores(scores, starts, chains.allowed, chains.ends)
        rest = starts, self._targets, ones, slack, labels, losses
        chain_viterbi.most_violated_margins(*masked, *rest)
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
