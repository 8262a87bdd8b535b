"""Hessians, Newton directions, and Newton's method for the squared hinge."""

from itertools import islice

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    DualLoss,
    KindsOfLabels,
    Objective,
    Risk,
    Simplex,
    Stopping,
    divide_rows_for_threads,
    newton,
    run,
)
from _problems import EXPLORE, binary_objective, binary_problems, gaussian_data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from sklearn_subqn import BMRMRegressor
from sklearn_subqn._core.steps import newton_direction as newton_module
from sklearn_subqn._core.steps.newton_direction import (
    NewtonDirections,
    conjugate_gradients,
    is_factorized,
)

# Which rows have curvature: all are in error at w = 0, few or none far from there.
SHARES = {"all rows": 1.0, "most rows": 0.8, "few rows": 0.2, "no rows": 0.0}
CONTAINERS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_array,
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Threads take part however small the data."""
    divide_rows_for_threads(monkeypatch, 1)


def sparse_data(seed, n=40, d=6):
    """Data that float32 holds exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(n, d)) / 4.0
    X[rng.random((n, d)) < 0.4] = 0.0
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n)


def point_with_curvature(
    share, *, loss="squared", seed=0, convert=np.asarray, **options
):
    """A point where the given share of the rows has curvature, and those rows.

    Rows without have been given scores far beyond the margin, and w has nothing to do
    with the scores: the Hessian depends on them only.
    """
    X, y, weights = sparse_data(seed)
    squared = loss == "squared"
    loss = (
        BINARY_LOSSES["squared_hinge"]
        if squared
        else BINARY_LOSSES["hinge"].envelope(np.full(len(y), 0.5), 0.8)
    )
    objective = binary_objective(
        convert(X), y, loss=loss, weights=weights, alpha=0.3, **options
    )
    point = objective.at(np.random.default_rng(seed).normal(size=objective.n_params))
    rows = np.random.default_rng(seed + 1).random(len(y)) < share
    point.scores = np.where(rows, y * (0.5 if squared else 1.0), 9.0 * y)
    return point, rows


def dense_hessian(point, rows, width=None):
    o = point.objective
    X = o.design.X.toarray() if sparse.issparse(o.design.X) else o.design.X
    if o.design.fit_intercept:
        X = np.column_stack([X, np.ones(len(X))])
    h = (2.0 if width is None else 1.0 / width) * o.weights * rows
    hessian = X.T.astype(float) @ (h[:, None] * X)
    d = o.design.n_features
    hessian[:d, :d] += o.alpha * np.eye(d)
    return hessian


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize("container", CONTAINERS)
def test_gradient_after_a_step_of_the_intercept(share, container):
    convert = CONTAINERS[container]
    point, rows = point_with_curvature(share, convert=convert, fit_intercept=True)
    expected, g = dense_hessian(point, rows), point.gradient
    step = np.zeros(len(g))
    step[-1] = -g[-1] / expected[-1, -1]
    found = point.hessian.without_intercept(g)
    assert_allclose(found, g + expected @ step, atol=1e-12)
    assert abs(found[-1]) <= 1e-14


def test_directions_of_samples_lead_to_the_minimum():
    """With small leverages, three rows in four are left out at first."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((2000, 2500), density=0.01, format="csr", rng=rng)
    y = np.where(X @ rng.normal(size=2500) + rng.logistic(size=2000) > 0.0, 1.0, -1.0)
    loss = BINARY_LOSSES["log_loss"]
    o = binary_objective(X, y, loss=loss, alpha=0.01, fit_intercept=True)
    stopping = Stopping(1e-10)
    steps = newton(o, np.zeros(2501), stopping)
    result = run(steps, stopping, max_iter=100)

    def value(w):
        z = -y * (X @ w[:-1] + w[-1])
        slope = -y / (1.0 + np.exp(-z)) / 2000.0
        g = np.append(X.T @ slope + 0.01 * w[:-1], slope.sum())
        return np.logaddexp(0.0, z).mean() + 0.005 * w[:-1] @ w[:-1], g

    peer = optimize.minimize(
        value, np.zeros(2501), method="L-BFGS-B", jac=True, tol=1e-13
    )
    assert result.point.value == pytest.approx(peer.fun, rel=1e-9)
    assert result.lower_bound <= peer.fun


@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("loss", ["squared", "envelope"])
def test_hessian(share, container, fit_intercept, n_threads, loss):
    point, rows = point_with_curvature(
        share,
        loss=loss,
        convert=CONTAINERS[container],
        fit_intercept=fit_intercept,
        n_threads=n_threads,
    )
    expected = dense_hessian(point, rows, None if loss == "squared" else 0.8)
    hessian = point.hessian
    if rows.sum() <= 0.6 * len(rows):
        assert hessian.n_rows == rows.sum()
    assert_allclose(hessian.matrix(), expected, atol=1e-13)
    assert_allclose(hessian.diagonal(), np.diag(expected), atol=1e-13)
    for v in np.random.default_rng(2).normal(size=(3, len(expected))):
        assert_allclose(hessian.apply(v), expected @ v, atol=1e-13)


def test_hessian_is_the_derivative_of_the_gradient():
    X, y = gaussian_data(np.random.default_rng(0), 30, 4)
    objective = binary_objective(X, y, loss=BINARY_LOSSES["squared_hinge"], alpha=0.1)
    w = np.random.default_rng(1).normal(size=5)
    h = 1e-6
    assert np.min(np.abs(1.0 - y * objective.at(w).scores)) > 1e-4
    columns = [
        (objective.at(w + e).gradient - objective.at(w - e).gradient) / (2.0 * h)
        for e in h * np.eye(5)
    ]
    assert_allclose(objective.at(w).hessian.matrix(), columns, atol=1e-8)


def test_products_with_some_rows_count_by_their_share():
    point, _ = point_with_curvature(0.2)
    design = point.objective.design
    hessian, before = point.hessian, design.passes
    share = hessian.n_rows / design.n_rows
    assert 0.0 < share < 0.6
    hessian.apply(np.ones(7))
    assert design.passes - before == pytest.approx(2.0 * share)
    hessian.diagonal()
    hessian.matrix()
    assert design.passes - before == pytest.approx(4.0 * share)
    point, _ = point_with_curvature(1.0)
    point.hessian.apply(np.ones(7))
    assert point.objective.passes == pytest.approx(3.0)


# Directions


@pytest.mark.parametrize("share", [s for s in SHARES.values() if s])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("factorized", [True, False])
def test_directions_solve_the_newton_system(
    share, container, fit_intercept, factorized, monkeypatch
):
    monkeypatch.setattr(newton_module, "_MAX_DENSE", 100 if factorized else 0)
    point, _ = point_with_curvature(
        share, convert=CONTAINERS[container], fit_intercept=fit_intercept
    )
    assert is_factorized(point.objective, 1e-13) == factorized
    # The gradient that belongs to these scores, not to those of w.
    expected = np.linalg.solve(point.hessian.matrix(), -point.gradient)
    p = NewtonDirections().at(point, rtol=1e-13, max_iter=100)
    assert_allclose(p, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("factorized", [True, False])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_directions_without_rows_of_curvature(factorized, fit_intercept, monkeypatch):
    # Then the intercept has a zero row, and a zero gradient.
    monkeypatch.setattr(newton_module, "_MAX_DENSE", 100 if factorized else 0)
    point, _ = point_with_curvature(0.0, fit_intercept=fit_intercept)
    p = NewtonDirections().at(point, rtol=1e-13, max_iter=100)
    expected = -point.w
    expected[6:] = 0.0
    assert_allclose(p, expected, atol=1e-14)


def wide_point(convert=np.asarray, share=1.0, n=12, d=30, scale=1.0, **options):
    """A point of a problem with fewer rows of curvature than features."""
    rng = np.random.default_rng(4)
    X = scale * rng.integers(-8, 9, size=(n, d)) / 4.0
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    objective = binary_objective(
        convert(X),
        y,
        loss=BINARY_LOSSES["squared_hinge"],
        weights=rng.random(n),
        alpha=0.3,
        **options,
    )
    point = objective.at(rng.normal(size=objective.n_params))
    rows = rng.random(n) < share
    point.scores = np.where(rows, 0.5 * y, 9.0 * y)
    return point, rows


@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kept", [True, False])
def test_directions_by_rows_solve_the_newton_system(
    share, container, fit_intercept, kept, monkeypatch
):
    monkeypatch.setattr(newton_module, "_FEW_PARAMS", 0)
    monkeypatch.setattr(newton_module, "solution_operator", refuse_features(30))
    n = 12 if kept else 25
    point, rows = wide_point(
        CONTAINERS[container], share, n=n, fit_intercept=fit_intercept
    )
    assert rows.sum() < 30
    matrix = dense_hessian(point, rows)
    if not rows.any() and fit_intercept:
        matrix[-1, -1] = 1.0
    expected = np.linalg.solve(matrix, -point.gradient)
    p = NewtonDirections().at(point, rtol=0.1, max_iter=0)
    assert_allclose(p, expected, rtol=1e-10, atol=1e-12)


def refuse_features(n_features):
    solution_operator = newton_module.solution_operator

    def smaller(matrix):
        assert len(matrix) < n_features
        return solution_operator(matrix)

    return smaller


def test_directions_by_rows_survive_repeated_rows_of_any_size(monkeypatch):
    monkeypatch.setattr(newton_module, "_FEW_PARAMS", 0)
    for scale in (1e-9, 1e9):
        point, _ = wide_point(lambda X: np.repeat(X[:4], 3, axis=0), scale=scale)
        p = NewtonDirections().at(point, rtol=0.1, max_iter=0)
        assert np.all(np.isfinite(p))
        assert point.gradient @ p < 0.0


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("threshold", [False, True])
def test_directions_of_several_scores_by_rows(
    container, fit_intercept, threshold, monkeypatch
):
    """By rows from where conjugate gradients end at their limit."""
    monkeypatch.setattr(newton_module, "_FEW_PARAMS", 0)
    rng = np.random.default_rng(0)
    n, d, k = 12, 40, 4
    X = CONTAINERS[container](rng.normal(size=(n, d)))
    if threshold:
        loss = DualLoss(KindsOfLabels(np.ones((2, k - 1))))
        y = rng.integers(0, 2, (n, k - 1)).astype(np.uint8)
    else:
        loss, y = DualLoss(Simplex(1.0 - np.eye(k))), rng.integers(0, k, n)
    design = Design(X, fit_intercept=fit_intercept, n_outputs=k)
    risk = Risk(design, loss, y, np.full(n, 1.0 / n))
    hinge = Objective(risk, L2(design.n_coef), 0.3)
    start, w = hinge.at(np.zeros(hinge.n_params)), rng.normal(size=hinge.n_params)
    point = hinge.with_envelope(risk.center(start.dual), 30.0).at(w)
    hessian, g = point.hessian, point.gradient
    assert len(hessian.risk.row_system()[0]) > n / 2
    directions = NewtonDirections()
    first = directions.at(point, rtol=1e-12, max_iter=1)
    again = directions.at(point, rtol=1e-12, max_iter=0)
    assert_array_equal(first, again)
    assert_allclose(hessian.apply(first.copy()), -g, atol=1e-9)


def test_penalties_that_differ_need_the_system_of_the_features(monkeypatch):
    monkeypatch.setattr(newton_module, "_FEW_PARAMS", 0)
    point, rows = wide_point()
    assert point.hessian.penalty == 0.3
    factors = np.append(np.arange(1.0, 31.0), 0.0)
    regularizer = point.objective.regularizer
    monkeypatch.setattr(regularizer, "curvature", lambda w: factors)
    assert np.isnan(point.hessian.penalty)
    matrix = dense_hessian(point, rows) + 0.3 * np.diag(np.maximum(factors - 1.0, 0.0))
    expected = np.linalg.solve(matrix, -point.gradient)
    p = NewtonDirections().at(point, rtol=0.1, max_iter=0)
    assert_allclose(p, expected, rtol=1e-9)


@EXPLORE
@given(
    share=st.sampled_from([0.0, 0.2, 1.0]),
    seed=st.integers(0, 99),
    fit_intercept=st.booleans(),
    max_iter=st.integers(1, 4),
)
def test_every_iterate_of_conjugate_gradients_descends(
    share, seed, fit_intercept, max_iter
):
    point, _ = point_with_curvature(share, seed=seed, fit_intercept=fit_intercept)
    hessian, g = point.hessian, point.gradient
    p, _ = conjugate_gradients(hessian, -g, rtol=0.0, max_iter=max_iter)
    assert g @ p < 0.0
    # The quadratic model falls, too.
    assert g @ p + 0.5 * p @ hessian.apply(p) < 0.0


def test_conjugate_gradients_stop_at_the_tolerance_they_are_given():
    point, _ = point_with_curvature(1.0)
    hessian, g = point.hessian, point.gradient
    scale = 1.0 / np.sqrt(hessian.diagonal())
    last = np.inf
    for rtol in (0.9, 0.3, 1e-2, 1e-6):
        p, _ = conjugate_gradients(hessian, -g, rtol=rtol, max_iter=100)
        residual = np.linalg.norm(scale * (hessian.apply(p) + g))
        assert residual <= rtol * np.linalg.norm(scale * g) * (1.0 + 1e-9)
        assert residual < last
        last = residual
    assert_array_equal(
        conjugate_gradients(hessian, np.zeros_like(g), rtol=0.1, max_iter=9)[0], 0.0 * g
    )


def test_factorization_survives_a_matrix_that_rounding_makes_singular():
    # Two equal columns, and a penalty far below the rounding errors of their products.
    column = 1.0 + np.random.default_rng(0).random(30)
    X = 1e8 * np.column_stack([column, column])
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"], alpha=1e-14, fit_intercept=False
    )
    point = objective.at(np.zeros(2))
    p = NewtonDirections().at(point, rtol=0.1, max_iter=10)
    assert np.all(np.isfinite(p))
    assert point.gradient @ p < 0.0


def test_a_singular_matrix_leaves_parameters_of_small_units_as_they_are():
    """What makes it definite is a share of each of its diagonal entries."""
    matrix = np.diag([1e18, 1e18, 1e-8])
    matrix[0, 1] = matrix[1, 0] = 1e18 * (1.0 + 1e-15)
    p = newton_module.solution_operator(matrix)(np.array([0.0, 0.0, 1e-8]))
    assert_allclose(p, [0.0, 0.0, 1.0], rtol=1e-6)


def test_newton_ends_where_its_steps_are_lost_in_the_objective():
    """A bound that rounding keeps from the tolerance does not prolong the run."""
    x = 4696.0 * np.array([0.0, 0.0, -1.0, 0.0, -8.0, 957.0])
    X, y = np.column_stack([0.0 * x, x]), np.array([1e3] * 5 + [10702.7])
    model = BMRMRegressor(1e-8, loss="huber", epsilon=0.4, tol=1e-12)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.n_iter_ <= 20


@pytest.mark.parametrize(
    ("n", "d", "convert", "rough", "accurate"),
    [
        (50, 10, np.asarray, True, True),
        (50, 10, sparse.csr_array, True, True),
        (3, 1999, np.asarray, False, True),
        (3, 2100, np.asarray, False, False),
        (3, 1500, lambda X: sparse.csr_array(X * (np.arange(1500) < 2)), False, False),
    ],
)
def test_factorized_where_the_matrix_is_small(n, d, convert, rough, accurate):
    X, y = gaussian_data(np.random.default_rng(0), n, d)
    objective = binary_objective(convert(X), y)
    assert is_factorized(objective, 0.3) == rough
    assert is_factorized(objective, 0.1) == accurate


# The solver


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_iterations_cost_three_products(fit_intercept):
    X, y = gaussian_data(np.random.default_rng(0), 300, 5)
    objective = binary_objective(
        X,
        y,
        loss=BINARY_LOSSES["squared_hinge"],
        alpha=1e-3,
        fit_intercept=fit_intercept,
    )
    iterates = newton(objective, np.zeros(objective.n_params))
    passes = []
    for _ in islice(iterates, 5):
        passes.append(objective.design.passes)
    # Scores along the direction, the matrix, and the gradient.
    assert np.max(np.diff(passes)) <= 3.0


def lbfgsb_value(X, y, weights, alpha):
    """The optimum of the squared hinge with a free intercept, from scipy."""
    weights = weights / weights.sum()

    def value_and_gradient(w):
        m = np.maximum(1.0 - y * (X @ w[:-1] + w[-1]), 0.0)
        u = -2.0 * weights * y * m
        gradient = np.append(X.T @ u + alpha * w[:-1], u.sum())
        return 0.5 * alpha * w[:-1] @ w[:-1] + weights @ m**2, gradient

    result = optimize.minimize(
        value_and_gradient,
        np.zeros(X.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30},
    )
    return result.fun


def solve(objective, tol=1e-12, max_iter=100):
    bounds, values = [], []

    def record(result):
        bounds.append(result.lower_bound)
        values.append(result.point.value)

    result = run(
        newton(objective, np.zeros(objective.n_params)),
        Stopping(tol),
        max_iter=max_iter,
        report=record,
    )
    return result, np.array(bounds), np.array(values)


@pytest.mark.parametrize("factorized", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_reaches_the_optimum_with_intercept(seed, factorized, monkeypatch):
    monkeypatch.setattr(newton_module, "_MAX_DENSE", 100 if factorized else 0)
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, int(rng.integers(5, 80)), int(rng.integers(1, 9)))
    weights, alpha = rng.exponential(size=len(y)), 10.0 ** rng.integers(-3, 1)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"], weights=weights, alpha=alpha
    )
    result, bounds, values = solve(objective)
    assert result.status == "converged"
    optimum = lbfgsb_value(X, y, weights, alpha)
    assert result.point.value == pytest.approx(optimum, rel=1e-9)
    assert np.all(bounds <= optimum * (1.0 + 1e-12))
    assert np.all(values >= optimum * (1.0 - 1e-9))


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_reaches_the_optimum_without_intercept(seed, dual):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 50, 5)
    alpha = 10.0 ** -float(seed)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"], alpha=alpha, fit_intercept=False
    )
    result, bounds, values = solve(objective)
    assert result.status == "converged"
    peer = LinearSVC(
        C=1.0 / (50 * alpha),
        fit_intercept=False,
        dual=dual,
        tol=1e-9 if dual else 1e-12,
        max_iter=10**7,
        random_state=0,
    ).fit(X, y)
    assert_allclose(result.point.w, peer.coef_[0], rtol=1e-6, atol=1e-8)
    optimum = objective.at(peer.coef_[0]).value
    assert result.point.value == pytest.approx(optimum, rel=1e-11)
    assert np.all(bounds <= optimum * (1.0 + 1e-12))
    assert np.all(values >= optimum * (1.0 - 1e-11))


@EXPLORE
@given(problem=binary_problems(), fit_intercept=st.booleans())
def test_bounds_enclose_values_on_problems_of_all_kinds(problem, fit_intercept):
    X, y, weights, alpha = problem
    objective = binary_objective(
        X,
        y,
        loss=BINARY_LOSSES["squared_hinge"],
        weights=weights,
        alpha=alpha,
        fit_intercept=fit_intercept,
    )
    result, bounds, values = solve(objective, tol=1e-9)
    best = result.point.value
    assert np.all(bounds <= best * (1.0 + 1e-10) + 1e-13)
    assert result.gap <= 1e-9 * best + 1e-14
    assert np.all(np.diff(values) <= 0.0)


def test_is_exact_in_one_step_once_the_rows_in_error_stay_the_same():
    rng = np.random.default_rng(0)
    X, y = 0.01 * rng.normal(size=(30, 3)), np.where(np.arange(30) % 2, 1.0, -1.0)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"], fit_intercept=False
    )
    # Scores stay far below one: all rows are in error throughout.
    # Bounds account for rounding.
    result, _, _ = solve(objective, tol=1e-13)
    assert (result.status, result.n_iter) == ("converged", 1)


def test_optimum_at_the_start():
    X = np.array([[1.0], [1.0]])
    objective = binary_objective(
        X, np.array([1.0, -1.0]), loss=BINARY_LOSSES["squared_hinge"]
    )
    result, _, _ = solve(objective, tol=0.0)
    assert result.n_iter <= 1
    assert result.point.value == 1.0
    assert result.gap <= 1e-14


def test_rows_that_reach_the_margin_are_held_there():
    # Separable, with room for the intercept: after the first step no row is in error,
    # and shrinking w brings one to the margin and then the other.
    X, y = np.array([[160.0], [173.0], [-154.0]]), np.array([1.0, 1.0, -1.0])
    objective = binary_objective(X, y, loss=BINARY_LOSSES["squared_hinge"], alpha=1.0)
    result, _, _ = solve(objective)
    assert result.status == "converged"
    assert result.n_iter <= 5


def test_conjugate_gradients_end_where_their_gradient_proves_enough():
    X, y = gaussian_data(np.random.default_rng(3), 60, 40)
    design, weights = Design(X, fit_intercept=False), np.full(60, 1.0 / 60)
    risk = Risk(design, BINARY_LOSSES["log_loss"], y, weights)
    objective = Objective(risk, L2(40), 1e-3)
    point = objective.at(np.zeros(40))
    gap = 1e-2 * (point.value - point.lower_bound)
    p, _ = conjugate_gradients(point.hessian, -point.gradient, rtol=1e-9, least_gap=gap)
    left = point.gradient + point.hessian.apply(p)
    assert 0.5 / 1e-3 * left @ left <= gap
    # Without an end it would leave much less.
    assert 0.5 / 1e-3 * left @ left > 1e-3 * gap


@pytest.mark.parametrize("long", [1.0, 30.0])
def test_few_long_rows_are_not_sampled(long):
    """A sample may miss the rows that have most of the curvature."""
    X = sparse.random_array((2000, 2500), density=0.01, format="csr", rng=0)
    X = sparse.csr_array(sparse.diags_array([long] * 9 + [1.0] * 1991) @ X)
    y = np.where(np.arange(2000) % 3, 1.0, -1.0)
    o = binary_objective(X, y, loss=BINARY_LOSSES["log_loss"], alpha=0.02)
    point = o.at(np.zeros(o.n_params))
    hessian = point.hessian
    found = NewtonDirections()._sampled(point, hessian, 1e-3)
    assert (found is hessian) == (long > 1.0)
