"""BMRMClassifier with losses of rankings, of contingency tables and of graphs."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sklearn_subqn import BMRMClassifier, BMRMRanker, MulticlassHingeClassifier
from sklearn_subqn.losses import (
    ExpectedRankUtility,
    FBeta,
    Ndcg,
    Ontology,
    OrderedPairs,
    PrecisionAtK,
    Preferences,
    RecallAtK,
    RocArea,
)

LOSSES = ("roc_area", "f_beta_bound", "precision_at_k", "recall_at_k")


def skewed(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 4 == 0).astype(int)
    return rng.normal(size=(n, d)) + 0.7 * y[:, np.newaxis], y


def minimum(columns, offsets, alpha, d):
    """Minimize alpha / 2 ||w||² + max(columns @ (w, b) + offsets), by SLSQP."""

    def value(x):
        return 0.5 * alpha * x[:d] @ x[:d] + x[-1]

    constraint = {
        "type": "ineq",
        "fun": lambda x: x[-1] - columns @ x[:-1] - offsets,
        "jac": lambda x: np.column_stack([-columns, np.ones(len(columns))]),
    }
    start = np.append(np.zeros(columns.shape[1]), offsets.max())
    found = optimize.minimize(
        value,
        start,
        method="SLSQP",
        constraints=[constraint],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return found.fun


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_f_beta_by_all_labelings(fit_intercept, beta):
    X, y = skewed(n=9)
    X1 = np.column_stack([X, np.ones(9)]) if fit_intercept else X
    signs = 2.0 * y - 1.0
    columns, offsets = [], []
    for labels in product([-1.0, 1.0], repeat=9):
        given = np.array(labels)
        hits = np.sum((given > 0) & (y > 0)) * (1.0 + beta**2)
        missed, false = np.sum((given < 0) & (y > 0)), np.sum((given > 0) & (y < 1))
        columns.append(0.5 * (given - signs) @ X1 / 9.0)
        offsets.append(1.0 - hits / (hits + beta**2 * missed + false))
    optimum = minimum(np.array(columns), np.array(offsets), 0.01, 3)
    model = BMRMClassifier(
        0.01, loss="f_beta_bound", beta=beta, fit_intercept=fit_intercept, tol=1e-6
    ).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.objective_ - model.dual_gap_ <= optimum + 1e-9
    assert optimum <= model.objective_ + 1e-9


def test_roc_area_is_the_ranking_of_one_query():
    X, y = skewed()
    model = BMRMClassifier(0.01, loss="roc_area", tol=1e-7).fit(X, y)
    ranker = BMRMRanker(0.01, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(ranker.objective_, rel=1e-6)
    np.testing.assert_allclose(model.coef_[0], ranker.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_are_valid_and_rise(loss):
    X, y = skewed()
    k = 15 if loss.endswith("at_k") else None
    exact = BMRMClassifier(0.01, loss=loss, k=k, tol=1e-7).fit(X, y)
    assert 0.0 <= exact.dual_gap_ <= 1e-7 * exact.objective_
    for solver in ("ls-bmrm", "bmrm"):
        rough = BMRMClassifier(0.01, loss=loss, k=k, tol=0.05, solver=solver)
        rough.fit(X, y)
        assert rough.objective_ - rough.dual_gap_ <= exact.objective_
        assert rough.objective_ >= exact.objective_ - exact.dual_gap_
        bounds = np.array(rough.history_[0].lower_bound)
        assert np.all(np.diff(bounds[np.isfinite(bounds)]) >= -1e-15)


@pytest.mark.parametrize("loss", ["precision_at_k", "recall_at_k"])
@pytest.mark.parametrize("k", [15, 30, 59])
def test_k_samples_are_positive(loss, k):
    X, y = skewed()
    model = BMRMClassifier(0.01, loss=loss, k=k).fit(X, y)
    assert np.count_nonzero(model.predict(X)) == k
    without = BMRMClassifier(0.01, loss=loss, k=k, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(without.coef_, model.coef_)
    assert without.intercept_ == 0.0


def test_weights_of_roc_area_are_repetitions():
    X, y = skewed()
    weight = np.arange(60) % 3
    rows = np.repeat(np.arange(60), weight)
    model = BMRMClassifier(0.01, loss="roc_area", tol=1e-7)
    model.fit(X, y, sample_weight=weight)
    other = BMRMClassifier(0.01, loss="roc_area", tol=1e-7).fit(X[rows], y[rows])
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=0.05)


def test_one_class_against_the_rest():
    X, _ = skewed()
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    model = BMRMClassifier(0.01, loss="roc_area").fit(X, y)
    assert model.coef_.shape == (3, 3)
    assert set(model.predict(X)) <= {"a", "b", "c"}


@pytest.mark.parametrize("loss", ["ordinal", "ordinal_linear"])
def test_ordinal_regression(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])
    names = np.array(["1 poor", "2 fair", "3 good"])[grades]
    model = BMRMClassifier(
        0.01, loss=loss, classes=np.unique(names), tol=1e-6, warm_start=True
    )
    model.fit(X, names)
    pairs = {"ordinal": "pairwise", "ordinal_linear": "pairwise-linear"}[loss]
    ranker = BMRMRanker(0.01, loss=pairs, tol=1e-6).fit(X, grades)
    assert model.objective_ == pytest.approx(ranker.objective_, rel=2e-6)
    assert model.score(X, names) > 0.8
    # A class lies between its thresholds on the line of scores.
    z, thresholds = X @ model.coef_[1], -np.diff(model.intercept_)
    assert thresholds[0] <= thresholds[1]
    expected = model.classes_[np.searchsorted(thresholds, z)]
    np.testing.assert_array_equal(model.predict(X), expected)
    best = model.objective_
    assert model.fit(X, names).history_[0].objective[0] == pytest.approx(best)


def test_ordinal_regression_of_two_classes_is_the_roc_area():
    X, y = skewed()
    model = BMRMClassifier(0.01, loss="ordinal", tol=1e-7, warm_start=True).fit(X, y)
    other = BMRMClassifier(0.01, loss="roc_area", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_)
    np.testing.assert_allclose(model.intercept_, other.intercept_)
    assert model.fit(X, y).coef_.shape == (1, 3)


def test_losses_as_objects():
    X, y = skewed()
    for loss, name, beta in (
        (RocArea(), "roc_area", 1.0),
        (FBeta(2.0), "f_beta_bound", 2.0),
    ):
        model = BMRMClassifier(0.01, loss=loss).fit(X, y)
        named = BMRMClassifier(0.01, loss=name, beta=beta).fit(X, y)
        np.testing.assert_array_equal(model.coef_, named.coef_)
    pairs = np.argwhere(y[:, np.newaxis] > y)
    model = BMRMClassifier(0.01, loss=Preferences(pairs), tol=1e-7).fit(X, y)
    named = BMRMClassifier(0.01, loss="roc_area", tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(named.objective_, rel=1e-6)


# Graphs of categories

GRAPH = [[-1], [-1], [0], [0, 1], [1], [3], [3]]


def leaves(n=120, d=5, n_leaves=4):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_leaves
    return rng.normal(size=(n, d)) + rng.normal(size=(n_leaves, d))[y], y


def test_ontology_without_hierarchy_is_the_multiclass_hinge():
    X, y = leaves()
    loss = Ontology.from_parents([[-1]] * 4)
    model = BMRMClassifier(0.01, loss=loss, fit_intercept=False, tol=1e-6).fit(X, y)
    flat = MulticlassHingeClassifier(0.01, fit_intercept=False, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(flat.objective_, rel=2e-6)
    np.testing.assert_allclose(
        model.coef_ - model.coef_.mean(axis=0), flat.coef_, atol=0.02
    )


@pytest.mark.parametrize("solver", ["auto", "alm", "ls-bmrm", "bmrm", "sublbfgs"])
def test_ontology_objective_and_bound(solver):
    X, y = leaves()
    loss = Ontology.from_parents(GRAPH)
    params = {"loss": loss, "fit_intercept": False}
    exact = BMRMClassifier(0.01, tol=1e-6, **params).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BMRMClassifier(0.01, solver=solver, tol=1e-2, **params).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= exact.objective_
    assert exact.objective_ - exact.dual_gap_ <= model.objective_
    # The scores are those of the leaves, the penalty that of the nodes.
    nodes = np.linalg.pinv(loss.features) @ exact.coef_
    scores = X @ exact.coef_.T
    costs = 0.5 * np.abs(loss.features[:, np.newaxis] - loss.features).sum(axis=2)
    worst = (scores + costs[y]).max(axis=1) - scores[np.arange(len(y)), y]
    value = 0.005 * np.sum(nodes**2) + worst.mean()
    assert exact.objective_ == pytest.approx(value)
    # Exact solutions have ties.
    predicted = scores[np.arange(len(y)), exact.predict(X)]
    np.testing.assert_allclose(predicted, scores.max(axis=1), rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
def test_log_loss_without_hierarchy_is_the_multinomial_one(intercept):
    X, y = leaves()
    loss = Ontology.from_parents([[-1]] * 4, loss="log_loss")
    model = BMRMClassifier(0.01, loss=loss, fit_intercept=intercept, tol=1e-9)
    model.fit(X, y)
    flat = LogisticRegression(
        C=1.0 / (0.01 * len(y)), fit_intercept=intercept, tol=1e-9, max_iter=1000
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), flat.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs", "ls-bmrm"])
def test_log_loss_of_paths(solver, intercept):
    X, y = leaves()
    X = X + 2.0
    loss = Ontology.from_parents(GRAPH, loss="log_loss")
    model = BMRMClassifier(0.01, loss=loss, fit_intercept=intercept, tol=1e-4)
    model.set_params(solver=solver).fit(X, y)
    phi, own = loss.features, np.arange(len(y))

    def scores(w):
        return X @ (phi @ w[:35].reshape(7, 5)).T + w[35:]

    def objective(w):
        p, nodes = special.softmax(scores(w), axis=1), w[:35].reshape(7, 5)
        u = p.copy()
        u[own, y] -= 1.0
        gradient = phi.T @ u.T @ X / len(y) + 0.01 * nodes
        value = 0.005 * np.sum(nodes**2) - np.log(p[own, y]).mean()
        free = u.mean(axis=0) if intercept else np.zeros(4)
        return value, np.append(gradient.ravel(), free)

    best = optimize.minimize(
        objective, np.zeros(39), jac=True, method="BFGS", options={"gtol": 1e-10}
    )
    assert model.objective_ == pytest.approx(best.fun, rel=1e-4)
    assert model.objective_ - model.dual_gap_ <= best.fun * (1.0 + 1e-12)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    expected = special.softmax(scores(best.x), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=2e-2)


@pytest.mark.parametrize("solver", ["auto", "alm"])
@pytest.mark.parametrize("seed", range(3))
def test_hinge_of_paths_with_intercepts(solver, seed):
    """Against a quadratic program, also where a class has most of the rows."""
    rng = np.random.default_rng(seed)
    y = np.append([0, 1, 2, 3], rng.choice(4, 12, p=[0.7, 0.1, 0.1, 0.1]))
    X, weights = rng.normal(3.0, 1.0, size=(16, 2)), rng.random(16) + 0.1
    loss, alpha = Ontology.from_parents(GRAPH), 0.05
    model = BMRMClassifier(alpha, loss=loss, solver=solver, tol=1e-6)
    model.fit(X, y, sample_weight=weights)
    phi, s = loss.features, weights / weights.sum()
    costs = 0.5 * np.abs(phi[:, np.newaxis] - phi).sum(axis=2)
    rows = []  # slack_i >= cost + score of a label less that of the own one
    for i in range(16):
        for label in range(4):
            change = np.outer(phi[label] - phi[y[i]], X[i]).ravel()
            free = np.eye(4)[label] - np.eye(4)[y[i]]
            rows.append(np.concatenate([-change, -free, np.eye(16)[i]]))
    A, b = np.array(rows), np.concatenate([costs[y[i]] for i in range(16)])
    quadratic = np.append(np.full(14, alpha), np.zeros(20))
    linear = np.append(np.zeros(18), s)
    best = optimize.minimize(
        lambda v: 0.5 * v @ (quadratic * v) + linear @ v,
        np.append(np.zeros(18), np.full(16, costs.max())),
        jac=lambda v: quadratic * v + linear,
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert model.objective_ == pytest.approx(best.fun, rel=1e-5)
    assert model.objective_ - model.dual_gap_ <= best.fun * (1.0 + 1e-7)
    scores = X @ model.coef_.T + model.intercept_
    nodes = np.linalg.pinv(phi) @ model.coef_
    worst = (scores + costs[y]).max(axis=1) - scores[np.arange(16), y]
    value = 0.5 * alpha * np.sum(nodes**2) + s @ worst
    assert model.objective_ == pytest.approx(value, rel=1e-10)


def test_intercepts_of_paths_and_what_is_refused():
    X, y = leaves()
    loss = Ontology.from_parents(GRAPH)
    model = BMRMClassifier(0.01, loss=loss, warm_start=True).fit(X, y)
    best = model.objective_
    assert model.fit(X, y).history_[0].objective[0] == pytest.approx(best)
    two = BMRMClassifier(0.01, loss=Ontology.from_parents([[-1], [-1]])).fit(X, y % 2)
    assert two.intercept_.shape == (1,)
    dependent = Ontology(np.array([[1.0, 0], [0, 1.0], [0.5, 0.5]]), 1.0 - np.eye(3))
    with pytest.raises(ValueError, match="linearly independent features"):
        BMRMClassifier(loss=dependent).fit(X[y < 3], y[y < 3])
    with pytest.raises(ValueError, match="needs penalty='l2'"):
        BMRMClassifier(loss=loss, penalty="l1").fit(X, y)
    with pytest.raises(ValueError, match="hinge with intercepts: take 'auto'"):
        BMRMClassifier(loss=loss, solver="bmrm").fit(X, y)


def test_probabilities_of_two_leaves():
    X, y = leaves()
    loss = Ontology.from_parents([[-1], [-1]], loss="log_loss")
    two = BMRMClassifier(0.01, loss=loss, fit_intercept=False, tol=1e-8).fit(X, y % 2)
    binary = BMRMClassifier(0.005, loss="log_loss", fit_intercept=False, tol=1e-8)
    binary.fit(X, y % 2)
    np.testing.assert_allclose(two.predict_proba(X), binary.predict_proba(X), atol=1e-4)
    hinge = Ontology.from_parents([[-1], [-1]])
    assert not hasattr(BMRMClassifier(loss=hinge), "predict_proba")


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("solver", ["auto", "bmrm"])
def test_ontology_of_dependent_features(solver, loss):
    """A dual of nodes determines none of labels: bounds come from subgradients."""
    X, y = leaves(n_leaves=3)
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    costs = 1.0 - np.eye(3) if loss == "hinge" else None
    paths = Ontology(features, costs, loss=loss)
    model = BMRMClassifier(0.01, loss=paths, fit_intercept=False, solver=solver)
    model.set_params(tol=1e-4).fit(X, y)
    assert 0.0 <= model.dual_gap_ <= 1e-4 * model.objective_
    with pytest.raises(ValueError, match="'alm' does not support"):
        model.set_params(solver="alm").fit(X, y)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: OrderedPairs(-np.ones((3, 3))), "cost must be finite and non-neg"),
        (lambda: OrderedPairs(np.ones((3, 2))), "cost has the wrong shape"),
        (lambda: OrderedPairs(1.0), "cost has the wrong shape"),
        (lambda: OrderedPairs("Linear"), "cost must be one of"),
        (lambda: Preferences(np.array([[0, 1]]), np.array([-1.0])), "costs must be"),
        (lambda: Ontology(np.eye(2), np.full((2, 2), np.nan)), "costs must be finite"),
        (lambda: Ontology(np.eye(2)), "loss='hinge' needs costs"),
        (lambda: Ontology(np.eye(2), np.eye(2), loss="log_loss"), "has no costs"),
        (lambda: Ontology(np.eye(2), loss="softmax"), "must be 'hinge' or 'log_loss'"),
        (lambda: Ontology(np.eye(2), np.zeros((3, 3))), "costs has the wrong shape"),
        (lambda: Ndcg(gain="x"), "gain must be one of"),
        (lambda: Ndcg(k=0), "k must be a positive integer"),
        (lambda: Ndcg(k=1.5), "k must be a positive integer"),
        (lambda: Ndcg(decay=-1.0), "decay must be a positive number"),
        (lambda: PrecisionAtK(-2), "k must be a positive integer"),
        (lambda: RecallAtK(True), "k must be a positive integer"),
        (lambda: ExpectedRankUtility(half_life=0.0), "half_life must be a positive"),
        (lambda: ExpectedRankUtility(half_life=1.0), "half_life must be above 1"),
        (lambda: FBeta(-1.0), "beta must be a positive number"),
        (lambda: FBeta(np.nan), "beta must be a positive number"),
    ],
)
def test_losses_refuse_what_they_cannot_be_made_of(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_ontology_warm_start_and_two_leaves():
    X, y = leaves()
    loss = Ontology.from_parents(GRAPH)
    model = BMRMClassifier(0.01, loss=loss, fit_intercept=False, warm_start=True)
    best = model.fit(X, y).objective_
    assert model.fit(X, y).history_[0].objective[0] == pytest.approx(best)
    two = BMRMClassifier(0.01, loss=Ontology.from_parents([[-1], [-1]]))
    two.set_params(fit_intercept=False, warm_start=True).fit(X, y % 2).fit(X, y % 2)
    assert two.coef_.shape == (1, 5)
    assert two.score(X, y % 2) > 0.5


@pytest.mark.parametrize("loss", ["f_beta_bound", "precision_at_k", "recall_at_k"])
def test_rows_of_weight_zero_are_not_counted(loss):
    X, y = skewed()
    used = np.arange(len(y)) % 3 > 0
    k = 5 if loss.endswith("at_k") else None
    model = BMRMClassifier(1e-4, loss=loss, k=k)
    model.fit(X, y, sample_weight=2.0 * used)
    without = BMRMClassifier(1e-4, loss=loss, k=k).fit(X[used], y[used])
    np.testing.assert_array_equal(model.coef_, without.coef_)
    np.testing.assert_array_equal(model.intercept_, without.intercept_)
    assert model.objective_ == without.objective_
    with pytest.raises(ValueError, match="equal for all or zero"):
        model.fit(X, y, sample_weight=1.0 + used)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "auc"}, "loss must be one of 'hinge'"),
        ({"loss": "precision_at_k"}, "loss='precision_at_k' needs a number k"),
        ({"loss": "precision_at_k", "k": 60}, "k must be less than the number 60"),
        ({"loss": "recall_at_k", "k": 0}, "k must be finite and >= 1"),
        ({"loss": "f_beta", "beta": 0.0}, "beta must be finite and > 0"),
        (
            {"loss": "f_beta_bound", "class_weight": "balanced"},
            "'f_beta_bound' counts samples",
        ),
        ({"loss": FBeta(), "class_weight": {0: 2.0}}, "FBeta counts samples"),
        ({"loss": "roc_area", "solver": "alm"}, "solvers that do are 'auto'"),
        ({"loss": "roc_area", "solver": "sublbfgs"}, "does not support"),
        ({"loss": "ordinal", "fit_intercept": False}, "needs fit_intercept=True"),
        ({"loss": Ontology.from_parents(GRAPH)}, "4 leaves, but y has 2 classes"),
    ],
)
def test_errors(params, message):
    X, y = skewed()
    model = BMRMClassifier().fit(X, y)
    before = dict(vars(model.set_params(**params)))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert vars(model) == before
