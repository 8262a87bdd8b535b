"""Labels of the tokens of sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._checks import check_no_nul, check_unmasked, exact_labels, is_missing
from .._core.arrays import Array, Indices


def flat_labels(y: Any, lengths: Indices) -> list[Any]:
    """Return the labels of all tokens, from a list of labels for each sequence.

    Raises
    ------
    TypeError, ValueError
        If a sequence has more or fewer labels than tokens; the message names the
        sequence.
    """
    labels: list[Any] = []
    for i, (sequence, length) in enumerate(zip(y, lengths.tolist(), strict=True)):
        if isinstance(sequence, (str, bytes)) or not isinstance(sequence, Iterable):
            raise TypeError(
                f"y must have a list of labels for each sequence; y[{i}] is "
                f"{sequence!r}."
            )
        check_unmasked(f"y[{i}]", sequence)
        before = len(labels)
        labels.extend(sequence.tolist() if hasattr(sequence, "tolist") else sequence)
        if len(labels) - before != length:
            raise ValueError(
                f"Sequence {i} has {length} tokens, but {len(labels) - before} labels."
            )
    return labels


def distinct_labels(labels: list[Any]) -> Array:
    """Return the sorted distinct labels.

    Raises
    ------
    TypeError, ValueError
        If a label is missing, cannot be hashed or compared, or ends with NUL.
    """
    try:
        different = set(labels)
    except TypeError as error:
        raise TypeError(
            f"Labels of tokens must be strings or numbers: {error}."
        ) from error
    if any(map(is_missing, different)):
        raise ValueError(
            "Input y contains NaN, None or NA. Leave sequences with tokens without a "
            "label out."
        )
    check_no_nul(different)
    try:
        ordered = sorted(different)
    except TypeError as error:
        raise TypeError(
            "Labels of tokens must be all strings or all numbers, got types "
            f"{sorted({type(label).__name__ for label in different})}."
        ) from error
    classes: Array = exact_labels("y", ordered)
    if classes.ndim != 1 or classes.dtype.kind not in "biuUS":
        if classes.dtype.kind == "f" and np.all(classes == np.rint(classes)):
            return classes
        raise ValueError(
            "Labels of tokens must be strings, integers or truth values, got "
            f"{ordered[0]!r} of type {type(ordered[0]).__name__}."
        )
    return classes


def several_classes(labels: list[Any]) -> Array:
    """Return the sorted distinct labels; raise unless there are two or more."""
    classes = distinct_labels(labels)
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs tokens of at least 2 classes in the data, but the "
            f"data contains only one class: {classes.tolist()[0]!r}."
        )
    return classes


def label_codes(labels: list[Any], classes: Array) -> Indices:
    """Return the index of each label among the classes.

    Raises
    ------
    ValueError
        If a label is not among the classes.
    """
    codes = {label: code for code, label in enumerate(classes.tolist())}
    try:
        found = [codes[label] for label in labels]
    except KeyError:
        unknown = sorted(set(labels) - set(codes))
        raise ValueError(
            f"y contains labels that are not among the classes: {unknown}; classes are "
            f"{classes.tolist()}."
        ) from None
    return np.array(found, dtype=np.intp)
