"""What users read of problems as solvers see them: strengths, objectives, proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from .._core.objectives.objective import Objective, Point
from .._solving.solution import Settings, Solution

#: Features without a penalty have this one in units of the curvature of the loss, where
#: there is no other: what others have in units that make them 1e5 times larger. Proofs
#: are without it.
NO_PENALTY = 1e-10

#: Solves a problem as it is, by settings.
Run = Callable[..., Solution]


class Reading:
    """Objectives as they are solved.

    Attributes
    ----------
    has_free : bool
        Whether some features have no penalty.
    """

    has_free: ClassVar[bool] = False

    def strength(self, index: int, alpha: float) -> float:
        """Return the strength of the penalty against the mean loss of a problem."""
        return alpha

    def unit(self, index: int, objective: Objective) -> float:
        """Return what the user reads as an objective of one."""
        return 1.0

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        """Return the objective at a point and a lower bound as the user reads them."""
        unit = self.unit(index, point.objective)
        return unit * point.value, unit * bound

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        """Return the solution of a problem as the user reads it."""
        return run(settings)


@dataclass
class Times(Reading):
    """Objectives times a number."""

    number: float

    def unit(self, index: int, objective: Objective) -> float:
        return self.number
