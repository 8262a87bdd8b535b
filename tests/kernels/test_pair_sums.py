"""The kernel of sums over pairs against its NumPy twin, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn._core.kernels import pair_products, pair_sums

K, MARGIN = 4, 0.8


class Data:
    """Rows of groups, what their pairs cost, and all pairs as matrices."""

    def __init__(self, kind="constant", n=60, n_groups=3):
        rng = np.random.default_rng(0)
        self.codes = rng.integers(0, n_groups, n)
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(self.codes))])
        self.scores = np.round(2.0 * rng.normal(size=n), 1)
        self.order = np.lexsort((self.scores, self.codes))
        self.levels = rng.integers(0, K, n)
        self.weights, self.factors = rng.random(n), rng.random(n)
        self.values, self.costs = np.empty(0), np.empty((0, 0))
        cost = np.ones((K, K))
        if kind == "difference":
            self.values = np.sort(rng.normal(size=K))
            cost = self.values - self.values[:, np.newaxis]
        elif kind == "table":
            self.costs = cost = rng.random((K, K))
        same = self.codes[:, np.newaxis] == self.codes
        self.less = same & (self.levels[:, np.newaxis] < self.levels)
        self.m = MARGIN + self.scores[:, np.newaxis] - self.scores
        cost = cost[self.levels][:, self.levels] * self.less
        self.active = np.where(self.m > 0.0, cost, 0.0)
        self.rows = self.scores, self.order, self.starts, self.levels
        self.rows += self.values, self.costs

    def room(self, n_sums):
        return np.zeros((K + 1, 2 * n_sums + 1))


each_kind = pytest.mark.parametrize("kind", ["constant", "difference", "table"])


def test_shares():
    data, out, sums = Data(), np.empty(3), np.zeros((K + 1, 2))
    pair_sums.shares(data.order, data.starts, data.levels, data.weights, sums, out)
    products = data.less * data.weights[:, np.newaxis] * data.weights
    for g in range(3):
        rows = data.codes == g
        pairs = products[np.ix_(rows, rows)].sum()
        assert out[g] == pytest.approx(data.weights[rows].sum() / pairs, rel=1e-13)
    assert not sums.any()


@each_kind
def test_moments(kind):
    data, sums = Data(kind), np.zeros((K + 1, 7))
    for higher in (False, True):
        out = np.empty((3, 60))
        pair_sums.moments(*data.rows, data.weights, MARGIN, higher, sums, out)
        active, m = (data.active.T, data.m.T) if higher else (data.active, data.m)
        for power in range(3):
            expected = (active * m**power) @ data.weights
            assert_allclose(out[power], expected, rtol=1e-12, atol=1e-13)
        assert not sums.any()


@each_kind
def test_slope(kind):
    data, d = Data(kind), np.random.default_rng(1).normal(size=60)
    found = pair_sums.slope(
        data.scores, d, *data.rows[1:], data.weights, data.factors, MARGIN, data.room(5)
    )
    masses = data.active * data.factors[:, np.newaxis] * data.weights
    dm = d[:, np.newaxis] - d
    assert_allclose(found, [(masses * data.m * dm).sum(), (masses * dm**2).sum()])


@each_kind
@pytest.mark.parametrize("width", [0.85, np.inf])
def test_products_and_crossed(kind, width):
    data, rng = Data(kind), np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.5)
    S, places = sparse.csr_array(X), np.arange(60)
    places[::3] = -1
    for higher in (False, True):
        active, m = (data.active.T, data.m.T) if higher else (data.active, data.m)
        expected = np.where(m <= width, active, 0.0) @ (data.weights[:, np.newaxis] * X)
        out, sums = np.ones((60, 5)), data.room(5)
        pair_products.products(
            *data.rows, X, data.weights, MARGIN, width, higher, places, 2.0, sums, out
        )
        expected[::3] = 0.0
        assert_allclose(out, 1.0 + 2.0 * expected, rtol=1e-12, atol=1e-12)
        factors = np.where(places < 0, 0.0, data.factors)
        matrix = np.ones((5, 5))
        arrays = S.indptr.astype(np.int32), S.indices.astype(np.int32), S.data
        rows = *data.rows, data.weights, factors, MARGIN, width, higher
        pair_products.crossed(*rows, *arrays, sums, matrix)
        crossed = X.T @ (factors[:, np.newaxis] * expected)
        assert_allclose(matrix, 1.0 + crossed, rtol=1e-12, atol=1e-12)
        assert not sums.any()


@pytest.mark.parametrize("n_groups", [1, 2])
def test_no_rows(n_groups):
    none, starts = np.empty(0, dtype=np.intp), np.zeros(n_groups + 1, dtype=np.intp)
    rows = np.empty(0), none, starts, none, np.empty(0), np.empty((0, 0))
    out = np.empty((3, 0))
    pair_sums.moments(*rows, np.empty(0), 1.0, True, np.zeros((3, 7)), out)


def arguments(kernel):
    """Return what a kernel accepts, by name."""
    data = Data("table")
    rows = dict(
        zip(
            ("scores", "order", "starts", "levels", "values", "costs"),
            data.rows,
            strict=True,
        )
    )
    rows["values"] = np.arange(float(K))
    weights = {"weights": data.weights}
    if kernel is pair_sums.shares:
        names = ("order", "starts", "levels")
        sums = {"sums": np.zeros((K + 1, 2)), "out": np.empty(3)}
        return {name: rows[name] for name in names} | weights | sums
    if kernel is pair_sums.moments:
        given = weights | {"margin": 1.0, "higher": True}
        return rows | given | {"sums": data.room(3), "out": np.empty((3, 60))}
    if kernel is pair_sums.slope:
        given = {"scores": rows.pop("scores"), "dscores": np.ones(60)} | rows
        given |= weights | {"factors": data.factors, "margin": 1.0}
        return given | {"sums": data.room(5)}
    if kernel is pair_products.products:
        given = {"terms": np.ones((60, 2))} | weights | {"margin": 1.0, "width": 0.5}
        given |= {"higher": True, "places": np.arange(60), "factor": 1.0}
        return rows | given | {"sums": data.room(2), "out": np.zeros((60, 2))}
    given = weights | {"factors": data.factors, "margin": 1.0, "width": np.inf}
    given |= {"higher": False, "indptr": np.arange(61, dtype=np.int32)}
    given |= {"indices": np.zeros(60, dtype=np.int32), "data": np.ones(60)}
    return rows | given | {"sums": data.room(2), "out": np.zeros((2, 2))}


KERNELS = [
    pair_sums.shares,
    pair_sums.moments,
    pair_sums.slope,
    pair_products.products,
    pair_products.crossed,
]
ARRAYS = [
    (kernel, name)
    for kernel in KERNELS
    for name, value in arguments(kernel).items()
    if isinstance(value, np.ndarray)
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_are_only_read(kernel):
    given = arguments(kernel)
    for name, value in given.items():
        if isinstance(value, np.ndarray) and name not in ("out", "sums"):
            value.flags.writeable = False
    kernel(*given.values())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_lengths(kernel, name):
    given = arguments(kernel)
    given[name] = given[name][:1].copy()
    with pytest.raises(ValueError, match=r"must|differ in length"):
        kernel(*given.values())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_types(kernel, name):
    given = arguments(kernel)
    given[name] = given[name].astype(np.float32)
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        kernel(*given.values())


@pytest.mark.parametrize(
    ("kernel", "name", "wrong"),
    [
        (pair_sums.moments, "order", 60),
        (pair_sums.moments, "order", -1),
        (pair_sums.moments, "levels", K),
        (pair_sums.slope, "levels", -1),
        (pair_sums.slope, "starts", 99),
        (pair_sums.shares, "starts", -5),
        (pair_products.products, "places", 60),
        (pair_products.crossed, "indices", 2),
        (pair_products.crossed, "indices", -1),
        (pair_products.crossed, "indptr", 9),
    ],
)
def test_wrong_numbers(kernel, name, wrong):
    given = arguments(kernel)
    given[name] = given[name].copy()
    given[name][1] = wrong
    with pytest.raises(ValueError, match="must"):
        kernel(*given.values())
