"""Scores of folds by scorers of scikit-learn, and the choice if some are missing."""

from __future__ import annotations

import copy
import inspect
import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._checks.callers import user_level
from .._core.arrays import Array, Floats, Indices
from .._core.lazy import cached_property

# A search warns if smaller alphas may raise the mean score by a hundredth of its range
# over the grid. docs/constants.md has the figures.
_NOTICEABLE = 0.01


def check_error_score(value: Any) -> None:
    """Raise unless ``value`` is "raise" or a number, which may be NaN."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number and not (isinstance(value, str) and value == "raise"):
        raise ValueError(f"error_score must be 'raise' or a number, got {value!r}.")


def with_classes(scorer: Any, classes: Array, method: str | None = None) -> Any:
    """Return a scorer with all classes; with ``method``, only if the scorer uses it.

    The columns of probabilities are for all classes, but the samples of a fold may lack
    some of them. Metrics that accept ``labels`` get all classes, and the second of two
    classes as ``pos_label``, as in scikit-learn's ``LogisticRegressionCV``.
    """
    metric = getattr(scorer, "_score_func", None)
    methods = getattr(scorer, "_response_method", ())
    methods = [methods] if isinstance(methods, str) else methods
    if metric is None or not (method is None or method in methods):
        return scorer
    accepted = inspect.signature(metric).parameters
    if "labels" not in accepted:
        return scorer
    known: dict[str, Any] = {"labels": classes}
    if len(classes) == 2 and "pos_label" in accepted:
        known["pos_label"] = classes[1]
    scorer = copy.copy(scorer)
    scorer._kwargs = {**known, **scorer._kwargs}
    return scorer


def refuses_weights(scorer: Any) -> bool:
    """Whether a scorer's metadata request excludes sample weights."""
    if not hasattr(scorer, "get_metadata_routing"):
        return False
    score = getattr(scorer.get_metadata_routing(), "score", None)
    return score is not None and score.requests.get("sample_weight") is False


class FoldScore:
    """Scores a model on the test rows of a fold.

    Parameters
    ----------
    scorer : callable
    model : callable
        Returns the model with its present coefficients.
    held_out : callable
        Returns X and y of the test rows.
    weights : ndarray or None
    error_score : float or str

    Attributes
    ----------
    data : tuple
        X and y of the test rows, which are copied when first asked for.
    keywords : dict
        The weights, if the scorer takes them.
    failures : list of Exception
        Errors raised by the scorer.
    """

    def __init__(
        self,
        scorer: Callable[..., float],
        model: Callable[[], Any],
        held_out: Callable[[], tuple[Any, Any]],
        weights: Floats | None,
        error_score: Any,
    ) -> None:
        self._scorer, self.model, self._held_out = scorer, model, held_out
        self.keywords = {}
        if weights is not None and not refuses_weights(scorer):
            self.keywords["sample_weight"] = weights
        self._error_score = error_score
        self.failures: list[Exception] = []

    @cached_property
    def data(self) -> tuple[Any, Any]:
        return self._held_out()

    def __call__(self) -> Any:
        """Return the score, or ``error_score`` if the scorer fails."""
        X, y = self.data
        try:
            return self._scorer(self.model(), X, y, **self.keywords)
        except Exception as error:
            if isinstance(self._error_score, str):
                raise
            self.failures.append(error)
            return self._error_score


def rows_with_weight(test: Indices, n: int, weights: Floats | None) -> Indices:
    """Return the indices of the test samples that have weight in scores."""
    test = np.arange(n)[test]
    if weights is None:
        return test
    # Samples of weight zero are ignored, and so are classes without other samples.
    test = test[weights[test] > 0.0]
    if not len(test):
        raise ValueError("A test part of cv has no samples of positive weight.")
    return test


def checked_score(score: Any) -> float:
    """Return a score as a float; raise if it is not a number."""
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scoring must return a number, got {score!r}.") from error


def best_alpha(
    scores: Floats, alphas: Floats, failures: Sequence[Sequence[Exception]]
) -> tuple[int, float]:
    """Return the index of the largest finite mean score, and that score.

    Folds without any finite score, such as folds that lack a class that the metric
    needs, are excluded from the means with a warning.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
    alphas : ndarray of shape (n_alphas,)
    failures : sequence of length n_folds
        Errors raised by the scorer on each fold.

    Raises
    ------
    Exception
        The scorer's error, if it failed on all folds for all ``alpha``.
    ValueError
        If no mean is finite.
    """
    raised = [error for errors in failures for error in errors]
    if len(raised) == scores.size:
        raise raised[0]
    scored = np.isfinite(scores).any(axis=1)
    failed = [fold for fold, errors in enumerate(failures) if errors]
    reason = f" ({type(raised[0]).__name__}: {raised[0]})" if raised else ""
    if failed:
        _warn(
            f"Scoring failed on {_folds(failed)}{reason}: error_score is in place of "
            "these scores."
        )
    if scored.any() and not scored.all():
        _warn(
            f"{_folds(np.flatnonzero(~scored).tolist()).capitalize()}, without any "
            "finite score, counts for nothing in the choice of alpha."
        )
    means = (scores[scored] if scored.any() else scores).mean(axis=0)
    finite = np.isfinite(means)
    if not finite.any():
        raise ValueError(
            "No mean of the scores of the folds is finite, for any alpha. Is there a "
            f"fold that cannot be scored, for example of one class?{reason}"
        )
    if not finite.all():
        _warn(
            "Scores of folds are not finite for alpha = "
            f"{alphas[~finite].tolist()}, which were not chosen."
        )
    best = int(np.argmax(np.where(finite, means, -np.inf)))
    return best, float(means[best])


def warn_of_rise(scores: Floats, alphas: Floats, *, scaled: bool) -> None:
    """Warn if mean scores rise noticeably at the smallest alpha of a default grid.

    The line through the scores at the last two values gives the score at zero. The gain
    is noticeable if it exceeds two standard errors, and a share of the range of means.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
    alphas : ndarray of shape (n_alphas,)
    scaled : bool
        Whether the penalty applies to features divided by their scales.
    """
    scores = scores[np.isfinite(scores).all(axis=1)]
    if len(scores) < 2:
        return
    last = alphas[-1]
    gains = (scores[:, -1] - scores[:, -2]) * last / (alphas[-2] - last)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    if gains.mean() > max(2.0 * error, _NOTICEABLE * np.ptp(scores.mean(axis=0))):
        units = " and penalty_factor=penalty_factor_" if scaled else ""
        _warn(
            f"The mean score still rises at alpha={last:g}, the smallest value of the "
            f"default grid, so that the model underfits. Give smaller values, such as "
            f"alphas=np.geomspace({last:.1g}, {1e-6 * last:.1g}, {len(alphas)}){units}."
        )


def within_one_error(scores: Floats, best: int) -> int:
    """Return the first alpha whose mean score is within a standard error of the best.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Folds without a finite score at the best alpha are excluded.
    best : int
        Index of the best mean.

    Raises
    ------
    ValueError
        If fewer than two folds have scores.
    """
    scores = scores[np.isfinite(scores[:, best])]
    if len(scores) < 2:
        raise ValueError("one_standard_error needs the scores of at least two folds.")
    means = scores.mean(axis=0)
    error = np.std(scores[:, best], ddof=1) / np.sqrt(len(scores))
    return int(np.argmax(np.isfinite(means) & (means >= means[best] - error)))


def _folds(numbers: list[int]) -> str:
    """Return a noun phrase for some folds."""
    if len(numbers) == 1:
        return f"fold {numbers[0]}"
    return f"each of folds {numbers}"


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=user_level())
