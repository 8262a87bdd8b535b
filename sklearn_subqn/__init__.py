"""Linear estimators trained by quasi-Newton and bundle methods, with proven gaps."""

from .display import ConvergenceDisplay
from .multiclass import MulticlassHingeClassifier
from .multilabel import MultilabelHingeClassifier
from .svm import SubLBFGSLinearSVC
from .svm_cv import SubLBFGSLinearSVCCV

__version__ = "0.1.0.dev0"

__all__ = [
    "ConvergenceDisplay",
    "MulticlassHingeClassifier",
    "MultilabelHingeClassifier",
    "SubLBFGSLinearSVC",
    "SubLBFGSLinearSVCCV",
]
