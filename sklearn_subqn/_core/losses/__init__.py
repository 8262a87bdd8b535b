"""Convex functions of scores, one file per family."""

from ._base import FirstOrderLoss, Loss, PiecewiseQuadratic
from ._chain import ChainHinge, ChainLogLoss, ChainLoss
from ._contingency import FBeta
from ._groups import Groups
from ._hinge import Hinge, SquaredHinge
from ._inversions import Inversions
from ._joint import LabelPairHinge, MulticlassHinge, MultilabelHinge
from ._logistic import Logistic
from ._logistic_pairs import LogisticPairs, LogisticRocArea
from ._ontology import Ontology, path_shares
from ._own import checked, read_only
from ._pairwise import (
    OrderedPairs,
    Preferences,
    RocArea,
    SquaredPairs,
    SquaredRocArea,
)
from ._ranking import (
    ExpectedRankUtility,
    Ndcg,
    PrecisionAtK,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
)
from ._residual import Absolute, EpsilonInsensitive, Novelty, Quantile
from ._smooth import Exponential, Huber, MultivariateSquared, Poisson, Squared
from ._softmax import Softmax, SoftmaxCurvature, softmax

__all__ = [
    "Absolute",
    "ChainHinge",
    "ChainLogLoss",
    "ChainLoss",
    "EpsilonInsensitive",
    "ExpectedRankUtility",
    "Exponential",
    "FBeta",
    "FirstOrderLoss",
    "Groups",
    "Hinge",
    "Huber",
    "Inversions",
    "LabelPairHinge",
    "Logistic",
    "LogisticPairs",
    "LogisticRocArea",
    "Loss",
    "MulticlassHinge",
    "MultilabelHinge",
    "MultivariateSquared",
    "Ndcg",
    "Novelty",
    "Ontology",
    "OrderedPairs",
    "PiecewiseQuadratic",
    "Poisson",
    "PrecisionAtK",
    "Preferences",
    "Quantile",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "RocArea",
    "Softmax",
    "SoftmaxCurvature",
    "Squared",
    "SquaredHinge",
    "SquaredPairs",
    "SquaredRocArea",
    "checked",
    "path_shares",
    "read_only",
    "softmax",
]
