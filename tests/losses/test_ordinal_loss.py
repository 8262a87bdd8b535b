"""Logistic losses of ordinal regression, as functions of one score per threshold."""

import numpy as np
import pytest
from _door import BINARY_LOSSES
from numpy.testing import assert_allclose

from sklearn_subqn.losses import OrdinalLogistic

K = 4


def data(n=12, seed=0):
    """Scores, classes and weights; one of these is zero."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, n)
    weights[3] = 0.0
    targets = rng.permutation(np.arange(n) % K).astype(float)
    return 2.0 * rng.normal(size=(n, K - 1)), targets, weights / weights.sum()


def enumerated(scores, targets, weights, immediate):
    total = 0.0
    for z, y, s in zip(scores, targets, weights, strict=True):
        for k in range(K - 1):
            if not immediate or k in (y - 1, y):
                total += s * np.logaddexp(0.0, -z[k] if y > k else z[k])
    return total


each_kind = pytest.mark.parametrize("immediate", [False, True])


@each_kind
def test_value_is_that_of_enumeration(immediate):
    args = data()
    value = OrdinalLogistic(immediate=immediate).loss.oracle.value(*args)
    assert_allclose(value, enumerated(*args, immediate), rtol=1e-14)


@each_kind
def test_derivatives_are_those_of_differences(immediate):
    loss, h = OrdinalLogistic(immediate=immediate).loss, 1e-5
    scores, *args = data()
    u = loss.oracle.subgradient(scores, *args)
    curvature = loss.oracle.curvature(scores, *args)
    dscores = np.random.default_rng(1).normal(size=scores.shape)
    up, down = (scores + step * dscores for step in (h, -h))
    slope = (loss.oracle.value(up, *args) - loss.oracle.value(down, *args)) / (2.0 * h)
    assert_allclose(np.vdot(u, dscores), slope, rtol=1e-7)
    change = (
        loss.oracle.subgradient(up, *args) - loss.oracle.subgradient(down, *args)
    ) / (2.0 * h)
    assert_allclose(curvature.apply(dscores.copy()), change, atol=1e-9)
    assert_allclose(curvature.total(), np.diag(curvature.diagonal().sum(axis=0)))
    at = loss.oracle.derivatives(scores, dscores, *args)
    assert_allclose(at(0.0), (slope, np.vdot(change, dscores)), rtol=1e-6)
    assert_allclose(
        at(0.3)[0],
        np.vdot(loss.oracle.subgradient(scores + 0.3 * dscores, *args), dscores),
    )


@each_kind
def test_conjugate(immediate):
    loss = OrdinalLogistic(immediate=immediate).loss
    scores, *args = data()
    u = loss.oracle.subgradient(scores, *args)
    conjugate = loss.oracle.conjugate(u, *args)
    assert_allclose(conjugate, np.vdot(u, scores) - loss.oracle.value(scores, *args))
    for seed in range(1, 20):
        other = 3.0 * data(seed=seed)[0]
        assert conjugate >= np.vdot(u, other) - loss.oracle.value(other, *args)
    assert loss.oracle.feasible(u, *args).all()
    beyond = u.copy()
    beyond[0] *= -1.0
    assert loss.oracle.conjugate(beyond, *args) == np.inf
    assert_allclose(loss.oracle.feasible(beyond, *args), np.arange(len(u)) > 0)
    size = loss.oracle.conjugate_size(u, *args, conjugate)
    assert size >= abs(conjugate)
    shrunk = loss.oracle.conjugate((1.0 - 1e-6) * u, *args)
    assert shrunk <= conjugate + 1.1e-6 * size


@each_kind
def test_leveled_duals(immediate):
    loss = OrdinalLogistic(immediate=immediate).loss
    scores, *args = data()
    u = loss.oracle.subgradient(scores, *args)
    level = loss.oracle.balance(u, *args)
    assert_allclose(level.sum(axis=0), 0.0, atol=1e-16)
    assert np.isfinite(loss.oracle.conjugate(level, *args))
    # Entries of one sign of each column have shrunk, those of the other stay.
    assert np.all(np.abs(level) <= np.abs(u))
    share = loss.oracle.imbalance(u, u.sum(axis=0), *args)
    assert np.all(np.abs(level - u) <= share * np.abs(u) + 1e-16)
    assert loss.oracle.imbalance(level, np.zeros(K - 1), *args) == 0.0
    sums = np.array([0.0, 0.1, 0.0]) * np.abs(u).sum(axis=0)
    column = loss.oracle.imbalance(u, sums, *args)
    assert (
        column
        == BINARY_LOSSES["log_loss"].oracle.imbalance(u[:, 1], sums[1:2], *args)
        > 0.0
    )


def test_rows_without_some_thresholds_have_no_dual_there():
    loss = OrdinalLogistic(immediate=True).loss
    scores, targets, weights = data()
    u = loss.oracle.subgradient(scores, targets, weights)
    near = np.abs(targets[:, None] - np.arange(K - 1) - 0.5) < 1.0
    assert not u[~near].any()
    assert (u[near & (weights[:, None] > 0.0)] != 0.0).all()
