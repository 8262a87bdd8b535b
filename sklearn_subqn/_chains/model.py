"""Weights of a linear-chain model, with their objective and scores."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from .._checks import check_sample_weight
from .._core.arrays import Floats, Indices, Mask
from .._core.losses import DualLoss
from .._core.objectives.objective import Objective
from .._core.objectives.risk import Risk
from .._core.regularizers import Regularizer, elastic_net
from .._core.rounding import CLOSE
from .._solving.process import n_threads
from .design import ChainDesign
from .hinge import ChainHinge
from .inference import Lattice
from .log_loss import ChainLogLoss
from .loss import ChainLoss
from .pairs import (
    Pairs,
    all_pairs,
    frequent_pairs,
    observed_pairs,
    observed_transitions,
    pair_counts,
    places_of,
)
from .reading import Labeled, ReadsSequences
from .sequences import Sequences
from .stream import Seen


class ChainModel(ReadsSequences):
    """Base class of chain estimators: weights, objective and scores.

    Attributes
    ----------
    _w : ndarray of shape (q,)
        Weights of pairs of an attribute and a label, and of transitions.
    _pairs : Pairs
    _transitions : ndarray of bool of shape (k, k)
        Which transitions have a weight.
    """

    alpha: float | str
    l1_ratio: float
    loss: str
    rescaling: str
    all_possible_states: bool
    all_possible_transitions: bool
    min_freq: float
    alpha_: float
    _w: Floats
    _pairs: Pairs
    _transitions: Mask

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, lengths: Any
    ) -> tuple[Objective, Seen]:
        """Return the objective, and a stream's statistics, of training data."""
        labeled = self._read_labeled(X, y, sample_weight, lengths)
        data = labeled.data
        self._pairs, self._transitions = self._observed(labeled)
        # Solvers use the methods that all designs share.
        design: Any = ChainDesign(
            data.X,
            data.starts,
            len(self.classes_),
            self._pairs,
            self._transitions,
            n_threads=n_threads(self.n_jobs),
        )
        objective = Objective(
            Risk(
                design,
                DualLoss(self._loss_of(data.starts, design.pool)),
                labeled.targets,
                check_sample_weight(labeled.weights, len(data)),
            ),
            self._penalty(design.n_params),
            self._chosen_alpha(1.0 / float(labeled.weights.sum())),
        )
        columns = np.arange(data.X.shape[1])
        seen = Seen().and_of(data.X, data.starts, labeled.weights, columns)
        return objective, seen

    def _penalty(self, n_params: int) -> Regularizer:
        return elastic_net(n_params, float(self.l1_ratio))

    def _loss_of(self, starts: Indices, pool: Executor | None = None) -> ChainLoss:
        """Return the loss of sequences that begin at ``starts``."""
        rules = getattr(self, "_rules", None)
        allowed, ends = (None, None) if rules is None else (rules.allowed, rules.ends)
        if self.loss == "hinge":
            return ChainHinge(starts, allowed, ends, self.rescaling, pool=pool)
        return ChainLogLoss(starts, allowed, ends, pool=pool)

    def _chosen_alpha(self, automatic: float) -> float:
        """Return ``alpha``, or ``automatic`` for "auto", and set ``alpha_``."""
        self.alpha_ = automatic if isinstance(self.alpha, str) else float(self.alpha)
        return self.alpha_

    def _observed(self, labeled: Labeled) -> tuple[Pairs, Mask]:
        """Return the attribute-label pairs, and the transitions, that have a weight."""
        data, targets = labeled.data, labeled.targets
        k, X = len(self.classes_), data.X
        if self.all_possible_states:
            pairs = all_pairs(X.shape[1], k)
        else:
            pairs = observed_pairs(X, targets, k)
        if self.all_possible_transitions:
            transitions = np.ones((k, k), dtype=bool)
        else:
            transitions = observed_transitions(targets, data.starts, k)
        if self.min_freq > 0.0:
            # The threshold is reduced by the rounding error of the sums of weights.
            minimum = float(self.min_freq) * (1.0 - CLOSE)
            weights = np.repeat(labeled.counts, data.lengths)
            pairs = frequent_pairs(pairs, X, targets, weights, minimum)
            transitions &= pair_counts(targets, data.starts, k, weights) >= minimum
        return pairs, transitions & self._rules.allowed

    def _check_has_model(self, name: str) -> None:
        if not hasattr(self, "_w"):
            raise AttributeError(
                f"This {type(self).__name__} is not fitted yet, and has no {name}."
            )

    def _model(self) -> dict[str, Any]:
        """Return the attributes that prediction needs besides the weights."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        private = ("_columns", "_pairs", "_transitions", "_rules")
        known = vars(self)
        return {name: known[name] for name in names + private if name in known}

    def _lattice(self, data: Sequences) -> Lattice:
        """Return the lattice of the sequences, scored by the model.

        Empty sequences are left out.
        """
        design = ChainDesign(
            data.X,
            np.unique(data.starts),
            len(self.classes_),
            self._pairs,
            self._transitions,
            n_threads=n_threads(self.n_jobs),
            padded=False,
        )
        return self._lattice_of(design, self._w.astype(np.float64, copy=False))

    def _lattice_of(self, design: ChainDesign, w: Floats) -> Lattice:
        return Lattice(design, w, self._rules.allowed, self._rules.ends)

    def _started_from(self, previous: dict[str, Any]) -> Floats:
        """Return the starting weights from a previous model, for a warm start.

        Weights that the previous model did not have are zero.
        """
        w = np.zeros(len(self._pairs.labels) + int(self._transitions.sum()))
        if "_w" not in previous or (previous["_columns"] is None) != (
            self._columns is None
        ):
            return w
        old: Pairs = previous["_pairs"]
        known = {c: i for i, c in enumerate(previous["classes_"].tolist())}
        labels = np.array([known.get(c, -1) for c in self.classes_.tolist()])
        names, old_names = _names_of_columns(vars(self)), _names_of_columns(previous)
        if names and old_names:
            columns = np.array([old_names.get(name, -1) for name in names])
        else:
            columns = np.arange(self.n_features_in_)
            columns[columns >= previous["n_features_in_"]] = -1
        places = places_of(
            old, columns[self._pairs.features], labels[self._pairs.labels]
        )
        n, found = len(places), places >= 0
        w[:n][found] = previous["_w"][places[found]]
        k = len(known)
        table = np.zeros((k + 1, k + 1))
        table[:-1, :-1][previous["_transitions"]] = previous["_w"][len(old.labels) :]
        w[n:] = table[np.ix_(labels, labels)][self._transitions]
        return w


def _names_of_columns(model: Mapping[str, Any]) -> dict[Any, int]:
    """Return a map from names, of attributes or of table columns, to columns."""
    names = model.get("feature_names_in_", ())
    return model["_columns"] or {name: j for j, name in enumerate(names)}
