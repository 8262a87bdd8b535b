"""What maxima over intervals of dual variables, one for each row, have in common."""

from __future__ import annotations

import numpy as np

from ..rounding import rounding
from ._base import Floats, Mask
from ._loss import Loss
from ._maps import Margin


class Interval:
    """The interval [low, high] of one dual variable v for each row.

    Parameters
    ----------
    to_argument : Margin, Residual or Counts
        From scores and targets to t.
    low, high : float
        With low <= 0 <= high.
    tube : float, default=0
        Is subtracted times |v|, which makes kinks at both ends of a tube around t = 0.
    """

    def __init__(
        self, to_argument: Margin, low: float, high: float, tube: float = 0.0
    ) -> None:
        self.map, self.low, self.high, self.tube = to_argument, low, high, tube
        self.largest = max(-low, high)


class BoxOracle(Loss):
    """What all maxima over a box have in common.

    Parameters
    ----------
    box : Interval
    """

    def __init__(self, box: Interval) -> None:
        self.set, self.map = box, box.map
        self._box = box.map.labels, box.low, box.high

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what rounding leaves out of the box."""
        slack = self.map.slack(targets)
        return float(np.sqrt(weights @ np.square(slack))) if np.ndim(slack) else 0.0

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        weighted = self.map.weighted(dual, targets, weights)
        inside = np.ones(len(weights), dtype=bool)
        _, low, high = self._box
        # Infinity times a weight of zero is no number.
        if low > -np.inf:
            inside &= weighted >= weights * (low - self.map.slack(targets))
        if high < np.inf:
            inside &= weighted <= weights * high
        return inside

    def leeway(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self._variables(dual, targets, weights)
        room = np.minimum(self.set.high - v, v - self.set.low)
        usual = float(weights @ np.abs(v)) or 1.0
        # Ends are known up to rounding.
        room[room <= 4.0 * rounding(1.0) * np.maximum(np.abs(v), usual)] = 0.0
        return weights * np.clip(room, 0.0, usual)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return v within the box; rows of no weight have the v of u = 0."""
        v = self._variables(dual, targets, weights)
        return np.clip(v, self.set.low, self.set.high, out=v)

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return the middle of the box."""
        return np.full(targets.shape, 0.5 * (self.set.low + self.set.high))

    def _variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        v = self.map.weighted(dual, targets, weights)
        return np.divide(v, weights, out=v, where=weights > 0.0)
