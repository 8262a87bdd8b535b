"""The accuracy of coefficients: covariances of estimates, tables, tests, bootstraps.

Standard errors are computed from a linear model and sums over the rows of its data.
This subpackage may import blocks, checks and the core, but no estimator.
"""

from .assembled import Names, assembled, estimated, theta
from .bootstrap import resampled
from .covariances import Covariance, covariances
from .estimates import CoefficientErrors, WaldTest
from .moments import RowMoments, Spec, TargetedRows, block_moments, summed
from .terms import bandwidth

__all__ = [
    "CoefficientErrors",
    "Covariance",
    "Names",
    "RowMoments",
    "Spec",
    "TargetedRows",
    "WaldTest",
    "assembled",
    "bandwidth",
    "block_moments",
    "covariances",
    "estimated",
    "resampled",
    "summed",
    "theta",
]
