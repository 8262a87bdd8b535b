"""A progress bar for fits in a terminal or notebook."""

from __future__ import annotations

import math
import sys
from typing import Any

from ._checks import check_number
from ._search.search_report import FoldProgress
from ._solving.solution import Progress

__all__ = ["ProgressBar"]

# Characters of the bar.
_WIDTH = 20


class ProgressBar:
    """A progress bar for the parameter ``callback`` of estimators.

    A single line is updated after each iteration, with the iteration, the objective,
    the proven relative gap, and the estimated time until the gap is ``tol``,
    extrapolated from the rate of the fit so far. Estimators with a cross-validated
    ``alpha`` show a line for the fits on folds, then a line for the refit. No further
    package is needed. For pipelines and ``GridSearchCV`` use the progress bars of
    scikit-learn (1.9 and later), which need rich:
    ``estimator.set_callbacks(sklearn.callback.ProgressBar())``.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which the bar is full: ``tol`` of the estimator.
    file : file object, default=None
        Output file; the standard error if None.

    See Also
    --------
    ConvergenceDisplay : Plots the history of a fit.

    Examples
    --------
    >>> import sys
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import SubLBFGSLinearSVC
    >>> from sklearn_subqn.progress import ProgressBar
    >>> X, y = make_classification(random_state=0)
    >>> bar = ProgressBar(tol=1e-3, file=sys.stderr)
    >>> clf = SubLBFGSLinearSVC(callback=bar).fit(X, y)
    """

    def __init__(self, tol: float = 1e-3, file: Any = None) -> None:
        check_number("tol", tol, low=0.0)
        self.tol = tol
        self.file = file
        self._length = 0

    def __call__(self, progress: Progress) -> None:
        """Update the line; start a new line at the start of a fit.

        Parameters
        ----------
        progress : named tuple
            The argument of callbacks.
        """
        if progress.n_iter == 0 and self._length:
            self._write("", ends=True)
            self._length = 0
        size = abs(progress.objective)
        gap = progress.dual_gap / size if size else math.inf
        share = self._share(gap)
        text = (
            f"iteration {progress.n_iter}  objective {progress.objective:.6g}  "
            f"proven gap {gap:.1e}"
        )
        self._draw(share, text, progress.seconds)

    def fold(self, progress: FoldProgress) -> None:
        """Update the line of a search, after a fit on a fold.

        Parameters
        ----------
        progress : named tuple
            The argument of the method ``fold`` of callbacks.
        """
        if progress.n_done == 1 and self._length:
            self._write("", ends=True)
            self._length = 0
        text = (
            f"fit {progress.n_done} of {progress.n_fits} on folds  "
            f"alpha {progress.alpha:.3g}  score {progress.score:.6g}"
        )
        self._draw(progress.n_done / progress.n_fits, text, progress.seconds)

    def _draw(self, share: float, text: str, seconds: float) -> None:
        """Write a bar for a completed share, a text, and the remaining time."""
        full = round(share * _WIDTH)
        line = f"[{'#' * full}{'-' * (_WIDTH - full)}] {text}  {seconds:.1f} s"
        if 0.0 < share < 1.0:
            line += f", about {seconds * (1.0 / share - 1.0):.1f} s left"
        self._write("\r" + line.ljust(self._length), ends=share == 1.0)
        self._length = 0 if share == 1.0 else len(line)

    def _write(self, line: str, ends: bool) -> None:
        file = sys.stderr if self.file is None else self.file
        file.write(line + "\n" * ends)
        file.flush()

    def _share(self, gap: float) -> float:
        """Return the completed share, logarithmic from a gap of 1 to the tolerance."""
        if gap <= self.tol:
            return 1.0
        if gap >= 1.0 or self.tol <= 0.0:
            return 0.0
        return min(math.log(gap) / math.log(min(self.tol, 0.99)), 0.99)
