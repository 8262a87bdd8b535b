"""Losses as objects, and what a loss of one's own is made of (see the user guide)."""

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
