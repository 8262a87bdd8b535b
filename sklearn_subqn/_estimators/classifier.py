"""The base of linear classifiers: fitting, predictions, probabilities."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import (
    Weighed,
    as_numpy,
    check_weights,
    distinct_classes,
    exact_labels,
)
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array, Floats
from .._core.names import check_same_rows
from .._features.strength import Rule, rule_of_labels
from .._problems import Problems
from .._solving.callbacks import with_callbacks
from .block_methods import available_if, blockwise, scored
from .estimator import forget, loss_name
from .export import coef_table, to_sklearn
from .held_out_strength import Choice, choose
from .linear_estimator import LinearEstimator
from .predictions import log_probabilities, probabilities


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss provides probabilities; raise AttributeError if not."""
    loss = getattr(estimator, "loss", "log_loss")
    known = estimator._losses_of_probabilities
    if getattr(loss, "tells_probabilities", False):
        return True
    if not isinstance(loss, str) or loss not in known:
        names = " or ".join(f"loss={name!r}" for name in known)
        raise AttributeError(f"Probabilities need {names}, got loss={loss_name(loss)}.")
    return True


def has_plain_labels(labels: Any, estimator: Any) -> bool:
    """Whether labels are integers as in ``fit``, for which checks may be skipped.

    scikit-learn's check of the type of targets takes longer than a prediction.
    """
    check_is_fitted(estimator)
    return (
        type(labels) is np.ndarray
        and labels.ndim == 1
        and len(labels) > 0
        and {labels.dtype.kind, estimator.classes_.dtype.kind} <= set("iub")
    )


@available_if(has_probabilities)
@blockwise
def predict_proba(self: Any, X: Any) -> Array:
    """Return the probabilities of the classes, for losses that provide them.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes)
        Probabilities in the order of ``classes_``.
    """
    return self._probabilities(self._softmax_scores(X))


@available_if(has_probabilities)
@blockwise
def predict_log_proba(self: Any, X: Any) -> Array:
    """Return the logarithms of the probabilities, for losses that provide them.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.

    Returns
    -------
    log_probabilities : ndarray of shape (n_samples, n_classes)
        Logarithms in the order of ``classes_``.
    """
    return self._log_probabilities(self._softmax_scores(X))


class ScoringClassifier(ClassifierMixin, LinearEstimator):
    """Base of classifiers that predict by linear scores."""

    classes_: Array
    coef_: Array
    intercept_: Array

    #: Losses whose scores determine probabilities.
    _losses_of_probabilities: ClassVar[tuple[str, ...]] = ("log_loss", "modified_huber")

    to_sklearn = to_sklearn
    coef_table = coef_table

    @blockwise
    def decision_function(self, X: Any) -> Array:
        """Return the signed scores of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive scores mean ``classes_[1]``.
        """
        scores = self._raw_scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    @blockwise
    def predict(self, X: Any) -> Array:
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted classes.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_.take(scores > 0.0)
        return self.classes_[scores.argmax(axis=1)]

    @scored
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.

        Returns
        -------
        score : float
            The fraction of correctly classified samples.
        """
        check_same_rows(X, y=y, sample_weight=sample_weight)
        labels = exact_labels("y", y)
        if sample_weight is None and has_plain_labels(labels, self):
            predicted = self.predict(X)
            if len(predicted) == len(labels):
                return float(np.mean(predicted == labels))
        return float(super().score(X, labels, as_numpy(sample_weight)))

    def _log_probabilities(self, scores: Array) -> Array:
        """Return log probabilities from raw scores."""
        if self._link() != "clipped":
            return log_probabilities(scores)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._probabilities(scores)))

    def _probabilities(self, scores: Array) -> Array:
        """Return probabilities from raw scores."""
        if self._link() != "clipped":
            return probabilities(scores)
        # The minimizer of the expected loss is 2 p - 1 (Zhang 2004, table 1).
        p = 0.5 + 0.5 * scores.clip(-1.0, 1.0)
        if p.shape[1] == 1:
            p = np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.asarray(
            np.where(total > 0.0, p, 1.0) / np.where(total > 0.0, total, p.shape[1])
        )

    def _link(self) -> str:
        """Return the name of the map from scores to probabilities."""
        clips = getattr(self, "loss", "log_loss") == "modified_huber"
        return "clipped" if clips else "softmax"

    def _softmax_scores(self, X: Any) -> Array:
        """Return the scores whose softmax are the probabilities."""
        return self._raw_scores(X)


class LinearClassifier(ScoringClassifier):
    """Base of classifiers for one class per sample."""

    alpha: float | str
    class_weight: Any

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy. Dask arrays and dataframes, which not all classifiers take,
            stay where they are, with ``y`` and ``sample_weight`` in the same blocks;
            :class:`RowBlocks`, which the same classifiers take, are read in blocks.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.
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
        return self._fit(X, y, sample_weight, coef_init, intercept_init)

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        X, y = self._checked(X, y)
        weighed = check_weights(sample_weight, y, self.class_weight)
        start = self._choose_strength(X, y, weighed)
        problems = self._problems(X, y, weighed.shares, weighed.classes)
        if start:
            problems.start_from(start)
        return problems

    def _choose_strength(self, X: Any, y: Any, weighed: Weighed) -> dict[str, Any]:
        """Choose the strength on held-out rows, if ``alpha`` is automatic.

        This applies to losses that are sums over rows with one class each. The
        attributes of a model near the optimum are returned, if there is one.
        """
        self._choice, self._total = Choice(), weighed.total
        forget(self, "auto_scores_")
        if not isinstance(getattr(self, "alpha", None), str):
            return {}
        self.auto_scores_: list[tuple[float, bool, float]] = []
        if not self._is_chosen():
            return {}
        rows = X, y, weighed.shares, weighed.classes
        self._choice, self.auto_scores_, start = choose(self, *rows, self._total)
        return start

    def _of_chosen(self) -> Any:
        if not isinstance(getattr(self, "alpha", None), str):
            return self
        chosen = clone(self).set_params(alpha=self.alpha_)
        if self._has_scales():
            chosen.set_params(penalty_factor=self.penalty_factor_)
        return chosen

    def _is_chosen(self) -> bool:
        """Whether the strength of the penalty is chosen on held-out rows."""
        return True

    def _labels_in(self, y: Any) -> Array | None:
        return distinct_classes(y)

    def _shares(self, labels: Array, weights: Floats) -> tuple[Floats, Array]:
        """Return normalized row weights, with class weights, and the classes."""
        class_weight = getattr(self, "class_weight", None)
        found = check_weights(weights, labels, class_weight, labels)
        self._total = found.total
        return found[:2]

    def _rule(self, target: Any, weights: Floats) -> Rule:
        return rule_of_labels(getattr(self, "loss", "log_loss"))

    def _total_weight(self, problems: Any, y: Any, sample_weight: Any) -> float:
        # Multilabel classifiers have no ``class_weight``.
        if getattr(self, "class_weight", None) is None:
            return super()._total_weight(problems, y, sample_weight)
        return self._total

    def _instead(self) -> str:
        return "take class_weight='balanced', or a logistic loss"
