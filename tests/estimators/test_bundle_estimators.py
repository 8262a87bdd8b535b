"""BMRMRegressor, BMRMClassifier, BMRMOutlierDetector."""

import pickle
import warnings

import numpy as np
import pytest
from _door import BINARY_LOSSES, without_compiled_loop
from _problems import gaussian_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.multiclass import OneVsRestClassifier

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRegressor,
    MulticlassHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn.losses import FirstOrderLoss, Loss

LOSSES = [
    "squared_error",
    "absolute_error",
    "quantile",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "huber",
    "poisson",
    "gamma",
    "tweedie",
]
each_loss = pytest.mark.parametrize("loss", LOSSES)


def regression_data(seed=0, n=80, d=4, loss=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = 1.0 + X @ np.linspace(0.5, -0.5, d) + 0.5 * rng.standard_t(3, size=n)
    if loss in ("poisson", "tweedie"):
        y = rng.poisson(np.exp(y)).astype(float)
    return X, np.exp(y) if loss == "gamma" else y


class LogCosh(Loss):
    """ln cosh(z - y), of which only value and gradient are given."""

    def value(self, scores, targets, weights):
        r = np.abs(scores - targets)
        return float(weights @ (r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)))

    def subgradient(self, scores, targets, weights):
        return weights * np.tanh(scores - targets)


@each_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_solvers_agree_and_prove_it(loss, fit_intercept):
    X, y = regression_data(loss=loss)
    options = {"alpha": 0.05, "loss": loss, "fit_intercept": fit_intercept}
    best = BMRMRegressor(**options).fit(X, y)
    assert best.dual_gap_ <= 1e-12 * abs(best.objective_)
    if best.loss in ("absolute_error", "quantile", "epsilon_insensitive"):
        others = ["ls-bmrm", "bmrm", "sublbfgs", "alm", "proximal-bundle"]
    else:
        others = ["ls-bmrm", "lbfgs", "newton-cg", "trust-region"]
    for solver in others:
        model = BMRMRegressor(**options, solver=solver, tol=1e-4).fit(X, y)
        slack = 1e-9 * abs(best.objective_)
        assert model.objective_ >= best.objective_ - best.dual_gap_ - slack
        assert model.objective_ - model.dual_gap_ <= best.objective_ + slack
        assert model.objective_ - best.objective_ <= 1.1e-4 * abs(model.objective_)


def test_squares_are_those_of_ridge():
    X, y = regression_data()
    model = BMRMRegressor(0.1).fit(X, y)
    peer = Ridge(alpha=0.1 * len(y)).fit(X, y)
    assert_allclose(model.coef_, peer.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(peer.intercept_)
    assert model.score(X, y) == pytest.approx(peer.score(X, y))


def test_poisson_is_that_of_scikit_learn():
    X, y = regression_data(loss="poisson")
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y)
    peer = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    assert_allclose(model.predict(X), peer.predict(X), rtol=1e-5)


@pytest.mark.parametrize("quantile", [0.25, 0.9])
def test_l1_quantiles_are_those_of_scikit_learn(quantile):
    X, y = regression_data(n=60)
    options = {"quantile": quantile, "alpha": 0.02}
    peer = QuantileRegressor(**options, solver="highs").fit(X, y)
    model = BMRMRegressor(loss="quantile", penalty="l1", tol=1e-7, **options).fit(X, y)
    r = y - peer.predict(X)
    loss = np.mean(np.maximum(quantile * r, (quantile - 1.0) * r))
    expected = loss + 0.02 * np.abs(peer.coef_).sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= expected * (1.0 + 1e-8)


def test_l2_quantiles_are_those_of_a_quadratic_program():
    X, y = regression_data(n=25, d=2)
    n, tau, alpha = 25, 0.8, 0.1
    model = BMRMRegressor(alpha, loss="quantile", quantile=tau).fit(X, y)
    # Variables: w, b and the residuals above and below.
    A = np.column_stack([X, np.ones(n), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(3), np.full(n, tau / n), np.full(n, (1 - tau) / n)])
    program = minimize(
        lambda v: cost @ v + 0.5 * alpha * v[:2] @ v[:2],
        np.concatenate([np.zeros(3), np.maximum(y, 0.0), np.maximum(-y, 0.0)]),
        jac=lambda v: cost + alpha * np.append(v[:2], np.zeros(2 * n + 1)),
        bounds=[(None, None)] * 3 + [(0.0, None)] * (2 * n),
        constraints={"type": "eq", "fun": lambda v: A @ v - y, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert model.objective_ == pytest.approx(program.fun, rel=1e-8)
    assert_allclose(model.coef_, program.x[:2], atol=1e-5)


def test_tall_quantile_problems_start_from_a_sample():
    X, y = regression_data(n=120_000, d=3)
    model = BMRMRegressor(1e-4, loss="quantile", quantile=0.3).fit(X, y)
    assert "sample" in model.history_[0].phase
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert np.mean(y < model.predict(X)) == pytest.approx(0.3, abs=0.02)


@each_loss
def test_weights_count_as_repetition(loss):
    X, y = regression_data(n=30, loss=loss)
    weights = np.random.default_rng(1).integers(0, 4, 30)
    rows = np.repeat(np.arange(30), weights)
    weighted = BMRMRegressor(0.1, loss=loss).fit(X, y, sample_weight=weights)
    repeated = BMRMRegressor(0.1, loss=loss).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


@each_loss
@pytest.mark.parametrize("solver", ["auto", "ls-bmrm"])
def test_sparse_and_float32_data(loss, solver):
    X, y = regression_data(n=40, loss=loss)
    X[np.abs(X) < 0.7] = 0.0
    X = X.astype(np.float32)
    options = {"loss": loss, "solver": solver, "alpha": 0.1, "tol": 1e-6}
    dense = BMRMRegressor(**options).fit(X.astype(float), y)
    for data in (sparse.csr_matrix(X), sparse.csc_array(X), X):
        model = BMRMRegressor(**options).fit(data, y)
        assert model.coef_.dtype == np.float32
        assert model.objective_ == pytest.approx(dense.objective_, rel=1e-5)
        assert_allclose(model.predict(data), dense.predict(X), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_targets_of_any_unit(factor):
    X, y = regression_data(n=400)
    one = BMRMRegressor(1e-6, loss="quantile").fit(X, y)
    model = BMRMRegressor(1e-6 / factor, loss="quantile").fit(X, factor * y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(factor * one.objective_, rel=2e-3)


def test_columns_of_y_are_fitted_by_themselves():
    X, y = regression_data()
    Y = np.column_stack([y, -2.0 * y, y + X[:, 0]])
    model = BMRMRegressor(0.1, loss="huber").fit(X, Y)
    assert model.coef_.shape == (3, 4)
    assert model.predict(X).shape == Y.shape
    for j in range(3):
        alone = BMRMRegressor(0.1, loss="huber").fit(X, Y[:, j])
        assert_allclose(model.coef_[j], alone.coef_, atol=1e-7)
        assert model.objective_[j] == pytest.approx(alone.objective_)


@pytest.mark.parametrize("solver", ["auto", "ls-bmrm", "lbfgs"])
def test_metric_of_several_columns(solver):
    X, y = regression_data()
    Y = np.column_stack([y, X[:, 0] - y])
    M = np.array([[2.0, 0.5], [0.5, 1.0]])
    model = BMRMRegressor(0.1, metric=M, solver=solver, tol=1e-6).fit(X, Y)

    def J(v):
        r = Y - X @ v[:8].reshape(4, 2) - v[8:]
        return 0.05 * v[:8] @ v[:8] + 0.5 * np.mean(np.einsum("ij,jk,ik->i", r, M, r))

    best = minimize(J, np.zeros(10), method="BFGS", options={"gtol": 1e-10})
    assert model.objective_ == pytest.approx(best.fun, rel=2e-6)
    assert_allclose(model.coef_, best.x[:8].reshape(4, 2).T, atol=5e-3)
    assert_allclose(model.intercept_, best.x[8:], atol=5e-3)
    single = BMRMRegressor(0.1, metric=[[1.0]]).fit(X, y)
    assert_allclose(single.coef_, BMRMRegressor(0.1).fit(X, y).coef_, rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["auto", "bmrm", "bmrm-aggregated"])
def test_a_loss_of_ones_own(solver, fit_intercept):
    X, y = regression_data()
    options = {"alpha": 0.5, "fit_intercept": fit_intercept}
    model = BMRMRegressor(loss=LogCosh(), solver=solver, **options).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    one = np.full(80, 1.0 / 80.0)

    def J(v):
        scores = X @ v[:4] + v[4] * fit_intercept
        return 0.25 * v[:4] @ v[:4] + LogCosh().value(scores, y, one)

    best = minimize(J, np.zeros(5)).fun
    assert best * (1.0 - 1e-9) <= model.objective_ <= best * (1.0 + 1.1e-3)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)


def test_a_loss_of_ones_own_for_classes():
    class Savage(Loss):
        def value(self, scores, targets, weights):
            return float(weights @ np.maximum(1.0 - targets * scores, 0.0))

        def subgradient(self, scores, targets, weights):
            return np.where(targets * scores < 1.0, -weights * targets, 0.0)

    X, y = gaussian_data(np.random.default_rng(0), 60, 3)
    model = BMRMClassifier(0.1, loss=Savage(), tol=1e-5).fit(X, y)
    hinge = SubLBFGSLinearSVC(0.1).fit(X, y)
    assert model.objective_ == pytest.approx(hinge.objective_, rel=1.1e-5)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "lp", "quadratic", "entropy"])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_penalties_of_classifiers(penalty, loss):
    X, y = gaussian_data(np.random.default_rng(1), 60, 3)
    matrix = np.diag([1.0, 2.0, 3.0]) if penalty == "quadratic" else None
    model = BMRMClassifier(0.05, loss=loss, penalty=penalty, penalty_matrix=matrix)
    model.fit(X, y)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    assert model.score(X, y) > 0.6
    if penalty == "entropy":
        assert np.all(model.coef_ > 0.0)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@each_loss
def test_sparse_regression_by_other_methods(loss, l1_ratio):
    X, y = regression_data(seed=5, n=60, d=8, loss=loss)
    options = {"loss": loss, "penalty": "elasticnet", "l1_ratio": l1_ratio}
    model = BMRMRegressor(0.05, **options).fit(X, y)
    other = BMRMRegressor(0.05, **options, solver="ls-bmrm", tol=1e-5).fit(X, y)
    slack = 1e-9 * abs(model.objective_)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)
    assert model.objective_ - model.dual_gap_ <= other.objective_ + slack
    assert other.objective_ - other.dual_gap_ <= model.objective_ + slack


@pytest.mark.parametrize("loss", BINARY_LOSSES)
def test_sparse_classification_by_other_methods(loss):
    X, y = gaussian_data(np.random.default_rng(6), 80, 6)
    options = {"loss": loss, "penalty": "l1", "alpha": 0.02}
    model = BMRMClassifier(**options).fit(X, y)
    other = BMRMClassifier(**options, solver="ls-bmrm", tol=1e-5).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ - model.dual_gap_ <= other.objective_ * (1.0 + 1e-9)
    assert other.objective_ - other.dual_gap_ <= model.objective_ * (1.0 + 1e-9)


def test_joint_losses_with_an_l1_norm():
    X, y = regression_data(n=40)
    Y = np.column_stack([y, X[:, 0]])
    model = BMRMRegressor(0.05, penalty="l1", metric=np.eye(2)).fit(X, Y)
    apart = BMRMRegressor(0.05, penalty="l1").fit(X, Y)
    assert model.objective_ == pytest.approx(apart.objective_.sum(), rel=1e-3)


def test_joint_losses_that_are_not_smooth_want_no_intercept():
    class Rows(LogCosh):
        joint = True

        def value(self, scores, targets, weights):
            return float(weights @ np.abs(scores - targets).max(axis=1))

    X, y = regression_data(n=20)
    with pytest.raises(ValueError, match="needs fit_intercept=False"):
        BMRMRegressor(loss=Rows()).fit(X, np.column_stack([y, y]))


class WorstClass(FirstOrderLoss):
    """The multiclass hinge, by values and subgradients."""

    joint = invariant = True

    def evaluate(self, scores, targets, weights):
        rows = np.arange(len(scores))
        m = 1.0 + scores - scores[rows, targets][:, np.newaxis]
        m[rows, targets] = 0.0
        worst = m.argmax(axis=1)
        u = np.zeros_like(scores)
        u[rows, worst] += weights
        u[rows, targets] -= weights
        return float(weights @ m[rows, worst]), u

    def value(self, scores, targets, weights):
        return self.evaluate(scores, targets, weights)[0]

    def subgradient(self, scores, targets, weights):
        return self.evaluate(scores, targets, weights)[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_joint_losses_of_classes(n_classes):
    X, _ = regression_data(n=60)
    rng = np.random.default_rng(0)
    scores = X @ rng.normal(size=(X.shape[1], n_classes))
    names = np.array(["b", "c", "a"])
    y = names[(scores + rng.normal(size=scores.shape)).argmax(axis=1)]
    weights = rng.random(60)
    options = {"alpha": 0.05, "fit_intercept": False, "tol": 1e-4}
    own = BMRMClassifier(loss=WorstClass(), max_iter=5000, **options)
    own.fit(X, y, sample_weight=weights)
    known = MulticlassHingeClassifier(**options).fit(X, y, sample_weight=weights)
    assert own.coef_.shape == known.coef_.shape
    assert_array_equal(own.classes_, known.classes_)
    assert own.objective_ == pytest.approx(known.objective_, rel=1e-4)
    assert own.objective_ - own.dual_gap_ <= known.objective_ * (1.0 + 1e-9)
    assert np.mean(own.predict(X) == known.predict(X)) > 0.95
    again = pickle.loads(pickle.dumps(own))
    assert_array_equal(again.decision_function(X), own.decision_function(X))


def test_joint_losses_of_classes_that_are_refused():
    class Sums(WorstClass):
        invariant = False

    class Wrong(WorstClass):
        def evaluate(self, *args):
            value, u = super().evaluate(*args)
            return value, np.abs(u)

    X, y = regression_data(n=30)
    two, three = y > 0.0, np.digitize(y, [-0.5, 0.5])
    model = BMRMClassifier(fit_intercept=False)
    with pytest.raises(ValueError, match="needs fit_intercept=False"):
        BMRMClassifier(loss=WorstClass()).fit(X, three)
    for loss, penalty in ((Sums(), "l2"), (WorstClass(), "l1")):
        clone(model).set_params(loss=loss, penalty=penalty).fit(X, three)
        with pytest.raises(ValueError, match="of two classes only the difference"):
            clone(model).set_params(loss=loss, penalty=penalty).fit(X, two)
    with pytest.raises(ValueError, match="has invariant = True"):
        clone(model).set_params(loss=Wrong()).fit(X, three)


def test_normalized_entropy_mixes_features():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 3))
    y = X @ [0.2, 0.7, 0.1] + 0.01 * rng.normal(size=100)
    model = BMRMRegressor(
        1e-4, penalty="normalized_entropy", fit_intercept=False, tol=1e-4
    ).fit(X, y)
    assert model.coef_.sum() == pytest.approx(1.0)
    assert_allclose(model.coef_, [0.2, 0.7, 0.1], atol=0.02)


@pytest.mark.parametrize("loss", BINARY_LOSSES)
def test_classes_against_the_rest(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 3)) + np.repeat(2.0 * np.eye(3), 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    model = BMRMClassifier(0.01, loss=loss).fit(X, y)
    assert model.coef_.shape == (3, 3)
    assert model.score(X, y) > 0.8
    alone = BMRMClassifier(0.01, loss=loss).fit(X, y == "b")
    assert_allclose(model.coef_[1], alone.coef_[0], atol=1e-6)


def test_warm_starts():
    # Smaller problems are for one compiled loop, which has one iteration.
    X, y = regression_data(n=150_000)
    model = BMRMRegressor(0.1, loss="quantile", warm_start=True).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < first
    detector = BMRMOutlierDetector(0.1, warm_start=True, solver="ls-bmrm").fit(X)
    first = detector.n_iter_
    assert detector.fit(X).n_iter_ <= first


def test_outliers():
    rng = np.random.default_rng(4)
    X = rng.normal(loc=2.0, size=(300, 3))
    detector = BMRMOutlierDetector(0.05).fit(X)
    w = detector.coef_[0]
    value = 0.025 * w @ w + np.mean(np.maximum(1.0 - X @ w, 0.0))
    assert detector.objective_ == pytest.approx(value)
    best = BMRMOutlierDetector(0.05, solver="ls-bmrm", tol=1e-8).fit(X)
    assert detector.objective_ == pytest.approx(best.objective_, rel=1e-7)
    assert detector.offset_ == 1.0
    # Some samples lie on the border, up to rounding, and count as inside.
    assert_array_equal(detector.predict(X), np.where(X @ w >= 1.0 - 1e-11, 1, -1))
    # The smaller alpha, the fewer outliers; or as many as asked for.
    fewer = BMRMOutlierDetector(1e-4).fit_predict(X)
    assert np.mean(fewer == -1) <= np.mean(detector.predict(X) == -1)
    share = BMRMOutlierDetector(0.05, contamination=0.1).fit_predict(X)
    assert np.mean(share == -1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "quantile", "solver": "lbfgs"}, "solvers that do are .*'ls-bmrm'"),
        ({"loss": "huber", "solver": "alm"}, "does not support loss='huber'"),
        (
            {"loss": "poisson", "solver": "subgradient"},
            "does not support loss='poisson'",
        ),
        ({"loss": LogCosh(), "solver": "sublbfgs"}, "loss=LogCosh with penalty='l2'"),
        ({"penalty": "l1", "solver": "newton-cg"}, "'auto', 'owlqn', .*'ls-bmrm'"),
        ({"penalty": "l1", "solver": "bmrm-aggregated"}, "with penalty='l1'"),
        ({"penalty": "lasso"}, "penalty must be one of 'l2', 'l1'"),
        ({"loss": "hinge"}, "loss must be one of 'squared_error'"),
        ({"solver": "simplex"}, "solver must be one of"),
        (
            {"loss": "quantile", "quantile": 1.0},
            "quantile must be > 0 and < 1, got 1.0",
        ),
        ({"loss": "quantile", "quantile": 0.0}, "quantile must be > 0 and < 1"),
        ({"loss": "huber", "epsilon": 0.0}, "epsilon must be finite and > 0"),
        ({"penalty": "lp", "p": 1.0}, "p must be > 1 and <= 10"),
        ({"penalty": "lp", "p": 11.0}, "p must be > 1 and <= 10"),
        ({"penalty": "elasticnet", "l1_ratio": 1.5}, "l1_ratio must be >= 0 and <= 1"),
        ({"penalty": "quadratic"}, "needs a penalty_matrix"),
        ({"penalty": "quadratic", "penalty_matrix": np.eye(2)}, "have shape"),
        (
            {"penalty": "quadratic", "penalty_matrix": -np.eye(4)},
            "positive semidefinite",
        ),
        (
            {"penalty": "quadratic", "penalty_matrix": np.triu(np.ones((4, 4)))},
            "symmetric",
        ),
        ({"loss": "huber", "metric": [[1.0]]}, "metric is for loss='squared_error'"),
        ({"metric": np.eye(2)}, "metric must have shape"),
        ({"bundle_size": 1}, "bundle_size must be finite and >= 2"),
        ({"alpha": -1.0}, "alpha must be finite and >= 0"),
    ],
)
def test_what_is_not_supported_says_what_is(options, message):
    X, y = regression_data(n=20, loss=options.get("loss"))
    model = BMRMRegressor(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_other_errors():
    X, y = regression_data(n=20)
    with pytest.raises(ValueError, match="needs y >= 0"):
        BMRMRegressor(loss="poisson").fit(X, y - 10.0)
    with pytest.raises(ValueError, match="Sparse y"):
        BMRMRegressor().fit(X, sparse.csr_matrix(np.column_stack([y, y])))
    with pytest.raises(ValueError, match=r"contamination must be > 0 and <= 0.5, got"):
        BMRMOutlierDetector(contamination=0.7).fit(X)
    with pytest.raises(ValueError, match="contamination must be 'auto' or in"):
        BMRMOutlierDetector(contamination="some").fit(X)
    with pytest.raises(ValueError, match="loss must be one of 'hinge'"):
        BMRMClassifier(loss="quantile").fit(X, y > 0.0)


def test_a_limit_of_iterations_warns_with_the_gap_reached():
    X, y = regression_data()
    model = BMRMRegressor(1e-3, loss="quantile", solver="bmrm", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="reached max_iter=2"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gap = model.fit(X, y).dual_gap_
    assert gap > 1e-3 * model.objective_


def test_huber_with_residuals_far_beyond_its_threshold(monkeypatch):
    """At first few rows or none have curvature: it is the absolute loss, from afar."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8)) * 10.0 ** np.arange(-2, 6)
    y = 1e5 * (X[:, 0] + rng.standard_t(3, size=500)) + X[:, 7]
    # As for more rows.
    without_compiled_loop(monkeypatch)
    model = BMRMRegressor(1e-6, loss="huber", epsilon=0.1).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.n_iter_ < 80
    absolute = BMRMRegressor(1e-5, loss="absolute_error").fit(X, y)
    model = BMRMRegressor(1e-6, loss="huber", epsilon=0.1).fit(X, y)
    assert model.objective_ == pytest.approx(0.1 * absolute.objective_, rel=2e-3)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("epsilon", [1.0, 1e-3, 1e-6])
def test_huber_is_bounded_by_absolute_errors(penalty, epsilon):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = 1e4 * (X[:, 0] + rng.standard_cauchy(200))
    options = {"penalty": penalty, "tol": 1e-6}
    huber = BMRMRegressor(1e-2 * epsilon, loss="huber", epsilon=epsilon, **options)
    absolute = BMRMRegressor(1e-2, loss="absolute_error", **options)
    value = epsilon * absolute.fit(X, y).objective_
    assert huber.fit(X, y).dual_gap_ <= 1e-6 * huber.objective_
    assert huber.objective_ <= value * (1.0 + 1e-6)
    assert huber.objective_ >= value * (1.0 - 1e-6) - 0.5 * epsilon**2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = BMRMClassifier(1e-2, loss="log_loss", tol=1e-8).fit(X, y)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert_array_equal(probabilities.argmax(axis=1), model.predict(X))
    assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    C = 1.0 / (len(y) * model.alpha)
    same = LogisticRegression(C=C, tol=1e-8, max_iter=1000)
    if n_classes > 2:
        same = OneVsRestClassifier(same)
    expected = same.fit(X, y).predict_proba(X)
    assert_allclose(probabilities, expected, atol=1e-4)
    assert not hasattr(BMRMClassifier(loss="hinge"), "predict_proba")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_modified_huber_are_those_of_scikit_learn(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = BMRMClassifier(1e-2, loss="modified_huber").fit(X, y)
    other = SGDClassifier(loss="modified_huber", max_iter=5, tol=None).fit(X, y)
    other.coef_, other.intercept_ = model.coef_, model.intercept_
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-15)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_optimum_of_modified_huber_by_another_solver(penalty):
    X, y = gaussian_data(np.random.default_rng(1), 200, 5)
    options = {"alpha": 1e-2, "fit_intercept": False, "tol": 1e-8, "penalty": penalty}
    model = BMRMClassifier(loss="modified_huber", **options).fit(X, y)

    def objective(parts):
        # Of the positive and negative parts of the coefficients, for smoothness.
        w = parts[:5] - parts[5:]
        m = y * (X @ w)
        each = np.where(m >= -1.0, np.maximum(1.0 - m, 0.0) ** 2, -4.0 * m)
        norm = 0.5 * w @ w if penalty == "l2" else parts.sum()
        return 1e-2 * norm + each.mean()

    bounds, exact = [(0.0, None)] * 10, {"ftol": 1e-15, "gtol": 1e-10}
    best = minimize(objective, np.zeros(10), bounds=bounds, options=exact).fun
    assert model.objective_ == pytest.approx(best, rel=1e-7)
    assert model.dual_gap_ <= 1e-8 * model.objective_
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
def test_targets_that_are_all_the_same(loss):
    """The optimum is zero, up to rounding, of which no warning speaks."""
    X = np.random.default_rng(0).normal(size=(200, 5))
    model = BMRMRegressor(1e-3, loss=loss).fit(X, np.full(200, 3.7))
    assert model.objective_ <= 1e-13
    assert model.dual_gap_ <= 1e-13
    assert_allclose(model.predict(X), 3.7, rtol=1e-12)


@pytest.mark.parametrize("seed", [135, 232, 287])
def test_exponentials_of_far_minimizers_of_models(seed):
    """The first models have minimizers at which every mean count would overflow."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 60)), int(rng.integers(5, 60))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + rng.normal(size=d)
    y = rng.poisson(3, n)
    model = BMRMRegressor(2e-4, loss="poisson", solver="ls-bmrm", max_iter=60)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    best = BMRMRegressor(2e-4, loss="poisson").fit(X, y)
    assert model.objective_ - model.dual_gap_ <= best.objective_
    assert model.objective_ >= best.objective_ - best.dual_gap_


@pytest.mark.parametrize("largest", [1e3, 1e6, 1e12])
def test_one_count_far_above_the_others(largest):
    """Newton's step from w = 0 predicts a mean count whose exponential overflows."""
    rng = np.random.default_rng(0)
    X = sparse.random(300, 100, 0.05, "csr", random_state=0)
    y = rng.poisson(1.0, 300).astype(float)
    y[X.getnnz(axis=1).argmax()] = largest
    model = BMRMRegressor(1e-2, loss="poisson", tol=1e-6, fit_intercept=False)
    model.fit(X, y)
    assert model.dual_gap_ <= 1e-6 * abs(model.objective_)


def test_small_problems_end_where_more_exactness_takes_long():
    """Poisson's loss, L1, few rows: the gap falls ever more slowly below 1e-8."""
    rng = np.random.default_rng(14)
    X, y = (
        rng.standard_t(2, size=(30, 300)),
        rng.poisson(np.exp(rng.uniform(0, 15, 30))),
    )
    # The deviance nearly vanishes: tol is relative to 1e-6 of the objective.
    model = BMRMRegressor(
        1e-4, loss="poisson", penalty="l1", tol=1e-2, max_iter=50
    ).fit(X, y)
    assert model.dual_gap_ <= 1e-5 * abs(model.objective_)
    assert model.n_iter_ < 40


@pytest.mark.parametrize(
    ("loss", "alpha"), [("hinge", 1e-4), ("hinge", 1e-6), ("squared_hinge", 1e-4)]
)
def test_sparse_penalties_where_a_small_alpha_holds_rows_tightly(loss, alpha):
    """From w = 0 steps are short: hundreds were needed, or led nowhere."""
    rng = np.random.default_rng(31)
    X = rng.normal(size=(200, 300)) * 10.0 ** rng.uniform(-3.0, 3.0, 300)
    y = X @ (rng.normal(size=300) / X.std(axis=0)) > 0.0
    model = BMRMClassifier(alpha, loss=loss, penalty="l1", max_iter=300).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert "larger alphas" in model.history_[0].phase


@pytest.mark.parametrize("alpha", [1e-9, 1e-13])
def test_hardly_any_sparse_penalty(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 60))
    y = X @ rng.normal(size=60) > 0.0
    model = BMRMClassifier(alpha, penalty="l1").fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    same = BMRMClassifier(0.1, penalty="elasticnet", l1_ratio=0.1 * alpha).fit(X, y)
    assert same.objective_ == pytest.approx(BMRMClassifier(0.1).fit(X, y).objective_)


def test_warm_starts_where_exponentials_overflow():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 60)), rng.poisson(1.0, 80).astype(float)
    model = BMRMRegressor(1e-3, loss="poisson", warm_start=True).fit(X, y)
    cold = BMRMRegressor(1e-3, loss="poisson").fit(30.0 * X, y)
    assert model.fit(30.0 * X, y).objective_ == pytest.approx(cold.objective_, rel=1e-3)
    other, labels = 10.0 * rng.normal(size=(80, 60)), rng.integers(0, 2, 80)
    model = BMRMClassifier(1e-3, loss="exponential", warm_start=True).fit(X, labels)
    model.fit(other, labels)
    assert model.dual_gap_ <= 1e-3 * model.objective_
