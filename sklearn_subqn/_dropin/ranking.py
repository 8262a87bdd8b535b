"""Linear ranking with the parameters of LightGBM's ranker."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import check_n_jobs, check_number, check_option
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array, Floats
from .._estimators.estimator import forget
from .._problems import LinearProblems, Problems
from .._problems.reading import Times
from .._ranking.base_ranker import BaseRanker
from .._ranking.held_out import HeldOutMeasures
from .._ranking.queries import Queries
from .._solving.callbacks import with_callbacks
from .._solving.solution import Solution
from ._of_lightgbm import (
    OF_TREES,
    ReportedMeasures,
    checked_eval_set,
    first_of,
    is_of_results,
    names_of,
    patience_of,
    without_effect,
)
from ._shared import warn

_OBJECTIVES = ("lambdarank", "rank_xendcg")


class Ranker(BaseRanker):
    """Linear ranking of the rows of queries with the parameters of LightGBM's ranker.

    Minimizes ``sum_q loss_q + reg_alpha * ||w||_1 + reg_lambda / 2 * ||w||²`` over
    queries q, where the loss of a query is the mean of ``(y_j - y_i) * ln(1 + exp(z_i -
    z_j))`` over pairs of rows with relevances y_i < y_j and scores z, and reports a
    proven bound on the distance from the optimum. Change the import in a script written
    for ``lightgbm.LGBMRanker``; the notes list the differences.

    Parameters
    ----------
    boosting_type : str, default="gbdt"
        Without effect, since there are no trees. A warning is raised if a parameter
        without effect is given.
    num_leaves, max_depth : int, default=31 and -1
        Without effect.
    learning_rate : float, default=0.1
        Without effect.
    n_estimators, subsample_for_bin : int, default=100 and 200000
        Without effect.
    objective : {"lambdarank", "rank_xendcg"} or None, default=None
        Both names mean the loss above: the logistic loss of pairs, which LambdaRank
        weights by changes of NDCG, is weighted by differences of relevance, which keeps
        it convex.
    class_weight : default=None
        Without effect.
    min_split_gain, min_child_weight : float, default=0 and 1e-3
        Without effect.
    min_child_samples : int, default=20
        Without effect.
    subsample : float, default=1.0
        Without effect.
    subsample_freq : int, default=0
        Without effect.
    colsample_bytree : float, default=1.0
        Without effect.
    reg_alpha, reg_lambda : float, default=0.0
        Strengths of the L1 and L2 penalties, non-negative. If both are zero,
        ``reg_lambda`` is a thousandth of the number of queries.
    random_state : int, RandomState instance or None, default=None
        Without effect: nothing is random.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    importance_type : str, default="split"
        Without effect.
    verbose : int, default=-1
        Print progress at some iterations if 1, at every iteration if larger.
    **kwargs
        Other parameters of LightGBM: ``lambda_l1``, ``lambda_l2`` and ``eval_at`` take
        precedence over ``reg_alpha``, ``reg_lambda`` and the ``eval_at`` of ``fit``;
        ``metric="ndcg"`` and seeds are ignored; all other parameters are ignored with a
        warning.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Zero: rankings do not depend on it.
    feature_importances_ : ndarray of shape (n_features,)
        Absolute values of ``coef_``, which depend on the units of the features.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    best_score_ : dict
        NDCG of ``eval_set`` by names of data and measures, as "valid_0" and "ndcg@5".
    evals_result_ : dict
        NDCG after each iteration, as lists.
    best_iteration_ : int
        With ``eval_set``, the iteration of the final coefficients: the last one, unless
        ``lightgbm.early_stopping`` ended the fit.
    n_iter_ : int
        Number of iterations.
    n_queries_ : int
        Number of queries of the training data.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        How the problem was solved.
    n_features_in_, n_features_ : int
        Number of features.
    feature_name_ : list of str
        Names of the features; "Column_0" and so on if X has no names.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRanker : Other losses, queries in any order by ``qid``, weights of queries.

    Notes
    -----
    Differences from LightGBM: the model is linear, so features should be scaled and
    missing values imputed; iterations are steps of an optimization method, which stops
    at a proven relative gap of 1e-3 or earlier; ``objective_`` is a number. Queries
    without relevant rows count as one in NDCG, as in LightGBM; ``BMRMRanker`` has a
    parameter for them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.ranking import Ranker
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0, 1])
    >>> ranker = Ranker(reg_lambda=0.01).fit(X, y, group=[10] * 6)
    >>> bool(ranker.dual_gap_ <= 1e-3 * ranker.objective_)
    True
    >>> round(ranker.score(X, y, group=[10] * 6), 3)
    1.0
    """

    # Fixed values of parameters of the base class.
    loss = "pairwise-linear-log"
    k = None
    empty_queries = "one"
    solver = "auto"
    tol = 1e-3
    max_iter = 1000
    bundle_size = None
    warm_start = False
    callback = None
    _weaker = "decrease reg_alpha and reg_lambda"
    _how_to_give_queries: ClassVar[str] = (
        "Give group, the numbers of rows of the queries, which follow one another; "
        "[len(X)] if all rows are one query."
    )

    best_score_: dict[str, dict[str, float]]
    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int

    def __init__(
        self,
        *,
        boosting_type: str = "gbdt",
        num_leaves: int = 31,
        max_depth: int = -1,
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample_for_bin: int = 200000,
        objective: str | None = None,
        class_weight: Any = None,
        min_split_gain: float = 0.0,
        min_child_weight: float = 1e-3,
        min_child_samples: int = 20,
        subsample: float = 1.0,
        subsample_freq: int = 0,
        colsample_bytree: float = 1.0,
        reg_alpha: float = 0.0,
        reg_lambda: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        importance_type: str = "split",
        verbose: int = -1,
        **kwargs: Any,
    ) -> None:
        self.boosting_type = boosting_type
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample_for_bin = subsample_for_bin
        self.objective = objective
        self.class_weight = class_weight
        self.min_split_gain = min_split_gain
        self.min_child_weight = min_child_weight
        self.min_child_samples = min_child_samples
        self.subsample = subsample
        self.subsample_freq = subsample_freq
        self.colsample_bytree = colsample_bytree
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.importance_type = importance_type
        self.verbose = verbose
        if kwargs:
            self._others = kwargs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including ``**kwargs``.

        Parameters
        ----------
        deep : bool, default=True
            Without effect: no parameter is an estimator.

        Returns
        -------
        params : dict
            Values of the parameters, by name.
        """
        return super().get_params(deep) | self._more

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including any that the constructor takes by ``**kwargs``.

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        self : Ranker
            The estimator.
        """
        own = names_of(type(self))
        others = {name: params[name] for name in params if name not in own}
        if others:
            self._others = self._more | others
        return super().set_params(
            **{name: params[name] for name in params if name in own}
        )

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        init_score: Any = None,
        group: Any = None,
        eval_set: Any = None,
        eval_names: Any = None,
        eval_sample_weight: Any = None,
        eval_init_score: Any = None,
        eval_group: Any = None,
        eval_metric: Any = None,
        eval_at: Any = (1, 2, 3, 4, 5),
        feature_name: Any = "auto",
        categorical_feature: Any = "auto",
        callbacks: Any = None,
        init_model: Any = None,
        *,
        eval_X: Any = None,
        eval_y: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Relevances: rows with larger relevance should have larger scores.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.
        init_score : default=None
            Without effect; a warning is raised if it is given.
        group : array-like of shape (n_queries,), default=None
            Number of rows of each query, in the order of the rows. Without ``group``
            all rows belong to one query, with a warning.
        eval_set : list of tuples (X, y), default=None
            Data for which NDCG is computed after each iteration, see ``evals_result_``.
        eval_names : list of str, default=None
            Names of the data sets; "valid_0" and so on by default.
        eval_sample_weight, eval_init_score : default=None
            Without effect.
        eval_group : list of array-like, default=None
            ``group`` for each data set in ``eval_set``; required with ``eval_set``.
        eval_metric : {"ndcg"} or None, default=None
            Other measures have no effect.
        eval_at : list of int, default=(1, 2, 3, 4, 5)
            Ranks at which NDCG ends.
        feature_name, categorical_feature : default="auto"
            Without effect.
        callbacks : list of callable, default=None
            ``lightgbm.early_stopping`` ends the fit by NDCG of ``eval_set``, with the
            coefficients of the best iteration, unless the optimum is proven before.
            Other callbacks, such as ``lightgbm.log_evaluation`` and
            ``lightgbm.record_evaluation``, are called with the results of each
            iteration; callbacks that change parameters have no effect.
        init_model : default=None
            Without effect.
        eval_X, eval_y : data, or tuples of them, default=None
            ``eval_set`` in another form.

        Returns
        -------
        self : Ranker
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the fit overflows. A previously fitted
            estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If the optimum was not proven; the message states the gap.
        UserWarning
            If an argument without effect was given, or if the optimum does not use the
            features.
        """
        eval_set = checked_eval_set(eval_set, eval_X, eval_y)
        patience, others = patience_of(callbacks)
        reporting = [] if eval_set is None else [c for c in others if is_of_results(c)]
        if patience.n_iter is not None and eval_set is None:
            raise ValueError("early_stopping needs an eval_set, got None.")
        given = {
            "init_score": init_score,
            "eval_sample_weight": eval_sample_weight,
            "eval_init_score": eval_init_score,
            "eval_metric": None if eval_metric in ("ndcg", ["ndcg"]) else eval_metric,
            "callbacks": others if len(others) > len(reporting) else None,
            "init_model": init_model,
            "feature_name": _unless_auto(feature_name),
            "categorical_feature": _unless_auto(categorical_feature),
        }
        names = [name for name, value in given.items() if value is not None]
        if names:
            warn(f"{', '.join(names)} given to fit: without effect in a linear model.")
        forget(self, "best_score_", "evals_result_", "best_iteration_")
        queries = {"qid": None, "group": group, "query_weight": None}
        sets = {"names": eval_names, "eval_group": eval_group}
        ranks = np.atleast_1d(first_of("eval_at", self._more, eval_at))
        evaluation = eval_set, sets, [int(k) for k in ranks], patience, reporting
        return self._fit(X, y, sample_weight, evaluation=evaluation, **queries)

    def predict(
        self,
        X: Any,
        raw_score: bool = False,
        start_iteration: int = 0,
        num_iteration: int | None = None,
        pred_leaf: bool = False,
        pred_contrib: bool = False,
        validate_features: bool = False,
        **kwargs: Any,
    ) -> Array:
        """Return the scores by which the rows of a query are to be ranked.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        raw_score : bool, default=False
            Without effect: predictions are scores in any case.
        start_iteration, num_iteration : int, default=0 and None
            Without effect: scores use the final coefficients.
        pred_leaf, pred_contrib : bool, default=False
            Refused: there are no trees.
        validate_features : bool, default=False
            Without effect: names of features are always compared with the names in
            ``fit``.
        **kwargs
            Without effect.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Rows with larger scores are ranked higher in their query.
        """
        if pred_leaf or pred_contrib:
            raise ValueError(
                "pred_leaf and pred_contrib are of trees, which there are not. The "
                "model is linear: column j of X adds X[:, j] * coef_[j] to the scores."
            )
        return super().predict(X)

    @property
    def feature_name_(self) -> list[str]:
        """Names of the features in X, or "Column_0" and so on."""
        check_is_fitted(self)
        plain = [f"Column_{i}" for i in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", plain)]

    @property
    def n_features_(self) -> int:
        """Number of features."""
        check_is_fitted(self)
        return int(self.n_features_in_)

    @property
    def booster_(self) -> Any:
        """Raise an error with an alternative, since this attribute does not exist."""
        raise AttributeError(
            "Ranker has no booster_, since there are no trees: coef_ is the model. "
            "Store it by pickle or joblib."
        )

    @property
    def feature_importances_(self) -> Array:
        """Absolute values of the coefficients."""
        if not hasattr(self, "coef_"):
            raise AttributeError("This Ranker is not fitted yet.")
        return np.abs(self.coef_)

    @property
    def penalty(self) -> str:  # type: ignore[override]
        """Name of the penalty."""
        l1, l2 = self._strengths
        if not l1:
            return "l2"
        return "elasticnet" if l2 else "l1"

    @property
    def l1_ratio(self) -> float:  # type: ignore[override]
        """Share of L1 in the penalty."""
        l1, l2 = self._strengths
        return l1 / (l1 + l2) if l1 + l2 else 0.0

    @property
    def _more(self) -> dict[str, Any]:
        """Parameters given by ``**kwargs``."""
        found: dict[str, Any] = getattr(self, "_others", {})
        return dict(found)

    @property
    def _strengths(self) -> tuple[Any, Any]:
        """Strengths of the L1 and L2 penalties, given by any of their names."""
        more = self._more
        return (
            first_of("reg_alpha", more, self.reg_alpha),
            first_of("reg_lambda", more, self.reg_lambda),
        )

    def _check_parameters(self) -> None:
        if self.objective is not None:
            check_option("objective", self.objective, _OBJECTIVES)
        for name, value in zip(
            ("reg_alpha", "reg_lambda"), self._strengths, strict=True
        ):
            check_number(name, value, low=0.0)
        check_number("verbose", self.verbose, low=-1, integer=True)
        check_n_jobs("n_jobs", self.n_jobs)
        set_ = [
            f"{name}={getattr(self, name)!r}"
            for name, default in OF_TREES.items()
            if getattr(self, name) != default
        ]
        if set_:
            warn(
                f"{', '.join(set_)} without effect: the model is linear, and has no "
                "trees."
            )
        message = without_effect(
            self._more, names_of(type(self)), names_of(type(self).fit)
        )
        if message:
            warn(message)

    def _strength(self, *data: Any) -> float:
        total = float(sum(self._strengths))
        # The strength is relative to the mean loss of a query.
        return total / self.n_queries_ if total else 1e-3

    def _ranking(self, X: Any, y: Floats, queries: Queries) -> LinearProblems:
        problems = super()._ranking(X, y, queries)
        problems.reading = Times(float(self.n_queries_))
        return problems

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, evaluation: Any = None, **others: Any
    ) -> Problems:
        problems = super()._encode(X, y, sample_weight, **others)
        eval_set, sets, ranks, patience, reporting = evaluation
        if eval_set is not None:
            checked = self._held_out(eval_set, **sets)
            problems.watch = ReportedMeasures(
                self, checked, ranks, patience, callbacks=reporting
            )
        return problems

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        if not isinstance(problems.watch, HeldOutMeasures):
            return
        self.evals_result_, self.best_iteration_ = problems.watch.end(self)
        index = max(self.best_iteration_ - 1, 0)
        self.best_score_ = {
            name: {measure: values[index] for measure, values in found.items()}
            for name, found in self.evals_result_.items()
        }


def _unless_auto(value: Any) -> Any:
    """Return a value, or None for "auto"."""
    return None if isinstance(value, str) and value == "auto" else value
