"""A fitted model with its loss and training data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Floats
from .._inference import Spec
from .error_options import ErrorOptions
from .inference_data import FittedData
from .inferred_losses import (
    LIKELIHOODS,
    OF_NUMBERS,
    ORDINAL,
    levels_of,
    loss_name,
    loss_of_model,
)
from .predictions import variance_power

_ATTRIBUTES = (
    "coef_",
    "intercept_",
    "classes_",
    "ordered_classes_",
    "feature_names_in_",
    "alpha_",
    "penalty_factor_",
    "scale_",
)


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of a fitted model that standard errors need."""
    return {name: getattr(model, name) for name in _ATTRIBUTES if hasattr(model, name)}


class FittedModel(NamedTuple):
    """A model with its loss and training data.

    Attributes
    ----------
    own : LinearEstimator
        Unfitted estimator whose parameters define the objective.
    given : dict
        Result of ``fitted_attributes``.
    name : str
        Name of the loss, "" for a user's own loss.
    spec : Spec
        The model, with observed second derivatives.
    blocks : Blocks
        The rows of positive weight; None for Cox's model, which couples rows.
    """

    own: Any
    given: dict[str, Any]
    name: str
    spec: Spec
    blocks: Any = None

    @property
    def is_likelihood(self) -> bool:
        """Whether the loss is a log-likelihood, up to terms without scores."""
        return self.name in LIKELIHOODS

    @property
    def power(self) -> float | None:
        """The power of the mean in variances, None for classes."""
        return 0.0 if self.name == "squared_error" else self.spec.power


def read_model(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> FittedModel:
    """Return a model with its data; see ``coefficient_errors`` for the parameters."""
    name, counts = loss_name(own), options.weights == "frequency"
    coef, intercept = parameters_of(given)
    data = FittedData(own, coef, given, counts)
    own = data.own
    check_model(own, given)
    blocks = data.blocks(X, y, sample_weight, options.offset, options.groups)
    spec = Spec(
        coef,
        intercept,
        None if data.joint and name not in ORDINAL else loss_of_model(own, name),
        bool(own.fit_intercept),
        variance_power(own) if name in OF_NUMBERS else None,
        levels_of(own, name, len(coef)),
        (),
        False,
        False,
        counts,
        blocks.shift if own.fit_intercept else np.zeros(coef.shape[1]),
    )
    return FittedModel(own, given, name, spec, blocks)


def parameters_of(given: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return coefficients and intercepts of scores; see ``Spec`` for their shapes."""
    coef = given["coef_"]
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else np.asarray(coef))
    intercept = np.ravel(given["intercept_"]).astype(np.float64)
    if "ordered_classes_" not in given:
        return coef, np.broadcast_to(intercept, len(coef))
    order = np.searchsorted(given["classes_"], given["ordered_classes_"])
    if len(coef) == 1:
        # With two classes, the only score belongs to the second class in sorted order.
        coef, intercept = (
            np.append(0.0 * each, each, axis=0) for each in (coef, intercept)
        )
    return np.diff(coef[order], axis=0)[:1], np.diff(intercept[order])


def check_model(own: Any, given: dict[str, Any]) -> None:
    """Raise for models whose rows have no likelihood or derivatives of their own."""
    if "scale_" in given:
        raise ValueError(
            "Standard errors of Huber's loss are those of a given scale: fit "
            f"BMRMRegressor(loss='huber') with epsilon={own.epsilon:g} times scale_."
        )
    several = len(given.get("classes_", ())) > 2
    if several and hasattr(own, "_row_weights") and own.class_weight is not None:
        raise ValueError(
            f"{type(own).__name__} with class_weight and more than two classes weighs "
            "samples otherwise for each class, for which there are no standard errors: "
            "take BMRMClassifier with the same loss."
        )
