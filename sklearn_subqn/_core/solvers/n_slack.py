"""Cutting planes of each sample, for risks of which only an oracle is known.

Joachims, Finley and Yu (2009) call it the n-slack formulation, and asking a cache of
earlier answers before the oracle constraint caching. Here the risk of all answers so
far is minimized by bundle methods, which costs no call of the oracle and serves any
regularizer; the oracle is asked for all samples at the minimizer. The bundle stays: the
risk of more candidates is only larger.
"""

from __future__ import annotations

from ..driver import Iterate, Solver, Start, Status, Stopping
from ..objectives.risk_by_oracle import Candidates, OracleObjective
from ..steps.cut_model import cut_model
from .bundle import STALLED, ls_bmrm

# The gap of the candidates' problem is closed to a fifth of the whole gap, or nearly to
# the one that is asked for. With a half the examples of segmentation and of base NP
# take twice the calls of the oracle; with a tenth they take as many or a fifth less,
# and more time between them.
_SHARE = 0.2

# The candidates' problem is solved in at most 300 iterations between calls of the
# oracle.
_MAX_INNER = 300

# The method ends after 50 calls of the oracle without progress. It also ends where the
# gap of the candidates' problem stalls and most of the whole gap is left: the next run
# would start at the same point with the same cuts.
_MAX_STUCK = 50


def n_slack(
    objective: OracleObjective,
    start: Start,
    *,
    size: int | None = None,
    stopping: Stopping,
) -> Solver:
    """Yield iterates, one for each time that the oracle is asked for all samples.

    Parameters
    ----------
    objective : OracleObjective
    start : Start
    size : int or None
        Number of cuts that the bundle keeps, at least 2.
    stopping : Stopping
        What gap ends the run.

    Returns
    -------
    status : str
        "no_progress": the rest of the gap is due to rounding, or the bundle can find no
        more of it.
    """
    model = cut_model(objective, size=size)
    candidates = Candidates(objective)
    point = best = start.at(objective)
    # No penalty is negative.
    bound, n_stuck, is_over = objective.risk_infimum, 0, False
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
