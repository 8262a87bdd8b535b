"""From data to objectives, and from solutions to attributes, for all estimators.

Throughout this subpackage n is the number of rows, d the number of features, and k the
number of scores per row. Targets are in the form that losses take: signs of one class
against the rest, class numbers, or numbers.
"""

from .features import INTERCEPTS, InputFeatures, RowsOfBlock
from .linear import LinearProblems
from .maps import Contrasts, Levels, Nodes
from .model_parameters import LinearModel
from .solving import Problems
from .targets import class_problems, codes, joint_classes, of_classes, signs

__all__ = [
    "INTERCEPTS",
    "Contrasts",
    "InputFeatures",
    "Levels",
    "LinearModel",
    "LinearProblems",
    "Nodes",
    "Problems",
    "RowsOfBlock",
    "class_problems",
    "codes",
    "joint_classes",
    "of_classes",
    "signs",
]
