"""Losses as objects, for estimators that take them, and the base of one's own."""

from ._core.losses import (
    ExpectedRankUtility,
    FBeta,
    FirstOrderLoss,
    Groups,
    Inversions,
    Loss,
    Ndcg,
    Ontology,
    OrderedPairs,
    PrecisionAtK,
    Preferences,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
    RocArea,
)

__all__ = [
    "ExpectedRankUtility",
    "FBeta",
    "FirstOrderLoss",
    "Groups",
    "Inversions",
    "Loss",
    "Ndcg",
    "Ontology",
    "OrderedPairs",
    "PrecisionAtK",
    "Preferences",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "RocArea",
]
