"""Deviances of Poisson, gamma and Tweedie distributions as scores of predictions."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import special
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import mean_tweedie_deviance

from .._checks.callers import user_level
from .._core.arrays import Floats


def mean_deviances(
    y: Floats, expected: Floats, weights: Floats, power: float
) -> Floats:
    """Return the mean deviance of each column of y from its expected values.

    Parameters
    ----------
    y, expected : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
    power : float
        Variances are proportional to this power of the mean.
    """
    if power:
        # Means that underflow to zero are replaced by the smallest positive number.
        expected = np.maximum(expected, np.finfo(np.float64).tiny)
    positive = y > 0.0 if power >= 2.0 else y >= 0.0
    if power < 1.0 or not (positive & np.isfinite(y) & np.isfinite(expected)).all():
        # scikit-learn's slower function handles powers below one, and raises the errors
        # for invalid numbers.
        columns = zip(y.T, expected.T, strict=True)
        each = {"sample_weight": weights, "power": power}
        return np.array([mean_tweedie_deviance(*pair, **each) for pair in columns])
    with np.errstate(over="ignore"):
        deviances = 2.0 * half_deviances(y, expected, power)
    return np.asarray(np.average(deviances, axis=0, weights=weights))


def half_deviances(y: Floats, mu: Floats, p: float) -> Floats:
    """Return half the unit deviances of Jørgensen (1987), for p >= 1."""
    if p == 1.0:
        return np.asarray(special.xlogy(y, y / mu) - y + mu)
    if p == 2.0:
        return np.asarray(np.log(mu / y) + y / mu - 1.0)
    observed = y ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
    expected = mu ** (2.0 - p) / (2.0 - p) - y * mu ** (1.0 - p) / (1.0 - p)
    return np.asarray(observed + expected)


def deviance_explained(unexplained: Floats, of_means: Floats, means: Floats) -> float:
    """Return the mean D² of the columns; warn if it is not finite, as for a constant y.

    Parameters
    ----------
    unexplained, of_means : ndarray of shape (k,)
        Deviances from the predictions, and from the means.
    means : ndarray of shape (k,)
        Means of y; where one is zero, D² is NaN.
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
