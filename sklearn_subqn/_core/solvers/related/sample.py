"""Some of the rows, for data with many more rows than features.

A share of the rows, such as an eighth, determines the parameters up to an error that
is small where it holds many rows a parameter, and costs that share of the time. The
solution is where the method for all rows starts, which alone proves bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...driver import Iterate
from ...objectives.objective import Objective
from ...rows.sampling import spread
from ...steps.intercepts import minimize_intercept
from . import Related

# Limit on the iterations, of which small alphas take some hundred for larger ones.
_MAX_ITER = 500


def sample(
    objective: Objective, n_sampled: int, is_solved: Callable[[Iterate], bool]
) -> Related | None:
    """Return the problem of ``n_sampled`` rows, None if they have no weight.

    Only its solution is of use, as a point of all rows. Before, w = 0 is tried,
    which is optimal for a large L1 penalty.

    Parameters
    ----------
    objective : Objective
        Of all rows.
    n_sampled : int
    is_solved : callable
        From an iterate of the sample to whether its run may end there.
    """
    rows = spread(objective.design.n_rows, n_sampled)
    part = objective.sample(rows)
    if part is None:
        return None
    n_lifted = 0

    def lift(iterate: Iterate, last: bool) -> Iterate | None:
        nonlocal n_lifted
        n_lifted += 1
        if not last:
            return _origin(objective) if n_lifted == 1 else None
        objective.design.count(part.design, part.passes)
        return Iterate(objective.at(iterate.point.w), phase="sample")

    return Related(part, lift, is_solved, _MAX_ITER)


def _origin(objective: Objective) -> Iterate:
    """Return w = 0, with a bound by its gradient where the loss is smooth."""
    point = objective.origin()
    if not objective.loss.smooth:
        return Iterate(point, phase="sample")
    point = minimize_intercept(point)
    return Iterate(point, None, point.lower_bound, "sample")


def as_accurate_as_rows() -> Callable[[Iterate], bool]:
    """Return whether solutions of a sample, one after the other, are good enough.

    Their expected excess over the optimum on all rows is about half the number of
    parameters in use over that of rows: iterations that gain less are useless.
    """
    before = np.inf

    def is_solved(best: Iterate) -> bool:
        nonlocal before
        value, gained = best.point.value, before - best.point.value
        before = value
        excess = 0.5 * np.count_nonzero(best.point.w)
        excess /= best.point.objective.design.n_rows
        return bool(min(gained, best.gap) <= excess)

    return is_solved
