"""scikit-learn's callbacks (1.9 and later), or stand-ins where the release has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["CallbackSupportMixin", "FitTask", "ProblemTask", "with_callbacks"]

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
    """Return the method with scikit-learn's decorator, and with its type."""
    decorated: _Method = _with_callbacks(method)
    return decorated


class FitTask:
    """The task tree of one fit: a task per binary problem, a subtask per iteration.

    Does nothing unless callbacks are set on the estimator.

    Parameters
    ----------
    estimator : estimator instance
    n_problems, max_iter : int
        Largest number of problems, and of iterations of each.
    X, y, sample_weight
        What the user passed to ``fit``, for monitors that score.
    """

    def __init__(
        self,
        estimator: Any,
        n_problems: int,
        max_iter: int,
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> None:
        self._root = None
        self._warns = True
        if not getattr(estimator, "_skl_callbacks", None):
            return
        metadata = {"sample_weight": sample_weight}
        self._arguments = {
            "estimator": estimator,
            "X": X,
            "y": y,
            "metadata": metadata if sample_weight is not None else None,
        }
        self._max_iter = max_iter
        self._root = estimator._init_callback_context(max_subtasks=n_problems)
        self._root.call_on_fit_task_begin(**self._arguments)

    @classmethod
    def silent(cls) -> FitTask:
        """Return a task that reports nothing, and leaves warnings to the caller."""
        task = cls(None, 0, 0, None, None, None)
        task._warns = False
        return task

    def problem(self, name: str) -> ProblemTask:
        """Begin the task of one problem."""
        if self._root is None:
            return ProblemTask(None, {}, warns=self._warns)
        # One iterate more than iterations: the starting point.
        context = self._root.subcontext(task_name=name, max_subtasks=self._max_iter + 1)
        return ProblemTask(context, self._arguments)

    def end(self) -> None:
        """End the fit, once the estimator has its fitted attributes."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                reconstruction_attributes={}, **self._arguments
            )


class ProblemTask:
    """The task of one problem, with a subtask per iteration.

    Attributes
    ----------
    warns : bool
        Whether the user is to be told that the tolerance was not reached.
    """

    def __init__(
        self, context: Any, arguments: dict[str, Any], *, warns: bool = True
    ) -> None:
        self.warns = warns
        self._context = context
        self._arguments = arguments
        if context is not None:
            context.call_on_fit_task_begin(**arguments)

    def iteration(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """Report an iteration; return whether a callback asks to stop.

        ``fitted`` returns the attributes of an estimator fitted so far; it is called
        only if a callback wants them.
        """
        if self._context is None:
            return False
        context = self._context.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(**self._arguments)
        return bool(
            context.call_on_fit_task_end(
                reconstruction_attributes=fitted, **self._arguments
            )
        )

    def end(self) -> None:
        """End the task."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._arguments)
