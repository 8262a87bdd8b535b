"""What regressors share: scores of predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import mean_tweedie_deviance

from .._checks import as_numpy, as_sample_weights
from .._checks.callers import user_level
from .._core.names import check_same_rows
from .._solving.solution import Floats
from .block_methods import scored
from .predictions import variance_power


class ScoringRegressor(RegressorMixin):
    """Base of regressors: scores of predictions."""

    loss: Any
    predict: Callable[[Any], Any]

    @scored
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of the variation of y that predictions explain.

        That is the coefficient of determination R², as of all regressors of
        scikit-learn; for ``loss="poisson"``, "gamma" and "tweedie" its analogue D² for
        the deviances of these distributions, as of
        :class:`~sklearn.linear_model.PoissonRegressor` and the like. Of several columns
        of y it is the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.

        Returns
        -------
        score : float
            At most 1; 0 for the best constant. D² is minus infinity, or NaN, where all
            y are equal, and NaN where all are zero.

        Warns
        -----
        UndefinedMetricWarning
            If the score is not finite.
        """
        check_same_rows(X, sample_weight=sample_weight)
        y, sample_weight = as_numpy(y), as_numpy(sample_weight)
        power = variance_power(self)
        if power is None:
            return float(super().score(X, y, sample_weight))
        expected = self.predict(X)
        y = np.asarray(y, dtype=np.float64).reshape(len(expected), -1)
        weights = as_sample_weights(sample_weight, len(y))
        used = weights > 0.0
        y, weights = y[used], weights[used]
        means = np.average(y, axis=0, weights=weights)
        of_means = mean_deviances(y, np.broadcast_to(means, y.shape), weights, power)
        # The mean of equal numbers is rounded.
        of_means[np.ptp(y, axis=0) == 0.0] = 0.0
        expected = expected[used].reshape(y.shape)
        unexplained = mean_deviances(y, expected, weights, power)
        return deviance_explained(unexplained, of_means, means)


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
