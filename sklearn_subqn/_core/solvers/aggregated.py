"""Bundle method with two cuts, the aggregate and the last one."""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Cut, Dual, Objective
from ..steps.intercepts import minimize_intercepts
from .bundle import next_point


def aggregated_bmrm(
    objective: Objective, w: Floats, *, endless: bool = False
) -> Solver:
    """Yield the iterates of BMRM with aggregation (Teo et al. 2010, Alg. 4).

    Parameters
    ----------
    objective : Objective
        L2-regularized objective.
    w : ndarray of shape (q,)
        Starting point.
    endless : bool
        Whether to continue without progress.

    Returns
    -------
    status : str
        "no_progress": the last cut is the aggregate itself.
    """
    n = objective.regularizer.n_penalized
    alpha = objective.alpha
    best = point = minimize_intercepts(objective.at(w))
    highest = 2.0 * abs(best.value)
    yield Iterate(point, phase="bmrm-aggregated", proof=Dual(point.dual))
    cut = point.cut
    while True:
        w = cut.normal / -alpha
        point = minimize_intercepts(next_point(best, point, w, highest))
        best = min(best, point, key=lambda point: point.value)
        bound, proof = objective.dual_value(cut), Dual(point.dual)
        yield Iterate(point, None, bound, "bmrm-aggregated", proof, preparing=endless)
        change = point.cut.normal[:n] - cut.normal[:n]
        square = float(change @ change)
        if not square > 0.0:
            return Status.NO_PROGRESS
        # The step size of equation (14), with w = -normal / alpha.
        slope = float(w[:n] @ change) + point.cut.offset - cut.offset
        eta = min(max(alpha * slope / square, 0.0), 1.0)
        normals = np.array([cut.normal, point.cut.normal])
        others = np.array([cut[1:], point.cut[1:]])
        cut = Cut.mixed(np.array([1.0 - eta, eta]), normals, others)
