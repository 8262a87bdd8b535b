"""What fits store of their solutions, by one rule for all estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._solving.solution import Solution

#: Attributes that ``store_solutions`` sets besides ``n_iter_``.
FOUND = ("objective_", "dual_gap_", "history_", "plan_")


def store_solutions(
    estimator: Any, solutions: Sequence[Solution], *, several: bool = False
) -> None:
    """Set the attributes that say what a fit has found, and how.

    Parameters
    ----------
    estimator : estimator instance
        Gets ``objective_``, ``dual_gap_``, ``n_iter_``, ``history_`` and ``plan_``.
    solutions : sequence of Solution
        One for each problem.
    several : bool
        Whether objectives and gaps are arrays, and plans a list, with an entry for each
        problem.
    """
    objectives = [solution.objective for solution in solutions]
    gaps = [solution.dual_gap for solution in solutions]
    plans = [solution.plan for solution in solutions]
    estimator.objective_ = np.array(objectives) if several else float(objectives[0])
    estimator.dual_gap_ = np.array(gaps) if several else float(gaps[0])
    estimator.n_iter_ = counted(estimator, [each.n_iter for each in solutions])
    estimator.history_ = [solution.history for solution in solutions]
    estimator.plan_ = plans if several else plans[0]


def counted(estimator: Any, n_iters: Sequence[int]) -> int:
    """Return ``n_iter_``: the largest number of iterations that a problem took.

    As in scikit-learn, a fit counts at least one iteration if it may have any.
    """
    return max(min(1, estimator.max_iter), *n_iters, 0)


def forget(estimator: Any, *names: str) -> None:
    """Remove fitted attributes that are not of the last fit, if there are any."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)
