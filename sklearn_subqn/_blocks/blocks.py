"""Fits to data in blocks of rows, which stay in the processes that hold them.

In this process, a few representative rows replace all rows: one for each class, with
the weight of the class, or two numbers with the mean and variance of the targets. From
these rows estimators make their usual problems, whose risks are replaced by the risk of
all blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from .._checks import (
    canonical_csr,
    check_offset,
    non_negative_weights,
)
from .._core.arrays import Floats, Indices
from .._core.objectives.risk import Risk
from .._core.objectives.risk_of_parts import RiskOfParts
from .._core.places.places import PartsElsewhere, PlaceLost, Session
from .._core.rows.read_design import ReadDesign, Shelf
from .._core.solvers import Start
from .._features.shift import Shift, relative_sums, suspects_of_sums
from .._features.strength import column_sums, divided
from .._problems import LinearProblems, RowsOfBlock
from .._solving.callbacks import FitTask
from .._solving.solution import Solution
from .run_there import RunHere, solve_there
from .summaries import Summary, counts, moments

_Result = TypeVar("_Result")

# A fit resumes after three losses of workers, and fails at the fourth.
_MOST_LOSSES = 3


class RowBlock:
    """A block of rows in memory.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n, d)
    y : array-like of shape (n,) or (n, n_targets)
    weights, offset : array-like of shape (n,), a number, or None
    """

    def __init__(self, X: Any, y: Any, weights: Any, offset: Any = None) -> None:
        self._X, self._y, self._weights, self._offset = X, y, weights, offset

    def rows(self) -> Any:
        """Return the rows of X, validated after ``checked``."""
        return self._X

    def keep(self, X: Any) -> None:
        """Store the validated rows of X."""
        self._X = X

    def set_type(self, dtype: Any) -> None:
        """Set the type to which rows are converted."""
        self._X = self._X.astype(dtype, copy=False)

    def release(self, problems: LinearProblems, shift: Shift | None) -> None:
        """Release the rows after the problems have been made."""
        self._X = None

    def checked(self, estimator: Any) -> Summary:
        """Validate the rows and return their summary."""
        X = self.rows()
        n = X.shape[0]
        for name, given in (("y", self._y), ("sample_weight", self._weights)):
            if np.ndim(given) and len(given) != n:
                raise ValueError(
                    f"Blocks of X and {name} must have the same numbers of rows; a "
                    f"block of X has {n}, and that of {name} {len(given)}."
                )
        weights = self._weights
        weights = np.ravel(weights) if np.ndim(weights) else weights
        X, self._y = estimator._checked(X, self._y)
        self.keep(X)
        self._weights = weights = non_negative_weights(weights, n)
        is_moved = None
        if self._offset is not None:
            own = check_offset(self._offset, n)
            is_moved = bool(own.any())
            self._y, self._offset = estimator._less_offset(self._y, own)
        y, labels = self._y, estimator._labels_in(self._y)
        if labels is not None:
            places = np.searchsorted(labels, y)
            sums: Floats = np.bincount(places, weights, len(labels)).astype(np.float64)
        else:
            total = float(weights.sum())
            mean = weights @ y / (total or 1.0)
            sums = np.array([total + 0.0 * mean, mean, weights @ np.square(y - mean)])
        n, d = X.shape
        others = labels, sums, estimator._indicators, is_moved
        return Summary(n, d, X.dtype, sparse.issparse(X), *others)

    def targets(self) -> Any:
        """Return y."""
        return self._y

    def weigh(self, dtype: Any, labels: Any, factors: Floats) -> None:
        """Set the type of X, and multiply weights by the factors of the labels."""
        self.set_type(dtype)
        if labels is None:
            each = factors
        else:
            # Blocks may have integers of different sizes, or strings of different
            # lengths.
            self._y = self._y.astype(labels.dtype)
            each = factors[np.searchsorted(labels, self._y)]
        self._weights = self._weights * each

    def column_sums(self, shift: Shift | None) -> Floats:
        """Return the sums over columns from which scales are computed."""
        X = self.rows()
        X = X if shift is None else shift.subtracted(X)
        return column_sums(X, self._weights)

    def relative_sums(self, columns: Indices, about: Floats) -> Floats:
        """Return the sums over columns from which the shift is computed."""
        return relative_sums(self.rows(), columns, about, self._weights)

    def problems(
        self, estimator: Any, shift: Shift | None, sums: Floats | None, names: Any
    ) -> LinearProblems:
        """Return the problems with these rows, and release the rows."""
        rows = RowsOfBlock(self.rows(), shift, sums)
        args = rows, self._y, self._weights, names
        others = {} if self._offset is None else {"offset": self._offset}
        problems: LinearProblems = estimator._problems(*args, **others)
        rows.X = self._y = self._weights = self._offset = None
        self.release(problems, shift)
        return problems

    def run(self, problems: LinearProblems) -> RunHere:
        """Return a solver of the problems in this process, which has all rows."""
        return RunHere(problems)


class ReadBlock(RowBlock):
    """A block of rows that are read for each use.

    Parameters
    ----------
    read : callable
        Reads and returns X.
    shelf : Shelf
        The cache of all blocks.
    *others : as of ``RowBlock``
    """

    _dtype: Any = None

    def __init__(self, read: Callable[[], Any], shelf: Shelf, *others: Any) -> None:
        super().__init__(None, *others)
        self._read, self._shelf = read, shelf

    def rows(self) -> Any:
        X = self._read()
        if self._dtype is None:
            return X
        if sparse.issparse(X):
            return canonical_csr(X).astype(self._dtype, copy=False)
        return np.asarray(X, dtype=self._dtype)

    def keep(self, X: Any) -> None:
        self._dtype = X.dtype

    def set_type(self, dtype: Any) -> None:
        self._dtype = dtype

    def release(self, problems: LinearProblems, shift: Shift | None) -> None:
        sizes = problems.sizes

        def changed(X: Any) -> Any:
            X = X if shift is None else shift.subtracted(X)
            return X if sizes is None else divided(X, sizes)

        same = shift is None and sizes is None
        args = self.rows, None if same else changed, self._shelf
        problems.design = ReadDesign(problems.design, *args)


class Source(Protocol):
    """A source of blocks.

    Attributes
    ----------
    holds_rows : bool
        Whether blocks stay in memory while the session is open.
    """

    holds_rows: bool

    def open(self) -> Session:
        """Return a session whose parts are all non-empty blocks."""

    def close(self) -> None:
        """Release the resources of the session."""


class Collection:
    """Data in blocks, as the rows of a fit.

    Parameters
    ----------
    estimator : LinearEstimator
        Estimator with ``n_features_in_``.
    source : Source
    names : ndarray or None
        Names of the columns of y.

    Attributes
    ----------
    problems : LinearProblems
    y, weights : ndarray
        Representative rows of all rows, with their original weights.
    """

    # Whether columns may be shifted without an intercept, because the loss depends on
    # differences of scores only.
    _movable = False
    # Whether the loss is a sum over blocks.
    _is_whole = True
    # Labels, and for each label the factor on its row weights; one factor without
    # labels.
    _labels: Any
    _factors: Any

    def __init__(self, estimator: Any, source: Source, names: Any) -> None:
        self._source, self._names = source, names
        try:
            self._makers: Any = copy_for_blocks(estimator)
            self._copy = self._makers
            self._open()
            while_places_last(lambda: self._prepare(estimator), self._open)
        except BaseException:
            source.close()
            raise

    def _open(self) -> None:
        self._session = self._source.open()

    def _prepare(self, estimator: Any) -> None:
        summaries = self._blocks.results("checked", self._copy)
        known = {summary.n_features for summary in summaries}
        if known != {estimator.n_features_in_}:
            raise ValueError(
                "All blocks of X must have the same number of columns, "
                f"{estimator.n_features_in_}; there are blocks with "
                f"{', '.join(map(str, sorted(known)))}."
            )
        self._n_rows = sum(summary.n_rows for summary in summaries)
        self._dtype = np.result_type(*(summary.dtype for summary in summaries))
        is_sparse = any(summary.is_sparse for summary in summaries)
        indicators = summaries[0].indicators
        if indicators is not None:
            indicators = np.all([each.indicators for each in summaries], axis=0)
        for model in (estimator, self._copy):
            model._choose_scales(is_sparse=is_sparse)
            model._indicators = indicators
        shares = self._stand_in(estimator, summaries)
        estimator._fitted_with_offset = any(each.is_moved for each in summaries)
        others = {}
        if summaries[0].is_moved is not None:
            offset = estimator._checked_offset(0.0, len(self.y), self._names)
            others["offset"] = offset
        self._weigh()
        self._measure(estimator)
        d = estimator.n_features_in_
        rows = RowsOfBlock(
            np.zeros((len(self.y), d), self._dtype), self._shift, self._sums
        )
        self.problems: LinearProblems = estimator._problems(
            rows, self.y, shares, self._names, **others
        )
        self._encode()
        self.problems.elsewhere = self

    def _stand_in(self, estimator: Any, summaries: list[Summary]) -> Floats:
        """Set the representative rows, and return their normalized weights."""
        numbers_of_columns = {
            1 if each.labels is not None or each.sums.ndim == 1 else each.sums.shape[1]
            for each in summaries
        }
        if len(numbers_of_columns) > 1:
            raise ValueError(
                "All blocks of y must have the same number of columns; there are "
                f"blocks with {', '.join(map(str, sorted(numbers_of_columns)))}."
            )
        if summaries[0].labels is None:
            self.y, self.weights, shares = moments(summaries)
            self._labels, self._factors = None, shares.sum() / self.weights.sum()
            return shares
        self.y, self.weights = counts(summaries)
        shares, self._names = estimator._shares(self.y, self.weights)
        used = np.where(self.weights > 0.0, self.weights, 1.0)
        self._labels, self._factors = self.y, shares / used
        return shares

    @property
    def _blocks(self) -> PartsElsewhere:
        return self._session.parts

    def _weigh(self) -> None:
        self._blocks.each("weigh", self._dtype, self._labels, self._factors)

    def _encode(self) -> None:
        args = self._makers, self._shift, self._sums, self._names
        self._encoded = self._blocks.of(self._blocks.each("problems", *args))

    def _measure(self, estimator: Any) -> None:
        """Find columns far from zero, and the sums from which scales follow."""
        self._shift, self._sums = None, None
        movable = self._movable or bool(getattr(estimator, "fit_intercept", False))
        scaled = estimator._is_automatic() and estimator._choice.scaled
        scaled = scaled or estimator._free_features() is not None
        if not (movable or scaled):
            return
        sums = self._blocks.total("column_sums", None)
        if movable:
            _, mean, square, stored = sums
            columns = suspects_of_sums(mean, square, stored, self._n_rows)
            if len(columns):
                about = mean[columns]
                relative = self._blocks.total("relative_sums", columns, about)
                self._shift = Shift.of_sums(columns, about, relative, self._dtype)
        if scaled:
            if self._shift is not None:
                sums = self._blocks.total("column_sums", self._shift)
            self._sums = sums

    def risk(self, index: int) -> Risk:
        """Return the risk of all rows in a problem."""
        risk = RiskOfParts(self._encoded.of(self._encoded.each("risk", index)))
        self._session.count(risk.design.parts.objects)
        return risk

    def solve(
        self, problems: LinearProblems, alpha: Any, task: FitTask
    ) -> list[Solution]:
        """Return the solutions; resume from the best points after a loss of workers."""
        problems.watch = KeepsBest(problems.starts[0].w)
        return self.asked(lambda: self._solve(problems, alpha, task))

    def asked(self, step: Callable[[], _Result]) -> _Result:
        """Return the result of a step, which is repeated after a loss of workers."""

        def again() -> None:
            problems = self.problems
            problems.starts = [Start(start.w) for start in problems.starts]
            self._open()
            self._blocks.each("checked", self._copy)
            self._weigh()
            self._encode()

        return while_places_last(step, again)

    def _solve(
        self, problems: LinearProblems, alpha: Any, task: FitTask
    ) -> list[Solution]:
        if self._is_whole and self._source.holds_rows and self._session.n_parts == 1:
            run = self._blocks.each("run", self._encoded.objects)
            return solve_there(self._blocks.of(run), problems, alpha, task)
        problems.design = self.risk(0).design
        return problems.solve(alpha, task, here=True)

    def close(self) -> None:
        """Release the resources of the source."""
        self._source.close()


def while_places_last(
    step: Callable[[], _Result], again: Callable[[], None]
) -> _Result:
    """Return the result of a step; after a loss, connect again and repeat it."""
    for _ in range(_MOST_LOSSES):
        try:
            return step()
        except PlaceLost:
            again()
    return step()


class KeepsBest:
    """Watch that never stops a run; a run with a watch reports its best points.

    Parameters
    ----------
    w : ndarray of shape (q,)
        Parameters at the start; afterwards, the best ones so far.
    """

    chosen: Floats | None = None

    def __init__(self, w: Floats) -> None:
        self.w = w

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        self.w = w
        return False


def copy_for_blocks(estimator: Any) -> Any:
    """Return a copy of an unfitted estimator for rows in other processes."""
    parameters = estimator.get_params(deep=False)
    # Splitters and scorers of searches may be bound to this process.
    others = "callback", "n_jobs", "cv", "scoring"
    local = {name: None for name in others if name in parameters}
    copied = type(estimator)(**{**parameters, **local})
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(estimator, name):
            setattr(copied, name, getattr(estimator, name))
    return copied


def without_callbacks(estimator: Any) -> Any:
    """Return a copy of a fitted estimator for other processes, without callbacks.

    It has all pickled attributes except the dual points of the last fit, which are only
    needed for a warm start.
    """
    copied = copy_for_blocks(estimator)
    left_out = {"_duals", *estimator.get_params(deep=False)}
    state = estimator.__getstate__()
    copied.__setstate__({k: v for k, v in state.items() if k not in left_out})
    return copied
