"""Models with the data and the objective of their fit."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._certified.other_objectives import has_objective, last_step, objective_of
from .._checks import check_option
from .._estimators.error_options import ErrorOptions
from .._estimators.fitted_model import FittedModel, fitted_attributes, read_model
from .._estimators.inferred_losses import LIKELIHOODS, LOG_LOSSES, QUANTILES
from .._estimators.offsets import warn_of_missing_offset


def last_step_with_names(
    model: Any, X: Any, feature_names: Any
) -> tuple[Any, Any, Any]:
    """Return the last step of a pipeline, its input, and names of its features."""
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        before = model[:-1]
        if feature_names is None and hasattr(before, "get_feature_names_out"):
            feature_names = before.get_feature_names_out()
    model, X = last_step(model, X)
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            "model must be a fitted estimator, or a pipeline that ends with one; got "
            f"an object of type {type(model).__name__}."
        )
    check_is_fitted(model)
    return model, X, feature_names


def with_objective(model: Any, y: Any, sample_weight: Any, estimator: Any) -> Any:
    """Return an estimator of this package with the objective of a model."""
    if estimator is None:
        estimator = objective_of(model, y, sample_weight)
    elif has_objective(estimator):
        estimator._check_parameters()
    if not has_objective(estimator):
        raise TypeError(
            f"estimator must be one of this package with coef_; got {estimator!r}."
        )
    return estimator


def read_likelihood(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
    weights: str,
    estimator: Any = None,
) -> FittedModel:
    """Return a model with its data; the loss must be a likelihood or pinball loss."""
    check_option("weights", weights, ("precision", "frequency"))
    model, X, _ = last_step_with_names(model, X, None)
    warn_of_missing_offset(model, offset)
    own = with_objective(model, y, sample_weight, estimator)
    loss = getattr(own, "loss", "log_loss")
    if loss not in (*LIKELIHOODS, *LOG_LOSSES, *QUANTILES):
        raise ValueError(
            f"loss={loss!r} is no likelihood of independent samples. Such likelihoods "
            "are the log loss, 'ordinal_logit', squared errors, and Poisson, gamma "
            "and Tweedie deviances."
        )
    options = ErrorOptions(offset=offset, weights=weights)
    return read_model(own, fitted_attributes(model), X, y, sample_weight, options)
