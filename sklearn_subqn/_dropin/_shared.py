"""The base of estimators with scikit-learn's names and parameters.

Drop-ins translate parameters, and convert the objective and its bounds to the units of
the original. Everything else is as in the other estimators of this package.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import (
    make_constraint,
    validate_parameter_constraints,
)
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._checks import as_sample_weights, check_sample_weight, check_targets
from .._checks.callers import user_level
from .._checks.parameters import once
from .._checks.signatures import parameters_of
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array, Floats
from .._core.solvers import SOLVERS, SolverSpec
from .._estimators.block_methods import blockwise
from .._estimators.export import coef_table, to_sklearn
from .._estimators.linear_estimator import LinearEstimator
from .._estimators.regressor import ScoringRegressor
from .._solving.callbacks import with_callbacks

# Places and texts of the warnings so far. Python clears its own registry when filters
# change.
_warned: set[tuple[str, int, str]] = set()


class DropIn(LinearEstimator):
    """Base of estimators with the parameters of an estimator of scikit-learn."""

    #: Module and name of the original, whose parameters accept the same values.
    _original: ClassVar[tuple[str, str]]

    #: Parameters without effect, with the reason.
    _without_effect: ClassVar[Mapping[str, str]] = {}

    _solvers: ClassVar[dict[str, SolverSpec]] = {"auto": SOLVERS["auto"]}

    # Defaults for estimators whose original lacks these parameters.
    solver: str = "auto"
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
            If parameters or data are invalid, or the fit overflows. A previously fitted
            estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        UserWarning
            If a parameter was set that has no effect, or if the optimum does not use
            the features.
        """
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        own: Any = type(self)
        original = _original(*self._original)
        for name, accepts in _constraints(original, own).items():
            value = getattr(self, name)
            if not once(accepts, value):
                # The message names all accepted values.
                validate_parameter_constraints(
                    original._parameter_constraints, {name: value}, type(self).__name__
                )
        for name, reason in self._without_effect.items():
            if self._is_set(name):
                warn(f"{name}={getattr(self, name)!r} has no effect: {reason}")

    def _strength(self, *data: Any) -> float:
        return float(self.C if hasattr(self, "C") else self.alpha)

    def _is_set(self, name: str) -> bool:
        """Whether a parameter differs from its default."""
        own: Any = type(self)
        default = parameters_of(own)[name].default
        value = getattr(self, name)
        return bool(value is not default and value != default)

    def _check_support(self, problems: Any) -> None:
        """Accept all problems, since the only solver supports them."""


@cache
def _original(module: str, name: str) -> Any:
    """Return an estimator of scikit-learn."""
    return getattr(import_module(module), name)


@lru_cache(maxsize=256)
def _constraints(original: Any, own: Any) -> dict[str, Callable[[Any], bool]]:
    """Return a check for each parameter that both classes have, from the original."""

    def accepted(constraints: list[Any], value: Any) -> bool:
        return any(each.is_satisfied_by(value) for each in constraints)

    return {
        name: partial(
            accepted, list(map(make_constraint, original._parameter_constraints[name]))
        )
        for name in parameters_of(own)
        if name in original._parameter_constraints
        and original._parameter_constraints[name] != "no_validation"
    }


def warn(message: str) -> None:
    """Warn the user where ``fit`` was called, once for each line of the caller.

    Cross-validation would otherwise repeat the warning for each fit.
    """
    level = user_level()
    frame = inspect.currentframe()
    for _ in range(level - 1):
        frame = frame and frame.f_back
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
    if (*place, message) not in _warned:
        warnings.warn(message, UserWarning, stacklevel=level)
        # A warning that is raised as an error is not recorded.
        _warned.add((*place, message))


class DropInRegressor(ScoringRegressor, DropIn):
    """Base of regressors with the parameters of a regressor of scikit-learn."""

    fit_intercept: bool
    coef_: Array
    intercept_: Any

    to_sklearn = to_sklearn
    coef_table = coef_table

    @blockwise
    def predict(self, X: Any) -> Array:
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
        X, y = self._checked(X, y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        total = float(as_sample_weights(sample_weight, X.shape[0]).sum())
        return self._problem(X, y, weights, total)

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        X, y = self._check_X(X, y, reset=reset, numeric=True)
        return X, check_targets(y)

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        """Return the problem of validated data; weights sum to one."""
        # Each regressor defines its own problem.
        raise NotImplementedError

    def _instead(self) -> str:
        return "the features do not help to predict y by this loss"
