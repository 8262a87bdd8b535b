"""Cross-validated choice of the penalty of regression models, with warm starts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import LeaveOneOut
from sklearn.utils.extmath import safe_sparse_dot

from ._checks import check_sample_weight, exact_names
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Indices
from ._core.memory import BLOCK_SIZE
from ._core.names import check_same_rows
from ._estimators.block_methods import is_collection
from ._estimators.catalogue import GROUPS
from ._estimators.offsets import remember_offset
from ._estimators.predictions import variance_power
from ._problems import LinearProblems
from ._search.bounded_scores import neg_mean_pinball_loss
from ._search.cv import SearchCV
from ._search.each_row import SCORES_OF_A_ROW, EachRow, ridge_paths
from ._search.search_report import SearchReport
from ._search.warm_paths import FoldPath, Paths
from ._solving.callbacks import with_callbacks
from .bundle_regression import BMRMRegressor


@with_parameters()
class BMRMRegressorCV(SearchCV, BMRMRegressor):
    """Linear regression with cross-validation over a path of penalties.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting at the previous solution; this takes about half the time of a grid
    search. The best ``alpha`` is then refitted on all samples. By default there are 5
    folds, also for ridge regression; with ``cv="loo"`` its leave-one-out errors, which
    are the default of scikit-learn's ``RidgeCV``, take one decomposition.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size. A grid of a given size is geometric: with an L1 norm over
        three powers of ten, down from the smallest value with all coefficients zero;
        with L2 over six powers of ten, down from ten times the value at which the
        penalty has the curvature of the loss along its steepest slope. It applies to
        features divided by their scales, except for norms of groups.
    loss : str or Loss, default="squared_error"
        As in :class:`BMRMRegressor`.
    penalty : {"l2", "l1", "elasticnet", "group", "group_elasticnet", \
            "sparse_group"}, default="l2"
        As in :class:`BMRMRegressor`.
    l1_ratio : float or list of float, default=0.5
        For the elastic nets and "sparse_group", in [0, 1]. From a list, the value with
        the best mean score at its best ``alpha`` is chosen, the first one if several
        are equal.
    groups : array-like, list, dict, "categories" or None, default=None
        As in :class:`BMRMRegressor`; groups of rows for splitters are given to ``fit``.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        As in :class:`BMRMRegressor`.
    positive : bool, default=False
        As in :class:`BMRMRegressor`.
    coef_bounds : pair (low, high) or None, default=None
        As in :class:`BMRMRegressor`.
    coef_constraints : pair (A, b) or None, default=None
        As in :class:`BMRMRegressor`.
    quantile : float or list of float, default=0.5
        As in :class:`BMRMRegressor`; several quantiles have the same ``alpha``.
    crossing : {"sort", "allow"}, default="sort"
        As in :class:`BMRMRegressor`.
    epsilon : float or None, default=None
        As in :class:`BMRMRegressor`.
    power : float, default=1.5
        As in :class:`BMRMRegressor`.
    metric : array-like of shape (n_targets, n_targets), default=None
        As in :class:`BMRMRegressor`: the columns of y have one model together.
    solver : str, default="auto"
        As in :class:`BMRMRegressor`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2; ``None`` for no
        limit.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`BMRMRegressor`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.
    cv : int, "loo", cross-validation generator, iterable or None, default=None
        Cross-validation splits, as in scikit-learn; ``None`` means 5 folds of
        consecutive samples. "loo" or ``LeaveOneOut()`` leaves out one sample of
        positive weight after the other; all of them count the same in the mean
        score. With ``loss="squared_error"``, ``penalty="l2"``, ``solver="auto"``,
        ``refit=True`` and the scores "neg_mean_squared_error",
        "neg_mean_absolute_error" and "neg_root_mean_squared_error" all of these fits
        take one singular value decomposition [1]_.
    scoring : str, callable or None, default=None
        Score to maximize, as in scikit-learn. ``None`` means the negative pinball loss
        for ``loss="quantile"``, averaged over several quantiles, and otherwise
        ``score``: R², or D² for "poisson", "gamma" and "tweedie". R² is not defined for
        one sample: for leave-one-out the default is "neg_mean_squared_error". Sample
        weights are passed to the scorer if given.
    error_score : "raise" or float, default=nan
        Score of a fold on which the scorer raises an error. Folds without any finite
        score are excluded from the means, with a warning.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, instead of a grid, and prove that no
        ``alpha`` in it has a mean score that exceeds the best one by more than
        ``search_tol``. For one column of y, ``penalty="l2"``, and the scores "r2",
        "neg_mean_squared_error", "neg_mean_absolute_error" and "neg_mean_pinball_loss";
        for "poisson", "gamma" and "tweedie" also the default D² and
        "neg_mean_poisson_deviance", and for "gamma" "neg_mean_gamma_deviance".
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, at least 1: each ``alpha``
        that is solved on the folds counts as one, and a bounded interval as a share of
        one, from a sixth for small data to less than a hundredth for large. The
        default is the number of fits of 50 grids of 20 values. A search that reaches
        it ends with what is proven so far, and a warning. The first 13 values are
        always solved.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise the coefficients
        are averaged over the folds, without an objective or a gap.
    one_standard_error : bool, default=False
        Whether to choose the largest ``alpha`` whose mean score is within one standard
        error of the best one, for a simpler model (Breiman et al. 1984; Hastie et al.
        2009, section 7.10). Not with ``search_tol``, which proves the best mean only.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        The grid in descending order; with a list of ``l1_ratio`` one grid for each.
    alpha_ : float
        The value with the best mean score, the largest one if several are equal; with
        ``one_standard_error`` the largest one within a standard error of the best.
    penalty_factor_ : ndarray of shape (n_features,)
        The factors of the features in the penalty; with a default grid they include
        scales, except for norms of groups.
    best_score_ : float
        The best mean score over the folds.
    l1_ratio_ : float
        With the elastic nets and "sparse_group" the chosen value of ``l1_ratio``.
    scores_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Scores on the held-out samples, ``error_score`` where scoring failed.
    search_gap_ : float
        With ``search_tol``: proven bound of how much the mean score of any ``alpha`` of
        the interval exceeds ``best_score_``, up to rounding.
    score_bounds_ : ndarray of shape (n_intervals, 4)
        With ``search_tol``: the ends of intervals of ``alpha``, and bounds of the mean
        score for all values between them.
    gaps_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Proven relative gaps, the largest of all columns of y or quantiles.
    coef_, intercept_, n_features_in_, feature_names_in_
        As in :class:`BMRMRegressor`, of the final model.
    objective_, dual_gap_, n_iter_, history_, plan_
        As in :class:`BMRMRegressor`; all but ``n_iter_`` with ``refit=True`` only.

    See Also
    --------
    BMRMRegressor : The same model for one ``alpha``, and other penalties.

    References
    ----------
    .. [1] Golub, Heath and Wahba (1979). Generalized cross-validation as a method for
       choosing a good ridge parameter. Technometrics 21(2), section 1.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn_subqn import BMRMRegressorCV
    >>> X, y = make_regression(n_samples=200, n_features=5, noise=10, random_state=0)
    >>> model = BMRMRegressorCV(alphas=5, cv=3, loss="absolute_error").fit(X, y)
    >>> model.scores_path_.shape
    (3, 5)
    >>> bool(model.best_score_ == model.scores_path_.mean(axis=0).max())
    True
    >>> BMRMRegressorCV(alphas=5, cv="loo").fit(X, y).scores_path_.shape
    (200, 5)
    """

    _one_alpha = BMRMRegressor
    _grid_by_curvature = True
    _penalties: ClassVar[tuple[str, ...]] = (
        *("l2", "l1", "elasticnet"),
        *GROUPS,
    )

    # Parameters of the estimator for one ``alpha``, with fixed values here.
    alpha: ClassVar[None] = None  # type: ignore[misc, assignment]
    p: ClassVar[float] = 1.5  # type: ignore[misc]
    penalty_matrix: ClassVar[None] = None  # type: ignore[misc]
    warm_start: ClassVar[bool] = False  # type: ignore[misc]

    _may_have_no_penalty = False

    @unchanged_on_failure
    @with_callbacks
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
    ) -> Self:
        """Choose ``alpha`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. Dask arrays and dataframes stay where they are, with ``y``,
            ``sample_weight`` and ``offset`` in the same blocks; :class:`RowBlocks` are
            read in blocks. Targets, weights and offsets are loaded into this process.
            Folds are subsets of the rows, which are numbered in the order of the
            blocks.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that use them.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to f(x), as in :class:`BMRMRegressor`, in fits and in
            the predictions for scorers.

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
            If some folds cannot be scored, the score still rises at the smallest
            ``alpha`` of a default grid, or the final model does not use the features.
        """
        self._check_parameters()
        if is_collection(X):
            return self._fit_to_blocks(X, y, sample_weight, groups, offset)
        by_row = {"offset": offset, "groups": groups}
        check_same_rows(X, y=y, sample_weight=sample_weight, **by_row)
        data = X, y, sample_weight
        X, y = self._checked(X, y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if self.search_tol is not None and offset is not None:
            raise ValueError("search_tol does not go with offset.")
        scorer: Any = None if self.search_tol is not None else self._scorer(None)
        named = None if groups is None else exact_names(groups)
        folds: Any
        if self._leaves_one_out():
            folds = EachRow(np.flatnonzero(weights))
        else:
            folds = self._splitter(None).split(X, y, named)
        others = None, self._checked_offset(offset, len(y))
        remember_offset(self, offset)
        self._search(X, y, weights, others, scorer, folds, data)
        return self

    def _of_rows(self, others: tuple[Any, ...], rows: Indices) -> tuple[Any, ...]:
        names, offset = others
        return names, None if offset is None else offset[rows]

    def _knowing(self, others: tuple[Any, ...]) -> Self:
        _, offset = others
        if offset is None:
            return self
        model: Any = copy.copy(self)
        model.predict = partial(self.predict, offset=offset)
        model.score = partial(self.score, offset=offset)
        return model

    def _leaves_one_out(self) -> bool:
        named = isinstance(self.cv, str) and self.cv == "loo"
        return named or isinstance(self.cv, LeaveOneOut)

    def _splitter(self, y: Any) -> Any:
        return LeaveOneOut() if self._leaves_one_out() else super()._splitter(y)

    def _scored_by(self) -> Any:
        # R² is not defined for one sample.
        has_r2 = self.loss != "quantile" and variance_power(self) is None
        if self.scoring is None and has_r2 and self._leaves_one_out():
            return "neg_mean_squared_error"
        return self.scoring

    def _scorer(self, classes: Any) -> Any:
        has_name = self._scored_by() is not None
        return super()._scorer(classes) if has_name else _default_score

    def _searched(
        self,
        problems: LinearProblems,
        folds: Sequence[Any],
        fold_path: Callable[..., FoldPath],
        report: SearchReport,
        note: str = "",
    ) -> Paths:
        scoring = self._scored_by()
        known = isinstance(scoring, str) and scoring in SCORES_OF_A_ROW
        if known and self.refit and isinstance(folds, EachRow):
            alphas = self._grid(problems)
            args = folds, scoring, self.tol, report, note
            if paths := ridge_paths(problems, alphas, *args):
                self._set_factors(problems)
                return Paths(problems, alphas, paths)
        return super()._searched(problems, folds, fold_path, report, note)

    def _scores_of(self, found: list[dict[str, Any]], score: Any) -> list[float]:
        X, y = score.data
        others = self._scored_by() is not None or score.model() is not self
        if len(found) < 2 or others or np.ndim(y) > 1:
            return super()._scores_of(found, score)
        coefs = np.array([each["coef_"] for each in found])
        intercepts = np.array([each["intercept_"] for each in found])
        scores: list[float] = []
        step = max(1, BLOCK_SIZE // len(y))
        for i in range(0, len(found), step):
            predicted = safe_sparse_dot(X, coefs[i : i + step].T, dense_output=True)
            predicted += intercepts[i : i + step]
            if not np.isfinite(predicted).all():
                return super()._scores_of(found, score)
            weights = score.keywords.get("sample_weight")
            scores += [self._score_of(each, y, weights) for each in predicted.T]
        return scores

    def _has_ratio(self) -> bool:
        return self.penalty in ("elasticnet", *GROUPS[1:])


def _default_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the default score for the choice of ``alpha``."""
    if model.loss != "quantile":
        return float(model.score(X, y, sample_weight))
    return neg_mean_pinball_loss(model, X, y, sample_weight)
