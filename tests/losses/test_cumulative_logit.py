"""The likelihood of cumulative logits: derivatives, conjugate, balanced duals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from sklearn_subqn._core.losses import CumulativeLogit

K = 4
BASE = np.array([1.0, 0.2, -1.0])


def data(n=12, seed=0):
    """Descending scores, classes and weights; one of these is zero."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, n)
    weights[3] = 0.0
    targets = rng.permutation(np.arange(n) % K).astype(float)
    scores = -np.sort(-2.0 * rng.normal(size=(n, K - 1)))
    return scores, targets, weights / weights.sum()


def test_value_is_the_logarithm_of_probabilities():
    scores, targets, weights = data()
    above = np.pad(expit(scores + BASE), ((0, 0), (1, 1)), constant_values=(1.0, 0.0))
    own = -np.diff(above, axis=1)[np.arange(12), targets.astype(int)]
    loss = CumulativeLogit(BASE)
    assert_allclose(loss.value(scores, targets, weights), -weights @ np.log(own))
    inner = np.flatnonzero((targets == 1.0) & (weights > 0.0))[0]
    scores[inner, 1] = scores[inner, 0] + BASE[0] - BASE[1]
    assert loss.value(scores, targets, weights) == np.inf


def test_derivatives_are_those_of_differences():
    loss, h = CumulativeLogit(BASE), 1e-5
    scores, *args = data()
    dscores = 0.01 * np.random.default_rng(1).normal(size=scores.shape)
    curvature = loss.curvature(scores, *args)
    up, down = (scores + step * dscores for step in (h, -h))
    slope = (loss.value(up, *args) - loss.value(down, *args)) / (2.0 * h)
    change = (loss.subgradient(up, *args) - loss.subgradient(down, *args)) / (2.0 * h)
    assert_allclose(np.vdot(loss.subgradient(scores, *args), dscores), slope, rtol=1e-6)
    assert_allclose(curvature.apply(dscores), change, rtol=1e-5, atol=1e-10)
    at = loss.derivatives(scores, dscores, *args)
    assert_allclose(at(0.0), (slope, np.vdot(change, dscores)), rtol=1e-6)
    units = [curvature.apply(np.tile(each, (12, 1))) for each in np.eye(K - 1)]
    assert_allclose(curvature.total(), np.sum(units, axis=1), atol=1e-15)
    assert_allclose(curvature.diagonal(), np.einsum("jij->ij", units))
    some = np.array([1, 5, 6])
    part = curvature.take(some).apply(dscores[some])
    assert_allclose(part, curvature.apply(dscores)[some])
    # Steps to where thresholds cross are too long for every line search.
    assert loss.derivatives(scores, -scores, *args)(2.0)[0] == np.inf


@pytest.mark.parametrize("shrink", [1.0, 1e-3, 1e3])
def test_conjugate(shrink):
    """Also where classes are certain, or where thresholds nearly meet."""
    loss = CumulativeLogit(BASE)
    scores, *args = data()
    scores = shrink * (scores + BASE) - BASE
    scores = scores if shrink < 1.0 else np.clip(scores, -30.0, 30.0) + 0.1 * data()[0]
    u = loss.subgradient(scores, *args)
    conjugate = loss.conjugate(u, *args)
    expected = np.vdot(u, scores) - loss.value(scores, *args)
    size = loss.conjugate_size(u, *args, conjugate)
    assert_allclose(conjugate, expected, rtol=1e-9, atol=1e-9 * size)
    for seed in range(1, 20):
        other = data(seed=seed)[0]
        height = np.vdot(u, other) - loss.value(other, *args)
        assert height <= conjugate + 1e-12 * size
    for share in (0.9, 0.5, 0.0):
        # R* is convex, and -inf R = 0 at zero.
        assert loss.conjugate(share * u, *args) <= share * conjugate + 1e-12 * size


def test_conjugate_of_slopes_whose_product_underflows():
    loss, weights = CumulativeLogit(), np.ones(1)
    u = np.array([[-1e-200, 1e-201]])
    assert_allclose(
        loss.conjugate(u, np.ones(1), weights),
        1e-200 * np.log(1e-200) + 1e-201 * np.log(1e-201) - 1.1e-200,
        rtol=1e-12,
    )


def test_points_outside_of_the_domain():
    loss = CumulativeLogit(BASE)
    scores, *args = data()
    u = loss.subgradient(scores, *args)
    row, column = np.argwhere(u > 0.0)[0]
    for value in (-u[row, column], u[row, column] + 1.1 * args[1][row]):
        beyond = u.copy()
        beyond[row, column] = value
        assert loss.conjugate(beyond, *args) == np.inf
    first = np.flatnonzero((args[0] == 0.0) & (args[1] > 0.0))[0]
    u[first, 2] = 1e-3
    assert loss.conjugate(u, *args) == np.inf


def test_balanced_duals():
    loss = CumulativeLogit(BASE)
    scores, *args = data()
    u = loss.subgradient(scores, *args)
    level = loss.balance(u, *args)
    assert_allclose(level.sum(axis=0), 0.0, atol=1e-16)
    assert np.isfinite(loss.conjugate(level, *args))
    share = loss.imbalance(u, u.sum(axis=0), *args)
    assert 0.0 < share < 1.0
    assert np.all(np.abs(level - u) <= share * np.abs(u) * (1.0 + 1e-12))
    assert loss.imbalance(level, np.zeros(K - 1), *args) == 0.0


@pytest.mark.parametrize("rare", [(0,), (3,), (0, 1), (2, 3)])
def test_balanced_duals_where_classes_at_the_ends_are_rare(rare):
    """Thresholds beside them are far from their optima, at hardly any cost."""
    _, targets, weights = data(200)
    weights[np.isin(targets, rare)] *= 1e-14
    weights /= weights.sum()
    loss, scores = CumulativeLogit.of_classes(targets, weights), np.zeros((200, K - 1))
    best = loss.conjugate(loss.subgradient(scores, targets, weights), targets, weights)
    for shift in (-1.0, 1.0):
        scores[:] = 0.0
        scores[:, 0 if 0 in rare else K - 2] += shift
        u = loss.subgradient(scores, targets, weights)
        level = loss.balance(u, targets, weights)
        assert np.all(np.abs(level.sum(axis=0)) <= 1e-14 * np.abs(level).sum(axis=0))
        assert_allclose(loss.conjugate(level, targets, weights), best, rtol=1e-10)


def test_base_is_the_model_without_features():
    _, targets, weights = data()
    loss = CumulativeLogit.of_classes(targets, weights)
    above = [weights[targets > k].sum() for k in range(K - 1)]
    assert_allclose(loss.base, logit(above))
    slopes = loss.subgradient(np.zeros((12, K - 1)), targets, weights).sum(axis=0)
    assert_allclose(slopes, 0.0, atol=1e-15)
