"""What estimators with the names and parameters of scikit-learn's have in common.

They translate parameters, and the objective and its bounds into the units of the
original. Everything else is as in the other estimators of this package.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._callbacks import FitTask, with_callbacks
from .._callers import user_level
from .._core.losses import Loss
from .._core.objective import Objective
from .._core.regularizers import Regularizer
from .._core.solvers import CATALOGUE_SOLVERS, SolverSpec
from .._export import Exports
from .._linear_estimator import LinearEstimator
from .._problems import LinearModel, LinearProblems
from .._problems.linear import NO_PENALTY
from .._regressor import ScoringRegressor
from .._solution import Floats, Solution
from .._state import unchanged_on_failure
from .._validation import as_sample_weights, check_sample_weight, check_targets

# Where users have been warned of what: Python forgets that when its filters change.
_warned: set[tuple[str, int, str]] = set()

# Columns whose variance is below this share of their mean square are constant.
_ONE_NUMBER = 1e-20


class DropIn(LinearEstimator):
    """Base of estimators with the parameters of one of scikit-learn."""

    #: Module and name of the original, whose parameters accept the same values.
    _original: ClassVar[tuple[str, str]]

    #: Parameters without effect, with the reason.
    _without_effect: ClassVar[Mapping[str, str]] = {}

    _solvers: ClassVar[dict[str, SolverSpec]] = {"auto": CATALOGUE_SOLVERS["auto"]}

    # Where the original has no such parameters.
    solver: str = "auto"
    tol: float
    max_iter: int
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False
    callback: Any = None

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels, or targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.

        Returns
        -------
        self : object
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
            If a parameter was set that has no effect, or if the optimum makes no use of
            the features.
        """
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        module, name = self._original
        original = getattr(import_module(module), name)
        validate_parameter_constraints(
            original._parameter_constraints,
            self.get_params(deep=False),
            caller_name=type(self).__name__,
        )
        for name, reason in self._without_effect.items():
            if self._is_set(name):
                warn(f"{name}={getattr(self, name)!r} has no effect: {reason}")

    def _strength(self, *data: Any) -> float:
        return float(self.alpha)

    def _is_set(self, name: str) -> bool:
        """Whether a parameter has another value than its default."""
        default = inspect.signature(type(self)).parameters[name].default
        value = getattr(self, name)
        return bool(value is not default and value != default)

    def _check_support(self, loss: Loss, regularizer: Regularizer) -> None:
        """Accept all: the one solver takes them."""


def warn(message: str) -> None:
    """Warn the user where ``fit`` was called, once for each such line.

    Cross-validation fits many times there.
    """
    level = user_level()
    frame = inspect.currentframe()
    for _ in range(level - 1):
        frame = frame and frame.f_back
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
    if (*place, message) not in _warned:
        warnings.warn(message, UserWarning, stacklevel=level)
        # Not where warnings are errors: those were raised.
        _warned.add((*place, message))


class DropInProblems(LinearProblems):
    """Problems of which the user reads another objective than the mean loss has.

    Parameters
    ----------
    model, X, targets, loss, weights, **kwargs
        As of ``LinearProblems``.
    totals : list of float, optional
        Weight of the rows of each problem. If given, the strength of the penalty is the
        factor C on the sum of the losses, else alpha against their mean.
    free : bool
        Whether there is to be no penalty.
    bend : float
        About the second derivative of the loss where there is no penalty.
    constant : float
        Is added to the objectives that the user reads.
    """

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        targets: list[Any],
        loss: Loss,
        weights: Floats,
        *,
        totals: list[float] | None = None,
        free: bool = False,
        bend: float = 1.0,
        constant: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self._totals = totals
        self._free = free
        self._bend = bend
        self._constant = constant
        self._sizes: Any = None
        if free:
            X, self._sizes = _unit_columns(X, weights, centered=model.fit_intercept)
        super().__init__(model, X, targets, loss, weights, **kwargs)
        if self._shift is not None and self._sizes is not None:
            # In units of X as it was given, as coefficients are decoded.
            by = self._shift.by * self._sizes[self._shift.columns]
            self._shift = self._shift._replace(by=by)

    def objective(self, index: int, alpha: float) -> Objective:
        if self._free:
            alpha = NO_PENALTY * self._bend
        elif self._totals is not None:
            alpha = 1.0 / (alpha * self._totals[index])
        return super().objective(index, alpha)

    def _unit(self, index: int, objective: Objective) -> float:
        if self._totals is None:
            return 1.0
        return self._totals[index] if self._free else 1.0 / objective.alpha

    def as_read(
        self, index: int, objective: Objective, w: Floats, value: float, bound: float
    ) -> tuple[float, float]:
        value, bound = super().as_read(index, objective, w, value, bound)
        shift = self._shift_at(index, objective, w)
        return value + shift, -np.inf if self._free else bound + shift

    def _shift_at(self, index: int, objective: Objective, w: Floats) -> float:
        """Return what is added to the objective at w for the user to read."""
        if not self._free:
            return self._constant
        penalty = objective.alpha * objective.regularizer.value(w)
        return self._constant - self._unit(index, objective) * penalty

    def _solve(
        self, index: int, objective: Objective, settings: Any, task: FitTask
    ) -> Solution:
        solution = super()._solve(index, objective, settings, task)
        shift = self._shift_at(index, objective, solution.w)
        gap, bounds = solution.dual_gap, solution.history.lower_bound
        if self._free:
            # Only the penalty bounds the coefficients, by which a proof goes.
            gap, bounds = np.inf, [-np.inf] * len(bounds)
        elif not shift:
            return solution
        history = replace(
            solution.history,
            objective=[value + shift for value in solution.history.objective],
            lower_bound=[bound + shift for bound in bounds],
        )
        value = solution.objective + shift
        return replace(solution, objective=value, dual_gap=gap, history=history)

    def _stored(self, w: Floats) -> Floats:
        if self._sizes is None:
            return super()._stored(w)
        coef, intercept = self._reported(*self._decoded([w]))
        if self._shift is not None:
            intercept = self._shift.inward(coef, intercept)
        return self._encoded(coef, intercept)[0][: self.design.n_params]

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        if self._sizes is not None:
            coef = coef * self._sizes
        return super()._encoded(coef, intercept)

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        coef, intercept = super()._decoded(parameters)
        return (coef if self._sizes is None else coef / self._sizes), intercept


def _unit_columns(X: Any, weights: Floats, *, centered: bool) -> tuple[Any, Floats]:
    """Return X with columns of variance or square about one, and their sizes.

    Sizes are powers of two, so that dividing by them is exact. They are of rows with
    weights that sum to one.
    """
    if sparse.issparse(X):
        d, data = X.shape[1], X.data.astype(np.float64)
        own = np.repeat(weights, np.diff(X.indptr)) * data
        means = np.bincount(X.indices, own, minlength=d)
        squares = np.bincount(X.indices, own * data, minlength=d)
        spread = squares - means * means
    else:
        squares = np.einsum("i,ij,ij->j", weights, X, X)
        deviations = X - weights @ X
        spread = np.einsum("i,ij,ij->j", weights, deviations, deviations)
    # Columns of one number are left to the intercept.
    spread = np.where(spread > _ONE_NUMBER * squares, spread, squares)
    moments = spread if centered else squares
    moments = np.where(moments > 0.0, moments, 1.0)
    sizes = np.exp2(np.rint(0.5 * np.log2(moments)))
    if not sparse.issparse(X):
        return (X / sizes).astype(X.dtype, copy=False), sizes
    scaled = X.copy()
    scaled.data = (X.data / sizes[X.indices]).astype(X.dtype, copy=False)
    return scaled, sizes


class DropInRegressor(Exports, ScoringRegressor, DropIn):
    """Base of regressors with the parameters of one of scikit-learn."""

    fit_intercept: bool
    coef_: npt.NDArray[Any]
    intercept_: Any

    def predict(self, X: Any) -> Any:
        """Return predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted targets.
        """
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        scores = safe_sparse_dot(X, self.coef_, dense_output=True)
        return scores + self.intercept_

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        X, y = self._check_X(X, y, reset=True, numeric=True)
        y = check_targets(y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        total = float(as_sample_weights(sample_weight, X.shape[0]).sum())
        return self._problem(X, y, weights, total)

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        """Return the problem of validated data; weights sum to one."""
        # Each regressor has its own.
        raise NotImplementedError

    def _instead(self) -> str:
        return "the features do not help to predict y by this loss"
