"""Dual coordinate ascent for the multiclass hinge."""

import numpy as np
import pytest
from _door import (
    L2,
    Design,
    Dual,
    DualLoss,
    Objective,
    Risk,
    Simplex,
    Start,
    dual_ascent,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from test_dual_ascent import optimum, origin

from sklearn_subqn import MulticlassHingeClassifier
from sklearn_subqn._core.solvers.row_sweeps import row_sweeps

each_intercept = pytest.mark.parametrize("fit_intercept", [False, True])
each_format = pytest.mark.parametrize("form", ["text", "sparse", "dense"])


def rows(form, *, n=300, k=4, seed=0):
    """Return rows of about unit length, and classes that some columns decide."""
    rng = np.random.default_rng(seed)
    d, density = (2000, 0.008) if form == "text" else (20, 0.4)
    X = sparse.random_array((n, d), density=density, rng=rng, format="csr")
    X.data = rng.exponential(size=X.nnz) / np.sqrt(d * density)
    W = rng.standard_normal((d, k))
    y = np.argmax(X @ W + 0.1 * rng.standard_normal((n, k)), axis=1)
    return (X.toarray() if form == "dense" else X), y


def costs(k=4):
    matrix = np.random.default_rng(5).uniform(0.5, 2.0, (k, k))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def problem(form, fit_intercept, alpha=1e-2, k=4):
    X, y = rows(form)
    weights = np.random.default_rng(7).random(len(y))
    weights[::9] = 0.0
    weights /= weights.sum()
    design = Design(X, fit_intercept=fit_intercept, n_outputs=k)
    loss = DualLoss(Simplex(costs()))
    return Objective(Risk(design, loss, y, weights), L2(design.n_coef), alpha)


def assert_bounds_close_in(objective):
    """Bounds enclose the optimum, rise, and come close."""
    best, bound = optimum(objective)
    iterates = list(dual_ascent(objective, origin(objective), patience=5))
    assert len(iterates) > 2
    for iterate in iterates:
        assert iterate.lower_bound <= best
        assert iterate.point.value >= bound
        assert iterate.point.value == pytest.approx(
            objective.at(iterate.point.w).value, rel=1e-12
        )
    bounds = np.array([iterate.lower_bound for iterate in iterates[1:]])
    assert np.all(np.diff(bounds) >= 0.0)
    value = min(iterate.point.value for iterate in iterates)
    assert value - bounds[-1] < 0.02 * best


@each_format
@each_intercept
def test_bounds_enclose_the_optimum_and_close_in(form, fit_intercept):
    assert_bounds_close_in(problem(form, fit_intercept))


@each_format
@each_intercept
def test_duals_are_feasible_and_balanced(form, fit_intercept):
    objective = problem(form, fit_intercept)
    *_, last = dual_ascent(objective, origin(objective))
    y, weights, dual = objective.targets, objective.weights, last.dual.copy()
    assert_allclose(dual.sum(axis=1), 0.0, atol=1e-16)
    own = np.arange(len(y)), y
    assert np.all(-dual[own] <= weights * (1 + 1e-12))
    dual[own] = 0.0
    assert np.all(dual >= 0.0)
    assert not dual[weights == 0.0].any()
    if fit_intercept:
        assert np.abs(last.dual.sum(axis=0)).max() < 1e-13


def assert_balancing_loses_little(objective):
    """Near the optimum, half of what balancing without regard to that loses."""
    best, _ = optimum(objective)
    loss, targets, weights = objective.loss, objective.targets, objective.weights
    form_of_dual = loss.rowwise_dual(targets)
    sweeps = row_sweeps(objective.design, form_of_dual, weights, objective.alpha)
    for _ in range(6):
        sweeps.run()
        sweeps.recenter(sweeps.w)
    assert np.abs(sweeps.dual.sum(axis=0)).sum() > 1e-4
    lost = [
        best
        - objective.dual_value(
            objective.cut(Dual(level(sweeps.dual, targets, weights)))
        )
        for level in (loss.oracle.balance, loss.oracle.balance_near_optimum)
    ]
    assert 0.0 < lost[1] < 0.5 * lost[0]


@each_format
def test_duals_near_the_optimum_lose_little_by_balance(form):
    assert_balancing_loses_little(problem(form, True, alpha=0.1))


def assert_parameters_belong_to_the_dual(objective, proximity):
    design, alpha = objective.design, objective.alpha
    loss = objective.loss.rowwise_dual(objective.targets)
    args = loss, objective.weights, alpha
    sweeps = row_sweeps(design, *args, None, proximity)
    center = np.zeros(design.n_params)
    for seed in range(3):
        sweeps.run()
        normal = design.adjoint(sweeps.dual)
        assert_allclose(sweeps.conjugate_point, normal / -alpha, rtol=1e-9, atol=1e-11)
        w = (proximity * center - normal) / (alpha + proximity)
        assert_allclose(sweeps.w, w, rtol=1e-9, atol=1e-11)
        center = np.random.default_rng(seed).normal(size=design.n_params)
        sweeps.recenter(center)
    again = row_sweeps(design, *args, sweeps.dual, proximity)
    again.recenter(center)
    assert_allclose(again.w, sweeps.w, rtol=1e-9, atol=1e-11)


@each_format
@pytest.mark.parametrize("proximity", [0.0, 0.3])
def test_parameters_belong_to_the_dual(form, proximity):
    assert_parameters_belong_to_the_dual(problem(form, False), proximity)


def assert_values_never_rise(objective):
    """Each iterate is a minimizer on a line through the one before."""
    objective.alpha = 1e-6
    iterates = list(dual_ascent(objective, origin(objective), patience=5))
    values = np.array([iterate.point.value for iterate in iterates])
    bounds = np.array([iterate.lower_bound for iterate in iterates[1:]])
    assert np.all(np.diff(values) <= 1e-12)
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] <= values[-1] < 0.9 * values[0]
    last = iterates[-1]
    exact = objective.dual_value(objective.cut(last.proof))
    assert exact <= last.lower_bound + 1e-9 * abs(last.lower_bound)


@each_format
def test_values_never_rise_with_a_proximal_term(form):
    assert_values_never_rise(problem(form, False))


@each_intercept
def test_goes_on_from_a_dual_point(fit_intercept):
    objective = problem("text", fit_intercept)
    *_, last = dual_ascent(objective, origin(objective), patience=5)
    again = dual_ascent(objective, Start(last.point.w, last.dual))
    assert next(again).point.value == pytest.approx(last.point.value)
    assert next(again).lower_bound > last.lower_bound * (1 - 1e-3)


def test_refuses_slack_rescaling():
    loss = DualLoss(Simplex(costs(), "slack"))
    objective = problem("dense", False).with_loss(loss)
    assert loss.rowwise_dual(objective.targets) is None
    with pytest.raises(TypeError, match="not separable by rows"):
        next(dual_ascent(objective, origin(objective)))


@each_format
def test_every_class_has_a_maximum_without_curvature(form):
    """Rows without entries have a linear dual: the costliest label takes all of it."""
    X, y = rows(form)
    empty = np.zeros((3, X.shape[1]))
    if form == "dense":
        X = np.vstack([X, empty])
    else:
        X = sparse.vstack([X, sparse.csr_array(empty)], format="csr")
    y = np.append(y, [0, 1, 2])
    design = Design(X, fit_intercept=False, n_outputs=4)
    weights = np.full(len(y), 1.0 / len(y))
    loss = DualLoss(Simplex(costs()))
    objective = Objective(Risk(design, loss, y, weights), L2(design.n_coef), 1e-2)
    *_, last = dual_ascent(objective, origin(objective))
    worst = costs()[:3].argmax(axis=1)
    assert_allclose(last.dual[[-3, -2, -1], worst], weights[:3])


@each_format
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_types_of_data(form, dtype, indices):
    X, y = rows(form)
    dense = X if form == "dense" else X.toarray()
    X = np.asfortranarray(X, dtype=dtype) if form == "dense" else X.astype(dtype)
    if form != "dense":
        X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
        X.data.flags.writeable = False
    options = {"tol": 1e-5, "label_cost": costs()}
    model = MulticlassHingeClassifier(1e-2, **options).fit(X, y)
    peer = MulticlassHingeClassifier(1e-2, solver="alm", **options).fit(dense, y)
    assert "dual ascent" in model.history_[0].phase
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(peer.objective_, rel=2e-5)
    assert model.dual_gap_ <= 1.1e-5 * model.objective_


def test_repeated_entries():
    X, y = rows("sparse")
    halves = sparse.csr_array(
        (
            np.repeat(0.5 * X.data, 2),
            np.repeat(X.indices, 2),
            (2 * X.indptr).astype(X.indptr.dtype),
        ),
        shape=X.shape,
    )
    once = MulticlassHingeClassifier(1e-2).fit(X, y)
    twice = MulticlassHingeClassifier(1e-2).fit(halves, y)
    assert_allclose(twice.coef_, once.coef_, rtol=1e-8, atol=1e-8)


@each_format
@each_intercept
def test_weights_are_repetitions(form, fit_intercept):
    X, y = rows(form)
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    options = {"tol": 1e-8, "fit_intercept": fit_intercept}
    one = MulticlassHingeClassifier(1e-2, **options).fit(X, y, sample_weight=counts)
    other = MulticlassHingeClassifier(1e-2, **options).fit(X[repeated], y[repeated])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-7)
    assert_allclose(one.coef_, other.coef_, atol=2e-3)


def test_the_same_data_give_the_same_model():
    X, y = rows("text")
    first = MulticlassHingeClassifier(1e-3).fit(X, y)
    second = MulticlassHingeClassifier(1e-3).fit(X.copy(), y.copy())
    assert_array_equal(first.coef_, second.coef_)
    assert_array_equal(first.history_[0].objective, second.history_[0].objective)


def test_objectives_fall_from_one_method_to_the_next():
    X, y = rows("dense")
    history = MulticlassHingeClassifier(1e-4, tol=1e-6).fit(X, y).history_[0]
    assert np.all(np.diff(history.passes) >= 0.0)
    assert np.all(np.diff(history.objective) <= 0.0)
