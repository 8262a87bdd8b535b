"""Convex functions of scores: sets of dual variables, smoothings, and oracles."""

from ._base import PiecewiseQuadratic
from ._box import BINARY_LOSSES, NOVELTY_LOSS, Box, OrdinalLogistic, regression_losses
from ._check import LossChecks
from ._contingency import FBeta
from ._cox import AtRisk, Cox, EventTimes
from ._cumulative import CumulativeLogit
from ._dual_loss import AnyLoss, Composed, DualLoss
from ._groups import Groups
from ._inversions import Inversions
from ._label_order import LabelOrder
from ._logistic_pairs import LogisticPairs
from ._loss import Loss
from ._maps import Features, Margin, Residual, Thresholds
from ._metric import MultivariateSquared
from ._ontology import Ontology, path_shares
from ._own import OwnLoss, read_only, with_shield
from ._pairwise import OrderedPairs, SquaredPairs
from ._preferences import Preferences
from ._ranking import RankingLoss
from ._ranking_measures import (
    ExpectedRankUtility,
    Ndcg,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
)
from ._roc_area import LogisticRocArea, RocArea, SquaredRocArea
from ._scale import ScaledHuber
from ._sets import MULTINOMIAL_LOSS, KindsOfLabels, LabelPairs, Simplex
from ._smoothings import BinaryEntropy, Entropy, Quadratic
from ._softmax import SoftmaxCurvature, softmax

__all__ = [
    "BINARY_LOSSES",
    "MULTINOMIAL_LOSS",
    "NOVELTY_LOSS",
    "AnyLoss",
    "AtRisk",
    "BinaryEntropy",
    "Box",
    "Composed",
    "Cox",
    "CumulativeLogit",
    "DualLoss",
    "Entropy",
    "EventTimes",
    "ExpectedRankUtility",
    "FBeta",
    "Features",
    "Groups",
    "Inversions",
    "KindsOfLabels",
    "LabelOrder",
    "LabelPairs",
    "LogisticPairs",
    "LogisticRocArea",
    "Loss",
    "LossChecks",
    "Margin",
    "MultivariateSquared",
    "Ndcg",
    "Ontology",
    "OrderedPairs",
    "OrdinalLogistic",
    "OwnLoss",
    "PiecewiseQuadratic",
    "PrecisionAtK",
    "Preferences",
    "Quadratic",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "Residual",
    "RocArea",
    "ScaledHuber",
    "Simplex",
    "SoftmaxCurvature",
    "SquaredPairs",
    "SquaredRocArea",
    "Thresholds",
    "path_shares",
    "read_only",
    "regression_losses",
    "softmax",
    "with_shield",
]
