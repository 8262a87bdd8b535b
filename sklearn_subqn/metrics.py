"""Scores of labelings of sequences: F1 of chunks, and any score of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, make_scorer
from sklearn.utils import check_consistent_length

from ._chains.sequences import starts_of_lengths
from ._validation import as_sample_weights, check_sample_weight

__all__ = [
    "chunks_of",
    "flat_scorer",
    "sequence_f1",
    "sequence_f1_score",
    "sequence_report",
]

# Prefixes of labels of chunks, in the letters of IOBES.
_PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}

_AVERAGES = ("micro", "macro", "weighted", None)


def chunks_of(labels: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return the chunks that the labels of a sequence mark, by the rules of conlleval.

    These rules read all common schemes, IOB1, IOB2 (BIO), IOBES and BILOU, and labels
    that break them. A chunk begins at "B", "S" and "U"; at "I" and the last labels "E"
    and "L" where no chunk is open, that is after "O", "E", "L", "S" and "U"; and where
    the type is another one than before. It ends before such a label or "O", and with
    "E", "L", "S" and "U".

    Parameters
    ----------
    labels : iterable of str
        "O" outside of chunks; else a prefix B, I, E, S, L or U alone, or with a hyphen
        and the type of the chunk: "B-PER".

    Returns
    -------
    chunks : list of (type, start, end)
        In order; the tokens of a chunk are ``labels[start:end]``. The type is empty
        where labels have none.

    Raises
    ------
    ValueError
        If there is another label, such as those of parts of speech, which
        :func:`flat_scorer` is for.

    References
    ----------
    E. F. Tjong Kim Sang and S. Buchholz (2000), Introduction to the CoNLL-2000 Shared
    Task: Chunking; its script conlleval.

    Examples
    --------
    >>> from sklearn_subqn.metrics import chunks_of
    >>> chunks_of(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    """
    chunks: list[tuple[str, int, int]] = []
    # The chunk that is open: its type, and where it starts.
    kind, start = None, 0
    end = 0
    for at, label in enumerate(labels):
        prefix, _, of = str(label).partition("-")
        end = at + 1
        outside = prefix == "O" and not of
        if not outside and prefix not in _PREFIXES:
            raise ValueError(
                f"{label!r} is no label of chunks, which are 'O', or begin with B, I, "
                "E, S, L or U, followed by nothing or '-' and a type. For scores of "
                "other labels take flat_scorer."
            )
        prefix = "O" if outside else _PREFIXES[prefix]
        if kind is not None and (outside or prefix in "BS" or of != kind):
            chunks.append((kind, start, at))
            kind = None
        if outside:
            continue
        if kind is None:
            kind, start = of, at
        if prefix in "ES":
            chunks.append((kind, start, end))
            kind = None
    if kind is not None:
        chunks.append((kind, start, end))
    return chunks


class _Counts:
    """Weighted numbers of chunks of each type: true ones, predicted ones, and both."""

    def __init__(
        self, y_true: Any, y_pred: Any, sample_weight: Any, lengths: Any
    ) -> None:
        truths, predictions = _sequences(y_true, lengths), _sequences(y_pred, lengths)
        _check_lengths(truths, predictions)
        if sample_weight is not None:
            check_sample_weight(sample_weight, len(truths))
        weights = as_sample_weights(sample_weight, len(truths)).tolist()
        self.true: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        for i, (truth, prediction) in enumerate(zip(truths, predictions, strict=True)):
            expected, found = chunks_of(truth), chunks_of(prediction)
            for counter, chunks in (
                (self.true, expected),
                (self.predicted, found),
                (self.right, set(expected) & set(found)),
            ):
                for kind, _, _ in chunks:
                    counter[kind] += weights[i]

    @property
    def types(self) -> list[str]:
        """All types, sorted."""
        return sorted({*self.true, *self.predicted})

    def of(self, kinds: list[str]) -> dict[str, float]:
        """Return the scores of chunks of these types together."""
        right, predicted, true = (
            float(sum(counter[kind] for kind in kinds))
            for counter in (self.right, self.predicted, self.true)
        )
        total = predicted + true
        return {
            "precision": right / predicted if predicted else 0.0,
            "recall": right / true if true else 0.0,
            "f1": 2.0 * right / total if total else 0.0,
            "support": true,
        }


def sequence_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    average: str | None = "micro",
    sample_weight: Any = None,
    lengths: Any = None,
) -> Any:
    """Return the F1 score of chunks, as conlleval counts them.

    A predicted chunk is right if a true one has the same type, start and end. F1 is the
    harmonic mean of precision, the share of right ones among predicted chunks, and
    recall, their share among true ones; it is 0 where there are no chunks.

    Parameters
    ----------
    y_true, y_pred : iterable of label sequences, or array-like of shape (n_tokens,)
        Labels in any scheme of chunks, see :func:`chunks_of`; arrays with ``lengths``.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        "micro": of the chunks of all types together, conlleval's FB1. "macro": the mean
        of the scores of types. "weighted": their mean weighted by the numbers of true
        chunks. None: a dict with the score of each type.
    sample_weight : array-like of shape (n_sequences,), default=None
        Non-negative weights of the sequences, whose chunks count by them.
    lengths : array-like of int of shape (n_sequences,), default=None
        Numbers of the labels that make a sequence, where all are one array.

    Returns
    -------
    f1 : float or dict from str to float

    Raises
    ------
    ValueError
        If a label is none of chunks, or sequences are not of equal lengths.

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
    counts = _Counts(y_true, y_pred, sample_weight, lengths)
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

    Parameters
    ----------
    y_true, y_pred, sample_weight, lengths
        As of :func:`sequence_f1_score`.

    Returns
    -------
    report : dict of dicts
        From types, and at last "micro" for all, to "precision", "recall", "f1" and
        "support", the number of true chunks. ``pandas.DataFrame(report).T`` has a row
        for each.

    Examples
    --------
    >>> from sklearn_subqn.metrics import sequence_report
    >>> sequence_report([["B-X", "I-X", "O", "B-X"]], [["B-X", "I-X", "O", "O"]])["X"]
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666, 'support': 2.0}
    """
    counts = _Counts(y_true, y_pred, sample_weight, lengths)
    report = {kind: counts.of([kind]) for kind in counts.types}
    return {**report, "micro": counts.of(counts.types)}


_Scorer: Any = type(make_scorer(sequence_f1_score))


class SequenceF1Scorer(_Scorer):
    """A scorer of models that also takes labels and predictions.

    So ``make_scorer(sequence_f1)`` is the same scorer as ``sequence_f1`` itself.
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
    """Return a scorer of sequences by a score of all their tokens.

    ``scoring="f1_macro"`` and the like compare one label with another, and refuse lists
    of labels. ``scoring=flat_scorer("f1_macro")`` compares the labels of all tokens of
    all sequences.

    Parameters
    ----------
    scoring : str or callable
        A name of scikit-learn's scorers of predicted labels, such as "f1_macro",
        "balanced_accuracy" or "matthews_corrcoef", or one that
        :func:`~sklearn.metrics.make_scorer` has made.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)``, for ``scoring=`` of searches and
        cross-validation.

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
    """The scorer that ``flat_scorer`` returns, which can be pickled."""

    def __init__(self, scoring: Any) -> None:
        self._scoring = scoring
        self._scorer: Any = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        truths = _sequences(y, None)
        predictions = _sequences(estimator.predict(X), None)
        _check_lengths(truths, predictions)
        expected, found = (
            np.array(list(chain.from_iterable(each))) for each in (truths, predictions)
        )
        return float(self._scorer(_Predicted(expected), found, expected))

    def __repr__(self) -> str:
        return f"flat_scorer({self._scoring!r})"


class _Predicted(ClassifierMixin, BaseEstimator):
    """A classifier of known classes that predicts what it is given."""

    def __init__(self, labels: Any = None) -> None:
        self.labels = labels
        self.classes_ = np.unique(labels)

    def predict(self, X: Any) -> Any:
        """Return X."""
        return X


def _check_lengths(truths: list[Any], predictions: list[Any]) -> None:
    """Raise ValueError unless there are as many labels in each sequence."""
    check_consistent_length(truths, predictions)
    for i, (truth, prediction) in enumerate(zip(truths, predictions, strict=True)):
        if len(truth) != len(prediction):
            raise ValueError(
                f"Sequence {i} has {len(truth)} true labels, but {len(prediction)} "
                "predicted ones."
            )


def _sequences(y: Any, lengths: Any) -> list[list[Any]]:
    """Return label sequences as lists."""
    if lengths is not None:
        labels = np.asarray(y).tolist()
        starts = starts_of_lengths(lengths, len(labels), True).tolist()
        return [labels[a:b] for a, b in pairwise(starts)]
    sequences = list(y)
    for i, labels in enumerate(sequences):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(
                "Labels must be a list for each sequence, or one array with lengths; "
                f"got {labels!r} for sequence {i}."
            )
    return [
        labels.tolist() if hasattr(labels, "tolist") else list(labels)
        for labels in sequences
    ]
