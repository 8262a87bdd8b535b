"""Standard errors of the coefficients of fitted linear models.

Sums over rows and covariances are computed in ``_inference``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from .._checks.callers import user_level
from .._core.arrays import Floats, Mask
from .._core.rounding import CLOSE
from .._features.separation import (
    extremes,
    separating,
    sides_of_levels,
    sides_of_rows,
)
from .._inference import (
    CoefficientErrors,
    Covariance,
    Names,
    Spec,
    TargetedRows,
    assembled,
    bandwidth,
    block_moments,
    factors_of,
    summed,
    theta,
)
from .._inference.estimates import INTERCEPT
from .block_methods import is_collection
from .bootstrap_refits import like_fitted, refit_of, resamples_of
from .error_options import COMMON_DENSITY, LEVERED, ErrorOptions, check_options, kind_of
from .fitted_model import read_model
from .inference_data import Blocks
from .inferred_losses import QUANTILES, loss_name
from .model_covariances import (
    check_active,
    check_penalty,
    covariances_of,
    strengths_of,
    with_leverages,
)
from .tables import checked_names

# With fewer than 50 samples beyond a quantile in the outer fifths, kernel-based
# intervals cover the true coefficients in less than 92 % of samples with normal or
# heavy-tailed noise.
_TAIL, _FEW_BEYOND = 0.2, 50.0

# A model is near its optimum if each coefficient is within a tenth of its standard
# error: intervals of 95 % then cover the true coefficient in 94.9 % of samples.
_NEAR = 0.1


def coefficient_errors(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> CoefficientErrors:
    """Return the standard errors of the coefficients of a model.

    Parameters
    ----------
    own : LinearEstimator
        Estimator whose parameters define the objective of the model.
    given : dict
        Result of ``fitted_attributes``.
    X, y, sample_weight
        The training data of the model.
    options : ErrorOptions
    """
    kind = kind_of(loss_name(own), options)
    check_options(options, kind, loss_name(own))
    if kind == "bootstrap" and is_collection(X):
        raise ValueError("kind='bootstrap' is not supported for data in blocks.")
    model = read_model(own, given, X, y, sample_weight, options)
    check_active(model)
    check_penalty(model)
    own, _, name, spec, blocks = model
    spec = replace(
        spec,
        common_density=kind in COMMON_DENSITY and name in QUANTILES,
        expected=kind == "fisher",
    )
    if spec.levels:
        spec = replace(spec, widths=_widths(blocks, spec, kind))
    by_names = names_of(own, spec, given, options)
    if kind in LEVERED:
        spec = with_leverages(model._replace(spec=spec), options, LEVERED[kind])
    sums = blocks.each(partial(_sums, name=name, spec=spec))
    moments = summed(each for each, _ in sums)
    alone = not strengths_of(own, given, 1.0).any()
    endless = _endless(spec, [each for _, each in sums], alone=alone)
    model = model._replace(spec=spec)
    found = covariances_of(model, moments, kind, options, endless)
    if not spec.levels:
        check_fitted(found, [theta(spec, i) for i in range(len(found))], own.tol)
    elif any(each.fixed.any() for each in found):
        raise ValueError(
            "Too few samples lie near the quantile to say how dense residuals are "
            "there: take kind='bootstrap', or a quantile nearer to the median."
        )
    factors = factors_of(spec, by_names, moments[0].gram)
    if kind == "bootstrap":
        like = like_fitted(own, given)
        refit = partial(
            refit_of, like, spec, by_names, found, X, y, sample_weight, options
        )
        resamples = resamples_of(refit, _num_samples(X), options)
        return assembled(spec, by_names, found, kind, False, resamples, factors)
    estimates = options.dispersion in (None, "X2")
    exact = name == "squared_error" and kind == "fisher" and estimates
    return assembled(spec, by_names, found, kind, exact, factors=factors)


def _widths(blocks: Blocks, spec: Spec, kind: str) -> tuple[float, ...]:
    """Return the half-widths of the kernels of residuals, for each quantile.

    Raises
    ------
    ValueError
        If the density of the residuals cannot be estimated, unless ``kind`` is
        "bootstrap".
    """
    parts = blocks.each(partial(_residuals, spec=spec))
    residuals, targets, weights = map(np.concatenate, zip(*parts, strict=True))
    if spec.counts:
        repeats = weights.astype(np.intp)
        residuals = np.repeat(residuals, repeats, axis=0)
        targets = np.repeat(targets, repeats, axis=0)
    widths = []
    n = len(residuals)
    for i, level in enumerate(spec.levels):
        try:
            widths.append(bandwidth(residuals[:, i], targets[:, i], level))
        except ValueError as error:
            if kind != "bootstrap":
                raise
            widths.append(1.0)
            warnings.warn(str(error), UserWarning, stacklevel=user_level())
        tail = min(level, 1.0 - level)
        if kind != "bootstrap" and tail < _TAIL and n * tail < _FEW_BEYOND:
            warnings.warn(
                f"About {n * tail:.0f} of {n} samples are beyond the quantile "
                f"{level:g}. With so few, densities of residuals are too large there, "
                "and intervals of 95 % hold the true coefficients in 80 to 92 % of "
                "samples: take kind='bootstrap'.",
                UserWarning,
                stacklevel=user_level(),
            )
    return tuple(widths)


def _residuals(block: TargetedRows, spec: Spec) -> tuple[Floats, Floats, Floats]:
    return block.targets - block.scores(spec), block.targets, block.weights


def names_of(
    own: Any, spec: Spec, given: dict[str, Any], options: ErrorOptions
) -> Names:
    """Return the names of features and outputs for the estimates."""
    classes: Any = given.get("classes_")
    names = options.feature_names
    names = given.get("feature_names_in_") if names is None else names
    k, reference = len(spec.coef), options.reference
    features = checked_names(names, spec.coef.shape[1]).tolist()
    if spec.ordinal:
        pairs = pairwise(given["ordered_classes_"].tolist())
        features = [*(f"{low}|{high}" for low, high in pairs), *features]
    elif spec.fit_intercept:
        features = [INTERCEPT, *features]
    if reference is not None:
        if not spec.joint:
            raise ValueError(
                "reference is for the multinomial log loss of more than two classes."
            )
        if reference not in classes.tolist():
            raise ValueError(
                f"reference must be one of the classes {classes.tolist()}; got "
                f"{reference!r}."
            )
        place = classes.tolist().index(reference)
        return Names(features, np.delete(classes, place), "class", place)
    if k == 1:
        return Names(features, None, None, None)
    if is_classifier(own):
        return Names(features, classes, "class", None)
    if spec.levels and np.ndim(getattr(own, "quantile", 0.5)):
        return Names(features, np.array(spec.levels), "quantile", None)
    return Names(features, np.arange(k), "output", None)


def _endless(spec: Spec, ends: list[Any], *, alone: bool) -> Mask:
    """Return the features along which the loss of each problem has no minimum.

    If no feature has a penalty and a combination of features separates the rows, all
    features are returned.
    """
    least = np.minimum.reduce(ends)
    if not len(least):
        return np.zeros((spec.n_problems, spec.coef.shape[1]), dtype=bool)
    # The coefficients of ordered classes are the same for all thresholds.
    parts = [least] if spec.ordinal else least
    masks = np.array([separating(each, centered=spec.fit_intercept) for each in parts])
    if spec.joint:
        masks = np.array([masks.any(axis=0)])
    return np.asarray(masks[:, :-1] | (alone & masks[:, -1:]))


def _sums(block: TargetedRows, name: str, spec: Spec) -> tuple[Any, Floats]:
    """Return moments, and extremes of features by sides of rows for each problem."""
    if spec.ordinal:
        levels, neighbors = block.targets[:, 0], "immediate" in name
        sides = sides_of_levels(levels, len(spec.intercept), neighbors=neighbors)
    else:
        sides = sides_of_rows(name, spec.power, block.targets, len(spec.coef))
    scores = block._replace(offset=None).scores(spec).T
    ends = [extremes(block.X, z, each) for z, each in zip(scores, sides, strict=False)]
    return block_moments(block, spec), np.array(ends)


def check_fitted(found: list[Covariance], estimates: list[Floats], tol: float) -> None:
    """Warn if a model is far from its optimum, measured in standard errors.

    Parameters
    ----------
    found : list of Covariance
    estimates : list of ndarray of shape (p,)
        The parameters of each problem.
    tol : float
        Tolerance of the fit.
    """
    largest, exact = 0.0, False
    for each, parameters in zip(found, estimates, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            distances = np.abs(each.newton) / np.sqrt(np.diag(each.covariance))
            units = np.sqrt(np.diag(each.inverse))
            step, size = (
                np.nanmax(np.abs(x[units > 0.0]) / units[units > 0.0], initial=0.0)
                for x in (each.newton, parameters)
            )
        if (distance := float(np.nanmax(distances, initial=0.0))) > largest:
            largest, exact = distance, bool(step <= CLOSE * size)
    if largest <= _NEAR:
        return
    if exact:
        warnings.warn(
            "The model fits the samples so exactly that standard errors are as small "
            "as rounding errors of the coefficients: intervals, tests and likelihoods "
            "have no meaning.",
            UserWarning,
            stacklevel=user_level(),
        )
        return
    warnings.warn(
        f"The model is {largest:.2g} standard errors from its optimum in one of "
        "its coefficients, so that intervals and tests are off by as much. Fit it "
        f"to the same data, with a smaller tol, such as {min(1e-8, 1e-2 * tol):g}.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )
