"""Standard errors and confidence intervals of the coefficients of fitted models."""

from __future__ import annotations

from typing import Any

from .._estimators.error_options import ErrorOptions
from .._estimators.fitted_model import fitted_attributes
from .._estimators.inferred import coefficient_errors
from .._estimators.offsets import warn_of_missing_offset
from .._estimators.survival_errors import hazard_errors
from .._inference import CoefficientErrors
from ..survival import CoxRegression
from .reading import last_step_with_names, with_objective


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
    sample, such as the squared hinge and Huber's loss. Models of ordered classes by
    "ordinal_all_threshold" and "ordinal_immediate_threshold" have sandwiches, also of
    their thresholds: these losses compare a class with several thresholds as if the
    comparisons were independent. "ordinal_logit" is the likelihood of ordered classes,
    and "fisher" takes its observed second derivatives, as R's polr. For Cox's model
    "fisher" takes the second derivatives of the partial likelihood, other kinds the
    score residuals of Lin and Wei (1989).

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
    1984). For ordered classes, such a feature separates lower from higher classes at
    all thresholds. These features have NaN as standard errors, and the other standard
    errors are from a model without the separated samples.

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
    model, X, feature_names = last_step_with_names(model, X, feature_names)
    warn_of_missing_offset(model, offset)
    estimator = with_objective(model, y, sample_weight, estimator)
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
