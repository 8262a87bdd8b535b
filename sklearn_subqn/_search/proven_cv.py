"""What estimators do for a proven search over an interval of alpha."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_number
from .._checks.callers import user_level
from .._problems import LinearProblems
from .._solving.process import n_threads
from .._solving.solution import Floats
from .bounded_scores import HeldOutScore, balanced, row_score, score_names
from .proven import ProvenSearch, Search
from .proven_folds import ProvenFold

# Fits on folds have to be much closer to the optimum than intervals are wide: with a
# tolerance of 1e-8 and search_tol=0.002 a9a is never proven, with 1e-10 it is.
_FOLD_TOL = 1e-10


def check_interval(estimator: Any) -> None:
    """Raise unless the parameters of an estimator allow a proven search.

    Raises
    ------
    ValueError
        Says what is needed instead.
    """
    check_number("search_tol", estimator.search_tol, low=0.0, low_included=False)
    if np.ndim(estimator.alphas) != 1 or len(estimator.alphas) != 2:
        raise ValueError(
            "search_tol needs alphas=(low, high), the ends of the interval to search; "
            f"got alphas={estimator.alphas!r}."
        )
    if min(estimator.alphas) == max(estimator.alphas):
        raise ValueError("The ends of the interval alphas=(low, high) must differ.")
    if estimator._tries_several() or not estimator._has_squares():
        raise ValueError(
            "search_tol needs a penalty of squares, penalty='l2' or l1_ratio=0: no "
            "bounds are known between solutions with others."
        )
    if not estimator.refit:
        raise ValueError("search_tol needs refit=True.")
    bounds = getattr(estimator, "coef_bounds", None)
    if getattr(estimator, "positive", False) or bounds is not None:
        raise ValueError("search_tol does not go with positive or coef_bounds.")
    factors = estimator.penalty_factor
    if factors is not None and not np.all(estimator._factors_given()):
        raise ValueError("search_tol needs penalty_factor to be positive.")
    name = _score_name(estimator)
    known = score_names(is_classifier(estimator), _has_probabilities(estimator))
    if name not in known:
        raise ValueError(
            "search_tol needs a score that has bounds where scores have: "
            f"{', '.join(map(repr, known))}; got scoring={estimator.scoring!r}."
        )


def _has_probabilities(estimator: Any) -> bool:
    return bool(getattr(estimator, "loss", "log_loss") == "log_loss")


def _score_name(estimator: Any) -> Any:
    """Return the name of the score, also where the user gives none."""
    if estimator.scoring is not None:
        return estimator.scoring
    if is_classifier(estimator):
        return "accuracy"
    loss = estimator.loss
    if loss == "quantile":
        return "neg_mean_pinball_loss"
    return None if loss in ("poisson", "gamma", "tweedie") else "r2"


def search_interval(
    estimator: Any,
    problems_of: Callable[..., LinearProblems],
    X: Any,
    y: npt.NDArray[Any],
    weights: Floats,
    score_weights: Floats | None,
    folds: list[tuple[Any, Any]],
) -> tuple[Search, Floats, npt.NDArray[np.bool_]]:
    """Search an interval of alpha for the best mean score of the folds.

    Parameters
    ----------
    estimator : SearchCV
    problems_of : callable
        From a model, rows and weights that sum to one to their problem.
    X, y, weights
        Validated.
    score_weights : ndarray of shape (n,) or None
        Weights of held-out rows in scores.
    folds : list of pairs of ndarray
        Training rows and held-out rows.

    Returns
    -------
    search : Search
    gaps : ndarray of shape (n_folds, n_alphas)
        Relative gaps of the fits.
    proven : ndarray of shape (n_folds, n_alphas)
        Whether these are as small as was asked.
    """
    made = [
        _fold(estimator, problems_of, X, y, weights, score_weights, *fold)
        for fold in folds
    ]
    pool = Parallel(n_jobs=n_threads(estimator.n_jobs), prefer="threads")

    def each(function: Callable[..., Any], *given: list[Any]) -> list[Any]:
        calls = zip(made, *given, strict=True)
        return list(pool(delayed(function)(*args) for args in calls))

    low, high = sorted(map(float, estimator.alphas))
    state = ProvenSearch(made, each, _printed(estimator))
    search = state.run(low, high, float(estimator.search_tol))
    order = np.argsort([alpha for alpha, _, _ in made[0].fits])[::-1]
    gaps = np.array([[gap for _, gap, _ in fold.fits] for fold in made])[:, order]
    proven = np.array([[ok for _, _, ok in fold.fits] for fold in made])[:, order]
    if search.gap > estimator.search_tol:
        warnings.warn(
            f"The search has proven that no alpha is better by more than "
            f"{search.gap:.3g}; search_tol={estimator.search_tol:g} was asked for. "
            "Increase it, or make the interval smaller.",
            ConvergenceWarning,
            stacklevel=user_level(),
        )
    return search, gaps, proven


def _printed(estimator: Any) -> Callable[[int, float, float], None]:
    """Return what reports a solved alpha, the best mean score and the bound."""

    def report(n_solved: int, best: float, upper: float) -> None:
        # Lines are printed at powers of two, or each.
        if estimator.verbose > 1 or (estimator.verbose and n_solved.bit_count() == 1):
            print(
                f"{type(estimator).__name__}: {n_solved} alphas solved  best score "
                f"{best:.6g}  proven gap {max(upper - best, 0.0):.3g}"
            )

    return report


def _fold(
    estimator: Any,
    problems_of: Callable[..., LinearProblems],
    X: Any,
    y: npt.NDArray[Any],
    weights: Floats,
    score_weights: Floats | None,
    train: npt.NDArray[np.intp],
    test: npt.NDArray[np.intp],
) -> ProvenFold:
    model = estimator._for_fold()
    # A copy of a search is no search: its fits are those of a single alpha.
    model.set_params(tol=min(model.tol, _FOLD_TOL))
    factors = estimator._penalty_factors()
    factors = np.ones(X.shape[1]) if factors is None else factors
    of_train = weights[train]
    if not of_train.any():
        raise ValueError("A training part of cv has no samples of positive weight.")
    problems = problems_of(model, X[train], y[train], of_train / of_train.sum())
    of_test = np.ones(len(test)) if score_weights is None else score_weights[test]
    if not of_test.any():
        raise ValueError("A test part of cv has no samples of positive weight.")
    name, targets = _score_name(estimator), y[test]
    labels = is_classifier(estimator)
    if labels:
        targets = np.where(targets == estimator.classes_[1], 1.0, -1.0)
    if name == "balanced_accuracy":
        of_test = balanced(targets, of_test)
    rows = row_score(name, float(getattr(model, "quantile", 0.5)))
    unit = None
    if name == "r2":
        mean = np.average(targets, weights=of_test)
        unit = float(np.average((targets - mean) ** 2, weights=of_test))
    score = HeldOutScore(rows, targets, of_test, labels, unit)
    return ProvenFold(model, problems, X[train], X[test], factors, score)
