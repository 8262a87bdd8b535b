"""The solver "auto" for very wide sparse data: steps on a batch's own columns.

A sparse batch has entries in few columns. Where there are many more columns than
entries, its step is the step of ``auto.py`` for the objective restricted to its own
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
zero, so restricted steps leave out nothing.

The lazy update of the average uses w after all shrinkage, an approximation.
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


@stored
class Columns:
    """A persistent table with a row for each coefficient, for updates of few rows.

    Tables are immutable. All versions of a table share one array, which has the values
    of the newest version; an older version stores its differences from the next one
    (Baker 1978, shallow binding). Reading or updating the newest version costs only as
    much as the rows involved.

    Parameters
    ----------
    base : ndarray of shape (c, n)
        Initial values; the table owns and overwrites this array.
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

    def catch_up(self, rows: Rows, *settings: Any) -> None:
        """Write rows, with their pending updates, to the last array of ``settings``."""
        with self._lock:
            own_columns.catch_up(self._own(), rows, *settings)

    def put(self, rows: Rows, values: Floats) -> Columns:
        """Return the table with new values, of shape (n, r), in r rows.

        ``values`` is overwritten with the previous values.
        """
        with self._lock:
            base = self._own()
            # Copy the array once the rows stored for older versions would exceed the
            # table.
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
        """Return the pickled data: the length and the non-zero rows."""
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
    """Return None, in place of a weak reference to a previous version."""


@stored
@dataclass(frozen=True)
class ColumnState:
    """State of the method for very wide sparse data between batches.

    Attributes
    ----------
    columns : Columns
        For each coefficient: iterate, average, sums of h x and h x², and the sum of
        step sizes and number of batches at the last update. With an L1 penalty also the
        sum of h over entries, and the averaged gradient.
    last : AutoState
        State after the last batch, restricted to its columns and the intercepts.
    rows : ndarray of shape (r,)
        Indices of the coefficients in ``last``.
    length : float
        Sum of all step sizes.
    penalty : Penalty
        Penalty of the last batch.
    value : float
        Objective of the last batch before its step, except that pending shrinkage is
        not in the penalty.
    square, absolute : float
        Sums of squares and absolute values of the iterates stored in ``columns``.
    frequent : ndarray of shape (f,)
        Centered columns of X, ascending.
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
        """Convert an AutoState for k scores per row, without its pairs."""
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
            last=_with_columns(
                state, n_coef, np.empty((7, len(state.iterate) - n_coef)), penalty
            ),
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
        """Convert a state of the given columns to all d columns of X.

        Parameters
        ----------
        state : AutoState
            State for k scores per row.
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
        """Return the AutoState of all columns."""
        return self.restricted(np.arange(len(self.columns)))

    def coefficients(self, rows: Rows) -> Floats:
        """Return the model's coefficients in the given ascending rows."""
        return self._up_to_date(rows)[0, : len(rows)]

    def restricted(self, rows: Rows) -> AutoState:
        """Return the AutoState of the given coefficients, brought up to date."""
        values = self._up_to_date(rows)
        return _with_columns(self.last, len(self.rows), values, self.penalty)

    def _up_to_date(self, rows: Rows) -> Floats:
        """Return ``values`` for ``_with_columns``, with pending updates of the rows."""
        last, moments = self.last, self.last.moments
        q, n_old = len(last.iterate), len(self.rows)
        curvature = free = _NO_NUMBERS
        n_rows, n_batches = 1.0, 1
        if moments is not None:
            curvature = moments.curvature
            n_rows, n_batches = moments.n_rows, moments.n_batches
            if last.smooth_gradient is not None:
                free = last.smooth_gradient[n_old:]
        width = 7 if self.penalty.l1 else 5
        up_to_date = np.empty((width, len(rows) + q - n_old))
        self.columns.catch_up(
            rows,
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
    """AdaptiveLBFGS that centers only frequent columns."""

    least_share = _FREQUENT


@stored
@dataclass(frozen=True)
class ColumnwiseLBFGS(AdaptiveLBFGS):
    """The solver "auto": on very wide data AdaptiveLBFGS on a batch's columns."""

    def step(  # type: ignore[override]
        self, batch: LinearBatch, state: AutoState | ColumnState
    ) -> AutoState | ColumnState:
        """Return the state after one batch: a ColumnState if the batch is very wide.

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
        # The memory is zero, because pairs would need all columns.
        method = _OwnColumns(self.eta0, self.tau, 0, self.average)
        new = method.step(own, state.restricted(rows))
        n = len(rows)
        moments, smooth = new.moments, new.smooth_gradient
        changed = np.zeros((8 if penalty.l1 else 6, n))
        changed[0], changed[1] = new.iterate[:n], new.average.mean[:n]
        frequent = _NONE
        if moments is not None and new.metric is not None:
            changed[2], changed[3] = moments.hx, moments.hxx
            if moments.present is not None:
                changed[6] = moments.present
            # The restricted step has computed the metric of this batch.
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
        """Return the method that always steps on all columns."""
        return AdaptiveLBFGS(self.eta0, self.tau, self.memory, self.average)


def _frequent(rows: Rows, metric: Metric, k: int) -> Rows:
    """Return the columns of X that the metric centers for at least one of k scores.

    ``rows`` are the coefficients of the metric.
    """
    return rows[::k][metric.center.reshape(-1, k).any(axis=1)] // k


def _with_columns(
    state: AutoState, n_old: int, values: Floats, penalty: Penalty
) -> AutoState:
    """Return the state with its ``n_old`` coefficients replaced by c others.

    The rows of ``values`` of shape (5 or 7, q) are model, iterate, average, sums of h x
    and of h x², and with an L1 penalty sums of h over entries and averaged gradients;
    their last numbers, for the intercepts, are overwritten.
    """
    q = values.shape[1]
    c = q - len(state.iterate) + n_old
    values[:3, c:] = [v[n_old:] for v in (state.w, state.iterate, state.average.mean)]
    moments, smooth = state.moments, state.smooth_gradient
    if moments is not None:
        present = values[5, :c] if penalty.l1 else None
        hx, hxx = values[3, :c], values[4, :c]
        moments = replace(moments, hx=hx, hxx=hxx, present=present)
    if penalty.l1:
        values[6, c:] = 0.0 if smooth is None else smooth[n_old:]
    zero = np.zeros(q)
    return replace(
        state,
        w=values[0],
        gradient=zero,
        iterate=values[1],
        average=replace(state.average, mean=values[2]),
        moments=moments,
        metric=None,
        block=Block(0, 0, zero),
        dw=np.empty((0, q)),
        dg=np.empty((0, q)),
        smooth_gradient=values[6] if penalty.l1 else None,
    )
