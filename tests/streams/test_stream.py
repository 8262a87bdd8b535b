"""The online estimators, the untuned method, its batches and losses."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from _door import (
    BINARY_LOSSES,
    ONLINE_METHODS,
    AdaptiveLBFGS,
    DampedSoftmax,
    LinearBatch,
    OfScores,
    OneVsRest,
    Penalty,
    regression_losses,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

from sklearn_subqn import (
    BMRMRegressor,
    L1LogisticOWLQN,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.online.auto_average import Average, Level
from sklearn_subqn._core.online.auto_metric import Metric

LABELS = [
    OfScores(BINARY_LOSSES[name])
    for name in ("log_loss", "squared_hinge", "hinge", "modified_huber")
]
LOGISTIC, MODIFIED_HUBER = LABELS[0], LABELS[-1]
SQUARES, HUBER, QUANTILE, COUNTS = NUMBERS = [
    OfScores(regression_losses(quantile=0.3)[name])
    for name in ("squared_error", "huber", "quantile", "poisson")
]
# Plain gradient steps need to be told how short they have to be.
SOLVERS = [
    (name, 1e-2 if name in ("sgd", "smd", "ng", "momentum", "nesterov") else None)
    for name in ONLINE_METHODS
]


def name_of(value):
    return type(value).__name__


def labelled(n=600, d=6, seed=0, noise=1.0):
    """Return features of very different scales and offsets, and labels 0 or 1."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    score = Z @ rng.standard_normal(d) + noise * rng.logistic(size=n)
    X = (Z + rng.uniform(-3, 3, d)) * np.geomspace(1.0, 1e4, d)
    return X, (score > 0.3).astype(int)


def batch_of(loss, k=None, penalty=None, intercept=True, seed=0, n=9, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    weights = rng.random(n) / n
    if k is None:
        targets = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        if loss in NUMBERS:
            targets = rng.poisson(2.0, n).astype(float)
    elif isinstance(loss, OneVsRest):
        targets = np.where(rng.random((n, k)) < 0.5, 1.0, -1.0)
    else:
        targets = rng.integers(k, size=n).astype(float)
    penalty = penalty or Penalty(0.1)
    batch = LinearBatch(X, targets, weights, loss, penalty, intercept, k)
    w = rng.standard_normal(batch.n_coef + (k or 1) * intercept)
    same = LinearBatch(
        sparse.csr_array(X), targets, weights, loss, penalty, intercept, k
    )
    return batch, same, w


CASES = [
    *[(loss, None) for loss in LABELS + NUMBERS],
    (DampedSoftmax(), 3),
    *[(OneVsRest(loss), 3) for loss in LABELS],
]


@pytest.mark.parametrize(("loss", "k"), CASES, ids=name_of)
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_of_batches_are_central_differences(loss, k, intercept):
    batch, same, w = batch_of(loss, k, Penalty(0.1, 0.3), intercept)
    value, gradient = batch.value_and_gradient(w)
    eps = 1e-6
    differences = [
        (batch.value_and_gradient(w + e)[0] - batch.value_and_gradient(w - e)[0])
        / (2 * eps)
        for e in eps * np.eye(len(w))
    ]
    assert_allclose(gradient, differences, atol=1e-7)
    assert_allclose(batch.gradient(w), gradient)
    assert_allclose(same.value_and_gradient(w)[0], value)
    assert_allclose(same.gradient(w), gradient, atol=1e-14)
    v = np.linspace(-1, 1, len(w))
    assert_allclose(same.hessian_product(w, v), batch.hessian_product(w, v))


@pytest.mark.parametrize(
    ("loss", "k"),
    [(LOGISTIC, None), (SQUARES, None), (DampedSoftmax(), 3)],
    ids=name_of,
)
def test_hessian_products_are_differences_of_gradients(loss, k):
    batch, _, w = batch_of(loss, k)
    # Near zero no score is far on its wrong side.
    w *= 0.1
    v = np.linspace(-1, 1, len(w))
    difference = (batch.gradient(w + 1e-6 * v) - batch.gradient(w - 1e-6 * v)) / 2e-6
    assert_allclose(batch.hessian_product(w, v), difference, atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "target", "reach"),
    [
        (LOGISTIC, 1.0, lambda z: np.maximum(-2.0 * z, 6.0)),
        (LOGISTIC, -1.0, lambda z: np.maximum(2.0 * z, 6.0)),
        (COUNTS, 0.0, lambda z: np.maximum(np.log(1e-3) - z, 1.0)),
        (COUNTS, 7.0, lambda z: np.maximum(np.log(7.0) - z, 1.0)),
    ],
    ids=["positive", "negative", "none", "seven"],
)
def test_curvature_is_the_second_derivative_unless_steps_are_too_long(
    loss, target, reach
):
    z = np.linspace(-40.0, 12.0, 105)
    weights = np.linspace(0.5, 2.0, len(z))
    targets = np.full(len(z), target)
    u = loss.subgradient(z, targets, weights)
    e = 1e-5
    sides = [loss.subgradient(z + s * e, targets, weights) for s in (1.0, -1.0)]
    second = (sides[0] - sides[1]) / (2 * e)
    h = loss.curvature(z, targets, weights).diagonal()
    least = np.abs(u) / reach(z)
    if loss is LOGISTIC:
        least = np.maximum(least, 1e-4 * weights)
    assert_allclose(h, np.maximum(second, least), atol=1e-9, rtol=1e-6)


def test_damped_softmax_of_two_classes_moves_no_score_too_far():
    # The difference of the scores moves as in the binary loss, half of it by each.
    z = np.linspace(-40.0, 40.0, 81)
    scores = np.stack([np.zeros_like(z), z], axis=1)
    one = np.ones_like(z)
    loss = DampedSoftmax()
    u = loss.subgradient(scores, one, one)
    curvature = loss.curvature(scores, one, one)
    diagonal = curvature.diagonal()
    # One less a probability near one is rounded.
    longest = np.maximum(-2.0 * z, 6.0)[:, np.newaxis] * diagonal * (1 + 1e-12)
    assert np.all(np.abs(u) <= longest + np.finfo(float).eps)
    a, s, p = curvature.rank_one()
    dense = np.array([np.diag(a[i]) - s[i] * np.outer(p[i], p[i]) for i in range(81)])
    assert_allclose(np.einsum("ijj->ij", dense), diagonal, atol=1e-15)
    v = np.random.default_rng(0).standard_normal((81, 2))
    products = np.einsum("ijk,ik->ij", dense, v)
    assert_allclose(curvature.apply(v.copy()), products, atol=1e-15)
    assert_allclose(curvature.total(), dense.sum(axis=0))
    some = np.array([3, 77])
    assert_allclose(curvature.take(some).diagonal(), diagonal[some])


@pytest.mark.parametrize("loss", [MODIFIED_HUBER, HUBER], ids=name_of)
def test_curvature_without_second_derivatives_is_that_of_a_majorizer(loss):
    z, there = np.meshgrid(np.linspace(-9, 9, 61), np.linspace(-9, 9, 61))
    z, there = z.ravel(), there.ravel()
    # Where the loss vanishes it has no curvature.
    z, there = z[z < 1.0], there[z < 1.0]
    y, one = np.ones_like(z), np.ones_like(z)
    step = there - z
    values, bound = (
        np.array([loss.value(t, np.ones(1), np.ones(1)) for t in at[:, np.newaxis]])
        for at in (there, z)
    )
    bound += loss.subgradient(z, y, one) * step
    bound += 0.5 * loss.curvature(z, y, one).diagonal() * step**2
    assert np.all(values <= bound + 1e-12)


def test_curvature_of_the_hinge_is_that_of_a_majorizer_far_from_the_kink():
    z = np.array([-3.0, -2.0, 0.9, 4.0])
    y, weights = np.ones(4), np.ones(4)
    h = LABELS[2].curvature(z, y, weights).diagonal()
    distance = np.abs(1.0 - z)
    assert_allclose(h, 0.5 / np.maximum(distance, distance.mean()))


@pytest.mark.parametrize("loss", NUMBERS, ids=name_of)
def test_constants_are_near_the_best(loss):
    rng = np.random.default_rng(0)
    y = rng.poisson(5.0, 200).astype(float)
    s = rng.random(200)
    s /= s.mean()

    def value(c):
        return loss.value(np.full(200, c), y, s)

    best = optimize.minimize_scalar(value, bounds=(-20, 20), method="bounded")
    assert value(loss.constant(y, s)) - best.fun < 0.03 * (value(0.0) - best.fun)


def metric_of(d=4, k=1, m=0, seed=0):
    rng = np.random.default_rng(seed)
    q = d * k + k
    metric = Metric(
        rng.standard_normal(d * k), rng.random(d * k) + 0.5, rng.random(k) + 0.5
    )
    if m:
        A = rng.standard_normal((q, q))
        dw = rng.standard_normal((m, q))
        return metric, dw, dw @ (A @ A.T + np.eye(q))
    return metric


@pytest.mark.parametrize("k", [1, 3])
def test_the_diagonal_metric_is_diagonal_in_centered_coordinates(k):
    d = 4
    metric = metric_of(d, k)
    # With b' = b + <center, w>, the form is sum of w² / scale and b'² / free.
    T = np.eye(d * k + k)
    for j in range(d):
        for c in range(k):
            T[d * k + c, j * k + c] = metric.center[j * k + c]
    H = T.T @ np.diag(1.0 / np.concatenate([metric.scale, metric.free])) @ T
    g = np.random.default_rng(1).standard_normal(len(T))
    p = metric.diagonal(g)
    assert_allclose(H @ p, g, atol=1e-12)
    v = metric.root(p)
    assert_allclose(v @ v, g @ p)


@pytest.mark.parametrize("k", [1, 3])
def test_pairs_make_the_bfgs_matrix(k):
    metric, dw, dg = metric_of(k=k, m=3)
    with_pairs = metric.with_pairs(dw, dg)
    q = dw.shape[1]
    B = np.array([metric.diagonal(e) for e in np.eye(q)])
    B *= np.mean(
        [s @ y / (y @ metric.diagonal(y)) for s, y in zip(dw, dg, strict=True)]
    )
    for s, y in zip(dw, dg, strict=True):
        V = np.eye(q) - np.outer(s, y) / (s @ y)
        B = V @ B @ V.T + np.outer(s, s) / (s @ y)
    g = np.random.default_rng(1).standard_normal(q)
    assert_allclose(with_pairs.apply(g), B @ g, rtol=1e-9)


@pytest.mark.parametrize("k", [1, 3])
def test_proximal_steps_minimize_their_model(k):
    metric = metric_of(k=k)
    rng = np.random.default_rng(2)
    c = len(metric.scale)
    w, g = rng.standard_normal(c + k), rng.standard_normal(c + k)
    p = metric.proximal(w, g, 0.7)

    def model(p):
        centered = metric.center * p[:c]
        b = p[c:] + centered.reshape(-1, k).sum(axis=0)
        square = (p[:c] ** 2 / metric.scale).sum() + (b**2 / metric.free).sum()
        return g @ p + 0.7 * np.abs(w[:c] + p[:c]).sum() + 0.5 * square

    best = model(p)
    for _ in range(300):
        assert best <= model(p + 0.1 * rng.standard_normal(c + k)) + 1e-12


def test_steps_leave_the_old_state_as_it_was():
    method = AdaptiveLBFGS()
    state = method.start(np.zeros(5))
    for seed in range(35):
        batch, _, _ = batch_of(LOGISTIC, penalty=Penalty(0.1, 0.1 * (seed > 30)))
        before = copy.deepcopy(state)
        after = method.step(batch, state)
        assert pickle.dumps(before) == pickle.dumps(state)
        state = after


@pytest.mark.parametrize("sparse_X", [False, True])
def test_one_pass_without_tuning_comes_near_the_optimum(sparse_X):
    X, y = labelled(20_000)
    exact = L1LogisticOWLQN(1e-6, l1_ratio=1e-3).fit(X, y)
    model = OnlineLBFGSClassifier(alpha=1e-6)
    rows = sparse.csr_array(X) if sparse_X else X
    for start in range(0, len(y), 256):
        stop = start + 256
        model.partial_fit(rows[start:stop], y[start:stop], classes=[0, 1])
    z = model.decision_function(X)
    objective = np.logaddexp(0.0, np.where(y == 1, -z, z)).mean()
    assert objective < 1.005 * exact.objective_
    assert model.score(X, y) > exact.score(X, y) - 0.005


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_come_near_the_proven_optimum(loss):
    X, y = labelled(6000, noise=2.0)
    X /= X.std(axis=0)
    exact = SubLBFGSLinearSVC(loss=loss, alpha=1e-4).fit(X, y)
    model = OnlineLBFGSClassifier(loss, max_iter=5, tol=1.0).fit(X, y)
    assert exact.objective_ - exact.dual_gap_ <= model.objective_
    assert model.objective_ < 1.02 * exact.objective_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_modified_huber_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    y = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    model = OnlineLBFGSClassifier("modified_huber").partial_fit(X, y, np.unique(y))
    other = SGDClassifier(loss="modified_huber", max_iter=5, tol=None).fit(X, y)
    other.coef_, other.intercept_ = model.coef_, model.intercept_
    # Far away no class has a share of its own.
    X = np.vstack([X, 100.0 * X])
    p = model.predict_proba(X)
    assert_allclose(p, other.predict_proba(X), atol=1e-14)
    assert np.any(p == 0.0)
    with np.errstate(divide="ignore"):
        assert_allclose(model.predict_log_proba(X), np.log(p))


def test_scale_and_offset_of_features_do_not_matter():
    X, y = labelled(3000)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = []
    for data in (X, Z):
        model = OnlineLBFGSClassifier(alpha=0.0)
        model.fit(data, y)
        scores.append(model.decision_function(data))
    assert_allclose(*scores, rtol=1e-4, atol=1e-4)


def test_several_classes_come_near_the_multinomial_optimum():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=6000)
    X = rng.standard_normal((6000, 5)) + np.eye(3, 5)[y] * 1.5
    X = X * [1, 10, 100, 1e3, 1e4] + 5.0
    model = OnlineLBFGSClassifier(alpha=1e-9).fit(X, y)
    exact = L1LogisticOWLQN(1e-9, l1_ratio=1e-3).fit(X / X.std(axis=0), y)
    log_p = model.predict_log_proba(X)
    assert -log_p[np.arange(6000), y].mean() < 1.002 * exact.objective_
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    hinge = OnlineLBFGSClassifier("hinge", alpha=1e-9).fit(X, y)
    assert hinge.coef_.shape == (3, 5)
    assert hinge.score(X, y) > exact.score(X / X.std(axis=0), y) - 0.03
    assert not hasattr(hinge, "predict_proba")


@pytest.mark.parametrize(
    "loss", ["squared_error", "huber", "absolute_error", "quantile", "poisson"]
)
def test_regression_comes_near_the_optimum(loss):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((4000, 4))
    mean = Z @ [0.3, -0.2, 0.1, 0.4]
    y = rng.poisson(np.exp(1.0 + mean)).astype(float)
    if loss != "poisson":
        y = 1e3 * (5.0 + mean + 0.3 * rng.standard_t(3, 4000))
    options = {"epsilon": 500.0} if loss == "huber" else {}
    X = (Z + 3.0) * [1.0, 10.0, 1e3, 1e5]
    model = OnlineLBFGSRegressor(loss, alpha=0.0, **options).fit(X, y)
    if loss in ("squared_error", "poisson"):
        values = {"squared_error": SQUARES, "poisson": COUNTS}[loss]
        ones, weights = np.ones((4000, 1)), np.full(4000, 1 / 4000)
        A = np.hstack([Z, ones])

        def objective(w):
            z = A @ w
            slopes = values.subgradient(z, y, weights)
            return values.value(z, y, weights), A.T @ slopes

        best = optimize.minimize(objective, np.zeros(5), jac=True, method="BFGS")
        excess = model.objective_ - best.fun
        assert -1e-9 * abs(best.fun) <= excess
        assert excess < 0.01 * (objective(np.zeros(5))[0] - best.fun)
    else:
        # Both have the same slopes here, since the noise is symmetric.
        slopes = model.coef_ * [1.0, 10.0, 1e3, 1e5]
        assert_allclose(slopes, 1e3 * np.array([0.3, -0.2, 0.1, 0.4]), atol=25.0)
    assert model.predict(X).shape == (4000,)
    assert model.coef_.shape == (4,)


def test_an_l1_penalty_gives_zeros_near_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 30)) + 2.0
    y = (X[:, :5] @ np.ones(5) + rng.logistic(size=8000) > 10.0).astype(int)
    exact = L1LogisticOWLQN(1e-2).fit(X, y)
    model = OnlineLBFGSClassifier(alpha=1e-2, l1_ratio=1.0).fit(X, y)
    assert exact.objective_ - exact.dual_gap_ <= model.objective_
    assert model.objective_ < 1.002 * exact.objective_
    sure = (exact.coef_ == 0.0) | (np.abs(exact.coef_) > 0.02)
    assert sure.sum() >= 28
    assert_array_equal((model.coef_ != 0.0)[sure], (exact.coef_ != 0.0)[sure])
    model = OnlineLBFGSClassifier(alpha=1e-2, l1_ratio=1.0).partial_fit(X, y, [0, 1])
    assert np.all(model.coef_[0, :5] != 0.0)
    assert np.count_nonzero(model.coef_) < 15


@pytest.mark.parametrize(("solver", "eta0"), SOLVERS, ids=list(ONLINE_METHODS))
@pytest.mark.parametrize("average", [True, False])
def test_pickling_in_mid_stream_changes_nothing(solver, eta0, average):
    X, y = labelled(2400, d=4)
    X /= X.std(axis=0)
    for l1_ratio in (0.0, 0.5):
        one = OnlineLBFGSClassifier(
            solver=solver, eta0=eta0, average=average, l1_ratio=l1_ratio
        )
        other = clone(one)
        for start in range(0, 2400, 60):
            rows = slice(start, start + 60)
            one.partial_fit(X[rows], y[rows], classes=[0, 1])
            other.partial_fit(X[rows], y[rows], classes=[0, 1])
            other = pickle.loads(pickle.dumps(other))
        assert one.t_ == 40
        assert_array_equal(one.coef_, other.coef_)
        assert_array_equal(one.intercept_, other.intercept_)
    # The defaults of others are not made for these features.
    if solver in ("auto", "olbfgs", "res-lbfgs", "adagrad"):
        assert one.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:.*reached max_iter")
@pytest.mark.parametrize("solver", ONLINE_METHODS)
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_defaults_of_all_solvers_do_on_standardized_data(solver, loss):
    for seed in range(3):
        X, y = labelled(1200, seed=seed)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        exact = SubLBFGSLinearSVC(alpha=1e-4).fit(X, y).score(X, y)
        # Regularized BFGS (Mokhtari and Ribeiro 2014) needs a penalty that counts.
        options = {"alpha": 1e-4} if solver == "res-lbfgs" else {}
        options |= {"solver": solver, "max_iter": 10, "tol": 0.0}
        model = OnlineLBFGSClassifier(loss, **options)
        assert model.fit(X, y).score(X, y) > exact - 0.03


@pytest.mark.filterwarnings("ignore:.*reached max_iter")
@pytest.mark.parametrize("solver", ONLINE_METHODS)
def test_defaults_of_all_solvers_do_for_standardized_targets(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 6))
    y = X @ rng.standard_normal(6) + rng.standard_normal(1200)
    y /= y.std()
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    best = 1.0 - np.square(y - X @ exact).mean()
    model = OnlineLBFGSRegressor(solver=solver, max_iter=20, tol=0.0).fit(X, y)
    assert model.score(X, y) > best - 0.03


def test_the_average_of_iterates():
    average = Average(np.full(1, 7.0))
    for t in range(1, 31):
        average = average.then(np.full(1, float(t)), -0.01, 5.0)
    # Weights grow like t (t + 1) (t + 2); the starting point has none.
    t = np.arange(1.0, 31.0)
    assert_allclose(average.mean, np.average(t, weights=t * (t + 1) * (t + 2)))
    assert average.clock == average.n == average.n_steps == 30
    # An iterate that predicts better again and again takes over, and steps grow.
    lags = average
    while lags.n > 1:
        lags = lags.then(np.zeros(1), 1.0, 5.0)
    assert 35 <= lags.n_steps <= 45
    assert lags.clock == pytest.approx(lags.n_steps / 4)
    assert_array_equal(lags.mean, [0.0])
    # Iterates that are much worse slow down, but not without limit.
    noisy = average
    for _ in range(100):
        noisy = noisy.then(np.zeros(1), -1.0, 5.0)
    assert 5 * noisy.n_steps < noisy.clock <= 10 * noisy.n_steps


def test_the_level_of_losses_alarms_when_they_rise_for_good():
    rng = np.random.default_rng(0)
    level, alarms = Level(), []
    for t in range(20_000):
        loss = rng.exponential(1.0 if t < 19_000 else 3.0)
        level = level.then(loss, 1)
        alarms.append(level.alarms)
    # One block of outliers is no change; rows count, not batches.
    assert not any(alarms[:19_000])
    assert 19_050 <= np.flatnonzero(alarms)[0] <= 19_400
    outlier = level = Level(20, 1.0, 0.01)
    for value in (1e6, 1.0, 1.0, 1e6, 1.0):
        outlier = outlier.then(value, 50)
        assert not outlier.alarms
    assert outlier.mean < 1.1
    whole, parts = level.then(2.0, 50), level
    for _ in range(10):
        parts = parts.then(2.0, 5)
    assert whole == parts


def drifting(kind, seed, n=12_000, d=10):
    """Return rows and labels of a stream that changes, and where it does."""
    rng = np.random.default_rng(seed)
    w, other = rng.standard_normal((2, d))
    Z = rng.standard_normal((n, d))
    score = Z @ w
    change = n - 2000
    if kind == "concept":
        score[change:] = Z[change:] @ other
    y = score + rng.logistic(size=n) > 0.0
    if kind == "scale":
        Z[change:, : d // 2] *= rng.choice([0.01, 100.0], d // 2)
    if kind == "prefix":
        order = np.argsort(y[:change], kind="stable")
        kept = order[: np.count_nonzero(~y[:change])]
        Z, y = np.vstack([Z[kept], Z[change:]]), np.append(y[kept], y[change:])
        change = len(kept)
    return Z, y, change


@pytest.mark.parametrize("kind", ["prefix", "scale", "concept"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [10, 100])
def test_streams_that_change_are_learned_anew(kind, seed, size):
    X, y, change = drifting(kind, seed)
    model, fresh = OnlineLBFGSClassifier(), OnlineLBFGSClassifier()
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        model.partial_fit(X[rows], y[rows], classes=[False, True])
        if start >= change:
            fresh.partial_fit(X[rows], y[rows], classes=[False, True])
    rows = slice(change, None)
    assert model.score(X[rows], y[rows]) > fresh.score(X[rows], y[rows]) - 0.02
    assert model._state.began > 0


@pytest.mark.parametrize("seed", range(3))
def test_the_average_follows_a_late_change_as_soon_as_the_iterate(seed):
    X, y, change = drifting("concept", seed)
    right = {}
    for average in (True, False):
        model, hits = OnlineLBFGSClassifier(average=average), []
        for start in range(0, len(y), 200):
            rows = slice(start, start + 200)
            # Batches that nobody can know of, and be warned by, aside.
            if start >= change + 400:
                hits.append(model.score(X[rows], y[rows]))
            model.partial_fit(X[rows], y[rows], classes=[False, True])
        right[average] = np.mean(hits)
    assert right[True] > right[False] - 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_prefix_of_one_class_moves_the_intercept_by_its_logarithm(n_classes):
    X = np.random.default_rng(0).standard_normal((5000, 3))
    model = OnlineLBFGSClassifier(batch_size=1)
    model.partial_fit(X, np.zeros(5000), classes=np.arange(n_classes))
    log_odds = np.ptp(np.append(model.intercept_, 0.0))
    assert np.log(5000) < log_odds < 3.0 * np.log(5000)


def test_streams_recover_from_a_change_of_concept():
    rng = np.random.default_rng(0)
    before, after = rng.standard_normal((2, 8))
    scale = np.geomspace(0.1, 100.0, 8)
    model = OnlineLBFGSClassifier(alpha=1e-6)
    n_averaged, accuracy = [], []
    for t in range(340):
        Z = rng.standard_normal((100, 8))
        y = Z @ (before if t < 200 else after) > 0.0
        X = (Z + 1.0) * scale
        if t:
            accuracy.append(model.score(X, y))
        model.partial_fit(X, y, classes=[False, True])
        n_averaged.append(model._state.average.n)
    assert np.all(np.diff(n_averaged[60:200]) == 1)
    assert np.any(np.diff(n_averaged[200:230]) < 0)
    assert np.mean(accuracy[180:199]) > 0.95
    assert np.mean(accuracy[300:]) > 0.95


def fitted(X, y):
    model = OnlineLBFGSClassifier()
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
    return model


def state_of(model):
    return pickle.dumps({k: v for k, v in vars(model).items() if k != "_accepted"})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_bad_batches_leave_the_model_as_it_was(value):
    X, y = labelled(400)
    model = fitted(X, y)
    before = state_of(model)
    bad = X[300:350].copy()
    bad[7, 2] = value
    for data in (bad, sparse.csr_array(bad)):
        with pytest.raises(ValueError, match=r"contains|infinity"):
            model.partial_fit(data, y[300:350])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match=r"y has classes 5 that are not among"):
        model.partial_fit(X[300:350], np.full(50, 5))
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X, y, sample_weight=np.full(400, np.nan))
    assert state_of(model) == before


def test_divergence_is_an_error_that_leaves_the_model_as_it_was():
    X, y = labelled(400)
    model = OnlineLBFGSRegressor(solver="sgd", eta0=1.0)
    model.partial_fit(X[:50], y[:50])

    def diverge():
        while True:
            states.append(state_of(model))
            model.partial_fit(X[50:100], y[50:100])

    states = []
    with pytest.raises(ValueError, match="diverged at batch"):
        diverge()
    assert state_of(model) == states[-1]


def test_the_first_call_of_partial_fit_announces_classes():
    X, y = labelled(50)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        OnlineLBFGSClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        OnlineLBFGSClassifier().partial_fit(X, y, classes=[1])
    model = OnlineLBFGSClassifier().partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert np.all(np.isfinite(model.coef_))
    names = np.array(["no", "yes"])[y]
    model = OnlineLBFGSClassifier().partial_fit(X, names, classes=["yes", "no"])
    assert_array_equal(model.classes_, ["no", "yes"])
    model.partial_fit(X, names, classes=["yes", "no"])


def test_calls_of_any_size():
    X, y = labelled(1000)
    whole = OnlineLBFGSClassifier(batch_size=250).partial_fit(X, y, classes=[0, 1])
    parts = OnlineLBFGSClassifier(batch_size=250)
    for start in range(0, 1000, 250):
        rows = slice(start, start + 250)
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert whole.t_ == parts.t_ == 4
    assert_array_equal(whole.coef_, parts.coef_)
    single = OnlineLBFGSClassifier()
    for i in range(1000):
        single.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert single.score(X, y) > whole.score(X, y) - 0.05


def test_weights_of_a_stream():
    X, y = labelled(500)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, 500).astype(float)
    used = weights > 0
    models = []
    for data in ((X, y, weights), (X[used], y[used], 7.0 * weights[used])):
        model = OnlineLBFGSClassifier(batch_size=500)
        for _ in range(20):
            model.partial_fit(data[0], data[1], [0, 1], data[2])
        models.append(model)
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-6)
    repeated = OnlineLBFGSClassifier(batch_size=1000)
    rows = np.repeat(np.arange(500), weights.astype(int))
    for _ in range(20):
        repeated.partial_fit(X[rows], y[rows], [0, 1])
    assert_allclose(models[0].coef_, repeated.coef_, rtol=1e-6)
    before = state_of(model)
    model.partial_fit(X, y, sample_weight=np.zeros(500))
    assert pickle.loads(state_of(model))["t_"] == pickle.loads(before)["t_"]
    doubled = OnlineLBFGSClassifier(class_weight={1: 2.0}).partial_fit(X, y, [0, 1])
    same = OnlineLBFGSClassifier().partial_fit(X, y, [0, 1], 1.0 + (y == 1))
    assert_allclose(doubled.coef_, same.coef_)
    with pytest.raises(ValueError, match="not supported for partial_fit"):
        OnlineLBFGSClassifier(class_weight="balanced").partial_fit(X, y, [0, 1])


def test_formats_and_types():
    X, y = labelled(600)
    X = np.round(X / X.std(axis=0), 2)
    X[np.abs(X) < 0.5] = 0.0
    dense = OnlineLBFGSClassifier().fit(X, y)
    X.setflags(write=False)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = (
        a.astype(np.int64) for a in (wide.indices, wide.indptr)
    )
    for data in (sparse.csr_matrix(X), sparse.csc_array(X), wide, X):
        other = OnlineLBFGSClassifier().fit(data, y)
        assert_allclose(other.coef_, dense.coef_, rtol=1e-6)
    single = OnlineLBFGSClassifier().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert_allclose(single.coef_, dense.coef_, rtol=1e-3, atol=1e-4)


def test_fits_repeat_themselves_and_say_what_they_did():
    X, y = labelled(3000)
    one, other = (OnlineLBFGSClassifier().fit(X, y) for _ in range(2))
    assert_array_equal(one.coef_, other.coef_)
    assert len(one.loss_curve_) == one.n_iter_ < 20
    assert one.t_ == 12 * one.n_iter_
    z = one.decision_function(X)
    objective = np.logaddexp(0.0, np.where(y == 1, -z, z)).mean()
    objective += 0.5e-5 * float((one.coef_**2).sum())
    assert_allclose(one.objective_, objective, rtol=1e-9)
    with pytest.warns(ConvergenceWarning, match="reached max_iter=1"):
        short = OnlineLBFGSClassifier(max_iter=1, tol=1e-9).fit(X, y)
    short.set_params(warm_start=True, max_iter=100, tol=3e-2)
    assert short.fit(X, y).objective_ < 1.001 * one.objective_
    shuffled = OnlineLBFGSClassifier(random_state=1).fit(X, y)
    assert np.any(shuffled.coef_ != one.coef_)


@pytest.mark.parametrize("Model", [OnlineLBFGSClassifier, OnlineLBFGSRegressor])
def test_early_stopping_keeps_the_best(Model, capsys):
    X, y = labelled(1000)
    model = Model(early_stopping=True, n_iter_no_change=3, tol=1e-3, verbose=2)
    model.fit(X, y)
    scores = model.validation_scores_
    # The last line says how the fit ended.
    assert len(scores) == model.n_iter_ == capsys.readouterr().out.count("\n") - 1
    assert max(scores[:-3]) > max(scores[-3:]) - 1e-3
    assert model.score(X, y) > (0.75 if Model is OnlineLBFGSClassifier else 0.2)


def test_early_stopping_waits_for_enough_batches():
    # An epoch is one batch.
    X, y = load_iris(return_X_y=True)
    model = OnlineLBFGSClassifier(early_stopping=True).fit(X, y)
    assert model.n_iter_ > 30
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("early_stopping", [False, True])
def test_callbacks_hear_of_epochs_and_may_stop(early_stopping):
    X, y = labelled(1000)
    seen = []

    def stop_at_three(progress):
        seen.append(progress)
        return progress.n_iter == 3

    model = OnlineLBFGSClassifier(
        tol=0.0, early_stopping=early_stopping, callback=stop_at_three
    ).fit(X, y)
    assert [progress.n_iter for progress in seen] == [1, 2, 3]
    assert model.n_iter_ == 3
    assert [p.objective for p in seen] == [
        min(model.loss_curve_[:k]) for k in (1, 2, 3)
    ]
    assert all(progress.dual_gap == np.inf for progress in seen)
    assert 0.0 <= seen[0].seconds <= seen[-1].seconds
    model.partial_fit(X, y)
    assert len(seen) == 3


def test_solvers_can_be_changed_in_mid_stream():
    X, y = labelled(600)
    model = fitted(X, y)
    before = model.coef_.copy()
    model.set_params(solver="adam", eta0=1e-12)
    model.partial_fit(X[:50], y[:50])
    assert_allclose(model.coef_, before, rtol=1e-6)
    model.set_params(fit_intercept=False)
    with pytest.raises(ValueError, match="fit_intercept cannot change"):
        model.partial_fit(X[:50], y[:50])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"loss": "log"}, ValueError, "loss must be one of 'hinge'"),
        ({"solver": "lbfgs"}, ValueError, "solver must be one of 'auto'"),
        ({"alpha": -1.0}, ValueError, "alpha must be finite and >= 0"),
        ({"l1_ratio": 1.5}, ValueError, "l1_ratio must be >= 0 and <= 1"),
        ({"batch_size": 0}, ValueError, "batch_size must be finite and >= 1"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer"),
        ({"eta0": 0.0}, ValueError, "eta0 must be finite and > 0"),
        ({"average": 3}, TypeError, "average must be True or False"),
        (
            {"validation_fraction": 1.0},
            ValueError,
            "validation_fraction must be > 0 and < 1",
        ),
    ],
)
def test_parameters_are_checked(parameters, error, message):
    X, y = labelled(50)
    model = OnlineLBFGSClassifier(**parameters)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(error, match=message):
        model.partial_fit(X, y, classes=[0, 1])
    regressor = OnlineLBFGSRegressor(quantile=1.0)
    with pytest.raises(ValueError, match="quantile must be > 0 and < 1"):
        regressor.fit(X, y)
    with pytest.raises(ValueError, match="loss='poisson' needs y >= 0"):
        OnlineLBFGSRegressor("poisson").fit(X, -1.0 * y)


def test_a_batch_whose_classes_have_no_weight_is_passed_over():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = OnlineLBFGSClassifier(class_weight={0: 0.0}).partial_fit(X, y, [0, 1])
    before = model.coef_.copy()
    model.partial_fit(X[y == 0], y[y == 0])
    assert_array_equal(model.coef_, before)


def test_class_weights_that_are_refused_in_streams():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    for weights, message in (({2: 1.0}, "not among"), ({1: "x"}, "non-negative")):
        with pytest.raises(ValueError, match=message):
            OnlineLBFGSClassifier(class_weight=weights).partial_fit(X, y, [0, 1])


@pytest.mark.parametrize("size", [5e-324, 1e307])
def test_weights_that_cannot_be_added_are_refused(size):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="must be zero or between 1e-100 and 1e"):
        OnlineLBFGSRegressor().partial_fit(X, X[:, 0], np.full(60, size))


def test_early_stopping_knows_the_names_of_features():
    X = np.random.default_rng(0).normal(size=(200, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = OnlineLBFGSClassifier(early_stopping=True, random_state=0)
    model.fit(frame, X[:, 0] > 0.0)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.predict(frame).shape == (200,)


def test_a_fit_that_starts_at_the_optimum_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = X @ np.ones(5) + 0.1 * rng.normal(size=1000)
    optimum = BMRMRegressor(1e-4, tol=1e-9).fit(X, y)
    model = OnlineLBFGSRegressor(loss="squared_error", alpha=1e-4, random_state=0)
    model.fit(X, y, coef_init=optimum.coef_, intercept_init=optimum.intercept_)
    assert model.n_iter_ <= 10
    np.testing.assert_allclose(model.coef_, optimum.coef_, atol=0.02)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_predicted_numbers_keep_their_digits(convert):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_normal(200)
    X = convert(X + 1e10)
    model = OnlineLBFGSRegressor().partial_fit(X, y)
    assert_array_equal(model.predict(X), X @ model.coef_ + model.intercept_)
