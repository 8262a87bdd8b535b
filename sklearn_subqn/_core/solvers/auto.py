"""SubLBFGS while it is fastest, then the proximal method of multipliers to the end.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid that is fast early and late, and a
stopping criterion based on duality. SubLBFGS falls fastest as long as the many kinks of
the objective look smooth from afar; once its progress fades it hands over its point,
scores included, and the mean of its recent dual variables as the first dual center.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..losses._base import Floats
from ..objective import Objective
from ..quasi_newton import LimitedMemoryInverseHessian
from .alm import alm
from .run import Solver, Start
from .subbfgs import subbfgs

# Hand over when the objective fell by less than this share of itself over so many
# iterations.
_FADING = 0.1
_WINDOW = 3


def auto(objective: Objective, start: Start, *, memory: int = 10) -> Solver:
    """Yield the iterates of subLBFGS, then those of ``alm``.

    A start with a dual point is close to the end already: ``alm`` goes on from there.

    Parameters
    ----------
    objective : Objective
        Its loss is piecewise linear and has an envelope.
    start : Start
        Starting point.
    memory : int
        Number of pairs that subLBFGS keeps.

    Returns
    -------
    status : str
        That of the method at work at the end.
    """
    if start.dual is not None:
        return (yield from alm(objective, objective.at(start.w), dual=start.dual))
    hessian = LimitedMemoryInverseHessian(objective.n_params, memory)
    values: deque[float] = deque(maxlen=_WINDOW + 1)
    duals: deque[Floats] = deque(maxlen=_WINDOW)
    quasi_newton = subbfgs(objective, start.w, hessian)
    for iterate in quasi_newton:
        yield iterate
        point = iterate.point
        values.append(point.value)
        duals.append(point.dual)
        if len(values) > _WINDOW and values[0] - values[-1] < _FADING * values[-1]:
            break
    quasi_newton.close()
    return (yield from alm(objective, point, dual=np.mean(duals, axis=0)))
