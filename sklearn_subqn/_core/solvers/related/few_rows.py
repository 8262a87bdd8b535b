"""The problem of rows near a kink, where all other rows are far from their kinks.

Rows that stay on one side of their kink are taken out: there the loss is linear. Those
of one slope are replaced by one row, their mean, with their total weight. By convexity
its loss is never above theirs; its dual variable, shared out among them, makes up a
dual point of all rows of the same value. So what is proven for the few rows left holds
for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...driver import Iterate, Start
from ...losses._base import Floats, Mask
from ...objectives.objective import Dual, Objective, Point
from ...objectives.risk import Risk
from ...rounding import rounding
from . import Related


class FewRows:
    """The problem of rows near a kink, and of one row for the others of each slope.

    Parameters
    ----------
    objective : Objective
    point : Point
        Has the slopes of the loss in the other rows.
    near : ndarray of bool, shape (n,)

    Attributes
    ----------
    objective : Objective
        Of rows near a kink and then means of others. Weights sum to less than one
        where some of these have no slope: they are left out.
    start : Point
        The same parameters.
    fixed : ndarray of shape (n,)
        The dual point, zero in rows near a kink.
    """

    def __init__(self, objective: Objective, point: Point, near: Mask) -> None:
        o = objective
        self._all, self._whole, self._point = o, o.design, point
        self._rows = np.flatnonzero(near)
        self.fixed = o.risk.subgradient(point.scores)
        self.fixed[near] = 0.0
        self._sides = []
        features, targets, weights, sizes = [], [], [], []
        for rows in (
            np.flatnonzero(self.fixed < 0.0),
            np.flatnonzero(self.fixed > 0.0),
        ):
            if rows.size:
                shares = np.zeros_like(self.fixed)
                shares[rows] = o.weights[rows]
                total = float(shares.sum())
                shares /= total
                self._sides.append((rows, float(self.fixed[rows].sum())))
                features.append(o.design.adjoint(shares)[: o.design.n_features])
                targets.append(float(shares @ o.targets))
                sizes.append(float(shares @ np.abs(o.targets)))
                weights.append(total)
        means = np.reshape(features, (len(features), o.design.n_features))
        self._target_sizes = np.array(sizes)
        self._design = o.design.rows_and(self._rows, means)
        self._rounding = means - means.astype(o.design.dtype)
        self.objective = Objective(
            Risk(
                self._design,
                o.loss,
                np.append(o.targets[self._rows], targets),
                np.append(o.weights[self._rows], weights),
            ),
            o.regularizer,
            o.alpha,
        )
        self.start = self.objective.at(point.w)

    def related(self, is_solved: Callable[[Iterate], bool]) -> Related:
        """Return the problem as one that is related to that of all rows."""
        o, known, before = self._all, self._point, None

        def lift(iterate: Iterate, last: bool) -> Iterate:
            self._whole.count(self._design, self._design.passes)
            self._design.passes = 0.0
            assert iterate.proof is not None, "alm returns its dual points"
            point, dual = known, before
            if last:
                point, dual = o.at(iterate.point.w), self.share_out(iterate.proof.u)
            bound = self.lower_bound(iterate.proof)
            return Iterate(point, None, bound, "near kinks", Dual(dual))

        def lower(start: Start) -> Start:
            nonlocal before
            before = start.dual
            assert before is not None, "of all rows"
            return Start(start.w, self.collect(before), self.start.scores)

        return Related(self.objective, lift, is_solved, np.inf, lower)

    def lower_bound(self, dual: Dual) -> float:
        """Return the bound that a dual point of the few rows proves for all rows.

        Rounding of the means, in units of all rows, is accounted for.
        """
        cut, far = self.objective.cut(dual), dual.u[len(self._rows) :]
        normal = cut.normal.copy()
        normal[: self._design.n_features] += far @ self._rounding
        share = rounding(len(self.fixed))
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
        """Return a dual point of all rows whose value equals that of the few rows."""
        whole = self.fixed.copy()
        whole[self._rows] = dual[: len(self._rows)]
        sums = dual[len(self._rows) :]
        for (rows, most), total in zip(self._sides, sums, strict=True):
            whole[rows] *= total / most
        return whole
