"""The base class of losses that are maxima over rankings within groups of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..rounding import rounding
from ._base import Floats
from ._groups import Groups
from ._loss import Loss


class Maximum(NamedTuple):
    """Value, subgradient and conjugate of a ranking loss at some scores.

    Attributes
    ----------
    value : float
    u : ndarray of shape (n,)
        Subgradient.
    lost : float
        A non-negative lower bound of -R*(u): the rankings' loss of the measure.
    """

    value: float
    u: Floats
    lost: float

    @classmethod
    def of_groups(
        cls,
        groups: Groups,
        weights: Floats,
        losses: Floats,
        u: Floats,
        lost: Floats,
        sizes: Floats,
    ) -> Maximum:
        """Return the sum over groups, each with the weight of its rows.

        ``sizes`` are sums of the absolute terms of the differences ``lost``, which are
        non-negative.
        """
        group_weights = groups.sums(weights)
        u *= group_weights[groups.codes]
        least = np.maximum(lost - rounding(len(u)) * sizes, 0.0)
        least *= 1.0 - rounding(len(groups))
        return cls(float(group_weights @ losses), u, float(group_weights @ least))


class OfRankings(Loss):
    """A maximum over rankings within groups of rows."""

    ranks = True
    counts_rows = True
    _memos: ClassVar[tuple[str, ...]] = ("_last",)
    _last: tuple[tuple[Floats, Any, Floats], Maximum] | None = None

    @abstractmethod
    def _maximize(self, scores: Floats, targets: Floats, weights: Floats) -> Maximum:
        """Return the values at some scores."""

    def _maximum(self, scores: Floats, targets: Floats, weights: Floats) -> Maximum:
        """Return the maximum at some scores; the last result is remembered."""
        last = self._last
        if (
            last is None
            or last[0][1] is not targets
            or last[0][2] is not weights
            or not np.array_equal(last[0][0], scores)
        ):
            maximum = self._maximize(scores, targets, weights)
            last = self._last = (scores.copy(), targets, weights), maximum
        return last[1]

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return self._maximum(scores, targets, weights).value

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self._maximum(scores, targets, weights).u.copy()

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        maximum = self._maximum(scores, targets, weights)
        return maximum.value, maximum.u.copy()

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the rankings' loss of the measure, or an upper bound."""
        return -self._maximum(scores, targets, weights).lost

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        return abs(conjugate)
