"""Problems in the units of the originals, or without a penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .._core.losses import Loss
from .._core.objectives.objective import Objective, Point
from .._core.rounding import running_rounding
from .._problems import LinearModel, LinearProblems
from .._problems.linear import NO_PENALTY
from .._solving.callbacks import FitTask
from .._solving.solution import Floats, Solution


class DropInProblems(LinearProblems):
    """Problems of which the user reads another objective than the mean loss has.

    Parameters
    ----------
    model, X, targets, loss, weights, **kwargs
        As of ``LinearProblems``.
    totals : list of float, optional
        Weight of the rows of each problem. If given, the strength of the penalty is the
        factor C on the sum of the losses, else alpha against their mean.
    free : bool
        Whether there is to be no penalty.
    bend : float
        About the second derivative of the loss where there is no penalty.
    constant : float
        Is added to the objectives that the user reads.
    """

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        targets: list[Any],
        loss: Loss,
        weights: Floats,
        *,
        totals: list[float] | None = None,
        free: bool = False,
        bend: float = 1.0,
        constant: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self._totals = totals
        self._free = free
        self._bend = bend
        self._constant = constant
        units = _units(X, weights, centered=model.fit_intercept) if free else None
        super().__init__(model, X, targets, loss, weights, units=units, **kwargs)

    def objective(self, index: int, alpha: float) -> Objective:
        if self._free:
            alpha = NO_PENALTY * self._bend
        elif self._totals is not None:
            alpha = 1.0 / (alpha * self._totals[index])
        return super().objective(index, alpha)

    def _unit(self, index: int, objective: Objective) -> float:
        if self._totals is None:
            return 1.0
        return self._totals[index] if self._free else 1.0 / objective.alpha

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        if self._free:
            value = self._unit(index, point.objective) * point.risk
            return value + self._constant, -np.inf
        value, bound = super().as_read(index, point, bound)
        return value + self._constant, bound + self._constant

    def _solve(
        self, index: int, objective: Objective, settings: Any, task: FitTask
    ) -> Solution:
        solution = super()._solve(index, objective, settings, task)
        gap, bounds = solution.dual_gap, solution.history.lower_bound
        value, shift = solution.objective + self._constant, self._constant
        if self._free:
            value, _ = self.as_read(index, solution.start.at(objective), -np.inf)
            shift = value - solution.objective
            # Proofs need bounded coefficients, and only a penalty bounds them.
            gap, bounds = np.inf, [-np.inf] * len(bounds)
        elif not shift:
            return solution
        history = replace(
            solution.history,
            objective=[value + shift for value in solution.history.objective],
            lower_bound=[bound + shift for bound in bounds],
        )
        return replace(solution, objective=value, dual_gap=gap, history=history)


def _units(X: Any, weights: Floats, *, centered: bool) -> Floats:
    """Return units in which columns have a variance or square of about one.

    They are powers of two, so that dividing by them is exact. Weights of rows sum to
    one.
    """
    if sparse.issparse(X):
        d, data = X.shape[1], X.data.astype(np.float64)
        own = np.repeat(weights, np.diff(X.indptr)) * data
        means = np.bincount(X.indices, own, minlength=d)
        squares = np.bincount(X.indices, own * data, minlength=d)
        spread = squares - means * means
    else:
        squares = np.einsum("i,ij,ij->j", weights, X, X)
        deviations = X - weights @ X
        spread = np.einsum("i,ij,ij->j", weights, deviations, deviations)
    # Columns of one number, except for rounding of their mean, are left to the
    # intercept.
    share = running_rounding(X.shape[0]) ** 2
    spread = np.where(spread > share * squares, spread, squares)
    moments = spread if centered else squares
    moments = np.where(moments > 0.0, moments, 1.0)
    return np.exp2(np.rint(0.5 * np.log2(moments)))
