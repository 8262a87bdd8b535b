"""What the user is shown of a run, and asked, after each iteration."""

from __future__ import annotations

from ._callbacks import ProblemTask
from ._core.solvers import Result
from ._solution import Problem, Progress, Settings
from ._tolerance import Scale, relative

# With verbose=1, lines are printed at powers of two, and after so many seconds.
_QUIET = 5.0


class Report:
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
