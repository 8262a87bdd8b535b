"""Data in small or large units give the same models, and certificates stay true."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRegressor,
    MulticlassHingeClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)

# Losses of the residual, with the power of the unit that they are in.
POWERS = {
    "absolute_error": 1,
    "quantile": 1,
    "epsilon_insensitive": 1,
    "squared_epsilon_insensitive": 2,
    "huber": 2,
    "squared_error": 2,
}
SMALL = [1e-6, 1e-9, 1e-12, 1e-15]


def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    return X, X @ np.arange(6.0) + rng.normal(size=120) + 3.0


def fit_in_units(loss, unit, **params):
    """Return objective and bound of the same problem for targets in other units."""
    X, y = regression()
    power = POWERS[loss]
    if loss == "huber" or "epsilon" in loss:
        params["epsilon"] = 0.1 * unit
    alpha = 1e-2 * unit ** (power - 2)
    model = BMRMRegressor(alpha, loss=loss, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, unit * y)
    scale = unit**power
    return model.objective_ / scale, (model.objective_ - model.dual_gap_) / scale


@pytest.mark.parametrize("unit", SMALL)
@pytest.mark.parametrize("loss", POWERS)
def test_small_targets(loss, unit):
    best, bound = fit_in_units(loss, 1.0, tol=1e-9)
    value, lower = fit_in_units(loss, unit)
    assert lower <= best * (1 + 1e-9)
    assert bound <= value * (1 + 1e-9)
    assert value - lower <= 2e-3 * value


@pytest.mark.parametrize("unit", SMALL)
@pytest.mark.parametrize("loss", POWERS)
@pytest.mark.parametrize("solver", ["sublbfgs", "subbfgs", "lbfgs"])
def test_bounds_for_small_targets(loss, unit, solver):
    if solver == "lbfgs" and POWERS[loss] == 1:
        pytest.skip("for smooth losses")
    best, bound = fit_in_units(loss, 1.0, tol=1e-9)
    value, lower = fit_in_units(loss, unit, solver=solver)
    assert lower <= best * (1 + 1e-9)
    assert bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("shift", [1e6, 1e10, 1e12])
@pytest.mark.parametrize("solver", ["auto", "sublbfgs"])
def test_bounds_for_shifted_targets(shift, solver):
    X, y = regression()
    best = BMRMRegressor(1e-2, loss="quantile", tol=1e-9).fit(X, y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BMRMRegressor(1e-2, loss="quantile", solver=solver).fit(X, y + shift)
    # Targets are rounded themselves.
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-9) + 1e-15 * shift


@pytest.mark.parametrize("unit", [1e-6, 1e-10])
def test_bounds_for_small_label_costs(unit):
    X, y = regression()
    classes = np.digitize(y, [0.0, 6.0])
    costs = 1.0 - np.eye(3)
    best = MulticlassHingeClassifier(0.1, tol=1e-9).fit(X, classes).objective_
    model = MulticlassHingeClassifier(
        0.1 / unit, label_cost=unit * costs, solver="sublbfgs"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, classes)
    assert model.objective_ - model.dual_gap_ <= unit * best * (1 + 1e-9)


def test_predictions_of_small_targets_keep_their_digits():
    X, y = regression()
    for unit in (1.0, 1e-13, 1e-30):
        model = OnlineLBFGSRegressor(alpha=0.0, random_state=0).fit(X, unit * y)
        exact = X @ model.coef_ + model.intercept_
        assert_allclose(model.predict(X), exact, rtol=1e-10, atol=1e-11 * unit)


def test_precision_lost_by_float32_is_told():
    X, y = load_breast_cancer(return_X_y=True)
    X = (1e4 * X).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="rounded to float32.*X to float64"):
        model = SubLBFGSLinearSVC(alpha=1e-5).fit(X, y)
    assert model.dual_gap_ > 0.01 * model.objective_
    # No warning, though the optimum is 0 and the rounded one above it.
    targets = np.full(len(y), 3.3, np.float32)
    model = BMRMRegressor(loss="absolute_error").fit(X, targets)
    assert model.dual_gap_ <= 1e-6
    # Nor one in float64.
    model = SubLBFGSLinearSVC(alpha=1e-5).fit(X.astype(float), y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


def test_predictions_of_large_float32_targets_are_finite():
    X, y = regression()
    X, y = X.astype(np.float32), y.astype(np.float32) * np.float32(1e27)
    model = OnlineLBFGSRegressor(alpha=1e-9, random_state=0).fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scores_of_features_in_small_units_keep_their_order(fit_intercept):
    X, y = regression()
    y = (y > 3.0).astype(int)
    # Far from separating the classes: scores are small beside one.
    model = SubLBFGSLinearSVC(1e-8, fit_intercept=fit_intercept).fit(1e-8 * X, y)
    exact = 1e-8 * X @ model.coef_[0] + model.intercept_
    auc = roc_auc_score(y, model.decision_function(1e-8 * X))
    assert np.ptp(exact) < 1e-6
    assert auc == pytest.approx(roc_auc_score(y, exact), abs=1e-3)
    assert auc > 0.8


def test_outliers_among_features_in_small_units():
    X, _ = regression()
    model = BMRMOutlierDetector(contamination=0.1).fit(1e-9 * X + 3e-9)
    assert np.mean(model.predict(1e-9 * X + 3e-9) == -1) == pytest.approx(0.1, abs=0.01)


def test_ties_between_classes_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 50))
    model = MulticlassHingeClassifier(0.1).fit(X, np.arange(60) % 3)
    model.coef_[1], model.intercept_[1] = model.coef_[0][::-1], model.intercept_[0]
    tied = X + X[:, ::-1]
    scores = model.decision_function(tied)
    assert np.all(scores[:, 0] == scores[:, 1])
    for row in range(60):
        one = model.decision_function(tied[row : row + 1])
        assert_allclose(one[0], scores[row], rtol=0, atol=0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
@pytest.mark.parametrize("alpha", [1e-1, 1e-4, 1e-6])
@pytest.mark.parametrize("penalty", ["entropy", "normalized_entropy"])
def test_entropies_with_small_alpha(loss, alpha, penalty):
    X, y = regression()
    y = (y > 3.0).astype(int)
    model = BMRMClassifier(alpha, penalty=penalty, loss=loss).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    assert model.score(X, y) > 0.6


def test_thresholds_of_outliers_know_the_names_of_features():
    X, _ = regression()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = BMRMOutlierDetector(contamination=0.1).fit(frame)
    assert_allclose(
        model.offset_, BMRMOutlierDetector(contamination=0.1).fit(X).offset_
    )


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_bounds_for_large_targets(loss, penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=500)
    if loss == "poisson":
        y = rng.poisson(1e6 * np.exp(np.clip(y, None, 3.0))).astype(float)
    else:
        y *= 1e6
    options = {"epsilon": 1.35e6} if loss == "huber" else {}
    alpha = {"squared_error": 5e4, "huber": 5e4, "poisson": 5e4}[loss]
    if penalty == "l2":
        alpha = 0.1
    model = BMRMRegressor(alpha, loss=loss, penalty=penalty, **options).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    assert np.count_nonzero(model.coef_) > 0


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_iterations_of_least_squares_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=500)
    plain = BMRMRegressor(0.05, penalty="l1").fit(X, y)
    scaled = BMRMRegressor(0.05 * unit, penalty="l1").fit(X, unit * y)
    assert abs(scaled.n_iter_ - plain.n_iter_) <= 1
    assert_allclose(scaled.coef_, unit * plain.coef_, atol=1e-6 * unit)


# Where the optimum is zero no relative gap is proven.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("base", [1e3, 1e5, 1e8])
@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs", "ls-bmrm"])
def test_least_squares_of_targets_far_from_zero(base, noise, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = base + noise * rng.normal(size=60)
    model = BMRMRegressor(1e-3, loss="squared_error", solver=solver).fit(X, y)
    A = np.column_stack([X, np.ones(60)])
    ridge = np.diag([0.06] * 4 + [0.0])
    w = np.linalg.solve(A.T @ A + ridge, A.T @ (y - base))
    optimum = 0.5 * np.mean((y - base - A @ w) ** 2) + 5e-4 * w[:4] @ w[:4]
    rounding = 1e-10 * base
    assert model.objective_ <= optimum * (1.0 + 2e-3) + rounding
    assert model.objective_ - model.dual_gap_ <= optimum + rounding


def test_multivariate_least_squares_of_targets_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = np.array([1e5, -3e7]) + rng.normal(size=(60, 2))
    model = BMRMRegressor(1e-3, metric=np.eye(2)).fit(X, Y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert_allclose(model.intercept_, [1e5, -3e7], rtol=1e-4)
