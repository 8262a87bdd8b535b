"""Features without a penalty, by a factor of zero or by alpha=0, and what is proven."""

import warnings

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Design,
    ElasticNet,
    Objective,
    PartlyFree,
    Risk,
    lower_bound,
)
from scipy import optimize, sparse, special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    BMRMRegressorCV,
    CoxRegression,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.objectives import free_columns

FACTORS = np.array([0.0, 1.0, 4.0, 0.0, 0.3])
ALPHA = 0.05


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 3.0, 0.5, 1.0, 2.0] + 0.5
    z = X @ [1.0, -0.5, 2.0, 0.3, 0.0] + rng.normal(size=n)
    return X, z


def smooth_risk(loss, y):
    """The mean loss of scores, and its gradient."""
    signs = np.where(y > np.median(y), 1.0, -1.0)
    if loss == "squared_error":
        return signs, lambda z: (np.mean((y - z) ** 2) / 2, (z - y) / len(y))
    if loss == "huber":

        def huber(z):
            r = y - z
            slope = np.clip(r, -1.35, 1.35)
            return np.mean(slope * r - slope**2 / 2), -slope / len(y)

        return signs, huber
    if loss == "poisson":
        counts = np.round(np.exp(y / 4))
        return counts, lambda z: (
            np.mean(np.exp(z) - counts * z),
            (np.exp(z) - counts) / len(y),
        )
    return signs, lambda z: (
        np.mean(np.logaddexp(0.0, -signs * z)),
        -signs / (1.0 + np.exp(signs * z)) / len(y),
    )


def least(X, risk, alpha, kind):
    """The least objective by a quasi-Newton method of SciPy, w = p - m for the norm."""
    l1, d = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.5}[kind], X.shape[1]
    f = FACTORS if kind == "l2" else FACTORS**2

    def objective(x):
        w, b = x[:d] - x[d : 2 * d], x[-1]
        value, u = risk(X @ w + b)
        smooth = alpha * (1 - l1) * f * w
        norm = alpha * l1 * FACTORS
        value += smooth @ w / 2 + norm @ (x[:d] + x[d : 2 * d])
        g = X.T @ u + smooth
        return value, np.concatenate([g + norm, -g + norm, [u.sum()]])

    found = optimize.minimize(
        objective,
        np.zeros(2 * d + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * d) + [(None, None)],
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10},
    )
    return found.fun


@pytest.mark.parametrize("alpha", [ALPHA, 0.0])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "log_loss"])
def test_least_objective_with_free_features(loss, penalty, alpha):
    X, z = data()
    y, risk = smooth_risk(loss, z)
    targets = z if loss in ("squared_error", "huber") else y
    kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    model = kind(alpha, loss=loss, penalty=penalty, penalty_factor=FACTORS, tol=1e-5)
    model.fit(X, targets)
    expected = least(X, risk, alpha, penalty)
    assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-8)
    assert model.objective_ == pytest.approx(expected, rel=1e-7)
    assert 0.0 < model.dual_gap_ <= 1e-5 * expected
    np.testing.assert_allclose(model.penalty_factor_, FACTORS, rtol=1e-14)
    assert model.alpha_ == alpha


@pytest.mark.parametrize("quantile", [0.5, 0.2])
def test_quantiles_without_penalty_by_a_linear_program(quantile):
    X, y = data()
    n, d = X.shape
    columns = np.hstack([X, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    costs = np.r_[np.zeros(d + 1), np.full(n, quantile), np.full(n, 1 - quantile)] / n
    bounds = [(None, None)] * (d + 1) + [(0, None)] * (2 * n)
    program = optimize.linprog(costs, A_eq=columns, b_eq=y, bounds=bounds)
    model = BMRMRegressor(0, loss="quantile", quantile=quantile).fit(X, y)
    assert model.objective_ == pytest.approx(program.fun, rel=1e-8)
    assert model.objective_ - model.dual_gap_ <= program.fun * (1 + 1e-10)
    assert model.dual_gap_ <= 1e-3 * program.fun


@pytest.mark.parametrize("loss", ["absolute_error", "epsilon_insensitive", "huber"])
def test_units_of_free_columns_are_free(loss):
    X, y = data()
    units = np.array([1e-6, 1.0, 1.0, 1e6, 1.0])
    options = {"loss": loss, "penalty_factor": FACTORS}
    model = BMRMRegressor(ALPHA, **options).fit(X, y)
    scaled = BMRMRegressor(ALPHA, **options).fit(X * units, y)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-8)
    np.testing.assert_allclose(scaled.coef_ * units, model.coef_, rtol=1e-4, atol=1e-6)
    assert scaled.dual_gap_ <= 1e-3 * scaled.objective_


def test_categories_beside_an_intercept():
    """Indicators sum to one, and one level has samples of one class only."""
    X, z = data(200)
    levels = np.random.default_rng(1).integers(0, 5, size=200)
    y = np.where(levels == 2, 1, (z > 1.0).astype(int))
    X = np.hstack([X, np.eye(5)[levels]])
    factors = np.r_[np.ones(5), np.zeros(5)]
    for loss in ("log_loss", "squared_hinge", "hinge"):
        model = BMRMClassifier(1e-2, loss=loss, penalty_factor=factors)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        # Hinges have an optimum there.
        assert ["of x7:" in str(w.message) for w in caught] == [True] * (
            loss == "log_loss"
        )
        assert model.dual_gap_ <= 1e-3 * model.objective_
        # Nothing is lost without that level.
        used = levels != 2
        alpha = 1e-2 / used.mean()
        others = BMRMClassifier(alpha, loss=loss, penalty_factor=factors)
        expected = used.mean() * others.fit(X[used], y[used]).objective_
        assert model.objective_ == pytest.approx(expected, rel=2e-3)


def levels_of_a_category(seed, n, k, extra=0):
    """All indicators of a category of k levels, of which some have one sample only."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(k, 0.5)) + 0.02
    levels = rng.choice(k, size=n - k, p=shares / shares.sum())
    levels = np.concatenate([np.arange(k), levels])
    X = np.hstack([np.eye(k)[levels], 1000.0 + 100.0 * rng.normal(size=(n, extra))])
    return X, rng.normal(size=k)[levels] + rng.normal(size=n)


@pytest.mark.parametrize(("seed", "n", "k"), [(0, 200, 5), (1, 300, 40)])
@pytest.mark.parametrize(
    "loss", ["squared_error", "huber", "poisson", "gamma", "absolute_error", "quantile"]
)
def test_levels_of_any_number_of_samples_beside_an_intercept(loss, seed, n, k):
    """Where a level has one sample, its dual variable is zero, up to no rounding."""
    X, y = levels_of_a_category(seed, n, k)
    y = {"poisson": np.round(np.exp(y / 3)), "gamma": np.exp(y / 3)}.get(loss, y)
    model = BMRMRegressor(0, loss=loss).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * np.abs(model.objective_)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "loss", ["hinge", "absolute_error", "quantile", "epsilon_insensitive"]
)
def test_levels_whose_dual_variables_are_at_their_ends(loss, seed):
    X, y = levels_of_a_category(seed, 1000, 20, extra=2)
    factors = np.r_[np.zeros(20), np.ones(2)]
    kind = BMRMClassifier if loss == "hinge" else BMRMRegressor
    model = kind(1e-2, loss=loss, penalty_factor=factors)
    model.fit(X, y > 0.3 if loss == "hinge" else y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(0),
        L1LogisticOWLQN(0),
        BMRMClassifier(0, loss="exponential"),
        BMRMRegressor(0, loss="gamma"),
        BMRMRegressor(0, loss="quantile", quantile=[0.2, 0.7]),
    ],
    ids=str,
)
def test_no_penalty_is_the_limit_of_small_ones(model):
    X, z = data()
    y = np.exp(z / 3) if isinstance(model, BMRMRegressor) else z > 0.3
    gap, objective = model.fit(X, y).dual_gap_, model.objective_
    assert np.all(np.isfinite(gap))
    assert np.all(gap <= 1e-3 * np.abs(objective))
    small = model.set_params(alpha=1e-8, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(objective, small.objective_, rtol=1e-3)
    assert np.all(objective - gap <= small.objective_)


def test_only_infima_are_proven_of_joint_losses():
    X, z = data()
    y = np.digitize(z, [-1.0, 2.0])
    models = [
        (MulticlassHingeClassifier(0), y),
        (MultilabelHingeClassifier(0), np.eye(3, dtype=int)[y]),
        (BMRMClassifier(0, loss="ordinal_all_threshold"), y),
    ]
    for model, targets in models:
        with pytest.warns(ConvergenceWarning, match="Nothing else is known"):
            model.fit(X, targets)
        assert model.dual_gap_ == pytest.approx(model.objective_)
        penalized = clone(model).set_params(alpha=10.0).fit(X, targets)
        assert model.objective_ < 0.9 * penalized.objective_


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("units", [1.0, [1e-4, 1.0, 1e3, 1.0, 1.0]])
def test_multinomial_without_penalty(tol, fit_intercept, units):
    """Also with equal columns, in any unit, and with weights."""
    X, z = data(120)
    X[:, 4] = X[:, 3]
    y, s = np.digitize(z, [-1.0, 2.0]), np.arange(120) % 3.0
    A = np.hstack([X, np.ones((120, 1))]) if fit_intercept else X

    def risk(w):
        scores = A @ w.reshape(-1, 3)
        logs = scores - special.logsumexp(scores, axis=1, keepdims=True)
        u = (np.exp(logs) - np.eye(3)[y]) * (s / s.sum())[:, np.newaxis]
        return -(s @ logs[np.arange(120), y]) / s.sum(), (A.T @ u).ravel()

    start = np.zeros(3 * A.shape[1])
    best = optimize.minimize(risk, start, jac=True, options={"gtol": 1e-9}).fun
    for model in (
        BMRMClassifier(0, loss="multinomial", fit_intercept=fit_intercept, tol=tol),
        L1LogisticOWLQN(0, fit_intercept=fit_intercept, tol=tol),
    ):
        model.fit(X * units, y, s)
        assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-13)
        assert model.objective_ >= best * (1.0 - 1e-13)
        assert 0.0 < model.dual_gap_ <= tol * model.objective_


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_multinomial_and_cox_with_some_features_without_penalty(penalty):
    X, z = data(120)
    y, n_free = np.digitize(z, [-1.0, 2.0]), 0
    l1 = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.5}[penalty]
    f = FACTORS if penalty == "l2" else FACTORS**2
    time, event = np.exp(-z), np.arange(120) % 3 > 0

    def softmax(w):
        scores = X @ w[:15].reshape(5, 3) + w[15:]
        logs = scores - special.logsumexp(scores, axis=1, keepdims=True)
        u = (np.exp(logs) - np.eye(3)[y]) / 120
        return -logs[np.arange(120), y].mean(), np.append(X.T @ u, u.sum(axis=0))

    def cox(w):
        scores, at_risk = X @ w, time >= time[event][:, np.newaxis]
        logs = special.logsumexp(np.where(at_risk, scores, -np.inf), axis=1)
        P = np.exp(np.where(at_risk, scores, -np.inf) - logs[:, np.newaxis])
        value = (logs.sum() - scores[event].sum()) / 120
        return value, X.T @ (P.sum(axis=0) - event) / 120

    models = (
        (BMRMClassifier(ALPHA, loss="multinomial"), softmax, 3, y),
        (CoxRegression(ALPHA, ties="breslow"), cox, 1, (time, event)),
    )
    for model, risk, k, targets in models:
        squares, norms = np.repeat((1 - l1) * f, k), np.repeat(l1 * FACTORS, k)
        m, n_free = 5 * k, 3 * (k > 1)

        def objective(x, risk=risk, m=m, squares=squares, norms=norms):
            w = np.append(x[:m] - x[m : 2 * m], x[2 * m :])
            value, g = risk(w)
            value += ALPHA * (squares @ w[:m] ** 2 / 2 + norms @ (x[:m] + x[m : 2 * m]))
            slopes, norm = g[:m] + ALPHA * squares * w[:m], ALPHA * norms
            return value, np.concatenate([slopes + norm, norm - slopes, g[m:]])

        found = optimize.minimize(
            objective,
            np.zeros(2 * m + n_free),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * m) + [(None, None)] * n_free,
            options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10},
        )
        for tol in (1e-2, 1e-5 if penalty == "l1" else 1e-7):
            model.set_params(penalty=penalty, penalty_factor=FACTORS, tol=tol)
            model.fit(X, targets)
            assert model.objective_ - model.dual_gap_ <= found.fun * (1.0 + 1e-13)
            assert model.objective_ >= found.fun * (1.0 - 1e-7)
            assert 0.0 < model.dual_gap_ <= tol * model.objective_


@pytest.mark.parametrize("constant", [0.1, 0.3, 1.0, 1e7])
def test_cox_beside_a_free_feature_that_is_constant(constant):
    """Its second derivatives are rounding errors of any sign."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, time = rng.normal(size=(30, 2)), rng.exponential(size=30)
        model = CoxRegression(0.01, penalty_factor=[0.0, 1.0], tol=1e-6)
        alone = model.fit(X, (time, time > 0.2)).objective_
        both = np.column_stack([X, np.full(30, constant)])
        model.set_params(penalty_factor=[0.0, 1.0, 0.0]).fit(both, (time, time > 0.2))
        assert model.objective_ == pytest.approx(alone, rel=1e-6)
        assert 0.0 < model.dual_gap_ <= 1e-6 * alone
        # Rows that are never at risk differ from the others.
        both[time <= 0.2, 2] = 0.0
        model.fit(both, (time, time > 0.2))
        assert model.objective_ == pytest.approx(alone, rel=1e-6)
        assert 0.0 < model.dual_gap_ <= 1e-6 * alone


def test_scaled_dual_points_prove_nothing_of_sums_over_free_columns():
    """At zero, an L1 norm scales the dual point, and a free column is not settled."""
    X, z = data()
    y = np.where(z > 0.0, 1.0, -1.0)
    design = Design(X, fit_intercept=False)
    risk = Risk(design, BINARY_LOSSES["squared_hinge"], y, np.full(60, 1 / 60))
    free = FACTORS == 0.0
    point = Objective(risk, ElasticNet(5, 1.0), 1.0).origin()
    alpha = 0.99 * np.abs(point.risk_gradient[:5][~free]).max()
    penalty = PartlyFree(ElasticNet(5, 1.0), free)
    point = Objective(risk, penalty, alpha).origin()
    slopes = np.where(free, point.risk_gradient[:5], 0.0)
    lower = point.objective.at(point.w - 0.1 * slopes)
    assert point.lower_bound <= lower.value < 0.96 * point.value


def test_multinomial_of_separated_classes_proves_nothing():
    """One class is apart, so that coefficients grow and no optimum exists."""
    X, z = data()
    X[z > 1.0, 0] += 100.0
    y = np.digitize(z, [-1.0, 1.0])
    model = BMRMClassifier(0, loss="multinomial")
    with pytest.warns(ConvergenceWarning, match=r"did not prove|no optimal"):
        model.fit(X, y)
    apart = BMRMClassifier(0).fit(X[y < 2], y[y < 2])
    least = np.mean(y < 2) * (apart.objective_ - apart.dual_gap_)
    assert model.objective_ - model.dual_gap_ <= np.mean(y < 2) * apart.objective_
    assert model.objective_ >= least


def test_searches_warn_once_of_all_folds():
    X, z = data(120)
    y = np.digitize(z, [-1.0, 1.0])
    X[:, 0] += 100.0 * (y == 0)
    search = L1LogisticOWLQNCV(3, penalty_factor=FACTORS, cv=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    said = [str(w.message) for w in caught]
    assert sum("did not prove tol" in text for text in said) == 2
    # The fit with the best strength has its own warnings.
    assert sum("fits on folds did not prove tol" in text for text in said) == 1


def test_history_ends_with_what_is_proven():
    X, y = data()
    model = BMRMRegressor(0.1, penalty_factor=FACTORS).fit(X, y)
    history = model.history_[0]
    assert history.objective[-1] == pytest.approx(model.objective_, rel=1e-9)
    bound = model.objective_ - model.dual_gap_
    assert history.lower_bound[-1] == pytest.approx(bound, rel=1e-12)
    assert np.all(np.isneginf(history.lower_bound[:-1]))


def test_what_is_refused():
    X, y = data()
    for model in (BMRMOutlierDetector(0), BMRMRanker(0)):
        with pytest.raises(ValueError, match="alpha must be finite and > 0"):
            model.fit(X, np.digitize(y, [0.0]))
    with pytest.raises(ValueError, match="alphas must be finite and > 0"):
        BMRMRegressorCV(alphas=[0.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match=r"alpha=0 needs penalty='l2'.*'entropy'"):
        BMRMRegressor(0, penalty="entropy").fit(X, y)
    with pytest.raises(ValueError, match=r"penalty_factor=0 needs.*got 'lp'"):
        BMRMRegressor(penalty="lp", penalty_factor=FACTORS).fit(X, y)
    with pytest.raises(ValueError, match="solver='cyclic-cd' does not support"):
        L1LogisticOWLQN(0, solver="cyclic-cd").fit(X, y > 0.0)


def test_warning_where_tol_is_not_proven():
    X, y = data()
    model = BMRMRegressor(
        0, loss="absolute_error", solver="sublbfgs", tol=1e-12, max_iter=2
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    messages = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert [m for m in messages if "tol=1e-12 was asked for" in m] == messages != []


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-6])
def test_smaller_tol_proves_more_near_a_vertex(tol):
    """Only as many rows as parameters have dual variables that may change."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20))
    y = X @ rng.normal(size=20) + rng.standard_t(3, size=5000)
    model = BMRMRegressor(0, loss="quantile", tol=tol).fit(X, y)
    assert model.dual_gap_ <= tol * model.objective_


@pytest.mark.parametrize("apart", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("factors", [np.zeros(3), np.array([0.0, 0.0, 1.0])])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bounds_hold_where_free_columns_are_nearly_equal(loss, factors, apart):
    X, z = data(30)
    X = X[:, :3]
    z = z + 3 * X[:, 1]
    nearly = X.copy()
    nearly[:, 1] = X[:, 0] + apart * X[:, 1]
    y, kind = z, BMRMRegressor
    if loss == "log_loss":
        y, kind = np.where(z > np.median(z), 1, -1), BMRMClassifier
    same = {"loss": loss, "penalty_factor": factors}
    # Free columns of the same span have the same optimum.
    least = kind(ALPHA, tol=1e-9, **same).fit(X, y).objective_
    model = kind(ALPHA, tol=1e-3, **same).fit(nearly, y)
    slack = 1e-9 + 1e-15 / apart
    assert model.objective_ - model.dual_gap_ <= least * (1 + slack)


@pytest.mark.filterwarnings("ignore:.*Nothing else is known")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_largest_alpha_is_that_of_the_other_features(n_classes):
    X, z = data()
    y = np.digitize(z, np.quantile(z, np.arange(1, n_classes) / n_classes))
    model = L1LogisticOWLQN(penalty_factor=FACTORS, tol=1e-5)
    largest = model.alpha_max(X, y)
    free = FACTORS == 0.0
    for share, some in ((1.001, False), (0.98, True)):
        coef = model.set_params(alpha=share * largest).fit(X, y).coef_
        assert coef[:, ~free].any() == some
        assert coef[:, free].any()


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "l2"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_grids_are_those_of_features_with_a_penalty(loss, penalty):
    X, y = data()
    search = BMRMRegressorCV(3, loss=loss, penalty=penalty, cv=3)
    usual = search.fit(X, y).alphas_
    free = search.set_params(penalty_factor=[1.0, 1.0, 1.0, 0.0, 1.0]).fit(X, y)
    # The slopes of the others are about the same with or without this one.
    assert np.all(np.abs(np.log(free.alphas_ / usual)) < 1.0)
    assert free.score(X, y) > 0.6


@pytest.mark.parametrize(
    "loss", ["ordinal_all_threshold", "ordinal_immediate_threshold"]
)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_thresholds_share_features_without_a_penalty(loss, penalty):
    X, z = data(n=80)
    y = np.digitize(z, np.quantile(z, [0.3, 0.6, 0.8]))
    options = {"loss": loss, "penalty": penalty, "tol": 1e-6}
    for alpha, factors in ((0.0, np.ones(5)), (ALPHA, FACTORS)):
        free = BMRMClassifier(alpha, penalty_factor=factors, **options)
        with pytest.warns(ConvergenceWarning, match="Nothing else is known"):
            free.fit(X, y)
        nearly = np.maximum(factors, 1e-7)
        if not alpha:
            alpha, nearly = 1e-7, factors
        small = BMRMClassifier(alpha, penalty_factor=nearly, **options).fit(X, y)
        assert free.objective_ == pytest.approx(small.objective_, rel=1e-4)
        assert free.objective_ - free.dual_gap_ <= small.objective_


@pytest.mark.parametrize(
    "model",
    [
        BMRMRegressor(),
        BMRMRegressor(loss="poisson"),
        BMRMRegressor(loss="quantile", quantile=[0.2, 0.7]),
        BMRMRegressor(penalty="l1"),
        BMRMRegressor(penalty="elasticnet"),
        BMRMRegressor(penalty="lp"),
        BMRMClassifier(loss="hinge"),
        BMRMClassifier(loss="ordinal_all_threshold"),
        SubLBFGSLinearSVC(),
        L1LogisticOWLQN(),
        L1LogisticOWLQN(l1_ratio=0.0),
        MulticlassHingeClassifier(),
        MultilabelHingeClassifier(),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_factors_that_are_all_zero_are_no_penalty(model):
    X, z = data()
    y = np.digitize(z, [-1.0, 2.0])
    if isinstance(model, MultilabelHingeClassifier):
        y = np.eye(3, dtype=int)[y]
    if isinstance(model, BMRMClassifier) and model.loss == "hinge":
        y = y > 0
    free = clone(model).set_params(alpha=10.0, penalty_factor=np.zeros(5)).fit(X, y)
    none = clone(model).set_params(alpha=0.0).fit(X, y)
    np.testing.assert_array_equal(free.coef_, none.coef_)
    np.testing.assert_array_equal(free.intercept_, none.intercept_)
    np.testing.assert_array_equal(free.objective_, none.objective_)
    np.testing.assert_array_equal(free.dual_gap_, none.dual_gap_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gaps_of_paths_are_without_the_small_penalty():
    """Classes that a feature separates have an infimum of zero, which is no optimum."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    folds = [(np.arange(4), np.arange(4))]
    # An L1 norm of another feature, of zeros.
    X = np.hstack([X, np.zeros((4, 1))])
    search = L1LogisticOWLQNCV([1e-2], cv=folds, penalty_factor=[0.0, 1.0])
    search.fit(X, y)
    assert search.dual_gap_ == search.objective_ > 0.0
    assert search.gaps_path_.ravel() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [
        ("squared_epsilon_insensitive", "l1", "auto"),
        ("quantile", "l2", "alm"),
        ("huber", "l1", "auto"),
    ],
)
def test_fits_that_miss_their_tolerance_do_not_begin_again(loss, penalty, solver):
    X, y = data()
    model = BMRMRegressor(
        1e-3,
        loss=loss,
        penalty=penalty,
        penalty_factor=FACTORS,
        solver=solver,
        tol=1e-9,
        max_iter=2,
    )
    iterations = []
    model.set_params(callback=lambda progress: iterations.append(progress.n_iter))
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        model.fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert iterations == [0, 1, 2]


def test_a_proof_takes_one_dual_point_and_few_factorizations(monkeypatch):
    X, _ = data(2000)
    y = np.random.default_rng(0).poisson(np.exp(0.1 * X[:, 0])).astype(float)
    sizes = []

    class Counted(free_columns._Inverse):
        def __init__(self, design, weights):
            sizes.append(design.n_rows)
            super().__init__(design, weights)

    monkeypatch.setattr(free_columns, "_Inverse", Counted)
    model = BMRMRegressor(0, loss="poisson", tol=1e-3).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    assert len(sizes) <= 1


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-8, 0.0])
@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_array])
def test_inverses_of_columns_that_nearly_depend_on_one_another(matrix, apart):
    """Weighted columns times the root are orthonormal, and those of the rest vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * np.logspace(0, 8, 6)
    X[:, 1] = X[:, 0] + apart * X[:, 1]
    X[:, 2] = 1.0
    weights = rng.exponential(size=300)
    inverse = free_columns._Inverse(Design(matrix(X)), weights)
    # A column of ones depends on the intercept.
    assert inverse.is_completed()
    F = np.sqrt(weights)[:, None] * np.hstack([X, np.ones((300, 1))])
    Q = F @ inverse.root
    assert inverse.root.shape == (7, 6 - (apart == 0.0))
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-4)
    null = inverse.null / np.abs(inverse.null).max(axis=0)
    np.testing.assert_allclose(F @ null, 0.0, atol=1e-8)


def categories(n, levels, seed=0):
    """Indicators of the levels of some categories, sparse, some of them rare."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(k, n, p=rng.dirichlet(np.ones(k))) for k in levels]
    columns = np.stack(codes, axis=1) + np.r_[0, np.cumsum(levels)[:-1]]
    arrays = np.ones(columns.size), columns.ravel(), len(levels) * np.arange(n + 1)
    return sparse.csr_array(arrays, shape=(n, sum(levels))), rng


def test_bounds_take_no_copy_of_many_sparse_rows():
    X, rng = categories(60_000, [100, 150, 50])
    y = rng.poisson(np.exp(0.3 * (X @ rng.normal(size=300)) - 1.0)).astype(float)
    model = BMRMRegressor(0, loss="poisson").fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    closer = BMRMRegressor(0, loss="poisson", tol=1e-7).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= closer.objective_ * (1 + 1e-12)


def test_runs_end_where_the_bound_without_the_penalty_suffices():
    """A level without events has its coefficient far away, in Newton steps of one."""
    X, rng = categories(30_000, [10, 40])
    y = rng.poisson(0.3, size=30_000) * (X[:, [3]].toarray().ravel() == 0.0)
    free = BMRMRegressor(0, loss="poisson")
    with pytest.warns(ConvergenceWarning, match="no optimal coefficients of x3:"):
        free.fit(X, y)
    usual = BMRMRegressor(1e-4, loss="poisson").fit(X, y)
    assert free.dual_gap_ <= 1e-3 * abs(free.objective_)
    assert free.n_iter_ <= usual.n_iter_ + 1


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sizes_of_sums(matrix, dtype):
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(50, 4)).astype(dtype), rng.normal(size=50)
    X[X < -1.0] = 0.0
    found = Design(matrix(X)).sizes_of_sums(u)
    expected = np.abs(np.hstack([X, np.ones((50, 1))])).T @ np.abs(u)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "loss", ["absolute_error", "squared_error", "poisson", "huber"]
)
def test_features_whose_squares_vanish_are_refused_with_advice(loss):
    rng = np.random.default_rng(0)
    X, y = 1e-160 * rng.normal(size=(30, 4)), np.abs(rng.normal(size=30))
    with pytest.raises(ValueError, match=r"broke down .*cale the features"):
        BMRMRegressor(0.0, loss=loss).fit(X, y if loss == "poisson" else 1e100 * y)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_dual_points_far_from_the_optimum_prove_bounds_beside_an_l1_norm(loss):
    rng = np.random.default_rng(len(loss))
    X, y = rng.standard_normal((40, 60)), rng.choice([-1.0, 1.0], 40)
    X[:, :3] *= 10.0
    alpha, factors = 0.02, np.repeat([0.0, 1.0], [3, 57])
    model = BMRMClassifier(loss=loss, penalty="l1", tol=1e-8, alpha=alpha)
    optimum = model.set_params(penalty_factor=factors).fit(X, y).objective_
    risk = Risk(
        Design(X, fit_intercept=True), BINARY_LOSSES[loss], y, np.full(40, 1 / 40)
    )
    free = np.arange(60) < 3
    objective = Objective(risk, PartlyFree(ElasticNet(60, 1.0), free), alpha)
    proven = 0
    for size in (0.0, 1e-3, 0.03, 0.3):
        w = np.append(model.coef_[0], model.intercept_)
        w = w + size * rng.standard_normal(61) * np.append(~free, 1.0)
        point = objective.at(w)
        bound = lower_bound(point, [point.dual], optimum)
        assert bound <= optimum
        proven += bound > 0.1 * optimum
    assert proven >= 2
