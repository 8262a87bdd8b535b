"""Kernels of losses with several scores per row: NumPy twins, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse

from sklearn_subqn._core.kernels import (
    label_pairs,
    multiclass,
    multilabel,
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
    kernel_rows = multiclass.Rows(*args)
    value = multiclass.value(kernel_rows, scores, weights)
    assert value == pytest.approx(weights @ largest, rel=1e-13)
    flags = np.empty(n, np.uint8)
    multiclass.kinks(kernel_rows, scores, 1e-10, flags)
    assert not flags.any()
    u = np.empty((n, K))
    multiclass.subgradient(kernel_rows, scores, None, weights, 1e-10, u)
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
    out, expected = np.empty((N, K)), weights[:, np.newaxis] * b * args[2][y]
    expected[np.arange(N), y] = 0.0
    expected[np.arange(N), y] = -expected.sum(axis=1)
    kernel_rows, center = multiclass.Rows(*args), center.ravel()
    value = multiclass.envelope(kernel_rows, scores, center, weights, width, out)
    assert value == pytest.approx(weights @ rows, rel=1e-12)
    assert_allclose(out, expected, atol=1e-14)
    active = np.empty(N * K, np.uint8)
    multiclass.support(kernel_rows, scores, center, weights, width, 0.0, active)
    several = (b > 0).sum(axis=1, keepdims=True) > 1
    assert_array_equal(active.reshape(N, K), (b > 0) & several)


class Multilabel:
    """Rows with labels, some of none and of all, and twins of what kernels compute."""

    def __init__(self, threshold, n=N):
        rng = np.random.default_rng(0)
        self.k = K + threshold
        self.threshold = threshold
        self.scores, self.dscores = 1.5 * rng.standard_normal((2, n, self.k))
        self.weights = rng.random(n)
        self.relevant = rng.integers(0, 2, (n, K)).astype(np.uint8)
        self.relevant[:2] = [[0], [1]]
        self.costs = rng.random((2, K))
        self.center = rng.dirichlet(np.ones(K), n) * rng.random((n, 1))
        self.rows = multilabel.Rows(self.relevant, self.costs, self.k)
        # From a row of dual variables to one of scores: the derivatives of violations.
        signs = np.where(self.relevant > 0, -1.0, 1.0)
        self.maps = signs[:, :, np.newaxis] * np.eye(K, self.k)
        if threshold:
            self.maps[:, :, K] = -signs

    def violations(self, scores):
        base = np.where(self.relevant > 0, self.costs[1], self.costs[0])
        return base + np.einsum("ijk,ik->ij", self.maps, scores)

    def kinds(self, i):
        """Return the labels of both kinds whose largest violations make up the loss."""
        return [np.flatnonzero(self.relevant[i] == kind) for kind in (0, 1)]

    def dual(self, scores, growth=None):
        """Return 1 at the labels of the largest violations, if the loss is positive.

        Of ties that which grows fastest.
        """
        m, b = self.violations(scores), np.zeros(self.relevant.shape)
        for i in range(len(m)):
            kinds = self.kinds(i)
            tops = [m[i, kind].max(initial=-np.inf) for kind in kinds]
            for kind, top in zip(kinds, tops, strict=True):
                if (top if self.threshold else sum(tops)) > 0.0:
                    ties = kind[m[i, kind] == top]
                    order = np.zeros(len(ties)) if growth is None else growth[i, ties]
                    b[i, ties[np.argmax(order)]] = 1.0
        return b

    def smooth(self, scores, width):
        """Return b of the envelope by bisection, and the maximum of each row."""
        t = self.center + self.violations(scores) / width
        b = np.zeros_like(t)
        for i, row in enumerate(t):
            low, high = self.kinds(i)
            if self.threshold:
                for kind in (low, high):
                    b[i, kind] = np.maximum(row[kind], 0.0)
                    if b[i, kind].sum() > 1.0:
                        b[i, kind] = project(row[kind])
            elif len(low) and len(high):
                b[i, low], b[i, high] = project(row[low]), project(row[high])
                shifts = [
                    (row[kind] - b[i, kind])[b[i, kind] > 0.0].max()
                    for kind in (low, high)
                ]
                if sum(shifts) < 0.0:
                    ends = -row[high].max(), row[low].max()
                    b[i] = 0.0
                    if ends[0] < ends[1]:
                        x = optimize.brentq(
                            lambda x, row=row, low=low, high=high: (
                                np.maximum(row[low] - x, 0.0).sum()
                                - np.maximum(row[high] + x, 0.0).sum()
                            ),
                            *ends,
                            xtol=1e-15,
                        )
                        b[i, low] = np.maximum(row[low] - x, 0.0)
                        b[i, high] = np.maximum(row[high] + x, 0.0)
        rows = b * (t - self.center) * width - 0.5 * width * (b - self.center) ** 2
        return b, rows.sum(axis=1)

    def to_scores(self, b):
        return self.weights[:, np.newaxis] * np.einsum("ijk,ij->ik", self.maps, b)


each_threshold = pytest.mark.parametrize("threshold", [False, True])


@each_threshold
@pytest.mark.parametrize("n", [2, N])
def test_multilabel(threshold, n):
    p = Multilabel(threshold, n)
    b, m = p.dual(p.scores), p.violations(p.scores)
    value = multilabel.value(p.rows, p.scores, p.weights)
    assert value == pytest.approx(p.weights @ (b * m).sum(axis=1), rel=1e-13)
    u, steep = np.empty((2, n, p.k))
    multilabel.subgradient(p.rows, p.scores, None, p.weights, 1e-10, u)
    assert_allclose(u, p.to_scores(b), rtol=1e-14)
    multilabel.subgradient(p.rows, p.scores, p.dscores, p.weights, 1e-10, steep)
    assert_allclose(steep, u, rtol=1e-14)
    flags = np.empty(n, np.uint8)
    multilabel.kinks(p.rows, p.scores, 1e-10, flags)
    assert not flags.any()


@each_threshold
def test_multilabel_ties(threshold):
    p = Multilabel(threshold)
    # Multiples of a half: many violations are equal, and above zero.
    p.scores, p.costs = np.round(p.scores) / 2.0, np.full((2, K), 8.0)
    p.rows = multilabel.Rows(p.relevant, p.costs, p.k)
    growth = np.einsum("ijk,ik->ij", p.maps, p.dscores)
    steep, flags = np.empty((N, p.k)), np.empty(N, np.uint8)
    multilabel.subgradient(p.rows, p.scores, p.dscores, p.weights, 1e-10, steep)
    assert_allclose(steep, p.to_scores(p.dual(p.scores, growth)), rtol=1e-14)
    multilabel.kinks(p.rows, p.scores, 1e-10, flags)
    unlike = p.dual(p.scores, growth) != p.dual(p.scores, -growth)
    assert_array_equal(flags, unlike.any(axis=1))
    assert flags.any()


@each_threshold
def test_multilabel_on_a_line(threshold):
    p = Multilabel(threshold)
    kinks, jumps = np.empty((2, 20 * N))
    row, count, slope = multilabel.restrict(
        p.rows, p.scores, p.dscores, p.weights, 1e-10, 0, kinks, jumps
    )
    assert row == N
    for step in (0.0, 0.2, 0.9, 5.0):
        u = p.to_scores(p.dual(p.scores + step * p.dscores))
        passed = jumps[:count][kinks[:count] <= step].sum()
        assert slope + passed == pytest.approx(np.vdot(u, p.dscores), rel=1e-11)


@each_threshold
@pytest.mark.parametrize("width", [0.1, 3.0])
def test_multilabel_envelope(threshold, width):
    p = Multilabel(threshold)
    args = p.center.ravel(), p.weights, width
    b, rows = p.smooth(p.scores, width)
    out = np.empty((N, p.k))
    value = multilabel.envelope(p.rows, p.scores, *args, out)
    assert value == pytest.approx(p.weights @ rows, rel=1e-11)
    assert_allclose(out, p.to_scores(b), atol=1e-12)
    # Second derivatives by differences of the twin's gradient.
    groups, h = np.empty(N * K, np.uint8), 1e-6
    multilabel.support(p.rows, p.scores, *args, 0.0, groups)
    factors = p.weights / width
    matrices = np.empty((N, p.k, p.k))
    for j in range(p.k):
        ahead = p.scores + h * np.eye(p.k)[j]
        behind = p.scores - h * np.eye(p.k)[j]
        change = p.smooth(ahead, width)[0] - p.smooth(behind, width)[0]
        matrices[:, :, j] = p.to_scores(change) / (2.0 * h)
    product = p.dscores.copy()
    multilabel.apply_curvature(p.rows, groups, factors, product)
    expected = np.einsum("ijl,il->ij", matrices, p.dscores)
    assert_allclose(product, expected, atol=1e-5 / width)
    diagonal = np.empty((N, p.k))
    multilabel.curvature_diagonal(p.rows, groups, factors, diagonal)
    assert_allclose(diagonal, np.einsum("ijj->ij", matrices), atol=1e-5 / width)
    found, size = np.zeros((N, p.k * p.k)), N * p.k * p.k
    at, pairs, values = np.empty(size, np.intp), np.empty(size, np.intp), np.empty(size)
    _, count = multilabel.entries(p.rows, groups, factors, 0, at, pairs, values)
    found[at[:count], pairs[:count]] = values[:count]
    upper = np.triu(found.reshape(N, p.k, p.k))
    assert_allclose(upper, np.triu(matrices), atol=1e-5 / width)
    assert np.count_nonzero(upper) == count
    for step in (0.0, 0.4):
        at, moved = p.scores + step * p.dscores, h * p.dscores
        slope, curvature = multilabel.envelope_slope(
            p.rows, p.scores, p.dscores, *args, step
        )
        ahead, here, behind = (
            np.vdot(p.to_scores(p.smooth(at + c * moved, width)[0]), p.dscores)
            for c in (1.0, 0.0, -1.0)
        )
        assert slope == pytest.approx(here, rel=1e-10)
        assert curvature == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)


class Pairs:
    """Rows of labels with costs of pairs: lists of pairs, and what kernels take."""

    def __init__(self, n=N):
        rng = np.random.default_rng(0)
        self.scores, self.dscores = 1.5 * rng.standard_normal((2, n, K))
        self.weights = rng.random(n)
        self.relevant = rng.integers(0, 2, (n, K)).astype(np.uint8)
        self.relevant[:2] = [[0], [1]]
        self.costs = rng.random((K, K))
        self.rows = label_pairs.Rows(self.relevant, self.costs)
        self.pairs = [
            [(h, j) for h in range(K) for j in range(K) if row[h] > row[j]]
            for row in self.relevant
        ]
        self.starts = np.cumsum([0, *map(len, self.pairs)]).astype(np.intp)
        self.center = np.concatenate(
            [rng.dirichlet(np.ones(len(row) + 1))[:-1] for row in self.pairs]
        )

    def violations(self, i, scores):
        z = scores[i]
        return np.array([self.costs[h, j] + z[j] - z[h] for h, j in self.pairs[i]])

    def to_scores(self, rows):
        """Return the duals of scores that belong to rows of dual variables."""
        u = np.zeros(self.relevant.shape)
        for i, row in enumerate(rows):
            for (h, j), b in zip(self.pairs[i], row, strict=True):
                u[i, h] -= self.weights[i] * b
                u[i, j] += self.weights[i] * b
        return u

    def dual(self, scores):
        rows = []
        for i in range(len(scores)):
            m = self.violations(i, scores)
            rows.append((m == m.max(initial=0.0)).astype(float))
        return rows

    def smooth(self, scores, width):
        rows, values = [], []
        for i in range(len(scores)):
            c = self.center[self.starts[i] : self.starts[i + 1]]
            c = np.append(c, 1.0 - c.sum())
            m = np.append(self.violations(i, scores), 0.0)
            b = project(c + m / width)
            rows.append(b[:-1])
            values.append(b @ m - 0.5 * width * (b - c) @ (b - c))
        return rows, np.array(values)


def test_label_pairs():
    p = Pairs()
    losses = [p.violations(i, p.scores).max(initial=0.0) for i in range(N)]
    value = label_pairs.value(p.rows, p.scores, p.weights)
    assert value == pytest.approx(p.weights @ losses, rel=1e-13)
    u, flags = np.empty((N, K)), np.empty(N, np.uint8)
    label_pairs.subgradient(p.rows, p.scores, p.dscores, p.weights, 1e-10, u)
    assert_allclose(u, p.to_scores(p.dual(p.scores)), rtol=1e-14)
    label_pairs.kinks(p.rows, p.scores, 1e-10, flags)
    assert not flags.any()
    kinks, jumps = np.empty((2, 20 * N))
    row, count, slope = label_pairs.restrict(
        p.rows, p.scores, p.dscores, p.weights, 1e-10, 0, kinks, jumps
    )
    assert row == N
    for step in (0.0, 0.2, 0.9, 5.0):
        u = p.to_scores(p.dual(p.scores + step * p.dscores))
        passed = jumps[:count][kinks[:count] <= step].sum()
        assert slope + passed == pytest.approx(np.vdot(u, p.dscores), rel=1e-11)


@pytest.mark.parametrize("width", [0.1, 3.0])
def test_label_pairs_envelope(width):
    p = Pairs()
    args = p.center, p.weights, width
    rows, values = p.smooth(p.scores, width)
    out = np.empty((N, K))
    value = label_pairs.envelope(p.rows, p.scores, *args, out)
    assert value == pytest.approx(p.weights @ values, rel=1e-11)
    assert_allclose(out, p.to_scores(rows), atol=1e-12)
    codes = np.empty(len(p.center), np.uint8)
    label_pairs.support(p.rows, p.scores, *args, 0.0, codes)
    for row, mine in zip(rows, np.split(codes, p.starts[1:-1]), strict=True):
        # The rest is one more entry of group 4; alone, b cannot move.
        code = 4 if len(row) > 0 and row.sum() < 1.0 - 1e-12 else 1
        moves = code == 4 or np.count_nonzero(row) > 1
        assert_array_equal(mine, np.where(row > 0.0, code * moves, 0))
    h = 1e-6
    for step in (0.0, 0.4):
        at, moved = p.scores + step * p.dscores, h * p.dscores
        slope, curvature = label_pairs.envelope_slope(
            p.rows, p.scores, p.dscores, *args, step
        )
        ahead, here, behind = (
            np.vdot(p.to_scores(p.smooth(at + c * moved, width)[0]), p.dscores)
            for c in (1.0, 0.0, -1.0)
        )
        assert slope == pytest.approx(here, rel=1e-10)
        assert curvature == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_labels", [2, 5, 9])
def test_transport(n_labels, ties):
    """The best flows, by HiGHS."""
    rng = np.random.default_rng(n_labels)
    for _ in range(10):
        relevant = rng.integers(0, 2, n_labels).astype(np.uint8)
        relevant[:2] = 0, 1
        h, j = np.flatnonzero(relevant), np.flatnonzero(relevant == 0)
        costs = rng.random((n_labels, n_labels))
        if ties:
            costs = np.round(3.0 * costs)
        u = np.zeros(n_labels)
        u[h] = -rng.dirichlet(np.ones(len(h))) * rng.integers(1, 3)
        u[j] = -u[h].sum() * rng.dirichlet(np.full(len(j), 0.5))
        flows = np.empty(len(h) * len(j))
        rows = label_pairs.Rows(relevant[np.newaxis], costs)
        total = label_pairs.transport(rows, u[np.newaxis], flows)
        flows = flows.reshape(len(h), len(j))
        assert np.all(flows >= 0.0)
        assert_allclose(flows.sum(axis=1), -u[h], atol=1e-14)
        assert_allclose(flows.sum(axis=0), u[j], atol=1e-14)
        assert total == pytest.approx((flows * costs[np.ix_(h, j)]).sum(), rel=1e-13)
        ends = [np.kron(np.eye(len(h)), np.ones(len(j)))]
        ends.append(np.kron(np.ones(len(h)), np.eye(len(j))))
        best = optimize.linprog(
            -costs[np.ix_(h, j)].ravel(),
            A_eq=np.vstack(ends),
            b_eq=np.concatenate([flows.sum(axis=1), flows.sum(axis=0)]),
        )
        assert total == pytest.approx(-best.fun, rel=1e-9)


def ascent_problem(form, dtype, indices):
    rng = np.random.default_rng(3)
    X = sparse.random_array((N, D), density=0.4, rng=2, format="csr", dtype=dtype)
    dense = X.toarray()
    if form == "sparse":
        arrays = X.data, X.indices.astype(indices), X.indptr.astype(indices)
        sweep = multiclass.sweep_sparse
    else:
        arrays, sweep = (dense,), multiclass.sweep_dense
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
    offsets, rates = offsets_and_rates("margin")
    rows = multiclass.Rows(y, offsets, rates)
    b, w, intercept = np.eye(K)[y], np.zeros((D, K)), np.zeros(K)
    intercept[1] = 0.2
    mine_b, mine_w, mine_intercept = b.copy(), w.copy(), intercept.copy()
    gains, mine_gains = np.zeros(N), np.zeros(N)
    for seed in (1, 2, 3):
        order = np.arange(seed - 1, N, dtype=np.intp)
        args = steps, squares, intercept_step, seed, order, gains
        sweep(rows, *arrays, *args, b, w, intercept)
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


def test_multiclass_gaps():
    rng = np.random.default_rng(4)
    scores, weights = rng.standard_normal((N, K)), rng.random(N)
    y = rng.integers(0, K, N).astype(np.intp)
    b = rng.dirichlet(np.ones(K), N)
    offsets, rates = offsets_and_rates("margin")
    gaps = np.empty(N)
    multiclass.gaps(multiclass.Rows(y, offsets, rates), scores, weights, b, gaps)
    m = violations(scores, y, offsets, rates)
    expected = weights * (m.max(axis=1) - (b * m).sum(axis=1))
    assert_allclose(gaps, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("threshold", [False, True])
def test_multilabel_gaps(threshold):
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((N, K + threshold))
    relevant = (rng.random((N, K)) < 0.4).astype(np.uint8)
    relevant[:2] = [[0], [1]]
    costs, weights, b = rng.random((2, K)), rng.random(N), rng.random((N, K))
    gaps = np.empty(N)
    rows = multilabel.Rows(relevant, costs, K + threshold)
    multilabel.gaps(rows, scores, weights, b, gaps)
    m = scores[:, :K] - (scores[:, K:] if threshold else 0.0)
    m = np.where(relevant, costs[1] - m, costs[0] + m)
    for i in range(N):
        own = weights * (np.arange(N) == i)
        loss = multilabel.value(rows, scores, own)
        expected = loss - weights[i] * float(b[i] @ m[i])
        assert gaps[i] == pytest.approx(expected, rel=1e-12, abs=1e-14)


# Arrays by one letter each, s for numbers; rows are made of the first ones.
N_PAIRS = (K // 2) * (K - K // 2) * N
ARRAYS = {
    "z": np.ones((N, K)),
    "y": np.ones(N, np.intp),
    "o": np.ones((K, K)),
    "n": np.ones(N),
    "k": np.ones(K),
    "f": np.ones((N, K), np.uint8),
    "b": np.ones(N, np.uint8),
    "c": np.ones((2, K)),
    "m": np.ones(2 * K),
    "X": np.ones((N, D)),
    "w": np.ones((D, K)),
    "e": np.ones(2 * K * K),
    "i": np.ones(2 * K * K, np.intp),
    "p": np.arange(N),
    "F": np.tile(np.arange(K) % 2, (N, 1)).astype(np.uint8),
    "v": np.zeros(N * K),
    "a": np.zeros(N * K, np.uint8),
    "V": np.zeros(N_PAIRS),
    "A": np.zeros(N_PAIRS, np.uint8),
}
TRIPS = [
    ("value", "zn"),
    ("subgradient", "zznsz"),
    ("kinks", "zsb"),
    ("restrict", "zzns0mm"),
    ("envelope", "zvnsz"),
    ("envelope_slope", "zzvnss"),
    ("support", "zvnssa"),
    ("apply_curvature", "anz"),
    ("curvature_diagonal", "anz"),
    ("entries", "an0iie"),
]
ASCENT = [("sweep_dense", "Xnns1pnzwk"), ("gaps", "znzn")]
OF_PAIRS = str.maketrans("va", "VA")


def with_rows(module, name, n_arrays, *numbers):
    """Return a kernel that takes the arrays that its rows are made of."""

    def kernel(*arguments):
        rows = module.Rows(*arguments[:n_arrays], *numbers)
        return getattr(module, name)(rows, *arguments[n_arrays:])

    kernel.__name__ = f"{module.__name__.rpartition('.')[2]}-{name}"
    return kernel


PARAMETERS = [
    *((with_rows(multiclass, name, 3), "yoo" + k) for name, k in TRIPS + ASCENT),
    (with_rows(multiclass, "conjugate", 3), "yoozo"),
    *((with_rows(multilabel, name, 2, K), "fc" + k) for name, k in TRIPS + ASCENT),
    *(
        (with_rows(label_pairs, name, 2), "Fo" + k.translate(OF_PAIRS))
        for name, k in TRIPS
    ),
    (with_rows(label_pairs, "transport", 2), "FozV"),
]
each_array = pytest.mark.parametrize(
    ("kernel", "kinds", "place"),
    [
        pytest.param(kernel, kinds, i, id=f"{kernel.__name__}-{i}")
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
        if "y" in kinds:
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
    rows = multiclass.Rows(y, *offsets_and_rates("margin"))
    args = steps, squares, 0.0, 1, np.arange(N), np.zeros(N)
    with pytest.raises(ValueError, match=r"instead of|differ in length"):
        sweep(rows, *arrays, *args, np.eye(K)[y], np.zeros((D, K)), np.zeros(K))
