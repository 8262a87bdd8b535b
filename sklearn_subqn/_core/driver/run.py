"""The driver of all batch solvers.

A solver is a generator of ``Iterate``s. The driver does what all solvers have in
common: best point, lower bound and gap, stopping rule, limits, history and reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..steps.cut_model import CutBundle
from .history import History
from .iterate import Chosen, Iterate, Solver
from .stopping import Status, Stopping

# The quadratic program over the cuts is solved after 1, 2, 4 and 8 cuts, and then at
# least every ten cuts, so that it takes a small share of the time.
_BOUND_INTERVAL = 10

#: A run has stalled if within 100 iterations the decrease of the objective plus the
#: increase of the bound is at most a tenth of the allowed gap, and at most ``_STALLED``
#: times the present gap.
STALL_WINDOW = 100

# Near the optimum, progress of less than a tenth of a loose tolerance does not mean
# that a run has stalled, so progress is also compared with a thousandth of the present
# gap.
_STALLED = 1e-3

# A run continues below the allowed gap while five iterations halve the gap.
_HALVED_WITHIN = 5

# A run that continues below the requested gap may take five times the iterations it has
# taken so far, and at most ``STALL_WINDOW`` more. With all losses and penalties, small
# problems reach a gap of the size of rounding errors well before this limit, except for
# a few with squared Lp norms in large units.
_TIMES = 5

# A run that continues below the requested gap may take at least 40 iterations in total.
_LEAST = 40


@dataclass
class Result:
    """Outcome of a run, complete or so far.

    Attributes
    ----------
    point : Point
        The best point.
    history : History
    lower_bound : float
        The best proven lower bound of the objective, -inf where there is none.
    dual : ndarray or None
        The dual point with the best lower bound among the solver's iterates.
    n_iter : int
        Number of iterations after the starting point.
    status : Status
        How the run ended.
    plan : str
        The plan by which the problem was solved, if the solver chose one.
    why : callable or None
        Returns lines that explain the choice of the plan.
    current : Point
        Point of the last iterate, which need not be the best one.
    """

    point: Any
    history: History
    lower_bound: float
    dual: Any = None
    n_iter: int = -1
    status: Status = Status.STOPPED
    plan: str = ""
    why: Callable[[], list[str]] | None = None
    current: Any = None
    _bound_of_dual: float = -np.inf

    @property
    def gap(self) -> float:
        """Objective - lower_bound, at least zero."""
        return float(max(self.point.value - self.lower_bound, 0.0))

    def add(self, iterate: Iterate) -> None:
        """Count an iterate; keep its point, its lower bound and its proof if better."""
        self.n_iter += 1
        self.current = iterate.point
        if iterate.point.value <= self.point.value:
            self.point = iterate.point
        self.raise_bound(iterate.lower_bound)
        if iterate.proof is not None and iterate.lower_bound >= self._bound_of_dual:
            self.dual, self._bound_of_dual = iterate.proof.u, iterate.lower_bound

    def raise_bound(self, bound: float) -> None:
        """Keep a lower bound if it is the best one so far."""
        self.lower_bound = max(self.lower_bound, bound)


class PassCounter(Protocol):
    """An object that counts passes over the data, such as an objective."""

    @property
    def passes(self) -> float:
        """The number of passes so far."""


def run(
    solver: Solver,
    stopping: Stopping,
    *,
    max_iter: int,
    is_useful: Callable[[Result], bool] = lambda result: True,
    is_rounding: Callable[[Any, float], bool] = lambda point, gap: False,
    bundle: Callable[[], CutBundle] | None = None,
    points_prove: bool = False,
    prove: Callable[[Any], float] | None = None,
    least: float = -np.inf,
    counter: PassCounter | None = None,
    since: float = 0.0,
    report: Callable[[Result], bool | None] | None = None,
) -> Result:
    """Run a solver until its proven gap satisfies the stopping rule.

    Parameters
    ----------
    solver : generator of Iterate
        The first iterate is the starting point.
    stopping : Stopping
        The rule that gives the allowed gap at a value of the objective.
    max_iter : int
        Limit on the number of iterations.
    is_useful : callable
        Whether the run may end at its allowed gap. Otherwise it continues while there
        is progress.
    is_rounding : callable
        Whether the gap of a point is below the rounding error of its value. It is
        tested at iterations 1, 2, 4, 8 and so on, and ends the run whatever the
        tolerance: an optimal value of zero has no relative gap that iterations could
        reach.
    bundle : callable, optional
        Returns the model that turns the cuts of the iterates into a lower bound; called
        at the first cut.
    points_prove : bool
        Whether an iterate without a lower bound gets the lower bound of its point.
    prove : callable, optional
        Returns another lower bound from a point. It is called where the objective falls
        by less than the allowed gap: at once, and again after at least 1, 2, 4 more
        iterations.
    least : float
        A lower bound of the objective known before the run.
    counter : optional
        Its ``passes`` is the number of passes over the data so far.
    since : float
        Passes made before the fit, which are subtracted.
    report : callable, optional
        Called after every iteration with the ``Result`` so far; stops if it returns
        True.

    Returns
    -------
    Result

    Raises
    ------
    FloatingPointError
        If the objective is not finite at an iterate.
    RuntimeError
        If the objective raises ``StopIteration``, which would end the solver.
    """
    begin = time.perf_counter()
    history = History()
    result: Result | None = None
    cuts: CutBundle | None = None
    n_prepared = n_cuts = n_proofs = next_proof = 0
    limit, plan, why = max_iter, "", None

    while True:
        try:
            iterate = next(solver)
        except StopIteration as stop:
            chosen = stop.value
            if isinstance(chosen, Chosen):
                chosen, plan, why = chosen
            if isinstance(chosen, Generator):
                solver = chosen
                continue
            assert result is not None, "a solver yields its starting point"
            result.status = stop.value or Status.STOPPED
            suffices = stopping.is_reached
            break
        except RuntimeError as error:
            if not isinstance(error.__cause__, StopIteration):
                raise
            raise RuntimeError(
                "The function that is minimized, or a part of it such as the loss, "
                "raised StopIteration. Callbacks may end a run, but not the function."
            ) from error.__cause__
        if points_prove and iterate.lower_bound == -np.inf:
            iterate = iterate._replace(lower_bound=iterate.point.lower_bound)
        value = iterate.point.value
        if not np.isfinite(value):
            raise FloatingPointError(f"the objective became {value}")
        if result is None:
            result = Result(iterate.point, history, least, plan=plan, why=why)
            if iterate.proof is not None:
                result.dual = iterate.proof.u
        result.add(iterate)
        if bundle is not None and iterate.cut is not None:
            if cuts is None:
                cuts = bundle()
            cuts.add(iterate.cut)
            n_cuts += 1
            if _is_time_for_bound(n_cuts - 1, cuts):
                result.raise_bound(cuts.improve())
        if prove is not None and result.n_iter >= max(next_proof, 1):
            gap, value = result.gap, result.point.value
            fallen = history.objective[-1] - value
            allowed = stopping.allowed_gap(value)
            if fallen <= allowed and not stopping.is_reached(gap, value):
                result.raise_bound(prove(result.point))
                next_proof = result.n_iter + (1 << n_proofs)
                n_proofs += 1
        history.objective.append(result.point.value)
        history.lower_bound.append(result.lower_bound)
        history.passes.append(counter.passes - since if counter else 0.0)
        history.seconds.append(time.perf_counter() - begin)
        history.phase.append(iterate.phase)
        if iterate.preparing:
            n_prepared = result.n_iter + 1
        wants_stop = report is not None and report(result) is True
        gap, value = result.gap, result.point.value
        if limit == max_iter and stopping.is_what_was_asked(gap, value):
            further = min(_TIMES * result.n_iter, result.n_iter + STALL_WINDOW)
            limit = min(max(further, _LEAST), max_iter)
        if (stopping.is_reached(gap, value) and is_useful(result)) or (
            stopping.is_nearly_reached(gap, value) and _is_slow(result)
        ):
            result.status = Status.CONVERGED
        elif wants_stop:
            result.status = Status.CALLBACK
        elif (
            result.n_iter.bit_count() == 1
            and not stopping.is_what_was_asked(gap, value)
            and is_rounding(result.point, gap)
        ):
            result.status = Status.ROUNDING
        elif result.n_iter >= limit:
            result.status = Status.MAX_ITER
        elif _has_stalled(history, n_prepared, stopping.allowed_gap(value)):
            result.status = Status.STALLED
        else:
            continue
        suffices = stopping.is_what_was_asked
        solver.close()
        break

    if cuts is not None:
        result.raise_bound(cuts.improve())
        history.lower_bound[-1] = result.lower_bound
    gap, value = result.gap, result.point.value
    if stopping.is_reached(gap, value) or suffices(gap, value):
        result.status = Status.CONVERGED
    return result


def _is_time_for_bound(n_later: int, bundle: CutBundle) -> bool:
    """Whether to solve the program now, given the number of cuts after the first."""
    interval = min(_BOUND_INTERVAL, bundle.size - 1)
    return n_later % interval == 0 or (n_later < interval and n_later.bit_count() == 1)


def _is_slow(result: Result) -> bool:
    """Whether the last five iterations have not halved the gap."""
    history = result.history
    if len(history) <= _HALVED_WITHIN:
        return False
    earlier = -1 - _HALVED_WITHIN
    before = history.objective[earlier] - history.lower_bound[earlier]
    return result.gap > 0.5 * before


def _has_stalled(history: History, n_prepared: int, allowed: float) -> bool:
    if len(history.objective) - n_prepared <= STALL_WINDOW:
        return False
    fallen = history.objective[-1 - STALL_WINDOW] - history.objective[-1]
    before, now = history.lower_bound[-1 - STALL_WINDOW], history.lower_bound[-1]
    risen = 0.0 if now == before else now - before
    gap = history.objective[-1] - now
    return fallen + risen <= min(0.1 * allowed, _STALLED * gap)
