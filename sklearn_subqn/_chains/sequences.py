"""Sequences of tokens stacked in one matrix, and the first row of each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_unmasked
from .._core.arrays import Indices


class EachSequence(list[Any]):
    """List with a result for each sequence; NumPy converts it to a 1-D array.

    From plain lists NumPy makes a two-dimensional array if all lengths are equal, and
    refuses other lists. ``cross_val_predict`` of scikit-learn concatenates the
    one-dimensional arrays of the folds.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return an array of objects, of shape (n_sequences,)."""
        if copy is False:
            raise ValueError("An array of a list is always a copy.")
        array = np.empty(len(self), dtype=object)
        for i, found in enumerate(self):
            array[i] = found
        return array if dtype is None else array.astype(dtype)


class Sequences(NamedTuple):
    """Sequences of tokens, stacked in one matrix.

    Attributes
    ----------
    X : csr_matrix or csr_array of shape (n_tokens, n_attributes)
        Tokens as rows. The entries of a row are not sorted, and a column may occur
        twice.
    starts : ndarray of shape (n_sequences + 1,)
        Tokens of sequence i are rows ``starts[i]`` to ``starts[i + 1] - 1``.
    stacked : bool
        Whether the user gave one stacked matrix with ``lengths``.
    """

    X: Any
    starts: Indices
    stacked: bool

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Indices:
        """Number of tokens of each sequence."""
        return np.diff(self.starts)

    def take(self, numbers: Indices, labels: list[Any]) -> tuple[Sequences, list[Any]]:
        """Return some sequences, by number, and the labels of their tokens."""
        if len(numbers) == len(self):
            return self, labels
        tokens, starts = tokens_of(self.starts, numbers)
        taken = Sequences(self.X[tokens], starts, self.stacked)
        return taken, [labels[t] for t in tokens.tolist()]

    def split(self, tokens: Any) -> EachSequence:
        """Return an array of results for all tokens, split by sequence."""
        bounds = pairwise(self.starts.tolist())
        return EachSequence(tokens[first:end] for first, end in bounds)


def starts_of_lengths(lengths: Any, n_tokens: int, may_be_empty: bool) -> Indices:
    """Return the first row of each sequence, followed by the number of rows.

    Raises
    ------
    TypeError, ValueError
        If ``lengths`` are not integers with the sum ``n_tokens``, or not positive where
        sequences must not be empty.
    """
    check_unmasked("lengths", lengths)
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise TypeError(
            "lengths must be a one-dimensional array of integers, got an array of "
            f"shape {counts.shape} and type {counts.dtype}."
        )
    minimum = 0 if may_be_empty else 1
    if np.any(counts < minimum):
        i = int(np.flatnonzero(counts < minimum)[0])
        raise ValueError(
            f"lengths must be {'non-negative' if may_be_empty else 'positive'}, got "
            f"{counts[i]} for sequence {i}."
            + ("" if may_be_empty else " Leave empty sequences out.")
        )
    if counts.sum() != n_tokens:
        raise ValueError(
            f"lengths must add up to the number of rows of X, {n_tokens}, got a sum of "
            f"{counts.sum()}."
        )
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def tokens_of(starts: Indices, sequences: Indices) -> tuple[Indices, Indices]:
    """Return the tokens of the given sequences, and the first token of each."""
    lengths = np.diff(starts)[sequences]
    new_starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    shifts = starts[:-1][sequences] - new_starts[:-1]
    tokens = np.arange(new_starts[-1]) + np.repeat(shifts, lengths)
    return tokens, new_starts
