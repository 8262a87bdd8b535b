"""Linear ranking with a proven distance from the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
)

from ._callbacks import with_callbacks
from ._callers import user_level
from ._catalogue import BundleEstimator
from ._core.losses import (
    BINARY_LOSSES,
    AnyLoss,
    ExpectedRankUtility,
    Groups,
    Inversions,
    LogisticPairs,
    Loss,
    Ndcg,
    OrderedPairs,
    PrecisionAtK,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
    SquaredPairs,
)
from ._core.solvers import BUNDLE_SOLVERS, CATALOGUE_SOLVERS, SolverSpec
from ._estimator import forget, loss_name
from ._evaluation import Evaluation, HeldOut, Patience, held_out
from ._problems import LinearProblems, Problems
from ._queries import EMPTY_QUERIES, Preferences, Queries
from ._solution import Floats, Progress, Solution
from ._state import unchanged_on_failure
from ._validation import check_no_times, check_number, check_option, check_unmasked

# Measures of rankings, from groups and the rank k at which they end.
_MEASURES: dict[str, Callable[[Groups, Any], RankingLoss]] = {
    "ndcg": lambda groups, k: Ndcg(groups, k=k),
    "mrr": lambda groups, k: ReciprocalRank(groups),
    "precision": lambda groups, k: PrecisionAtK(k, groups),
    "recall": lambda groups, k: RecallAtK(k, groups),
    "rank-utility": lambda groups, k: ExpectedRankUtility(groups),
}
_NEED_K = ("precision", "recall")
_ASSIGNMENT = "-assignment"

_PAIRS: dict[str, Callable[[Groups], OrderedPairs]] = {
    "pairwise-linear": lambda groups: OrderedPairs("linear", groups),
    "pairwise": lambda groups: OrderedPairs("constant", groups),
    "pairwise-linear-squared": lambda groups: SquaredPairs("linear", groups),
    "pairwise-squared": lambda groups: SquaredPairs("constant", groups),
    "pairwise-linear-log": lambda groups: LogisticPairs("linear", groups),
    "pairwise-log": lambda groups: LogisticPairs("constant", groups),
}
# What each is of the difference of the scores of a given pair.
_OF_DIFFERENCES = {
    name: of_difference
    for form, of_difference in (
        ("", "hinge"),
        ("-squared", "squared_hinge"),
        ("-log", "log_loss"),
    )
    for name in (f"pairwise-linear{form}", f"pairwise{form}")
}
_LOSSES = (*_PAIRS, *_MEASURES, *(name + _ASSIGNMENT for name in _MEASURES))

# Gains 2^y - 1 are finite up to here, and so are their sums.
_LARGEST_RELEVANCE = 500.0


class BaseRanker(BundleEstimator):
    """What rankers share: losses of queries, scores and what they are worth."""

    loss: str | Callable[[Any], Any]
    k: int | None
    empty_queries: str

    _solvers: ClassVar[Mapping[str, SolverSpec]] = {
        **{key: CATALOGUE_SOLVERS[key] for key in ("auto", "narrowing", "newton-cg")},
        **BUNDLE_SOLVERS,
    }
    _penalties = ("l2", "l1", "elasticnet")

    #: What to give where there are no queries.
    _how_to_give_queries: ClassVar[str] = (
        "Give qid, with numpy.zeros(n) if that is what they are. groups of a search go "
        "to the splitter alone: let scikit-learn pass queries on by "
        "sklearn.set_config(enable_metadata_routing=True), "
        "ranker.set_fit_request(qid=True).set_score_request(qid=True), and "
        "search.fit(X, y, qid=qid, groups=qid)."
    )

    coef_: npt.NDArray[Any]
    intercept_: float

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the scores by which the rows of a query are to be ranked.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The larger, the higher the row is ranked in its query.
        """
        return self._raw_scores(X)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
    ) -> float:
        """Return the mean normalized discounted cumulative gain of the queries.

        Gains are 2^y - 1, discounts 1 / log2(1 + rank) up to rank ``k``. Rows of equal
        scores share their discounts, as in :func:`~sklearn.metrics.ndcg_score`; what
        queries without gains count says ``empty_queries``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Relevances, non-negative.
        sample_weight : float or array-like of shape (n_samples,), default=None
            How many rows each row counts as: one of weight 2 takes two ranks, one of
            weight 0 is left out.
        qid, group : array-like, default=None
            Queries, as in ``fit``. Without either all rows belong to one query, which
            is an error after a fit to several. Cross-validation passes ``qid`` on if
            metadata routing is enabled and the estimator asks for it by
            ``set_score_request(qid=True)``.
        query_weight : array-like of shape (n_samples,) or (n_queries,), default=None
            Weights of the queries in the mean, as in ``fit``.

        Returns
        -------
        score : float
            Mean over the queries, at most 1, which is that of ideal rankings.

        Raises
        ------
        TypeError, ValueError
            If ``k``, relevances or queries are not acceptable, or there are none after
            a fit to several queries, or none that count.
        """
        if self.k is not None:
            check_number("k", self.k, low=1, integer=True)
        check_option("empty_queries", self.empty_queries, EMPTY_QUERIES)
        scores = self.predict(X)
        check_unmasked("y", y)
        y = checked_relevance(column_or_1d(y, warn=True), "score")
        check_consistent_length(scores, y)
        if qid is None and group is None and getattr(self, "n_queries_", 1) > 1:
            raise ValueError(
                f"This {type(self).__name__} was fitted to {self.n_queries_} queries, "
                "and score needs the queries of its rows as well: give qid or group. "
                "For cross-validation and searches, let scikit-learn pass them on by "
                "sklearn.set_config(enable_metadata_routing=True) and "
                "ranker.set_fit_request(qid=True).set_score_request(qid=True). Rows of "
                "one query have equal qid, such as numpy.zeros(len(y))."
            )
        queries = Queries.of(len(y), sample_weight, qid, group, query_weight)
        used = queries.used
        queries, scores, y = queries.take(used), scores[used], y[used]
        return queries.ndcg(scores, y, self.k, self.empty_queries)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("empty_queries", self.empty_queries, EMPTY_QUERIES)
        if callable(self.loss):
            return
        check_option("loss", self.loss, _LOSSES)
        if self.k is None and self.loss.startswith(_NEED_K):
            raise ValueError(f"loss={self.loss!r} needs a rank k, got k=None.")

    def _held_out(self, sets: Any, names: Any, **queries: Any) -> list[HeldOut]:
        """Return what ``fit`` was given to evaluate on, checked."""
        return held_out(
            sets,
            names,
            lambda X: self._check_X(X, reset=False),
            lambda y: checked_relevance(y, "eval_set"),
            **queries,
        )

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        X, y = self._check_X(X, y, reset=True)
        y = self._check_relevance(y)
        queries = self._queries(len(y), sample_weight, **others)
        used = queries.used
        if not used.all():
            X, y, queries = X[used], y[used], queries.take(used)
        return self._ranking(X, y, queries)

    def _queries(
        self, n: int, sample_weight: Any, qid: Any, group: Any, query_weight: Any
    ) -> Queries:
        """Return the queries of n rows to fit to; warn where none were given."""
        if qid is None and group is None:
            name = type(self).__name__
            if self.get_metadata_routing().fit.requests.get("qid"):
                raise ValueError(
                    f"{name}.fit was given no qid, which set_fit_request asks for. "
                    "Give qid to the fit of a search, beside groups, which go to the "
                    "splitter alone. Rows of one query have equal qid, such as "
                    "numpy.zeros(n)."
                )
            warnings.warn(
                f"{name}.fit was given no queries and makes one query of all {n} rows. "
                + self._how_to_give_queries,
                UserWarning,
                stacklevel=user_level(),
            )
        return Queries.of(n, sample_weight, qid, group, query_weight)

    def _ranking(self, X: Any, y: Floats, queries: Queries) -> LinearProblems:
        """Return the problem of rows that all have weights."""
        loss = self._loss(queries.groups)
        if loss.counts_rows and np.ptp(queries.row_weights) > 0.0:
            raise ValueError(
                f"loss={loss_name(self.loss)} ranks rows, whose sample_weight must be "
                "zero or one number for all; query_weight weighs queries."
            )
        self.n_queries_ = len(queries.groups)
        self._has_pairs = not isinstance(self.loss, str) or queries.differ(y)
        if not self._has_pairs:
            warnings.warn(
                "No query has rows of different relevance y: there is nothing to rank, "
                "and all coefficients are zero. Queries say which rows are compared.",
                UserWarning,
                stacklevel=user_level(),
            )
        return LinearProblems(
            self._linear_model(), X, [y], loss, queries.weights, single=True
        )

    def _loss(self, groups: Groups) -> Loss:
        if not callable(self.loss):
            if self.loss in _PAIRS:
                return Loss(_PAIRS[self.loss](groups))
            measure = _MEASURES[self.loss.removesuffix(_ASSIGNMENT)](groups, self.k)
            by_assignment = self.loss.endswith(_ASSIGNMENT)
            return Loss(measure if by_assignment else Inversions(measure))
        loss = self.loss(groups)
        if not isinstance(loss, AnyLoss):
            raise TypeError(
                f"loss must return a Loss, got {loss!r} of type {type(loss).__name__}."
            )
        return Loss.of(loss)

    def _instead(self) -> str | None:
        if not self._has_pairs:
            return None
        if isinstance(self.loss, str) and self.loss.endswith(_ASSIGNMENT):
            return f"take loss={self.loss.removesuffix(_ASSIGNMENT)!r}"
        if self.loss in _MEASURES:
            return "take loss='pairwise'"
        return "the features do not show which rows are relevant"

    def _check_relevance(self, y: npt.NDArray[Any]) -> Floats:
        if callable(self.loss) or self.loss in _PAIRS:
            return _as_numbers(y)
        return checked_relevance(y, f"loss={self.loss!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class BMRMRanker(BaseRanker):
    """Linear ranking of the rows of each query, with any of many losses.

    Minimizes ``alpha * Omega(w) + sum_q v_q loss_q / sum_q v_q`` over queries q, with
    convex losses of the scores of a query's rows and penalties Omega, and reports how
    far the result is from the optimum at most.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the regularization against the *mean* loss of the queries, positive.
        With "auto" it is chosen by the shape of the data, and the penalty measures each
        feature in a scale of its own, so that no unit matters: see ``alpha_``,
        ``penalty_factor_`` and the notes.
    loss : str or callable, default="pairwise-linear"
        What a ranking costs, by the relevances y of the rows.

        - "pairwise-linear": the mean of ``(y_j - y_i) * max(0, 1 + z_i - z_j)`` over
          pairs of rows with y_i < y_j, so that mistakes between far grades cost more.
          It grows with the unit of y; for two grades 0 and 1 it is "pairwise".
        - "pairwise": the same without the factor y_j - y_i, the ranking support vector
          machine. Only the order of relevances counts, not their size.
        - "pairwise-linear-squared", "pairwise-squared": the same with squares of
          ``max(0, 1 + z_i - z_j)``; "pairwise-linear-log", "pairwise-log" with
          ``ln(1 + exp(z_i - z_j))``, for up to 1000 different relevances.
        - "ndcg": a bound of 1 - NDCG at rank ``k``, of gains 2^y - 1 and discounts
          1 / log2(1 + rank). Its time grows with the number of different relevances in
          a query: round those that are real numbers, such as rates.
        - "mrr": a bound of 1 - 1 / rank of the first row with y > 0.
        - "precision", "recall": bounds of how far the precision or recall of rows with
          y > 0 up to rank ``k`` is from the best possible.
        - "rank-utility": a bound of 1 - expected rank utility, of gains y and discounts
          that halve every four ranks.
        - "ndcg-assignment" and so on: bounds of the same measures by linear assignment
          of rows to ranks. They also penalize how the scores of rows of equal relevance
          spread; where many are equal, all coefficients may become zero.

        A callable gets the ``Groups`` of rows and returns a ``Loss``.
    k : int or None, default=None
        Rank at which measures end, at least 1; ``None`` for all ranks. It holds for
        "ndcg" and for ``score``, and "precision" and "recall" need it.
    empty_queries : {"zero", "one", "skip"}, default="zero"
        What queries without a row of y > 0 count in the mean NDCG of ``score`` and
        ``eval_set``: 0, as in :func:`~sklearn.metrics.ndcg_score`; 1, as in LightGBM;
        or they are left out. It changes nothing about the fit.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in Omega, None for ones: ``f_j w_j²`` is in
        place of ``w_j²`` with penalty="l2", and ``f_j w_j`` in place of ``w_j``
        otherwise. With ``alpha="auto"`` they come on top of the scales of the features.
        A dict or Series is matched to the features by their names.
    solver : {"auto", "narrowing", "newton-cg", "ls-bmrm", "bmrm", \
            "bmrm-aggregated", "proximal-bundle", "trust-region-bundle"}, \
            default="auto"
        Optimization method.

        - "auto": for L2 "newton-cg" for smooth losses, and "narrowing" for other pairs
          where there are few features; for L1 and elastic net proximal Newton or
          orthant-wise quasi-Newton steps for smooth losses; else "ls-bmrm".
        - "narrowing": Newton's method on smooth losses of pairs ever closer to the
          hinge, with L2.
        - "newton-cg": Newton's method, for squares and logistic losses with L2.
        - Bundle methods for all losses: "ls-bmrm" with a line search and "bmrm" without
          for all penalties; "bmrm-aggregated" with two cuts only, "proximal-bundle" and
          "trust-region-bundle", which stay near the best point, for L2 and to compare
          with.
    tol : float, default=1e-3
        Stop when the objective is proven to be within ``tol`` times itself of the
        optimum.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2; ``None`` for no
        limit. With penalty="l1" few cuts need not determine the optimum, and the
        method may end before it is proven, with a warning.
    n_iter_no_change : int or None, default=None
        With an ``eval_set`` the fit ends where its NDCG has not risen for so many
        iterations, with the coefficients of the best iteration; of several sets, where
        that of any has not. Where the optimum is proven before, it is kept. ``None``
        means to go on to the optimum in any case.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        features.
    solver_options : dict or None, default=None
        Further options of the solver, such as those of its publication, by name. Which
        ones each solver takes, with their ranges and defaults, is in the table of
        `docs/methods.md`; others are refused.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        Print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds, if 1;
        at each if larger.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, of the type of X.
    intercept_ : float
        Zero: rankings do not depend on it.
    alpha_ : float
        The strength of the penalty that was used.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in Omega: those of ``penalty_factor``, times scales of
        the features with ``alpha="auto"``. With ``penalty="l2"`` they are factors of
        ``w_j²``.
    objective_ : float
        Objective at the coefficients.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a lower bound on the optimum, proven up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    evals_result_ : dict of dict of list of float
        With ``eval_set`` NDCG of each set after each iteration, by names of sets,
        "valid_0" and so on, and of the measure, "ndcg" or "ndcg@5" for ``k=5``.
    best_iteration_ : int
        With ``eval_set`` the iteration whose coefficients were kept.
    n_queries_ : int
        Number of queries of the training data; with ``pairs``, of sets of rows that
        they connect.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds after each iteration.
        See :class:`ConvergenceDisplay`.
    plan_ : str
        How "auto" chose to solve the problem, or the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X has names that are all strings.

    See Also
    --------
    BMRMRankerCV : Chooses ``alpha`` by cross-validation.
    sklearn_subqn.ranking.Ranker : The same model with the parameters of LightGBM's.
    BMRMClassifier : Ordered classes and the area under the ROC curve, without queries.

    Notes
    -----
    The losses of measures bound how far the measure is from its best value, for each
    query. Queries in which all rankings are as good cost nothing, but count in the
    mean. For a query of m rows, losses of pairs and by assignment take O(m log m) time
    ("mrr-assignment" O(m²)), the others O(P N) for each level of relevance with P rows
    of at least that and N below, and as much memory for the largest query.

    With ``alpha="auto"`` the scale of a feature is the root of its variance divided by
    the share of its entries that are not zero, and ``alpha_`` is ``k d / n`` for
    squares and ``k sqrt(ln(n_features) / n)`` for the L1 norm: n is the sum of the
    weights of the samples, d the mean number of entries of one that are not zero, and k
    depends on the loss; the user guide has the numbers. A copy
    of X in these scales is made, in float64.

    References
    ----------
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 3, 8 and 10. T. Joachims (2006),
    Training Linear SVMs in Linear Time, KDD. Q. Le, A. Smola (2007), Direct
    Optimization of Ranking Measures, arXiv:0704.3359. S. Chakrabarti et al. (2008),
    Structured Learning for Non-Smooth Ranking Losses, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRanker
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0, 1])
    >>> qid = np.repeat(np.arange(6), 10)
    >>> ranker = BMRMRanker(alpha=1e-3).fit(X, y, qid=qid)
    >>> bool(ranker.dual_gap_ <= 1e-3 * ranker.objective_)
    True
    >>> round(ranker.score(X, y, qid=qid), 3)
    1.0

    Preferences between rows, of which the first beats the second:

    >>> pairs = [(i, j) for i in range(10) for j in range(10) if y[i] > y[j]]
    >>> BMRMRanker(alpha=1e-3).fit(X, pairs=pairs).coef_.shape
    (3,)
    """

    # Their numbers of rows are those of all X, or of other data.
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "pairs": UNUSED,
        "pair_weight": UNUSED,
        "eval_set": UNUSED,
        "eval_qid": UNUSED,
        "eval_group": UNUSED,
    }

    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int

    _checks_itself = ("n_iter_no_change",)

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        loss: str | Callable[[Any], Any] = "pairwise-linear",
        k: int | None = None,
        empty_queries: str = "zero",
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        penalty_factor: Any = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        bundle_size: int | None = None,
        n_iter_no_change: int | None = None,
        warm_start: bool = False,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.k = k
        self.empty_queries = empty_queries
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.bundle_size = bundle_size
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
        pairs: Any = None,
        pair_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        coef_init: Any = None,
    ) -> Self:
        """Fit the model to relevances ``y``, or to ``pairs`` of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy.
        y : array-like of shape (n_samples,), default=None
            Relevances: rows with larger ones should have larger scores. Losses of
            measures need non-negative ones. Either these or ``pairs`` are needed.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the rows: one of weight 2 counts as two such rows,
            one of weight 0 is left out. Queries count as much as before. Losses of
            measures need equal weights, but for zeros, since rows have ranks there:
            weigh queries for them.
        qid : array-like of shape (n_samples,), default=None
            Query of each row, in any order.
        group : array-like of shape (n_queries,), default=None
            In place of ``qid`` the numbers of rows of the queries, one after the other.
            Without either all rows belong to one query, with a warning; equal ``qid``
            say so without one.
        query_weight : array-like of shape (n_samples,) or (n_queries,), default=None
            Non-negative weights v of the queries: for each row that of its query, which
            cross-validation can split, or for each query, in the order of ``group`` or
            of sorted ``qid``. Default one; with losses of pairs their numbers of pairs
            make all pairs count alike, instead of all queries.
        pairs : array-like of int of shape (n_pairs, 2), default=None
            In place of relevances and queries: numbers of two rows of X each, from
            zero, of which the first is preferred to the second. The loss must be one of
            pairs; they are fitted as ``n_pairs`` differences of rows, which are kept in
            memory. Cross-validation does not split pairs: do so outside, and fit to all
            of X.
        pair_weight : array-like of shape (n_pairs,), default=None
            Non-negative weights of the pairs, default one. There is no other factor:
            "pairwise-linear" is "pairwise" here.
        eval_set : list of tuples (X, y), or one tuple, default=None
            Other data, with relevances between 0 and 500, of which NDCG is computed
            after each iteration for ``evals_result_``, and by which
            ``n_iter_no_change`` ends the fit. Each iteration takes one product more.
        eval_qid, eval_group : list of array-like, or one, default=None
            ``qid`` or ``group`` of each of ``eval_set``, with which one of them is
            needed.
        coef_init : array-like of shape (n_features,), default=None
            Coefficients to start from; they count before those of a warm start. The
            solution does not depend on them, the time may.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable, or the fit overflows, or there are
            no queries although ``set_fit_request`` asks for ``qid``. A previously
            fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; states the gap that was.
        UserWarning
            If the optimum makes no use of the features; says what to take instead. Or
            if no query has rows of different relevance, or neither queries nor pairs
            are given.
        """
        queries = {"qid": qid, "group": group, "query_weight": query_weight}
        rest = {"eval_set": eval_set, "eval_qid": eval_qid, "eval_group": eval_group}
        rest["coef_init"] = coef_init
        forget(self, "evals_result_", "best_iteration_")
        if pairs is None and pair_weight is None:
            return self._fit(X, y, sample_weight, **queries, **rest)
        given = {"y": y, "sample_weight": sample_weight, **queries}
        others = [name for name, value in given.items() if value is not None]
        if pairs is None:
            raise ValueError("pair_weight needs pairs, got pairs=None.")
        if others:
            raise ValueError(
                f"pairs are in place of {', '.join(others)}: give one or the other."
            )
        return self._fit(X, None, pairs=pairs, pair_weight=pair_weight, **rest)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_iter_no_change is not None:
            check_number("n_iter_no_change", self.n_iter_no_change, low=1, integer=True)

    def _encode(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        pairs: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        **others: Any,
    ) -> Problems:
        if pairs is None:
            problems = super()._encode(X, y, sample_weight, **others)
        else:
            X = self._check_X(X, reset=True)
            problems = self._preferences(X, pairs, **others)
        if eval_set is not None:
            queries = {"eval_qid": eval_qid, "eval_group": eval_group}
            patience = Patience(self.n_iter_no_change)
            sets = self._held_out(eval_set, None, **queries)
            problems.watch = Evaluation(self, sets, [self.k], patience)
        elif eval_qid is not None or eval_group is not None:
            raise ValueError("eval_qid and eval_group need eval_set, got None.")
        elif self.n_iter_no_change is not None:
            raise ValueError(
                f"n_iter_no_change={self.n_iter_no_change!r} needs an eval_set in fit, "
                "by which the fit ends; got None."
            )
        return problems

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        if isinstance(problems.watch, Evaluation):
            self.evals_result_, self.best_iteration_ = problems.watch.end(self)

    def _preferences(self, X: Any, pairs: Any, pair_weight: Any) -> LinearProblems:
        """Return the problem of the differences of the rows of pairs."""
        if callable(self.loss) or self.loss not in _OF_DIFFERENCES:
            raise ValueError(
                f"pairs need a loss among {', '.join(map(repr, _OF_DIFFERENCES))}; got "
                f"{loss_name(self.loss)}."
            )
        chosen = Preferences.of(X.shape[0], pairs, pair_weight)
        self.n_queries_, self._has_pairs = chosen.n_components, True
        # Differences of single precision may take more digits than that has.
        rows = X[chosen.better].astype(np.float64)
        rows = rows - X[chosen.worse].astype(np.float64)
        loss = BINARY_LOSSES[_OF_DIFFERENCES[self.loss]]
        preferred = np.ones(len(chosen.better))
        return LinearProblems(
            self._linear_model(),
            rows,
            [preferred],
            loss,
            chosen.weights,
            single=True,
            dtype=X.dtype,
        )


def _as_numbers(y: npt.NDArray[Any]) -> Floats:
    """Return relevances as float64, an array of their own."""
    check_no_times(y)
    numbers = check_array(
        column_or_1d(y, warn=True), ensure_2d=False, dtype=np.float64, input_name="y"
    )
    return np.array(numbers, dtype=np.float64)


def checked_relevance(y: npt.NDArray[Any], what: str) -> Floats:
    """Return relevances of which gains can be computed."""
    y = _as_numbers(y)
    if y.min() < 0.0 or y.max() > _LARGEST_RELEVANCE:
        raise ValueError(
            f"{what} needs relevances y between 0 and {_LARGEST_RELEVANCE:g}, got "
            f"values from {y.min():g} to {y.max():g}."
        )
    return y
