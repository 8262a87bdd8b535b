"""Products with codes of categories are those with the columns of X."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn._core.rows import coded_rows
from sklearn_subqn._core.rows.coded_rows import CodedRows
from sklearn_subqn._core.rows.design import Design
from sklearn_subqn._core.rows.threshold_design import ThresholdDesign

SIZES = (9, 2, 14, 5, 8, 3)


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    monkeypatch.setattr(coded_rows, "_FEWEST_ENTRIES", 0)


def categories(n, *, missing=0.0, n_numbers=1, dtype=np.float64, seed=0):
    """Return rows with a level of each category, of a value of its own, and numbers."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in SIZES:
        has = rng.random(n) >= missing
        entries = np.flatnonzero(has), rng.integers(0, size, n)[has]
        # The last column of each has no entries.
        indicators = sparse.csr_array(
            (np.ones(has.sum()), entries), shape=(n, size + 1)
        )
        parts.append(indicators * rng.normal(size=size + 1))
        if len(parts) <= n_numbers:
            numbers = rng.normal(size=(n, 1)) * (rng.random((n, 1)) < 0.8)
            parts.append(sparse.csr_array(numbers))
    return sparse.csr_array(sparse.hstack(parts), dtype=dtype)


def agree(actual, expected):
    assert_allclose(actual, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("n_numbers", [0, 1])
def test_products_are_those_of_the_matrix(dtype, missing, n_numbers):
    X = categories(3000, missing=missing, n_numbers=n_numbers, dtype=dtype)
    coded = CodedRows.of(X)
    rng, dense = np.random.default_rng(1), X.toarray().astype(np.float64)
    w, u, h = (rng.normal(size=size) for size in (X.shape[1], 3000, 3000))
    scores, rows = np.full(3000, np.nan), slice(0, 3000)
    coded.forward(w, rows, scores)
    agree(scores, dense @ w)
    agree(coded.adjoint(u, rows, 700), dense.T @ u)
    agree(coded.gram(h, rows), (dense.T * h) @ dense)


def test_products_of_some_rows_are_theirs():
    X = categories(3000)
    coded, rows = CodedRows.of(X), slice(700, 1900)
    rng, dense = np.random.default_rng(1), X.toarray()[rows]
    w, u = rng.normal(size=X.shape[1]), rng.normal(size=3000)
    scores = np.zeros(3000)
    coded.forward(w, rows, scores)
    agree(scores[rows], dense @ w)
    assert not scores[:700].any()
    assert not scores[1900:].any()
    agree(coded.adjoint(u, rows, 500), dense.T @ u[rows])
    agree(coded.gram(u, rows), (dense.T * u[rows]) @ dense)


def test_a_level_that_the_first_rows_lack_is_found():
    X = categories(3000).tolil()
    X[:1500, 0] = 0.0
    X = sparse.csr_array(X)
    agree(CodedRows.of(X).adjoint(np.ones(3000), slice(0, 3000), 3000), X.sum(axis=0))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_design_makes_the_products_by_codes(monkeypatch, n_threads, fit_intercept):
    X = categories(40_000)
    design = Design(X, fit_intercept=fit_intercept, n_threads=n_threads)
    assert len(design.row_slices) == n_threads
    assert design.coded is not None
    rng = np.random.default_rng(1)
    w, u = rng.normal(size=design.n_params), rng.normal(size=40_000)
    few = np.where(rng.random(40_000) < 0.2, 1.0, 0.0)
    found = [design.forward(w), design.adjoint(u)]
    found += [design.gram(h) for h in (u * u, few)]
    monkeypatch.setattr(CodedRows, "of", lambda X: None)
    plain = Design(X, fit_intercept=fit_intercept, n_threads=n_threads)
    expected = [plain.forward(w), plain.adjoint(u)]
    expected += [plain.gram(h) for h in (u * u, few)]
    for a, b in zip(found, expected, strict=True):
        agree(a, b)


def test_thresholds_share_the_codes():
    X, rng = categories(3000), np.random.default_rng(1)
    design = ThresholdDesign(X, 3)
    assert design.coded is not None
    A = np.kron(X.toarray(), np.ones((3, 1)))
    A = np.hstack([A, np.tile(np.eye(3), (3000, 1))])
    w, u = rng.normal(size=design.n_params), rng.normal(size=(3000, 3))
    agree(design.forward(w).ravel(), A @ w)
    agree(design.adjoint(u), A.T @ u.ravel())
    agree(design.gram(u * u), (A.T * (u * u).ravel()) @ A)


def test_columns_that_rows_share_have_no_codes():
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 60), density=0.1, format="csr", rng=rng)
    X.data[:] = 1.0
    assert CodedRows.of(X) is None


def test_rows_in_any_order_have_no_codes():
    X = categories(3000)
    for a, b in pairwise(X.indptr):
        X.indices[a:b] = X.indices[a:b][::-1].copy()
        X.data[a:b] = X.data[a:b][::-1].copy()
    X.has_sorted_indices = False
    assert CodedRows.of(X) is None


def test_numbers_have_no_codes():
    rng = np.random.default_rng(0)
    assert CodedRows.of(sparse.csr_array(rng.normal(size=(3000, 10)))) is None


def test_few_entries_are_left_as_they_are(monkeypatch):
    monkeypatch.undo()
    assert CodedRows.of(categories(3000)) is None
