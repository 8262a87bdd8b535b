"""The base of regressors: the score of predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from .._checks import as_numpy, as_sample_weights, check_no_times
from .._core.names import check_same_rows
from .._solving.deviances import deviance_explained, mean_deviances
from .block_methods import scored
from .predictions import variance_power


class ScoringRegressor(RegressorMixin):
    """Base of regressors with a ``score``."""

    loss: Any
    predict: Callable[[Any], Any]

    @scored
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of the variation of y that predictions explain.

        This is the coefficient of determination R², as in all regressors of
        scikit-learn. For ``loss="poisson"``, "gamma" and "tweedie" it is the analogous
        D² of the deviance, as in :class:`~sklearn.linear_model.PoissonRegressor`. For
        several columns of y it is the mean.

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
            At most 1; 0 for the best constant. D² is minus infinity or NaN if all y are
            equal, and NaN if all are zero.

        Warns
        -----
        UndefinedMetricWarning
            If the score is not finite.
        """
        check_same_rows(X, y=y, sample_weight=sample_weight)
        return self._score_of(self.predict(X), y, sample_weight)

    def _score_of(self, expected: Any, y: Any, sample_weight: Any) -> float:
        """Return the score of predictions."""
        y, sample_weight = as_numpy(y), as_numpy(sample_weight)
        check_no_times(y)
        power = variance_power(self)
        if power is None:
            return _r_squared(y, expected, sample_weight)
        y = np.asarray(y, dtype=np.float64).reshape(len(expected), -1)
        weights = as_sample_weights(sample_weight, len(y))
        used = weights > 0.0
        y, weights = y[used], weights[used]
        means = np.average(y, axis=0, weights=weights)
        of_means = mean_deviances(y, np.broadcast_to(means, y.shape), weights, power)
        # The deviance of equal numbers is zero, but their computed mean may be rounded.
        of_means[np.ptp(y, axis=0) == 0.0] = 0.0
        expected = expected[used].reshape(y.shape)
        unexplained = mean_deviances(y, expected, weights, power)
        return deviance_explained(unexplained, of_means, means)


def _r_squared(y: Any, expected: Any, sample_weight: Any) -> float:
    """Return ``r2_score`` without its checks, which take longer than its sums.

    The checks are omitted for one column of targets without weights, if R² is defined.
    """
    plain = type(y) is np.ndarray and y.dtype == np.float64 == expected.dtype
    if plain and sample_weight is None and y.ndim == 1 and y.shape == expected.shape:
        with np.errstate(all="ignore"):
            variation, residuals = y - y.mean(), y - expected
            total, unexplained = variation @ variation, residuals @ residuals
        if 0.0 < total < np.inf and unexplained < np.inf:
            return 1.0 - float(unexplained) / float(total)
    return float(r2_score(y, expected, sample_weight=sample_weight))
