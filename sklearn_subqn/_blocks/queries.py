"""Fits to queries in blocks of rows: only the scores of all rows are in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.objectives.risk import Risk
from .._core.places.parts import DesignOfParts, OfParts
from .._problems import LinearProblems, Problems
from .._solving.callbacks import FitTask
from .._solving.solution import Solution
from .blocks import Collection, Floats, Source, Summary


class QueriesInBlocks(Collection):
    """Rows in blocks, whose scores one loss compares.

    The rows of X stay in their blocks; scores, targets and weights are one array each.
    So rows of a query may be in several blocks.

    Parameters
    ----------
    estimator : BaseRanker
        With ``n_features_in_``.
    source : Source
        Its blocks have the numbers of their rows for y, and no weights.
    y : ndarray of shape (n,)
        Relevances, in the order of these numbers.
    queries : Queries
        Of the same rows.
    """

    _movable = True

    def __init__(self, estimator: Any, source: Source, y: Floats, queries: Any) -> None:
        self._y, self._queries, self._loss_of = y, queries, estimator._loss
        super().__init__(estimator, source, None, 1.0)

    def _stand_in(self, estimator: Any, summaries: list[Summary]) -> Floats:
        self._labels = None
        self.y, self.weights = self._y[:1], np.array([self._queries.row_weights.sum()])
        return np.ones(1)

    def _weigh(self) -> None:
        # Blocks may have other places than before, and so another order.
        numbers = self._blocks.results("targets")
        order = np.concatenate(numbers).astype(np.intp)
        queries = self._queries.take(order)
        self._ranking = self._loss_of(queries.groups), self._y[order], queries.weights
        ends = np.cumsum(list(map(len, numbers)))[:-1]
        self._factors = OfParts(np.split(queries.weights, ends))
        super()._weigh()

    def risk(self, index: int) -> Risk:
        risks = self._encoded.of(self._encoded.each("risk", index))
        design = DesignOfParts(risks.of(risks.each("own_design")))
        self._session.count(design.parts.objects)
        return Risk(design, *self._ranking)

    def _solve(
        self, problems: LinearProblems, alpha: Any, task: FitTask
    ) -> list[Solution]:
        problems.design = self.risk(0).design
        return Problems.solve(problems, alpha, task)
