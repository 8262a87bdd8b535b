"""Starting points of runs, and iterates: points with proven lower bounds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from ..losses._base import Floats
from ..objectives.objective import Cut, Dual, Objective, Point
from ..steps.intercepts import minimize_intercept
from .stopping import Status


class Start(NamedTuple):
    """The starting point of a run, with a dual point if one is known.

    Attributes
    ----------
    w : ndarray of shape (q,)
        Parameters.
    dual : ndarray or None
        A dual point of a similar problem, of the shape of the scores.
    scores : ndarray or None
        Scores Xw, where they are known.
    drift : float
        Accumulated size of updates of the scores, see ``Point.drift``.
    origin : Point or None
        A nearby point, whose risk gradient may be updated to the gradient at w.
    """

    w: Floats
    dual: Any = None
    scores: Any = None
    drift: float = 0.0
    origin: Point | None = None

    def at(self, objective: Objective) -> Point:
        """Return the starting point."""
        if self.scores is None:
            return objective.at(self.w)
        return objective.at(self.w, self.scores, self.drift, self.origin)

    def or_origin(self, objective: Objective) -> Point:
        """Return the starting point, or w = 0 if its objective is lower.

        The solution for other data, or in other units, may have a far larger objective
        than w = 0, in a region where the loss has no curvature. Intercepts are
        optimized first.
        """
        point = minimize_intercept(self.at(objective))
        if not self.w.any():
            return point
        origin = minimize_intercept(objective.origin())
        return origin if origin.value < point.value else point

    @classmethod
    def from_point(cls, point: Point, dual: Any = None) -> Start:
        """Return the start at a point of an objective with the same data."""
        return cls(point.w, dual, point.scores, point.drift, point.evaluated())


class Iterate(NamedTuple):
    """The result of one iteration.

    Attributes
    ----------
    point : Point
        The point that the solver has reached.
    cut : Cut or None
        A lower bound of the risk, for the driver's bundle. Without a ``proof``, this
        cut proves ``lower_bound``.
    lower_bound : float
        A lower bound of the objective that the solver has computed.
    phase : str
        Name of the method that made the iterate, for the history.
    proof : Dual or None
        The dual point that proves ``lower_bound``, or another dual point from which a
        run on a similar problem may start.
    preparing : bool
        Whether the solver still works on a similar problem, during which the driver
        does not test for a stall.
    """

    point: Any
    cut: Cut | None = None
    lower_bound: float = -np.inf
    phase: str = ""
    proof: Dual | None = None
    preparing: bool = False

    @property
    def dual(self) -> Any:
        """The dual u of ``proof``, None without one."""
        return None if self.proof is None else self.proof.u

    @property
    def gap(self) -> float:
        """Objective - lower_bound, at least zero."""
        return float(max(self.point.value - self.lower_bound, 0.0))

    @property
    def start(self) -> Start:
        """The start that this iterate gives to a run on a similar problem."""
        return Start.from_point(self.point, self.dual)

    def or_better(self, new: Iterate) -> Iterate:
        """Return the better point of two iterates, with the better bound and its proof.

        All other fields are taken from this iterate.
        """
        (point, cut, bound), proof = self[:3], self.proof
        if new.point.value <= point.value:
            point = new.point
        if new.lower_bound >= bound:
            cut, bound = new.cut, new.lower_bound
            proof = new.proof or proof
        return self._replace(point=point, cut=cut, lower_bound=bound, proof=proof)


#: A solver yields iterates. A solver that ends by itself returns the reason, or another
#: solver that continues the run.
Solver = Generator[Iterate, None, "Status | Solver | Chosen"]


class Chosen(NamedTuple):
    """A solver that continues the run of the solver that has chosen it.

    Attributes
    ----------
    solver : Solver
    plan : str
        How the problem will be solved.
    why : callable or None
        Returns lines that explain the choice.
    """

    solver: Solver
    plan: str
    why: Callable[[], list[str]] | None = None


def to_the_end(solver: Solver) -> Solver:
    """Yield the iterates of a solver, and of the solvers that continue its run."""
    end: Status | Solver | Chosen = solver
    while isinstance(end, Generator | Chosen):
        end = yield from (end.solver if isinstance(end, Chosen) else end)
    return end
