"""The record that the driver keeps of a run, and the outcome of the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..losses._base import Floats
from ..records import stored
from .iterate import Iterate
from .stopping import Status, size_of


@stored
@dataclass
class History:
    """Record of a run, one entry an iteration, the starting point included.

    Attributes
    ----------
    objective : list of float
        Objective of the best point so far.
    lower_bound : list of float
        The best lower bound so far, -inf before there is one.
    passes : list of float
        Products with X or its transpose so far, products with some rows counted by
        their share. What models of columns take is not counted.
    seconds : list of float
        Wall-clock time since the start.
    phase : list of str
        The method at work.
    infimum : float
        What the mean loss cannot fall below, and relative gaps leave out: zero, except
        for Poisson, gamma and Tweedie losses, whose objectives lack a constant.
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
        """Sizes to which gaps are relative, an array with one entry an iteration."""
        size: Floats = size_of(np.asarray(self.objective), self.infimum)
        return size

    def times(self, unit: float) -> History:
        """Return the record with objectives and bounds times a number."""
        return replace(
            self,
            objective=[unit * value for value in self.objective],
            lower_bound=[unit * bound for bound in self.lower_bound],
            infimum=unit * self.infimum,
        )

    def __repr__(self) -> str:
        return f"<History of {max(len(self) - 1, 0)} iterations>"


@dataclass
class Result:
    """Outcome of a run.

    Attributes
    ----------
    best : Iterate
        The best point and lower bound, with the dual point of the best bound of those
        that the solver gave one of.
    n_iter : int
        Number of iterations after the starting point.
    status : Status
        How the run ended.
    history : History
    current : Point
        That of the last iterate, which need not be the best one.
    """

    best: Iterate
    n_iter: int
    status: Status
    history: History
    current: Any = None

    @property
    def point(self) -> Any:
        """The best point."""
        return self.best.point

    @property
    def lower_bound(self) -> float:
        """Proven lower bound of the objective, -inf where there is none."""
        return self.best.lower_bound

    @property
    def dual(self) -> Any:
        """The dual point with the best lower bound of all that the solver gave."""
        return self.best.dual

    @property
    def gap(self) -> float:
        """Objective - lower_bound, at least zero."""
        return self.best.gap

    @property
    def plan(self) -> str:
        """The plan by which the problem was solved, if its facts chose one."""
        return self.best.plan

    def raise_bound(self, bound: float) -> None:
        """Take note of a lower bound."""
        if bound > self.lower_bound:
            self.best = self.best._replace(lower_bound=bound)


class PassCounter(Protocol):
    """An object that counts passes over the data, such as an objective."""

    @property
    def passes(self) -> float:
        """The number of passes so far."""
