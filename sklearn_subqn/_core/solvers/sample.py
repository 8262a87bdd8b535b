"""A start from a sample of the rows, for data with many more rows than features.

A sixteenth of the rows determines the parameters up to an error that is small where it
holds many rows a parameter, and costs a sixteenth of the time. What is returned for all
the rows is still proven with all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..losses._base import Floats, Rows
from ..objective import Objective
from .run import Solver, Start, run

# Share of the rows in a sample, how many rows it must have for each parameter of a
# score, and the relative gap to which its problem is solved. Problems of several scores
# per row take many costly steps: there a rough start pays sooner, and a sample of fewer
# rows does unless dual ascent is another good start.
_SHARE, _SHARE_SEVERAL = 1.0 / 16.0, 1.0 / 8.0
_ROWS_PER_PARAMETER, _ROWS_PER_PARAMETER_SEVERAL = 64, 8
_TOL, _TOL_SEVERAL = 3e-2, 1e-1

# Limit on the iterations, of which small alphas take some hundred for larger ones.
_MAX_ITER = 500

_GOLDEN_RATIO = 0.5 * (5.0**0.5 - 1.0)


def is_tall(objective: Objective) -> bool:
    """Whether there are enough rows for a sample of them to be worth while."""
    return _n_sampled(objective) > 0


def _n_sampled(objective: Objective) -> int:
    """Return how many rows a sample has, zero where that is not worth while."""
    n_outputs = objective.design.n_outputs
    share, needed = _SHARE, _ROWS_PER_PARAMETER
    if n_outputs is not None:
        share = _SHARE_SEVERAL
        if objective.loss.rowwise_dual(objective.targets) is None:
            needed = _ROWS_PER_PARAMETER_SEVERAL
    n_sampled = int(share * len(objective.weights))
    return (
        n_sampled if n_sampled >= needed * objective.n_params // (n_outputs or 1) else 0
    )


def sample_solution(
    objective: Objective, solver: Callable[[Objective, Start], Solver]
) -> Floats | None:
    """Return nearly optimal parameters for a sample of the rows, of shape (q,).

    Returns None where the data are not tall enough for it to be worth while.
    """
    n_sampled = _n_sampled(objective)
    if not n_sampled:
        return None
    tol = _TOL if objective.design.n_outputs is None else _TOL_SEVERAL
    rows = spread(len(objective.weights), n_sampled)
    if not objective.weights[rows].any():
        return None
    sample = objective.sample(rows)
    start = Start(np.zeros(objective.n_params))
    result = run(solver(sample, start), tol=tol, max_iter=_MAX_ITER)
    objective.design.count(sample.design, sample.passes)
    w: Floats = result.point.w
    return w


def spread(n: int, n_sampled: int) -> Rows:
    """Return indices of rows spread evenly but with no period that data might have."""
    sampled = np.zeros(n, dtype=bool)
    sampled[(fractions(n_sampled) * n).astype(np.intp)] = True
    return np.flatnonzero(sampled)


def fractions(n: int) -> Floats:
    """Return numbers spread evenly over [0, 1), in no order."""
    return np.asarray(np.arange(n) * _GOLDEN_RATIO % 1.0, dtype=np.float64)
