"""The solver "auto" for very wide sparse data: steps on a batch's own columns.

A sparse batch has entries in few columns. If there are many more columns than entries,
the step is the step of ``auto.py`` for the objective restricted to the batch's own
columns and the intercepts. All other columns are updated lazily, when a later batch has
entries in the column: each column stores the sum of step sizes and the number of
batches at its last update.

- A coefficient outside the batch shrinks by the factor 1 - eta l2 scale, the step for
  the penalty alone in the diagonal metric. The product of these factors is nearly an
  exponential of the sum of step sizes.
- Iterate n has the weight n (n + 1) (n + 2) in the average. If the last n - m of n
  iterates equal w, the average is w + r(m) / r(n) (mean_m - w), with r(n) = n (n + 1)
  (n + 2) (n + 3).

A step in centered coordinates changes every column with a nonzero center, even if the
batch has no entry in the column. Only columns that take part in every step are
therefore centered: the columns whose squared mean exceeds half of their mean square,
which have entries in more than half of all rows. All other columns have the center
zero, so restricted steps are exact.

The lazy update of the average uses w after all shrinkage, which is an approximation.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..kernels import own_columns
from ..losses._base import Floats, Rows
from ..records import changed, stored
from .auto import AdaptiveLBFGS, AutoState
from .auto_metric import make_metric
from .auto_pairs import Block
from .batch import LinearBatch, Penalty

# Minimum number of coefficients of very wide data. docs/constants.md has the figures.
_WIDE = 30_000

# Minimum number of coefficients per entry of the batch in very wide data.
# docs/constants.md has the figures.
_WIDE_SHARE = 16

# A column is frequent if its squared mean, weighted by curvature, is more than half of
# its mean square, which needs entries in more than half of the rows. There are at most
# twice as many frequent columns as entries in a row, and every step includes all of
# them.
_FREQUENT = 0.5

_NONE = np.empty(0, dtype=np.intp)
_NO_NUMBERS = np.empty(0)
_NO_PAIRS = np.empty((0, 0))
_NO_BLOCK = Block(0, 0, _NO_NUMBERS)

# Columns of a block, whose coefficients are computed together: limits the memory.
_BLOCK = 4096


@stored
class Columns:
    """A persistent table with a row for each feature, for updates of few rows.

    Tables are immutable. All versions of a table share one array, which has the values
    of the newest version; an older version stores its differences from the next one
    (Baker 1978, shallow binding). Reading or updating the newest version costs only as
    much as the rows involved.

    Parameters
    ----------
    base : ndarray of shape (d, n)
        Initial values; the table owns and overwrites this array.
    """

    def __init__(self, base: Floats) -> None:
        self._lock = threading.Lock()
        self._base: Floats | None = base
        self._next: tuple[Columns, Rows, list[Floats], Floats] | None = None
        self._last: Any = _nothing
        self._n_noted = 0
        self._length = len(base)

    def __len__(self) -> int:
        return self._length

    def catch_up(self, rows: Rows, *settings: Any) -> tuple[float, float]:
        """Read the rows with their pending updates, as the kernel does."""
        with self._lock:
            return own_columns.catch_up(self._own(), rows, *settings)

    def put(
        self, rows: Rows, parts: list[Floats], clock: tuple[float, float]
    ) -> tuple[Columns, Any]:
        """Return the table with new content in r rows, and sums of the kernel.

        Parameters
        ----------
        parts : list of ndarray, each of shape (at least r k,)
            The new numbers of the rows, overwritten with the previous ones.
        clock : tuple of two floats
            The last two numbers of each row.
        """
        with self._lock:
            base = self._own()
            # Copy the array once the rows stored for older versions would exceed the
            # table.
            n_noted = len(rows) + (self._n_noted if self._last() is not None else 0)
            copies = n_noted > len(self)
            if copies:
                base = base.copy()
            clocks = np.empty((len(rows), 2))
            clocks[:] = clock
            new, sums = Columns(base), own_columns.exchange(base, rows, parts, clocks)
            if not copies:
                new._lock, new._last = self._lock, weakref.ref(self)
                new._n_noted = n_noted
                self._base, self._next = None, (new, rows, parts, clocks)
            return new, sums

    def whole(self) -> Floats:
        """Return a copy of all rows."""
        with self._lock:
            return self._own().copy()

    def __getstate__(self) -> tuple[int, npt.NDArray[Any], Floats]:
        """Return the state to pickle: the length and the non-zero rows."""
        base = self.whole()
        rows = np.flatnonzero(base.any(axis=1))
        few = np.int32 if len(base) <= np.iinfo(np.int32).max else np.int64
        return len(base), rows.astype(few), base[rows]

    def __setstate__(self, state: tuple[int, npt.NDArray[Any], Floats]) -> None:
        n, rows, values = state
        base = np.zeros((n, values.shape[1]))
        base[rows] = values
        vars(self).update(vars(Columns(base)))

    def _own(self) -> Floats:
        """Return the array of this version, copied if a newer version owns the array.

        The caller holds the lock.
        """
        notes, table = [], self
        while table._next is not None:
            table, *_ = note = table._next
            notes.append(note)
        base = table._base
        assert base is not None, "the last table has the array"
        if table is not self:
            base = base.copy()
            for _, rows, parts, clocks in reversed(notes):
                copies = [part.copy() for part in parts]
                own_columns.exchange(base, rows, copies, clocks.copy())
            self._base, self._next = base, None
        return base


def _nothing() -> None:
    """Return None, in place of a weak reference to a previous version."""


@stored
@dataclass(frozen=True)
class ColumnState:
    """State of the method for very wide sparse data between batches.

    Attributes
    ----------
    columns : Columns
        For each feature and its k scores: iterate, average, sums of h x and h x², with
        an L1 penalty also the sum of h over entries and the averaged gradient; then the
        sum of step sizes and the number of batches at the last update.
    last : AutoState
        State of the intercepts after the last batch.
    n_scores : int
        Number k of scores per row.
    length : float
        Sum of all step sizes.
    penalty : Penalty
        Penalty of the last batch.
    value : float
        Objective of the last batch before its step, except that pending shrinkage is
        not in the penalty.
    square, absolute : float
        Sums of squares and absolute values of the iterates stored in ``columns``.
    largest : float
        An upper bound of absolute values in the averages: the largest one after any of
        the batches.
    frequent : ndarray of shape (f,)
        Centered columns of X, ascending.
    residual : ndarray of shape (m,) or (0,)
        Random projection of the gradient, see ``FittedByColumns``.
    """

    columns: Columns
    last: AutoState
    n_scores: int
    length: float
    penalty: Penalty
    value: float
    square: float
    absolute: float
    largest: float
    frequent: Rows
    residual: Floats

    @classmethod
    def of(
        cls, state: AutoState, n_coef: int, penalty: Penalty, k: int = 1
    ) -> ColumnState:
        """Convert an AutoState for k scores per row, without its pairs."""
        w, moments, frequent = state.iterate[:n_coef], state.moments, _NONE
        parts = [w, state.average.mean]
        if moments is not None:
            parts += [moments.hx, moments.hxx]
            if len(state.iterate) > n_coef:
                center = make_metric(moments, True, 0.0, _FREQUENT).center
                frequent = np.flatnonzero(center.reshape(-1, k).any(axis=1))
        n_parts, smooth = 4, state.smooth_gradient
        if penalty.l1:
            n_parts, present = 6, None if moments is None else moments.present
            nothing = np.zeros(n_coef)
            parts += [nothing] * (4 - len(parts))
            parts += [nothing if each is None else each for each in (present, smooth)]
        base = np.zeros((n_coef // k, n_parts * k + 2))
        used = np.zeros(len(base), dtype=bool)
        for part in parts:
            used[np.flatnonzero(part[:n_coef]) // k] = True
        rows = np.flatnonzero(used)
        for i, part in enumerate(parts):
            base[rows, i * k : (i + 1) * k] = part[:n_coef].reshape(-1, k)[rows]
        base[rows, -1] = state.n_steps
        return cls(
            columns=Columns(base),
            last=_of_intercepts(state, n_coef),
            n_scores=k,
            length=0.0,
            penalty=penalty,
            value=state.value,
            square=float(w @ w),
            absolute=float(np.abs(base[rows, :k]).sum()),
            largest=float(max(state.w.max(initial=0.0), -state.w.min(initial=0.0))),
            frequent=frequent,
            residual=_NO_NUMBERS,
        )

    @classmethod
    def among(
        cls,
        state: AutoState | ColumnState,
        columns: Rows,
        d: int,
        penalty: Penalty,
        k: int,
    ) -> ColumnState:
        """Convert a state of the given columns to all d columns of X.

        Parameters
        ----------
        state : AutoState or ColumnState
            State for k scores per row.
        columns : ndarray of shape (c,)
            Ascending.
        """
        if isinstance(state, ColumnState):
            state = state.whole()
        own = cls.of(state, len(columns) * k, penalty, k)
        values = own.columns.whole()
        base = np.zeros((d, values.shape[1]))
        base[columns] = values
        frequent = columns[own.frequent]
        return changed(own, columns=Columns(base), frequent=frequent)

    @property
    def n_steps(self) -> int:
        """Number of batches."""
        return self.last.n_steps

    @property
    def w(self) -> Floats:
        """The model, of shape (q,)."""
        d, k = len(self.columns), self.n_scores
        w = np.empty(d * k + len(self.last.w))
        w[d * k :] = self.last.w
        for start in range(0, d, _BLOCK):
            columns = np.arange(start, min(start + _BLOCK, d))
            w[start * k :][: len(columns) * k] = self.coefficients(columns).ravel()
        return w

    def coefficients(self, columns: Rows) -> Floats:
        """Return the model's coefficients of c ascending columns, of shape (c, k)."""
        state, c = self.of_columns(columns)[0], len(columns) * self.n_scores
        w, moments, penalty = state.w, state.moments, self.penalty
        if moments is not None and state.smooth_gradient is not None:
            metric = make_metric(moments, len(w) > c, penalty.l2, _FREQUENT)
            w = metric.model(w, state.smooth_gradient, penalty.l1)
        return w[:c].reshape(-1, self.n_scores)

    def whole(self) -> AutoState:
        """Return the AutoState of all columns."""
        state = self.of_columns(np.arange(len(self.columns)))[0]
        nothing = np.zeros_like(state.w)
        pairs, block = np.empty((0, len(nothing))), Block(0, 0, nothing)
        return changed(
            state, w=self.w, gradient=nothing, block=block, dw=pairs, dg=pairs
        )

    def of_columns(self, columns: Rows) -> tuple[AutoState, Floats, Any]:
        """Return the state of c columns, with pending updates and without gradient.

        Also returns the number of batches at the last update of each column, and sums
        of the kernel.
        """
        last, penalty, k = self.last, self.penalty, self.n_scores
        average, moments, l1 = last.average, last.moments, penalty.l1
        c, n_free = len(columns) * k, len(last.w)
        own = np.empty((6 if l1 else 4, c + n_free))
        updated = np.empty(len(columns))
        sums = (_NO_NUMBERS, 1.0, 1)
        if moments is not None:
            sums = moments.curvature, moments.n_rows, moments.n_batches
        before = self.columns.catch_up(
            columns,
            *sums,
            l1,
            penalty.l2,
            _FREQUENT,
            n_free > 0,
            self.length,
            last.began,
            last.n_steps,
            average.n,
            own,
            updated,
        )
        own[0, c:], own[1, c:] = last.iterate, average.mean
        smooth = present = None
        if l1:
            smooth, present = own[5], own[4, :c]
            smooth[c:] = 0.0 if last.smooth_gradient is None else last.smooth_gradient
        if moments is not None:
            hx, hxx = own[2, :c], own[3, :c]
            moments = changed(moments, hx=hx, hxx=hxx, present=present)
        state = changed(
            last,
            w=own[1],
            gradient=_NO_NUMBERS,
            iterate=own[0],
            average=changed(average, mean=own[1]),
            moments=moments,
            smooth_gradient=smooth,
        )
        return state, updated, before


class _OnColumns(AdaptiveLBFGS):
    """The method for a batch's own columns. Pairs need all columns and are not used."""

    least_share = _FREQUENT
    overwrites = True


@stored
@dataclass(frozen=True)
class ColumnwiseLBFGS(AdaptiveLBFGS):
    """The solver "auto": on very wide data AdaptiveLBFGS on a batch's columns."""

    # Length of the random projection of a batch's gradient; zero for none.
    projected: ClassVar[int] = 0

    def step(  # type: ignore[override]
        self, batch: LinearBatch, state: AutoState | ColumnState
    ) -> AutoState | ColumnState:
        """Return the state after one batch: a ColumnState if the batch is very wide.

        Raises
        ------
        FloatingPointError
            If the objective or its gradient is not finite.
        """
        penalty, wide = batch.penalty, self._takes(batch)
        if isinstance(state, ColumnState) and (state.penalty != penalty or not wide):
            state = state.whole()
        if not wide:
            assert isinstance(state, AutoState)
            return super().step(batch, state)
        if isinstance(state, AutoState):
            state = ColumnState.of(state, batch.n_coef, penalty, batch.n_scores)
        return self._step_on_columns(batch, state)

    def _takes(self, batch: LinearBatch) -> bool:
        """Whether the step of a batch is on its own columns."""
        return batch.is_sparse and is_very_wide(batch.n_coef, batch.n_entries)

    def _step_on_columns(self, batch: LinearBatch, state: ColumnState) -> ColumnState:
        """Return the state after a step on the columns of a batch."""
        penalty, k = batch.penalty, state.n_scores
        columns, own = batch.on_own_columns(state.frequent)
        start, updated, (square, absolute) = state.of_columns(columns)
        method = _OnColumns(self.eta0, self.tau, 0, self.average)
        new = method.step(own, start)
        residual, c, metric = _NO_NUMBERS, own.n_coef, new.metric
        assert metric is not None, "a step makes a metric"
        if self.projected:
            # The gradient of the intercepts has k entries.
            residual = np.zeros(max(self.projected, 1 << k.bit_length()))
            # Earlier batches without a column had the gradient of its penalty.
            missed = penalty.l2 * (start.n_steps - updated)
            free = new.gradient[c:]
            args = new.gradient, start.iterate, metric.center, metric.scale, free
            own_columns.project(columns, missed, *args, residual)
            residual[: len(free)] += free * np.sqrt(metric.free[: len(free)])
        frequent = _NONE
        if np.count_nonzero(metric.center):
            frequent = columns[metric.center.reshape(-1, k).any(axis=1)]
        last, length = _of_intercepts(new, c), state.length + new.length
        mean, moments = new.average.mean, new.moments
        mean = mean.copy() if mean is new.iterate else mean
        sums: Any = np.zeros((4, c))
        if moments is not None:
            sums = moments.hx, moments.hxx, moments.present, new.smooth_gradient
        parts = [new.iterate, mean, *sums[: 4 if penalty.l1 else 2]]
        clock = length, float(new.n_steps)
        table, after = state.columns.put(columns, parts, clock)
        square = max(state.square - square, 0.0)
        absolute = max(state.absolute - absolute, 0.0)
        return ColumnState(
            columns=table,
            last=last,
            n_scores=k,
            length=length,
            penalty=penalty,
            value=new.value + penalty.of_sums(square, absolute),
            square=square + after[0],
            absolute=absolute + after[1],
            largest=max(state.largest, after[2]),
            frequent=frequent,
            residual=residual,
        )

    def in_fit(self, n_coef: int, n_entries: float, l1: float) -> AdaptiveLBFGS:
        """Return the method for a fit by batches of ``n_entries`` entries.

        With an L1 penalty all steps are on all columns.
        """
        by_columns = is_very_wide(n_coef, n_entries) and not l1
        kind = FittedByColumns if by_columns else AdaptiveLBFGS
        return kind(self.eta0, self.tau, self.memory, self.average)


@dataclass(frozen=True)
class FittedByColumns(ColumnwiseLBFGS):
    """Steps on columns whose gradients are measured by a random projection.

    The projection gives the norm of the averaged gradient with a relative error of
    about sqrt(2 / m), here 1 %, and needs no vector of all columns.
    """

    projected = 2**14

    def _takes(self, batch: LinearBatch) -> bool:
        return batch.is_sparse


def is_very_wide(n_coef: int, n_entries: float) -> bool:
    """Whether steps on batches of ``n_entries`` entries are on their own columns."""
    return n_coef > max(_WIDE, _WIDE_SHARE * n_entries)


def _of_intercepts(state: AutoState, n_coef: int) -> AutoState:
    """Return a state for the parameters from ``n_coef`` on, without pairs.

    The arrays are copied, so that the original arrays can be freed.
    """
    moments, smooth, none = state.moments, state.smooth_gradient, _NO_NUMBERS
    if moments is not None:
        moments = changed(moments, hx=none, hxx=none, present=None)
    mean = state.average.mean[n_coef:].copy()
    return changed(
        state,
        w=state.w[n_coef:].copy(),
        gradient=state.gradient[n_coef:].copy(),
        iterate=state.iterate[n_coef:].copy(),
        average=changed(state.average, mean=mean),
        moments=moments,
        metric=None,
        block=_NO_BLOCK,
        dw=_NO_PAIRS,
        dg=_NO_PAIRS,
        smooth_gradient=None if smooth is None else smooth[n_coef:].copy(),
    )
