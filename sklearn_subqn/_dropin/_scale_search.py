"""The search for the root of an increasing function of the logarithm of a scale."""

from __future__ import annotations

import numpy as np

from .._core.rounding import MOST_STEPS


class ScaleSearch:
    """The search for the root of an increasing function of the logarithm of the scale.

    Parameters
    ----------
    least : float
        The smallest scale.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._low, self._high = least, np.inf
        self._before: tuple[float, float] | None = None
        self._n_fits = 0

    def next(self, scale: float, slope: float, own: float) -> float | None:
        """Return the scale to try after one of a slope, or None at the end.

        ``own`` is the best scale of the coefficients there, which lies between both.
        """
        self._n_fits += 1
        if slope > 0.0:
            self._high = min(self._high, scale)
        else:
            self._low = max(self._low, scale)
        t = np.log(scale)
        following = np.log(own)
        if self._before is not None:
            t_before, slope_before = self._before
            if slope != slope_before:
                secant = t - slope * (t - t_before) / (slope - slope_before)
                # Beyond the better scale of these coefficients, but not far.
                far = t + 10.0 * (following - t)
                if min(following, far) <= secant <= max(following, far):
                    following = secant
        elif slope > 0.0 and own <= self._least:
            following = t - np.log(10.0)
        self._before = t, slope
        new = float(np.exp(following))
        if not self._low < new < self._high:
            if self._high == np.inf or scale <= self._least:
                return None
            new = float(np.sqrt(self._low * self._high))
        if self._n_fits >= MOST_STEPS or abs(new / scale - 1.0) <= 1e-14:
            return None
        return max(new, self._least)
