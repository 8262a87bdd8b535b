"""Folds of a proven search: fits to an alpha, and bounds between two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._problems import LinearProblems
from .._solving.callbacks import FitTask
from .bounded_scores import HeldOutScore
from .score_bounds import Between, HeldOutBounds, Solved


class ProvenFold:
    """A fold whose held-out score has bounds.

    Parameters
    ----------
    model : LinearEstimator
        Of this fold; ``tol`` is that of its fits.
    problems : LinearProblems
        The one problem of the training rows.
    X, held : {ndarray, sparse matrix}
        Training rows and held-out rows.
    factors : ndarray of shape (d,)
        Of the squares in the penalty.
    score : HeldOutScore
    """

    def __init__(
        self,
        model: Any,
        problems: LinearProblems,
        X: Any,
        held: Any,
        factors: Any,
        score: HeldOutScore,
    ) -> None:
        self._model, self._problems, self._score = model, problems, score
        self._risk = problems.objective(0, 1.0).risk
        fit_intercept = bool(model.fit_intercept)
        self._rows = HeldOutBounds(self._risk, X, held, factors, fit_intercept)
        # The alpha of each fit, its relative gap, and whether it is as small as asked.
        self.fits: list[tuple[float, float, bool]] = []

    def solve(self, alpha: float) -> tuple[Solved, float]:
        """Return the solution for an alpha, and the score of the held-out rows."""
        (solution,) = self._problems.solve(alpha, FitTask.silent())
        self.fits.append((alpha, solution.relative_gap, solution.proven))
        found = self._problems.attributes()
        coef = np.ravel(found["coef_"]).astype(np.float64)
        intercept = float(np.ravel(found["intercept_"])[0])
        dual = solution.dual
        if dual is None:
            dual = self._risk.subgradient(solution.scores)
        solved = self._rows.solved(alpha, coef, intercept, dual)
        return solved, self._score(solved.held_scores + solved.intercept)

    def between(self, low: Solved, high: Solved, share: float) -> Between:
        """Return a convex combination of two solutions."""
        return self._rows.between(low, high, share)

    def bounds(self, at: Between, first: float, last: float) -> tuple[float, ...]:
        """Return bounds of the held-out score for all alphas of an interval.

        And the share of the radius of coefficients that is left in its middle.
        """
        lower, upper = self._score.bounds(*self._rows.intervals(at, first, last))
        return lower, upper, self._rows.spread(at, first, last)
