"""Huber's loss with its scale minimized over, by brute force over scales."""

import numpy as np
import pytest
from _door import DualLoss, ScaledHuber
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

EPSILONS = [1.0, 1.35, 3.0]

# None of the residuals is zero, or most are, so that the least scale is the best one.
ZEROS = [0, 38]


def rows(epsilon, n_zeros):
    rng = np.random.default_rng(int(10 * epsilon) + n_zeros)
    y, z = 3.0 * rng.standard_t(2, size=(2, 40))
    z[:n_zeros] = y[:n_zeros]
    weights = rng.uniform(0.1, 1.0, 40)
    weights[-1] = 0.0
    return z, y, weights / weights.sum(), rng


def by_brute_force(z, y, weights, epsilon, least):
    def value(log_scale):
        scale = np.exp(log_scale)
        t = np.abs(y - z) / scale
        losses = np.where(t <= epsilon, t * t, 2.0 * epsilon * t - epsilon**2)
        return scale + scale * float(weights @ losses)

    bounds = np.log(least), np.log(1e3)
    options = {"xatol": 1e-10}
    found = minimize_scalar(value, bounds=bounds, method="bounded", options=options)
    return min(found.fun, value(bounds[0]))


@pytest.mark.parametrize("least", [1e-6, 0.5])
@pytest.mark.parametrize("n_zeros", ZEROS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_value_gradient_and_conjugate(epsilon, n_zeros, least):
    z, y, weights, rng = rows(epsilon, n_zeros)
    loss, args = ScaledHuber(epsilon, least), (y, weights)
    value, u = loss.value(z, *args), loss.subgradient(z, *args)
    expected = by_brute_force(z, *args, epsilon, least)
    assert value == pytest.approx(expected, rel=1e-8)
    # Fenchel and Young's equality, and a bound of all values.
    assert loss.feasible(u, *args).all()
    assert loss.distance(u, *args) <= 1e-14
    conjugate = loss.conjugate(u, *args)
    assert conjugate == pytest.approx(float(u @ z) - value, rel=1e-12, abs=1e-12)
    for other in 5.0 * rng.normal(size=(20, 40)):
        at = loss.value(other, *args)
        assert at >= float(u @ other) - conjugate - 1e-12
        # A point of the domain on the way to zero, whose conjugate is known as well.
        assert at >= 0.3 * float(u @ other) - loss.conjugate(0.3 * u, *args) - 1e-12
    assert loss.conjugate(0.0 * u, *args) == pytest.approx(-least)


@pytest.mark.parametrize("width", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("least", [1e-6, 0.5, 50.0])
def test_cuts_of_envelopes_are_tight_and_below_the_risk(least, width):
    z, y, weights, rng = rows(1.35, 0)
    loss, args = ScaledHuber(1.35, least), (y, weights)
    if width:
        u = loss.subgradient(z + rng.normal(size=40), *args)
        loss = loss.envelope(loss.dual_variables(u, *args), width)
    value, u = loss.value(z, *args), loss.subgradient(z, *args)
    height, size = loss.conjugate_and_size(u, *args)
    assert height == pytest.approx(float(u @ z) - value, rel=1e-12, abs=1e-12)
    assert height == loss.conjugate(u, *args)
    assert size == loss.conjugate_size(u, *args, height)


@pytest.mark.parametrize("width", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_slopes_on_lines_and_second_derivatives(epsilon, width):
    z, y, weights, rng = rows(epsilon, 0)
    loss, args = ScaledHuber(epsilon, 1e-6), (y, weights)
    if width:
        u = loss.subgradient(z + rng.normal(size=40), *args)
        loss = loss.envelope(loss.dual_variables(u, *args), width)
    p, h = rng.normal(size=40), 1e-5
    at = loss.derivatives(z, p, *args)
    slope, curvature = at(0.0)
    low, high = (loss.value(z + step * p, *args) for step in (-h, h))
    assert slope == pytest.approx((high - low) / (2.0 * h), rel=1e-5, abs=1e-7)
    assert slope == pytest.approx(float(loss.subgradient(z, *args) @ p), rel=1e-10)
    change = (at(h)[0] - at(-h)[0]) / (2.0 * h)
    assert curvature == pytest.approx(change, rel=1e-4, abs=1e-6)
    # Second derivatives are bounds of these.
    bound = float(loss.curvature(z, *args).diagonal() @ (p * p))
    assert bound >= curvature * (1.0 - 1e-12)


@pytest.mark.parametrize("n_zeros", [0, 38, 40])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_envelopes_are_maxima_less_squares(epsilon, n_zeros):
    z, y, weights, rng = rows(epsilon, n_zeros)
    loss, args = ScaledHuber(epsilon, 1e-9), (y, weights)
    u = loss.subgradient(z + rng.normal(size=40), *args)
    center = loss.dual_variables(u, *args)
    smooth = loss.envelope(center, 0.2)
    value, dual = smooth.value(z, *args), smooth.subgradient(z, *args)
    v = loss.dual_variables(dual, *args)
    height = float(dual @ z) - loss.conjugate(dual, *args)
    square = 0.1 * float(weights @ np.square(v - center))
    assert value == pytest.approx(height - square, rel=1e-11, abs=1e-12)
    # No mixture with other points of the domain is better.
    for share in (0.01, 0.3, 1.0):
        other = (1.0 - share) * dual + share * u
        away = loss.dual_variables(other, *args) - center
        height = float(other @ z) - loss.conjugate(other, *args)
        assert height - 0.1 * float(weights @ (away * away)) <= value + 1e-12
    conjugate = smooth.conjugate(dual, *args)
    assert conjugate == pytest.approx(float(dual @ z) - value, rel=1e-11, abs=1e-12)


def test_it_becomes_the_absolute_loss_where_its_scale_vanishes():
    z, y, weights, _ = rows(1.35, 38)
    loss = DualLoss(ScaledHuber(1.35, 1e-9))
    assert loss.smooth
    assert loss.sharpens
    value = loss.kinked().oracle.value(z, y, weights)
    assert value == pytest.approx(2.7 * float(weights @ np.abs(y - z)))
    assert loss.oracle.value(z, y, weights) == pytest.approx(value, abs=2e-9)
    u = 3.0 * loss.oracle.subgradient(z + 1.0, y, weights)
    shorter = loss.oracle.projected(u, y, weights)
    v = np.divide(shorter, weights, out=np.zeros(40), where=weights > 0.0)
    assert weights @ (v * v) == pytest.approx(4.0)
    assert_allclose(shorter / np.linalg.norm(shorter), u / np.linalg.norm(u))
    assert loss.oracle.distance(3.0 * shorter, y, weights) == pytest.approx(
        4.0 + loss.kinked().oracle.distance(3.0 * shorter, y, weights)
    )
