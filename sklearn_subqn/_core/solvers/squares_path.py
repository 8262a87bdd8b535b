"""Least squares for one strength of the penalty after another, by one Gram matrix.

With H = Xᵀ S X the risk is R(w) = R(0) + <g, w> + ½ wᵀ H w, so that coordinate descent
for any further strength needs no product with X (the "covariance updates" of Friedman,
Hastie and Tibshirani 2010, section 2.2). Since R is a quadratic form of residuals, the
dual point c u with the residuals' u and 0 <= c <= 1 leaves the gap

    (1 - c)² R(w) + alpha (Omega(w) + Omega*(-c v / alpha)) + c <w, v>,   v = ∇R(w), (1)

which holds no difference of large numbers either.
"""

from __future__ import annotations

import numpy as np

from ..kernels import coordinate_descent
from ..losses._base import Floats
from ..memory import COPY_SIZE
from ..objectives.objective import Objective
from ..regularizers import L2, ElasticNet
from ..rounding import EPS, MOST_STEPS, ROUNDED
from ..steps.gram_step import GramStep

# Sweeps for one strength, at most.
_SWEEPS = 1000


def has_squares_path(objective: Objective) -> bool:
    """Whether a Gram matrix, which takes less room than X, says all about the risk."""
    o, q = objective, objective.n_params
    return (
        o.loss.quadratic
        and isinstance(o.regularizer, (L2, ElasticNet))
        and o.risk.in_one_place
        and not o.design.several_scores
        and q - o.regularizer.n_penalized <= 1
        and q <= o.design.n_rows
        and q * q <= COPY_SIZE
    )


class SquaresPath:
    """Minimizers of squared errors and an elastic net, for any strength.

    Parameters
    ----------
    objective : Objective
        With any strength; ``has_squares_path`` holds.
    """

    def __init__(self, objective: Objective) -> None:
        origin = objective.origin()
        self._value, self._gradient = origin.risk, origin.risk_gradient
        matrix = objective.risk.hessian(origin.curvature).matrix()
        self._gram = np.ascontiguousarray(matrix)
        # Smaller slopes are rounding errors.
        self._tol = ROUNDED * float(np.abs(self._gradient).max())

    def minimize(
        self, objective: Objective, start: Floats
    ) -> tuple[Floats, float, float]:
        """Return the minimizer for the strength of ``objective``, J there and a gap.

        Parameters
        ----------
        objective : Objective
            The one of the path, but for its strength and share of the L1 norm.
        start : ndarray of shape (q,)
        """
        q, m = objective.n_params, objective.regularizer.n_penalized
        l1, l2 = objective.penalties
        factors = np.zeros((2, q))
        factors[:, :m] = np.array(objective.penalties)[:, np.newaxis]
        w, slopes = start.copy(), self._gradient + self._gram @ start
        violation, _ = coordinate_descent.sweep_gram(
            self._gram, slopes, w, factors[0], factors[1], self._tol, MOST_STEPS
        )
        if violation > self._tol:
            # Strongly correlated features need more than sweeps.
            inside, rank = np.ones((q, 1), dtype=bool), objective.design.n_rows
            step = GramStep(self._gram.copy(), factors[0], factors[1], inside, rank)
            columns = slopes[:, np.newaxis], w[:, np.newaxis]
            w = step.minimize(*columns, self._tol, _SWEEPS)[:, 0]
        slopes = self._gradient + self._gram @ w
        if q > m:
            # A dual point is feasible only if it sums to zero.
            change = -slopes[-1] / self._gram[-1, -1]
            w[-1] += change
            slopes += change * self._gram[-1]
        risk = self._value + 0.5 * float(w @ (self._gradient + slopes))
        penalty = l1 * float(np.abs(w[:m]).sum()) + 0.5 * l2 * float(w[:m] @ w[:m])
        largest = float(np.abs(slopes[:m]).max(initial=0.0))
        c = min(1.0, l1 / largest) if l2 == 0.0 and largest > 0.0 else 1.0
        gap = (1.0 - c) ** 2 * risk + penalty + c * float(slopes[:m] @ w[:m])
        if l2 > 0.0:
            beyond = np.maximum(np.abs(slopes[:m]) - l1, 0.0)
            gap += 0.5 / l2 * float(beyond @ beyond)
        # Rounding errors of the Gram matrix and of the sums above.
        return w, risk + penalty, abs(gap) + q * EPS * (self._value + penalty)
