"""Losses as objects, and what a loss of one's own is made of (see the user guide)."""

from ._core.losses import (
    ExpectedRankUtility,
    FBeta,
    Groups,
    Inversions,
    LogisticPairs,
    LogisticRocArea,
    Ndcg,
    Ontology,
    OrderedPairs,
    OrdinalLogistic,
    PrecisionAtK,
    Preferences,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
    RocArea,
    SquaredPairs,
    SquaredRocArea,
)
from ._core.losses import Oracle as Loss

#: The base of losses known by values and subgradients only: the same class.
FirstOrderLoss = Loss

__all__ = [
    "ExpectedRankUtility",
    "FBeta",
    "FirstOrderLoss",
    "Groups",
    "Inversions",
    "LogisticPairs",
    "LogisticRocArea",
    "Loss",
    "Ndcg",
    "Ontology",
    "OrderedPairs",
    "OrdinalLogistic",
    "PrecisionAtK",
    "Preferences",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "RocArea",
    "SquaredPairs",
    "SquaredRocArea",
]
