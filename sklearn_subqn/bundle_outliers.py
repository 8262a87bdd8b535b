"""Detection of outliers with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from ._checks import check_number, check_sample_weight
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats
from ._core.losses import NOVELTY_LOSS
from ._estimators.block_methods import blockwise
from ._estimators.catalogue import PENALTIES, BundleEstimator
from ._problems import LinearModel, LinearProblems
from ._problems.nu import NuProblem, weighted_quantile
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback, Solution

# Share of outliers if neither ``nu`` nor ``alpha`` is given. docs/constants.md has the
# figures.
_NU = 0.1
_NU_SOLVERS = ("auto", "alm")


class _NoveltyProblem(LinearProblems):
    """The problem of an outlier detector, which also computes an offset.

    Parameters
    ----------
    model, X, weights
        See ``LinearProblems``.
    contamination : "auto" or float
        Share of outliers among the rows.
    """

    def __init__(
        self, model: LinearModel, X: Any, weights: Floats, *, contamination: Any
    ) -> None:
        self._contamination = contamination
        super().__init__(model, X, [np.ones(X.shape[0])], NOVELTY_LOSS, weights)

    def attributes(self) -> dict[str, Any]:
        offset, share = 1.0, self._contamination
        if share != "auto":
            scores = self.design.forward(self.starts[0].w)
            offset = weighted_quantile(scores, self.weights, float(share))
        return {**super().attributes(), "offset_": offset}


@with_parameters()
class BMRMOutlierDetector(OutlierMixin, BundleEstimator):
    """Linear one-class support vector machine with a proven optimality gap.

    The half-space ``<w, x> >= rho``, which does not contain the origin, contains most
    samples. There is no intercept. With ``nu``, the share of samples outside, the
    objective is ``alpha / 2 * ||w||² - nu * rho + sum_i s_i max(0, rho - <w, x_i>) /
    sum_i s_i``, minimized over w and rho; with ``alpha`` alone it is ``alpha * Omega(w)
    + sum_i s_i max(0, 1 - <w, x_i>) / sum_i s_i``, for a margin of one.

    Parameters
    ----------
    alpha : float or None, default=None
        Strength of the penalty relative to the *mean* loss, positive. Without ``nu``, a
        smaller ``alpha`` means fewer outliers, depending on the scale of the features.
        With ``nu`` it only scales w and rho, by ``1 / alpha``, and None means 1.
    nu : float or None, default=None
        Share of outliers, by weight, in (0, 1]: at most this share of the training
        samples is outside of the half-space, and at least this share outside or on its
        boundary. It needs penalty="l2" and solver="auto" or "alm". None means 0.1 if
        ``alpha`` is None and these conditions hold; otherwise the margin is one, and
        ``alpha`` is 1e-4 unless it is given.
    contamination : "auto" or float, default="auto"
        Share of the training samples, by weight, that are outliers, in (0, 0.5]; "auto"
        counts the samples outside of the half-space.
    penalty : {"l2", "l1", "elasticnet", "lp", "quadratic", "entropy", \
            "normalized_entropy"}, default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``; ``||w||_p² / 2``; ``wᵀ B w / 2``; ``sum_j w_j ln w_j - w_j`` for
        non-negative w; ``sum_j w_j ln w_j`` for w on the unit simplex.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    p : float, default=1.5
        For "lp", in (1, 10].
    penalty_matrix : array-like of shape (n_features, n_features), default=None
        B for "quadratic", symmetric and positive semidefinite. A data frame whose rows
        and columns are named by features is matched by names.
    solver : str, default="auto"
        Optimization method.

        - "auto": for L2 "alm", after a start that depends on the shape of the data; for
          L1 and elastic net coordinate descent on quadratic models of envelopes around
          dual variables; else "ls-bmrm".
        - "ls-bmrm": the bundle method with line search; takes any penalty.
        - "bmrm", "bmrm-aggregated", "proximal-bundle", "trust-region-bundle": other
          bundle methods.
        - "sublbfgs", "subbfgs" with differentiable penalties, "alm" with L2, as in
          :class:`SubLBFGSLinearSVC`.
        - "subgradient": the subgradient method, as in :class:`BMRMRegressor`.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the absolute value of the
        objective.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2, including the
        aggregate cut; None for no limit. Cuts inactive for 10 iterations are always
        removed. With penalty="l1" a small bundle may not suffice to reach ``tol``, and
        the method may end early with a warning.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        If 1, print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds;
        if larger, at every iteration, after lines that explain the choice of ``plan_``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, with the dtype of X.
    intercept_ : ndarray of shape (1,)
        Zero.
    offset_ : float
        Samples with smaller scores are outliers. The offset is rho, or 1 without
        ``nu``; with ``contamination`` it is the corresponding quantile of the training
        scores.
    objective_ : float
        Objective at the coefficients.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations. With ``nu`` each iteration is a fit with another strength.
    history_ : list of History
        One, with the objective, lower bound, passes over the data and seconds after
        each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str
        The plan that solver="auto" chose, or the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    sklearn.linear_model.SGDOneClassSVM : The same by stochastic gradients, with the
        offset among the parameters.

    References
    ----------
    B. Schölkopf et al. (2001), Estimating the Support of a High-dimensional
    Distribution, Neural Computation 13. C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le
    (2010), Bundle Methods for Regularized Risk Minimization, JMLR 11: Table 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(loc=3.0, size=(200, 2))
    >>> detector = BMRMOutlierDetector(contamination=0.05).fit(X)
    >>> detector.predict([[3.0, 3.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    loss = "novelty"
    _penalties = PENALTIES
    _checks_itself = ("alpha",)
    fit_intercept = False

    alpha: float | None = None
    _: KW_ONLY
    nu: float | None = None
    contamination: str | float = "auto"
    penalty: str = "l2"
    l1_ratio: float = 0.5
    p: float = 1.5
    penalty_matrix: Any = None
    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    memory: int = 15
    bundle_size: int | None = None
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : object
            Ignored.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.

        Returns
        -------
        self : BMRMOutlierDetector
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
            If the optimum does not use the features; the message says what to change.
        """
        return self._fit(X, y, sample_weight)

    @blockwise
    def score_samples(self, X: Any) -> Array:
        """Return the scores <w, x> of samples; samples with small scores are abnormal.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Larger scores mean more normal samples.
        """
        return self._raw_scores(X).ravel()

    @blockwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores minus ``offset_``, negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Positive for inliers, negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    @blockwise
    def predict(self, X: Any) -> Array:
        """Return 1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def _share(self) -> float | None:
        """Return nu, or None for the problem with a margin of one."""
        if self.nu is not None or self.alpha is not None:
            return self.nu
        fits = self.penalty == "l2" and self.solver in _NU_SOLVERS
        return _NU if fits else None

    def _strength(self, *data: Any) -> float:
        if self.alpha is None:
            return 1e-4 if self._share() is None else 1.0
        return float(self.alpha)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_number("alpha", self.alpha, low=0.0, low_included=False)
        if self.nu is not None:
            check_number(
                "nu", self.nu, low=0.0, low_included=False, high=1.0, high_included=True
            )
            needed = {"penalty": ("l2",), "solver": _NU_SOLVERS}
            for name, accepted in needed.items():
                if getattr(self, name) not in accepted:
                    options = " or ".join(f"{name}={value!r}" for value in accepted)
                    raise ValueError(
                        f"nu needs {options}, got {name}={getattr(self, name)!r}."
                    )
        share = self.contamination
        if not isinstance(share, str):
            check_number("contamination", share, low=0.0, low_included=False, high=0.5)
        elif share != "auto":
            raise ValueError(
                f"contamination must be 'auto' or in (0, 0.5], got {share!r}."
            )

    def _instead(self) -> str:
        return (
            "the samples cannot be separated from the origin: do not center the "
            "features, or take sklearn.svm.OneClassSVM with a kernel"
        )

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, **others: Any
    ) -> LinearProblems:
        X = self._check_X(X, reset=True)
        weights = check_sample_weight(sample_weight, X.shape[0])
        nu = self._share()
        if nu is not None:
            return NuProblem(self._linear_model(), X, weights, float(nu))
        return _NoveltyProblem(
            self._linear_model(), X, weights, contamination=self.contamination
        )

    def _store(self, problems: Any, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        share = self._share() if self.contamination == "auto" else self.contamination
        if share is not None:
            # The scores have the same rounding as in predictions.
            scores = self._scores(problems.rows.X).ravel()
            self.offset_ = weighted_quantile(scores, problems.weights, float(share))
