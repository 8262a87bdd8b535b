"""Risks of structures: a maximum over structures for each sample, found by an oracle.

loss_i(w) = max over structures y of costs_i(y) + <w, normals_i(y)>. Each answer of the
oracle gives a linear lower bound of loss_i that is tight at w. Answers are kept as
candidates, and the maximum over candidates is minimized without further calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Rows, norm_by_weights
from ..losses._loss import Loss
from ..regularizers import Regularizer
from ..rounding import CLOSE, rounding
from ..rows.design import Design, Identity
from .bounds import Cut, Dual
from .objective import Objective, Point
from .risk import Risk

# A candidate is removed if it was not the maximizer of its sample at any point of four
# rounds. docs/constants.md has the figures.
_PATIENCE = 4


class Answers(NamedTuple):
    """The answers of an oracle for all samples at one w.

    Attributes
    ----------
    normals : Design
        Slopes, one row of d entries for each of the n samples.
    costs : ndarray of shape (n,)
    errors : ndarray of shape (n,)
        Bounds of the rounding errors of the costs.
    """

    normals: Design
    costs: Floats
    errors: Floats

    def heights(self, w: Floats) -> Floats:
        """Return each sample's costs + <w, normals>, of shape (n,)."""
        return self.normals.forward(w) + self.costs


#: A search takes w of shape (d,) and returns the maximizing structures at w.
Search = Callable[[Floats], Answers]


class OracleHinge(Loss):
    """R(w) = sum_i weights_i * max_y costs_i(y) + <w, normals_i(y)>, scores being w.

    The true structure has cost and normal zero, so that no loss is negative.

    Parameters
    ----------
    oracle : callable
    sample_weights : ndarray of shape (n,)
        Weights that sum to one.

    Attributes
    ----------
    n_calls : int
        Number of calls of the oracle, each for all samples.
    """

    def __init__(self, oracle: Search, sample_weights: Floats) -> None:
        self._oracle = oracle
        self.sample_weights = sample_weights
        self.n_calls = 0
        self._last: tuple[Floats, Answers] | None = None

    def answers(self, w: Floats) -> Answers:
        """Return the oracle's answers at w, from memory for the last w."""
        if self._last is None or not np.array_equal(self._last[0], w):
            self._last = w, self._oracle(w)
            self.n_calls += 1
        return self._last[1]

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return float(self.sample_weights @ self.answers(scores).heights(scores))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        return self.answers(scores).normals.adjoint(self.sample_weights)

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the mean cost of the structures whose normals form u."""
        share = rounding(len(self.sample_weights))
        _, costs, errors = self.answers(scores)
        return -float(self.sample_weights @ (costs - share * np.abs(costs) - errors))

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the rounding error of the mean of normals, whose terms may cancel."""
        square = self.answers(scores).normals.squared_size(self.sample_weights)
        return rounding(len(self.sample_weights)) * np.sqrt(square / weights.min())


class OracleObjective(Objective):
    """J(w) = alpha * Omega(w) + R(w) with the risk of an ``OracleHinge``.

    Parameters
    ----------
    loss : OracleHinge
    regularizer : Regularizer
        The penalty of all parameters.
    alpha : float
    """

    def __init__(
        self, loss: OracleHinge, regularizer: Regularizer, alpha: float
    ) -> None:
        self.hinge = loss
        d = regularizer.n_penalized
        risk = Risk(Identity(d), loss, np.zeros(d), np.full(d, 1.0 / d))
        super().__init__(risk, regularizer, alpha)

    def at(
        self,
        w: Floats,
        scores: Floats | None = None,
        drift: float = 0.0,
        origin: Point | None = None,
    ) -> Point:
        """Return the point w; w = 0, where fits start and end, is kept."""
        return super().at(w, scores, drift, origin) if w.any() else self.origin()

    def origin(self) -> Point:
        """Return the point w = 0, for which the oracle is called only once."""
        return self._origin

    @cached_property
    def _origin(self) -> Point:
        return super().origin()

    @property
    def passes(self) -> float:
        """Number of calls of the oracle, each for all samples."""
        return float(self.hinge.n_calls)


class CandidateHinge(Loss):
    """R(z) = sum_i weights_i * max over rows r of sample i of z_r + costs_r.

    Targets are the costs. Every row has its sample's weight.

    Parameters
    ----------
    samples : ndarray of shape (m,)
        The sample of each row, ascending from 0 and without gaps.

    Attributes
    ----------
    used : ndarray of shape (m,)
        Whether a row was the maximizer of its sample at any evaluation.
    """

    def __init__(self, samples: Rows) -> None:
        self._samples = samples
        self._starts = np.flatnonzero(np.diff(samples, prepend=-1))
        self.used = np.zeros(len(samples), dtype=bool)

    def largest(self, scores: Floats, costs: Floats) -> Floats:
        """Return the maximum of each sample."""
        largest: Floats = np.maximum.reduceat(scores + costs, self._starts)
        return largest

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return float(weights[self._starts] @ self.largest(scores, targets))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        heights = scores + targets
        largest = np.maximum.reduceat(heights, self._starts)
        best = np.flatnonzero(heights == largest[self._samples])
        best = best[np.diff(self._samples[best], prepend=-1) > 0]
        self.used[best] = True
        dual = np.zeros(len(scores))
        dual[best] = weights[best]
        return dual

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return -<u, costs>, for u >= 0 whose sums over each sample are its weight."""
        return -float(dual @ targets)

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the error of normals that were rounded as differences of features."""
        return rounding(1) * norm_by_weights(dual, weights)


class CandidateObjective(Objective):
    """The objective over candidates, whose cuts are also cuts of the full objective.

    Parameters
    ----------
    risk : Risk
        The risk over candidates.
    whole : OracleObjective
        The objective over all structures.
    """

    def __init__(self, risk: Risk, whole: OracleObjective) -> None:
        super().__init__(risk, whole.regularizer, whole.alpha)
        self._whole = whole

    @property
    def column_sizes(self) -> Floats:
        """The column sizes of the whole objective, the units of errors of cuts."""
        return self._whole.column_sizes

    def cut(self, dual: Dual) -> Cut:
        """Return the cut of a dual point, with errors in units of ``column_sizes``."""
        cut = super().cut(dual)
        unit = float(self.risk.column_sizes.max() / self.column_sizes.min())
        return cut._replace(error=unit * cut.error, norm=unit * cut.norm)


class Candidates:
    """Structures that the oracle has returned, grouped by sample.

    Initially every sample has only its true structure, with cost zero.

    Parameters
    ----------
    objective : OracleObjective
        The objective over all structures, which the objective over candidates bounds.
    """

    def __init__(self, objective: OracleObjective) -> None:
        self._objective = objective
        n = len(objective.hinge.sample_weights)
        self._samples = np.arange(n)
        self._costs = np.zeros(n)
        self._idle = np.full(n, -1)
        self._design: Design | None = None
        self._loss = CandidateHinge(self._samples)

    def add(self, answers: Answers, w: Floats) -> None:
        """Add the new answers at w and remove idle candidates."""
        n = len(answers.costs)
        if self._design is None:
            self._design = answers.normals.zeros()
        # True structures are never removed.
        self._idle = np.where(self._loss.used | (self._idle < 0), 0, self._idle + 1)
        truths = np.flatnonzero(np.diff(self._samples, prepend=-1))
        self._idle[truths] = -1
        known = self._loss.largest(self._design.forward(w), self._costs)
        new = np.flatnonzero(
            answers.heights(w) > known + CLOSE * np.maximum(1.0, np.abs(known))
        )
        kept = np.flatnonzero(self._idle < _PATIENCE)
        samples = np.concatenate([self._samples[kept], new])
        order = np.argsort(samples, kind="stable")
        rows = np.concatenate([kept, len(self._samples) + new])[order]
        self._samples = samples[order]
        costs = answers.costs - answers.errors
        self._costs = np.concatenate([self._costs, costs])[rows]
        self._idle = np.concatenate([self._idle, np.zeros(n, dtype=int)])[rows]
        self._design = self._design.joined(answers.normals, rows)
        self._loss = CandidateHinge(self._samples)

    def objective(self) -> Objective:
        """Return the objective over the candidates."""
        o = self._objective
        assert self._design is not None, "answers are added first"
        weights = o.hinge.sample_weights[self._samples]
        return CandidateObjective(
            Risk(self._design, self._loss, self._costs, weights), o
        )
