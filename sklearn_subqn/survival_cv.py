"""Cox regression with a cross-validated strength of the penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, check_cv

from ._checks import check_option
from ._checks.labels import exact_names
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Indices
from ._core.losses import Cox
from ._core.names import check_same_rows
from ._estimators.concordance import Concordance
from ._estimators.estimator import forget
from ._estimators.offsets import remember_offset
from ._problems import LinearProblems
from ._search.proven_cv import check_interval, search_folds
from ._search.warm_paths import WarmPaths
from ._solving.callbacks import with_callbacks
from .survival import CoxRegression


@with_parameters()
class CoxRegressionCV(WarmPaths, CoxRegression):
    """Cox regression with cross-validation over a path of penalties.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting at the previous solution, with a proven gap. The best ``alpha`` is
    then refitted on all samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size. A grid of a given size is geometric: with an L1 norm over
        three powers of ten, down from the smallest value with all coefficients zero;
        with L2 over six powers of ten, down from ten times the value at which the
        penalty has the curvature of the loss along its steepest slope. It applies to
        features divided by their scales.
    ties : {"efron", "breslow"}, default="efron"
        As in :class:`CoxRegression`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        As in :class:`CoxRegression`.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        As in :class:`CoxRegression`.
    solver : str, default="auto"
        As in :class:`CoxRegression`.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2; None for no limit.
    solver_options : dict or None, default=None
        Further options of the solver by name; see `docs/methods.md`.
    n_jobs : int or None, default=None
        Number of threads over folds.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`CoxRegression`.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splits; an integer is a number of folds with equal shares of
        events, in random order, and ``None`` means 5.
    scoring : {"likelihood", "concordance"}, default="likelihood"
        Score to maximize: what the held-out samples add to the logarithm of the partial
        likelihood of all samples (Verweij and van Houwelingen 1993), divided by the sum
        of all weights, or the concordance of the held-out samples.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, instead of a grid, and prove that no
        ``alpha`` in it has a mean concordance that exceeds the best one by more than
        ``search_tol``. For ``penalty="l2"`` and ``scoring="concordance"``.
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, as in :class:`BMRMRankerCV`.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise the coefficients
        are averaged over the folds, without a baseline hazard, objective or gap.
    one_standard_error : bool, default=False
        Whether to choose the largest ``alpha`` whose mean score is within one standard
        error of the best one, for a simpler model (Breiman et al. 1984; Hastie et al.
        2009, section 7.10). Not with ``search_tol``, which proves the best mean only.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of samples in folds, for an integer ``cv``.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        The grid in descending order.
    alpha_ : float
        The value with the best mean score, the largest one if several are equal; with
        ``one_standard_error`` the largest one within a standard error of the best.
    penalty_factor_ : ndarray of shape (n_features,)
        The factors of the features in the penalty; with a default grid they include
        scales.
    best_score_ : float
        The best mean score over the folds.
    scores_path_ : ndarray of shape (n_folds, n_alphas)
        Scores of the folds.
    gaps_path_ : ndarray of shape (n_folds, n_alphas)
        Proven relative gaps.
    search_gap_ : float
        With ``search_tol``: bound of how much the mean score of any ``alpha`` of the
        interval exceeds ``best_score_``; at most ``search_tol``, unless a warning was
        raised.
    score_bounds_ : ndarray of shape (n_intervals, 4)
        With ``search_tol``: the ends of intervals of ``alpha``, and bounds of the mean
        score for all values between these.
    coef_, intercept_, n_features_in_, feature_names_in_
        As in :class:`CoxRegression`, of the final model.
    event_times_, strata_, baseline_cumulative_hazard_, baseline_score_
        As in :class:`CoxRegression`, of the final model.
    objective_, dual_gap_, n_iter_, history_, plan_
        As in :class:`CoxRegression`; all but ``n_iter_`` with ``refit=True`` only.

    See Also
    --------
    CoxRegression : The same model for one ``alpha``.

    References
    ----------
    P. Verweij, H. van Houwelingen (1993), Cross-validation in Survival Analysis,
    Statistics in Medicine 12.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import CoxRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 20))
    >>> y = rng.exponential(np.exp(-X[:, 0])), rng.random(200) < 0.8
    >>> model = CoxRegressionCV(alphas=10, penalty="l1").fit(X, y)
    >>> bool(model.coef_[0] > 0.5), bool((model.gaps_path_ <= 1e-3).all())
    (True, True)
    """

    _one_alpha = CoxRegression
    _grid_by_curvature = True
    alpha: ClassVar[None] = None  # type: ignore[misc, assignment]
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    _may_have_no_penalty = False

    alphas: Any = 20
    _: KW_ONLY
    cv: Any = None
    scoring: str = "likelihood"
    search_tol: float | None = None
    search_max_fits: int = 1000
    refit: bool = True
    one_standard_error: bool = False
    random_state: Any = 0

    @unchanged_on_failure
    @with_callbacks
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        strata: Any = None,
        offset: Any = None,
    ) -> Self:
        """Choose ``alpha`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like, structured array, data frame or tuple of arrays
            Times and events, as in :class:`CoxRegression`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that use them.
        strata : array-like of shape (n_samples,), default=None
            Names of strata. Each stratum has its own baseline hazard.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to ``<w, x>``.

        Returns
        -------
        self : CoxRegressionCV
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, a part of a fold has no events, or a fit
            overflows.

        Warns
        -----
        ConvergenceWarning
            If a fit did not reach ``tol``; the message states the gap.
        UserWarning
            If the score still rises at the smallest ``alpha`` of a default grid, or the
            final model does not use the features.
        """
        self._check_parameters()
        # An earlier fit with ``refit`` may have set these attributes.
        forget(self, "event_times_", "baseline_cumulative_hazard_", "baseline_score_")
        check_same_rows(X, groups=groups)
        rows = self._read(X, y, sample_weight, strata, offset)
        event, groups = rows[1][:, 2], None if groups is None else exact_names(groups)
        folds = list(self._splitter().split(np.zeros((len(event), 1)), event, groups))
        problems = self._problems(*rows)
        search_folds(self, problems, rows, folds, (X, y, sample_weight))
        remember_offset(self, offset)
        return self

    def _splitter(self) -> Any:
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, int | np.integer):
            return StratifiedKFold(cv, shuffle=True, random_state=self.random_state)
        return check_cv(cv)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("scoring", self.scoring, ("likelihood", "concordance"))
        if self.search_tol is not None:
            check_interval(self)
            if self.scoring != "concordance":
                raise ValueError(
                    "search_tol needs scoring='concordance': bounds of the likelihood "
                    "are not known."
                )

    def _training(self, rows: Any, train: Indices) -> LinearProblems:
        X, targets, weights = (each[train] for each in rows)
        return self._problems(X, targets, weights / (weights.sum() or 1.0))

    def _score(
        self, rows: Any, train: Indices, test: Indices, problems: LinearProblems
    ) -> Callable[[], float]:
        X, targets, weights = rows
        if self.scoring == "concordance":
            held_out = Concordance(targets[test], weights[test])
            return lambda: held_out(np.asarray(self._scores(X)[test], dtype=np.float64))
        train_loss: Any = problems.loss.oracle
        whole_loss, total = Cox(self.ties), float(weights[train].sum())
        data = problems.targets[0], problems.weights

        def added() -> float:
            scores = np.asarray(self._scores(X), dtype=np.float64)
            fitted = total * train_loss.value(scores[train], *data)
            return fitted - whole_loss.value(scores, targets, weights)

        return added

    def _bounded(self, rows: Any, test: Indices) -> tuple[Any, Concordance]:
        held, targets, weights = (each[test] for each in rows)
        if not sparse.issparse(held):
            # The concordance depends only on differences of scores.
            held = held - held.mean(axis=0, dtype=np.float64)
        return held, Concordance(targets, weights)
