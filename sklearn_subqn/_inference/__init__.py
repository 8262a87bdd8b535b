"""The accuracy of coefficients: covariances of estimates, tables, tests, bootstraps.

Standard errors are computed from a linear model and sums over the rows of its data.
This subpackage may import blocks, checks and the core, but no estimator.
"""

from .assembled import Names, assembled, between_classes, estimated, factors_of, theta
from .bootstrap import resampled
from .covariances import Covariance, DualTerms, covariances, dual_leverages
from .estimates import CoefficientErrors, WaldTest
from .moments import (
    RowMoments,
    Spec,
    TargetedRows,
    block_moments,
    moments_of,
    row_terms,
    summed,
)
from .terms import RowTerms, bandwidth

__all__ = [
    "CoefficientErrors",
    "Covariance",
    "DualTerms",
    "Names",
    "RowMoments",
    "RowTerms",
    "Spec",
    "TargetedRows",
    "WaldTest",
    "assembled",
    "bandwidth",
    "between_classes",
    "block_moments",
    "covariances",
    "dual_leverages",
    "estimated",
    "factors_of",
    "moments_of",
    "resampled",
    "row_terms",
    "summed",
    "theta",
]
