"""Runs in another process that has all rows, with reports to this process.

A run makes too many calls to send each of them as a message. The whole run is therefore
made in a thread of the process with the rows, and this process polls its state. If
there are callbacks, iterations wait for their answer. A run that is no longer polled
ends.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Floats
from .._core.places.parts import Parts
from .._core.places.places import PlaceLost
from .._core.solvers import Start
from .._problems import LinearProblems
from .._solving.callbacks import FitTask
from .._solving.solution import Progress, Solution

# Timeout in seconds of each request for the state of a run.
_WAIT = 1.0

# A run that is not polled for 60 seconds is abandoned.
_SILENCE = 60.0


class News(NamedTuple):
    """The state of a run.

    Attributes
    ----------
    w : ndarray of shape (q,)
        Present parameters.
    progress : Progress or None
        Progress of an iteration that waits for an answer.
    solution : Solution or None
        The solution at the end, without row-wise quantities.
    """

    w: Floats
    progress: Progress | None = None
    solution: Solution | None = None


class Abandoned(Exception):
    """The run is no longer polled."""


class RunHere:
    """A run on the rows in this process, controlled by another process.

    Parameters
    ----------
    problems : LinearProblems
        Problems with all rows.
    """

    # There are no parameters before the first iteration.
    chosen: Floats | None = None

    def __init__(self, problems: LinearProblems) -> None:
        self._problems = problems

    def begin(self, index: int, start: Start, alpha: float, listened: bool) -> None:
        """Start to solve a problem; iterations wait for answers if ``listened``."""
        if not np.array_equal(start.w, self._problems.starts[index].w):
            self._problems.starts[index] = start
        # If the start is the last solution, its dual point is used as well.
        self._w, self._listened, self._ends = start.w, listened, False
        self._heard = time.monotonic()
        self._news: queue.SimpleQueue[News | BaseException] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        args = self._problems, index, alpha
        threading.Thread(target=self._run, args=args, daemon=True).start()

    def news(self, answer: bool | None) -> News:
        """Pass on the answer to the last progress, and return the state of the run."""
        self._heard = time.monotonic()
        if answer is not None:
            self._answers.put(answer)
        try:
            news = self._news.get(timeout=_WAIT)
        except queue.Empty:
            return News(self._w)
        if isinstance(news, BaseException):
            raise news
        return news

    def end(self) -> None:
        """End the run at its next iteration."""
        self._ends = True
        self._answers.put(True)

    def _run(self, problems: LinearProblems, index: int, alpha: float) -> None:
        try:
            solution = problems.run(index, alpha, self._answered, self)
            solution.start = Start(solution.w, None, np.empty(0))
            self._news.put(News(solution.w, None, solution))
        except BaseException as error:
            self._news.put(error)

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Store the present parameters."""
        self._w = w
        return False

    def _answered(self, progress: Progress) -> bool:
        """Return whether to stop after an iteration."""
        if self._ends or time.monotonic() - self._heard > _SILENCE:
            raise Abandoned
        if not self._listened:
            return False
        # The point of the iteration stays in this process.
        self._news.put(News(self._w, Progress(*progress)))
        try:
            return self._answers.get(timeout=_SILENCE)
        except queue.Empty:
            raise Abandoned from None


def solve_there(
    runs: Parts, problems: LinearProblems, alpha: Any, task: FitTask
) -> list[Solution]:
    """Return the solutions of problems whose rows are in another process.

    Parameters
    ----------
    runs : Parts
        A single ``RunHere``.
    problems : LinearProblems
        The problems of this process, without the rows.
    alpha : float or sequence of float
    task : FitTask
    """
    alphas = np.broadcast_to(alpha, len(problems)).tolist()
    return [_solved(runs, problems, i, each, task) for i, each in enumerate(alphas)]


def _solved(
    runs: Parts, problems: LinearProblems, index: int, alpha: float, task: FitTask
) -> Solution:
    reporter = problems.reporter(index, task)
    runs.results("begin", index, problems.starts[index], alpha, reporter.listens)
    answer: bool | None = None
    try:
        while True:
            news: News = runs.results("news", answer)[0]
            problems.starts[index] = Start(news.w)
            if news.solution is not None:
                break
            answer = None
            if news.progress is not None:
                answer = reporter.iteration(news.progress, news.w)
    except PlaceLost:
        raise
    except BaseException:
        runs.results("end")
        raise
    reporter.end(news.solution)
    return news.solution
