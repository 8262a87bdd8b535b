"""Kernels against their NumPy twins, and what they refuse."""

from itertools import pairwise

import numpy as np
import pytest
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special

from sklearn_subqn._core.kernels import (
    ascent,
    at_risk,
    coordinate_descent,
    gram,
    own_columns,
    piecewise,
    products,
    row_loss,
    simplex,
    softmax,
)
from sklearn_subqn._core.losses._base import RowForm


def rows(n, seed=0):
    """Return scores, targets and weights, each of shape (n,); some scores at kinks."""
    rng = np.random.default_rng(seed)
    targets = rng.choice([-1.0, 1.0], n)
    scores = 2 * rng.standard_normal(n)
    scores[::3] = targets[::3]
    return scores, targets, rng.random(n)


each_n = pytest.mark.parametrize("n", [0, 1, 2, 100, 1001])
# Whether targets are labels; low, high and tube of the maximum over v.
each_box = pytest.mark.parametrize(
    "box",
    [
        (True, 0.0, 1.0, 0.0),
        (True, 0.0, 4.0, 0.0),
        (False, -0.2, 0.8, 0.0),
        (False, -1.0, 1.0, 0.3),
        (False, 0.0, 1.0, 0.0),
        (True, -1.0, 0.5, 0.2),
    ],
)


def arguments_of(labels, scores, targets):
    """Return t and how it changes with the score."""
    if labels:
        return 1 - targets * scores, -targets
    return targets - scores, -np.ones_like(targets)


@each_n
@each_box
def test_box_value_and_subgradient(n, box):
    labels, low, high, tube = box
    scores, targets, weights = rows(n)
    t, sign = arguments_of(labels, scores, targets)
    v = np.array([low, 0.0, high])
    maxima = (np.multiply.outer(t, v) - tube * np.abs(v)).max(axis=1, initial=-np.inf)
    value = row_loss.value(RowForm(0, *box), scores, targets, weights, None)
    assert value == pytest.approx(weights @ maxima, rel=1e-13)
    out = np.empty(n)
    args = scores, targets, weights, None, 1, 1e-10, 1.0
    row_loss.derivatives(RowForm(0, *box), *args, out)
    chosen = np.where(t > tube + 1e-10, high, np.where(t < -tube - 1e-10, low, 0.0))
    assert_allclose(out, weights * sign * chosen, rtol=1e-15)


@each_n
@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.3])
def test_balance_shrinks_one_sign(n, shift):
    dual = np.random.default_rng(n).standard_normal(n) + shift
    out = np.empty(n)
    changed = row_loss.balance(dual, out)
    up, down = dual[dual > 0.0].sum(), -dual[dual < 0.0].sum()
    assert changed == (up != down)
    heavier = dual > 0.0 if up > down else dual < 0.0
    share = min(up, down) / max(up, down) if changed else 1.0
    assert_allclose(out, np.where(heavier, share * dual, dual), rtol=1e-13, atol=0)
    assert abs(out.sum()) <= 1e-15 * np.abs(dual).sum()


@each_n
@each_box
def test_box_kinks_ahead(n, box):
    labels, low, high, shift = box
    scores, targets, weights = rows(n)
    dscores = np.random.default_rng(1).standard_normal(n)
    kinks, jumps = np.empty(n), np.empty(n)
    args = scores, dscores, targets, weights, *box, 1e-10, 1.0
    slope, n_kinks = row_loss.kinks_ahead(*args, kinks, jumps)
    t, sign = arguments_of(labels, scores, targets)
    t, dt = t - shift, sign * dscores
    on_kink = np.abs(t) <= 1e-10 * np.maximum(1.0, np.abs(scores))
    v = np.where(np.where(on_kink, dt, t) > 0, high, low)
    assert slope == pytest.approx((weights * dt) @ v, rel=1e-12, abs=1e-12)
    ahead = ~on_kink & (t * dt < 0)
    assert_allclose(kinks[:n_kinks], (-t / dt)[ahead], rtol=1e-13)
    heights = (high - low) * np.abs(weights * dt)
    assert_allclose(jumps[:n_kinks], heights[ahead], rtol=1e-13)


@each_n
@each_box
@pytest.mark.parametrize("ridge", [0.1, 3.0])
@pytest.mark.parametrize("centered", [False, True])
def test_box_with_a_ridge(n, box, ridge, centered):
    labels, low, high, tube = box
    scores, targets, weights = rows(n)
    rng = np.random.default_rng(1)
    dscores = rng.standard_normal(n)
    center = low + (high - low) * rng.random(n)
    center[::5] = low
    c = center if centered else np.zeros(n)
    form = RowForm(0, *box)._replace(**{"width" if centered else "ridge": ridge})
    args = form, scores, targets, weights, center if centered else None
    t, sign = arguments_of(labels, scores, targets)
    edge = tube / ridge

    def threshold(q):
        return np.clip(np.sign(q) * np.maximum(np.abs(q) - edge, 0.0), low, high)

    def bends(q, tolerance):
        below = (q >= low - edge - tolerance) & (q <= -edge + tolerance) & (low < 0)
        return below | ((q >= edge - tolerance) & (q <= high + edge + tolerance))

    q = c + t / ridge
    v = threshold(q)
    maxima = v * t - tube * np.abs(v) - 0.5 * ridge * (v - c) ** 2
    assert row_loss.value(*args) == pytest.approx(
        weights @ maxima, rel=1e-12, abs=1e-13
    )
    out = np.empty(n)
    row_loss.derivatives(*args, 1, 0.0, 1.0, out)
    assert_allclose(out, weights * sign * v, rtol=1e-12, atol=1e-15)
    row_loss.derivatives(*args, 2, 1e-9, 1.0, out)
    assert_allclose(out, np.where(bends(q, 1e-9), weights / ridge, 0.0), rtol=1e-14)
    line = form, scores, dscores, targets, weights, args[-1]
    slope, curvature = row_loss.on_line(*line, 0.7)
    dq = sign * dscores / ridge
    at = q + 0.7 * dq
    expected = ridge * weights @ (dq * threshold(at))
    assert slope == pytest.approx(expected, rel=1e-12, abs=1e-12)
    expected = ridge * weights @ (dq**2 * bends(at, 0.0))
    assert curvature == pytest.approx(expected, rel=1e-12)
    dual = weights * sign * v
    terms = dual * targets + tube * np.abs(dual)
    terms += 0.5 * ridge * weights * (v - c) ** 2
    conjugate, size = row_loss.conjugate(form, dual, targets, weights, args[-1])
    assert conjugate == pytest.approx(terms.sum(), rel=1e-12, abs=1e-13)
    sizes = 2.0 * np.abs(dual * targets) + ridge * weights * c * c
    assert size == pytest.approx(sizes.sum(), rel=1e-12)


def step_of_sorted_kinks(slope, curvature, kinks, slope_jumps, curvature_jumps):
    """Walk through the sorted kinks; return step, slope and curvature there."""
    a, c = slope, curvature
    for kink in np.unique(kinks):
        if a + c * kink >= 0:
            return -a / c if c > 0 else kink
        a += slope_jumps[kinks == kink].sum()
        c += curvature_jumps[kinks == kink].sum()
        if a + c * kink >= 0:
            return kink
    return -1.0


@EXPLORE
@given(
    kinks=st.lists(st.integers(1, 40), max_size=80),
    seed=st.integers(0, 10**6),
    steepness=st.integers(1, 60),
    quadratic=st.booleans(),
)
def test_piecewise_minimum(kinks, seed, steepness, quadratic):
    rng = np.random.default_rng(seed)
    kinks = np.array(kinks, dtype=np.float64)
    # Integers leave nothing to rounding, so that ties and flat parts are exact.
    slope_jumps = rng.integers(0, 5, len(kinks)).astype(np.float64)
    curvature = float(rng.integers(0, 2)) if quadratic else 0.0
    zeros = np.zeros(len(kinks))
    args = -float(steepness), curvature, kinks, slope_jumps, zeros
    expected = step_of_sorted_kinks(*args)
    step, _, _ = piecewise.minimize(*(np.copy(arg) for arg in args))
    assert step == pytest.approx(expected, rel=1e-14)


def test_piecewise_minimum_of_many_kinks():
    rng = np.random.default_rng(0)
    kinks, jumps = rng.exponential(size=(2, 10_001))
    for share in (0.001, 0.5, 0.999):
        args = -share * jumps.sum(), 0.0, kinks, jumps, np.zeros(10_001)
        step, _, _ = piecewise.minimize(*(np.copy(arg) for arg in args))
        assert step == step_of_sorted_kinks(*args)


def csr(n=30, d=7, dtype=np.float64, indices=np.int32):
    X = sparse.random_array((n, d), density=0.4, rng=2, format="csr", dtype=dtype)
    return X.data, X.indices.astype(indices), X.indptr.astype(indices), X


each_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])
each_index = pytest.mark.parametrize("indices", [np.int32, np.int64])


@each_type
@each_index
def test_gram(dtype, indices):
    *arrays, X = csr(dtype=dtype, indices=indices)
    weights = np.random.default_rng(0).random(30)
    weights[::3] = 0.0
    half = np.zeros((9, 9))
    gram.add_half(*arrays, weights, np.arange(7, dtype=indices), half)
    dense = X.toarray().astype(np.float64)
    expected = dense.T @ (weights[:, np.newaxis] * dense)
    assert_allclose((half + half.T)[:7, :7], expected, rtol=1e-12, atol=1e-15)
    assert not half[7:].any()
    # Of columns 5, 1 and 2 only, in this order.
    position = np.array([-1, 1, 2, -1, -1, 0, -1], dtype=indices)
    half = np.zeros((3, 3))
    gram.add_half(*arrays, weights, position, half)
    some = np.ix_([5, 1, 2], [5, 1, 2])
    assert_allclose(half + half.T, expected[some], rtol=1e-12, atol=1e-15)


def test_gram_of_rows_with_repeated_and_unsorted_indices():
    data, indices = np.array([1.0, 2.0, 3.0, -4.0]), np.array([2, 0, 2, 1], np.int32)
    indptr = np.array([0, 3, 4], np.int32)
    half = np.zeros((3, 3))
    position = np.arange(3, dtype=np.int32)
    gram.add_half(data, indices, indptr, np.array([0.5, 2.0]), position, half)
    dense = np.array([[2.0, 0.0, 4.0], [0.0, -4.0, 0.0]])
    assert_array_equal(half + half.T, dense.T @ np.diag([0.5, 2.0]) @ dense)


@each_type
@each_index
@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("intercept_step", [0.0, 1.3])
def test_ascent(dtype, indices, ridge, intercept_step):
    n = 110
    *arrays, X = csr(n, dtype=dtype, indices=indices)
    dense = X.toarray().astype(np.float64)
    rng = np.random.default_rng(3)
    targets = rng.choice([-1.0, 1.0], n)
    low, high = np.minimum(targets, 0.0), np.maximum(targets, 0.0)
    steps = rng.random(n)
    steps[5] = 0.0
    squares = (dense**2).sum(axis=1)
    order, n_active = np.arange(n, dtype=indices), n
    v, w, intercept = np.zeros(n), np.zeros(7), 0.2
    mine, mine_w, mine_b = v.copy(), w.copy(), intercept
    for seed in (1, 2, 3):
        visited = shuffled(order[:n_active], seed, 8 if intercept_step else 32)
        resting = []
        for i in visited:
            curvature = steps[i] * (squares[i] + intercept_step) + ridge
            if steps[i] == 0 or curvature == 0:
                resting.append(i)
                continue
            z = mine_b + dense[i] @ mine_w
            new = mine[i] + (targets[i] - z - ridge * mine[i]) / curvature
            new = np.clip(new, low[i], high[i])
            if new == mine[i] and new in (low[i], high[i]):
                resting.append(i)
            change = (new - mine[i]) * steps[i]
            mine[i] = new
            mine_w += change * dense[i]
            mine_b += change * intercept_step
        args = targets, low, high, ridge, steps, squares, intercept, intercept_step
        intercept, n_active = ascent.sweep(*arrays, *args, seed, n_active, order, v, w)
        assert_array_equal(np.sort(order), np.arange(n))
        assert set(order[:n_active]) == set(visited) - set(resting)
        assert_allclose(v, mine, rtol=1e-10, atol=1e-12)
        assert_allclose(w, mine_w, rtol=1e-10, atol=1e-12)
        assert intercept == pytest.approx(mine_b, rel=1e-10)
    assert 0 < n_active < n


def shuffled(rows, seed, run):
    """Return the rows, in runs of so many, in the order in which they are visited."""
    n_runs, mask = len(rows) // run, 2**64 - 1
    runs = rows[: run * n_runs].reshape(n_runs, run).copy()
    for k in range(n_runs - 1, 0, -1):
        seed ^= seed << 13 & mask
        seed ^= seed >> 7
        seed ^= seed << 17 & mask
        other = seed % (k + 1)
        runs[[k, other]] = runs[[other, k]]
    return np.append(runs, rows[run * n_runs :])


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5, 7, 8, 13, 14])
def test_ascent_refuses_wrong_lengths(place):
    data, indices, indptr, _ = csr()
    n = np.ones(30)
    arguments = [data, indices, indptr, n, n, n, 0.0, n, n, 0.0, 0.0, 1, 30]
    arguments += [np.arange(30, dtype=np.int32), np.zeros(30), np.zeros(7)]
    arguments[place] = arguments[place][:-1]
    with pytest.raises(ValueError, match=r"instead of|differ in length"):
        ascent.sweep(*arguments)


@pytest.mark.parametrize("n_active", [-1, 31])
def test_ascent_refuses_more_active_rows_than_there_are(n_active):
    n = np.ones(30)
    order = np.arange(30, dtype=np.int32)
    numbers = 0.0, 0.0, 1, n_active
    with pytest.raises(ValueError, match=r"cannot be active"):
        ascent.sweep(*csr()[:3], n, n, n, 0.0, n, n, *numbers, order, n, np.zeros(7))


@pytest.mark.parametrize("place", range(4))
def test_gram_refuses_wrong_lengths(place):
    arguments = [*csr()[:3], np.ones(30)]
    arguments[place] = arguments[place][:-1]
    with pytest.raises(ValueError, match="differ in length"):
        gram.add_half(*arguments, np.arange(7, dtype=np.int32), np.zeros((7, 7)))


def test_gram_refuses_positions_outside():
    position = np.arange(7, dtype=np.int32)
    with pytest.raises(ValueError, match="position 6 is outside"):
        gram.add_half(*csr()[:3], np.ones(30), position, np.zeros((6, 6)))


def test_read_only():
    arrays = rows(5)
    form = RowForm(0, True, 0.0, 1.0)
    expected = row_loss.value(form, *arrays, None)
    for array in arrays:
        array.flags.writeable = False
    assert row_loss.value(form, *arrays, None) == expected


# The parameters of each kernel in order: a for arrays of n rows, s for numbers, i for
# integers and f for an envelope.
PARAMETERS = [
    (row_loss.value, "faaaa"),
    (row_loss.derivatives, "faaaaissa"),
    (row_loss.on_line, "faaaaas"),
    (row_loss.conjugate, "faaaa"),
    (row_loss.kinks_ahead, "aaaaisssssaa"),
    (row_loss.balance, "aa"),
    (piecewise.minimize, "ssaaa"),
]
each_array = pytest.mark.parametrize(
    ("kernel", "kinds", "place"),
    [
        pytest.param(kernel, kinds, place, id=f"{kernel.__name__}-{place}")
        for kernel, kinds in PARAMETERS
        for place, kind in enumerate(kinds)
        if kind == "a"
    ],
)


def call(kernel, kinds, place, wrong):
    """Call a kernel with ones and arrays of 5 ones, but for one parameter."""
    others = {"s": 1.0, "i": 1, "f": RowForm(0, True, 0.0, 1.0, width=1.0)}
    arguments = [np.ones(5) if kind == "a" else others[kind] for kind in kinds]
    arguments[place] = wrong
    return kernel(*arguments)


@each_array
@pytest.mark.parametrize("n", [0, 4, 6])
def test_wrong_length(kernel, kinds, place, n):
    with pytest.raises(ValueError, match="differ in length"):
        call(kernel, kinds, place, np.ones(n))


@each_array
@pytest.mark.parametrize(
    "wrong",
    [np.ones((5, 1)), np.ones(10)[::2], np.ones(5, np.float32), np.ones(5, int)],
    ids=["two dimensions", "strides", "float32", "integers"],
)
def test_wrong_kind(kernel, kinds, place, wrong):
    with pytest.raises(ValueError, match=r"Buffer|contiguous"):
        call(kernel, kinds, place, wrong)


def simplex_arguments(Q, c, x):
    m = len(c)
    support = np.empty(m, dtype=np.intp)
    work = np.empty((m, m)), np.empty((4, m)), support
    return [Q, c, x, 1.0, 1e-12, 1e-14, 10 * m + 20, *work]


def numpy_active_set(Q, c, x):
    """The same method with a system solved anew for every step."""
    support = list(np.flatnonzero(x))
    while True:
        n = len(support)
        kkt = np.ones((n + 1, n + 1))
        kkt[:n, :n] = Q[np.ix_(support, support)] + 1e-12 * np.eye(n)
        kkt[n, n] = 0.0
        costs = (Q @ x - c)[support]
        step = np.linalg.solve(kkt, np.append(-costs, 0.0))[:n]
        limits = np.full(n, np.inf)
        limits[step < 0.0] = -x[support][step < 0.0] / step[step < 0.0]
        if limits.min() < 1.0:
            first = int(limits.argmin())
            x[support] += limits[first] * step
            x[support.pop(first)] = 0.0
            continue
        x[support] += step
        costs = Q @ x - c
        price = costs @ x
        costs[support] = price
        if costs.min() >= price - 1e-13:
            return x
        support.append(int(costs.argmin()))


@pytest.mark.parametrize("seed", range(5))
def test_simplex_method(seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(12, 20))
    Q, c = normals @ normals.T, rng.normal(size=12)
    Q /= Q.diagonal().max()
    start = rng.dirichlet(np.ones(12))
    x = start.copy()
    n_iter = simplex.minimize(*simplex_arguments(Q, c, x))
    assert 1 < n_iter < 140
    assert_allclose(x, numpy_active_set(Q, c, start), atol=1e-10)


@pytest.mark.parametrize("place", [0, 1, 2, 7, 8, 9])
def test_simplex_method_refuses_wrong_lengths(place):
    arguments = simplex_arguments(np.eye(3), np.ones(3), np.eye(3)[0])
    arguments[place] = np.concatenate([arguments[place], arguments[place][:1]])
    with pytest.raises(ValueError, match="differ in length"):
        simplex.minimize(*arguments)


def sparse_arrays(matrix):
    rows, columns = np.nonzero(matrix)
    counts = np.bincount(rows, minlength=len(matrix))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return indptr, np.ascontiguousarray(columns), matrix[rows, columns]


@pytest.mark.parametrize("k", [1, 3, 9, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_products_of_a_sparse_matrix_with_several_columns(n, dtype, k):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(n, 30)) * (rng.random((n, 30)) < 0.6)
    matrix = matrix.astype(dtype)
    coef, out = rng.normal(size=(30, k)), np.full((n, k), np.nan)
    products.multiply_several(*sparse_arrays(matrix), coef, out)
    assert_allclose(out, matrix.astype(np.float64) @ coef, atol=1e-13)


@pytest.mark.parametrize(
    ("place", "changed", "match"),
    [
        (0, np.array([0, 1, 2]), "differ in length"),
        (2, np.ones(2), "differ in length"),
        (3, np.ones((3, 4)), "differ in length"),
    ],
)
def test_products_with_several_columns_refuse_what_does_not_fit(place, changed, match):
    arguments = [*sparse_arrays(np.eye(3)), np.ones((3, 2)), np.empty((3, 2))]
    arguments[place] = changed
    with pytest.raises(ValueError, match=match):
        products.multiply_several(*arguments)


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_distinct_columns_and_their_places(n, indices):
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, n, 200).astype(indices)
    numbers[0] = n - 1
    columns, places = np.empty(200, dtype=np.intp), np.empty(200, dtype=np.int32)
    count = own_columns.distinct(numbers, n, columns, places)
    expected, at = np.unique(numbers, return_inverse=True)
    assert_array_equal(columns[:count], expected)
    assert_array_equal(places, at)
    for wrong in (-1, n):
        numbers[7] = wrong
        with pytest.raises(ValueError, match="is none of"):
            own_columns.distinct(numbers, n, columns, places)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3])
def test_adjoint_products_of_powers(dtype, k):
    rng = np.random.default_rng(k)
    X = sparse.random_array((20, 7), density=0.4, format="csr", rng=rng, dtype=dtype)
    X.data[3] = 0.0
    u = rng.standard_normal((20, k))
    A = X.toarray().astype(np.float64)
    for power, expected in ((1, A), (2, A**2), (0, A != 0.0)):
        out = np.ones((7, k))
        products.add_adjoint(X.indptr, X.indices, X.data, power, u, out)
        assert_allclose(out, 1.0 + expected.T @ u)
    with pytest.raises(ValueError, match="differ in length"):
        products.add_adjoint(X.indptr, X.indices, X.data, 1, u[1:], out)
    with pytest.raises(ValueError, match="differ in length"):
        products.add_adjoint(X.indptr, X.indices, X.data, 1, u, np.ones((7, k + 1)))


@pytest.mark.parametrize("k", [0, 1, 3])
def test_preconditioned_vectors_are_products_with_the_centered_metric(k):
    rng = np.random.default_rng(k)
    c = 5 * max(k, 1)
    center, scale = rng.standard_normal(c), rng.random(c)
    free, g, out = rng.random(max(k, 1)), rng.standard_normal(c + k), np.empty(c + k)
    own_columns.precondition(center, scale, free, g, out)
    # The change of variables to coefficients with intercepts at the center.
    T = np.eye(c + k)
    for j in range(c if k else 0):
        T[c + j % k, j] = -center[j]
    diagonal = np.diag(np.append(scale, free[:k]))
    assert_allclose(out, T @ diagonal @ T.T @ g)
    for wrong in ((center[1:], scale, free, g, out), (center, scale, free, g, out[1:])):
        with pytest.raises(ValueError, match="differ in length"):
            own_columns.precondition(*wrong)
    with pytest.raises(ValueError, match="differ in length"):
        own_columns.precondition(center, scale, free, np.append(g, [1, 1]), out)


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("k", [1, 3, 300])
def test_numbers_of_columns_with_pending_updates(k, l1):
    rng = np.random.default_rng(k)
    c, l2, length, n_steps, n_averaged, began = 300, 0.1, 2.5, 7.0, 4.0, 1.0
    n_parts, columns = 6 if l1 else 4, 3 * np.arange(c)
    table = rng.random((3 * c, n_parts * k + 2))
    table[:, -1] = rng.integers(0, 8, 3 * c)
    h, own, updated = 2.0 + rng.random(k), np.empty((n_parts, c * k + 1)), np.empty(c)
    args = [table, columns, h, 20.0, 3.0, l1, l2, 0.5, True]
    args += [length, began, n_steps, n_averaged, own, updated]
    sums = own_columns.catch_up(*args)
    rows = table[columns]
    w, mean, *others = (
        rows[:, i * k : (i + 1) * k].copy().ravel() for i in range(n_parts)
    )
    assert_allclose(sums, [w @ w, np.abs(w).sum()])
    assert_array_equal(updated, rows[:, -1])
    for part in others[:3]:
        part.reshape(c, k)[updated <= began] = 0.0
    center, scale = np.empty((2, c * k))
    present = others[2] if l1 else None
    sums_of_h = h, others[0], others[1], present, 20.0, 3.0
    own_columns.metric(*sums_of_h, l2, 0.5, True, center, scale)
    # The solution of dw/dt = -l2 w - l1 sign(w) until w is zero.
    eta = scale * np.repeat(length - rows[:, -2], k)
    decay = np.exp(-l2 * eta)
    w = np.sign(w) * np.maximum(np.abs(w) * decay - l1 / l2 * (1.0 - decay), 0.0)
    n = np.array([updated - n_steps + n_averaged, np.full(c, n_averaged)])
    weight = np.prod([np.maximum(n, 0.0) + i for i in range(4)], axis=0)
    lag = np.repeat(weight[0] / weight[1], k)
    expected = [w, w + lag * (mean - w), *others]
    if l1:
        expected[5] = l2 * w + lag * (others[3] - l2 * w)
    assert_allclose(own[:, : c * k], expected, atol=1e-12)
    for i in (1, 2, 13, 14) if k > 1 else ():
        short = args[i][:, :-2] if i == 13 else args[i][:-1]
        with pytest.raises(ValueError, match=r"differ|other"):
            own_columns.catch_up(*args[:i], np.ascontiguousarray(short), *args[i + 1 :])
    for wrong in (-1, 3 * c):
        columns[5] = wrong
        with pytest.raises(ValueError, match="is none of"):
            own_columns.catch_up(*args)


@pytest.mark.parametrize("k", [1, 2])
def test_exchanged_rows_are_others(k):
    rng, rows = np.random.default_rng(k), np.array([4, 0, 2])
    table, parts = rng.random((5, 2 * k + 2)), [*rng.standard_normal((2, 3 * k + 1))]
    clocks = rng.random((3, 2))
    before = table[rows]
    new = np.hstack([*(part[: 3 * k].reshape(3, k) for part in parts), clocks])
    sums = own_columns.exchange(table, rows, parts, clocks)
    assert_array_equal(table[rows], new)
    old = np.hstack([*(part[: 3 * k].reshape(3, k) for part in parts), clocks])
    assert_array_equal(old, before)
    first, second = np.abs(new[:, :k]), np.abs(new[:, k : 2 * k])
    assert_allclose(sums, [np.sum(first**2), first.sum(), second.max()])
    for wrong in ((rows[1:], parts), (rows, [parts[0][:2], parts[1]]), (rows, [])):
        with pytest.raises(ValueError, match=r"differ in shape|other columns"):
            own_columns.exchange(table, *wrong, clocks)
    with pytest.raises(ValueError, match="is none of"):
        own_columns.exchange(table, np.array([4, 0, 5]), parts, clocks)


@pytest.mark.parametrize("free", [0, 3])
def test_projections_keep_the_norm_of_columns_that_do_not_meet(free):
    rng = np.random.default_rng(free)
    columns, missed = np.array([1, 4, 5, 8]), rng.random(4)
    g, w, center, scale = rng.random((4, 12))
    args = [columns, missed, g, w, center, scale, rng.random(free), np.zeros(2**16)]
    own_columns.project(*args)
    v = g + np.repeat(missed, 3) * w
    if free:
        v -= center * np.tile(args[6], 4)
    assert_allclose(np.sum(args[7] ** 2), np.sum(scale * v**2))
    assert np.count_nonzero(args[7]) == 12
    for i in (0, 1, 2, 3, 4, 5, 7):
        with pytest.raises(ValueError, match="differ"):
            own_columns.project(*args[:i], args[i][:-1], *args[i + 1 :])


def softmax_problem(k=4):
    rng = np.random.default_rng(7)
    scores = 3.0 * rng.normal(size=(700, k))
    targets = rng.integers(k, size=700).astype(float)
    weights = rng.dirichlet(np.ones(700))
    weights[::9] = 0.0
    return scores, targets, weights


@pytest.mark.parametrize("k", [2, 3, 26, 200])
def test_softmax_shift_sums_what_rows_have(k):
    scores, targets, weights = softmax_problem(k)
    shift = np.linspace(-1.0, 2.0, k)
    slopes, curvature = np.empty(k), np.empty((k, k))
    softmax.derivatives_of_shift(scores, shift, targets, weights, slopes, curvature)
    p = special.softmax(scores + shift, axis=1)
    rows = weights[:, np.newaxis] * (p - np.eye(k)[targets.astype(int)])
    assert_allclose(slopes, rows.sum(axis=0), rtol=1e-12, atol=1e-15)
    expected = np.diag(weights @ p) - (p.T * weights) @ p
    assert_allclose(curvature, expected, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="differ in length"):
        softmax.derivatives_of_shift(
            scores, shift[1:], targets, weights, slopes, curvature
        )


def test_softmax_conjugate_is_the_negative_entropy():
    scores, targets, weights = softmax_problem()
    own = np.arange(len(scores)), targets.astype(int)
    p = special.softmax(scores, axis=1)
    dual = p.copy()
    dual[own] -= 1.0
    dual *= weights[:, np.newaxis]
    height, change = softmax.conjugate(dual, targets, weights)
    assert_allclose(height, -weights @ special.entr(p).sum(axis=1), rtol=1e-12)
    others = 1.0 - p[own]
    large = others > 0.5
    assert_allclose(change, -weights[large] @ np.log1p(-others[large]), rtol=1e-9)
    dual[1] *= 1.5 / others[1]
    assert softmax.conjugate(dual, targets, weights)[0] == np.inf


def test_softmax_distance_is_what_rows_lack():
    scores, targets, weights = softmax_problem()
    rng = np.random.default_rng(8)
    weights += 1e-3
    dual = rng.normal(size=scores.shape)
    negative = np.minimum(dual, 0.0)
    negative[np.arange(len(dual)), targets.astype(int)] = 0.0
    expected = np.sqrt((dual.sum(axis=1) ** 2 / weights).sum())
    expected += 2.0 * np.sqrt((negative**2 / weights[:, np.newaxis]).sum())
    assert_allclose(softmax.distance(dual, targets, weights), expected, rtol=1e-12)


@pytest.mark.parametrize("n_scores", [1, 2])
@pytest.mark.parametrize("formed", [True, False])
def test_sweep_groups(n_scores, formed):
    """Proximal steps of any block lead nowhere from the minimizer."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(20, 6)), rng.normal(size=(4, n_scores))
    H, metric = A.T @ A, B.T @ B
    gradient = 40.0 * rng.normal(size=(n_scores, 6))
    order, starts = np.array([0, 2, 1, 4, 5, 3]), np.array([0, 2, 5, 6])
    blocks = [order[a:b] for a, b in pairwise(starts)]
    bounds = np.array([np.linalg.eigvalsh(H[np.ix_(g, g)])[-1] for g in blocks])
    bounds *= np.linalg.eigvalsh(metric)[-1]
    l1, norm, l2 = np.array([[0.0, 2.0, 0.0], [5.0, 9.0, 0.0], [1.0, 0.5, 0.0]])
    side = np.zeros((n_scores, 6))
    side[:, 1] = 1.0
    slopes, coef = gradient.copy(), np.zeros((n_scores, 6))
    matrices = np.concatenate([H[np.ix_(g, g)].ravel() for g in blocks])
    image = None if formed else np.zeros((n_scores, 20))
    arrays = H if formed else A.T.copy(), matrices, metric, slopes, image, coef
    arrays += order, starts, bounds, l1, norm, l2, side
    violation, sweeps = coordinate_descent.sweep_groups(*arrays, 1e-10, 1000)
    assert violation <= 1e-10
    assert sweeps < 1000
    if not formed:
        assert_allclose(image, metric @ coef @ A.T, atol=1e-11)
        slopes += image @ A
    assert_allclose(slopes, gradient + metric @ coef @ H, atol=1e-11)
    for g, own in enumerate(blocks):
        v = coef[:, own] - slopes[:, own] / bounds[g]
        signs = side[:, own]
        sign = np.where(signs == 0.0, np.sign(v), signs)
        v = sign * np.maximum(sign * v - l1[g] / bounds[g], 0.0)
        length = np.linalg.norm(v)
        share = max(0.0, 1.0 - norm[g] / bounds[g] / length) if length else 0.0
        expected = share * v / (1.0 + l2[g] / bounds[g])
        assert_allclose(coef[:, own], expected, atol=1e-9)


@pytest.mark.parametrize("place", range(13))
def test_sweep_groups_refuses_wrong_lengths(place):
    arguments = [np.eye(2), np.ones(2), np.eye(2), *np.ones((3, 2, 2))]
    arguments += [np.arange(2), np.array([0, 1, 2]), *np.ones((4, 2)), np.ones((2, 2))]
    arguments[place] = arguments[place][:-1].copy()
    with pytest.raises(ValueError, match=r"differ|groups|scores"):
        coordinate_descent.sweep_groups(*arguments, 0.0, 1)


@pytest.mark.parametrize(("n", "d"), [(0, 3), (5, 0), (7, 1), (90, 61), (3, 5000)])
def test_products_with_dense_rows_and_their_sizes(n, d):
    rng = np.random.default_rng(n + d)
    X, coef = rng.standard_normal((n, d)), rng.standard_normal(d)
    out, sizes = np.full((2, n), np.nan)
    products.multiply_with_sizes(X, coef, out, sizes)
    assert_allclose(sizes, np.abs(X) @ np.abs(coef), rtol=1e-14)
    assert (np.abs(out - X @ coef) <= 1e-14 * sizes).all()
    for wrong in (
        (coef[1:], out, sizes),
        (coef, out, sizes[1:]),
        (coef, out[1:], sizes),
    ):
        if n and d:
            with pytest.raises(ValueError, match="differ in length"):
                products.multiply_with_sizes(X, *wrong)


def test_rounded_rows_are_multiples_of_powers_of_two():
    sizes = np.array([1.0, 3.0, 0.0, 1e-305, 1e308, np.inf, np.nan])
    scores = np.column_stack([[0.3, -2.0, 1e-300, 1e-305, 1e200, 1e306, 1.0]] * 2)
    scores[:, 1] *= -np.pi / 4.0
    given = scores.copy()
    products.round_rows(sizes, 0.5, 2e-12, scores)
    assert np.isnan(scores[-1]).all()
    units = 2.0 ** np.clip(np.floor(np.log2(2e-12 * (sizes[:-1] + 0.5))), -1000, 1000)
    assert_array_equal(
        scores[:-1] / units[:, None], np.rint(given[:-1] / units[:, None])
    )
    with pytest.raises(ValueError, match="differ in length"):
        products.round_rows(sizes[1:], 0.5, 2e-12, scores)


def graph_of_risk_sets():
    """Return rows and nodes, edges and shares, and the matrix from rows to nodes."""
    pairs = np.array([[0, 1, 2, 2, 3], [1, 1, 2, 4, 3]])
    edges = np.array([[1, 2, 1, 3], [3, 3, 4, 4]])
    shares, matrix = np.array([1.0, 0.5, 0.25, 1.0]), np.zeros((5, 4))
    matrix[pairs[1], pairs[0]] = 1.0
    for (a, b), share in zip(edges.T, shares, strict=True):
        matrix[b] += share * matrix[a]
    return [4, 5, *pairs, *edges, shares], matrix


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_sums_along_a_graph_and_back(size):
    arguments, matrix = graph_of_risk_sets()
    rng = np.random.default_rng(0)
    z, s, values = size * rng.normal(size=4), rng.random(4), rng.normal(size=(4, 2))
    sets, sums = at_risk.RiskSets(*arguments), np.zeros((5, 3))
    sums[:, 0] = -np.inf
    sets.add(z, s, values, sums)
    largest = z.max()
    terms = s * np.exp(z - largest)
    found = np.exp(sums[:, :1] - largest) * sums[:, 1:]
    assert_allclose(found, matrix @ (terms[:, None] * values), rtol=1e-13)
    given = np.column_stack([np.full(5, -largest), rng.normal(size=(5, 2))])
    out, sums = np.zeros((4, 2)), given.copy()
    sets.add(z, s, out, sums, to_rows=True)
    assert_allclose(out, terms[:, None] * (matrix.T @ given[:, 1:]), rtol=1e-12)


@pytest.mark.parametrize("place", range(2, 7))
def test_risk_sets_refuse_what_does_not_fit(place):
    arguments, _ = graph_of_risk_sets()
    whole = at_risk.RiskSets(*arguments)
    with pytest.raises(ValueError, match="differ in length"):
        whole.add(np.ones(3), np.ones(4), np.ones((4, 1)), np.ones((5, 2)))
    with pytest.raises(ValueError, match="differ in length"):
        whole.add(np.ones(4), np.ones(4), np.ones((4, 2)), np.ones((5, 2)))
    short = [*arguments]
    short[place] = short[place][:-1]
    with pytest.raises(ValueError, match="differ in length"):
        at_risk.RiskSets(*short)
    if place < 6:
        outside = [*arguments]
        outside[place] = outside[place] + 2
        with pytest.raises(ValueError, match="must be from 0 to"):
            at_risk.RiskSets(*outside)


def test_weights_of_pairs():
    rng = np.random.default_rng(1)
    n, k = 30, 6
    begins = rng.integers(1, k, n)
    ends = rng.integers(begins, k + 1)
    weights, factors = rng.random(n), rng.random(n) * (rng.random(n) < 0.5)
    order, nodes = rng.permutation(2 * n), np.zeros(2 * k)
    place = np.argsort(order)
    time = begins[:, None] - 1
    at_risk_then = (begins <= time) & (time < ends)
    before = place[:n] < place[n:, None]
    expected = factors @ ((at_risk_then & before) @ weights)
    data = begins, ends, weights, factors
    assert at_risk.pair_weight(order, *data, nodes) == pytest.approx(expected)
    with pytest.raises(ValueError, match="must be at risk"):
        at_risk.pair_weight(order, begins, ends + k, weights, factors, nodes)
