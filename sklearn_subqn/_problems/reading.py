"""The user's view of problems: their strength, objective and lower bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from .._core.objectives.objective import Objective, Point
from .._solving.solution import Settings, Solution

#: Strength of the penalty on unpenalized features, in units of the curvature of the
#: loss, if no feature has a penalty. Otherwise such features get units that make them
#: 1e5 times larger, to the same effect. Proofs are without this penalty.
NO_PENALTY = 1e-10

#: Solves a problem in its given form, with settings.
Run = Callable[..., Solution]


class Reading:
    """The user's view of objectives that are solved as they are.

    Attributes
    ----------
    has_free : bool
        Whether some features have no penalty.
    """

    has_free: ClassVar[bool] = False

    def strength(self, index: int, alpha: float) -> float:
        """Return the strength of the solver's penalty against the mean loss."""
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
        """Return the solution of a problem in the user's view."""
        return run(settings)


@dataclass
class Times(Reading):
    """The user's view of objectives that are solved up to a factor."""

    number: float

    def unit(self, index: int, objective: Objective) -> float:
        return self.number
