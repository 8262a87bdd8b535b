"""The losses of classifiers by name, with the parameters that some of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.losses import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    AnyLoss,
    CumulativeLogit,
    FBeta,
    LogisticPairs,
    LogisticRocArea,
    OrderedPairs,
    OrdinalLogistic,
    PrecisionAtK,
    RecallAtK,
    RocArea,
    SquaredPairs,
    SquaredRocArea,
)

#: Losses by name, most of them for targets -1 and +1 of each class against the rest.
LOSSES: dict[str, Callable[[Any], AnyLoss]] = {
    **{
        name: lambda estimator: BINARY_LOSSES[str(estimator.loss)]
        for name in BINARY_LOSSES
    },
    "multinomial": lambda estimator: MULTINOMIAL_LOSS,
    "roc_area": lambda estimator: RocArea(),
    "roc_area_squared": lambda estimator: SquaredRocArea(),
    "roc_area_log": lambda estimator: LogisticRocArea(),
    "f_beta": lambda estimator: BINARY_LOSSES["squared_hinge"],
    "f_beta_bound": lambda estimator: FBeta(float(estimator.beta)),
    "ordinal": lambda estimator: OrderedPairs("constant"),
    "ordinal_squared": lambda estimator: SquaredPairs("constant"),
    "ordinal_log": lambda estimator: LogisticPairs("constant"),
    "ordinal_linear": lambda estimator: OrderedPairs("linear"),
    "ordinal_linear_squared": lambda estimator: SquaredPairs("linear"),
    "ordinal_linear_log": lambda estimator: LogisticPairs("linear"),
    "ordinal_all_threshold": lambda estimator: OrdinalLogistic(),
    "ordinal_immediate_threshold": lambda estimator: OrdinalLogistic(immediate=True),
    "ordinal_logit": lambda estimator: CumulativeLogit(),
    "precision_at_k": lambda estimator: PrecisionAtK(estimator.k or 0),
    "recall_at_k": lambda estimator: RecallAtK(estimator.k or 0),
}
#: The smooth losses of one score per sample, which have offsets and standard errors.
SMOOTH = [name for name, loss in BINARY_LOSSES.items() if loss.smooth]
NEED_BETA = ("f_beta", "f_beta_bound")
NEED_K = ("precision_at_k", "recall_at_k")
CONCERN_ONE_CLASS = (*NEED_BETA, *NEED_K, "roc_area")

# Advice for optima that do not use the features.
INSTEAD = {
    "hinge": "take class_weight='balanced' or loss='log_loss'",
    "f_beta_bound": (
        "this bound of the score cannot separate the classes: take loss='f_beta'"
    ),
    **dict.fromkeys(
        NEED_K,
        "this bound of the measure cannot rank the samples: take loss='log_loss'",
    ),
}
