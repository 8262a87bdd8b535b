"""Convex functions of scores, one file per family."""

from ._base import Loss, PiecewiseQuadratic
from ._hinge import Hinge, SquaredHinge
from ._label_pairs import LabelPairHinge
from ._logistic import Logistic, Softmax
from ._multiclass import MulticlassHinge
from ._multilabel import MultilabelHinge

__all__ = [
    "Hinge",
    "LabelPairHinge",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "MultilabelHinge",
    "PiecewiseQuadratic",
    "Softmax",
    "SquaredHinge",
]
