"""Several quantiles of one target: problems along a path, and sorted predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score, mean_pinball_loss

from .._checks import check_fraction
from .._core.arrays import Floats
from .._core.losses import DualLoss, regression_losses
from .._core.solvers import Start
from .._solving.callbacks import FitTask
from .._solving.solution import Solution
from . import LinearModel, LinearProblems

#: Treatments of quantiles that cross.
CROSSING = ("sort", "allow")


def check_quantiles(quantile: Any) -> None:
    """Raise unless ``quantile`` is a number in (0, 1), or a list of them."""
    if np.ndim(quantile) == 0:
        check_fraction("quantile", quantile)
        return
    if np.ndim(quantile) != 1 or not len(quantile):
        raise ValueError(
            "quantile must be a number or a non-empty list of numbers between 0 and 1; "
            f"got {quantile!r}."
        )
    for each in quantile:
        check_fraction("quantile", each)


def pinball_loss(quantile: Any) -> DualLoss:
    """Return the pinball loss of a quantile."""
    return regression_losses(quantile=float(quantile))["quantile"]


def uncrossed(predictions: Floats, quantiles: Any) -> Floats:
    """Return predictions of shape (n, k), with each row sorted so that none cross.

    Sorting never increases the sum of a row's pinball losses: for predictions z_j it is
    sum_j max(z_j - y, 0) + q_j (y - z_j), and sum_j q_j z_j is largest if z_j and q_j
    have the same order.
    """
    ranks = np.argsort(np.argsort(quantiles, kind="stable"), kind="stable")
    return np.sort(predictions, axis=1)[:, ranks]


def mean_d2(y: Any, predictions: Floats, quantiles: Any, sample_weight: Any) -> float:
    """Return the mean D² of the pinball losses over the quantiles."""
    pairs = zip(predictions.T, quantiles, strict=True)
    weights = {"sample_weight": sample_weight}
    return float(
        np.mean([d2_pinball_score(y, z, alpha=float(q), **weights) for z, q in pairs])
    )


def mean_loss(y: Any, predictions: Floats, quantile: Any, sample_weight: Any) -> float:
    """Return the mean pinball loss of predictions, also over several quantiles.

    Predictions have shape (n,), or (n, k) for a list of quantiles, or (n, m) for
    targets of that shape.
    """
    if np.ndim(quantile) == 0:
        return float(
            mean_pinball_loss(
                y, predictions, alpha=float(quantile), sample_weight=sample_weight
            )
        )
    pairs = zip(predictions.T, quantile, strict=True)
    return float(np.mean([mean_loss(y, z, q, sample_weight) for z, q in pairs]))


class QuantileProblems(LinearProblems):
    """Problems of several quantiles of one target, solved in ascending order.

    Each problem starts at the solution of the previous problem, unless it has its own
    start.

    Parameters
    ----------
    model, X, weights
        See ``LinearProblems``.
    y : ndarray of shape (n,)
    quantiles : list of float
    """

    several = True

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        y: Floats,
        weights: Floats,
        quantiles: list[float],
    ) -> None:
        losses = [pinball_loss(quantile) for quantile in quantiles]
        self._order = np.argsort(quantiles, kind="stable")
        super().__init__(
            model,
            X,
            [y] * len(quantiles),
            losses,
            weights,
            outputs=quantiles,
            output="quantile {:g}",
        )

    def solve(self, alpha: Any, task: FitTask, **_: Any) -> list[Solution]:
        alphas = np.broadcast_to(alpha, len(self)).tolist()
        solutions: dict[int, Solution] = {}
        center = self.regularizer.center(self.design.n_params)
        start = Start(center)
        for index in self._order.tolist():
            if np.array_equal(self.starts[index].w, center):
                self.starts[index] = start
            objective = self.objective(index, alphas[index])
            solutions[index] = self._solve(index, objective, self.settings, task)
            start = self.starts[index]
        return [solutions[index] for index in range(len(self))]
