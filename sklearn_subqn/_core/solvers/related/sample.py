"""Some of the rows, for data with many more rows than features.

A share of the rows, such as an eighth, determines the parameters up to an error that
is small where it holds many rows a parameter, and costs that share of the time. The
solution is where the method for all rows starts, which alone proves bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...driver import Iterate
from ...objectives.objective import Objective
from ...rows.sampling import spread
from . import Related, within

# Samples are solved to a relative gap of 0.03.
_TOL = 3e-2

# Limit on the iterations, of which small alphas take some hundred for larger ones.
_MAX_ITER = 500


def sample(objective: Objective, n_sampled: int) -> Iterator[Related]:
    """Yield the problem of ``n_sampled`` rows, none if they have no weight.

    Only its solution is of use, as a point of all rows. Before, w = 0 is shown.

    Parameters
    ----------
    objective : Objective
        Of all rows.
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
