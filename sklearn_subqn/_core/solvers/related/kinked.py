"""The loss with kinks that is the limit of a smooth loss with narrow curved parts.

The optimal scale of residuals is zero if a model fits most rows exactly. The problem is
then least absolute errors, and methods for kinks are faster than methods for a nearly
nonsmooth loss. Its dual point is nearly feasible for the smooth loss.
"""

from __future__ import annotations

from ...driver import Iterate, Stopping
from ...objectives.objective import Dual, Objective
from . import Related, on_the_way

_MAX_ITER = 200

_PHASE = "kinked"


def kinked(objective: Objective, stopping: Stopping) -> Related:
    """Return the problem of the loss with kinks, solved to half of the allowed gap."""
    risk = objective.risk

    def lift(iterate: Iterate, last: bool) -> Iterate:
        point, proof = iterate.point.under(objective), iterate.proof
        if proof is None and not last:
            return Iterate(point, phase=_PHASE)
        u = iterate.point.dual if proof is None else proof.u
        proof = Dual(risk.oracle.projected(u, risk.targets, risk.weights))
        bound = objective.dual_bound(proof)
        return Iterate(point, None, bound, _PHASE, proof)

    other = objective.with_loss(objective.loss.kinked())
    return Related(other, lift, on_the_way(stopping), _MAX_ITER)
