"""Balancing of the column sums of duals of several scores."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core import lapack
from sklearn_subqn._core.kernels import flows
from sklearn_subqn._core.losses import _balance
from sklearn_subqn._core.losses._balance import balanced, tilted


def few_rows(n=20, k=600):
    """Weights, a dual of own and other labels, and a neutral point of these."""
    rng = np.random.default_rng(0)
    weights = rng.random(n) + 0.1
    labels = rng.integers(k, size=n)
    b = rng.random((n, k)) ** 8 + 1e-3
    b /= 1.5 * b.sum(axis=1, keepdims=True)
    neutral = np.full((n, k), 1.0 / k)
    own = np.arange(n), labels
    for u in (b, neutral):
        u[own] = 0.0
        u[own] = -u.sum(axis=1)
    return b * weights[:, np.newaxis], weights, neutral


def test_no_matrix_of_all_pairs_of_labels_is_made_to_tilt():
    arguments = few_rows()
    tilted(*arguments)
    tracemalloc.start()
    try:
        tilted(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * 600**2


@pytest.mark.parametrize("k", [4, 60, 600])
def test_few_products_balance_nearly(k, monkeypatch):
    dual, weights, neutral = few_rows(n=3 * k, k=k)
    calls = {"tilt": 0, "multiply": 0}

    def counting(name, kernel):
        def counted(*args):
            calls[name] += 1
            kernel(*args)

        return counted

    class Counted:
        sides = staticmethod(flows.sides)
        tilt = staticmethod(counting("tilt", flows.tilt))
        multiply = staticmethod(counting("multiply", flows.multiply))

    monkeypatch.setattr(_balance, "flows", Counted)
    u = tilted(dual, weights, neutral)
    before = np.abs(dual.sum(axis=0)).max()
    assert np.abs(u.sum(axis=0)).max() <= 1e-4 * before
    assert calls["tilt"] <= 12
    assert calls["multiply"] <= 10 * calls["tilt"]


@pytest.mark.parametrize("n_parts", [1, 3])
def test_columns_are_balanced_in_each_part_of_the_labels(n_parts, monkeypatch):
    """Labels of different parts have no flows between them."""
    solved = []
    lstsq = lapack.lstsq

    def counted(*args, **kwargs):
        solved.append(args)
        return lstsq(*args, **kwargs)

    monkeypatch.setattr(lapack, "lstsq", counted)
    rng = np.random.default_rng(0)
    dual = np.zeros((100 * n_parts, 10 * n_parts))
    for part in range(n_parts):
        u = rng.random((100, 10))
        own = np.arange(100), rng.integers(10, size=100)
        u[own] = 0.0
        u[own] = -u.sum(axis=1)
        rows, columns = (slice(size * part, size * (part + 1)) for size in (100, 10))
        dual[rows, columns] = 10.0 ** (-5 * part) * u
    u = balanced(dual)
    share = np.abs(u).sum(axis=0) / np.abs(dual).sum(axis=0)
    assert np.all((share > 0.3) & (share < 1.0 + 1e-14))
    sizes = np.abs(u).sum(axis=0)
    assert_allclose(u.sum(axis=0) / sizes, 0.0, atol=1e-13)
    # Least squares, which take ten times as long, serve only labels in parts.
    assert bool(solved) == (n_parts > 1)
