"""Groups of equal rows, compared with a search by dictionaries of bytes."""

import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_subqn._core.kernels import equal_rows as kernel
from sklearn_subqn._core.rows import equal_rows
from sklearn_subqn._core.rows.equal_rows import EqualRows

N = 6000


def by_dictionary(X, targets):
    """Return the group of each row, and the first row of each group."""
    dense = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)
    numbers, groups, first = {}, [], []
    for i, row in enumerate(dense):
        key = row.tobytes(), *(target[i].tobytes() for target in targets)
        if key not in numbers:
            first.append(i)
        groups.append(numbers.setdefault(key, len(numbers)))
    return groups, first


def data(kind, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 3, size=(N, 4)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = 0.0
    if kind == "csr":
        return sparse.csr_matrix(X)
    return np.asfortranarray(X) if kind == "columns" else X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["rows", "columns", "csr"])
def test_groups_are_the_ones_of_a_dictionary(kind, dtype):
    X, rng = data(kind, dtype), np.random.default_rng(1)
    targets = [
        rng.choice([-1.0, 1.0], size=N),
        rng.integers(2, size=(N, 3)).astype(np.uint8),
    ]
    found = EqualRows.of(X, targets)
    groups, first = by_dictionary(X, targets)
    assert_array_equal(found.groups, groups)
    assert_array_equal(found.first, first)


def test_long_indices_and_rows_without_entries():
    X = data("csr", np.float64)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert np.any(np.diff(X.indptr) == 0)
    found = EqualRows.of(X, [])
    assert_array_equal(found.groups, by_dictionary(X, [])[0])
    empty = EqualRows.of(sparse.csr_matrix((N, 3)), [np.ones(N)])
    assert_array_equal(empty.first, [0])


@pytest.mark.parametrize("where", ["X", "targets", "few of X"])
def test_distinct_rows_are_left_as_they_are(where):
    X, y = np.zeros((N, 2)), np.zeros(N)
    if where == "X":
        X[:, 1] = np.arange(N)
    elif where == "targets":
        y = np.arange(float(N))
    else:
        # The sample has equal rows, but fewer than half of all rows are repeated.
        X[: N - N // 3, 1] = np.arange(N - N // 3)
        rng = np.random.default_rng(0)
        X = X[rng.permutation(N)]
    assert EqualRows.of(X, [y]) is None


def test_rows_are_compared_where_their_hashes_agree():
    """As if the hashes of different rows were equal."""
    bytes_of = np.arange(4, dtype=np.float64).view(np.uint8)
    groups, first = np.zeros(4, dtype=np.intp), np.zeros(1, dtype=np.intp)
    bounds = np.arange(5)
    assert not kernel.are_equal(bytes_of, bounds, 8, groups, first)
    assert kernel.are_equal(bytes_of, bounds, 8, np.arange(4), np.arange(4))
    # One row is the beginning of another.
    some = np.zeros(3), np.array([0, 1, 3]), 8
    some = some[0].view(np.uint8), *some[1:]
    assert not kernel.are_equal(*some, np.zeros(2, np.intp), first)


def test_hashes_depend_on_each_byte_and_on_the_length():
    rng = np.random.default_rng(0)
    for length in (1, 4, 7, 8, 12, 20):
        row = rng.integers(256, size=length, dtype=np.uint8)
        changed = np.tile(row, (length + 1, 1))
        changed[np.arange(length), np.arange(length)] ^= 1
        hashes = np.zeros(length + 1, dtype=np.uint64)
        bounds = np.arange(length + 2) * length
        kernel.add_to_hashes(changed.ravel(), bounds, 1, hashes)
        assert len(set(hashes.tolist())) == length + 1
    hashes = np.zeros(9, dtype=np.uint64)
    bounds = np.cumsum(np.arange(10))
    kernel.add_to_hashes(np.zeros(45, np.uint8), bounds, 1, hashes)
    assert len(set(hashes.tolist())) == 9


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("decades", [0, 30])
def test_sums_have_no_rounding_errors(decades, n_groups):
    """One number many times has rounding errors of one sign, which add up."""
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=100_000)
    x = 10.0 ** -rng.uniform(0, decades, size=len(groups))
    x /= x.sum()
    found = EqualRows(groups, np.arange(n_groups)).sums(x)
    exact = [math.fsum(x[groups == group]) for group in range(n_groups)]
    np.testing.assert_allclose(found, exact, rtol=1e-15)


@pytest.mark.parametrize("times", [3, 10])
@pytest.mark.parametrize("order", ["neighbors", "equal distances", "random"])
def test_equal_rows_are_found_in_any_order(order, times):
    rows = np.repeat(np.arange(N // times), times)
    if order == "equal distances":
        rows = np.tile(np.arange(N // times), times)
    elif order == "random":
        rows = np.random.default_rng(1).permutation(rows)
    X = np.random.default_rng(0).normal(size=(N // times, 5))[rows]
    assert len(EqualRows.of(X, []).first) == N // times


def test_distinct_rows_are_not_all_compared_after_equal_first_columns(monkeypatch):
    numbers = np.random.default_rng(0).normal(size=N)
    X = np.column_stack([np.zeros((N, 10)), numbers])
    compared, hashes = [], equal_rows._hashes
    monkeypatch.setattr(
        equal_rows, "_hashes", lambda X, y: compared.append(len(X)) or hashes(X, y)
    )
    assert EqualRows.of(X, []) is None
    assert max(compared) < N


def test_columns_are_not_copied():
    X = np.asfortranarray(np.tile(data("rows", np.float64), (20, 40)))
    tracemalloc.start()
    found = EqualRows.of(X, [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.first) <= 4**4
    assert peak < 0.25 * X.nbytes


def test_rows_outside_of_the_data_are_an_error():
    with pytest.raises(ValueError, match="outside"):
        kernel.add_to_hashes(
            np.zeros(8, np.uint8), np.array([0, 2]), 8, np.zeros(1, np.uint64)
        )
