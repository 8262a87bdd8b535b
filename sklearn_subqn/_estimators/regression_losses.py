"""The losses of regressors, by name and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_metric, check_number
from .._core.arrays import Floats
from .._core.losses import (
    AnyLoss,
    Composed,
    DualLoss,
    MultivariateSquared,
    regression_losses,
)
from .._core.names import Axis
from .._problems.quantiles import pinball_loss
from .predictions import variance_power

# Default ``epsilon`` of the losses with this parameter.
EPSILON = {
    "epsilon_insensitive": 0.1,
    "squared_epsilon_insensitive": 0.1,
    "huber": 1.35,
}


def loss_of(estimator: Any) -> DualLoss:
    """Return the loss of an estimator by its name."""
    name, parameters = estimator.loss, {}
    if name == "quantile":
        return pinball_loss(estimator.quantile)
    if name == "tweedie":
        parameters["power"] = float(estimator.power)
    if name in EPSILON:
        given = estimator.epsilon
        parameters["epsilon"] = float(EPSILON[name] if given is None else given)
    return regression_losses(**parameters)[name]


def check_power(power: Any) -> None:
    """Raise unless a power is between the powers of the Poisson and gamma losses."""
    check_number("power", power, low=-np.inf)
    if not 1.0 < power < 2.0:
        raise ValueError(
            f"power must be between 1 and 2; got {power!r}. loss='poisson' is that of "
            "power 1, loss='gamma' of 2, loss='squared_error' of 0, without logarithms."
        )


def check_domain(estimator: Any, y: Floats) -> Floats:
    """Return targets; raise where the loss is not defined for one of them."""
    power, least = variance_power(estimator), y.min()
    if power is not None and (least < 0.0 or (power == 2.0 and least == 0.0)):
        sign = ">" if power == 2.0 else ">="
        raise ValueError(
            f"loss={estimator.loss!r} needs y {sign} 0; its least value is {least:g}."
        )
    return y


def made_loss(estimator: Any, n_targets: int, columns: Axis) -> DualLoss:
    """Return the loss of an estimator, for a number of targets with column names."""
    if estimator.metric is not None:
        metric = check_metric(
            "metric", estimator.metric, n_targets, columns, definite=False
        )
        return DualLoss(MultivariateSquared(metric))
    loss = estimator.loss if isinstance(estimator.loss, AnyLoss) else loss_of(estimator)
    if isinstance(loss, Composed):
        raise ValueError(
            f"loss={type(loss).__name__} is a loss of classes, which "
            "BMRMClassifier takes; BMRMRegressor needs a loss of numbers."
        )
    return DualLoss.of(loss)
