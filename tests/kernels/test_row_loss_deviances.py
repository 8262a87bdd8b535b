"""The deviances of ``row_loss`` against their definition in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import row_loss
from sklearn_subqn._core.losses._base import RowForm

# Blocks of the kernel have 256 rows.
each_n = pytest.mark.parametrize("n", [0, 1, 255, 256, 1000])
each_part = pytest.mark.parametrize("a", [0.0, 0.001, 0.5, 0.9, 1.0])


def form(a):
    return RowForm(2, False, 0.0, np.inf, a=a)


def rows(n, a):
    """Return scores, targets and weights; some rows have no weight, or y = 0."""
    rng = np.random.default_rng(n)
    targets = np.exp(2.0 * rng.standard_normal(n))
    if a < 1.0:
        targets[::3] = 0.0
    weights = rng.random(n)
    weights[::7] = 0.0
    return 3.0 * rng.standard_normal(n), targets, weights


def variables(z, y, a):
    z, y = z.astype(np.longdouble), y.astype(np.longdouble)
    return np.exp((1.0 - np.longdouble(a)) * z), y * np.exp(-np.longdouble(a) * z)


@each_n
@each_part
def test_value_slope_and_curvature(n, a):
    z, y, s = rows(n, a)
    b = 1.0 - a
    v, w = variables(z, y, a)
    losses = (w / a if a else -y * z) + (v / b if b else z)
    size = float((s * np.abs(losses)).sum())
    value = row_loss.value(form(a), z, y, s, None)
    assert value == pytest.approx(float((s * losses).sum()), abs=1e-15 * size)
    out = np.empty(n)
    row_loss.derivatives(form(a), z, y, s, None, 1, 0.0, 1.0, out)
    rest = np.abs(out - (s * (v - w)).astype(float))
    assert np.all(rest <= 1e-14 * (s * (v + w)).astype(float))
    row_loss.derivatives(form(a), z, y, s, None, 2, 0.0, 1.0, out)
    assert_allclose(out, (s * (b * v + a * w)).astype(float), rtol=1e-14)


@each_n
@each_part
def test_slope_on_a_line(n, a):
    z, y, s = rows(n, a)
    dz, b = rows(n + 1, a)[0][:n], 1.0 - a
    v, w = variables(z + 0.7 * dz, y, a)
    slope, curvature = row_loss.on_line(form(a), z, dz, y, s, None, 0.7)
    size = float((s * np.abs(dz) * (v + w)).sum())
    expected = float((s * dz * (v - w)).sum())
    assert slope == pytest.approx(expected, abs=1e-14 * size)
    expected = float((s * dz * dz * (b * v + a * w)).sum())
    assert curvature == pytest.approx(expected, rel=1e-14)


@each_n
@each_part
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 0.9, 30.0])
def test_no_split_has_a_smaller_conjugate(n, a, scale):
    """Its derivative along v + t, w + t is ln(v) / b + ln(w / y) / a, which is zero."""
    _, y, s = rows(n, a)
    b, rng = 1.0 - a, np.random.default_rng(1)
    change = scale * rng.standard_normal(n) * y**b
    change = np.where(y > 0.0, change, np.abs(change) + scale)
    change = np.maximum(change, -y) if not a else change
    change = np.minimum(change, 1.0) if not b else change
    conjugate, size = row_loss.conjugate(form(a), s * change, y, s, None)
    used, c, y = s > 0.0, change.astype(np.longdouble), y.astype(np.longdouble)
    if not a:
        v, w = c + y, y
    elif not b:
        v, w = np.ones_like(c), 1.0 - c
    else:
        low, high = np.zeros_like(c), y**b
        for _ in range(200):
            middle = 0.5 * (low + high)
            v, w = middle + np.maximum(c, 0.0), middle + np.maximum(-c, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.log(v) / b + np.log(w / y) / a
            low, high = (
                np.where(slope < 0.0, middle, low),
                np.where(slope < 0.0, high, middle),
            )
        middle = np.where(y > 0.0, low, 0.0)
        v, w = middle + np.maximum(c, 0.0), middle + np.maximum(-c, 0.0)
    tiny = np.longdouble("1e-4000")
    terms = (v * np.log(np.maximum(v, tiny)) - v) / b if b else 0.0 * v
    if a:
        shares = np.maximum(w, tiny) / np.where(y > 0.0, y, 1.0)
        terms = terms + (w * np.log(shares) - w) / a
    expected = float((s * terms)[used].sum())
    assert conjugate == pytest.approx(expected, rel=0.0, abs=4e-15 * size)


@pytest.mark.parametrize(("a", "change"), [(0.0, -2.1), (0.5, -0.1), (1.0, 1.1)])
def test_conjugate_is_infinite_outside_of_the_domain(a, change):
    dual, weights = np.zeros(300), np.full(300, 1.0 / 300)
    targets = np.full(300, 2.0)
    targets[299] = 0.0 if a == 0.5 else 2.0
    args = dual, targets, weights, None
    assert np.isfinite(row_loss.conjugate(form(a), *args)[0])
    dual[299] = weights[299] * change
    assert row_loss.conjugate(form(a), *args)[0] == np.inf


@each_part
def test_numbers_that_are_none_stay_so(a):
    scores, ones = np.array([1.0, np.nan, 2.0]), np.ones(3)
    args = ones, ones, None
    assert np.isnan(row_loss.value(form(a), scores, *args))
    if a != 0.5:
        return
    assert np.isnan(row_loss.on_line(form(a), scores, ones, *args, 1.0)).all()


def test_exponential_loss_of_labels():
    """It is the deviance of power 1 and y = 0 at -y z."""
    rng = np.random.default_rng(0)
    z, y, s = (
        3.0 * rng.standard_normal(300),
        rng.choice([-1.0, 1.0], 300),
        rng.random(300),
    )
    labels = RowForm(2, True, 0.0, np.inf)
    v = np.exp((-y * z).astype(np.longdouble))
    value = row_loss.value(labels, z, y, s, None)
    assert value == pytest.approx(float((s * v).sum()), rel=1e-14)
    out = np.empty(300)
    row_loss.derivatives(labels, z, y, s, None, 1, 0.0, 1.0, out)
    assert_allclose(out, (-s * y * v).astype(float), rtol=1e-14)
    conjugate, size = row_loss.conjugate(labels, out, y, s, None)
    terms = s * v * np.log(v)
    assert conjugate == pytest.approx(float((terms - s * v).sum()), abs=1e-14 * size)
    assert size == pytest.approx(float((np.abs(terms) + s * v).sum()), rel=1e-13)
    row_loss.derivatives(labels, z, y, s, None, 2, 0.0, 1.0, out)
    assert_allclose(out, (s * v).astype(float), rtol=1e-14)
