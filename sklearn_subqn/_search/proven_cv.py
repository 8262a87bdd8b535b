"""The parts of estimators for a proven search over an interval of alpha."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_number
from .._checks.callers import user_level
from .._core.arrays import Array, Floats, Indices
from .._estimators.estimator import forget
from .._estimators.predictions import variance_power
from .._problems import LinearProblems
from .._solving.callbacks import FitTask
from .._solving.process import n_threads
from .bounded_scores import (
    HeldOutScore,
    coded,
    row_score,
    score_names,
    with_equal_classes,
)
from .proven import ProvenSearch
from .proven_folds import ProvenFold
from .scoring import rows_with_weight
from .warm_paths import FoldPath, warn_of_folds


def check_interval(estimator: Any, tries_several: bool = False) -> None:
    """Raise unless the parameters of an estimator allow a proven search.

    ``tries_several`` is true if another parameter has several values.

    Raises
    ------
    ValueError
        If a parameter is not allowed; the message says what is needed.
    """
    check_number("search_tol", estimator.search_tol, low=0.0, low_included=False)
    check_number("search_max_fits", estimator.search_max_fits, low=1, integer=True)
    if np.ndim(estimator.alphas) != 1 or len(estimator.alphas) != 2:
        raise ValueError(
            "search_tol needs alphas=(low, high), the ends of the interval to search; "
            f"got alphas={estimator.alphas!r}."
        )
    if min(estimator.alphas) == max(estimator.alphas):
        raise ValueError("The ends of the interval alphas=(low, high) must differ.")
    if tries_several or not estimator._has_squares():
        raise ValueError(
            "search_tol needs a penalty of squares, penalty='l2' or l1_ratio=0: no "
            "bounds are known between solutions with others."
        )
    if not estimator.refit:
        raise ValueError("search_tol needs refit=True.")
    if estimator.one_standard_error:
        raise ValueError(
            "search_tol does not go with one_standard_error: the search proves what "
            "the best mean score is, not where scores are a standard error lower."
        )
    names = "coef_bounds", "coef_constraints"
    bounded = any(getattr(estimator, name, None) is not None for name in names)
    if getattr(estimator, "positive", False) or bounded:
        raise ValueError(
            "search_tol does not go with positive, coef_bounds or coef_constraints."
        )
    factors = estimator.penalty_factor
    factors = list(factors.values()) if isinstance(factors, Mapping) else factors
    if factors is not None and not np.all(np.array(factors)):
        raise ValueError("search_tol needs penalty_factor to be positive.")


def check_score(estimator: Any) -> None:
    """Raise unless the score of an estimator has bounds.

    Raises
    ------
    ValueError
        If the score has no bounds; the message names the scores with bounds.
    """
    name = _score_name(estimator)
    known = score_names(
        is_classifier(estimator),
        getattr(estimator, "loss", "log_loss") == "log_loss",
        variance_power(estimator),
    )
    if name not in known:
        raise ValueError(
            "search_tol needs a score whose bounds follow from bounds of predictions: "
            f"{', '.join(map(repr, known))}; got scoring={estimator.scoring!r}."
        )


def _score_name(estimator: Any) -> Any:
    """Return the name of the score, or of the default score."""
    if (scoring := estimator._scored_by()) is not None:
        return scoring
    if is_classifier(estimator):
        return "accuracy"
    loss = estimator.loss
    if loss == "quantile":
        return "neg_mean_pinball_loss"
    return "r2" if variance_power(estimator) is None else None


def search_folds(
    estimator: Any,
    problems: LinearProblems,
    rows: Any,
    folds: Sequence[tuple[Any, Any]],
    data: tuple[Any, Any, Any],
) -> None:
    """Choose alpha on a path or by a proven search, and set the attributes.

    Parameters
    ----------
    estimator : WarmPaths
        For a fold, ``_training`` returns the problems of the training rows, ``_score``
        a function that scores the model after a fit, and ``_bounded`` the held-out rows
        and their score with bounds.
    problems : LinearProblems
        The problems of all rows.
    rows : tuple
        Validated data, the features first.
    folds : sequence of pairs
        Training rows and held-out rows.
    data : tuple
        X, y and sample_weight as given by the user.
    """

    def path(train: Indices, test: Indices, alphas: Floats, report: Any) -> FoldPath:
        model = estimator._for_fold()
        of_fold = model._training(rows, train)
        score = model._score(rows, train, test, of_fold)
        fits = model._fits(of_fold, alphas, report)
        # The fits free the training rows before the held-out rows are copied.
        del of_fold
        found: FoldPath = model._path(fits, alphas, score, report)
        return found

    def proven(train: Indices, test: Indices) -> ProvenFold:
        model, X = estimator._for_fold(), rows[0]
        held, score = model._bounded(rows, test)
        factors = factors_of(estimator, X)
        return ProvenFold(model._training(rows, train), held, factors, score)

    task, report = estimator._search_task(1, folds, problems, data)
    if estimator.search_tol is not None:
        estimator._check_support(problems)
        made = [proven(*fold) for fold in folds]
        search_interval(estimator, made, problems, task)
        return
    forget(estimator, "search_gap_", "score_bounds_")
    estimator._choose([estimator._searched(problems, folds, path, report)], task)


def search_interval(
    estimator: Any, folds: list[ProvenFold], problems: LinearProblems, task: FitTask
) -> None:
    """Search an interval of alpha for the best mean score, and set the attributes.

    Parameters
    ----------
    estimator : WarmPaths
    folds : list of ProvenFold
    problems : LinearProblems
        The problems of all rows, which are solved for the best alpha.
    task : FitTask
    """
    n_jobs = n_threads(estimator.n_jobs)
    pool = Parallel(n_jobs=n_jobs, prefer="threads")

    def each(function: Callable[..., Any], *given: list[Any]) -> list[Any]:
        calls = zip(folds, *given, strict=True)
        if n_jobs == 1:
            return [function(*args) for args in calls]
        return list(pool(delayed(function)(*args) for args in calls))

    low, high = sorted(map(float, estimator.alphas))
    state = ProvenSearch(folds, each, _printed(estimator))
    tol, most = float(estimator.search_tol), estimator.search_max_fits
    search = state.run(low, high, tol, most)
    fits = np.array([[fold.fits[alpha] for alpha in search.alphas] for fold in folds])
    gaps, proven = fits[..., 0], fits[..., 1] > 0.0
    if search.gap > tol:
        advice = "Increase it, or make the interval smaller."
        if search.cut:
            advice = (
                f"It ended with the work of search_max_fits={most} fits. Scale the "
                "features if they differ in scale or are far from zero, which makes "
                "bounds narrower; or increase search_tol or search_max_fits, or make "
                "the interval smaller."
            )
        warnings.warn(
            f"The search has proven that no alpha is better by more than "
            f"{search.gap:.3g}; search_tol={tol:g} was asked for. {advice}",
            ConvergenceWarning,
            stacklevel=user_level(),
        )
    warn_of_folds(gaps, proven | (gaps <= estimator.tol), search.alphas, estimator.tol)
    means = search.scores.mean(axis=0)
    best = int(np.argmax(means))
    estimator.alpha_ = float(search.alphas[best])
    estimator.best_score_ = float(means[best])
    estimator.alphas_, estimator.scores_path_ = search.alphas, search.scores
    estimator.gaps_path_, estimator.score_bounds_ = gaps, search.bounds
    estimator.search_gap_ = search.gap
    estimator._set_factors(problems)
    estimator._store(problems, problems.solve(estimator.alpha_, task))
    task.end()


def _printed(estimator: Any) -> Callable[[int, float, float], None]:
    """Return a function that prints the progress of the search."""

    def report(n_solved: int, best: float, upper: float) -> None:
        # With verbose=1, lines are printed only at powers of two.
        if estimator.verbose > 1 or (estimator.verbose and n_solved.bit_count() == 1):
            print(
                f"{type(estimator).__name__}: {n_solved} alphas solved  best score "
                f"{best:.6g}  proven gap {max(upper - best, 0.0):.3g}"
            )

    return report


def factors_of(estimator: Any, X: Any) -> Floats:
    """Return the factors of squares in the penalty, one for each feature."""
    factors = estimator._penalty_factors()
    return np.ones(X.shape[1]) if factors is None else np.asarray(factors)


def proven_fold(
    estimator: Any,
    problems_of: Callable[..., LinearProblems],
    X: Any,
    y: Array,
    weights: Floats,
    score_weights: Floats | None,
    train: Indices,
    test: Indices,
) -> ProvenFold:
    """Return a fold of samples with classes or numbers as targets.

    Parameters
    ----------
    estimator : SearchCV
    problems_of : callable
        Returns the problem for a model, rows and weights that sum to one.
    X, y, weights
        Validated data.
    score_weights : ndarray of shape (n,) or None
        Weights of held-out rows in scores.
    train, test : ndarray
        Training rows and held-out rows.
    """
    model = estimator._for_fold()
    factors = factors_of(estimator, X)
    of_train = weights[train]
    if not of_train.any():
        raise ValueError("A training part of cv has no samples of positive weight.")
    problems = problems_of(model, X[train], y[train], of_train / of_train.sum())
    test = rows_with_weight(test, len(y), score_weights)
    of_test = np.ones(len(test)) if score_weights is None else score_weights[test]
    name, targets = _score_name(estimator), y[test]
    labels = is_classifier(estimator)
    if labels:
        targets = coded(estimator.classes_, targets)
    if name == "balanced_accuracy":
        of_test = with_equal_classes(targets, of_test)
    power = variance_power(model)
    rows = row_score(name, float(getattr(model, "quantile", 0.5)), X.dtype, power)
    unit = None
    if name is None and np.all(targets == targets[0]):
        raise ValueError(
            "D² is undefined on a test part of cv in which all samples have the same "
            "y: shuffle the samples, or take fewer folds."
        )
    if name in ("r2", None):
        means = np.full(len(test), np.average(targets, weights=of_test))
        unit = float(np.average(-rows(means, targets), weights=of_test))
    score = HeldOutScore(rows, targets, of_test, labels, unit, power is not None)
    return ProvenFold(problems, X[test], factors, score)
