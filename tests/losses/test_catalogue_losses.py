"""The losses of Teo et al. (2010), Tables 5 and 6, as convex functions of scores."""

from itertools import pairwise

import numpy as np
import pytest
from _door import BINARY_LOSSES, NOVELTY_LOSS, MultivariateSquared, regression_losses
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn.losses import Loss

PIECEWISE = {
    "absolute": regression_losses()["absolute_error"],
    "quantile": regression_losses(quantile=0.75)["quantile"],
    "epsilon": regression_losses(epsilon=0.5)["epsilon_insensitive"],
    "novelty": NOVELTY_LOSS,
}
SMOOTH = {
    "squared": regression_losses()["squared_error"],
    "huber": regression_losses(epsilon=0.75)["huber"],
    "poisson": regression_losses()["poisson"],
    "exponential": BINARY_LOSSES["exponential"],
}
# The definitions of Table 5, of one score z and target y.
DEFINITIONS = {
    "absolute": lambda z, y: abs(y - z),
    "quantile": lambda z, y: max(0.75 * (y - z), -0.25 * (y - z)),
    "epsilon": lambda z, y: max(0.0, abs(z - y) - 0.5),
    "novelty": lambda z, y: max(0.0, y - z),
    "squared": lambda z, y: 0.5 * (z - y) ** 2,
    "huber": lambda z, y: (
        0.5 * (z - y) ** 2 if abs(z - y) <= 0.75 else 0.75 * (abs(z - y) - 0.375)
    ),
    "poisson": lambda z, y: np.exp(z) - y * z,
    "exponential": lambda z, y: np.exp(-y * z),
}
LOSSES = {**PIECEWISE, **SMOOTH}

each = pytest.mark.parametrize("name", LOSSES)
each_piecewise = pytest.mark.parametrize("name", PIECEWISE)
each_smooth = pytest.mark.parametrize("name", SMOOTH)


def targets_for(name, values):
    """Turn numbers into targets that the loss accepts."""
    if name == "exponential":
        return np.where(values < 0.0, -1.0, 1.0)
    return np.abs(values) if name == "poisson" else values


@st.composite
def rows(draw, n_scores=1, max_rows=6):
    """Numbers for targets, weights and arrays of scores: quarters, which hit kinks."""
    n = draw(st.integers(1, max_rows))
    quarters = st.lists(
        st.integers(-12, 12).map(lambda i: i / 4.0), min_size=n, max_size=n
    )
    weights = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    scores = [np.array(draw(quarters)) for _ in range(n_scores)]
    return np.array(draw(quarters)), np.array(weights) / 16.0, *scores


def random_rows(name, seed=0, n=40):
    rng = np.random.default_rng(seed)
    targets = targets_for(name, rng.normal(size=n))
    return rng.normal(size=n), targets, rng.dirichlet(np.ones(n))


@each
@EXPLORE
@given(data=rows())
def test_value_is_that_of_the_definition(name, data):
    values, weights, scores = data
    targets = targets_for(name, values)
    each_row = [DEFINITIONS[name](*pair) for pair in zip(scores, targets, strict=True)]
    value = LOSSES[name].oracle.value(scores, targets, weights)
    assert value == pytest.approx(weights @ each_row, rel=1e-13, abs=1e-14)


@each
def test_gradient_is_that_of_central_differences_away_from_kinks(name):
    loss, h = LOSSES[name], 1e-6
    scores, targets, weights = random_rows(name)
    if not loss.smooth:
        assert not loss.oracle.kink_rows(scores, targets).size
    differences = [
        loss.oracle.value(scores + e, targets, weights)
        - loss.oracle.value(scores - e, targets, weights)
        for e in h * np.eye(len(scores))
    ]
    u = loss.oracle.subgradient(scores, targets, weights)
    assert_allclose(u, np.array(differences) / (2.0 * h), atol=1e-8)


@each
@EXPLORE
@given(data=rows(n_scores=2))
def test_subgradient_inequality_and_the_equation_of_fenchel_and_young(name, data):
    values, weights, scores, others = data
    loss, targets = LOSSES[name], targets_for(name, values)
    u = loss.oracle.subgradient(scores, targets, weights)
    value = loss.oracle.value(scores, targets, weights)
    bound = value + u @ (others - scores)
    assert loss.oracle.value(others, targets, weights) >= bound - 1e-12
    conjugate = loss.oracle.conjugate(u, targets, weights)
    assert value + conjugate == pytest.approx(u @ scores, abs=1e-12)
    assert conjugate == loss.oracle.conjugate_at(u, scores, targets, weights)
    assert loss.oracle.feasible(u, targets, weights).all()


@each
@EXPLORE
@given(data=rows(n_scores=3), share=st.integers(0, 4).map(lambda i: i / 4.0))
def test_mixed_duals_give_cuts(name, data, share):
    values, weights, scores, others, third = data
    loss, targets = LOSSES[name], targets_for(name, values)
    u = share * loss.oracle.subgradient(scores, targets, weights)
    u += (1.0 - share) * loss.oracle.subgradient(others, targets, weights)
    bound = u @ third - loss.oracle.conjugate(u, targets, weights)
    assert loss.oracle.value(third, targets, weights) >= bound - 1e-12


@each_piecewise
@EXPLORE
@given(data=rows(n_scores=2))
def test_argsup_is_the_directional_derivative(name, data):
    targets, weights, scores, dscores = data
    loss = PIECEWISE[name]
    rows_on_kinks = loss.oracle.kink_rows(scores, targets)
    distances = np.abs(np.abs(targets - scores) - loss.set.tube)
    assert_array_equal(rows_on_kinks, np.flatnonzero(distances == 0.0))
    u = loss.oracle.subgradient(scores, targets, weights)
    u[rows_on_kinks] = loss.oracle.argsup(
        scores[rows_on_kinks],
        dscores[rows_on_kinks],
        targets[rows_on_kinks],
        weights[rows_on_kinks],
    )
    assert loss.oracle.feasible(u, targets, weights).all()
    step = 2.0**-5
    ahead = loss.oracle.value(scores + step * dscores, targets, weights)
    rate = (ahead - loss.oracle.value(scores, targets, weights)) / step
    assert u @ dscores == pytest.approx(rate, abs=1e-12)


@each_piecewise
@EXPLORE
@given(data=rows(n_scores=2), step=st.integers(0, 64).map(lambda i: i / 8.0))
def test_restriction_is_the_loss_on_the_line(name, data, step):
    targets, weights, scores, dscores = data
    loss = PIECEWISE[name]
    f = loss.oracle.restrict(scores, dscores, targets, weights)
    assert np.all(f.kinks > 0.0)
    assert np.all(f.slope_jumps >= 0.0)
    ends = np.unique(np.concatenate([[0.0], f.kinks[f.kinks < step], [step]]))
    rise = sum((b - a) * f.slope_at(0.5 * (a + b)) for a, b in pairwise(ends))
    expected = loss.oracle.value(scores + step * dscores, targets, weights)
    expected -= loss.oracle.value(scores, targets, weights)
    assert rise == pytest.approx(expected, abs=1e-12)


@each_smooth
def test_curvature_and_derivatives_are_those_of_the_gradient(name):
    loss, h = SMOOTH[name], 1e-6
    scores, targets, weights = random_rows(name, seed=1)
    dscores = np.random.default_rng(2).normal(size=len(scores))
    change = loss.oracle.subgradient(scores + h, targets, weights)
    change -= loss.oracle.subgradient(scores - h, targets, weights)
    h_rows = loss.oracle.curvature(scores, targets, weights).diagonal()
    assert_allclose(h_rows, change / (2.0 * h), atol=1e-8)
    at = loss.oracle.derivatives(scores, dscores, targets, weights)
    for step in (0.0, 0.3, 2.0):
        there = scores + step * dscores
        slope, curvature = at(step)
        gradient = loss.oracle.subgradient(there, targets, weights)
        assert slope == pytest.approx(gradient @ dscores, abs=1e-12)
        h_rows = loss.oracle.curvature(there, targets, weights).diagonal()
        assert curvature == pytest.approx(h_rows @ dscores**2, abs=1e-12)


@pytest.mark.parametrize("name", ["squared", "poisson", "exponential"])
def test_leveled_duals_sum_to_zero_and_give_cuts(name):
    loss = SMOOTH[name]
    scores, targets, weights = random_rows(name, seed=3)
    u = loss.oracle.subgradient(scores, targets, weights)
    level = loss.oracle.balance(u, targets, weights)
    assert abs(level.sum()) < 1e-14
    for others in (scores, -scores, 2.0 * targets):
        cut = level @ others - loss.oracle.conjugate(level, targets, weights)
        assert loss.oracle.value(others, targets, weights) >= cut - 1e-13
    assert_allclose(loss.oracle.balance(level, targets, weights), level, atol=1e-15)


@pytest.mark.parametrize("name", ["poisson", "exponential"])
def test_steep_losses_go_on_as_their_tangents_where_they_would_overflow(name):
    loss, one = SMOOTH[name], np.ones(1)
    scores = np.array([1e6]) if name == "poisson" else np.array([-1e6])
    assert np.isfinite(loss.oracle.value(scores, one, one))
    u = loss.oracle.subgradient(scores, one, one)
    for others in (0.5 * scores, 0.0 * scores, 2.0 * scores):
        bound = loss.oracle.value(scores, one, one) + u @ (others - scores)
        assert loss.oracle.value(others, one, one) >= bound - 1e-10 * abs(bound)
        cut = u @ others - loss.oracle.conjugate(u, one, one)
        value = loss.oracle.value(others, one, one)
        assert value >= cut - 1e-10 * abs(cut)


@pytest.mark.parametrize(
    "name", ["absolute", "quantile", "novelty", "squared", "huber"]
)
@EXPLORE
@given(data=rows())
def test_rowwise_dual_is_the_loss(name, data):
    values, _, scores = data
    loss, targets = LOSSES[name], targets_for(name, values)
    intervals = loss.rowwise_dual(targets)
    for i, weight in enumerate(np.eye(len(targets))):
        low, high = max(intervals.low[i], -20.0), min(intervals.high[i], 20.0)
        v = np.linspace(low, high, 20001)
        r = intervals.targets[i] - scores[i]
        best = np.max(v * r - 0.5 * intervals.ridge * v * v)
        assert loss.oracle.value(scores, targets, weight) == pytest.approx(
            best, abs=1e-5
        )


@pytest.mark.parametrize("name", ["poisson", "exponential"])
def test_conjugates_are_infinite_beyond_their_domain(name):
    loss, weights = SMOOTH[name], np.array([0.5, 0.5])
    targets = np.array([1.0, 2.0]) if name == "poisson" else np.array([1.0, -1.0])
    u = loss.oracle.subgradient(np.array([-40.0, 40.0]), targets, weights)
    assert loss.oracle.feasible(u, targets, weights).all()
    outside = np.array([-0.6, 0.1]) if name == "poisson" else np.array([0.1, 0.1])
    assert loss.oracle.conjugate(outside, targets, weights) == np.inf
    assert not loss.oracle.feasible(outside, targets, weights).all()


def test_a_tube_has_no_rowwise_dual():
    assert (
        regression_losses(epsilon=0.5)["epsilon_insensitive"].rowwise_dual(np.ones(2))
        is None
    )


@each_piecewise
@pytest.mark.parametrize("width", [0.25, 1.0, 3.0])
@EXPLORE
@given(data=rows(n_scores=2), seed=st.integers(0, 99))
def test_envelope_is_the_maximum_over_dual_variables(name, width, data, seed):
    targets, weights, scores, dscores = data
    loss = PIECEWISE[name]
    shares = np.random.default_rng(seed).integers(0, 5, len(targets)) / 4.0
    center = loss.set.low + shares * (loss.set.high - loss.set.low)
    envelope = loss.envelope(center, width)
    r = (targets - scores)[:, None]
    v = np.linspace(loss.set.low, loss.set.high, 4097)
    penalty = 0.5 * width * (v - center[:, None]) ** 2
    best = (v * r - loss.set.tube * np.abs(v) - penalty).max(axis=1)
    value = envelope.oracle.value(scores, targets, weights)
    assert value == pytest.approx(weights @ best, abs=1e-5)
    u = envelope.oracle.subgradient(scores, targets, weights)
    assert loss.oracle.feasible(u, targets, weights + 1e-15).all()
    both = value + envelope.oracle.conjugate(u, targets, weights)
    assert both == pytest.approx(u @ scores, abs=1e-12)
    others = scores + dscores
    bound = value + u @ dscores
    assert envelope.oracle.value(others, targets, weights) >= bound - 1e-12
    at = envelope.oracle.derivatives(scores, dscores, targets, weights)
    slope, _ = at(0.75)
    there = envelope.oracle.subgradient(scores + 0.75 * dscores, targets, weights)
    assert slope == pytest.approx(there @ dscores, abs=1e-12)
    variables = loss.oracle.dual_variables(u, targets, weights)
    assert_allclose(-variables * weights, u, atol=1e-15)


@each_piecewise
def test_curvature_of_the_envelope(name):
    loss, h = PIECEWISE[name], 1e-7
    scores, targets, weights = random_rows(name, seed=4)
    center = np.full(len(scores), 0.5 * (loss.set.low + loss.set.high))
    envelope = loss.envelope(center, 0.7)
    change = envelope.oracle.subgradient(scores + h, targets, weights)
    change -= envelope.oracle.subgradient(scores - h, targets, weights)
    curvature = envelope.oracle.curvature(scores, targets, weights).diagonal()
    assert_allclose(curvature, change / (2.0 * h), atol=1e-7)
    at = envelope.oracle.derivatives(scores, np.ones_like(scores), targets, weights)
    assert at(0.0)[1] == pytest.approx(curvature.sum())
    assert np.count_nonzero(curvature) > 2


def test_multivariate_squares():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    loss, M = MultivariateSquared(root @ root.T), root @ root.T
    scores, targets, others = rng.normal(size=(3, 8, 3))
    weights = rng.dirichlet(np.ones(8))
    r = scores - targets
    expected = 0.5 * sum(s * x @ M @ x for s, x in zip(weights, r, strict=True))
    value = loss.value(scores, targets, weights)
    assert value == pytest.approx(expected)
    u = loss.subgradient(scores, targets, weights)
    e = rng.normal(size=(8, 3))
    rate = loss.value(scores + 1e-6 * e, targets, weights)
    rate -= loss.value(scores - 1e-6 * e, targets, weights)
    assert np.vdot(u, e) == pytest.approx(rate / 2e-6, rel=1e-6)
    conjugate = loss.conjugate(u, targets, weights)
    assert value + conjugate == pytest.approx(np.vdot(u, scores))
    bound = np.vdot(u, others) - conjugate
    assert loss.value(others, targets, weights) >= bound
    assert_allclose(loss.balance(u, targets, weights).sum(axis=0), 0.0, atol=1e-15)
    curvature = loss.curvature(scores, targets, weights)
    change = loss.subgradient(scores + e, targets, weights) - u
    assert_allclose(curvature.apply(e), change)
    slope, second = loss.derivatives(scores, e, targets, weights)(0.5)
    assert second == pytest.approx(np.vdot(change, e))
    middle = loss.subgradient(scores + 0.5 * e, targets, weights)
    assert slope == pytest.approx(np.vdot(middle, e))
    assert_allclose(curvature.diagonal(), np.outer(weights, M.diagonal()))
    assert_allclose(curvature.take(np.arange(2)).total(), weights[:2].sum() * M)


def test_a_semidefinite_metric_gives_cuts():
    rng = np.random.default_rng(1)
    loss = MultivariateSquared(np.outer([1.0, 2.0], [1.0, 2.0]))
    scores, targets = rng.normal(size=(2, 5, 2))
    weights = np.full(5, 0.2)
    u = loss.subgradient(scores, targets, weights)
    value = loss.value(scores, targets, weights)
    both = value + loss.conjugate(u, targets, weights)
    assert both == pytest.approx(np.vdot(u, scores))


class Hinges(Loss):
    def value(self, scores, targets, weights):
        return float(weights @ np.maximum(1.0 - targets * scores, 0.0))

    def subgradient(self, scores, targets, weights):
        return np.where(targets * scores < 1.0, -weights * targets, 0.0)


def test_first_order_losses_know_their_conjugate_at_subgradients_and_zero():
    loss, one = Hinges(), np.ones(2)
    u = loss.subgradient(0.5 * one, one, one)
    assert loss.conjugate_at(u, 0.5 * one, one, one) == pytest.approx(u @ one)
    assert loss.conjugate(0.0 * one, one, one) == 0.0
    with pytest.raises(TypeError, match="Hinges knows no conjugate"):
        loss.conjugate(u, one, one)
