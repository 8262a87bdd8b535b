"""Scores of labelings of sequences: F1 of chunks, and any score of tokens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, make_scorer

from ._chains.chunks import ChunkCounts, check_lengths, chunks_of, sequences_of
from ._checks import exact_labels

__all__ = [
    "chunks_of",
    "flat_scorer",
    "sequence_f1",
    "sequence_f1_score",
    "sequence_report",
]

_AVERAGES = ("micro", "macro", "weighted", None)


def sequence_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: str | None = "micro",
    sample_weight: Any = None,
    lengths: Any = None,
) -> Any:
    """Return the F1 score of chunks, as conlleval counts them.

    A predicted chunk is correct if a true chunk has the same type, start and end. F1 is
    the harmonic mean of precision (the share of correct chunks among predicted chunks)
    and recall (the share of correct chunks among true chunks); it is 0 if there are no
    chunks.

    Parameters
    ----------
    y_true, y_pred : iterable of label sequences, or array-like of shape (n_tokens,)
        Labels in a chunking scheme, see :func:`chunks_of`; single arrays need
        ``lengths``.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        "micro": the score over chunks of all types, conlleval's FB1. "macro": the mean
        over types. "weighted": the mean over types, weighted by the number of true
        chunks. None: a dict with the score of each type.
    sample_weight : array-like of shape (n_sequences,), default=None
        Non-negative weights of the sequences and their chunks.
    lengths : array-like of int of shape (n_sequences,), default=None
        Number of labels in each sequence, if all labels are in one array.

    Returns
    -------
    f1 : float or dict from str to float
        Score between 0 and 1; for ``average=None`` a dict from types to scores.

    Raises
    ------
    ValueError
        If a label is invalid in the chunking scheme, or sequences differ in length.

    See Also
    --------
    sequence_f1 : The same as a scorer for ``scoring``.
    sequence_report : Precision and recall as well.

    Examples
    --------
    >>> from sklearn_subqn.metrics import sequence_f1_score
    >>> y = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> z = [["B-PER", "I-PER", "O", "B-ORG"]]
    >>> sequence_f1_score(y, z)
    0.5
    >>> sequence_f1_score(y, z, average=None)
    {'LOC': 0.0, 'ORG': 0.0, 'PER': 1.0}
    """
    if average not in _AVERAGES:
        raise ValueError(
            f"average must be 'micro', 'macro', 'weighted' or None; got {average!r}."
        )
    counts = ChunkCounts(y_true, y_pred, sample_weight, lengths)
    if average == "micro":
        return counts.of(counts.types)["f1"]
    each = {kind: counts.of([kind]) for kind in counts.types}
    scores = {kind: score["f1"] for kind, score in each.items()}
    if average is None:
        return scores
    supports = [score["support"] for score in each.values()]
    weights = supports if average == "weighted" else [1.0] * len(each)
    if not sum(weights):
        return 0.0
    return float(np.average(list(scores.values()), weights=weights))


def sequence_report(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, lengths: Any = None
) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 of chunks of each type, and of all together.

    A predicted chunk is correct if a true chunk has the same type, start and end.

    Parameters
    ----------
    y_true, y_pred : iterable of label sequences, or array-like of shape (n_tokens,)
        Labels in a chunking scheme, see :func:`chunks_of`; single arrays need
        ``lengths``.
    sample_weight : array-like of shape (n_sequences,), default=None
        Non-negative weights of the sequences and their chunks.
    lengths : array-like of int of shape (n_sequences,), default=None
        Number of labels in each sequence, if all labels are in one array.

    Returns
    -------
    report : dict of dicts
        Maps types, and finally "micro" for all types, to "precision", "recall", "f1"
        and "support" (the number of true chunks). ``pandas.DataFrame(report).T`` has a
        row for each type.

    Raises
    ------
    ValueError
        If a label is invalid in the chunking scheme, or sequences differ in length.

    See Also
    --------
    sequence_f1_score : F1 alone, of all types together or averaged over them.

    Examples
    --------
    >>> from sklearn_subqn.metrics import sequence_report
    >>> sequence_report([["B-X", "I-X", "O", "B-X"]], [["B-X", "I-X", "O", "O"]])["X"]
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666, 'support': 2.0}
    """
    counts = ChunkCounts(y_true, y_pred, sample_weight, lengths)
    report = {kind: counts.of([kind]) for kind in counts.types}
    return {**report, "micro": counts.of(counts.types)}


_Scorer: Any = type(make_scorer(sequence_f1_score))


class SequenceF1Scorer(_Scorer):
    """A scorer that accepts a model, or labels and predictions.

    ``make_scorer(sequence_f1)`` is therefore equivalent to ``sequence_f1``.
    """

    def __call__(
        self, estimator: Any, X: Any, y_true: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if y_true is None:
            return sequence_f1_score(estimator, X, *args, **kwargs)
        return super().__call__(estimator, X, y_true, *args, **kwargs)


#: Scorer for ``scoring=`` of searches and cross-validation: ``sequence_f1_score``.
sequence_f1 = SequenceF1Scorer(sequence_f1_score, 1, {}, "predict")


def flat_scorer(scoring: str | Callable[..., float]) -> Callable[..., float]:
    """Return a scorer of sequences that scores all tokens as one sample.

    Scorers such as "f1_macro" compare single labels, and reject lists of labels.
    ``scoring=flat_scorer("f1_macro")`` compares the labels of all tokens of all
    sequences.

    Parameters
    ----------
    scoring : str or callable
        A name of scikit-learn's scorers of predicted labels, such as "f1_macro",
        "balanced_accuracy" or "matthews_corrcoef", or a scorer made by
        :func:`~sklearn.metrics.make_scorer`.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)``, for ``scoring=`` of searches and
        cross-validation.

    See Also
    --------
    sequence_f1 : The scorer of chunks.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_subqn import LinearChainCRF
    >>> from sklearn_subqn.metrics import flat_scorer
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]] * 4
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]] * 4
    >>> crf = LinearChainCRF()
    >>> cross_val_score(crf, X, y, scoring=flat_scorer("f1_macro"), cv=2).tolist()
    [1.0, 1.0]
    """
    return _FlatScorer(scoring)


class _FlatScorer:
    """The result of ``flat_scorer``, a class so that it can be pickled."""

    def __init__(self, scoring: Any) -> None:
        self._scoring = scoring
        self._scorer: Any = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        truths = sequences_of(y, None)
        predictions = sequences_of(estimator.predict(X), None)
        check_lengths(truths, predictions)
        expected, found = (
            exact_labels("y", list(chain.from_iterable(each)))
            for each in (truths, predictions)
        )
        return float(self._scorer(_Predicted(expected), found, expected))

    def __repr__(self) -> str:
        return f"flat_scorer({self._scoring!r})"


class _Predicted(ClassifierMixin, BaseEstimator):
    """A classifier with known classes that returns its input as predictions."""

    def __init__(self, labels: Any = None) -> None:
        self.labels = labels
        self.classes_ = np.unique(labels)

    def predict(self, X: Any) -> Any:
        """Return X."""
        return X
