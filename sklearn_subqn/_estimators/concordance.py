"""Concordance of scores with times to events, and its bounds."""

from __future__ import annotations

import numpy as np

from .._core.arrays import Array, Floats
from .._core.kernels import at_risk as kernel
from .._core.losses import AtRisk, EventTimes
from .._core.rounding import EPS, TINY, running_rounding


class Concordance:
    """The share of comparable pairs of rows that scores order as their events.

    Parameters
    ----------
    targets : ndarray of shape (n, 5)
        See ``Cox``.
    weights : ndarray of shape (n,)
    uno : bool, default=False
        Whether pairs have the inverse squared probability of not being censored.

    Raises
    ------
    ValueError
        If no pair is comparable, or weights by Uno are infinite.
    """

    def __init__(self, targets: Floats, weights: Floats, uno: bool = False) -> None:
        self._times = times = EventTimes(targets, weights, "breslow")
        self._offset, factors = targets[:, -1], times.weights_of_events
        if uno:
            squares = _uncensored(targets, weights)[times.order] ** 2
            if not squares[times.has_event].all():
                raise ValueError(
                    "Uno's weights are infinite: an event follows a time at which all "
                    "samples under observation are censored."
                )
            factors = factors / np.where(times.has_event, squares, 1.0)
        # At the same time, events are not at risk, and censored rows are.
        begins = times.last + times.has_event
        self._rows = begins, times.ends, times.weights, factors
        self._is_event = np.arange(2 * len(begins)) >= len(begins)
        self._total = self._pairs(self._is_event)
        if not self._total > TINY / EPS:
            raise ValueError("No pair of samples is comparable.")

    def __call__(self, scores: Floats) -> float:
        """Return the concordance of scores, to which offsets are added."""
        scores = scores + self._offset
        return self._share(scores, scores)

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the concordance of scores between bounds."""
        if self._offset.any():
            # Rounded sums may be equal where the exact ones differ.
            low = np.nextafter(low + self._offset, -np.inf)
            high = np.nextafter(high + self._offset, np.inf)
        # The score is a ratio of two sums over events. Each term is an event's weight
        # times a sum over at most n rows, by partial sums, and weights are rounded: at
        # most 2 n + log2(2 n) + 3 roundings, relative to positive terms.
        error = 2.0 * running_rounding(len(low))
        lower, upper = self._share(low, high), self._share(high, low)
        return (1.0 - error) * lower, (1.0 + error) * upper

    def _share(self, scores: Floats, others: Floats) -> float:
        """Return the concordance of scores, with others for rows that outlive events.

        Pairs of equal scores count a half.
        """
        order, is_event = self._times.order, self._is_event
        both = np.append(others[order], scores[order])
        right = self._pairs(is_event, both) + self._pairs(~is_event, both)
        return 0.5 * right / self._total

    def _pairs(self, *keys: Array) -> float:
        """Return the weight of pairs whose row comes before the event."""
        nodes = np.zeros(2 * len(self._times.times))
        return kernel.pair_weight(np.lexsort(keys), *self._rows, nodes)


def _uncensored(targets: Floats, weights: Floats) -> Floats:
    """Return the probabilities of not being censored before the time of each row.

    It is the product-limit estimate (Kaplan and Meier 1958).
    """
    entry, time, event = targets.T[:3]
    ranks = np.unique([entry, time], return_inverse=True)[1].reshape(2, -1)
    # At the same time, events precede censoring, and rows enter last.
    entry, time = 2.0 * ranks[0] + 1.0, 2.0 * ranks[1] + (1.0 - event)
    # A censored row is split in two: one leaves just before, the other is at risk at
    # the time of censoring only. The share of the rows that stay is then a ratio of
    # sums. One minus the share of the censored rows would cancel.
    ends = np.flatnonzero(event == 0.0)
    n, rows = len(time), np.append(np.arange(len(time)), ends)
    is_end = np.arange(len(rows)) >= n
    before = time[rows] - (event[rows] == 0.0)
    starts, stops = np.where(is_end, [before, time[rows]], [entry[rows], before])
    none = np.zeros(len(rows))
    censored = np.column_stack([starts, stops, is_end, none, none])
    times = EventTimes(censored, weights[rows], "breslow")
    stays = np.where(is_end[times.order, np.newaxis], 0.0, 1.0)
    kept = AtRisk(times, none).means(stays)[:, 0]
    places = np.searchsorted(-times.times, -time, side="right")
    return np.append(np.cumprod(kept[::-1])[::-1], 1.0)[places]
