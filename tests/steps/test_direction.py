"""The search for a descent direction against the model's exact minimum."""

from itertools import combinations

import numpy as np
import pytest
from _door import DenseInverseHessian
from _problems import (
    EXPLORE,
    descent_direction,
    kink_objective,
    subdifferential_vertices,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal


class Polytope:
    """A point whose subdifferential is the hull of the rows of ``vertices``."""

    def __init__(self, vertices, gradient=None):
        self.vertices = np.array(vertices, dtype=float)
        self.gradient = self.vertices[0] if gradient is None else np.array(gradient)

    def steepest(self, p):
        return self.vertices[np.argmax(self.vertices @ p)]


class Matrix:
    """A fixed estimate B."""

    pristine = True

    def __init__(self, B):
        self.B = np.array(B, dtype=float)

    def apply(self, v):
        return self.B @ v


def random_matrix(rng, q):
    root = rng.normal(size=(q, q))
    return root @ root.T + 0.1 * np.eye(q)


def smallest_model_value(vertices, B):
    """min M = - min <g, B g> / 2 over the hull, by trying all faces (A.8)."""
    best = np.inf
    for size in range(1, min(len(vertices), len(B) + 1) + 1):
        for face in combinations(vertices, size):
            G = np.array(face)
            kkt = np.ones((size + 1, size + 1))
            kkt[:size, :size] = G @ B @ G.T
            kkt[size, size] = 0.0
            a = np.linalg.lstsq(kkt, np.eye(size + 1)[size], rcond=None)[0][:size]
            if a.min() >= -1e-12 and abs(a.sum() - 1.0) < 1e-9:
                a = np.maximum(a, 0.0)
                g = (a / a.sum()) @ G
                best = min(best, g @ B @ g)
    return -0.5 * best


def model_value(vertices, B, p):
    """(3.4)."""
    return 0.5 * p @ np.linalg.solve(B, p) + np.max(vertices @ p)


@st.composite
def kinks(draw):
    """Vertices of a subdifferential, a matrix B, and a subgradient to start from."""
    q, n = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vertices = rng.normal(size=(n, q)) + draw(st.sampled_from([0.0, 0.5, 2.0]))
    if draw(st.booleans()):
        vertices = np.round(2.0 * vertices) / 2.0
    B = random_matrix(rng, q) if draw(st.booleans()) else np.eye(q)
    inside = rng.dirichlet(np.ones(n)) @ vertices
    return vertices, B, draw(st.sampled_from([vertices[0], inside]))


@EXPLORE
@given(problem=kinks())
def test_gap_falls_and_encloses_the_smallest_model_value(problem):
    vertices, B, gradient = problem
    point, hessian = Polytope(vertices, gradient), Matrix(B)
    best = smallest_model_value(vertices, B)
    size = np.abs(B).max() * np.abs(vertices).max() ** 2
    before, lowest = np.inf, np.inf
    for max_iter in [1, 2, 3, 5, 10, 100]:
        found = descent_direction(point, hessian, 0.0, max_iter)
        value = model_value(vertices, B, found.x)
        assert found.nit <= max_iter - 1
        assert found.slope == pytest.approx(np.max(vertices @ found.x), abs=1e-12)
        assert best - 1e-12 * size <= value <= best + found.gap + 1e-12 * size
        assert found.gap <= before + 1e-12 * size
        assert value <= lowest + 1e-12 * size
        before, lowest = found.gap, value


@EXPLORE
@given(problem=kinks(), max_iter=st.sampled_from([1, 2, 5, 50]))
def test_aggregate_is_a_subgradient(problem, max_iter):
    vertices, B, gradient = problem
    point = Polytope(vertices, gradient)
    aggregate = descent_direction(point, Matrix(B), 0.0, max_iter).aggregate
    directions = np.random.default_rng(0).normal(size=(50, len(B)))
    reach = np.max(vertices @ directions.T, axis=0)
    assert np.all(directions @ aggregate <= reach + 1e-12)


@EXPLORE
@given(problem=kinks())
def test_descends_where_there_is_descent_and_fails_at_optima(problem):
    vertices, B, gradient = problem
    best = smallest_model_value(vertices, B)
    found = descent_direction(Polytope(vertices, gradient), Matrix(B), 0.0, 2000)
    size = np.abs(B).max() * np.abs(vertices).max() ** 2
    if best < -1e-3 * size:
        assert found.success
        assert np.max(vertices @ found.x) < 0.0
    elif best > -1e-14 * size:
        # Rounding apart, no direction has a negative slope.
        assert found.slope >= -1e-7 * size


@pytest.mark.parametrize("seed", range(3))
def test_gap_closes_at_the_rate_of_the_source(seed):
    """O(1 / epsilon) iterations (Theorem A.2.5), on a long thin subdifferential."""
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(6, 3)) * [10.0, 1.0, 0.1] + [0.0, 0.0, 1.0]
    B = np.eye(3)
    best = smallest_model_value(vertices, B)
    for tol in (1.0, 1e-1, 1e-2):
        found = descent_direction(Polytope(vertices), Matrix(B), tol, 100000)
        # The constants are those of (A.46): gradients of norm G, B <= 1.
        limit = 8.0 * np.max(np.sum(vertices**2, axis=1)) / tol + 4.0
        assert found.gap <= tol
        assert found.nit <= limit
        assert model_value(vertices, B, found.x) <= best + tol + 1e-12


def test_at_a_smooth_point_the_first_direction_will_do():
    B = random_matrix(np.random.default_rng(0), 3)
    g = np.array([1.0, -2.0, 3.0])
    found = descent_direction(Polytope([g]), Matrix(B), 0.0, 100)
    assert_allclose(found.x, -B @ g)
    assert (found.nit, found.success) == (0, True)
    assert found.slope == pytest.approx(-g @ B @ g)


@pytest.mark.parametrize("tol", [1e-5, 1e6])
@pytest.mark.parametrize("start", [-10.0, -3.0, 0.0, 10.0])
def test_valley_is_followed_from_any_subgradient(start, tol):
    """10 |x| + |y| at x = 0, y > 0: straight down the valley (section 3.1.1.1).

    However large the tolerance, an ascent direction is not returned.
    """
    point = Polytope([[10.0, 1.0], [-10.0, 1.0]], [start, 1.0])
    found = descent_direction(point, Matrix(np.eye(2)), tol, 100)
    assert found.success
    assert_allclose(found.x, [0.0, -1.0], atol=1e-14)


def test_fails_at_the_bottom_of_the_valley():
    vertices = [[10.0, 1.0], [10.0, -1.0], [-10.0, 1.0], [-10.0, -1.0]]
    found = descent_direction(Polytope(vertices), Matrix(np.eye(2)), 1e-5, 1000)
    assert not found.success


def test_limit_on_iterations():
    vertices = np.random.default_rng(2).normal(size=(6, 3)) + 0.3
    point, hessian = Polytope(vertices), Matrix(np.eye(3))
    assert descent_direction(point, hessian, 0.0, 1).nit == 0
    assert descent_direction(point, hessian, 0.0, 4).nit == 3


def test_subgradient_of_the_point_is_only_read():
    point = Polytope([[10.0, 1.0], [-10.0, 1.0]])
    point.vertices.flags.writeable = False
    descent_direction(point, Matrix(np.eye(2)), 1e-5, 100)
    assert_array_equal(point.gradient, [10.0, 1.0])


# On kinks of the hinge.


def updated_hessian(seed, q):
    rng = np.random.default_rng(seed)
    hessian = DenseInverseHessian(q)
    curvature = random_matrix(rng, q)
    for dw in rng.normal(size=(2, q)):
        hessian.update(dw, curvature @ dw)
    return hessian


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_direction_at_kinks_of_the_hinge(seed, fit_intercept):
    # With so large an alpha the penalty pulls harder than all rows on the margin.
    objective, w = kink_objective(
        seed, n=4, d=2, fit_intercept=fit_intercept, alpha=8.0
    )
    q = objective.n_params
    vertices = subdifferential_vertices(objective, w)
    hessian = updated_hessian(seed, q)
    B = hessian.apply(np.eye(q))
    best = smallest_model_value(vertices, B)
    point = objective.at(w)
    assert point.kinks.size == 4
    tol = -1e-3 * best
    found = descent_direction(point, hessian, tol, 10000)
    assert best - 1e-12 <= model_value(vertices, B, found.x) <= best + tol
    assert found.success
    step = 1e-6
    assert point.along(found.x).value(step) < point.value


def test_fails_at_the_optimum_of_a_hinge_objective():
    """Two opposite rows x = ±1 on the margin of their separating hyperplane."""
    objective, _ = kink_objective(0, n=2, d=2)
    objective.design.X[:] = [[1.0, 0.0], [-1.0, 0.0]]
    objective.targets[:] = 1.0, -1.0
    w = np.array([1.0, 0.0])
    assert objective.alpha < 1.0
    point = objective.at(w)
    for seed in range(3):
        found = descent_direction(point, updated_hessian(seed, 2), 0.0, 1000)
        assert not found.success
        assert found.slope == pytest.approx(0.0, abs=1e-7)
