"""Statistics of a fit: likelihood, deviances, information criteria, comparisons."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from .._core.arrays import Floats
from .._inference import Spec, TargetedRows, theta
from .._inference.likelihoods import (
    check_losses,
    deviances,
    log_likelihoods,
    null_scores,
    weighted_quantile,
)
from .fitted_model import FittedModel
from .inferred import check_fitted
from .inferred_losses import WITHOUT_DISPERSION
from .model_covariances import dual_terms, is_penalized, likelihood_terms
from .predictions import log_of_differences

# Log-likelihoods that are equal up to rounding have at most this relative difference.
_ROUNDED = 1e-9


class FitStatistics(NamedTuple):
    """Statistics of a fit, each an array if there are several outputs.

    Attributes
    ----------
    log_likelihood, null_log_likelihood : float
        Sums over the samples with all constants, for the model and for the null model,
        which has only an intercept and the offset; NaN for quantiles. The dispersion is
        the mean squared residual for squared errors, and ``dispersion`` otherwise.
    deviance, null_deviance : float
        Sums of the deviances of the samples, which do not contain the dispersion; for
        quantiles, sums of check losses.
    d2 : float
        Share of the deviance explained, ``1 - deviance / null_deviance``: R² for
        squared errors, McFadden's for the log loss, Koenker's and Machado's R¹ for
        quantiles.
    df : float
        Degrees of freedom of the model with its intercept; with a squared penalty the
        effective degrees of freedom, except for quantiles.
    df_resid : float
        Number of samples less ``df``.
    dispersion : float
        Pearson's statistic per degree of freedom ``df_resid``; 1 for
        likelihoods of classes and Poisson regression, NaN for quantiles.
    aic, bic : float
        Information criteria of Akaike (1974) and Schwarz (1978).
    n_samples : float
        Number of samples of positive weight, or the sum of frequencies.
    """

    log_likelihood: Any
    null_log_likelihood: Any
    deviance: Any
    null_deviance: Any
    d2: Any
    df: Any
    df_resid: Any
    dispersion: Any
    aic: Any
    bic: Any
    n_samples: float


class LikelihoodRatioTest(NamedTuple):
    """A test of a model within a larger one.

    Attributes
    ----------
    statistic : float
        Statistic with a chi-square distribution under the smaller model.
    df : int
        Number of parameters that the larger model has in addition.
    p_value : float
        P-value: probability of a statistic at least as large under the smaller model.
    """

    statistic: float
    df: int
    p_value: float


def rows_of(model: FittedModel) -> tuple[Floats, Floats, Floats, Floats]:
    """Return scores, targets, weights and offsets of all rows."""
    parts = model.blocks.each(partial(_rows, spec=model.spec))
    scores, targets, weights, offset = map(np.concatenate, zip(*parts, strict=True))
    return scores, targets, weights, offset


def _rows(block: TargetedRows, spec: Spec) -> tuple[Floats, ...]:
    offset = np.zeros(len(block.weights)) if block.offset is None else block.offset
    scores = block.scores(spec)
    # The logarithms of probabilities are scores of the softmax.
    scores = log_of_differences(scores) if spec.ordinal else scores
    return scores, block.targets, block.weights, offset


def degrees_of(model: FittedModel, n_rows: int) -> list[Any]:
    """Return the terms of the degrees of freedom of each problem."""
    spec = model.spec
    # If there are fewer rows than parameters, the Gram matrix of the rows is smaller.
    n_params = spec.coef.shape[1] + spec.fit_intercept
    n_params *= len(spec.coef) - 1 if spec.joint else 1
    wide = n_params >= n_rows
    wide &= not (spec.levels or spec.ordinal)
    return dual_terms(model) if wide else likelihood_terms(model)


@np.errstate(divide="ignore", invalid="ignore")
def statistics_of(model: FittedModel, is_training: bool = True) -> FitStatistics:
    """Return the statistics of a fit; arrays have one number for each problem.

    Parameters
    ----------
    model : FittedModel
    is_training : bool
        Whether the model has to be the optimum of these samples.
    """
    spec = model.spec
    scores, targets, weights, offset = rows_of(model)
    n = float(weights.sum()) if spec.counts else float(len(weights))
    several = spec.joint or spec.ordinal
    found, terms = [], degrees_of(model, len(weights))
    if is_training and not spec.levels and not is_penalized(model):
        estimates = [theta(spec, i) for i in range(len(terms))]
        check_fitted(terms, estimates, model.own.tol)
    for i, term in enumerate(terms):
        z, y = (scores if several else scores[:, i]), targets[:, i]
        if spec.levels:
            level = spec.levels[i]
            null = weighted_quantile(y - offset, level, weights)
            pair = (
                check_losses(each, level, weights).sum()
                for each in (y - z, y - offset - null)
            )
            df, dispersion = float(np.sum(term.determined & ~term.fixed)), np.nan
            likelihoods = np.full(2, np.nan)
        else:
            both = z, null_scores(model.power, z, y, weights, offset)
            pair = (weights @ deviances(model.power, each, y) for each in both)
            df, dispersion = term.df, 1.0
            if model.name not in WITHOUT_DISPERSION:
                dispersion = term.chi_square / (n - df)
            likelihoods = np.array(
                [_log_likelihood(model, each, y, weights, dispersion) for each in both]
            )
        deviance, null_deviance = pair
        d2 = 1.0 - np.divide(deviance, null_deviance)
        aic, bic = -2.0 * likelihoods[0] + df * np.array([2.0, np.log(n)])
        found.append(
            [
                *likelihoods,
                deviance,
                null_deviance,
                d2,
                df,
                n - df,
                dispersion,
                aic,
                bic,
            ]
        )
    columns: list[Any] = list(np.array(found, dtype=np.float64).T)
    if len(found) == 1:
        columns = [float(each[0]) for each in columns]
    return FitStatistics._make([*columns, n])


def _log_likelihood(
    model: FittedModel, z: Floats, y: Floats, weights: Floats, dispersion: float
) -> float:
    """Return the log-likelihood of all rows, with the given or the best dispersion."""
    counts = model.spec.counts
    if model.power == 0.0:
        n = weights.sum() if counts else len(weights)
        dispersion = float(weights @ (y - z) ** 2 / n)
    if not counts:
        return float(log_likelihoods(model.power, z, y, weights, dispersion).sum())
    ones = np.ones(len(weights))
    return float(weights @ log_likelihoods(model.power, z, y, ones, dispersion))


def compared(small: FittedModel, large: FittedModel) -> LikelihoodRatioTest:
    """Return the test of a model within a larger one.

    Raises
    ------
    ValueError
        If the models cannot be compared.
    """
    both = small, large
    if small.name != large.name or small.power != large.power:
        raise ValueError(
            "The models must have the same loss; they have "
            f"{small.name!r} and {large.name!r}."
        )
    if not small.is_likelihood or any(each.spec.n_problems > 1 for each in both):
        raise ValueError("Likelihood ratios need a likelihood with one output.")
    if any(map(is_penalized, both)):
        raise ValueError(
            "Likelihood ratios need models without a penalty: fit them with alpha=0."
        )
    low, high = map(statistics_of, both)
    df = round(high.df - low.df)
    if low.n_samples != high.n_samples or df <= 0:
        raise ValueError(
            "The larger model must have more parameters and the same samples: there "
            f"are {low.df:g} and {high.df:g} parameters, {low.n_samples:g} and "
            f"{high.n_samples:g} samples."
        )
    if large.name in ("gamma", "tweedie"):
        statistic = (low.deviance - high.deviance) / high.dispersion
    else:
        statistic = 2.0 * (high.log_likelihood - low.log_likelihood)
    if statistic < -_ROUNDED * abs(high.log_likelihood):
        raise ValueError(
            f"The smaller model fits better, by {-statistic:.3g}: it is not a part of "
            "the larger one, or one of them is far from its optimum; fit with a "
            "smaller tol."
        )
    statistic = max(float(statistic), 0.0)
    return LikelihoodRatioTest(statistic, df, float(stats.chi2.sf(statistic, df)))


class TweedieProfile(NamedTuple):
    """The power of a Tweedie regression with the largest likelihood.

    Attributes
    ----------
    power : float
        Power of the mean to which variances are proportional.
    dispersion : float
        Dispersion with the largest likelihood for this power.
    log_likelihood : float
        Log-likelihood for both, constants included.
    """

    power: float
    dispersion: float
    log_likelihood: float


def profile(model: FittedModel) -> TweedieProfile:
    """Return the likelihood of a Tweedie regression at its best dispersion."""
    scores, targets, weights, _ = rows_of(model)
    rows = model, scores[:, 0], targets[:, 0], weights
    guess = np.log(likelihood_terms(model)[0].dispersion)
    found = optimize.minimize_scalar(
        lambda log: -_log_likelihood(*rows, np.exp(log)), (guess - 0.5, guess + 0.5)
    )
    return TweedieProfile(model.power or 1.0, float(np.exp(found.x)), -float(found.fun))
