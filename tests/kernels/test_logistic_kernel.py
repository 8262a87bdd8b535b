"""The kernel of the logistic loss against its definition in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import logistic

# Blocks of the kernel have 256 rows.
each_n = pytest.mark.parametrize("n", [0, 1, 255, 256, 1000])
each_scale = pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 30.0, 1e4])


def rows(n, scale):
    """Return scores, targets and weights; some rows have no weight."""
    rng = np.random.default_rng(n)
    scores = scale * rng.standard_normal(n)
    scores[::5] = 0.0
    weights = rng.random(n)
    weights[::7] = 0.0
    return scores, rng.choice([-1.0, 1.0], n), weights


def variables(t):
    """Return v and 1 - v, neither of them rounded against the other."""
    e = np.exp(-np.abs(t))
    larger, smaller = 1.0 / (1.0 + e), e / (1.0 + e)
    return np.where(t > 0.0, larger, smaller), np.where(t > 0.0, smaller, larger)


@each_n
@each_scale
def test_value_slope_and_curvature(n, scale):
    scores, targets, weights = rows(n, scale)
    t = (-targets * scores).astype(np.longdouble)
    v, rest = variables(t)
    losses = np.log1p(np.exp(-np.abs(t))) + np.maximum(t, 0.0)
    value = logistic.value(scores, targets, weights)
    assert value == pytest.approx(float((weights * losses).sum()), rel=1e-15)
    out = np.empty(n)
    logistic.subgradient(scores, targets, weights, out)
    expected = (-weights * targets * v).astype(float)
    assert_allclose(out, expected, rtol=1e-15, atol=1e-300)
    logistic.curvature(scores, targets, weights, out)
    expected = (weights * v * rest).astype(float)
    assert_allclose(out, expected, rtol=1.5e-15, atol=1e-300)


@each_n
@each_scale
def test_slope_on_a_line(n, scale):
    scores, targets, weights = rows(n, scale)
    dscores = rows(n + 1, 1.0)[0][:n]
    v, rest = variables((-targets * (scores + 0.7 * dscores)).astype(np.longdouble))
    changes = -weights * targets * dscores
    slope, curvature = logistic.on_line(scores, dscores, targets, weights, 0.7)
    terms = changes * v
    size = float(np.abs(terms).sum())
    assert slope == pytest.approx(float(terms.sum()), rel=0, abs=1e-15 * size + 1e-300)
    expected = float((weights * dscores**2 * v * rest).sum())
    assert curvature == pytest.approx(expected, rel=2e-15, abs=1e-300)


@each_n
@pytest.mark.parametrize("least", [1e-300, 1e-12, 1e-3, 0.2])
def test_conjugate(n, least):
    rng = np.random.default_rng(n)
    _, targets, weights = rows(n, 1.0)
    v = least ** rng.random(n)
    v[1::3] = 1.0 - v[1::3]
    v[::11], v[1::11] = 0.0, 1.0
    dual = -np.where(weights > 0.0, weights, 1.0) * targets * v
    # As the kernel sees them: rounded once more.
    v = -dual * targets / np.where(weights > 0.0, weights, 1.0)
    p = np.clip(v, 0.0, 1.0).astype(np.longdouble)
    inner = (p > 0.0) & (p < 1.0)
    q = np.where(inner, p, 0.5)
    terms = np.where(inner, q * np.log(q) + (1.0 - q) * np.log1p(-q), 0.0)
    expected = float((weights * terms).sum())
    got = logistic.conjugate(dual, targets, weights)
    assert got == pytest.approx(expected, rel=1e-15, abs=1e-300)
    large = np.minimum(v, 1.0 - 2.0**-52).astype(np.longdouble)
    changes = np.where(large > 0.5, -np.log1p(-large), 0.0)
    got = logistic.conjugate_change(dual, targets, weights)
    assert got == pytest.approx(float((weights * changes).sum()), rel=1e-14)


@pytest.mark.parametrize("v", [-1e-9, 1.0 + 1e-9])
def test_conjugate_is_infinite_out_of_the_interval(v):
    dual, targets, weights = np.zeros(300), np.ones(300), np.full(300, 1.0 / 300)
    assert logistic.conjugate(dual, targets, weights) == 0.0
    dual[299] = -weights[299] * v
    assert logistic.conjugate(dual, targets, weights) == np.inf


def test_numbers_that_are_none_stay_so():
    scores, ones = np.array([1.0, np.nan, 2.0]), np.ones(3)
    assert np.isnan(logistic.value(scores, ones, ones))
    assert np.isnan(logistic.on_line(scores, ones, ones, ones, 1.0)).all()


def test_lengths_are_checked():
    two, three = np.ones(2), np.ones(3)
    with pytest.raises(ValueError, match="arrays of 2 and 3 instead of 3 rows"):
        logistic.value(three, two, three)
    with pytest.raises(ValueError, match="instead of 3 rows"):
        logistic.subgradient(three, three, three, two)
    with pytest.raises(ValueError, match="instead of 3 rows"):
        logistic.curvature(three, three, three, two)
    with pytest.raises(ValueError, match="instead of 3 rows"):
        logistic.on_line(three, three, three, two, 1.0)
    with pytest.raises(ValueError, match="instead of 3 rows"):
        logistic.conjugate(three, three, two)
    with pytest.raises(ValueError, match="instead of 3 rows"):
        logistic.conjugate_change(three, two, three)
