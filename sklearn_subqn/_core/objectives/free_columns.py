"""Lower bounds where a dual point must satisfy column constraints: free columns, L1.

A dual point u proves a bound only if X_jᵀu = 0 for every free column j besides the
intercept, and |X_jᵀu| <= alpha under an L1 norm. Dual points of a problem with a small
penalty, or with a tiny alpha, nearly satisfy these constraints. Rows whose dual
variables may move in both directions correct the rest, each in proportion to its
distance from the boundary: the affine scaling step (Dikin 1967) to a feasible point.

Where a coefficient has bounds, v_j = X_jᵀu is their multiplier and need not vanish. It
contributes the minimum of v_j w_j between the bounds, which is minus infinity without a
bound on that side. Only columns where this minimum is much less than v_j w_j at the
present w are constrained to v_j = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lapack
from ..losses._base import Floats, Mask, Rows
from ..losses._loss import offers
from ..memory import COPY_SIZE
from ..regularizers import PartlyFree
from ..rounding import CLOSE, EPS, MOST_STEPS, ROUNDED, TINY, rounding
from ..rows.design import Design
from .bounds import MOST_IMBALANCED
from .objective import Cut, Dual, Point
from .risk_hessian import RiskHessian
from .risk_of_parts import RiskOfParts

# A dual variable at an end of its interval can move in one direction only. All rows of
# a category level may have such dual variables. If a dual point gives no lower bound,
# it is moved 1e-8 of the way to the middle of the domain. This fraction is about the
# square root of EPS, so that the rounding error of the dual variables and the decrease
# of the lower bound have similar relative sizes.
_INWARD = (0.0, 1e-8)

# Below a relative gap of 1e-6, rounding errors of sums reduce the lower bound more than
# the move into the interior of the domain, which reduces it by a hundredth of this gap.
_CLOSE = 1e-6

# The multipliers of coefficient bounds may reduce the lower bound by at most a tenth of
# the allowed gap in total.
_OF_GAP = 0.1

# Rounding may reduce the lower bound by at most a hundredth of the allowed gap. A cheap
# estimate of this reduction is refined only for rows whose estimate is too large.
_LOST_OF_GAP = 0.01

# Column sums after a Newton step, and changes of scores along directions without
# curvature, count as zero up to ten times the bound on their rounding error.
# docs/constants.md has the figures.
_MOST_ROUNDED = 10.0

# The largest relative error of an eigenvalue of the Hessian that a proof allows.
_EIGENVALUE_ERROR = 0.1


def lower_bound(point: Point, duals: list[Floats], enough: float) -> float:
    """Return the best lower bound that dual points prove, at least the trivial one.

    The search ends at the first dual point that proves ``enough``.

    Parameters
    ----------
    point : Point
        A point of an objective whose regularizer's conjugate has ``limits``.
    duals : list of ndarray of the shape of the scores
        In the domain of R*.
    """
    risk, best = point.objective.risk, point.objective.least
    if risk.design.several_scores or not risk.loss.has_leeway:
        if not risk.design.in_one_place:
            return best
        best = max(best, point.lower_bound)
        if not offers(risk.loss.oracle, "conjugate_near"):
            return best
        return max(best, _bound_of_step(point, _LimitedColumns(point, enough).held))
    if isinstance(risk, RiskOfParts):
        duals, scores = list(map(risk.collected, duals)), risk.collected(point.scores)
        risk = risk.together
        point = point.objective.with_risk(risk).at(point.w, scores, point.drift)
    columns = _LimitedColumns(point, enough)
    for share in _INWARD:
        for u in duals:
            # Otherwise, dual variables that are zero up to rounding would have a tiny
            # leeway.
            u = np.where(np.abs(u) <= CLOSE * risk.weights, 0.0, u)
            u = risk.inward(u, share)
            found = None
            if columns.are_mixed:
                best = max(best, _bound(columns, u.copy(), shrinks=True) or -np.inf)
                if best >= enough:
                    return best
            columns.hold_for(u)
            # Further columns whose sums reach their limits are held as well.
            while found is None and columns.are_few:
                found = _bound(columns, u.copy())
            best = max(best, -np.inf if found is None else found)
            if best >= enough:
                return best
        if is_close(point, best):
            break
    return best


def _bound_of_step(point: Point, held: Mask) -> float:
    """Return the lower bound at the dual point after a step of Newton's method.

    For losses with an upper bound of R* there: u - R'' X p has sums of zero over the
    held columns and the intercepts, for the step p of their coefficients.
    """
    o, u, curvature = point.objective, point.dual, point.curvature
    k = o.design.n_outputs or 1
    whole = held.reshape(-1, k).all(axis=1)
    held = np.repeat(whole, k)
    features = np.flatnonzero(whole)
    design = o.design.of_features(features, fit_intercept=o.n_free > 0)
    n = design.n_params
    if not 0 < n * n <= 2 * COPY_SIZE:
        return -np.inf
    hessian = RiskHessian(design, curvature)
    # Adding a constant to the scores of a row has no effect on some losses of several
    # scores: their first score is fixed.
    fixed = (np.arange(n) % k == 0) & (k > 1 and o.loss.invariant)
    matrix = hessian.matrix()[np.ix_(~fixed, ~fixed)]
    # Entries of losses that compare rows are differences of sums. For columns that are
    # constant in all rows of such a loss, they are rounding errors of any sign.
    bends, terms = np.diag(matrix), hessian.diagonal()[~fixed]
    most = _MOST_ROUNDED * rounding(design.n_rows) * terms
    units = np.sqrt(np.where(bends > most, bends, terms))
    units[units == 0.0] = 1.0
    values, own = lapack.eigh(matrix / np.multiply.outer(units, units))
    vectors = np.zeros((n, len(values)))
    vectors[~fixed] = own / units[:, np.newaxis]
    used = values > ROUNDED * values.max(initial=0.0)
    others, vectors, values = vectors[:, ~used], vectors[:, used], values[used]
    sizes = o.risk.column_sizes[np.append(held, np.ones(o.n_free, dtype=bool))]
    # Long steps along a direction of small curvature may reduce the risk, unless they
    # do not change any score, or all scores alike of a loss that compares rows. Some
    # rows have no effect on the risk, such as rows that are never at risk.
    rows = o.risk.curvature(o.risk.zero_scores()).rows() if others.size else slice(0)
    for v in others.T:
        v = v - vectors @ (vectors.T @ hessian.apply(v) / values)
        most = _MOST_ROUNDED * rounding(n) * float(np.abs(v) @ sizes)
        changes = design.forward(v)[rows]
        changes -= changes.min(axis=0, initial=np.inf) if o.loss.ranks else 0.0
        if np.any(np.abs(changes) > most):
            return -np.inf
    # If features are nearly equal, small eigenvalues may be rounding errors of the
    # matrix. A product with the Hessian, computed from the scores, detects such errors.
    roots = np.sqrt(values)
    products = vectors.T @ hessian.apply(vectors @ (1.0 / roots))
    if np.any(np.abs(products - roots) > _EIGENVALUE_ERROR * roots):
        return -np.inf
    inverse = (vectors / values) @ vectors.T
    p, dual = np.zeros(n), u
    largest = np.argmax(point.scores, axis=-1, keepdims=True)
    for _ in range(2):
        p += inverse @ design.adjoint(dual)
        change = design.forward(p)
        # Only differences have an effect. Those from the largest score, whose share of
        # a sum of exponentials is the largest, make products accurate.
        change -= np.take_along_axis(change, largest, axis=-1)
        dual = u - curvature.apply(change)
    data = o.risk.targets, o.risk.weights
    height = o.loss.oracle.conjugate_near(u, point.scores, change, *data)
    # Another step removes the rounding errors of column sums. The bound is lowered by
    # twice the linear and the quadratic term that this step adds to R*. The errors of
    # the product with R'' are at most those of u, since changes are at most one.
    error = 2.0 * o.risk.distance_at(u, point.scores)
    error += o.risk.distance(u) + o.risk.distance(dual)
    norms = o.risk.dual_norm(u), o.risk.dual_norm(dual)
    error += rounding(len(change)) * sum(norms)
    rest = np.abs(design.adjoint(dual))
    if np.any(rest > _MOST_ROUNDED * error * sizes) or not np.isfinite(height):
        return -np.inf
    rest += error * sizes
    moves = np.abs(inverse) @ rest
    slopes = design.adjoint(curvature.apply(point.scores - 2.0 * change))
    height += 2.0 * float(rest @ (np.abs(inverse @ slopes) + moves))
    # The norm of the change of u by this step, since the diagonal of R'' is at least as
    # large as R'' itself.
    bends = curvature.diagonal().reshape(len(u), -1).sum(axis=1)
    bend = np.divide(bends, o.weights, out=np.zeros(len(u)), where=bends > 0.0).max()
    error += float(np.sqrt(bend * (moves @ rest)))
    cut = o.cut(Dual(dual, None, -height, error, None, 0.0))
    cut.normal[np.flatnonzero(held)] = 0.0
    return o.dual_value(cut)


def is_close(point: Point, bound: float) -> bool:
    """Whether a lower bound is so tight that other dual points hardly improve it."""
    return point.value - bound <= _CLOSE * (point.value - point.objective.least)


class _LimitedColumns:
    """The columns whose sums X_jᵀu have limits, and the columns held at their limits.

    Parameters
    ----------
    point : Point
    enough : float
        The lower bound at which the search may stop, also an attribute.

    Attributes
    ----------
    value : float
        J at the point.
    limits : ndarray of shape (n_penalized,)
        The largest allowed |X_jᵀu|, apart from multipliers of coefficient bounds.
    held : ndarray of bool, of shape (n_penalized,)
        Columns whose sums are moved to their limits: free columns without coefficient
        bounds, and other columns whose sums are near their limits or reduce the lower
        bound much.
    """

    def __init__(self, point: Point, enough: float) -> None:
        self.objective, self._w = point.objective, point.w
        self.value, self.enough = point.value, enough
        penalty = self.objective.regularizer
        self.limits = self.objective.alpha * penalty.limits()
        self._free = self.limits == 0.0
        self._most = _OF_GAP * (point.value - enough) / max(self._free.sum(), 1)
        ones = np.ones(len(self.limits))
        supports = penalty.support(ones), penalty.support(-ones)
        self.held = self._free & np.isinf(np.minimum(*supports))

    @property
    def are_few(self) -> bool:
        """Whether the held columns are few enough for a Gram matrix and a copy."""
        design, n = self.objective.design, np.count_nonzero(self.held)
        # If all columns are held, no copy is needed.
        copied = design.entries_in(self.held) if n < design.n_features else 0.0
        n -= np.count_nonzero(self.held[design.category])
        return max(copied * design.n_rows / 4.0, n * n) <= 2 * COPY_SIZE

    @property
    def are_mixed(self) -> bool:
        """Whether free columns are held, and columns with an L1 norm are not."""
        others = np.isfinite(self.limits) & ~self.held & ~self._free
        return bool(np.any(self.held & self._free) and others.any())

    @property
    def settled(self) -> Mask:
        """Columns whose sums are within their limits and do not change the bound."""
        return np.isfinite(self.limits) & (self.held | ~self._free)

    def hold_for(self, u: Floats) -> None:
        """Hold the columns that a dual point requires to be held."""
        self.hold_all_near(u)
        if np.any(self._free & ~self.held):
            self.hold_costly(self.objective.cut(Dual(u)))

    def hold_costly(self, cut: Cut) -> bool:
        """Hold free columns with costly multipliers; return whether any are new."""
        candidates, penalty = self._free & ~self.held, self.objective.regularizer
        if not candidates.any():
            return False
        assert isinstance(penalty, PartlyFree)
        v, radius = self.objective.conjugate_point(cut)
        lowest = v * self._w[: len(v)]
        costs = self.objective.alpha * (penalty.support_within(v, radius) - lowest)
        candidates &= ~(costs <= self._most)
        self.held |= candidates
        return bool(candidates.any())

    def within_limits(self, sums: Floats) -> float:
        """Return a factor that brings the sums of other columns within limits."""
        others = np.isfinite(self.limits) & ~self.held & ~self._free
        excess = np.abs(sums[: len(self.limits)][others]) / self.limits[others]
        return min(1.0, (1.0 - CLOSE) / max(float(excess.max(initial=0.0)), TINY))

    def hold_all_near(
        self, u: Floats, error: float = 0.0, sums: Floats | None = None
    ) -> bool:
        """Hold columns whose sums may be at their limits; return whether any are new.

        Parameters
        ----------
        u : ndarray of shape (n,)
        error : float
            Bound of the error of u, in ``dual_norm``.
        sums : ndarray of shape (q,), optional
            Xᵀu, if it is known.
        """
        candidates = np.isfinite(self.limits) & ~self.held & ~self._free
        if not candidates.any():
            return False
        risk, n = self.objective.risk, len(self.limits)
        error += rounding(len(u)) * risk.dual_norm(u)
        sums = risk.adjoint(u) if sums is None else sums
        largest = np.abs(sums[:n]) + error * self.objective.column_sizes
        violated = candidates & ~(largest <= self.limits)
        # If most columns are needed, all columns are used, which needs no copy of the
        # rows.
        is_most = 2 * np.count_nonzero(violated | self.held) > n
        self.held |= candidates if is_most else violated
        return bool(violated.any())

    def design_of_held(self) -> Design:
        """Return the design of the held columns, with the intercept if it is free."""
        o, held = self.objective, np.flatnonzero(self.held)
        return o.design.of_features(held, fit_intercept=o.n_free > 0)


def _bound(
    columns: _LimitedColumns, u: Floats, *, shrinks: bool = False
) -> float | None:
    """Return the lower bound of a dual point near u, or minus infinity.

    With ``shrinks``, a factor of at most 1 brings the sums of all columns that are not
    held within their limits. The scaled point is feasible, since the domain is convex
    and contains zero. None if further columns have to be held.
    """
    risk, design = columns.objective.risk, columns.design_of_held()
    limits = np.zeros(design.n_params)
    # The limits are lowered slightly, so that no sum exceeds its limit by rounding.
    limits[: design.n_coef] = (1.0 - 4.0 * EPS) * columns.limits[columns.held]
    sums = design.adjoint(u)
    targets = np.clip(sums, -limits, limits)
    size, length = np.abs(u), np.inf
    for _ in range(MOST_STEPS):
        # A full step that uses at most half of each row's leeway reaches the targets up
        # to rounding errors of the matrix. Further steps with the same matrix correct
        # these errors.
        if length > 0.5:
            leeway = risk.leeway(u)
            # Rows without leeway are left out. Near a vertex of the domain few rows
            # have leeway.
            rows: Any = np.flatnonzero(leeway)
            if 2 * len(rows) <= len(u):
                selected, part = design.rows(rows), risk.of_rows(rows)
            else:
                rows, selected, part = slice(None), design, risk
            widths = leeway[rows]
            inverse = _Inverse(selected, widths)
        last, (change, length) = length, inverse.changes(sums - targets)
        if length <= 0.5 and inverse.is_completed():
            change, length = inverse.changes(sums - targets)
        if length <= ROUNDED or (last <= 0.5 and length > 0.1 * last):
            break
        # A full step may end on the boundary: if all rows of a category level have the
        # same class, their dual variables have to be zero. A step beyond the boundary
        # of the domain is shortened to nine tenths of the way to it.
        change *= 1.0 if length <= 1.0 + MOST_IMBALANCED else 0.9 / length
        u[rows] -= widths * np.clip(change, -1.0, 1.0)
        u[np.abs(u) <= CLOSE * size] = 0.0
        sums = design.adjoint(u)
    normal = None
    if shrinks:
        normal = risk.adjoint(u)
        factor = columns.within_limits(normal)
        u, normal, sums, targets = (factor * a for a in (u, normal, sums, targets))
    # The remaining change is relative to the leeway before the last step.
    remaining = risk.leeway(u)[rows]
    leeway_left = np.maximum(remaining, TINY)
    # R* is convex: a change by a fraction of the leeway increases R* at most by this
    # fraction of the increase at the boundary, for both directions of each row.
    half = 0.5 * remaining
    costs = [part.conjugate_and_size(u[rows] + x)[1] for x in (0.0, half, -half)]
    cost = 2.0 * float(sum(costs))
    # A point of the domain whose sums equal the targets differs from u by at most
    # ``share`` of the leeway, with the rounding of these sums included.
    lost = rounding(len(u)) * design.sizes_of_sums(u)
    # For linearly dependent columns, the remaining residual must be a rounding error.
    if not inverse.reaches(sums - targets, lost):
        return -np.inf
    found: float | None = -np.inf
    affordable = _LOST_OF_GAP * (columns.value - columns.enough) / (cost or 1.0)
    for threshold in sorted({affordable, 0.0}, reverse=True):
        largest = inverse.largest_changes(lost, threshold)
        moves = (np.abs(change) + largest) * widths
        # A change divided by a leeway of zero may overflow; then no bound is proven.
        with np.errstate(over="ignore"):
            share = float((moves / leeway_left).max(initial=0.0))
        if share <= MOST_IMBALANCED:
            found = _bound_near(
                columns, u, share * cost, share * risk.dual_norm(leeway), normal
            )
        if found is None or found >= columns.enough:
            break
    return found


def _bound_near(
    columns: _LimitedColumns,
    u: Floats,
    lost: float,
    error: float,
    normal: Floats | None,
) -> float | None:
    """Return the lower bound of a dual point whose sums are within limits.

    None if further columns have to be held.

    Parameters
    ----------
    columns : _LimitedColumns
    u : ndarray of shape (n,)
    lost : float
        Upper bound of R* at the dual point minus R*(u).
    error : float
        Upper bound of the distance of the dual point from u, in ``dual_norm``.
    normal : ndarray of shape (q,) or None
        Xᵀu, if it is known.
    """
    if columns.hold_all_near(u, error, normal):
        return None
    objective = columns.objective
    height = objective.risk.conjugate_and_size(u)[0] + lost
    if not np.isfinite(height):
        return -np.inf
    cut = objective.cut(Dual(u, normal, -height, error, None, 0.0))
    settled = columns.settled
    cut.normal[np.flatnonzero(settled)] = 0.0
    if columns.hold_costly(cut):
        return None
    # The entries of the cut's normal for settled columns were set to exactly zero, so
    # these columns may be free.
    limited = PartlyFree(objective.regularizer, settled)
    return objective.with_regularizer(limited).dual_value(cut)


class _Inverse:
    """R Rᵀ, the pseudo-inverse of Xᵀ D X.

    If most columns are indicators of one category, they are eliminated. Then ``root``
    and ``null`` are the factors of the Schur complement of the other columns.

    Columns may have very different sizes and be linearly dependent, such as indicators
    beside an intercept. In the matrix, products of nearly vanishing combinations of
    columns are dominated by rounding errors, so they are computed anew from the rows.

    Parameters
    ----------
    design : Design
    weights : ndarray of shape (n,)
        The diagonal of D.

    Attributes
    ----------
    root : ndarray of shape (p, r)
        R, without the nearly vanishing combinations until it is completed.
    null : ndarray of shape (p, m)
        Combinations of columns that are zero up to rounding.
    """

    def __init__(self, design: Design, weights: Floats) -> None:
        self._design, self._weights = design, weights
        self._matrix = matrix = design.bordered_gram(weights)
        own = matrix.diagonal
        self._inverse = np.where(own == 0.0, 0.0, 1.0 / matrix.divisors)
        sizes = np.sqrt(np.diag(matrix.core))
        sizes[sizes == 0.0] = 1.0
        scaled = matrix.complement() / np.multiply.outer(sizes, sizes)
        values, basis = lapack.eigh(scaled)
        least = ROUNDED * values.max(initial=0.0) or 1.0
        basis /= np.multiply.outer(sizes, np.sqrt(np.maximum(values, least)))
        self._lost = np.flatnonzero(values <= least)
        self._basis, self.root = basis, basis[:, values > least]
        self.null = basis[:, :0]

    def changes(self, sums: Floats) -> tuple[Floats, float]:
        """Return changes relative to D that have given sums, and the largest change."""
        matrix = self._matrix
        solution = self.root @ (self.root.T @ matrix.reduced(sums))
        solution = matrix.extended(solution)
        solution[matrix.own] += self._inverse * sums[matrix.own]
        change = self._design.forward(solution)
        change[self._weights == 0.0] = 0.0
        return change, float(np.abs(change).max(initial=0.0))

    def reaches(self, sums: Floats, lost: Floats) -> bool:
        """Whether some change has given sums, up to errors of sums."""
        null, lost = self._matrix.extended(self.null).T, 4.0 * lost
        empty = self._matrix.own[self._inverse == 0.0]
        return bool(
            np.all(np.abs(null @ sums) <= np.abs(null) @ lost)
            and np.all(np.abs(sums[empty]) <= lost[empty])
        )

    def is_completed(self) -> bool:
        """Recompute the nearly vanishing combinations; return whether any exist."""
        if not len(self._lost):
            return False
        basis, lost = self._basis, self._lost
        products = np.eye(basis.shape[1])
        for which in _few(lost, self._design.n_rows):
            several = self._design.of_outputs(len(which))
            scores = several.forward(self._matrix.extended(basis[:, which]).ravel())
            scores *= self._weights[:, np.newaxis]
            crossed = several.adjoint(scores).reshape(-1, len(which))
            products[:, which] = basis.T @ self._matrix.reduced(crossed)
        products[lost] = products[:, lost].T
        values, vectors = lapack.eigh(products)
        basis, kept = basis @ vectors, values > ROUNDED * values.max()
        self._lost = lost[:0]
        self.root, self.null = basis[:, kept] / np.sqrt(values[kept]), basis[:, ~kept]
        return True

    def largest_changes(self, lost: Floats, affordable: float) -> Floats:
        """Bound the relative changes of D that correct rounding errors of sums.

        For most rows the Cauchy-Schwarz inequality gives a bound, since the
        contribution of one row is at most Xᵀ D X. Rows whose bound exceeds
        ``affordable`` are computed exactly.

        Parameters
        ----------
        lost : ndarray of shape (q,)
            Bounds of the errors of the sums.
        affordable : float
        """
        weights, matrix = self._weights, self._matrix
        largest, own = np.zeros(len(weights)), np.zeros(len(lost))
        own[matrix.own] = self._inverse * lost[matrix.own]
        reduced = lost[matrix.others] + abs(matrix.border) @ own[matrix.own]
        parts = np.abs(self.root.T) @ reduced
        norm = 2.0 * float(np.sqrt(parts @ parts + own @ lost))
        np.divide(norm, np.sqrt(weights), out=largest, where=weights > 0.0)
        rows = np.flatnonzero(largest > affordable)
        if len(rows):
            selected = self._design.rows(rows)
            # A row has at most one entry in the columns whose block of the matrix is
            # diagonal.
            sums = np.abs(selected.forward(own))
            for which in _few(np.arange(len(parts)), max(len(rows), len(lost))):
                several = selected.of_outputs(len(which))
                scores = several.forward(matrix.extended(self.root[:, which]).ravel())
                sums += np.abs(scores) @ parts[which]
            sums *= 1.0 + rounding(len(lost))
            largest[rows] = np.minimum(largest[rows], sums)
        return largest


def _few(columns: Rows, n_rows: int) -> list[Rows]:
    """Return chunks of columns whose copies have at most COPY_SIZE entries."""
    size = max(1, COPY_SIZE // max(n_rows, 1))
    return [columns[i : i + size] for i in range(0, len(columns), size)]
