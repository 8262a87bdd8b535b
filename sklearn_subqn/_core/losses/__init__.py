"""Convex functions of scores, one file per family."""

from ._base import FirstOrderLoss, Loss, PiecewiseQuadratic
from ._hinge import Hinge, SquaredHinge
from ._label_pairs import LabelPairHinge
from ._logistic import Logistic, Softmax
from ._multiclass import MulticlassHinge
from ._multilabel import MultilabelHinge
from ._residual import Absolute, EpsilonInsensitive, Novelty, Quantile
from ._smooth import Exponential, Huber, MultivariateSquared, Poisson, Squared

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Exponential",
    "FirstOrderLoss",
    "Hinge",
    "Huber",
    "LabelPairHinge",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "MultilabelHinge",
    "MultivariateSquared",
    "Novelty",
    "PiecewiseQuadratic",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
]
