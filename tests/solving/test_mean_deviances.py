"""Mean deviances of predictions, beside those of scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from sklearn_subqn._solving.deviances import mean_deviances


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 1.99, 2.0, 2.5, 3.0])
def test_mean_deviances_are_those_of_scikit_learn(power):
    rng = np.random.default_rng(0)
    expected = np.exp(rng.normal(size=(50, 2)) * 3.0)
    y = rng.gamma(1.0, expected)
    if power < 2.0:
        y[:20] = 0.0
    y[20:30] = expected[20:30]
    weights = rng.uniform(0.1, 2.0, 50)
    found = mean_deviances(y, expected, weights, power)
    for column, mean, deviance in zip(y.T, expected.T, found, strict=True):
        theirs = mean_tweedie_deviance(column, mean, sample_weight=weights, power=power)
        assert deviance == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize(
    ("y", "expected", "power", "message"),
    [
        (-1.0, 1.0, 1.0, "non-negative y"),
        (0.0, 1.0, 2.0, "strictly positive y"),
        (np.nan, 1.0, 1.5, "NaN"),
        (1.0, np.inf, 1.0, "infinity"),
    ],
)
def test_numbers_without_a_deviance_are_refused(y, expected, power, message):
    y, expected = np.array([[1.0], [y]]), np.array([[1.0], [expected]])
    with pytest.raises(ValueError, match=message):
        mean_deviances(y, expected, np.ones(2), power)
