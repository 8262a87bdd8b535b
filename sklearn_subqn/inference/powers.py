"""The power of a Tweedie regression by profile likelihood."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.base import clone

from .._checks import check_number
from .._estimators.fit_statistics import TweedieProfile, profile
from .reading import read_likelihood


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
        return profile(read_likelihood(model, X, y, sample_weight, offset, weights))

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
