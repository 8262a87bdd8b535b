"""The average of iterates of "auto", and its test for a changed stream."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..losses._base import Floats
from ..records import changed, stored
from .auto_settings import SETTINGS


@stored
@dataclass(frozen=True)
class Level:
    """Statistics of the model's losses on new rows, block by block.

    Attributes
    ----------
    n : int
        Number of blocks.
    mean, variance : float
        Mean and variance of the blocks' mean losses.
    excess : float
        Cumulative sum of the standardized losses minus the slack, never below zero
        (Page 1954).
    n_rows : int
        Number of rows so far in the next block.
    total : float
        Sum of the losses of these rows.
    """

    n: int = 0
    mean: float = 0.0
    variance: float = 0.0
    excess: float = 0.0
    n_rows: int = 0
    total: float = 0.0

    @property
    def alarms(self) -> bool:
        """Whether the losses have increased permanently, so the stream has changed."""
        return self.excess >= SETTINGS.alarm

    def then(self, loss: float, n_rows: int) -> Level:
        """Return the statistics updated by the mean loss of ``n_rows`` new rows."""
        rows, total = self.n_rows + n_rows, self.total + n_rows * loss
        if rows < SETTINGS.block_rows:
            return changed(self, n_rows=rows, total=total)
        value = total / rows
        change, excess = value - self.mean, 0.0
        if self.n >= SETTINGS.least_blocks:
            # Standard error of a prediction of the next value from n values.
            error = math.sqrt(self.variance * (1.0 + 1.0 / self.n))
            error = max(error, SETTINGS.least_error * abs(self.mean))
            errors = min(max(change, 0.0) / (error or 1.0), SETTINGS.most_errors)
            excess = max(self.excess + errors - SETTINGS.slack, 0.0)
            # Clipping keeps outliers from changing mean and variance much.
            change = min(change, SETTINGS.usual_errors * error)
        n = min(self.n + 1, SETTINGS.level_blocks)
        mean = self.mean + change / n
        variance = (1.0 - 1.0 / n) * (self.variance + change * change / n)
        return Level(n, mean, variance, excess)


@stored
@dataclass(frozen=True)
class Average:
    """The average of iterates, with the statistics that control the step size.

    Attributes
    ----------
    mean : ndarray of shape (q,)
        The average, or the last iterate.
    n : int
        Number of iterates in the average.
    n_steps : int
        Number of batches.
    clock : float
        Effective number of batches, from which the step size decreases.
    lead, lead_square : float
        Running means of the lead and its square: the objective at the average minus the
        objective at the iterate, on new batches.
    level : Level
        Statistics of the losses of the model.
    """

    mean: Floats
    n: int = 0
    n_steps: int = 0
    clock: float = 0.0
    lead: float = 0.0
    lead_square: float = 0.0
    level: Level = Level()

    def then(self, iterate: Floats, lead: float, value: float) -> Average:
        """Return the average with one more iterate.

        Parameters
        ----------
        iterate : ndarray of shape (q,)
        lead : float
            Objective of the batch at the average, minus the objective at the previous
            iterate.
        value : float
            The objective of the batch at the average.
        """
        square = (
            SETTINGS.forgetting * self.lead_square
            + (1.0 - SETTINGS.forgetting) * lead * lead
        )
        lead = SETTINGS.forgetting * self.lead + (1.0 - SETTINGS.forgetting) * lead
        n, n_steps, clock = self.n + 1, self.n_steps + 1, self.clock + 1.0
        if (
            n * (1.0 - SETTINGS.forgetting) > 1.0
            and lead > 0.0
            and lead * lead > SETTINGS.lead * square
        ):
            clock *= SETTINGS.regrowth
            return Average(iterate, 1, n_steps, clock, level=self.level)
        if -lead > SETTINGS.noise * abs(value):
            clock = max(clock, min(SETTINGS.brake * clock, SETTINGS.fastest * n_steps))
        mean = iterate - self.mean
        mean *= share_of_last(n)
        mean += self.mean
        return Average(mean, n, n_steps, clock, lead, square, self.level)


def share_of_last(n: int) -> float:
    """Return the weight of the last of n iterates in the average."""
    return (SETTINGS.average_exponent + 1.0) / (SETTINGS.average_exponent + max(n, 1))
