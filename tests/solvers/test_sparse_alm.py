"""L1 penalties and elastic nets with losses that have kinks, and with smooth ones."""

from __future__ import annotations

import numpy as np
import pytest
from _door import BINARY_LOSSES, NOVELTY_LOSS, regression_losses
from scipy import optimize, sparse

from sklearn_subqn import BMRMClassifier, BMRMOutlierDetector, BMRMRegressor


def linear_optimum(X, y, alpha, low, high, epsilon, weights, fit_intercept):
    """The optimum of a loss of residuals with the L1 penalty, by HiGHS."""
    (n, d), free = X.shape, int(fit_intercept)
    one, none = np.ones((n, free)), np.zeros((n, n))
    above = np.hstack([-X, X, -one, one, -np.eye(n), none])
    below = np.hstack([X, -X, one, -one, none, -np.eye(n)])
    program = optimize.linprog(
        np.concatenate(
            [np.full(2 * d, alpha), np.zeros(2 * free), high * weights, -low * weights]
        ),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([epsilon - y, epsilon + y]),
        method="highs",
    )
    return program.fun


def regression(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, : min(d, 5)].sum(axis=1) + rng.standard_t(3, size=n)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", [(150, 8), (40, 120)])
@pytest.mark.parametrize("alpha", [0.1, 1e-2, 1e-4])
@pytest.mark.parametrize(
    "loss",
    [
        regression_losses(quantile=0.8)["quantile"],
        regression_losses(epsilon=0.5)["epsilon_insensitive"],
    ],
    ids=["quantile", "insensitive"],
)
def test_optimum_of_a_linear_program(loss, alpha, shape, fit_intercept):
    X, y = regression(*shape)
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    model = BMRMRegressor(
        alpha, loss=loss, penalty="l1", fit_intercept=fit_intercept, tol=1e-9
    ).fit(X, y, weights)
    optimum = linear_optimum(
        X,
        y,
        alpha,
        loss.set.low,
        loss.set.high,
        loss.set.tube,
        weights / weights.sum(),
        fit_intercept,
    )
    assert model.objective_ == pytest.approx(optimum, rel=1e-7)
    assert model.objective_ - model.dual_gap_ <= optimum * (1.0 + 1e-7)
    assert model.dual_gap_ <= 1e-9 * model.objective_


def test_many_more_features_than_rows():
    X, y = regression(200, 800)
    model = BMRMRegressor(1e-2, loss="absolute_error", penalty="l1").fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # Cuts took some three hundred, each with a linear program of hundreds of columns.
    assert model.n_iter_ < 80
    # A minimizer has at most as many nonzero coefficients as there are rows.
    assert np.count_nonzero(model.coef_) < 210


@pytest.mark.parametrize(
    "loss", ["hinge", "squared_hinge", "log_loss"], ids=lambda x: x
)
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_conditions_of_optimality(loss, penalty):
    X, y = regression(300, 30)
    y = np.where(y > 0.0, 1.0, -1.0)
    alpha, ratio = 0.02, 1.0 if penalty == "l1" else 0.5
    model = BMRMClassifier(alpha, loss=loss, penalty=penalty, tol=1e-10).fit(X, y)
    assert model.dual_gap_ <= 1e-10 * model.objective_
    w = model.coef_.ravel()
    m = y * (X @ w + model.intercept_)
    if loss == "hinge":
        # Rows on the margin have any slope; the solution needs those that fit.
        slopes = np.where(m < 1.0, 1.0, 0.0)
        edge = np.abs(m - 1.0) < 1e-6
        assert edge.any()
        A = np.vstack([X[edge].T * y[edge], y[edge]]) / len(y)
        rest = np.append(X.T @ (slopes * ~edge * y), (slopes * ~edge) @ y) / len(y)
        used = np.append(w != 0.0, True)
        pull = np.append(alpha * (ratio * np.sign(w) + (1 - ratio) * w), 0.0)
        fit = optimize.lsq_linear(A[used], (pull - rest)[used], (0.0, 1.0), tol=1e-14)
        assert np.abs(fit.fun).max() <= 1e-6
        return
    slopes = 2.0 * np.maximum(1.0 - m, 0.0)
    if loss == "log_loss":
        slopes = 1.0 / (1.0 + np.exp(m))
    pull = X.T @ (slopes * y) / len(y) - alpha * (1.0 - ratio) * w
    used = w != 0.0
    assert 0 < used.sum() < 30
    assert pull[used] == pytest.approx(alpha * ratio * np.sign(w[used]), abs=1e-6)
    assert np.abs(pull).max() <= alpha * ratio + 1e-6


def test_hinge_on_text_against_cuts():
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 100), density=0.03, rng=rng, format="csr")
    X.data = np.abs(X.data)
    y = np.where(X @ rng.normal(size=100) + 0.3 * rng.normal(size=500) > 0.0, 1, -1)
    given = {"alpha": 1e-2, "loss": "hinge", "penalty": "l1"}
    model = BMRMClassifier(**given).fit(X, y)
    cuts = BMRMClassifier(**given, solver="ls-bmrm").fit(X, y)
    assert cuts.objective_ - cuts.dual_gap_ <= model.objective_
    assert model.objective_ - model.dual_gap_ <= cuts.objective_
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.n_iter_ < cuts.n_iter_


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_units_of_targets(unit):
    X, y = regression(400, 100)
    kwargs = {"loss": "quantile", "quantile": 0.3, "penalty": "l1", "tol": 1e-6}
    model = BMRMRegressor(1e-3, **kwargs).fit(X, y)
    other = BMRMRegressor(1e-3, **kwargs).fit(X, unit * y)
    assert other.objective_ / unit == pytest.approx(model.objective_, rel=2e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_are_dense_ones(dtype):
    X, y = regression(500, 60)
    X = (X * (np.random.default_rng(1).random(X.shape) < 0.3)).astype(dtype)
    kwargs = {"loss": "absolute_error", "penalty": "l1", "tol": 1e-6}
    dense = BMRMRegressor(1e-2, **kwargs).fit(X, y)
    by_rows = BMRMRegressor(1e-2, **kwargs).fit(sparse.csr_array(X), y)
    assert by_rows.coef_.dtype == dtype
    assert by_rows.objective_ == pytest.approx(dense.objective_, rel=3e-6)


def test_matrices_from_a_sample_of_tall_data():
    # So many rows for each coefficient in use that Hessians come from some of them.
    X, y = regression(60_000, 40)
    model = BMRMRegressor(0.1, loss="absolute_error", penalty="l1").fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert np.count_nonzero(model.coef_) == 5


def test_novelty():
    X, _ = regression(400, 20)
    model = BMRMOutlierDetector(0.01, penalty="l1", tol=1e-8).fit(np.abs(X))
    cuts = BMRMOutlierDetector(0.01, penalty="l1", tol=1e-8, solver="ls-bmrm")
    cuts.fit(np.abs(X))
    assert model.objective_ == pytest.approx(cuts.objective_, rel=2e-8)


def test_warm_starts_go_on():
    X, y = regression(9000, 50)
    # The compiled loop would have to convert so many numbers.
    X = X.astype(np.float32)
    model = BMRMRegressor(
        1e-2, loss="quantile", penalty="l1", warm_start=True, tol=1e-4
    ).fit(X, y)
    first = model.n_iter_
    model.set_params(alpha=0.9e-2).fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    assert model.n_iter_ < first


@pytest.mark.parametrize(
    "loss",
    [
        BINARY_LOSSES["hinge"],
        BINARY_LOSSES["squared_hinge"],
        regression_losses(quantile=0.3)["quantile"],
        regression_losses(epsilon=0.2)["epsilon_insensitive"],
        NOVELTY_LOSS,
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_level_duals_are_dual_points(loss):
    rng = np.random.default_rng(0)
    targets = rng.choice([-1.0, 1.0], size=50)
    weights = rng.dirichlet(np.ones(50))
    dual = loss.oracle.subgradient(rng.normal(size=50), targets, weights)
    assert loss.oracle.feasible(dual, targets, weights).all()
    level = loss.oracle.balance(dual, targets, weights)
    assert level.sum() == pytest.approx(0.0, abs=1e-15)
    assert loss.oracle.feasible(level, targets, weights).all()
    assert not loss.oracle.feasible(-2.0 * dual - weights, targets, weights).all()


def test_cuts_of_features_in_large_units():
    # Where the conjugate is flat first steps are 1e-16 long.
    X, y = regression(300, 3)
    X *= [1e4, 1.0, 1e6]
    options = {"loss": "absolute_error", "penalty": "elasticnet", "tol": 1e-2}
    cuts = BMRMRegressor(solver="ls-bmrm", **options).fit(X, y)
    assert cuts.coef_.any()
    assert cuts.dual_gap_ <= 1e-2 * cuts.objective_


@pytest.mark.parametrize("loss", ["hinge", "absolute_error", "huber"])
def test_samples_where_all_rows_are_linear(loss):
    # Enough rows and entries for a Hessian of a sample, at scores of zero.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 60))
    y = X @ rng.normal(size=60) + rng.normal(size=2500)
    estimator = BMRMClassifier if loss == "hinge" else BMRMRegressor
    y = np.sign(y) if loss == "hinge" else y
    model = estimator(1e-2, loss=loss, penalty="l1", fit_intercept=False)
    expected = model.fit(X, y).objective_
    model.fit(sparse.csr_array(X), y)
    assert model.objective_ == pytest.approx(expected, rel=2e-3)
    assert model.dual_gap_ <= 1e-3 * model.objective_
