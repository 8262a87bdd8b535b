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

import numpy as np

from ..losses._base import Floats, Mask
from ..memory import COPY_SIZE
from ..regularizers import PartlyFree
from ..rounding import CLOSE, EPS, MOST_STEPS, ROUNDED, rounding
from .bounds import MOST_IMBALANCED
from .objective import Cut, Dual, Point

# Dual variables at their ends change one way only, and those of all rows of a level
# may be there. Where a dual point proves nothing, it goes 1e-8 of the way to the
# middle of the domain, about the root of EPS: rounding is as little of the leeway as
# the way is of the bound.
_INWARD = (0.0, 1e-8)

# Multipliers of bounds may cost a tenth of the allowed gap in all.
_OF_GAP = 0.1

# QR factorizations of eight times as many rows as columns stay in the cache.
# docs/constants.md has the figures.
_ROWS_PER_COLUMN = 8


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
    return best


class _LimitedColumns:
    """The columns whose sums with dual points have limits, and those that are held.

    Parameters
    ----------
    point : Point
    enough : float
        The lower bound that is looked for.

    Attributes
    ----------
    limits : ndarray of shape (n_penalized,)
        The largest |X_jᵀu|, unless bounds of a coefficient allow for more.
    held : ndarray of bool, of shape (n_penalized,)
        Columns whose sums are brought to their limits: free ones without bounds, and of
        the others those that are near, or cost much.
    """

    def __init__(self, point: Point, enough: float) -> None:
        self.objective, self._w = point.objective, point.w
        penalty = self.objective.regularizer
        self.limits = self.objective.alpha * penalty.limits()
        self._free = self.limits == 0.0
        self._most = _OF_GAP * (point.value - enough) / max(self._free.sum(), 1)
        ones = np.ones(len(self.limits))
        ends = penalty.support(ones), penalty.support(-ones)
        self.held = self._free & np.isinf(np.minimum(*ends))
        self._known: tuple[Mask, Floats, Floats] | None = None

    @property
    def are_few(self) -> bool:
        """Whether copies of columns are worth a bound."""
        n_columns = np.count_nonzero(self.held) + self.objective.n_free
        return n_columns * self.objective.design.n_rows <= 8 * COPY_SIZE

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
        others &= ~(most <= self.limits)
        self.held |= others
        return bool(others.any())

    def scaled(self) -> tuple[Floats, Floats]:
        """Return those held and of intercepts, in units of their sizes, and limits."""
        if self._known is None or np.any(self._known[0] != self.held):
            o, held = self.objective, np.flatnonzero(self.held)
            F = np.ones((o.design.n_rows, len(held) + o.n_free))
            F[:, : len(held)] = o.design.dense_columns(held)
            sizes = np.sqrt(o.risk.weights @ np.square(F))
            sizes[sizes == 0.0] = 1.0
            limits = np.zeros(F.shape[1])
            # A little less, so that no sum exceeds its limit by rounding.
            limits[: len(held)] = (1.0 - 4.0 * EPS) * self.limits[held]
            self._known = self.held.copy(), F / sizes, limits / sizes
        return self._known[1:]


def _bound(columns: _LimitedColumns, u: Floats) -> float | None:
    """Return the lower bound of a dual point near u, or minus infinity.

    None where it takes more columns to be held.
    """
    objective, risk = columns.objective, columns.objective.risk
    F, limits = columns.scaled()
    n_columns = F.shape[1]
    aims = np.clip(F.T @ u, -limits, limits)
    size = np.abs(u)
    for _ in range(MOST_STEPS):
        leeway = risk.leeway(u)
        # Rows without leeway take no part. Near a vertex few rows have any.
        rows = np.flatnonzero(leeway)
        room = leeway[rows, np.newaxis]
        some = F[rows] if len(rows) < len(F) else F
        root = _inverse_root(np.sqrt(room) * some)
        change = some @ (root @ (root.T @ (F.T @ u - aims)))
        way = float(np.abs(change).max(initial=0.0))
        # Whole steps may end at the ends: where a level of a category has one class,
        # its dual variables have to be zero. Others go nine tenths of the way there.
        u[rows] -= (1.0 if way <= 1.0 + CLOSE else 0.9 / way) * room[:, 0] * change
        u[np.abs(u) <= CLOSE * size] = 0.0
        # A whole step ends at the aims, and half of the leeway of each row is left.
        if way <= 0.5:
            break
    # What is left is moved in proportion to the leeway before the last step.
    leeway = risk.leeway(u)
    left_over = leeway[rows]
    scale = room[:, 0] / np.maximum(left_over, np.finfo(np.float64).tiny)
    # A point of the domain with sums as aimed at differs from u by at most ``share`` of
    # the leeway, the rounding of these sums included.
    sums, lost = F.T @ u - aims, rounding(len(u)) * (np.abs(F).T @ np.abs(u))
    G = some @ root
    rest = G @ (root.T @ sums)
    most = np.abs(G) @ (np.abs(root).T @ lost) * (1.0 + rounding(n_columns))
    share = float(((np.abs(rest) + most) * scale).max(initial=0.0))
    # What columns that depend on one another leave of the sums comes from rounding.
    beyond = np.eye(n_columns) - some.T @ (room * G) @ root.T
    left = np.abs(beyond @ sums) > 4.0 * np.abs(beyond) @ lost
    if not share <= MOST_IMBALANCED or np.any(left):
        return -np.inf
    error = share * risk.dual_norm(leeway)
    if columns.hold_all_near(u, error):
        return None
    # R* is convex: a share of the way to the ends of the leeway costs no more, of each
    # row whichever way it goes.
    part, half = risk.of_rows(rows) if len(rows) < len(F) else risk, 0.5 * left_over
    ends = [part.conjugate_and_size(u[rows] + x)[1] for x in (0.0, half, -half)]
    height = risk.conjugate_and_size(u)[0] + 2.0 * share * sum(ends)
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


def _inverse_root(columns: Floats) -> Floats:
    """Return R for which R Rᵀ is the inverse of the Gram matrix of columns.

    Their sizes may differ by much, and columns may depend on one another, as indicators
    do beside an intercept. What nearly does so shows in singular values, whose squares,
    the eigenvalues of the Gram matrix, would be lost to rounding.
    """
    if not columns.shape[1]:
        return np.empty((0, 0))
    triangle = _triangle(columns)
    sizes = np.linalg.norm(triangle, axis=0)
    sizes[sizes == 0.0] = 1.0
    _, values, rows = np.linalg.svd(triangle / sizes, full_matrices=False)
    kept = values > ROUNDED * values.max(initial=0.0)
    return np.asarray(rows[kept].T / values[kept] / sizes[:, np.newaxis])


def _triangle(columns: Floats) -> Floats:
    """Return R of the QR factorization, by those of blocks of rows in turn.

    J. Demmel, L. Grigori, M. Hoemmen, J. Langou (2012), Communication-optimal Parallel
    and Sequential QR and LU Factorizations, SIAM J. Sci. Comput. 34.
    """
    size = _ROWS_PER_COLUMN * columns.shape[1]
    while len(columns) > 2 * size:
        blocks = [columns[i : i + size] for i in range(0, len(columns), size)]
        columns = np.concatenate([np.linalg.qr(each, mode="r") for each in blocks])
    return np.asarray(np.linalg.qr(columns, mode="r"))
