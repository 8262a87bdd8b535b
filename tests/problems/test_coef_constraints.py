"""Linear inequalities of coefficients."""

import numpy as np
import pandas as pd
import pytest
from _door import Polyhedron, projected
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

from sklearn_subqn import BMRMClassifier, BMRMRegressor, BMRMRegressorCV, dual_gap

D = 6
# Three steps up, a sum, a slab, and an equality.
A = np.vstack(
    [
        -np.diff(np.eye(D), axis=0)[:3],
        np.ones(D),
        [[1.0, 0.0, -2.0, 0.0, 0.5, 0.0], [-1.0, 0.0, 2.0, 0.0, -0.5, 0.0]],
        [[0.0, 0.0, 0.0, 0.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0, -1.0, 1.0]],
    ]
)
B = np.array([0.0, 0.0, 0.0, 0.5, 0.1, 0.2, 0.0, 0.0])
WITHIN = {"coef_constraints": (A, B), "tol": 1e-9}


def data(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D)) * [1.0, 3.0, 0.5, 1.0, 2.0, 1.0] + 0.3
    z = X @ [1.0, -0.5, 2.0, 0.3, 0.5, -0.3] + rng.normal(size=n)
    return X, z


def slopes(loss, X, y, model):
    """The derivatives of the mean loss by scores."""
    z = X @ np.ravel(model.coef_) + model.intercept_
    return {
        "squared_error": lambda: z - y,
        "huber": lambda: np.clip(z - y, -1.0, 1.0),
        "poisson": lambda: np.exp(z) - y,
        "log_loss": lambda: -y / (1.0 + np.exp(y * z)),
    }[loss]() / len(y)


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "log_loss"])
def test_multipliers_balance_the_gradient(loss, alpha):
    """The conditions of Karush, Kuhn and Tucker."""
    X, z = data()
    y = {"poisson": np.round(np.exp(z / 4)), "log_loss": np.sign(z)}.get(loss, z)
    others = {"epsilon": 1.0} if loss == "huber" else {}
    kind = BMRMClassifier if loss == "log_loss" else BMRMRegressor
    model = kind(alpha, loss=loss, **WITHIN, **others).fit(X, y)
    w, u = np.ravel(model.coef_), slopes(loss, X, y, model)
    left = B - A @ w
    held = left <= 1e-9
    assert left.min() >= -1e-12
    assert held.sum() >= 3
    assert u.sum() == pytest.approx(0.0, abs=1e-6)
    gradient = X.T @ u + alpha * w
    _, residual = optimize.nnls(A[held].T, -gradient)
    assert residual <= 1e-5 * np.linalg.norm(gradient)
    assert np.linalg.norm(gradient) > 1e-2
    assert 0.0 <= model.dual_gap_ <= 1e-9 * abs(model.objective_)
    assert dual_gap(model, X, y) <= 1e-3 * abs(model.objective_)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "hinge"])
def test_losses_with_kinks_by_a_quadratic_program(loss):
    cp = pytest.importorskip("cvxpy")
    X, z = data()
    w, b = cp.Variable(D), cp.Variable()
    y = np.sign(z) if loss == "hinge" else z
    r, kind, others = y - X @ w - b, BMRMRegressor, {}
    if loss == "absolute_error":
        risk = cp.sum(cp.abs(r))
    elif loss == "quantile":
        risk, others = cp.sum(cp.maximum(0.3 * r, -0.7 * r)), {"quantile": 0.3}
    else:
        risk, kind = cp.sum(cp.pos(1.0 - cp.multiply(y, X @ w + b))), BMRMClassifier
    for alpha in (1e-4, 0.1):
        square = alpha / 2 * cp.sum_squares(w)
        program = cp.Problem(cp.Minimize(square + risk / len(y)), [A @ w <= B])
        program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
        model = kind(alpha, loss=loss, **WITHIN, **others).fit(X, y)
        assert model.objective_ == pytest.approx(program.value, rel=1e-7)
        assert model.objective_ - model.dual_gap_ <= program.value * (1 + 1e-8)
        assert model.dual_gap_ <= 1e-9 * model.objective_
        assert np.all(A @ np.ravel(model.coef_) <= B + 1e-12)


def test_other_solvers_prove_the_same():
    X, y = data()
    model = BMRMRegressor(0.1, loss="huber", **WITHIN).fit(X, y)
    for solver in ("ls-bmrm", "bmrm", "fista"):
        other = clone(model).set_params(solver=solver, tol=1e-5).fit(X, y)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)
        assert other.dual_gap_ <= 1e-5 * other.objective_


def test_bounds_are_inequalities_of_one_coefficient():
    X, y = data()
    low, high = np.full(D, -0.2), np.array([0.1, 0.3, np.inf, 0.5, 0.2, np.inf])
    rows = np.vstack([-np.eye(D), np.eye(D)[np.isfinite(high)]])
    ends = np.concatenate([-low, high[np.isfinite(high)]])
    box = BMRMRegressor(0.01, loss="poisson", coef_bounds=(low, high), tol=1e-10)
    both = clone(box).set_params(coef_constraints=(A, B))
    one = clone(box).set_params(coef_bounds=None, coef_constraints=(rows, ends))
    y = np.round(np.exp(y / 4))
    np.testing.assert_allclose(one.fit(X, y).coef_, box.fit(X, y).coef_, atol=1e-8)
    coef = both.fit(X, y).coef_
    assert np.all((coef >= low) & (coef <= high))
    assert np.all(A @ coef <= B + 1e-12)
    assert both.objective_ > box.objective_ * (1 + 1e-6)


def test_units_names_folds_and_classes():
    X, z = data()
    units = np.array([16.0, 1.0, 4.0, 0.25, 1.0, 1.0])
    model = BMRMRegressor(0.1, loss="absolute_error", **WITHIN).fit(X, z)
    scaled = clone(model).set_params(
        coef_constraints=(A * units, B), penalty_factor=units**2
    )
    scaled.fit(sparse.csr_array(X * units), z)
    np.testing.assert_allclose(scaled.coef_ * units, model.coef_, atol=1e-6)
    names = list("abcdef")
    table = pd.DataFrame(A, columns=names)[names[::-1]]
    frame = pd.DataFrame(X, columns=names)
    named = clone(model).set_params(coef_constraints=(table, B)).fit(frame, z)
    np.testing.assert_allclose(named.coef_, model.coef_, rtol=1e-9)
    search = BMRMRegressorCV([1.0, 0.1], cv=2, coef_constraints=(table, B), tol=1e-9)
    same = BMRMRegressorCV([1.0, 0.1], cv=2, **WITHIN).fit(X, z)
    np.testing.assert_allclose(search.fit(frame, z).coef_, same.coef_, rtol=1e-9)
    each = BMRMClassifier(0.01, coef_constraints=(A, B))
    each.fit(X.astype(np.float32), np.digitize(z, [-1.0, 2.0]))
    assert np.all(B[:, np.newaxis] + 1e-6 >= A @ each.coef_.T)
    # A second start keeps to single precision.
    each.set_params(warm_start=True).fit(X.astype(np.float32), np.digitize(z, [-1, 2]))
    # Coefficients of empty columns are not zero where a sum has to be.
    empty = np.hstack([X[:, :1], np.zeros((len(X), 1))])
    zero_sum = np.array([[1.0, 1.0], [-1.0, -1.0]])
    both = BMRMRegressor(0.01, coef_constraints=(zero_sum, 0.0)).fit(empty, z)
    assert abs(both.coef_[0]) > 0.1
    assert both.coef_.sum() == pytest.approx(0.0, abs=1e-12)


def test_projection_onto_ordered_numbers():
    rng = np.random.default_rng(0)
    ordered = np.diff(np.eye(60), axis=0)
    for size in (1e-6, 1.0, 1e6):
        v = size * rng.normal(size=60)
        w, m = projected(ordered, np.zeros(59), v)
        expected = isotonic_regression(v, increasing=False)
        np.testing.assert_allclose(w, expected, rtol=0.0, atol=1e-11 * size)
        assert m.min() >= 0.0
        np.testing.assert_allclose(w, v - m @ ordered, rtol=0.0, atol=1e-12 * size)


@pytest.mark.parametrize("seed", range(20))
def test_conjugate_of_a_polyhedron(seed):
    """By duality: the primal value of the projection is that of multipliers."""
    rng = np.random.default_rng(seed)
    d, m = rng.integers(1, 20, size=2)
    rows = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3.0, 3.0, (m, 1))
    rows[0] = 0.0
    ends = np.abs(rng.normal(size=m)) * (rng.uniform(size=m) < 0.5)
    penalty, v = Polyhedron(rows, ends), 10.0 * rng.normal(size=d)
    w = penalty.conjugate_gradient(v)
    assert penalty.contains(w)
    value = penalty.conjugate(v)
    assert value == pytest.approx(v @ w - penalty.value(w), rel=1e-9, abs=1e-9)
    radius = np.full(d, 0.1)
    for _ in range(10):
        near = v + radius * rng.uniform(-1.0, 1.0, size=d)
        assert penalty.conjugate(near) <= penalty.conjugate_within(v, radius)
        other = penalty.nearest(10.0 * rng.normal(size=d))
        assert value >= v @ other - penalty.value(other) - 1e-9 * abs(value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"coef_constraints": A}, r"must be a pair \(A, b\)"),
        ({"coef_constraints": (A, B - 1.0)}, r"b >= 0; got -1 in row 0"),
        ({"coef_constraints": (A[:, :2], B)}, r"must have shape \(8, 6\)"),
        ({"alpha": 0}, "need a penalty on each feature"),
        ({"penalty": "elasticnet"}, "need penalty='l2'"),
        ({"solver": "newton-cg"}, "constraints of coefficients; solvers that do"),
        ({"metric": np.eye(1)}, "one score per sample"),
    ],
)
def test_what_is_refused(options, match):
    X, y = data(20)
    with pytest.raises(ValueError, match=match):
        BMRMRegressor(**{"coef_constraints": (A, B), **options}).fit(X, y)
