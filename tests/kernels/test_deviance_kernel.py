"""The kernel of deviances against their definition in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import deviance

# Blocks of the kernel have 256 rows.
each_n = pytest.mark.parametrize("n", [0, 1, 255, 256, 1000])
each_part = pytest.mark.parametrize("a", [0.0, 0.001, 0.5, 0.9, 1.0])


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
    value = deviance.value(z, y, s, a, b)
    assert value == pytest.approx(float((s * losses).sum()), abs=1e-15 * size)
    out = np.empty(n)
    deviance.subgradient(z, y, s, a, b, out)
    rest = np.abs(out - (s * (v - w)).astype(float))
    assert np.all(rest <= 1e-14 * (s * (v + w)).astype(float))
    deviance.curvature(z, y, s, a, b, out)
    assert_allclose(out, (s * (b * v + a * w)).astype(float), rtol=1e-14)
    rising, falling, largest = deviance.sums(z, y, s, a, b)
    assert rising == pytest.approx(float((s * v).sum()), rel=1e-14)
    assert falling == pytest.approx(float((s * w).sum()), rel=1e-14)
    if n:
        positive = y[y > 0.0] if a else y[:0]
        arguments = np.log(positive) - a * z[y > 0.0] if a else positive
        expected = max((b * z).max(), arguments.max(initial=-np.inf))
        assert largest == pytest.approx(expected, rel=1e-14)


@each_n
@each_part
def test_slope_on_a_line(n, a):
    z, y, s = rows(n, a)
    dz, b = rows(n + 1, a)[0][:n], 1.0 - a
    v, w = variables(z + 0.7 * dz, y, a)
    slope, curvature = deviance.on_line(z, dz, y, s, a, b, 0.7)
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
    conjugate, size, square = deviance.conjugate(s * change, y, s, a, b)
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
    assert square == pytest.approx(float((s * (v + w) ** 2)[used].sum()), rel=1e-12)


@pytest.mark.parametrize(("a", "change"), [(0.0, -2.1), (0.5, -0.1), (1.0, 1.1)])
def test_conjugate_is_infinite_outside_of_the_domain(a, change):
    dual, weights = np.zeros(300), np.full(300, 1.0 / 300)
    targets = np.full(300, 2.0)
    targets[299] = 0.0 if a == 0.5 else 2.0
    assert np.isfinite(deviance.conjugate(dual, targets, weights, a, 1.0 - a)[0])
    dual[299] = weights[299] * change
    assert deviance.conjugate(dual, targets, weights, a, 1.0 - a)[0] == np.inf


@each_part
def test_numbers_that_are_none_stay_so(a):
    scores, ones = np.array([1.0, np.nan, 2.0]), np.ones(3)
    args = ones, ones, a, 1.0 - a
    assert np.isnan(deviance.value(scores, *args))
    if a != 0.5:
        return
    assert np.isnan(deviance.on_line(scores, ones, *args, 1.0)).all()


def test_lengths_are_checked():
    two, three = np.ones(2), np.ones(3)
    match = "instead of 3 rows"
    with pytest.raises(ValueError, match="arrays of 2 and 3 instead of 3 rows"):
        deviance.value(three, two, three, 0.5, 0.5)
    with pytest.raises(ValueError, match=match):
        deviance.subgradient(three, three, three, 0.5, 0.5, two)
    with pytest.raises(ValueError, match=match):
        deviance.curvature(three, three, three, 0.5, 0.5, two)
    with pytest.raises(ValueError, match=match):
        deviance.on_line(three, three, three, two, 0.5, 0.5, 1.0)
    with pytest.raises(ValueError, match=match):
        deviance.sums(three, two, three, 0.5, 0.5)
    with pytest.raises(ValueError, match=match):
        deviance.conjugate(three, three, two, 0.5, 0.5)
