"""Solving one problem: the meaning of its tolerance, the run, and the final check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .._core.arrays import Floats
from .._core.memory import BLOCK_SIZE
from .._core.objectives.objective import Objective, Point
from .._core.regularizers import L2
from .._core.rounding import ROUNDED_32, rounding
from .._core.solvers import (
    Options,
    Result,
    SolverSpec,
    Start,
    Status,
    Stopping,
    run,
    size_of,
)
from .._core.steps.cut_model import CutBundle
from .._core.steps.intercepts import minimize_intercept
from .._core.steps.line_search import is_rounding, rounding_of
from .callbacks import FitTask
from .process import isolated
from .report import Report
from .solution import Problem, Settings, Solution
from .tolerance import Scale, gap_between, stopping_of


@isolated
def solve(
    problem: Problem,
    settings: Settings,
    fit: FitTask,
) -> Solution:
    """Minimize an objective and evaluate it at the parameters as they are returned.

    Parameters
    ----------
    problem : Problem
    settings : Settings
    fit : FitTask
        The task of the fit for scikit-learn's callbacks; the problem is one of its
        subtasks.

    Raises
    ------
    ValueError
        If the objective overflows.
    """
    of_problem = problem.label, problem.fitted, problem.watch
    report = Report(*of_problem, settings, fit)
    name = settings.solver
    spec: SolverSpec = settings.solvers[name]
    scale = Scale(problem.objective)
    infimum = scale.infimum
    stopping = stopping_of(problem.objective, settings.tol, infimum, name == "auto")
    options = Options(stopping=stopping, **settings.options)
    asked = Stopping(settings.tol, infimum=infimum)
    target = Target(f"tol={settings.tol:g}", asked, scale.is_useful)
    if options.gap is not None:
        stopping = Stopping(options.gap / problem.unit, absolute=True)
        options = replace(options, stopping=stopping)
        target = Target(f"epsilon={options.gap:g}", stopping, lambda result: True)
    if options.gradient is not None:
        stopping = Stopping(0.0, absolute=True)
        asked_norm = f"epsilon={options.gradient:g}"
        target = Target(asked_norm, stopping, lambda result: True)
        gradient = options.gradient / problem.unit
        options = replace(options, stopping=stopping, gradient=gradient)
    listens = report.listens or problem.watch is not None
    reported = partial(report.of_result, problem.unit) if listens else None
    objective, start = problem.objective, problem.start
    # The bundle computes bounds from cuts for L2 only. Solvers with ``proves`` compute
    # their own bounds.
    bundle = None
    if isinstance(objective.regularizer, L2) and not spec.proves:
        bundle = partial(_bundle, objective)
    passes = objective.passes
    try:
        if objective.loss.steep:
            start = _better_start(objective, start)
        result = run(
            spec.start(objective, start, options),
            options.stopping,
            max_iter=settings.max_iter,
            is_useful=target.is_useful,
            is_rounding=is_rounding,
            bundle=bundle,
            points_prove=bundle is None and not spec.proves,
            prove=problem.prove,
            least=objective.least,
            counter=objective,
            since=passes,
            report=reported,
        )
        w, end = _as_stored(problem, result.point)
        _check_finite(problem, w, end)
        solution = _certified(problem, target, result, w, end, scale)
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"Fitting {problem.label} broke down numerically ({error}). Values of X, "
            "y, alpha or costs are too extreme; scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler, or numbers y."
        ) from error
    solution.plan = result.plan or name
    if problem.sums is not None:
        solution.sums = problem.sums(end.scores)
    if problem.unit != 1.0:
        solution = solution.in_units(problem.unit)
    report.end(solution)
    return solution


class Target(NamedTuple):
    """The gap that the user asked for.

    Attributes
    ----------
    name : str
        The parameter that sets the gap, with its value.
    stopping : Stopping
        The stopping rule, without the stricter rule for small problems.
    is_useful : callable
        Whether a run may end at this gap, as in ``run``.
    """

    name: str
    stopping: Stopping
    is_useful: Callable[[Result], bool]


def _as_stored(problem: Problem, point: Point) -> tuple[Floats, Point]:
    """Return the parameters of a point as they will be stored, and the point there."""
    objective, point = problem.objective, point.centered()
    if problem.watch is not None and problem.watch.chosen is not None:
        point = objective.at(problem.watch.chosen)
    w = problem.stored(point.w) if problem.stored else point.w.astype(problem.dtype)
    w = w.astype(np.float64)
    # In float32, weights on the simplex sum to one only up to rounding. The objective
    # is evaluated at the nearest point of the simplex.
    inside = objective.regularizer.nearest(w)
    # The change is compared with each coefficient, since features may have any units.
    same = bool((np.abs(inside - point.w) <= rounding(1.0) * np.abs(w)).all())
    return w, point.refreshed() if same else objective.at(inside)


def _bundle(objective: Objective) -> CutBundle:
    """Return the bundle of cuts, smaller where cuts would take half the memory of X."""
    entries = max(objective.design.nbytes // 16, BLOCK_SIZE // 4)
    affordable = entries // max(objective.n_params, 1)
    return CutBundle(objective, int(min(max(affordable, 6), 40)))


def _better_start(objective: Objective, start: Start) -> Start:
    """Return the start, or the default start if its objective is lower.

    A solution for other data may lie where exponentials overflow, far from the optimum.
    """
    center = objective.regularizer.center(objective.n_params)
    if np.array_equal(start.w, center):
        return start
    with np.errstate(all="ignore"):
        value = minimize_intercept(start.at(objective)).value
    usual = Start(center)
    return start if value <= minimize_intercept(usual.at(objective)).value else usual


def _check_finite(problem: Problem, w: Floats, end: Point) -> None:
    """Raise ValueError if the stored parameters, or their scores, overflow."""
    if not np.isfinite(end.value) or not np.all(np.isfinite(w)):
        raise ValueError(
            f"Fitting {problem.label} gave coefficients that are not finite as "
            f"{np.dtype(problem.dtype).name}. Scale the features, or regularize more."
        )
    objective = problem.objective
    if objective.loss.steep and objective.risk.overflows(end.scores):
        raise ValueError(
            f"Fitting {problem.label} ended where exponentials of scores overflow. "
            "Scale the features or the targets, or choose another alpha."
        )


def _certified(
    problem: Problem,
    target: Target,
    result: Result,
    w: Floats,
    end: Point,
    scale: Scale,
) -> Solution:
    """Return the solution with its certificate."""
    objective, value = problem.objective, end.value
    gap = gap_between(value, result.lower_bound)
    size = size_of(value, scale.infimum)
    reached = target.stopping.is_reached(result.gap, result.point.value)
    # A gap below the rounding error is accepted as well. An example is the optimal
    # value zero for equal targets.
    status = result.status
    at_zero = status is Status.AT_ZERO
    ends = Status.CALLBACK, Status.ROUNDING, Status.SHORT, Status.AT_ZERO
    proven = reached or status in ends
    proven = proven or result.gap <= rounding_of(result.point)
    # The warning about the precision of float32 needs a gap above this one, and above
    # the rounding error of the objective at zero, since the optimal value may be zero.
    allowed = max(2.0 * target.stopping.allowed_gap(value), 1e-4 * size)
    raised = reached and gap > allowed
    rounded = raised and problem.dtype == np.float32
    if rounded and gap > ROUNDED_32 * abs(objective.origin().value):
        proven, status = False, Status.ROUNDED
    return Solution(
        Start(w, result.dual, end.scores, end.drift, end.evaluated()),
        value,
        gap,
        result.n_iter,
        replace(result.history, infimum=scale.infimum),
        proven,
        at_zero or (reached and scale.is_constant(w, value, gap)),
        size,
        status=status,
        asked=target.name,
    )
