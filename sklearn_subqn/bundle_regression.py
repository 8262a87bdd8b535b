"""Regression with any convex loss and a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ._checks import (
    as_numpy,
    as_sample_weights,
    check_no_times,
    check_number,
    check_offset,
    check_option,
    check_sample_weight,
    check_targets,
    warn_of_unused,
)
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats
from ._core.losses import AnyLoss, regression_losses
from ._core.names import Axis, check_same_rows, column_names
from ._estimators.block_methods import blockwise, scored
from ._estimators.catalogue import BundleEstimator
from ._estimators.estimator import loss_name
from ._estimators.offsets import warn_of_missing_offset
from ._estimators.predictions import variance_power
from ._estimators.regression_losses import (
    EPSILON,
    check_domain,
    check_power,
    made_loss,
)
from ._estimators.regressor import ScoringRegressor
from ._features.strength import Rule, rule_of_means, rule_of_numbers
from ._problems import LinearProblems
from ._problems.quantiles import (
    CROSSING,
    QuantileProblems,
    check_quantiles,
    mean_d2,
    uncrossed,
)
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback


@with_parameters()
class BMRMRegressor(ScoringRegressor, BundleEstimator):
    """Linear regression with any convex loss and a proven optimality gap.

    Minimizes ``alpha * Omega(w) + sum_i s_i loss_i / sum_i s_i``, separately for each
    column of y, and reports a proven bound on the distance from the optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive, or 0 for no
        penalty. With "auto", a rule chooses it from the size and sparsity of the data,
        and each feature is penalized in its own scale, so that units do not matter: see
        ``alpha_``, ``penalty_factor_`` and the notes.
    loss : str or Loss, default="squared_error"
        With the residual ``r = y - f(x)``:

        - "squared_error": ``r² / 2``; with ``metric`` M, ``rᵀ M r / 2`` of all columns;
        - "absolute_error": ``|r|``;
        - "quantile": ``quantile * max(r, 0) + (1 - quantile) * max(-r, 0)``;
        - "epsilon_insensitive": ``max(0, |r| - epsilon)``;
        - "squared_epsilon_insensitive": ``max(0, |r| - epsilon)²``;
        - "huber": ``r² / 2`` for ``|r| <= epsilon``, else linear;
        - "poisson": ``m - y ln m`` with the prediction ``m = exp(f(x))``, for counts or
          rates ``y >= 0``;
        - "gamma": ``y / m + ln m`` with the same, for ``y > 0``;
        - "tweedie": ``y m**(1 - power) / (power - 1) + m**(2 - power) / (2 - power)``
          with the same, for ``y >= 0``: amounts that are often zero;
        - or a user-defined loss, see the user guide.
    penalty : {"l2", "l1", "elasticnet", "lp", "quadratic", "entropy", \
            "normalized_entropy", "group", "group_elasticnet", "sparse_group"}, \
            default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``; ``||w||_p² / 2``; ``wᵀ B w / 2``; ``sum_j w_j ln w_j - w_j`` for
        non-negative w; ``sum_j w_j ln w_j`` for w on the unit simplex. With ``groups``
        g of features and their factors f: ``sum_g f_g ||w_g||``; ``sum_g f_g (l1_ratio
        * ||w_g|| + (1 - l1_ratio) / 2 * ||w_g||²)``; ``l1_ratio * ||w||_1 + (1 -
        l1_ratio) * sum_g f_g ||w_g||``. The coefficients of all scores of a joint loss
        belong to the group of their feature.
    l1_ratio : float, default=0.5
        For the elastic nets and "sparse_group", in [0, 1].
    p : float, default=1.5
        For "lp", in (1, 10].
    penalty_matrix : array-like of shape (n_features, n_features), default=None
        B for "quadratic", symmetric and positive semidefinite, such as DᵀD for
        differences D of neighboring levels; with ``metric`` definite, for the
        coefficients of all columns of y, feature by feature. A data frame whose rows
        and columns are named by features is matched by names.
    groups : array-like, list, dict, "categories" or None, default=None
        Groups of the features: a label for each; or lists of names or numbers of
        features, perhaps in a dict by the names of groups, where other features are
        groups of their own; or "categories", for which features of zeros and ones whose
        names agree up to the last "_" are a group, as the dummies of one-hot encoders.
        With None each feature is a group.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in Omega, by default ones: ``f_j w_j²`` replaces
        ``w_j²`` with penalty="l2", and ``f_j w_j`` replaces ``w_j`` with "l1",
        "elasticnet" and "lp". With ``alpha="auto"`` the factors multiply the scales of
        the features. A dict or Series is matched by feature names; missing features
        have the factor 1. With groups: factors of the groups, in ascending order of
        labels or in the order of the lists, or a dict or Series by their names; by
        default the root of the number of features of the group. A group with the factor
        zero has no penalty at all, also no L1 norm.
    positive : bool, default=False
        Whether coefficients are non-negative; the intercept is unrestricted.
    coef_bounds : pair (low, high) or None, default=None
        Bounds of the coefficients, each a number, None for no bound, or one number for
        each feature: an array, or a dict or Series by feature names, in which missing
        features have no bound. Zero has to be between both bounds. Both parameters are
        for losses of one score per sample with penalty="l2" or an elastic net with
        ``l1_ratio < 1``, or ``alpha=0``, and the solvers "auto", "ls-bmrm" and "bmrm",
        and for smooth losses "fista" and "ista"; with groups bounds are 0 or None.
    coef_constraints : pair (A, b) or None, default=None
        Inequalities ``A w <= b`` of the coefficients w: A is an array of shape
        (n_constraints, n_features), or a data frame whose columns are the names of the
        features, and b has one non-negative number for each row of A. For losses of one
        score per sample with penalty="l2" and ``alpha > 0``.
    quantile : float or list of float, default=0.5
        For "quantile", in (0, 1). With a list of k quantiles, in any order, each is
        fitted starting at the solution of the next lower one, and predictions have k
        columns.
    crossing : {"sort", "allow"}, default="sort"
        Treatment of predictions of several quantiles that cross: "sort" sorts the
        predictions of each sample, which never increases its total pinball loss.
    epsilon : float or None, default=None
        Half-width of the tube of "epsilon_insensitive" and its square, non-negative, by
        default 0.1; or the residual above which "huber" is linear, positive, by default
        1.35. Both are in units of the target.
    power : float, default=1.5
        For "tweedie", in (1, 2): variances are proportional to this power of the mean.
        The power of "poisson" is 1, the power of "gamma" is 2.
    metric : array-like of shape (n_targets, n_targets), default=None
        M of squared errors, symmetric and positive semidefinite. A data frame is
        matched by names to the columns of y.
    solver : str, default="auto"
        Optimization method.

        - "auto": for L2 "newton-cg" for smooth losses, and for piecewise linear losses
          "alm", after a start that depends on the shape of the data; for L1 and elastic
          net coordinate descent on quadratic models, of envelopes around dual variables
          where the loss has kinks, and for groups block coordinate descent; else
          "ls-bmrm".
        - "ls-bmrm": the bundle method with line search; takes any loss and penalty.
        - "bmrm", "bmrm-aggregated", "proximal-bundle", "trust-region-bundle": other
          bundle methods.
        - "sublbfgs", "subbfgs"; "lbfgs", "bfgs", "cg" for smooth losses: with
          differentiable penalties, as in :class:`SubLBFGSLinearSVC`.
        - "alm" for piecewise linear losses with L2; "newton-cg" and "trust-region" for
          smooth losses with L2.
        - "cd": coordinate descent on quadratic models of smooth losses; "cyclic-cd":
          of squared errors, one coefficient after the other: with L1, L2 and both.
        - "fista", "ista": proximal gradient descent for smooth losses, accelerated or
          not, with L1, L2, both, and bounds of coefficients.
        - "owlqn", "owlqn*": orthant-wise quasi-Newton methods for smooth losses, with
          an L1 norm.
        - "subgradient": the subgradient method; the result is its best point.

        The table in `docs/solvers.md` lists the losses and penalties of each solver; an
        error names the solvers for a loss and a penalty.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the absolute value of the
        objective; for "poisson", "gamma" and "tweedie" ``tol`` is relative to half the
        mean deviance plus the penalty, which differs from the objective by a constant.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same numbers of
        features and of columns of y or quantiles.
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
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True. With
        several problems the numbers belong to the problem being solved.
    verbose : int, default=0
        If 1, print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds;
        if larger, at every iteration, after lines that explain the choice of ``plan_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Weights of the features, with the dtype of X. Quantiles of a list count as
        targets, in the given order, here and below.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercepts; zero if ``fit_intercept=False``.
    alpha_ : float or ndarray of shape (n_targets,)
        Strength of the penalty in the fit, one for each column of y if they differ.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in Omega: ``penalty_factor``, times the scales of the
        features with ``alpha="auto"``. With ``penalty="l2"`` they are factors of
        ``w_j²``.
    objective_ : float or ndarray of shape (n_targets,)
        Objective at the coefficients; one number with ``metric``.
    dual_gap_ : float or ndarray of shape (n_targets,)
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations, the largest of all problems.
    history_ : list of History
        For each problem the objective, lower bound, passes over the data and seconds
        after each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str or list of str
        The plan that solver="auto" chose, or the solver; one for each of several
        problems.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRegressorCV : The same model with ``alpha`` chosen by cross-validation.
    BMRMClassifier, BMRMOutlierDetector : The losses of classification and of novelty.

    Notes
    -----
    A sample of weight 2 is equivalent to two samples, a sample of weight 0 to none.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k u d / n`` for an L2 penalty and ``k u
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, k depends on the loss,
    and u on the unit of y; the user guide lists them. Large dense data are not copied
    for the scales, but the entries of sparse data are.

    References
    ----------
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 2-4, Tables 5 and 6, Appendix C.
    V. Chernozhukov, I. Fernández-Val, A. Galichon (2010), Quantile and Probability
    Curves Without Crossing, Econometrica 78: sorted quantiles, section 2.
    M. Yuan, Y. Lin (2006), Model Selection and Estimation in Regression with Grouped
    Variables, JRSS B 68: "group".
    N. Simon, J. Friedman, T. Hastie, R. Tibshirani (2013), A Sparse-Group Lasso, JCGS
    22: "sparse_group", eq. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + rng.exponential(size=200)
    >>> model = BMRMRegressor(loss="quantile", quantile=0.9, alpha=1e-6).fit(X, y)
    >>> round(float(np.mean(y <= model.predict(X))), 1)
    0.9
    >>> model = BMRMRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], alpha=1e-6)
    >>> model.fit(X, y).predict(X).shape
    (200, 3)
    """

    _checks_itself = ("quantile", "epsilon", "power")

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    loss: str | AnyLoss = "squared_error"
    penalty: str = "l2"
    l1_ratio: float = 0.5
    p: float = 1.5
    penalty_matrix: Any = None
    groups: Any = None
    penalty_factor: Any = None
    positive: bool = False
    coef_bounds: Any = None
    coef_constraints: Any = None
    quantile: Any = 0.5
    crossing: str = "sort"
    epsilon: float | None = None
    power: float = 1.5
    metric: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
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
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> BMRMRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy. Dask arrays and dataframes stay where they are, with ``y``,
            ``sample_weight`` and ``offset`` in the same blocks; :class:`RowBlocks` are
            read in blocks. Both are for losses by name that are sums over samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to f(x), for all columns of y, like a feature with
            the coefficient 1. For losses by name. For losses with predictions
            ``exp(f(x))`` the offset is the logarithm of the exposure, such as the time
            in which events were counted.
        coef_init : array-like, default=None
            Initial coefficients, of the shape of ``coef_``, or (n_features,) if it has
            one row. They take precedence over a warm start. They affect the time of the
            fit, not the solution.
        intercept_init : array-like, default=None
            Initial intercepts, of the shape of ``intercept_``.

        Returns
        -------
        self : BMRMRegressor
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
        self._fit(X, y, sample_weight, coef_init, intercept_init, offset=offset)
        return self

    @blockwise
    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to f(x), by default zero. A model that was fitted
            with an offset warns if ``offset`` is None; pass 0 to avoid the warning.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means ``exp(f(x))`` for the losses "poisson", "gamma" and "tweedie". For a
            list of quantiles the shape is (n_samples, n_quantiles), in the order of the
            list.
        """
        check_is_fitted(self)
        check_same_rows(X, offset=offset)
        warn_of_missing_offset(self, offset)
        X = self._check_X(X, reset=False)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True)
        scores += self.intercept_
        if offset is not None:
            added = check_offset(offset, X.shape[0])
            scores += added[:, np.newaxis] if scores.ndim > 1 else added
        if self._fits_several_quantiles() and self.crossing == "sort":
            return uncrossed(scores, self.quantile)
        return scores if variance_power(self) is None else np.exp(scores, out=scores)

    @scored
    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> float:
        """Return the share of the variation of y that predictions explain.

        This is the coefficient of determination R², as in all regressors of
        scikit-learn, also for one quantile. For ``loss="poisson"``, "gamma" and
        "tweedie" it is the analogous D² of the deviance, as in
        :class:`~sklearn.linear_model.PoissonRegressor`. For several columns of y it is
        the mean. For a list of quantiles it is the mean of their D² for pinball losses
        (:func:`~sklearn.metrics.d2_pinball_score`).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to f(x), and to the constant model in the comparison.
            A model that was fitted with an offset warns if ``offset`` is None; pass 0
            to avoid the warning.

        Returns
        -------
        score : float
            At most 1; 0 for the best constant.
        """
        check_same_rows(X, y=y, sample_weight=sample_weight, offset=offset)
        if offset is not None:
            y, sample_weight = self._without_offset(y, sample_weight, offset)
            offset = 0.0
        predictions = self.predict(X, offset)
        if self._fits_several_quantiles():
            y, sample_weight = as_numpy(y), as_numpy(sample_weight)
            check_no_times(y)
            return mean_d2(y, predictions, self.quantile, sample_weight)
        return self._score_of(predictions, y, sample_weight)

    def _without_offset(
        self, y: Any, sample_weight: Any, offset: Any, largest: float | None = None
    ) -> Any:
        """Return targets and weights for which the score without offsets is the same.

        The deviance of y from means m exp(o) equals the deviance of y exp(-o) from m
        with weights multiplied by exp((2 - power) o).
        """
        y = check_targets(y)
        offset = check_offset(offset, len(y))
        added = offset.reshape(-1, *[1] * (y.ndim - 1))
        power = variance_power(self)
        if power is None:
            return y - added, sample_weight
        weights = as_sample_weights(sample_weight, len(y))
        # A common factor of all weights has no effect, and this one avoids overflow.
        largest = offset.max() if largest is None else largest
        weights *= np.exp((2.0 - power) * (offset - largest))
        return y * np.exp(-added), weights

    def _fits_several_quantiles(self) -> bool:
        return self.loss == "quantile" and np.ndim(self.quantile) > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = not self._fits_several_quantiles()
        tags.target_tags.positive_only = variance_power(self) is not None
        return tags

    def _check_parameters(self) -> None:
        if not isinstance(self.loss, AnyLoss):
            check_option("loss", self.loss, list(regression_losses()))
        super()._check_parameters()
        if self.loss == "quantile":
            check_quantiles(self.quantile)
            check_option("crossing", self.crossing, CROSSING)
        if self.loss in [*EPSILON] and self.epsilon is not None:
            positive = self.loss == "huber"
            check_number("epsilon", self.epsilon, low=0.0, low_included=not positive)
        if self.loss == "tweedie":
            check_power(self.power)
        warn_of_unused(
            self,
            {
                "quantile": (0.5, "loss", ["quantile"]),
                "crossing": ("sort", "loss", ["quantile"]),
                "power": (1.5, "loss", ["tweedie"]),
                "epsilon": (None, "loss", EPSILON),
            },
        )
        if self.metric is not None and self.loss != "squared_error":
            raise ValueError("metric is for loss='squared_error' only.")

    def _rule(self, target: Any, weights: Floats) -> Rule:
        power = variance_power(self)
        if power is not None:
            # Offsets are in the second column of the targets.
            y = target if target.ndim == 1 else target[:, 0]
            return rule_of_means(power, y, weights)
        if not isinstance(self.loss, str):
            return rule_of_numbers(self.loss, target, weights)
        own = self.epsilon if self.loss in EPSILON else None
        epsilon = EPSILON["huber"] if own is None else float(own)
        loss = regression_losses(epsilon=epsilon)[self.loss]
        return rule_of_numbers(loss, target, weights, has_name=True)

    def _check_collection(self) -> None:
        if not isinstance(self.loss, str) or self._fits_several_quantiles():
            raise ValueError(
                "Data in blocks need a loss by name, and a single quantile; got "
                f"loss={loss_name(self.loss)}, quantile={self.quantile!r}."
            )

    def _instead(self) -> str:
        has_tube = "epsilon_insensitive" in str(self.loss)
        tube = "decrease epsilon, or " if has_tube else ""
        return f"{tube}the features do not help to predict y by this loss"

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, **others: Any
    ) -> LinearProblems:
        """Return a problem for each column of y, or one problem for a joint loss."""
        names = column_names(y)
        X, y = self._checked(X, y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        offset = self._checked_offset(offset, len(y))
        return self._problems(X, y, weights, names, offset)

    def _checked_offset(self, offset: Any, n: int, classes: Any = None) -> Any:
        if offset is None:
            return None
        if not isinstance(self.loss, str):
            raise ValueError(
                f"offset is for losses by name; got loss={loss_name(self.loss)}."
            )
        return check_offset(offset, n)

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        X, y = self._check_X(X, y, reset=reset, several=True)
        if sparse.issparse(y):
            raise ValueError("Sparse y is not supported; pass an array.")
        return X, check_domain(self, check_targets(y))

    def _problems(
        self, X: Any, y: Any, weights: Any, names: Any = None, offset: Any = None
    ) -> LinearProblems:
        """Return the problems for validated data; ``names`` are column names of y."""
        y, offset = self._less_offset(y, offset)
        if self._fits_several_quantiles():
            return self._quantile_problems(X, y, weights)
        single = y.ndim == 1
        n_targets = 1 if single else y.shape[1]
        loss = made_loss(self, n_targets, Axis("columns of y", names))
        model = self._linear_model()
        if loss.joint:
            Y = np.ascontiguousarray(y.reshape(len(y), -1))
            return LinearProblems(
                model, X, [Y], loss, weights, n_scores=n_targets, single=single
            )
        targets = [y] if single else list(np.ascontiguousarray(y.T))
        if offset is not None:
            loss = loss.with_offsets()
            targets = [np.column_stack([column, offset]) for column in targets]
        return LinearProblems(
            model,
            X,
            targets,
            loss,
            weights,
            outputs=range(n_targets),
            output="column {} of y",
            single=single,
        )

    def _less_offset(self, y: Any, offset: Any) -> tuple[Any, Any]:
        if offset is None or variance_power(self) is not None:
            return y, offset
        return (y.T - offset).T, None

    def _quantile_problems(self, X: Any, y: Any, weights: Any) -> QuantileProblems:
        """Return a problem for each quantile of one column of y."""
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError(
                f"A list of quantiles needs y of one column; got {y.shape[1]} columns. "
                "Fit an estimator to each column."
            )
        quantiles = [float(quantile) for quantile in self.quantile]
        return QuantileProblems(
            self._linear_model(), X, y.reshape(len(y)), weights, quantiles
        )
