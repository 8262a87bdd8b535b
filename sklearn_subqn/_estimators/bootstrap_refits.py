"""Refits of a model to reweighted rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from .._checks import as_sample_weights, names_of_rows
from .._core.arrays import Floats
from .._inference import Covariance, Names, Spec, estimated, resampled
from .error_options import ErrorOptions
from .fitted_model import fitted_attributes, parameters_of


def like_fitted(own: Any, given: dict[str, Any]) -> Any:
    """Return an estimator with the penalty strengths of the fitted model."""
    like = clone(own)
    if isinstance(getattr(like, "alpha", None), str):
        alpha = np.unique(given["alpha_"])
        if len(alpha) > 1:
            raise ValueError(
                "kind='bootstrap' needs one alpha for all outputs, such as a number."
            )
        like.set_params(alpha=float(alpha[0]), penalty_factor=given["penalty_factor_"])
    if "warm_start" in like.get_params():
        like.set_params(warm_start=True)
    return like


def resamples_of(refit: Any, n_rows: int, options: ErrorOptions) -> Floats:
    """Return the estimates of refits with random weights, one row for each."""
    groups = options.groups
    if groups is not None:
        _, groups = names_of_rows("groups", groups, n_rows)
    seeds = options.n_jobs, options.random_state
    return resampled(refit, n_rows, groups, options.n_resamples, *seeds)


def refit_of(
    like: Any,
    spec: Spec,
    names: Names,
    found: list[Covariance],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> Any:
    """Return a function from row factors to the estimates of a refit."""
    model = clone(like)
    base = as_sample_weights(sample_weight, _num_samples(X))
    others = {} if options.offset is None else {"offset": options.offset}

    def estimates_of(factors: Floats) -> Floats:
        model.fit(X, y, sample_weight=base * factors, **others)
        coef, intercept = parameters_of(fitted_attributes(model))
        return estimated(replace(spec, coef=coef, intercept=intercept), names, found)

    return estimates_of
