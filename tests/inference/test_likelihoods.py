"""Likelihoods, deviances and their tests, by statsmodels."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    fit_statistics,
    likelihood_ratio_test,
)
from sklearn_subqn.linear_model import LogisticRegression

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 3))
ONES = np.column_stack([np.ones(N), X])
SCORES = X @ [0.5, -0.3, 0.0] + 0.2
WEIGHTS = RNG.integers(1, 4, N).astype(float)
OFFSET = 0.3 * RNG.normal(size=N)
LABELS = (RNG.uniform(size=N) < special.expit(SCORES)).astype(int)
CLASSES = np.where(LABELS, RNG.integers(0, 3, N), 2)
TARGETS = {
    "squared_error": SCORES + RNG.normal(size=N),
    "poisson": RNG.poisson(np.exp(SCORES)).astype(float),
    "gamma": RNG.gamma(2.0, np.exp(SCORES) / 2.0),
    "log_loss": LABELS,
}
TARGETS["tweedie"] = TARGETS["gamma"] * (RNG.uniform(size=N) < 0.7)


def fitted(loss, matrix=X, **data):
    """A model of a likelihood, to rounding."""
    kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind(0, loss=loss, tol=1e-12).fit(matrix, TARGETS[loss], **data)


def family(loss):
    """The family of statsmodels with the link of this package."""
    families = pytest.importorskip("statsmodels.api").families
    log = families.links.Log()
    return {
        "squared_error": families.Gaussian,
        "log_loss": families.Binomial,
        "poisson": families.Poisson,
        "gamma": lambda: families.Gamma(log),
        "tweedie": lambda: families.Tweedie(log, 1.5, eql=False),
    }[loss]()


def theirs(loss, matrix=ONES, **data):
    """A fit by statsmodels."""
    sm = pytest.importorskip("statsmodels.api")
    model = sm.GLM(TARGETS[loss], matrix, family=family(loss), **data)
    return model.fit(tol=1e-12, tol_criterion="params")


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("given", ["plain", "precision", "frequency", "offset"])
def test_statistics_are_those_of_statsmodels(loss, given):
    data, options, name = {}, {}, {"precision": "var_weights"}.get(given)
    if given in ("precision", "frequency"):
        data, options = {"sample_weight": WEIGHTS}, {"weights": given}
        peer = theirs(loss, **{name or "freq_weights": WEIGHTS})
    elif given == "offset" and loss != "squared_error":
        data, peer = {"offset": OFFSET}, theirs(loss, offset=OFFSET)
    else:
        peer = theirs(loss)
    found = fit_statistics(fitted(loss, **data), X, TARGETS[loss], **data, **options)
    expected = {
        "log_likelihood": peer.llf,
        "deviance": peer.deviance,
        "null_deviance": peer.null_deviance,
        "df": peer.df_model + 1,
        "df_resid": peer.df_resid,
        "dispersion": peer.scale,
        "aic": peer.aic,
        "bic": peer.bic_llf,
        "n_samples": peer.nobs if given != "frequency" else WEIGHTS.sum(),
    }
    for key, value in expected.items():
        assert_allclose(getattr(found, key), value, rtol=2e-7, err_msg=key)
    assert_allclose(found.d2, 1.0 - peer.deviance / peer.null_deviance, rtol=1e-6)


def test_classes():
    sm = pytest.importorskip("statsmodels.api")
    peer = sm.MNLogit(CLASSES, ONES).fit(disp=0)
    model = LogisticRegression(C=np.inf, tol=1e-11).fit(X, CLASSES)
    found = fit_statistics(model, X, CLASSES)
    assert_allclose(found.log_likelihood, peer.llf, rtol=1e-9)
    assert_allclose(found.null_log_likelihood, peer.llnull, rtol=1e-9)
    assert_allclose([found.aic, found.bic], [peer.aic, peer.bic], rtol=1e-9)
    assert_allclose(found.d2, peer.prsquared, rtol=1e-7)


def test_quantiles():
    sm = pytest.importorskip("statsmodels.api")
    y = TARGETS["squared_error"]
    model = BMRMRegressor(0, loss="quantile", quantile=0.5, tol=1e-8).fit(X, y)
    found = fit_statistics(model, X, y)
    peer = sm.QuantReg(y, ONES).fit(0.5, p_tol=1e-9, max_iter=9999)
    assert_allclose(found.d2, peer.prsquared, rtol=1e-6)
    assert_allclose(found.deviance, 0.5 * np.abs(y - model.predict(X)).sum())
    assert found.df == 4
    assert np.isnan(found.aic)


def test_quantiles_with_weights_are_repetitions():
    y, repeats = TARGETS["squared_error"], WEIGHTS.astype(int)
    model = BMRMRegressor(1e-2, loss="quantile", quantile=[0.2, 0.8]).fit(X, y)
    found = fit_statistics(model, X, y, WEIGHTS, weights="frequency")
    again = fit_statistics(model, X.repeat(repeats, axis=0), y.repeat(repeats))
    for one, other in zip(found, again, strict=True):
        assert_allclose(one, other, rtol=1e-12)


def test_degrees_of_freedom_of_penalties():
    y, alpha = TARGETS["squared_error"], 0.3
    ridge = BMRMRegressor(alpha, loss="squared_error", tol=1e-10).fit(X, y)
    centered = X - X.mean(axis=0)
    eigenvalues = np.linalg.eigvalsh(centered.T @ centered)
    expected = 1.0 + (eigenvalues / (eigenvalues + N * alpha)).sum()
    assert_allclose(fit_statistics(ridge, X, y).df, expected, rtol=1e-9)
    lasso = BMRMRegressor(0.2, loss="squared_error", penalty="l1").fit(X, y)
    assert fit_statistics(lasso, X, y).df == 1 + np.count_nonzero(lasso.coef_)


@pytest.mark.parametrize("loss", TARGETS)
def test_likelihood_ratios(loss):
    part = X[:, :1]
    test = likelihood_ratio_test(
        fitted(loss, part), fitted(loss), X, TARGETS[loss], X_small=part
    )
    low, high = theirs(loss, ONES[:, :2]), theirs(loss)
    expected = 2.0 * (high.llf - low.llf)
    if loss in ("gamma", "tweedie"):
        expected = (low.deviance - high.deviance) / high.scale
    assert_allclose(test.statistic, expected, rtol=1e-6)
    assert test.df == 2


def test_likelihood_ratios_by_names():
    frame, y = pd.DataFrame(X, columns=["a", "b", "c"]), TARGETS["poisson"]
    small, large = fitted("poisson", frame[["b"]]), fitted("poisson", frame)
    found = likelihood_ratio_test(small, large, frame, y)
    assert found == likelihood_ratio_test(small, large, frame, y, X_small=frame[["b"]])
    with pytest.raises(ValueError, match="more parameters"):
        likelihood_ratio_test(large, large, frame, y)
    with pytest.raises(ValueError, match="same loss"):
        likelihood_ratio_test(small, fitted("squared_error", frame), frame, y)
    penalized = BMRMRegressor(1e-2, loss="poisson").fit(frame, y)
    with pytest.raises(ValueError, match="penalty"):
        likelihood_ratio_test(small, penalized, frame, y)


def test_losses_without_a_likelihood():
    model = BMRMRegressor(1e-2, loss="huber").fit(X, SCORES)
    with pytest.raises(ValueError, match="no likelihood"):
        fit_statistics(model, X, SCORES)
