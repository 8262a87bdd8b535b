"""Linear models with scikit-learn's names and parameters, and a proven gap."""

from ._dropin.huber import HuberRegressor
from ._dropin.logistic import LogisticRegression
from ._dropin.logistic_cv import LogisticRegressionCV
from ._dropin.means import GammaRegressor, PoissonRegressor, TweedieRegressor
from ._dropin.regression import QuantileRegressor

__all__ = [
    "GammaRegressor",
    "HuberRegressor",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PoissonRegressor",
    "QuantileRegressor",
    "TweedieRegressor",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
