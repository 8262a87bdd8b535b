"""The logistic loss of ``row_loss`` against its definition in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import row_loss
from sklearn_subqn._core.losses._base import RowForm

FORM = RowForm(1, True, 0.0, 1.0)
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
    value = row_loss.value(FORM, scores, targets, weights, None)
    assert value == pytest.approx(float((weights * losses).sum()), rel=1e-15)
    out = np.empty(n)
    row_loss.derivatives(FORM, scores, targets, weights, None, 1, 0.0, 1.0, out)
    expected = (-weights * targets * v).astype(float)
    assert_allclose(out, expected, rtol=1e-15, atol=1e-300)
    row_loss.derivatives(FORM, scores, targets, weights, None, 2, 0.0, 1.0, out)
    expected = (weights * v * rest).astype(float)
    assert_allclose(out, expected, rtol=1.5e-15, atol=1e-300)


@each_n
@each_scale
def test_slope_on_a_line(n, scale):
    scores, targets, weights = rows(n, scale)
    dscores = rows(n + 1, 1.0)[0][:n]
    v, rest = variables((-targets * (scores + 0.7 * dscores)).astype(np.longdouble))
    changes = -weights * targets * dscores
    args = scores, dscores, targets, weights, None
    slope, curvature = row_loss.on_line(FORM, *args, 0.7)
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
    got, size = row_loss.conjugate(FORM, dual, targets, weights, None)
    assert got == pytest.approx(expected, rel=1e-15, abs=1e-300)
    large = np.minimum(v, 1.0 - 2.0**-53).astype(np.longdouble)
    changes = np.where(large > 0.5, -np.log1p(-large), 0.0)
    assert size == pytest.approx(float((weights * changes).sum()), rel=1e-14)


@pytest.mark.parametrize("v", [-1e-9, 1.0 + 1e-9])
def test_conjugate_is_infinite_out_of_the_interval(v):
    dual, targets, weights = np.zeros(300), np.ones(300), np.full(300, 1.0 / 300)
    assert row_loss.conjugate(FORM, dual, targets, weights, None)[0] == 0.0
    dual[299] = -weights[299] * v
    assert row_loss.conjugate(FORM, dual, targets, weights, None)[0] == np.inf


def test_numbers_that_are_none_stay_so():
    scores, ones = np.array([1.0, np.nan, 2.0]), np.ones(3)
    assert np.isnan(row_loss.value(FORM, scores, ones, ones, None))
    assert np.isnan(row_loss.on_line(FORM, scores, ones, ones, ones, None, 1.0)).all()


def test_envelopes_need_centers():
    ones, envelope = np.ones(3), RowForm(0, True, 0.0, 1.0, width=0.1)
    with pytest.raises(ValueError, match="a width needs centers"):
        row_loss.value(envelope, ones, ones, ones, None)
