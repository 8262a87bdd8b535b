"""BMRMOutlierDetector by the share of outliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

from sklearn_subqn import BMRMOutlierDetector


def cloud(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(2.0, 1.0, (n, d))


def objective(model, X, weights):
    """J at the coefficients and the offset, by definition."""
    w, rho = model.coef_[0], model.offset_
    loss = weights @ np.maximum(rho - X @ w, 0.0) / weights.sum()
    alpha = 1.0 if model.alpha is None else model.alpha
    return 0.5 * alpha * w @ w - model.nu * rho + loss


@pytest.mark.parametrize("nu", [0.03, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("solver", ["auto", "alm"])
def test_the_optimum_is_that_of_libsvm(nu, solver):
    X = cloud()
    model = BMRMOutlierDetector(nu=nu, solver=solver, tol=1e-6).fit(X)
    other = OneClassSVM(kernel="linear", nu=nu, tol=1e-6).fit(X)
    scale = 1.0 / len(X)
    np.testing.assert_allclose(model.coef_, scale * other.coef_, rtol=2e-3, atol=1e-5)
    assert model.offset_ == pytest.approx(scale * other.offset_[0], rel=2e-3)
    value = -0.5 * scale**2 * float(other.coef_[0] @ other.coef_[0])
    assert model.objective_ >= value - 1e-7 * abs(value)
    assert model.objective_ - model.dual_gap_ <= value + 1e-7 * abs(value)
    assert model.objective_ == pytest.approx(objective(model, X, np.ones(len(X))))


@pytest.mark.parametrize("n", [30, 400])
@pytest.mark.parametrize("tol", [1e-1, 1e-4])
def test_bounds_hold_and_tighten(n, tol):
    X = cloud(n, 80)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, size=n).astype(float)
    model = BMRMOutlierDetector(2.0, nu=0.3, tol=tol).fit(X, sample_weight=weights)
    assert model.dual_gap_ <= tol * abs(model.objective_)
    assert model.objective_ == pytest.approx(objective(model, X, weights), rel=1e-9)
    exact = BMRMOutlierDetector(2.0, nu=0.3, tol=1e-8).fit(X, sample_weight=weights)
    assert model.objective_ - model.dual_gap_ <= exact.objective_ <= model.objective_
    # Any w and rho have a larger objective: descend from the optimum.
    share = weights / weights.sum()

    def value(x):
        loss = share @ np.maximum(x[-1] - X @ x[:-1], 0.0)
        return x[:-1] @ x[:-1] - 0.3 * x[-1] + loss

    start = np.append(exact.coef_[0], exact.offset_)
    found = optimize.minimize(value, start, method="Powell", options={"maxiter": 2})
    assert found.fun >= exact.objective_ - exact.dual_gap_


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.7])
def test_the_share_of_outliers_is_nu(nu):
    X = cloud(3000, 6)
    weights = np.random.default_rng(2).random(3000)
    model = BMRMOutlierDetector(nu=nu).fit(X, sample_weight=weights)
    scores = model.decision_function(X)
    total = weights.sum()
    assert weights[scores < 0.0].sum() / total <= nu + 1e-9
    assert weights[scores <= 1e-3 * abs(model.offset_)].sum() / total >= nu - 1e-9
    np.testing.assert_array_equal(model.predict(X) < 0, scores < 0.0)


def test_of_all_samples_the_weights_are_the_mean():
    X = cloud()
    model = BMRMOutlierDetector(nu=1.0).fit(X)
    np.testing.assert_allclose(model.coef_[0], X.mean(axis=0), rtol=1e-9)


def test_alpha_only_scales():
    X = cloud()
    one, other = (BMRMOutlierDetector(a, nu=0.2).fit(X) for a in (1.0, 1e-3))
    np.testing.assert_allclose(other.coef_, 1e3 * one.coef_, rtol=1e-6)
    assert other.offset_ == pytest.approx(1e3 * one.offset_, rel=1e-6)
    scores, scaled = one.decision_function(X), 1e-3 * other.decision_function(X)
    np.testing.assert_allclose(scaled, scores, atol=1e-6)


def test_weights_are_repetitions():
    X = cloud()
    weights = np.random.default_rng(0).integers(0, 4, size=len(X))
    model = BMRMOutlierDetector(nu=0.2).fit(X, sample_weight=weights)
    other = BMRMOutlierDetector(nu=0.2).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6)
    assert model.offset_ == pytest.approx(other.offset_, rel=1e-6)


def test_defaults():
    X = cloud()
    default, given = BMRMOutlierDetector().fit(X), BMRMOutlierDetector(nu=0.1).fit(X)
    np.testing.assert_array_equal(default.coef_, given.coef_)
    assert np.mean(default.predict(X) < 0) <= 0.1
    # Of a margin of one.
    for params in ({"alpha": 1e-2}, {"penalty": "l1"}, {"solver": "ls-bmrm"}):
        assert BMRMOutlierDetector(**params).fit(X).offset_ == 1.0
    half = BMRMOutlierDetector(nu=0.1, contamination=0.5).fit(X)
    np.testing.assert_array_equal(half.coef_, given.coef_)
    assert np.mean(half.predict(X) < 0) == pytest.approx(0.5, abs=0.01)


def test_warm_starts_and_callbacks():
    X = cloud(1000, 30)
    seen = []
    model = BMRMOutlierDetector(nu=0.2, warm_start=True, callback=seen.append).fit(X)
    assert len(seen) == len(model.history_[0])
    objective = model.objective_
    assert model.fit(X).objective_ == pytest.approx(objective, rel=2e-3)
    assert len(model.history_[0]) < len(seen)
    model.set_params(callback=lambda progress: True, warm_start=False).fit(X)
    assert len(model.history_[0]) == 1
    assert model.objective_ - model.dual_gap_ <= objective


def test_samples_around_the_origin_are_told():
    X = cloud() - 2.0
    with pytest.warns(UserWarning, match="do not center"):
        model = BMRMOutlierDetector(nu=0.1).fit(X - X.mean(axis=0))
    assert not model.coef_.any()
    assert model.objective_ == 0.0


def test_a_tolerance_that_is_not_reached_is_told():
    # One compiled loop would have to convert too many numbers.
    X = cloud(15000, 30).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="was asked for"):
        BMRMOutlierDetector(nu=0.1, tol=1e-15, max_iter=1).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": 0.0}, "nu must be > 0"),
        ({"nu": 1.5}, "nu must be > 0 and <= 1"),
        ({"nu": 0.1, "penalty": "l1"}, "nu needs penalty='l2'"),
        ({"nu": 0.1, "solver": "bmrm"}, "nu needs solver='auto' or solver='alm'"),
        ({"alpha": 0.0}, "alpha must be finite and > 0"),
    ],
)
def test_errors(params, message):
    with pytest.raises(ValueError, match=message):
        BMRMOutlierDetector(**params).fit(cloud())
