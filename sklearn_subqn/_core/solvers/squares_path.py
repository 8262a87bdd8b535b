"""Least squares for a path of penalty strengths, by one Gram matrix.

With H = Xᵀ S X the risk is R(w) = R(0) + <g, w> + ½ wᵀ H w, so that coordinate descent
for any other strength needs no product with X (the "covariance updates" of Friedman,
Hastie and Tibshirani 2010, section 2.2). R is half a weighted sum of squared residuals,
whose derivatives u are a dual point with Xᵀu = v = ∇R(w). For 0 <= c <= 1 the dual
point c u proves the gap

    (1 - c)² R(w) + alpha (Omega(w) + Omega*(-c v / alpha)) + c <w, v>.   (1)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..driver.stopping import sizes_of
from ..kernels import coordinate_descent
from ..losses._base import Floats
from ..memory import COPY_SIZE
from ..objectives.objective import Objective
from ..regularizers import L2, ElasticNet
from ..rounding import MOST_STEPS, ROUNDED, rounding
from ..steps.gram_step import GramStep


def is_least_squares(objective: Objective) -> bool:
    """Whether the problem is least squares with an elastic net, on undivided rows."""
    return (
        objective.loss.quadratic
        and isinstance(objective.regularizer, (L2, ElasticNet))
        and objective.design.in_one_place
        and not objective.design.several_scores
        and objective.n_free <= 1
    )


def has_squares_path(objective: Objective) -> bool:
    """Whether a Gram matrix of moderate size determines the risk up to a constant."""
    q = objective.n_params
    few = q <= objective.design.n_rows and q * q <= COPY_SIZE
    return few and is_least_squares(objective)


class SquaresPath:
    """Minimizers of squared errors plus an elastic net, for any strength.

    Parameters
    ----------
    objective : Objective
        Objective of any strength for which ``has_squares_path`` is True.
    other : SquaresPath, optional
        A path of other targets for the same rows.
    """

    def __init__(self, objective: Objective, other: SquaresPath | None = None) -> None:
        origin = objective.origin()
        self._value, self._gradient = origin.risk, origin.risk_gradient
        self._weights = objective.weights
        if other is not None and other._weights is objective.weights:
            gram = other._gram
        else:
            gram = objective.risk.hessian(origin.curvature).matrix()
        self._gram: Floats = np.ascontiguousarray(gram)
        # Sweeps stop when no slope changes by more than this tolerance.
        self._tol = ROUNDED * float(np.abs(self._gradient).max())

    def minimize(
        self,
        objective: Objective,
        alphas: Floats,
        start: Floats,
        stored: Callable[[Floats], Floats],
    ) -> tuple[Floats, Floats]:
        """Return minimizers in stored precision, and bounds of relative gaps.

        Parameters
        ----------
        objective : Objective
            The objective of the path with another strength and share of the L1 norm.
        alphas : ndarray of shape (n_alphas,)
            Strengths in descending order. The minimization for a strength starts at the
            previous minimizer.
        start : ndarray of shape (q,)
        stored : callable
            Rounds parameters to the stored precision.

        Returns
        -------
        minimizers : ndarray of shape (n_alphas, q)
        gaps : ndarray of shape (n_alphas,)
            Relative gaps, not finite where objectives vanish.
        """
        q, m = objective.n_params, objective.regularizer.n_penalized
        ratio, factors, w = objective.elastic_net.l1_ratio, np.zeros((2, q)), start
        l1, l2 = alphas * ratio, alphas * (1.0 - ratio)
        found = np.empty((len(alphas), q))
        for i in range(len(alphas)):
            factors[0, :m], factors[1, :m] = l1[i], l2[i]
            w, slopes = w.copy(), self._gradient + self._gram @ w
            violation, _ = coordinate_descent.sweep_gram(
                self._gram, slopes, w, factors[0], factors[1], self._tol, MOST_STEPS
            )
            if not violation <= self._tol:
                # With strongly correlated features sweeps alone converge slowly.
                inside, rank = np.ones((q, 1), dtype=bool), objective.design.n_rows
                step = GramStep(self._gram.copy(), factors[0], factors[1], inside, rank)
                columns = slopes[:, np.newaxis], w[:, np.newaxis]
                w = step.minimize(*columns, self._tol, MOST_STEPS)[:, 0]
            found[i] = w
        slopes = self._gradient + found @ self._gram
        if q > m:
            # A dual point is feasible only if it sums to zero.
            change = -slopes[:, -1] / self._gram[-1, -1]
            found[:, -1] += change
            slopes += change[:, np.newaxis] * self._gram[-1]
        rounded = np.array([stored(w) for w in found], dtype=np.float64)
        gaps, values = self._gaps(objective, l1, l2, found, slopes)
        p = rounded - found
        excess = np.sum(p * (slopes + 0.5 * (p @ self._gram)), axis=1)
        excess += l1 * (np.abs(rounded) - np.abs(found))[:, :m].sum(axis=1)
        excess += l2 * np.sum((p * (found + 0.5 * p))[:, :m], axis=1)
        values += excess
        sizes = sizes_of(values, objective.risk.infimum)
        return rounded, (gaps + np.abs(excess)) / sizes

    def _gaps(
        self, objective: Objective, l1: Floats, l2: Floats, w: Floats, slopes: Floats
    ) -> tuple[Floats, Floats]:
        """Return the gaps (1) with bounds of their rounding errors, and J(w)."""
        m = objective.regularizer.n_penalized
        sizes, squares = np.abs(w), w[:, :m] ** 2
        risk = self._value + 0.5 * np.sum(w * (self._gradient + slopes), axis=1)
        penalty = l1 * sizes[:, :m].sum(axis=1) + 0.5 * l2 * squares.sum(axis=1)
        # Rounding errors of entries of H, g and R(0) are relative to the norms of
        # columns and targets.
        norms = np.sqrt(self._gram.diagonal())
        size = math.sqrt(2.0 * self._value) + sizes @ norms
        error = 2.0 * rounding(objective.design.n_rows + w.shape[1]) * size
        steepest = np.abs(slopes[:, :m]) + error[:, np.newaxis] * norms[:m]
        largest = steepest.max(axis=1, initial=0.0)
        shrunk = (l2 == 0.0) & (largest > 0.0)
        c = np.where(shrunk, np.minimum(1.0, l1 / np.where(shrunk, largest, 1.0)), 1.0)
        gap = (1.0 - c) ** 2 * risk + penalty + c * np.sum((slopes * w)[:, :m], axis=1)
        beyond = np.maximum(steepest - l1[:, np.newaxis], 0.0)
        curved = l2 > 0.0
        squares = np.where(curved, np.sum(beyond**2, axis=1), 0.0)
        gap += 0.5 * squares / np.where(curved, l2, 1.0)
        return np.abs(gap) + error * size + rounding(m) * penalty, risk + penalty
