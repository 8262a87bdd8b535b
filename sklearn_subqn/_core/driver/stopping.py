"""Stopping rule: the allowed gap at a value of the objective, and the statuses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np

# The denominator of relative gaps is at least a millionth of |J|, even if J is close to
# the infimum.
_NOTHING = 1e-6

# A related problem whose solution may be accepted is solved to half of the allowed gap.
_SHARE_ON_THE_WAY = 0.5


def size_of(value: float, infimum: float) -> float:
    """Return the denominator of relative gaps: |J - infimum|, at least 1e-6 |J|."""
    return float(max(abs(value - infimum), _NOTHING * abs(value)))


def sizes_of(values: Any, infimum: float) -> Any:
    """Return ``size_of`` for each entry of an array of values."""
    return np.maximum(np.abs(values - infimum), _NOTHING * np.abs(values))


@dataclass(frozen=True)
class Stopping:
    """The one rule for the allowed gap, used by the driver and by solvers.

    Attributes
    ----------
    tol : float
        Relative gap at which a run ends at once.
    enough : float
        A larger relative gap, below which a run ends once it becomes slow.
    asked : float
        The relative gap the user asked for, below which a run may take only a limited
        number of further iterations.
    infimum : float
        Lower bound of the mean loss, subtracted from the objective in relative gaps.
    least_size : float
        Smallest denominator of relative gaps.
    absolute : bool
        Whether the three gaps are absolute.
    """

    tol: float = 0.0
    enough: float = 0.0
    asked: float = 0.0
    infimum: float = 0.0
    least_size: float = 0.0
    absolute: bool = False

    def size(self, value: float) -> float:
        """Return the denominator of the relative gap at a value of the objective."""
        if self.absolute:
            return 1.0
        return max(self.least_size, size_of(value, self.infimum))

    def allowed_gap(self, value: float) -> float:
        """Return the gap at which a run may end, at a value of the objective."""
        return self.tol * self.size(value)

    def allowed_on_the_way(self, value: float) -> float:
        """Return the gap to which a related problem is solved first."""
        return _SHARE_ON_THE_WAY * self.allowed_gap(value)

    def is_reached(self, gap: float, value: float) -> bool:
        """Whether a gap is small enough to end at once."""
        return bool(gap <= self.allowed_gap(value))

    def is_nearly_reached(self, gap: float, value: float) -> bool:
        """Whether a gap is small enough to end once the run is slow."""
        return bool(gap <= self.enough * self.size(value))

    def is_what_was_asked(self, gap: float, value: float) -> bool:
        """Whether a gap is as small as the user asked for."""
        return bool(gap <= self.asked * self.size(value))


class Status(StrEnum):
    """How a run ended: a word, with a sentence for messages."""

    sentence: str

    CONVERGED = "converged", "The gap is within what was asked for."
    MAX_ITER = "max_iter", "The limit of iterations, max_iter, was reached."
    STALLED = "stalled", "There was no progress any more."
    CALLBACK = "callback", "The callback asked to stop."
    STOPPED = "stopped", "The solver stopped by itself."
    STATIONARY = "stationary", "The gradient vanishes."
    NO_DESCENT = "no_descent", "No direction of descent was found."
    NO_STEP = "no_step", "The line search found no better point."
    NO_PROGRESS = "no_progress", "Violations or gaps do not fall any more."
    UNBOUNDED = "unbounded", "The function falls without end along a line."
    FADED = "faded", "Rounds have become too small to change anything."
    NO_ROOM = "no room", "There is no memory for dual variables."
    ROUNDING = "rounding", "The gap is below the rounding of scores."
    ROUNDED = "rounded", "Rounding coefficients to float32 lost precision."
    AT_ZERO = "at_zero", "Nothing better than coefficients of zero was found."
    SHORT = "short", "The norm of the gradient is within epsilon."
    SMALL = "small", "All entries of the subgradient are within tol."

    def __new__(cls, word: str, sentence: str) -> Self:
        """Return the word as a status with its sentence."""
        status = str.__new__(cls, word)
        status._value_ = word
        status.sentence = sentence
        return status
