"""What estimators of the loss catalogue share: penalties, solvers, problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ._callbacks import FitTask
from ._core.design import Design
from ._core.losses import Loss, checked, read_only
from ._core.objective import Objective
from ._core.regularizers import (
    L2,
    ElasticNet,
    Entropy,
    NormalizedEntropy,
    QuadraticForm,
    Regularizer,
    SquaredNorm,
)
from ._core.solvers import CATALOGUE_SOLVERS, Options, Start
from ._estimator import Floats, LinearEstimator, Progress, Solution, solve
from ._validation import (
    check_callback,
    check_flag,
    check_matrix,
    check_n_jobs,
    check_number,
    check_option,
    check_verbose,
    warn_of_unused,
)

#: Penalties Omega of the coefficients (Teo et al. 2010, section 2.3 and appendix C).
PENALTIES = (
    "l2",
    "l1",
    "elasticnet",
    "lp",
    "quadratic",
    "entropy",
    "normalized_entropy",
)


class BundleEstimator(LinearEstimator):
    """Base of estimators with a loss and a penalty of the catalogue."""

    alpha: float
    loss: str | Loss
    penalty: str
    l1_ratio: float
    p: float
    penalty_matrix: Any
    solver: str
    fit_intercept: bool
    tol: float
    max_iter: int
    warm_start: bool
    memory: int
    bundle_size: int | None
    n_jobs: int | None
    callback: Callable[[Progress], Any] | None
    verbose: int

    def _check_bundle_parameters(self, intercept: bool = True) -> None:
        """Raise for parameters that all have and that are not acceptable."""
        check_number("alpha", self.alpha, low=0.0, low_included=False)
        check_option("penalty", self.penalty, PENALTIES)
        if self.penalty == "elasticnet":
            check_number("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        if self.penalty == "lp":
            check_number("p", self.p, low=1.0, low_included=False, high=2.0)
        warn_of_unused(
            self,
            {
                "l1_ratio": (0.5, "penalty", ["elasticnet"]),
                "p": (1.5, "penalty", ["lp"]),
                "penalty_matrix": (None, "penalty", ["quadratic"]),
            },
        )
        check_option("solver", self.solver, list(CATALOGUE_SOLVERS))
        check_number("tol", self.tol, low=0.0)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("memory", self.memory, low=1, integer=True)
        if self.bundle_size is not None:
            check_number("bundle_size", self.bundle_size, low=2, integer=True)
        if intercept:
            check_flag("fit_intercept", self.fit_intercept)
        check_flag("warm_start", self.warm_start)
        check_n_jobs(self.n_jobs)
        check_callback(self.callback)
        check_verbose(self.verbose)

    def _regularizer(self, n_coef: int) -> Regularizer:
        """Return the penalty of so many coefficients."""
        if self.penalty == "quadratic":
            return QuadraticForm(_checked_matrix(self.penalty_matrix, n_coef))
        if self.penalty == "lp":
            return SquaredNorm(n_coef, float(self.p))
        if self.penalty == "elasticnet" and self.l1_ratio > 0.0:
            return ElasticNet(n_coef, float(self.l1_ratio))
        others: dict[str, type[Regularizer]] = {
            "l1": ElasticNet,
            "entropy": Entropy,
            "normalized_entropy": NormalizedEntropy,
        }
        return others.get(self.penalty, L2)(n_coef)

    def _check_combination(self, loss: Loss, regularizer: Regularizer) -> None:
        """Raise ValueError unless the solver takes the loss with the penalty."""
        if not CATALOGUE_SOLVERS[self.solver].supports(loss, regularizer):
            options = ", ".join(
                repr(name)
                for name, spec in CATALOGUE_SOLVERS.items()
                if spec.supports(loss, regularizer)
            )
            raise ValueError(
                f"solver={self.solver!r} does not support loss={loss_name(self.loss)} "
                f"with penalty={self.penalty!r}; solvers that do are {options}."
            )


def loss_name(loss: Any) -> str:
    """Return a loss as users write it."""
    return repr(loss) if isinstance(loss, str) else type(loss).__name__


def _checked_matrix(matrix: Any, n: int) -> Floats:
    """Return ``penalty_matrix``, symmetric and positive definite, of shape (n, n)."""
    if matrix is None:
        raise ValueError("penalty='quadratic' needs a penalty_matrix; got None.")
    return checked_metric("penalty_matrix", matrix, n, definite=True)


def checked_metric(name: str, matrix: Any, n: int, *, definite: bool) -> Floats:
    """Return a symmetric matrix of shape (n, n).

    Raises
    ------
    ValueError
        If it is of another shape, not symmetric, or not positive (semi)definite.
    """
    M = check_matrix(name, matrix, (n, n))
    if not np.allclose(M, M.T, rtol=1e-10, atol=0.0):
        raise ValueError(f"{name} must be symmetric.")
    values = np.linalg.eigvalsh(M)
    floor = 1e-12 * float(np.abs(values).max(initial=0.0))
    if values[0] < (floor if definite else -floor) or (definite and values[0] <= 0.0):
        kind = "definite" if definite else "semidefinite"
        raise ValueError(
            f"{name} must be positive {kind}; its least eigenvalue is {values[0]:g}."
        )
    return M


class LossProblems:
    """Problems of one loss on the same data, each for targets of its own.

    Parameters
    ----------
    estimator : BundleEstimator
        Gives the parameters.
    X : {ndarray, CSR matrix} of shape (n, d)
    targets : list of ndarray
        One for each problem.
    loss : Loss
    weights : ndarray of shape (n,)
        Sum to one.
    n_threads : int
    n_scores : int or None
        Number of scores per row of a joint loss.
    labels : list of str
        Names of the problems for messages.
    """

    def __init__(
        self,
        estimator: BundleEstimator,
        X: Any,
        targets: list[Any],
        loss: Loss,
        weights: Floats,
        n_threads: int,
        *,
        n_scores: int | None = None,
        labels: list[str] | None = None,
    ) -> None:
        self._estimator = estimator
        self._targets = targets
        self._loss = loss
        self._weights = weights
        self._dtype = X.dtype
        self._design = Design(
            X,
            fit_intercept=bool(getattr(estimator, "fit_intercept", False))
            and not loss.ranks,
            n_outputs=n_scores,
            n_threads=n_threads,
        )
        self._regularizer = estimator._regularizer(self._design.n_coef)
        estimator._check_combination(loss, self._regularizer)
        if n_scores is not None and self._design.fit_intercept and not loss.smooth:
            raise ValueError(
                f"loss={loss_name(estimator.loss)} of several scores is not smooth and "
                "needs fit_intercept=False."
            )
        self._labels = labels or [type(estimator).__name__]
        start = Start(self._regularizer.center(self._design.n_params))
        self.starts = [start for _ in targets]

    @property
    def n_outputs(self) -> int:
        """Number of problems."""
        return len(self._targets)

    def start_from(
        self, coef: Any, intercept: Any, duals: list[Floats | None] | None
    ) -> None:
        """Start from coefficients (k, d) and intercepts (k,) of a previous solution.

        Dual points count if rows are as many, and coefficients that the penalty allows.
        """
        joint = self._design.n_outputs is not None
        for index in range(self.n_outputs):
            rows = slice(None) if joint else slice(index, index + 1)
            w = np.concatenate([coef[rows].T.ravel(), intercept[rows]])
            dual = duals[index] if duals and len(duals) == self.n_outputs else None
            if dual is not None and dual.shape != self._design.zero_scores().shape:
                dual = None
            self._begin_at(index, w[: self._design.n_params].astype(np.float64), dual)

    def _begin_at(self, index: int, w: Floats, dual: Floats | None = None) -> None:
        """Let a problem start at parameters, if the penalty allows them."""
        if self._regularizer.contains(w):
            self.starts[index] = Start(w, dual)

    def solve(self, alpha: float, task: FitTask) -> list[Solution]:
        """Solve all problems, each from where it stands."""
        estimator = self._estimator
        options = Options(
            min(estimator.memory, estimator.max_iter), bundle_size=estimator.bundle_size
        )
        solutions = []
        for index, targets in enumerate(self._targets):
            label = self._labels[index]
            problem = task.problem(label, estimator.tol)
            solution = solve(
                Objective(
                    self._design,
                    read_only(targets),
                    checked(self._loss),
                    self._regularizer,
                    alpha,
                    read_only(self._weights),
                ),
                self.starts[index],
                estimator.solver,
                options,
                tol=estimator.tol,
                max_iter=estimator.max_iter,
                dtype=self._dtype,
                label=label,
                verbose=estimator.verbose,
                callback=estimator.callback,
                task=problem,
                fitted=partial(self._fitted, index),
                solvers=CATALOGUE_SOLVERS,
            )
            problem.end()
            self.starts[index] = solution.start
            solutions.append(solution)
        return solutions

    def coefficients(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return coefficients (k, d) and intercepts (k,) where the problems stand."""
        rows, free = [], []
        for start in self.starts:
            coef, intercept = self._design.split(start.w)
            rows.append(np.atleast_2d(np.asarray(coef).T))
            free.append(np.zeros(len(rows[-1])) + intercept)
        coef_, intercept_ = np.concatenate(rows), np.concatenate(free)
        return coef_.astype(self._dtype, order="C"), intercept_.astype(self._dtype)

    def attributes(self) -> dict[str, Any]:
        """Return what predictions need of an estimator where the problems stand."""
        coef, intercept = self.coefficients()
        return {"coef_": coef, "intercept_": intercept}

    def _fitted(self, index: int, w: Floats) -> dict[str, Any]:
        """Return what a callback needs of an estimator as fitted so far."""
        self.starts[index] = self.starts[index]._replace(w=w, scores=None)
        return self.attributes()
