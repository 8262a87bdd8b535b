"""Points and lines of the objective against its definition."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Cut,
    LimitedMemoryInverseHessian,
    exact,
    minimize_intercept,
    subbfgs,
)
from _problems import (
    EXPLORE,
    binary_objective,
    binary_problems,
    each_loss,
    gaussian_data,
    kink_objective,
    subdifferential_vertices,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.objectives import bounds, evaluation

with_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def gaussian_objective(seed=0, n=30, d=4, **options):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, n, d)
    objective = binary_objective(X, y, weights=rng.uniform(0.5, 2.0, n), **options)
    return objective, rng.normal(size=objective.n_params)


def test_value_does_not_penalize_the_intercept():
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    objective = binary_objective(X, y, alpha=0.5, weights=[3.0, 1.0])
    # Scores 1 and 3.5, hinges 0 and 4.5.
    w = np.array([0.25, 3.0, 0.5])
    assert objective.at(w).value == 0.25 * (0.0625 + 9.0) + 0.25 * 4.5
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"], alpha=0.5, weights=[3, 1]
    )
    assert objective.at(w).value == 0.25 * (0.0625 + 9.0) + 0.25 * 4.5**2
    assert (objective.n_params, objective.n_free) == (3, 1)


@each_loss
@with_intercept
def test_gradient_is_that_of_central_differences(loss, fit_intercept):
    objective, w = gaussian_objective(loss=loss, fit_intercept=fit_intercept)
    h = 1e-6
    differences = [
        objective.at(w + e).value - objective.at(w - e).value
        for e in h * np.eye(objective.n_params)
    ]
    expected = np.array(differences) / (2.0 * h)
    assert_allclose(objective.at(w).gradient, expected, atol=1e-8)


@EXPLORE
@given(
    seed=st.integers(0, 999), n=st.integers(1, 7), d=st.integers(1, 4), b=st.booleans()
)
def test_steepest_is_the_best_of_all_vertices(seed, n, d, b):
    objective, w = kink_objective(seed, n, d, fit_intercept=b)
    point = objective.at(w)
    assert_array_equal(point.kinks, np.arange(n))
    vertices = subdifferential_vertices(objective, w)
    assert len(vertices) == 2**n
    assert_allclose(vertices[0], point.gradient, atol=1e-14)
    for p in np.random.default_rng(seed).integers(-4, 5, size=(5, objective.n_params)):
        g = point.steepest(p.astype(float))
        assert np.min(np.abs(vertices - g).max(axis=1)) < 1e-14
        assert g @ p == pytest.approx(np.max(vertices @ p), abs=1e-13)


@with_intercept
def test_steepest_is_the_directional_derivative_at_kinks(fit_intercept):
    objective, w = kink_objective(3, n=6, d=4, fit_intercept=fit_intercept)
    point = objective.at(w)
    h = 1e-7
    for p in np.random.default_rng(0).normal(size=(10, objective.n_params)):
        derivative = (objective.at(w + h * p).value - point.value) / h
        assert point.steepest(p) @ p == pytest.approx(derivative, abs=1e-5)
        assert point.along(p).slope(0.0) == pytest.approx(point.steepest(p) @ p)


@each_loss
@with_intercept
@EXPLORE
@given(seed=st.integers(0, 999), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_subgradient_inequality_at_kinks_and_elsewhere(
    loss, fit_intercept, seed, scale
):
    objective, w = kink_objective(seed, fit_intercept=fit_intercept, loss=loss)
    rng = np.random.default_rng(seed)
    for start in (w, w + rng.normal(size=w.shape)):
        point = objective.at(start)
        p = scale * rng.normal(size=w.shape)
        for g in (point.gradient, point.steepest(p), point.steepest(-p)):
            other = objective.at(start + p).value
            assert other >= point.value + g @ p - 1e-12 * max(1.0, other)


@each_loss
@with_intercept
def test_lines_agree_with_points(loss, fit_intercept):
    objective, w = gaussian_objective(1, loss=loss, fit_intercept=fit_intercept)
    p = np.random.default_rng(1).normal(size=w.shape)
    line = objective.at(w).along(p)
    steps = [0.0, 0.1, 3.0, exact(line)]
    if not loss.smooth:
        steps += list(np.sort(line.restriction.kinks)[:3])
    for step in steps:
        point, expected = line.point(step), objective.at(w + step * p)
        assert_allclose(point.w, expected.w)
        assert_allclose(point.scores, expected.scores, atol=1e-12)
        assert point.value == pytest.approx(expected.value)
        assert line.value(step) == pytest.approx(expected.value)
        assert point.gradient @ p == pytest.approx(line.slope(step), abs=1e-12)


def test_gradient_at_a_kink_is_the_steepest_along_the_line():
    objective, w = kink_objective(4)
    p = np.array([0.25, -0.5, 1.0])
    # All rows are on the margin at the end of this line.
    point = objective.at(w - p).along(p).point(1.0)
    assert point.kinks.size == 5
    vertices = subdifferential_vertices(objective, w)
    assert point.gradient @ p == pytest.approx(np.max(vertices @ p), abs=1e-14)
    # The oracle starts from that dual, and still knows all vertices.
    for direction in np.random.default_rng(4).normal(size=(5, 3)):
        slope = point.steepest(direction) @ direction
        assert slope == pytest.approx(np.max(vertices @ direction), abs=1e-14)


@with_intercept
@EXPLORE
@given(problem=binary_problems(), seed=st.integers(0, 99))
def test_level_points_are_stationary_along_the_line(fit_intercept, problem, seed):
    X, y, weights, alpha = problem
    objective = binary_objective(
        X, y, alpha=alpha, weights=weights, fit_intercept=fit_intercept
    )
    start = objective.at(np.random.default_rng(seed).normal(size=objective.n_params))
    p = -start.gradient
    line = start.along(p)
    step = exact(line)
    point = line.point(step, balanced=True)
    # Sums over rows may cancel, where their rounding is left.
    rounded = 1e-15 * (np.abs(point.dual) @ np.abs(line.dscores))
    atol = 1e-9 * abs(start.gradient @ p) + rounded
    assert point.gradient @ p == pytest.approx(0.0, abs=atol)
    # The dual is a subgradient: in error one, well classified zero, between on margins.
    beta = -point.dual * y / objective.weights
    m = 1.0 - y * point.scores
    assert np.all((beta >= 0.0) & (beta <= 1.0))
    assert_array_equal(beta[m > 1e-10], 1.0)
    assert_array_equal(beta[m < -1e-10], 0.0)


@EXPLORE
@given(
    problem=binary_problems(),
    squared=st.booleans(),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 99),
)
def test_cuts_bound_the_risk_and_dual_values_the_objective(
    problem, squared, fit_intercept, seed
):
    X, y, weights, alpha = problem
    objective = binary_objective(
        X,
        y,
        loss=BINARY_LOSSES["squared_hinge"] if squared else BINARY_LOSSES["hinge"],
        alpha=alpha,
        weights=weights,
        fit_intercept=fit_intercept,
    )
    rng = np.random.default_rng(seed)
    w, *others = rng.normal(size=(4, objective.n_params))
    point = minimize_intercept(objective.at(w))
    normal, offset, *_ = point.cut
    risk = point.value - alpha * objective.regularizer.value(point.w)
    assert normal @ point.w + offset == pytest.approx(risk, rel=1e-9, abs=1e-9)
    bound = point.lower_bound
    for other in [point.w, np.zeros_like(w), *others, -normal / alpha]:
        value = objective.at(other).value
        risk = value - alpha * objective.regularizer.value(other)
        size = 1e-12 * (value + abs(offset) + np.abs(normal) @ np.abs(other))
        assert risk >= normal @ other + offset - size
        assert value >= bound - size


def test_dual_value_is_the_minimum_of_the_cut_with_the_penalty():
    objective, _ = gaussian_objective(alpha=0.25)
    normal = np.array([1.0, -2.0, 0.5, 0.0, 0.0])
    bound = objective.dual_value(Cut(normal, 3.0))
    w = -normal / 0.25
    expected = 0.125 * (w @ w) + normal @ w + 3.0
    # Less what rounding may have added.
    assert expected - 1e-13 <= bound < expected
    tilted = normal + np.array([0.0, 0.0, 0.0, 0.0, 1e-6])
    assert objective.dual_value(Cut(tilted, 3.0)) == -np.inf
    assert not Cut(tilted, 3.0).is_balanced(4)
    assert Cut(tilted, 3.0).is_balanced(5)


@each_loss
def test_infimum_of_the_risk_is_zero(loss):
    objective, _ = gaussian_objective(loss=loss)
    assert objective.risk.infimum == 0.0


def test_products_with_the_data():
    objective, w = kink_objective(0, n=20, d=3)
    X = objective.design.X
    # Two of twenty rows on the margin.
    X[2:, 0] *= 2.0
    point = objective.at(w)
    assert objective.passes == 1.0
    line = point.along(np.array([1.0, 2.0, 3.0]))
    assert objective.passes == 2.0
    _ = exact(line), line.value(0.5), line.slope(0.5), line.point(0.5).value
    assert objective.passes == 2.0
    _ = point.gradient, point.cut, point.lower_bound
    before = objective.passes
    point.steepest(np.ones(3))
    assert objective.passes == pytest.approx(before + 2.0 * 2.0 / 20.0)
    other = objective.at(np.ones(3))
    _ = other.kinks
    before = objective.passes
    assert other.steepest(np.ones(3)) is other.gradient
    assert objective.passes <= before + 1.0


def test_line_along_a_free_parameter():
    objective, w = gaussian_objective(2)
    point = objective.at(w)
    for sign in (1.0, -1.0):
        line = point.along_free(np.array([sign]))
        assert objective.passes == 1.0
        expected = w + 0.75 * sign * np.array([0.0, 0.0, 0.0, 0.0, 1.0])
        assert_array_equal(line.point(0.75).w, expected)
        assert_allclose(line.point(0.75).scores, point.scores + 0.75 * sign)


# Updates of scores and gradients from point to point.


@with_intercept
def test_updated_gradients_and_scores_stay_those_of_a_fresh_point(fit_intercept):
    objective, _ = gaussian_objective(5, n=200, d=6, fit_intercept=fit_intercept)
    objective.alpha = 1e-4
    hessian = LimitedMemoryInverseHessian(objective.n_params, 5)
    solver = subbfgs(objective, np.zeros(objective.n_params), hessian)
    points = [iterate.point for _, iterate in zip(range(150), solver, strict=False)]
    assert len(points) > 100
    for point in points:
        fresh = objective.design.adjoint(point.dual)
        assert_allclose(point.risk_gradient, fresh, atol=1e-13)
        assert_allclose(point.scores, objective.design.forward(point.w), atol=1e-11)


def test_gradients_are_updated_by_the_rows_that_changed():
    objective, w = gaussian_objective(6, n=100, fit_intercept=False)
    point = objective.at(w)
    _ = point.gradient
    line = point.along(-point.gradient)
    new = line.point(1.5 * line.restriction.kinks.min())
    before = objective.passes
    assert_allclose(new.risk_gradient, objective.design.X.T @ new.dual, atol=1e-14)
    assert objective.passes == pytest.approx(before + 0.01)


def test_points_passed_through_cost_no_product():
    objective, w = gaussian_objective(6, n=100)
    point = objective.at(w)
    _ = point.gradient
    between = point.along(1e-9 * np.ones(5)).point(1.0)
    before = objective.passes
    last = between.along_free(np.ones(1)).point(1e-9)
    changed = np.count_nonzero(last.dual != point.dual)
    _ = last.gradient
    assert objective.passes <= before + max(changed, 1) / 100.0


def test_gradients_of_two_points_are_computed_by_one_question(monkeypatch):
    objective, w = gaussian_objective(6, n=100)
    point = objective.at(w)
    _ = point.gradient
    new = point.along(-point.gradient).point(0.5)
    best = minimize_intercept(new)
    asked = []
    risk, adjoints = objective.risk, objective.risk.adjoints
    monkeypatch.setattr(risk, "adjoints", lambda *u: asked.append(u) or adjoints(*u))
    before = objective.passes
    new.compute_gradients(best)
    monkeypatch.setattr(risk, "adjoint", None)
    changed = [
        np.count_nonzero(a.dual != b.dual) for a, b in ((new, point), (best, new))
    ]
    assert min(changed) > 0
    assert objective.passes == pytest.approx(before + sum(changed) / 100.0)
    assert len(asked) == 1
    for each in (new, best):
        assert_allclose(
            each.risk_gradient, objective.design.adjoint(each.dual), atol=1e-14
        )


@with_intercept
def test_gradients_are_computed_anew_every_so_often(fit_intercept, monkeypatch):
    monkeypatch.setattr(evaluation, "_MAX_UPDATES", 3)
    objective, w = gaussian_objective(7, n=200, fit_intercept=fit_intercept)
    products = []
    design, adjoint = objective.design, objective.design.adjoint
    monkeypatch.setattr(design, "adjoint", lambda u: products.append(u) or adjoint(u))
    solver = subbfgs(objective, w, LimitedMemoryInverseHessian(len(w), 5))
    updates, last = [], None
    for _, iterate in zip(range(40), solver, strict=False):
        if iterate.point is last:
            # The run has ended where it was.
            break
        last = iterate.point
        _ = iterate.point.gradient
        anew = any(u is iterate.point.dual for u in products)
        updates.append(0 if anew or not updates else updates[-1] + 1)
        products.clear()
    assert len(updates) >= 20
    assert max(updates) == 3


@with_intercept
@pytest.mark.parametrize("error", [0.0, 1e-13, 1e-6, 0.3])
@pytest.mark.parametrize("block", [1, 3, 100])
def test_squared_norms_bound_a_cut_with_errors_by_columns(
    block, error, fit_intercept, monkeypatch
):
    monkeypatch.setattr(bounds, "BLOCK_SIZE", block)
    rng = np.random.default_rng(3)
    X, y = gaussian_data(rng, 30, 7)
    X *= np.logspace(-4, 2, 7)
    objective = binary_objective(X, y, alpha=0.1, fit_intercept=fit_intercept)
    normal = rng.normal(size=objective.n_params) * np.append(
        np.logspace(2, -4, 7), np.zeros(int(fit_intercept))
    )
    bound = objective.dual_value(Cut(normal, 0.5, error, 1.0))
    # The worst normal within the error of each column.
    worst = np.abs(normal[:7]) + error * np.sqrt(np.mean(X**2, axis=0))
    exact = 0.5 - worst @ worst / (2.0 * 0.1)
    assert bound <= exact
    assert_allclose(bound, exact, rtol=1e-8)


@pytest.mark.parametrize(("size", "error"), [(1e200, 0.0), (1.0, np.inf)])
def test_squared_norms_of_what_overflows_bound_nothing(size, error):
    objective, _ = gaussian_objective(fit_intercept=False)
    cut = Cut(np.full(objective.n_params, size), 0.5, error, 1.0)
    with np.errstate(over="ignore"):
        assert objective.dual_value(cut) == -np.inf
