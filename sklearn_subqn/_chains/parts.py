"""Fits to blocks of sequences that remain on their workers, such as Dask's.

Workers send and receive names of attributes and labels, the pairs that occur,
parameters, values and gradients, but never a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._blocks.blocks import KeepsBest, Source, copy_for_blocks, while_places_last
from .._checks import non_negative_weights
from .._core.arrays import Floats, Mask
from .._core.objectives.objective import Objective
from .._core.objectives.risk import Risk
from .._core.objectives.risk_of_parts import RiskOfParts
from .._core.places.parts import OfParts
from .._core.places.places import Place
from .._core.solvers import Start
from .design import ChainDesign
from .labels import distinct_labels, label_codes, several_classes
from .pairs import Pairs, merged
from .reading import Labeled
from .sequences import Sequences
from .stream import Seen
from .transitions import TransitionRules


class SequenceSummary(NamedTuple):
    """Names, labels and total weight of the sequences of a block.

    Attributes
    ----------
    names : list of str or None
        Names of the attributes in the order of their columns; None where tokens are
        rows of matrices.
    n_features : int
    columns : ndarray of str or None
        Names of the columns of tables.
    labels : list
        The labels that occur, sorted.
    n : int
        Number of sequences of positive weight.
    weight : float
        The sum of their weights.
    dtype : dtype
        Data type of the entries of tokens.
    """

    names: list[str] | None
    n_features: int
    columns: Any
    labels: list[Any]
    n: int
    weight: float
    dtype: Any


class BlockOfSequences:
    """One block of training sequences, on its worker.

    Parameters
    ----------
    X : list of sequences
    y : list of label sequences
    weights : array-like or None
    """

    _data: Sequences
    _labels: list[Any]
    _labeled: Labeled
    _design: ChainDesign

    def __init__(self, X: Any, y: Any, weights: Any) -> None:
        self._given = X, y, weights

    def read(self, estimator: Any) -> SequenceSummary:
        """Read the sequences, and return their summary."""
        X, y, weights = self._given
        # Each block copies the estimator, which the blocks of a process share.
        self._estimator = own = copy(estimator)
        data = own._read_sequences(X, None, reset=True, learns=True)
        labels = own._labels(y, data)
        if weights is not None and len(weights) != len(data):
            raise ValueError(
                "Blocks of X and sample_weight must have the same numbers of sequences;"
                f" a block of X has {len(data)}, and that of sample_weight "
                f"{len(weights)}."
            )
        given = 1.0 if weights is None else np.asarray(weights)
        self._counts = non_negative_weights(given, len(data))
        self._numbers = numbers = np.flatnonzero(self._counts)
        self._data, self._labels = data, labels = data.take(numbers, labels)
        self._counts = self._counts[numbers]
        names = None if own._columns is None else list(own._columns)
        columns = getattr(own, "feature_names_in_", None)
        known = distinct_labels(labels).tolist() if labels else []
        totals = len(numbers), float(self._counts.sum())
        return SequenceSummary(
            names, own.n_features_in_, columns, known, *totals, data.X.dtype
        )

    def observed(
        self, classes: Any, columns: Any, n_features: int
    ) -> tuple[Pairs, Mask]:
        """Return the attribute-label pairs, and the transitions, that have a weight.

        Parameters
        ----------
        classes : ndarray of shape (k,)
            The labels of all blocks.
        columns : ndarray of shape (d,) or None
            Column, among the attributes of all blocks, of each attribute of this block.
        n_features : int
            Number of attributes of all blocks.
        """
        own, data, X = self._estimator, self._data, self._data.X
        if columns is not None:
            arrays = X.data, columns[X.indices], X.indptr
            X = sparse.csr_matrix(arrays, shape=(X.shape[0], n_features))
        self._data = data = Sequences(X, data.starts, data.stacked)
        own.classes_ = classes
        own._rules = TransitionRules.of(own.transition_constraints, classes)
        targets = label_codes(self._labels, classes)
        own._rules.check(targets, data.starts, classes, self._numbers)
        self._labeled = Labeled(data, targets, self._counts, self._counts)
        observed: tuple[Pairs, Mask] = own._observed(self._labeled)
        return observed

    def risk(self, pairs: Pairs, transitions: Mask, weight: float) -> Risk:
        """Return the block's part of the risk, with weights divided by ``weight``."""
        own, data = self._estimator, self._data
        self._design = ChainDesign(
            data.X, data.starts, len(own.classes_), pairs, transitions
        )
        design: Any = self._design
        loss = own._loss_of(data.starts)
        return Risk(design, loss, self._labeled.targets, self._counts / weight)

    def seen(self, w: Floats, factor: float) -> Seen:
        """Return the statistics of the block for a stream, at parameters w.

        In the curvature, the weights are multiplied by ``factor``.
        """
        data = self._data
        columns = np.arange(data.X.shape[1])
        seen = Seen().and_of(data.X, data.starts, self._counts, columns)
        nodes = self._estimator._lattice_of(self._design, w).marginals()
        counts = factor * self._counts
        return seen.learned(data.X, data.starts, counts, columns, nodes)


class PlaceOfSequences(Place):
    """Blocks of sequences in one process, without the empty blocks.

    Parameters
    ----------
    X, y, weights : list
        One entry for each block; weights may be None.
    is_all : bool
        Whether this process has all blocks of the fit.
    """

    def __init__(
        self,
        X: list[Any],
        y: list[Any],
        weights: list[Any],
        *,
        is_all: bool = False,
    ) -> None:
        blocks = zip(X, y, weights, strict=True)
        super().__init__(BlockOfSequences(*each) for each in blocks if len(each[0]))


class SequencesElsewhere:
    """Training data whose blocks of sequences are on other processes.

    Parameters
    ----------
    estimator : LinearChainCRF
        The estimator to be fitted. Its attributes for names, labels and rules are set.
    source : Source
        Source of the processes that hold the blocks.
    """

    def __init__(self, estimator: Any, source: Source) -> None:
        self._source, self._copy = source, copy_for_blocks(estimator)
        self._open()
        while_places_last(lambda: self._prepare(estimator), self._open)

    def _open(self) -> None:
        self._session = self._source.open()

    def _read(self) -> list[SequenceSummary]:
        summaries: list[SequenceSummary]
        summaries = self._session.parts.results("read", self._copy)
        return summaries

    def _prepare(self, estimator: Any) -> None:
        summaries = self._read()
        self.weight = sum(summary.weight for summary in summaries)
        self.n = sum(summary.n for summary in summaries)
        if not self.weight > 0.0:
            raise ValueError(
                "Sample weights must contain at least one non-zero number; all are "
                "zero."
            )
        first = summaries[0]
        for other in summaries:
            same = (other.names is None) == (first.names is None)
            if first.names is None or not same:
                same = same and other.n_features == first.n_features
                same = same and np.array_equal(other.columns, first.columns)
            if not same:
                raise ValueError(
                    "All blocks of X must have the same kind of tokens, and matrices "
                    "the same columns."
                )
        every = [label for summary in summaries for label in summary.labels]
        classes = several_classes(every)
        self.dtype = np.result_type(*(summary.dtype for summary in summaries))
        estimator.classes_ = classes
        constraints = estimator.transition_constraints
        estimator._rules = TransitionRules.of(constraints, classes)
        estimator._columns = None
        estimator.n_features_in_ = first.n_features
        if first.names is not None:
            names = (name for summary in summaries for name in summary.names or ())
            unique = dict.fromkeys(names)
            estimator._columns = {name: column for column, name in enumerate(unique)}
            estimator.n_features_in_ = len(unique)
        self._known = classes, estimator._columns, estimator.n_features_in_
        self.pairs, self.transitions = self._observed(summaries)

    def _observed(self, summaries: list[SequenceSummary]) -> tuple[Pairs, Mask]:
        classes, known, n_features = self._known
        columns = OfParts(
            known and np.array([known[name] for name in summary.names or ()], np.int32)
            for summary in summaries
        )
        args = classes, columns, n_features
        observed = self._session.parts.results("observed", *args)
        pairs = reduce(lambda a, b: merged(a, b)[0], (each for each, _ in observed))
        transitions = reduce(np.logical_or, (each for _, each in observed))
        return pairs, transitions

    def objective(self, estimator: Any) -> Objective:
        """Return the objective of all sequences."""
        blocks = self._session.parts
        risks = blocks.each("risk", self.pairs, self.transitions, self.weight)
        risk = RiskOfParts(blocks.of(risks))
        self._session.count(risk.design.parts.objects)
        penalty = estimator._penalty(risk.design.n_params)
        return Objective(risk, penalty, estimator._chosen_alpha(1.0 / self.weight))

    def solve(
        self,
        estimator: Any,
        start: Start,
        run: Callable[[Objective, Start, KeepsBest], Floats],
    ) -> Seen:
        """Run a solver; after the loss of a worker, resume from the best point.

        ``run`` returns the parameters of its solution; ``solve`` returns the stream's
        statistics at these parameters.
        """
        best = KeepsBest(start.w)

        def again() -> None:
            self._open()
            self._observed(self._read())

        def step() -> Seen:
            w = run(self.objective(estimator), Start(best.w), best)
            args = w, self.n / self.weight
            seen: list[Seen] = self._session.parts.results("seen", *args)
            return reduce(Seen.and_others, seen)

        return while_places_last(step, again)
