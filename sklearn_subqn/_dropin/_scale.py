"""Coefficients and scale of Huber regression, by a root of fits at given scales.

With residuals r, weights s of sum S and H(z) = z² for |z| <= epsilon, else 2 epsilon
|z| - epsilon², the objective is

    J(w, sigma) = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||²,

jointly convex (Huber 1981, section 7.8; Owen 2007). For a given scale it is that of
Huber's loss, and the derivative of its minimum over w by sigma is that at this w,
sum_i s_i (1 - min(z_i², epsilon²)): the scale is a root of an increasing function.

Small problems begin where Newton's method for all parameters ends, so that one fit
proves the optimum.

sigma H(r / sigma) is the maximum of v r - sigma v² / 4 over |v| <= 2 epsilon. Hence for
all such v with sum_i s_i v_i² <= 4 S, and sum_i s_i v_i = 0 if there is an intercept,

    J >= <s v, y> - ||Xᵀ(s v)||² / (4 alpha).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._checks.callers import user_level
from .._core.losses import regression_losses
from .._core.objectives.objective import Objective
from .._core.rounding import EPS, MOST_STEPS, ROUNDED, ROUNDED_32
from .._core.rows.row_views import dense_rows
from .._core.solvers import History, Start, Stopping
from .._core.solvers.plan_conditions import MOST_ENTRIES
from .._problems import LinearModel, LinearProblems
from .._solving.callbacks import FitTask
from .._solving.solution import Floats, Solution, changed
from .._solving.tolerance import SMALL
from ._reading import without_penalty
from ._scale_newton import newton
from ._scale_search import ScaleSearch, TrialScale


class ScaleProblem(LinearProblems):
    """The problem of coefficients and scale, by a root of fits at given scales.

    Parameters
    ----------
    model : LinearModel
    X : {ndarray, CSR matrix} of shape (n, d)
    y, weights : ndarray of shape (n,)
        Weights sum to one.
    total : float
        Sum of the weights as given.
    epsilon : float
    free : bool
        Whether there is no penalty.
    """

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        y: Floats,
        weights: Floats,
        total: float,
        *,
        epsilon: float,
        free: bool,
    ) -> None:
        self._epsilon = epsilon
        self._total = total
        loss = regression_losses(epsilon=self._epsilon)["huber"]
        given = without_penalty(X, weights, model.fit_intercept) if free else {}
        # An intercept takes the level of y, far above its noise or not; without one
        # nothing but coefficients does.
        level = float(np.median(y)) if model.fit_intercept else 0.0
        y = y - level
        data = model, X, [y], loss, weights
        super().__init__(*data, single=True, level=level, **given)
        deviation = y - (weights @ y if model.fit_intercept else 0.0)
        self._spread = float(np.sqrt(weights @ (deviation * deviation)))
        # The scale is no smaller, nor than scikit-learn's.
        self._least = max(1e-13 * self._spread, 10.0 * EPS)
        # Gaps are rounding errors below four times what the smallest scale costs or,
        # where coefficients are rounded to float32, below ROUNDED_32 times the spread
        # of y.
        rounding = 4.0 * self._least
        if self._dtype == np.float32:
            rounding = max(rounding, ROUNDED_32 * self._spread)
        self._rounding = total * rounding
        self._positive = np.where(weights > 0.0, weights, 1.0)
        # Without coefficients the scale is larger, or about as large.
        self._scale = self._scale_of(y) or self._spread
        self._scale = max(self._scale, self._least)

    def start_from(self, previous: dict[str, Any]) -> None:
        before = self.starts[0]
        super().start_from(previous)
        if self.starts[0] is not before and "scale_" in previous:
            self._scale = max(float(previous["scale_"]), self._least)

    def attributes(self) -> dict[str, Any]:
        fitted = super().attributes()
        w = self.starts[0].w
        outliers = np.abs(self._residuals(w)) > self._epsilon * self._scale
        scale = np.float64(self._scale)
        return {**fitted, "scale_": scale, "outliers_": outliers}

    def objective(self, index: int, alpha: float) -> Objective:
        """Return the problem at the scale: J is S sigma + 2 S / sigma times it.

        At a scale of zero J is 2 epsilon S times it.
        """
        if not self._scale:
            self._losses = [regression_losses()["absolute_error"]]
            return super().objective(index, alpha / (self._epsilon * self._total))
        epsilon = self._epsilon * self._scale
        self._losses = [regression_losses(epsilon=epsilon)["huber"]]
        return super().objective(index, alpha * self._scale / self._total)

    def solve(self, alpha: float, task: FitTask) -> list[Solution]:
        """Fit at one scale after another."""
        tolerance = self.settings.tol
        # Each fit is more exact than all together.
        settings = changed(self.settings, tol=1e-3 * tolerance)
        size = self.design.n_rows * self.design.n_params
        tol = min(tolerance, ROUNDED) if size <= SMALL else tolerance
        search = ScaleSearch(self._least)
        # Below it the limit of a scale of zero is tried.
        small_scale = 1e-3 * self._scale
        if size <= MOST_ENTRIES and alpha:
            self._begin_near_the_end(alpha, small_scale)
        history = History()
        best: Any = None
        bound = 0.0
        scale: float | None = self._scale
        before = self._scale
        while scale is not None:
            # Once, as soon as the scale may go to zero.
            if scale < small_scale:
                small_scale, scale, before = 0.0, 0.0, scale
            self._scale = scale
            found = self._solve(0, self.objective(0, alpha), settings, FitTask.silent())
            residuals = self._residuals(found.w)
            # For these coefficients another scale is better.
            own = max(self._scale_of(residuals), self._least)
            value = self._value(residuals, own, alpha, found.w)
            if best is None or value <= best[0]:
                best = value, own, found
            v = self._variables(residuals, own)
            bound = max(bound, self._bound(v, alpha))
            if found.dual is not None:
                # Residuals smaller than the rounding of coefficients say less.
                unit = scale or 1.0 / self._epsilon
                v = -2.0 * found.dual / (unit * self._positive)
            elif scale:
                v = self._variables(residuals, scale)
            if scale:
                at_scale = self._value(residuals, scale, alpha, found.w)
                slope = self._total * (1.0 - 0.25 * float(self.weights @ (v * v)))
                search.add(TrialScale(scale, at_scale, slope, v), best[0])
                v = search.dual
            bound = max(bound, self._bound(v, alpha))
            self._record(history, found.history, scale, value, bound)
            # Where the scale is zero, other scales would prove nothing more.
            enough = tolerance if scale == 0.0 else tol
            allowed = max(Stopping(enough).allowed_gap(best[0]), self._rounding)
            if best[0] - bound <= allowed:
                break
            scale = search.next(own) if scale else before
        value, self._scale, found = best
        self.starts = [found.start]
        gap = max(value - bound, 0.0) if alpha else np.inf
        if alpha and gap > max(Stopping(tolerance).allowed_gap(value), self._rounding):
            self._warn(value, gap)
        solution = replace(
            found,
            start=found.start._replace(dual=None),
            objective=value,
            dual_gap=gap,
            n_iter=len(history) - 1,
            history=history,
        )
        return [solution]

    def _begin_near_the_end(self, alpha: float, least: float) -> None:
        """Let Newton's method for all parameters find where the fits begin.

        A scale below the least one may go to zero, which the search finds out.
        """
        X, y, start = dense_rows(self.design.X), self.targets[0], self.starts[0]
        edges = self._epsilon, alpha / self._total
        with np.errstate(all="ignore"):
            w, scale = newton(X, y, self.weights, start.w, self._scale, *edges)
        if np.isfinite(w).all() and scale >= max(least, self._least):
            self.starts[0], self._scale = Start(w), scale

    def _residuals(self, w: Floats) -> Floats:
        y: Floats = self.targets[0]
        return y - self.design.forward(w)

    def _scale_of(self, residuals: Floats) -> float:
        """Return the best scale of given residuals.

        By Newton's method on sum_i s_i min(r_i² / sigma², epsilon²) - 1, which is a
        concave function of 1 / sigma² made of a few lines: from below no step goes too
        far, and the last one ends at the root.
        """
        largest = float(np.abs(residuals).max(initial=0.0))
        if not largest:
            return 0.0
        squares, edge = np.square(residuals / largest), self._epsilon**2
        factor = 0.0
        for _ in range(MOST_STEPS):
            inner = factor * squares < edge
            slope = float(self.weights @ (squares * inner))
            rest = 1.0 - edge * (1.0 - float(self.weights @ inner))
            if slope <= 0.0 or rest <= 0.0:
                return 0.0
            before, factor = factor, rest / slope
            if factor <= before * (1.0 + EPS):
                break
        return largest / float(np.sqrt(factor))

    def _value(self, residuals: Floats, scale: float, alpha: float, w: Floats) -> float:
        """Return J."""
        edge = self._epsilon * scale
        inner = np.minimum(np.abs(residuals), edge)
        # H(z) sigma = (2 min(|r|, edge) |r| - min(|r|, edge)²) / sigma.
        losses = inner * (2.0 * np.abs(residuals) - inner) / scale
        total = self._total * (scale + float(self.weights @ losses))
        # Without a penalty features are in other units.
        coef = w[: self.design.n_coef]
        return total + alpha * float(coef @ coef)

    def _variables(self, residuals: Floats, scale: float) -> Floats:
        """Return the dual variables v of given residuals and scale."""
        edge = self._epsilon * scale
        clipped: Floats = np.clip(residuals, -edge, edge)
        return 2.0 * clipped / scale

    def _bound(self, v: Floats, alpha: float) -> float:
        """Return a lower bound of J by dual variables, made feasible."""
        if not alpha:
            return 0.0
        edge = 2.0 * self._epsilon
        weighted = self.weights * v
        y: Floats = self.targets[0]
        if self.design.fit_intercept:
            up, down = weighted.clip(min=0.0).sum(), -weighted.clip(max=0.0).sum()
            level = min(up, down)
            if level == 0.0:
                return 0.0
            shrink = np.where(v > 0.0, level / up, level / down)
            v, weighted = v * shrink, weighted * shrink
            # The sum is zero: this subtracts nothing but rounding.
            y = y - np.median(y)
        largest = float(np.abs(v).max(initial=0.0))
        square = float(weighted @ v)
        if square == 0.0:
            return 0.0
        first = float(weighted @ y)
        slopes = self.design.adjoint(weighted)[: self.design.n_coef]
        second = self._total * float(slopes @ slopes) / (4.0 * alpha)
        factor = min(edge / largest, 2.0 / np.sqrt(square))
        if second > 0.0:
            factor = min(factor, first / (2.0 * second))
        factor = max(factor, 0.0)
        return self._total * (factor * first - factor * factor * second)

    def _record(
        self, history: History, inner: History, scale: float, value: float, bound: float
    ) -> None:
        """Append the iterations at a scale; what is proven is known at the end."""
        before = history.objective[-1] if history.objective else np.inf
        proven = history.lower_bound[-1] if history.lower_bound else -np.inf
        passes = history.passes[-1] if history.passes else 0.0
        seconds = history.seconds[-1] if history.seconds else 0.0
        first = 1 if history.objective else 0
        constant = self._total * scale
        unit = 2.0 * self._total * (1.0 / scale if scale else self._epsilon)
        for k in range(first, len(inner)):
            before = min(before, constant + unit * inner.objective[k])
            history.objective.append(before)
            history.lower_bound.append(proven)
            history.passes.append(passes + inner.passes[k])
            history.seconds.append(seconds + inner.seconds[k])
            history.phase.append(inner.phase[k])
        history.objective[-1] = min(history.objective[-1], value)
        if self.reading is None:
            history.lower_bound[-1] = bound

    def _warn(self, value: float, gap: float) -> None:
        zero = self._scale <= 2.0 * self._least
        reason = (
            "Its scale goes to zero: the model goes through most rows, and little is "
            "proven. Increase alpha or epsilon, or take fewer features."
            if zero
            else "Increase max_iter or tol, or scale the features."
        )
        warnings.warn(
            f"Fitting {self._labels[0]} ended where its objective "
            f"{value:.6g} is proven to be within {gap:.2g} of the optimum, a relative "
            f"gap of {gap / value:.1e}; tol={self.settings.tol:g} was asked for. "
            f"{reason}",
            ConvergenceWarning,
            stacklevel=user_level(),
        )
