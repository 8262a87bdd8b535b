"""Convex penalties Omega(w) of the parameters."""

from ._domains import Bounded, PartlyFree
from ._elastic_net import L2, ElasticNet, elastic_net
from ._entropies import EntropyPenalty, NormalizedEntropy
from ._norms import QuadraticForm, SquaredNorm
from ._regularizer import Regularizer

__all__ = [
    "L2",
    "Bounded",
    "ElasticNet",
    "EntropyPenalty",
    "NormalizedEntropy",
    "PartlyFree",
    "QuadraticForm",
    "Regularizer",
    "SquaredNorm",
    "elastic_net",
]
