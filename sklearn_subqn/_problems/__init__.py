"""From data to objectives, and from their solutions to attributes, for all estimators.

Below n is the number of rows, d of features, k of scores per row. Targets are what
losses want: signs of one class against the rest, numbers of classes, or numbers.
"""

from .features import INTERCEPTS, InputFeatures, RowsOfBlock
from .linear import LinearProblems
from .model_parameters import LinearModel
from .several_scores import Contrasts, PathProblem
from .solving import Problems
from .targets import class_problems, codes, joint_classes, of_classes, signs
from .thresholds import OrdinalProblem, ThresholdProblem

__all__ = [
    "INTERCEPTS",
    "Contrasts",
    "InputFeatures",
    "LinearModel",
    "LinearProblems",
    "OrdinalProblem",
    "PathProblem",
    "Problems",
    "RowsOfBlock",
    "ThresholdProblem",
    "class_problems",
    "codes",
    "joint_classes",
    "of_classes",
    "signs",
]
