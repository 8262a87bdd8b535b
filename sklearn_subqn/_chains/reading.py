"""Validation of sequences and labels, and their encoding as matrix rows and codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .._checks import (
    as_numpy,
    as_sample_weights,
    check_class_weight,
    check_labels,
    check_no_file,
    check_range,
    check_sample_weight,
    check_unmasked,
    exact_names,
)
from .._core.arrays import Array, Floats
from .._estimators.block_methods import refuse_collections
from .._estimators.estimator import forget
from .._estimators.linear_estimator import LinearEstimator
from .labels import flat_labels, label_codes, several_classes
from .sequences import Sequences, starts_of_lengths
from .tables import (
    has_words,
    is_empty,
    is_matrix,
    is_table,
    rows_of_table,
    stack_matrices,
)
from .tokens import AttributeReader
from .transitions import TransitionRules


class Labeled(NamedTuple):
    """Training data.

    Attributes
    ----------
    data : Sequences
        T tokens in n sequences of positive weight.
    targets : ndarray of shape (T,)
        Index of each token's label among the classes.
    weights, counts : ndarray of shape (n,)
        Weights of the sequences, with and without the factors of ``class_weight``.
    """

    data: Sequences
    targets: Any
    weights: Floats
    counts: Floats


class ReadsSequences(LinearEstimator):
    """Base class of chain estimators: validation and encoding of the input.

    Attributes
    ----------
    _columns : dict or None
        Column of each attribute by name; None where tokens are rows of matrices.
    _rules : TransitionRules
    """

    class_weight: Any
    transition_constraints: Any
    classes_: Array
    objective_: float
    dual_gap_: float
    _columns: dict[str, int] | None
    _rules: TransitionRules

    def _read(self, X: Any, lengths: Any) -> Sequences:
        """Return the encoded sequences of a prediction, with the model's columns."""
        check_is_fitted(self)
        refuse_collections(self, X)
        return self._read_sequences(X, lengths)

    def _read_sequences(
        self, X: Any, lengths: Any, *, reset: bool = False, learns: bool = False
    ) -> Sequences:
        """Return checked sequences.

        With ``learns``, for training, no sequence may be empty, and new attributes
        become columns. With ``reset``, the known attributes are forgotten first.

        Raises
        ------
        TypeError, ValueError
            If there are no sequences, or they are invalid.
        """
        name = type(self).__name__
        if lengths is not None and self._has_named_tokens(X, reset=reset):
            starts = starts_of_lengths(lengths, X.shape[0], not learns)
            rows = rows_of_table(X)
            parts = (rows[first:end] for first, end in pairwise(starts.tolist()))
            data = self._read_tokens(parts, reset=reset, learns=learns)
            return Sequences(data.X, data.starts, True)
        if lengths is not None:
            stacked = self._rows(X, reset=reset)
            starts = starts_of_lengths(lengths, stacked.shape[0], not learns)
            return Sequences(stacked, starts, True)
        if is_matrix(X):
            raise ValueError(
                f"{name} needs sequences: give lengths, the numbers of rows of X that "
                "make a sequence, or a list with a matrix for each sequence."
            )
        refuse_collections(self, X)
        check_no_file("X", X, "a list of sequences")
        if isinstance(X, dict) or not isinstance(X, Iterable):
            raise TypeError(
                f"X must be a list of sequences, got {X!r} of type {type(X).__name__}."
            )
        if isinstance(X, np.ndarray):
            check_unmasked("X", X)
        sequences = iter(X)
        # The first non-empty sequence determines the kind of tokens in all sequences.
        first: list[Any] = []
        for sequence in sequences:
            first.append(sequence)
            if not is_empty(sequence):
                break
        if not first:
            raise ValueError(
                f"Found array with 0 sample(s): X has no sequences, while a minimum of "
                f"1 is required by {name}."
            )
        if is_empty(first[-1]) and not learns:
            nothing = sparse.csr_matrix((0, self.n_features_in_))
            return Sequences(nothing, np.zeros(len(first) + 1, dtype=np.intp), False)
        sequences = itertools.chain(first, sequences)
        named = self._has_named_tokens(first[-1], reset=reset)
        if is_matrix(first[-1]) and not named:
            stacked, starts = stack_matrices(list(sequences), not learns)
            return Sequences(self._rows(stacked, reset=reset), starts, False)
        return self._read_tokens(sequences, reset=reset, learns=learns)

    def _has_named_tokens(self, X: Any, *, reset: bool) -> bool:
        """Whether X is a table whose rows are tokens with named attributes."""
        if not is_table(X):
            return False
        return has_words(X) if reset else self._columns is not None

    def _read_tokens(
        self, sequences: Iterable[Any], *, reset: bool, learns: bool
    ) -> Sequences:
        """Return encoded sequences of tokens with named attributes."""
        if reset:
            self._columns = {}
            forget(self, "feature_names_in_")
        if self._columns is None:
            raise TypeError(
                f"X must be matrices of {self.n_features_in_} columns as in training, "
                "got lists of tokens."
            )
        data = AttributeReader(self._columns, learns).read(sequences)
        check_range(data.X, type(self).__name__)
        self.n_features_in_ = len(self._columns)
        return data

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return a checked matrix of tokens in CSR format."""
        if reset:
            self._columns = None
        elif self._columns is not None:
            raise TypeError(
                "X must be lists of tokens with named attributes as in training, got "
                "matrices."
            )
        X = self._check_X(X, reset=reset)
        return X if sparse.issparse(X) else sparse.csr_matrix(X)

    def _labels(self, y: Any, data: Sequences) -> list[Any]:
        """Return the labels of all tokens.

        Raises
        ------
        TypeError, ValueError
            If labels and tokens differ in number.
        """
        if not data.stacked:
            y = list(y)
            check_consistent_length(range(len(data)), y)
            return flat_labels(y, data.lengths)
        check_labels(y)
        labels = column_or_1d(exact_names(as_numpy(y)))
        check_consistent_length(range(data.X.shape[0]), labels)
        return list(labels.tolist())

    def _read_labeled(
        self, X: Any, y: Any, sample_weight: Any, lengths: Any, classes: Any = None
    ) -> Labeled:
        """Return encoded training data, and set attributes, classes and rules.

        The classes are ``classes`` where given, and else the labels of y. Sequences of
        weight zero are left out.
        """
        refuse_collections(self, X)
        check_no_file("X", X, "a list of sequences")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        check_no_file("y", y, "a list of lists of labels")
        if not isinstance(y, Iterable):
            raise TypeError(f"y must be a list of lists of labels, got {y!r}.")
        more = classes is not None and hasattr(self, "_w")
        data = self._read_sequences(X, lengths, reset=not more, learns=True)
        labels = self._labels(y, data)
        check_sample_weight(sample_weight, len(data))
        counts = as_sample_weights(sample_weight, len(data))
        numbers = np.flatnonzero(counts)
        data, labels = data.take(numbers, labels)
        counts = counts[numbers]
        if classes is None:
            classes = several_classes(labels)
        self.classes_ = classes
        targets = label_codes(labels, classes)
        self._rules = TransitionRules.of(self.transition_constraints, classes)
        self._rules.check(targets, data.starts, classes, numbers)
        weights = counts
        if self.class_weight is not None:
            check_class_weight(self.class_weight)
            per_class = compute_class_weight(
                self.class_weight,
                classes=classes,
                y=np.array(labels),
                sample_weight=np.repeat(counts, data.lengths),
            )
            sums = np.add.reduceat(per_class[targets], data.starts[:-1])
            weights = counts * sums / data.lengths
            if not weights.any():
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves no sequence with a "
                    "positive weight."
                )
        return Labeled(data, targets, weights, counts)


def of_sequences(tags: Any) -> Any:
    """Adapt scikit-learn's tags to an estimator whose samples are sequences."""
    tags.input_tags.two_d_array = False
    tags.target_tags.required = True
    tags.target_tags.one_d_labels = False
    return tags
