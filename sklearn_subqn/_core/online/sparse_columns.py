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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..losses._base import Floats, Rows
from ..records import stored
from .auto import AdaptiveLBFGS, AutoState
from .auto_metric import Moments, centers, make_metric
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

# Changed entries are kept apart from the others while they are at most an eighth of
# all. docs/constants.md has the figures.
_APART = 0.125


@stored
@dataclass(frozen=True)
class Columns:
    """A table of some numbers for each coefficient, of which a step changes few rows.

    Attributes
    ----------
    base : ndarray of shape (c, n)
        The table except for the rows ``changed``. It is shared, and never written to.
    changed : ndarray of shape (r,)
        Rows that have other values, ascending.
    values : ndarray of shape (r, n)
        These values.
    """

    base: Floats
    changed: Rows
    values: Floats

    @classmethod
    def of(cls, base: Floats) -> Columns:
        """Return a table without changes."""
        return cls(base, np.empty(0, dtype=np.intp), base[:0])

    def take(self, rows: Rows) -> Floats:
        """Return ascending rows, of shape (len(rows), n)."""
        taken: Floats = self.base.take(rows, axis=0)
        at, known = self._find(rows)
        taken[known] = self.values[at[known]]
        return taken

    def put(self, rows: Rows, values: Floats) -> Columns:
        """Return the table with other values in ascending rows."""
        if len(self.changed) + len(rows) > _APART * len(self.base):
            base = self.whole()
            base[rows] = values
            return Columns.of(base)
        at, known = self._find(rows)
        new = ~known
        places = at + np.cumsum(new) - new
        kept = np.ones(len(self.changed) + np.count_nonzero(new), dtype=bool)
        kept[places[new]] = False
        changed = np.empty(len(kept), dtype=np.intp)
        table = np.empty((len(kept), values.shape[1]))
        changed[kept], table[kept] = self.changed, self.values
        changed[places], table[places] = rows, values
        return Columns(self.base, changed, table)

    def whole(self) -> Floats:
        """Return a copy of all rows."""
        base = self.base.copy()
        base[self.changed] = self.values
        return base

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
        vars(self).update(vars(Columns.of(base)))

    def _find(self, rows: Rows) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Return where rows are, or belong, among the changed, and whether they are."""
        at = np.searchsorted(self.changed, rows)
        known = at < len(self.changed)
        known[known] = self.changed[at[known]] == rows[known]
        return at, known


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
                frequent = _frequent(np.arange(n_coef), moments, k)
        if state.smooth_gradient is not None and penalty.l1:
            base[:, 7] = state.smooth_gradient[:n_coef]
        base[base.any(axis=1), 5] = state.n_steps
        return cls(
            columns=Columns.of(base),
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
        return replace(own, columns=Columns.of(base), frequent=frequent)

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
        last, l1, l2 = self.last, self.penalty.l1, self.penalty.l2
        w, mean, hx, hxx, length, n_steps = table.T[:6]
        present = smooth = np.zeros_like(w)
        if l1:
            present, smooth = table.T[6:]
        if last.began:
            forgotten = n_steps <= last.began
            hx, hxx, present = (
                np.where(forgotten, 0.0, sums) for sums in (hx, hxx, present)
            )
        scale = center = np.zeros_like(w)
        if last.moments is not None:
            moments = replace(
                last.moments, hx=hx, hxx=hxx, present=present if l1 else None
            )
            centered = len(last.iterate) > len(self.rows)
            metric = make_metric(moments, centered, l2, _FREQUENT)
            scale, center = metric.scale, metric.center
            way = scale * (self.length - length)
            shrunk = np.exp(-l2 * way)
            if l1:
                # Solves dw/dt = -l2 w - l1 sign(w), up to zero.
                gone = l1 * (way if l2 == 0.0 else -np.expm1(-l2 * way) / l2)
                w = np.sign(w) * np.maximum(np.abs(w) * shrunk - gone, 0.0)
            else:
                w = w * shrunk
        n = last.average.n
        lag = _weight(np.maximum(n_steps - (last.n_steps - n), 0.0))
        lag = lag / max(_weight(n), 1.0)
        mean = w + lag * (mean - w)
        model = mean
        if l1:
            smooth = l2 * w + lag * (smooth - l2 * w)
            of_free = np.zeros_like(w)
            if last.smooth_gradient is not None and len(last.iterate) > len(self.rows):
                of_free = np.resize(last.smooth_gradient[len(self.rows) :], len(w))
            target = mean - scale * (smooth - center * of_free)
            model = np.where(np.abs(target) <= l1 * scale, 0.0, mean)
        return np.array([model, w, mean, hx, hxx, present, smooth])


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
        before = table[:, 0]
        square = max(state.square - float(before @ before), 0.0)
        absolute = max(state.absolute - float(np.abs(before).sum()), 0.0)
        length = state.length + new.length
        n = len(rows)
        changed = np.zeros_like(table)
        after = changed[:, 0] = new.iterate[:n]
        changed[:, 1] = new.average.mean[:n]
        frequent = _NONE
        if new.moments is not None:
            changed[:, 2], changed[:, 3] = new.moments.hx, new.moments.hxx
            if new.moments.present is not None:
                changed[:, 6] = new.moments.present
            if batch.fit_intercept:
                frequent = _frequent(rows, new.moments, batch.n_scores)
        if new.smooth_gradient is not None:
            changed[:, 7] = new.smooth_gradient[:n]
        changed[:, 4], changed[:, 5] = length, new.n_steps
        return ColumnState(
            columns=state.columns.put(rows, changed),
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


def _frequent(rows: Rows, moments: Moments, k: int) -> Rows:
    """Return the columns of X that the metric centers for any of k scores.

    ``rows`` are the coefficients that it may be, with their ``moments``.
    """
    return np.unique(rows[centers(moments, _FREQUENT) != 0.0] // k)


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


def _weight(n: Any) -> Any:
    """Return r(n)."""
    return n * (n + 1.0) * (n + 2.0) * (n + 3.0)
