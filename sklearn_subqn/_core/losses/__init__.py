"""Convex functions of scores, one file per family."""

from ._base import FirstOrderLoss, Loss, PiecewiseQuadratic
from ._box import (
    BINARY_LOSSES,
    NOVELTY_LOSS,
    BoxLoss,
    EntropyLoss,
    QuadraticLoss,
    regression_losses,
)
from ._chain import ChainHinge, ChainLogLoss, ChainLoss
from ._contingency import FBeta
from ._groups import Groups
from ._inversions import Inversions
from ._joint import LabelPairHinge, MulticlassHinge, MultilabelHinge
from ._logistic_pairs import LogisticPairs, LogisticRocArea
from ._metric import MultivariateSquared
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
from ._softmax import Softmax, SoftmaxCurvature, softmax
from ._thresholds import OrdinalLogistic

__all__ = [
    "BINARY_LOSSES",
    "NOVELTY_LOSS",
    "BoxLoss",
    "ChainHinge",
    "ChainLogLoss",
    "ChainLoss",
    "EntropyLoss",
    "ExpectedRankUtility",
    "FBeta",
    "FirstOrderLoss",
    "Groups",
    "Inversions",
    "LabelPairHinge",
    "LogisticPairs",
    "LogisticRocArea",
    "Loss",
    "MulticlassHinge",
    "MultilabelHinge",
    "MultivariateSquared",
    "Ndcg",
    "Ontology",
    "OrderedPairs",
    "OrdinalLogistic",
    "PiecewiseQuadratic",
    "PrecisionAtK",
    "Preferences",
    "QuadraticLoss",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "RocArea",
    "Softmax",
    "SoftmaxCurvature",
    "SquaredPairs",
    "SquaredRocArea",
    "checked",
    "path_shares",
    "read_only",
    "regression_losses",
    "softmax",
]
