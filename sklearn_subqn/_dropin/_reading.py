"""Conversion to objectives of scikit-learn: sums of losses, constants, no penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .._core.arrays import Floats
from .._core.objectives.objective import Objective, Point
from .._core.rounding import TINY, running_rounding
from .._problems.reading import NO_PENALTY, Reading, Run
from .._solving.solution import Settings, Solution


@dataclass
class SumOfLosses(Reading):
    """Conversion to objectives with a factor C on the sum of the losses.

    Parameters
    ----------
    totals : list of float
        Sum of the row weights of each problem.
    """

    totals: list[float]

    def strength(self, index: int, alpha: float) -> float:
        total = float(self.totals[index])
        factor = float(alpha) * total
        if not TINY <= factor <= 1.0 / TINY:
            raise ValueError(
                f"C={alpha:g} is too extreme: times {total:g}, the sum of the sample "
                f"weights, it must lie between {TINY:.2g} and {1.0 / TINY:.2g}."
            )
        return 1.0 / factor

    def unit(self, index: int, objective: Objective) -> float:
        return 1.0 / objective.alpha


@dataclass
class SumAndSquares(Reading):
    """Conversion to the sum of the losses plus alpha times the sum of squares.

    Parameters
    ----------
    total : float
        Sum of the row weights.
    level
        See ``Reading``.
    """

    total: float
    level: float = 0.0

    def strength(self, index: int, alpha: float) -> float:
        return 2.0 * alpha / self.total

    def unit(self, index: int, objective: Objective) -> float:
        return self.total


@dataclass
class LessConstant(Reading):
    """Conversion to objectives with a constant that the solver's losses omit.

    Parameters
    ----------
    constant : float
        Constant that is added to objectives.
    """

    constant: float

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        return point.value + self.constant, bound + self.constant

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        solution = run(settings)
        return _moved(solution, self.constant, solution.history.lower_bound)


@dataclass
class NoPenalty(Reading):
    """Conversion to objectives without the tiny penalty of the solver's objectives.

    Parameters
    ----------
    bend : float
        Approximate second derivative of the loss.
    totals : list of float, optional
        Sum of the row weights of each problem, for sums of losses.
    constant : float
        Constant that is added to objectives.
    units, level
        See ``Reading``.
    """

    has_free = True

    bend: float = 1.0
    totals: list[float] | None = None
    constant: float = 0.0
    units: Floats | None = None
    level: float = 0.0

    def strength(self, index: int, alpha: float) -> float:
        return NO_PENALTY * self.bend

    def unit(self, index: int, objective: Objective) -> float:
        return 1.0 if self.totals is None else self.totals[index]

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        unit = self.unit(index, point.objective)
        return unit * point.risk + self.constant, -np.inf

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        solution = run(settings)
        value, _ = self.as_read(index, solution.start.at(objective), -np.inf)
        # A lower bound needs bounded coefficients, which only a penalty implies.
        nothing = [-np.inf] * len(solution.history)
        moved = _moved(solution, value - solution.objective, nothing)
        return replace(moved, objective=value, dual_gap=np.inf)


def _moved(solution: Solution, shift: float, bounds: list[float]) -> Solution:
    """Return a solution with a constant added to objectives and bounds."""
    history = replace(
        solution.history,
        objective=[value + shift for value in solution.history.objective],
        lower_bound=[bound + shift for bound in bounds],
    )
    return replace(solution, objective=solution.objective + shift, history=history)


def without_penalty(
    X: Any, weights: Floats, fit_intercept: bool, **reading: Any
) -> NoPenalty:
    """Return how problems without a penalty are read, by the sizes of their features.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    weights : ndarray of shape (n,)
        Sum to one.
    fit_intercept : bool
    **reading
        See ``NoPenalty``.
    """
    return NoPenalty(units=_units(X, weights, centered=fit_intercept), **reading)


def _units(X: Any, weights: Floats, *, centered: bool) -> Floats:
    """Return units in which columns have a variance or mean square of about one.

    The units are powers of two, so that division by them is exact. Row weights sum to
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
    # A column that is constant up to rounding is scaled by its mean square.
    share = running_rounding(X.shape[0]) ** 2
    spread = np.where(spread > share * squares, spread, squares)
    moments = spread if centered else squares
    moments = np.where(moments > 0.0, moments, 1.0)
    return np.exp2(np.rint(0.5 * np.log2(moments)))
