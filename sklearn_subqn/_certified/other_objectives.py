"""Objectives of models of this package and of scikit-learn, by parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .._checks import row_weights
from .._estimators.estimator import Estimator
from .._estimators.linear_estimator import LinearEstimator
from .._ranking.base_ranker import BaseRanker
from ..bundle_classification import BMRMClassifier
from ..bundle_regression import BMRMRegressor
from ..linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from ..svm import LinearSVC, LinearSVR

# Losses of SGDClassifier and SGDRegressor that have the same names in this package.
_LOSSES_OF_SGD = {
    "classifier": ["hinge", "log_loss", "modified_huber", "squared_hinge"],
    "regressor": [
        "squared_error",
        "huber",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
    ],
}


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline and its input, other models as given."""
    if not isinstance(model, Pipeline):
        return model, X
    check_is_fitted(model)
    if len(model) > 1:
        X = model[:-1].transform(X)
    return last_step(model[-1], X)


def has_objective(estimator: Any) -> bool:
    """Whether the parameters of an estimator define its objective, given X and y."""
    if not isinstance(estimator, LinearEstimator):
        return False
    one_strength = {"alpha", "C"} & estimator.get_params(deep=False).keys()
    in_batches = type(estimator)._encode is Estimator._encode
    return (
        bool(one_strength) and not in_batches and not isinstance(estimator, BaseRanker)
    )


def objective_of(model: Any, y: Any, sample_weight: Any) -> Any:
    """Return an unfitted estimator with the objective that a model was fitted for."""
    chosen = model._of_chosen() if isinstance(model, LinearEstimator) else model
    if has_objective(chosen):
        return chosen
    # A subclass of a known class has the objective of its base class.
    ours = ("sklearn.", "sklearn_subqn.")
    kinds = (kind for kind in type(model).__mro__ if kind.__module__.startswith(ours))
    name = next(kinds, object).__name__
    if name in _OBJECTIVES:
        objective = _OBJECTIVES[name](model, y, sample_weight)
        if objective is not None:
            return objective
    known = ", ".join(sorted(_OBJECTIVES))
    raise TypeError(
        f"The objective of {model!r} is not known. Give an estimator of this package "
        "with the same objective as estimator; without one, models of this package and "
        f"scikit-learn's {known} are taken, the linear ones with an L1 or L2 penalty."
    )


def _same_parameters(kind: Any) -> Callable[..., Any]:
    """Return a function from a model to an estimator with the same parameters."""

    def objective(model: Any, y: Any, sample_weight: Any) -> Any:
        known, given = kind().get_params(deep=False), model.get_params(deep=False)
        # Parameters of the solver do not change the objective.
        without = {"max_iter", "verbose", *kind._without_effect}
        same = {name: given[name] for name in known if name in given.keys() - without}
        return kind(**same)

    return objective


def _logistic_cv(model: Any, y: Any, sample_weight: Any) -> Any:
    """Return the objective for the strength that LogisticRegressionCV selected."""
    strengths = np.unique(model.C_)
    # If no ratio was selected, ``l1_ratio_`` has None for each class.
    ratios = {each for each in np.ravel(model.l1_ratio_).tolist() if each is not None}
    if len(strengths) > 1 or len(ratios) > 1:
        return None
    given = {
        name: getattr(model, name)
        for name in ("penalty", "fit_intercept", "class_weight")
    }
    if ratios:
        given["l1_ratio"] = ratios.pop()
    return LogisticRegression(C=float(strengths[0]), tol=model.tol, **given)


def _sgd(model: Any, y: Any, sample_weight: Any) -> Any:
    """Return the objective of SGDClassifier or SGDRegressor, None if unknown."""
    classifies = hasattr(model, "classes_")
    weights = sample_weight
    given = {"loss": model.loss, "penalty": model.penalty}
    if model.penalty == "elasticnet":
        given["l1_ratio"] = model.l1_ratio
    if classifies:
        if model.class_weight is not None and len(model.classes_) > 2:
            # Class weights differ between the one-versus-rest problems.
            return None
        class_weight = model.class_weight
        if isinstance(class_weight, str) and class_weight == "balanced":
            # SGDClassifier balances the classes by number of rows, ignoring sample
            # weights.
            of_classes = compute_class_weight(
                class_weight, classes=model.classes_, y=np.asarray(y)
            )
            class_weight = dict(zip(model.classes_, of_classes, strict=True))
        given["class_weight"] = class_weight
        if class_weight is not None:
            weights = row_weights(
                class_weight, model.classes_, np.asarray(y), sample_weight
            )
    kind: Any = BMRMClassifier if classifies else BMRMRegressor
    losses = _LOSSES_OF_SGD["classifier" if classifies else "regressor"]
    if model.loss not in losses or model.penalty is None or model.alpha <= 0.0:
        return None
    if not classifies and model.loss != "squared_error":
        given["epsilon"] = model.epsilon
    return kind(
        model.alpha / _mean(weights, y), fit_intercept=model.fit_intercept, **given
    )


def _squared(model: Any, y: Any, sample_weight: Any) -> Any:
    """Return the objective of Lasso, ElasticNet or Ridge, None without a penalty."""
    given: dict[str, Any] = {"fit_intercept": model.fit_intercept}
    if np.any(np.asarray(model.alpha) <= 0.0) or np.ndim(model.alpha):
        return None
    if getattr(model, "positive", False):
        # The pure L1 penalty cannot be combined with bounds of the coefficients.
        if getattr(model, "l1_ratio", 0.0) == 1.0:
            return None
        given["positive"] = True
    if hasattr(model, "l1_ratio"):
        given |= {"penalty": "elasticnet", "l1_ratio": model.l1_ratio}
        return BMRMRegressor(model.alpha, **given)
    # Ridge minimizes the sum of squares, without factors of one half.
    total = _mean(sample_weight, y) * len(y)
    return BMRMRegressor(model.alpha / total, **given)


def _least_squares(model: Any, y: Any, sample_weight: Any) -> Any:
    """Return the objective of LinearRegression."""
    given = {"fit_intercept": model.fit_intercept, "positive": model.positive}
    return BMRMRegressor(0, loss="squared_error", **given)


def _mean(weights: Any, y: Any) -> float:
    return 1.0 if weights is None else float(np.mean(np.broadcast_to(weights, len(y))))


_OBJECTIVES: dict[str, Callable[..., Any]] = {
    **{
        kind.__name__: _same_parameters(kind)
        for kind in (
            GammaRegressor,
            LinearSVC,
            LinearSVR,
            LogisticRegression,
            PoissonRegressor,
            QuantileRegressor,
            TweedieRegressor,
        )
    },
    "ElasticNet": _squared,
    "Lasso": _squared,
    "LinearRegression": _least_squares,
    "LogisticRegressionCV": _logistic_cv,
    "Ridge": _squared,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
}
