"""Kernels of losses with several scores per row: NumPy twins, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn._core.kernels import (
    multiclass,
    multiclass_ascent,
    multilabel,
    multilabel_ascent,
)

N, K, D = 40, 5, 7


def project(t):
    """Return the projection of a vector onto the unit simplex, by sorting."""
    largest = np.sort(t)[::-1]
    shifts = (np.cumsum(largest) - 1.0) / np.arange(1, len(t) + 1)
    return np.maximum(t - shifts[np.flatnonzero(largest > shifts)[-1]], 0.0)


def offsets_and_rates(rescaling):
    costs = np.random.default_rng(1).uniform(0.5, 2.0, (K, K))
    np.fill_diagonal(costs, 0.0)
    return costs, np.ones((K, K)) if rescaling == "margin" else costs


def violations(scores, y, offsets, rates):
    own = scores[np.arange(len(y)), y][:, np.newaxis]
    return offsets[y] + rates[y] * (scores - own)


each_rescaling = pytest.mark.parametrize("rescaling", ["margin", "slack"])


@each_rescaling
@pytest.mark.parametrize("n", [0, 1, N])
def test_multiclass(n, rescaling):
    rng = np.random.default_rng(0)
    scores, weights = 2.0 * rng.standard_normal((n, K)), rng.random(n)
    y = rng.integers(0, K, n).astype(np.intp)
    args = y, *offsets_and_rates(rescaling)
    m = violations(scores, *args)
    largest = m.max(axis=1, initial=0.0)
    value = multiclass.value(scores, *args, weights)
    assert value == pytest.approx(weights @ largest, rel=1e-13)
    count = np.empty(n, np.intp)
    multiclass.count_ties(scores, *args, 1e-10, count)
    assert_array_equal(count, 1)
    u = np.empty((n, K))
    multiclass.subgradient(scores, *args, weights, 1e-10, u)
    expected = np.zeros((n, K))
    each, worst = np.arange(n), m.argmax(axis=1)
    flow = weights * args[2][y, worst] * (worst != y)
    np.add.at(expected, (each, worst), flow)
    np.add.at(expected, (each, y), -flow)
    assert_allclose(u, expected, rtol=1e-14)


@each_rescaling
@pytest.mark.parametrize("width", [0.1, 3.0])
def test_multiclass_envelope(rescaling, width):
    rng = np.random.default_rng(0)
    scores, weights = 2.0 * rng.standard_normal((N, K)), rng.random(N)
    y = rng.integers(0, K, N).astype(np.intp)
    center = rng.dirichlet(np.ones(K), N)
    args = y, *offsets_and_rates(rescaling)
    m = violations(scores, *args)
    b = np.array([project(row) for row in center + m / width])
    rows = np.sum(b * m - 0.5 * width * (b - center) ** 2, axis=1)
    value = multiclass.envelope_value(scores, center, *args, weights, width)
    assert value == pytest.approx(weights @ rows, rel=1e-12)
    out, expected = np.empty((N, K)), weights[:, np.newaxis] * b * args[2][y]
    expected[np.arange(N), y] = 0.0
    expected[np.arange(N), y] = -expected.sum(axis=1)
    multiclass.envelope_gradient(scores, center, *args, weights, width, out)
    assert_allclose(out, expected, atol=1e-14)
    active = np.empty((N, K), np.uint8)
    multiclass.support(scores, center, *args, weights, width, 0.0, active)
    several = (b > 0).sum(axis=1, keepdims=True) > 1
    assert_array_equal(active, (b > 0) & several)


@pytest.mark.parametrize("n_scores", [K, K + 1])
def test_multilabel_value(n_scores):
    rng = np.random.default_rng(0)
    scores, weights = rng.standard_normal((N, n_scores)), rng.random(N)
    relevant = rng.integers(0, 2, (N, K)).astype(np.uint8)
    relevant[:2] = [[0], [1]]
    costs = rng.random((2, K))
    worst_0 = np.where(relevant, -np.inf, costs[0] + scores[:, :K]).max(axis=1)
    worst_1 = np.where(relevant, costs[1] - scores[:, :K], -np.inf).max(axis=1)
    if n_scores == K:
        losses = np.maximum(worst_0 + worst_1, 0.0)
    else:
        losses = np.maximum(worst_0 - scores[:, K], 0.0)
        losses += np.maximum(worst_1 + scores[:, K], 0.0)
    value = multilabel.value(scores, relevant, costs, weights)
    assert value == pytest.approx(weights @ losses, rel=1e-13)


def ascent_problem(form, dtype, indices):
    rng = np.random.default_rng(3)
    X = sparse.random_array((N, D), density=0.4, rng=2, format="csr", dtype=dtype)
    dense = X.toarray()
    if form == "sparse":
        arrays = X.data, X.indices.astype(indices), X.indptr.astype(indices)
        sweep = multiclass_ascent.sweep_sparse
    else:
        arrays, sweep = (dense,), multiclass_ascent.sweep_dense
    dense = dense.astype(np.float64)
    steps = rng.random(N)
    steps[5] = 0.0
    y = rng.integers(0, K, N).astype(np.intp)
    squares = (dense**2).sum(axis=1)
    return sweep, arrays, dense, y, steps, squares


@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("intercept_step", [0.0, 1.3])
def test_ascent(form, dtype, indices, intercept_step):
    sweep, arrays, dense, y, steps, squares = ascent_problem(form, dtype, indices)
    offsets, _ = offsets_and_rates("margin")
    b, w, intercept = np.eye(K)[y], np.zeros((D, K)), np.zeros(K)
    intercept[1] = 0.2
    mine_b, mine_w, mine_intercept = b.copy(), w.copy(), intercept.copy()
    gains, mine_gains = np.zeros(N), np.zeros(N)
    for seed in (1, 2, 3):
        order = np.arange(seed - 1, N, dtype=np.intp)
        args = y, offsets, steps, squares, intercept_step, seed, order, gains
        sweep(*arrays, *args, b, w, intercept)
        assert_array_equal(np.sort(order), np.arange(seed - 1, N))
        for i in order:
            a = steps[i] * (squares[i] + intercept_step)
            if steps[i] == 0.0:
                continue
            m = offsets[y[i]] + dense[i] @ mine_w + mine_intercept
            m -= m.max()
            change = project(mine_b[i] + m / max(a, 1e-100)) - mine_b[i]
            mine_gains[i] = steps[i] * (change @ m - 0.5 * a * change @ change)
            mine_b[i] += change
            mine_w -= steps[i] * np.outer(dense[i], change)
            mine_intercept -= intercept_step * steps[i] * change
        assert_allclose(b, mine_b, rtol=1e-9, atol=1e-12)
        assert_allclose(w, mine_w, rtol=1e-9, atol=1e-12)
        assert_allclose(intercept, mine_intercept, rtol=1e-9, atol=1e-12)
        assert_allclose(gains, mine_gains, rtol=1e-7, atol=1e-12)


# Arrays by one letter each, s for numbers.
ARRAYS = {
    "z": np.ones((N, K)),
    "y": np.ones(N, np.intp),
    "o": np.ones((K, K)),
    "n": np.ones(N),
    "k": np.ones(K),
    "f": np.ones((N, K), np.uint8),
    "c": np.ones((2, K)),
    "m": np.ones(2 * K),
    "X": np.ones((N, D)),
    "w": np.ones((D, K)),
    "g": np.ones((K, K, D, D)),
    "p": np.arange(N),
}
PARAMETERS = [
    (multiclass.value, "zyoon"),
    (multiclass.subgradient, "zyoonsz"),
    (multiclass.count_ties, "zyoosy"),
    (multiclass.steepest, "zzyoonsz"),
    (multiclass.restrict, "zzyoons0mm"),
    (multiclass.conjugate, "zyo"),
    (multiclass.envelope_value, "zzyoons"),
    (multiclass.envelope_gradient, "zzyoonsz"),
    (multiclass.envelope_slope, "zzzyoonss"),
    (multiclass.support, "zzyoonssf"),
    (multiclass.apply_curvature, "fyonz"),
    (multiclass.curvature_diagonal, "fyonz"),
    (multiclass.gram, "Xfyong"),
    (multiclass_ascent.sweep_dense, "Xyonns1pnzwk"),
    (multilabel.value, "zfcn"),
    (multilabel.subgradient, "zfcnsz"),
    (multilabel.steepest, "zzfcnsz"),
    (multilabel.restrict, "zzfcns0mm"),
    (multilabel.envelope_gradient, "zzfcnsz"),
    (multilabel.envelope_slope, "zzzfcnss"),
    (multilabel.support, "zzfcnssf"),
    (multilabel.apply_curvature, "fnz"),
    (multilabel.curvature_diagonal, "fnz"),
    (multilabel.gram, "Xfng"),
    (multilabel_ascent.sweep_dense, "Xfcnns1pnzwk"),
]
GROUPED = multilabel.apply_curvature, multilabel.curvature_diagonal, multilabel.gram
each_array = pytest.mark.parametrize(
    ("kernel", "kinds", "place"),
    [
        pytest.param(kernel, kinds, i, id=f"{kernel.__module__}-{kernel.__name__}-{i}")
        for kernel, kinds in PARAMETERS
        for i, kind in enumerate(kinds)
        if kind in ARRAYS
    ],
)


def call(kernel, kinds, place=None, change=None):
    numbers = {"s": 1.0, "0": 0, "1": 1}
    arguments = [
        ARRAYS[kind].copy() if kind in ARRAYS else numbers[kind] for kind in kinds
    ]
    if place is not None:
        arguments[place] = change(arguments[place])
    return kernel(*arguments)


@pytest.mark.parametrize(("kernel", "kinds"), PARAMETERS)
def test_the_table_is_right(kernel, kinds):
    call(kernel, kinds)


@each_array
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("longer", [False, True])
def test_wrong_length(kernel, kinds, place, axis, longer):
    if kinds[place] == "p":
        pytest.skip("any rows will do")
    if axis == -1 and ARRAYS[kinds[place]].ndim == 1:
        pytest.skip("has one axis")
    if kinds[place] == "f" and kernel in GROUPED and axis == -1 and not longer:
        pytest.skip("the last score is a threshold then")

    def change(array):
        if longer:
            return np.concatenate([array, array], axis=axis)
        return np.ascontiguousarray(np.delete(array, 0, axis=axis))

    with pytest.raises(ValueError, match=r"."):
        call(kernel, kinds, place, change)


@each_array
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[np.newaxis],
        lambda a: a.astype(np.float32 if a.dtype != np.float64 else np.int64),
    ],
    ids=["dimensions", "type"],
)
def test_wrong_kind(kernel, kinds, place, change):
    with pytest.raises((ValueError, TypeError)):
        call(kernel, kinds, place, change)


@pytest.mark.parametrize("label", [-1, K])
def test_labels_that_are_none(label):
    for kernel, kinds in PARAMETERS:
        if "y" in kinds and kernel.__name__ != "count_ties":
            with pytest.raises(ValueError, match="label"):
                call(kernel, kinds, kinds.index("y"), lambda y: y * 0 + label)


@pytest.mark.parametrize("row", [-1, N])
def test_rows_that_are_none(row):
    for kernel, kinds in PARAMETERS:
        if "p" in kinds:
            with pytest.raises(ValueError, match=f"row {row} is none"):
                call(kernel, kinds, kinds.index("p"), lambda p: p * 0 + row)


@pytest.mark.parametrize("place", range(3))
def test_sparse_arrays_that_end_early(place):
    sweep, arrays, _, y, steps, squares = ascent_problem("sparse", float, np.int32)
    arrays = list(arrays)
    arrays[place] = arrays[place][:-1].copy()
    offsets, _ = offsets_and_rates("margin")
    args = y, offsets, steps, squares, 0.0, 1, np.arange(N), np.zeros(N)
    with pytest.raises(ValueError, match=r"instead of|behind the end"):
        sweep(*arrays, *args, np.eye(K)[y], np.zeros((D, K)), np.zeros(K))
