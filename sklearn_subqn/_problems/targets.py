"""Targets for losses of classes, and the problems of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Array, Floats, Indices
from .._core.losses import DualLoss
from .linear import LinearProblems
from .maps import Contrasts
from .model_parameters import LinearModel
from .reading import Reading


def signs(y: Array, classes: Array, positive: int | None = None) -> list[Floats]:
    """Return signs, 1 where y is a class and -1 elsewhere, for each of the classes.

    For two classes there are only the signs of the second class, or of the class with
    the number ``positive``.
    """
    if len(classes) == 2:
        positive = 1 if positive is None else positive
        return [np.where(y == classes[positive], 1.0, -1.0)]
    return [np.where(y == each, 1.0, -1.0) for each in classes]


def codes(y: Array, classes: Array) -> Indices:
    """Return class numbers; other labels get any number, since they have no weight."""
    return np.minimum(np.searchsorted(classes, y), len(classes) - 1).astype(np.intp)


def class_problems(
    model: LinearModel,
    X: Any,
    y: Array,
    loss: DualLoss,
    weights: Floats | list[Floats],
    classes: Array,
    positive: int | None = None,
    offset: Floats | None = None,
    reading: Reading | None = None,
) -> LinearProblems:
    """Return one problem for two classes, or one for each class against the rest.

    ``positive`` is the number of the positive class of two classes, by default one;
    ``offset`` of shape (n,) is added to the scores.
    """
    targets, known = signs(y, classes, positive), of_classes(classes, positive)
    if offset is not None:
        loss = loss.with_offsets()
        targets = [np.column_stack([each, offset]) for each in targets]
    data, opposite = (model, X, targets, loss, weights), positive == 0
    given: Any = {"outputs": classes, "known": known, "reading": reading}
    return LinearProblems(*data, opposite=opposite, **given)


def of_classes(classes: Array, positive: int | None = None) -> dict[str, Any]:
    """Return the attributes of the classes, and of the positive class if given."""
    known: dict[str, Any] = {"classes_": classes}
    if positive is not None:
        known["pos_label_"] = classes.tolist()[positive]
    return known


def joint_classes(
    model: LinearModel,
    X: Any,
    y: Array,
    loss: DualLoss,
    weights: Floats,
    classes: Array,
    known: dict[str, Any] | None = None,
    reading: Reading | None = None,
) -> LinearProblems:
    """Return the joint problem of all classes; two classes store their difference."""
    data = model, X, [codes(y, classes)], loss, weights
    n_scores, known = len(classes), {"classes_": classes, **(known or {})}
    scores = Contrasts(2, base=0) if n_scores == 2 else None
    given: Any = {"scores": scores, "known": known, "reading": reading}
    return LinearProblems(*data, n_scores=n_scores, **given)
