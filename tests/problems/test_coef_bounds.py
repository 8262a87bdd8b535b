"""Bounds of coefficients."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse

from sklearn_subqn import BMRMClassifier, BMRMRegressor, BMRMRegressorCV

LOW = np.array([-0.3, -np.inf, 0.0, -1.0, -0.1])
HIGH = np.array([0.4, 0.2, np.inf, 0.0, 0.2])
ALPHA = 0.02


def data(n=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * [1.0, 3.0, 0.5, 1.0, 2.0] + 0.5
    z = X @ [1.0, -0.5, 2.0, 0.3, 0.05] + rng.normal(size=n)
    return X, z, np.where(z > np.median(z), 1.0, -1.0)


def risk_of(loss, y):
    """The mean loss of scores, and its gradient."""
    if loss == "squared_error":
        return lambda z: (np.mean((y - z) ** 2) / 2, (z - y) / len(y))
    if loss == "huber":
        slope = lambda z: np.clip(y - z, -1.35, 1.35)  # noqa: E731
        return lambda z: (
            np.mean(slope(z) * (y - z) - slope(z) ** 2 / 2),
            -slope(z) / len(y),
        )
    return lambda z: (
        np.mean(np.logaddexp(0.0, -y * z)),
        -y / (1.0 + np.exp(y * z)) / len(y),
    )


def least(X, risk, low, high, l1):
    """The least objective by SciPy, of parts w = p - m of either sign."""
    d = X.shape[1]

    def objective(x):
        w = x[:d] - x[d : 2 * d]
        value, u = risk(X @ w + x[-1])
        value += ALPHA * ((1 - l1) * w @ w / 2 + l1 * x[: 2 * d].sum())
        g = X.T @ u + ALPHA * (1 - l1) * w
        return value, np.r_[g + ALPHA * l1, -g + ALPHA * l1, u.sum()]

    ends = [*((0, h) for h in high), *((0, -each) for each in low), (None, None)]
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-11}
    start = np.zeros(2 * d + 1)
    found = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=ends, options=options
    )
    return found.fun


@pytest.mark.parametrize("solver", ["auto", "bmrm"])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "log_loss"])
def test_least_objective_within_bounds(loss, penalty, solver):
    X, z, signs = data()
    y = signs if loss == "log_loss" else z
    kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    options = {"loss": loss, "penalty": penalty, "solver": solver, "tol": 1e-6}
    l1 = 0.5 if penalty == "elasticnet" else 0.0
    cases = [
        ({"coef_bounds": (LOW, HIGH)}, LOW, HIGH),
        ({"positive": True}, np.zeros(5), np.full(5, np.inf)),
        ({"positive": True, "coef_bounds": (-1, 0.3)}, np.zeros(5), np.full(5, 0.3)),
    ]
    for bounds, low, high in cases:
        model = kind(ALPHA, **options, **bounds).fit(X, y)
        coef = np.ravel(model.coef_)
        assert np.all((coef >= low) & (coef <= high))
        assert np.any((coef == low) | (coef == high))
        expected = least(X, risk_of(loss, y), low, high, l1)
        assert model.objective_ == pytest.approx(expected, rel=2e-6)
        assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-9)
        assert model.dual_gap_ <= 1e-6 * model.objective_
        free = kind(ALPHA, loss=loss, penalty=penalty).fit(X, y)
        assert free.objective_ < expected * (1 - 1e-3)


@pytest.mark.parametrize("n_features", [30, 600])
def test_smooth_losses_within_bounds_take_the_steps_of_newtons_method(n_features):
    # So many features that systems are solved by conjugate gradients, too.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, n_features)) / np.sqrt(n_features)
    y = rng.poisson(np.exp(X @ rng.normal(size=n_features)))
    options = {"loss": "poisson", "coef_bounds": (-0.2, None), "tol": 1e-9}
    model = BMRMRegressor(1e-4, **options).fit(X, y)
    held = model.coef_ == -0.2
    assert np.mean(held) > 0.2
    assert model.n_iter_ <= 25
    # The conditions of optimality hold.
    slopes = X.T @ (model.predict(X) - y) / len(y) + 1e-4 * model.coef_
    np.testing.assert_allclose(slopes[~held], 0.0, atol=1e-6)
    assert slopes[held].min() > -1e-6


def test_quantiles_within_bounds_by_a_quadratic_program():
    cp = pytest.importorskip("cvxpy")
    X, y, _ = data()
    w, b = cp.Variable(5), cp.Variable()
    r = y - X @ w - b
    risk = cp.sum(cp.maximum(0.3 * r, -0.7 * r)) / len(y)
    ends = [w[j] >= each for j, each in enumerate(LOW) if np.isfinite(each)]
    ends += [w[j] <= each for j, each in enumerate(HIGH) if np.isfinite(each)]
    program = cp.Problem(cp.Minimize(ALPHA / 2 * cp.sum_squares(w) + risk), ends)
    program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    bounds = {"coef_bounds": (LOW, HIGH), "tol": 1e-7}
    model = BMRMRegressor(ALPHA, loss="quantile", quantile=0.3, **bounds).fit(X, y)
    assert model.objective_ == pytest.approx(program.value, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= program.value * (1 + 1e-8)


@pytest.mark.parametrize("alpha", [ALPHA, "auto"])
def test_units_of_columns_do_not_matter(alpha):
    X, y, _ = data()
    units = np.array([16.0, 1.0, 1.0, 0.25, 1.0])
    factors = np.ones(5) if alpha == "auto" else units**2
    bounds = LOW / units, HIGH / units
    model = BMRMRegressor(alpha, loss="huber", coef_bounds=(LOW, HIGH)).fit(X, y)
    scaled = BMRMRegressor(
        alpha, loss="huber", coef_bounds=bounds, penalty_factor=factors
    ).fit(sparse.csr_array(X * units), y)
    np.testing.assert_allclose(scaled.coef_ * units, model.coef_, rtol=1e-6, atol=1e-9)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-10)


def test_bounds_by_names_and_in_folds():
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    low = dict(zip("edcba", LOW[::-1], strict=True))
    high = pd.Series(HIGH, index=list("abcde"))
    by_name = BMRMRegressorCV([0.1, 0.01], cv=2, coef_bounds=(low, high))
    by_place = BMRMRegressorCV([0.1, 0.01], cv=2, coef_bounds=(LOW, HIGH))
    coef = by_place.fit(X, y).coef_
    np.testing.assert_allclose(by_name.fit(frame, y).coef_, coef, rtol=1e-6)
    assert np.all((coef >= LOW) & (coef <= HIGH))
    some = {"a": LOW[0], "c": 0.0, "d": LOW[3], "e": LOW[4]}, high.drop("c")
    left_out = BMRMRegressorCV([0.1, 0.01], cv=2, coef_bounds=some)
    np.testing.assert_allclose(left_out.fit(frame, y).coef_, coef, rtol=1e-6)
    with pytest.raises(ValueError, match="unknown: 'z'"):
        BMRMRegressor(0.1, coef_bounds=({"z": 0.0}, None)).fit(frame, y)
    grid = BMRMRegressorCV(4, cv=2, positive=True).fit(X, y)
    plain = BMRMRegressorCV(4, cv=2).fit(X, y)
    np.testing.assert_allclose(grid.alphas_, plain.alphas_)


def test_each_class_and_the_first_one_as_positive():
    X, z, signs = data()
    y = np.digitize(z, [-1.0, 2.0])
    model = BMRMClassifier(ALPHA, coef_bounds=(LOW, HIGH)).fit(X, y)
    assert model.coef_.shape == (3, 5)
    assert np.all((model.coef_ >= LOW) & (model.coef_ <= HIGH))
    options = {"loss": "f_beta_bound", "positive": True, "pos_label": -1.0}
    first = BMRMClassifier(ALPHA, **options).fit(X, -signs)
    assert np.all(first.coef_ >= 0.0)
    single = BMRMRegressor(ALPHA, coef_bounds=(LOW, HIGH), warm_start=True)
    single.fit(X.astype(np.float32), z).fit(X.astype(np.float32), z)
    low, high = LOW.astype(np.float32), HIGH.astype(np.float32)
    assert np.all((single.coef_ >= low) & (single.coef_ <= high))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"coef_bounds": 1.0}, "must be a pair"),
        ({"coef_bounds": (1.0, 2.0)}, r"low <= 0 <= high; got \(1, 2\)"),
        ({"coef_bounds": ([0.0], None)}, "one number for each of the 5 features"),
        ({"positive": True, "penalty": "l1"}, "need penalty='l2', or"),
        ({"positive": True, "penalty": "lp"}, "need penalty='l2', or"),
        ({"positive": True, "alpha": 0}, "need a penalty on each feature"),
        ({"positive": True, "solver": "newton-cg"}, "bounds of coefficients; solvers"),
        ({"positive": True, "metric": np.eye(1)}, "one score per sample"),
    ],
)
def test_what_is_refused(options, match):
    X, y, _ = data()
    with pytest.raises(ValueError, match=match):
        BMRMRegressor(**options).fit(X, y)
    with pytest.raises(TypeError, match="positive must be True or False"):
        BMRMRegressor(positive="yes").fit(X, y)
    ordinal = BMRMClassifier(loss="ordinal_all_threshold", positive=True)
    with pytest.raises(ValueError, match="one score per sample"):
        ordinal.fit(X, np.digitize(y, [0.0, 1.0]))
