"""Conversion of the solver's objectives and bounds to the user's objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._core.arrays import Floats
from .._core.objectives.objective import Objective, Point
from .._solving.solution import Settings, Solution

#: Strength of the tiny penalty on unpenalized features, in units of the curvature of
#: the loss, if no feature has a penalty. Otherwise, unpenalized features are multiplied
#: by 1e5, which has the same effect. Lower bounds are for the objective without this
#: penalty.
NO_PENALTY = 1e-10


class Run(NamedTuple):
    """A function that solves a problem with the solver's objective, given settings.

    Attributes
    ----------
    function : callable
    warns : bool
        Whether to warn of what is not proven. Fits on the folds of a search do not,
        since the search warns once.
    """

    function: Callable[..., Solution]
    warns: bool

    def __call__(self, *given: Any, **options: Any) -> Solution:
        """Return the solution."""
        return self.function(*given, **options)


class Reading:
    """Conversion to the user's objectives; here they equal the solver's objectives.

    Attributes
    ----------
    has_free : bool
        Whether some features have no penalty.
    units : ndarray of shape (d,) or None
        Powers of two by which features are divided for the solver.
    level : float
        Constant that was subtracted from the targets, and is added to the user's
        intercepts.
    """

    has_free = False
    units: Floats | None = None
    level: float = 0.0

    def strength(self, index: int, alpha: float) -> float:
        """Return the strength of the solver's penalty relative to the mean loss."""
        return alpha

    def unit(self, index: int, objective: Objective) -> float:
        """Return the factor from the solver's objective to the user's."""
        return 1.0

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        """Return the user's objective at a point, and a lower bound of it."""
        unit = self.unit(index, point.objective)
        return unit * point.value, unit * bound

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        """Return the solution of a problem, with values of the user's objective."""
        return run(settings)


@dataclass
class Times(Reading):
    """Conversion to objectives that are a multiple of the solver's objectives."""

    number: float

    def unit(self, index: int, objective: Objective) -> float:
        return self.number
