"""A sample of the rows, for data with many more rows than features.

A share of the rows, such as an eighth, takes this share of the time. It determines the
parameters up to a small error if it has many rows for each parameter. Its solution is
the start of the method for all rows, which alone proves bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...driver import Iterate
from ...objectives.objective import Objective
from ...rows.sampling import spread
from . import Related, within

# Relative gap to which samples are solved.
_TOL = 3e-2

# Limit on the iterations; continuation from larger alphas takes some hundreds.
_MAX_ITER = 500


def sample(objective: Objective, n_sampled: int) -> Iterator[Related]:
    """Yield the problem of ``n_sampled`` rows, or nothing if they have no weight.

    Only its solution becomes a point for all rows; earlier iterates are shown as w = 0.

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
