"""Standard errors of ordered classes: a regression of all comparisons at once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    fit_statistics,
    leverages,
    marginal_effects,
    standard_errors,
)

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3)) + np.array([0.0, 50.0, 0.0])
LEVELS = np.digitize(X @ [1.0, -0.5, 0.0] + RNG.logistic(size=N), [-26.5, -25.0, -23.5])
ORDER = np.array([*"dbca"])
Y = ORDER[LEVELS]
COUNTS = RNG.integers(0, 4, N)
GROUPS = RNG.integers(0, 40, N)
LOSSES = ["ordinal_all_threshold", "ordinal_immediate_threshold"]
each_loss = pytest.mark.parametrize("loss", LOSSES)


def fitted(loss, rows=X, y=Y, classes=ORDER, alpha=0.0, **data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BMRMClassifier(alpha, loss=loss, classes=classes, tol=1e-11)
        return model.fit(rows, y, **data)


@each_loss
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_equal_to_stacked_comparisons_of_statsmodels(loss, groups):
    sm = pytest.importorskip("statsmodels.api")
    found = standard_errors(fitted(loss), X, Y, groups=groups)
    rows, k = np.repeat(np.arange(N), 3), np.tile(np.arange(3), N)
    above = LEVELS[rows] > k
    used = np.full(len(rows), True)
    if "immediate" in loss:
        used = (LEVELS[rows] == k) | (LEVELS[rows] == k + 1)
    stacked = np.hstack([-np.eye(3)[k], X[rows]])
    names = rows if groups is None else groups[rows]
    theirs = sm.Logit(above[used] * 1.0, stacked[used]).fit(
        disp=0,
        tol=1e-12,
        cov_type="cluster",
        cov_kwds={"groups": names[used], "use_correction": False},
    )
    factor = 1.0 if groups is None else 40.0 / 39.0 * (N - 1.0) / (N - 6.0)
    assert_allclose(found.estimates, theirs.params, rtol=1e-6, atol=1e-7)
    assert_allclose(found.std_errors, theirs.bse * factor**0.5, rtol=1e-6)
    assert found.features.tolist() == ["d|b", "b|c", "c|a", "x0", "x1", "x2"]


def test_near_the_likelihood_of_proportional_odds():
    """The comparisons have the same parameters as the model, if it is true."""
    ordinal = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    theirs = ordinal.OrderedModel(LEVELS, X - X.mean(axis=0), distr="logit")
    theirs = theirs.fit(method="bfgs", disp=0)
    found = standard_errors(fitted(LOSSES[0]), X, Y)
    apart = np.abs(found.estimates[3:] - theirs.params[:3]) / theirs.bse[:3]
    assert apart.max() < 0.5
    assert_allclose(found.std_errors[3:], theirs.bse[:3], rtol=0.1)


@each_loss
def test_counts_formats_and_units(loss):
    repeated = np.repeat(np.arange(N), COUNTS)
    expected = standard_errors(
        fitted(loss, X[repeated], Y[repeated]), X[repeated], Y[repeated]
    )
    model = fitted(loss, sample_weight=COUNTS)
    found = standard_errors(model, X, Y, COUNTS, weights="frequency")
    assert_allclose(found.covariance, expected.covariance, rtol=1e-5, atol=1e-9)
    assert found.df_resid == expected.df_resid
    rows = sparse.csr_array(X)
    by_csr = standard_errors(model, rows, Y, COUNTS, weights="frequency")
    assert_allclose(by_csr.covariance, found.covariance, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("classes", [[0, 1], [1, 0]])
@each_loss
def test_two_classes_are_those_of_the_log_loss(loss, classes):
    y = (LEVELS > 1).astype(int)
    found = standard_errors(fitted(loss, y=y, classes=classes), X, y)
    theirs = standard_errors(fitted("log_loss", y=y, classes=None), X, y, kind="HC0")
    sign = 1.0 if classes == [0, 1] else -1.0
    assert_allclose(found.std_errors, theirs.std_errors, rtol=1e-6)
    signs = sign * np.array([-1.0, 1.0, 1.0, 1.0])
    assert_allclose(found.estimates, signs * theirs.estimates, rtol=1e-6, atol=1e-7)


@each_loss
def test_penalties_and_dependent_features(loss):
    rows = np.column_stack([X, X[:, 0] - 2.0 * X[:, 2]])
    with pytest.warns(UserWarning, match="x3"):
        found = standard_errors(fitted(loss, rows), rows, Y)
    expected = standard_errors(fitted(loss), X, Y)
    assert np.isnan(found.estimates[-1])
    assert_allclose(found.std_errors[:-1], expected.std_errors, rtol=1e-5)
    # A model with a penalty is at its own optimum: else a warning says how far off.
    with pytest.warns(UserWarning, match="has a penalty"):
        shrunk = standard_errors(fitted(loss, alpha=1.0), X, Y)
    assert np.all(shrunk.std_errors[3:] < expected.std_errors[3:])


@pytest.mark.filterwarnings("ignore:Fitting BMRMClassifier did not prove")
def test_bootstraps_and_refusals():
    model = fitted(LOSSES[0])
    found = standard_errors(model, X, Y)
    resampled = standard_errors(
        model, X, Y, kind="bootstrap", n_resamples=30, random_state=0
    )
    assert_allclose(resampled.std_errors, found.std_errors, rtol=0.5)
    for kind, message in (("fisher", "likelihood"), ("HC3", "one score")):
        with pytest.raises(ValueError, match=message):
            standard_errors(model, X, Y, kind=kind)
    with pytest.raises(ValueError, match="no likelihood"):
        fit_statistics(model, X, Y)


@each_loss
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_features_that_separate_all_thresholds(loss, sign):
    """Only samples of the highest class are marked: the others decide the rest."""
    mark = (LEVELS == 3) & (RNG.random(N) < 0.5)
    rows = np.column_stack([X, sign * mark])
    with pytest.warns(UserWarning, match="do not say how large the coefficients of x3"):
        found = standard_errors(fitted(loss, rows), rows, Y)
    expected = standard_errors(fitted(loss, X[~mark], Y[~mark]), X[~mark], Y[~mark])
    assert np.isnan(found.std_errors[-1])
    assert_allclose(found.std_errors[:-1], expected.std_errors, rtol=1e-5)
    # A feature that separates the highest class from the next one only has an optimum.
    rows[:, -1] = sign * (mark | (LEVELS == 0))
    assert np.isfinite(standard_errors(fitted(loss, rows), rows, Y).std_errors).all()


def test_factors():
    region = RNG.integers(0, 3, N)
    rows = np.column_stack([X, region == 1, region == 2])
    names = ["a", "b", "c_1", "region_1", "region_2"]
    found = standard_errors(fitted(LOSSES[0], rows), rows, Y, feature_names=names)
    assert found.factors == {"region": names[3:]}
    assert found.wald_test("region") == found.wald_test(names[3:])


@pytest.mark.parametrize("weighted", [False, True])
def test_likelihood_is_that_of_statsmodels(weighted):
    ordinal = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    rows = np.repeat(np.arange(N), COUNTS) if weighted else np.arange(N)
    theirs = ordinal.OrderedModel(
        LEVELS[rows], X[rows] - X.mean(axis=0), distr="logit"
    ).fit(method="newton", disp=0)
    data = {"sample_weight": COUNTS} if weighted else {}
    model = fitted("ordinal_logit", **data)
    options = {"weights": "frequency"} if weighted else {}
    found = fit_statistics(model, X, Y, **data, **options)
    assert_allclose(found.log_likelihood, theirs.llf, rtol=1e-10)
    assert_allclose(found.null_log_likelihood, theirs.llnull, rtol=1e-10)
    assert_allclose([found.aic, found.bic], [theirs.aic, theirs.bic], rtol=1e-10)
    assert_allclose(found.d2, theirs.prsquared, rtol=1e-8)
    assert found.df_resid == pytest.approx(theirs.df_resid)
    errors = standard_errors(model, X, Y, **data, **options)
    assert_allclose(errors.estimates[3:], theirs.params[:3], rtol=1e-6, atol=1e-8)
    assert_allclose(errors.std_errors[3:], theirs.bse[:3], rtol=1e-5)
    with pytest.raises(ValueError, match="one score"):
        leverages(model, X, Y, **data)
    with pytest.raises(ValueError, match="log loss of all classes"):
        marginal_effects(model, X, Y, **data)


def test_statistics_of_two_classes_are_those_of_the_log_loss():
    y = (LEVELS > 1).astype(int)
    both = [fitted(loss, y=y, classes=None) for loss in ("ordinal_logit", "log_loss")]
    ordered, plain = (fit_statistics(model, X, y) for model in both)
    assert_allclose(ordered, plain, rtol=1e-8)
    # Squares leave the effective degrees of freedom.
    rows = RNG.normal(size=(60, 30))
    both = [
        fitted(loss, rows, y[:60], None, alpha=0.1)
        for loss in ("ordinal_logit", "log_loss")
    ]
    ordered, plain = (fit_statistics(model, rows, y[:60]) for model in both)
    assert_allclose(ordered, plain, rtol=1e-6)
