"""Kernels refuse sparse matrices with indices that would be outside of arrays."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn._core.kernels import (
    ascent,
    chain_ascent,
    chain_pairs,
    coordinate_descent,
    gram,
    multiclass,
    products,
)

N, D, K = 6, 4, 3
X = np.arange(1.0, 25.0).reshape(N, D) * (np.arange(24).reshape(N, D) % 3 > 0)


def zeros(*shape):
    return np.zeros(shape)


# Calls with the arrays of a matrix by rows, or by columns.
BY_ROWS = {
    "multiply": lambda p, i, x: products.multiply(p, i, x, zeros(D), zeros(N)),
    "multiply_several": lambda p, i, x: products.multiply_several(
        p, i, x, zeros(D, K), zeros(N, K)
    ),
    "squares_of_rows": lambda p, i, x: products.squares_of_rows(p, x, zeros(N)),
    "add_adjoint": lambda p, i, x: products.add_adjoint(
        p, i, x, 1, zeros(N, K), zeros(D, K)
    ),
    "add_columns": lambda p, i, x: products.add_columns(
        p, i, x, np.arange(N), np.ones(N), zeros(D)
    ),
    "to_columns": lambda p, i, x: products.to_columns(
        p, i, x, 0, np.cumsum(counts(i), dtype=i.dtype), np.zeros_like(i), zeros(len(x))
    ),
    "gram": lambda p, i, x: gram.add_half(
        x, i, p, np.ones(N), np.arange(D, dtype=i.dtype), zeros(D, D)
    ),
    "ascent": lambda p, i, x: ascent.sweep(
        *(x, i, p, np.ones(N), zeros(N), np.ones(N), 0.0, np.ones(N), np.ones(N)),
        *(0.0, 0.0, 1, N, np.arange(N, dtype=i.dtype), zeros(N), zeros(D)),
    ),
    "multiclass ascent": lambda p, i, x: multiclass.sweep_sparse(
        multiclass.Rows(np.arange(N) % K, 1.0 - np.eye(K), np.ones((K, K))),
        *(x, i, p, np.ones(N), np.ones(N), 0.0, 1, np.arange(N), zeros(N)),
        *(np.eye(K)[np.arange(N) % K], zeros(D, K), zeros(K)),
    ),
    "localize": lambda p, i, x: chain_ascent.localize(
        *(i, p, np.array([0, 2, N]), np.zeros(D, np.intc)),
        *(np.zeros(len(i), np.intc), np.zeros(len(i), np.intc), np.zeros(3, int)),
    ),
    "chain scores": lambda p, i, x: chain_pairs.forward(
        *(x, i, p, np.arange(D + 1, dtype=np.intc), np.zeros(D, "H"), 0, zeros(D)),
        *(0, N, zeros(N, K)),
    ),
}
BY_COLUMNS = {
    "multiply_columns": lambda p, i, x: products.multiply_columns(
        p, i, x, np.arange(D), zeros(N), zeros(D)
    ),
    "squares": lambda p, i, x: products.squares(
        p, i, x, np.arange(D), zeros(N, K), zeros(D, K)
    ),
    "scale_columns": lambda p, i, x: products.scale_columns(
        *(p, i, x, np.arange(D), np.ones(N), np.arange(N, dtype=i.dtype), N),
        *(np.zeros_like(p), np.zeros_like(i), np.zeros(len(i), "f"), zeros(2, D)),
    ),
    "sweep_columns": lambda p, i, x: coordinate_descent.sweep_columns(
        p, i, x, np.arange(D), zeros(N), zeros(D), np.ones(D), zeros(D), 0.1, 0.1
    ),
    "sweep_blocks": lambda p, i, x: coordinate_descent.sweep_blocks(
        *(p, i, x, np.arange(D), np.ones((N, K)), np.ones(N), zeros(N, K)),
        *(zeros(N, K), zeros(D, K), np.ones((D, K)), zeros(D, K), 0.1, 0.1),
        *(zeros(0), zeros(0), zeros(0)),
    ),
}
KERNELS = {**BY_ROWS, **BY_COLUMNS}


def counts(indices):
    return np.bincount(indices[(indices >= 0) & (indices < D)], minlength=D)


def arrays(name, dtype):
    A = sparse.csc_array(X) if name in BY_COLUMNS else sparse.csr_array(X)
    return A.indptr.astype(dtype), A.indices.astype(dtype), A.data.copy()


def index(place, value):
    def change(indptr, indices, data):
        indices[place] = value

    return change


def pointer(place, value):
    def change(indptr, indices, data):
        indptr[place] = value

    return change


FAULTS = {
    "index below": index(3, -1),
    "index above": index(-1, N),
    "index far below": index(0, -(2**31)),
    "index far above": index(5, 2**31 - 1),
    "pointer below": pointer(1, -1),
    "pointer above": pointer(-1, 99),
    "pointers descend": pointer(2, 15),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", KERNELS)
def test_indices_outside_are_refused(name, fault, dtype):
    KERNELS[name](*arrays(name, dtype))
    if name == "squares_of_rows" and fault.startswith("index"):
        return
    broken = arrays(name, dtype)
    FAULTS[fault](*broken)
    with pytest.raises(ValueError, match=r"must|differ|none of"):
        KERNELS[name](*broken)


@pytest.mark.parametrize("line", [-1, D])
def test_lines_that_are_none_are_refused(line):
    lines = np.array([0, line])
    args = *arrays("squares", np.int32), lines, zeros(N, K), zeros(2, K)
    with pytest.raises(ValueError, match=f"line {line} is none of {D}"):
        products.squares(*args)


def test_bounds_of_many_lines_and_of_lines_apart_are_looked_at():
    """Of rows in any order, and alone."""
    A = sparse.random(300, 40, 0.2, format="csr", random_state=0)
    rows = np.array([7, 3, 4, 5, 200, 299, 10])
    v = zeros(40)
    products.add_columns(A.indptr, A.indices, A.data, rows, np.ones(7), v)
    np.testing.assert_allclose(v, A.toarray()[rows].sum(axis=0))
    for row in rows:
        broken = A.indices.copy()
        broken[A.indptr[row + 1] - 1] = 40
        with pytest.raises(ValueError, match=r"indices must lie in \[0, 40\)"):
            products.add_columns(A.indptr, broken, A.data, rows, np.ones(7), v)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_canonical_matrices_have_rising_columns_within_the_matrix(dtype):
    def is_canonical(indptr, indices):
        arrays = (np.array(array, dtype=dtype) for array in (indptr, indices))
        return products.is_canonical(*arrays, 4)

    assert is_canonical([0, 2, 2, 5], [0, 3, 0, 1, 2])
    assert is_canonical([0, 0], [])
    for indptr, indices in (
        ([0, 2, 3], [1, 1, 0]),
        ([0, 2, 3], [3, 1, 0]),
        ([0, 2, 3], [1, 4, 0]),
        ([0, 2, 3], [-1, 2, 0]),
        ([0, 2, 3], [1, 2]),
        ([1, 2, 3], [1, 2, 0]),
        ([0, 5, 3], [1, 2, 3]),
        ([0, -1, 3], [1, 2, 3]),
        ([], [1, 2, 3]),
    ):
        assert not is_canonical(indptr, indices)
