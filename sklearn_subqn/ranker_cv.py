"""Cross-validated choice of the regularization of a linear ranker, with warm starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils.metadata_routing import UNUSED

from ._checks import check_number, exact_names
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Floats, Indices
from ._core.names import check_same_rows
from ._problems import LinearProblems
from ._ranking.base_ranker import BaseRanker, checked_relevance
from ._ranking.queries import HeldOutNdcg, Queries
from ._search.proven_cv import check_interval, search_folds
from ._search.warm_paths import WarmPaths
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback
from .ranker import BMRMRanker


@with_parameters()
class BMRMRankerCV(WarmPaths, BaseRanker):
    """Linear ranking with cross-validation over a path of regularization strengths.

    Folds consist of complete queries. On each fold the problem is solved from the
    largest ``alpha`` to the smallest, each starting at the previous solution; the best
    ``alpha`` by mean NDCG at rank ``k`` is then refitted on all queries.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=10
        The grid, or its size. A grid of a given size applies to features divided by
        their scales, and is geometric: from 1e-2 to 1e-6 times the mean number of
        nonzero entries of a row with L2, and with an L1 norm over three powers of ten,
        down from the smallest value with all coefficients zero.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splits: an integer is the number of folds of complete queries,
        ``None`` means 5. A generator gets the queries as groups. No query may be in
        both parts of a fold, except if there is a single query, whose rows are then
        split.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, instead of a grid, and prove that no
        ``alpha`` in it has a mean NDCG that exceeds the best one by more than
        ``search_tol``. For ``penalty="l2"``.
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, at least 1: each ``alpha``
        that is solved on the folds counts as one, and a bounded interval as a share of
        one, from a sixth for small data to less than a hundredth for large. The
        default is the number of fits of 50 grids of 20 values. A search that reaches
        it ends with what is proven so far, and a warning. The first 13 values are
        always solved.
    refit : bool, default=True
        Whether to fit all queries with the best ``alpha``. Otherwise the coefficients
        are averaged over the folds, without an objective or a gap.
    one_standard_error : bool, default=False
        Whether to choose the largest ``alpha`` whose mean score is within one standard
        error of the best one, for a simpler model (Breiman et al. 1984; Hastie et al.
        2009, section 7.10). Not with ``search_tol``, which proves the best mean only.
    loss : str or callable, default="pairwise-linear"
        As in :class:`BMRMRanker`.
    k : int or None, default=None
        Largest rank in measures, at least 1, in losses and in the scores for the choice
        of ``alpha``; ``None`` for all ranks.
    empty_queries : {"zero", "one", "skip"}, default="zero"
        NDCG of queries without a row of y > 0 in these scores, as in
        :class:`BMRMRanker`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        As in :class:`BMRMRanker`.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        As in :class:`BMRMRanker`.
    solver : str, default="auto"
        As in :class:`BMRMRanker`.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
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
        Called after every iteration of the refit, as in :class:`BMRMRanker`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.

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
        Mean NDCG of the held-out queries, as in ``score``.
    gaps_path_ : ndarray of shape (n_folds, n_alphas)
        Proven relative gaps.
    search_gap_ : float
        With ``search_tol``: bound of how much the mean score of any ``alpha`` of the
        interval exceeds ``best_score_``; at most ``search_tol``, unless a warning was
        raised.
    score_bounds_ : ndarray of shape (n_intervals, 4)
        With ``search_tol``: the ends of intervals of ``alpha``, and bounds of the mean
        score for all values between these.
    coef_, intercept_, n_queries_, n_features_in_, feature_names_in_
        As in :class:`BMRMRanker`, of the final model.
    objective_, dual_gap_, n_iter_, history_, plan_
        As in :class:`BMRMRanker`; all but ``n_iter_`` with ``refit=True`` only.

    See Also
    --------
    BMRMRanker : The same model for one ``alpha``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRankerCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0, 1])
    >>> qid = np.repeat(np.arange(6), 10)
    >>> ranker = BMRMRankerCV(alphas=[1, 1e-2, 1e-4], cv=3).fit(X, y, qid=qid)
    >>> ranker.scores_path_.shape
    (3, 3)
    >>> bool(ranker.gaps_path_.max() <= 1e-3)
    True
    """

    # ``groups`` cannot be routed from a surrounding search, whose splitter uses them.
    _one_alpha = BMRMRanker

    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    alphas: Any = 10
    _: KW_ONLY
    cv: Any = None
    search_tol: float | None = None
    search_max_fits: int = 1000
    refit: bool = True
    one_standard_error: bool = False
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
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Choose ``alpha`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Relevances, non-negative as in NDCG.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows, in fits and in scores, as in :class:`BMRMRanker`.
        qid, group : array-like, default=None
            Queries, as in :class:`BMRMRanker`.
        query_weight : array-like of shape (n_samples,) or (n_queries,), default=None
            Weights of the queries, in fits and in the means of scores.
        groups : array-like of shape (n_samples,), default=None
            Groups for the splitter, by default the queries: for example users with
            several queries. They are given in addition to ``qid`` or ``group``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, a fold divides a query or has no rows of
            positive weight, or a fit overflows.

        Warns
        -----
        ConvergenceWarning
            If a fit did not reach ``tol``; the message states the gap.
        UserWarning
            If the optimum does not use the features; the message says what to change.
            Or if the score still rises at the smallest ``alpha`` of a default grid, or
            no queries are given.
        """
        self._check_parameters()
        if groups is not None and qid is None and group is None:
            raise ValueError(
                "groups go to the splitter alone, and say nothing of queries: give "
                "them as qid, too, if that is what they are."
            )
        if self.k is not None:
            check_number("k", self.k, low=1, integer=True)
        if self.search_tol is not None:
            check_interval(self)
        by_row = {"qid": qid, "query_weight": query_weight, "groups": groups}
        check_same_rows(X, y=y, sample_weight=sample_weight, **by_row)
        given = X, y, sample_weight
        X, y = self._check_X(X, y, reset=True)
        y = checked_relevance(y, "NDCG, by which alpha is chosen,")
        queries = self._queries(len(y), sample_weight, qid, group, query_weight)
        folds = self._folds(X, y, queries, groups)
        used = queries.used
        problems = self._ranking(X[used], y[used], queries.take(used))
        search_folds(self, problems, (X, y, queries), folds, given)
        return self

    def _folds(
        self, X: Any, y: Floats, queries: Queries, groups: Any
    ) -> list[tuple[Indices, Indices]]:
        """Return the rows of positive weight in the training and test parts."""
        n = len(y)
        codes = queries.codes if queries.codes.max() > 0 else np.arange(n)
        if codes.max() == 0:
            raise ValueError(
                "Cross-validation needs at least two queries, or rows of one; got "
                f"n_samples = {n}."
            )
        cv = 5 if self.cv is None else self.cv
        splitter = GroupKFold(cv) if isinstance(cv, int | np.integer) else check_cv(cv)
        folds = []
        groups = codes if groups is None else exact_names(groups)
        for parts in splitter.split(X, y, groups):
            train, test = (np.arange(n)[part] for part in parts)
            train, test = train[queries.used[train]], test[queries.used[test]]
            if not len(train) or not len(test):
                raise ValueError("A part of cv has no rows of positive weight.")
            if len(np.intersect1d(codes[train], codes[test])):
                raise ValueError(
                    f"cv={self.cv!r} cuts queries, or has rows in a training part and "
                    "its test part; take splits by groups, such as GroupKFold."
                )
            folds.append((train, test))
        return folds

    def _training(self, rows: Any, train: Indices) -> LinearProblems:
        X, y, queries = rows
        return self._ranking(X[train], y[train], queries.take(train))

    def _score(
        self, rows: Any, train: Indices, test: Indices, problems: LinearProblems
    ) -> Callable[[], float]:
        X, y, queries = rows
        held_out, X_test = queries.take(test), cache(lambda: X[test])
        return lambda: held_out.ndcg(
            self._scores(X_test()), y[test], self.k, self.empty_queries
        )

    def _bounded(self, rows: Any, test: Indices) -> tuple[Any, HeldOutNdcg]:
        X, y, queries = rows
        held_out = queries.take(test)
        groups = held_out.groups
        # Subtracting the mean row of each query does not change the ranks.
        places = np.arange(len(test)), groups.codes
        member = sparse.csr_array((np.ones(len(test)), places))
        share = sparse.csr_array((1.0 / np.bincount(places[1])[places[1]], places))
        held = X[test] - member @ (share.T @ X[test])
        return held, HeldOutNdcg(held_out, y[test], self.k, self.empty_queries)
