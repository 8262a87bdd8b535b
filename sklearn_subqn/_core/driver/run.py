"""The driver of all batch solvers.

A solver is a generator of ``Iterate``s. The driver owns what all have in common: the
best point, lower bound and gap, tolerance, limits, history and progress reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..losses._base import Floats
from ..objectives.objective import Cut, Dual, Objective, Point
from ..records import stored
from ..steps.certificate import CutBundle
from ..steps.intercepts import minimize_intercept

# The quadratic program over the cuts is solved after 1, 2, 4, 8 and then at least every
# this many cuts after the first, which keeps its share of the time small.
_BOUND_INTERVAL = 10

#: A run has stalled if over this many iterations neither the objective fell nor the
#: bound rose by a tenth of what the tolerance asks for, or by this share of the gap:
#: little may be missing where the tolerance is loose.
STALL_WINDOW, _STALLED = 100, 1e-3

#: Problems that are solved on the way, where they may end it all, are solved to this
#: share of what is asked for.
SHARE_OF_TOL = 0.5

# Beyond what is enough a run goes on as long as this many iterations halve the gap.
_HALVED_WITHIN = 5

# Beyond the gap asked for, a run has this many times the iterations up to there, and at
# least the second number of them. Small problems of all losses and penalties end with a
# gap of rounding well before that, except for a few of squared Lp norms in large units.
_TIMES, _LEAST = 5, 40


# What is less than this share of an objective is negligible.
_NOTHING = 1e-6


def size_of(value: Any, infimum: float) -> Any:
    """Return what gaps are relative to: |J|, less the infimum of the risk."""
    return np.maximum(np.abs(value - infimum), _NOTHING * np.abs(value))


class Start(NamedTuple):
    """Where a run begins.

    Attributes
    ----------
    w : ndarray of shape (q,)
        Parameters.
    dual : ndarray or None
        A dual point of a similar problem, of the shape of the scores.
    scores : ndarray or None
        Those at w, where they are known.
    drift : float
        That of the scores, see ``Point``.
    origin : Point or None
        A point near by, whose risk gradient may be updated to that at w.
    """

    w: Floats
    dual: Any = None
    scores: Any = None
    drift: float = 0.0
    origin: Point | None = None

    def at(self, objective: Objective) -> Point:
        """Return the starting point."""
        if self.scores is None:
            return objective.at(self.w)
        return objective.at(self.w, self.scores, self.drift, self.origin)

    def or_origin(self, objective: Objective) -> Point:
        """Return the starting point, or the origin where that is lower.

        Solutions of other data, or in other units, may be far worse than it, and where
        they are, losses may have no curvature left. Intercepts are the best ones.
        """
        point = minimize_intercept(self.at(objective))
        if not self.w.any():
            return point
        origin = minimize_intercept(objective.origin())
        return origin if origin.value < point.value else point

    @classmethod
    def from_point(cls, point: Point, dual: Any = None) -> Start:
        """Return the start at a point of an objective with the same data."""
        return cls(point.w, dual, point.scores, point.drift, point.evaluated())


class Iterate(NamedTuple):
    """One iteration's outcome.

    Attributes
    ----------
    point : Point
        Where the solver is.
    cut : Cut or None
        A lower bound of the risk, for the driver's bundle.
    lower_bound : float
        A lower bound of the objective that the solver knows itself.
    phase : str
        Name of the method that produced it, for the history.
    proof : Dual or None
        The dual point that proves ``lower_bound``, or another, from which a run on a
        similar problem may start.
    preparing : bool
        Whether the solver is at work on a similar problem, so that no progress is asked
        of it.
    plan : str
        Of the first iterate: how the problem is to be solved, if that was chosen.
    """

    point: Any
    cut: Cut | None = None
    lower_bound: float = -np.inf
    phase: str = ""
    proof: Dual | None = None
    preparing: bool = False
    plan: str = ""

    @property
    def dual(self) -> Any:
        """The dual u of ``proof``, None without one."""
        return None if self.proof is None else self.proof.u

    @property
    def gap(self) -> float:
        """Objective - lower_bound, at least zero."""
        return float(max(self.point.value - self.lower_bound, 0.0))

    @property
    def start(self) -> Start:
        """What a run on a similar problem may start from."""
        return Start.from_point(self.point, self.dual)

    def or_better(self, new: Iterate) -> Iterate:
        """Return the better point of two iterates, with the better bound and its dual.

        Everything else is that of this one.
        """
        point, bound, proof = self.point, self.lower_bound, self.proof
        if new.point.value <= point.value:
            point = new.point
        if new.lower_bound >= bound:
            bound = new.lower_bound
            proof = new.proof or proof
        return self._replace(point=point, lower_bound=bound, proof=proof)


@dataclass(frozen=True)
class Options:
    """Settings that solvers read as far as they concern them.

    Attributes
    ----------
    memory : int
        Number of pairs of a limited-memory estimate of the inverse Hessian.
    direction_tol, direction_max_iter : float, int
        Tolerance and limit of the search for a descent direction.
    bundle_size : int or None
        Number of cuts that bundle methods keep, None for no limit.
    tol : float
        Relative gap at which the run is to end.
    seed : int
        Of the order in which dual ascent goes through sequences.
    epsilon : float or None
        Absolute tolerance of the search for a descent direction, in place of
        ``direction_tol``.
    epsilon_0 : float or None
        That of the first search by subBFGS, in place of ``epsilon``.
    line_search : {"exact", "wolfe"}
        How steps of quasi-Newton methods are found.
    c1, c2 : float
        Constants of the Wolfe conditions.
    random_state : int or None
        Seed of subgradients that are drawn at random.
    gap : float or None
        Absolute gap at which the run is to end, in place of ``tol``.
    patience : int or None
        Number of iterations after which bundle methods remove inactive cuts.
    theta : float
        Share of the model's minimizer in the point of the next cut.
    cut_at_best : bool
        Whether the best point gives a cut as well.
    online : dict
        Settings of an online method that runs pass by pass.
    """

    memory: int = 15
    direction_tol: float = 1e-5
    direction_max_iter: int = 100
    bundle_size: int | None = None
    tol: float = 0.0
    seed: int = 0
    epsilon: float | None = None
    epsilon_0: float | None = None
    line_search: str = "exact"
    c1: float = 1e-4
    c2: float = 0.9
    random_state: int | None = None
    gap: float | None = None
    patience: int | None = 10
    theta: float = 0.2
    cut_at_best: bool = True
    online: Mapping[str, Any] = field(default_factory=dict)


#: A solver yields iterates and returns why it stopped by itself, if it does.
Solver = Generator[Iterate, None, str]


@stored
@dataclass
class History:
    """Record of a run, one entry an iteration, the starting point included.

    Attributes
    ----------
    objective : list of float
        Objective of the best point so far.
    lower_bound : list of float
        The best lower bound so far, -inf before there is one.
    passes : list of float
        Products with X or its transpose so far, products with some rows counted by
        their share. What models of columns take is not counted.
    seconds : list of float
        Wall-clock time since the start.
    phase : list of str
        The method at work.
    infimum : float
        What the mean loss cannot fall below, and relative gaps leave out: zero, except
        for Poisson, gamma and Tweedie losses, whose objectives lack a constant.
    """

    objective: list[float] = field(default_factory=list)
    lower_bound: list[float] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    infimum: float = 0.0

    def __len__(self) -> int:
        return len(self.objective)

    @property
    def size(self) -> Floats:
        """What relative gaps are relative to, an array with one entry an iteration."""
        size: Floats = size_of(np.asarray(self.objective), self.infimum)
        return size

    def times(self, unit: float) -> History:
        """Return the record with objectives and bounds times a number."""
        return replace(
            self,
            objective=[unit * value for value in self.objective],
            lower_bound=[unit * bound for bound in self.lower_bound],
            infimum=unit * self.infimum,
        )

    def __repr__(self) -> str:
        return f"<History of {max(len(self) - 1, 0)} iterations>"


@dataclass
class Result:
    """Outcome of a run.

    Attributes
    ----------
    best : Iterate
        The best point and lower bound, with the dual point of the best bound of those
        that the solver gave one of.
    n_iter : int
        Number of iterations after the starting point.
    status : str
        "converged", "max_iter", "stalled", "callback", or the solver's own word.
    history : History
    """

    best: Iterate
    n_iter: int
    status: str
    history: History

    @property
    def point(self) -> Any:
        """The best point."""
        return self.best.point

    @property
    def lower_bound(self) -> float:
        """Proven lower bound of the objective, -inf where there is none."""
        return self.best.lower_bound

    @property
    def dual(self) -> Any:
        """The dual point with the best lower bound, of those that the solver gave."""
        return self.best.dual

    @property
    def gap(self) -> float:
        """Objective - lower_bound, at least zero."""
        return self.best.gap

    @property
    def plan(self) -> str:
        """How the problem was solved, where that was chosen by its facts."""
        return self.best.plan

    def raise_bound(self, bound: float) -> None:
        """Take note of a lower bound."""
        if bound > self.lower_bound:
            self.best = self.best._replace(lower_bound=bound)


class Counts(Protocol):
    """What counts passes over the data, such as an objective."""

    @property
    def passes(self) -> float:
        """Their number so far."""


def run(
    solver: Solver,
    *,
    tol: float,
    max_iter: int,
    enough: float = 0.0,
    asked: float = 0.0,
    size: Callable[[float], float] = abs,
    is_useful: Callable[[Result], bool] = lambda result: True,
    bundle: CutBundle | None = None,
    least: float = -np.inf,
    counter: Counts | None = None,
    since: float = 0.0,
    report: Callable[[Result], bool | None] | None = None,
) -> Result:
    """Run a solver until its relative gap is proven to be at most ``tol``.

    Parameters
    ----------
    solver : generator of Iterate
        The first iterate is the starting point.
    tol : float
        Stop when objective - lower bound <= tol * size(objective).
    max_iter : int
        Limit on the number of iterations.
    enough : float
        A larger relative gap, from which on the run ends where it becomes slow.
    asked : float
        A larger relative gap, from which on the run has a limited number of iterations.
    size : callable
        From the objective to what gaps are relative to.
    is_useful : callable
        Whether the run may end where its gap is ``tol``. It goes on otherwise, as long
        as there is progress.
    bundle : CutBundle, optional
        Turns the cuts of the iterates into a lower bound.
    least : float
        A lower bound that is known beforehand.
    counter : optional
        Its ``passes`` is the number of passes over the data so far.
    since : float
        Passes before the fit, which do not count.
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
    """
    begin = time.perf_counter()
    history = History()
    result: Result | None = None
    n_prepared = n_cuts = 0
    limit = max_iter

    def reached(tol: float) -> bool:
        assert result is not None
        value = result.point.value
        return bool(value - result.lower_bound <= tol * size(value))

    while True:
        try:
            iterate = next(solver)
        except StopIteration as stop:
            assert result is not None, "a solver yields its starting point"
            result.status = stop.value or "stopped"
            _improve_bound(result, bundle)
            if reached(tol):
                result.status = "converged"
            _record_bound(result)
            break
        value = iterate.point.value
        if not np.isfinite(value):
            raise FloatingPointError(f"the objective became {value}")
        if result is None:
            result = Result(iterate, -1, "running", history)
            result.raise_bound(least)
        result.n_iter += 1
        result.best = result.best.or_better(iterate)
        if bundle is not None and iterate.cut is not None:
            bundle.add(iterate.cut)
            n_cuts += 1
            if _is_time_for_bound(n_cuts - 1, bundle):
                result.raise_bound(bundle.improve())
        history.objective.append(result.point.value)
        history.lower_bound.append(result.lower_bound)
        history.passes.append(counter.passes - since if counter else 0.0)
        history.seconds.append(time.perf_counter() - begin)
        history.phase.append(iterate.phase)
        if iterate.preparing:
            n_prepared = len(history)
        wants_stop = report is not None and report(result) is True
        if limit == max_iter and reached(asked):
            limit = min(max(_TIMES * result.n_iter, _LEAST), max_iter)
        if (reached(tol) and is_useful(result)) or (
            reached(enough) and _is_slow(result)
        ):
            result.status = "converged"
        elif wants_stop:
            result.status = "callback"
        elif result.n_iter >= limit:
            result.status = "max_iter"
        elif _has_stalled(history, n_prepared, tol * size(history.objective[-1])):
            result.status = "stalled"
        else:
            continue
        _improve_bound(result, bundle)
        if reached(max(tol, asked)):
            result.status = "converged"
        _record_bound(result)
        solver.close()
        break
    return result


def _is_time_for_bound(n_later: int, bundle: CutBundle) -> bool:
    """Whether it is, after the first cut and this many later ones."""
    interval = min(_BOUND_INTERVAL, bundle.size - 1)
    return n_later % interval == 0 or (n_later < interval and n_later.bit_count() == 1)


def _improve_bound(result: Result, bundle: CutBundle | None) -> None:
    if bundle is not None:
        result.raise_bound(bundle.improve())


def _record_bound(result: Result) -> None:
    result.history.lower_bound[-1] = result.lower_bound


def _is_slow(result: Result) -> bool:
    """Whether the gap hardly becomes smaller."""
    history = result.history
    if len(history) <= _HALVED_WITHIN:
        return False
    earlier = -1 - _HALVED_WITHIN
    before = history.objective[earlier] - history.lower_bound[earlier]
    return result.gap > 0.5 * before


def _has_stalled(history: History, n_prepared: int, allowed: float) -> bool:
    if len(history) - n_prepared <= STALL_WINDOW:
        return False
    fallen = history.objective[-1 - STALL_WINDOW] - history.objective[-1]
    before, now = history.lower_bound[-1 - STALL_WINDOW], history.lower_bound[-1]
    risen = 0.0 if now == before else now - before
    gap = history.objective[-1] - now
    return fallen + risen <= min(0.1 * allowed, _STALLED * gap)
