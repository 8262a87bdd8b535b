"""Training of chains on streams, without storing earlier sequences."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import check_classes
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array, Floats, Mask
from .._estimators.estimator import FOUND, forget
from .batches import of_own_columns
from .design import ChainDesign
from .model import ChainModel
from .pairs import Pairs, kept_pairs, merged
from .reading import Labeled
from .stream import Seen, Strengths, learn


class LearnsFromStreams(ChainModel):
    """Base class of chain estimators: the method ``partial_fit``."""

    _seen: Seen
    _sums: Floats | None

    @unchanged_on_failure
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
    ) -> Self:
        """Learn from further sequences, without access to the earlier ones.

        The model is fitted to all sequences so far: the sequences of the last ``fit``
        and of all calls of ``partial_fit``. New sequences may have new attributes.
        Training is dual ascent on the sequences of the call, which needs no step size;
        one large batch gives a better model than several small batches. Earlier
        sequences, including the ones of ``fit``, enter through the second derivatives
        of their losses; with L1 the model may still move too far from them. With L1,
        weights become zero, and zero weights become non-zero again, as sequences
        arrive. Attributes are divided by their root mean squares, which the stream
        tracks, so steps and the L1 penalty do not depend on the units of the
        attributes. ``min_freq`` counts within each call: a pair gets its weight from
        the first call in which it occurs often enough.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur; required at the first call, unless ``fit`` came
            before.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Non-negative weights of the sequences.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        self : LinearChainCRF
            The estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable. The model stays as it was.
        """
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                "partial_fit cannot balance classes that it has not seen; give "
                "class_weight as a dict."
            )
        known = getattr(self, "_columns", None)
        n_known = 0 if known is None else len(known)
        try:
            return self._learn(X, y, self._classes(classes), sample_weight, lengths)
        except BaseException:
            while known is not None and len(known) > n_known:
                known.popitem()
            raise

    def sparsify(self) -> Self:
        """Drop all zero weights, and attributes that have zero weights only.

        Predictions do not change; the model and its pickles become smaller, mostly with
        L1. Dropped attributes are removed from ``attributes_`` and ``n_features_in_``;
        columns of matrices are not removed. ``partial_fit`` treats dropped attributes
        and weights as new.

        Returns
        -------
        self : LinearChainCRF
            The estimator, changed in place.
        """
        check_is_fitted(self)
        n = len(self._pairs.labels)
        used = self._w != 0.0
        d = len(self._pairs.ptr) - 1
        kept = np.ones(d, dtype=bool)
        if self._columns is not None:
            kept = np.bincount(self._pairs.features[used[:n]], minlength=d) > 0
            names = zip(self._columns, kept.tolist(), strict=True)
            columns = (name for name, is_kept in names if is_kept)
            self._columns = {name: column for column, name in enumerate(columns)}
            self.n_features_in_ = len(self._columns)
            self._seen = self._seen.of_columns(kept)
        self._pairs = kept_pairs(self._pairs, used[:n], kept)
        transitions = self._transitions.copy()
        transitions[self._transitions] = used[n:]
        self._transitions, self._w = transitions, self._w[used]
        sums = getattr(self, "_sums", None)
        if sums is not None:
            self._sums = sums[used]
        return self

    def _classes(self, classes: Any) -> Array:
        """Return the checked classes of a stream."""
        begun = hasattr(self, "_w")
        if classes is None:
            if not begun:
                raise ValueError(
                    "classes must be given at the first call of partial_fit."
                )
            return self.classes_
        labels = check_classes(classes)
        if len(labels) < 2:
            raise ValueError(
                f"classes must have at least 2 labels, got {labels.tolist()}."
            )
        if begun and labels.tolist() != self.classes_.tolist():
            raise ValueError(
                f"classes={labels.tolist()} differ from those of the model: "
                f"{self.classes_.tolist()}."
            )
        return labels

    def _learn(
        self,
        X: Any,
        y: Any,
        classes: Array,
        sample_weight: Any,
        lengths: Any,
    ) -> Self:
        """Fit the model to a batch, and set its attributes."""
        begun = hasattr(self, "_w")
        data, targets, weights, counts = self._read_labeled(
            X, y, sample_weight, lengths, classes
        )
        pairs, transitions = self._observed(Labeled(data, targets, weights, counts))
        if begun:
            self._grow(pairs, transitions)
        else:
            self._pairs, self._transitions = pairs, transitions
            self._w = np.zeros(len(pairs.labels) + int(transitions.sum()))
            self._seen = Seen()
        n_params = len(self._w)
        sums = getattr(self, "_sums", None)
        if sums is None:
            w = self._w.astype(np.float64, copy=False)
            sums = self._strengths(self._seen).sums(w)
        # Restrict the matrix to the attributes that occur in the batch.
        own, columns, own_pairs, places = of_own_columns(data.X, self._pairs)
        n = len(self._pairs.labels)
        design = ChainDesign(
            own, data.starts, len(classes), own_pairs, self._transitions
        )
        places = np.append(places, np.arange(n, n_params))
        seen = self._seen.and_of(own, data.starts, weights, columns)
        strengths = self._strengths(seen)
        loss = self._loss_of(data.starts)
        given = strengths.of(places), sums[places]
        own_sums = learn(design, loss, targets, weights, *given)
        if not np.all(np.isfinite(own_sums)):
            raise ValueError(
                f"{type(self).__name__} became infinite or not a number. Scale the "
                "features. The model is as it was before."
            )
        sums = sums.copy()
        sums[places] = own_sums
        self._w = strengths.parameters(sums)
        nodes = self._lattice_of(design, self._w[places]).marginals()
        self._seen = seen.learned(own, data.starts, weights, columns, nodes)
        # The batch's curvature changes the scales, so the sums are recomputed to
        # represent the same parameters.
        strengths = self._strengths(self._seen)
        self._sums = strengths.sums(self._w, sums) if self.l1_ratio else None
        self.n_iter_ = 1
        # The attributes of an earlier fit do not describe the new model.
        forget(self, *FOUND)
        return self

    def _strengths(self, seen: Seen) -> Strengths:
        """Return the strengths of the penalty against all losses so far."""
        # The usual alpha="auto" depends on the number of sequences, which is unknown
        # here.
        alpha = self._chosen_alpha(1e-4)
        penalty = alpha, float(self.l1_ratio), self._pairs, self._transitions
        return seen.strengths(*penalty)

    def _grow(self, pairs: Pairs, transitions: Mask) -> None:
        """Add zero weights for pairs and transitions that are new to the model."""
        old = self._transitions
        self._transitions = old | transitions
        self._pairs, places = merged(self._pairs, pairs)
        numbers = np.cumsum(self._transitions.ravel()) - 1 + len(self._pairs.labels)
        places = np.append(places, numbers[old.ravel()])
        n = len(self._pairs.labels) + int(self._transitions.sum())
        for name in ("_w", "_sums"):
            if getattr(self, name, None) is not None:
                grown = np.zeros(n)
                grown[places] = getattr(self, name)
                setattr(self, name, grown)
