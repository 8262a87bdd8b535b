"""The structured hinge problem, given by a loss-augmented argmax oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Floats
from .._core.objectives.risk_by_oracle import OracleHinge, OracleObjective
from .._core.regularizers import Regularizer
from .._core.rounding import CLOSE
from .._core.solvers import Start
from .._problems import Problems
from .._solving.callbacks import FitTask
from .._solving.solution import Solution
from .structure_oracle import StructureOracle


class StructureProblem(Problems):
    """The structured hinge problem, given by a loss-augmented argmax oracle.

    Parameters
    ----------
    estimator : Estimator
        Estimator with the parameters of the solver.
    oracle : StructureOracle
    weights : ndarray of shape (n,)
        Weights of the samples, which sum to one.
    regularizer : Regularizer
    """

    def __init__(
        self,
        estimator: Any,
        oracle: StructureOracle,
        weights: Floats,
        regularizer: Regularizer,
    ) -> None:
        self._oracle, self._weights = oracle, weights
        self._loss = OracleHinge(oracle, weights)
        self._regularizer = regularizer
        start = Start(np.zeros(oracle.n_features))
        settings, name = estimator._settings_of_solver(), type(estimator).__name__
        super().__init__(settings, [name], [start], np.float64)

    @property
    def n_samples(self) -> int:
        """The number of samples with positive weights."""
        return len(self._weights)

    @property
    def mean_square(self) -> float:
        """The mean of the squared norms of the true structures' joint features."""
        return float(self._weights @ self._oracle.squares())

    def objective(self, index: int, alpha: float) -> OracleObjective:
        return OracleObjective(self._loss, self._regularizer, alpha)

    def start_from(self, previous: dict[str, Any]) -> None:
        if np.shape(previous.get("coef_", ())) == self.starts[0].w.shape:
            self.starts = [Start(previous["coef_"])]

    def attributes(self) -> dict[str, Any]:
        return {"coef_": self.starts[0].w}

    def solve(self, alpha: Any, task: FitTask, **_: Any) -> list[Solution]:
        """Solve the problem, and check the lower bound against the objective."""
        (solution,) = super().solve(alpha, task)
        bound = solution.history.lower_bound[-1]
        size = max(abs(bound), float(self._weights @ self._oracle.sizes))
        if bound - solution.objective > CLOSE * size:
            raise ValueError(
                f"{self._oracle.name} is not exact: what it returned before proves "
                f"that the objective is at least {bound:.8g}; what it returned in the "
                f"end makes it {solution.objective:.8g}."
            )
        return [solution]
