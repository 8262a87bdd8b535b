"""Dual coordinate ascent over rows in several processes, in parallel.

Ma, Smith, Jaggi, Jordan, Richtárik and Takáč (2015), Algorithm 1 with gamma = 1: each
of K processes updates its dual variables as if its step of the parameters were sigma'
times as large, and all steps are added. The steps p_k that minimize the models of the
processes do not decrease the dual objective for sigma' >= r / 2, where

    r = ||sum_k p_k||² / sum_k ||p_k||² <= K.

So sigma' = K / 2 suffices. It is raised to the ratio r of the last steps while steps
are strongly correlated, as in the first sweeps. Only parameters are sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses._base import Floats
from ..objectives.risk import Risk
from ..places.parts import Parts
from .row_sweeps import (
    FIRST_SWEEPS,
    INTERCEPT_SHARE,
    MORE_SWEEPS,
    IntervalSweeps,
    RowSweeps,
    row_sweeps,
)

# Processes exchange their changes 16 times per sweep. With fewer exchanges, the sum of
# their steps is too long in directions common to several processes. A message costs
# little relative to a pass over an X too large for one process. docs/constants.md has
# the figures.
_EXCHANGES = 16


def sweeps_of(
    risk: Risk, alpha: float, dual: Any = None, proximity: float = 0.0
) -> RowSweeps:
    """Return dual coordinate ascent over the rows of a risk, see ``row_sweeps``."""
    if risk.parts is not None:
        return SweepsOfParts(risk, alpha, dual, proximity)
    loss = risk.rowwise_dual()
    assert loss is not None, "separable by rows"
    return row_sweeps(risk.design, loss, risk.weights, alpha, dual, proximity)


class SweepsOfPart(IntervalSweeps):
    """Sweeps over the rows of a part, with the parameters in another process.

    Parameters
    ----------
    risk : Risk
        The risk of the rows.
    alpha, dual, proximity
        See ``IntervalSweeps``.
    intercept_step : float
        Squared constant that represents an intercept.
    """

    def __init__(
        self,
        risk: Risk,
        alpha: float,
        dual: Floats | None,
        proximity: float,
        intercept_step: float,
    ) -> None:
        loss: Any = risk.rowwise_dual()
        super().__init__(risk.design, loss, risk.weights, alpha, dual, proximity)
        self._intercept_step = intercept_step
        self._own_steps = self._steps
        self._steps = self._steps.copy()

    def begin(self, scores: Floats | None) -> None:
        """Select the rows to visit."""
        self._begin(scores)
        self._active = self._order[: self._n_active].copy()
        self._kept: list[Any] = []

    def go_on(self, x: Floats, stiffness: float) -> None:
        """Continue a sweep up to the next exchange; change coefficients and intercept.

        Within the sweep, steps of dual variables move the parameters ``stiffness``
        times as far as in the sum over all parts, since other parts change them
        simultaneously.
        """
        rows = self._active[len(self._kept) :: _EXCHANGES]
        self._steps[rows] = stiffness * self._own_steps[rows]
        self._n_active = len(rows)
        self._order[: len(rows)] = rows
        x[-1] = self._sweep(x[:-1], float(x[-1]))
        self._kept.append(self._order[: self._n_active].copy())
        if len(self._kept) == _EXCHANGES:
            self._active, self._kept = np.concatenate(self._kept), []

    def moved_by_dual(self) -> Floats:
        """Return the coefficients, and the sum of u divided by the curvature."""
        return np.append(self._coef, float(self._weights @ self._v) / self._curvature)

    def dual_of_rows(self) -> Floats:
        """Return ``dual``."""
        return self.dual


class SweepsOfParts(RowSweeps):
    """Sweeps over the rows of all parts, each in its process.

    Parameters
    ----------
    risk : Risk
        The risk of all rows.
    alpha, dual, proximity
        See ``row_sweeps``.
    """

    def __init__(self, risk: Risk, alpha: float, dual: Any, proximity: float) -> None:
        design, parts = risk.design, risk.parts
        assert isinstance(parts, Parts), "in several places"
        self._design, self._alpha, self._proximity = design, alpha, proximity
        self._curvature = alpha + proximity
        self._least = max(1.0, 0.5 * parts.n_places)
        self._stiffness = 0.5 * (parts.n_places + 1)
        self._intercept_step = 0.0
        if design.fit_intercept:
            self._intercept_step = INTERCEPT_SHARE * design.mean_square
        args = alpha, dual, proximity, self._intercept_step
        self._parts = parts.of(parts.each("made", SweepsOfPart, *args))
        self._n_sweeps = FIRST_SWEEPS
        self._center = np.zeros(design.n_features)
        # Coefficients with the intercept, and the sum of dual variables divided by the
        # curvature.
        self._x, self._excess = np.zeros(design.n_features + 1), 0.0
        if dual is not None:
            self._x = self._parts.total("moved_by_dual")
            self._excess, self._x[-1] = float(self._x[-1]), 0.0
        self._coef = self._x[:-1]

    def run(self, scores: Any = None) -> None:
        self._parts.each("begin", scores)
        n_sweeps, self._n_sweeps = self._n_sweeps, MORE_SWEEPS
        for _ in range(n_sweeps * _EXCHANGES):
            changes = self._parts.passed_on("go_on", self._x, self._stiffness)
            change = sum(changes[1:], start=changes[0]) / self._stiffness
            self._x += change
            self._stiffness = max(self._least, _overlap(changes))
            self.n_rounded += self._parts.n_places + 2
            if self._intercept_step:
                self._excess += float(change[-1]) / self._intercept_step

    def recenter(self, w: Floats) -> None:
        center, intercept = self._design.split(w)
        self._x[-1] = float(intercept) + self._intercept_step * self._excess
        if self._proximity:
            self._coef += self._proximity / self._curvature * (center - self._center)
            self._center = center

    @property
    def w(self) -> Floats:
        return self._x.copy() if self._design.fit_intercept else self._coef.copy()

    @property
    def dual(self) -> Any:
        return self._parts.each("dual_of_rows")


def _overlap(changes: list[Floats]) -> float:
    """Return ||sum p||² / sum ||p||² of changes p, excluding the intercept."""
    coefs = [change[:-1] for change in changes]
    squares = sum(float(coef @ coef) for coef in coefs)
    whole: Floats = sum(coefs[1:], start=coefs[0])
    return float(whole @ whole) / squares if squares else 0.0
