"""Cross-validated choice of the regularization of a linear SVM along a warm path."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets

from ._callbacks import FitTask, with_callbacks
from ._estimator import Progress, n_threads
from ._validation import check_number, check_weights, unchanged_on_failure
from .svm import BaseLinearSVC, BinaryProblems

# Ends of the default grid.
_LARGEST_ALPHA, _SMALLEST_ALPHA = 1e-2, 1e-6


class _FoldPath(NamedTuple):
    """Scores, gaps, numbers of iterations and coefficients of a fold, by alpha."""

    scores: list[float]
    gaps: list[float]
    n_iters: list[int]
    coefficients: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]


class SubLBFGSLinearSVCCV(BaseLinearSVC):
    """Linear SVM with cross-validation over a path of regularization strengths.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting from the solution and the dual point of the one before; this takes a
    fraction of the time of a grid search. The best ``alpha`` is then refitted on all
    samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size: then the values lie between 1e-2 and 1e-6 in geometric
        progression.
    cv : int, cross-validation generator, iterable or None, default=None
        How to split, as in scikit-learn; ``None`` means 5 stratified folds.
    scoring : str, callable or None, default=None
        What to maximize, as in scikit-learn; ``None`` means accuracy. Sample weights
        are passed to the scorer if there are any.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise coefficients are
        means over the folds, for which there is no objective or gap.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``max(0, 1 - y f(x))`` or its square.
    solver : str, default="auto"
        As in :class:`SubLBFGSLinearSVC`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per binary problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class, taken from all samples.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods, at least 1.
    direction_tol : float, default=1e-5
        Tolerance of the search for a descent direction at kinks.
    direction_max_iter : int, default=100
        Limit on the number of iterations of that search, at least 1.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`SubLBFGSLinearSVC`.
    verbose : int, default=0
        Print the progress of the refit.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        The grid, from the largest value to the smallest.
    alpha_ : float
        The value with the best mean score; the largest of them if there are several.
    scores_path_ : ndarray of shape (n_folds, n_alphas)
        Scores on the left-out samples.
    gaps_path_ : ndarray of shape (n_folds, n_alphas)
        Proven relative gaps, the largest of all binary problems.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`SubLBFGSLinearSVC`, of the final model.
    objective_, dual_gap_, n_iter_, history_
        As in :class:`SubLBFGSLinearSVC`; ``objective_``, ``dual_gap_`` and ``history_``
        with ``refit=True`` only.

    See Also
    --------
    SubLBFGSLinearSVC : The same model for one ``alpha``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import SubLBFGSLinearSVCCV
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> clf = SubLBFGSLinearSVCCV(alphas=[1, 1e-1, 1e-2, 1e-3], cv=3).fit(X, y)
    >>> clf.scores_path_.shape
    (3, 4)
    >>> bool(clf.gaps_path_.max() <= 1e-3)
    True
    """

    def __init__(
        self,
        alphas: Any = 20,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        loss: str = "hinge",
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        memory: int = 15,
        direction_tol: float = 1e-5,
        direction_max_iter: int = 100,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.memory = memory
        self.direction_tol = direction_tol
        self.direction_max_iter = direction_max_iter
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> SubLBFGSLinearSVCCV:
        """Choose ``alpha`` by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Group labels for splitters that ask for them.

        Returns
        -------
        self : SubLBFGSLinearSVCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are not acceptable, or a fit overflows.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached by a fit; states the gap that was.
        """
        self._check_parameters()
        alphas = _check_alphas(self.alphas)
        raw_X, raw_y = X, y
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        weights, classes = check_weights(sample_weight, X, y, self.class_weight)
        scorer = check_scoring(self, scoring=self.scoring)
        score_weights = None
        if sample_weight is not None:
            score_weights = np.broadcast_to(
                np.asarray(sample_weight, dtype=np.float64), y.shape
            )
        folds = check_cv(self.cv, y, classifier=True).split(X, y, groups)
        threads = n_threads(self.n_jobs)
        paths = Parallel(n_jobs=threads, prefer="threads")(
            delayed(self._fold_path)(
                X, y, weights, classes, train, test, alphas, scorer, score_weights
            )
            for train, test in folds
        )
        self.alphas_ = alphas
        self.scores_path_ = np.array([path.scores for path in paths])
        self.gaps_path_ = np.array([path.gaps for path in paths])
        best = int(np.argmax(self.scores_path_.mean(axis=0)))
        self.alpha_ = float(alphas[best])
        if self.refit:
            problems = BinaryProblems(self, X, y, weights, classes, threads)
            task = FitTask(
                self, problems.n_outputs, self.max_iter, raw_X, raw_y, sample_weight
            )
            self._store(problems, problems.solve(self.alpha_, task))
            task.end()
        else:
            self.classes_ = classes
            self.n_iter_ = max(1, *(max(path.n_iters) for path in paths), 1)
            coefs, intercepts = zip(
                *(path.coefficients[best] for path in paths), strict=True
            )
            self.coef_ = np.mean(coefs, axis=0)
            self.intercept_ = np.mean(intercepts, axis=0)
        return self

    def _fold_path(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weights: npt.NDArray[np.float64],
        classes: npt.NDArray[Any],
        train: npt.NDArray[np.intp],
        test: npt.NDArray[np.intp],
        alphas: npt.NDArray[np.float64],
        scorer: Callable[..., float],
        score_weights: npt.NDArray[np.float64] | None,
    ) -> _FoldPath:
        """Fit the path on one training part and score it on the rest."""
        weights = weights[train]
        if not weights.any():
            raise ValueError("A training part of cv has no samples of positive weight.")
        model = copy.copy(self).set_params(callback=None, verbose=0)
        # Scorers pass arrays, whose columns have no names.
        vars(model).pop("feature_names_in_", None)
        problems = BinaryProblems(
            model, X[train], y[train], weights / weights.sum(), classes, 1
        )
        keywords = {}
        if score_weights is not None:
            keywords["sample_weight"] = score_weights[test]
        model.classes_ = classes
        path = _FoldPath([], [], [], [])
        for alpha in alphas:
            solutions = problems.solve(float(alpha), FitTask.silent())
            coefficients = problems.coefficients()
            model.coef_, model.intercept_ = coefficients
            path.scores.append(float(scorer(model, X[test], y[test], **keywords)))
            path.gaps.append(max(solution.relative_gap for solution in solutions))
            path.n_iters.append(max(solution.n_iter for solution in solutions))
            if not self.refit:
                path.coefficients.append(coefficients)
        return path


def _check_alphas(alphas: Any) -> npt.NDArray[np.float64]:
    """Return the grid in descending order."""
    if np.ndim(alphas) == 0:
        check_number("alphas", alphas, low=1, integer=True)
        return np.geomspace(_LARGEST_ALPHA, _SMALLEST_ALPHA, int(alphas))
    grid = np.asarray(alphas, dtype=np.float64)
    if grid.ndim != 1 or not grid.size:
        raise ValueError(
            f"alphas must be an integer or a non-empty list of numbers, got {alphas!r}."
        )
    for alpha in grid:
        check_number("alphas", alpha, low=0.0, low_included=False)
    return np.sort(grid)[::-1]
