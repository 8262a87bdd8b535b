"""Likelihoods, information criteria and comparisons of fitted models."""

from __future__ import annotations

from typing import Any

from .._estimators.fit_statistics import (
    FitStatistics,
    LikelihoodRatioTest,
    compared,
    statistics_of,
)
from .reading import read_likelihood


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

    For models of squared errors, the log loss (of two or more classes), ordered classes
    by "ordinal_logit", Poisson, gamma and Tweedie regressions, and quantiles. The
    definitions are the same as in statsmodels.

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
        The offsets of the fit, also for the null model.
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
        sums of check losses, and their likelihoods are NaN. Statistics of a null model
        that fits all samples, as where targets are equal, are NaN or infinite.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If the loss is neither a likelihood nor the pinball loss, the penalty has other
        terms, coefficients are at bounds or constraints, the data are invalid, or there
        are not more samples than degrees of freedom.

    Warns
    -----
    ConvergenceWarning
        If a model without a penalty is more than a tenth of a standard error from its
        optimum: it was fitted to other data or weights, or with a large ``tol``.

    See Also
    --------
    likelihood_ratio_test : Compares two nested models.
    standard_errors : Accuracy of the coefficients.

    Notes
    -----
    A squared penalty gives effective degrees of freedom, the trace of (H + P)^-1 H with
    the second derivatives H of the loss and P of the penalty (Hastie and Tibshirani
    1990). With an L1 norm, the coefficients that are not zero are counted (Zou, Hastie
    and Tibshirani 2007). Dispersions are not counted.

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
    return statistics_of(read_likelihood(model, X, y, sample_weight, offset, weights))


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

    A small p-value is evidence that the additional features of the larger model improve
    the fit.

    Parameters
    ----------
    small, large : estimator instance
        Models of the same loss without a penalty, fitted to the same samples. The span
        of the features of ``large`` has to contain the features of ``small``.
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
        likelihood; if ``small`` has as many parameters as ``large``, or fits better; or
        if ``X_small`` is missing and X is no data frame.

    Warns
    -----
    ConvergenceWarning
        As :func:`fit_statistics`, for each of the models.

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
        by_name = hasattr(X, "columns")
        names = getattr(small, "feature_names_in_", None) if by_name else None
        X_small = X if names is None else X[list(names)]
        numbers = {getattr(each, "n_features_in_", None) for each in (small, large)}
        if len(numbers) > 1 and names is None:
            raise ValueError(
                "Give X_small, the samples of small, which has another number of "
                "features than large; only data frames have the columns by name."
            )
    read = [
        read_likelihood(model, matrix, y, sample_weight, offset, weights)
        for model, matrix in ((small, X_small), (large, X))
    ]
    return compared(*read)
