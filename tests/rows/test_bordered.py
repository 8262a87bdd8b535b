"""Systems with a diagonal block are solved as the whole matrix is."""

import numpy as np
import pytest
from _door import Design
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn._core.rows.bordered import Bordered, largest_category
from sklearn_subqn._core.steps.newton_direction import solution_operator


def panel(n=60, n_levels=20, *, dtype=np.float64, seed=0):
    """Return rows of a number, a level of one of 20, one of 4, and another number."""
    rng = np.random.default_rng(seed)
    has = rng.random(n) < 0.9
    # The level in the middle has no entries.
    levels = rng.integers(0, n_levels, n)[has]
    levels[levels == n_levels // 2] = 0
    many = sparse.csr_array(
        (rng.normal(size=has.sum()), (np.flatnonzero(has), levels)), (n, n_levels)
    )
    few = sparse.csr_array((np.ones(n), (np.arange(n), rng.integers(0, 4, n))), (n, 4))
    parts = [rng.normal(size=(n, 1)), many, few, rng.normal(size=(n, 1))]
    parts = [sparse.csr_array(part) for part in parts]
    return sparse.hstack(parts, format="csr", dtype=dtype)


def whole(matrix):
    """Return all entries of a bordered matrix."""
    q = len(matrix.own) + len(matrix.others)
    dense = np.zeros((q, q))
    dense[matrix.own, matrix.own] = matrix.diagonal
    dense[np.ix_(matrix.others, matrix.own)] = matrix.border.toarray()
    dense[np.ix_(matrix.own, matrix.others)] = matrix.border.toarray().T
    dense[np.ix_(matrix.others, matrix.others)] = matrix.core
    return dense


def test_category_is_the_longest_run_of_disjoint_columns():
    X = panel()
    found = largest_category(X)
    assert set(range(1, 21)) <= set(found) <= set(range(21))
    products = (abs(X).T @ abs(X)).toarray()[np.ix_(found, found)]
    assert_allclose(products, np.diag(np.diag(products)), atol=0.0)


def test_no_category_where_it_has_not_most_columns():
    assert not len(largest_category(panel(n_levels=5)))
    for shape in (5, 4), (5, 0), (0, 5):
        found = largest_category(sparse.csr_array(np.ones(shape)))
        assert len(found) == (5 if shape == (0, 5) else 0)


def test_rows_after_the_first_may_end_a_category():
    ones, n = np.ones(1100), 1100
    X = sparse.csr_array((ones, (np.arange(n), np.arange(n) % 50)), (n, 50)).tolil()
    assert len(largest_category(X.tocsr())) == 50
    X[n - 1] = 1.0
    assert not len(largest_category(X.tocsr()))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bordered_gram_is_the_gram_matrix(fit_intercept, dtype):
    design = Design(panel(dtype=dtype), fit_intercept=fit_intercept)
    weights = np.random.default_rng(1).random(design.n_rows)
    weights[::5] = 0.0
    penalty = np.arange(design.n_params) / 7.0
    expected = design.gram(weights) + np.diag(penalty)
    found = design.bordered_gram(weights).plus(penalty)
    assert_allclose(whole(found), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_solution_is_that_of_the_whole_matrix(penalty):
    design = Design(panel(), fit_intercept=False)
    matrix = design.bordered_gram(np.ones(design.n_rows))
    matrix = matrix.plus(np.full(design.n_params, penalty))
    rhs = whole(matrix) @ np.random.default_rng(2).normal(size=design.n_params)
    p = matrix.solution(solution_operator, rhs)
    assert_allclose(whole(matrix) @ p, rhs, rtol=1e-9, atol=1e-9)
    extended = matrix.extended(np.eye(len(matrix.others)))
    product = whole(matrix) @ extended
    assert_allclose(product[matrix.own], 0.0, atol=1e-12)
    assert_allclose(product[matrix.others], matrix.complement(), atol=1e-12)


def test_matrix_without_diagonal_block_is_its_core():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = Bordered.unsplit(matrix)
    assert_allclose(found.complement(), matrix, rtol=0.0)
    rhs = np.array([1.0, -1.0])
    p = found.solution(solution_operator, rhs)
    assert_allclose(p, np.linalg.solve(matrix, rhs))
