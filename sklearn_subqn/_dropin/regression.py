"""Quantile regression with scikit-learn's parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from .._checks.signatures import with_parameters
from .._core.arrays import Floats
from .._core.losses import regression_losses
from .._core.regularizers import L2, ElasticNet, Regularizer
from .._features.strength import target_deviation
from .._problems import LinearProblems
from ._reading import without_penalty
from ._shared import DropInRegressor


@with_parameters(kw_only=True)
class QuantileRegressor(DropInRegressor):
    """Quantile regression with scikit-learn's parameters.

    Minimizes ``alpha * ||w||_1 + sum_i s_i loss_i / sum_i s_i`` with the pinball loss
    and reports a proven bound on the distance from the optimum. Change the import in a
    script written for :class:`sklearn.linear_model.QuantileRegressor`; the notes list
    the differences.

    Parameters
    ----------
    quantile : float, default=0.5
        Which quantile to predict, in (0, 1).
    alpha : float, default=1.0
        Strength of the L1 penalty against the mean loss, not negative. The strength and
        the loss depend on the units of the data: with the default, all coefficients are
        zero if features are standardized and y is small.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    solver : str, default="highs"
        One of scikit-learn's names, without effect: the problem is not solved as a
        linear program.
    solver_options : dict or None, default=None
        Without effect.

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
    Differences from scikit-learn: the objective is within 1e-6 of the optimum, a proven
    relative gap, whereas scikit-learn solves a linear program with constraints
    satisfied to about 1e-7; if there are several optimal solutions, another one may be
    returned.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.linear_model import QuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + rng.exponential(size=200)
    >>> model = QuantileRegressor(quantile=0.9, alpha=0.01).fit(X, y)
    >>> round(float(np.mean(y <= model.predict(X))), 1)
    0.9
    """

    _original = "sklearn.linear_model", "QuantileRegressor"
    _without_effect: ClassVar[dict[str, str]] = {
        "solver": "the problem is not solved as a linear program.",
        "solver_options": "the problem is not solved as a linear program.",
    }
    _weaker = "decrease alpha"

    loss = "quantile"
    tol = 1e-6
    max_iter = 1000

    quantile: float = 0.5
    alpha: float = 1.0
    fit_intercept: bool = True
    solver: str = "highs"
    solver_options: Any = None

    def _regularizer(self, n_coef: int) -> Regularizer:
        return ElasticNet(n_coef) if self.alpha else L2(n_coef)

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        loss = regression_losses(quantile=float(self.quantile))["quantile"]
        model, reading = self._linear_model(), None
        if not self.alpha:
            bend = 1.0 / target_deviation(y, weights)
            reading = without_penalty(X, weights, model.fit_intercept, bend=bend)
        data = model, X, [y], loss, weights
        return LinearProblems(*data, single=True, reading=reading)
