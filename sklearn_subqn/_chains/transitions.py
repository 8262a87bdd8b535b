"""Allowed transitions between labels: chunk schemes, or rules of the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .._checks.foreign_names import did_you_mean
from .._core.arrays import Array, Indices, Mask
from .._core.names import by_name, classes_axis
from .._core.records import stored

# Each scheme has three sets of prefixes: the prefixes that must follow a label of the
# same chunk type, the prefixes allowed for this preceding label, and the prefixes of
# labels after which a chunk may end. In IOB1, "I" can begin a chunk, and "B" begins a
# chunk only after another one of the same type.
_SCHEMES = {
    "BIO": ("I", "BI", "BI"),
    "IOB2": ("I", "BI", "BI"),
    "IOB1": ("B", "BI", "BI"),
    "BIOES": ("IE", "BI", "ES"),
    "BILOU": ("IL", "BI", "LU"),
}


@stored
class TransitionRules(NamedTuple):
    """Allowed transitions, first labels and last labels among k labels.

    Attributes
    ----------
    allowed : ndarray of bool of shape (k, k)
        Whether label j may follow label i, at [i, j].
    ends : ndarray of bool of shape (2, k)
        Whether a sequence may begin, and end, with a label.
    name : str
        The user's parameter, for messages.
    """

    allowed: Mask
    ends: Mask
    name: str

    @classmethod
    def of(cls, constraints: Any, classes: Array) -> TransitionRules:
        """Return the rules of the parameter ``transition_constraints``.

        Raises
        ------
        TypeError, ValueError
            If the constraints are not acceptable, or name unknown labels.
        """
        k = len(classes)
        everything = np.ones((2, k), dtype=bool)
        name = f"transition_constraints={constraints!r}"
        if constraints is None:
            return cls(np.ones((k, k), dtype=bool), everything, name)
        if isinstance(constraints, str):
            if constraints not in _SCHEMES:
                raise ValueError(
                    "transition_constraints must be one of "
                    f"{', '.join(map(repr, _SCHEMES))}, a list of forbidden pairs of "
                    "labels, a boolean matrix of those allowed, or None; got "
                    f"{constraints!r}.{did_you_mean(constraints, _SCHEMES)}"
                )
            return cls(*_scheme(constraints, classes), name)
        labels = classes_axis(classes)
        constraints = by_name("transition_constraints", constraints, labels, labels)
        array = np.asarray(constraints, dtype=object)
        if array.ndim == 2 and all(isinstance(x, (bool, np.bool_)) for x in array.flat):
            array = array.astype(bool)
            if array.shape != (k, k):
                raise ValueError(
                    "transition_constraints as a matrix must have shape "
                    f"{(k, k)} for the labels {classes.tolist()}, got {array.shape}."
                )
            name = "transition_constraints"
            return cls(array, everything, name)
        if isinstance(constraints, bytes) or not isinstance(constraints, Iterable):
            raise TypeError(
                "transition_constraints must be a string, a list of pairs of labels, a "
                f"boolean matrix, or None; got {constraints!r}."
            )
        allowed = np.ones((k, k), dtype=bool)
        codes = {label: code for code, label in enumerate(classes.tolist())}
        for pair in constraints:
            if isinstance(pair, (str, bytes)) or len(pair) != 2:
                raise ValueError(
                    "transition_constraints must list pairs of labels of which the "
                    f"second must not follow the first, got {pair!r}."
                )
            for label in pair:
                if label not in codes:
                    raise ValueError(
                        f"transition_constraints forbids {tuple(pair)!r}, but "
                        f"{label!r} is not among the labels {classes.tolist()}."
                    )
            allowed[codes[pair[0]], codes[pair[1]]] = False
        return cls(allowed, everything, name)

    def check(
        self,
        labels: Indices,
        starts: Indices,
        classes: Array,
        numbers: Indices,
    ) -> None:
        """Raise ValueError if the labels of a sequence violate the rules.

        Parameters
        ----------
        labels : ndarray of shape (T,)
        starts : ndarray of shape (n + 1,)
        classes : ndarray of shape (k,)
        numbers : ndarray of shape (n,)
            Index of each sequence in the user's data, for the message.
        """
        if self.allowed.all() and self.ends.all():
            return
        bad = np.zeros(len(labels), dtype=bool)
        bad[1:] = ~self.allowed[labels[:-1], labels[1:]]
        firsts, lasts = starts[:-1], starts[1:] - 1
        bad[firsts] = ~self.ends[0, labels[firsts]]
        at_end = ~self.ends[1, labels[lasts]]
        if not bad.any() and not at_end.any():
            return
        token = int(bad.argmax()) if bad.any() else int(lasts[at_end.argmax()])
        i = int(np.searchsorted(starts, token, side="right")) - 1
        place = token - int(starts[i])
        label = classes[labels[token]].item()
        if not bad.any():
            what = f"ends with {label!r}"
        elif place:
            before = classes[labels[token - 1]].item()
            what = f"has {label!r} after {before!r} at token {place}"
        else:
            what = f"begins with {label!r}"
        raise ValueError(f"Sequence {numbers[i]} {what}, which {self.name} forbids.")


def _scheme(name: str, classes: Array) -> tuple[Mask, Mask]:
    """Return a chunk scheme's allowed transitions, and first and last labels.

    A label is "O", a prefix alone, or a prefix with "-" and the type of the chunk.
    """
    inner, opens, closes = _SCHEMES[name]
    prefixes = sorted({*inner, *opens, *closes})
    parts = []
    for label in classes.tolist():
        prefix, _, kind = str(label).partition("-")
        if label != "O" and prefix not in prefixes:
            options = ", ".join(f"'{p}-...'" for p in prefixes)
            raise ValueError(
                f"transition_constraints={name!r} needs labels 'O', {options}, or "
                f"{', '.join(map(repr, prefixes))} without types; got {label!r}."
            )
        parts.append((prefix, kind))
    k = len(parts)
    allowed = np.zeros((k, k), dtype=bool)
    for i, (before, kind_before) in enumerate(parts):
        for j, (prefix, kind) in enumerate(parts):
            if prefix in inner:
                allowed[i, j] = before in opens and kind_before == kind
            else:
                allowed[i, j] = before == "O" or before in closes
    first = [prefix not in inner for prefix, _ in parts]
    last = [prefix == "O" or prefix in closes for prefix, _ in parts]
    return allowed, np.array([first, last])
