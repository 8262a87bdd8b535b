"""Features in large units, of which the penalty asks next to nothing.

A column of size s has the penalty of one of size one divided by s², or by s under an L1
norm. Where that is next to nothing, models of cuts are nearly unbounded along the
column, and its products with others hide theirs. The problem is solved in units that
make it smaller: its penalty grows, and stays next to nothing. Proofs are without it, or
for the original penalty.
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

#: Columns of this size have 1e-12 times the penalty of columns of size one. Larger ones
#: are solved as if they had it.
LARGEST = 1e6


#: Columns whose slopes may be 1e6 times alpha, the L1 norm's, are as large as they may
#: be: larger ones are solved in units in which they are no more. docs/constants.md has
#: the figures.
STEEPEST = 1e6


# An L1 norm that is a tenth of the objective is no small matter: rows may be apart.
_MOST_PENALTY = 0.1


def excess(objective: Objective) -> Floats:
    """Return by how much each column, of shape (d,), is in too large units.

    Parameters
    ----------
    objective : Objective
        With squares or an L1 norm as penalty.
    """
    design, n_coef = objective.design, objective.design.n_coef
    sizes = objective.column_sizes[:n_coef].reshape(design.n_features, -1)[:, 0]
    if isinstance(objective.regularizer, L2):
        return sizes / LARGEST
    # About the largest slopes that columns of such sizes may have.
    slopes = sizes * objective.risk.dual_norm(objective.origin().dual)
    return np.asarray(slopes / (STEEPEST * objective.alpha))


def smaller_units(objective: Objective, stopping: Stopping) -> Related:
    """Return the problem with columns in units that make them no larger than that.

    Parameters
    ----------
    objective : Objective
        L2-regularized, or L1-regularized with one score per row.
    stopping : Stopping
        What gap ends the run.
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

    # What its own proof needs of the gap is left.
    return related._replace(
        lift=lift,
        is_solved=lambda best: best.gap <= 0.5 * stopping.allowed_gap(best.point.value),
    )


class _SmallerUnits:
    """Parameters times the units by which columns are divided, powers of two.

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
        # Passes for proofs.
        self._passes = 0.0

    def coordinates(self, w: Floats) -> Floats:
        """Return parameters of the same scores."""
        return w * self._units

    def point(self, point: Point) -> Point:
        """Return a point as one of the original objective, of the same scores."""
        return self._whole.at(point.w / self._units, point.scores, point.drift)

    def dual(self, dual: Dual) -> Dual:
        """Return a dual point and what is known of it: only its normal is another."""
        if dual.normal is None:
            return dual
        return dual._replace(normal=dual.normal * self._units)

    def bound(self, iterate: Iterate, last: bool) -> float:
        """Return the bound for the original penalty, or for none in large units.

        The latter is for the end, and for runs that have cost as much as it does.
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
