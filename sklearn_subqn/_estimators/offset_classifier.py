"""The base of classifiers with offsets: known numbers that are added to the scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score

from .._checks import as_numpy, check_offset, exact_labels
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array
from .._core.names import check_same_rows
from .._solving.callbacks import with_callbacks
from .block_methods import available_if, blockwise, scored
from .classification_losses import SMOOTH
from .classifier import LinearClassifier, has_probabilities
from .estimator import loss_name
from .offsets import warn_of_missing_offset


class OffsetClassifier(LinearClassifier):
    """Base of classifiers whose methods take an ``offset``."""

    loss: Any

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy. Dask arrays and dataframes stay where they are, with ``y``,
            ``sample_weight`` and ``offset`` in the same blocks; :class:`RowBlocks` are
            read in blocks. Both are for losses by name that are sums over samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, like a feature with the coefficient 1:
            for example the log odds of another model. For two classes and a smooth
            loss, such as "log_loss" or "squared_hinge".
        coef_init : array-like, default=None
            Initial coefficients, of the shape of ``coef_``, or (n_features,) if it has
            one row. They take precedence over a warm start. They affect the time of the
            fit, not the solution.
        intercept_init : array-like, default=None
            Initial intercepts, of the shape of ``intercept_``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the fit overflows. A previously fitted
            estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        UserWarning
            If the optimum does not use the features; the message says what to change.
        """
        self._fit(X, y, sample_weight, coef_init, intercept_init, offset=offset)
        return self

    @blockwise
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Return the signed scores of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, by default zero. A model that was
            fitted with an offset warns if ``offset`` is None; pass 0 to avoid the
            warning.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive scores mean ``classes_[1]``.
        """
        scores = self._offset_scores(X, offset)
        return scores.ravel() if scores.shape[1] == 1 else scores

    @blockwise
    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, by default zero. A model that was
            fitted with an offset warns if ``offset`` is None; pass 0 to avoid the
            warning.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted classes.
        """
        scores = self._offset_scores(X, offset)
        if scores.shape[1] > 1:
            return self.classes_[scores.argmax(axis=1)]
        # A score of zero predicts the class other than the positive class.
        first = getattr(self, "pos_label_", None) == self.classes_[0]
        second = scores.ravel() >= 0.0 if first else scores.ravel() > 0.0
        return self.classes_[second.astype(np.intp)]

    @available_if(has_probabilities)
    @blockwise
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """Return the probabilities of the classes, for losses that provide them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, by default zero. A model that was
            fitted with an offset warns if ``offset`` is None; pass 0 to avoid the
            warning.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._probabilities(self._scores_for_probabilities(X, offset))

    @available_if(has_probabilities)
    @blockwise
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """Return the logarithms of the probabilities, for losses that provide them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, by default zero. A model that was
            fitted with an offset warns if ``offset`` is None; pass 0 to avoid the
            warning.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._log_probabilities(self._scores_for_probabilities(X, offset))

    def _scores_for_probabilities(self, X: Any, offset: Any) -> Array:
        if offset is None:
            warn_of_missing_offset(self, offset)
            return self._softmax_scores(X)
        return self._offset_scores(X, offset)

    @scored
    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> float:
        """Return the accuracy of predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, by default zero. A model that was
            fitted with an offset warns if ``offset`` is None; pass 0 to avoid the
            warning.

        Returns
        -------
        score : float
            The fraction of correctly classified samples.
        """
        check_same_rows(X, y=y, sample_weight=sample_weight)
        labels, weights = exact_labels("y", y), as_numpy(sample_weight)
        predictions = self.predict(X, offset)
        return float(accuracy_score(labels, predictions, sample_weight=weights))

    def _offset_scores(self, X: Any, offset: Any) -> Array:
        """Return scores of shape (n_samples, n_outputs)."""
        check_same_rows(X, offset=offset)
        scores = self._raw_scores(X)
        warn_of_missing_offset(self, offset)
        if offset is not None:
            n = len(scores)
            scores += self._checked_offset(offset, n, self.classes_)[:, np.newaxis]
        return scores

    def _checked_offset(self, offset: Any, n: int, classes: Any = None) -> Any:
        if offset is None:
            return None
        if not isinstance(self.loss, str) or self.loss not in SMOOTH:
            names = " or ".join(map(repr, SMOOTH))
            raise ValueError(
                f"offset needs loss={names}; got loss={loss_name(self.loss)}."
            )
        if len(classes) != 2:
            raise ValueError(f"offset needs two classes; got {len(classes)}.")
        return check_offset(offset, n)
