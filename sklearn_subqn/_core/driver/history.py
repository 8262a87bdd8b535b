"""The record that the driver keeps of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..losses._base import Floats
from ..records import stored
from .stopping import sizes_of


@stored
@dataclass
class History:
    """Record of a run: one entry for the starting point and one for each iteration.

    Attributes
    ----------
    objective : list of float
        Objective of the best point so far.
    lower_bound : list of float
        Best lower bound so far, -inf before there is one.
    passes : list of float
        Number of products with X or its transpose so far; a product with a subset of
        the rows counts as a fraction. Work on a model of few columns is not counted.
    seconds : list of float
        Wall-clock time since the start.
    phase : list of str
        Name of the method that made the iteration.
    infimum : float
        Lower bound of the mean loss, which relative gaps subtract from the objective:
        zero, except for Poisson, gamma and Tweedie losses, whose objectives omit a
        constant.
    """

    objective: list[float] = field(default_factory=list)
    lower_bound: list[float] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    infimum: float = 0.0

    def __len__(self) -> int:
        return len(self.objective)

    @property
    def size(self) -> Floats:
        """Denominators of the relative gaps, an array with one entry an iteration."""
        size: Floats = sizes_of(np.asarray(self.objective), self.infimum)
        return size

    def in_units(self, unit: float) -> History:
        """Return the record with objectives and bounds multiplied by a number."""
        return replace(
            self,
            objective=[unit * value for value in self.objective],
            lower_bound=[unit * bound for bound in self.lower_bound],
            infimum=unit * self.infimum,
        )

    def __repr__(self) -> str:
        return f"<History of {max(len(self) - 1, 0)} iterations>"
