"""The smooth envelope of the hinge around dual variables."""

import numpy as np
import pytest
from _door import BINARY_LOSSES
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

WIDTHS = [2.0**-6, 0.25, 1.0, 3.0, 64.0]


@st.composite
def envelopes(draw, n_scores=1, max_rows=6):
    """Envelope, targets, weights and arrays of scores.

    Dyadic numbers and centers at both ends, so that rows lie at edges of the band.
    """
    n = draw(st.integers(1, max_rows))

    def numbers(low, high, divisor):
        each = st.integers(low, high).map(lambda i: i / divisor)
        return np.array(draw(st.lists(each, min_size=n, max_size=n)))

    targets = np.array(
        draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n))
    )
    envelope = BINARY_LOSSES["hinge"].envelope(
        numbers(0, 4, 4.0), draw(st.sampled_from(WIDTHS))
    )
    scores = [numbers(-24, 24, 8.0) for _ in range(n_scores)]
    return envelope, targets, numbers(0, 4, 16.0), *scores


def random_case(seed=0, n=200, width=0.7):
    """Envelope, scores, targets and weights, away from all kinks."""
    rng = np.random.default_rng(seed)
    envelope = BINARY_LOSSES["hinge"].envelope(rng.random(n), width)
    scores, targets = 2.0 * rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    t = envelope.smoothing.center + (1.0 - targets * scores) / width
    assert np.min(np.abs(t)) > 1e-5
    assert np.min(np.abs(t - 1.0)) > 1e-5
    assert np.count_nonzero((t > 0.0) & (t < 1.0)) > 3
    return envelope, scores, targets, rng.dirichlet(np.ones(n))


def brute_force(envelope, m):
    """Evaluate the definition, max over beta, on a fine grid for each row."""
    beta = np.linspace(0.0, 1.0, 4097)
    shift = beta - envelope.smoothing.center[:, None]
    return (beta * m[:, None] - 0.5 * envelope.smoothing.ridge * shift**2).max(axis=1)


@EXPLORE
@given(data=envelopes())
def test_value_is_the_maximum_over_dual_variables(data):
    envelope, targets, weights, scores = data
    m = 1.0 - targets * scores
    values = brute_force(envelope, m)
    # A grid misses the maximum by width / 2 times a squared half of its spacing.
    error = 0.5 * envelope.smoothing.ridge * (0.5 / 4096) ** 2
    value = envelope.oracle.value(scores, targets, weights)
    assert weights @ values - 1e-13 <= value
    assert value <= weights @ values + weights.sum() * error + 1e-13


@EXPLORE
@given(data=envelopes())
def test_below_the_hinge_by_no_more_than_the_penalty_of_the_worst_dual(data):
    envelope, targets, weights, scores = data
    hinge = BINARY_LOSSES["hinge"].oracle.value(scores, targets, weights)
    value = envelope.oracle.value(scores, targets, weights)
    worst = np.maximum(envelope.smoothing.center, 1.0 - envelope.smoothing.center) ** 2
    assert value <= hinge + 1e-14
    assert hinge - value <= 0.5 * envelope.smoothing.ridge * (weights @ worst) + 1e-13


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [0.7, 3.0])
def test_gradient_is_that_of_central_differences(seed, width):
    envelope, scores, targets, weights = random_case(seed, width=width)
    h = 1e-6
    differences = [
        envelope.oracle.value(scores + e, targets, weights)
        - envelope.oracle.value(scores - e, targets, weights)
        for e in h * np.eye(len(scores))
    ]
    gradient = envelope.oracle.subgradient(scores, targets, weights)
    assert_allclose(gradient, np.array(differences) / (2.0 * h), atol=1e-9)


@EXPLORE
@given(data=envelopes(n_scores=2))
def test_gradient_inequality(data):
    envelope, targets, weights, scores, others = data
    u = envelope.oracle.subgradient(scores, targets, weights)
    bound = envelope.oracle.value(scores, targets, weights) + u @ (others - scores)
    assert envelope.oracle.value(others, targets, weights) >= bound - 1e-13


@EXPLORE
@given(data=envelopes(n_scores=2), share=st.integers(0, 8).map(lambda i: i / 8.0))
def test_convex(data, share):
    envelope, targets, weights, scores, others = data
    between = envelope.oracle.value(
        share * scores + (1.0 - share) * others, targets, weights
    )
    chord = share * envelope.oracle.value(scores, targets, weights)
    chord += (1.0 - share) * envelope.oracle.value(others, targets, weights)
    assert between <= chord + 1e-13


@EXPLORE
@given(data=envelopes(n_scores=2))
def test_gradient_is_as_steep_as_the_width_allows(data):
    envelope, targets, weights, scores, others = data
    change = envelope.oracle.subgradient(others, targets, weights)
    change -= envelope.oracle.subgradient(scores, targets, weights)
    allowed = weights * np.abs(others - scores) / envelope.smoothing.ridge
    assert np.all(np.abs(change) <= allowed + 1e-14)


@EXPLORE
@given(data=envelopes())
def test_gradients_are_duals_of_the_hinge(data):
    envelope, targets, weights, scores = data
    u = envelope.oracle.subgradient(scores, targets, weights)
    assert np.all(-targets * u >= 0.0)
    assert np.all(-targets * u <= weights)
    # A cut of the hinge: below it everywhere, here at scores of all kinds.
    offset = BINARY_LOSSES["hinge"].oracle.conjugate(u, targets, weights)
    for others in (scores, targets, -targets, 3.0 * targets):
        cut = u @ others - offset
        assert (
            BINARY_LOSSES["hinge"].oracle.value(others, targets, weights) >= cut - 1e-13
        )


@EXPLORE
@given(data=envelopes())
def test_fenchel_young_is_an_equation_at_gradients(data):
    envelope, targets, weights, scores = data
    u = envelope.oracle.subgradient(scores, targets, weights)
    both = envelope.oracle.value(scores, targets, weights)
    both += envelope.oracle.conjugate(u, targets, weights)
    assert both == pytest.approx(u @ scores, abs=1e-12)


@EXPLORE
@given(data=envelopes(), seed=st.integers(0, 999))
def test_conjugate_is_the_smallest_that_fenchel_young_allows(data, seed):
    envelope, targets, weights, scores = data
    beta = np.random.default_rng(seed).random(len(targets))
    u = -beta * weights * targets
    conjugate = envelope.oracle.conjugate(u, targets, weights)
    value = envelope.oracle.value(scores, targets, weights)
    assert value + conjugate >= u @ scores - 1e-12
    # u is the gradient where center + m / width = beta.
    attained = targets * (
        1.0 - envelope.smoothing.ridge * (beta - envelope.smoothing.center)
    )
    assert_allclose(
        envelope.oracle.subgradient(attained, targets, weights), u, atol=1e-13
    )
    value = envelope.oracle.value(attained, targets, weights)
    assert value + conjugate == pytest.approx(u @ attained, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_curvature_is_the_derivative_of_the_gradient(seed):
    envelope, scores, targets, weights = random_case(seed)
    h = 1e-6
    change = envelope.oracle.subgradient(scores + h, targets, weights)
    change -= envelope.oracle.subgradient(scores - h, targets, weights)
    curvature = envelope.oracle.curvature(scores, targets, weights).diagonal()
    assert_allclose(curvature, change / (2.0 * h), atol=1e-8)


@pytest.mark.parametrize("center", [0.0, 0.25, 1.0])
def test_curvature_at_the_edges_is_that_inside(center):
    width, targets, weights = 0.5, np.ones(2), np.full(2, 0.5)
    envelope = BINARY_LOSSES["hinge"].envelope(np.full(2, center), width)
    edges = 1.0 - width * (np.array([0.0, 1.0]) - center)
    curvature = envelope.oracle.curvature(edges, targets, weights).diagonal()
    assert_array_equal(curvature, weights / width)
    beyond = edges + np.array([1e-6, -1e-6])
    assert envelope.oracle.curvature(beyond, targets, weights).rows().size == 0


@EXPLORE
@given(data=envelopes(n_scores=2), step=st.integers(0, 64).map(lambda i: i / 8.0))
def test_derivatives_are_those_on_the_line(data, step):
    envelope, targets, weights, scores, dscores = data
    at = envelope.oracle.derivatives(scores, dscores, targets, weights)
    slope, curvature = at(step)
    there = scores + step * dscores
    gradient = envelope.oracle.subgradient(there, targets, weights)
    assert slope == pytest.approx(gradient @ dscores, abs=1e-11)
    h = 2.0**-16

    def rate(side):
        moved = envelope.oracle.subgradient(
            there + side * h * dscores, targets, weights
        )
        return side * (moved - gradient) @ dscores / h

    # At the edge of the band, where the slope has a kink, that of either side: row by
    # row, so that all mixtures of the sides may occur.
    t = envelope.smoothing.center + (1.0 - targets * there) / envelope.smoothing.ridge
    if np.all((t != 0.0) & (t != 1.0)):
        assert rate(1.0) == pytest.approx(rate(-1.0), rel=1e-6, abs=1e-6)
        assert curvature == pytest.approx(rate(1.0), rel=1e-6, abs=1e-6)
    else:
        rows = weights * dscores**2 / envelope.smoothing.ridge
        inside, edge = (t > 0.0) & (t < 1.0), (t == 0.0) | (t == 1.0)
        assert curvature >= rows[inside].sum() - 1e-9
        assert curvature <= rows[inside | edge].sum() + 1e-9
    # Each call starts afresh.
    at(step + 1.0)
    assert at(step) == (slope, curvature)


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_of_no_width_is_the_hinge(seed):
    _, scores, targets, weights = random_case(seed)
    center = np.random.default_rng(seed).random(len(scores))
    hinge = BINARY_LOSSES["hinge"].oracle.value(scores, targets, weights)
    previous = -np.inf
    for width in 10.0 ** -np.arange(0, 13):
        envelope = BINARY_LOSSES["hinge"].envelope(center, width)
        value = envelope.oracle.value(scores, targets, weights)
        assert previous - 1e-15 <= value <= hinge + 1e-15
        assert hinge - value <= 0.5 * width + 1e-15
        previous = value
    u = envelope.oracle.subgradient(scores, targets, weights)
    assert_array_equal(
        u, BINARY_LOSSES["hinge"].oracle.subgradient(scores, targets, weights)
    )


@EXPLORE
@given(data=envelopes())
def test_a_center_at_a_subgradient_touches_the_hinge(data):
    # The reason why the method of multipliers is exact for any width.
    envelope, targets, weights, scores = data
    hinge = BINARY_LOSSES["hinge"]
    u = hinge.oracle.subgradient(scores, targets, weights)
    beta = hinge.oracle.dual_variables(u, targets, weights)
    touching = hinge.envelope(
        np.where(weights > 0.0, beta, 0.5), envelope.smoothing.ridge
    )
    value = touching.oracle.value(scores, targets, weights)
    assert value == pytest.approx(
        hinge.oracle.value(scores, targets, weights), abs=1e-14
    )
    assert_array_equal(touching.oracle.subgradient(scores, targets, weights), u)


@EXPLORE
@given(data=envelopes())
def test_dual_variables_invert_the_dual(data):
    envelope, targets, weights, scores = data
    u = envelope.oracle.subgradient(scores, targets, weights)
    beta = BINARY_LOSSES["hinge"].oracle.dual_variables(u, targets, weights)
    assert np.all((beta >= 0.0) & (beta <= 1.0))
    assert_allclose(-beta * weights * targets, u, rtol=1e-15)
    assert not beta[weights == 0.0].any()
    t = envelope.smoothing.center + (1.0 - targets * scores) / envelope.smoothing.ridge
    positive = weights > 0.0
    assert_allclose(beta[positive], np.clip(t, 0.0, 1.0)[positive], rtol=1e-15)


def test_dual_variables_of_a_dual_outside_the_box_are_clipped():
    targets, weights = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 0.5, 0.0, 0.5])
    u = np.array([-7.0, -7.0, 1.0, 0.25])
    beta = BINARY_LOSSES["hinge"].oracle.dual_variables(u, targets, weights)
    assert_array_equal(beta, [1.0, 0.0, 0.0, 0.5])


def test_rows_of_no_weight_do_not_count():
    envelope, scores, targets, weights = random_case()
    weights[1::2] = 0.0
    few = BINARY_LOSSES["hinge"].envelope(
        envelope.smoothing.center[::2].copy(), envelope.smoothing.ridge
    )
    args = scores[::2].copy(), targets[::2].copy(), weights[::2].copy()
    value = envelope.oracle.value(scores, targets, weights)
    assert value == pytest.approx(few.oracle.value(*args), rel=1e-14)
    u = envelope.oracle.subgradient(scores, targets, weights)
    assert_array_equal(u[::2], few.oracle.subgradient(*args))
    assert not u[1::2].any()
    expected = few.oracle.conjugate(u[::2], *args[1:])
    assert envelope.oracle.conjugate(u, targets, weights) == pytest.approx(expected)
    assert (
        not envelope.oracle.curvature(scores, targets, weights).diagonal()[1::2].any()
    )


def test_arguments_are_only_read():
    envelope, scores, targets, weights = random_case()
    dscores = np.ones_like(scores)
    for array in (envelope.smoothing.center, scores, dscores, targets, weights):
        array.flags.writeable = False
    u = envelope.oracle.subgradient(scores, targets, weights)
    u.flags.writeable = False
    envelope.oracle.value(scores, targets, weights)
    envelope.oracle.conjugate(u, targets, weights)
    envelope.oracle.curvature(scores, targets, weights)
    envelope.oracle.derivatives(scores, dscores, targets, weights)(0.5)
    BINARY_LOSSES["hinge"].oracle.dual_variables(u, targets, weights)
