"""Folds of a proven search: fits for an alpha, and bounds between two alphas."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from .._core.arrays import Floats
from .._problems import LinearProblems
from .._solving.callbacks import FitTask
from .score_bounds import Between, HeldOutBounds, Solved

# The cost model counts CPU time in entries of X: a product with X costs its number of
# entries, and a fit costs 64,000 more. Times of bounds, measured relative to fits, are:
# 20 x 8 .17, 400 x 20 .09 to .17, 2,000 x 50 .04 to .10, a9a .007 for the hinge and
# .036 for the log loss. The model gives .17, .15, .08, .007 and .03.
_ENTRIES_OF_FIT = 64_000

# In the same unit, the bounds of an interval cost 11,000, and 3 for each row.
_ENTRIES_OF_BOUNDS = 11_000
_ENTRIES_OF_ROW = 3

# The bounds use a ball of radius r that contains the optimal coefficients. The duality
# gap of a fit may add up to (0.3 r)² to the squared radius. With 1e-10 for all fits the
# hinge on a9a, five folds, alphas from 1e-3 to 1e-2 and search_tol=0.01, takes 1.6
# times as long.
_OF_RADIUS = 0.3

# No fit is solved to a smaller relative gap, unless tol is smaller.
_LEAST_TOL = 1e-10

#: One solution, and one convex combination, for each problem.
Solutions = tuple[Solved, ...]
Combinations = tuple[Between, ...]


class BoundedScore(Protocol):
    """A score of held-out rows that can be bounded from bounds of the predictions."""

    def __call__(self, scores: Floats) -> float:
        """Return the score of predictions."""

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the score for predictions between ``low`` and ``high``."""


class ProvenFold:
    """A fold with bounds of its held-out score.

    Parameters
    ----------
    problems : LinearProblems
        The problem of the training rows, or one for each class.
    held : {ndarray, sparse matrix}
        Held-out rows.
    factors : ndarray of shape (d,)
        Factors of the squares in the penalty.
    score : BoundedScore
    """

    def __init__(
        self,
        problems: LinearProblems,
        held: Any,
        factors: Any,
        score: BoundedScore,
    ) -> None:
        self._problems, self._score = problems, score
        X, self._n_passes = problems.rows.X, 0.0
        self._n_rows = X.shape[0] + held.shape[0]
        fit_intercept = problems.design.fit_intercept
        self._rows = [
            HeldOutBounds(risk, X, held, factors, fit_intercept)
            for risk in map(problems.risk, range(len(problems)))
        ]
        #: The relative gap of each alpha, and whether it is within its tolerance.
        self.fits: dict[float, tuple[float, bool]] = {}

    @property
    def work_of_bounds(self) -> float:
        """The work to bound one interval, relative to the mean work of a fit so far."""
        n_fits, n_problems = len(self.fits), len(self._rows)
        of_fits = _ENTRIES_OF_FIT * n_problems * n_fits
        of_fits += self._problems.design.n_entries * self._n_passes
        of_bounds = _ENTRIES_OF_BOUNDS + _ENTRIES_OF_ROW * self._n_rows
        return of_bounds * n_problems * n_fits / of_fits

    def solve(
        self, alpha: float, ratio: float, near: Solutions | None
    ) -> tuple[Solutions, float]:
        """Return the solutions for an alpha, and the score of the held-out rows.

        For two alphas with this ratio, the distance of an optimum from the middle is
        about log(ratio) / 2 times its norm. A duality gap g adds g / alpha to the
        square of this radius.
        """
        problems, settings, tol = self._problems, self._problems.settings, 0.0
        if near is not None:
            problems.starts = [of.start for of in near]
            share = (0.5 * _OF_RADIUS * math.log(ratio)) ** 2
            tol = min(
                share * alpha * rows.square(of) / (of.size or 1.0)
                for rows, of in zip(self._rows, near, strict=True)
            )
        tol = min(max(tol, _LEAST_TOL), settings.tol)
        problems.settings = settings._replace(tol=tol)
        found = problems.solve(alpha, FitTask.silent())
        problems.settings = settings
        self._n_passes += sum(solution.history.passes[-1] for solution in found)
        gap = max(solution.relative_gap for solution in found)
        self.fits[alpha] = gap, all(solution.proven for solution in found)
        named = self._problems.attributes()
        coefs = np.atleast_2d(named["coef_"]).astype(np.float64)
        intercepts = np.atleast_1d(named["intercept_"]).tolist()
        solved = tuple(
            rows.solved(alpha, coef, float(intercept), solution)
            for rows, coef, intercept, solution in zip(
                self._rows, coefs, intercepts, found, strict=True
            )
        )
        return solved, self._score(_columns([of.held_scores for of in solved]))

    def between(self, low: Solutions, high: Solutions, share: float) -> Combinations:
        """Return convex combinations of two solutions, for each problem."""
        pairs = zip(self._rows, low, high, strict=True)
        return tuple(rows.between(a, b, share) for rows, a, b in pairs)

    def bounds(self, at: Combinations, first: float, last: float) -> tuple[float, ...]:
        """Return bounds of the held-out score for all alphas of an interval.

        The third result is the radius of coefficients in the middle of the interval as
        a share of the radius at its ends, the largest over the problems.
        """
        rows = zip(self._rows, at, strict=True)
        found = [part.intervals(of, first, last) for part, of in rows]
        low, high, spreads = map(list, zip(*found, strict=True))
        return *self._score.bounds(_columns(low), _columns(high)), max(spreads)


def _columns(scores: list[Floats]) -> Floats:
    """Return the scores of one problem unchanged, the scores of several as columns."""
    return scores[0] if len(scores) == 1 else np.column_stack(scores)
