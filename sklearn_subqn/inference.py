"""Standard errors and confidence intervals of the coefficients of fitted models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._certified.other_objectives import has_objective, last_step, objective_of
from ._checks import check_number, check_option
from ._estimators.diagnostics import leverages_of, residuals_of
from ._estimators.fit_statistics import (
    FitStatistics,
    LikelihoodRatioTest,
    TweedieProfile,
    compared,
    profile,
    statistics_of,
)
from ._estimators.inferred import (
    ErrorOptions,
    FittedModel,
    coefficient_errors,
    fitted_attributes,
    read_model,
)
from ._estimators.marginal_effects import effects_of
from ._estimators.offsets import warn_of_missing_offset
from ._estimators.survival_errors import hazard_errors
from ._inference import CoefficientErrors
from ._solving.solution import Floats
from .survival import CoxRegression

__all__ = [
    "CoefficientErrors",
    "fit_statistics",
    "leverages",
    "likelihood_ratio_test",
    "marginal_effects",
    "residuals",
    "standard_errors",
    "tweedie_power",
]


def standard_errors(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    kind: str = "auto",
    groups: Any = None,
    offset: Any = None,
    dispersion: float | str | None = None,
    weights: str = "precision",
    strata: Any = None,
    reference: Any = None,
    feature_names: Any = None,
    estimator: Any = None,
    n_resamples: int = 200,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> CoefficientErrors:
    """Return the standard errors of the coefficients of a linear model.

    For models of squared errors, the log loss, Poisson, gamma and Tweedie regressions,
    quantiles, and other losses that are sums of smooth functions of one score per
    sample, such as the squared hinge and Huber's loss. Also for ordered classes by
    "ordinal_all_threshold" and "ordinal_immediate_threshold", with the thresholds, by
    sandwiches: these losses compare a class with several thresholds as if the
    comparisons were independent. Also for Cox's model: "fisher"
    takes the second derivatives of the partial likelihood, other kinds the score
    residuals of Lin and Wei (1989).

    Parameters
    ----------
    model : estimator instance
        Fitted estimator of this package, or of scikit-learn if :func:`dual_gap`
        supports it; or a pipeline that ends with one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples. Dask arrays and dataframes, and :class:`RowBlocks`, are
        accepted as well.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the samples, unless they are part of ``RowBlocks``.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit.
    kind : str, default="auto"
        Method for the covariance:

        - "fisher": as if the model were true, for losses that are likelihoods; of
          quantiles as if residuals had the same density in all rows;
        - "HC0": by the products of the residuals, whatever their variances (the
          sandwich of Huber 1967 and White 1980); of quantiles with one density;
        - "HC1": the same times n / (n - p) with p coefficients;
        - "HC2", "HC3": by residuals divided by 1 - h, or by its square, with leverages
          h of the samples by observed second derivatives (MacKinnon and White 1985),
          for one score per sample;
        - "cluster": likewise for sums of rows with the same name in ``groups``
          (Liang and Zeger 1986), times G / (G - 1) (n - 1) / (n - p) for G clusters;
        - "powell": for quantiles, with densities of residuals at zero in each row by a
          kernel (Powell 1991) of Hall's and Sheather's width;
        - "bootstrap": by refits to rows with exponential random weights (Rubin 1981),
          each starting at the previous solution;
        - "auto": "cluster" with ``groups``; else "powell" for quantiles, "fisher" for
          likelihoods, and "HC0" for other losses.
    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Names of at least two clusters: rows of the same cluster may be correlated. With
        two columns, for kind="cluster", rows that share a cluster of either may be
        correlated (Cameron, Gelbach and Miller 2011). Clusters in which all rows have
        weight zero are ignored.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit.
    dispersion : float or "X2", default=None
        Factor of the variances for ``kind="fisher"``, positive. "X2" is Pearson's
        statistic per degree of freedom, the default except for the log loss and for
        Poisson regression, where the default is 1: overdispersed counts need "X2" or
        "HC0".
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``. "precision": a sample with weight 2 has half the
        variance of a sample with weight 1, like a mean over two years. "frequency": a
        sample with weight 2 stands for two equal samples.
    strata : array-like of shape (n_samples,), default=None
        The strata of the fit of a :class:`CoxRegression`.
    reference : class, default=None
        For the multinomial log loss: the class from which differences are taken. By
        default the coefficients sum to zero over classes.
    feature_names : array-like of shape (n_features,), default=None
        Names of the features; by default ``feature_names_in_``, or x0, x1, ...
    estimator : estimator instance, default=None
        An estimator of this package whose parameters define the objective of the model,
        by default derived from ``model``.
    n_resamples : int, default=200
        Number of refits of the bootstrap.
    n_jobs : int, default=None
        Number of processes for the refits, as in joblib.
    random_state : int, RandomState instance or None, default=None
        Seed of the weights of the bootstrap.

    Returns
    -------
    errors : CoefficientErrors
        The estimates and their covariance, with methods ``table``, ``intervals`` and
        ``wald_test``.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If there are no standard errors for the loss or penalty; X, y, weights or offset
        are invalid, or y lacks classes of the model; there are at most as many samples
        as coefficients; or the density of a quantile's residuals cannot be estimated,
        since most are zero or too few are near zero.

    Warns
    -----
    ConvergenceWarning
        If the model is more than a tenth of a standard error from its optimum.
    UserWarning
        If the model has a penalty; if features are linear combinations of earlier
        features, which then have no estimates; if features separate classes or zeros
        from all other samples, which then have no standard errors; or if a quantile in
        the outer fifths has fewer than 50 samples beyond it.

    See Also
    --------
    dual_gap : Bound of a model's distance from its optimum.

    Notes
    -----
    A penalty shrinks coefficients toward zero. Their standard errors then describe the
    variation between samples, but not the bias, so that confidence intervals cover the
    true coefficients less often than stated. Use ``alpha=0`` for intervals.
    Coefficients with an L1 penalty have no standard errors.

    Features that are linear combinations of earlier features, such as the last dummy
    variable of a categorical feature beside an intercept, are dropped as in R: their
    estimates are NaN, and the other estimates are from the model without them.

    Features that separate the samples of a class, or the samples with y = 0, from all
    other samples have no optimal coefficients without a penalty (Albert and Anderson
    1984): these features have NaN as standard errors, and the other standard errors are
    from a model without the separated samples.

    References
    ----------
    A. Albert, J. A. Anderson (1984), On the Existence of Maximum Likelihood Estimates
    in Logistic Regression Models, Biometrika 71. P. J. Huber (1967), The Behavior of
    Maximum Likelihood Estimates under Nonstandard Conditions, Berkeley Symposium. H.
    White (1980), A Heteroskedasticity-Consistent Covariance Matrix Estimator,
    Econometrica 48. K.-Y. Liang, S. L. Zeger (1986), Longitudinal Data Analysis Using
    Generalized Linear Models, Biometrika 73. J. L. Powell (1991), Estimation of
    Monotonic Regression Models under Quantile Restrictions. P. Hall, S. J. Sheather
    (1988), On the Distribution of a Studentized Quantile, JRSS B 50. D. B. Rubin
    (1981), The Bayesian Bootstrap, Annals of Statistics 9. J. G. MacKinnon, H. White
    (1985), Some Heteroskedasticity-Consistent Covariance Matrix Estimators with
    Improved Finite Sample Properties, Journal of Econometrics 29. A. C. Cameron, J. B.
    Gelbach, D. L. Miller (2011), Robust Inference with Multiway Clustering, Journal of
    Business and Economic Statistics 29.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, standard_errors
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> table = standard_errors(model, X, y).table()
    >>> table.set_index("feature").loc[["bmi", "age"]].round(2)
             estimate  std_error     t  p_value   lower   upper
    feature
    bmi        519.85      66.53  7.81     0.00  389.08  650.62
    age        -10.01      59.75 -0.17     0.87 -127.45  107.43
    """
    model, X, feature_names = _last_step(model, X, feature_names)
    warn_of_missing_offset(model, offset)
    estimator = _objective(model, y, sample_weight, estimator)
    options = ErrorOptions(
        kind=kind,
        groups=groups,
        offset=offset,
        dispersion=dispersion,
        weights=weights,
        reference=reference,
        feature_names=feature_names,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    fitted = fitted_attributes(model)
    if isinstance(estimator, CoxRegression):
        return hazard_errors(estimator, fitted, X, y, sample_weight, strata, options)
    if strata is not None:
        raise ValueError("Only a CoxRegression has strata.")
    return coefficient_errors(estimator, fitted, X, y, sample_weight, options)


def _last_step(model: Any, X: Any, feature_names: Any) -> tuple[Any, Any, Any]:
    """Return the last step of a pipeline, its input, and names of its features."""
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        before = model[:-1]
        if feature_names is None and hasattr(before, "get_feature_names_out"):
            feature_names = before.get_feature_names_out()
    model, X = last_step(model, X)
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            "model must be a fitted estimator, or a pipeline that ends with one; got "
            f"an object of type {type(model).__name__}."
        )
    check_is_fitted(model)
    return model, X, feature_names


def _objective(model: Any, y: Any, sample_weight: Any, estimator: Any) -> Any:
    """Return an estimator of this package with the objective of a model."""
    if estimator is None:
        estimator = objective_of(model, y, sample_weight)
    elif has_objective(estimator):
        estimator._check_parameters()
    if not has_objective(estimator):
        raise TypeError(
            f"estimator must be one of this package with coef_; got {estimator!r}."
        )
    return estimator


def _read(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
    weights: str,
    estimator: Any = None,
) -> FittedModel:
    """Return a model with its data, whose loss must be a likelihood or of quantiles."""
    check_option("weights", weights, ("precision", "frequency"))
    model, X, _ = _last_step(model, X, None)
    warn_of_missing_offset(model, offset)
    own = _objective(model, y, sample_weight, estimator)
    options = ErrorOptions(offset=offset, weights=weights)
    read = read_model(own, fitted_attributes(model), X, y, sample_weight, options)
    if not read.is_likelihood and not read.spec.levels:
        raise ValueError(
            f"loss={read.own.loss!r} is no likelihood. Likelihoods are the log loss, "
            "squared errors, and Poisson, gamma and Tweedie deviances."
        )
    return read


def fit_statistics(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    offset: Any = None,
    weights: str = "precision",
) -> FitStatistics:
    """Return likelihood, deviances, degrees of freedom and information criteria.

    For models of squared errors, the log loss (of two or more classes), Poisson, gamma
    and Tweedie regressions, and quantiles. The definitions are those of statsmodels.

    Parameters
    ----------
    model : estimator instance
        Fitted estimator as in :func:`standard_errors`, with any penalty that is a sum
        of squares and an L1 norm.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples; Dask collections and :class:`RowBlocks` are accepted.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the samples, unless they are part of ``RowBlocks``.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit, which the null model has as well.
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``, as in :func:`standard_errors`: statsmodels'
        ``var_weights`` or ``freq_weights``.

    Returns
    -------
    statistics : FitStatistics
        Named tuple of ``log_likelihood``, ``null_log_likelihood``, ``deviance``,
        ``null_deviance``, ``d2`` (McFadden's for classes, R¹ for quantiles), ``df``,
        ``df_resid``, ``dispersion``, ``aic``, ``bic`` and ``n_samples``: numbers, or
        arrays with one number for each of several outputs. Deviances of quantiles are
        sums of check losses, and their likelihoods are NaN.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If the loss is no likelihood and not of quantiles, the penalty has other terms,
        coefficients are at bounds or constraints, the data are invalid, or there are at
        most as many samples as coefficients.

    See Also
    --------
    likelihood_ratio_test : Compares two nested models.
    standard_errors : Accuracy of the coefficients.

    Notes
    -----
    Squares are a penalty with effective degrees of freedom, the trace of (H + P)^-1 H
    with the second derivatives H of the loss and P of the penalty (Hastie and
    Tibshirani 1990). With an L1 norm, the coefficients that are not zero are counted
    (Zou, Hastie and Tibshirani 2007). Dispersions are not counted.

    References
    ----------
    P. McCullagh, J. A. Nelder (1989), Generalized Linear Models. P. K. Dunn, G. K.
    Smyth (2005), Series Evaluation of Tweedie Exponential Dispersion Models, Statistics
    and Computing 15. R. Koenker, J. A. F. Machado (1999), Goodness of Fit and Related
    Inference Processes for Quantile Regression, JASA 94. T. J. Hastie, R. J. Tibshirani
    (1990), Generalized Additive Models. H. Zou, T. Hastie, R. Tibshirani (2007), On the
    Degrees of Freedom of the Lasso, Annals of Statistics 35.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, fit_statistics
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> statistics = fit_statistics(model, X, y)
    >>> round(statistics.d2, 3), round(statistics.aic, 1)
    (0.518, 4794.0)
    """
    return statistics_of(_read(model, X, y, sample_weight, offset, weights))


def likelihood_ratio_test(
    small: Any,
    large: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    X_small: Any = None,
    offset: Any = None,
    weights: str = "precision",
) -> LikelihoodRatioTest:
    """Test whether a model fits as well as a larger one that contains it (Wilks 1938).

    A small p-value says that the features which only the larger model has improve the
    fit by more than chance.

    Parameters
    ----------
    small, large : estimator instance
        Models of the same loss without a penalty, fitted to the same samples. The
        features of ``small`` span a part of what the features of ``large`` span.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        The training samples of ``large``. From a data frame, ``small`` takes the
        columns that it was fitted with.
    y : array-like of shape (n_samples,)
        Targets of the samples.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of both fits.
    X_small : {array-like, sparse matrix} of shape (n_samples, m), default=None
        The training samples of ``small``, by default taken from X.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of both fits.
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``, as in :func:`standard_errors`.

    Returns
    -------
    test : LikelihoodRatioTest
        Statistic with a chi-square distribution, degrees of freedom and p-value. For
        gamma and Tweedie regressions the statistic is the difference of the deviances
        divided by the dispersion of ``large``, as in R's ``anova``; otherwise twice the
        difference of the log-likelihoods.

    Raises
    ------
    TypeError
        If the objective of a model is unknown.
    ValueError
        If the models have a penalty, different losses, several outputs or no
        likelihood; or if ``small`` has as many parameters as ``large``, or fits better.

    See Also
    --------
    fit_statistics : The likelihood of one model.

    References
    ----------
    S. S. Wilks (1938), The Large-Sample Distribution of the Likelihood Ratio for
    Testing Composite Hypotheses, Annals of Mathematical Statistics 9.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, likelihood_ratio_test
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9)
    >>> small = model.fit(X.drop(columns=["s1", "s2"]), y)
    >>> large = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> test = likelihood_ratio_test(small, large, X, y)
    >>> test.df, round(test.p_value, 3)
    (2, 0.047)
    """
    if X_small is None:
        names = getattr(small, "feature_names_in_", None)
        X_small = X if names is None or not hasattr(X, "columns") else X[list(names)]
    read = [
        _read(model, matrix, y, sample_weight, offset, weights)
        for model, matrix in ((small, X_small), (large, X))
    ]
    return compared(*read)


def marginal_effects(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    at: str = "overall",
    offset: Any = None,
    feature_names: Any = None,
    **errors: Any,
) -> CoefficientErrors:
    """Return the effects of features on probabilities or means, with their errors.

    The effect of a feature is the derivative of the probability of a class, or of the
    expected value, with respect to the feature. Coefficients of log losses and of
    Poisson, gamma and Tweedie regressions are effects on log odds and logarithms of
    means; marginal effects have the units of probabilities and of y.

    Parameters
    ----------
    model : estimator instance
        Fitted estimator as in :func:`standard_errors`, of the log loss of two or more
        classes, or a Poisson, gamma or Tweedie regression with one target.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples; Dask collections and :class:`RowBlocks` are accepted.
    y : array-like of shape (n_samples,)
        Targets of the samples, unless they are part of ``RowBlocks``.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit, which average effects have as well.
    at : {"overall", "mean"}, default="overall"
        "overall": the average of the effects at all samples. "mean": the effect at one
        sample with the means of all features, and of the offset.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit.
    feature_names : array-like of shape (n_features,), default=None
        Names of the features; by default ``feature_names_in_``, or x0, x1, ...
    **errors : dict
        Options of :func:`standard_errors` for the covariance of the coefficients:
        ``kind``, ``groups``, ``dispersion``, ``weights``, ``estimator`` and those of
        the bootstrap.

    Returns
    -------
    effects : CoefficientErrors
        Effects in place of estimates, of each feature and class, with covariances by
        the delta method; ``table``, ``intervals`` and ``wald_test`` as for
        coefficients. There is no intercept. Statistics are normal, as in statsmodels.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If means are linear in the features, ``reference`` is given, or there are
        several outputs; and as in :func:`standard_errors`.

    See Also
    --------
    standard_errors : Errors of the coefficients themselves.

    Notes
    -----
    A dummy variable is treated as a number, as ``get_margeff`` of statsmodels does by
    default: the effect is a derivative, not the difference between its two values.

    References
    ----------
    W. H. Greene (2012), Econometric Analysis, 7th edition, section 17.3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn_subqn import BMRMClassifier, marginal_effects
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean texture", "mean symmetry"]]
    >>> model = BMRMClassifier(0, loss="log_loss", tol=1e-9).fit(X, y)
    >>> effects = marginal_effects(model, X, y)
    >>> effects.estimates.round(3), effects.std_errors.round(3)
    (array([-0.042, -5.15 ]), array([0.003, 0.583]))
    """
    check_option("at", at, ("overall", "mean"))
    if errors.get("reference") is not None:
        raise ValueError("Effects cover all classes; leave out reference.")
    found = standard_errors(
        model,
        X,
        y,
        sample_weight,
        offset=offset,
        feature_names=feature_names,
        **errors,
    )
    weights = errors.get("weights", "precision")
    own = errors.get("estimator")
    read = _read(model, X, y, sample_weight, offset, weights, own)
    if read.spec.n_problems > 1 or read.spec.levels or read.power == 0.0:
        raise ValueError(
            "Marginal effects are for the log loss of all classes, and for Poisson, "
            "gamma and Tweedie regressions of one target; elsewhere they are the "
            "coefficients."
        )
    return effects_of(read, found, at)


def residuals(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    kind: str = "deviance",
    offset: Any = None,
    weights: str = "precision",
    random_state: Any = None,
) -> Floats:
    """Return the residuals of samples.

    Residuals show where a model does not hold: plot them against predictions and
    features, or quantile residuals against normal quantiles.

    Parameters
    ----------
    model : estimator instance
        Fitted estimator as in :func:`standard_errors`, of the log loss of two classes,
        squared errors, or a Poisson, gamma or Tweedie regression of one target.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Targets of the samples.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit. Samples of weight zero are left out.
    kind : {"response", "pearson", "deviance", "quantile"}, default="deviance"
        "response": y less its expected value. "pearson": the same divided by the
        standard deviation, without the dispersion. "deviance": signed roots of the
        deviances. "quantile": normal scores of the distribution functions at y, drawn
        at random within steps, which are independent and standard normal if the model
        is true (Dunn and Smyth 1996). Means of counts with precision weights, such as
        frequencies per exposure, have the distribution of their totals.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit.
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``, as in :func:`standard_errors`.
    random_state : int, RandomState instance or None, default=None
        Seed of the quantile residuals of classes, counts and zeros.

    Returns
    -------
    residuals : ndarray of shape (n_samples,)
        One for each sample of positive weight, in their order.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If the loss is no likelihood of one score per sample, data are invalid, or
        quantile residuals of Poisson regressions are not of counts.

    See Also
    --------
    leverages : How much each sample determines its own prediction.

    References
    ----------
    P. McCullagh, J. A. Nelder (1989), Generalized Linear Models, section 2.4. P. K.
    Dunn, G. K. Smyth (1996), Randomized Quantile Residuals, Journal of Computational
    and Graphical Statistics 5.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, residuals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> z = residuals(model, X, y, kind="quantile")
    >>> round(float(abs(z).max()), 1)
    2.9
    """
    check_option("kind", kind, ("response", "pearson", "deviance", "quantile"))
    read = _read(model, X, y, sample_weight, offset, weights)
    return residuals_of(read, kind, random_state)


def leverages(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    offset: Any = None,
    weights: str = "precision",
) -> Floats:
    """Return the leverages of samples, the diagonal of the hat matrix.

    A leverage says how much a sample determines its own prediction. Without a penalty
    leverages sum to the number of coefficients, with one to the effective number.

    Parameters
    ----------
    model : estimator instance
        Fitted estimator as in :func:`standard_errors`, of the log loss of two classes,
        squared errors, or a Poisson, gamma or Tweedie regression of one target.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Targets of the samples.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit. Samples of weight zero are left out.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit.
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``, as in :func:`standard_errors`.

    Returns
    -------
    leverages : ndarray of shape (n_samples,)
        Numbers between 0 and 1, by expected second derivatives as R's ``hatvalues``.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If the loss is no likelihood of one score per sample, data are invalid, or the
        model has no degrees of freedom, see :func:`fit_statistics`.

    See Also
    --------
    residuals : How far samples are from their predictions.

    References
    ----------
    D. Pregibon (1981), Logistic Regression Diagnostics, Annals of Statistics 9.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, leverages
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> round(float(leverages(model, X, y).sum()), 6)
    11.0
    """
    return leverages_of(_read(model, X, y, sample_weight, offset, weights))


def tweedie_power(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    offset: Any = None,
    weights: str = "precision",
    powers: tuple[float, float] = (1.05, 1.95),
    tol: float = 1e-3,
) -> TweedieProfile:
    """Return the power of a Tweedie regression by profile likelihood.

    For each power that is tried, the regression is fitted and the dispersion has the
    largest likelihood, as in R's ``tweedie.profile``.

    Parameters
    ----------
    estimator : estimator instance
        A regressor with ``loss="tweedie"`` and the parameter ``power``; it is not
        changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,)
        Non-negative targets, some of them zero.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.
    offset : float or array-like of shape (n_samples,), default=None
        Offsets of the scores.
    weights : {"precision", "frequency"}, default="precision"
        Meaning of ``sample_weight``, as in :func:`standard_errors`.
    powers : tuple of two floats, default=(1.05, 1.95)
        The interval that is searched, within 1 and 2. The likelihood may have a further
        maximum near 1, where the distribution is almost discrete.
    tol : float, default=1e-3
        Accuracy of the power.

    Returns
    -------
    profile : TweedieProfile
        The power with its dispersion and log-likelihood.

    Raises
    ------
    ValueError
        If the estimator has another loss, the interval is not within 1 and 2, or the
        data are invalid.

    Warns
    -----
    UserWarning
        If the likelihood is largest at an end of the interval.

    See Also
    --------
    fit_statistics : Likelihood for a given power.

    References
    ----------
    P. K. Dunn, G. K. Smyth (2005), Series Evaluation of Tweedie Exponential Dispersion
    Model Densities, Statistics and Computing 15.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRegressor, tweedie_power
    >>> rng = np.random.default_rng(0)
    >>> X, claims = rng.normal(size=(500, 1)), rng.poisson(1.0, 500)
    >>> y = rng.gamma(2.0 * np.maximum(claims, 1)) * (claims > 0)
    >>> model = BMRMRegressor(0, loss="tweedie", tol=1e-8)
    >>> round(float(tweedie_power(model, X, y).power), 1)
    1.3
    """
    if getattr(estimator, "loss", None) != "tweedie":
        raise ValueError(
            f'The estimator must be a regressor with loss="tweedie"; got {estimator!r}.'
        )
    if np.shape(powers) != (2,) or not 1.0 < powers[0] < powers[1] < 2.0:
        raise ValueError(f"powers must be an interval within 1 and 2; got {powers!r}.")
    check_number("tol", tol, low=0.0, low_included=False)
    given = {} if offset is None else {"offset": offset}

    def profiled(power: float) -> TweedieProfile:
        model = clone(estimator).set_params(power=float(power))
        model.fit(X, y, sample_weight=sample_weight, **given)
        return profile(_read(model, X, y, sample_weight, offset, weights))

    found = optimize.minimize_scalar(
        lambda power: -profiled(power).log_likelihood,
        bounds=powers,
        method="bounded",
        options={"xatol": tol},
    )
    # Bounded searches stop within two tolerances from an end.
    if min(found.x - powers[0], powers[1] - found.x) < 2.0 * tol:
        warnings.warn(
            f"The likelihood is largest at the end {found.x:.4g} of the interval "
            f"{powers}: search a wider one, or take the gamma or Poisson deviance.",
            UserWarning,
            stacklevel=2,
        )
    return profiled(found.x)
