"""Linear estimators trained by quasi-Newton and bundle methods, with proven gaps."""

from . import linear_model, losses, metrics, progress, ranking
from ._blocks.row_blocks import RowBlocks
from .bundle_classification import BMRMClassifier
from .bundle_outliers import BMRMOutlierDetector
from .bundle_regression import BMRMRegressor
from .bundle_regression_cv import BMRMRegressorCV
from .certification import dual_gap
from .crf import LinearChainCRF
from .display import ConvergenceDisplay
from .inference import (
    CoefficientErrors,
    ResidualsDisplay,
    fit_statistics,
    leverages,
    likelihood_ratio_test,
    marginal_effects,
    residuals,
    standard_errors,
    tweedie_power,
)
from .lift_display import LiftDisplay
from .logistic import L1LogisticOWLQN
from .logistic_cv import L1LogisticOWLQNCV
from .multiclass import MulticlassHingeClassifier
from .multilabel import MultilabelHingeClassifier
from .online import OnlineLBFGSClassifier, OnlineLBFGSRegressor
from .optimize import minimize
from .path_display import CoefficientPathDisplay, PathScoreDisplay
from .ranker import BMRMRanker
from .ranker_cv import BMRMRankerCV
from .structured import ConditionalRandomField, StructuredSVM
from .survival import CoxRegression
from .survival_cv import CoxRegressionCV
from .survival_display import SurvivalCurvesDisplay
from .svm import SubLBFGSLinearSVC
from .svm_cv import SubLBFGSLinearSVCCV

__version__ = "0.1.0"

__all__ = [
    "BMRMClassifier",
    "BMRMOutlierDetector",
    "BMRMRanker",
    "BMRMRankerCV",
    "BMRMRegressor",
    "BMRMRegressorCV",
    "CoefficientErrors",
    "CoefficientPathDisplay",
    "ConditionalRandomField",
    "ConvergenceDisplay",
    "CoxRegression",
    "CoxRegressionCV",
    "L1LogisticOWLQN",
    "L1LogisticOWLQNCV",
    "LiftDisplay",
    "LinearChainCRF",
    "MulticlassHingeClassifier",
    "MultilabelHingeClassifier",
    "OnlineLBFGSClassifier",
    "OnlineLBFGSRegressor",
    "PathScoreDisplay",
    "ResidualsDisplay",
    "RowBlocks",
    "StructuredSVM",
    "SubLBFGSLinearSVC",
    "SubLBFGSLinearSVCCV",
    "SurvivalCurvesDisplay",
    "dual_gap",
    "fit_statistics",
    "leverages",
    "likelihood_ratio_test",
    "linear_model",
    "losses",
    "marginal_effects",
    "metrics",
    "minimize",
    "progress",
    "ranking",
    "residuals",
    "standard_errors",
    "tweedie_power",
]
