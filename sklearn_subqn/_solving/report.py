"""Reports of a run to the user, after each iteration and at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.arrays import Floats
from .._core.solvers import Result
from .callbacks import FitTask
from .solution import Current, Progress, Settings, Solution, Watch
from .tolerance import relative
from .warnings import warn_of_tolerance

# With verbose=1, progress is printed at iterations that are powers of two, and whenever
# 5 seconds have passed since the last line.
QUIET = 5.0


class Report:
    """Reports the progress after each iteration, and the end, to the user.

    Parameters
    ----------
    label, fitted, watch
        See ``Problem``.
    settings : Settings
    fit : FitTask
        The task of the fit for scikit-learn's callbacks; the problem is one of its
        subtasks.
    by_gap : bool
        Whether iterations prove gaps. Progress bars then show the gap.

    Attributes
    ----------
    listens : bool
        Whether iterations are reported at all.
    """

    def __init__(
        self,
        label: str,
        fitted: Callable[[Floats], dict[str, Any]],
        watch: Watch | None,
        settings: Settings,
        fit: FitTask,
        *,
        by_gap: bool = True,
    ) -> None:
        self._label, self._fitted, self._watch = label, fitted, watch
        self._settings, self._warns = settings, fit.warns
        tol = settings.tol if by_gap else None
        self._task = fit.problem(label, tol) if fit.is_set else None
        self._printed = 0.0
        called = settings.callback is not None or self._task is not None
        self.listens = called or settings.verbose > 0

    def iteration(self, progress: Progress, w: Floats) -> bool:
        """Report an iteration; return whether a callback asks to stop."""
        verbose, seconds = self._settings.verbose, progress.seconds
        gap = relative(progress.dual_gap, progress.objective)
        due = progress.n_iter.bit_count() <= 1 or seconds - self._printed >= QUIET
        if verbose > 1 or (verbose > 0 and due):
            self._printed = seconds
            print(
                f"{self._label}: iteration {progress.n_iter:4d}  objective "
                f"{progress.objective:.8g}  relative gap {gap:.1e}  passes "
                f"{progress.passes:.1f}  {seconds:.2f} s"
            )
        stop = False
        if self._task is not None:
            stop = self._task.iteration(lambda: self._fitted(w), gap)
        if self._watch is not None and progress.n_iter:
            stop = self._watch(w, self._fitted(w)) or stop
        callback = self._settings.callback
        if callback is not None:
            stop = bool(callback(progress)) or stop
        return stop

    def end(self, solution: Solution) -> None:
        """Report the solution; warn if it does not satisfy the tolerance."""
        settings = self._settings
        if settings.verbose > 0:
            gap = solution.relative_gap
            print(f"{self._label}: {solution.status}, relative gap {gap:.1e}")
        if self._warns and not solution.proven:
            warn_of_tolerance(self._label, solution, settings)
        if self._task is not None:
            self._task.end()

    def of_result(self, unit: float, result: Result) -> bool:
        """Report the last iteration of a run, with values multiplied by a unit."""
        history, why = result.history, result.why
        if why is not None and self._settings.verbose > 1 and not result.n_iter:
            for line in why():
                print(f"{self._label}: {line}")
        progress = Progress(
            result.n_iter,
            unit * result.point.value,
            unit * result.gap,
            history.passes[-1],
            history.seconds[-1],
        )
        if self._settings.callback is not None:
            point = result.current
            progress.current = Current(
                unit * point.value, lambda: self._fitted(point.w.copy())
            )
        return self.iteration(progress, result.point.w)
