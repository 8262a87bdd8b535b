"""L1-regularized logistic regression: losses, penalty, solvers and estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    SOLVERS,
    ElasticNet,
    LimitedMemoryInverseHessian,
    Stopping,
    divide_rows_for_threads,
    minimize_intercept,
    owlqn,
    owlqn_star,
    run,
)
from _l1_problems import data, problem, solve
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from sklearn_subqn import L1LogisticOWLQN, L1LogisticOWLQNCV

ROUNDING = 1e-12


def scores_and_targets(loss, n=40, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n))
    if loss is MULTINOMIAL_LOSS:
        targets = (np.arange(n) % 4).astype(float)
        return 3.0 * rng.normal(size=(n, 4)), targets, weights
    return 3.0 * rng.normal(size=n), np.where(np.arange(n) % 3, 1.0, -1.0), weights


def evaluate(model, X, y, weights=None):
    """The formula of the documentation, from the fitted attributes."""
    weights = np.ones(len(y)) if weights is None else weights
    coef = model.coef_.astype(float)
    penalty = model.l1_ratio * np.abs(coef).sum()
    penalty += 0.5 * (1.0 - model.l1_ratio) * np.sum(coef**2)
    scores = X @ coef.T + model.intercept_.astype(float)
    if len(coef) == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    own = np.searchsorted(model.classes_, y)
    top = scores.max(axis=1)
    losses = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    losses -= scores[np.arange(len(y)), own]
    return model.alpha * penalty + weights @ losses / weights.sum()


# Losses


@pytest.mark.parametrize("loss", [BINARY_LOSSES["log_loss"], MULTINOMIAL_LOSS])
def test_gradients_are_those_of_the_value(loss):
    scores, targets, weights = scores_and_targets(loss)
    u = loss.oracle.subgradient(scores, targets, weights)
    rng = np.random.default_rng(1)
    for _ in range(5):
        p, h = rng.normal(size=scores.shape), 1e-6
        change = loss.oracle.value(scores + h * p, targets, weights)
        change -= loss.oracle.value(scores - h * p, targets, weights)
        assert np.vdot(u, p) == pytest.approx(change / (2 * h), abs=1e-8)
        slope, curvature = loss.oracle.derivatives(scores, p, targets, weights)(0.0)
        assert slope == pytest.approx(np.vdot(u, p))
        product = loss.oracle.curvature(scores, targets, weights).apply(p)
        assert curvature == pytest.approx(np.vdot(p, product))
        bend = loss.oracle.subgradient(scores + h * p, targets, weights)
        bend -= loss.oracle.subgradient(scores - h * p, targets, weights)
        assert_allclose(product, bend / (2 * h), atol=1e-8)


@pytest.mark.parametrize("loss", [BINARY_LOSSES["log_loss"], MULTINOMIAL_LOSS])
def test_parts_of_the_curvature_agree(loss):
    scores, targets, weights = scores_and_targets(loss)
    curvature = loss.oracle.curvature(scores, targets, weights)
    p = np.random.default_rng(2).normal(size=scores.shape)
    product = curvature.apply(p.copy())
    k = p.size // len(p)
    diagonal = curvature.diagonal().reshape(-1, k)
    total = np.empty((k, k))
    for j in range(k):
        one = np.zeros_like(scores)
        one.reshape(-1, k)[:, j] = 1.0
        column = curvature.apply(one).reshape(-1, k)
        total[:, j] = column.sum(axis=0)
        assert_allclose(column[:, j], diagonal[:, j])
    if k > 1:
        a, s, q = curvature.rank_one()
        moved = s * np.einsum("ik,ik->i", q, p)
        assert_allclose(a * p - moved[:, np.newaxis] * q, product)
        X = np.random.default_rng(3).normal(size=(len(p), 3))
        gram = np.zeros((k, k, 3, 3))
        for rows in (slice(0, 25), slice(25, len(p))):
            curvature.add_gram(X[rows], rows, gram)
        units = np.eye(k)[:, np.newaxis] + np.zeros_like(scores)
        matrices = np.stack([curvature.apply(unit) for unit in units])
        expected = np.einsum("jil,if,ig->jlfg", matrices, X, X)
        assert_allclose(gram, expected, atol=1e-15)
    assert_allclose(curvature.total(), total, atol=1e-15)
    rows = np.array([3, 1, 20])
    assert_allclose(curvature.take(rows).apply(p[rows]), product[rows])
    assert_array_equal(curvature.rows(), np.arange(len(p)))


@pytest.mark.parametrize("loss", [BINARY_LOSSES["log_loss"], MULTINOMIAL_LOSS])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_fenchel_young(loss, scale):
    scores, targets, weights = scores_and_targets(loss)
    scores = scale * scores
    value = loss.oracle.value(scores, targets, weights)
    assert np.isfinite(value)
    u = loss.oracle.subgradient(scores, targets, weights)
    assert loss.oracle.feasible(u, targets, weights).all()
    both = value + loss.oracle.conjugate(u, targets, weights)
    assert both == pytest.approx(np.vdot(u, scores), abs=1e-12 * scale)
    for c in (0.0, 0.3, 0.9):
        lower = value + loss.oracle.conjugate(c * u, targets, weights)
        assert lower >= c * np.vdot(u, scores) - 1e-12


@pytest.mark.parametrize("loss", [BINARY_LOSSES["log_loss"], MULTINOMIAL_LOSS])
def test_leveled_duals_are_feasible_and_sum_to_zero(loss):
    scores, targets, weights = scores_and_targets(loss)
    u = loss.oracle.subgradient(scores, targets, weights)
    level = loss.oracle.balance(u, targets, weights)
    assert_allclose(level.sum(axis=0), 0.0, atol=1e-15)
    shifted = level * (1.0 - 1e-12)
    assert loss.oracle.feasible(shifted, targets, weights).all()
    if scores.ndim == 2:
        assert_allclose(level.sum(axis=1), 0.0, atol=1e-15)


def test_feasibility_refuses_what_is_not():
    for loss in (BINARY_LOSSES["log_loss"], MULTINOMIAL_LOSS):
        scores, targets, weights = scores_and_targets(loss)
        u = loss.oracle.subgradient(scores, targets, weights)
        assert not loss.oracle.feasible(-u, targets, weights).any()
        far = u.copy()
        far[::2] *= 20.0
        mixed = loss.oracle.feasible(far, targets, weights)
        assert mixed[1::2].all()
        assert not mixed[::2].all()


# Penalty


@EXPLORE
@given(seed=st.integers(0, 999), l1_ratio=st.sampled_from([1.0, 0.5]))
def test_elastic_net(seed, l1_ratio):
    rng = np.random.default_rng(seed)
    penalty = ElasticNet(5, l1_ratio)
    w = rng.normal(size=6) * (rng.random(6) < 0.6)
    v, p = rng.normal(size=(2, 6))
    # Subgradients bound from below, at all points.
    for g in (
        penalty.gradient(w),
        penalty.steepest(w, p),
        penalty.random(w, rng),
    ):
        assert penalty.value(v) >= penalty.value(w) + g[:5] @ (v - w)[:5] - 1e-12
        assert g[5] == 0.0
    # The steepest one is the right-hand derivative.
    h = 1e-7
    slope = (penalty.value(w + h * p) - penalty.value(w)) / h
    assert penalty.steepest(w, p) @ p == pytest.approx(slope, abs=1e-5)
    f = penalty.restrict(w, p)
    assert f.slope_at(0.0) == pytest.approx(slope, abs=1e-5)
    step = 2.0
    ahead = penalty.value(w + (step + h) * p) - penalty.value(w + step * p)
    assert f.slope_at(step) == pytest.approx(ahead / h, abs=1e-5)
    # Fenchel and Young, with equality at subgradients.
    scaled = penalty.scaling(v) * v
    assert penalty.conjugate(scaled) == 0.0
    assert penalty.value(w) >= scaled[:5] @ w[:5] - 1e-12
    g = penalty.gradient(w) * (1.0 - 1e-15)
    both = penalty.value(w) + penalty.conjugate(g)
    assert both == pytest.approx(g @ w, abs=1e-9)
    # The proximal point obeys its condition of optimality.
    near = penalty.prox(v, 0.3)
    rest = (v - near) / 0.3
    assert_allclose(penalty.smallest_subgradient(near, -rest, 1.0)[:5], 0, atol=1e-12)
    assert near[5] == v[5]


# Optima


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_solvers_enclose_the_optimum(solver, n_classes, l1_ratio, fit_intercept):
    X, y = data(n_classes=n_classes)
    weights = np.random.default_rng(3).random(len(y))
    options = {"l1_ratio": l1_ratio, "weights": weights, "fit_intercept": fit_intercept}
    objective = problem(X, y, **options)
    if not SOLVERS[solver].supports(objective.loss, objective.regularizer):
        pytest.skip("Another penalty.")
    best = solve(objective, "cd" if l1_ratio else "newton-cg", tol=1e-12)
    assert best.gap <= 1e-11 * best.point.value
    result = solve(objective, solver, tol=1e-4, max_iter=3000)
    if solver == "subgradient":
        assert result.point.value - best.point.value <= 1e-2 * best.point.value
    elif solver == "owlqn*":
        # Its direction search fails at times before the bound is tight.
        assert result.point.value - best.point.value <= 1e-4 * best.point.value
    else:
        assert result.status == "converged"
    assert result.lower_bound <= best.point.value + ROUNDING
    assert best.lower_bound <= result.point.value + ROUNDING
    for lower in result.history.lower_bound:
        assert lower <= best.point.value + ROUNDING


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_conditions_of_optimality(n_classes, l1_ratio):
    X, y = data(n_classes=n_classes)
    model = L1LogisticOWLQN(alpha=0.02, l1_ratio=l1_ratio, tol=1e-12).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size
    onehot = y[:, None] == model.classes_
    p = model.predict_proba(X)
    u = (p - onehot) / len(y)
    if n_classes == 2:
        u = u[:, 1:]
    assert_allclose(u.sum(axis=0), 0.0, atol=1e-9)
    g = (X.T @ u).T + model.alpha * (1.0 - l1_ratio) * model.coef_
    used = model.coef_ != 0.0
    threshold = model.alpha * l1_ratio
    assert_allclose(g[used], -threshold * np.sign(model.coef_[used]), atol=1e-6)
    assert np.all(np.abs(g[~used]) <= threshold * (1.0 + 1e-6))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_agreement_with_a_smooth_solver_in_twice_the_variables(l1_ratio):
    X, y = data()
    model = L1LogisticOWLQN(alpha=0.02, l1_ratio=l1_ratio, tol=1e-12).fit(X, y)
    d, t = X.shape[1], np.where(y > 0, 1.0, -1.0)

    def function(v):
        w, b = v[:d] - v[d : 2 * d], v[-1]
        m = t * (X @ w + b)
        u = -t / (1.0 + np.exp(m)) / len(t)
        g = X.T @ u + 0.02 * (1 - l1_ratio) * w
        slope = 0.02 * l1_ratio
        value = np.mean(np.logaddexp(0.0, -m)) + slope * v[: 2 * d].sum()
        value += 0.01 * (1 - l1_ratio) * w @ w
        return value, np.concatenate([g + slope, slope - g, [u.sum()]])

    bounds = [(0.0, None)] * (2 * d) + [(None, None)]
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 100_000}
    peer = minimize(
        function, np.zeros(2 * d + 1), jac=True, bounds=bounds, options=options
    )
    assert model.objective_ <= peer.fun + 1e-9
    assert model.objective_ - model.dual_gap_ <= peer.fun + ROUNDING
    assert_allclose(model.coef_[0], peer.x[:d] - peer.x[d : 2 * d], atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs"])
def test_l2_is_that_of_scikit_learn(n_classes, fit_intercept, solver):
    X, y = data(n_classes=n_classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = L1LogisticOWLQN(0.02, l1_ratio=0, solver=solver, tol=1e-11)
    model.set_params(fit_intercept=fit_intercept).fit(X, y, weights)
    peer = LogisticRegression(
        C=1.0 / (0.02 * weights.sum()),
        solver="newton-cg",
        tol=1e-10,
        max_iter=1000,
        fit_intercept=fit_intercept,
    ).fit(X, y, weights)
    assert model.penalty == "l2"
    assert model.dual_gap_ <= 1e-10 * model.objective_
    assert_allclose(model.coef_, peer.coef_, atol=2e-5)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=2e-5)
    peer.l1_ratio, peer.alpha = 0.0, 0.02
    value = evaluate(peer, X, y, weights)
    assert model.objective_ - model.dual_gap_ <= value + ROUNDING
    assert evaluate(model, X, y, weights) == pytest.approx(model.objective_, rel=1e-12)


def test_l2_has_no_largest_alpha():
    X, y = data(60)
    single = L1LogisticOWLQN(l1_ratio=0.0)
    assert single.alpha_max(X, y) == np.inf
    assert single.alpha_max(np.ones((60, 2)), y) == 0.0
    path = L1LogisticOWLQNCV(3, cv=2, l1_ratio=0.0).fit(X, y)
    assert_allclose(path.alphas_, X.shape[1] * np.array([1e-2, 1e-4, 1e-6]))
    assert path.gaps_path_.max() <= 1e-3


def test_search_over_the_share_of_the_l1_norm():
    X, y = data(90, n_classes=3)
    search = GridSearchCV(L1LogisticOWLQN(0.02), {"l1_ratio": [0.0, 0.5, 1.0]}, cv=2)
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_agreement_with_liblinear():
    X, y = data()
    model = L1LogisticOWLQN(alpha=0.02, fit_intercept=False, tol=1e-12).fit(X, y)
    peer = LogisticRegression(
        l1_ratio=1.0,
        C=1.0 / (len(y) * 0.02),
        solver="liblinear",
        fit_intercept=False,
        tol=1e-10,
        max_iter=100_000,
        random_state=0,
    ).fit(X, y)
    assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    assert_array_equal(model.coef_ == 0.0, peer.coef_ == 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_agreement_with_saga(n_classes):
    X, y = data(n_classes=n_classes)
    model = L1LogisticOWLQN(alpha=0.02, l1_ratio=0.7, tol=1e-12).fit(X, y)
    peer = LogisticRegression(
        l1_ratio=0.7,
        C=1.0 / (len(y) * 0.02),
        solver="saga",
        tol=1e-10,
        max_iter=100_000,
        random_state=0,
    ).fit(X, y)
    assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    # saga's objective, with the intercepts shifted as ours.
    model_value, peer.l1_ratio, peer.alpha = evaluate(model, X, y), 0.7, 0.02
    assert model_value <= evaluate(peer, X, y) + 1e-10


@EXPLORE
@given(
    n=st.integers(4, 25),
    d=st.integers(1, 30),
    seed=st.integers(0, 9999),
    n_classes=st.integers(2, 3),
    scale=st.integers(-3, 3),
    share=st.floats(1e-3, 1.5),
    l1_ratio=st.sampled_from([1.0, 0.99, 0.5]),
)
def test_small_problems_of_all_kinds(n, d, seed, n_classes, scale, share, l1_ratio):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7) * 10.0**scale
    model = L1LogisticOWLQN(l1_ratio=l1_ratio)
    model.alpha = max(share * model.alpha_max(X, y), 1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.objective_ == pytest.approx(evaluate(model, X, y), rel=1e-10)
    assert 0.0 <= model.dual_gap_ <= 1e-3 * model.objective_


def test_alpha_max_is_the_smallest_that_leaves_no_coefficient():
    for n_classes in (2, 3):
        for l1_ratio in (1.0, 0.5):
            X, y = data(n_classes=n_classes)
            model = L1LogisticOWLQN(l1_ratio=l1_ratio, tol=1e-10)
            largest = model.alpha_max(X, y)
            assert not model.set_params(alpha=1.001 * largest).fit(X, y).coef_.any()
            assert model.set_params(alpha=0.99 * largest).fit(X, y).coef_.any()
    assert not hasattr(L1LogisticOWLQN(), "n_features_in_")


def test_more_features_than_a_gram_matrix_has_room_for():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 300, 0.1, format="csr", random_state=rng)
    y = (X @ rng.normal(size=300) > 0).astype(int)
    for yy in (y, y + (np.arange(60) % 3 == 0)):
        objective = problem(X, yy, alpha=2e-3)
        result = solve(objective, tol=1e-9, max_iter=200)
        assert result.status == "converged"
        other = solve(problem(X.toarray(), yy, alpha=2e-3), tol=1e-9, max_iter=200)
        assert result.point.value == pytest.approx(other.point.value, rel=1e-8)


def test_nearly_separable_data_with_hardly_any_penalty():
    """Rows far on the wrong side have no curvature, which must not blow up steps."""
    rng = np.random.default_rng(0)
    X = sparse.random(300, 1500, 0.02, format="csr", random_state=rng)
    y = (X @ rng.normal(size=1500) > 0).astype(int)
    y[:3] = 1 - y[:3]
    result = solve(problem(X, y, alpha=1e-6, fit_intercept=False), tol=1e-3)
    assert result.status == "converged"


def test_samples_of_tall_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 5))
    y = (X @ rng.normal(size=5) + rng.logistic(size=len(X)) > 0).astype(int)
    model = L1LogisticOWLQN(alpha=1e-3, tol=1e-6).fit(X, y)
    direct = L1LogisticOWLQN(alpha=1e-3, tol=1e-10, solver="cd").fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.objective_ - model.dual_gap_ <= direct.objective_ + ROUNDING
    # After w = 0 comes the solution on a sample.
    assert model.history_[0].objective[1] < 1.01 * direct.objective_
    # Classes one after the other, and a sample without any weight.
    order = np.argsort(y, kind="stable")
    by_class = L1LogisticOWLQN(alpha=1e-3, tol=1e-6).fit(X[order], y[order])
    assert by_class.objective_ == pytest.approx(direct.objective_, rel=1e-6)


# OWL-QN and random subgradients


@pytest.mark.parametrize("solver", ["owlqn", "owlqn*"])
def test_units_of_features_do_not_matter_to_owlqn(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 0.0
    one = L1LogisticOWLQN(0.01, solver=solver, tol=1e-5).fit(X, y)
    for unit in (1e-6, 1e-8):
        model = L1LogisticOWLQN(0.01 * unit, solver=solver, tol=1e-5).fit(unit * X, y)
        assert model.dual_gap_ <= 1e-5 * model.objective_
        assert model.objective_ == pytest.approx(one.objective_, rel=2e-5)


def test_random_subgradients_break_owlqn_but_not_owlqn_star():
    """Yu 2009, section 4.1.4 and Figure 4.5, on indicators and rounded quantities."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((2000, 10)), rng.random((2000, 40)) < 0.05])
    w = rng.normal(size=50) * (rng.random(50) < 0.4)
    y = (X @ w + rng.logistic(size=2000) > 0.5 * w.sum()).astype(int)
    objective = problem(X, y, alpha=2e-3, fit_intercept=False)
    best = solve(objective).point.value

    def excess(method, random):
        hessian = LimitedMemoryInverseHessian(objective.n_params, 15)
        start = np.zeros(objective.n_params)
        result = run(
            method(objective, start, hessian, random=random), Stopping(0.0), max_iter=40
        )
        searches = [p.partition(" ")[2] for p in result.history.phase]
        return result.point.value - best, sum(int(s) for s in searches if s)

    generator = np.random.default_rng(1)
    chosen, _ = excess(owlqn, None)
    star, k = excess(owlqn_star, None)
    random_star, k_random = excess(owlqn_star, generator)
    random, _ = excess(owlqn, np.random.default_rng(1))
    assert chosen <= 1e-5
    assert star <= 1e-5
    assert random_star <= 1e-5
    assert random >= 10.0 * max(chosen, star, random_star)
    assert k_random > k


# The estimator's contract


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_a_repeated_row(n_classes):
    X, y = data(n_classes=n_classes)
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    model = L1LogisticOWLQN(alpha=0.01, class_weight="balanced")
    weighted = clone(model).fit(X, y, weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    assert_array_equal(weighted.coef_ == 0.0, repeated.coef_ == 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_float32_and_sparse(n_classes, container):
    X, y = data(n_classes=n_classes)
    X[np.abs(X) < 0.5] = 0.0
    double = L1LogisticOWLQN(alpha=0.01).fit(X, y)
    single = L1LogisticOWLQN(alpha=0.01).fit(container(X.astype(np.float32)), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.predict_proba(container(X.astype(np.float32))).dtype == np.float32
    assert_allclose(single.coef_, double.coef_, atol=1e-5)
    assert_array_equal(single.coef_ == 0.0, double.coef_ == 0.0)
    assert single.objective_ == pytest.approx(
        evaluate(single, X.astype(np.float32).astype(float), y), rel=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes):
    X, y = data(n_classes=n_classes)
    model = L1LogisticOWLQN(alpha=0.01).fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert_allclose(np.log(p), model.predict_log_proba(X), atol=1e-12)
    assert np.all(np.isfinite(model.predict_log_proba(1e5 * X)))
    if n_classes == 2:
        assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparsify_and_densify(n_classes):
    X, y = data(n_classes=n_classes)
    model = L1LogisticOWLQN(alpha=0.03).fit(X, y)
    coef, scores = model.coef_.copy(), model.decision_function(X)
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_)
    assert_allclose(model.decision_function(X), scores, atol=1e-11)
    assert_allclose(model.decision_function(sparse.csr_array(X)), scores, atol=1e-11)
    assert_array_equal(model.densify().coef_, coef)
    assert_array_equal(model.densify().coef_, coef)
    # Training goes on from sparse coefficients.
    model.set_params(warm_start=True).sparsify().fit(X, y)
    assert isinstance(model.coef_, np.ndarray)


def test_warm_start():
    X, y = data(3000, 12)
    model = L1LogisticOWLQN(alpha=0.01, warm_start=True, tol=1e-8).fit(X, y)
    first = model.objective_
    model.fit(X, y)
    assert model.n_iter_ == 1
    assert model.objective_ <= first * (1 + 1e-12)
    cold = L1LogisticOWLQN(alpha=0.008, tol=1e-8, solver="cd").fit(X, y)
    warm = model.set_params(alpha=0.008).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-7)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_threads_make_no_difference(container, monkeypatch):
    divide_rows_for_threads(monkeypatch, 1000)
    X, y = data(20_000, 12)
    X = container(X)
    one, two = (
        L1LogisticOWLQN(alpha=0.01, tol=1e-8, n_jobs=n).fit(X, y) for n in (1, 2)
    )
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-12)
    assert_allclose(one.coef_, two.coef_, atol=1e-9)


def test_threads_make_no_difference_on_text(monkeypatch):
    divide_rows_for_threads(monkeypatch, 100)
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 2000), density=0.01, format="csr", rng=rng)
    y = X @ rng.normal(size=2000) > 0.0
    fits = [L1LogisticOWLQN(1e-3, tol=1e-8, n_jobs=n).fit(X, y) for n in (1, 2, 2)]
    one, two, again = fits
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-12)
    assert_array_equal(two.coef_, again.coef_)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("alpha", -1.0, "alpha must be finite and >= 0"),
        ("l1_ratio", -0.1, "l1_ratio must be >= 0 and <= 1"),
        ("l1_ratio", 1.5, "l1_ratio must be >= 0 and <= 1"),
        (
            "solver",
            "lbfgs",
            "does not support l1_ratio=1.0; solvers that do are",
        ),
        ("solver", "sag", "solver must be one of 'auto', 'sublbfgs'"),
        ("tol", -1.0, "tol must be"),
    ],
)
def test_errors_name_the_parameter(name, value, match):
    X, y = data()
    model = L1LogisticOWLQN(alpha=0.1).fit(X, y)
    coef = model.coef_
    with pytest.raises(ValueError, match=match):
        model.set_params(**{name: value}).fit(X, y)
    assert model.coef_ is coef


def test_a_warning_states_the_gap():
    X, y = data(n_classes=3)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        L1LogisticOWLQN(alpha=1e-3, solver="fista", max_iter=2).fit(X, y)


# Cross-validation


@pytest.mark.parametrize("n_classes", [2, 3])
def test_path(n_classes):
    X, y = data(200, n_classes=n_classes)
    model = L1LogisticOWLQNCV(alphas=6, cv=3).fit(X, y)
    single = L1LogisticOWLQN(penalty_factor=model.penalty_factor_)
    assert model.alphas_[0] == pytest.approx(single.alpha_max(X, y))
    assert_allclose(model.alphas_[-1], 1e-3 * model.alphas_[0])
    assert model.scores_path_.shape == model.gaps_path_.shape == (3, 6)
    assert model.gaps_path_.max() <= 1e-3
    refit = single.set_params(alpha=model.alpha_).fit(X, y)
    assert_allclose(model.coef_, refit.coef_, atol=1e-6)
    assert model.objective_ == pytest.approx(refit.objective_)
    means = L1LogisticOWLQNCV(alphas=[0.1, 0.01], cv=3, refit=False).fit(X, y)
    assert means.coef_.shape == model.coef_.shape
    assert_allclose(means.predict_proba(X).sum(axis=1), 1.0)


def test_scoring_by_probabilities():
    X, y = data(200)
    model = L1LogisticOWLQNCV(alphas=6, cv=3, scoring="neg_log_loss").fit(X, y)
    assert np.all(model.scores_path_ < 0.0)
    assert model.alpha_ < model.alphas_[0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", [0.0, 10.0, 1e3])
def test_settled_points(n_classes, scale):
    """Even from where all probabilities are rounded to zero or one."""
    X, y = data(n_classes=n_classes)
    objective = problem(X, y)
    w = scale * np.random.default_rng(0).normal(size=objective.n_params)
    point = minimize_intercept(objective.at(w))
    assert_allclose(point.dual.sum(axis=0), 0.0, atol=1e-13)
    assert point.lower_bound <= solve(objective).point.value
    d = objective.design.n_coef
    assert_array_equal(point.w[:d], w[:d])
    for change in np.vstack([np.eye(objective.n_free), -np.eye(objective.n_free)]):
        beside = point.along_free(change).point(1e-3)
        assert point.value <= beside.value * (1.0 + 1e-14)


def test_slopes_at_zero_that_are_rounding_count_as_zero():
    X, y = np.full((10, 1), 0.1), np.repeat([0, 1], [3, 7])
    assert L1LogisticOWLQN().alpha_max(X, y) == 0.0
    # Balanced but for one small entry, beside which others are large.
    X = np.column_stack([np.full(10, 1e8), 1e-6 * (np.arange(10) == 9)])
    largest = L1LogisticOWLQN().alpha_max(X, y)
    assert_allclose(largest, 1e-6 * 0.3 / 10, rtol=1e-6)


def test_warm_starts_far_off_begin_at_zero():
    X, y = load_iris(return_X_y=True)
    model = L1LogisticOWLQN(1e-5, warm_start=True).fit(0.01 * X, y)
    model.set_params(alpha=1e-4).fit(100.0 * X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("alpha", [1e-5, 1e-6, 1e-7])
def test_several_classes_that_can_be_separated(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 800))
    y = (X @ rng.normal(size=(800, 4))).argmax(axis=1)
    # Curvature is hardly more than what single precision leaves of a matrix.
    model = L1LogisticOWLQN(alpha).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.n_iter_ < 40
