"""Likelihoods, deviances and their tests, by statsmodels."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, special, stats
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    CoxRegression,
    fit_statistics,
    leverages,
    likelihood_ratio_test,
    marginal_effects,
    residuals,
    standard_errors,
    tweedie_power,
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


@pytest.mark.filterwarnings("ignore:Fitting BMRMClassifier did not prove")
@pytest.mark.filterwarnings("ignore:The model has a penalty")
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_losses_of_all_classes_have_one_likelihood(alpha):
    strength = np.inf if alpha == 0.0 else 1.0 / (N * alpha)
    both = [
        LogisticRegression(C=strength, tol=1e-11),
        BMRMClassifier(alpha, loss="multinomial", tol=1e-11),
    ]
    found, expected = (
        (
            *fit_statistics(model.fit(X, CLASSES), X, CLASSES),
            *standard_errors(model, X, CLASSES).std_errors,
            *marginal_effects(model, X, CLASSES).estimates,
        )
        for model in both
    )
    assert_allclose(found, expected, rtol=1e-6)
    grouped = BMRMClassifier(0.01, loss="multinomial", penalty="group")
    with pytest.raises(ValueError, match="penalty"):
        standard_errors(grouped.fit(X, CLASSES), X, CLASSES)


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


@pytest.mark.parametrize("kind", [*TARGETS, "classes", "free", "elasticnet", "counts"])
def test_degrees_of_freedom_of_more_features_than_samples(kind):
    n, rng = 40, np.random.default_rng(1)
    rows = np.hstack([X[:n], rng.normal(size=(n, 60))])
    loss = kind if kind in TARGETS else "squared_error"
    y, weights, alpha = TARGETS[loss][:n], np.ones(n), 0.3
    options, given, factors = {"loss": loss, "tol": 1e-10}, {}, np.ones(63)
    make = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    model = make(alpha, **options)
    if kind == "classes":
        y, model = CLASSES[:n], LogisticRegression(C=1.0 / (n * alpha), tol=1e-10)
    elif kind == "free":
        factors = np.append([0.0, 0.0], rng.uniform(0.5, 2.0, 61))
        model.set_params(penalty_factor=factors)
    elif kind == "elasticnet":
        model.set_params(penalty="elasticnet", l1_ratio=0.2)
    elif kind == "counts":
        weights = WEIGHTS[:n]
        given = {"weights": "frequency", "sample_weight": weights}
    model.fit(rows, y, sample_weight=weights)
    found = fit_statistics(model, rows, y, **given)
    # The trace of (H + P)^-1 H, by its definition.
    kept = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
    design = np.column_stack([rows[:, kept], np.ones(n)])
    strengths = np.append(weights.sum() * alpha * factors[kept], 0.0)
    strengths *= 0.8 if kind == "elasticnet" else 1.0
    z = rows @ np.atleast_2d(model.coef_).T + model.intercept_
    if kind == "classes":
        p = special.softmax(z, axis=1)
        curvatures = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    elif loss == "log_loss":
        curvatures = (special.expit(z) * special.expit(-z))[:, :, None]
    else:
        power = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}.get(loss)
        curvatures = np.ones((n, 1, 1))
        if power is not None:
            curvatures = np.exp((2.0 - power) * z)[:, :, None]
    k = curvatures.shape[1]
    curvatures = weights[:, None, None] * curvatures
    hessian = np.einsum("iab,ij,ik->ajbk", curvatures, design, design)
    hessian = hessian.reshape(k * len(strengths), -1)
    # Intercepts of three classes have one free direction.
    inverse = np.linalg.pinv(hessian + np.diag(np.tile(strengths, k)), rcond=1e-12)
    expected = np.trace(inverse @ hessian)
    assert_allclose(found.df, expected, rtol=1e-7)
    assert found.aic == pytest.approx(2.0 * expected - 2.0 * found.log_likelihood)
    by_csr = fit_statistics(model, sparse.csr_array(rows), y, **given)
    assert_allclose(by_csr, found, rtol=1e-8)
    if kind != "classes":
        h = np.einsum("i,ij,jk,ik->i", curvatures[:, 0, 0], design, inverse, design)
        copies = weights if kind == "counts" else 1.0
        found = leverages(model, rows, y, **given)
        assert_allclose(found, (h / copies)[weights > 0.0], rtol=1e-6, atol=1e-12)


def test_degrees_of_freedom_do_not_depend_on_units():
    n, units = 40, 10.0 ** np.arange(-31, 32)
    rows = np.hstack([X[:n], np.random.default_rng(1).normal(size=(n, 60))])
    y = TARGETS["squared_error"][:n]
    model = BMRMRegressor(0.2, loss="squared_error", penalty="l1", tol=1e-9)
    expected = fit_statistics(model.fit(rows, y), rows, y)
    assert expected.df == 1 + np.count_nonzero(model.coef_) > 4
    model.coef_ /= units
    assert_allclose(fit_statistics(model, rows * units, y), expected, rtol=1e-8)


def test_classes_have_more_parameters_than_samples():
    n, d = 60, 45
    rows, y = np.random.default_rng(0).normal(size=(n, d)), CLASSES[:n]
    model = LogisticRegression(C=1.0, tol=1e-10).fit(rows, y)
    p = model.predict_proba(rows)
    design = np.column_stack([rows, np.ones(n)])
    curvatures = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    hessian = np.einsum("iab,ij,ik->ajbk", curvatures, design, design)
    hessian = hessian.reshape(3 * (d + 1), -1)
    strengths = np.tile(np.append(np.ones(d), 0.0), 3)
    inverse = np.linalg.pinv(hessian + np.diag(strengths), rcond=1e-12)
    found = fit_statistics(model, rows, y)
    assert_allclose(found.df, np.trace(inverse @ hessian), rtol=1e-7)
    few, y = rows[:20], y[:20]
    df = fit_statistics(model.set_params(C=10.0).fit(few, y), few, y).df
    assert 20.0 < df < 40.0


def test_models_that_fit_all_samples_have_no_statistics():
    rows = np.random.default_rng(0).normal(size=(20, 30))
    y = TARGETS["squared_error"][:20]
    model = BMRMRegressor(1e-3, loss="squared_error", penalty_factor=np.zeros(30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, y)
    with pytest.raises(ValueError, match="more samples than degrees of freedom"):
        fit_statistics(model, rows, y)


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
    with pytest.raises(ValueError, match="Give X_small"):
        likelihood_ratio_test(fitted("poisson", X[:, 1:2]), large, X, y)
    with pytest.raises(ValueError, match="more parameters"):
        likelihood_ratio_test(large, large, frame, y)
    with pytest.raises(ValueError, match="same loss"):
        likelihood_ratio_test(small, fitted("squared_error", frame), frame, y)
    with pytest.warns(ConvergenceWarning, match="Fit it to the same data"):
        likelihood_ratio_test(small, large, frame, y, WEIGHTS)
    penalized = BMRMRegressor(1e-2, loss="poisson").fit(frame, y)
    with pytest.raises(ValueError, match="penalty"):
        likelihood_ratio_test(small, penalized, frame, y)


def test_losses_without_a_likelihood():
    times = np.exp(SCORES), np.ones(N, dtype=bool)
    for model, y in (
        (BMRMRegressor(1e-2, loss="huber"), SCORES),
        (BMRMClassifier(1e-2, loss="hinge"), LABELS),
        (CoxRegression(1e-2), times),
    ):
        with pytest.raises(ValueError, match="no likelihood"):
            fit_statistics(model.fit(X, y), X, y)


@pytest.mark.parametrize("size", [1.0, 1e6])
@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_exact_data_are_said_to_be_exact(loss, size):
    """Not that the model is a dozen rounding errors away from its optimum."""
    z = X @ np.linspace(-0.5, 0.5, X.shape[1]) + 1.0
    y = size * (np.exp(z) if loss == "gamma" else z)
    model = BMRMRegressor(0, loss=loss).fit(X, y)
    for function in (fit_statistics, standard_errors):
        with pytest.warns(UserWarning, match="so exactly that standard errors are"):
            function(model, X, y)
    # Noise of a millionth of the targets is no rounding error.
    y = y * (1.0 + 1e-6 * np.random.default_rng(0).normal(size=len(y)))
    model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_statistics(model, X, y)


@pytest.mark.filterwarnings("ignore:The model fits the samples so exactly")
def test_null_models_that_fit_all_samples():
    """Then the standard errors are rounding errors."""
    y = np.ones(N)
    found = fit_statistics(BMRMRegressor(0, loss="squared_error").fit(X, y), X, y)
    assert found.null_deviance == 0.0
    assert not np.isfinite(found.d2)


@pytest.mark.parametrize("kind", ["HC2", "HC3"])
def test_sandwiches_with_leverages(kind):
    sm = pytest.importorskip("statsmodels.api")
    y = TARGETS["squared_error"]
    peer = sm.OLS(y, ONES).fit(cov_type=kind)
    found = standard_errors(fitted("squared_error"), X, y, kind=kind)
    assert_allclose(found.std_errors, peer.bse, rtol=1e-8)
    again = standard_errors(fitted("squared_error"), sparse.csr_array(X), y, kind=kind)
    assert_allclose(again.std_errors, found.std_errors, rtol=1e-7)


def test_leverages_of_log_losses():
    model = fitted("log_loss")
    p = model.predict_proba(X)[:, 1]
    rows = ONES * np.sqrt(p * (1.0 - p))[:, None]
    inverse = np.linalg.inv(rows.T @ rows)
    h = ((rows @ inverse) * rows).sum(axis=1)
    scores = ONES * ((LABELS - p) / (1.0 - h))[:, None]
    expected = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    found = standard_errors(model, X, LABELS, kind="HC3")
    assert_allclose(found.std_errors, expected, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_clusters_in_two_ways(loss):
    sm = pytest.importorskip("statsmodels.api")
    groups = RNG.integers(0, [12, 15], (N, 2))
    peer = (sm.OLS if loss == "squared_error" else sm.Poisson)(TARGETS[loss], ONES)
    peer = peer.fit(**({} if loss == "squared_error" else {"disp": 0}))
    sandwich = sm.stats.sandwich_covariance
    expected = sandwich.cov_cluster_2groups(peer, groups)[0]
    found = standard_errors(fitted(loss), X, TARGETS[loss], groups=groups)
    assert_allclose(found.covariance, expected, rtol=1e-5, atol=1e-12)
    named = pd.DataFrame(groups).astype(str)
    again = standard_errors(fitted(loss), X, TARGETS[loss], groups=named)
    assert_allclose(again.covariance, found.covariance, rtol=1e-12)


def test_whole_factors():
    region = RNG.choice(["north", "south", "west"], N)
    frame = pd.get_dummies(
        pd.DataFrame({"region": region, "age": X[:, 0]}), dtype=float
    )
    y = TARGETS["squared_error"]
    model = BMRMRegressor(0, loss="squared_error", tol=1e-10).fit(frame, y)
    with pytest.warns(UserWarning, match="combinations"):
        errors = standard_errors(model, frame, y)
    test = errors.wald_test("region_*")
    assert test == errors.wald_test(["region_north", "region_south"])
    assert test.df == 2
    small = BMRMRegressor(0, loss="squared_error", tol=1e-10).fit(frame[["age"]], y)
    rss = [
        ((m.predict(f) - y) ** 2).sum()
        for m, f in ((small, frame[["age"]]), (model, frame))
    ]
    assert_allclose(test.statistic, (rss[0] / rss[1] - 1.0) / 2.0 * (N - 4), rtol=1e-6)
    assert errors.wald_test("age*") == errors.wald_test("age")
    assert test == errors.wald_test("region")
    for name in ("reg", "city", "city_*"):
        with pytest.raises(ValueError, match=f"no coefficient '{re.escape(name)}'"):
            errors.wald_test(name)


@pytest.mark.parametrize("loss", ["log_loss", "poisson"])
def test_factors_by_plain_names(loss):
    """A name is that of a factor only if its features are dummies of one factor."""
    region = np.array([*"abc"])[np.arange(N) % 3]
    frame = pd.get_dummies(pd.DataFrame({"region": region}), dtype=float)
    frame = frame.drop(columns="region_a").assign(size_x=X[:, 0] > 0.0, size_y=X[:, 1])
    weights = WEIGHTS / 3.0

    def errors_of(frame, matrix=None):
        kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
        model = kind(0, loss=loss, tol=1e-9)
        rows = frame.astype(float) if matrix is None else matrix(frame.astype(float))
        model.fit(rows, TARGETS[loss], sample_weight=weights)
        names = None if matrix is None else frame.columns
        given = {"feature_names": names}
        return standard_errors(model, rows, TARGETS[loss], weights, **given)

    errors = errors_of(frame)
    assert errors.factors == {"region": ["region_b", "region_c"]}
    assert errors.wald_test("region") == errors.wald_test(["region_b", "region_c"])
    assert errors_of(frame, sparse.csr_array).factors == errors.factors
    prefixed = errors_of(frame.add_prefix("cat__"))
    for name in ("region", "cat__region"):
        assert prefixed.wald_test(name) == errors.wald_test("region")
    # Numbers and dummies of another factor, which begin with the same name.
    for other in (X[:, 2], X[:, 2] > 0.0, 1e-11 * np.exp(X[:, 2])):
        both = errors_of(frame.assign(region_income=other))
        with pytest.raises(ValueError, match="no coefficient 'region'"):
            both.wald_test("region")
    # A feature of this name is a feature.
    named = errors_of(frame.assign(region=X[:, 2]))
    assert named.wald_test("region").df == 1


def test_factors_of_several_classes():
    """A plain name is about the coefficients of all classes."""
    region = X[:, :1] > [[0.5, -0.5]]
    frame = pd.DataFrame(
        np.column_stack([region[:, 0], ~region[:, 1], X[:, 1]]),
        columns=["region_a", "region_b", "age"],
    )
    model = LogisticRegression(C=np.inf, tol=1e-11).fit(frame, CLASSES)
    errors = standard_errors(model, frame, CLASSES, reference=0)
    for name, features in (("region", ["region_a", "region_b"]), ("age", ["age"])):
        pairs = [(each, output) for each in features for output in (1, 2)]
        found, expected = errors.wald_test(name), errors.wald_test(pairs)
        assert_allclose(found.statistic, expected.statistic, rtol=1e-9)
        assert found.df == len(pairs)
    with pytest.raises(ValueError, match="leave out one class"):
        standard_errors(model, frame, CLASSES).wald_test("age")


def test_exponentials_and_prints():
    errors = standard_errors(fitted("log_loss"), X, LABELS)
    plain, odds = errors.columns(), errors.columns(exponentiate=True)
    for name in ("estimate", "lower", "upper"):
        assert_allclose(odds[name], np.exp(plain[name]))
    assert_allclose(odds["std_error"], plain["std_error"] * np.exp(plain["estimate"]))
    assert_allclose(odds["p_value"], plain["p_value"])
    lines = repr(errors).splitlines()
    assert len(lines) == 6
    assert lines[1].split()[:2] == ["(intercept)", f"{errors.estimates[0]:.4g}"]


@pytest.mark.filterwarnings("ignore:The model has a penalty")
@pytest.mark.parametrize(
    ("inner", "active"),
    [
        ({"coef_bounds": (-2.0, 2.0)}, {"coef_bounds": (-0.1, 0.1)}),
        (
            {"coef_constraints": (np.ones((1, 3)), [5.0])},
            {"coef_constraints": (np.ones((1, 3)), [0.1])},
        ),
    ],
)
def test_bounds_that_are_not_active(inner, active):
    y = TARGETS["squared_error"]
    model = BMRMRegressor(1e-3, loss="squared_error", tol=1e-10)
    expected = standard_errors(model.fit(X, y), X, y).std_errors
    found = standard_errors(model.set_params(**inner).fit(X, y), X, y).std_errors
    assert_allclose(found, expected, rtol=1e-4)
    model.set_params(**active).fit(X, y)
    for function in (standard_errors, fit_statistics, leverages):
        with pytest.raises(ValueError, match="bounds or constraints"):
            function(model, X, y)


def test_penalties_without_degrees_of_freedom():
    y = TARGETS["squared_error"]
    model = BMRMRegressor(
        1e-2, loss="squared_error", penalty="quadratic", penalty_matrix=np.eye(3)
    ).fit(X, y)
    for function in (fit_statistics, leverages):
        with pytest.raises(ValueError, match="degrees of freedom of penalty"):
            function(model, X, y)


def test_frequencies_per_exposure_have_residuals_of_counts():
    counts, data = TARGETS["poisson"], {"sample_weight": WEIGHTS}
    kind = {"kind": "quantile", "random_state": 0}
    model = BMRMRegressor(0, loss="poisson", tol=1e-9).fit(X, counts / WEIGHTS, **data)
    found = residuals(model, X, counts / WEIGHTS, **data, **kind)
    offset = {"offset": np.log(WEIGHTS)}
    expected = residuals(fitted("poisson", **offset), X, counts, **offset, **kind)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="need counts"):
        residuals(model, X, counts + 0.5, **kind)


@pytest.mark.parametrize("kind", ["Logit", "MNLogit", "Poisson"])
@pytest.mark.parametrize("at", ["overall", "mean"])
def test_marginal_effects(kind, at):
    sm = pytest.importorskip("statsmodels.api")
    y = {"Logit": LABELS, "MNLogit": CLASSES, "Poisson": TARGETS["poisson"]}[kind]
    peer = getattr(sm, kind)(y, ONES).fit(disp=0, maxiter=100).get_margeff(at=at)
    if kind == "Poisson":
        model = fitted("poisson")
    else:
        model = LogisticRegression(C=np.inf, tol=1e-11).fit(X, y)
    found = marginal_effects(model, X, y, at=at)
    k = 3 if kind == "MNLogit" else 1
    ours = [
        each.reshape(k, 3).T.squeeze() for each in (found.estimates, found.std_errors)
    ]
    assert_allclose(ours[0], peer.margeff, rtol=1e-5)
    assert_allclose(ours[1], peer.margeff_se, rtol=1e-5)
    again = marginal_effects(model, sparse.csr_array(X), y, at=at)
    assert_allclose(again.std_errors, found.std_errors, rtol=1e-6)
    assert "(intercept)" not in found.features


def test_marginal_effects_are_derivatives():
    data = {"sample_weight": WEIGHTS, "offset": OFFSET}
    model = fitted("gamma", **data)
    found = marginal_effects(model, X, TARGETS["gamma"], kind="HC0", **data)
    step = np.array([1e-5, 0.0, 0.0])
    high, low = (model.predict(X + s, offset=OFFSET) for s in (step, -step))
    expected = np.average((high - low) / 2e-5, weights=WEIGHTS)
    assert_allclose(found.estimates[0], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="coefficients"):
        marginal_effects(fitted("squared_error"), X, TARGETS["squared_error"])


@pytest.mark.parametrize("loss", TARGETS)
def test_residuals_and_leverages_are_those_of_statsmodels(loss):
    peer, y = theirs(loss, var_weights=WEIGHTS), TARGETS[loss]
    data = {"sample_weight": WEIGHTS}
    model = fitted(loss, **data)
    expected = {
        "response": peer.resid_response,
        "pearson": peer.resid_pearson,
        "deviance": peer.resid_deviance,
    }
    for kind, each in expected.items():
        found = residuals(model, X, y, kind=kind, **data)
        assert_allclose(found, each, rtol=1e-5, atol=1e-5)
    hat = peer.get_hat_matrix_diag(observed=False)
    assert_allclose(leverages(model, X, y, **data), hat, rtol=1e-5)
    assert_allclose(leverages(model, sparse.csr_array(X), y, **data), hat, rtol=1e-5)


@pytest.mark.parametrize("loss", TARGETS)
def test_quantile_residuals_are_normal(loss):
    model, y = fitted(loss), TARGETS[loss]
    found = [residuals(model, X, y, kind="quantile", random_state=i) for i in (0, 0, 1)]
    assert_allclose(found[0], found[1])
    if loss in ("log_loss", "poisson"):
        assert stats.kstest(found[0], "norm").pvalue > 0.01
        assert not np.allclose(found[0], found[2])
    if loss == "squared_error":
        scale = fit_statistics(model, X, y).dispersion
        assert_allclose(found[0], (y - model.predict(X)) / np.sqrt(scale))
    if loss == "gamma":
        scale = fit_statistics(model, X, y).dispersion
        theirs = stats.gamma(1.0 / scale, scale=model.predict(X) * scale)
        assert_allclose(stats.norm.cdf(found[0]), theirs.cdf(y), rtol=1e-6)
    if loss == "tweedie":
        # Differences of the distribution function are integrals of the density.
        from sklearn_subqn._inference.likelihoods import distribution, log_likelihoods

        grid = np.linspace(0.5, 0.6, 2001)
        ones = np.ones(len(grid))
        density = np.exp(log_likelihoods(1.5, 0.1 * ones, grid, ones, 0.8))
        up = distribution(1.5, np.exp(0.1) * ones, grid, 0.8 * ones)[1]
        assert_allclose(up[-1] - up[0], np.trapezoid(density, grid), rtol=1e-6)


def test_powers_have_the_largest_likelihood():
    families = pytest.importorskip("statsmodels.api").families
    counts = RNG.poisson(1.5 * np.exp(0.3 * X[:, 0]))
    y = RNG.gamma(2.0 * np.maximum(counts, 1)) * (counts > 0)
    model = BMRMRegressor(0, loss="tweedie", tol=1e-9)
    found = tweedie_power(model, X, y)
    assert model.power == 1.5

    def likelihood(power, dispersion):
        means = BMRMRegressor(0, loss="tweedie", power=power, tol=1e-9).fit(X, y)
        family = families.Tweedie(families.links.Log(), power, eql=False)
        return family.loglike(y, means.predict(X), scale=dispersion)

    best = likelihood(found.power, found.dispersion)
    assert_allclose(best, found.log_likelihood, rtol=1e-8)
    for factor in (0.97, 1.03):
        assert likelihood(found.power * factor, found.dispersion) < best
        assert likelihood(found.power, found.dispersion * factor) < best
    with pytest.warns(UserWarning, match="end 1.2 of the interval"):
        tweedie_power(model, X, y, powers=(1.1, 1.2))
    with pytest.raises(ValueError, match="within 1 and 2"):
        tweedie_power(model, X, y, powers=(1.0, 1.5))
    with pytest.raises(ValueError, match="tweedie"):
        tweedie_power(BMRMRegressor(), X, y)
