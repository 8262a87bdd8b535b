"""Rows of queries: which belong together, what they weigh, and how well they rank.

A weight of a row is the number of times that it counts, one of a query the number of
queries that it counts as.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from .._checks import (
    as_numpy,
    as_sample_weights,
    check_sample_weight,
    check_unmasked,
    names_of_rows,
)
from .._core.lazy import cached_property
from .._core.losses import Groups, Ndcg
from .._core.names import Axis, named, places
from .._solving.solution import Floats

# Scores sum discounts up to the weight of a query's rows, one after the other.
_MOST_WEIGHT = 1e7


#: What NDCG of queries without gains is: zero, one, or nothing that counts.
EMPTY_QUERIES = ("zero", "one", "skip")


class Queries:
    """The queries of rows, and weights of both.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Numbers or labels of the rows' queries.
    row_weights : ndarray of shape (n,)
        Non-negative.
    query_weights : ndarray of shape (n,)
        Non-negative weights of the rows' queries.
    """

    def __init__(
        self, codes: npt.NDArray[Any], row_weights: Floats, query_weights: Floats
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
        """Return the queries of n rows, from what users give.

        Raises
        ------
        ValueError
            If it does not fit to n rows, or no row has a weight.
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
    def used(self) -> npt.NDArray[np.bool_]:
        """Which rows have weights."""
        return (self.row_weights > 0.0) & (self.query_weights > 0.0)

    def take(self, rows: Any) -> Queries:
        """Return the queries of some rows."""
        return Queries(
            self.codes[rows], self.row_weights[rows], self.query_weights[rows]
        )

    @cached_property
    def groups(self) -> Groups:
        """The rows by queries."""
        return Groups(np.unique(self.codes, return_inverse=True)[1].astype(np.intp))

    @property
    def weights(self) -> Floats:
        """Weights of rows for losses: they sum to one, and by queries to theirs."""
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
        least = np.full(len(self.groups), np.inf)
        np.minimum.at(least, self.groups.codes, y)
        return bool(np.any(y > least[self.groups.codes]))

    def ndcg(
        self, scores: Floats, y: Floats, k: int | None, empty: str = "zero"
    ) -> float:
        """Return the mean NDCG at rank k; all rows need weights.

        A row of weight s takes s ranks, and between whole ranks discounts are shared.
        ``empty`` says what queries without gains are: one of ``EMPTY_QUERIES``.

        Raises
        ------
        ValueError
            If weights are too large, or there are queries without gains only, and these
            are left out.
        """
        gains, discounts = self._gains(y, k)
        found = self._dcg(scores, gains, discounts)
        return self._mean_ratio(found, self._dcg(gains, gains, discounts), empty)

    def ndcg_bounds(
        self, low: Floats, high: Floats, y: Floats, k: int | None, empty: str = "zero"
    ) -> tuple[float, float]:
        """Return bounds of the mean NDCG for all scores between two ends.

        Discounts fall with ranks. The best rank of a row is that after all rows of its
        query that are above it in any case, its worst that after all that may be.
        """
        gains, discounts = self._gains(y, k)
        _, places = np.unique(np.concatenate([low, high]), return_inverse=True)
        # Queries one after the other, and in each of them the order of scores.
        keys = places.reshape(2, -1) + self.groups.codes * (places.max() + 1)
        weights = self.row_weights
        above = self._weights_from(keys[0], keys[1] + 1)
        at_most = self._weights_from(keys[1], keys[0]) - weights
        ideal = self._dcg(gains, gains, discounts)
        bounds = []
        for before in (at_most, above):
            ranks = np.arange(len(discounts))
            ends = (np.interp(x, ranks, discounts) for x in (before + weights, before))
            after, begun = ends
            found = self.groups.sums(gains * (after - begun))
            bounds.append(self._mean_ratio(np.minimum(found, ideal), ideal, empty))
        return bounds[0], bounds[1]

    def _weights_from(self, keys: Any, least: Any) -> Floats:
        """Return the weight of the rows of a query from a least key of each row on."""
        order = np.argsort(keys)
        sums = np.append(0.0, np.cumsum(self.row_weights[order]))
        lasts = np.cumsum(np.bincount(self.groups.codes))[self.groups.codes]
        firsts = np.searchsorted(keys[order], least)
        return np.asarray(sums[lasts] - sums[firsts])

    def _gains(self, y: Floats, k: int | None) -> tuple[Floats, Floats]:
        """Return the gains of rows, and sums of discounts up to each rank."""
        measure = Ndcg(self.groups, k=k)
        most = float(self.groups.sums(self.row_weights).max())
        if most > _MOST_WEIGHT:
            raise ValueError(
                "score takes sample_weight as numbers of rows, which may sum to "
                f"{_MOST_WEIGHT:g} for a query; got {most:g}."
            )
        places = np.arange(int(np.ceil(most)) + 1)
        discounts = np.append(0.0, np.cumsum(measure.discounts(places)))
        return measure.gains(y), discounts

    def _mean_ratio(self, found: Floats, ideal: Floats, empty: str) -> float:
        """Return the mean of the ratios of queries."""
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

    def _dcg(self, keys: Floats, gains: Floats, discounts: Floats) -> Floats:
        """Return the sum of each query's discounted gains, in the order of keys.

        ``discounts`` are sums up to each rank; equal keys share theirs.
        """
        groups, order = self.groups, self.groups.sort(-keys)
        keys, weights = keys[order], self.row_weights[order]
        ends = np.cumsum(weights)
        before = np.append(0.0, ends)[groups.starts[:-1]]
        ends -= before[groups.codes[order]]
        runs = np.flatnonzero((keys != np.roll(keys, 1)) | (groups.places == 0))
        lasts = np.append(runs[1:], len(keys)) - 1
        of = groups.codes[order[runs]]
        reached = np.interp(ends[lasts], np.arange(len(discounts)), discounts)
        begun = np.where(groups.places[runs] == 0, 0.0, np.roll(reached, 1))
        means = np.add.reduceat(weights * gains[order], runs)
        means /= np.add.reduceat(weights, runs)
        sums = np.zeros(len(groups))
        np.add.at(sums, of, (reached - begun) * means)
        return sums


class HeldOutNdcg(NamedTuple):
    """The mean NDCG of queries.

    Attributes
    ----------
    queries : Queries
    y : ndarray of shape (m,)
        Relevances.
    k : int or None
    empty : str
        What queries without gains are.
    """

    queries: Queries
    y: Floats
    k: int | None
    empty: str

    def __call__(self, scores: Floats) -> float:
        """Return the score of predictions."""
        return self.queries.ndcg(scores, self.y, self.k, self.empty)

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the score of all predictions between two ends."""
        return self.queries.ndcg_bounds(low, high, self.y, self.k, self.empty)


def _of_sizes(
    group: Any, n: int, query_weight: Any
) -> tuple[npt.NDArray[np.intp], Axis, Any]:
    """Return the number of each row's query, names, and weights without empty queries.

    Raises
    ------
    ValueError
        If these are not the numbers of rows of queries, of n rows together.
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


def _of_rows(qid: Any, n: int) -> tuple[npt.NDArray[np.intp], Axis]:
    """Return the number of each row's query, of shape (n,), and their sorted names.

    Raises
    ------
    ValueError
        If there is not one query for each of n rows.
    """
    if qid is None:
        return np.zeros(n, dtype=np.intp), _axis(None)
    instead = (
        " It holds the query of each row; numbers of rows of the queries are given as "
        "group."
    )
    names, codes = names_of_rows("qid", qid, n, instead)
    return codes, _axis(names)


def _query_weights(
    query_weight: Any, codes: npt.NDArray[np.intp], names: Axis
) -> Floats:
    """Return the weight of each row's query, of shape (n,).

    Raises
    ------
    ValueError
        If there is not one number for each query, or for each row and equal in a query,
        or its names are not those of the queries.
    """
    n, n_queries = len(codes), int(codes.max()) + 1
    # Weights are of rows where rows are as many as queries, unless keys name queries.
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
