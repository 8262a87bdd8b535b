"""Convex functions of scores, one file per family."""

from ._base import Loss, PiecewiseQuadratic
from ._hinge import Hinge, SquaredHinge
from ._logistic import Logistic, Softmax

__all__ = [
    "Hinge",
    "Logistic",
    "Loss",
    "PiecewiseQuadratic",
    "Softmax",
    "SquaredHinge",
]
