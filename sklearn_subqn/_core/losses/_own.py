"""A checked wrapper of users' losses."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..rounding import CLOSE
from ._base import Floats
from ._dual_loss import DualLoss
from ._loss import Loss, offers


class OwnLoss(Loss):
    """A user's loss by values and subgradients, which are checked on every call.

    Its arguments are read-only. Values must be finite, and subgradients finite double
    precision arrays of the shape of the scores. No value may be below the cuts of
    earlier subgradients, which are lower bounds of a convex loss. If terms cancel in a
    subgradient, earlier subgradients give the size of the terms.

    Parameters
    ----------
    loss : Loss
    name : str, optional
        Name in messages; default the name of its class.
    """

    def __init__(self, loss: Loss, name: str | None = None) -> None:
        self._loss = loss
        self._name = name or type(loss).__name__
        self._value, self._subgradient = (
            name or f"{self._name}.{each}" for each in ("value", "subgradient")
        )
        self._hint = (
            "." if name else ": of sum_i weights_i * loss_i it has the weights."
        )
        self.infimum, self.slope_size = loss.infimum, loss.slope_size
        self.ranks, self.counts_rows = loss.ranks, loss.counts_rows
        self.steep, self.joint = loss.steep, loss.joint
        self.invariant = loss.invariant
        self._targets: Any = None
        # Each new value and subgradient is compared with the last four.
        self._seen: deque[tuple[Floats, float, Floats]] = deque(maxlen=4)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self._checked_value(self._call("value", scores, targets, weights))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        value, dual = self._call("evaluate", scores, targets, weights)
        value = self._checked_value(value)
        u = self._checked_subgradient(dual, scores)
        if self._targets is not targets:
            self._targets = targets
            self._seen.clear()
        for other in self._seen:
            self._compare(other, (scores, value, u))
            self._compare((scores, value, u), other)
        self._seen.append((scores.copy(), value, u))
        self.slope_size = max(self.slope_size, float(np.abs(u).sum()))
        return value, u.copy()

    def _call(self, method: str, *arguments: Any) -> Any:
        views = [read_only(array) for array in arguments]
        try:
            return getattr(self._loss, method)(*views)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise ValueError(
                f"{self._name} writes into scores, targets or weights, which belong to "
                "the solver; it has to compute with copies of them."
            ) from error

    def _checked_value(self, value: Any) -> float:
        array = np.asarray(value)
        if array.shape != () or array.dtype.kind not in "fiu":
            raise TypeError(
                f"{self._value} must return a real number, got "
                f"{type(value).__name__}"
                + (f" of shape {array.shape}." if array.shape else ".")
            )
        if not np.isfinite(array):
            raise ValueError(
                f"{self._value} must return a finite number, got {value!r}."
            )
        return float(array)

    def _checked_subgradient(self, dual: Any, scores: Floats) -> Floats:
        array = np.asarray(dual)
        if array.dtype.kind not in "iu" and array.dtype != np.float64:
            raise TypeError(
                f"{self._subgradient} must return an array of float64, got "
                f"{array.dtype}. Rounded numbers prove nothing."
            )
        if array.shape != scores.shape:
            raise ValueError(
                f"{self._subgradient} must return one number for each score, of "
                f"shape {scores.shape}, got shape {array.shape}."
            )
        u = np.array(array, dtype=np.float64, order="C")
        if not np.isfinite(u).all():
            n = np.count_nonzero(~np.isfinite(u))
            raise ValueError(
                f"{self._subgradient} must return finite numbers; {n} of {u.size} "
                "are NaN or infinite."
            )
        if self.invariant and u.ndim > 1:
            sums = np.abs(u.sum(axis=1))
            if np.any(sums > CLOSE * np.abs(u).sum(axis=1)):
                raise ValueError(
                    f"{self._name} has invariant = True, which says that adding a "
                    "constant to all scores of a row changes nothing; but entries of "
                    "its subgradient do not sum to zero in each row."
                )
        return u

    def _compare(
        self, first: tuple[Floats, float, Floats], second: tuple[Floats, float, Floats]
    ) -> None:
        """Raise if the second value is below the cut of the first subgradient."""
        (scores, value, u), (others, other, _) = first, second
        bound = value + float(np.vdot(u, others - scores))
        size = np.abs(u)
        terms = float(np.vdot(size, np.abs(scores) + np.abs(others)))
        if other < bound - CLOSE * (terms + abs(value) + abs(other)):
            raise ValueError(
                f"{self._name} contradicts itself: at some scores its value is "
                f"{other:.6g}, but an earlier value and subgradient say that it is "
                f"{bound:.6g} at least. Either it is not convex, or the subgradient is "
                f"not one{self._hint}"
            )


def with_shield(
    loss: DualLoss, targets: Any, weights: Floats
) -> tuple[DualLoss, Any, Floats]:
    """Return a user's loss with read-only arguments and checked results.

    Values and subgradients are checked if the loss defines no other members.
    """
    if not (loss.has_lines or offers(loss.oracle, "conjugate")):
        loss = DualLoss(OwnLoss(loss.oracle))
    return loss, read_only(targets), read_only(weights)


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
