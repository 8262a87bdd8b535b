"""The linear map from parameters to the scores of chains, and its adjoint.

Scores of all tokens and of transitions are rows of one array: with the features X of
shape (T, d) of T tokens and k labels, z = [X W; A] of shape (T + k, k) holds the
emissions X W and below them the transitions A. Only the listed pairs of a feature and a
label, and of two labels, have a parameter; all other pairs score zero. The loss, not
the design, forbids transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from .._core.arrays import Floats, Indices, Mask
from .._core.kernels import chain_pairs
from .._core.rows.design import Shape
from .._core.rows.linear_map import PART_SIZE
from .pairs import Pairs
from .sequences import tokens_of

Result = TypeVar("Result")

# Number of partial sums over tokens, for any number of threads. Each partial sum needs
# memory for all parameters, and time for the addition. docs/constants.md has the
# figures.
_PARTS = 2

# Parameters are padded to a dense (feature, label) array where this array has at most
# twice as many entries as X stores. docs/constants.md has the figures.
_PADDED_SHARE = 2


class ChainDesign:
    """Linear map w -> z from parameters to the scores of chains.

    Parameters
    ----------
    X : CSR matrix or CSR array of shape (T, d)
        Features of the tokens of all sequences, float64 or float32; never copied. The
        products do not read the stored entries where all of them are one.
    starts : ndarray of intp of shape (n + 1,)
        First token of each sequence, and T.
    n_labels : int
        Number k of labels.
    pairs : Pairs
        The P pairs of a feature and a label that have a parameter.
    transitions : ndarray of bool of shape (k, k)
        Which transitions have a parameter: [i, j] from label i to j.
    n_threads : int
        Number of threads. Products are the same for every number.
    padded : bool
        Whether parameters may be padded for speed. Padding depends on the number of
        tokens and changes the order of the terms of a sum, hence its rounding error.

    Attributes
    ----------
    n_rows : int
        Number n of sequences.
    n_tokens, n_params : int
        Numbers T of tokens and q of parameters. The parameter vector w of shape (q,)
        has the P pairs first, then the transitions in the order of ``transitions``.
    passes : float
        Products with X or its transpose so far.
    pool : ThreadPoolExecutor or None
        The pool of threads; None for one thread.
    """

    in_one_place = True

    def __init__(
        self,
        X: Any,
        starts: Indices,
        n_labels: int,
        pairs: Pairs,
        transitions: Mask,
        *,
        n_threads: int = 1,
        padded: bool = True,
    ) -> None:
        self.X = X
        self.starts = starts
        self.n_rows = len(starts) - 1
        self.n_tokens, self.n_features = X.shape
        self.n_labels = n_labels
        self.pairs = pairs
        self.transitions = transitions
        self.n_pairs = len(pairs.labels)
        self.n_params = self.n_pairs + int(np.count_nonzero(transitions))
        self.passes = 0.0
        self.n_threads = n_threads
        is_binary = bool(np.all(X.data == 1.0))
        self.data = X.data[:0] if is_binary else X.data
        # Rows of the padded array have a multiple of four entries.
        stride = -(-n_labels // 4) * 4
        padded = padded and self.n_features * stride <= _PADDED_SHARE * X.nnz
        self.stride = stride if padded else 0
        self._places = pairs.places(stride) if padded else None
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def nbytes(self) -> int:
        """Size of the arrays of X in bytes."""
        X = self.X
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)

    @property
    def squared_norm(self) -> float:
        """Sum of the squares of the stored entries of X."""
        return float(self.data @ self.data) if len(self.data) else float(self.X.nnz)

    def as_shape(self) -> Shape:
        """Return the sizes of the design, without its data."""
        return Shape(
            n_rows=self.n_rows,
            n_features=self.n_features,
            n_entries=self.X.nnz,
            n_coef=self.n_params,
            n_params=self.n_params,
            n_outputs=self.n_labels,
            nbytes=self.nbytes,
            fit_intercept=False,
            shares_coef=True,
            is_sparse=True,
            holds_rows=True,
        )

    def products_so_far(self) -> float:
        """Return ``passes``."""
        return self.passes

    def row_weights(self, weights: Floats) -> Floats:
        """Return the weight of each row of scores, which is one for transitions."""
        tokens = np.repeat(weights, np.diff(self.starts))
        return np.append(tokens, np.ones(self.n_labels))

    def mean_squares(self, weights: Floats) -> Floats:
        """Return the weighted mean square of each column, of shape (q,)."""
        tokens = np.repeat(weights, np.diff(self.starts))
        squares = np.ones(self.n_params)
        of_features = column_squares(self.X, tokens)
        squares[: self.n_pairs] = np.repeat(of_features, np.diff(self.pairs.ptr))
        return squares

    def squared_size(self, weights: Floats) -> float:
        """Return the sum of ``mean_squares``."""
        return float(self.mean_squares(weights).sum())

    def zero_scores(self) -> Floats:
        """Return the scores of w = 0."""
        return np.zeros((self.n_tokens + self.n_labels, self.n_labels))

    def forward(self, w: Floats) -> Floats:
        """Return the scores z of shape (T + k, k) for w of shape (q,)."""
        self.passes += 1.0
        scores = np.empty((self.n_tokens + self.n_labels, self.n_labels))
        emissions = scores[: self.n_tokens]
        arrays = self.data, self.X.indices, self.X.indptr, *self.pairs, self.stride
        params = self.pad(w)

        def multiply(part: tuple[int, int]) -> None:
            chain_pairs.forward(*arrays, params, *part, emissions)

        self._each(multiply, self.n_threads)
        scores[self.n_tokens :] = self.transition_scores(w)
        return scores

    def transition_scores(self, w: Floats) -> Floats:
        """Return the transition scores of shape (k, k) for w of shape (q,)."""
        scores = np.zeros((self.n_labels, self.n_labels))
        scores[self.transitions] = w[self.n_pairs :]
        return scores

    def adjoint(self, dual: Floats) -> Floats:
        """Return the adjoint map of a dual u of shape (T + k, k), of shape (q,)."""
        self.passes += 1.0
        emissions = dual[: self.n_tokens]
        arrays = self.data, self.X.indices, self.X.indptr, *self.pairs, self.stride
        size = self.n_features * self.stride or self.n_pairs

        def multiply(part: tuple[int, int]) -> Floats:
            v = np.zeros(size)
            chain_pairs.adjoint(*arrays, emissions, *part, v)
            return v

        v, *others = self._each(multiply, _PARTS)
        for other in others:
            v += other
        product = np.empty(self.n_params)
        product[: self.n_pairs] = self.unpad(v)
        product[self.n_pairs :] = dual[self.n_tokens :][self.transitions]
        return product

    def _each(
        self, function: Callable[[tuple[int, int]], Result], n_parts: int
    ) -> list[Result]:
        """Return the results of a function for each part of the tokens, in order."""
        n_parts = max(1, min(n_parts, self.n_tokens, self.X.nnz // PART_SIZE))
        bounds = [self.n_tokens * i // n_parts for i in range(n_parts + 1)]
        parts = list(pairwise(bounds))
        if self.pool is None or n_parts == 1:
            return [function(part) for part in parts]
        return list(self.pool.map(function, parts))

    def pad(self, w: Floats) -> Floats:
        """Return the parameters of pairs, padded if the design is."""
        if self._places is None:
            return np.ascontiguousarray(w[: self.n_pairs])
        params = np.zeros(self.n_features * self.stride)
        params[self._places] = w[: self.n_pairs]
        return params

    def unpad(self, params: Floats) -> Floats:
        """Return the parameters of pairs of shape (P,), the inverse of ``pad``."""
        return params if self._places is None else params[self._places]

    def take(self, sequences: Indices) -> ChainDesign:
        """Return the design of the given sequences, with all parameters of this one."""
        tokens, starts = tokens_of(self.starts, sequences)
        return ChainDesign(
            self.X[tokens],
            starts,
            self.n_labels,
            self.pairs,
            self.transitions,
            n_threads=self.n_threads,
        )


def column_squares(X: Any, weights: Floats) -> Floats:
    """Return the weighted sum of the squares of each column, given weights of rows."""
    terms = np.repeat(weights, np.diff(X.indptr)) * X.data.astype(np.float64) ** 2
    return np.asarray(np.bincount(X.indices, terms, X.shape[1]))
