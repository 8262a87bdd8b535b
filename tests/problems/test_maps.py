"""Maps between coefficients of users and of solvers, and their inverses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn import BMRMRegressor
from sklearn_subqn._features.shift import Shift
from sklearn_subqn._features.strength import divided
from sklearn_subqn._problems.maps import (
    Contrasts,
    Coordinates,
    FewDigits,
    LeftOut,
    Levels,
    Moved,
    Nodes,
    Signs,
    Stored,
    Units,
)

RNG = np.random.default_rng(0)
N_FEATURES = 6
SHIFT = Shift(np.array([1, 4]), np.array([3.0, -20.0]))

SIZES = np.exp(RNG.normal(size=N_FEATURES))

# Maps of columns, and the features of the solver.
OF_COLUMNS = {
    "left out": (LeftOut(np.array([0, 2, 5]), N_FEATURES), lambda X: X[:, [0, 2, 5]]),
    "units": (Units(SIZES), lambda X: divided(X, SIZES)),
    "shift": (Moved(SHIFT), SHIFT.subtracted),
}

# Maps of rows, and how many the user reads and the solver sees.
OF_ROWS = {
    "signs": (Signs(), 3, 3),
    "less the first": (Contrasts(4, base=0), 3, 4),
    "less the last": (Contrasts(4, base=-1), 3, 4),
    "two contrasts": (Contrasts(2, base=0), 1, 2),
    "nodes": (Nodes(RNG.normal(size=(4, 7))), 4, 7),
    "two nodes": (Nodes(RNG.normal(size=(2, 5))), 1, 5),
    "levels": (Levels(np.array([2, 0, 3, 1])), 4, 3),
    "two levels": (Levels(np.array([0, 1])), 1, 1),
}


def rows(k, d=N_FEATURES, seed=1):
    """Return coefficients (k, d) and intercepts (k,)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(k, d)), rng.normal(size=k)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def scores(X, coef, intercept):
    return X @ coef.T + intercept


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_maps_of_columns_have_inverses(name):
    each, of_solver = OF_COLUMNS[name]
    seen = rows(3, of_solver(np.ones((1, N_FEATURES))).shape[1])
    assert_same(each.inward(*each.outward(*seen)), seen)
    read = each.outward(*seen)
    assert_same(each.outward(*each.inward(*read)), read)


@pytest.mark.parametrize("name", OF_ROWS)
def test_maps_of_rows_have_inverses(name):
    each, n_read, n_seen = OF_ROWS[name]
    seen = rows(n_seen)
    if "levels" in name:
        # There is one score, less each of the thresholds.
        seen = seen[0][:1], seen[1]
        read = each.outward(*seen)
        assert_same(each.inward(*read), seen)
    else:
        read = rows(n_read)
    assert len(read[0]) == len(read[1]) == n_read
    assert_same(each.outward(*each.inward(*read)), read)


@pytest.mark.parametrize("of_format", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", OF_COLUMNS)
def test_scores_of_users_are_those_of_solvers(name, of_format):
    each, of_solver = OF_COLUMNS[name]
    X = np.random.default_rng(2).normal(size=(10, N_FEATURES))
    own = of_solver(of_format(X))
    seen = rows(3, own.shape[1])
    found = scores(own, *seen)
    assert_allclose(found, scores(X, *each.outward(*seen)), rtol=1e-10)


@pytest.mark.parametrize("base", [0, -1])
def test_scores_before_contrasts_sum_to_zero(base):
    coef, intercept = Contrasts(4, base=base).inward(*rows(3))
    assert_allclose(coef.sum(axis=0), 0.0, atol=1e-14)
    assert_allclose(intercept.sum(), 0.0, atol=1e-14)


def test_nodes_have_the_smallest_coefficients_of_those_with_equal_labels():
    features = np.random.default_rng(4).normal(size=(3, 5))
    read = rows(3)
    coef, _ = Nodes(features).inward(*read)
    others = np.linalg.svd(features)[2][3:]
    assert_allclose(others @ coef, 0.0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_stored_stays_where_it_is_rounded_again(dtype):
    coef, intercept = rows(3)
    bounds = np.full(N_FEATURES, -0.1), np.linspace(0.0, 1.0, N_FEATURES)
    stored = Stored(dtype, bounds, Moved(SHIFT))
    read = stored.outward(coef, intercept)
    assert {each.dtype for each in read} == {np.dtype(dtype)}
    assert np.all(bounds[0] <= read[0].astype(np.float64))
    assert np.all(read[0].astype(np.float64) <= bounds[1])
    again = stored.outward(*stored.inward(*read))
    for one, other in zip(again, read, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_levels", [3, 9, 100])
def test_classes_in_order_are_equally_far_apart_as_they_are_stored(n_levels, dtype):
    levels = Levels(np.arange(n_levels))
    few = FewDigits(dtype, levels.n_thresholds)
    coef, intercept = few.outward(*rows(1))
    assert_allclose(coef, rows(1)[0], rtol=n_levels * np.finfo(dtype).eps)
    stored, _ = Stored(dtype).outward(*levels.outward(coef, intercept))
    steps = np.diff(stored.astype(np.float64), axis=0)
    assert_array_equal(steps, np.repeat(coef, n_levels - 1, axis=0))


@pytest.mark.parametrize("projects", [True, False])
def test_what_rounding_leaves_is_what_users_read(projects):
    nodes = Nodes(np.random.default_rng(5).normal(size=(3, 5)))
    inner, stored = (
        [Units(np.linspace(0.5, 2.0, N_FEATURES)), nodes],
        Stored(np.float32),
    )
    coordinates = Coordinates(inner, stored, [Signs()], projects=projects)
    seen = coordinates.inward(*rows(3))
    rounded = coordinates.rounded(*seen)
    for one, other in zip(
        coordinates.outward(*rounded), coordinates.outward(*seen), strict=True
    ):
        assert_array_equal(one, other)


def test_joint_shares_are_of_features_far_from_zero():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    Y = X @ [[0.3, 0.1], [0.1, 0.2], [0.1, 0.2]]
    model = BMRMRegressor(1e-4, penalty="normalized_entropy", metric=np.eye(2))
    near = model.fit(X, Y).predict(X)
    far = X + 1e4 * np.eye(3)[1]
    assert_allclose(model.fit(far, Y).predict(far), near, atol=1e-6)
