"""Bounds of coefficients."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse

from sklearn_subqn import BMRMClassifier, BMRMRegressor, BMRMRegressorCV, dual_gap

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
    if loss == "poisson":
        return lambda z: (np.mean(np.exp(z) - y * z), (np.exp(z) - y) / len(y))
    if loss == "gamma":
        return lambda z: (
            np.mean(z + y * np.exp(-z)),
            (1.0 - y * np.exp(-z)) / len(y),
        )
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


def least(X, risk, low, high, l1, factors=1.0):
    """The least objective by SciPy, of parts w = p - m of either sign."""
    d = X.shape[1]
    norms = ALPHA * l1 * factors * np.ones(d)
    squares = ALPHA * (1 - l1) * factors ** (2 if l1 else 1)

    def objective(x):
        w = x[:d] - x[d : 2 * d]
        value, u = risk(X @ w + x[-1])
        value += squares * w @ w / 2 + norms @ (x[:d] + x[d : 2 * d])
        g = X.T @ u + squares * w
        return value, np.r_[g + norms, -g + norms, u.sum()]

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


SOME = np.array([0.0, 1.0, 2.0, 0.0, 0.5])
WIDE = np.array([1e6, np.inf, 1e6, 1e4, 1e8])


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("factors", [np.zeros(5), SOME], ids=["none", "some"])
@pytest.mark.parametrize(
    "loss", ["squared_error", "huber", "log_loss", "poisson", "gamma"]
)
def test_least_objective_within_bounds_of_features_without_penalty(
    loss, factors, penalty
):
    X, z, signs = data()
    y = {"log_loss": signs, "poisson": np.round(np.exp(z / 4)), "gamma": np.exp(z / 4)}
    y = y.get(loss, z)
    kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    l1 = 0.5 if penalty == "elasticnet" else 0.0
    none = {"alpha": 0} if penalty == "l2" else {"penalty_factor": factors}
    which = {"penalty_factor": factors} if factors.any() else none
    for low, high in ((LOW, HIGH), (np.zeros(5), np.full(5, np.inf)), (-WIDE, WIDE)):
        options = {"alpha": ALPHA, "coef_bounds": (low, high), "tol": 1e-6, **which}
        model = kind(loss=loss, penalty=penalty, **options).fit(X, y)
        coef = np.ravel(model.coef_)
        assert np.all((coef >= low) & (coef <= high))
        expected = least(X, risk_of(loss, y), low, high, l1, factors)
        assert model.objective_ == pytest.approx(expected, rel=2e-6)
        assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-9)
        assert model.dual_gap_ <= 1e-6 * model.objective_
        gap = dual_gap(model, X, y)
        assert 0.0 <= gap <= 1e-3 * model.objective_


def program_within(loss, X, y, low, high):
    """The least mean loss of residuals within bounds, by a linear program."""
    n, d = X.shape
    above, below, margin = {
        "absolute_error": (1.0, 1.0, 0.0),
        "quantile": (0.3, 0.7, 0.0),
        "epsilon_insensitive": (1.0, 1.0, 0.1),
        "hinge": (1.0, 0.0, 0.0),
    }[loss]
    # A hinge is a residual from one of which only the positive part counts.
    columns = np.hstack([X, np.ones((n, 1))])
    if loss == "hinge":
        columns, y = y[:, np.newaxis] * columns, np.ones(n)
    parts = [np.eye(n), -np.eye(n), np.eye(n)]
    free = [(None, None)] * (d + 1)
    ends = [*zip(low, high, strict=True), *free[:1], *[(0, None)] * (2 * n)]
    ends += [(-margin, margin)] * n
    costs = np.r_[np.zeros(d + 1), np.full(n, above), np.full(n, below), np.zeros(n)]
    columns = np.hstack([columns, *parts])
    return optimize.linprog(costs / n, A_eq=columns, b_eq=y, bounds=ends).fun


@pytest.mark.parametrize(
    "loss", ["absolute_error", "quantile", "epsilon_insensitive", "hinge"]
)
def test_losses_with_kinks_within_bounds_without_penalty(loss):
    X, z, signs = data(200)
    y = signs if loss == "hinge" else z
    others = {"quantile": 0.3} if loss == "quantile" else {}
    kind = BMRMClassifier if loss == "hinge" else BMRMRegressor
    for low, high in ((LOW, HIGH), (np.zeros(5), np.full(5, np.inf)), (-WIDE, WIDE)):
        model = kind(0, loss=loss, coef_bounds=(low, high), **others).fit(X, y)
        coef = np.ravel(model.coef_)
        assert np.all((coef >= low) & (coef <= high))
        expected = program_within(loss, X, y, low, high)
        assert model.objective_ >= expected * (1 - 1e-9)
        assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-9)
        assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("loss", ["poisson", "absolute_error"])
def test_levels_of_categories_that_increase_without_penalty(loss):
    """Steps between levels, of which some are zero, beside an intercept."""
    rng = np.random.default_rng(1)
    levels = rng.integers(0, 8, size=400)
    steps = np.array([0.2, -0.1, 0.3, 0.0, 0.2, -0.4, 0.3])
    X = (levels[:, np.newaxis] > np.arange(7)).astype(float)
    y = rng.poisson(np.exp(1.0 + X @ steps)).astype(float)
    X = sparse.csr_array(X)
    model = BMRMRegressor(0, loss=loss, positive=True).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    # The optimum is that of levels by which neighbours that decrease are one.
    small = BMRMRegressor(1e-9, loss=loss, positive=True, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(small.objective_, rel=1e-3)
    assert np.count_nonzero(small.coef_ < 1e-6) >= 2


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
        ({"positive": True, "penalty": "l1"}, "need penalty='l2', 'elasticnet'"),
        ({"positive": True, "penalty": "lp"}, "need penalty='l2', 'elasticnet'"),
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
