"""What estimators of joint losses share: one problem with several scores per row."""

from __future__ import annotations

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
from ._estimator import (
    Floats,
    Solution,
    check_solver,
    n_threads,
    solve,
    warn_of_constants,
)
from ._validation import check_flag, check_number


class JointEstimator(ScoringClassifier):
    """Base of estimators that minimize one joint loss of all scores of a row."""

    alpha: float
    solver: str

    def _instead(self) -> str:
        """Return what to do where the optimum makes no use of the features."""
        return "take class weights, or a logistic loss"

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

        # Of two classes the second one's scores less the first one's are stored.
        base = 0 if k == 2 else None
        self._minimize(X, targets, loss, weights, classes, k, base, previous, raw)

    def _minimize(
        self,
        X: Any,
        targets: Any,
        loss: Loss,
        weights: Floats,
        classes: npt.NDArray[Any],
        n_outputs: int,
        base: int | None,
        previous: dict[str, Any],
        raw: tuple[Any, Any, Any],
    ) -> None:
        """Fit and set the attributes that all estimators have.

        Parameters
        ----------
        X, targets, loss, weights
            The problem.
        classes : ndarray
            Those of the rows of ``coef_``.
        n_outputs : int
            Number k of scores.
        base : int or None
            The output, first or last, that is subtracted from the others, which are
            stored; None to store all.
        previous : dict
            Attributes of a previous fit to start from.
        raw : tuple
            What the user passed to ``fit``: X, y and sample_weight.
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
        if self._continues(previous, classes):
            dual = previous.get("_dual")
            if dual is not None and dual.shape != (design.n_rows, n_outputs):
                dual = None
            columns = np.column_stack([previous["coef_"], previous["intercept_"]])
            begin = Start(_outputs(columns, base).T.ravel()[: design.n_params], dual)

        def columns_of(w: Floats) -> Any:
            """Return coefficients and intercepts as they are stored, side by side."""
            W = np.zeros((n_outputs, design.n_features + 1))
            coef, W[:, -1] = design.split(w)
            W[:, :-1] = np.asarray(coef).T
            return _differences(W, base).astype(X.dtype)

        def fitted(w: Floats) -> dict[str, Any]:
            columns = columns_of(w)
            return {
                "classes_": classes,
                "coef_": np.ascontiguousarray(columns[:, :-1]),
                "intercept_": columns[:, -1].copy(),
            }

        def stored(w: Floats) -> Floats:
            return _outputs(columns_of(w), base).T.ravel()[: design.n_params]

        raw_X, raw_y, sample_weight = raw
        task = FitTask(self, 1, self.max_iter, raw_X, raw_y, sample_weight)
        problem = task.problem(type(self).__name__, self.tol)
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
            stored=stored,
        )
        problem.end()
        warn_of_constants(type(self).__name__, [solution], self._instead())
        for name, value in fitted(solution.w).items():
            setattr(self, name, value)
        self.objective_ = solution.objective
        self.dual_gap_ = solution.dual_gap
        self.n_iter_ = max(1, solution.n_iter)
        self.history_ = [solution.history]
        # The dual point is only worth its memory to a fit that starts from it.
        self._dual = solution.dual if self.warm_start else None
        task.end()


def _differences(W: Floats, base: int | None) -> Floats:
    """Return the rows less one of them, without that; or all where there is none."""
    return W if base is None else np.delete(W, base, axis=0) - W[base]


def _outputs(columns: Any, base: int | None) -> Floats:
    """Return the rows with these differences that sum to zero, in double precision."""
    columns = columns.astype(np.float64)
    if base is None:
        return columns
    own = -columns.sum(axis=0) / (len(columns) + 1)
    rows = [own, *(columns + own)] if base == 0 else [*(columns + own), own]
    return np.array(rows)
