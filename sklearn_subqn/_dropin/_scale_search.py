"""The search for the minimizer of a convex function of a scale, by its slopes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._core.rounding import MOST_STEPS

Floats = npt.NDArray[np.float64]


# The search ends after five fits, none of which halved the room that tangents leave:
# what remains of it is the rounding of these fits.
_PATIENCE = 5


class TrialScale(NamedTuple):
    """A scale that was tried, with value and derivative of the function there.

    ``dual`` are dual variables, of which the slope is a concave function.
    """

    scale: float
    value: float
    slope: float
    dual: Floats

    def tangent(self, scale: float) -> float:
        return self.value + self.slope * (scale - self.scale)


class ScaleSearch:
    """The search for the minimizer of a convex function of a scale.

    A secant of the slopes over the logarithm of the scale is fast where these are
    smooth. Where it does not halve the interval, tangents cross near a kink; where
    these do not either, the interval is halved.

    Parameters
    ----------
    least : float
        The smallest scale.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._low: TrialScale | None = None
        self._high: TrialScale | None = None
        self._last: TrialScale | None = None
        self._secant = np.nan
        self._n_fits = 0
        self._n_slow = 0
        # How much smaller than the best value the function may be by its tangents, when
        # this was last halved.
        self._room = np.inf

    def add(self, trial: TrialScale, best: float) -> None:
        """Note what was found at a scale, and the best value that is known."""
        self._n_fits += 1
        self._secant = _root(self._last, trial)
        self._last = trial
        if trial.slope > 0.0:
            if self._high is None or trial.scale < self._high.scale:
                self._high = trial
        elif self._low is None or trial.scale > self._low.scale:
            self._low = trial
        if self._high is None:
            return
        self._n_slow += 1
        room = max(best - self._high.tangent(self._crossing), 0.0)
        if room < 0.5 * self._room:
            self._room, self._n_slow = room, 0

    @property
    def _crossing(self) -> float:
        """The scale where the tangents at both ends cross."""
        high, low = self._high, self._low
        assert high is not None
        if low is None:
            return self._least
        fall = high.tangent(low.scale) - low.value
        crossing = low.scale - fall / (high.slope - low.slope)
        return float(np.clip(crossing, low.scale, high.scale))

    @property
    def dual(self) -> Floats:
        """Dual variables between those of both ends, with a slope of about zero."""
        low, high = self._low, self._high
        if low is None or high is None:
            assert self._last is not None
            return self._last.dual
        share = high.slope / (high.slope - low.slope)
        return share * low.dual + (1.0 - share) * high.dual

    def next(self, own: float) -> float | None:
        """Return the scale to try after that of the last trial, or None at the end.

        ``own`` is the best scale of the coefficients there, which lies between both.
        """
        assert self._last is not None
        scale = self._last.scale
        low = self._least if self._low is None else self._low.scale
        high = np.inf if self._high is None else self._high.scale
        if self._n_slow == 0:
            new = self._towards(own)
        else:
            # What is not between the ends leaves their mean.
            new = self._crossing if self._n_slow % 2 else low
        if not low < new < high:
            if high == np.inf or scale <= self._least:
                return None
            new = float(np.sqrt(low * high))
        done = self._n_fits >= MOST_STEPS or self._n_slow >= _PATIENCE
        if done or abs(new / scale - 1.0) <= 1e-14:
            return None
        return max(new, self._least)

    def _towards(self, own: float) -> float:
        """Return the scale at the secant's root, or that of the coefficients."""
        assert self._last is not None
        t, following = np.log(self._last.scale), np.log(own)
        if self._n_fits == 1 and self._last.slope > 0.0 and own <= self._least:
            return self._last.scale / 10.0
        # Beyond the better scale of these coefficients, but not far.
        far = t + 10.0 * (following - t)
        if min(following, far) <= self._secant <= max(following, far):
            following = self._secant
        return float(np.exp(following))


def _root(before: TrialScale | None, last: TrialScale) -> float:
    """Return the logarithm of the scale where a secant of slopes vanishes, or nan."""
    if before is None or before.slope == last.slope:
        return np.nan
    t = np.log(last.scale)
    ratio = (t - np.log(before.scale)) / (last.slope - before.slope)
    return float(t - last.slope * ratio)
