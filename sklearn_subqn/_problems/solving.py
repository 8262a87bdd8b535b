"""Problems whose solutions make one model: from data to objectives and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._core.objectives.objective import Objective, Point
from .._core.solvers import Start
from .._solving.callbacks import FitTask
from .._solving.report import Report
from .._solving.solution import (
    Floats,
    Problem,
    Progress,
    Settings,
    Solution,
    Watch,
    changed,
)
from .._solving.solve import solve
from .reading import Reading


class Problems(ABC):
    """Problems whose solutions make one model, solved for one alpha after another.

    Parameters
    ----------
    settings : Settings
        How to solve them: mostly the estimator.
    labels : list of str
        Names of the problems, for messages.
    starts : list of Start
        Where each of them stands.
    dtype : dtype
        Type in which coefficients will be stored.

    Attributes
    ----------
    starts : list of Start
        As above; ``solve`` leaves there where the solutions are.
    outputs : sequence or None
        What each of several problems is for, such as its class.
    reading : Reading or None
        What the user reads of the problems, if they are not solved as they are read.
    several : bool
        Whether the attributes are arrays, with a number for each problem.
    watch : Watch or None
        Looks at the model after each iteration.
    """

    outputs: Any = None
    reading: Reading | None = None
    watch: Watch | None = None

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
        """Return what predictions need of an estimator, where the problems stand."""

    @abstractmethod
    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from the attributes of a previous fit, if it was of an equal model."""

    def start_at(self, coef: Any, intercept: Any) -> None:
        """Start from coefficients and intercepts that a user gives."""
        # Estimators whose ``fit`` takes them have problems of linear scores.
        raise NotImplementedError

    def solve(self, alpha: Any, task: FitTask) -> list[Solution]:
        """Solve all problems, each from where it stands, for one alpha or its own."""
        solve_one = self.run_once if self.reading is None else self._solve
        solutions = []
        alphas = np.ravel(alpha).tolist()
        alphas = alphas * len(self) if len(alphas) == 1 else alphas
        for index, own in enumerate(alphas):
            objective = self.objective(index, own)
            solutions.append(solve_one(index, objective, self.settings, task))
        return solutions

    def run(
        self,
        index: int,
        alpha: float,
        callback: Callable[[Progress], Any],
        watch: Watch,
    ) -> Solution:
        """Solve a problem for others, whose ``callback`` reports to the user."""
        settings = changed(self.settings, callback=callback, verbose=0)
        self.watch, task = watch, FitTask.silent()
        return self._solve(index, self.objective(index, alpha), settings, task)

    def reporter(self, index: int, task: FitTask) -> Report:
        """Return what reports a run on a problem to the user."""
        fitted = partial(self._fitted, index)
        label, settings = self._labels[index], self.settings
        return Report(label, fitted, self.watch, settings, task)

    def _solve(
        self, index: int, objective: Objective, settings: Settings, task: FitTask
    ) -> Solution:
        """Solve a problem from where it stands, and return what the user reads."""
        if self.reading is None:
            return self.run_once(index, objective, settings, task)
        run = partial(self.run_once, index, objective, task=task)
        return self.reading.solve(index, objective, settings, run)

    def run_once(
        self,
        index: int,
        objective: Objective,
        settings: Settings,
        task: FitTask,
        prove: Callable[[Point], float] | None = None,
    ) -> Solution:
        """Solve a problem from where it stands, in the units of the user.

        ``prove`` returns another lower bound of the objective from a point.
        """
        problem = Problem(
            self._labels[index],
            objective,
            self.starts[index],
            self._dtype,
            partial(self._fitted, index),
            self._stored,
            1.0 if self.reading is None else self.reading.unit(index, objective),
            self.watch,
            prove,
        )
        solution = solve(problem, settings, task)
        self.starts[index] = solution.start
        return solution

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        """Return the objective at a point and a lower bound as the user reads them."""
        if self.reading is None:
            return point.value, bound
        return self.reading.as_read(index, point, bound)

    def _fitted(self, index: int, w: Floats) -> dict[str, Any]:
        """Return the attributes of an estimator fitted so far."""
        self.starts[index] = self.starts[index]._replace(w=w, scores=None)
        return self.attributes()

    def _stored(self, w: Floats) -> Floats:
        """Return parameters as they will be in the attributes."""
        rounded: Floats = w.astype(self._dtype)
        return rounded
