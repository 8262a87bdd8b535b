"""What coefficients are worth: covariances of estimates, tables, tests, bootstraps.

This room turns a fitted linear model and its data into standard errors. It may import
blocks, checks and the core, but no estimator.
"""

from .bootstrap import resampled
from .covariances import Covariance, covariances
from .estimates import CoefficientErrors
from .moments import Block, Moments, Spec, block_moments, summed
from .terms import bandwidth

__all__ = [
    "Block",
    "CoefficientErrors",
    "Covariance",
    "Moments",
    "Spec",
    "bandwidth",
    "block_moments",
    "covariances",
    "resampled",
    "summed",
]
