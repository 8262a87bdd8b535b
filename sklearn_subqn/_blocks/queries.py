"""Fits to queries in blocks of rows: sums over blocks, or all scores in one process."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Array, Floats
from .._core.losses import Groups
from .._core.objectives.risk import Risk
from .._core.objectives.risk_of_parts import RiskOfParts
from .._core.places.parts import DesignOfParts, OfParts
from .._problems import LinearProblems
from .blocks import Collection, Source
from .summaries import Summary


class RankingOfBlock:
    """Makes problems from the rows of a block with complete queries.

    Parameters
    ----------
    estimator : BaseRanker
    y : ndarray of shape (n,)
        Relevances.
    codes : ndarray of shape (n,)
        Query of each row, as numbers or labels.
    """

    def __init__(self, estimator: Any, y: Floats, codes: Array) -> None:
        self._estimator, self._y, self._codes = estimator, y, codes

    def _problems(
        self, X: Any, y: Any, weights: Floats, names: Any = None
    ) -> LinearProblems:
        """Return the problems of the rows; y has their numbers among all rows."""
        codes = np.unique(self._codes, return_inverse=True)[1].astype(np.intp)
        loss = self._estimator._loss(Groups(codes))
        problems: LinearProblems = self._estimator._problems(
            X, self._y, weights, names, loss=loss
        )
        return problems


def sizes_between_queries(codes: Array, sizes: list[int]) -> list[int]:
    """Return block sizes that end where queries end, close to the given sizes.

    If rows of a query are not contiguous, the given sizes are returned.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Query of each row.
    sizes : list of int
        Number of rows of each block.
    """
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    if len(changes) + 1 > len(np.unique(codes)):
        return sizes
    places = np.concatenate([[0], changes, [len(codes)]])
    ends = np.cumsum(sizes)
    moved = places[np.searchsorted(places, ends)]
    return [int(size) for size in np.diff(moved, prepend=0)]


class QueriesInBlocks(Collection):
    """Rows in blocks, with a loss that compares rows within each query.

    If every query is within a block, the loss is a sum over blocks, and row-wise
    quantities stay in the processes of the blocks (Teo et al. 2010, A.3.4). Otherwise
    only the rows of X stay there, and scores, targets and weights are single arrays.

    Parameters
    ----------
    estimator : BaseRanker
        Estimator with ``n_features_in_``.
    source : Source
        Blocks whose y are the numbers of their rows, without weights.
    y : ndarray of shape (n,)
        Relevances, in the order of the row numbers.
    queries : Queries
        Queries of the same rows.
    """

    _movable = True

    def __init__(self, estimator: Any, source: Source, y: Floats, queries: Any) -> None:
        self._y, self._queries, self._loss_of = y, queries, estimator._loss
        super().__init__(estimator, source, None)

    def _stand_in(self, estimator: Any, summaries: list[Summary]) -> Floats:
        self._labels = None
        self.y, self.weights = self._y[:1], np.array([self._queries.row_weights.sum()])
        return np.ones(1)

    def _weigh(self) -> None:
        # After the loss of a worker, the blocks may be in another order.
        numbers = self._blocks.results("targets")
        order = np.concatenate(numbers).astype(np.intp)
        queries = self._queries.take(order)
        ends = np.cumsum(list(map(len, numbers)))[:-1]
        self._factors = OfParts(np.split(queries.weights, ends))
        codes = np.split(queries.codes, ends)
        n_apart = sum(len(np.unique(each)) for each in codes)
        self._is_whole = n_apart == len(queries.groups)
        if self._is_whole:
            rows = zip(np.split(self._y[order], ends), codes, strict=True)
            self._makers = OfParts(RankingOfBlock(self._copy, *own) for own in rows)
        else:
            loss = self._loss_of(queries.groups)
            self._makers = self._copy
            self._ranking = loss, self._y[order], queries.weights
        super()._weigh()

    def risk(self, index: int) -> Risk:
        risks = self._encoded.of(self._encoded.each("risk", index))
        if self._is_whole:
            whole = RiskOfParts(risks, self._loss_of(Groups.one(1)))
            self._session.count(whole.design.parts.objects)
            return whole
        design = DesignOfParts(risks.of(risks.each("own_design")))
        self._session.count(design.parts.objects)
        return Risk(design, *self._ranking)
