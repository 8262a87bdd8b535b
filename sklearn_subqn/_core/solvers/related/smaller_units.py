"""Features in large units, which are hardly penalized.

For a column of size s the penalty is effectively divided by s², or by s with an L1
norm. If the penalty is negligible, models of cuts are nearly unbounded along the
column, and rounding errors of its products hide other columns. So the problem is solved
in larger units, with a larger but still negligible penalty. Lower bounds are proven
without this penalty, or for the original penalty.
"""

from __future__ import annotations

import numpy as np

from ...driver import Iterate, Stopping
from ...losses._base import Floats
from ...objectives.free_columns import lower_bound
from ...objectives.objective import Dual, Objective, Point
from ...objectives.risk import Risk
from ...regularizers import L2, PartlyFree
from ...steps.free_mixtures import bound_without, passes_for
from . import Related
from .coordinates import in_coordinates

#: Columns of this size have 1e-12 of the penalty of columns of size one. Larger columns
#: are scaled down to this size.
LARGEST = 1e6


#: Columns whose slopes may exceed this multiple of alpha, the slope of the L1 norm, are
#: scaled down to it. docs/constants.md has the figures.
STEEPEST = 1e6


# An L1 norm above a tenth of the objective is not negligible: rows may be separable.
_MOST_PENALTY = 0.1


def excess(objective: Objective) -> Floats:
    """Return the factor, of shape (d,), by which the unit of each column is too large.

    Parameters
    ----------
    objective : Objective
        Objective with a squared norm or an L1 norm as penalty.
    """
    design, n_coef = objective.design, objective.design.n_coef
    sizes = objective.column_sizes[:n_coef].reshape(design.n_features, -1)[:, 0]
    if isinstance(objective.regularizer, L2):
        return sizes / LARGEST
    # Estimates of the largest slopes, from the column sizes.
    slopes = sizes * objective.risk.dual_norm(objective.origin().dual)
    return np.asarray(slopes / (STEEPEST * objective.alpha))


def smaller_units(objective: Objective, stopping: Stopping) -> Related:
    """Return the problem with columns scaled down to the largest allowed size.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective, or L1-regularized with one score per row.
    stopping : Stopping
        Defines the gap at which the run stops.
    """
    other = _SmallerUnits(objective, stopping)
    related = in_coordinates(objective, stopping, other)
    if isinstance(objective.regularizer, L2):
        return related

    def lift(iterate: Iterate, last: bool) -> Iterate | None:
        point = iterate.point
        if last and point.value - point.risk > _MOST_PENALTY * point.value:
            return None
        return related.lift(iterate, last)

    # Half of the allowed gap is reserved for the difference between the bounds of this
    # problem and of the original one.
    return related._replace(
        lift=lift,
        is_solved=lambda best: best.gap <= 0.5 * stopping.allowed_gap(best.point.value),
    )


class _SmallerUnits:
    """Parameters multiplied by the units, powers of two, by which columns are divided.

    Attributes
    ----------
    objective : Objective
    """

    def __init__(self, objective: Objective, stopping: Stopping) -> None:
        self._whole, self._stopping = objective, stopping
        design, n_coef = objective.design, objective.design.n_coef
        units = np.exp2(np.ceil(np.log2(np.maximum(excess(objective), 1.0))))
        self._units = np.ones(objective.n_params)
        self._units[:n_coef] = np.repeat(units, n_coef // design.n_features)
        smaller = Risk(
            design.divided(units),
            objective.loss,
            objective.targets,
            objective.weights,
        )
        penalty = objective.regularizer
        self.objective = Objective(smaller, penalty, objective.alpha)
        self._free = self.objective.with_regularizer(
            PartlyFree(penalty, self._units[: penalty.n_penalized] > 1.0)
        )
        # Passes over the data to compute lower bounds.
        self._passes = 0.0

    def coordinates(self, w: Floats) -> Floats:
        """Return the coordinates of parameters, with equal scores."""
        return w * self._units

    def point(self, point: Point) -> Point:
        """Return a point as a point of the original objective, with equal scores."""
        return self._whole.at(point.w / self._units, point.scores, point.drift)

    def dual(self, dual: Dual) -> Dual:
        """Return the dual point with the normal of the original units."""
        if dual.normal is None:
            return dual
        return dual._replace(normal=dual.normal * self._units)

    def bound(self, iterate: Iterate, last: bool) -> float:
        """Return the bound for the original penalty, or without it in large units.

        The bound without the penalty is expensive. It is computed at the end, and once
        the run has cost as much.
        """
        cut = iterate.cut
        if cut is None:
            if iterate.proof is None:
                return -np.inf
            cut = self.objective.cut(iterate.proof)
        original = cut._replace(normal=cut.normal * self._units)
        bound = self._whole.dual_value(original)
        if not isinstance(self._whole.regularizer, L2):
            if last and iterate.proof is not None:
                value = iterate.point.value
                enough = value - self._stopping.allowed_gap(value)
                point = self.point(iterate.point)
                near = lower_bound(point, [iterate.proof.u], enough)
                bound = max(bound, near)
            return bound
        passes = passes_for(self._free)
        if last or self._passes + passes <= self.objective.passes:
            self._passes += passes
            bound = max(bound, bound_without(self._free, cut, iterate.point))
        return bound
