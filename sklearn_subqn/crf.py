"""Linear-chain conditional random fields with a proven optimality gap."""

from ._chains.estimator import LinearChainCRF
from ._dropin.crf import CRF

__all__ = ["CRF", "LinearChainCRF"]

for _name in __all__:
    globals()[_name].__module__ = __name__
