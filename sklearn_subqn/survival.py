"""Cox regression for times to events, with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._checks import (
    check_offset,
    check_option,
    check_sample_weight,
    names_of_rows,
)
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats, Indices
from ._core.losses import Cox, DualLoss
from ._core.names import check_same_rows
from ._estimators.block_methods import blockwise
from ._estimators.catalogue import BundleEstimator
from ._estimators.concordance import Concordance
from ._estimators.offsets import warn_of_missing_offset
from ._estimators.survival_errors import ProportionalityTest, proportionality
from ._estimators.survival_targets import survival_targets
from ._problems import LinearProblems
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback, Solution

_TIES = ("efron", "breslow")


@with_parameters()
class CoxRegression(BundleEstimator):
    """Cox's proportional hazards model with a proven optimality gap.

    The hazard of a sample is ``h(t) exp(<w, x>)`` with an unknown function h. Minimizes
    ``alpha * Omega(w)`` plus half of the mean deviance: the negative logarithm of the
    partial likelihood, minus its infimum, divided by the sum of the sample weights.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive, or 0 for no
        penalty. With "auto", a rule chooses it from the size and sparsity of the data,
        and each feature is penalized in its own scale, so that units do not matter, as
        in :class:`BMRMRanker`.
    ties : {"efron", "breslow"}, default="efron"
        The likelihood of events at the same time. With sample weights "efron" gives
        each of them their mean weight, as R's survival package does: then a sample of
        weight 2 equals two samples for "breslow", and for "efron" without ties.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``.
    l1_ratio : float, default=0.5
        For the elastic net, in [0, 1].
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in Omega, as in :class:`BMRMRegressor`.
    solver : str, default="auto"
        Optimization method. "auto" is Newton's method for L2, and for L1 and elastic
        nets a proximal Newton method, with many features on working sets of them.
        Other solvers are as in :class:`BMRMRegressor` for smooth losses.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same features.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2; None for no limit.
    solver_options : dict or None, default=None
        Further options of the solver by name; see `docs/methods.md`.
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
    coef_ : ndarray of shape (n_features,)
        Logarithms of the hazard ratios of the features, with the dtype of X.
    intercept_ : float
        Zero, since any constant belongs to the baseline hazard.
    event_times_ : ndarray of shape (n_times,)
        The distinct times of events in the training data.
    strata_ : ndarray of shape (n_strata,) or None
        Names of the strata, if there are any.
    baseline_cumulative_hazard_ : ndarray of shape (n_times,) or (n_strata, n_times)
        Breslow's estimate of the cumulative hazard at these times of a sample whose
        ``<w, x>``, with its offset, is ``baseline_score_``.
    baseline_score_ : float
        The weighted mean over the training samples that are at risk at some event.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors of the features in Omega.
    objective_ : float
        Objective at the coefficients.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
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
    CoxRegressionCV : The same model with a cross-validated ``alpha``.
    SurvivalCurvesDisplay : Plots of survival functions.
    BMRMRanker : Scores that order the rows of each query.
    BMRMRegressor : Poisson regression, with offsets for exposures.

    Notes
    -----
    The bound takes the gradient as the dual point, at which Fenchel's and Young's
    equality gives the conjugate of a sum of logarithms of sums of exponentials;
    convexity bounds the conjugate at its multiples. Without a penalty a step of
    Newton's method leads from there to a dual point that proves a bound. The value and
    the gradient of n sorted samples take a time of O(n), and O(n log n) if samples are
    observed from an entry on.

    References
    ----------
    D. R. Cox (1972), Regression Models and Life-Tables, JRSS B 34. N. Breslow (1974),
    Covariance Analysis of Censored Survival Data, Biometrics 30. B. Efron (1977), The
    Efficiency of Cox's Likelihood Function for Censored Data, JASA 72. F. E. Harrell et
    al. (1982), Evaluating the Yield of Medical Tests, JAMA 247. H. Uno et al. (2011),
    On the C-statistics for Evaluating Overall Adequacy of Risk Prediction Procedures
    with Censored Survival Data, Statistics in Medicine 30.

    P. Grambsch, T. Therneau (1994), Proportional Hazards Tests and Diagnostics Based on
    Weighted Residuals, Biometrika 81.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import CoxRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> time = rng.exponential(np.exp(-X @ [1.0, -0.5]))
    >>> event = time < 2.0
    >>> model = CoxRegression(alpha=0).fit(X, (np.minimum(time, 2.0), event))
    >>> model.coef_.round(1)
    array([ 0.9, -0.6])
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0]).round(1)
    array([[0.5, 0.3],
           [0.4, 0.2]])
    """

    loss = "cox"
    fit_intercept = False

    _penalties = ("l2", "l1", "elasticnet")
    _may_have_no_penalty = True

    alpha: float | str = "auto"
    _: KW_ONLY
    ties: str = "efron"
    penalty: str = "l2"
    l1_ratio: float = 0.5
    penalty_factor: Any = None
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
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        strata: Any = None,
        offset: Any = None,
        coef_init: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like, structured array, data frame or tuple of arrays
            Times and events of the samples: the columns (time, event), or (entry, time,
            event) for samples that are observed from ``entry`` on, of an array, a data
            frame or a tuple; or a structured array with a boolean and a numeric field,
            as in scikit-survival. Events are True or 1, censored samples False or 0. In
            a single column negative numbers are the times of censored samples.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.
        strata : array-like of shape (n_samples,), default=None
            Names of strata. Each stratum has its own baseline hazard.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to ``<w, x>``, like a feature with the coefficient 1.
        coef_init : array-like of shape (n_features,), default=None
            Initial coefficients. They affect the time of the fit, not the solution.

        Returns
        -------
        self : CoxRegression
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, no sample has an event, or the fit
            overflows. A previously fitted estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        UserWarning
            If the optimum does not use the features; the message says what to change.
        """
        self._fit(
            X, y, sample_weight, strata=strata, offset=offset, coef_init=coef_init
        )
        return self

    @blockwise
    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return the logarithms of the hazards relative to the baseline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``<w, x>``; samples with larger scores tend to have their event sooner.
        """
        check_same_rows(X, offset=offset)
        scores = self._raw_scores(X)
        warn_of_missing_offset(self, offset)
        return scores if offset is None else scores + check_offset(offset, len(scores))

    def predict_cumulative_hazard(
        self, X: Any, times: Any = None, *, strata: Any = None, offset: Any = None
    ) -> Floats:
        """Return the cumulative hazards of samples by Breslow's estimate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        times : array-like of shape (n_times,), default=None
            Times, by default ``event_times_``.
        strata : array-like of shape (n_samples,), default=None
            The strata of the samples, required after a fit with strata.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to ``<w, x>``.

        Returns
        -------
        hazards : ndarray of shape (n_samples, n_times)
            Zero before the first event, constant after the last one.

        Raises
        ------
        ValueError
            If strata are missing or unknown, or times are not numbers.
        """
        check_same_rows(X, strata=strata)
        check_is_fitted(self, "baseline_cumulative_hazard_")
        scores = np.asarray(self.predict(X, offset), dtype=np.float64)
        baseline = np.atleast_2d(self.baseline_cumulative_hazard_)
        if times is not None:
            times = np.asarray(times, dtype=np.float64)
            if times.ndim != 1 or np.isnan(times).any():
                raise ValueError("times must be a list of numbers.")
            places = np.searchsorted(self.event_times_, times, side="right")
            baseline = np.pad(baseline, ((0, 0), (1, 0)))[:, places]
        ratios = np.exp(scores - self.baseline_score_)
        return ratios[:, np.newaxis] * baseline[self._strata_of(strata, scores)]

    def predict_survival_function(
        self, X: Any, times: Any = None, *, strata: Any = None, offset: Any = None
    ) -> Floats:
        """Return the probabilities that samples have no event up to some times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        times : array-like of shape (n_times,), default=None
            Times, by default ``event_times_``.
        strata : array-like of shape (n_samples,), default=None
            The strata of the samples, required after a fit with strata.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to ``<w, x>``.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_times)
            Exponentials of minus the cumulative hazards.
        """
        given = {"strata": strata, "offset": offset}
        return np.exp(-self.predict_cumulative_hazard(X, times, **given))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        strata: Any = None,
        offset: Any = None,
        weights: str = "harrell",
    ) -> float:
        """Return the concordance of scores and times.

        It is the share of comparable pairs whose sample with the earlier event has the
        larger score; equal scores count a half. Pairs are comparable if the sample with
        the earlier time has an event then, and the other is under observation, in the
        same stratum. A sample censored at the time of an event is still at risk at that
        time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like, structured array, data frame or tuple of arrays
            Times and events, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; pairs have their products.
        strata : array-like of shape (n_samples,), default=None
            Names of strata; only samples of the same stratum are compared.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to ``<w, x>``.
        weights : {"harrell", "uno"}, default="harrell"
            Weights of pairs by time: equal weights (Harrell et al. 1982), or the
            inverse squares of the probabilities of not being censored before the event
            (Uno et al. 2011), estimated from these samples, all strata together.

        Returns
        -------
        score : float
            Between 0 and 1; 0.5 for scores that are all the same.

        Raises
        ------
        ValueError
            If y or weights are invalid, no pair is comparable, or an event follows a
            time at which all samples under observation are censored, so that Uno's
            weights are infinite.
        """
        check_option("weights", weights, ("harrell", "uno"))
        check_is_fitted(self)
        given = X, y, sample_weight, strata, offset
        X, targets, shares = self._read(*given, reset=False)
        warn_of_missing_offset(self, offset)
        scores = np.asarray(self._scores(X), dtype=np.float64)
        return Concordance(targets, shares, weights == "uno")(scores)

    def proportionality_test(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        strata: Any = None,
        offset: Any = None,
        transform: str = "rank",
    ) -> ProportionalityTest:
        """Test whether hazards stay proportional, by Schoenfeld's residuals.

        As in Grambsch and Therneau (1994), the variance of the residuals is taken as
        the same at all times. The function ``cox.zph`` of R's survival package has a
        score test with the variance at each time since version 3, and other statistics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training samples.
        y : array-like, structured array, data frame or tuple of arrays
            Times and events, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            The sample weights of the fit.
        strata : array-like of shape (n_samples,), default=None
            The strata of the fit.
        offset : float or array-like of shape (n_samples,), default=None
            The offsets of the fit.
        transform : {"rank", "identity", "log"}, default="rank"
            The function of time with which coefficients may change.

        Returns
        -------
        test : ProportionalityTest
            A named tuple of ``features``, their ``statistics`` and ``p_values``, the
            ``statistic`` and ``p_value`` of all together, ``residuals`` and ``times``.

        Raises
        ------
        ValueError
            If data or options are invalid, all events have the same time, or one has
            time zero with "log".
        """
        check_option("transform", transform, ("rank", "identity", "log"))
        check_is_fitted(self)
        given = X, y, sample_weight, strata, offset, transform
        return proportionality(self, *given)

    def _strata_of(self, strata: Any, scores: Floats) -> Indices:
        """Return the number of the stratum of each row."""
        if self.strata_ is None:
            if strata is not None:
                raise ValueError("The model was fitted without strata.")
            return np.zeros(len(scores), dtype=np.intp)
        if strata is None:
            raise ValueError("The model was fitted with strata; give those of X.")
        names, numbers = names_of_rows("strata", strata, len(scores))
        known = {name: i for i, name in enumerate(self.strata_.tolist())}
        unknown = [name for name in names.tolist() if name not in known]
        if unknown:
            raise ValueError(f"strata has names that fit did not have: {unknown[:5]}.")
        return np.array([known[name] for name in names.tolist()])[numbers]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("ties", self.ties, _TIES)

    def _instead(self) -> str:
        return "the features do not show which samples have their events sooner"

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, **others: Any
    ) -> LinearProblems:
        return self._problems(*self._read(X, y, sample_weight, **others))

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        strata: Any,
        offset: Any,
        reset: bool = True,
    ) -> tuple[Any, Floats, Floats]:
        """Return checked rows, their targets and weights; see ``Cox`` for targets."""
        by_row = {"sample_weight": sample_weight, "strata": strata, "offset": offset}
        check_same_rows(X, y=y, **by_row)
        X = self._check_X(X, reset=reset)
        n = X.shape[0]
        targets, names = survival_targets(y, n, strata, offset)
        if reset:
            self.strata_ = names
        return X, targets, check_sample_weight(sample_weight, n)

    def _problems(self, X: Any, targets: Floats, weights: Floats) -> LinearProblems:
        if not np.any((targets[:, 2] > 0.0) & (weights > 0.0)):
            raise ValueError("There are no events: all samples are censored.")
        model, loss = self._linear_model(), DualLoss(Cox(self.ties))
        return LinearProblems(model, X, [targets], loss, weights, single=True)

    def _store(self, problems: Any, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        scores = np.asarray(self._scores(problems.rows.X), dtype=np.float64)
        given = *problems.targets, problems.weights
        sums = problems.loss.oracle.sums_at(scores, *given)
        times = sums.times
        self.event_times_, places = np.unique(times.times, return_inverse=True)
        n_strata = 1 if self.strata_ is None else len(self.strata_)
        steps = np.zeros((n_strata, len(self.event_times_)))
        mean = float(np.average(sums.z, weights=times.weights))
        # Without an optimum, scores are unbounded and exponentials may overflow.
        with np.errstate(over="ignore"):
            rates = np.exp(mean - sums.logs[times.starts[1:] - 1])
        steps[times.strata, places] = times.event_weights * rates
        hazards = np.cumsum(steps, axis=1)
        self.baseline_score_ = sums.center + mean
        self.baseline_cumulative_hazard_ = (
            hazards[0] if self.strata_ is None else hazards
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
