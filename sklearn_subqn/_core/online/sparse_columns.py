"""The untuned method on the columns of a batch alone, where there are very many.

A sparse batch has entries in few of the columns. Where they are many times more than
its entries, its step is that of ``auto.py`` for the objective restricted to its own
columns and the intercepts. What the other columns miss meanwhile is made up for when
their turn comes, from two sums that time stamps refer to.

- A coefficient that a batch does not touch shrinks by the factor 1 - eta l2 scale of a
  step with the penalty alone, in the diagonal metric; together nearly an exponential.
- The average of iterates has the weights n (n + 1) (n + 2), so that after n iterates,
  of which the last n - m were the same w, it is w + r(m) / r(n) (mean_m - w), with
  r(n) = n (n + 1) (n + 2) (n + 3).

A step of the whole moves all columns along their centers, and the intercept makes up
for what that adds at the center: one way for columns with an entry in the batch, the
other for those without. So columns are centered only where they take part in every
step: those whose squared mean is more than half of their mean square, which have
entries in more than half of all rows. The others keep the center zero, and nothing is
left out.

The average takes w as it is after all of its shrinkage, not as it was meanwhile.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import own_columns
from ..losses._base import Floats, Rows
from ..records import stored
from .auto import AdaptiveLBFGS, AutoState
from .auto_metric import Metric, make_metric
from .auto_pairs import Block
from .batch import LinearBatch, Penalty

# Data have very many columns if there are more than 30,000 coefficients.
# docs/constants.md has the figures.
_WIDE = 30_000

# Data have very many columns only if there are also more than 16 coefficients for each
# entry of the batch. docs/constants.md has the figures.
_WIDE_SHARE = 16

# A column of such data is frequent if at least half of the rows, weighted by curvature,
# have an entry in it. There are at most twice as many frequent columns as entries in a
# row, and they take part in every step.
_FREQUENT = 0.5

_NONE = np.empty(0, dtype=np.intp)
_NO_NUMBERS = np.empty(0)


@stored
class Columns:
    """A table of some numbers for each coefficient, of which a step changes few rows.

    A table never changes, but all that have been made from one another share one array:
    that of the last one, of which the others know what differs (Baker 1978, shallow
    binding). The last one is read and changed at no cost beside that of the rows.

    Parameters
    ----------
    base : ndarray of shape (c, n)
        Written to from now on.
    """

    def __init__(self, base: Floats) -> None:
        self._lock = threading.Lock()
        self._base: Floats | None = base
        self._next: tuple[Columns, Rows, Floats] | None = None
        self._last: Any = _nothing
        self._n_noted = 0
        self._length = len(base)

    def __len__(self) -> int:
        return self._length

    def take(self, rows: Rows) -> Floats:
        """Return rows, of shape (len(rows), n)."""
        with self._lock:
            taken: Floats = self._own().take(rows, axis=0)
            return taken

    def put(self, rows: Rows, values: Floats) -> Columns:
        """Return the table with other values, of shape (n, r), in r rows.

        The array of values gets those that were there before.
        """
        with self._lock:
            base = self._own()
            # Where earlier tables are in use, they do not note more than the table.
            n_noted = len(rows) + (self._n_noted if self._last() is not None else 0)
            if n_noted > len(self):
                new = Columns(base.copy())
                own_columns.exchange(new._own(), rows, values)
                return new
            new = Columns(base)
            new._lock, new._last, new._n_noted = self._lock, weakref.ref(self), n_noted
            own_columns.exchange(base, rows, values)
            self._base, self._next = None, (new, rows, values)
            return new

    def whole(self) -> Floats:
        """Return a copy of all rows."""
        with self._lock:
            return self._own().copy()

    def __getstate__(self) -> tuple[int, npt.NDArray[Any], Floats]:
        """Return what is pickled: the rows that are not zero."""
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
        """Return the array of this table, from now on its own if it was not the last.

        The caller holds the lock.
        """
        notes, table = [], self
        while table._next is not None:
            table, *note = table._next
            notes.append(note)
        base = table._base
        assert base is not None, "the last table has the array"
        if table is not self:
            base = base.copy()
            for rows, values in reversed(notes):
                base[rows] = values.T
            self._base, self._next = base, None
        return base


def _nothing() -> None:
    """Refer to no table before the first."""


@stored
@dataclass(frozen=True)
class ColumnState:
    """The state that the method for sparse columns keeps between batches.

    Attributes
    ----------
    columns : Columns
        For each coefficient: iterate, average, sums of h x and h x², and when they
        were last up to date: the sum of the lengths of steps and the number of batches
        then. With an L1 penalty also the sum of h where there are entries, and the
        averaged gradient.
    last : AutoState
        That of the intercepts, of all that is not of columns, and of the columns of
        the last batch.
    rows : ndarray of shape (r,)
        The coefficients in the latter.
    length : float
        Sum of the lengths of steps.
    penalty : Penalty
        That of the last batch.
    value : float
        Objective of the last batch before its step, up to shrinkage not made up for.
    square, absolute : float
        The sums of squares and absolute values of the iterate, as in ``columns``.
    frequent : ndarray of shape (f,)
        Columns of X that are centered, ascending.
    """

    columns: Columns
    last: AutoState
    rows: Rows
    length: float
    penalty: Penalty
    value: float
    square: float
    absolute: float
    frequent: Rows

    @classmethod
    def of(
        cls, state: AutoState, n_coef: int, penalty: Penalty, k: int = 1
    ) -> ColumnState:
        """Return a state of k scores per row in this form, without its pairs."""
        base = np.zeros((n_coef, 8 if penalty.l1 else 6))
        w = base[:, 0] = state.iterate[:n_coef]
        base[:, 1] = state.average.mean[:n_coef]
        moments, frequent = state.moments, _NONE
        if moments is not None:
            base[:, 2], base[:, 3] = moments.hx, moments.hxx
            if moments.present is not None and penalty.l1:
                base[:, 6] = moments.present
            if len(state.iterate) > n_coef:
                metric = make_metric(moments, True, 0.0, _FREQUENT)
                frequent = _frequent(np.arange(n_coef), metric, k)
        if state.smooth_gradient is not None and penalty.l1:
            base[:, 7] = state.smooth_gradient[:n_coef]
        base[base.any(axis=1), 5] = state.n_steps
        return cls(
            columns=Columns(base),
            last=_with_columns(state, n_coef, np.empty((7, 0)), bool(penalty.l1)),
            rows=_NONE,
            length=0.0,
            penalty=penalty,
            value=state.value,
            square=float(w @ w),
            absolute=float(np.abs(w).sum()),
            frequent=frequent,
        )

    @classmethod
    def among(
        cls, state: AutoState, columns: Rows, d: int, penalty: Penalty, k: int
    ) -> ColumnState:
        """Return a state of some columns of X as one of d, the others without entries.

        Parameters
        ----------
        state : AutoState
            Of k scores per row.
        columns : ndarray of shape (c,)
            Ascending.
        """
        rows = (columns[:, np.newaxis] * k + np.arange(k)).ravel()
        own = cls.of(state, len(rows), penalty, k)
        values = own.columns.whole()
        base = np.zeros((d * k, values.shape[1]))
        base[rows] = values
        frequent = columns[own.frequent]
        return replace(own, columns=Columns(base), frequent=frequent)

    @property
    def n_steps(self) -> int:
        """Number of batches."""
        return self.last.n_steps

    @property
    def w(self) -> Floats:
        """The model, of shape (q,)."""
        return self.whole().w

    def whole(self) -> AutoState:
        """Return the state in the form for all columns."""
        return self.restricted(self.columns.whole())

    def coefficients(self, rows: Rows) -> Floats:
        """Return the model's coefficients in the given rows, which ascend."""
        return self._up_to_date(self.columns.take(rows))[0]

    def restricted(self, table: Floats) -> AutoState:
        """Return the state of some of the columns, brought up to date."""
        columns = self._up_to_date(table)
        return _with_columns(self.last, len(self.rows), columns, bool(self.penalty.l1))

    def _up_to_date(self, table: Floats) -> Floats:
        """Return numbers of some of the columns, in the order of ``_with_columns``."""
        last, moments = self.last, self.last.moments
        q, n_old = len(last.iterate), len(self.rows)
        curvature = free = _NO_NUMBERS
        n_rows, n_batches = 1.0, 1
        if moments is not None:
            curvature = moments.curvature
            n_rows, n_batches = moments.n_rows, moments.n_batches
            if last.smooth_gradient is not None:
                free = last.smooth_gradient[n_old:]
        up_to_date = np.empty((7, len(table)))
        own_columns.catch_up(
            table,
            curvature,
            n_rows,
            n_batches,
            self.penalty.l1,
            self.penalty.l2,
            _FREQUENT,
            q > n_old,
            free,
            self.length,
            last.began,
            last.n_steps,
            last.average.n,
            up_to_date,
        )
        return up_to_date


@dataclass(frozen=True)
class _OwnColumns(AdaptiveLBFGS):
    """The untuned method that centers columns only where they are in every step."""

    least_share = _FREQUENT


@stored
@dataclass(frozen=True)
class ColumnwiseLBFGS(AdaptiveLBFGS):
    """The untuned method, on the columns of a batch alone where there are very many."""

    def step(  # type: ignore[override]
        self, batch: LinearBatch, state: AutoState | ColumnState
    ) -> AutoState | ColumnState:
        """Return the state after one batch, in the form that the batch asks for.

        Raises
        ------
        FloatingPointError
            If the objective or its gradient is not finite.
        """
        c, penalty = batch.n_coef, batch.penalty
        wide = batch.is_sparse and c > max(_WIDE, _WIDE_SHARE * batch.n_entries)
        if isinstance(state, ColumnState) and (state.penalty != penalty or not wide):
            state = state.whole()
        if not wide:
            assert isinstance(state, AutoState)
            return super().step(batch, state)
        if isinstance(state, AutoState):
            state = ColumnState.of(state, c, penalty, batch.n_scores)
        rows, own = batch.own_columns(state.frequent)
        table = state.columns.take(rows)
        # Pairs would need all columns.
        method = _OwnColumns(self.eta0, self.tau, 0, self.average)
        new = method.step(own, state.restricted(table))
        n = len(rows)
        moments, smooth = new.moments, new.smooth_gradient
        changed = np.zeros((table.shape[1], n))
        changed[0], changed[1] = new.iterate[:n], new.average.mean[:n]
        frequent = _NONE
        if moments is not None and new.metric is not None:
            changed[2], changed[3] = moments.hx, moments.hxx
            if moments.present is not None:
                changed[6] = moments.present
            # The metric was made for this batch.
            frequent = _frequent(rows, new.metric, batch.n_scores)
        if smooth is not None:
            changed[7] = smooth[:n]
        length = state.length + new.length
        changed[4], changed[5] = length, new.n_steps
        columns = state.columns.put(rows, changed)
        before, after = changed[0], new.iterate[:n]
        square = max(state.square - float(before @ before), 0.0)
        absolute = max(state.absolute - float(np.abs(before).sum()), 0.0)
        return ColumnState(
            columns=columns,
            last=new,
            rows=rows,
            length=length,
            penalty=penalty,
            value=new.value + 0.5 * penalty.l2 * square + penalty.l1 * absolute,
            square=square + float(after @ after),
            absolute=absolute + float(np.abs(after).sum()),
            frequent=frequent,
        )

    def on_all_columns(self) -> AdaptiveLBFGS:
        """Return the method that never leaves columns out."""
        return AdaptiveLBFGS(self.eta0, self.tau, self.memory, self.average)


def _frequent(rows: Rows, metric: Metric, k: int) -> Rows:
    """Return the columns of X that the metric centers for any of k scores.

    ``rows`` are the coefficients that it may be.
    """
    return np.unique(rows[np.flatnonzero(metric.center)] // k)


def _with_columns(
    state: AutoState, n_old: int, table: Floats, with_l1: bool
) -> AutoState:
    """Return the state with other columns, in place of the first ``n_old`` numbers.

    ``table`` holds their model, iterate, average, sums of h x, of h x², of h where
    there are entries, and averaged gradients; the first sum and the last have no
    meaning but with an L1 penalty.
    """
    free = state.iterate[n_old:]
    model = np.concatenate([table[0], state.w[n_old:]])
    iterate = np.concatenate([table[1], free])
    mean = np.concatenate([table[2], state.average.mean[n_old:]])
    moments, smooth = state.moments, state.smooth_gradient
    if moments is not None:
        present = table[5] if with_l1 else None
        moments = replace(moments, hx=table[3], hxx=table[4], present=present)
    if with_l1:
        rest = np.zeros_like(free) if smooth is None else smooth[n_old:]
        smooth = np.concatenate([table[6], rest])
    q = len(iterate)
    return replace(
        state,
        w=model,
        gradient=np.zeros(q),
        iterate=iterate,
        average=replace(state.average, mean=mean),
        moments=moments,
        metric=None,
        block=Block(0, 0, np.zeros(q)),
        dw=np.empty((0, q)),
        dg=np.empty((0, q)),
        smooth_gradient=smooth if with_l1 else None,
    )
