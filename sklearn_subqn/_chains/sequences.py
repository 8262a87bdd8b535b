"""Sequences of tokens, one below the other, and where each begins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._checks import check_unmasked

Index = npt.NDArray[np.intp]


class EachSequence(list[Any]):
    """List of what was found for each sequence, in NumPy an array of one dimension.

    NumPy would make one of more dimensions from lists of equal length, and none from
    others; scikit-learn's ``cross_val_predict`` joins such arrays of several folds.
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
    """Sequences one below the other.

    Attributes
    ----------
    X : csr_matrix or csr_array of shape (n_tokens, n_attributes)
        Entries of a row are in no order; the same column may occur twice.
    starts : ndarray of shape (n_sequences + 1,)
        Tokens of sequence i are rows ``starts[i]`` to ``starts[i + 1] - 1``.
    stacked : bool
        Whether they were given one below the other.
    """

    X: Any
    starts: Index
    stacked: bool

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Index:
        """Number of tokens of each sequence."""
        return np.diff(self.starts)

    def split(self, tokens: Any) -> EachSequence:
        """Return what is known of all tokens, split by sequences."""
        bounds = pairwise(self.starts.tolist())
        return EachSequence(tokens[first:end] for first, end in bounds)


def starts_of_lengths(lengths: Any, n_tokens: int, may_be_empty: bool) -> Index:
    """Return where sequences of given lengths start, and the end of the last one.

    Raises
    ------
    TypeError, ValueError
        If ``lengths`` is no list of integers, positive unless sequences may be empty,
        whose sum is ``n_tokens``.
    """
    check_unmasked("lengths", lengths)
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise TypeError(
            "lengths must be a one-dimensional array of integers, got an array of "
            f"shape {counts.shape} and type {counts.dtype}."
        )
    least = 0 if may_be_empty else 1
    if np.any(counts < least):
        i = int(np.flatnonzero(counts < least)[0])
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
