"""Prediction with chains: labelings and probabilities."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any, overload

import numpy as np

from .._checks import check_number, check_sample_weight
from .._core.arrays import Array, Floats
from .._estimators.block_methods import available_if
from .inference import best_of_one
from .model import ChainModel
from .sequences import EachSequence
from .tokens import plain_rows


def _is_log_loss(estimator: Any) -> bool:
    if estimator.loss != "log_loss":
        raise AttributeError(
            f"Probabilities need loss='log_loss', got loss={estimator.loss!r}."
        )
    return True


class PredictsLabels(ChainModel):
    """Base class of chain estimators: predictions and scores."""

    @overload
    def predict(self, X: Any, *, lengths: None = None) -> list[list[Any]]: ...

    @overload
    def predict(self, X: Any, *, lengths: Any) -> Array: ...

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the most probable labeling of each sequence.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        y : list of lists of labels, or ndarray of shape (n_tokens,) with ``lengths``
            The labels of each sequence, or of each token. ``numpy.asarray`` turns the
            list into an array of lists of shape (n_sequences,), even if all lists have
            equal lengths.
        """
        data = self._read(X, lengths)
        found = self.classes_[self._lattice(data).best()]
        return found if data.stacked else data.split(found.tolist())

    def predict_single(self, x: Any) -> list[Any]:
        """Return the most probable labels of one sequence.

        Parameters
        ----------
        x : sequence of tokens
            One sequence of the kind that ``fit`` takes.

        Returns
        -------
        labels : list
            The label of each token.
        """
        columns = getattr(self, "_columns", None)
        rows = plain_rows(x, columns) if columns else None
        if rows is None:
            return list(self.predict([x])[0])
        rules, w = self._rules, self._w.astype(np.float64, copy=False)
        parameters = self._pairs, self._transitions, w
        best = best_of_one(rows, *parameters, rules.allowed, rules.ends)
        return list(self.classes_[best].tolist())

    @available_if(_is_log_loss)
    def predict_marginals(
        self, X: Any, *, lengths: Any = None
    ) -> list[list[dict[Any, float]]] | Floats:
        """Return the probabilities of the labels of each token; only for the log loss.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        marginals : list of lists of dicts, or ndarray of shape (n_tokens, n_classes)
            For each token a dict from labels to probabilities; with ``lengths`` an
            array with columns in the order of ``classes_``.
        """
        data = self._read(X, lengths)
        nodes = self._lattice(data).marginals()
        if data.stacked:
            return nodes
        labels = self.classes_.tolist()
        rows = [dict(zip(labels, row, strict=True)) for row in nodes.tolist()]
        return data.split(rows)

    @available_if(_is_log_loss)
    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Return the probabilities of the labels of each token of one sequence.

        Parameters
        ----------
        x : sequence of tokens
            One sequence of the kind that ``fit`` takes.

        Returns
        -------
        marginals : list of dicts
            A dict from labels to probabilities for each token.
        """
        return list(self.predict_marginals([x])[0])

    @available_if(_is_log_loss)
    def predict_edge_marginals(self, X: Any, *, lengths: Any = None) -> list[Floats]:
        """Return the probabilities of pairs of adjacent labels; only for the log loss.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        marginals : list of ndarray of shape (length - 1, n_classes, n_classes)
            Entry [t, i, j] of a sequence is the probability that token t has label i
            and token t + 1 label j, in the order of ``classes_``.
        """
        data = self._read(X, lengths)
        edges = self._lattice(data).edge_marginals()
        return EachSequence(part[1:] for part in data.split(edges))

    def predict_n_best(
        self, X: Any, n: int, *, lengths: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the n best labelings of each sequence.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        n : int
            Number of labelings, at least 1.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        labelings : list of lists of tuples
            For each sequence, its labelings from the best to the n-th, each with the
            natural logarithm of its probability, or with the hinge its score. Sequences
            with fewer than n labelings have shorter lists.
        """
        check_number("n", n, low=1, integer=True)
        data = self._read(X, lengths)
        lattice = self._lattice(data)
        found, scores = lattice.n_best(n)
        if self.loss == "log_loss":
            scores = scores - lattice.log_partition()[:, None]
        labels = self.classes_.tolist()
        out = EachSequence()
        bounds = data.starts.tolist()
        numbers = itertools.count()
        for first, end in pairwise(bounds):
            if first == end:
                out.append([([], 0.0)])
                continue
            i = next(numbers)
            n_found = np.count_nonzero(scores[i] > -np.inf)
            out.append(
                [
                    (
                        [labels[code] for code in found[r, first:end]],
                        float(scores[i, r]),
                    )
                    for r in range(n_found)
                ]
            )
        return out

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None
    ) -> float:
        """Return the accuracy: the share of tokens whose predicted label is correct.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weights of the sequences; each token has the weight of its sequence.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        data = self._read(X, lengths)
        labels = self._labels(y, data)
        if not labels:
            raise ValueError("X has no tokens whose labels could be right.")
        weights = check_sample_weight(sample_weight, len(data))
        found = self.classes_[self._lattice(data).best()].tolist()
        right = [a == b for a, b in zip(found, labels, strict=True)]
        return float(np.average(right, weights=np.repeat(weights, data.lengths)))
