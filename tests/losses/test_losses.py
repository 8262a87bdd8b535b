"""Losses as convex functions of scores."""

from itertools import pairwise, product

import numpy as np
import pytest
from _door import BINARY_LOSSES
from _problems import EXPLORE, each_loss
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.losses._base import TIE_TOLERANCE
from sklearn_subqn.losses import PiecewiseQuadratic


@st.composite
def rows(draw, n_scores=1, max_rows=6):
    """Targets, weights and arrays of scores: quarters, which hit kinks exactly."""
    n = draw(st.integers(1, max_rows))
    quarters = st.lists(
        st.integers(-12, 12).map(lambda i: i / 4.0), min_size=n, max_size=n
    )
    targets = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    scores = [np.array(draw(quarters)) for _ in range(n_scores)]
    return np.array(targets), np.array(weights) / 16.0, *scores


def all_subgradients(scores, targets, weights):
    """The vertices of the subdifferential of the hinge risk."""
    m = 1.0 - targets * scores
    choices = [(0.0, 1.0) if mi == 0.0 else (float(mi > 0.0),) for mi in m]
    return [-np.array(beta) * weights * targets for beta in product(*choices)]


def slope_on_line(loss, scores, dscores, targets, weights, *, step):
    if loss.smooth:
        return loss.oracle.derivatives(scores, dscores, targets, weights)(step)[0]
    return loss.oracle.restrict(scores, dscores, targets, weights).slope_at(step)


def area_under_slope(f, step):
    """Return f(step) - f(0): the slope is affine between kinks."""
    ends = np.unique(np.concatenate([[0.0], f.kinks[f.kinks < step], [step]]))
    total = 0.0
    for a, b in pairwise(ends):
        # Not slope_at(b), which is to the right of the kink there.
        middle = 0.5 * (a + b)
        total += (b - a) * f.slope_at(middle)
    return total


@each_loss
def test_gradient_is_that_of_central_differences_away_from_kinks(loss):
    rng = np.random.default_rng(0)
    scores, targets = 3.0 * rng.normal(size=30), rng.choice([-1.0, 1.0], 30)
    weights = rng.dirichlet(np.ones(30))
    h = 1e-6
    assert np.min(np.abs(1.0 - targets * scores)) > h
    differences = [
        (loss.oracle.value(scores + e, targets, weights))
        - (loss.oracle.value(scores - e, targets, weights))
        for e in h * np.eye(30)
    ]
    u = loss.oracle.subgradient(scores, targets, weights)
    assert_allclose(u, np.array(differences) / (2.0 * h), atol=1e-8)


@each_loss
@EXPLORE
@given(data=rows(n_scores=2))
def test_subgradient_inequality(loss, data):
    targets, weights, scores, others = data
    u = loss.oracle.subgradient(scores, targets, weights)
    bound = loss.oracle.value(scores, targets, weights) + u @ (others - scores)
    assert loss.oracle.value(others, targets, weights) >= bound - 1e-14


def test_convention_on_the_margin_is_the_zero_subgradient():
    one = np.ones(1)
    assert_array_equal(BINARY_LOSSES["hinge"].oracle.subgradient(one, one, one), [0.0])
    # So does the oracle where the direction leaves the margin as it is (3.28).
    assert_array_equal(
        BINARY_LOSSES["hinge"].oracle.argsup(one, np.zeros(1), one, one), [0.0]
    )


@EXPLORE
@given(data=rows(n_scores=2))
def test_argsup_is_the_steepest_vertex(data):
    targets, weights, scores, dscores = data
    hinge = BINARY_LOSSES["hinge"]
    margin = hinge.oracle.kink_rows(scores, targets)
    assert_array_equal(margin, np.flatnonzero(targets * scores == 1.0))
    u = hinge.oracle.subgradient(scores, targets, weights)
    u[margin] = hinge.oracle.argsup(
        scores[margin], dscores[margin], targets[margin], weights[margin]
    )
    vertices = all_subgradients(scores, targets, weights)
    assert any(np.array_equal(u, vertex) for vertex in vertices)
    assert u @ dscores == max(vertex @ dscores for vertex in vertices)


@EXPLORE
@given(data=rows(n_scores=2))
def test_argsup_is_the_directional_derivative(data):
    targets, weights, scores, dscores = data
    hinge = BINARY_LOSSES["hinge"]
    margin = hinge.oracle.kink_rows(scores, targets)
    u = hinge.oracle.subgradient(scores, targets, weights)
    u[margin] = hinge.oracle.argsup(
        scores[margin], dscores[margin], targets[margin], weights[margin]
    )
    # The nearest other kink is further off than 1 / 32 of any of these directions, and
    # all numbers are dyadic: the difference quotient is exact.
    step = 2.0**-5
    ahead = hinge.oracle.value(scores + step * dscores, targets, weights)
    assert u @ dscores == (ahead - hinge.oracle.value(scores, targets, weights)) / step


@pytest.mark.parametrize("target", [-1.0, 1.0])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_one_tolerance_decides_what_lies_on_the_margin(target, side):
    hinge, targets, weights = (
        BINARY_LOSSES["hinge"],
        np.full(2, target),
        np.full(2, 0.5),
    )
    scores = target * (1.0 + side * TIE_TOLERANCE * np.array([0.5, 2.0]))
    dscores = np.full(2, -side * target)
    assert_array_equal(hinge.oracle.kink_rows(scores, targets), [0])
    # The row off the margin has a kink ahead, the row on it none, on neither side.
    assert hinge.oracle.restrict(scores, dscores, targets, weights).kinks.size == 1
    assert hinge.oracle.subgradient(scores, targets, weights)[0] == 0.0


@each_loss
def test_smooth_losses_have_no_kink_rows(loss):
    on_margin = loss.oracle.kink_rows(np.ones(3), np.ones(3))
    assert_array_equal(on_margin, [] if loss.smooth else [0, 1, 2])


@each_loss
@EXPLORE
@given(data=rows())
def test_fenchel_young_is_an_equation_at_subgradients(loss, data):
    targets, weights, scores = data
    u = loss.oracle.subgradient(scores, targets, weights)
    both = loss.oracle.value(scores, targets, weights) + loss.oracle.conjugate(
        u, targets, weights
    )
    assert both == pytest.approx(u @ scores, abs=1e-13)


@EXPLORE
@given(data=rows())
def test_fenchel_young_holds_at_all_subgradients_on_the_margin(data):
    targets, weights, scores = data
    value = BINARY_LOSSES["hinge"].oracle.value(scores, targets, weights)
    for u in all_subgradients(scores, targets, weights):
        assert (
            value + BINARY_LOSSES["hinge"].oracle.conjugate(u, targets, weights)
            == u @ scores
        )


@each_loss
@EXPLORE
@given(data=rows(n_scores=2), seed=st.integers(0, 999))
def test_conjugate_is_the_smallest_that_fenchel_young_allows(loss, data, seed):
    targets, weights, scores, _ = data
    beta = np.random.default_rng(seed).random(len(targets))
    u = -beta * weights * targets
    conjugate = loss.oracle.conjugate(u, targets, weights)
    assert loss.oracle.value(scores, targets, weights) + conjugate >= u @ scores - 1e-14
    # u is the subgradient at these scores: beta is any on the margin, or twice m.
    violations = 0.0 if loss is BINARY_LOSSES["hinge"] else 0.5 * beta
    attained = targets * (1.0 - violations)
    value = loss.oracle.value(attained, targets, weights)
    assert value + conjugate == pytest.approx(u @ attained, abs=1e-13)


STEPS = st.integers(0, 64).map(lambda i: i / 8.0)


@EXPLORE
@given(data=rows(n_scores=2), step=STEPS)
def test_restriction_is_the_loss_on_the_line(data, step):
    targets, weights, scores, dscores = data
    hinge = BINARY_LOSSES["hinge"]
    f = hinge.oracle.restrict(scores, dscores, targets, weights)
    assert np.all(f.kinks > 0.0)
    assert np.all(f.slope_jumps >= 0.0)
    assert f.curvature == 0.0
    assert not f.curvature_jumps.any()
    rise = hinge.oracle.value(scores + step * dscores, targets, weights)
    rise -= hinge.oracle.value(scores, targets, weights)
    assert area_under_slope(f, step) == pytest.approx(rise, abs=1e-12)
    # Kinks are fractions with denominators up to 12: none lies in this short stretch.
    h = 2.0**-20
    ahead = hinge.oracle.value(scores + (step + h) * dscores, targets, weights)
    ahead -= hinge.oracle.value(scores + step * dscores, targets, weights)
    assert f.slope_at(step) == pytest.approx(ahead / h, abs=1e-9)


@EXPLORE
@given(data=rows(n_scores=2), step=STEPS)
def test_derivatives_are_those_of_the_loss_on_the_line(data, step):
    targets, weights, scores, dscores = data
    squared = BINARY_LOSSES["squared_hinge"]
    derivatives = squared.oracle.derivatives(scores, dscores, targets, weights)

    def value(step):
        return squared.oracle.value(scores + step * dscores, targets, weights)

    slope, curvature = derivatives(step)
    gradient = squared.oracle.subgradient(scores + step * dscores, targets, weights)
    assert slope == pytest.approx(gradient @ dscores, abs=1e-13)
    # The value is quadratic up to the next kink on each side, a sixtieth or more away.
    h = 2.0**-8
    right, left = (
        (value(step + h) - value(step)) / h,
        (value(step) - value(step - h)) / h,
    )
    expected = 2.0 * (right - slope) / h, 2.0 * (slope - left) / h
    assert min(expected) - 1e-8 <= curvature <= max(expected) + 1e-8
    # Each call starts afresh.
    derivatives(step + 1.0)
    assert derivatives(step) == (slope, curvature)


def test_curvature_is_the_derivative_of_the_gradient():
    rng = np.random.default_rng(0)
    scores, targets = 3.0 * rng.normal(size=30), rng.choice([-1.0, 1.0], 30)
    weights, h = rng.dirichlet(np.ones(30)), 1e-6
    assert np.min(np.abs(1.0 - targets * scores)) > h
    squared = BINARY_LOSSES["squared_hinge"]
    change = squared.oracle.subgradient(scores + h, targets, weights)
    change -= squared.oracle.subgradient(scores - h, targets, weights)
    curvature = squared.oracle.curvature(scores, targets, weights).diagonal()
    assert_allclose(curvature, change / (2.0 * h), atol=1e-8)


@each_loss
def test_rows_of_no_weight_do_not_count(loss):
    rng = np.random.default_rng(1)
    scores, dscores = rng.normal(size=(2, 6))
    targets = rng.choice([-1.0, 1.0], 6)
    weights = np.array([0.5, 0.0, 0.25, 0.0, 0.25, 0.0])
    few = scores[::2].copy(), targets[::2].copy(), weights[::2].copy()
    assert loss.oracle.value(scores, targets, weights) == loss.oracle.value(*few)
    u = loss.oracle.subgradient(scores, targets, weights)
    assert_array_equal(u[::2], loss.oracle.subgradient(*few))
    assert not u[1::2].any()
    expected = loss.oracle.conjugate(u[::2], targets[::2], weights[::2])
    assert loss.oracle.conjugate(u, targets, weights) == pytest.approx(expected)
    slope = slope_on_line(loss, scores, dscores, targets, weights, step=3.0)
    expected = slope_on_line(loss, few[0], dscores[::2].copy(), *few[1:], step=3.0)
    assert slope == pytest.approx(expected)


@each_loss
def test_arguments_are_only_read(loss):
    arrays = [np.array([1.0, 0.5, -2.0]), np.array([0.5, -1.0, 1.0])]
    arrays += [np.array([1.0, -1.0, 1.0]), np.full(3, 1 / 3)]
    for array in arrays:
        array.flags.writeable = False
    scores, dscores, targets, weights = arrays
    loss.oracle.value(scores, targets, weights)
    loss.oracle.conjugate(
        loss.oracle.subgradient(scores, targets, weights), targets, weights
    )
    loss.oracle.kink_rows(scores, targets)
    loss.oracle.argsup(scores, dscores, targets, weights)
    slope_on_line(loss, scores, dscores, targets, weights, step=1.0)


def test_losses_say_what_they_do_not_offer():
    args = np.ones(1), np.ones(1), np.ones(1), np.ones(1)
    with pytest.raises(TypeError, match="SmoothRowLoss has no restriction"):
        BINARY_LOSSES["squared_hinge"].oracle.restrict(*args)
    with pytest.raises(TypeError, match="KinkedRowLoss has no derivatives"):
        BINARY_LOSSES["hinge"].oracle.derivatives(*args)
    with pytest.raises(TypeError, match="KinkedRowLoss has no second derivatives"):
        BINARY_LOSSES["hinge"].oracle.curvature(*args[:3])


def quadratic(seed):
    rng = np.random.default_rng(seed)
    return PiecewiseQuadratic(*rng.normal(size=2), rng.random(4), *rng.random((2, 4)))


@pytest.mark.parametrize("step", [0.0, 0.3, 2.0])
def test_sums_and_multiples_of_piecewise_quadratics(step):
    f, g, smooth = quadratic(0), quadratic(1), PiecewiseQuadratic.smooth(-1.0, 2.0)
    assert smooth.slope_at(step) == -1.0 + 2.0 * step
    for a, b in [(f, g), (f, smooth), (smooth, f), (smooth, smooth)]:
        total = (a + b.scaled(3.0)).slope_at(step)
        assert total == pytest.approx(a.slope_at(step) + 3.0 * b.slope_at(step))


def test_slope_at_a_kink_is_the_right_hand_one():
    f = PiecewiseQuadratic(-1.0, 0.0, np.array([2.0]), np.array([3.0]), np.zeros(1))
    assert f.slope_at(np.nextafter(2.0, 0.0)) == -1.0
    assert f.slope_at(2.0) == 2.0
