"""Quadratic models of L1-regularized logistic regression, and their kernels."""

from __future__ import annotations

import importlib
import tracemalloc

import numpy as np
import pytest
from _door import (
    SOLVERS,
    Dual,
    ElasticNet,
    GroupPenalty,
    Options,
    Start,
    Stopping,
    minimize_intercept,
    run,
)
from _l1_problems import data, problem, solve
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn import L1LogisticOWLQN
from sklearn_subqn._core.kernels import coordinate_descent, products
from sklearn_subqn._core.rows.columns import MatrixColumns
from sklearn_subqn._core.solvers.cd import at_sample, predicted_dual
from sklearn_subqn._core.steps import (
    column_descent,
    column_step,
    gram_step,
    group_step,
    quadratic,
)
from sklearn_subqn._core.steps.line_search import lengthen

# Its name in the package is that of the solver.
cd_module = importlib.import_module("sklearn_subqn._core.solvers.cd")

ROUNDING = 1e-12


def sweeps_over_columns(X, index, row_index, scaled_dtype, h, g, w, n_sweeps):
    """The minimizer of a model, the product of its columns, and the last violation."""
    m = X.shape[1]
    columns = sparse.csc_array(X)
    arrays = columns.indptr.astype(index), columns.indices.astype(index), columns.data
    kept = h > 0.1
    n_kept = np.count_nonzero(kept)
    positions = np.where(kept, np.cumsum(kept) - 1, n_kept).astype(row_index)
    scaled = np.empty(m + 1, index), np.empty(len(arrays[1]), row_index)
    scaled += (np.empty(len(arrays[1]), np.float32),)
    squares = np.empty((2, m))
    products.scale_columns(
        *arrays, np.arange(m), np.sqrt(h), positions, n_kept, *scaled, squares
    )
    A = np.sqrt(h[kept])[:, None] * X[kept]
    scaled = *scaled[:2], scaled[2].astype(scaled_dtype)
    size = scaled[0][-1]
    made = sparse.csc_array((scaled[2][:size], scaled[1][:size], scaled[0]), A.shape)
    assert_allclose(made.toarray(), A, rtol=1e-6)
    assert_allclose(squares[0], (A**2).sum(axis=0), rtol=1e-6)
    assert_allclose(squares.sum(axis=0), (X**2).T @ h, rtol=1e-5)
    v, image, worst = w.copy(), np.zeros(len(A)), np.inf
    for _ in range(n_sweeps):
        worst = coordinate_descent.sweep_columns(
            *scaled, np.arange(m), image, g, squares[0], v, 0.3, 0.1
        )
    assert_allclose(image, A @ (v - w), atol=1e-6)
    out = np.ones(len(A))
    which = np.array([3, 1, 6])
    products.add_columns(*scaled, which, w[which], out)
    assert_allclose(out, 1.0 + A[:, which] @ w[which], atol=1e-6)
    sums = np.full(3, np.nan)
    products.multiply_columns(*scaled, which, image, sums)
    assert_allclose(sums, A[:, which].T @ image, atol=1e-6)
    rows, scores = sparse.csr_array(X), np.full(len(X), np.nan)
    own = rows.indptr.astype(index), rows.indices.astype(index), rows.data
    products.multiply(*own, w, scores)
    assert_allclose(scores, X.astype(float) @ w, rtol=1e-12)
    counts = np.zeros(m, index)
    products.count(own[1], counts)
    ends = counts.cumsum(dtype=index)
    assert_array_equal(ends, arrays[0][1:])
    turned = [np.empty_like(array) for array in arrays[1:]]
    products.to_columns(*own, 0, ends, *turned)
    for one, other in zip((ends, *turned), (arrays[0][:-1], *arrays[1:]), strict=True):
        assert_array_equal(one, other)
    return v, worst


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaled_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("row_index", [np.uint16, np.int32, np.int64])
def test_kernels_minimize_the_model(dtype, scaled_dtype, index, row_index):
    rng = np.random.default_rng(0)
    n, m = 30, 8
    X = (rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.5)).astype(dtype)
    h, g, w = rng.random(n), rng.normal(size=m), rng.normal(size=m)
    h[:5] *= 0.1
    gram = X.T.astype(float) @ ((h * (h > 0.1))[:, None] * X)
    v, slopes = w.copy(), g.copy()
    worst, _ = coordinate_descent.sweep_gram(
        gram, slopes, v, np.full(m, 0.3), np.full(m, 0.1), 1e-10, 10_000
    )
    assert worst <= 1e-10
    assert_allclose(slopes, g + gram @ (v - w), atol=1e-9)
    u, worst = sweeps_over_columns(X, index, row_index, scaled_dtype, h, g, w, 500)
    assert worst <= 1e-7
    assert_allclose(u, v, atol=1e-6)
    # Conditions of optimality, from the formula.
    total = g + gram @ (v - w) + 0.1 * v
    assert_allclose(total[v != 0.0], -0.3 * np.sign(v[v != 0.0]), atol=1e-9)
    assert np.all(np.abs(total[v == 0.0]) <= 0.3 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_block_kernel_minimizes_the_model(dtype, index, fit_intercept):
    rng = np.random.default_rng(0)
    n, d, k, which = 30, 8, 3, np.array([1, 2, 4, 5, 7])
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    p, s = rng.dirichlet(np.ones(k), n), rng.random(n)
    added = 0.1 * rng.random((n, k))
    a = s[:, None] * p + added
    m = len(which)
    A = X[:, which].astype(float)
    w, g = rng.normal(size=(m, k)), rng.normal(size=(m, k))
    v, b, product = w.copy(), np.zeros(k * fit_intercept), np.zeros((n, k))
    free_gradient = rng.normal(size=k)
    diagonal = a - s[:, None] * p * p
    squares = np.empty((m, k))
    columns = sparse.csc_array(X)
    arrays = (
        columns.indptr.astype(index),
        columns.indices.astype(index),
        columns.data,
        which,
    )
    products.squares(*arrays, diagonal, squares)
    assert_allclose(squares, (A * A).T @ diagonal, rtol=1e-6)
    for _ in range(3000):
        worst = coordinate_descent.sweep_blocks(
            *arrays,
            a,
            s,
            p,
            product,
            g,
            2.0 * squares,
            v,
            0.3,
            0.1,
            free_gradient,
            2.0 * diagonal.sum(axis=0),
            b,
        )
    assert worst <= 1e-10
    z = A @ (v - w)
    z = z + b if fit_intercept else z
    assert_allclose(product, a * z - (s * (p * z).sum(axis=1))[:, None] * p, atol=1e-6)
    total = g + A.T @ product + 0.1 * v
    assert_allclose(total[v != 0.0], -0.3 * np.sign(v[v != 0.0]), atol=1e-8)
    assert np.all(np.abs(total[v == 0.0]) <= 0.3 + 1e-8)
    if fit_intercept:
        assert_allclose(free_gradient + product.sum(axis=0), 0.0, atol=1e-8)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.8])
def test_several_classes_by_columns_and_by_matrix_agree(
    container, fit_intercept, l1_ratio, monkeypatch
):
    X, y = data(n_classes=4)
    X[np.abs(X) < 0.3] = 0.0
    options = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "alpha": 5e-3}
    joint = solve(problem(container(X), y, **options), tol=1e-10)
    monkeypatch.setattr(quadratic, "_MAX_JOINT", 0)
    by_columns = solve(problem(container(X), y, **options), tol=1e-10)
    assert by_columns.status == "converged"
    assert by_columns.point.value == pytest.approx(joint.point.value, rel=1e-9)
    assert by_columns.lower_bound <= joint.point.value + ROUNDING


@pytest.mark.parametrize("n_classes", [2, 4])
def test_predicted_dual_points_prove_no_more_than_is_true(n_classes):
    """Damping moves the sums over classes of predicted dual variables away from 0."""
    X, y = data(n_classes=n_classes)
    objective = problem(X, y, alpha=5e-3, fit_intercept=False)
    optimum = solve(objective, tol=1e-12).point
    rng = np.random.default_rng(0)
    for longest in (0.01, 1.0, 100.0):
        p = 0.1 * rng.normal(size=objective.n_params)
        line = objective.at(optimum.w - p).along(p)
        coordinates = np.arange(objective.design.n_coef)
        model = quadratic.QuadraticModel(
            line.start, coordinates, coordinates, 10, longest, 0.01
        )
        dual, error = predicted_dual(line, line.point(1.0), model)
        assert objective.loss.oracle.feasible(
            dual, objective.targets, objective.weights
        ).all()
        assert error >= -ROUNDING
        if n_classes > 2:
            assert_allclose(dual.sum(axis=1), 0.0, atol=1e-14)
        bound = objective.dual_bound(Dual(dual))
        assert -np.inf < bound <= optimum.value + ROUNDING


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_matrix_of_several_classes_takes_blocks_of_fixed_size(container):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40_000, 20)), np.arange(40_000) % 7
    point = minimize_intercept(problem(container(X), y).origin())
    all_of_them = np.arange(140)
    tracemalloc.start()
    quadratic.QuadraticModel(point, all_of_them, all_of_them, 10, 6.0, 0.01)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Numbers of all rows and classes take 2.2 MB, and of all coordinates 45 MB.
    assert peak <= 70e6


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_matrix_of_some_coordinates(container, fit_intercept, monkeypatch):
    X, y = data(n_classes=4)
    objective = problem(container(X), y, fit_intercept=fit_intercept)
    w = np.random.default_rng(0).normal(size=objective.n_params)
    point = minimize_intercept(objective.at(w))
    monkeypatch.setattr("sklearn_subqn._core.rows.columns.COPY_SIZE", 125)
    n_coef = objective.design.n_coef
    coordinates = np.flatnonzero(np.arange(n_coef) % 3)
    model = quadratic.QuadraticModel(point, coordinates, coordinates, 10, 6.0, 0.01)
    assert not model.by_columns
    assert model.accurate
    basis = np.eye(objective.n_params)[
        np.append(coordinates, np.arange(n_coef, objective.n_params))
    ]
    if fit_intercept:
        # Each column with the intercept that centers it.
        places = np.arange(len(coordinates))
        basis[places, n_coef + coordinates % 4] = -model._center[coordinates // 4]
    added = gram_step.damping(point, 6.0)
    scores = [objective.design.forward(one) for one in basis]
    products = [
        objective.design.adjoint(point.curvature.apply(z.copy()) + added * z)
        for z in scores
    ]
    expected = np.array(products) @ basis.T
    own = np.append(coordinates, np.arange(n_coef, objective.n_params))
    order = np.lexsort((own, own % 4))
    expected = expected[np.ix_(order, order)]
    expected[np.diag_indices(len(order))] *= 1.0 + gram_step.ROUNDED
    assert_allclose(model._step._gram, expected, rtol=1e-14, atol=1e-14)


def test_thinned_points_have_about_the_same_hessian():
    X, y = data(n=4000)
    objective = problem(X, y)
    w = np.random.default_rng(0).normal(size=objective.n_params)
    point = minimize_intercept(objective.at(w))
    sample = at_sample(point, 4)
    n = sample.objective.design.n_rows
    assert 300 <= n <= 1000
    assert sample.objective.weights.sum() == pytest.approx(1.0, abs=0.1)
    ratios = []
    for p in np.random.default_rng(1).normal(size=(40, objective.n_params)):
        curvatures = []
        for one in (sample, point):
            z = one.objective.design.forward(p)
            curvatures.append(np.vdot(z, one.curvature.apply(z.copy())))
        ratios.append(curvatures[0] / curvatures[1])
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)


def test_models_without_any_use_of_their_columns():
    """Columns of zeros only, and a start with no coordinate to solve for."""
    X, y = data(n_classes=3)
    X[:, 3] = 0.0
    for fit_intercept in (True, False):
        objective = problem(
            sparse.csr_array(X), y, alpha=10.0, fit_intercept=fit_intercept
        )
        point = minimize_intercept(objective.origin())
        columns = MatrixColumns(objective.design, np.arange(12))
        added = gram_step.damping(point, 6.0)
        step = quadratic.BlockStep(
            columns, point.curvature, added, 10.0, 0.0, int(fit_intercept)
        )
        start = np.zeros((12 + fit_intercept, 3))
        gradient = np.ones_like(start)
        gradient[12:] = [1.0, -1.0, 0.0]
        v = step.minimize(gradient, start, 1e-12, 2000)
        assert not v[:12].any()
        assert bool(v[12:].any()) == fit_intercept


def test_columns_whose_rows_hardly_count_are_used_all_the_same(monkeypatch):
    """Rows of little weight, which models of columns leave out, with large values."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 20)), rng.integers(2, size=200)
    X[:, 12:] = 0.0
    X[-40:] = 0.0
    X[-40:, 12:] = 1e4 * rng.normal(size=(40, 8))
    weights = np.where(np.arange(200) < 160, 1.0, 1e-4)
    objective = problem(sparse.csr_array(X), y, alpha=1e-3, weights=weights)
    by_matrix = solve(objective)
    monkeypatch.setattr(quadratic, "_MAX_GRAM", 0)
    by_columns = solve(objective)
    assert by_columns.status == "converged"
    assert by_columns.point.value == pytest.approx(by_matrix.point.value, rel=1e-8)
    assert np.any(by_columns.point.w[12:20] != 0.0)


def correlated_columns(n_classes):
    """A matrix, CSR, on which sweeps over columns converge slowly, and classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30)) + 3.0 * rng.normal(size=(80, 1))
    X[rng.random(X.shape) < 0.3] = 0.0
    scores = X[:, 0] - X[:, 1] + rng.normal(size=80)
    y = np.digitize(scores, np.quantile(scores, np.arange(1, n_classes) / n_classes))
    return sparse.csr_array(X), y


def use_columns(monkeypatch, whether=True):
    """Make models never form their matrix, or whenever it is not too large."""
    monkeypatch.setattr(quadratic, "_MAX_GRAM", 0 if whether else 1000)
    monkeypatch.setattr(quadratic, "forms_matrix", lambda *_: not whether)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_by_columns_and_by_matrix_agree(n_classes, fit_intercept, monkeypatch):
    X, y = correlated_columns(n_classes)
    # The last column is in a large unit, the others are about as large as intercepts.
    X = sparse.csr_array(X * np.append(np.ones(29), 0.05))
    objective = problem(X, y, alpha=1e-3, l1_ratio=0.9, fit_intercept=fit_intercept)
    point = minimize_intercept(objective.origin())
    steps = []
    for by_columns in (True, False):
        use_columns(monkeypatch, by_columns)
        coordinates = np.arange(objective.regularizer.n_penalized)
        model = quadratic.QuadraticModel(
            point, coordinates, coordinates, 5000, 6.0, 0.0
        )
        assert model.by_columns == by_columns
        steps.append(model.minimize(point.w, point.risk_gradient, 1e-10, 5000))
    assert np.any(steps[0] != 0.0)
    assert_allclose(steps[0], steps[1], atol=1e-6)


@pytest.mark.parametrize("l2", [0.0, 1e-4, 1e-3])
def test_systems_of_nearly_equal_columns_need_few_sweeps(l2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + 1e-2 * rng.normal(size=(200, 30))
    y = X[:, 0] + 1e-2 * rng.normal(size=200)
    gram, g = X.T @ X / 200, -X.T @ y / 200
    l1, v = np.full(30, 1e-4), np.zeros((30, 1))
    inside = np.ones((30, 1), dtype=bool)
    step = gram_step.GramStep(gram.copy(), l1, np.full(30, l2), inside, 200)
    w = step.minimize(g[:, np.newaxis].copy(), v, 1e-12, 300)[:, 0]
    slopes, zero = g + gram @ w + l2 * w, w == 0.0
    assert_allclose(slopes[~zero], -1e-4 * np.sign(w[~zero]), atol=1e-11)
    assert np.all(np.abs(slopes[zero]) <= 1e-4 + 1e-11)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_systems_of_nonzero_coordinates_take_the_place_of_many_sweeps(
    n_classes, monkeypatch
):
    X, y = correlated_columns(n_classes)
    objective = problem(X, y, alpha=1e-4, fit_intercept=False)
    point = minimize_intercept(objective.origin())
    use_columns(monkeypatch)
    costs, steps = [], []
    for n_sweeps in (column_descent._ROUND, 10**6):
        monkeypatch.setattr(column_descent, "_ROUND", n_sweeps)
        coordinates = np.arange(objective.regularizer.n_penalized)
        model = quadratic.QuadraticModel(
            point, coordinates, coordinates, 5000, 6.0, 0.0
        )
        products = []
        for name in ("_sweep", "_image"):
            method = getattr(model._step, name)

            def counted(*arguments, method=method, products=products):
                products.append(1)
                return method(*arguments)

            monkeypatch.setattr(model._step, name, counted)
        steps.append(model.minimize(point.w, point.risk_gradient, 1e-9, 10**5))
        costs.append(len(products))
    assert_allclose(steps[0], steps[1], atol=1e-4 * np.abs(steps[1]).max())
    assert costs[0] < 0.2 * costs[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_proportional_columns_do_not_stop_the_method(n_classes, monkeypatch):
    """Models are flat between them, and only the larger one is of use."""
    X, y = correlated_columns(n_classes)
    X = sparse.csr_array(sparse.hstack([X, 0.99 * X, X[:, :5]]))
    use_columns(monkeypatch)
    objective = problem(X, y, alpha=1e-4, fit_intercept=False)
    result = solve(objective, tol=1e-10)
    assert result.status == "converged"
    w = result.point.w.reshape(65, -1)
    assert np.any(w[:30] != 0.0)
    assert not np.any(w[30:60])


@pytest.mark.parametrize("alpha", [5e-4, 3e-4])
def test_the_last_model_is_known_before(alpha, monkeypatch):
    """Its dual point is proof enough, without one more iteration to find it."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 1100), density=0.03, random_state=rng, format="csr")
    y = X[:, :40] @ (4.0 * rng.normal(size=40)) + 0.3 * rng.normal(size=600) > 0.0
    objective = problem(X, y, alpha=alpha, fit_intercept=False)
    start = Start(np.zeros(objective.n_params))
    n_iter = []
    for move in (cd_module._LAST_MOVE, 0.0):
        monkeypatch.setattr(cd_module, "_LAST_MOVE", move)
        solver = SOLVERS["cd"].start(objective, start, Options(stopping=Stopping(1e-3)))
        result = run(solver, Stopping(1e-3), max_iter=100)
        assert result.status == "converged"
        n_iter.append(result.n_iter)
    assert n_iter[0] < n_iter[1]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_of_columns_of_zeros_vanish(make, n_classes):
    """Models have no curvature in them, but the penalty has a slope."""
    X, y = data(n_classes=n_classes)
    model = L1LogisticOWLQN(1e-3, solver="auto", warm_start=True, tol=1e-9)
    model.fit(make(X), y)
    used = np.flatnonzero(model.coef_.any(axis=0))[:3]
    assert len(used) == 3
    X[:, used] = 0.0
    model.fit(make(X), y)
    assert not model.coef_[:, used].any()
    assert model.dual_gap_ <= 1e-9 * model.objective_


@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
def test_columns_are_scaled_in_any_range(size):
    X, y = data(n_classes=2)
    objective = problem(sparse.csr_array(X), y, alpha=0.1, fit_intercept=False)
    scales, kept = np.linspace(0.5, 1.5, len(X)) * size, np.arange(len(X)) % 3 > 0
    which = np.array([5, 0, 7])
    columns = MatrixColumns(objective.design, which)
    (indptr, indices, values), squares = columns.scaled(scales, kept)
    # Beyond the range of squares in single precision values are in double.
    assert values.dtype == (np.float32 if size == 1.0 else np.float64)
    A = (scales[:, None] * X)[:, which]
    made = sparse.csc_array((values, indices, indptr), (np.count_nonzero(kept), 3))
    assert_allclose(made.toarray(), A[kept], rtol=1e-6 if size == 1.0 else 1e-15)
    assert_allclose(squares[0], (A[kept] ** 2).sum(axis=0), rtol=1e-12)
    assert_allclose(squares[1], (A[~kept] ** 2).sum(axis=0), rtol=1e-12)


def test_kernels_refuse_arrays_of_different_lengths():
    square, short, long = np.eye(3), np.zeros(2), np.zeros(3)
    with pytest.raises(ValueError, match="differ in length"):
        coordinate_descent.sweep_gram(square, short, long, long, long, 0.0, 1)
    with pytest.raises(ValueError, match="differ in length"):
        coordinate_descent.sweep_gram(square, long, long, short, long, 0.0, 1)
    columns = sparse.csc_array(square)
    arrays = columns.indptr, columns.indices, columns.data, np.arange(3)
    wide, out = np.zeros((3, 2)), np.zeros((2, 2))
    with pytest.raises(ValueError, match="differ in length"):
        products.squares(*arrays, wide, out)
    with pytest.raises(ValueError, match="differ in length"):
        products.multiply(*arrays[:3], long, short)
    with pytest.raises(ValueError, match="differ in length"):
        products.multiply_columns(*arrays, long, short)
    with pytest.raises(ValueError, match="differ in length"):
        products.to_columns(*arrays[:3], 0, arrays[0], arrays[1], short)
    narrow = np.zeros(2, columns.indptr.dtype)
    with pytest.raises(ValueError, match="column 2 is none of 2"):
        products.count(arrays[1], narrow)
    none = np.empty(0)
    good = [wide, long, wide, wide.copy(), wide, wide, wide.copy()]
    for j, bad in ((0, out), (1, short), (2, square), (4, out), (5, square), (6, out)):
        wrong = [bad if i == j else array for i, array in enumerate(good)]
        with pytest.raises(ValueError, match="differ in length"):
            coordinate_descent.sweep_blocks(*arrays, *wrong, 0.1, 0.0, none, none, none)
    with pytest.raises(ValueError, match="differ in length"):
        coordinate_descent.sweep_blocks(*arrays, *good, 0.1, 0.0, none, none, short)


def test_rows_of_several_scores_are_not_sampled():
    rng = np.random.default_rng(0)
    X = sparse.random(4000, 3000, 0.002, format="csr", random_state=0)
    y = rng.integers(0, 4, 4000)
    objective = problem(sparse.csr_array(X), y)
    active = np.arange(8000)
    assert (
        cd_module.columns_stride(objective, np.zeros(objective.n_params), active) == 1
    )


def categories(n=30_000, n_columns=3000, n_fields=10):
    """Return hashed categories of which a few are in most rows, and signs."""
    rng = np.random.default_rng(0)
    ranks = np.minimum(rng.pareto(0.7, size=(n, n_fields)), 300.0).astype(int)
    columns = rng.integers(n_columns, size=(n_fields, 301))[np.arange(n_fields), ranks]
    starts = np.arange(0, columns.size + 1, n_fields)
    X = sparse.csr_array((np.ones(columns.size), columns.ravel(), starts))
    X.resize(n, n_columns)
    X.sum_duplicates()
    scores = X @ rng.normal(size=n_columns) + rng.logistic(size=n)
    return X, np.where(scores > 0.0, 1.0, -1.0)


def test_models_with_most_entries_are_of_samples(monkeypatch):
    X, y = categories()
    counts = np.bincount(X.indices, minlength=X.shape[1])
    objective = problem(X, y)
    frequent = np.sort(np.argsort(-counts)[:200])
    rare = np.sort(np.argsort(-counts)[200:1500])
    zero = np.zeros(objective.n_params)
    assert quadratic.by_columns_at_last(objective)
    assert cd_module.columns_stride(objective, zero, frequent) >= 8
    assert cd_module.columns_stride(objective, zero, rare) == 1
    strides = []
    thin = cd_module.at_sample
    monkeypatch.setattr(
        cd_module,
        "at_sample",
        lambda point, stride: strides.append(stride) or thin(point, stride),
    )
    for fit_intercept in (True, False):
        model = L1LogisticOWLQN(3e-4, fit_intercept=fit_intercept, tol=1e-6)
        model.fit(X, y)
        assert model.dual_gap_ <= 1e-6 * model.objective_
        assert strides
        assert min(strides) > 1
        strides.clear()


def test_samples_grow_to_twice_those_that_were_slow(monkeypatch):
    X, y = data(n=4000)
    objective = problem(X, y)
    models = cd_module._Models(objective)
    w, active = np.zeros(objective.n_params), np.arange(3)
    chosen = []
    for wanted, worst in ((16, 1.0), (16, 0.2), (8, 0.15), (8, 0.1), (8, 0.02)):
        monkeypatch.setattr(cd_module, "columns_stride", lambda *_, it=wanted: it)
        models._choose_stride(w, active, worst)
        chosen.append(models._stride)
    # Those of 8 have twice the rows of 16 already.
    assert chosen == [16, 16, 8, 4, 4]


def test_models_are_not_minimized_beyond_rounding(monkeypatch):
    # H has less rank than coordinates, and its entries are tiny.
    n_solved = []
    solve_face = gram_step.GramStep._solve_face
    monkeypatch.setattr(
        gram_step.GramStep,
        "_solve_face",
        lambda *arguments: n_solved.append(1) or solve_face(*arguments),
    )
    X, y = 1e-3 * np.random.default_rng(0).normal(size=(5, 120)), np.arange(5) % 4
    model = L1LogisticOWLQN(l1_ratio=0.1)
    model.set_params(alpha=1e-3 * model.alpha_max(X, y)).fit(X, y)
    assert model.dual_gap_ <= 2e-13 * model.objective_
    assert len(n_solved) <= 5 * model.n_iter_


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_categories_with_one_another_for_sums_take_few_models(fit_intercept):
    # Columns of each group add up to one: along their differences only the penalty
    # changes, and coordinates vanish one after the other. Models once gave up after
    # the first of them, and 153 were needed here.
    rng = np.random.default_rng(2)
    n, groups = 3000, []
    for k in (8, 16, 7, 14, 6, 5, 2, 30):
        shares = 0.75 ** np.arange(k)
        groups.append(rng.choice(k, n, p=shares / shares.sum()))
    groups.append(np.where(rng.random(n) < 0.97, groups[0], rng.integers(0, 8, n)))
    groups.append(groups[1] // 3)
    groups.append(np.where(rng.random(n) < 0.995, groups[3] // 2, 0))
    X = np.concatenate([np.eye(g.max() + 1)[g] for g in groups], axis=1)
    X = X[:, X.any(axis=0)]
    w = rng.standard_normal(X.shape[1])
    y = X @ w + rng.logistic(size=n) > 0.0
    model = L1LogisticOWLQN(1e-7, tol=1e-6, fit_intercept=fit_intercept).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.n_iter_ <= 12


def test_first_steps_are_longer_where_losses_fall_like_exponentials():
    X, _ = data(400, 12)
    objective = problem(10.0 * X, np.where(X[:, 0] > 0.0, 1, 0), alpha=1e-4)
    start = objective.at(np.zeros(objective.n_params))
    line = start.along(
        -start.gradient / np.abs(objective.design.forward(start.gradient)).max()
    )
    step, point = lengthen(line, line.point(1.0))
    assert step > 1.0
    assert_allclose(point.w, start.w + step * line.p, rtol=1e-12)
    assert point.value < line.point(1.0).value < start.value
    # Not where scores would move far, nor close to the optimum.
    far = start.along(16.0 * line.p)
    assert lengthen(far, far.point(1.0))[0] == 1.0
    near = solve(objective, tol=1e-3).point
    line = near.along(1e-3 * (near.w + 1.0))
    assert lengthen(line, line.point(1.0))[0] == 1.0


@pytest.mark.parametrize("seed", [36, 217])
def test_a_common_shift_of_intercepts_is_no_step(seed):
    rng = np.random.default_rng(seed)
    n, k = 5, 3
    X, y = rng.normal(size=(n, 100)), rng.integers(0, k, n)
    y[:k] = range(k)
    weights = rng.integers(0, 4, n)
    weights[:k] = 1
    model = L1LogisticOWLQN(alpha=0.01, l1_ratio=0.5).fit(X, y, weights)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("alpha", [1e-3, 1e-5, 1e-7])
def test_fewer_rows_than_columns_far_from_zero(alpha):
    X = np.random.default_rng(0).normal(size=(10, 30)) + 1000.0
    model = L1LogisticOWLQN(alpha, fit_intercept=False).fit(X, np.arange(10) % 2)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert np.count_nonzero(model.coef_) <= 10


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_free", [0, 1])
def test_models_by_columns_rise_by_the_penalty_of_the_objective(l1_ratio, n_free):
    v = np.random.default_rng(0).normal(size=(6, 2))
    model = column_step.ColumnStep.__new__(column_step.ColumnStep)
    column_descent.ByColumns.__init__(
        model, np.ones_like(v), 0.7 * l1_ratio, 0.7 * (1.0 - l1_ratio), n_free
    )
    penalized = v[: 6 - n_free].ravel()
    penalty = ElasticNet(penalized.size, l1_ratio)
    assert model._penalty(v) == pytest.approx(0.7 * penalty.value(penalized))


def test_systems_of_groups_are_solved_once_sweeps_have_cost_as_much(monkeypatch):
    """With many targets a system may be much larger than the matrix of the features."""

    def refuse(*args, **kwargs):
        raise AssertionError("A system was solved too early.")

    monkeypatch.setattr(group_step.linalg, "cho_factor", refuse)
    rng = np.random.default_rng(0)
    A, n_scores = rng.normal(size=(40, 80)), 8
    labels = np.tile(np.arange(40), n_scores)
    penalty = GroupPenalty(labels, np.zeros(40), np.full(40, 1e-3), np.zeros(40))
    step = group_step.GroupStep(np.eye(n_scores), A @ A.T, penalty, is_formed=True)
    start, gradient = np.ones((40, n_scores)), rng.normal(size=(40, n_scores))
    v = step.minimize(gradient, start, 0.0, 20)
    assert not np.any(v == start)
    with pytest.raises(AssertionError, match="too early"):
        step.minimize(gradient, start, 0.0, 2000)


@pytest.mark.parametrize("equal", [False, True])
def test_systems_of_groups_have_the_same_solution_by_conjugate_gradients(
    monkeypatch, equal
):
    """Also where eigenvalues of the metric are equal, and share a factor."""
    monkeypatch.setattr(group_step, "_ACCURACY", 1e-24)
    rng = np.random.default_rng(0)
    A, root = rng.normal(size=(60, 25)), rng.normal(size=(4, 3))
    labels, zero = np.tile(np.arange(60) // 2, 4), np.zeros(30)
    penalty = GroupPenalty(labels, zero, zero + 1.0, zero)
    metric = np.diag([2.0, 2.0, 0.5, 2.0]) if equal else root @ root.T
    step = group_step.GroupStep(metric, A @ A.T, penalty, is_formed=True)
    face = np.flatnonzero(rng.random(240) < 0.8)
    unit, right = 0.2 * rng.normal(size=(2, len(face)))
    system = face, 1.0 + rng.random(30), unit, right
    np.testing.assert_allclose(step._solve_by_cg(*system), step._solve(*system))
