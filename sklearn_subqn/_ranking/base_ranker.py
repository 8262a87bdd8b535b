"""Base class of the rankers: losses of queries, predictions and NDCG."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from .._blocks.row_blocks import RowBlocks
from .._checks import (
    as_numpy,
    check_no_times,
    check_number,
    check_option,
    check_unmasked,
)
from .._checks.callers import in_cross_validation, user_level
from .._core.arrays import Array, Floats
from .._core.losses import (
    AnyLoss,
    DualLoss,
    ExpectedRankUtility,
    Groups,
    Inversions,
    LogisticPairs,
    Ndcg,
    OrderedPairs,
    PrecisionAtK,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
    SquaredPairs,
)
from .._core.names import check_same_rows
from .._estimators.block_methods import blockwise
from .._estimators.catalogue import BundleEstimator
from .._estimators.estimator import loss_name
from .._problems import LinearProblems, Problems
from .held_out import HeldOut, held_out
from .queries import EMPTY_QUERIES, Queries

# Ranking measures, constructed from the queries and the last rank k that counts.
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
_LOSSES = (*_PAIRS, *_MEASURES, *(name + _ASSIGNMENT for name in _MEASURES))

# Largest relevance y for which the gains 2^y - 1 and their sums are finite.
_LARGEST_RELEVANCE = 500.0


class BaseRanker(BundleEstimator):
    """Base class of the rankers: losses of queries, predictions and NDCG."""

    loss: str | Callable[[Any], Any]
    k: int | None
    empty_queries: str

    _penalties = ("l2", "l1", "elasticnet")
    _by_query = ("qid", "group", "query_weight")

    #: Advice that ends the messages about missing queries.
    _how_to_give_queries: ClassVar[str] = (
        "Give qid, with numpy.zeros(n) if that is what they are. groups of a search go "
        "to the splitter alone: let scikit-learn pass queries on by "
        "sklearn.set_config(enable_metadata_routing=True), "
        "ranker.set_fit_request(qid=True).set_score_request(qid=True), and "
        "search.fit(X, y, qid=qid, groups=qid)."
    )

    coef_: Array
    intercept_: float
    objective_: float
    dual_gap_: float

    @blockwise
    def predict(self, X: Any) -> Array:
        """Return the scores that rank the rows of a query.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Rows with larger scores are ranked higher in their query.
        """
        return self._raw_scores(X)

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
    ) -> float:
        """Return the mean normalized discounted cumulative gain of the queries.

        Gains are 2^y - 1, and discounts are 1 / log2(1 + rank) up to rank ``k``. Rows
        with equal scores share their discounts, as in
        :func:`~sklearn.metrics.ndcg_score`. ``empty_queries`` determines the value of
        queries without gains.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Relevances, non-negative; :class:`RowBlocks` may contain y.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The number of ranks that a row takes: weight 2 is equivalent to two rows,
            weight 0 to none.
        qid, group : array-like, default=None
            Queries, as in ``fit``. Without ``qid`` and ``group`` all rows belong to one
            query, which is an error after a fit to several queries. Cross-validation
            passes ``qid`` on if metadata routing is enabled and the estimator requests
            ``qid`` by ``set_score_request(qid=True)``.
        query_weight : array-like of shape (n_samples,) or (n_queries,), default=None
            Weights of the queries in the mean, as in ``fit``.

        Returns
        -------
        score : float
            Mean NDCG of the queries, at most 1; ideal rankings have the score 1.

        Raises
        ------
        TypeError, ValueError
            If ``k``, relevances or queries are invalid, if queries are missing after a
            fit to several queries, or if no query is part of the mean.
        """
        if self.k is not None:
            check_number("k", self.k, low=1, integer=True)
        check_option("empty_queries", self.empty_queries, EMPTY_QUERIES)
        if isinstance(X, RowBlocks):
            y, qid = X._all("y", y), X._all("qid", qid)
            sample_weight = X._all("sample_weight", sample_weight)
            X = X._without_targets()
        by_row = {"qid": qid, "query_weight": query_weight}
        check_same_rows(X, y=y, sample_weight=sample_weight, **by_row)
        if y is None:
            raise ValueError("score needs the relevances y of the rows, got None.")
        scores = self.predict(X)
        y = as_numpy(y)
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
        """Return the checked evaluation sets of ``fit``."""
        return held_out(
            sets,
            names,
            lambda X: self._check_X(X, reset=False),
            lambda y: checked_relevance(y, "eval_set"),
            **queries,
        )

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Floats]:
        """Return the validated rows of a block, and their relevances."""
        X, y = self._check_X(X, y, reset=reset)
        return X, _as_numbers(y)

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
        """Return the queries of n training rows; warn if none are given."""
        if qid is None and group is None:
            name = type(self).__name__
            if self.get_metadata_routing().fit.requests.get("qid"):
                raise ValueError(
                    f"{name}.fit was given no qid, which set_fit_request asks for. "
                    "Give qid to the fit of a search, beside groups, which go to the "
                    "splitter alone. Rows of one query have equal qid, such as "
                    "numpy.zeros(n)."
                )
            if in_cross_validation():
                raise ValueError(
                    f"{name}.fit was given no queries of the rows of a fold, whose "
                    f"order would be scored as one query. {self._how_to_give_queries}"
                )
            warnings.warn(
                f"{name}.fit was given no queries and makes one query of all {n} rows. "
                + self._how_to_give_queries,
                UserWarning,
                stacklevel=user_level(),
            )
        return Queries.of(n, sample_weight, qid, group, query_weight)

    def _ranking(self, X: Any, y: Floats, queries: Queries) -> LinearProblems:
        """Return the training problem of rows with positive weights."""
        loss = self._loss_of(y, queries)
        return self._problems(X, y, queries.weights, loss=loss)

    def _problems(
        self,
        X: Any,
        y: Floats,
        weights: Floats,
        names: Any = None,
        loss: DualLoss | None = None,
    ) -> LinearProblems:
        """Return the training problem of rows, by default of one query."""
        loss = loss or self._loss(Groups(np.zeros(len(y), dtype=np.intp)))
        return LinearProblems(self._linear_model(), X, [y], loss, weights, single=True)

    def _loss_of(self, y: Floats, queries: Queries) -> DualLoss:
        """Return the loss of all queries; warn if no query has rows to rank."""
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
        return loss

    def _check_collection(self) -> None:
        if not isinstance(self.loss, str):
            raise ValueError(
                f"Data in blocks need a loss by name, got {loss_name(self.loss)}."
            )

    def _ranking_of(
        self, y: Any, sample_weight: Any, qid: Any, group: Any, query_weight: Any
    ) -> tuple[Floats, Queries]:
        """Return the checked relevances and queries of rows in blocks."""
        y = self._check_relevance(y)
        queries = self._queries(len(y), sample_weight, qid, group, query_weight)
        if not queries.used.all():
            raise ValueError(
                "Rows of weight zero are not supported for rankings of data in blocks, "
                "since those of others would change: leave them out of the blocks."
            )
        self._loss_of(y, queries)
        return y, queries

    def _loss(self, groups: Groups) -> DualLoss:
        if not callable(self.loss):
            if self.loss in _PAIRS:
                return DualLoss(_PAIRS[self.loss](groups))
            measure = _MEASURES[self.loss.removesuffix(_ASSIGNMENT)](groups, self.k)
            by_assignment = self.loss.endswith(_ASSIGNMENT)
            return DualLoss(measure if by_assignment else Inversions(measure))
        loss = self.loss(groups)
        if not isinstance(loss, AnyLoss):
            raise TypeError(
                f"loss must return a Loss, got {loss!r} of type {type(loss).__name__}."
            )
        return DualLoss.of(loss)

    def _instead(self) -> str | None:
        if not self._has_pairs:
            return None
        if isinstance(self.loss, str) and self.loss.endswith(_ASSIGNMENT):
            return f"take loss={self.loss.removesuffix(_ASSIGNMENT)!r}"
        if self.loss in _MEASURES:
            return "take loss='pairwise'"
        return "the features do not show which rows are relevant"

    def _check_relevance(self, y: Array) -> Floats:
        if callable(self.loss) or self.loss in _PAIRS:
            return _as_numbers(y)
        return checked_relevance(y, f"loss={self.loss!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _as_numbers(y: Array) -> Floats:
    """Return relevances as a new float64 array."""
    check_no_times(y)
    numbers = check_array(
        column_or_1d(y, warn=True), ensure_2d=False, dtype=np.float64, input_name="y"
    )
    return np.array(numbers, dtype=np.float64)


def checked_relevance(y: Array, what: str) -> Floats:
    """Return relevances, checked to have finite gains."""
    y = _as_numbers(y)
    if y.min() < 0.0 or y.max() > _LARGEST_RELEVANCE:
        raise ValueError(
            f"{what} needs relevances y between 0 and {_LARGEST_RELEVANCE:g}, got "
            f"values from {y.min():g} to {y.max():g}."
        )
    return y
