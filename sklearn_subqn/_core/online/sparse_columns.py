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
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..kernels import own_columns
from ..losses._base import Floats, Rows
from ..records import stored
from .auto import AdaptiveLBFGS, AutoState
from .auto_metric import Moments, make_metric
from .auto_pairs import Block
from .batch import LinearBatch, Penalty
from .method import check_finite

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

# Number of columns of which coefficients are computed at a time, to bound the memory.
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
        self._next: tuple[Columns, Rows, Floats] | None = None
        self._last: Any = _nothing
        self._n_noted = 0
        self._length = len(base)

    def __len__(self) -> int:
        return self._length

    def catch_up(self, rows: Rows, *settings: Any) -> Any:
        """Write the rows with their pending updates, as the kernel does."""
        with self._lock:
            return own_columns.catch_up(self._own(), rows, *settings)

    def put(self, rows: Rows, values: Floats) -> Columns:
        """Return the table with new values, of shape (r, n), in r rows.

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
                base[rows] = values
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
        State after the last batch, of the intercepts alone.
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
        base = np.zeros((n_coef // k, (6 if penalty.l1 else 4) * k + 2))

        def write(place: int, values: Floats) -> None:
            base[:, place * k : (place + 1) * k] = values[:n_coef].reshape(-1, k)

        w = state.iterate[:n_coef]
        write(0, w)
        write(1, state.average.mean)
        moments, frequent = state.moments, _NONE
        if moments is not None:
            write(2, moments.hx)
            write(3, moments.hxx)
            if moments.present is not None and penalty.l1:
                write(4, moments.present)
            if len(state.iterate) > n_coef:
                center = make_metric(moments, True, 0.0, _FREQUENT).center
                frequent = np.flatnonzero(center.reshape(-1, k).any(axis=1))
        if state.smooth_gradient is not None and penalty.l1:
            write(5, state.smooth_gradient)
        base[base.any(axis=1), -1] = state.n_steps
        return cls(
            columns=Columns(base),
            last=_of_intercepts(state, n_coef),
            n_scores=k,
            length=0.0,
            penalty=penalty,
            value=state.value,
            square=float(w @ w),
            absolute=float(np.abs(w).sum()),
            largest=float(np.abs(state.w).max(initial=0.0)),
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
        return replace(own, columns=Columns(base), frequent=frequent)

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
        model = np.empty((len(columns), self.n_scores))
        self.up_to_date(columns, model)
        return model

    def whole(self) -> AutoState:
        """Return the AutoState of all columns."""
        d, k, last = len(self.columns), self.n_scores, self.last
        model = np.empty((d, k))
        own, _ = self.up_to_date(np.arange(d), model)
        parts = [own[:, i : i + k].ravel() for i in range(0, own.shape[1] - 2, k)]
        moments, smooth = last.moments, None
        if moments is not None:
            present = parts[4] if self.penalty.l1 else None
            moments = replace(moments, hx=parts[2], hxx=parts[3], present=present)
        if self.penalty.l1:
            free = last.smooth_gradient
            free = np.zeros_like(last.w) if free is None else free
            smooth = np.append(parts[5], free)
        w = np.append(model, last.w)
        zero = np.zeros_like(w)
        mean = np.append(parts[1], last.average.mean)
        return replace(
            last,
            w=w,
            gradient=zero,
            iterate=np.append(parts[0], last.iterate),
            average=replace(last.average, mean=mean),
            moments=moments,
            block=Block(0, 0, zero),
            dw=np.empty((0, len(w))),
            dg=np.empty((0, len(w))),
            smooth_gradient=smooth,
        )

    def up_to_date(
        self,
        columns: Rows,
        model: Floats | None = None,
        entries: tuple[Any, Any, Any] | None = None,
        scores: Floats | None = None,
    ) -> tuple[Floats, Any]:
        """Return rows of ``columns`` with pending updates, and sums of the kernel.

        Parameters
        ----------
        columns : ndarray of shape (c,)
        model : ndarray of shape (c, k) or None
            Receives the coefficients of the model.
        entries, scores : tuple, ndarray of shape (2, b, k), or None
            As from ``LinearBatch.own_columns``; products of the entries with iterate
            and average are added to scores.
        """
        last, penalty, k = self.last, self.penalty, self.n_scores
        smooth = last.smooth_gradient
        if entries is None:
            starts = np.zeros(len(columns) + 1, dtype=np.int32)
            entries = starts, starts[:0], _NO_NUMBERS
        if model is None:
            model = np.empty((0, k))
        if scores is None:
            scores = np.empty((2, 0, k))
        own = np.empty((len(columns), (6 if penalty.l1 else 4) * k + 2))
        sums = self.columns.catch_up(
            columns,
            *_settings(last.moments, penalty, len(last.w) > 0),
            _NO_NUMBERS if smooth is None else smooth,
            self.length,
            last.began,
            last.n_steps,
            last.average.n,
            *entries,
            own,
            model,
            *scores,
        )
        return own, sums


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
        """Return the state after a step on the columns of a batch.

        ``AdaptiveLBFGS`` takes the same step on these columns and the intercepts. There
        are no pairs, because they would need all columns.
        """
        n, k, penalty, last = batch.n_rows, batch.n_scores, batch.penalty, state.last
        free = batch.fit_intercept
        columns, entries = batch.own_columns(state.frequent)
        both = np.zeros((2, n, k))
        own, (before, at_iterate, at_mean) = state.up_to_date(
            columns, None, entries, both
        )
        if free:
            both[0] += last.iterate
            both[1] += last.average.mean
        z, of_mean = both.reshape(2, *batch.shape)
        risk = batch.risk(z)
        value = risk + penalty.of_sums(*at_iterate)
        check_finite("the objective of the batch", value)
        size = max(last.size, value, 0.0 if last.size else batch.risk(0.0 * z))

        curvature = batch.curvature(z)
        u = batch.dual(z).reshape(n, k)
        free_gradient = u.sum(axis=0) if free else np.zeros(k)
        moments, bends = last.moments, np.empty((0, k))
        if moments is None or last.measures:
            bends = n * curvature.diagonal().reshape(n, k)
            old = moments or Moments(
                0.0, np.zeros(k), _NO_NUMBERS, _NO_NUMBERS, None, 0
            )
            moments = replace(
                old,
                n_rows=old.n_rows + n,
                h=old.h + bends.sum(axis=0),
                n_batches=old.n_batches + 1,
            )
        settings = _settings(moments, penalty, free)
        p = np.empty((len(columns), k))
        gradient = np.empty((len(columns) if penalty.l1 else 0, k))
        dscores, at_center = np.zeros((n, k)), np.zeros(k)
        centered = np.empty(len(columns), dtype=np.uint8)
        # The intercepts alone need k numbers.
        m = max(self.projected, 1 << k.bit_length()) if self.projected else 0
        residual = np.zeros(m)
        slope, square, product, absolute = own_columns.direction(
            own,
            columns,
            *settings,
            *entries,
            u,
            bends,
            free_gradient,
            last.n_steps,
            gradient,
            p,
            dscores,
            at_center,
            centered,
            residual,
        )
        check_finite("the gradient", absolute)
        scale = moments.n_rows / moments.curvature
        if free:
            step = -free_gradient * scale - at_center
            dscores += step
            slope += float(free_gradient @ step)
        if self.projected:
            residual[:k] += free_gradient * np.sqrt(scale)
        line = dscores.reshape(batch.shape), slope, square, product
        eta, stiffness = self._length(batch, last, z, risk, curvature, line, size)

        of_model = risk, value
        if last.average.n:
            risk = batch.risk(of_mean)
            of_model = risk, risk + penalty.of_sums(*at_mean)
        average = replace(last.average, mean=_NO_NUMBERS)
        average = self._averaged(average, _NO_NUMBERS, n, value, *of_model)
        restarts = average.level.alarms
        share = 1.0 if restarts else average.share
        smooth = np.zeros(k)
        if penalty.l1 and free:
            if last.smooth_gradient is not None:
                smooth = last.smooth_gradient
            smooth = smooth + share * (free_gradient - smooth)
        length, n_steps = state.length + eta, last.n_steps + 1
        moved, zeroed = np.zeros((2, k))
        after, largest = own_columns.step(
            own,
            *settings,
            gradient,
            p,
            eta,
            share,
            length,
            n_steps,
            restarts,
            smooth,
            moved,
            zeroed,
        )
        check_finite("the iterate", after[1])
        new = last.iterate
        if free:
            if not penalty.l1:
                moved = eta * at_center
            new = new - eta * free_gradient * scale - moved
        own_gradient = free_gradient[: len(new)]
        if restarts:
            last = self._anew(last, new, value, own_gradient, eta)
        else:
            mean = last.average.mean + share * (new - last.average.mean)
            last = replace(
                last,
                w=mean + zeroed[: len(mean)],
                n_steps=n_steps,
                value=value,
                gradient=own_gradient,
                iterate=new,
                average=replace(average, mean=mean),
                stiffness=stiffness,
                moments=moments,
                smooth_gradient=smooth[: len(new)] if penalty.l1 else None,
                length=eta,
                size=size,
            )
        square = max(state.square - before[0], 0.0)
        absolute = max(state.absolute - before[1], 0.0)
        return ColumnState(
            columns=state.columns.put(columns, own),
            last=last,
            n_scores=k,
            length=length,
            penalty=penalty,
            value=value + penalty.of_sums(square, absolute),
            square=square + after[0],
            absolute=absolute + after[1],
            largest=max(state.largest, largest),
            frequent=columns[centered > 0],
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

    The norm of the averaged gradient has a relative error of about sqrt(2 / m), here 1
    %, and needs no vector of all columns.
    """

    projected = 2**14

    def _takes(self, batch: LinearBatch) -> bool:
        return batch.is_sparse


def is_very_wide(n_coef: int, n_entries: float) -> bool:
    """Whether steps on batches of ``n_entries`` entries are on their own columns."""
    return n_coef > max(_WIDE, _WIDE_SHARE * n_entries)


def _settings(moments: Moments | None, penalty: Penalty, free: bool) -> tuple[Any, ...]:
    """Return the arguments of the kernels that the metric depends on."""
    sums = (_NO_NUMBERS, 1.0, 1)
    if moments is not None:
        sums = moments.curvature, moments.n_rows, moments.n_batches
    return *sums, penalty.l1, penalty.l2, _FREQUENT, free


def _of_intercepts(state: AutoState, n_coef: int) -> AutoState:
    """Return the part of a state for the parameters from ``n_coef`` on."""
    moments, smooth = state.moments, state.smooth_gradient
    if moments is not None:
        moments = replace(moments, hx=_NO_NUMBERS, hxx=_NO_NUMBERS, present=None)
    free = state.w[n_coef:]
    return replace(
        state,
        w=free,
        gradient=state.gradient[n_coef:],
        iterate=state.iterate[n_coef:],
        average=replace(state.average, mean=state.average.mean[n_coef:]),
        moments=moments,
        metric=None,
        block=Block(0, 0, _NO_NUMBERS),
        dw=np.empty((0, len(free))),
        dg=np.empty((0, len(free))),
        smooth_gradient=None if smooth is None else smooth[n_coef:],
    )
