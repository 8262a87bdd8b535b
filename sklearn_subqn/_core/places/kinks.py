"""Exact line searches over rows in several parts, which send few of their kinks.

The slopes at some pivots, summed over all parts, bracket the minimizer. Pivots among
the kinks in the bracket narrow it until few kinks remain. These kinks are sent to one
process; all other kinks are sent as sums. The search takes three requests for any
number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..losses._base import Floats, PiecewiseQuadratic


class Some(NamedTuple):
    """Some of a part's kinks in an interval.

    Attributes
    ----------
    start : ndarray of shape (2,)
        Slope and curvature at 0.
    jumps : ndarray of shape (2,)
        The sums of the jumps of slope and curvature over all kinks of the part.
    last : float
        The last kink of the part, zero if there is none.
    kinks : ndarray of shape (3, m)
        Kinks, jumps of the slope and jumps of the curvature, if these are all kinks of
        the interval; otherwise pivots of shape (1, m), including the first and last
        kink.
    """

    start: Floats
    jumps: Floats
    last: float
    kinks: Floats

    @property
    def is_all(self) -> bool:
        """Whether ``kinks`` has all kinks of the interval."""
        return len(self.kinks) == 3


class Kinks:
    """The kinks of one summand of a piecewise quadratic function.

    Parameters
    ----------
    function : PiecewiseQuadratic
    """

    def __init__(self, function: PiecewiseQuadratic) -> None:
        self._function = function

    def some(self, low: float, high: float, n_pivots: int, few: int) -> Some:
        """Return the kinks in (low, high] if they are few or equal, else pivots."""
        f = self._function
        jumps = np.stack([f.slope_jumps, f.curvature_jumps])
        start = np.array([f.slope, f.curvature])
        known = start, jumps.sum(axis=1), float(f.kinks.max(initial=0.0))
        inside = np.flatnonzero((f.kinks > low) & (f.kinks <= high))
        kinks, jumps = f.kinks[inside], jumps[:, inside]
        if len(kinks) <= few:
            return Some(*known, np.vstack([kinks, jumps]))
        least, most = kinks.min(), kinks.max()
        if least == most:
            return Some(*known, np.array([[least], *jumps.sum(axis=1, keepdims=True)]))
        pivots = kinks[:: -(-len(kinks) // n_pivots)]
        return Some(*known, np.append(pivots, [least, most])[np.newaxis])

    def passed(self, steps: Floats) -> Floats:
        """Return sums of jumps over kinks up to ascending steps, of shape (2, m)."""
        f = self._function
        places = np.searchsorted(steps, f.kinks)
        sums = [
            np.bincount(places, jumps, len(steps) + 1)[:-1].cumsum()
            for jumps in (f.slope_jumps, f.curvature_jumps)
        ]
        return np.array(sums)


class SumOfParts(PiecewiseQuadratic):
    """The sum of piecewise quadratic functions, exact in a bracket of its minimizer.

    Outside of the bracket, slopes are requested from the parts.

    Parameters
    ----------
    parts : Parts
        Objects of type ``Kinks``.
    n_parts : int
    other : PiecewiseQuadratic
        Another summand, whose kinks are all in this process.
    """

    def __init__(self, parts: Any, n_parts: int, other: PiecewiseQuadratic) -> None:
        # All parts together send about 512 pivots and at most 3000 kinks, or 80 kB.
        n_pivots, few = max(512 // n_parts, 1), 3000 // n_parts
        low, high, last = 0.0, np.inf, 0.0
        start = before = beyond = jumps = np.zeros(2)
        found: list[Some] = []
        while True:
            found = parts.results("some", low, high, n_pivots, few)
            start = np.sum([each.start for each in found], axis=0)
            jumps = np.sum([each.jumps for each in found], axis=0)
            last = max(each.last for each in found)
            # A function that does not decrease at 0 has the minimizer 0.
            if start[0] + other.slope >= 0.0:
                low, high, found = 0.0, 0.0, []
            some = [each.kinks[0] for each in found if not each.is_all]
            if not some:
                break
            pivots = np.unique(np.concatenate(some))
            passed = parts.total("passed", pivots)
            slope, curvature = start[:, np.newaxis] + passed
            slopes = slope + curvature * pivots
            slopes += [other.slope_at(step) for step in pivots.tolist()]
            ahead = np.flatnonzero(slopes >= 0.0)
            place = int(ahead[0]) if len(ahead) else len(pivots)
            if place:
                low, before = float(pivots[place - 1]), passed[:, place - 1]
            if place < len(pivots):
                high, beyond = float(pivots[place]), passed[:, place]
        kinks = [each.kinks for each in found]
        if low > 0.0:
            kinks.append(np.array([low, *before])[:, np.newaxis])
        if 0.0 < high < np.inf:
            kinks.append(np.array([last, *(jumps - beyond)])[:, np.newaxis])
        known = np.hstack([np.zeros((3, 0)), *kinks])
        whole = PiecewiseQuadratic(start[0], start[1], *known) + other
        super().__init__(
            whole.slope,
            whole.curvature,
            whole.kinks,
            whole.slope_jumps,
            whole.curvature_jumps,
        )
        of_parts = {"_parts": parts, "_start": start, "_other": other}
        # The class is immutable, so attributes are set through ``vars``.
        vars(self).update(of_parts, _bracket=(low, high))

    def slope_at(self, step: float) -> float:
        asked: dict[str, Any] = vars(self)
        low, high = asked["_bracket"]
        if low <= step < high:
            return super().slope_at(step)
        passed = asked["_parts"].total("passed", np.array([step]))[:, 0]
        slope, curvature = asked["_start"] + passed
        return float(slope + curvature * step) + asked["_other"].slope_at(step)
