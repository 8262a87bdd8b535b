"""Targets, losses and class weights of classifiers on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._checks import check_class_weight
from .._core.arrays import Array, Floats
from .._core.losses import BINARY_LOSSES
from .._core.names import MOST_NAMED
from .._core.online.losses_with_curvature import (
    DampedSoftmax,
    OfScores,
    OneVsRest,
    OnlineLoss,
)
from .weights import check_sizes

#: Losses of one score per row with bounded curvature, which online steps need.
BINARY: dict[str, OnlineLoss] = {
    name: OfScores(loss) for name, loss in BINARY_LOSSES.items() if not loss.steep
}


def targets_of_classes(
    y: Array, classes: Array, name: str
) -> tuple[Floats, OnlineLoss, int | None]:
    """Return encoded targets, the named loss, and the number of scores per row."""
    if len(classes) == 2:
        positive = y == classes[1]
        if np.all(positive | (y == classes[0])):
            return np.where(positive, 1.0, -1.0), BINARY[name], None
    codes = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    if np.any(classes[codes] != y):
        check_classification_targets(y)
        new = np.setdiff1d(y, classes).tolist()
        listed = ", ".join(map(repr, new[:MOST_NAMED]))
        if len(new) > MOST_NAMED:
            listed += f" and {len(new) - MOST_NAMED} more"
        raise ValueError(
            f"y has classes {listed} that are not among those of the first call, "
            f"{classes.tolist()}."
        )
    if name == "log_loss":
        return codes.astype(np.float64), DampedSoftmax(), len(classes)
    targets = np.full((len(codes), len(classes)), -1.0)
    targets[np.arange(len(codes)), codes] = 1.0
    return targets, OneVsRest(BINARY[name]), len(classes)


def factors_of_classes(y: Array, class_weight: dict[Any, float]) -> Floats:
    """Return the class weight of each row."""
    return np.array([class_weight.get(label, 1.0) for label in y.tolist()])


def class_weighted(
    y: Array,
    weights: Floats | None,
    class_weight: Any,
    classes: Array,
) -> Floats:
    """Return the row weights times the class weights, checked."""
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight {class_weight!r} is not supported for partial_fit, "
            "which sees no more than a part of the rows. Compute the weights over "
            "all classes, for example by "
            "sklearn.utils.class_weight.compute_class_weight, and give them as a "
            "dict from labels to weights."
        )
    check_class_weight(class_weight)
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(
            f"class_weight has the labels {sorted(map(str, unknown))}, which are "
            f"not among the classes {classes.tolist()}."
        )
    factors = factors_of_classes(y, class_weight)
    check_sizes("class_weight", factors)
    if weights is None:
        return factors
    weights = factors * weights
    check_sizes("sample_weight times class_weight", weights)
    return weights
