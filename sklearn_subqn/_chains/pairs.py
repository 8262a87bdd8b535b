"""Which pairs of a feature and a label, and of two labels, have a parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._core.arrays import Array, Floats, Indices, Mask
from .._core.records import stored


@stored
class Pairs(NamedTuple):
    """The labels with which each feature has a parameter.

    Attributes
    ----------
    ptr : ndarray of int32 of shape (d + 1,)
        Feature j has parameters number ptr[j] to ptr[j + 1] - 1.
    labels : ndarray of uint16 of shape (P,)
        The label of each parameter, ascending within a feature.
    """

    ptr: npt.NDArray[np.intc]
    labels: npt.NDArray[np.uint16]

    @property
    def features(self) -> Indices:
        """The feature of each parameter, of shape (P,)."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def places(self, stride: int) -> Indices:
        """Return each parameter's index in the layout with ``stride`` per feature."""
        return self.features * stride + self.labels


def all_pairs(n_features: int, n_labels: int) -> Pairs:
    """Return all pairs of a feature and a label."""
    ptr = np.arange(n_features + 1, dtype=np.intc) * np.intc(n_labels)
    return Pairs(ptr, np.tile(np.arange(n_labels, dtype=np.uint16), n_features))


def observed_pairs(X: Any, labels: Indices, n_labels: int) -> Pairs:
    """Return the pairs of a feature and a label that occur together in a token.

    Parameters
    ----------
    X : CSR matrix or array of shape (T, d)
    labels : ndarray of shape (T,)
    n_labels : int
        Number k of labels; labels are 0 to k - 1.
    """
    n = len(labels)
    ones = np.ones(n, dtype=np.int32)
    own = sparse.csr_array((ones, labels, np.arange(n + 1)), shape=(n, n_labels))
    pattern = sparse.csr_array(
        (np.ones(X.nnz, dtype=np.int32), X.indices, X.indptr), shape=X.shape
    )
    product = sparse.csr_array(pattern.T @ own)
    product.sort_indices()
    return Pairs(product.indptr.astype(np.intc), product.indices.astype(np.uint16))


def frequent_pairs(
    pairs: Pairs, X: Any, labels: Indices, weights: Floats, least: float
) -> Pairs:
    """Return the pairs that occur in tokens with a total weight >= ``least``.

    Parameters
    ----------
    pairs : Pairs
    X, labels
        See ``observed_pairs``.
    weights : ndarray of shape (T,)
    least : float
        Positive.
    """
    k = int(labels.max()) + 1
    own = sparse.csr_array((weights, labels, np.arange(len(labels) + 1)))
    present = sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    seen = sparse.coo_array(present.T @ own)
    often = seen.data >= least
    numbers = seen.row[often].astype(np.intp) * k + seen.col[often]
    kept = np.isin(pairs.features * k + pairs.labels, numbers) & (pairs.labels < k)
    return kept_pairs(pairs, kept, np.ones(len(pairs.ptr) - 1, dtype=bool))


def kept_pairs(pairs: Pairs, kept: Mask, features: Mask) -> Pairs:
    """Return the pairs selected by ``kept``, renumbering the selected features."""
    sizes = np.bincount(pairs.features[kept], minlength=len(features))[features]
    ptr = np.append(0, np.cumsum(sizes)).astype(np.intc)
    return Pairs(ptr, pairs.labels[kept])


def places_of(pairs: Pairs, features: Indices, labels: Indices) -> Indices:
    """Return the index of each (feature, label) among the pairs, -1 if absent.

    Negative features and labels are unknown, and absent.
    """
    if not len(pairs.labels):
        return np.full(len(features), -1)
    k = int(max(pairs.labels.max(), labels.max(initial=0))) + 1
    known, numbers = pairs.places(k), features * k + labels
    places = np.searchsorted(known, numbers)
    places[places == len(known)] = 0
    found = (features >= 0) & (labels >= 0)
    found &= known[places] == numbers
    return np.where(found, places, -1)


def merged(pairs: Pairs, more: Pairs) -> tuple[Pairs, Indices]:
    """Return the union of two sets of pairs, and the first set's indices in the union.

    The second set may have more features than the first.
    """
    d = len(more.ptr) - 1
    k = int(max(pairs.labels.max(initial=0), more.labels.max(initial=0))) + 1
    known = pairs.places(k)
    numbers = np.union1d(known, more.places(k))
    features, labels = numbers // k, (numbers % k).astype(np.uint16)
    ptr = np.append(0, np.cumsum(np.bincount(features, minlength=d))).astype(np.intc)
    return Pairs(ptr, labels), np.searchsorted(numbers, known)


def followers(starts: Indices) -> Indices:
    """Return the tokens that are not the first of their sequence."""
    inner = np.ones(starts[-1], dtype=bool)
    inner[starts[:-1]] = False
    return np.flatnonzero(inner)


def pair_counts(
    labels: Indices, starts: Indices, k: int, weights: Floats | None = None
) -> Array:
    """Return how often label j follows label i within sequences, [i, j] of (k, k).

    With weights of shape (T,), the weights of tokens j are summed.
    """
    second = followers(starts)
    places = labels[second - 1] * k + labels[second]
    s = None if weights is None else weights[second]
    return np.asarray(np.bincount(places, s, k * k).reshape(k, k))


def observed_transitions(labels: Indices, starts: Indices, k: int) -> Mask:
    """Return which transitions [i, j] occur within sequences, of shape (k, k)."""
    return pair_counts(labels, starts, k) > 0
