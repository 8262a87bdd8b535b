"""Reports of a search over folds: printed lines, callbacks, tasks of scikit-learn."""

from __future__ import annotations

import time
from threading import Lock
from typing import Any, NamedTuple

from .._solving.callbacks import FitTask
from .._solving.report import QUIET

__all__ = ["FoldProgress", "FoldReport", "SearchReport"]


class FoldProgress(NamedTuple):
    """The argument of a callback's method ``fold`` after each fit on a fold.

    Attributes
    ----------
    n_done, n_fits : int
        Number of finished fits on folds, and of all fits on folds.
    fold : int
        Number of the fold, from zero.
    alpha : float
        Strength of the penalty of this fit.
    score : float
        Score on the held-out rows of the fold.
    relative_gap : float
        Proven bound on the relative distance of the fit's objective from its optimum.
    seconds : float
        Wall-clock time of the search so far.
    """

    n_done: int
    n_fits: int
    fold: int
    alpha: float
    score: float
    relative_gap: float
    seconds: float


class SearchReport:
    """Counts the fits on folds, and reports each of them.

    Parameters
    ----------
    estimator : estimator instance
        Estimator with the parameters ``callback`` and ``verbose``.
    task : FitTask
        Task of the whole fit.
    n_fits : int
        Number of all fits on folds.
    strength : str
        Name of the parameter that is searched.
    """

    def __init__(
        self, estimator: Any, task: FitTask, n_fits: int, strength: str = "alpha"
    ) -> None:
        self._name = type(estimator).__name__
        self.strength = strength
        self._verbose = estimator.verbose
        self._call = getattr(estimator.callback, "fold", None)
        self._task = task
        self._n_fits, self._n_done = n_fits, 0
        self._lock = Lock()
        self._start, self._printed = time.perf_counter(), 0.0

    def fold(self, fold: int, n_fits: int, note: str = "") -> FoldReport:
        """Return the report of a fold's fits; ``note`` precedes the fold's name."""
        return FoldReport(self, fold, self._task.fold(f"{note}fold {fold}", n_fits))

    @property
    def listens(self) -> bool:
        """Whether anything is printed or called for a fit."""
        return bool(self._verbose or self._call or self._task.is_set)

    def fitted(self, fold: int, alpha: float, score: float, gap: float) -> None:
        """Report a fit, called in the thread of the fit."""
        with self._lock:
            self._n_done += 1
            done, seconds = self._n_done, time.perf_counter() - self._start
            if self._call is not None:
                args = done, self._n_fits, fold, alpha, score, gap, seconds
                self._call(FoldProgress(*args))
            due = done.bit_count() == 1 or seconds - self._printed >= QUIET
            if self._verbose > 1 or (
                self._verbose > 0 and (due or done == self._n_fits)
            ):
                self._printed = seconds
                print(
                    f"{self._name}: {done} of {self._n_fits} fits on folds  "
                    f"fold {fold}  {self.strength} {alpha:.3g}  score {score:.6g}  "
                    f"relative gap {gap:.1e}  {seconds:.2f} s"
                )


class FoldReport:
    """Reports the fits on one fold.

    Parameters
    ----------
    search : SearchReport
    fold : int
    task : FoldTask

    Attributes
    ----------
    listens : bool
        Whether anything is printed or called for a fit.
    """

    def __init__(self, search: SearchReport, fold: int, task: Any) -> None:
        self._search, self._fold, self._task = search, fold, task
        self.listens = search.listens

    def begin(self) -> None:
        """Begin the fold, in the thread of its fits."""
        self._task.begin()

    def fitted(self, alpha: float, score: float, gap: float) -> None:
        """Report a fit."""
        self._search.fitted(self._fold, alpha, score, gap)
        self._task.fit(f"{self._search.strength} {alpha:.3g}")

    def end(self) -> None:
        """End the fold."""
        self._task.end()
