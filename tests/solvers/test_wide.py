"""Data with at least as many features as rows, or nearly so."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import make_classification, make_regression
from sklearn.svm import LinearSVC

from sklearn_subqn import (
    BMRMRegressor,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)

LOSSES = ["hinge", "squared_hinge"]

# Rows, features, and how many decades their scales span.
SHAPES = [(40, 1200, 0), (150, 300, 0), (150, 300, 2), (400, 250, 0)]

# Iterations that once were hundreds, or ended without a proof. Each makes a few
# products with X.
MOST = 80


def data(shape, container=np.asarray):
    n, d, decades = shape
    X, y = make_classification(
        n, d, n_informative=20, n_clusters_per_class=1, random_state=0
    )
    X = X * 10.0 ** np.linspace(-decades / 2, decades / 2, d)
    return container(X), y


def assert_proven(model, tol):
    assert model.dual_gap_ <= tol * model.objective_
    assert model.n_iter_ <= MOST


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_alpha_is_proven_in_few_iterations(shape, loss, alpha, fit_intercept):
    X, y = data(shape)
    model = SubLBFGSLinearSVC(alpha, loss=loss, fit_intercept=fit_intercept, tol=1e-6)
    assert_proven(model.fit(X, y), 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-1, 1e-5])
def test_bounds_are_below_what_another_solver_reaches(loss, alpha):
    X, y = data((60, 500, 0))
    model = SubLBFGSLinearSVC(alpha, loss=loss, fit_intercept=False, tol=1e-7)
    model.fit(X, y)
    peer = LinearSVC(
        loss=loss,
        C=1.0 / (60 * alpha),
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**6,
        random_state=0,
    )
    w = peer.fit(X, y).coef_[0]
    excess = np.maximum(1.0 - np.where(y, 1.0, -1.0) * (X @ w), 0.0)
    value = 0.5 * alpha * w @ w + np.mean(excess if loss == "hinge" else excess**2)
    assert model.objective_ - model.dual_gap_ <= value * (1.0 + 1e-9)
    assert value == pytest.approx(model.objective_, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("container", [sparse.csr_array, np.asfortranarray, np.float32])
def test_containers(loss, container):
    X, y = data((60, 500, 0))
    X = X.astype(np.float32).astype(np.float64)
    options = {"alpha": 1e-4, "loss": loss, "tol": 1e-6}
    expected = SubLBFGSLinearSVC(**options).fit(X, y)
    model = SubLBFGSLinearSVC(**options).fit(container(X), y)
    # float32 coefficients are rounded, by which rows leave their margin.
    rel = 1e-2 if container is np.float32 else 1e-5
    assert model.objective_ == pytest.approx(expected.objective_, rel=rel)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    X, y = data((60, 500, 0))
    weights = np.random.default_rng(0).integers(0, 3, size=60)
    options = {"alpha": 1e-3, "loss": loss, "tol": 1e-8}
    weighted = SubLBFGSLinearSVC(**options).fit(X, y, weights)
    repeated = SubLBFGSLinearSVC(**options).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-8)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_large_alpha_takes_a_few_passes(fit_intercept):
    X, y = data((400, 250, 0))
    model = SubLBFGSLinearSVC(100.0, fit_intercept=fit_intercept).fit(X, y)
    assert_proven(model, 1e-3)
    assert model.history_[0].passes[-1] < 4.0


def joint_problems():
    X, y = make_classification(
        120, 300, n_informative=20, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    yield "classes", MulticlassHingeClassifier, X, y
    labels = np.stack([y == 0, y > 1, X[:, 0] > 0.0], axis=1).astype(int)
    yield "labels", partial(MultilabelHingeClassifier, reduction="max"), X, labels


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", joint_problems(), ids=lambda kind: kind[0])
def test_joint_losses(kind, fit_intercept, alpha):
    _, estimator, X, y = kind
    model = estimator(alpha, fit_intercept=fit_intercept, tol=1e-4).fit(X, y)
    assert_proven(model, 1e-4)
    # The optimum of the margin, to which small alphas lead, scales with them.
    if alpha < 1e-3:
        larger = estimator(10 * alpha, fit_intercept=fit_intercept, tol=1e-4)
        value = larger.fit(X, y).objective_
        assert model.objective_ == pytest.approx(0.1 * value, rel=3e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_paths_are_proven_throughout(loss):
    X, y = data((90, 400, 0))
    alphas = np.geomspace(1.0, 1e-6, 7)
    # Each fit that is not proven to ``tol`` would warn, which is an error here.
    model = SubLBFGSLinearSVCCV(alphas, loss=loss, cv=3, tol=1e-5).fit(X, y)
    assert np.all(np.isfinite(np.asarray(model.scores_path_, dtype=float)))


@pytest.mark.parametrize("alpha", [1e-2, 1e-5])
@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "epsilon_insensitive"])
def test_regression(loss, alpha):
    X, y = make_regression(80, 200, n_informative=20, noise=5.0, random_state=0)
    y = y / y.std()
    options = {"loss": loss, "alpha": alpha, "solver": "auto", "tol": 1e-6}
    model = BMRMRegressor(fit_intercept=False, **options).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.n_iter_ <= 2 * MOST
    # SciPy minimizes minus the dual, in the positive and negative parts of its point.
    kernel = X @ X.T / alpha
    up, down = {"quantile": (model.quantile, 1.0 - model.quantile)}.get(loss, (1, 1))
    tube = 0.1 if loss == "epsilon_insensitive" else 0.0

    def dual(parts):
        u = parts[:80] - parts[80:]
        slope = kernel @ u - y
        value = u @ (slope - y) / 2.0 + tube * parts.sum()
        return value, np.concatenate([slope, -slope]) + tube

    peer = minimize(
        dual,
        np.zeros(160),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, up / 80)] * 80 + [(0.0, down / 80)] * 80,
        options={"ftol": 0.0, "gtol": 1e-13, "maxcor": 50, "maxiter": 10**4},
    )
    assert -peer.fun <= model.objective_ * (1.0 + 1e-12)
    assert -peer.fun == pytest.approx(model.objective_, rel=1e-6)
