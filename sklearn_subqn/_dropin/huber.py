"""Huber regression with scikit-learn's parameters, including a fitted scale."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._checks.signatures import with_parameters
from .._core.arrays import Floats
from .._core.losses import DualLoss, ScaledHuber
from .._core.rounding import EPS, ROUNDED_32
from .._problems import LinearProblems
from .._problems.reading import Reading
from ._reading import SumAndSquares, without_penalty
from ._shared import DropInRegressor


class _Problem(LinearProblems):
    """Linear problem whose loss has a fitted scale."""

    # Each given row is an outlier or not.
    _merges_rows = False

    def attributes(self) -> dict[str, Any]:
        """Return the attributes including scale and outliers."""
        w, y = self.starts[0].w, self.targets[0]
        scores = self.design.forward(w)
        loss: Any = self.loss.oracle
        scale = np.float64(loss.score_scale(scores, y, self.weights))
        outliers = np.abs(y - scores) > loss.epsilon * scale
        return {**super().attributes(), "scale_": scale, "outliers_": outliers}


@with_parameters(kw_only=True)
class HuberRegressor(DropInRegressor):
    """Huber regression with a fitted scale and scikit-learn's parameters.

    Minimizes ``alpha * ||w||² + sum_i s_i (scale + H((y_i - f(x_i)) / scale) * scale)``
    over coefficients and scale, where ``H(z)`` is ``z²`` for ``|z| <= epsilon`` and
    else ``2 epsilon |z| - epsilon²``, and reports a proven bound on the distance from
    the optimum. Change the import in a script written for
    :class:`sklearn.linear_model.HuberRegressor`; the notes list the differences.

    Parameters
    ----------
    epsilon : float, default=1.35
        Residuals beyond this multiple of the scale are outliers, at least 1.
    max_iter : int, default=100
        Limit on the number of iterations.
    alpha : float, default=0.0001
        Strength of the penalty relative to the sum of the losses, non-negative.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-05
        Stop when the proven gap is at most ``tol`` times the objective.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : float
        Intercept; zero if ``fit_intercept=False``.
    scale_ : numpy.float64
        The scale of the residuals.
    outliers_ : ndarray of bool of shape (n_samples,)
        Whether residuals exceed ``epsilon * scale_``.
    objective_ : float
        Objective at coefficients and scale, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a lower bound on the optimum over coefficients and
        scale, proven up to rounding in float64; infinite with ``alpha=0``, where no
        bound is known.
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
    BMRMRegressor : Huber's loss of a given scale, other penalties and losses.

    Notes
    -----
    Differences from scikit-learn: ``tol`` is a proven relative gap, and the result
    depends on the units of X and y only through ``alpha``.

    The smallest scale is 1e-13 times the standard deviation of y. This scale is optimal
    if the residuals of at least the share ``1 - 1 / epsilon²`` of the rows are zero, as
    with nearly as many features as samples: the model then minimizes the absolute
    errors. ``dual_gap_`` may exceed ``tol`` without a warning if it is a rounding
    error: below 4e-13 times the sum of the weights and the standard deviation of y, or
    below 5e-7 times both if X is float32.

    References
    ----------
    P.J. Huber (1981), Robust Statistics: section 7.8. A.B. Owen (2007), A Robust Hybrid
    of Lasso and Ridge Regression, Contemporary Mathematics 443: eq. 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.linear_model import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=200)
    >>> y[:20] += 50.0
    >>> model = HuberRegressor().fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-5 * model.objective_)
    True
    >>> bool(model.outliers_[:20].all())
    True
    """

    _original = "sklearn.linear_model", "HuberRegressor"

    _instead_of: ClassVar[dict[str, str]] = {
        "C": " Its strength of regularization is alpha, against the sum of the losses."
    }

    loss = "huber"

    epsilon: float = 1.35
    max_iter: int = 100
    alpha: float = 0.0001
    warm_start: bool = False
    fit_intercept: bool = True
    tol: float = 1e-05

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        model = self._linear_model()
        # The median of y is subtracted from y and added to the intercept. This avoids
        # cancellation if y is large compared with its noise.
        level = float(np.median(y)) if model.fit_intercept else 0.0
        y = y - level
        deviation = y - (weights @ y if model.fit_intercept else 0.0)
        spread = float(np.sqrt(weights @ (deviation * deviation)))
        # The lower bound of the scale is about the rounding error of y, and at least
        # ten machine epsilons, as in scikit-learn.
        least = max(1e-13 * spread, 10.0 * EPS)
        # Gaps below four times the smallest scale are rounding errors. For coefficients
        # in float32, gaps below ROUNDED_32 times the spread of y are rounding errors
        # too.
        negligible = 4.0 * least
        if X.dtype == np.float32:
            negligible = max(negligible, ROUNDED_32 * spread)
        loss = DualLoss(ScaledHuber(float(self.epsilon), least, negligible))
        reading: Reading = SumAndSquares(total, level)
        if not self.alpha:
            bend = 2.0 / max(spread, least)
            given = {"bend": bend, "totals": [total], "level": level}
            reading = without_penalty(X, weights, model.fit_intercept, **given)
        data = model, X, [y], loss, weights
        return _Problem(*data, single=True, reading=reading)
