"""Smooth losses of pairs against enumeration, finite differences and each other."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from _door import L2, Design, Objective, Risk, Start, Stopping, narrowing, newton, run
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import entr, expit

from sklearn_subqn._core.losses._pair_sums import PairSums
from sklearn_subqn._core.losses._pairs import RowPairs, Window
from sklearn_subqn.losses import (
    Groups,
    LogisticPairs,
    LogisticRocArea,
    OrderedPairs,
    RocArea,
    SquaredPairs,
    SquaredRocArea,
)

TABLE = np.random.default_rng(0).random((3, 3))
WIDTH = 0.4
# Functions of m = 1 + z_i - z_j, and the conjugate at their slopes b.
FUNCTIONS = {
    "squared": (lambda m: max(m, 0.0) ** 2, lambda b: b * b / 4.0 - b),
    "narrow": (
        lambda m: (max(m, 0.0) ** 2 - max(m - WIDTH, 0.0) ** 2) / (2.0 * WIDTH),
        lambda b: WIDTH * b * b / 2.0 - b,
    ),
    "logistic": (
        lambda m: np.logaddexp(0.0, m - 1.0),
        lambda b: -entr(b) - entr(1.0 - b) - b,
    ),
}
COSTS = {
    "constant": ("constant", lambda a, b: 1.0),
    "linear": ("linear", lambda a, b: b - a),
    "table": (TABLE, lambda a, b: TABLE[int(a), int(b)]),
}
each_kind = pytest.mark.parametrize("kind", FUNCTIONS)
each_cost = pytest.mark.parametrize("cost", COSTS)


def loss_of(kind, cost="constant", groups=None):
    if kind == "logistic":
        return LogisticPairs(cost, groups)
    if kind == "squared":
        return SquaredPairs(cost, groups)
    return OrderedPairs(cost, groups).narrowed(WIDTH)


@st.composite
def rows(draw, max_rows=9):
    """Rows of groups: ties, single levels, weights of zero and over decades."""
    n = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.unique(rng.integers(0, 3, n), return_inverse=True)[1].astype(np.intp)
    y = rng.integers(0, draw(st.integers(1, 3)), n).astype(float)
    s = rng.choice([0.0, 1.0, 2.0, 1e-6], n)
    s[rng.integers(n)] = 1.0
    z = rng.integers(-8, 9, n) / 4.0 + 10.0 ** draw(st.integers(-1, 4))
    return Groups(codes), y, s / s.sum(), z, rng.normal(size=n)


def all_pairs(groups, y, s, cost):
    """Return rows i, j and weights of all pairs, one group after the other."""
    found = []
    for g in range(len(groups)):
        members = np.flatnonzero(groups.codes == g)
        pairs = [(i, j) for i, j in product(members, members) if y[i] < y[j]]
        mass = sum(s[i] * s[j] for i, j in pairs)
        if mass > 0.0:
            share = s[members].sum() / mass
            found += [(i, j, share * s[i] * s[j] * cost(y[i], y[j])) for i, j in pairs]
    return found


def enumerated(kind, groups, y, s, z, cost=COSTS["constant"][1]):
    phi = FUNCTIONS[kind][0]
    return sum(p * phi(1.0 + z[i] - z[j]) for i, j, p in all_pairs(groups, y, s, cost))


@each_kind
@each_cost
@EXPLORE
@given(data=rows())
def test_values_are_those_of_all_pairs(kind, cost, data):
    groups, y, s, z, others = data
    name, function = COSTS[cost]
    loss = loss_of(kind, name, groups)
    value, u = loss.evaluate(z, y, s)
    expected = enumerated(kind, groups, y, s, z, function)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-13)
    assert value == loss.value(z, y, s)
    # u is feasible and a subgradient, and its conjugate is that of all pairs.
    there = enumerated(kind, groups, y, s, z + others, function)
    assert there >= value + u @ others - 1e-9
    h, conjugate = 1e-6, FUNCTIONS[kind][1]
    phi = FUNCTIONS[kind][0]
    heights = 0.0
    for i, j, p in all_pairs(groups, y, s, function):
        m = 1.0 + z[i] - z[j]
        b = min(max((phi(m + h) - phi(m - h)) / (2.0 * h), 0.0), 1e300)
        # The conjugate of functions of z_i - z_j rather than of m.
        heights += p * (conjugate(b) + (b if kind == "logistic" else 0.0))
    assert loss.conjugate_at(u, z, y, s) == pytest.approx(heights, abs=1e-5)
    assert loss.conjugate_at(u, z, y, s) >= u @ z - value - 1e-9


@each_kind
@each_cost
def test_derivatives_are_those_of_finite_differences(kind, cost):
    rng = np.random.default_rng(0)
    n, h = 40, 1e-6
    groups, y = Groups(rng.permutation(np.arange(n) % 3)), rng.integers(0, 3, n) * 1.0
    s, z, d = rng.dirichlet(np.ones(n)), rng.normal(size=n), rng.normal(size=n)
    loss = loss_of(kind, COSTS[cost][0], groups)
    args = y, s
    u = loss.subgradient(z, *args)
    steps = h * np.eye(n)
    ahead = [loss.value(z + e, *args) - loss.value(z - e, *args) for e in steps]
    assert_allclose(u, np.array(ahead) / (2.0 * h), atol=1e-8)
    # Second derivatives of the logistic loss are those at the centers of bins.
    share = 0.3 if kind == "logistic" else 1e-9
    curvature = loss.curvature(z, *args)
    change = loss.subgradient(z + h * d, *args) - loss.subgradient(z - h * d, *args)
    found, size = curvature.apply(d.copy()), float(np.abs(change).max()) / (2.0 * h)
    assert_allclose(found, change / (2.0 * h), atol=1e-7 + share * size)
    at = loss.derivatives(z, d, *args)
    for step in (0.0, 0.7):
        there = z + step * d
        slope, second = at(step)
        assert slope == pytest.approx(loss.subgradient(there, *args) @ d, abs=1e-13)
        product = loss.curvature(there, *args).apply(d.copy())
        assert second == pytest.approx(product @ d, rel=1e-9)


@each_kind
@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "intercept"])
@pytest.mark.parametrize("positive", [0.2, 0.8])
def test_hessian_matrix_is_its_products(kind, form, positive):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 4)) * (rng.random((50, 4)) < 0.6)
    y = np.where(rng.random(50) < positive, 1.0, -1.0)
    given = {"sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}
    design = Design(given.get(form, X), fit_intercept=form == "intercept")
    loss = loss_of(kind)
    o = Objective(Risk(design, loss, y, rng.dirichlet(np.ones(50))), L2(4), 0.1)
    hessian = o.at(rng.normal(size=design.n_params)).hessian
    products = np.array([hessian.apply(e) for e in np.eye(design.n_params)])
    assert_allclose(hessian.matrix(), products, atol=1e-12)


@each_kind
def test_weight_two_is_a_repeated_row_and_zero_a_removed_one(kind):
    rng = np.random.default_rng(2)
    y, z = rng.integers(0, 3, 20) * 1.0, rng.normal(size=20)
    counts = rng.integers(0, 3, 20)
    loss = loss_of(kind)
    rows = np.repeat(np.arange(20), counts)
    n = len(rows)
    value, u = loss.evaluate(z, y, counts / n)
    repeated, v = loss.evaluate(z[rows], y[rows], np.full(n, 1.0 / n))
    assert value == pytest.approx(repeated, rel=1e-13)
    assert_allclose(np.bincount(rows, v, 20), u, atol=1e-15)


def test_roc_area_is_that_of_two_levels():
    rng = np.random.default_rng(3)
    y, z = rng.choice([-1.0, 1.0], 30), rng.normal(size=30)
    s = np.full(30, 1.0 / 30.0)
    assert SquaredRocArea().value(z, y, s) == SquaredPairs().value(z, y, s)
    one = np.ones(30)
    assert SquaredRocArea().value(z, one, s) == 0.0
    assert LogisticRocArea().value(z, y, s) == LogisticPairs().value(z, y, s)
    narrow = RocArea().narrowed(1e-6)
    assert narrow.value(z, y, s) == pytest.approx(RocArea().value(z, y, s), abs=1e-6)


def test_narrow_pairs_prove_bounds_of_the_hinge():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30) * 1.0
    s = np.full(30, 1.0 / 30.0)
    loss = OrderedPairs()
    z = X @ rng.normal(size=3)
    for width in (1.0, 0.1, 1e-3):
        narrow = loss.narrowed(width)
        height, error = narrow.proof(z, y, s)
        u = narrow.subgradient(z, y, s)
        assert error < 1e-10
        for other in (z, -z, 0.0 * z, 10.0 * z):
            assert u @ other + height <= loss.value(other, y, s) + 1e-12
        assert 0.0 <= loss.value(z, y, s) - narrow.value(z, y, s) <= 0.5 * width


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_newton_finds_the_optimum_of_all_pairs(kind):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 3, 25) * 1.0
    groups = Groups(np.arange(25) % 2)
    s = rng.dirichlet(np.ones(25))
    o = Objective(
        Risk(Design(X, fit_intercept=False), loss_of(kind, "linear", groups), y, s),
        L2(3),
        0.01,
    )
    result = run(newton(o, np.zeros(3)), Stopping(1e-9), max_iter=50)
    assert result.status == "converged"
    assert result.gap <= 1e-9 * result.point.value

    def explicit(w):
        linear = COSTS["linear"][1]
        return 0.005 * w @ w + enumerated(kind, groups, y, s, X @ w, linear)

    found = minimize(explicit, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert result.lower_bound <= found.fun * (1.0 + 1e-12)
    assert result.point.value == pytest.approx(found.fun, rel=1e-9)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_narrowing_reaches_the_hinge_to_rounding(form):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 3, 25) * 1.0
    groups, s = Groups(np.arange(25) % 2), rng.dirichlet(np.ones(25))
    design = Design(sparse.csr_array(X) if form == "sparse" else X, fit_intercept=False)
    o = Objective(Risk(design, OrderedPairs("linear", groups), y, s), L2(3), 0.01)
    result = run(narrowing(o, Start(np.zeros(3))), Stopping(1e-6), max_iter=200)
    assert result.status == "converged"
    pairs = all_pairs(groups, y, s, COSTS["linear"][1])
    differences = np.array([X[j] - X[i] for i, j, _ in pairs])
    costs = np.array([p for *_, p in pairs])
    # The dual of explicit pairs: b in [0, costs].
    dual = minimize(
        lambda b: 50.0 * np.sum((b @ differences) ** 2) - b.sum(),
        0.5 * costs,
        jac=lambda b: 100.0 * differences @ (b @ differences) - 1.0,
        bounds=[(0.0, c) for c in costs],
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10},
    )
    assert result.lower_bound <= -dual.fun * (1.0 + 1e-5)
    assert result.point.value >= -dual.fun * (1.0 - 1e-12)
    assert result.point.value == pytest.approx(-dual.fun, rel=1e-4)


def test_logistic_sums_keep_their_digits_at_any_distance():
    """Of scores that are bins apart, far apart, and all at one place."""
    rng = np.random.default_rng(7)
    y = rng.choice([-1.0, 1.0], 60)
    s = rng.dirichlet(np.ones(60))
    loss = LogisticPairs()
    for spread in (0.0, 0.1, 3.0, 30.0, 1e3, 1e7):
        for apart in (0.0, 5.0, 35.0):
            z = spread * rng.normal(size=60) + apart * y
            value, u = loss.evaluate(z, y, s)
            expected = enumerated("logistic", Groups.one(60), y, s, z)
            assert value == pytest.approx(expected, rel=1e-12)
            difference = z[:, np.newaxis] - z
            masses = (y[:, np.newaxis] < y) * s[:, np.newaxis] * s
            slopes = masses * expit(difference) / masses.sum()
            v = slopes.sum(axis=1) - slopes.sum(axis=0)
            # Beyond a distance of 40 nothing is left.
            assert_allclose(u, v, rtol=1e-11, atol=1e-18)


def test_logistic_sums_refuse_what_they_cannot_hold():
    n = 1001
    weights = np.full(n, 1.0 / n)
    with pytest.raises(ValueError, match="at most 1000 different targets, got 1001"):
        LogisticPairs().value(np.zeros(n), np.arange(n) * 1.0, weights)
    with pytest.raises(FloatingPointError, match="too large"):
        LogisticPairs().value(np.array([0.0, 1e13]), np.arange(2.0), np.ones(2) / 2.0)


def test_matrix_of_dense_pairs_takes_no_copy_of_the_rows():
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(40_000, 60)), 40_000
    levels = (np.arange(n) % 2).astype(np.intp)
    groups = Groups(np.zeros(n, dtype=np.intp))
    pairs = RowPairs(groups, levels, np.zeros(0), np.zeros((0, 0)), 2, np.ones(n))
    curvature = PairSums(pairs, 0.1 * X[:, 0], Window()).curvature
    design = Design(X, fit_intercept=False)
    tracemalloc.start()
    curvature.crossed(design)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Sums of the partners of half of the rows, and as many vectors as they need.
    assert peak <= 0.5 * X.nbytes + 6e6


@pytest.mark.parametrize("far", [1e6, 1e9, 1e11])
def test_logistic_pairs_keep_their_digits_beside_a_score_far_below(far):
    """A row of a tiny weight in the wrong order, and one that all scores are far from.

    Distances from the lowest score would take the digits of those between the others.
    """
    scores = np.array([0.0, -300.0, 30.0, -far / 3.0])
    y, weights = np.array([-1.0, 1.0, 1.0, -1.0]), np.array([0.5, 1e-12, 0.25, 0.25])
    weights[2] -= weights[1]
    loss = LogisticRocArea()
    exact = np.longdouble(0.0)
    for i in np.flatnonzero(y < 0.0):
        for j in np.flatnonzero(y > 0.0):
            m = np.longdouble(scores[i]) - scores[j]
            pair = np.maximum(m, 0.0) + np.log1p(np.exp(-abs(m)))
            exact += np.longdouble(weights[i]) * weights[j] * pair
    exact /= np.longdouble(weights[y < 0.0].sum()) * weights[y > 0.0].sum()
    assert loss.value(scores, y, weights) == pytest.approx(
        float(exact), rel=2e-15, abs=0.0
    )
