"""Deviances of Poisson, gamma and Tweedie distributions as scores of predictions."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import mean_tweedie_deviance

from .._checks.callers import user_level
from .solution import Floats


def mean_deviances(
    y: Floats, expected: Floats, weights: Floats, power: float
) -> Floats:
    """Return the mean deviance from what is expected of each column of y.

    Parameters
    ----------
    y, expected : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
    power : float
        Of the mean, to which variances are proportional.
    """
    if power:
        # Means are not zero, if they are too small for a number.
        expected = np.maximum(expected, np.finfo(np.float64).tiny)
    return np.array(
        [
            mean_tweedie_deviance(column, of, sample_weight=weights, power=power)
            for column, of in zip(y.T, expected.T, strict=True)
        ]
    )


def deviance_explained(unexplained: Floats, of_means: Floats, means: Floats) -> float:
    """Return the mean D² of columns; warn if it is not finite, as of constant columns.

    Parameters
    ----------
    unexplained, of_means : ndarray of shape (k,)
        Deviances from predictions and from means.
    means : ndarray of shape (k,)
        Where they are zero nothing has been observed, and D² is NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - unexplained / np.where(means > 0.0, of_means, np.nan)
    score = float(scores.mean())
    if not np.isfinite(score):
        warnings.warn(
            f"D² is {score}, since all samples have the same y: there is no deviance "
            "to explain. Score more samples at once, or take the mean deviance.",
            UndefinedMetricWarning,
            stacklevel=user_level(),
        )
    return score
