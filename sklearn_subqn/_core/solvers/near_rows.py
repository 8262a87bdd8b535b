"""``alm`` on the rows near a kink, where the start is not far from the optimum.

Most rows end on the side of their kink where they are from the start, and there the
loss is linear. A first Newton step on all rows tells how far each score is going to
move. Rows that stay on their side if it moves about so far are taken out: those of one
slope give way to a single row, their mean, of their total weight. By convexity its loss
is never above theirs; its dual variable, shared out among them, makes up a dual point
of all rows of the same value. So what is proven for the few rows left holds for all.

The solution is evaluated on all rows. Those that did cross join the others, and the
rest is repeated from there.
"""

from __future__ import annotations

import numpy as np

from ..line_search import settle
from ..losses._base import Floats, Mask, rounding
from ..objective import Objective, Point
from .alm import alm, newton_step
from .run import Iterate, Solver

# A score is taken to move by a whole first Newton step and by so much more in units of
# the loss, times the first of these shares for which rows are few enough: else they are
# not worth while.
_MARGIN = 0.1
_SHARES_OF_REACH = (0.5, 0.35, 0.25)
_MOST = 0.3

# Widths of envelopes in units of the loss: of the first step, and after it. The third
# is the factor with which the width goes on where rows have joined.
_FIRST_WIDTH, _WIDTH, _NARROWER = 0.2, 0.1, 0.3

# The few rows are solved for to this share of the tolerance.
_SHARE = 0.5


def near_rows(
    objective: Objective, start: Point, *, dual: Floats | None = None, tol: float = 0.0
) -> Solver:
    """Yield the iterates of ``alm`` on rows near a kink, then on all.

    Parameters
    ----------
    objective : Objective
        Its loss is piecewise linear, with one score per row, and has an envelope.
    start : Point
        Starting point.
    dual : ndarray of shape (n,), optional
        Dual point for the first center; default the subgradient of the loss at
        ``start``.
    tol : float
        Relative gap at which the run is to end.

    Returns
    -------
    status : str
        That of ``alm``.
    """
    loss, targets, weights = objective.loss, objective.targets, objective.weights
    unit = loss.unit(start.scores, targets, weights)
    point, dual, near = _first_step(start, start.dual if dual is None else dual, unit)
    yield Iterate(point, phase="near rows", dual=dual)
    width = _WIDTH * unit
    while np.count_nonzero(near) <= _MOST * len(near):
        few = _FewRows(objective, point, near)
        best, floor = few.start, -np.inf
        for inner in alm(few.objective, few.start, dual=few.collect(dual), width=width):
            bound = few.lower_bound(inner)
            few.count()
            yield Iterate(point, None, bound, "near rows", dual, preparing=True)
            best = min(best, inner.point, key=_value)
            floor = max(floor, inner.lower_bound)
            if best.value - floor <= _SHARE * tol * abs(best.value):
                break
        assert inner.dual is not None, "alm tells its dual points"
        dual = few.share_out(inner.dual)
        point = objective.at(best.w)
        yield Iterate(point, None, bound, "near rows", dual)
        crossed = ~near & (loss.subgradient(point.scores, targets, weights) != few.far)
        if not crossed.any():
            break
        near |= crossed
        width *= _NARROWER
    return (yield from alm(objective, point, dual=dual, width=width))


def _first_step(start: Point, dual: Floats, unit: float) -> tuple[Point, Floats, Mask]:
    """Return point and dual after a Newton step, and which rows are near a kink."""
    o = start.objective
    args = o.targets, o.weights
    center = o.loss.dual_variables(dual, *args)
    smooth = o.with_loss(o.loss.envelope(center, _FIRST_WIDTH * unit))
    line, step = newton_step(settle(start.under(smooth)))
    moved = settle(line.point(step))
    for share in _SHARES_OF_REACH:
        reach = share * (np.abs(line.dscores) + _MARGIN * unit)
        lower = o.loss.subgradient(moved.scores - reach, *args)
        near = lower != o.loss.subgradient(moved.scores + reach, *args)
        if np.count_nonzero(near) <= _MOST * len(near):
            break
    return moved.under(o), moved.dual, near


def _value(point: Point) -> float:
    return point.value


class _FewRows:
    """The problem of near rows, and of one row for the far ones of each slope.

    Parameters
    ----------
    objective : Objective
    point : Point
        Tells the slopes of the loss in far rows.
    near : ndarray of bool, shape (n,)

    Attributes
    ----------
    objective : Objective
        Of near rows and then means of far ones. Their weights sum to less than one
        where there are far rows without a slope, which are left out.
    start : Point
        The same parameters.
    far : ndarray of shape (n,)
        The dual point, zero in near rows.
    """

    def __init__(self, objective: Objective, point: Point, near: Mask) -> None:
        o = objective
        self._all, self._whole = o, o.design
        self._rows = np.flatnonzero(near)
        self.far = o.loss.subgradient(point.scores, o.targets, o.weights)
        self.far[near] = 0.0
        self._sides = []
        features, targets, weights, sizes = [], [], [], []
        for rows in (np.flatnonzero(self.far < 0.0), np.flatnonzero(self.far > 0.0)):
            if rows.size:
                shares = np.zeros_like(self.far)
                shares[rows] = o.weights[rows]
                total = float(shares.sum())
                shares /= total
                self._sides.append((rows, float(self.far[rows].sum())))
                features.append(o.design.adjoint(shares)[: o.design.n_features])
                targets.append(float(shares @ o.targets))
                sizes.append(float(shares @ np.abs(o.targets)))
                weights.append(total)
        means = np.reshape(features, (len(features), o.design.n_features))
        self._target_sizes = np.array(sizes)
        self._design = o.design.rows_and(self._rows, means)
        self._rounding = means - means.astype(o.design.dtype)
        self.objective = Objective(
            self._design,
            np.append(o.targets[self._rows], targets),
            o.loss,
            o.regularizer,
            o.alpha,
            np.append(o.weights[self._rows], weights),
        )
        self.start = self.objective.at(point.w)

    def lower_bound(self, inner: Iterate) -> float:
        """Return the bound that an iterate of ``alm`` proves for all rows.

        Rounding of the means, in units of all rows, is charged.
        """
        dual, cut = inner.dual, inner.proof
        assert dual is not None, "alm tells its dual points"
        assert cut is not None, "and the cuts that they prove"
        far = dual[len(self._rows) :]
        normal = cut.normal.copy()
        normal[: self._design.n_features] += far @ self._rounding
        share = rounding(len(self.far))
        error = cut.error + share * cut.norm
        offset = cut.offset - share * float(np.abs(far) @ self._target_sizes)
        return self._all.dual_value(
            cut._replace(normal=normal, offset=offset, error=error)
        )

    def collect(self, dual: Floats) -> Floats:
        """Return the dual point of the few rows from one of all rows."""
        sums = [float(dual[rows].sum()) for rows, _ in self._sides]
        return np.append(dual[self._rows], sums)

    def share_out(self, dual: Floats) -> Floats:
        """Return the dual point of all rows of the same value."""
        whole = self.far.copy()
        whole[self._rows] = dual[: len(self._rows)]
        sums = dual[len(self._rows) :]
        for (rows, most), total in zip(self._sides, sums, strict=True):
            whole[rows] *= total / most
        return whole

    def count(self) -> None:
        """Count the products so far for all rows."""
        self._whole.count(self._design, self._design.passes)
        self._design.passes = 0.0
