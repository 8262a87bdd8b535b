"""Scores less thresholds as a linear map, against the matrix of all its entries."""

import numpy as np
import pytest
from _door import ThresholdDesign
from numpy.testing import assert_allclose
from scipy import sparse

N, D, M = 400, 30, 3


def some_data(dtype=np.float64, share=0.2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < share)
    return X.astype(dtype)


def explicit(X):
    """The matrix of shape (n * m, d + m) that the map is."""
    X = np.asarray(X, dtype=float)
    return np.hstack([np.repeat(X, M, axis=0), np.tile(np.eye(M), (len(X), 1))])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("dtype", "share"), [(float, 0.2), (np.float32, 0.9)])
def test_products_are_those_of_the_matrix(convert, dtype, share, n_threads):
    X, rng = some_data(dtype, share), np.random.default_rng(1)
    design, A = ThresholdDesign(convert(X), M, n_threads=n_threads), explicit(X)
    w, u = rng.normal(size=D + M), rng.normal(size=(N, M))
    assert design.n_params == D + M
    assert design.zero_scores().shape == u.shape
    assert_allclose(design.forward(w), (A @ w).reshape(N, M), atol=1e-13)
    assert_allclose(design.adjoint(u), A.T @ u.ravel(), atol=1e-12)
    few = np.where(rng.random((N, 1)) < 0.1, u, 0.0)
    assert_allclose(design.adjoint(few), A.T @ few.ravel(), atol=1e-13)
    h = u**2
    gram = A.T @ (h.ravel()[:, None] * A)
    assert_allclose(design.gram(h), gram, atol=1e-11)
    assert_allclose(design.squared_adjoint(h), np.diag(gram), atol=1e-11)
    coef, free = design.split(w)
    assert_allclose(np.append(coef, free), w)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("copy", [True, False])
def test_some_rows(convert, copy):
    X, w = some_data(), np.arange(D + M, dtype=float)
    rows = np.array([3, 5, 200])
    design = ThresholdDesign(convert(X), M)
    subset = design.rows(rows, copy=copy)
    assert_allclose(subset.forward(w), design.forward(w)[rows])
    u = np.ones((3, M))
    assert_allclose(subset.adjoint(u), explicit(X[rows]).T @ u.ravel())


def test_column_sizes_bound_products():
    """|Xᵀu| is at most their root times that of the sum of u_ik² / s_i."""
    X, rng = some_data(), np.random.default_rng(2)
    s = rng.dirichlet(np.ones(N))
    design = ThresholdDesign(X, M)
    squares = design.mean_squares(s)
    assert_allclose(squares[:D].sum(), design.squared_size(s))
    # Equality where u is proportional to a column.
    u = np.repeat((s * X[:, 4])[:, None], M, axis=1)
    norm = np.sqrt((u**2 / s[:, None]).sum())
    assert_allclose(abs(design.adjoint(u)[4]), norm * np.sqrt(squares[4]))
    assert np.all(np.abs(design.adjoint(u)[:D]) <= norm * np.sqrt(squares[:D]))
