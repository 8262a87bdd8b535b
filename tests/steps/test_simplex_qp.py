"""Quadratic programs on the simplex against enumeration and SciPy."""

from itertools import combinations

import numpy as np
import pytest
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sklearn_subqn._core.steps.simplex_qp import (
    minimize_by_rows,
    minimize_on_simplex,
    with_few_vertices,
)


def objective(Q, c, x):
    return 0.5 * x @ Q @ x - c @ x


def smallest_value(Q, c):
    """Try all supports: the minimizer is stationary on its own."""
    m = len(c)
    best = min(objective(Q, c, vertex) for vertex in np.eye(m))
    for size in range(2, m + 1):
        for support in map(list, combinations(range(m), size)):
            kkt = np.zeros((size + 1, size + 1))
            kkt[:size, :size] = Q[np.ix_(support, support)]
            kkt[:size, size] = kkt[size, :size] = 1.0
            rhs = np.append(c[support], 1.0)
            x = np.zeros(m)
            x[support] = np.linalg.lstsq(kkt, rhs, rcond=None)[0][:size]
            if x.min() >= -1e-12 and abs(x.sum() - 1.0) < 1e-9:
                x = np.maximum(x, 0.0)
                best = min(best, objective(Q, c, x / x.sum()))
    return best


def assert_on_simplex(x):
    assert np.all(x >= 0.0)
    assert x.sum() == pytest.approx(1.0, abs=1e-14)


def uniform(m):
    return np.full(m, 1.0 / m)


@st.composite
def programs(draw):
    """Gram matrices of few, often repeated or dependent cuts, and a start."""
    m = draw(st.integers(1, 6))
    rank = draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    normals, offsets = rng.normal(size=(m, rank)), rng.normal(size=m)
    if draw(st.booleans()):
        repeated = rng.integers(0, m, m)
        normals = normals[repeated]
        if draw(st.booleans()):
            offsets = offsets[repeated]
    offsets *= 10.0 ** draw(st.integers(-4, 4))
    start = uniform(m) if draw(st.booleans()) else np.eye(m)[rng.integers(m)]
    return normals, offsets, start


def squared(program):
    """The program by products of its normals."""
    normals, offsets, start = program
    return normals @ normals.T, offsets, start


#: One cut, linear programs, a program of zeros, and cuts that repeat ten times.
SPECIAL = {
    "one cut": (np.full((1, 1), 3.0**0.5), np.array([-2.0]), np.ones(1)),
    "linear": (np.zeros((3, 0)), np.array([1.0, 3.0, 2.0]), uniform(3)),
    "linear from a vertex": (np.zeros((3, 0)), np.array([1.0, 3.0, 2.0]), np.eye(3)[0]),
    "zeros": (np.zeros((3, 0)), np.zeros(3), uniform(3)),
    "repeated": (np.tile(np.eye(4)[:, 1:], (10, 1)), np.arange(40.0) % 4, uniform(40)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_programs(name):
    normals, c, start = SPECIAL[name]
    Q = normals @ normals.T
    x = minimize_on_simplex(Q, c, start)
    assert_on_simplex(x)
    different = np.unique(np.column_stack([normals, c]), axis=0)
    normals, heights = different[:, :-1], different[:, -1]
    best = smallest_value(normals @ normals.T, heights)
    assert objective(Q, c, x) == pytest.approx(best, abs=1e-11)


@EXPLORE
@given(program=programs())
def test_value_is_the_smallest_of_all_supports(program):
    Q, c, start = squared(program)
    x = minimize_on_simplex(Q, c, start)
    assert_on_simplex(x)
    size = np.abs(Q).max() + np.abs(c).max()
    assert objective(Q, c, x) <= smallest_value(Q, c) + 1e-10 * size


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("m", [10, 40])
def test_value_is_that_of_slsqp(m, seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(m, 12))
    Q, c = normals @ normals.T, rng.normal(size=m)
    peer = minimize(
        lambda x: objective(Q, c, x),
        uniform(m),
        jac=lambda x: Q @ x - c,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # It may leave the simplex a little and thereby fall below the minimum.
    theirs = np.maximum(peer.x, 0.0)
    value = objective(Q, c, theirs / theirs.sum())
    x = minimize_on_simplex(Q, c, uniform(m))
    assert_on_simplex(x)
    assert objective(Q, c, x) <= value + 1e-12
    assert objective(Q, c, x) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("spread", [2.0, 4.0, 6.0])
def test_badly_scaled_cuts(spread, seed):
    """Cuts from far off are steep; those near the optimum decide."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-spread, 0.0, 6)
    normals = sizes[:, np.newaxis] * rng.normal(size=(6, 4))
    Q, c = normals @ normals.T, sizes * rng.normal(size=6)
    best = smallest_value(Q, c)
    x = minimize_on_simplex(Q, c, uniform(6))
    assert_on_simplex(x)
    assert objective(Q, c, x) == pytest.approx(best, rel=1e-6, abs=1e-12)


@EXPLORE
@given(program=programs(), scale=st.sampled_from([1e-200, 1e-20, 1e20, 1e150]))
def test_scale_of_the_data_does_not_matter(program, scale):
    Q, c, start = squared(program)
    x = minimize_on_simplex(scale * Q, scale * c, start)
    assert_on_simplex(x)
    size = np.abs(Q).max() + np.abs(c).max()
    assert objective(Q, c, x) <= smallest_value(Q, c) + 1e-9 * size


@EXPLORE
@given(program=programs())
def test_result_is_no_worse_than_the_start(program):
    Q, c, start = squared(program)
    size = np.abs(Q).max() + np.abs(c).max()
    first = objective(Q, c, minimize_on_simplex(Q, c, start))
    assert first <= objective(Q, c, start) + 1e-14 * size
    again = minimize_on_simplex(Q, c, minimize_on_simplex(Q, c, start))
    assert objective(Q, c, again) <= first + 1e-14 * size


@EXPLORE
@given(program=programs(), scale=st.sampled_from([1e-100, 1e-10, 1.0, 1e10, 1e75]))
def test_value_by_rows_is_the_smallest_of_all_supports(program, scale):
    normals, c, start = program
    x = minimize_by_rows(scale * normals, scale * scale * c, start)
    assert_on_simplex(x)
    assert np.count_nonzero(x) <= normals.shape[1] + 1
    Q = normals @ normals.T
    size = np.abs(Q).max(initial=0.0) + np.abs(c).max()
    assert objective(Q, c, x) <= smallest_value(Q, c) + 1e-10 * size


@EXPLORE
@given(
    m=st.integers(2, 40),
    d=st.integers(1, 6),
    decades=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_by_rows_no_cut_is_cheaper_than_those_of_the_support(m, d, decades, seed):
    """Columns of unequal units, rows that nearly repeat, and heights below them all."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, d))[rng.integers(m, size=m)]
    A += 1e-9 * rng.normal(size=(m, d))
    A *= 10.0 ** rng.uniform(-decades, decades, size=d)
    c = 10.0 ** rng.uniform(-decades, 0) * rng.normal(size=m)
    x = minimize_by_rows(A, c, np.eye(m)[rng.integers(m)])
    assert_on_simplex(x)
    assert np.count_nonzero(x) <= d + 1
    exact = x.astype(np.longdouble)
    point = exact @ A
    costs = A @ point - c
    # By rounding of x alone.
    terms = np.abs(A).max(axis=0)
    assert np.all(costs >= exact @ costs - 1e-12 * (terms @ terms + np.abs(c).max()))
    value = 0.5 * point @ point - exact @ c
    peer = minimize_on_simplex(A @ A.T, c, x).astype(np.longdouble)
    theirs = 0.5 * (peer @ A) @ (peer @ A) - peer @ c
    assert value <= theirs + 1e-14 * (terms @ terms) + 1e-9 * np.abs(c).max()


@EXPLORE
@given(
    m=st.integers(1, 30),
    d=st.integers(0, 6),
    rank=st.integers(0, 6),
    decades=st.integers(0, 8),
    seed=st.integers(0, 2**32 - 1),
)
def test_few_vertices_make_the_same_combination(m, d, rank, decades, seed):
    rng = np.random.default_rng(seed)
    # Points of a subspace, repeated ones among them, and columns of unequal units.
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, d))
    A = A[rng.integers(m, size=m)] * 10.0 ** rng.uniform(-decades, decades, size=d)
    b, x = rng.normal(size=m), rng.dirichlet(np.full(m, 0.5))
    few = with_few_vertices(A, b, x)
    assert_on_simplex(few)
    assert np.count_nonzero(few) <= d + 1
    assert np.all(x[few > 0.0] > 0.0)
    assert np.all(np.abs(few @ A - x @ A) <= 1e-12 * np.abs(A).max(axis=0, initial=0))
    assert few @ b >= x @ b - 1e-12


def test_of_points_with_the_same_combination_the_highest_is_taken():
    A = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    b = np.array([0.0, 0.0, 3.0, 1.0])
    few = with_few_vertices(A, b, np.full(4, 0.25))
    assert few == pytest.approx([0.0, 0.0, 0.5, 0.5])
