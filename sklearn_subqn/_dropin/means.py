"""Regression of positive means with scikit-learn's parameters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._checks.signatures import with_parameters
from .._core.arrays import Array, Floats
from .._estimators.block_methods import blockwise
from .._estimators.predictions import variance_power
from .._estimators.regression_losses import check_domain, loss_of
from .._problems import LinearProblems
from .._problems.reading import Reading
from ._reading import LessConstant, without_penalty
from ._shared import DropInRegressor


@with_parameters(kw_only=True)
class MeanRegressor(DropInRegressor):
    """Base of regressors that minimize a Tweedie deviance."""

    _without_effect: ClassVar[dict[str, str]] = {
        "solver": "the method is chosen by the data."
    }

    alpha: float = 1.0
    fit_intercept: bool = True
    solver: str = "lbfgs"
    max_iter: int = 100
    tol: float = 1e-4
    warm_start: bool = False
    verbose: int = 0

    @blockwise
    def predict(self, X: Any) -> Array:
        """Return expected targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            ``exp(f(x))``, or ``f(x)`` with the identity as link.
        """
        scores = super().predict(X)
        return scores if variance_power(self) is None else np.exp(scores)

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        X, y = super()._checked(X, y, reset=reset)
        return X, check_domain(self, y)

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        power, model = variance_power(self), self._linear_model()
        loss = loss_of(self)
        # The constant makes the minimum of half the deviance zero.
        constant = loss.oracle.conjugate(np.zeros_like(y), y, weights)
        reading: Reading = LessConstant(constant)
        if not self.alpha:
            curvature = 1.0 if power is None else float(weights @ y) ** (2.0 - power)
            given = {"bend": curvature or 1.0, "constant": constant}
            reading = without_penalty(X, weights, model.fit_intercept, **given)
        data = model, X, [y], loss, weights
        return LinearProblems(*data, single=True, reading=reading)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = variance_power(self) is not None
        return tags


class PoissonRegressor(MeanRegressor):
    """Poisson regression with scikit-learn's parameters.

    Minimizes ``alpha / 2 * ||w||² + sum_i s_i d_i / (2 * sum_i s_i)`` with the Poisson
    deviance ``d = 2 (y ln(y / m) - y + m)`` of the prediction ``m = exp(f(x))``, and
    reports a proven bound on the distance from the optimum. Change the import in a
    script written for :class:`sklearn.linear_model.PoissonRegressor`; the notes list
    the differences.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty relative to the mean loss, non-negative.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    solver : {"lbfgs", "newton-cholesky"}, default="lbfgs"
        Without effect: the method is chosen by the data.
    max_iter : int, default=100
        Limit on the number of iterations.
    tol : float, default=1e-4
        Stop when the mean of ``exp(f(x)) - y f(x)`` with the penalty, which is the
        objective up to a constant, has a proven gap of at most ``tol`` times its
        absolute value.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger, with the
        objective that ``tol`` uses.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Intercept; zero if ``fit_intercept=False``.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64; infinite with ``alpha=0``, where no bound is known.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        How the problem was solved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRegressor : The same model, other losses and penalties, with a choice of
        solvers.

    Notes
    -----
    Differences from scikit-learn: ``tol`` is a proven relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.linear_model import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.poisson(np.exp(X @ [0.5, -0.5] + 1.0))
    >>> model = PoissonRegressor(alpha=1e-3).fit(X, y)
    >>> model.coef_.round(1)
    array([ 0.6, -0.5])
    """

    _original = "sklearn.linear_model", "PoissonRegressor"

    loss = "poisson"


class GammaRegressor(MeanRegressor):
    """Gamma regression with scikit-learn's parameters.

    Minimizes ``alpha / 2 * ||w||² + sum_i s_i d_i / (2 * sum_i s_i)`` with the gamma
    deviance ``d = 2 (ln(m / y) + y / m - 1)`` of the prediction ``m = exp(f(x))``, and
    reports a proven bound on the distance from the optimum. Change the import in a
    script written for :class:`sklearn.linear_model.GammaRegressor`; the notes list the
    differences.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty relative to the mean loss, non-negative.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    solver : {"lbfgs", "newton-cholesky"}, default="lbfgs"
        Without effect: the method is chosen by the data.
    max_iter : int, default=100
        Limit on the number of iterations.
    tol : float, default=1e-4
        Stop when the mean of ``y exp(-f(x)) + f(x)`` with the penalty, which is the
        objective up to a constant, has a proven gap of at most ``tol`` times its
        absolute value.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger, with the
        objective that ``tol`` uses.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Intercept; zero if ``fit_intercept=False``.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64; infinite with ``alpha=0``, where no bound is known.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        How the problem was solved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRegressor : The same model, other losses and penalties, with a choice of
        solvers.

    Notes
    -----
    Differences from scikit-learn: ``tol`` is a proven relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.linear_model import GammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.gamma(2.0, np.exp(X @ [0.5, -0.5]))
    >>> model = GammaRegressor(alpha=1e-3).fit(X, y)
    >>> model.coef_.round(1)
    array([ 0.5, -0.5])
    """

    _original = "sklearn.linear_model", "GammaRegressor"

    loss = "gamma"


@with_parameters(kw_only=True)
class TweedieRegressor(MeanRegressor):
    """Tweedie regression with scikit-learn's parameters.

    Minimizes ``alpha / 2 * ||w||² + sum_i s_i d_i / (2 * sum_i s_i)`` with the deviance
    d of :func:`sklearn.metrics.mean_tweedie_deviance` from the prediction, and reports
    a proven bound on the distance from the optimum. Change the import in a script
    written for :class:`sklearn.linear_model.TweedieRegressor`; the notes list the
    differences.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty relative to the mean loss, non-negative.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    solver : {"lbfgs", "newton-cholesky"}, default="lbfgs"
        Without effect: the method is chosen by the data.
    max_iter : int, default=100
        Limit on the number of iterations.
    tol : float, default=1e-4
        Stop when the proven gap is at most ``tol`` times the absolute value of the
        objective without the terms that depend on y alone.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger, with the
        objective that ``tol`` uses.
    power : float, default=0.0
        Variances are proportional to this power of the mean: 0 for normal, 1 for
        Poisson and 2 for gamma distributions, between 1 and 2 for amounts that are
        often zero. Other powers have non-convex objectives and raise an error.
    link : {"auto", "identity", "log"}, default="auto"
        Predictions are ``f(x)`` with "identity", which needs ``power=0``, and
        ``exp(f(x))`` with "log", which needs another power; "auto" selects the link by
        the power.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Intercept; zero if ``fit_intercept=False``.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64; infinite with ``alpha=0``, where no bound is known.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        How the problem was solved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRegressor : The same model, other losses and penalties, with a choice of
        solvers.

    Notes
    -----
    Differences from scikit-learn: ``tol`` is a proven relative gap, and powers and
    links whose objectives are not convex are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.linear_model import TweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.poisson(20.0, size=200) * np.exp(X @ [0.5, -0.5])
    >>> model = TweedieRegressor(power=1.5, alpha=1e-3).fit(X, y)
    >>> model.coef_.round(1)
    array([ 0.5, -0.5])
    """

    _original = "sklearn.linear_model", "TweedieRegressor"

    power: float = 0.0
    link: str = "auto"

    @property
    def loss(self) -> str:
        """Name of the loss for the power."""
        names = {0.0: "squared_error", 1.0: "poisson", 2.0: "gamma"}
        return names.get(self.power, "tweedie")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.power != 0.0 and not 1.0 <= self.power <= 2.0:
            raise ValueError(
                "power must be 0, or from 1 to 2, where the objective is convex; got "
                f"{self.power!r}."
            )
        link = "log" if self.power else "identity"
        if self.link not in ("auto", link):
            raise ValueError(
                f"power={self.power!r} needs link={link!r} or 'auto', with which the "
                f"objective is convex; got link={self.link!r}."
            )
