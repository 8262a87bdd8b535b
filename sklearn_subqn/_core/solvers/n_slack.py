"""Cutting planes of each sample, for risks that are given by an oracle.

Joachims, Finley and Yu (2009) call this the n-slack formulation, and the reuse of
earlier answers constraint caching. Here bundle methods minimize the risk of all answers
so far, which needs no call of the oracle and allows any regularizer. Then the oracle is
called for all samples at the minimizer. The cuts remain valid, since more candidates
only increase the risk.
"""

from __future__ import annotations

from ..driver import Iterate, Solver, Start, Status, Stopping
from ..objectives.risk_by_oracle import Candidates, OracleObjective
from ..steps.cut_model import cut_model
from .bundle import STALLED, ls_bmrm

# The problem over the candidates is solved to a fifth of the total gap, or nearly to
# the required gap. With a half, the examples of segmentation and of base NP need twice
# as many calls of the oracle. With a tenth they need up to a fifth fewer calls, but
# more time between calls.
_SHARE = 0.2

# Limit on the iterations between calls of the oracle.
_MAX_INNER = 300

# The method stops after 50 calls of the oracle without progress. It also stops if the
# bundle method stalls on the present candidates and the gap decreased by less than 5 %,
# since the next call starts at the same point with the same cuts.
_MAX_STUCK = 50


def n_slack(
    objective: OracleObjective,
    start: Start,
    *,
    size: int | None = None,
    stopping: Stopping,
) -> Solver:
    """Yield an iterate for each call of the oracle for all samples.

    Parameters
    ----------
    objective : OracleObjective
    start : Start
    size : int or None
        Number of cuts that the bundle keeps, at least 2.
    stopping : Stopping
        Defines the gap at which the run stops.

    Returns
    -------
    status : str
        "no_progress": the remaining gap is a rounding error, or the bundle method
        cannot reduce it.
    """
    model = cut_model(objective, size=size)
    candidates = Candidates(objective)
    point = best = start.at(objective)
    # Penalties are non-negative.
    bound, n_stuck, is_over = objective.risk.infimum, 0, False
    while True:
        yield Iterate(point, None, bound, "n-slack")
        if is_over:
            return Status.NO_PROGRESS
        before = best.value - bound
        candidates.add(objective.hinge.answers(point.scores), point.w)
        if point.value < best.value:
            best = point
        inner = ls_bmrm(candidates.objective(), best.w, model=model)
        has_stalled = True
        for n_inner, found in enumerate(inner, 1):
            bound = max(bound, model.lower_bound)
            gap = found.point.value - bound
            least = stopping.allowed_on_the_way(best.value)
            if (
                gap <= max(_SHARE * (best.value - bound), least)
                or n_inner == _MAX_INNER
            ):
                has_stalled = False
                break
        point = objective.at(found.point.w)
        now = min(best.value, point.value) - bound
        n_stuck = n_stuck + 1 if now >= before else 0
        is_over = n_stuck == _MAX_STUCK or (has_stalled and now > STALLED * before)
