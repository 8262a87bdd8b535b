"""What estimators of joint losses share: one problem with several scores per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._callbacks import FitTask
from ._classifier import ScoringClassifier
from ._core.design import Design
from ._core.losses import Loss
from ._core.objective import Objective
from ._core.regularizers import L2
from ._core.solvers import Options, Start
from ._estimator import Floats, Solution, check_solver, n_threads, solve
from ._validation import check_flag, check_number


class JointEstimator(ScoringClassifier):
    """Base of estimators that minimize one joint loss of all scores of a row."""

    alpha: float
    solver: str

    def _check_parameters(self, loss: Loss) -> None:
        """Raise for parameters that are not acceptable."""
        check_number("alpha", self.alpha, low=0.0, low_included=False)
        self._check_common_parameters()
        check_flag("warm_start", self.warm_start)
        check_solver(self.solver, "hinge", loss)

    def _fit_classes(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        weights: Floats,
        classes: npt.NDArray[Any],
        previous: dict[str, Any],
        raw: tuple[Any, Any, Any],
    ) -> None:
        """Fit to one class per sample.

        Parameters
        ----------
        X, y, loss, weights, classes
            The problem, validated.
        previous : dict
            Attributes of a previous fit to start from.
        raw : tuple
            What the user passed to ``fit``.
        """
        k = len(classes)
        # Rows of other classes have no weight.
        targets = np.minimum(np.searchsorted(classes, y), k - 1).astype(np.intp)

        def store(coef: Any, intercept: Any) -> dict[str, Any]:
            if k == 2:
                coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
            return {"classes_": classes, "coef_": coef, "intercept_": intercept}

        start = None
        if self._continues(previous, classes):
            w = np.column_stack([previous["coef_"], previous["intercept_"]])
            # The vectors of both classes are opposite.
            w = np.concatenate([-0.5 * w, 0.5 * w]) if k == 2 else w
            start = w, previous.get("_dual")
        self._minimize(X, targets, loss, weights, k, start, raw, store)

    def _minimize(
        self,
        X: Any,
        targets: Any,
        loss: Loss,
        weights: Floats,
        n_outputs: int,
        start: tuple[Floats, Floats | None] | None,
        raw: tuple[Any, Any, Any],
        store: Callable[[Floats, Floats], dict[str, Any]],
    ) -> None:
        """Fit and set the attributes that all estimators have.

        Parameters
        ----------
        X, targets, loss, weights
            The problem.
        n_outputs : int
            Number k of scores.
        start : tuple of ndarray of shape (k, n_features + 1) and dual, or None
            Coefficients with intercepts, and perhaps a dual point, to start from.
        raw : tuple
            What the user passed to ``fit``: X, y and sample_weight.
        store : callable
            From coefficients (k, n_features) and intercepts (k,), of the type of X, to
            the attributes by which the estimator predicts.
        """
        design = Design(
            X,
            fit_intercept=self.fit_intercept,
            n_outputs=n_outputs,
            n_threads=n_threads(self.n_jobs),
        )
        objective = Objective(
            design, targets, loss, L2(design.n_coef), float(self.alpha), weights
        )
        begin = Start(np.zeros(design.n_params))
        if start is not None:
            w, dual = start
            if dual is not None and dual.shape != (design.n_rows, n_outputs):
                dual = None
            begin = Start(w.T.ravel()[: design.n_params].astype(np.float64), dual)

        def fitted(w: Floats) -> dict[str, Any]:
            coef, intercept = design.split(w)
            rows = np.ascontiguousarray(np.asarray(coef).T, dtype=X.dtype)
            free = np.zeros(n_outputs, dtype=X.dtype)
            free[:] = intercept
            return store(rows, free)

        raw_X, raw_y, sample_weight = raw
        task = FitTask(self, 1, self.max_iter, raw_X, raw_y, sample_weight)
        problem = task.problem(type(self).__name__)
        solution: Solution = solve(
            objective,
            begin,
            self.solver,
            Options(min(self.memory, self.max_iter)),
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=X.dtype,
            label=type(self).__name__,
            verbose=self.verbose,
            callback=self.callback,
            task=problem,
            fitted=fitted,
        )
        problem.end()
        for name, value in fitted(solution.w).items():
            setattr(self, name, value)
        self.objective_ = solution.objective
        self.dual_gap_ = solution.dual_gap
        self.n_iter_ = max(1, solution.n_iter)
        self.history_ = [solution.history]
        # The dual point is only worth its memory to a fit that starts from it.
        self._dual = solution.dual if self.warm_start else None
        task.end()
