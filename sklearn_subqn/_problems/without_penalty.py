"""Features without a penalty: fits with a small one, proofs without it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._core.objectives.free_columns import lower_bound
from .._core.objectives.objective import Objective, Point
from .._core.regularizers import PartlyFree
from .._core.rounding import rounding
from .._core.rows.design import Design
from .._core.solvers import minimize_intercept
from .._solving.callbacks import FitTask
from .._solving.solution import Settings, Solution, changed
from .._solving.warnings import warn_of_gap
from .solving import Problems


class PartlyPenalized(Problems):
    """Problems of features of which some may have no penalty.

    They are solved with a small one, and their proofs are without it.

    Attributes
    ----------
    design : Design
    free : ndarray of bool, of shape (d,), or None
        Which features have no penalty.
    """

    design: Design
    free: npt.NDArray[np.bool_] | None

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        if self.free is None:
            return super().as_read(index, point, bound)
        # A difference of objectives with and without the small penalty would cancel.
        point = point.under(self._without_free(point.objective))
        return super().as_read(index, point, -np.inf)

    def _solve(
        self, index: int, objective: Objective, settings: Settings, task: FitTask
    ) -> Solution:
        if self.free is None:
            return super()._solve(index, objective, settings, task)
        unit, real = self._unit(index, objective), self._without_free(objective)
        # Objectives below that need no proof.
        least = 1e-6 * abs(unit * real.origin().value)
        # Where the bound without the penalty is no good, the problem is solved anew.
        for more in (1.0, 1e-2, 1e-4):
            closer = changed(settings, tol=more * settings.tol)
            # What a closer run misses is no concern of the user's.
            reported = task if more == 1.0 else FitTask.silent()
            solution = super()._solve(index, objective, closer, reported)
            point = solution.start.at(real)
            duals = [point.dual, *([] if solution.dual is None else [solution.dual])]
            proven = solution.with_proof(point.value, lower_bound(real, duals), unit)
            reached = proven.dual_gap <= settings.tol * max(proven.size, least)
            if reached:
                return proven
            # A run that missed its tolerance misses smaller ones, too.
            if not solution.proven:
                if more == 1.0:
                    return proven
                break
            # Losses of several scores are known by their infimum only.
            if point.dual.ndim > 1 or not objective.loss.has_leeway:
                return proven
        warn_of_gap(self._labels[index], proven, settings.tol)
        return proven

    def _without_free(self, objective: Objective) -> Objective:
        """Return the objective without the small penalty of free features."""
        free = PartlyFree(objective.regularizer, self._free_coef())
        return objective.with_regularizer(free)

    def _free_coef(self) -> npt.NDArray[np.bool_]:
        """Return which coefficients have no penalty, by how many a feature has."""
        assert self.free is not None, "some features are free"
        return np.repeat(self.free, self.design.n_coef // len(self.free))

    def null_point(self, index: int) -> Point:
        """Return the best point with coefficients of free features and intercepts only.

        Its slopes along the other coefficients say from which ``alpha`` on an L1 norm
        has them all zero; so large a one is what the free features are fitted with.
        """
        objective = self.objective(index, 1.0)
        point = minimize_intercept(objective.origin())
        if self.free is None:
            return point
        penalized = np.zeros(self.design.n_params, dtype=bool)
        penalized[: self.design.n_coef] = ~self._free_coef()
        settings = changed(self._settings, tol=1e-8)
        start = self.starts[index]
        alpha = float(np.abs(point.risk_gradient[penalized]).max(initial=0.0)) or 1.0
        w = point.w
        for _ in range(4):
            at_alpha = self.objective(index, alpha)
            w = super()._solve(index, at_alpha, settings, FitTask.silent()).w.copy()
            self.starts[index] = start
            if not w[penalized].any():
                break
            alpha *= 10.0
        w[penalized] = 0.0
        return minimize_intercept(objective.at(w))

    def largest_slope(self, index: int) -> float:
        """Return the largest slope there along a coefficient that has a penalty."""
        origin, n_coef = self.null_point(index), self.design.n_coef
        slopes = np.abs(origin.risk_gradient[:n_coef])
        if self.free is not None:
            slopes[self._free_coef()] = 0.0
        # Sums that cancel except for rounding are zero.
        dual = np.abs(origin.dual)
        squares = self.design.squared_adjoint(dual)[:n_coef]
        sizes = np.sqrt(dual.sum() * squares)
        slopes[slopes <= rounding(len(dual)) * sizes] = 0.0
        return float(slopes.max(initial=0.0))
