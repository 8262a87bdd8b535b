"""Penalties of differences of coefficients, which leave some of these free."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import Ridge

from sklearn_subqn import BMRMClassifier, BMRMRegressor
from sklearn_subqn._problems import linear

LEVELS = 12


def differences(order, d=LEVELS):
    """Return B, where wᵀ B w is the sum of squared differences of an order."""
    D = np.diff(np.eye(d), order, axis=0)
    return D.T @ D


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, LEVELS, n)
    return np.eye(LEVELS)[level], np.sin(level / 3.0) + 0.5 * rng.normal(size=n)


def model(kind, matrix, loss, **given):
    return kind(
        0.02, loss=loss, penalty="quadratic", penalty_matrix=matrix, tol=1e-8, **given
    )


def least(X, y, matrix, risk, alpha=0.02, *, fit_intercept=True):
    """The least objective by a quasi-Newton method of SciPy."""
    d = X.shape[1]

    def objective(x):
        w, b = x[:d], x[d] * fit_intercept
        value, u = risk(X @ w + b)
        gradient = np.append(X.T @ u + alpha * matrix @ w, u.sum() * fit_intercept)
        return value + alpha * w @ matrix @ w / 2, gradient

    options = {"gtol": 1e-9, "maxiter": 2000}
    found = optimize.minimize(
        objective, np.zeros(d + 1), jac=True, method="BFGS", options=options
    )
    return found.fun


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "log_loss"])
def test_least_objective_is_that_of_scipy(loss, order, fit_intercept):
    X, z = data()
    matrix = differences(order)
    if loss == "squared_error":
        y, kind = z, BMRMRegressor
        best = least(
            *(X, y, matrix),
            lambda s: (np.mean((s - y) ** 2) / 2, (s - y) / len(y)),
            fit_intercept=fit_intercept,
        )
    elif loss == "poisson":
        y, kind = np.round(np.exp(z)), BMRMRegressor
        best = least(
            *(X, y, matrix),
            lambda s: (np.mean(np.exp(s) - y * s), (np.exp(s) - y) / len(y)),
            fit_intercept=fit_intercept,
        )
    else:
        y, kind = np.where(z > 0.3, 1, -1), BMRMClassifier
        best = least(
            *(X, y, matrix),
            lambda s: (
                np.mean(np.logaddexp(0.0, -y * s)),
                -y / (1.0 + np.exp(y * s)) / len(y),
            ),
            fit_intercept=fit_intercept,
        )
    for rows in X, sparse.csr_array(X):
        ours = model(kind, matrix, loss, fit_intercept=fit_intercept).fit(rows, y)
        assert ours.objective_ == pytest.approx(best, rel=1e-6)
        assert ours.objective_ - ours.dual_gap_ <= best + 1e-12
        assert ours.dual_gap_ <= 1e-6 * abs(best)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
def test_combined_features_and_the_matrix_itself_agree(loss, monkeypatch):
    X, z = data()
    y = np.where(z > 0.3, 1, -1)
    matrix = differences(1) + 0.1 * np.eye(LEVELS)
    ours = model(BMRMClassifier, matrix, loss).set_params(tol=1e-5).fit(X, y)
    found = ours.objective_, ours.dual_gap_
    monkeypatch.setattr(linear, "_MOST_TURNED", 0)
    other = ours.set_params(tol=1e-3, max_iter=3000).fit(X, y)
    assert found[0] - found[1] <= other.objective_ + 1e-12
    assert other.objective_ - other.dual_gap_ <= found[0] + 1e-12
    with pytest.raises(ValueError, match="definite"):
        model(BMRMClassifier, differences(1), loss).fit(X, y)


def test_squares_are_those_of_ridge_of_combined_features():
    X, y = data()
    matrix = differences(2) + 0.01 * np.eye(LEVELS)
    root = np.linalg.cholesky(np.linalg.inv(matrix))
    ridge = Ridge(0.02 * len(y)).fit(X @ root, y)
    ours = model(BMRMRegressor, matrix, "squared_error").fit(X, y)
    np.testing.assert_allclose(ours.coef_, root @ ridge.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X @ root), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_starts_and_types(dtype):
    X, z = data()
    y, X = np.round(np.exp(z)), X.astype(dtype)
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    ours = model(BMRMRegressor, differences(2), "poisson", warm_start=True)
    ours.set_params(tol=1e-6).fit(X, y, sample_weight=weights)
    assert ours.coef_.dtype == dtype
    first = ours.objective_, ours.predict(X)
    again = ours.fit(X, y, sample_weight=weights)
    assert again.objective_ == pytest.approx(first[0], rel=1e-6)
    rows = np.repeat(np.arange(len(y)), weights)
    other = model(BMRMRegressor, differences(2), "poisson").set_params(tol=1e-6)
    other.fit(X[rows], y[rows])
    np.testing.assert_allclose(other.predict(X), first[1], rtol=1e-2)
    assert other.objective_ == pytest.approx(first[0], rel=1e-5)


def test_matrix_without_a_penalty_or_with_negative_eigenvalues():
    X, y = data()
    free = model(BMRMRegressor, np.zeros((LEVELS, LEVELS)), "squared_error").fit(X, y)
    means = [y[X[:, j] > 0].mean() for j in range(LEVELS)]
    np.testing.assert_allclose(free.predict(np.eye(LEVELS)), means, rtol=1e-5)
    with pytest.raises(ValueError, match="semidefinite"):
        model(BMRMRegressor, -differences(1), "squared_error").fit(X, y)
