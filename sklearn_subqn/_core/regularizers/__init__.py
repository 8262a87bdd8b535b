"""Convex penalties Omega(w) of the parameters."""

from ._domains import Bounded, PartlyFree
from ._entropies import EntropyPenalty, NormalizedEntropy
from ._groups import GroupPenalty
from ._norms import QuadraticForm, SquaredNorm
from ._polyhedron import Polyhedron, projected
from ._regularizer import L2, ElasticNet, Regularizer, elastic_net

__all__ = [
    "L2",
    "Bounded",
    "ElasticNet",
    "EntropyPenalty",
    "GroupPenalty",
    "NormalizedEntropy",
    "PartlyFree",
    "Polyhedron",
    "QuadraticForm",
    "Regularizer",
    "SquaredNorm",
    "elastic_net",
    "projected",
]
