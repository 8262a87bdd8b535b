"""The linear map from parameters to scores: one result for every container."""

import numpy as np
import pytest
from _door import Design, SomeRows, divide_rows_for_threads
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn._core.rows import linear_map, second_moments
from sklearn_subqn._core.rows.column_maps import InPlace
from sklearn_subqn._core.rows.columns import MatrixColumns
from sklearn_subqn._core.rows.row_views import array_of, columns_of


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Threads take part however small the data."""
    divide_rows_for_threads(monkeypatch, 1)


def sparse_data(seed=0, n=23, d=7):
    """Matrix with empty rows and columns, of numbers that float32 holds exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(n, d)) / 4.0
    X[rng.random((n, d)) < 0.6] = 0.0
    X[3], X[:, 2] = 0.0, 0.0
    return X


def wide_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def mixed_indices(X):
    X = sparse.csr_array(X)
    X.indptr = X.indptr.astype(np.int64)
    return X


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def divided(X):
    """Return rows whose columns are divided when they are used."""
    sizes = 2.0 ** (np.arange(X.shape[1]) % 3 - 1)
    return SomeRows(X * sizes, range(len(X)), sizes=sizes)


CONTAINERS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": read_only,
    "float32": lambda X: X.astype(np.float32),
    "divided": divided,
    "divided Fortran": lambda X: divided(np.asfortranarray(X)),
    "divided float32": lambda X: divided(X.astype(np.float32)),
    "float32 Fortran": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "float32 CSR": lambda X: sparse.csr_array(X.astype(np.float32)),
    "int64 indices": wide_indices,
    "mixed indices": mixed_indices,
}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("container", CONTAINERS)
def test_products_are_those_of_the_dense_matrix(
    container, n_threads, n_outputs, fit_intercept
):
    X = sparse_data()
    design = Design(
        CONTAINERS[container](X),
        fit_intercept=fit_intercept,
        n_outputs=n_outputs,
        n_threads=n_threads,
    )
    k = n_outputs or 1
    assert design.n_coef == 7 * k
    assert design.n_params == (7 + fit_intercept) * k
    rng = np.random.default_rng(1)
    w = rng.normal(size=design.n_params)
    shape = (23,) if n_outputs is None else (23, k)
    u = rng.normal(size=shape)
    columns = np.column_stack([X, np.ones(23)]) if fit_intercept else X
    W = w.reshape(-1, k)
    assert_allclose(design.forward(w), (columns @ W).reshape(shape), atol=1e-14)
    expected = (columns.T @ u.reshape(-1, k)).ravel()
    assert_allclose(design.adjoint(u), expected, atol=1e-14)
    u[rng.permutation(23)[:19]] = 0.0
    expected = (columns.T @ u.reshape(-1, k)).ravel()
    assert_allclose(design.adjoint(u), expected, atol=1e-14)


@EXPLORE
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    n_outputs=st.sampled_from([None, 1, 2, 3, 9]),
    fit_intercept=st.booleans(),
    n_threads=st.integers(1, 3),
    container=st.sampled_from(sorted(CONTAINERS)),
    share=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_adjoint(n, d, n_outputs, fit_intercept, n_threads, container, share):
    rng = np.random.default_rng(n + 100 * d)
    X = CONTAINERS[container](rng.integers(-8, 9, size=(n, d)) / 4.0)
    design = Design(
        X, fit_intercept=fit_intercept, n_outputs=n_outputs, n_threads=n_threads
    )
    w = rng.normal(size=design.n_params)
    z = design.forward(w)
    u = rng.normal(size=z.shape) * (rng.random(n) <= share).reshape(
        -1, *[1] * (z.ndim - 1)
    )
    assert np.vdot(z, u) == pytest.approx(design.adjoint(u) @ w, abs=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("container", CONTAINERS)
def test_weighted_products_of_columns(container, n_threads, fit_intercept, monkeypatch):
    # Blocks of a few rows.
    monkeypatch.setattr(second_moments, "COPY_SIZE", 37)
    X = sparse_data()
    design = Design(
        CONTAINERS[container](X), fit_intercept=fit_intercept, n_threads=n_threads
    )
    weights = np.random.default_rng(4).random(23)
    columns = np.column_stack([X, np.ones(23)]) if fit_intercept else X
    expected = columns.T @ (weights[:, np.newaxis] * columns)
    assert_allclose(design.gram(weights), expected, atol=1e-13)
    assert_allclose(design.squared_adjoint(weights), np.diag(expected), atol=1e-13)
    assert design.passes == 2.0


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_sparse_data(dtype, n_threads):
    rng = np.random.default_rng(2)
    # The third column holds most entries, and the last two none.
    X = (sparse_data() * ([1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0])).astype(dtype)
    X[:, 2] = rng.normal(size=23)
    design = Design(sparse.csr_array(X), fit_intercept=False, n_threads=n_threads)
    by_columns = design.by_columns
    assert by_columns.has_canonical_format
    assert_array_equal(by_columns.toarray(), X)
    w = rng.normal(size=7) * (np.arange(7) != 3)
    assert_allclose(design.forward(w), X @ w, atol=1e-6)

    which, scales, kept = np.array([1, 2, 4, 6]), rng.random(23), rng.random(23) < 0.7
    columns = MatrixColumns(design, which)
    arrays, (squares, lost) = columns.scaled(scales, kept)
    indptr, indices, values = arrays
    expected = scales[:, np.newaxis] * X[:, which]
    shape = int(kept.sum()), 4
    assert indptr.dtype == design.X.indices.dtype
    assert indices.dtype == np.uint16
    made = sparse.csc_array((values, indices, indptr), shape).toarray()
    assert_allclose(made, expected[kept], rtol=1e-6)
    assert_allclose(squares, (expected[kept] ** 2).sum(axis=0), rtol=1e-6)
    assert_allclose(lost, (expected[~kept] ** 2).sum(axis=0), atol=1e-6)
    assert values.dtype == np.float32
    for size in (1e-30, 1e35):
        # Single precision has neither of them.
        far, (squares, _) = columns.scaled(size * scales, kept)
        assert far[2].dtype == np.float64
        far = sparse.csc_array((far[2], far[1], far[0]), shape).toarray()
        assert_allclose(far, size * expected[kept], rtol=1e-6)
        assert_allclose(squares, ((size * expected[kept]) ** 2).sum(axis=0), rtol=1e-6)

    some, x, y = np.array([0, 2, 3]), rng.normal(size=3), rng.normal(size=shape[0])
    in_place = InPlace(design, arrays, some, shape[0])
    assert_allclose(in_place.forward(x), made[:, some] @ x, atol=1e-12)
    assert_allclose(in_place.adjoint(y), made[:, some].T @ y, atol=1e-12)


@pytest.mark.parametrize("n_left_out", [0, 1, 2])
def test_indices_of_many_rows(n_left_out):
    # One row more than indices of two bytes can distinguish from one that is left out.
    n = 2**16 + 1
    X = sparse.random(n, 3, 0.1, format="csr", random_state=0) + sparse.eye(n, 3)
    X = sparse.csr_array(X)
    kept = np.arange(n) >= n_left_out
    columns = MatrixColumns(Design(X, fit_intercept=False), np.arange(3))
    (indptr, indices, values), (squares, lost) = columns.scaled(np.ones(n), kept)
    assert (indices.dtype == np.uint16) == (n - n_left_out < 2**16)
    made = sparse.csc_array((values, indices, indptr), (n - n_left_out, 3))
    assert_allclose(made.toarray(), X.toarray()[kept], rtol=1e-6)
    assert_allclose(squares + lost, (X.toarray() ** 2).sum(axis=0))
    assert np.count_nonzero(lost > 1e-9) == n_left_out


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("container", CONTAINERS)
def test_products_of_some_columns(container, n_threads, monkeypatch):
    # Blocks of a few rows.
    monkeypatch.setattr("sklearn_subqn._core.rows.columns.BLOCK_SIZE", 12)
    X, which = sparse_data(), np.array([0, 2, 5])
    design = Design(CONTAINERS[container](X), fit_intercept=False, n_threads=n_threads)
    columns, weights = MatrixColumns(design, which), np.random.default_rng(4).random(23)
    A = X[:, which]
    mean = weights @ A / weights.sum()
    assert_allclose(columns.gram(weights, np.zeros(3)), (A.T * weights) @ A, atol=1e-13)
    less = A - mean
    assert_allclose(columns.gram(weights, mean), (less.T * weights) @ less, atol=1e-13)
    if not design.is_sparse:
        assert_allclose(columns.forward(np.arange(3.0)), A @ np.arange(3.0), atol=1e-13)


def test_products_of_columns_cost_the_rows_that_are_used():
    X = sparse_data()
    X[:, 2:] = 0.0
    design = Design(sparse.csr_array(X))
    assert design.multiplies_pairs
    weights = np.zeros(23)
    weights[5:9] = [0.5, 0.0, 2.0, 1.0]
    expected = design.rows(np.array([5, 7, 8])).gram(weights[[5, 7, 8]])
    assert_allclose(design.gram(weights), expected, atol=1e-14)
    assert design.passes == pytest.approx(3 / 23)


class CountingPool:
    """Does the work of a pool of threads by itself, and counts the parts."""

    def __init__(self):
        self.n_parts = []

    def map(self, function, parts):
        self.n_parts.append(len(parts))
        return map(function, parts)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_parts_are_as_many_as_threads_but_not_small(convert, monkeypatch):
    def parts_of_a_product(rows=slice(None)):
        pool = CountingPool()
        Design(convert(np.ones((20, 4))[rows]), n_threads=3, pool=pool).forward(
            np.ones(5)
        )
        return pool.n_parts

    assert parts_of_a_product() == [3]
    assert parts_of_a_product(slice(2)) == [2]
    divide_rows_for_threads(monkeypatch, 40)
    assert parts_of_a_product() == [2]
    divide_rows_for_threads(monkeypatch, 41)
    assert parts_of_a_product() == []


def test_subsets_share_the_threads():
    pool = CountingPool()
    design = Design(sparse_data(), n_threads=3, pool=pool)
    subset = design.rows(np.arange(4))
    for product in (subset.forward, subset.adjoint, subset.gram):
        product(np.ones(8 if product == subset.forward else 4))
    assert pool.n_parts == [3, 3, 3]
    u = np.zeros(23)
    u[:2] = 1.0
    design.adjoint(u)
    assert pool.n_parts == [3, 3, 3, 2]


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("container", CONTAINERS)
def test_products_with_some_rows(container, n_threads, copy, monkeypatch):
    # Blocks of a few rows.
    monkeypatch.setattr(linear_map, "BLOCK_SIZE", 37)
    monkeypatch.setattr(second_moments, "BLOCK_SIZE", 37)
    X, rows = sparse_data(), np.array([1, 2, 5, 7, 8, 13, 22])
    design = Design(CONTAINERS[container](X), n_threads=n_threads)
    subset = design.rows(rows, copy=copy)
    whole = Design(X[rows])
    rng = np.random.default_rng(5)
    w, u = rng.normal(size=design.n_params), rng.random(len(rows))
    assert_allclose(subset.forward(w), whole.forward(w), atol=1e-14)
    assert_allclose(subset.adjoint(u), whole.adjoint(u), atol=1e-14)
    assert_allclose(subset.gram(u), whole.gram(u), atol=1e-13)
    assert_allclose(subset.squared_adjoint(u), whole.squared_adjoint(u), atol=1e-13)
    none = design.rows(np.array([], dtype=int), copy=copy)
    assert_array_equal(none.gram(np.empty(0)), np.zeros(2 * [design.n_params]))
    assert_array_equal(none.adjoint(np.empty(0)), np.zeros(design.n_params))


def test_sums_of_float32_data_are_those_of_float64():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5000, 20)).astype(np.float32)
    w, u = rng.normal(size=20), rng.normal(size=5000)
    for convert in (np.asarray, sparse.csr_array):
        design = Design(convert(X), fit_intercept=False)
        assert_allclose(design.forward(w), X.astype(float) @ w, rtol=1e-12, atol=1e-12)
        assert_allclose(design.adjoint(u), X.astype(float).T @ u, rtol=1e-11)


def test_parameters_are_split_into_views():
    design = Design(sparse_data(), n_outputs=3)
    w = np.arange(24.0)
    coef, intercept = design.split(w)
    assert coef.base is w
    assert_array_equal(coef[1], [3.0, 4.0, 5.0])
    assert_array_equal(intercept, [21.0, 22.0, 23.0])
    coef, intercept = Design(sparse_data(), fit_intercept=True).split(w[:8])
    assert (coef.shape, intercept) == ((7,), 7.0)
    assert Design(sparse_data(), fit_intercept=False).split(w[:7])[1] == 0.0


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_passes_are_products_with_all_entries(convert):
    X = np.ones((20, 4))
    X[10:, 1:] = 0.0
    design = Design(convert(X))
    assert design.passes == 0.0
    design.forward(np.ones(5))
    assert design.passes == 1.0
    design.adjoint(np.ones(20))
    assert design.passes == 2.0
    u = np.zeros(20)
    u[:2] = 1.0
    design.adjoint(u)
    # Two full rows: of 80 entries, or of the 50 that a sparse matrix stores.
    share = 8.0 / (50.0 if sparse.issparse(convert(X)) else 80.0)
    assert design.passes == pytest.approx(2.0 + share)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("container", ["csr_array", "float32 CSR", "int64 indices"])
def test_products_with_parameters_of_which_some_vanish(container, fit_intercept):
    X = sparse_data()
    w = np.random.default_rng(0).normal(size=7 + fit_intercept)
    w[[0, 2, 3, 6]] = 0.0
    expected = X @ w[:7] + (w[7] if fit_intercept else 0.0)
    design = Design(CONTAINERS[container](X), fit_intercept=fit_intercept)
    assert_allclose(design.forward(w), expected, atol=1e-14)
    assert design.passes == 1.0
    # Columns are there once they have been asked for.
    MatrixColumns(design, np.arange(7)).take(np.arange(2))
    assert_allclose(design.forward(w), expected, atol=1e-14)
    assert design.passes == 2.0


def test_cost_of_products_of_columns_is_that_of_pairs_of_their_entries():
    X = np.zeros((40, 10))
    X[:, :2] = 1.0
    X[np.arange(40), 2 + np.arange(40) % 8] = 1.0
    sparse_design = Design(sparse.csr_array(X))
    # Half of the pairs of two entries in each row, in units of its three entries.
    assert sparse_design.gram_cost(np.arange(2)) == pytest.approx(2.0 / 3.0)
    assert sparse_design.gram_cost(np.arange(2, 6)) == pytest.approx(0.25 / 6.0)
    assert Design(X).gram_cost(np.arange(6)) == pytest.approx(0.3)


def test_passes_of_subsets_count_when_they_are_told():
    design = Design(np.ones((20, 4)))
    subset = design.rows(np.array([1, 3, 5]))
    subset.forward(np.ones(5))
    subset.adjoint(np.ones(3))
    assert design.passes == 0.0
    design.count(subset, 2.0)
    assert design.passes == pytest.approx(2.0 * 3.0 / 20.0)


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows(container):
    X = sparse_data()
    rows = np.array([5, 0, 22, 5])
    subset = Design(CONTAINERS[container](X), n_outputs=2).rows(rows)
    w = np.random.default_rng(3).normal(size=16)
    expected = X[rows] @ w[:14].reshape(7, 2) + w[14:]
    assert_allclose(subset.forward(w), expected, atol=1e-14)
    assert subset.n_rows == 4


@pytest.mark.parametrize("part", [[-1, 0, -3], np.arange(6) % 2 == 0, slice(1, 5, 2)])
def test_rows_and_columns_are_selected_as_numpy_does(part):
    X = np.random.default_rng(0).normal(size=(13, 6))
    part = part if isinstance(part, slice) else np.array(part)
    for rows in (range(1, 13, 2), np.arange(1, 13, 2)):
        some = SomeRows(X, rows)[part]
        assert_array_equal(some.copy(), X[rows][part])
        assert_array_equal(columns_of(SomeRows(X, rows), part), X[rows][:, part])
    for stored in (X, np.asfortranarray(X), sparse.csr_array(X)):
        assert_array_equal(array_of(columns_of(stored, part)), X[:, part])


def test_rows_that_do_not_exist_are_refused():
    X = np.zeros((5, 3))
    with pytest.raises(IndexError):
        SomeRows(X, range(5))[np.array([5])].copy()
    with pytest.raises(IndexError):
        columns_of(X, np.array([3]))


@pytest.mark.parametrize("n", [5, 23])
@pytest.mark.parametrize("container", CONTAINERS)
def test_products_of_rows_with_each_other(container, n, monkeypatch):
    monkeypatch.setattr("sklearn_subqn._core.rows.row_views.COPY_SIZE", 8)
    X = sparse_data(n=n)
    design = Design(CONTAINERS[container](X))
    rows = np.array([4, 0, 3])
    expected = X[rows] @ X[rows].T
    for _ in range(2):
        assert_allclose(design.row_gram(rows), expected, atol=1e-14)


def test_products_of_all_rows_are_kept_where_rows_are_few():
    X = sparse_data(n=5)
    few, many = Design(X), Design(np.vstack([X] * 10))
    rows = np.arange(3)
    few.row_gram(rows)[:] = np.nan
    few.row_gram(rows)
    assert few.passes == 1.0
    assert np.all(np.isfinite(few.row_gram(rows)))
    many.row_gram(rows)
    many.row_gram(rows)
    assert many.passes == pytest.approx(2.0 * 3 / 50)


def test_data_is_not_copied():
    X = np.ones((50, 3))
    design = Design(X)
    X[7] = 5.0
    assert design.forward(np.ones(4))[7] == 16.0
    csr = sparse.csr_array(np.ones((50, 3)))
    design = Design(csr, n_threads=2)
    csr.data[-3:] = 5.0
    assert design.forward(np.ones(4))[-1] == 16.0


def test_size_in_bytes_is_that_of_the_arrays():
    X = sparse_data()
    assert Design(X).nbytes == X.nbytes
    csr = sparse.csr_array(X)
    arrays = csr.data, csr.indices, csr.indptr
    assert Design(csr).nbytes == sum(array.nbytes for array in arrays)
    # Wide index arrays are narrowed where the size allows it.
    assert Design(wide_indices(X)).nbytes == Design(csr).nbytes


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_features(convert, dtype):
    design = Design(convert(np.empty((4, 0), dtype=dtype)), n_threads=2)
    assert_array_equal(design.forward(np.array([3.0])), [3.0] * 4)
    assert_array_equal(design.adjoint(np.ones(4)), [4.0])


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array, np.float32])
def test_mean_square_of_rows(convert):
    X = sparse_data()
    expected = (X**2).sum() / len(X)
    assert Design(convert(X)).mean_square == pytest.approx(expected, rel=1e-12)


def test_mean_square_of_a_part_of_the_rows():
    """The estimate is exact for rows of the same size."""
    X = np.random.default_rng(0).random((1100, 2000), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert Design(X).mean_square == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_in_either_order_are_the_same(order, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3000)).astype(dtype)
    weights, which = rng.random(40), np.array([2, 5, 11, 2999])
    design = Design(np.array(X, order=order), fit_intercept=False)
    squares = np.square(X, dtype=np.float64).T @ weights
    assert_allclose(design.mean_squares(weights), squares)
    block = MatrixColumns(design, which).block
    assert_array_equal(block, X[:, which])
    # Columns that lie apart stay so, which takes a tenth of the time.
    assert block.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize("n_outputs", [None, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_products_through_scores_are_both_products(
    n_outputs, fit_intercept, n_threads, monkeypatch
):
    monkeypatch.setattr(linear_map, "BLOCK_SIZE", 100)
    divide_rows_for_threads(monkeypatch, 50)
    rng = np.random.default_rng(5)
    design = Design(
        rng.normal(size=(57, 6)),
        n_outputs=n_outputs,
        fit_intercept=fit_intercept,
        n_threads=n_threads,
    )
    assert design.is_plain
    w = rng.normal(size=design.n_params)
    factors = rng.random(design.zero_scores().shape)
    product = design.through(w, lambda rows, scores: factors[rows] * scores)
    assert design.passes == 2.0
    expected = design.adjoint(factors * design.forward(w))
    assert_allclose(product, expected, rtol=1e-12)
