"""Least squares for one strength of the penalty after another, by one Gram matrix.

With H = Xᵀ S X the risk is R(w) = R(0) + <g, w> + ½ wᵀ H w, so that coordinate descent
for any further strength needs no product with X (the "covariance updates" of Friedman,
Hastie and Tibshirani 2010, section 2.2). R is half a weighted sum of squared residuals,
whose derivatives u are a dual point with Xᵀu = v = ∇R(w). For 0 <= c <= 1 the dual
point c u proves the gap

    (1 - c)² R(w) + alpha (Omega(w) + Omega*(-c v / alpha)) + c <w, v>.   (1)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..kernels import coordinate_descent
from ..losses._base import Floats
from ..memory import COPY_SIZE
from ..objectives.objective import Objective
from ..regularizers import L2, ElasticNet
from ..rounding import MOST_STEPS, ROUNDED, rounding
from ..steps.gram_step import GramStep


def has_squares_path(objective: Objective) -> bool:
    """Whether a Gram matrix of moderate size determines the risk up to a constant."""
    o, q = objective, objective.n_params
    return (
        o.loss.quadratic
        and isinstance(o.regularizer, (L2, ElasticNet))
        and o.risk.in_one_place
        and not o.design.several_scores
        and o.n_free <= 1
        and q <= o.design.n_rows
        and q * q <= COPY_SIZE
    )


class SquaresPath:
    """Minimizers of squared errors and an elastic net, for any strength.

    Parameters
    ----------
    objective : Objective
        With any strength; ``has_squares_path`` holds.
    other : SquaresPath, optional
        The path of other targets of the same rows.
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
        # Sweeps end where no slope changes by more.
        self._tol = ROUNDED * float(np.abs(self._gradient).max())

    def minimize(
        self, objective: Objective, start: Floats, stored: Callable[[Floats], Floats]
    ) -> tuple[Floats, float]:
        """Return the minimizer as it is stored, and a bound of its relative gap.

        Parameters
        ----------
        objective : Objective
            The objective of the path with another strength and share of the L1 norm.
        start : ndarray of shape (q,)
        stored : callable
            Rounds parameters to the type in which they are stored.
        """
        q, m = objective.n_params, objective.regularizer.n_penalized
        factors = np.zeros((2, q))
        factors[:, :m] = np.array(objective.penalties)[:, np.newaxis]
        w, slopes = start.copy(), self._gradient + self._gram @ start
        violation, _ = coordinate_descent.sweep_gram(
            self._gram, slopes, w, factors[0], factors[1], self._tol, MOST_STEPS
        )
        if not violation <= self._tol:
            # Strongly correlated features need more than sweeps.
            inside, rank = np.ones((q, 1), dtype=bool), objective.design.n_rows
            step = GramStep(self._gram.copy(), factors[0], factors[1], inside, rank)
            columns = slopes[:, np.newaxis], w[:, np.newaxis]
            w = step.minimize(*columns, self._tol, MOST_STEPS)[:, 0]
        slopes = self._gradient + self._gram @ w
        if q > m:
            # A dual point is feasible only if it sums to zero.
            change = -slopes[-1] / self._gram[-1, -1]
            w[-1] += change
            slopes += change * self._gram[-1]
        rounded = stored(w).astype(np.float64)
        gap, value = self._gap(objective, w, slopes)
        p, (l1, l2) = rounded - w, objective.penalties
        excess = float(p @ (slopes + 0.5 * (self._gram @ p)))
        excess += l1 * float((np.abs(rounded) - np.abs(w))[:m].sum())
        excess += l2 * float(p[:m] @ (w + 0.5 * p)[:m])
        value += excess
        return rounded, (gap + abs(excess)) / value if value > 0.0 else math.inf

    def _gap(
        self, objective: Objective, w: Floats, slopes: Floats
    ) -> tuple[float, float]:
        """Return the gap (1) with a bound of its rounding errors, and J(w)."""
        m, (l1, l2) = objective.regularizer.n_penalized, objective.penalties
        risk = self._value + 0.5 * float(w @ (self._gradient + slopes))
        penalty = l1 * float(np.abs(w[:m]).sum()) + 0.5 * l2 * float(w[:m] @ w[:m])
        # Rounding errors of entries of H, g and R(0) are relative to the norms of
        # columns and targets.
        norms = np.sqrt(self._gram.diagonal())
        size = math.sqrt(2.0 * self._value) + float(norms @ np.abs(w))
        error = 2.0 * rounding(objective.design.n_rows + len(w)) * size
        steepest = np.abs(slopes[:m]) + error * norms[:m]
        largest = float(steepest.max(initial=0.0))
        c = min(1.0, l1 / largest) if l2 == 0.0 and largest > 0.0 else 1.0
        gap = (1.0 - c) ** 2 * risk + penalty + c * float(slopes[:m] @ w[:m])
        if l2 > 0.0:
            beyond = np.maximum(steepest - l1, 0.0)
            gap += 0.5 / l2 * float(beyond @ beyond)
        return abs(gap) + error * size + rounding(m) * penalty, risk + penalty
