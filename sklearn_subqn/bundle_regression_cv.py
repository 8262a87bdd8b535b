"""Cross-validated choice of the penalty of regression models along warm paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from ._checks import check_sample_weight, exact_names
from ._checks.state import unchanged_on_failure
from ._core.losses import AnyLoss
from ._core.names import check_same_rows
from ._core.regularizers import L2
from ._core.steps.intercepts import minimize_intercept
from ._core.steps.line_search import exact
from ._estimators.block_methods import is_collection
from ._estimators.offsets import remember_offset
from ._problems import LinearProblems
from ._search.bounded_scores import neg_mean_pinball_loss
from ._search.cv import SearchCV
from ._solving.callbacks import with_callbacks
from ._solving.solution import Progress
from .bundle_regression import BMRMRegressor


class BMRMRegressorCV(SearchCV, BMRMRegressor):
    """Linear regression with cross-validation over a path of penalties.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting where the one before ended; this takes about half the time of a
    grid search. The best ``alpha`` is then refitted on all samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size. Then it falls in geometric progression: with an L1 norm
        over three powers of ten, from the value for which all coefficients are zero;
        with L2 over six, from ten times the value for which the penalty is as curved as
        the loss along its steepest slope.
    cv : int, cross-validation generator, iterable or None, default=None
        How to split, as in scikit-learn; ``None`` means 5 folds of consecutive samples.
    scoring : str, callable or None, default=None
        What to maximize, as in scikit-learn. ``None`` means the pinball loss, with a
        minus sign, for ``loss="quantile"``, its mean over the quantiles if there are
        several, and else what ``score`` returns: R², or D² for "poisson", "gamma" and
        "tweedie". Sample weights are passed to the scorer if there are any.
    error_score : "raise" or float, default=nan
        Score of a fold on which the scorer raises an error. Folds without any finite
        score are left out of the means, with a warning.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, in place of a grid, and prove that
        no ``alpha`` in it has a mean score better than the best one found by more than
        this. For one column of y, ``penalty="l2"``, and the scores "r2",
        "neg_mean_squared_error", "neg_mean_absolute_error" and
        "neg_mean_pinball_loss".
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, at least 1: each ``alpha``
        that is solved on the folds counts as one, and a bounded interval as a share of
        one, from a sixth for small data to less than a hundredth for large. The
        default is the number of fits of 50 grids of 20 values. A search that reaches
        it ends with what is proven so far, and a warning. The first 13 values are
        always solved.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise coefficients are
        means over the folds, for which there is no objective or gap.
    loss : str or Loss, default="squared_error"
        As in :class:`BMRMRegressor`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        As in :class:`BMRMRegressor`.
    l1_ratio : float or list of float, default=0.5
        For the elastic net, in [0, 1]. Of a list that is chosen which has the best mean
        score with its best ``alpha``, the first if there are several.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        As in :class:`BMRMRegressor`.
    positive : bool, default=False
        As in :class:`BMRMRegressor`.
    coef_bounds : pair (low, high) or None, default=None
        As in :class:`BMRMRegressor`.
    coef_constraints : pair (A, b) or None, default=None
        As in :class:`BMRMRegressor`.
    quantile : float or list of float, default=0.5
        As in :class:`BMRMRegressor`; several have the same ``alpha``.
    crossing : {"sort", "allow"}, default="sort"
        As in :class:`BMRMRegressor`.
    epsilon : float or None, default=None
        As in :class:`BMRMRegressor`.
    power : float, default=1.5
        As in :class:`BMRMRegressor`.
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
        Further options of the solver, such as those of its publication, by name. Which
        ones each solver takes, with their ranges and defaults, is in the table of
        `docs/methods.md`; others are refused.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`BMRMRegressor`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print the progress of the fits on folds and of the refit, at some of them and of
        its iterations if 1, at each if larger.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        The grid, from the largest value to the smallest; with a list of values of
        ``l1_ratio`` one for each.
    alpha_ : float
        The value with the best mean score; the largest of them if there are several.
    best_score_ : float
        The mean score of that value over the folds.
    l1_ratio_ : float
        With ``penalty="elasticnet"`` the value of ``l1_ratio`` that was chosen.
    scores_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Scores on the left-out samples, ``error_score`` where there are none.
    search_gap_ : float
        With ``search_tol``: no ``alpha`` of the interval has a mean score better than
        ``best_score_`` by more, up to rounding.
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
    """

    _one_alpha = BMRMRegressor
    _penalties: ClassVar[tuple[str, ...]] = ("l2", "l1", "elasticnet")

    # An estimator of a single ``alpha`` has these parameters, which this one has not.
    metric = None
    warm_start = False

    _may_have_no_penalty = False

    def __init__(
        self,
        alphas: Any = 20,
        *,
        cv: Any = None,
        scoring: Any = None,
        error_score: Any = np.nan,
        search_tol: float | None = None,
        search_max_fits: int = 1000,
        refit: bool = True,
        loss: str | AnyLoss = "squared_error",
        penalty: str = "l2",
        l1_ratio: Any = 0.5,
        penalty_factor: Any = None,
        positive: bool = False,
        coef_bounds: Any = None,
        coef_constraints: Any = None,
        quantile: Any = 0.5,
        crossing: str = "sort",
        epsilon: float | None = None,
        power: float = 1.5,
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory: int = 15,
        bundle_size: int | None = None,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.error_score = error_score
        self.search_tol = search_tol
        self.search_max_fits = search_max_fits
        self.refit = refit
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.coef_bounds = coef_bounds
        self.coef_constraints = coef_constraints
        self.quantile = quantile
        self.crossing = crossing
        self.epsilon = epsilon
        self.power = power
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.bundle_size = bundle_size
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

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
            Training data. Dask arrays and dataframes stay where they are, with ``y``
            and ``sample_weight`` in the same blocks; :class:`RowBlocks` are read in
            blocks. Targets and weights come to this process. Folds are of rows, which
            are numbered in the order of the blocks.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that ask for them.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to f(x), as in :class:`BMRMRegressor`, in fits and in
            scores: scorers see the predictions with them.

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
            If some folds cannot be scored, or the final model makes no use of the
            features.
        """
        self._check_parameters()
        if is_collection(X):
            remember_offset(self, None)
            return self._fit_to_blocks(X, y, sample_weight, groups, offset)
        by_row = {"offset": offset, "groups": groups}
        check_same_rows(X, y=y, sample_weight=sample_weight, **by_row)
        data = X, y, sample_weight
        X, y = self._checked(X, y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if self.search_tol is not None and offset is not None:
            raise ValueError("search_tol does not go with offset.")
        scorer: Any = None if self.search_tol is not None else self._scorer(None)
        folds = check_cv(self.cv).split(
            X, y, None if groups is None else exact_names(groups)
        )
        others = None, self._checked_offset(offset, len(y))
        remember_offset(self, offset)
        self._search(X, y, weights, others, scorer, folds, data)
        return self

    def _of_rows(
        self, others: tuple[Any, ...], rows: npt.NDArray[np.intp]
    ) -> tuple[Any, ...]:
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

    def _scorer(self, classes: Any) -> Any:
        return _default_score if self.scoring is None else super()._scorer(classes)

    def _has_ratio(self) -> bool:
        return self.penalty == "elasticnet"

    def _grid_of_squares(
        self, problems: LinearProblems, n: int
    ) -> npt.NDArray[np.float64]:
        scales = [_curvature(problems, index) for index in range(len(problems))]
        scales = [scale for scale in scales if 0.0 < scale < np.inf]
        if not scales:
            # Data without any slope have no scale.
            return super()._grid_of_squares(problems, n)
        # The grid is in units of the curvature of the loss.
        largest = 10.0 * float(np.exp(np.mean(np.log(scales))))
        return np.geomspace(largest, 1e-6 * largest, n)


def _default_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the score by which to choose where the user gives none."""
    if model.loss != "quantile":
        return float(model.score(X, y, sample_weight))
    return neg_mean_pinball_loss(model, X, y, sample_weight)


def _curvature(problems: LinearProblems, index: int) -> float:
    """Return the scale of ``alpha`` of a problem, which follows all units.

    That is the inverse of the best step along the steepest slope from zero, in which
    features without a penalty have no part. Of a quadratic loss it is the curvature:
    half the way is left with a penalty as curved.
    """
    # So small a penalty has no part in the curvature along a line.
    objective = problems.objective(index, 1e-200)
    objective = objective.with_regularizer(L2(problems.design.n_coef))
    origin = minimize_intercept(objective.origin())
    gradient = origin.risk_gradient.copy()
    gradient[problems.design.n_coef :] = 0.0
    if problems.free is not None:
        gradient[: problems.design.n_coef][problems.free.coef] = 0.0
    if not gradient.any() or not origin.objective.loss.has_lines:
        return 0.0
    step = exact(origin.along(-gradient))
    return 1.0 / step if step > 0.0 else 0.0
