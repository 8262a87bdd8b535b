"""Cross-validated choice of the regularization, along warm-started paths."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import column_or_1d

from .._blocks.folds import SplitRowBlocks, SplitRows
from .._blocks.row_blocks import RowBlocks
from .._checks import (
    check_sample_weight,
    check_weights,
    exact_labels,
    exact_names,
)
from .._checks.signatures import with_parameters
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array, Floats, Indices
from .._core.names import check_same_rows
from .._estimators.block_methods import is_collection
from .._estimators.estimator import forget
from .._estimators.held_out_strength import Choice
from .._problems import LinearProblems
from .._solving.callbacks import with_callbacks
from .bounded_scores import own_scorer
from .each_row import EachRow
from .proven_cv import check_interval, check_score, proven_fold, search_interval
from .scoring import (
    FoldScore,
    check_error_score,
    rows_with_weight,
    with_classes,
)
from .search_report import FoldReport
from .warm_paths import FoldPath, WarmPaths

Model = TypeVar("Model", bound=Any)


@with_parameters()
class SearchCV(WarmPaths):
    """Base of estimators with a cross-validated ``alpha`` and a scorer.

    ``l1_ratio`` may be a list of values to try, in estimators with this parameter.
    """

    alphas: Any = 20
    _: KW_ONLY
    cv: Any = None
    scoring: Any = None
    error_score: Any = np.nan
    search_tol: float | None = None
    search_max_fits: int = 1000
    refit: bool = True
    one_standard_error: bool = False

    _takes_collections = True

    # Classes of all samples, for folds of data in blocks.
    _fold_classes = cast(Any, None)

    def _check_parameters(self) -> None:
        if self._tries_several() and (
            np.ndim(self.l1_ratio) != 1 or not np.size(self.l1_ratio)
        ):
            raise ValueError(
                "l1_ratio must be a number or a non-empty list of numbers, got "
                f"{self.l1_ratio!r}."
            )
        for model in self._to_try():
            # Each value has to satisfy the rules for a single value.
            super(SearchCV, model)._check_parameters()
        check_error_score(self.error_score)
        if self.search_tol is not None:
            check_interval(self, self._tries_several())
            check_score(self)
        if isinstance(self.scoring, (list, tuple, set, dict)):
            raise ValueError(
                "scoring must be a single metric, by which alpha is chosen; got "
                f"{self.scoring!r}."
            )

    def _has_ratio(self) -> bool:
        """Whether the estimator has the parameter ``l1_ratio``."""
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

    def _choose_scales(self, *, is_sparse: bool) -> None:
        # Scales would remove the weights of words, such as tf-idf.
        self._choice = Choice(scaled=not (is_sparse and is_classifier(self)))

    def _search(
        self,
        X: Any,
        y: Any,
        weights: Floats,
        others: tuple[Any, ...],
        scorer: Callable[..., float],
        folds: Any,
        data: tuple[Any, Any, Any],
    ) -> None:
        """Choose ``alpha`` and ``l1_ratio``, and set the attributes.

        X and y are validated; ``data`` are X, y and sample_weight as given by the user;
        ``others`` are further arguments of ``_problems``.
        """
        score_weights = None
        if data[2] is not None:
            score_weights = np.broadcast_to(
                np.asarray(data[2], dtype=np.float64), weights.shape
            )
        folds = folds if isinstance(folds, EachRow) else list(folds)
        if self.search_tol is not None:
            self._search_interval(X, y, weights, others, score_weights, folds, data)
            return
        forget(self, "search_gap_", "score_bounds_")
        models = self._to_try()
        of_all = [model._problems(X, y, weights, *others) for model in models]
        rows = X, y, weights, score_weights
        paths = [partial(model._fold_path, rows, others, scorer) for model in models]
        self._search_paths(models, of_all, paths, folds, data)

    def _search_paths(
        self,
        models: list[Self],
        of_all: list[LinearProblems],
        paths: Sequence[Callable[..., FoldPath]],
        folds: Sequence[Any],
        data: tuple[Any, Any, Any],
    ) -> None:
        """Choose among models by their paths on folds, and set the attributes.

        ``of_all`` are the problems of the models on all samples.
        """
        task, report = self._search_task(len(models), folds, of_all[0], data)
        searched = []
        for model, problems, path in zip(models, of_all, paths, strict=True):
            note = f"l1_ratio {model.l1_ratio:g}, " if len(models) > 1 else ""
            searched.append(model._searched(problems, folds, path, report, note))
        chosen = models[self._choose(searched, task)]
        self.penalty_factor_ = chosen.penalty_factor_
        if self._has_ratio():
            self.l1_ratio_ = float(chosen.l1_ratio)
        else:
            forget(self, "l1_ratio_")

    def _fit_to_blocks(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, offset: Any = None
    ) -> Self:
        """Search with folds of data in blocks, and set the attributes.

        A fit on a fold is a fit to all rows in which the held-out rows have weight
        zero.
        """
        self._check_collection()
        if self.search_tol is not None:
            raise ValueError("search_tol is not supported for data in blocks.")
        rows: SplitRows
        if isinstance(X, RowBlocks):
            rows = SplitRowBlocks(X, y, sample_weight, offset)
        else:
            # Needs Dask.
            from .._blocks.dask_collections import SplitCollection

            rows = SplitCollection(X, y, sample_weight, offset)
        try:
            return self._search_rows(rows, groups, (X, y, sample_weight))
        finally:
            rows.close()

    def _search_rows(
        self, rows: SplitRows, groups: Any, data: tuple[Any, Any, Any]
    ) -> Self:
        """Search with folds of data in blocks; ``data`` are as given by the user."""
        n, classes = len(rows.y), None
        weights = check_sample_weight(rows.weights, n)
        if is_classifier(self):
            rows.y = labels = exact_labels("y", column_or_1d(rows.y, warn=True))
            found = check_weights(rows.weights, labels, self.class_weight)
            weights, self.classes_ = found[:2]
            classes = self.classes_
        scorer = self._scorer(classes)
        groups = None if groups is None else np.ravel(exact_names(groups))
        folds = list(self._splitter(rows.y).split(np.zeros((n, 1)), rows.y, groups))
        forget(self, "search_gap_", "score_bounds_")
        models = self._to_try()
        with ExitStack() as stack:
            of_all = []
            for model in models:
                given = np.ones(n) if rows.weights is None else rows.weights
                opened = rows.opened(model, given)
                stack.callback(opened.close)
                of_all.append(opened.problems)
            if self is not models[0]:
                forget(self, "feature_names_in_")
                for name in ("n_features_in_", "feature_names_in_"):
                    if hasattr(models[0], name):
                        setattr(self, name, getattr(models[0], name))
            args = rows, weights, classes, scorer
            paths = [partial(model._fold_path_in_blocks, *args) for model in models]
            self._search_paths(models, of_all, paths, folds, data)
        return self

    def _fold_path_in_blocks(
        self,
        rows: SplitRows,
        weights: Floats,
        classes: Any,
        scorer: Callable[..., float],
        train: Indices,
        test: Indices,
        alphas: Floats,
        report: FoldReport,
    ) -> FoldPath:
        """Fit the path on one training part of data in blocks, and score it."""
        n = len(weights)
        # The weight of a sample is multiplied by the number of times the splitter draws
        # it.
        weights = weights * np.bincount(np.arange(n)[train], minlength=n)
        if not weights.any():
            raise ValueError("A training part of cv has no samples of positive weight.")
        test = rows_with_weight(test, n, rows.weights)
        model = self._for_fold()
        if classes is not None:
            # The weights already include class weights, computed once from all samples.
            model.set_params(class_weight=None)
            model._fold_classes = classes
        opened = rows.opened(model, weights)
        try:
            some = rows.some(test, model.n_features_in_)
            score_weights = None if rows.weights is None else rows.weights[test]
            data = (lambda: (some, rows.y[test])), score_weights
            offset = None if rows.offset is None else rows.offset[test]
            knowing = partial(model._knowing, (None, offset))
            score = FoldScore(scorer, knowing, *data, self.error_score)
            fits = model._fits(opened.problems, alphas, report)
            path = model._path(fits, alphas, score, report)
        finally:
            opened.close()
        return path._replace(failures=score.failures)

    def _shares(self, labels: Array, weights: Floats) -> tuple[Floats, Array]:
        if self._fold_classes is None:
            found: tuple[Any, Any] = super()._shares(labels, weights)
            return found
        return weights / weights.sum(), self._fold_classes

    def _splitter(self, y: Any) -> Any:
        """Return the splitter of rows into folds."""
        return check_cv(self.cv, y, classifier=is_classifier(self))

    def _scored_by(self) -> Any:
        """Return ``scoring``, or another score in subclasses with a default score."""
        return self.scoring

    def _scorer(self, classes: Array | None) -> Any:
        """Return the scorer of models on folds, for the classes of all samples."""
        scoring = self._scored_by()
        own = own_scorer(scoring, is_classifier(self))
        scorer = check_scoring(self, scoring=own or scoring)
        if classes is None:
            return scorer
        return with_classes(scorer, classes, "predict_proba")

    def _search_interval(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        others: tuple[Any, ...],
        score_weights: Any,
        folds: Sequence[tuple[Any, Any]],
        data: tuple[Any, Any, Any],
    ) -> None:
        """Choose ``alpha`` in an interval with a proof, and set the attributes."""
        problems = self._problems(X, y, weights, *others)
        self._check_support(problems)
        joint = problems.design.n_outputs is not None
        if joint or (problems.several and not is_classifier(self)):
            raise ValueError(
                "search_tol needs one score of a sample for each fit: no bounds are "
                "known for the multinomial log loss, take two classes; nor for "
                "several targets or quantiles, take one column of y."
            )
        task, _ = self._search_task(1, folds, problems, data)

        def problems_of(model: Any, X: Any, y: Any, weights: Any) -> LinearProblems:
            found: LinearProblems = model._problems(X, y, weights, *others)
            return found

        rows = X, y, weights, score_weights
        if self._has_ratio():
            self.l1_ratio_ = float(self.l1_ratio)
        made = [proven_fold(self, problems_of, *rows, *fold) for fold in folds]
        search_interval(self, made, problems, task)

    def _of_rows(self, others: tuple[Any, ...], rows: Indices) -> tuple[Any, ...]:
        """Return the further row data of a subset of the samples."""
        return others

    def _knowing(self, others: tuple[Any, ...]) -> Self:
        """Return the model for a scorer, with the row data of the test samples."""
        return self

    def _fold_path(
        self,
        rows: tuple[Any, Any, Floats, Any],
        others: tuple[Any, ...],
        scorer: Callable[..., float],
        train: Indices,
        test: Indices,
        alphas: Floats,
        report: FoldReport,
    ) -> FoldPath:
        """Fit the path on one training part and score it on the test part.

        ``rows`` are X, y, the weights for fits, and the weights for scores or None.
        """
        X, y, weights, score_weights = rows
        weights = weights[train]
        if not weights.any():
            raise ValueError("A training part of cv has no samples of positive weight.")
        test = rows_with_weight(test, len(y), score_weights)
        model = self._for_fold()
        weights = weights / weights.sum()
        known = self._of_rows(others, train)
        of_fold = model._problems(X[train], y[train], weights, *known)
        fits = model._fits(of_fold, alphas, report)
        # The fits free the training rows before the test rows are copied.
        del of_fold
        known = self._of_rows(others, test)
        knowing = partial(model._knowing, known)
        score_weights = None if score_weights is None else score_weights[test]
        data = (lambda: (X[test], y[test])), score_weights
        score = FoldScore(scorer, knowing, *data, self.error_score)
        path = model._path(fits, alphas, score, report)
        return path._replace(failures=score.failures)


@unchanged_on_failure
@with_callbacks
def fit(
    self: Model, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
) -> Model:
    """Choose ``alpha`` by cross-validation and fit the model.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training data. Dask arrays and dataframes stay where they are, with ``y`` and
        ``sample_weight`` in the same blocks; :class:`RowBlocks` are read in blocks.
        Labels and weights are loaded into this process. Folds are subsets of the rows,
        which are numbered in the order of the blocks.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Non-negative weights of the samples, in fits and in scores.
    groups : array-like of shape (n_samples,), default=None
        Group labels for splitters that use them.

    Returns
    -------
    self : object
        The fitted estimator.

    Raises
    ------
    TypeError, ValueError
        If parameters or data are invalid, or a fit overflows; also the error of the
        scorer, if it fails on all folds or with ``error_score="raise"``.

    Warns
    -----
    ConvergenceWarning
        If a fit did not reach ``tol``; the message states the gap.
    UserWarning
        If some folds cannot be scored, or the score still rises at the smallest
        ``alpha`` of a default grid.
    """
    self._check_parameters()
    if is_collection(X):
        return self._fit_to_blocks(X, y, sample_weight, groups)
    check_same_rows(X, y=y, sample_weight=sample_weight, groups=groups)
    data = X, y, sample_weight
    X, y = self._check_X(X, y, reset=True)
    self._choose_scales(is_sparse=sparse.issparse(X))
    weights, classes, *_ = check_weights(sample_weight, y, self.class_weight)
    scorer: Any = None
    if self.search_tol is None:
        scorer = self._scorer(classes)
    named = None if groups is None else exact_names(groups)
    folds = self._splitter(y).split(X, y, named)
    self.classes_ = classes
    self._search(X, y, weights, (classes,), scorer, folds, data)
    return self
