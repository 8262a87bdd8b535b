"""Linear support vector machines with a proven distance from the optimum."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ._callbacks import FitTask, with_callbacks
from ._classifier import LinearClassifier
from ._core.design import Design
from ._core.losses import Hinge, Loss, SquaredHinge
from ._core.objective import Objective
from ._core.regularizers import L2
from ._core.solvers import Options, Start
from ._estimator import Progress, Solution, check_solver, solve
from ._validation import (
    check_number,
    check_option,
    unchanged_on_failure,
)

_LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}


class BinaryProblems:
    """The binary problems of one data set: one, or one class against the rest.

    They may be solved for one ``alpha`` after the other; each starts where the last one
    ended.

    Parameters
    ----------
    estimator : BaseLinearSVC
        Gives the parameters.
    X : {ndarray, CSR matrix} of shape (n, d)
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Sum to one.
    classes : ndarray
        For two classes, one problem with the second as the positive class.
    n_threads : int
    """

    def __init__(
        self,
        estimator: BaseLinearSVC,
        X: Any,
        y: npt.NDArray[Any],
        weights: npt.NDArray[np.float64],
        classes: npt.NDArray[Any],
        n_threads: int,
    ) -> None:
        self.classes = classes
        self._positives = classes[1:] if len(classes) == 2 else classes
        self._estimator = estimator
        self._y = y
        self._weights = weights
        self._dtype = X.dtype
        self._design = Design(
            X, fit_intercept=estimator.fit_intercept, n_threads=n_threads
        )
        # More pairs than iterations would only take memory.
        self._options = Options(
            min(estimator.memory, estimator.max_iter),
            estimator.direction_tol,
            estimator.direction_max_iter,
        )
        self.starts = [Start(np.zeros(self._design.n_params)) for _ in self._positives]

    @property
    def n_outputs(self) -> int:
        """Number of problems."""
        return len(self._positives)

    def start_from(
        self,
        coef: npt.NDArray[Any],
        intercept: npt.NDArray[Any],
        duals: list[npt.NDArray[np.float64] | None] | None,
    ) -> None:
        """Start from a previous solution, and its dual points if rows are as many."""
        for index in range(self.n_outputs):
            w = np.append(coef[index], intercept[index])[: self._design.n_params]
            dual = duals[index] if duals is not None else None
            if dual is not None and dual.shape != self._y.shape:
                dual = None
            self.starts[index] = Start(w.astype(np.float64), dual)

    def solve(self, alpha: float, task: FitTask) -> list[Solution]:
        """Solve all problems, each from where it stands."""
        estimator = self._estimator
        solutions = []
        for index, positive in enumerate(self._positives):
            objective = Objective(
                self._design,
                np.where(self._y == positive, 1.0, -1.0),
                _LOSSES[estimator.loss],
                L2(self._design.n_features),
                alpha,
                self._weights,
            )
            name = type(estimator).__name__
            label = name if self.n_outputs == 1 else f"{name}, class {positive}"
            problem = task.problem(label, estimator.tol)
            solution = solve(
                objective,
                self.starts[index],
                estimator.solver,
                self._options,
                tol=estimator.tol,
                max_iter=estimator.max_iter,
                dtype=self._dtype,
                label=label,
                verbose=estimator.verbose,
                callback=estimator.callback,
                task=problem,
                fitted=partial(self._fitted, index),
            )
            problem.end()
            self.starts[index] = solution.start
            solutions.append(solution)
        return solutions

    def coefficients(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return ``coef_`` and ``intercept_`` where the problems stand."""
        d = self._design.n_features
        coef = np.stack([start.w[:d] for start in self.starts])
        intercept = np.zeros(self.n_outputs)
        if self._design.fit_intercept:
            intercept[:] = [start.w[d] for start in self.starts]
        return coef.astype(self._dtype), intercept.astype(self._dtype)

    def _fitted(self, index: int, w: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Return what a callback needs of an estimator as fitted so far."""
        self.starts[index] = self.starts[index]._replace(w=w, scores=None)
        coef, intercept = self.coefficients()
        return {"classes_": self.classes, "coef_": coef, "intercept_": intercept}


class BaseLinearSVC(LinearClassifier):
    """What linear support vector machines share."""

    alpha: float
    loss: str
    solver: str

    def _problems(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weights: npt.NDArray[np.float64],
        classes: npt.NDArray[Any],
        n_threads: int,
    ) -> BinaryProblems:
        return BinaryProblems(self, X, y, weights, classes, n_threads)

    def _check_parameters(self) -> None:
        """Raise for parameters that are not acceptable."""
        self._check_common_parameters()
        check_number("direction_tol", self.direction_tol, low=0.0)
        check_number("direction_max_iter", self.direction_max_iter, low=1, integer=True)
        check_option("loss", self.loss, list(_LOSSES))
        check_solver(self.solver, self.loss, _LOSSES[self.loss])


class SubLBFGSLinearSVC(BaseLinearSVC):
    """Linear support vector classifier trained by quasi-Newton methods.

    Minimizes ``alpha / 2 * ||w||² + sum_i s_i loss_i / sum_i s_i`` with the hinge or
    squared hinge loss, one class against the rest where there are more than two, and
    reports how far the result is from the optimum at most.

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the regularization against the *mean* loss, positive. ``C`` of
        :class:`~sklearn.svm.LinearSVC` corresponds to ``1 / (n_samples * alpha)``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``max(0, 1 - y f(x))`` or its square.
    solver : {"auto", "sublbfgs", "subbfgs", "alm", "lbfgs", "bfgs", "newton-cg", \
            "trust-region", "cg"}, default="auto"
        Optimization method.

        - "auto": for the hinge a start by the shape of the data (dual coordinate ascent
          where less than 1 % of the entries are stored, else a sample of the rows where
          there are at least 1024 for each feature, else none where there are at most 4,
          else "sublbfgs" while its progress is fast), then "alm", on tall data with the
          rows near the kink; for the squared hinge "newton-cg", after dual coordinate
          ascent on such sparse data. Problems small enough for it to take milliseconds
          are solved to nearly machine precision, whatever ``tol`` is.
        - "sublbfgs": limited-memory subgradient BFGS.
        - "subbfgs": the same with a full matrix of n_features² entries, for few
          features.
        - "alm", hinge only: proximal method of multipliers on the dual, that is, a
          semismooth Newton method on smooth envelopes of the hinge.
        - "lbfgs", "bfgs", squared hinge only: the classical methods.
        - "newton-cg", squared hinge only: Newton's method, by a factorization where
          there are few features and by conjugate gradients elsewhere.
        - "trust-region", squared hinge only: Newton's method with steps bounded by a
          trust region instead of a line search.
        - "cg", squared hinge only: nonlinear conjugate gradients.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Stop when the objective is proven to be within ``tol`` times itself of the
        optimum.
    max_iter : int, default=1000
        Limit on the number of iterations per binary problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        classes and features.
    memory : int, default=15
        Number of displacement pairs from which limited-memory methods estimate
        curvature, at least 1.
    direction_tol : float, default=1e-5
        Tolerance of the search for a descent direction at kinks, relative to the
        objective, of "sublbfgs" and "subbfgs"; "auto" has its own.
    direction_max_iter : int, default=100
        Limit on the number of iterations of that search, at least 1.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
        With several problems that is the one at hand, from whose beginning the numbers
        count.
    verbose : int, default=0
        Print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds, if 1;
        at each if larger.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, of the type of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    objective_ : float or ndarray of shape (n_classes,)
        Objective at the coefficients; one per class beyond two classes.
    dual_gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - dual_gap_`` is a lower bound on the optimum, proven up to
        rounding in float64.
    n_iter_ : int
        Number of iterations, the largest of all binary problems.
    history_ : list of History
        For each binary problem the objective, lower bound, passes over the data and
        seconds after each iteration. See :class:`ConvergenceDisplay`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X has names that are all strings.

    See Also
    --------
    ConvergenceDisplay : Plot of objective and lower bound during a fit.
    sklearn.svm.LinearSVC : Dual coordinate descent, without a proven gap.

    Notes
    -----
    A sample of weight 2 equals a repeated one, a sample of weight 0 a missing one.

    Fitting takes memory beyond X for about 20 vectors of n_samples and
    2 * (memory + 5) vectors of n_features numbers, for the lower bound up to 40 more
    vectors of n_features numbers, as far as they fit in half the size of X, and with
    "alm" for a copy of the rows near the margin, at most 0.6 times X. With fewer rows
    than features "alm" and "newton-cg" keep the products of rows with each other, where
    they take no more memory than X.

    References
    ----------
    J. Yu (2009), New Quasi-Newton Optimization Methods for Machine Learning, PhD
    thesis, Australian National University: Alg. 3.1-3.3. C.-H. Teo, S.V.N.
    Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for Regularized Risk
    Minimization, JMLR 11: Corollary 3 for the lower bound. C.-J. Hsieh et al. (2008), A
    Dual Coordinate Descent Method for Large-scale Linear SVM, ICML: Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import SubLBFGSLinearSVC
    >>> X, y = make_classification(random_state=0)
    >>> clf = SubLBFGSLinearSVC(alpha=1e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> clf.score(X, y)
    0.96
    """

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "hinge",
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        memory: int = 15,
        direction_tol: float = 1e-5,
        direction_max_iter: int = 100,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.memory = memory
        self.direction_tol = direction_tol
        self.direction_max_iter = direction_max_iter
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SubLBFGSLinearSVC:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.

        Returns
        -------
        self : SubLBFGSLinearSVC
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable, or the fit overflows. A
            previously fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; states the gap that was.
        UserWarning
            If the optimum makes no use of the features; says what to take instead.
        """
        return self._fit(X, y, sample_weight)
