"""Solving one problem: what its tolerance means, the run, and the check of its end."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ._callbacks import FitTask, ProblemTask
from ._callers import in_search, user_level
from ._core.certificate import CutBundle
from ._core.line_search import minimize_intercept, rounding_of
from ._core.objective import Objective, Point
from ._core.regularizers import L2
from ._core.solvers import History, Options, Result, SolverSpec, Start, run
from ._process import isolated
from ._tolerance import Accuracy, Scale, Shrinkage, accuracy_of, relative
from ._validation import checked_options
from .exceptions import ConstantModelWarning, UnderfittingWarning

Floats = npt.NDArray[np.float64]

# Cuts kept for the lower bound, at most; fewer where q-vectors are large against X, and
# all of them large against the second number of entries.
_MAX_CUTS, _FEW_ENTRIES = 40, 2**15
_MIN_CUTS = 6

# Rounding coefficients to float32 goes without a warning if the relative gap stays
# below this or twice the tolerance, or the gap below this share of the objective at
# zero, as where that of the optimum nearly vanishes.
_ROUNDED, _LOST = 1e-4, 4.0 * float(np.finfo(np.float32).eps)

# Coefficients that differ by so much of themselves are the same: what columns in other
# units add to scores may depend on the smallest.
_SAME = 1e-15

# With verbose=1, lines are printed at powers of two, and after so many seconds.
_QUIET = 5.0

# Problems that a warning names.
_MOST_NAMED = 5


class Progress(NamedTuple):
    """What a ``callback`` gets after each iteration.

    Attributes
    ----------
    n_iter : int
        Number of the iteration; 0 is the starting point.
    objective : float
        The smallest objective so far.
    dual_gap : float
        Proven bound on its distance from the optimum, ``inf`` before there is one.
    passes : float
        Products with X or its transpose so far.
    seconds : float
        Wall-clock time so far.
    """

    n_iter: int
    objective: float
    dual_gap: float
    passes: float
    seconds: float


class Settings(Protocol):
    """What an estimator's parameters ask of solving, and its registry of solvers.

    ``memory``, ``direction_tol``, ``direction_max_iter``, ``bundle_size`` and
    ``solver_options`` count where there are any. A registry without "auto" means its
    first solver by that.
    """

    _solvers: Mapping[str, SolverSpec]
    solver: str
    tol: float
    max_iter: int
    callback: Callable[[Progress], Any] | None
    verbose: int


def changed(settings: Settings, **values: Any) -> Settings:
    """Return settings with other values."""
    other = copy.copy(settings)
    for name, value in values.items():
        setattr(other, name, value)
    return other


class Watch(Protocol):
    """Looks at a model after each iteration, and may end the fit with an earlier one.

    Attributes
    ----------
    chosen : ndarray of shape (q,) or None
        Parameters to return, where it has ended the fit.
    """

    chosen: Floats | None

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Look at parameters and attributes so far; return whether to stop."""


class Problem(NamedTuple):
    """One problem, and how its solution will be reported.

    Attributes
    ----------
    label : str
        Its name for ``verbose`` output and warnings.
    objective : Objective
    start : Start
    dtype : dtype
        Type in which coefficients will be stored.
    fitted : callable
        From parameters w to what scikit-learn's callbacks may ask for: the attributes
        of an estimator fitted so far.
    stored : callable, optional
        From parameters to those of the attributes, after the rounding to
        ``dtype``. By default they are rounded each.
    unit : float
        Users read objectives and gaps times this.
    watch : Watch, optional
        Looks at the model after each iteration but the starting point.
    """

    label: str
    objective: Objective
    start: Start
    dtype: Any
    fitted: Callable[[Floats], dict[str, Any]]
    stored: Callable[[Floats], Floats] | None = None
    unit: float = 1.0
    watch: Watch | None = None


@dataclass
class Solution:
    """Parameters, objective and certificate of one fitted problem.

    ``size`` is what ``relative_gap`` is relative to.
    ``proven`` says whether the tolerance was reached, or a callback ended the run,
    ``constant`` whether the coefficients are of no use: zero would do as well,
    ``shrinkage`` whether much larger ones would do much better but for the penalty, and
    ``plan`` what solver="auto" chose, or the solver.
    """

    w: Floats
    objective: float
    dual_gap: float
    n_iter: int
    history: History
    dual: Floats | None
    scores: Floats
    drift: float
    proven: bool
    constant: bool
    size: float
    shrinkage: Shrinkage | None = None
    plan: str = ""

    @property
    def relative_gap(self) -> float:
        """The gap as a share of what the tolerance is relative to."""
        return relative(self.dual_gap, self.size)

    def times(self, unit: float) -> Solution:
        """Return the solution with objectives and gaps times a positive number."""
        if unit == 1.0:
            return self
        return replace(
            self,
            objective=unit * self.objective,
            dual_gap=unit * self.dual_gap,
            history=self.history.times(unit),
        )

    def with_proof(self, value: float, bound: float, unit: float) -> Solution:
        """Return the solution with another objective and bound, in place of its own.

        The user reads them times ``unit``. Those of earlier iterates are not proven.
        """
        shift = unit * value - self.objective
        gap = unit * gap_between(value, bound)
        bounds = [-np.inf] * len(self.history)
        history = replace(
            self.history,
            objective=[each + shift for each in self.history.objective],
            lower_bound=[*bounds[1:], unit * bound] if bounds else bounds,
        )
        return replace(self, objective=unit * value, dual_gap=gap, history=history)

    @property
    def start(self) -> Start:
        """Where a fit of a similar problem may start."""
        return Start(self.w, self.dual, self.scores, self.drift)


def solve(
    problem: Problem,
    settings: Settings,
    fit: FitTask,
    options: Options | None = None,
) -> Solution:
    """Minimize an objective and evaluate it at the parameters as they are returned.

    Parameters
    ----------
    problem : Problem
    settings : Settings
        Mostly the estimator.
    fit : FitTask
        Of scikit-learn's callbacks; the problem is one of its tasks.
    options : Options, optional
        Instead of those that the settings say.

    Raises
    ------
    ValueError
        If the objective overflows.
    """
    task = fit.problem(problem.label, settings.tol)
    solvers, name = settings._solvers, settings.solver
    spec = spec_of(settings)
    name = name if name in solvers else next(iter(solvers))
    accuracy = accuracy_of(problem.objective, settings.tol, name == "auto")
    options = options or _options(settings)
    scale = Scale(problem.objective)
    target = Target(f"tol={settings.tol:g}", settings.tol, scale.size, scale.is_useful)
    if options.gap is not None:
        accuracy = Accuracy(options.gap / problem.unit, 0.0, 0.0)
        target = Target(
            f"epsilon={options.gap:g}",
            accuracy.tol,
            lambda value: 1.0,
            lambda result: True,
        )
    options = replace(options, tol=accuracy.tol)
    report = _Report(problem, settings, task, scale)
    try:
        result, w, end = _minimize(
            problem, spec, options, accuracy, settings.max_iter, report, target
        )
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"Fitting {problem.label} broke down numerically ({error}). Values of X, "
            "y, alpha or costs are too extreme; scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler, or numbers y."
        ) from error
    _check_finite(problem, w, end)
    solution, status = _certified(problem, target, result, w, end, scale)
    solution.plan = result.plan or name
    solution = solution.times(problem.unit)
    if settings.verbose > 0:
        gap = solution.relative_gap
        print(f"{problem.label}: {result.status}, relative gap {gap:.1e}")
    if task.warns and not solution.proven:
        faster = name != "auto" and "auto" in solvers
        _warn(problem.label, status, solution, settings, faster, target.name)
    task.end()
    return solution


def spec_of(settings: Settings) -> SolverSpec:
    """Return the solver that settings ask for; the first one for a name like "auto"."""
    solvers = settings._solvers
    return solvers.get(settings.solver, next(iter(solvers.values())))


def _options(settings: Settings) -> Options:
    names = ("memory", "direction_tol", "direction_max_iter", "bundle_size")
    given = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
    options = Options(**given | checked_options(settings))
    # More pairs than iterations would only take memory.
    return replace(options, memory=min(options.memory, settings.max_iter))


class Target(NamedTuple):
    """The gap that was asked for.

    Attributes
    ----------
    name : str
        The parameter that says so, with its value.
    tol : float
    size : callable
        From the objective to what it is relative to.
    is_useful : callable
        Whether a run may end there, as in ``run``.
    """

    name: str
    tol: float
    size: Callable[[float], float]
    is_useful: Callable[[Result], bool]

    def is_reached(self, gap: float, value: float) -> bool:
        """Whether a gap is small enough for an objective of this value."""
        return gap <= self.tol * self.size(value)


class _Report:
    """Reports to the user, after each iteration, what has been reached.

    Parameters
    ----------
    problem, settings
        As of ``solve``.
    task : ProblemTask
    scale : Scale
    """

    def __init__(
        self, problem: Problem, settings: Settings, task: ProblemTask, scale: Scale
    ) -> None:
        self._scale = scale
        self._problem = problem
        self._settings = settings
        self._task = task
        self._printed = 0.0

    def __call__(self, result: Result) -> bool:
        history, verbose = result.history, self._settings.verbose
        passes, seconds = history.passes[-1], history.seconds[-1]
        unit = self._problem.unit
        value, dual_gap = unit * result.point.value, unit * result.gap
        progress = Progress(result.n_iter, value, dual_gap, passes, seconds)
        gap = relative(dual_gap, value)
        due = result.n_iter.bit_count() <= 1 or seconds - self._printed >= _QUIET
        if verbose > 1 or (verbose > 0 and due):
            self._printed = seconds
            print(
                f"{self._problem.label}: iteration {result.n_iter:4d}  objective "
                f"{value:.8g}  relative gap {gap:.1e}  passes {passes:.1f}  "
                f"{seconds:.2f} s"
            )
        w = result.point.w
        stop = self._task.iteration(lambda: self._problem.fitted(w), gap)
        watch = self._problem.watch
        if watch is not None and result.n_iter:
            stop = watch(w, self._problem.fitted(w)) or stop
        callback = self._settings.callback
        if callback is not None:
            stop = bool(callback(progress)) or stop
        return stop


@isolated
def _minimize(
    problem: Problem,
    spec: SolverSpec,
    options: Options,
    accuracy: Accuracy,
    max_iter: int,
    report: Callable[[Result], bool],
    target: Target,
) -> tuple[Result, Floats, Point]:
    """Return the result, and parameters as they are stored with their point."""
    objective, start = problem.objective, problem.start
    # Bundles turn cuts into bounds for L2 only; other solvers bring their own.
    bundle = None
    if isinstance(objective.regularizer, L2) and not spec.proves:
        bundle = CutBundle(objective, _bundle_size(objective))
    passes = objective.passes
    if objective.loss.steep:
        start = _better_start(objective, start)
    result = run(
        spec.start(objective, start, options),
        max_iter=max_iter,
        size=target.size,
        is_useful=target.is_useful,
        bundle=bundle,
        least=objective.least,
        passes=lambda: objective.passes - passes,
        report=report,
        **accuracy._asdict(),
    )
    point = result.point.centered()
    if problem.watch is not None and problem.watch.chosen is not None:
        point = objective.at(problem.watch.chosen)
    w = problem.stored(point.w) if problem.stored else point.w.astype(problem.dtype)
    w = w.astype(np.float64)
    # Shares in float32 do not sum to one; the objective is that of shares.
    inside = objective.regularizer.nearest(w)
    same = bool((np.abs(inside - point.w) <= _SAME * np.abs(w)).all())
    end = point.refreshed() if same else objective.at(inside)
    # Computed here, where overflows are errors.
    _ = end.value
    return result, w, end


def _bundle_size(objective: Objective) -> int:
    entries = max(objective.design.nbytes // 16, _FEW_ENTRIES)
    affordable = entries // max(objective.n_params, 1)
    return int(np.clip(affordable, _MIN_CUTS, _MAX_CUTS))


def _better_start(objective: Objective, start: Start) -> Start:
    """Return the start, or the usual one if that is better.

    Solutions of other data may lie where exponentials overflow, far from any other.
    """
    center = objective.regularizer.center(objective.n_params)
    if np.array_equal(start.w, center):
        return start
    with np.errstate(all="ignore"):
        value = minimize_intercept(start.at(objective)).value
    usual = Start(center)
    return start if value <= minimize_intercept(usual.at(objective)).value else usual


def _check_finite(problem: Problem, w: Floats, end: Point) -> None:
    """Raise ValueError if parameters to be stored, or scores by them, overflow."""
    if not np.isfinite(end.value) or not np.all(np.isfinite(w)):
        raise ValueError(
            f"Fitting {problem.label} gave coefficients that are not finite as "
            f"{np.dtype(problem.dtype).name}. Scale the features, or regularize more."
        )
    objective = problem.objective
    if objective.risk.overflows(end.scores):
        raise ValueError(
            f"Fitting {problem.label} ended where exponentials of scores overflow. "
            "Scale the features or the targets, or choose another alpha."
        )


def gap_between(value: float, bound: float) -> float:
    """Return value - bound, or a little more: value less it is not above the bound."""
    gap = max(value - bound, 0.0)
    while value - gap > bound:
        # By the rounding of the difference.
        gap = float(np.nextafter(gap, np.inf))
    return gap


def _certified(
    problem: Problem,
    target: Target,
    result: Result,
    w: Floats,
    end: Point,
    scale: Scale,
) -> tuple[Solution, str]:
    """Return the solution with what is proven of it, and how its run ended."""
    objective, value = problem.objective, end.value
    gap = gap_between(value, result.lower_bound)
    size = scale.size(value)
    reached = target.is_reached(result.gap, result.point.value)
    # As of targets that are all the same, with an optimum of zero.
    proven, status = reached or result.status == "callback", result.status
    proven = proven or result.gap <= rounding_of(result.point)
    allowed = max(2.0 * target.tol * target.size(value), _ROUNDED * size)
    raised = reached and gap > allowed
    rounded = raised and problem.dtype == np.float32
    if rounded and gap > _LOST * abs(objective.origin().value):
        proven, status = False, "rounded"
    solution = Solution(
        w,
        value,
        gap,
        result.n_iter,
        replace(result.history, infimum=scale.infimum),
        result.dual,
        end.scores,
        end.drift,
        proven,
        reached and scale.is_constant(w, value, gap),
        size,
    )
    if reached and not solution.constant:
        solution.shrinkage = scale.shrinkage(end)
    return solution, status


def warn_of_gap(label: str, solution: Solution, tol: float) -> None:
    """Warn that a problem is solved, but not proven to be where penalties are zero."""
    warnings.warn(
        f"Fitting {label} did not prove tol={tol:g} where features have no penalty: "
        f"the objective {solution.objective:.6g} is proven to be within "
        f"{solution.dual_gap:.2g} of the optimum. Decrease tol, or give these features "
        "a small penalty.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def warn_of_constants(
    name: str,
    solutions: list[Solution],
    instead: str,
    parts: Any = None,
    weaker: str = "decrease alpha or tol",
) -> None:
    """Warn once if fitted problems have solutions that do not use the features.

    Parameters
    ----------
    name : str
        Of the estimator.
    solutions : list of Solution
    instead : str
        What to do where a smaller ``alpha`` does not help.
    parts : sequence, optional
        What each of several problems is for, such as its class.
    weaker : str
        How to make more use of the features.
    """
    found = [index for index, solution in enumerate(solutions) if solution.constant]
    if in_search():
        return
    if not found:
        _warn_of_shrinkage(name, solutions, weaker)
        return
    of = ""
    if len(solutions) > 1:
        names = [str(parts[i] if parts is not None else i) for i in found]
        shown = ", ".join(names[:_MOST_NAMED])
        shown += ", ..." if len(names) > _MOST_NAMED else ""
        of = f" for {len(found)} of {len(solutions)} problems ({shown})"
    warnings.warn(
        f"{name} makes no use of the features{of}: its objective is proven to be "
        "about as small with all coefficients zero. Scale features that are tiny, and "
        f"{weaker}. Where that changes nothing, {instead}.",
        ConstantModelWarning,
        stacklevel=user_level(),
    )


def _warn_of_shrinkage(name: str, solutions: list[Solution], weaker: str) -> None:
    """Warn once if the penalty leaves little of the coefficients of a problem."""
    found = [s.shrinkage for s in solutions if s.shrinkage is not None]
    if not found:
        return
    worst = max(found, key=lambda each: each.loss - each.loss_of_larger)
    warnings.warn(
        f"{name} underfits: its coefficients times {worst.factor:g} would have a mean "
        f"loss of {worst.loss_of_larger:.4g} on the training data in place of "
        f"{worst.loss:.4g}. To weaken the penalty, {weaker}.",
        UnderfittingWarning,
        stacklevel=user_level(),
    )


def _warn(
    label: str,
    status: str,
    solution: Solution,
    settings: Settings,
    faster: bool,
    asked: str,
) -> None:
    other = "solver='auto'" if faster else "another solver"
    or_other = f", or choose {other}" if faster else ""
    tolerance = asked.partition("=")[0]
    reasons = {
        "max_iter": (
            f"reached max_iter={settings.max_iter}",
            f"Increase max_iter or {tolerance}{or_other}",
        ),
        "stalled": (
            "stopped because it no longer made progress",
            f"Increase {tolerance}, choose {other}, scale the features, or "
            "increase alpha",
        ),
        "rounded": (
            "lost precision as its coefficients were rounded to float32,",
            "Convert X to float64, or scale the features",
        ),
    }
    otherwise = (
        f"stopped where it found no better point ({status})",
        f"Increase {tolerance}, choose {other}, or scale the features",
    )
    reason, advice = reasons.get(status, otherwise)
    plural = "" if solution.n_iter == 1 else "s"
    warnings.warn(
        f"Fitting {label} {reason} after {solution.n_iter} iteration{plural}. Its "
        f"objective {solution.objective:.6g} is proven to be within "
        f"{solution.dual_gap:.2g} of the optimum, a relative gap of "
        f"{solution.relative_gap:.1e}; {asked} was asked for. {advice}.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )
