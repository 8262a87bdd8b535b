"""Kernels of flows between labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.kernels import flows


def shares(n=50, k=4, seed=0.1, trickle=1e-50):
    """Arguments of ``tilt`` but for factors, and what they were made of."""
    rng = np.random.default_rng(0)
    weights = rng.random(n) + 0.1
    dual = rng.normal(size=(n, k)) * (rng.random((n, k)) < 0.7)
    positive, negative = np.maximum(dual, 0.0), np.maximum(-dual, 0.0)
    sizes = np.minimum(positive.sum(axis=1), negative.sum(axis=1))
    for part in (positive, negative):
        total = part.sum(axis=1)
        part *= (sizes / np.where(total > 0.0, total, 1.0))[:, np.newaxis]
    dual = (positive - negative) * (weights * rng.random(n) / 4.0)[:, np.newaxis]
    # Entries of both have the same signs.
    signs = np.where(dual == 0.0, np.resize([1.0, -1.0], k), np.sign(dual))
    neutral = np.zeros((n, k))
    for sign in (-1.0, 1.0):
        sizes = (signs == sign).sum(axis=1, keepdims=True)
        neutral += np.where(signs == sign, sign / np.maximum(sizes, 1), 0.0)
    sinks, sources, none = np.empty((n, k)), np.empty((n, k)), np.empty(n)
    flows.sides(dual, weights, neutral, seed, trickle, sinks, sources, none)
    return dual, weights, neutral, sinks, sources, none


@pytest.mark.parametrize("seed", [0.0, 0.1])
def test_sides_are_mixtures(seed):
    dual, weights, neutral, sinks, sources, none = shares(seed=seed)
    u = dual / weights[:, np.newaxis]
    flowing = (u.max(axis=1) > 0.0) & (u.min(axis=1) < 0.0)
    assert 10 < flowing.sum() < len(u)
    assert_array_equal(none >= 0.0, flowing)
    total = np.maximum(u, 0.0).sum(axis=1)
    assert_allclose(none[flowing], ((1.0 - total) * total)[flowing], rtol=1e-14)
    scale = seed * total / np.maximum(neutral, 0.0).sum(axis=1)
    for part, sign in ((sinks, 1.0), (sources, -1.0)):
        expected = (1.0 - seed) * np.maximum(sign * u, 0.0)
        expected += scale[:, np.newaxis] * np.maximum(sign * neutral, 0.0)
        assert_allclose(part[flowing], expected[flowing], rtol=1e-13, atol=1e-300)


def test_rows_of_a_trickle_are_left_out():
    dual, weights, *_, none = shares(trickle=0.05)
    share = np.minimum(dual.max(axis=1), -dual.min(axis=1)) / weights
    assert_array_equal(none >= 0.0, share > 0.05)
    assert 0 < np.count_nonzero(none >= 0.0) < np.count_nonzero(share > 0.0)


def tilted(arguments, x):
    _, weights, _, sinks, sources, none = arguments
    n, k = sinks.shape
    out, sums, sizes = np.empty((n, k)), np.zeros(k), np.zeros(k)
    up, down = np.exp(x), np.exp(-x)
    flows.tilt(sinks, sources, none, weights, up, down, out, sums, sizes)
    return out, sums, sizes


def potential(arguments, x):
    _, weights, _, sinks, sources, none = arguments
    some = none >= 0.0
    flow = (sinks[some] @ np.exp(x)) * (sources[some] @ np.exp(-x))
    return float(weights[some] @ np.log(none[some] + flow))


def test_column_sums_are_a_gradient():
    arguments, x, h = shares(), np.array([0.3, -0.4, 0.0, 0.9]), 1e-5
    out, sums, sizes = tilted(arguments, x)
    assert_allclose(out.sum(axis=0), sums, atol=1e-13)
    assert_allclose(np.abs(out).sum(axis=0), sizes, rtol=1e-13)
    changes = np.empty(4)
    assert_allclose(out.sum(axis=1), 0.0, atol=1e-15)
    assert np.all(np.abs(out).sum(axis=1) <= 2.0 * arguments[1] * (1.0 + 1e-14))
    assert not out[arguments[-1] < 0.0].any()
    for j, step in enumerate(h * np.eye(4)):
        change = potential(arguments, x + step) - potential(arguments, x - step)
        assert sums[j] == pytest.approx(change / (2.0 * h), abs=1e-8)
        ahead, behind = (tilted(arguments, x + c * step)[1] for c in (1.0, -1.0))
        flows.multiply(out, arguments[1], np.eye(4)[j], changes)
        assert_allclose(changes, (ahead - behind) / (2.0 * h), atol=1e-8)


def test_flows_without_seed_stay_as_they_are():
    arguments = shares(seed=0.0)
    flowing = arguments[-1] >= 0.0
    out, _, _ = tilted(arguments, np.zeros(4))
    assert_allclose(out[flowing], arguments[0][flowing], atol=1e-15)


@pytest.mark.parametrize("place", range(6))
def test_wrong_shapes(place):
    _, weights, _, sinks, sources, none = shares()
    with pytest.raises(ValueError, match=r"rows|labels"):
        flows.multiply(sinks[:-1], weights, np.ones(4), np.empty(4))
    arrays = [sinks, sources, none, weights, np.ones(4), np.ones(4)]
    arrays[place] = np.ascontiguousarray(arrays[place][:-1])
    outputs = np.empty((50, 4)), np.zeros(4), np.zeros(4)
    with pytest.raises(ValueError, match=r"rows|labels"):
        flows.tilt(*arrays, *outputs)
    dual, weights, neutral, sinks, sources, none = shares()
    arrays = [dual, weights, neutral, sinks, sources, none]
    arrays[place] = np.ascontiguousarray(arrays[place][:-1])
    with pytest.raises(ValueError, match="rows"):
        flows.sides(*arrays[:3], 0.1, 0.0, *arrays[3:])
