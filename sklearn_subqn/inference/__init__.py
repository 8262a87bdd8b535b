"""Standard errors, likelihoods, effects and residuals of fitted models."""

from .._inference import CoefficientErrors
from .effects import marginal_effects
from .errors import standard_errors
from .likelihoods import fit_statistics, likelihood_ratio_test
from .powers import tweedie_power
from .residuals_display import ResidualsDisplay
from .samples import leverages, residuals

__all__ = [
    "CoefficientErrors",
    "ResidualsDisplay",
    "fit_statistics",
    "leverages",
    "likelihood_ratio_test",
    "marginal_effects",
    "residuals",
    "standard_errors",
    "tweedie_power",
]
