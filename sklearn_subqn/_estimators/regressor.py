"""What regressors share: scores of predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

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
            At most 1; 0 for the best constant.
        """
        power = variance_power(self)
        if power is None:
            return float(super().score(X, y, sample_weight))
        # Means are not zero, if they are too small for a number.
        expected = np.maximum(self.predict(X), np.finfo(np.float64).tiny)
        y = np.asarray(y)
        shape = (len(y), -1)
        columns = zip(y.reshape(shape).T, expected.reshape(shape).T, strict=True)
        scores = [
            d2_tweedie_score(column, of, sample_weight=sample_weight, power=power)
            for column, of in columns
        ]
        return float(np.mean(scores))
