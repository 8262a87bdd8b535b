"""A sample of the rows, for data with many more rows than features.

A sample, such as an eighth of the rows, takes the same fraction of the time. It
determines the parameters up to a small error if it has many rows for each parameter.
The solution of the sample is the start for all rows. Only the objective of all rows
proves lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...driver import Iterate
from ...objectives.objective import Objective
from ...rows.sampling import spread
from . import Related, within

# Relative gap at which the solution of a sample is accepted.
_TOL = 3e-2

# Limit on the iterations. Continuation from larger alphas takes several hundred.
_MAX_ITER = 500


def sample(objective: Objective, n_sampled: int) -> Iterator[Related]:
    """Yield the problem of ``n_sampled`` rows, or nothing if they have no weight.

    Only its solution becomes a point for all rows. In place of earlier iterates, w = 0
    is yielded.

    Parameters
    ----------
    objective : Objective
        The objective of all rows.
    n_sampled : int
    """
    part = objective.sample(spread(objective.design.n_rows, n_sampled))
    if part is None:
        return
    first = True

    def lift(iterate: Iterate, last: bool) -> Iterate | None:
        nonlocal first
        if not last:
            is_first, first = first, False
            return Iterate(objective.origin(), phase="sample") if is_first else None
        objective.design.count(part.design, part.passes)
        return Iterate(objective.at(iterate.point.w), phase="sample")

    yield Related(part, lift, within(_TOL), _MAX_ITER)
