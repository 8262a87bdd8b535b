"""Effects of features on means and probabilities."""

from __future__ import annotations

from typing import Any

from .._checks import check_option
from .._estimators.marginal_effects import effects_of
from .._inference import CoefficientErrors
from .errors import standard_errors
from .reading import read_likelihood


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
        The sample weights of the fit, which are also used in averages of effects.
    at : {"overall", "mean"}, default="overall"
        "overall": the average of the effects at all samples. "mean": the effect at one
        sample with the means of all features, and of the offset.
    offset : float or array-like of shape (n_samples,), default=None
        The offsets of the fit.
    feature_names : array-like of shape (n_features,), default=None
        Names of the features; by default ``feature_names_in_``, or x0, x1, ...
    **errors : dict
        Options of :func:`standard_errors` for the covariance of the coefficients:
        ``kind``, ``groups``, ``dispersion``, ``weights``, ``estimator`` and the options
        of the bootstrap.

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
    read = read_likelihood(model, X, y, sample_weight, offset, weights, own)
    others = read.spec.ordinal or read.spec.levels or read.power == 0.0
    if others or read.spec.n_problems > 1:
        raise ValueError(
            "Marginal effects are for the log loss of all classes, and for Poisson, "
            "gamma and Tweedie regressions of one target; where means are linear they "
            "are the coefficients."
        )
    return effects_of(read, found, at)
