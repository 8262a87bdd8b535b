"""What linear classifiers share: fitting, predictions, the interface of problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ._callbacks import FitTask
from ._core.solvers import Start
from ._estimator import (
    LinearEstimator,
    Progress,
    Solution,
    log_probabilities,
    n_threads,
    warn_of_constants,
)
from ._validation import (
    check_callback,
    check_flag,
    check_n_jobs,
    check_number,
    check_verbose,
    check_weights,
)

_Self = TypeVar("_Self", bound="LinearClassifier")


class Problems(Protocol):
    """The problems whose solutions make one model; solved for one alpha after another.

    Attributes
    ----------
    classes : ndarray
        Sorted.
    starts : list of Start
        Where each problem stands.
    """

    classes: npt.NDArray[Any]
    starts: list[Start]

    @property
    def n_outputs(self) -> int:
        """Number of problems."""
        ...

    def start_from(
        self,
        coef: npt.NDArray[Any],
        intercept: npt.NDArray[Any],
        duals: list[npt.NDArray[np.float64] | None] | None,
    ) -> None:
        """Start from a previous solution."""
        ...

    def solve(self, alpha: float, task: FitTask) -> list[Solution]:
        """Solve all problems, each from where it stands."""
        ...

    def coefficients(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return ``coef_`` and ``intercept_`` where the problems stand."""
        ...


class ScoringClassifier(ClassifierMixin, LinearEstimator):
    """Base of classifiers that predict by linear scores."""

    tol: float
    max_iter: int
    fit_intercept: bool
    memory: int
    warm_start: bool
    n_jobs: int | None
    callback: Callable[[Progress], Any] | None
    verbose: int

    classes_: npt.NDArray[Any]
    coef_: npt.NDArray[Any]
    intercept_: npt.NDArray[Any]

    def decision_function(self, X: Any) -> Any:
        """Return the signed scores of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive scores mean ``classes_[1]``.
        """
        scores = self._raw_scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0.0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def _check_common_parameters(self) -> None:
        """Raise for parameters that all have and that are not acceptable."""
        check_number("tol", self.tol, low=0.0)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("memory", self.memory, low=1, integer=True)
        check_flag("fit_intercept", self.fit_intercept)
        check_n_jobs(self.n_jobs)
        check_callback(self.callback)
        check_verbose(self.verbose)

    def _continues(self, previous: dict[str, Any], classes: npt.NDArray[Any]) -> bool:
        """Whether a previous fit was of the same classes and features."""
        return (
            self._same_features(previous)
            # As lists, since old NumPy warns at comparing numbers with strings.
            and previous["classes_"].tolist() == classes.tolist()
        )


def _has_probabilities(estimator: Any) -> bool:
    loss = getattr(estimator, "loss", "log_loss")
    known = estimator._losses_of_probabilities
    if not isinstance(loss, str) or loss not in known:
        name = repr(loss) if isinstance(loss, str) else type(loss).__name__
        names = " or ".join(f"loss={name!r}" for name in known)
        raise AttributeError(f"Probabilities need {names}, got loss={name}.")
    return True


class ProbabilityMixin:
    """Probabilities of classes by the logistic loss, the only one or one of several."""

    _losses_of_probabilities: tuple[str, ...] = ("log_loss",)
    _raw_scores: Callable[[Any], npt.NDArray[Any]]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes; only for losses that tell them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities; only for losses that tell them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._log_probabilities(self._softmax_scores(X))

    def _log_probabilities(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return log probabilities from raw scores."""
        return log_probabilities(scores)

    def _softmax_scores(self, X: Any) -> npt.NDArray[Any]:
        """Return the scores of which probabilities are the softmax."""
        return self._raw_scores(X)


class LinearClassifier(ScoringClassifier, ABC):
    """Base of classifiers of separate ``Problems``, for a strength ``alpha``."""

    alpha: float
    class_weight: Any

    def _instead(self) -> str:
        """Return what to do where the optimum makes no use of the features."""
        return "take class_weight='balanced', or a logistic loss"

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        """Set the fitted attributes, and warn of models that are of no use."""
        several = len(solutions) == len(problems.classes)
        warn_of_constants(
            type(self).__name__,
            solutions,
            self._instead(),
            problems.classes if several else None,
        )
        self.classes_ = problems.classes
        self.coef_, self.intercept_ = problems.coefficients()
        objectives = np.array([solution.objective for solution in solutions])
        gaps = np.array([solution.dual_gap for solution in solutions])
        binary = len(solutions) == 1
        self.objective_ = float(objectives[0]) if binary else objectives
        self.dual_gap_ = float(gaps[0]) if binary else gaps
        self.n_iter_ = max(1, *(solution.n_iter for solution in solutions), 1)
        self.history_ = [solution.history for solution in solutions]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for parameters that are not acceptable."""

    @abstractmethod
    def _problems(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weights: npt.NDArray[np.float64],
        classes: npt.NDArray[Any],
        n_threads: int,
    ) -> Problems:
        """Return the problems of validated data; weights sum to one."""

    def _fit(self: _Self, X: Any, y: Any, sample_weight: Any) -> _Self:
        """Validate everything, solve for ``alpha`` and set the fitted attributes."""
        self._check_parameters()
        check_flag("warm_start", self.warm_start)
        check_number("alpha", self.alpha, low=0.0, low_included=False)
        previous = vars(self).copy() if self.warm_start else {}
        raw_X, raw_y = X, y
        X, y = self._check_X(X, y, reset=True)
        weights, classes = check_weights(sample_weight, X, y, self.class_weight)
        problems = self._problems(X, y, weights, classes, n_threads(self.n_jobs))
        if self._continues(previous, problems.classes):
            problems.start_from(
                previous["coef_"], previous["intercept_"], previous.get("_duals")
            )
        task = FitTask(
            self, problems.n_outputs, self.max_iter, raw_X, raw_y, sample_weight
        )
        self._store(problems, problems.solve(float(self.alpha), task))
        # Dual points are only worth their memory to a fit that starts from them.
        self._duals = (
            [start.dual for start in problems.starts] if self.warm_start else None
        )
        task.end()
        return self
