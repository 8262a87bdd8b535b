"""Linear-chain conditional random fields with a proven distance from the optimum."""

from ._dropin.crf import CRF
from ._linear_chain import LinearChainCRF

__all__ = ["CRF", "LinearChainCRF"]
