"""Linear-chain conditional random fields with a proven distance from the optimum."""

from ._chains.estimator import LinearChainCRF
from ._dropin.crf import CRF

__all__ = ["CRF", "LinearChainCRF"]
