"""Residuals and leverages of the samples of a fit."""

from __future__ import annotations

from typing import Any

from .._checks import check_option
from .._core.arrays import Floats
from .._estimators.diagnostics import leverages_of, residuals_of
from .reading import read_likelihood


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
        "response": y minus its expected value. "pearson": the same divided by the
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
        Residuals of the samples with positive weight, in their order.

    Raises
    ------
    TypeError
        If the objective of the model is unknown.
    ValueError
        If the loss is not a likelihood of one score per sample, data are invalid, or
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
    read = read_likelihood(model, X, y, sample_weight, offset, weights)
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

    A leverage says how much a sample determines its own prediction. Leverages sum to
    the number of coefficients, or with a penalty to the effective number.

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
        If the loss is not a likelihood of one score per sample, data are invalid, or
        the model has no degrees of freedom, see :func:`fit_statistics`.

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
    return leverages_of(read_likelihood(model, X, y, sample_weight, offset, weights))
