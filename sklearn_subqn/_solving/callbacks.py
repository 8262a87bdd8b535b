"""scikit-learn's callbacks (1.9 and later), with stand-ins for earlier releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.rounding import EPS

__all__ = [
    "CallbackSupportMixin",
    "FitTask",
    "FoldTask",
    "ProblemTask",
    "with_callbacks",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without ``set_callbacks``."""

    def _with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


def with_callbacks(method: _Method) -> _Method:
    """Return the method with scikit-learn's decorator, keeping its type."""
    decorated: _Method = _with_callbacks(method)
    return decorated


class FitTask:
    """The task tree of one fit: a task for each problem, a subtask for each iteration.

    A search also has a task for each fold, with a subtask for each fit. If iterations
    prove a gap, the iterations between two powers of ten of the relative gap are
    grouped into one task, so that progress bars show the gap. If the estimator has no
    callbacks, the task does nothing.

    Parameters
    ----------
    estimator : estimator instance
    n_tasks, max_iter : int
        Largest number of problems and folds, and of iterations of each problem.
    X, y, sample_weight
        Arguments of ``fit``, for callbacks that compute scores.

    Attributes
    ----------
    is_set : bool
        Whether callbacks are set on the estimator.
    warns : bool
        Whether the user is warned if the tolerance is not reached.
    """

    is_set = False

    def __init__(
        self,
        estimator: Any,
        n_tasks: int,
        max_iter: int,
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> None:
        self._root = None
        self.warns = True
        if not getattr(estimator, "_skl_callbacks", None):
            return
        metadata = {"sample_weight": sample_weight}
        self._arguments = {
            "estimator": estimator,
            "X": X,
            "y": y,
            "metadata": metadata if sample_weight is not None else None,
        }
        self._max_iter, self.is_set = max_iter, True
        self._root = estimator._init_callback_context(max_subtasks=n_tasks)
        self._root.call_on_fit_task_begin(**self._arguments)

    @classmethod
    def silent(cls) -> FitTask:
        """Return a task that reports nothing, and leaves warnings to the caller."""
        task = cls(None, 0, 0, None, None, None)
        task.warns = False
        return task

    def problem(self, label: str, tol: float | None = None) -> ProblemTask:
        """Begin the task of one problem; callbacks have to be set.

        Parameters
        ----------
        label : str
            Name of the problem as in messages, the name of the estimator first.
        tol : float, optional
            The relative gap at which the problem ends, if iterates prove gaps.
        """
        assert self._root is not None, "callbacks are set"
        estimator = type(self._arguments["estimator"]).__name__
        # Callbacks add the name of the estimator to the label.
        name = label.removeprefix(estimator).removeprefix(", ") or "optimization"
        # The starting point is an iterate, too.
        n_tasks = self._max_iter + 1
        if tol is not None:
            n_tasks = 2 + max(0, math.ceil(-math.log10(max(tol, EPS))))
        context = self._root.subcontext(task_name=name, max_subtasks=n_tasks)
        last = None if tol is None else n_tasks - 1
        return ProblemTask(context, self._arguments, last_stage=last)

    def fold(self, name: str, n_fits: int) -> FoldTask:
        """Return the task of a fold with ``n_fits`` fits; its thread begins it."""
        if self._root is None:
            return FoldTask(None, {})
        context = self._root.subcontext(task_name=name, max_subtasks=n_fits)
        return FoldTask(context, self._arguments)

    def end(self) -> None:
        """End the fit, once the estimator has its fitted attributes."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                reconstruction_attributes={}, **self._arguments
            )


#: The task for estimators without callbacks.
WITHOUT_CALLBACKS = FitTask(None, 0, 0, None, None, None)


class FoldTask:
    """The task of the fits on one fold, with a subtask for each finished fit.

    Parameters
    ----------
    context : CallbackContext or None
    arguments : dict
        Arguments of every hook.
    """

    def __init__(self, context: Any, arguments: dict[str, Any]) -> None:
        self._context = context
        self._arguments = arguments

    def begin(self) -> None:
        """Begin the task."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(**self._arguments)

    def fit(self, name: str) -> None:
        """Report a fit."""
        if self._context is not None:
            context = self._context.subcontext(task_name=name)
            context.call_on_fit_task_begin(**self._arguments)
            context.call_on_fit_task_end(**self._arguments)

    def end(self) -> None:
        """End the task."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._arguments)


class ProblemTask:
    """The task of one problem, with a subtask for each iteration.

    Parameters
    ----------
    context : CallbackContext
    arguments : dict
        Arguments of every hook.
    last_stage : int, optional
        If given, iterations are subtasks of stages up to this number: one stage for
        relative gaps above 1, then one each for gaps up to 1, 0.1, and so on.
    """

    def __init__(
        self,
        context: Any,
        arguments: dict[str, Any],
        *,
        last_stage: int | None = None,
    ) -> None:
        self._context = context
        self._arguments = arguments
        self._last_stage = last_stage
        self._stage: Any = None
        self._stage_number = -1
        self._n_iterations = 0
        context.call_on_fit_task_begin(**arguments)

    def iteration(
        self, fitted: Callable[[], dict[str, Any]], relative_gap: float = math.inf
    ) -> bool:
        """Report an iteration; return whether a callback asks to stop.

        ``fitted`` returns the attributes of the estimator as fitted so far, and is
        called only if a callback uses them.
        """
        number = None
        parent = self._context
        if self._last_stage is not None:
            self._enter_stage(relative_gap, self._last_stage)
            parent, number = self._stage, self._n_iterations
        context = parent.subcontext(task_name="iteration", task_id=number)
        self._n_iterations += 1
        context.call_on_fit_task_begin(**self._arguments)
        return bool(
            context.call_on_fit_task_end(
                reconstruction_attributes=fitted, **self._arguments
            )
        )

    def _enter_stage(self, relative_gap: float, last: int) -> None:
        """Begin the stage of a gap, unless it has begun."""
        stage = 0
        if relative_gap <= 1.0:
            stage = 1 + int(-math.log10(max(relative_gap, EPS)))
        stage = min(stage, last)
        if stage <= self._stage_number:
            return
        self._leave_stage()
        name = f"relative gap up to {10.0 ** (1 - stage):g}"
        self._stage_number = stage
        self._stage = self._context.subcontext(
            task_name=name if stage else "relative gap above 1",
            max_subtasks=None,
            # Iterations are numbered across stages.
            sequential_subtasks=False,
        )
        self._stage.call_on_fit_task_begin(**self._arguments)

    def _leave_stage(self) -> None:
        if self._stage is not None:
            self._stage.call_on_fit_task_end(**self._arguments)

    def end(self) -> None:
        """End the task."""
        self._leave_stage()
        self._context.call_on_fit_task_end(**self._arguments)
