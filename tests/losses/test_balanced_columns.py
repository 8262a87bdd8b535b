"""Balancing of the column sums of duals of several scores."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sklearn_subqn._core import lapack
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
    steps = []
    step = _balance._newton_step

    def counted(*args):
        steps.append(args)
        return step(*args)

    monkeypatch.setattr(_balance, "_newton_step", counted)
    u = tilted(dual, weights, neutral)
    before = np.abs(dual.sum(axis=0)).max()
    assert np.abs(u.sum(axis=0)).max() <= 1e-4 * before
    assert len(steps) <= 11


def random_flows(n, k=5):
    """Return rows of positive and of negative entries that sum to zero, and zeros."""
    rng = np.random.default_rng(0)
    p, q = rng.random((2, n, k)) * (rng.random((2, n, k)) < 0.5)
    q[p > 0.0] = 0.0
    rows = (p.sum(axis=1) > 0.0) & (q.sum(axis=1) > 0.0)
    p, q = p[rows], q[rows]
    q *= (p.sum(axis=1) / q.sum(axis=1))[:, np.newaxis]
    return np.vstack([p - q, np.zeros((2, k))]), p, q


@pytest.mark.parametrize("n", [0, 1, 20])
def test_sums_of_flows(n):
    u, _, _ = random_flows(n)
    u[::3, 0] += 1e-3 * (u[::3, 0] < 0.0)
    laplacian, sums, excess = _balance._survey(u)
    assert_allclose(sums, u.sum(axis=0), rtol=1e-13, atol=1e-15)
    each = u[u.any(axis=1)]
    other = np.minimum(each, 0.0)
    shares = each.sum(axis=1) / other.sum(axis=1)
    assert_allclose(excess, shares @ other, rtol=1e-10, atol=1e-15)
    positive = np.maximum(each, 0.0)
    cross = -other.T @ (positive / positive.sum(axis=1, keepdims=True))
    expected = np.diag(np.abs(u).sum(axis=0)) - cross - cross.T
    assert_allclose(laplacian, expected, rtol=1e-12, atol=1e-14)


def test_balanced_flows_shrink_by_differences_of_potentials():
    u, p, q = random_flows(200)
    laplacian, sums, _ = _balance._survey(u)
    x = np.linalg.lstsq(laplacian, sums)[0]
    each = p[:, np.newaxis, :] * q[:, :, np.newaxis] / p.sum(axis=1)[:, None, None]
    each *= (1.0 - np.ptp(x)) * (1.0 + x[:, np.newaxis] - x)
    expected = np.vstack([each.sum(axis=1) - each.sum(axis=2), np.zeros((2, 5))])
    assert_allclose(balanced(u), expected, atol=1e-14)


def test_tilted_flows_minimize_the_sum_of_logarithms():
    """Rows of tiny flows do no harm, nor do rows without a weight."""
    rng = np.random.default_rng(1)
    dual, weights, neutral = few_rows(n=40, k=4)
    dual *= rng.random((40, 1))
    dual[:5] *= 1e-60
    weights[5], dual[5] = 0.0, 0.0
    inverse = 1.0 / np.where(weights > 0.0, weights, 1.0)
    seed = min(0.01 * np.abs(dual.sum(axis=0)).sum(), 0.5)
    sides, used = [], slice(6, None)
    for sign in (1.0, -1.0):
        own, other = (np.maximum(sign * a, 0.0)[used] for a in (dual, neutral))
        own = own * inverse[used, np.newaxis]
        total = np.maximum(dual, 0.0)[used].sum(axis=1) * inverse[used]
        share = seed * total / np.maximum(neutral, 0.0)[used].sum(axis=1)
        sides.append((1.0 - seed) * own + share[:, np.newaxis] * other)
    none = (1.0 - total) * total

    def potential(x):
        flow = (sides[0] @ np.exp(x)) * (sides[1] @ np.exp(-x))
        return weights[used] @ np.log(none + flow)

    x = minimize(potential, np.zeros(4), tol=1e-14).x
    taken, brought = sides[0] * np.exp(x), sides[1] * np.exp(-x)
    flow = taken.sum(axis=1) * brought.sum(axis=1)
    total = (weights[used] * flow / (none + flow))[:, np.newaxis]
    expected = total * taken / taken.sum(axis=1, keepdims=True)
    expected -= total * brought / brought.sum(axis=1, keepdims=True)
    u = tilted(dual, weights, neutral)
    assert_allclose(u[used], expected, atol=1e-4 * np.abs(expected).max())
    assert np.abs(u[:6]).max() < 1e-55


def test_flows_next_to_zero_are_tilted():
    dual, weights, neutral = few_rows(n=6, k=4)
    u = tilted(1e-160 * dual, weights, neutral)
    assert np.all(np.maximum(u, -u) <= 1e-150 * weights[:, np.newaxis])


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
