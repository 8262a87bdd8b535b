"""Warm-started paths of alpha on folds, and the choice of alpha."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_number
from .._checks.callers import user_level
from .._core.arrays import Array, Floats, Mask
from .._core.objectives.objective import Objective
from .._core.regularizers import GroupPenalty
from .._core.solvers import Start
from .._core.solvers.squares_path import SquaresPath, has_squares_path
from .._estimators.estimator import FOUND, counted, forget
from .._estimators.linear_estimator import LinearEstimator
from .._problems import LinearProblems
from .._problems.slopes import curvature_at_zero, largest_slope
from .._solving.callbacks import FitTask
from .._solving.process import n_threads, with_one_blas_thread
from .scoring import best_alpha, checked_score, warn_of_rise, within_one_error
from .search_report import FoldReport, SearchReport

# Ratio of the smallest to the largest value of the default grid for an L1 norm.
_SMALLEST_SHARE = 1e-3


class FoldPath(NamedTuple):
    """Scores, gaps, iterations and coefficients of a fold, by alpha.

    ``proven`` is true where the tolerance was reached; ``failures`` are errors of
    scorers.
    """

    scores: Any
    gaps: Any
    proven: Any
    n_iters: list[int]
    coefficients: list[tuple[Array, Array]]
    failures: Sequence[Exception] = ()


class Paths(NamedTuple):
    """The results of a search for one ``l1_ratio``.

    Attributes
    ----------
    problems : LinearProblems
        The problems of all samples.
    alphas : ndarray of shape (n_alphas,)
        Strengths in descending order.
    folds : list of FoldPath
    """

    problems: LinearProblems
    alphas: Floats
    folds: list[FoldPath]


class WarmPaths(LinearEstimator):
    """Base of estimators with a cross-validated ``alpha``.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting at the previous solution.
    """

    alphas: Any
    cv: Any
    refit: bool
    one_standard_error: bool

    #: The estimator class with the same objective and a single ``alpha``.
    _one_alpha: ClassVar[Any]
    #: Whether the grid for a penalty without an L1 norm is in units of the loss's
    #: curvature.
    _grid_by_curvature: ClassVar[bool] = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.alphas, numbers.Integral):
            check_number("alphas", self.alphas, low=1, integer=True)
        else:
            check_alphas(self.alphas)

    def _of_chosen(self) -> Any:
        kind: Any = self._one_alpha
        known, given = kind().get_params(deep=False), self.get_params(deep=False)
        chosen = {name: given[name] for name in known.keys() & given.keys()}
        names = ["alpha", "l1_ratio"]
        if self._is_automatic() and self._has_scales():
            names.append("penalty_factor")
        for name in names:
            if hasattr(self, f"{name}_"):
                chosen[name] = getattr(self, f"{name}_")
        return kind(**chosen)

    def _is_automatic(self) -> bool:
        return np.ndim(self.alphas) == 0

    def _for_fold(self) -> Self:
        model = super()._for_fold()
        if self._is_automatic() and self._has_scales():
            # The scales are computed once, from all samples.
            model.alphas, model.penalty_factor = [1.0], self.penalty_factor_
        return model

    def _grid(self, problems: LinearProblems) -> Floats:
        """Return the grid of ``alpha`` for the problems, in descending order."""
        if np.ndim(self.alphas) > 0:
            return check_alphas(self.alphas)
        n, l1_share = int(self.alphas), self._l1_share()
        if not l1_share:
            return self._grid_of_squares(problems, n)
        slopes = [largest_slope(problems, index) for index in range(len(problems))]
        slopes = [slope for slope in slopes if slope < np.inf]
        # All coefficients are zero if alpha is at least the largest slope. If all
        # slopes are zero, the grid starts at one.
        share = 1.0 if isinstance(problems.regularizer, GroupPenalty) else l1_share
        largest = max(slopes, default=0.0) / share or 1.0
        return np.geomspace(largest, _SMALLEST_SHARE * largest, n)

    def _grid_of_squares(self, problems: LinearProblems, n: int) -> Floats:
        """Return n values in descending order, for a penalty without an L1 norm.

        Fixed values are for rows of norm one: they are multiplied by the mean squared
        norm of the scaled rows, and divided by the median factor, so that a rescaling
        of all factors leaves the objectives unchanged.
        """
        if self._grid_by_curvature:
            scales = [curvature_at_zero(problems, i) for i in range(len(problems))]
            # If all slopes are zero, the curvature along them is undefined.
            if scales := [scale for scale in scales if 0.0 < scale < np.inf]:
                largest = 10.0 * float(np.exp(np.mean(np.log(scales))))
                return np.geomspace(largest, 1e-6 * largest, n)
        factors = self._penalty_factors()
        factors = np.ones(1) if factors is None else factors[factors > 0.0]
        unit = np.median(factors) if len(factors) else 1.0
        size = problems.scales.n_entries if problems.scales else 1.0
        return np.geomspace(1e-2, 1e-6, n) * (max(size, 1.0) / unit)

    def _searched(
        self,
        problems: LinearProblems,
        folds: Sequence[tuple[Any, Any]],
        fold_path: Callable[..., FoldPath],
        report: SearchReport,
        note: str = "",
    ) -> Paths:
        """Return the path of each fold, over all ``alpha``.

        ``problems`` are the problems of all samples; ``note`` precedes the name of each
        fold.
        """
        self._check_support(problems)
        self._set_factors(problems)
        elsewhere, n_jobs = problems.elsewhere, n_threads(self.n_jobs)
        if elsewhere is None:
            alphas = self._grid(problems)
        else:
            # Folds run sequentially, since they share workers or readers.
            alphas = elsewhere.asked(lambda: self._grid(problems))
            n_jobs = 1
        reports = [report.fold(i, len(alphas), note) for i in range(len(folds))]
        paths = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(fold_path)(train, test, alphas, of_fold)
            for (train, test), of_fold in zip(folds, reports, strict=True)
        )
        return Paths(problems, alphas, paths)

    def _path(
        self,
        fits: Iterable[list[_Fit]],
        alphas: Floats,
        score: Callable[[], Any],
        report: FoldReport,
    ) -> FoldPath:
        """Return the path of a fold; ``score`` evaluates the model.

        Parameters
        ----------
        fits : iterable of list of _Fit
            Fits in the order of ``alphas``; the fits of a list are scored together.
        alphas : ndarray of shape (n_alphas,)
        score : callable
        report : FoldReport
        """
        path = FoldPath([], [], [], [], [])
        report.begin()
        rest = iter(alphas.tolist())
        for some in fits:
            scores = self._scores_of([fit.attributes for fit in some], score)
            for fit, alpha, value in zip(some, rest, scores, strict=False):
                path.scores.append(value)
                path.gaps.append(fit.gap)
                path.proven.append(fit.proven)
                path.n_iters.append(fit.n_iter)
                if not self.refit:
                    found = fit.attributes
                    path.coefficients.append((found["coef_"], found["intercept_"]))
                report.fitted(alpha, value, fit.gap)
        report.end()
        return path

    def _fits(
        self, problems: LinearProblems, alphas: Floats, report: FoldReport
    ) -> Iterator[list[_Fit]]:
        """Yield the fits of a fold's problems for each alpha, in descending order.

        The training rows are freed before the first score, for which the test rows are
        copied, unless fits are reported or the coefficients are larger than the rows.
        """
        # A fold may have fewer classes, and so a different loss.
        self._check_support(problems)
        minimized = _minimized_squares(problems, alphas, self.tol)
        rest = alphas[len(minimized) :].tolist()
        fits: Iterable[list[_Fit]] = ([_solved(problems, alpha)] for alpha in rest)
        small = len(rest) * problems.n_coefs <= problems.design.n_entries
        if small and not report.listens:
            fits = list(fits)
            del problems
        yield minimized
        yield from fits

    def _scores_of(self, found: list[dict[str, Any]], score: Any) -> list[float]:
        """Return the scores of models with the given attributes."""
        scores = []
        for attributes in found:
            for name, value in attributes.items():
                setattr(self, name, value)
            scores.append(checked_score(score()))
        return scores

    def _search_task(
        self,
        n_paths: int,
        folds: Sequence[Any],
        problems: LinearProblems,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitTask, SearchReport]:
        """Begin the task of a search, and the report of its fits on folds."""
        if not len(folds):
            raise ValueError(
                f"cv={self.cv!r} gives no folds. An iterator gives its folds only "
                "once; a list of them can be used again."
            )
        n_alphas = np.size(self.alphas) if np.ndim(self.alphas) else int(self.alphas)
        n_folds = n_paths * len(folds)
        n_tasks = n_folds + (len(problems) if self.refit else 0)
        task = FitTask(self, n_tasks, self.max_iter, *data)
        return task, SearchReport(self, task, n_folds * n_alphas)

    def _choose(self, searched: list[Paths], task: FitTask) -> int:
        """Choose the best path and alpha, and set the attributes of the final model.

        All paths have the same folds and number of alphas. Returns the index of the
        chosen path; ``task`` is the task of the whole fit.
        """
        n_folds = len(searched[0].folds)
        alphas = np.array([paths.alphas for paths in searched])
        scores, gaps, proven = (
            np.array([[getattr(fold, name) for fold in p.folds] for p in searched])
            for name in ("scores", "gaps", "proven")
        )
        of_folds = zip(*(paths.folds for paths in searched), strict=True)
        failures = [[e for fold in each for e in fold.failures] for each in of_folds]
        # Each row holds the results of one fold.
        rows = [
            array.swapaxes(0, 1).reshape(n_folds, -1)
            for array in (scores, gaps, proven)
        ]
        warn_of_folds(rows[1], rows[2], alphas.ravel(), self.tol)
        best, self.best_score_ = best_alpha(rows[0], alphas.ravel(), failures)
        path, place = divmod(best, alphas.shape[1])
        if self._is_automatic() and place == alphas.shape[1] - 1 > 0:
            warn_of_rise(scores[path], alphas[path], scaled=self._has_scales())
        if self.one_standard_error:
            place = within_one_error(scores[path], place)
        self.alpha_ = float(alphas[path, place])
        several = self._tries_several()
        self.alphas_ = alphas if several else alphas[0]
        self.scores_path_ = scores if several else scores[0]
        self.gaps_path_ = gaps if several else gaps[0]
        problems, _, folds = searched[path]
        if self.refit:
            self._store(problems, problems.solve(self.alpha_, task))
            task.end()
            return path
        # An earlier fit with ``refit`` may have set these attributes.
        forget(self, *FOUND)
        self.n_iter_ = counted(self, [max(fold.n_iters) for fold in folds])
        coefs, intercepts = zip(
            *(fold.coefficients[place] for fold in folds), strict=True
        )
        self.coef_ = np.mean(coefs, axis=0)
        self.intercept_ = np.mean(intercepts, axis=0)
        task.end()
        return path

    def _tries_several(self) -> bool:
        """Whether attributes have an axis for values of ``l1_ratio``."""
        return False


class _Fit(NamedTuple):
    """A fitted model: the largest gap and number of iterations of its problems."""

    attributes: dict[str, Any]
    gap: float
    proven: bool
    n_iter: int


def _solved(problems: LinearProblems, alpha: float) -> _Fit:
    """Return the fit of the problems for alpha."""
    solutions = problems.solve(alpha, FitTask.silent())
    return _Fit(
        problems.attributes(),
        max(solution.relative_gap for solution in solutions),
        all(solution.proven for solution in solutions),
        max(solution.n_iter for solution in solutions),
    )


def plain_objectives(
    problems: LinearProblems, alpha: float, *, may_be_free: bool = False
) -> list[Objective]:
    """Return the objectives for solver="auto" without conversions, or an empty list.

    With ``may_be_free`` some features may be without a penalty, which the objectives
    then contain.
    """
    free, others = problems.free, problems.reading is not None
    if may_be_free and free is not None and not free.coef.all():
        others = problems.reading is not free
    if problems.settings.solver != "auto" or others or problems.elsewhere is not None:
        return []
    return [problems.objective(i, alpha) for i in range(len(problems))]


# If numbers overflow, the gap is not finite, and the usual solvers are used.
@partial(with_one_blas_thread, all="ignore")
def _minimized_squares(
    problems: LinearProblems, alphas: Floats, tol: float
) -> list[_Fit]:
    """Return the fits for the first alphas; the last one sets the starts.

    Squared errors are minimized with the Gram matrix, up to the first alpha at which
    the gap exceeds ``tol`` or too many features are nonzero.
    """
    objectives = plain_objectives(problems, alphas[0], may_be_free=True)
    if not objectives or not all(map(has_squares_path, objectives)):
        return []
    found, first = [], None
    free = None if problems.free is None else problems.free.coef
    if free is not None and objectives[0].groups is not None:
        return []
    for objective, start in zip(objectives, problems.starts, strict=True):
        path = SquaresPath(objective, free, first)
        first = first or path
        found.append(path.minimize(objective, alphas, start.w, problems.stored, tol))
    minimized = []
    for i, gaps in enumerate(zip(*(each for _, each in found), strict=False)):
        # ``max`` may leave out NaN.
        if not all(gap <= tol for gap in gaps):
            break
        problems.starts = [Start(w[i]) for w, _ in found]
        minimized.append(_Fit(problems.attributes(), float(max(gaps)), True, 1))
    return minimized


def warn_of_folds(
    gaps: Floats,
    proven: Mask,
    alphas: Floats,
    tol: float,
    name: str = "alpha",
) -> None:
    """Warn once about all fits on folds that did not reach the tolerance."""
    if proven.all():
        return
    fold, place = np.unravel_index(np.argmax(np.where(proven, -1.0, gaps)), gaps.shape)
    see = " (see gaps_path_)" if name == "alpha" else ""
    other = "choose another solver, " if name == "alpha" else ""
    warnings.warn(
        f"{np.sum(~proven)} of {proven.size} fits on folds did not prove tol={tol:g}; "
        f"the largest relative gap is {gaps[fold, place]:.1e}, at "
        f"{name}={alphas[place]:g} on fold {fold}{see}. Increase max_iter or tol, "
        f"{other}or scale the features.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def check_alphas(alphas: Any) -> Floats:
    """Return the user's grid, in descending order."""
    message = "alphas must be an integer or a non-empty list of numbers, got {!r}."
    if isinstance(alphas, str) or not hasattr(alphas, "__len__"):
        raise TypeError(message.format(alphas))
    try:
        grid = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(message.format(alphas)) from error
    if grid.ndim != 1 or not grid.size:
        raise ValueError(message.format(alphas))
    for alpha in grid.tolist():
        check_number("alphas", alpha, low=0.0, low_included=False)
    return np.sort(grid)[::-1]
