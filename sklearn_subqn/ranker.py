"""Linear ranking with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from ._checks import check_number
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.losses import BINARY_LOSSES
from ._estimators.estimator import forget, loss_name
from ._problems import LinearProblems, Problems
from ._ranking.base_ranker import BaseRanker
from ._ranking.held_out import HeldOutMeasures, Patience
from ._ranking.preferences import PreferredRows
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback, Solution

# The binary loss of the score difference of a given pair, for each ranking loss.
_OF_DIFFERENCES = {
    name: of_difference
    for form, of_difference in (
        ("", "hinge"),
        ("-squared", "squared_hinge"),
        ("-log", "log_loss"),
    )
    for name in (f"pairwise-linear{form}", f"pairwise{form}")
}


@with_parameters()
class BMRMRanker(BaseRanker):
    """Linear ranking of the rows of each query, with a choice of losses.

    Minimizes ``alpha * Omega(w) + sum_q v_q loss_q / sum_q v_q`` over queries q, with
    convex losses of the scores of a query's rows and penalties Omega, and reports a
    proven bound on the distance from the optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss of the queries, positive.
        With "auto", a rule chooses it from the size and sparsity of the data, and each
        feature is penalized in its own scale, so that units do not matter: see
        ``alpha_``, ``penalty_factor_`` and the notes.
    loss : str or callable, default="pairwise-linear"
        Loss of a ranking, given the relevances y of the rows.

        - "pairwise-linear": the mean of ``(y_j - y_i) * max(0, 1 + z_i - z_j)`` over
          pairs of rows with y_i < y_j, so that mistakes between far grades cost more.
          It grows with the unit of y; for two grades 0 and 1 it is "pairwise".
        - "pairwise": the same without the factor y_j - y_i, the ranking support vector
          machine. It depends on the order of relevances only.
        - "pairwise-linear-squared", "pairwise-squared": the same with squares of
          ``max(0, 1 + z_i - z_j)``; "pairwise-linear-log", "pairwise-log" with
          ``ln(1 + exp(z_i - z_j))``, for up to 1000 different relevances.
        - "ndcg": a bound of 1 - NDCG at rank ``k``, of gains 2^y - 1 and discounts
          1 / log2(1 + rank). Its time grows with the number of different relevances in
          a query: relevances that are real numbers, such as rates, should be rounded.
        - "mrr": a bound of 1 - 1 / rank of the first row with y > 0.
        - "precision", "recall": bounds of how far the precision or recall of rows with
          y > 0 up to rank ``k`` is from the best possible.
        - "rank-utility": a bound of 1 - expected rank utility, of gains y and discounts
          that halve every four ranks.
        - "ndcg-assignment" and so on: bounds of the same measures by linear assignment
          of rows to ranks. They also penalize differences between the scores of rows
          with equal relevance. If many relevances are equal, all coefficients may
          become zero.

        A callable gets the ``Groups`` of rows and returns a ``Loss``.
    k : int or None, default=None
        Largest rank in measures, at least 1; ``None`` for all ranks. It applies to
        "ndcg" and ``score``, and "precision" and "recall" require it.
    empty_queries : {"zero", "one", "skip"}, default="zero"
        NDCG of queries without a row of y > 0 in the means of ``score`` and
        ``eval_set``: "zero" as in :func:`~sklearn.metrics.ndcg_score`, "one" as in
        LightGBM, or "skip" to exclude such queries. It does not affect the fit.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in Omega, by default ones: ``f_j w_j²`` replaces
        ``w_j²`` with penalty="l2", and ``f_j w_j`` replaces ``w_j`` otherwise. With
        ``alpha="auto"`` the factors multiply the scales of the features. A dict or
        Series is matched by feature names; missing features have the factor 1.
    solver : str, default="auto"
        Optimization method.

        - "auto": for L2 "newton-cg" for smooth losses, and "narrowing" for other pairs
          where there are few features; for L1 and elastic net proximal Newton or
          orthant-wise quasi-Newton steps for smooth losses; else "ls-bmrm".
        - "narrowing": Newton's method on smooth losses of pairs ever closer to the
          hinge, with L2.
        - "newton-cg", "trust-region", "lbfgs", "bfgs", "cg", "sublbfgs", "subbfgs":
          Newton's method, quasi-Newton methods and conjugate gradients, for squares and
          logistic losses with L2; for these losses also "fista" and "ista" with all
          penalties, "owlqn" and "owlqn*" with an L1 norm.
        - Bundle methods for all losses: "ls-bmrm" with a line search and "bmrm" without
          for all penalties; "bmrm-aggregated" with two cuts only, for L2,
          "proximal-bundle" and "trust-region-bundle", which stay near the best point,
          and "subgradient", to compare with.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2; ``None`` for no
        limit. With penalty="l1" a small bundle may not suffice to reach ``tol``, and
        the method may end early with a warning.
    n_iter_no_change : int or None, default=None
        With an ``eval_set``, the fit ends when its NDCG has not improved for this
        number of iterations, with the coefficients of the best iteration; with several
        sets, when the NDCG of any set has not improved. If the optimum is proven
        earlier, the fit returns it. ``None`` means to continue to the optimum.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        features.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        If 1, print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds;
        if larger, at every iteration, after lines that explain the choice of ``plan_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Zero: rankings do not depend on it.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in Omega: ``penalty_factor``, times the scales of the
        features with ``alpha="auto"``. With ``penalty="l2"`` they are factors of
        ``w_j²``.
    objective_ : float
        Objective at the coefficients.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    evals_result_ : dict of dict of list of float
        With ``eval_set``, the NDCG of each set after each iteration, by the name of the
        set, "valid_0" and so on, and of the measure, "ndcg" or "ndcg@5" for ``k=5``.
    best_iteration_ : int
        With ``eval_set``, the iteration of the final coefficients.
    n_queries_ : int
        Number of queries of the training data; with ``pairs``, the number of connected
        components of rows.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        The plan that solver="auto" chose, or the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRankerCV : Chooses ``alpha`` by cross-validation.
    sklearn_subqn.ranking.Ranker : The same model with LightGBM's parameters.
    BMRMClassifier : Ordered classes and the area under the ROC curve, without queries.

    Notes
    -----
    The losses of measures are upper bounds of the measure's distance from its best
    value, for each query. Queries in which all rankings are equally good have loss
    zero, but count in the mean. For a query of m rows, losses of pairs and by
    assignment take O(m log m) time ("mrr-assignment" O(m²)), the others O(P N) for each
    level of relevance, with P rows of at least this level and N rows below, and memory
    proportional to this number for the largest query.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

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

    Preferences between rows, in pairs of a preferred row and another one:

    >>> pairs = [(i, j) for i in range(10) for j in range(10) if y[i] > y[j]]
    >>> BMRMRanker(alpha=1e-3).fit(X, pairs=pairs).coef_.shape
    (3,)
    """

    # Pairs contain row numbers of X, and eval_set is separate data: metadata routing
    # cannot split them along with X.
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "pairs": UNUSED,
        "pair_weight": UNUSED,
        "eval_set": UNUSED,
        "eval_qid": UNUSED,
        "eval_group": UNUSED,
    }

    _checks_itself = ("n_iter_no_change",)
    _takes_collections = True

    alpha: float | str = "auto"
    _: KW_ONLY
    loss: str | Callable[[Any], Any] = "pairwise-linear"
    k: int | None = None
    empty_queries: str = "zero"
    penalty: str = "l2"
    l1_ratio: float = 0.5
    penalty_factor: Any = None
    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    bundle_size: int | None = None
    n_iter_no_change: int | None = None
    warm_start: bool = False
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

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
            without a copy. :class:`RowBlocks`, and Dask arrays and dataframes with
            ``y``, ``sample_weight`` and ``qid`` in the same blocks or in memory, stay
            where they are; they need a loss by name and nonzero weights, without
            ``pairs`` and ``eval_set``.
        y : array-like of shape (n_samples,), default=None
            Relevances: rows with larger relevance should have larger scores. Losses of
            measures need non-negative relevances. Either y or ``pairs`` is required.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the rows: a row of weight 2 is equivalent to two
            rows, a row of weight 0 to none. The weights of queries are not affected.
            Losses of measures need equal weights, except for zeros, since rows have
            ranks; use ``query_weight`` instead.
        qid : array-like of shape (n_samples,), default=None
            Query of each row, in any order.
        group : array-like of shape (n_queries,), default=None
            In place of ``qid``, the number of rows of each query, in the order of the
            rows; zeros are queries that do not occur. The index of a Series names the
            queries. Without ``qid`` and ``group`` all rows belong to one query, with a
            warning; a constant ``qid`` avoids the warning.
        query_weight : array-like of shape (n_samples,) or (n_queries,) or dict
            Non-negative weights v of the queries: either the weight of its query for
            each row, which cross-validation can split; or one weight for each query, as
            a dict or a Series by the names of queries, or in the order of ``group`` or
            of sorted ``qid``. None means ones. With losses of pairs, the numbers of
            pairs as weights give equal weight to all pairs instead of all queries.
        pairs : array-like of int of shape (n_pairs, 2), default=None
            In place of relevances and queries: the numbers of two rows of X, from zero,
            where the first is preferred to the second. The loss must be a loss of
            pairs. The model is fitted to ``n_pairs`` differences of rows, which are
            kept in memory. Cross-validation cannot split pairs: split them separately,
            and pass all of X.
        pair_weight : array-like of shape (n_pairs,), default=None
            Non-negative weights of the pairs, by default ones. "pairwise-linear" then
            has no further factor and equals "pairwise".
        eval_set : list of tuples (X, y), or one tuple, default=None
            Held-out data with relevances between 0 and 500. Their NDCG after each
            iteration is stored in ``evals_result_`` and used by ``n_iter_no_change``.
            Each iteration takes one more product.
        eval_qid, eval_group : list of array-like, or one, default=None
            ``qid`` or ``group`` for each data set in ``eval_set``; one of them is
            required.
        coef_init : array-like of shape (n_features,), default=None
            Initial coefficients. They take precedence over a warm start. They affect
            the time of the fit, not the solution.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, the fit overflows, or ``qid`` is missing
            although ``set_fit_request`` requests it. A previously fitted estimator
            stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        UserWarning
            If the optimum does not use the features; the message says what to change.
            Or if no query has rows of different relevance, or neither queries nor pairs
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
            problems.watch = HeldOutMeasures(self, sets, [self.k], patience)
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
        if isinstance(problems.watch, HeldOutMeasures):
            self.evals_result_, self.best_iteration_ = problems.watch.end(self)

    def _preferences(self, X: Any, pairs: Any, pair_weight: Any) -> LinearProblems:
        """Return the problem for the differences of the rows in pairs."""
        if callable(self.loss) or self.loss not in _OF_DIFFERENCES:
            raise ValueError(
                f"pairs need a loss among {', '.join(map(repr, _OF_DIFFERENCES))}; got "
                f"{loss_name(self.loss)}."
            )
        chosen = PreferredRows.of(X.shape[0], pairs, pair_weight)
        self.n_queries_, self._has_pairs = chosen.n_components, True
        # Differences of float32 numbers may need more digits than float32 has.
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
