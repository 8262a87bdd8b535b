"""Queries of a ranker: assignment of rows, weights, and NDCG.

A row of weight s is equivalent to s rows, and a query of weight s to s queries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from .._checks import (
    as_numpy,
    as_sample_weights,
    check_sample_weight,
    check_unmasked,
    names_of_rows,
)
from .._core.arrays import Array, Floats, Indices, Mask
from .._core.lazy import cached_property
from .._core.losses import Groups, Ndcg
from .._core.names import Axis, named, places
from .._core.rounding import running_rounding

# Limit on the total row weight of a query: NDCG stores one discount for each rank.
_MOST_WEIGHT = 1e7


#: NDCG of queries without gains: zero, one, or left out of the mean.
EMPTY_QUERIES = ("zero", "one", "skip")


class Queries:
    """Assignment of rows to queries, with weights of rows and of queries.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Code or label of the query of each row.
    row_weights : ndarray of shape (n,)
        Non-negative weights of the rows.
    query_weights : ndarray of shape (n,)
        Non-negative weight of the query of each row.
    """

    def __init__(
        self, codes: Array, row_weights: Floats, query_weights: Floats
    ) -> None:
        self.codes = codes
        self.row_weights, self.query_weights = row_weights, query_weights

    @classmethod
    def of(
        cls,
        n: int,
        sample_weight: Any = None,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
    ) -> Queries:
        """Return the queries of n rows from the user's arguments.

        Raises
        ------
        ValueError
            If an argument does not match n rows, or no row has a positive weight.
        """
        check_unmasked("query_weight", query_weight)
        names: Axis
        if group is None:
            codes, names = _of_rows(qid, n)
        elif qid is None:
            codes, names, query_weight = _of_sizes(group, n, query_weight)
        else:
            raise ValueError("Give either qid or group, not both.")
        check_sample_weight(sample_weight, n)
        rows = as_sample_weights(sample_weight, n)
        queries = cls(codes, rows, _query_weights(query_weight, codes, names))
        if not queries.used.any():
            raise ValueError("sample_weight and query_weight leave no row.")
        return queries

    @property
    def used(self) -> Mask:
        """Mask of the rows with positive weights."""
        return (self.row_weights > 0.0) & (self.query_weights > 0.0)

    def take(self, rows: Any) -> Queries:
        """Return the queries of the given rows."""
        return Queries(
            self.codes[rows], self.row_weights[rows], self.query_weights[rows]
        )

    @cached_property
    def groups(self) -> Groups:
        """The rows grouped by query."""
        return Groups(np.unique(self.codes, return_inverse=True)[1].astype(np.intp))

    @property
    def weights(self) -> Floats:
        """Row weights of the loss; the sum within a query is the query's share."""
        groups = self.groups
        rows = check_sample_weight(self.row_weights, len(self.codes))
        of_queries = check_sample_weight(self._of_queries, len(groups))
        return rows * (of_queries / groups.sums(rows))[groups.codes]

    @property
    def _of_queries(self) -> Floats:
        """Weights of the queries, of shape (g,)."""
        weights = np.empty(len(self.groups))
        weights[self.groups.codes] = self.query_weights
        return weights

    def differ(self, y: Floats) -> bool:
        """Whether any query has rows of different relevance."""
        lowest = np.full(len(self.groups), np.inf)
        np.minimum.at(lowest, self.groups.codes, y)
        return bool(np.any(y > lowest[self.groups.codes]))

    def ndcg(
        self, scores: Floats, y: Floats, k: int | None, empty: str = "zero"
    ) -> float:
        """Return the mean NDCG at rank k; all rows need positive weights.

        A row of weight s takes s ranks; sums of discounts are interpolated linearly
        between whole ranks. ``empty``, one of ``EMPTY_QUERIES``, is the NDCG of queries
        without gains.

        Raises
        ------
        ValueError
            If weights are too large, or if queries without gains are left out and no
            query has gains.
        """
        gains, discounts = self._gains(y, k)
        found = self._dcg(scores, gains, discounts)
        return self._mean_ratio(found, self._dcg(gains, gains, discounts), empty)

    def ndcg_bounds(
        self, low: Floats, high: Floats, y: Floats, k: int | None, empty: str = "zero"
    ) -> tuple[float, float]:
        """Return bounds of the mean NDCG over all scores in [low, high].

        Discounts decrease with the rank. The best rank of a row is next to all rows of
        its query that are certainly above, and the worst rank next to all rows that may
        be above. Rounding errors of ranks move rows down for lower bounds, and up for
        upper bounds; all other numbers are sums and products of positive numbers.
        """
        gains, discounts = self._gains(y, k)
        share = running_rounding(len(y))
        # Sums of whole numbers are exact.
        parts = self.row_weights % 1.0
        lost = 4.0 * share * float(self.row_weights.sum()) if parts.any() else 0.0
        if not lost < 0.5:
            return 0.0, 1.0
        _, places = np.unique(np.concatenate([low, high]), return_inverse=True)
        # The keys sort rows by query, and by score within a query.
        keys = places.reshape(2, -1) + self.groups.codes * (places.max() + 1)
        weights = self.row_weights
        above = self._weights_from(keys[0], keys[1] + 1)
        at_most = self._weights_from(keys[1], keys[0]) - weights
        least, most = (self._dcg(gains, gains, discounts, x) for x in (lost, -lost))
        worst = gains * discounts.over(at_most + lost, weights)
        best = gains * discounts.over(above - lost, weights)
        lower = self._mean_ratio(self.groups.sums(worst), most, empty)
        # No ratio exceeds one.
        best = np.minimum(self.groups.sums(best), least)
        upper = self._mean_ratio(best, least, empty)
        # Two sums, their terms, and the mean of their ratios.
        share = 4.0 * (share + running_rounding(len(discounts.each)))
        return (1.0 - share) * lower, min((1.0 + share) * upper, 1.0)

    def _weights_from(self, keys: Any, least: Any) -> Floats:
        """Return for each row the weight of its query's rows with keys >= ``least``."""
        order = np.argsort(keys)
        sums = np.append(0.0, np.cumsum(self.row_weights[order]))
        lasts = np.cumsum(np.bincount(self.groups.codes))[self.groups.codes]
        firsts = np.searchsorted(keys[order], least)
        return np.asarray(sums[lasts] - sums[firsts])

    def _gains(self, y: Floats, k: int | None) -> tuple[Floats, _Discounts]:
        """Return the gains of rows, and the discounts of all ranks."""
        measure = Ndcg(self.groups, k=k)
        largest = float(self.groups.sums(self.row_weights).max())
        if largest > _MOST_WEIGHT:
            raise ValueError(
                "score takes sample_weight as numbers of rows, which may sum to "
                f"{_MOST_WEIGHT:g} for a query; got {largest:g}."
            )
        each = measure.discounts(np.arange(int(np.ceil(largest)) + 2))
        each[-1] = 0.0
        sums = np.append(0.0, np.cumsum(each))
        return measure.gains(y), _Discounts(each, sums)

    def _mean_ratio(self, found: Floats, ideal: Floats, empty: str) -> float:
        """Return the weighted mean of found / ideal over the queries."""
        has_gains = ideal > 0.0
        ratio = np.full_like(ideal, float(empty == "one"))
        np.divide(found, ideal, out=ratio, where=has_gains)
        weights = self._of_queries
        if empty == "skip":
            weights = weights * has_gains
            if not weights.any():
                raise ValueError(
                    "No query has a row with y > 0, and empty_queries='skip' leaves "
                    "such queries out of the mean: there is none left."
                )
        return float(np.average(ratio, weights=weights))

    def _dcg(
        self, keys: Floats, gains: Floats, discounts: _Discounts, lost: float = 0.0
    ) -> Floats:
        """Return the DCG of each query for rows in descending order of keys.

        Rows with equal keys share their discounts equally. Ranks increase by ``lost``.
        """
        groups, order = self.groups, self.groups.sort(-keys)
        keys, weights = keys[order], self.row_weights[order]
        sums = np.append(0.0, np.cumsum(weights))
        runs = np.flatnonzero((keys != np.roll(keys, 1)) | (groups.places == 0))
        queries = groups.codes[order[runs]]
        before = sums[runs] - sums[groups.starts[queries]]
        widths = np.add.reduceat(weights, runs)
        means = np.add.reduceat(weights * gains[order], runs) / widths
        terms = means * discounts.over(before + lost, widths)
        return np.bincount(queries, terms, len(groups)).astype(np.float64, copy=False)


class _Discounts(NamedTuple):
    """Discounts of ranks, the last of which is zero.

    Attributes
    ----------
    each : ndarray of shape (m,)
    sums : ndarray of shape (m + 1,)
        The sums of the first ones.
    """

    each: Floats
    sums: Floats

    def over(self, before: Floats, widths: Floats) -> Floats:
        """Return the sums of discounts of rows that begin at ranks ``before``.

        No number is a small difference of large ones, so that relative errors are
        rounding errors, for weights of any size.
        """
        end = len(self.each) - 1
        before = np.clip(before, 0.0, end)
        first = before.astype(np.intp)
        part = np.minimum(widths, first + 1 - before)
        whole = np.floor(widths - part)
        last = np.minimum(first + 1 + whole.astype(np.intp), end)
        inner = self.sums[last] - self.sums[np.minimum(first + 1, end)]
        rest = widths - part - whole
        return part * self.each[first] + inner + rest * self.each[last]


class HeldOutNdcg(NamedTuple):
    """The mean NDCG of held-out queries as a function of scores, with bounds.

    Attributes
    ----------
    queries : Queries
    y : ndarray of shape (m,)
        Relevances.
    k : int or None
    empty : str
        NDCG of queries without gains, one of ``EMPTY_QUERIES``.
    """

    queries: Queries
    y: Floats
    k: int | None
    empty: str

    def __call__(self, scores: Floats) -> float:
        """Return the mean NDCG of predicted scores."""
        return self.queries.ndcg(scores, self.y, self.k, self.empty)

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the mean NDCG over all predictions in [low, high]."""
        return self.queries.ndcg_bounds(low, high, self.y, self.k, self.empty)


def _of_sizes(group: Any, n: int, query_weight: Any) -> tuple[Indices, Axis, Any]:
    """Return query codes of rows, names, and weights of non-empty queries.

    Raises
    ------
    ValueError
        If ``group`` does not have the sizes of the queries, with the sum n.
    """
    check_unmasked("group", group)
    try:
        sizes = check_array(
            as_numpy(group), ensure_2d=False, dtype=np.float64, input_name="group"
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"group must hold numbers of rows: {error}") from error
    wrong = sizes[(sizes < 0.0) | (sizes != np.floor(sizes))]
    if sizes.ndim != 1 or wrong.size or sizes.sum() != n:
        if sizes.ndim != 1:
            got = f"an array of shape {sizes.shape}"
        elif wrong.size:
            got = f"{wrong[0]:g}"
        else:
            got = f"{len(sizes)} with the sum {int(sizes.sum())}"
        of_rows = (
            " It has an entry for each row: if that is the query of the row, and "
            "rows of a query follow one another, give the sizes, for example by "
            "[len(list(rows)) for _, rows in itertools.groupby(group)]."
        )
        raise ValueError(
            "group must hold the numbers of rows of the queries, whose sum is the "
            f"number {n} of rows; got {got}." + (of_rows if sizes.shape == (n,) else "")
        )
    filled = sizes > 0.0
    labels = named(group)[1]
    if labels is not None:
        labels = [label for label, has in zip(labels, filled, strict=True) if has]
    by_order = query_weight is not None and named(query_weight)[1] is None
    if by_order and np.shape(query_weight) == sizes.shape:
        query_weight = np.asarray(query_weight)[filled]
    sizes = sizes[filled].astype(np.intp)
    codes = np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)
    return codes, _axis(labels), query_weight


def _axis(names: Any) -> Axis:
    how = "give names of queries by qid, or as the index of group"
    return Axis("queries", names, more=True, how=how)


def _of_rows(qid: Any, n: int) -> tuple[Indices, Axis]:
    """Return the query code of each row, of shape (n,), and the sorted names.

    Raises
    ------
    ValueError
        If ``qid`` does not have one entry for each of n rows.
    """
    if qid is None:
        return np.zeros(n, dtype=np.intp), _axis(None)
    instead = (
        " It holds the query of each row; numbers of rows of the queries are given as "
        "group."
    )
    names, codes = names_of_rows("qid", qid, n, instead)
    return codes, _axis(names)


def _query_weights(query_weight: Any, codes: Indices, names: Axis) -> Floats:
    """Return the weight of each row's query, of shape (n,).

    Raises
    ------
    ValueError
        If the weights have neither one number for each query nor one for each row, if
        they differ within a query, or if their index does not name the queries.
    """
    n, n_queries = len(codes), int(codes.max()) + 1
    # Weights of shape (n,) belong to rows, even if there are as many queries as rows.
    by_row = np.shape(query_weight) == (n,)
    values, given, where = named(query_weight)
    if given is not None and not by_row:
        at = places("query_weight", given, names, where)
        query_weight = np.asarray(values)[at]
    if query_weight is not None and np.shape(query_weight) not in [(n,), (n_queries,)]:
        raise ValueError(
            f"query_weight needs one number for each of {n_queries} queries or each of "
            f"{n} rows, which cross-validation can split; got shape "
            f"{np.shape(query_weight)}."
        )
    try:
        check_sample_weight(query_weight, n if by_row else n_queries)
    except (TypeError, ValueError) as error:
        raise type(error)(f"query_weight is not acceptable: {error}") from error
    if not by_row:
        return as_sample_weights(query_weight, n_queries)[codes]
    weights = as_sample_weights(query_weight, n)
    of_queries = np.empty(n_queries)
    of_queries[codes] = weights
    if np.any(of_queries[codes] != weights):
        raise ValueError("query_weight by rows must be equal within each query.")
    return weights
