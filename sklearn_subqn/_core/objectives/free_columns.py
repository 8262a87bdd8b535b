"""Lower bounds where dual points have to fit columns: free ones, and an L1 norm's.

A dual point u proves one if X_jᵀu = 0 for all free columns j, besides those of
intercepts, and at most alpha under an L1 norm. Those of a problem with a small penalty,
or of a tiny alpha, nearly have that. Rows whose dual variables may change either way
make up for the rest, each in proportion to how far: the way of affine scaling (Dikin
1967) to feasible points.

Where a coefficient has bounds, v_j = X_jᵀu is their multiplier and need not vanish. The
least v_j w_j between them is what J has there, and minus infinity without a bound on
that side. Only columns of which that is much less than at w are brought to v_j = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lapack
from ..losses._base import Floats, Mask, Rows
from ..memory import COPY_SIZE
from ..regularizers import PartlyFree
from ..rounding import CLOSE, EPS, MOST_STEPS, ROUNDED, rounding
from ..rows.design import Design
from .bounds import MOST_IMBALANCED
from .objective import Cut, Dual, Point

# Dual variables at their ends change one way only, and those of all rows of a level
# may be there. Where a dual point proves nothing, it goes 1e-8 of the way to the
# middle of the domain, about the root of EPS: rounding is as little of the leeway as
# the way is of the bound.
_INWARD = (0.0, 1e-8)

# Gaps of a millionth of the objective owe more to the rounding of sums than to the way
# inward, which costs a hundredth of that.
_CLOSE = 1e-6

# Multipliers of bounds may cost a tenth of the allowed gap in all.
_OF_GAP = 0.1

# What a bound loses by rounding may be a hundredth of the allowed gap. It is known with
# little work, and with more for the rows of which that says too much.
_LOST_OF_GAP = 0.01


def lower_bound(point: Point, duals: list[Floats], enough: float) -> float:
    """Return the best lower bound that dual points prove, or that of the infimum.

    Dual points after one that proves ``enough`` are not looked at.

    Parameters
    ----------
    point : Point
        Of an objective the conjugate of whose regularizer has ``limits``.
    duals : list of ndarray of the shape of the scores
        In the domain of R*.
    """
    risk, best = point.objective.risk, point.objective.least
    if duals[0].ndim > 1 or not risk.in_one_place:
        return best
    if not risk.loss.has_leeway:
        return max(best, point.lower_bound)
    columns = _LimitedColumns(point, enough)
    for share in _INWARD:
        for u in duals:
            # What rounding leaves of variables that vanish would have no leeway.
            u = np.where(np.abs(u) <= CLOSE * risk.weights, 0.0, u)
            u = risk.inward(u, share)
            columns.hold_for(u)
            found = None
            # Where others come to their limits, these are held, too.
            while found is None and columns.are_few:
                found = _bound(columns, u.copy())
            best = max(best, -np.inf if found is None else found)
            if best >= enough:
                return best
        if is_close(point, best):
            break
    return best


def is_close(point: Point, bound: float) -> bool:
    """Whether a bound leaves so little that other dual points hardly leave less."""
    return point.value - bound <= _CLOSE * (point.value - point.objective.least)


class _LimitedColumns:
    """The columns whose sums with dual points have limits, and those that are held.

    Parameters
    ----------
    point : Point
    enough : float
        The lower bound that is looked for, also an attribute.

    Attributes
    ----------
    value : float
        J at the point.
    limits : ndarray of shape (n_penalized,)
        The largest |X_jᵀu|, unless bounds of a coefficient allow for more.
    held : ndarray of bool, of shape (n_penalized,)
        Columns whose sums are brought to their limits: free ones without bounds, and of
        the others those that are near, or cost much.
    """

    def __init__(self, point: Point, enough: float) -> None:
        self.objective, self._w = point.objective, point.w
        self.value, self.enough = point.value, enough
        penalty = self.objective.regularizer
        self.limits = self.objective.alpha * penalty.limits()
        self._free = self.limits == 0.0
        self._most = _OF_GAP * (point.value - enough) / max(self._free.sum(), 1)
        ones = np.ones(len(self.limits))
        ends = penalty.support(ones), penalty.support(-ones)
        self.held = self._free & np.isinf(np.minimum(*ends))
        self._known: tuple[Mask, Design] | None = None

    @property
    def are_few(self) -> bool:
        """Whether their products with each other, and copies, are worth a bound."""
        design, n = self.objective.design, np.count_nonzero(self.held)
        # Nothing is copied if all columns are held.
        copied = design.entries_in(self.held) if n < design.n_features else 0.0
        return max(copied * design.n_rows / 4.0, n * n) <= 2 * COPY_SIZE

    @property
    def settled(self) -> Mask:
        """Columns whose sums are within their limits, where they cost nothing."""
        return np.isfinite(self.limits) & (self.held | ~self._free)

    def hold_for(self, u: Floats) -> None:
        """Hold the columns that a dual point asks for."""
        self.hold_all_near(u)
        if np.any(self._free & ~self.held):
            self.hold_costly(self.objective.cut(Dual(u)))

    def hold_costly(self, cut: Cut) -> bool:
        """Hold free columns whose multipliers cost much; whether there are new ones."""
        others, penalty = self._free & ~self.held, self.objective.regularizer
        if not others.any():
            return False
        assert isinstance(penalty, PartlyFree)
        v, radius = self.objective.conjugate_point(cut)
        least = v * self._w[: len(v)]
        costs = self.objective.alpha * (penalty.support_within(v, radius) - least)
        others &= ~(costs <= self._most)
        self.held |= others
        return bool(others.any())

    def hold_all_near(self, u: Floats, error: float = 0.0) -> bool:
        """Hold columns whose sums may be at their limits; whether there are new ones.

        Parameters
        ----------
        u : ndarray of shape (n,)
        error : float
            How much each u_i may be off, by the norm of them all.
        """
        others = np.isfinite(self.limits) & ~self.held & ~self._free
        if not others.any():
            return False
        risk, n = self.objective.risk, len(self.limits)
        error += rounding(len(u)) * risk.dual_norm(u)
        most = np.abs(risk.adjoint(u)[:n]) + error * self.objective.column_sizes
        near = others & ~(most <= self.limits)
        # Where most are near, rows with all columns need no copy.
        is_most = 2 * np.count_nonzero(near | self.held) > n
        self.held |= others if is_most else near
        return bool(near.any())

    def design_of_held(self) -> Design:
        """Return the design of those held, and of an intercept that is free."""
        if self._known is None or np.any(self._known[0] != self.held):
            o = self.objective
            held = np.flatnonzero(self.held)
            design = o.design.of_features(held, fit_intercept=o.n_free > 0)
            self._known = self.held.copy(), design
        return self._known[1]


def _bound(columns: _LimitedColumns, u: Floats) -> float | None:
    """Return the lower bound of a dual point near u, or minus infinity.

    None where it takes more columns to be held.
    """
    risk, design = columns.objective.risk, columns.design_of_held()
    limits = np.zeros(design.n_params)
    # A little less, so that no sum exceeds its limit by rounding.
    limits[: design.n_coef] = (1.0 - 4.0 * EPS) * columns.limits[columns.held]
    sums = design.adjoint(u)
    aims = np.clip(sums, -limits, limits)
    size, way = np.abs(u), np.inf
    for _ in range(MOST_STEPS):
        # A whole step that leaves half of the leeway of each row ends at the aims, but
        # for the rounding of the matrix, which further ones with it make up for.
        if way > 0.5:
            leeway = risk.leeway(u)
            # Rows without leeway take no part. Near a vertex few rows have any.
            rows: Any = np.flatnonzero(leeway)
            if 2 * len(rows) <= len(u):
                some, part = design.rows(rows), risk.of_rows(rows)
            else:
                rows, some, part = slice(None), design, risk
            room = leeway[rows]
            inverse = _Inverse(some, room)
        last, (change, way) = way, inverse.changes(sums - aims)
        if way <= 0.5 and inverse.is_completed():
            change, way = inverse.changes(sums - aims)
        if way <= ROUNDED or (last <= 0.5 and way > 0.1 * last):
            break
        # Whole steps may end at the ends: where a level of a category has one class,
        # its dual variables have to be zero. Others go nine tenths of the way there.
        change *= 1.0 if way <= 1.0 + MOST_IMBALANCED else 0.9 / way
        u[rows] -= room * np.clip(change, -1.0, 1.0)
        u[np.abs(u) <= CLOSE * size] = 0.0
        sums = design.adjoint(u)
    # What is left is moved in proportion to the leeway before the last step.
    left_over = risk.leeway(u)[rows]
    scale = room / np.maximum(left_over, np.finfo(np.float64).tiny)
    # R* is convex: a share of the way to the ends of the leeway costs no more, of each
    # row whichever way it goes.
    half = 0.5 * left_over
    ends = [part.conjugate_and_size(u[rows] + x)[1] for x in (0.0, half, -half)]
    cost = 2.0 * float(sum(ends))
    # A point of the domain with sums as aimed at differs from u by at most ``share`` of
    # the leeway, the rounding of these sums included.
    lost = rounding(len(u)) * design.sizes_of_sums(u)
    # What columns that depend on one another leave of the sums comes from rounding.
    null = inverse.null.T
    if np.any(np.abs(null @ (sums - aims)) > 4.0 * np.abs(null) @ lost):
        return -np.inf
    found: float | None = -np.inf
    affordable = _LOST_OF_GAP * (columns.value - columns.enough) / (cost or 1.0)
    for each in sorted({affordable, 0.0}, reverse=True):
        most = inverse.largest_changes(lost, each)
        share = float(((np.abs(change) + most) * scale).max(initial=0.0))
        if share <= MOST_IMBALANCED:
            found = _bound_near(
                columns, u, share * cost, share * risk.dual_norm(leeway)
            )
        if found is None or found >= columns.enough:
            break
    return found


def _bound_near(
    columns: _LimitedColumns, u: Floats, lost: float, error: float
) -> float | None:
    """Return the lower bound of a dual point whose sums are within limits.

    None where it takes more columns to be held.

    Parameters
    ----------
    columns : _LimitedColumns
    u : ndarray of shape (n,)
    lost : float
        How much its R* may be above that of u.
    error : float
        How far it may be from u, by the norm of them all.
    """
    if columns.hold_all_near(u, error):
        return None
    objective = columns.objective
    height = objective.risk.conjugate_and_size(u)[0] + lost
    if not np.isfinite(height):
        return -np.inf
    cut = objective.cut(Dual(u, None, -height, error, None, 0.0))
    settled = columns.settled
    cut.normal[np.flatnonzero(settled)] = 0.0
    if columns.hold_costly(cut):
        return None
    # Zeros of parameters that are free are exact.
    limited = PartlyFree(objective.regularizer, settled)
    return objective.with_regularizer(limited).dual_value(cut)


class _Inverse:
    """R Rᵀ, the inverse of Xᵀ D X where that does not vanish.

    Columns may be of very different sizes, and depend on one another, as indicators do
    beside an intercept. Combinations of columns that nearly vanish are lost to rounding
    in the matrix: their products are made anew, by the rows.

    Parameters
    ----------
    design : Design
    weights : ndarray of shape (n,)
        The diagonal of D.

    Attributes
    ----------
    root : ndarray of shape (q, r)
        R, without those combinations until it is completed.
    null : ndarray of shape (q, m)
        Combinations of columns that vanish, up to rounding.
    """

    def __init__(self, design: Design, weights: Floats) -> None:
        self._design, self._weights = design, weights
        matrix = design.gram(weights)
        sizes = np.sqrt(np.diag(matrix))
        sizes[sizes == 0.0] = 1.0
        values, basis = lapack.eigh(matrix / np.multiply.outer(sizes, sizes))
        least = ROUNDED * values.max(initial=0.0) or 1.0
        basis /= np.multiply.outer(sizes, np.sqrt(np.maximum(values, least)))
        self._lost = np.flatnonzero(values <= least)
        self._basis, self.root = basis, basis[:, values > least]
        self.null = basis[:, :0]

    def changes(self, sums: Floats) -> tuple[Floats, float]:
        """Return by what shares of D rows make up for sums, and the largest share."""
        change = self._design.forward(self.root @ (self.root.T @ sums))
        change[self._weights == 0.0] = 0.0
        return change, float(np.abs(change).max(initial=0.0))

    def is_completed(self) -> bool:
        """Find out about lost combinations of columns; whether there are any."""
        if not len(self._lost):
            return False
        basis, lost = self._basis, self._lost
        products = np.eye(len(basis))
        for which in _few(lost, self._design.n_rows):
            several = self._design.of_outputs(len(which))
            scores = several.forward(basis[:, which].ravel())
            scores *= self._weights[:, np.newaxis]
            crossed = several.adjoint(scores).reshape(-1, len(which))
            products[:, which] = basis.T @ crossed
        products[lost] = products[:, lost].T
        values, vectors = lapack.eigh(products)
        basis, kept = basis @ vectors, values > ROUNDED * values.max()
        self._lost = lost[:0]
        self.root, self.null = basis[:, kept] / np.sqrt(values[kept]), basis[:, ~kept]
        return True

    def largest_changes(self, lost: Floats, affordable: float) -> Floats:
        """Return by what shares of D rows may change for what rounding does to sums.

        Of most rows by the inequality of Cauchy and Schwarz, since no row has more than
        all of Xᵀ D X, unless that is more than is affordable.

        Parameters
        ----------
        lost : ndarray of shape (q,)
            By how much sums may be off.
        affordable : float
        """
        weights, parts = self._weights, np.abs(self.root.T) @ lost
        most = np.zeros(len(weights))
        norm = 2.0 * float(np.linalg.norm(parts))
        np.divide(norm, np.sqrt(weights), out=most, where=weights > 0.0)
        rows = np.flatnonzero(most > affordable)
        if len(rows):
            some, sums = self._design.rows(rows), np.zeros(len(rows))
            for which in _few(np.arange(len(parts)), len(rows)):
                several = some.of_outputs(len(which))
                scores = several.forward(self.root[:, which].ravel())
                sums += np.abs(scores) @ parts[which]
            sums *= 1.0 + rounding(len(lost))
            most[rows] = np.minimum(most[rows], sums)
        return most


def _few(columns: Rows, n_rows: int) -> list[Rows]:
    """Return parts of columns that are no more than copies may take at once."""
    size = max(1, COPY_SIZE // max(n_rows, 1))
    return [columns[i : i + size] for i in range(0, len(columns), size)]
