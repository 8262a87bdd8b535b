"""Linear models with the names and parameters of scikit-learn's, and a proven gap."""

from ._dropin.huber import HuberRegressor
from ._dropin.logistic import LogisticRegression
from ._dropin.logistic_cv import LogisticRegressionCV
from ._dropin.regression import PoissonRegressor, QuantileRegressor

__all__ = [
    "HuberRegressor",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PoissonRegressor",
    "QuantileRegressor",
]
