"""Cross-validated choice of the regularization along warm paths."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ._callbacks import FitTask, with_callbacks
from ._callers import user_level
from ._classifier import LinearClassifier
from ._estimator import forget
from ._linear_estimator import LinearEstimator
from ._problems import LinearProblems
from ._process import n_threads
from ._scoring import (
    best_alpha,
    check_error_score,
    checked_score,
    refuses_weights,
    with_classes,
)
from ._search_report import FoldReport, SearchReport
from ._state import unchanged_on_failure
from ._validation import check_number, check_weights

# Ends of the default grid with L2.
_LARGEST_ALPHA, _SMALLEST_ALPHA = 1e-2, 1e-6


class FoldPath(NamedTuple):
    """Scores, gaps, numbers of iterations and coefficients of a fold, by alpha.

    ``proven`` says where the tolerance was reached, ``failures`` what scorers raised.
    """

    scores: list[float]
    gaps: list[float]
    proven: list[bool]
    n_iters: list[int]
    coefficients: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]
    failures: Sequence[Exception] = ()


class Paths(NamedTuple):
    """What a search found for one ``l1_ratio``.

    Attributes
    ----------
    problems : LinearProblems
        Those of all samples.
    alphas : ndarray of shape (n_alphas,)
        In descending order.
    folds : list of FoldPath
    """

    problems: LinearProblems
    alphas: npt.NDArray[np.float64]
    folds: list[FoldPath]


class WarmPaths(LinearEstimator):
    """What estimators with a cross-validated ``alpha`` add to those without.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting where the one before ended.
    """

    alphas: Any
    cv: Any
    refit: bool

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.alphas, numbers.Integral):
            check_number("alphas", self.alphas, low=1, integer=True)
        else:
            check_alphas(self.alphas)

    def _for_fold(self) -> Self:
        """Return the model of a fold, silent and of one thread."""
        model = copy.copy(self).set_params(callback=None, verbose=0, n_jobs=1)
        model.penalty_factor = self._penalty_factors()
        if (bounds := self._bounds()) is not None:
            model.set_params(coef_bounds=bounds)
        # Arrays are passed on, whose columns have no names.
        vars(model).pop("feature_names_in_", None)
        return model

    def _grid(self, problems: LinearProblems) -> npt.NDArray[np.float64]:
        """Return the values of ``alpha`` for problems, in descending order."""
        if np.ndim(self.alphas) > 0:
            return check_alphas(self.alphas)
        return self._own_grid(problems, int(self.alphas))

    def _own_grid(self, problems: LinearProblems, n: int) -> npt.NDArray[np.float64]:
        """Return n values in descending order where none are given."""
        return np.geomspace(_LARGEST_ALPHA, _SMALLEST_ALPHA, n)

    def _searched(
        self,
        problems: LinearProblems,
        folds: Sequence[tuple[Any, Any]],
        fold_path: Callable[..., FoldPath],
        report: SearchReport,
        note: str = "",
    ) -> Paths:
        """Return the paths of folds, of training and test rows and all ``alpha``.

        ``problems`` are those of all samples; ``note`` is shown before each fold.
        """
        alphas = self._grid(problems)
        reports = [report.fold(i, len(alphas), note) for i in range(len(folds))]
        paths = Parallel(n_jobs=n_threads(self.n_jobs), prefer="threads")(
            delayed(fold_path)(train, test, alphas, of_fold)
            for (train, test), of_fold in zip(folds, reports, strict=True)
        )
        return Paths(problems, alphas, paths)

    def _path(
        self,
        problems: LinearProblems,
        alphas: npt.NDArray[np.float64],
        score: Callable[[], Any],
        report: FoldReport,
    ) -> FoldPath:
        """Solve the problems of a fold for each alpha; ``score`` scores this model."""
        path = FoldPath([], [], [], [], [])
        report.begin()
        for alpha in alphas:
            solutions = problems.solve(float(alpha), FitTask.silent())
            for name, value in problems.attributes().items():
                setattr(self, name, value)
            path.scores.append(checked_score(score()))
            path.gaps.append(max(solution.relative_gap for solution in solutions))
            path.proven.append(all(solution.proven for solution in solutions))
            path.n_iters.append(max(solution.n_iter for solution in solutions))
            if not self.refit:
                path.coefficients.append((self.coef_, self.intercept_))
            report.fitted(float(alpha), path.scores[-1], path.gaps[-1])
        report.end()
        return path

    def _search_task(
        self,
        n_paths: int,
        folds: Sequence[Any],
        problems: LinearProblems,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitTask, SearchReport]:
        """Begin the task of a search, and the report of its fits on folds."""
        n_alphas = np.size(self.alphas) if np.ndim(self.alphas) else int(self.alphas)
        n_folds = n_paths * len(folds)
        n_tasks = n_folds + (len(problems) if self.refit else 0)
        task = FitTask(self, n_tasks, self.max_iter, *data)
        return task, SearchReport(self, task, n_folds * n_alphas)

    def _choose(self, searched: list[Paths], task: FitTask) -> int:
        """Choose by the folds, and set the attributes of the final model.

        Each path of the same folds and number of alphas is one to choose from. Returns
        the place of the one that was chosen; ``task`` is that of the whole fit.
        """
        n_folds = len(searched[0].folds)
        if not n_folds:
            raise ValueError(
                f"cv={self.cv!r} gives no folds. An iterator gives its folds only "
                "once; a list of them can be used again."
            )
        alphas = np.array([paths.alphas for paths in searched])
        scores, gaps, proven = (
            np.array([[getattr(fold, name) for fold in p.folds] for p in searched])
            for name in ("scores", "gaps", "proven")
        )
        failures = [
            [error for paths in searched for error in paths.folds[fold].failures]
            for fold in range(n_folds)
        ]
        # Those of a fold in one row.
        rows = [
            array.swapaxes(0, 1).reshape(n_folds, -1)
            for array in (scores, gaps, proven)
        ]
        warn_of_folds(rows[1], rows[2], alphas.ravel(), self.tol)
        best, self.best_score_ = best_alpha(rows[0], alphas.ravel(), failures)
        path, place = divmod(best, alphas.shape[1])
        self.alpha_ = float(alphas[path, place])
        several = self._tries_several()
        self.alphas_ = alphas if several else alphas[0]
        self.scores_path_ = scores if several else scores[0]
        self.gaps_path_ = gaps if several else gaps[0]
        problems, _, folds = searched[path]
        if self.refit:
            self._store(problems, problems.solve(self.alpha_, task))
            task.end()
            return path
        # Those of a previous fit, with ``refit``, are not of this one.
        forget(self, "objective_", "dual_gap_", "history_", "plan_")
        self.n_iter_ = max(1, *(max(fold.n_iters) for fold in folds), 1)
        coefs, intercepts = zip(
            *(fold.coefficients[place] for fold in folds), strict=True
        )
        self.coef_ = np.mean(coefs, axis=0)
        self.intercept_ = np.mean(intercepts, axis=0)
        task.end()
        return path

    def _tries_several(self) -> bool:
        """Whether attributes have an axis for values of ``l1_ratio`` to try."""
        return False


class SearchCV(WarmPaths):
    """What estimators with a cross-validated ``alpha`` and a scorer share.

    ``l1_ratio`` may be a list of values to try, where there is such a parameter.
    """

    scoring: Any
    error_score: Any
    l1_ratio: Any

    #: From X, y, weights that sum to one and what else is known of data to problems.
    _problems: Callable[..., LinearProblems]

    def _check_parameters(self) -> None:
        if self._tries_several() and (
            np.ndim(self.l1_ratio) != 1 or not np.size(self.l1_ratio)
        ):
            raise ValueError(
                "l1_ratio must be a number or a non-empty list of numbers, got "
                f"{self.l1_ratio!r}."
            )
        for model in self._to_try():
            # The rules of a single value.
            super(SearchCV, model)._check_parameters()
        check_error_score(self.error_score)
        if isinstance(self.scoring, (list, tuple, set, dict)):
            raise ValueError(
                "scoring must be a single metric, by which alpha is chosen; got "
                f"{self.scoring!r}."
            )

    def _has_ratio(self) -> bool:
        """Whether ``l1_ratio`` has an effect."""
        return hasattr(self, "l1_ratio")

    def _tries_several(self) -> bool:
        return self._has_ratio() and not isinstance(self.l1_ratio, numbers.Number)

    def _to_try(self) -> list[Self]:
        """Return a model for each value of ``l1_ratio``."""
        if not self._tries_several():
            return [self]
        return [
            copy.copy(self).set_params(l1_ratio=ratio) for ratio in list(self.l1_ratio)
        ]

    def _search(
        self,
        X: Any,
        y: Any,
        weights: npt.NDArray[np.float64],
        others: tuple[Any, ...],
        scorer: Callable[..., float],
        folds: Any,
        data: tuple[Any, Any, Any],
    ) -> None:
        """Choose ``alpha`` and ``l1_ratio``, and set the attributes.

        X and y are validated, ``data`` is what the user gave for them and the weights,
        ``others`` what else problems are made of.
        """
        score_weights = None
        if data[2] is not None:
            score_weights = np.broadcast_to(
                np.asarray(data[2], dtype=np.float64), weights.shape
            )
        folds = list(folds)
        models = self._to_try()
        of_all = [model._problems(X, y, weights, *others) for model in models]
        task, report = self._search_task(len(models), folds, of_all[0], data)
        rows = X, y, weights, score_weights
        searched = []
        for model, problems in zip(models, of_all, strict=True):
            path = partial(model._fold_path, rows, others, scorer)
            note = f"l1_ratio {model.l1_ratio:g}, " if len(models) > 1 else ""
            searched.append(model._searched(problems, folds, path, report, note))
        chosen = models[self._choose(searched, task)]
        if self._has_ratio():
            self.l1_ratio_ = float(chosen.l1_ratio)
        else:
            forget(self, "l1_ratio_")

    def _of_rows(
        self, others: tuple[Any, ...], rows: npt.NDArray[np.intp]
    ) -> tuple[Any, ...]:
        """Return what else is known of some of the samples."""
        return others

    def _knowing(self, others: tuple[Any, ...]) -> Self:
        """Return the model for scorers of samples of which more is known."""
        return self

    def _fold_path(
        self,
        rows: tuple[Any, Any, npt.NDArray[np.float64], Any],
        others: tuple[Any, ...],
        scorer: Callable[..., float],
        train: npt.NDArray[np.intp],
        test: npt.NDArray[np.intp],
        alphas: npt.NDArray[np.float64],
        report: FoldReport,
    ) -> FoldPath:
        """Fit the path on one training part and score it on the rest.

        ``rows`` are X, y, weights of fits, and those of scores or None.
        """
        X, y, weights, score_weights = rows
        weights = weights[train]
        if not weights.any():
            raise ValueError("A training part of cv has no samples of positive weight.")
        if score_weights is not None:
            # Samples of weight zero count as missing, and so do their classes.
            test = np.arange(len(y))[test]
            test = test[score_weights[test] > 0.0]
            if not len(test):
                raise ValueError("A test part of cv has no samples of positive weight.")
        model = self._for_fold()
        weights = weights / weights.sum()
        known = self._of_rows(others, train)
        problems = model._problems(X[train], y[train], weights, *known)
        known = self._of_rows(others, test)
        keywords = {}
        if score_weights is not None and not refuses_weights(scorer):
            keywords["sample_weight"] = score_weights[test]
        failures: list[Exception] = []

        def score() -> Any:
            try:
                return scorer(model._knowing(known), X[test], y[test], **keywords)
            except Exception as error:
                if isinstance(self.error_score, str):
                    raise
                failures.append(error)
                return self.error_score

        path = model._path(problems, alphas, score, report)
        return path._replace(failures=failures)


class PathCV(SearchCV, LinearClassifier):
    """What classifiers with a cross-validated ``alpha`` add to those without."""

    @unchanged_on_failure
    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Choose ``alpha`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that ask for them.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable, or a fit overflows; or what the
            scorer raises, if it does on all folds or ``error_score="raise"``.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached by a fit; states the gap that was.
        UserWarning
            If some folds cannot be scored.
        """
        self._check_parameters()
        data = X, y, sample_weight
        X, y = self._check_X(X, y, reset=True)
        weights, classes = check_weights(sample_weight, X, y, self.class_weight)
        scorer = with_classes(check_scoring(self, scoring=self.scoring), classes)
        folds = check_cv(self.cv, y, classifier=True).split(X, y, groups)
        self.classes_ = classes
        self._search(X, y, weights, (classes,), scorer, folds, data)
        return self


def warn_of_folds(
    gaps: npt.NDArray[np.float64],
    proven: npt.NDArray[np.bool_],
    alphas: npt.NDArray[np.float64],
    tol: float,
    name: str = "alpha",
) -> None:
    """Warn once of all fits on folds that did not reach the tolerance."""
    if proven.all():
        return
    fold, place = np.unravel_index(np.argmax(np.where(proven, -1.0, gaps)), gaps.shape)
    see = " (see gaps_path_)" if name == "alpha" else ""
    warnings.warn(
        f"{np.sum(~proven)} of {proven.size} fits on folds did not prove tol={tol:g}; "
        f"the largest relative gap is {gaps[fold, place]:.1e}, at "
        f"{name}={alphas[place]:g} on fold {fold}{see}. Increase max_iter or tol, "
        "choose another solver, or scale the features.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def check_alphas(alphas: Any) -> npt.NDArray[np.float64]:
    """Return a grid that the user gave, in descending order."""
    message = (
        f"alphas must be an integer or a non-empty list of numbers, got {alphas!r}."
    )
    if isinstance(alphas, str) or not hasattr(alphas, "__len__"):
        raise TypeError(message)
    try:
        grid = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(message) from error
    if grid.ndim != 1 or not grid.size:
        raise ValueError(message)
    for alpha in grid:
        check_number("alphas", alpha, low=0.0, low_included=False)
    return np.sort(grid)[::-1]
