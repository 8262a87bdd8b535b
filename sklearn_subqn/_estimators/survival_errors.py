"""Standard errors of Cox's model, and tests of its assumption."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats

from .._checks import non_negative_weights
from .._core import lapack
from .._core.arrays import Array, Floats
from .._core.losses import AtRisk, Cox, DualLoss, EventTimes
from .._core.rows.second_moments import SecondMoments
from .._inference import (
    CoefficientErrors,
    RowMoments,
    RowTerms,
    Spec,
    assembled,
    moments_of,
)
from .error_options import ErrorOptions, check_options, kind_of
from .fitted_model import FittedModel
from .inference_data import clusters_of, unfitted
from .inferred import check_fitted, names_of
from .model_covariances import check_penalty, covariances_of
from .tables import checked_names

_KINDS = ("fisher", "HC0", "HC1", "cluster")


class _Rows(NamedTuple):
    """The training data of a model, and the sums at its coefficients.

    Attributes
    ----------
    sums : AtRisk
    X : ndarray of shape (m, d)
        Centered rows, in the order of ``sums.times.order``.
    weights : ndarray of shape (n,)
        Sample weights as given.
    """

    sums: AtRisk
    X: Floats
    weights: Floats

    @property
    def hessian(self) -> Floats:
        """Second derivatives of the sum of the losses of all rows."""
        return self.X.T @ self.sums.curved(self.X) * self.weights.sum()


def _rows(
    own: Any, coef: Any, X: Any, y: Any, sample_weight: Any, strata: Any, offset: Any
) -> _Rows:
    given = X, y, sample_weight, strata, offset
    X, targets, shares = own._read(*given, reset=False)
    times = EventTimes(targets, shares, own.ties)
    sums = AtRisk(times, np.asarray(X @ coef, dtype=np.float64))
    dense = X.toarray() if sparse.issparse(X) else X
    # The likelihood depends on differences of rows only, and centered rows have smaller
    # rounding errors.
    dense = np.asarray(dense - shares @ dense, dtype=np.float64)
    return _Rows(
        sums, dense[times.order], non_negative_weights(sample_weight, len(targets))
    )


def hazard_errors(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    strata: Any,
    options: ErrorOptions,
) -> CoefficientErrors:
    """Return the standard errors of the coefficients of Cox's model.

    See ``coefficient_errors`` for parameters other than the strata of the rows.
    """
    kind = kind_of("log_loss", options)
    if kind not in _KINDS or options.dispersion is not None:
        raise ValueError(
            f"Cox's model takes the kinds {', '.join(map(repr, _KINDS))}, without a "
            "dispersion."
        )
    check_options(options, kind, "cox")
    coef = np.asarray(given["coef_"], dtype=np.float64)
    d, counts = len(coef), options.weights == "frequency"
    own, loss = unfitted(own, given, d), DualLoss(Cox(own.ties))
    spec = Spec(
        *(coef[np.newaxis], np.zeros(1), loss, False, None, (), ()),
        *(False, kind == "fisher", counts, np.zeros(d)),
    )
    model = FittedModel(own, given, "log_loss", spec)
    check_penalty(model)
    rows = _rows(own, coef, X, y, sample_weight, strata, options.offset)
    moments = [_moments(rows, spec, options.groups)]
    fixed = np.zeros((1, d), dtype=bool)
    found = covariances_of(model, moments, kind, options, fixed)
    check_fitted(found, [coef], own.tol)
    return assembled(spec, names_of(own, spec, given, options), found, kind, False)


def _moments(rows: _Rows, spec: Spec, groups: Any) -> RowMoments:
    """Return the moments of the score residuals of rows (Lin and Wei 1989)."""
    sums, times, used = rows.sums, rows.sums.times, rows.weights > 0.0
    expected = sums.curved(rows.X) / times.weights[:, np.newaxis]
    score_residuals = sums.unsorted(expected - sums.residuals(rows.X))[used]
    n = len(score_residuals)
    # The derivative of a row's loss by the coefficients is its score residual, as if
    # the row were this residual, and the loss had a slope of one.
    terms = RowTerms(np.ones((n, 1)), np.zeros((n, 1, 1)), np.zeros(n))
    gram = SecondMoments(rows.X, fit_intercept=False).gram(rows.weights[times.order])
    design = SecondMoments(score_residuals, fit_intercept=False)
    given = rows.weights[used], clusters_of(groups, used), spec
    moments = moments_of(terms, design, gram, *given)
    return moments._replace(hessian=rows.hessian)


class ProportionalityTest(NamedTuple):
    """A test of whether hazards stay proportional (Grambsch and Therneau 1994).

    Attributes
    ----------
    features : ndarray of shape (n_features,)
        Names of the features.
    statistics : ndarray of shape (n_features,)
        Statistic of each feature. It has a chi-square distribution with one degree of
        freedom if the coefficient does not change with time.
    p_values : ndarray of shape (n_features,)
        P-values: probabilities of statistics at least as large.
    statistic, p_value : float
        The test of all features together.
    residuals : ndarray of shape (n_events, n_features)
        Schoenfeld's residuals (1982): features of samples with an event, minus the
        means over the samples at risk.
    times : ndarray of shape (n_events,)
        Times of the events.
    """

    features: Array
    statistics: Floats
    p_values: Floats
    statistic: float
    p_value: float
    residuals: Floats
    times: Floats


def proportionality(
    own: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    strata: Any,
    offset: Any,
    transform: str,
) -> ProportionalityTest:
    """Return the test of proportional hazards of a fitted model."""
    rows = _rows(own, own.coef_, X, y, sample_weight, strata, offset)
    times = rows.sums.times
    residuals = rows.sums.residuals(rows.X)[times.has_event]
    at = times.times[times.last[times.has_event]]
    if transform == "log" and not at.all():
        raise ValueError('transform="log" needs positive times of all events.')
    scale = {"identity": np.array, "log": np.log, "rank": stats.rankdata}[transform]
    if not np.ptp(at):
        raise ValueError("The test needs events at two times or more.")
    g, weights = scale(at), rows.weights[times.order][times.has_event]
    g = g - weights @ g / weights.sum()
    covariance = lapack.pinv(rows.hessian, hermitian=True)
    total = (weights * g) @ residuals
    factor = weights.sum() / float(weights @ (g * g))
    steps = covariance @ total
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = factor * steps**2 / np.diag(covariance)
    whole = float(factor * total @ steps)
    rank = int(lapack.matrix_rank(covariance, hermitian=True))
    names = checked_names(getattr(own, "feature_names_in_", None), len(total))
    p_values, p_value = stats.chi2.sf(statistics, 1), float(stats.chi2.sf(whole, rank))
    order = np.argsort(at, kind="stable")
    return ProportionalityTest(
        names, statistics, p_values, whole, p_value, residuals[order], at[order]
    )
