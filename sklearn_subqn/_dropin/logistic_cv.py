"""Cross-validated logistic regression with scikit-learn's parameters."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn import get_config
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._checks import as_numpy, check_number, check_weights, exact_labels
from .._checks.signatures import with_parameters
from .._checks.state import unchanged_on_failure
from .._core.arrays import Floats
from .._core.names import check_same_rows
from .._estimators.estimator import FOUND, forget
from .._search.scoring import refuses_weights
from .._search.search_report import SearchReport
from .._search.warm_paths import warn_of_folds
from .._solving.callbacks import FitTask, with_callbacks
from .._solving.process import n_threads
from ._logistic_paths import best_place, fold_path, note
from .logistic import BaseLogistic, LogisticRegression


@with_parameters(kw_only=True)
class LogisticRegressionCV(BaseLogistic):
    """Logistic regression with ``C`` by cross-validation, as in scikit-learn.

    On each fold ``Omega(w) + C * sum_i s_i loss_i`` is minimized from the smallest C to
    the largest, each fit starting at the previous solution; the best C is refitted on
    all samples, and its distance from the optimum is bounded. Change the import in a
    script written for :class:`sklearn.linear_model.LogisticRegressionCV`; the notes
    list the differences.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        Values of C, or their number in a logarithmic grid from 1e-4 to 1e4.
    l1_ratios : array-like of float or None, default="warn"
        Shares of the L1 norm to try, in [0, 1]; None and the default mean 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splits, as in scikit-learn; ``None`` means 5 stratified folds.
    dual : bool, default=False
        Without effect, since primal and dual have the same solution.
    penalty : {"l1", "l2", "elasticnet"}, default="deprecated"
        Older form of ``l1_ratios``: "l1" and "l2" mean ratios 1 and 0.
    scoring : str, callable or None, default="warn"
        Score to maximize, as in scikit-learn; None and the default mean accuracy.
    solver : str, default="lbfgs"
        One of scikit-learn's names, without effect: the method is chosen by the data.
    tol : float, default=1e-4
        Relative gap to which each problem is solved.
    max_iter : int, default=100
        Limit on the number of iterations of each problem.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class, taken from all samples.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.
    refit : bool, default=True
        Whether to fit all samples with the best C. Otherwise the coefficients are
        averaged over the folds, each with its best C, without an objective.
    intercept_scaling : float, default=1.0
        Without effect, since the intercept is not penalized.
    random_state : int, RandomState instance or None, default=None
        Without effect: only the splits of ``cv`` may be random.
    use_legacy_attributes : bool, default="warn"
        Shapes of the attributes, see below. The default means True.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    coef_, intercept_
        As in :class:`LogisticRegression`, for the final model.
    Cs_ : ndarray of shape (n_cs,)
        The values of C.
    l1_ratios_ : ndarray of shape (n_l1_ratios,)
        The values of ``l1_ratios``, or an array with None if it is None.
    C_, l1_ratio_ : float, or ndarray of shape (1,) or (n_classes,)
        The best values; repeated for each class with legacy attributes.
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_cs), or dict
        Scores on the left-out samples. With legacy attributes a dict from classes to
        the same array of shape (n_folds, n_cs, n_l1_ratios), without the last axis if
        ``l1_ratios`` is None.
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_cs, n_classes, n_dof), or \
            dict
        Coefficients, and the intercept if there is one, on the folds; one row for two
        classes. With legacy attributes a dict from classes (for two classes, only the
        second) to arrays with one more axis than ``scores_``.
    n_iter_ : ndarray of the shape of the scores
        Numbers of iterations on the folds; with a first axis of length one with legacy
        attributes.
    objective_, dual_gap_, history_, plan_
        As in :class:`LogisticRegression`, for the refit with the best C.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    L1LogisticOWLQNCV : The same by ``alpha`` against the mean loss.

    Notes
    -----
    Differences from scikit-learn: the differences of :class:`LogisticRegression`; no
    warnings about future defaults; and among several C with the best mean score the
    smallest is chosen.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn.linear_model import LogisticRegressionCV
    >>> X, y = make_classification(random_state=0)
    >>> clf = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> clf.C_.shape
    (1,)
    >>> bool(clf.dual_gap_ <= 1e-4 * clf.objective_)
    True
    """

    _original = "sklearn.linear_model", "LogisticRegressionCV"

    # Only the splitter uses ``groups``.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    Cs: Any = 10
    l1_ratios: Any = "warn"
    fit_intercept: bool = True
    cv: Any = None
    dual: bool = False
    penalty: Any = "deprecated"
    scoring: Any = "warn"
    solver: str = "lbfgs"
    tol: float = 1e-4
    max_iter: int = 100
    class_weight: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    refit: bool = True
    intercept_scaling: float = 1.0
    random_state: Any = None
    use_legacy_attributes: Any = "warn"

    @unchanged_on_failure
    @with_callbacks
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Choose ``C`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that use them.
        **params : dict
            Further metadata for the splitter and the scorer, which get the requested
            metadata with ``sklearn.set_config(enable_metadata_routing=True)``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or a fit overflows.

        Warns
        -----
        ConvergenceWarning
            If a fit did not reach ``tol``; the message states the gap.
        """
        self._check_parameters()
        sample_weight = as_numpy(sample_weight)
        of_split, of_score = self._routed(sample_weight, groups, params)
        check_same_rows(X, y=y, sample_weight=sample_weight, groups=groups)
        raw = X, y, sample_weight
        X, y = self._check_X(X, y, reset=True)
        _, classes, weights, _ = check_weights(sample_weight, y, self.class_weight)
        self.Cs_ = self._grid()
        ratios = [None] if self._has_no_ratios else list(self.l1_ratios)
        self._ratios = [self._l1_ratio_of(ratio) for ratio in ratios]
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **of_split))
        data = X, y, weights, classes
        scored = None
        if sample_weight is not None:
            scored = np.broadcast_to(np.asarray(sample_weight, np.float64), y.shape)
        tried = [(*fold, ratio) for fold in folds for ratio in self._ratios]
        task = FitTask(self, len(tried) + bool(self.refit), self.max_iter, *raw)
        n_cs = len(self.Cs_)
        report = SearchReport(self, task, len(tried) * n_cs, "C")
        reports = [
            report.fold(i // len(ratios), n_cs, note(ratio) * (len(ratios) > 1))
            for i, (*_, ratio) in enumerate(tried)
        ]
        paths = Parallel(n_jobs=n_threads(self.n_jobs), prefer="threads")(
            delayed(fold_path)(
                self, self.Cs_, self._scorer(), *data, scored, of_score, *each, of_fold
            )
            for each, of_fold in zip(tried, reports, strict=True)
        )
        # Arrays have shape (n_folds, n_l1_ratios, n_cs); coefficients have two more
        # axes.
        coefs, scores, n_iters, gaps, proven = (
            np.stack(each).reshape(len(folds), len(ratios), *np.shape(each[0]))
            for each in zip(*paths, strict=True)
        )
        warn_of_folds(
            gaps.reshape(-1, len(self.Cs_)),
            proven.reshape(-1, len(self.Cs_)),
            self.Cs_,
            self.tol,
            "C",
        )
        self.classes_ = classes
        self._choose(scores, coefs, data, task)
        self._set_paths(scores, coefs, n_iters, ratios)
        task.end()
        return self

    def _routed(
        self, sample_weight: Any, groups: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the metadata for the splitter, and the metadata for the scorer."""
        if np.asarray(sample_weight).ndim == 0:
            # Scorers do not take one number for all samples.
            sample_weight = None
        if get_config()["enable_metadata_routing"]:
            given = {**params, "sample_weight": sample_weight, "groups": groups}
            given = {name: value for name, value in given.items() if value is not None}
            if not given:
                return {}, {}
            routed = process_routing(self, "fit", **given)
            return dict(routed.splitter.split), dict(routed.scorer.score)
        if params:
            raise TypeError(
                f"{type(self).__name__}.fit() got an unexpected keyword argument "
                f"{next(iter(params))!r}. Metadata for the splitter and the scorer "
                "need sklearn.set_config(enable_metadata_routing=True)."
            )
        weights = {}
        if sample_weight is not None and not refuses_weights(self._scorer()):
            weights["sample_weight"] = sample_weight
        return {"groups": groups}, weights

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata requests of the estimator, its splitter and its scorer.

        Returns
        -------
        routing : MetadataRouter
            Requests of the estimator, the splitter and the scorer.
        """
        of_fit, of_score = MethodMapping(), MethodMapping()
        of_fit.add(caller="fit", callee="split")
        of_score.add(caller="score", callee="score").add(caller="fit", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=check_cv(self.cv), method_mapping=of_fit)
        return router.add(scorer=self._scorer(), method_mapping=of_score)

    def score(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> float:
        """Return the score by ``scoring``.

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
            By default the accuracy.
        """
        check_same_rows(X, y=y, sample_weight=sample_weight)
        weights = as_numpy(sample_weight)
        given = {} if weights is None else {"sample_weight": weights}
        return float(self._scorer()(self, X, exact_labels("y", y), **given))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._has_no_ratios:
            for ratio in self.l1_ratios:
                check_number("l1_ratios", ratio, low=0.0, high=1.0)
        if np.ndim(self.Cs) == 0:
            return
        for C in self.Cs:
            if not np.isinf(C):
                check_number("Cs", C, low=0.0, low_included=False)

    @property
    def _has_no_ratios(self) -> bool:
        return self.l1_ratios is None or isinstance(self.l1_ratios, str)

    def _grid(self) -> Floats:
        if np.ndim(self.Cs) == 0:
            return np.logspace(-4, 4, int(self.Cs))
        return np.asarray(self.Cs, dtype=np.float64)

    def _scorer(self) -> Any:
        scoring = self.scoring
        if scoring is None or scoring == "warn":
            scoring = "accuracy"
        return check_scoring(self, scoring=scoring)

    def _l1_share(self) -> float:
        return self._l1_ratio

    def _of_chosen(self) -> Any:
        return LogisticRegression(
            C=self._C,
            l1_ratio=self._l1_ratio,
            tol=self.tol,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
        )

    def _with(self, l1_ratio: float) -> Self:
        """Return the model for a fold, without reports and with one thread."""
        model = copy.copy(self).set_params(verbose=0, n_jobs=1)
        # Folds are plain arrays without column names.
        vars(model).pop("feature_names_in_", None)
        model._l1_ratio = l1_ratio
        return model

    def _choose(self, scores: Floats, coefs: Floats, data: Any, task: FitTask) -> None:
        """Choose C and l1_ratio, and set the attributes of the final model.

        Scores are of shape (n_folds, n_l1_ratios, n_cs).
        """
        if self.refit:
            totals = scores.sum(axis=0)
            if not np.isfinite(totals).any():
                raise ValueError("No mean of the scores of the folds is finite.")
            ratio, place = np.unravel_index(best_place(totals, self.Cs_), totals.shape)
            self._C, self._l1_ratio = float(self.Cs_[place]), self._ratios[ratio]
            free = bool(np.isinf(self._C))
            problems = self._problems_of(*data, free=free)
            self._store(problems, problems.solve(self._C, task))
            return
        # An earlier fit with ``refit`` may have set these attributes.
        forget(self, *FOUND)
        best = [best_place(each, self.Cs_) for each in scores]
        places = [np.unravel_index(each, scores.shape[1:]) for each in best]
        self._C = float(np.mean([self.Cs_[c] for _, c in places]))
        self._l1_ratio = float(np.mean([self._ratios[r] for r, _ in places]))
        chosen = [coefs[i, r, c] for i, (r, c) in enumerate(places)]
        mean = np.mean(chosen, axis=0)
        self.coef_ = mean[:, : self.n_features_in_]
        self.intercept_ = np.zeros(len(mean))
        if self.fit_intercept:
            self.intercept_ = mean[:, -1]

    def _set_paths(
        self, scores: Floats, coefs: Floats, n_iters: Any, ratios: list[Any]
    ) -> None:
        """Set the results of the folds, in the shapes of scikit-learn."""
        self.l1_ratios_ = np.asarray(ratios)
        self.C_: Any
        self.l1_ratio_: Any
        self.scores_: Any
        self.coefs_paths_: Any
        if self.use_legacy_attributes is False:
            self.C_, self.l1_ratio_ = self._C, self._l1_ratio
            self.scores_, self.coefs_paths_, self.n_iter_ = scores, coefs, n_iters
            return
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_ = np.full(len(labels), self._C)
        ratio = None if self._has_no_ratios and self.refit else self._l1_ratio
        self.l1_ratio_ = np.array([ratio] * len(labels))
        scores, coefs, n_iters = (
            np.swapaxes(a, 1, 2) for a in (scores, coefs, n_iters)
        )
        if self._has_no_ratios:
            scores, coefs, n_iters = (a[:, :, 0] for a in (scores, coefs, n_iters))
        self.n_iter_ = n_iters[None]
        self.scores_ = dict.fromkeys(labels, scores)
        self.coefs_paths_ = {label: coefs[..., k, :] for k, label in enumerate(labels)}
