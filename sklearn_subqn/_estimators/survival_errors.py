"""Standard errors of Cox's model, and tests of its assumption."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats

from .._checks import names_of_rows, non_negative_weights
from .._core import lapack
from .._core.arrays import Array, Floats
from .._core.losses import AtRisk, DualLoss
from .._inference import (
    CoefficientErrors,
    Names,
    RowMoments,
    Spec,
    assembled,
    covariances,
)
from .error_options import ErrorOptions, check_options, kind_of
from .fitted_model import check_model
from .inference_data import unfitted
from .inferred import check_fitted
from .model_covariances import strengths_of
from .tables import checked_names

_KINDS = ("fisher", "HC0", "HC1", "cluster")


class _Rows(NamedTuple):
    """The training data of a model at its coefficients; see ``AtRisk``."""

    sums: AtRisk
    loss: DualLoss
    X: Floats
    total: float
    weights: Floats


def _rows(
    own: Any, coef: Floats, X: Any, y: Any, sample_weight: Any, strata: Any, offset: Any
) -> _Rows:
    X = own._check_X(X, reset=False)
    n = X.shape[0]
    weights, loss, _ = own._likelihood(n, y, sample_weight, strata, offset)
    given = non_negative_weights(sample_weight, n)
    sums = loss.at(np.asarray(X @ coef, dtype=np.float64), weights)
    dense = X.toarray() if sparse.issparse(X) else X
    # The likelihood depends on differences of rows only, and centered rows have smaller
    # rounding errors.
    dense = np.asarray(dense - weights @ dense, dtype=np.float64)
    return _Rows(
        sums, DualLoss(loss), dense[sums.times.order], float(given.sum()), given
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
    own = unfitted(own, given, len(coef))
    check_model(own, given)
    rows = _rows(own, coef, X, y, sample_weight, strata, options.offset)
    counts, order = options.weights == "frequency", rows.sums.times.order
    terms = rows.total * rows.sums.derivatives(rows.X)
    n = rows.total if counts else float(np.count_nonzero(rows.weights))
    clusters, d = {}, len(coef)
    products = terms / rows.weights[order][:, np.newaxis] if counts else terms
    if options.groups is not None:
        _, numbers = names_of_rows("groups", options.groups, len(rows.weights))
        totals = np.zeros((numbers.max() + 1, d))
        np.add.at(totals, numbers[order], terms)
        clusters = {(0, i): total for i, total in enumerate(totals)}
        if len(clusters) < 2:
            raise ValueError("groups must name at least two clusters.")
    hessian = rows.X.T @ rows.sums.curved(rows.X) * rows.total
    gram = (rows.X * rows.weights[order][:, np.newaxis]).T @ rows.X
    gradient = terms.sum(axis=0)
    squares = terms.T @ products
    moments = RowMoments(hessian, squares, gram, gradient, n, rows.total, n, clusters)
    penalty = np.broadcast_to(strengths_of(own, given, rows.total)[0], d)
    gradient = gradient + penalty * coef
    never = np.zeros(d, dtype=bool)
    found = covariances(
        moments, np.diag(penalty), gradient, kind, np.arange(d), 1.0, never
    )
    check_fitted([found], [coef], own.tol)
    whole = np.zeros(d)
    spec = Spec(
        *(coef[np.newaxis], np.zeros(1), rows.loss, False, None, (), ()),
        *(False, True, counts, whole),
    )
    names = given.get("feature_names_in_")
    names = names if options.feature_names is None else options.feature_names
    features = Names(checked_names(names, d).tolist(), None, None, None)
    return assembled(spec, features, [found], kind, False)


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
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    strata: Any,
    offset: Any,
    transform: str,
) -> ProportionalityTest:
    """Return the test of proportional hazards of a fitted model."""
    coef = np.asarray(given["coef_"], dtype=np.float64)
    rows = _rows(
        *(unfitted(own, given, len(coef)), coef),
        *(X, y, sample_weight, strata, offset),
    )
    sums, times = rows.sums, rows.sums.times
    residuals = sums.residuals(rows.X)[times.has_event]
    at = times.times[times.last[times.has_event]]
    if transform == "log" and not at.all():
        raise ValueError('transform="log" needs positive times of all events.')
    scale = {"identity": lambda t: t, "log": np.log, "rank": stats.rankdata}[transform]
    g = scale(at)
    weights = rows.weights[times.order][times.has_event]
    g = g - weights @ g / weights.sum()
    information = rows.X.T @ sums.curved(rows.X) * rows.total
    covariance = lapack.pinv(information, hermitian=True)
    total = (weights * g) @ residuals
    factor = weights.sum() / float(weights @ (g * g))
    steps = covariance @ total
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = factor * steps**2 / np.diag(covariance)
    whole = float(factor * total @ steps)
    features = checked_names(given.get("feature_names_in_"), len(coef))
    rank = int(lapack.matrix_rank(covariance, hermitian=True))
    order = np.argsort(at, kind="stable")
    return ProportionalityTest(
        features,
        statistics,
        stats.chi2.sf(statistics, 1),
        whole,
        float(stats.chi2.sf(whole, rank)),
        residuals[order],
        at[order],
    )
