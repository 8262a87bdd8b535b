"""Chunks (entities) in label sequences, and their counts for precision and recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from sklearn.utils import check_consistent_length

from .._checks import as_sample_weights, check_sample_weight, exact_names
from .sequences import starts_of_lengths

# Prefixes of chunk labels, translated to the letters of IOBES.
_PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}


def chunks_of(labels: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return the chunks in the labels of a sequence, as conlleval does.

    The rules of conlleval read all common schemes, IOB1, IOB2 (BIO), IOBES and BILOU,
    and labels that violate the scheme. A chunk begins at "B", "S" and "U"; at "I", "E"
    and "L" where no chunk is open, which is after "O", "E", "L", "S" and "U"; and
    wherever the type changes. A chunk ends at "E", "L", "S" and "U", before "O", and
    before a label that begins another chunk.

    Parameters
    ----------
    labels : iterable of str
        "O" outside of chunks; inside, one of the prefixes B, I, E, S, L and U, alone or
        followed by a hyphen and the type of the chunk: "B-PER".

    Returns
    -------
    chunks : list of (type, start, end)
        Chunks in the order of the sequence; the tokens of a chunk are
        ``labels[start:end]``. The type is the empty string where labels have no type.

    Raises
    ------
    ValueError
        If a label does not mark chunks, such as a part of speech; use
        :func:`flat_scorer` for such labels.

    See Also
    --------
    sequence_f1_score : The F1 score of chunks.
    sequence_report : Precision, recall and F1 of each type.

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
    # Type and first token of the open chunk.
    kind, start = None, 0
    end = 0
    for at, label in enumerate(labels):
        prefix, _, new_kind = str(label).partition("-")
        end = at + 1
        outside = prefix == "O" and not new_kind
        if not outside and prefix not in _PREFIXES:
            raise ValueError(
                f"{label!r} is no label of chunks, which are 'O', or begin with B, I, "
                "E, S, L or U, followed by nothing or '-' and a type. For scores of "
                "other labels take flat_scorer."
            )
        prefix = "O" if outside else _PREFIXES[prefix]
        if kind is not None and (outside or prefix in "BS" or new_kind != kind):
            chunks.append((kind, start, at))
            kind = None
        if outside:
            continue
        if kind is None:
            kind, start = new_kind, at
        if prefix in "ES":
            chunks.append((kind, start, end))
            kind = None
    if kind is not None:
        chunks.append((kind, start, end))
    return chunks


class ChunkCounts:
    """Weighted counts of true, predicted and correct chunks of each type."""

    def __init__(
        self, y_true: Any, y_pred: Any, sample_weight: Any, lengths: Any
    ) -> None:
        truths = sequences_of(y_true, lengths)
        predictions = sequences_of(y_pred, lengths)
        check_lengths(truths, predictions)
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
        """All types of chunks, sorted."""
        return sorted({*self.true, *self.predicted})

    def of(self, kinds: list[str]) -> dict[str, float]:
        """Return precision, recall, F1 and support of all chunks of the given types."""
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


def check_lengths(truths: list[Any], predictions: list[Any]) -> None:
    """Raise ValueError unless each sequence has as many predicted as true labels."""
    check_consistent_length(truths, predictions)
    for i, (truth, prediction) in enumerate(zip(truths, predictions, strict=True)):
        if len(truth) != len(prediction):
            raise ValueError(
                f"Sequence {i} has {len(truth)} true labels, but {len(prediction)} "
                "predicted ones."
            )


def sequences_of(y: Any, lengths: Any) -> list[list[Any]]:
    """Return the label sequences as lists, split by ``lengths`` if given."""
    if lengths is not None:
        labels = exact_names(y).tolist()
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
