"""Dual coordinate ascent for the multilabel hinge."""

import numpy as np
import pytest
from _door import (
    L2,
    Design,
    DualLoss,
    KindsOfLabels,
    Objective,
    Risk,
    Start,
    dual_ascent,
)
from numpy.testing import assert_allclose
from scipy import optimize, sparse
from test_dual_ascent import origin
from test_multiclass_ascent import (
    assert_balancing_loses_little,
    assert_bounds_close_in,
    assert_parameters_belong_to_the_dual,
    assert_values_never_rise,
    each_format,
    each_intercept,
    rows,
)

from sklearn_subqn import MultilabelHingeClassifier
from sklearn_subqn._core.kernels import multilabel

each_threshold = pytest.mark.parametrize("threshold", [False, True])
L = 4


def label_sets(form, *, n=300, seed=0):
    """Return rows and labels that some columns decide; of two rows none and all."""
    X, _ = rows(form, n=n, seed=seed)
    rng = np.random.default_rng(seed)
    scores = X @ rng.standard_normal((X.shape[1], L))
    y = (scores + 0.1 * rng.standard_normal(scores.shape) > 0.3).astype(np.uint8)
    y[0], y[1] = 0, 1
    return X, y


def problem(form, threshold, fit_intercept, alpha=1e-2):
    X, y = label_sets(form)
    rng = np.random.default_rng(7)
    weights = rng.random(len(y))
    weights[::9] = 0.0
    weights /= weights.sum()
    design = Design(X, fit_intercept=fit_intercept, n_outputs=L + threshold)
    loss = DualLoss(KindsOfLabels(rng.uniform(0.2, 1.0, (2, L))))
    return Objective(Risk(design, loss, y, weights), L2(design.n_coef), alpha)


@each_format
@each_intercept
@each_threshold
def test_bounds_enclose_the_optimum_and_close_in(form, threshold, fit_intercept):
    assert_bounds_close_in(problem(form, threshold, fit_intercept))


@each_format
@each_intercept
@each_threshold
def test_duals_are_feasible_and_balanced(form, threshold, fit_intercept):
    objective = problem(form, threshold, fit_intercept)
    *_, last = dual_ascent(objective, origin(objective))
    y, weights = objective.targets, objective.weights
    assert_allclose(last.dual.sum(axis=1), 0.0, atol=1e-16)
    signed = np.where(y > 0, -last.dual[:, :L], last.dual[:, :L])
    assert np.all(signed >= 0.0)
    for kind in (0, 1):
        sums = np.where(y == kind, signed, 0.0).sum(axis=1)
        assert np.all(sums <= weights * (1 + 1e-12))
    if fit_intercept:
        assert np.abs(last.dual.sum(axis=0)).max() < 1e-13


@each_format
@each_threshold
def test_duals_near_the_optimum_lose_little_by_balance(form, threshold):
    assert_balancing_loses_little(problem(form, threshold, True, alpha=0.1))


@each_format
@each_threshold
@pytest.mark.parametrize("proximity", [0.0, 0.3])
def test_parameters_belong_to_the_dual(form, threshold, proximity):
    assert_parameters_belong_to_the_dual(problem(form, threshold, False), proximity)


@each_format
@each_threshold
def test_values_never_rise_with_a_proximal_term(form, threshold):
    assert_values_never_rise(problem(form, threshold, False))


@each_intercept
@each_threshold
def test_goes_on_from_a_dual_point(threshold, fit_intercept):
    objective = problem("text", threshold, fit_intercept)
    *_, last = dual_ascent(objective, origin(objective), patience=5)
    again = dual_ascent(objective, Start(last.point.w, last.dual))
    assert next(again).point.value == pytest.approx(last.point.value)
    assert next(again).lower_bound > last.lower_bound * (1 - 1e-3)


@each_format
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_threshold
def test_types_of_data(form, dtype, threshold):
    X, y = label_sets(form)
    dense = X if form == "dense" else X.toarray()
    options = {"tol": 1e-5, "threshold": threshold}
    model = MultilabelHingeClassifier(1e-2, reduction="max", **options).fit(
        X.astype(dtype), y
    )
    peer = MultilabelHingeClassifier(
        1e-2, reduction="max", solver="alm", **options
    ).fit(dense, y)
    assert "dual ascent" in model.history_[0].phase
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(peer.objective_, rel=2e-5)
    assert model.dual_gap_ <= 1.1e-5 * model.objective_


@each_format
@each_threshold
def test_weights_are_repetitions(form, threshold):
    X, y = label_sets(form)
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    options = {"tol": 1e-8, "threshold": threshold}
    one = MultilabelHingeClassifier(1e-2, reduction="max", **options).fit(
        X, y, sample_weight=counts
    )
    other = MultilabelHingeClassifier(1e-2, reduction="max", **options).fit(
        X[repeated], y[repeated]
    )
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-7)


# The kernel and its twin.

N, D = 30, 6


def maximize(b, m, relevant, a, threshold):
    """Return the maximum over one row's dual variables, by SciPy's SLSQP."""
    sign = np.where(relevant > 0, -1.0, 1.0)
    kinds = [relevant == 0, relevant == 1]

    def loss(new):
        step = new - b
        last = sign @ step if threshold else 0.0
        return -(step @ m) + 0.5 * a * (step @ step + last * last)

    def gradient(new):
        step = new - b
        last = sign @ step if threshold else 0.0
        return -m + a * (step + last * sign)

    limits = [
        {"type": "ineq", "fun": lambda v, kind=kind: 1.0 - v[kind].sum()}
        for kind in kinds
    ]
    if not threshold:
        limits.append({"type": "eq", "fun": lambda v: sign @ v})
    result = optimize.minimize(
        loss,
        np.zeros(len(b)),
        jac=gradient,
        bounds=[(0.0, None)] * len(b),
        constraints=limits,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 300},
    )
    return result.x


def kernel_problem(form, dtype, indices, threshold):
    rng = np.random.default_rng(3)
    X = sparse.random_array((N, D), density=0.4, rng=2, format="csr", dtype=dtype)
    dense = X.toarray()
    if form == "sparse":
        arrays = X.data, X.indices.astype(indices), X.indptr.astype(indices)
        sweep = multilabel.sweep_sparse
    else:
        arrays, sweep = (dense,), multilabel.sweep_dense
    dense = dense.astype(np.float64)
    steps = 5.0 * rng.random(N)
    steps[5] = 0.0
    y = rng.integers(0, 2, (N, L)).astype(np.uint8)
    y[0], y[1] = 0, 1
    costs = rng.random((2, L))
    return sweep, arrays, dense, y, costs, steps, (dense**2).sum(axis=1)


@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@each_threshold
@pytest.mark.parametrize("intercept_step", [0.0, 0.3])
def test_sweep(form, dtype, indices, threshold, intercept_step):
    problem = kernel_problem(form, dtype, indices, threshold)
    sweep, arrays, dense, y, costs, steps, squares = problem
    k = L + threshold
    b, w, intercept = np.zeros((N, L)), np.zeros((D, k)), np.zeros(k)
    intercept[1] = 0.2
    gains, order = np.zeros(N), np.arange(N, dtype=np.intp)
    sign = np.where(y > 0, -1.0, 1.0)

    def full(rows, i):
        u = sign[i] * rows
        return np.append(u, -u.sum()) if threshold else u

    for seed in (1, 2):
        before, mine_w, mine_intercept = b.copy(), w.copy(), intercept.copy()
        args = steps, squares, intercept_step, seed, order, gains
        sweep(multilabel.Rows(y, costs, k), *arrays, *args, b, w, intercept)
        for i in order:
            a = steps[i] * (squares[i] + intercept_step)
            if steps[i] == 0.0:
                assert_allclose(b[i], before[i])
                continue
            z = dense[i] @ mine_w + mine_intercept
            z = z[:L] - z[L] if threshold else z
            m = np.where(y[i] > 0, costs[1] - z, costs[0] + z)
            if a > 0.0:
                expected = maximize(before[i], m, y[i], a, threshold)
                assert_allclose(b[i], expected, atol=1e-6)
            change = full(b[i] - before[i], i)
            gain = (b[i] - before[i]) @ m - 0.5 * a * change @ change
            assert gains[i] == pytest.approx(steps[i] * gain, rel=1e-9, abs=1e-12)
            mine_w -= steps[i] * np.outer(dense[i], change)
            mine_intercept -= intercept_step * steps[i] * change
        assert_allclose(w, mine_w, rtol=1e-9, atol=1e-12)
        assert_allclose(intercept, mine_intercept, rtol=1e-9, atol=1e-12)


@each_threshold
def test_a_row_without_entries_takes_the_worst_labels(threshold):
    y = np.array([[0, 0, 1, 1]], np.uint8)
    costs = np.array([[0.1, 0.4, 0.3, 0.2], [0.5, 0.5, 0.2, 0.6]])
    b, w = np.zeros((1, L)), np.zeros((D, L + threshold))
    rows = multilabel.Rows(y, costs, L + threshold)
    args = np.ones(1), np.zeros(1), 0.0, 1, np.arange(1), np.zeros(1)
    intercept = np.zeros(L + threshold)
    multilabel.sweep_dense(rows, np.zeros((1, D)), *args, b, w, intercept)
    assert_allclose(b, [[0.0, 1.0, 0.0, 1.0]])
    assert not w.any()
