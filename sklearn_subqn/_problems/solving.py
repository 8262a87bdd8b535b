"""The problems of one model: from data to objectives and back to attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from .._core.arrays import Floats
from .._core.objectives.objective import Objective, Point
from .._core.objectives.risk import Risk
from .._core.solvers import Start
from .._solving.callbacks import FitTask
from .._solving.report import Report
from .._solving.solution import Callback, Problem, Settings, Solution, Watch
from .._solving.solve import solve
from .reading import Reading, Run

_Result = TypeVar("_Result")


class Elsewhere(Protocol):
    """Rows that are in other processes, or not all in memory at once."""

    def risk(self, index: int) -> Risk:
        """Return the risk of all rows in a problem."""

    def solve(self, problems: Any, alpha: Any, task: FitTask) -> list[Solution]:
        """Solve the problems, and resume after a loss of rows."""

    def asked(self, step: Callable[[], _Result]) -> _Result:
        """Return the result of a step, which is repeated after a loss of rows."""


class Problems(ABC):
    """The problems of one model, which can be solved for several alphas in turn.

    Parameters
    ----------
    settings : Settings
        Settings for solving, mostly the estimator itself.
    labels : list of str
        Names of the problems, for messages.
    starts : list of Start
        The present start of each problem.
    dtype : dtype
        Type in which coefficients will be stored.

    Attributes
    ----------
    starts : list of Start
        The present starts; ``solve`` sets each to its solution.
    outputs : sequence or None
        The output of each of several problems, such as a class.
    reading : Reading or None
        Conversion to the user's objectives, if the solver's objectives differ.
    several : bool
        Whether attributes are arrays with one entry for each problem.
    watch : Watch or None
        Inspects the model after each iteration.
    elsewhere : Elsewhere or None
        Access to all rows, if the problems do not contain them.
    """

    outputs: Any = None
    reading: Reading | None = None
    watch: Watch | None = None
    elsewhere: Elsewhere | None = None

    def __init__(
        self, settings: Settings, labels: list[str], starts: list[Start], dtype: Any
    ) -> None:
        self.settings = settings
        self._labels = labels
        self.starts = starts
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def several(self) -> bool:
        return len(self.starts) > 1

    @abstractmethod
    def objective(self, index: int, alpha: float) -> Objective:
        """Return the objective of a problem."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the attributes for predictions, at the present starts."""

    @abstractmethod
    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from the attributes of a previous fit, if its shape is the same."""

    def start_at(self, coef: Any, intercept: Any) -> None:
        """Start from coefficients and intercepts given by the user."""
        # Only problems with linear scores take starts, and override this method.
        raise NotImplementedError

    def solve(
        self, alpha: Any, task: FitTask, *, here: bool = False, final: bool = False
    ) -> list[Solution]:
        """Solve each problem from its present start, for one alpha or one for each.

        If the rows are elsewhere, the fit resumes after a loss of rows; with ``here``
        it does not. With ``final`` no further fit starts from the solutions, which then
        keep neither scores nor dual points.
        """
        if self.elsewhere is not None and not here:
            return self.elsewhere.solve(self, alpha, task)
        solutions = []
        alphas = np.ravel(alpha).tolist()
        alphas = alphas * len(self.starts) if len(alphas) == 1 else alphas
        for index, own in enumerate(alphas):
            objective = self.objective(index, own)
            if self.reading is None:
                solution = solve(self.problem(index, objective), self.settings, task)
                self.starts[index] = solution.start
            else:
                solution = self._solve(index, objective, self.settings, task)
            if final:
                self.starts[index] = solution.start = Start(solution.start.w)
            solutions.append(solution)
        return solutions

    def run(
        self,
        index: int,
        alpha: float,
        callback: Callback,
        watch: Watch,
    ) -> Solution:
        """Solve a problem within another fit, with its ``callback`` for reports."""
        settings = self.settings._replace(callback=callback, verbose=0)
        self.watch, task = watch, FitTask.silent()
        return self._solve(index, self.objective(index, alpha), settings, task)

    def reporter(self, index: int, task: FitTask) -> Report:
        """Return the object that reports a run on a problem to the user."""
        fitted = partial(self._fitted, index)
        label, settings = self._labels[index], self.settings
        return Report(label, fitted, self.watch, settings, task)

    def _solve(
        self, index: int, objective: Objective, settings: Settings, task: FitTask
    ) -> Solution:
        """Solve a problem from its present start; values are in the user's units."""
        if self.reading is None:
            return self.run_once(index, objective, settings, task)
        run = Run(partial(self.run_once, index, objective, task=task), task.warns)
        return self.reading.solve(index, objective, settings, run)

    def run_once(
        self,
        index: int,
        objective: Objective,
        settings: Settings,
        task: FitTask,
        prove: Callable[[Point], float] | None = None,
    ) -> Solution:
        """Solve a problem from its present start, in the user's units.

        ``prove`` returns another lower bound of the objective from a point.
        """
        problem = self.problem(index, objective)._replace(prove=prove)
        solution = solve(problem, settings, task)
        self.starts[index] = solution.start
        return solution

    def problem(self, index: int, objective: Objective) -> Problem:
        """Return a problem from its present start, in the user's units."""
        return Problem(
            self._labels[index],
            objective,
            self.starts[index],
            self._dtype,
            partial(self._fitted, index),
            self.stored,
            1.0 if self.reading is None else self.reading.unit(index, objective),
            self.watch,
        )

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        """Return the user's objective at a point, and a lower bound of it."""
        if self.reading is None:
            return point.value, bound
        return self.reading.as_read(index, point, bound)

    def _fitted(self, index: int, w: Floats) -> dict[str, Any]:
        """Return the attributes of an estimator with parameters w, during the fit."""
        self.starts[index] = self.starts[index]._replace(w=w, scores=None)
        return self.attributes()

    def stored(self, w: Floats) -> Floats:
        """Return parameters as they will be stored in the attributes."""
        rounded: Floats = w.astype(self._dtype)
        return rounded
