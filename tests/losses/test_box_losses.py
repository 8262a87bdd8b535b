"""Every loss of one score per row against its definition as a maximum over a box.

Equality of Fenchel and Young proves nothing: a wrong conjugate that goes with a wrong
value satisfies it. Here maxima are compared with those over other dual variables, and
conjugates with suprema over scores.
"""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    NOVELTY_LOSS,
    Box,
    DualLoss,
    Quadratic,
    regression_losses,
)
from _formulas import DUAL_FORMS, ONE_SCORE
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.kernels import row_loss as kernel
from sklearn_subqn._core.losses._base import RowForm

LABELS = dict(BINARY_LOSSES)
NUMBERS = {
    name: loss
    for name, loss in regression_losses(quantile=0.3, epsilon=0.1).items()
    if isinstance(loss.set, Box)
}
NUMBERS["novelty"] = NOVELTY_LOSS
LOSSES = {**LABELS, **NUMBERS}
N = 300
each_loss = pytest.mark.parametrize("name", LOSSES)


# Each row counts by itself: a product with these weights is what it is a product with.
class EachRow:
    def __matmul__(self, values):
        return values


def rows(name, seed=0):
    rng = np.random.default_rng(seed)
    targets = rng.choice([-1.0, 1.0], N)
    if name in NUMBERS:
        targets = rng.poisson(2.0, N) if name == "poisson" else rng.normal(size=N)
    return 2.0 * rng.normal(size=N), targets.astype(float), rng.dirichlet(np.ones(N))


def dual_of(name, v, targets, weights):
    """Return the dual point of dual variables."""
    if name == "poisson":
        return weights * (v - targets)
    return -weights * v * (targets if name in LABELS else 1.0)


def some_variables(loss, rng):
    """Return dual variables within the box, also at its ends."""
    low, high = np.clip([loss.set.low, loss.set.high], -20.0, 20.0)
    shares = np.clip(rng.uniform(-0.2, 1.2, N), 1e-300, 1.0 - 1e-16)
    return low + (high - low) * shares


def table_value(name, v, scores, targets, weights):
    """Return what the loss is the maximum of."""
    argument, _, _, penalty = DUAL_FORMS[name]
    value = weights @ (v * argument(scores, targets) - penalty(v))
    return value - (weights @ (targets * scores) if name == "poisson" else 0.0)


@each_loss
def test_no_other_dual_variables_are_better(name):
    loss, (scores, targets, weights) = LOSSES[name], rows(name)
    assert (loss.set.low, loss.set.high) == DUAL_FORMS[name][1:3]
    value = loss.oracle.value(scores, targets, weights)
    best = loss.oracle.dual_variables(
        loss.oracle.subgradient(scores, targets, weights), targets, weights
    )
    inner = np.clip(best, 1e-300, None) if loss.set.low == 0.0 else best
    attained = table_value(name, inner, scores, targets, weights)
    assert value == pytest.approx(attained, rel=1e-14)
    rng = np.random.default_rng(1)
    for share in (1.0, 0.1, 1e-3):
        for _ in range(50):
            v = best + share * (some_variables(loss, rng) - best)
            v = np.clip(v, max(loss.set.low, -20.0), min(loss.set.high, 20.0))
            v = np.clip(v, 1e-300, 1.0 - 1e-16) if name == "log_loss" else v
            v = np.maximum(v, 1e-300) if loss.steep else v
            other = table_value(name, v, scores, targets, weights)
            assert other <= value + 1e-14 * (1.0 + abs(value))


@each_loss
def test_conjugates_are_suprema_over_scores(name):
    loss = LOSSES[name]
    _, targets, _ = rows(name)
    v = some_variables(loss, np.random.default_rng(2))
    one = np.ones(1)
    grid = np.linspace(-30.0, 30.0, 600_001)
    for i in range(12):
        y = targets[i : i + 1]
        u = dual_of(name, v[i : i + 1], y, one)
        same = np.full(len(grid), y[0])
        z = grid + y if name in NUMBERS else grid
        low, high = DUAL_FORMS[name][1:3]
        losses = usual_form(name, z, same)
        supremum = np.max(u * z - losses)
        assert loss.oracle.conjugate(u, y, one) == pytest.approx(supremum, abs=1e-6)
    if high < np.inf:
        assert not loss.oracle.feasible(
            dual_of(name, one * (high + 0.1), y, one), y, one
        )
    if low > -np.inf:
        assert not loss.oracle.feasible(
            dual_of(name, one * (low - 0.1), y, one), y, one
        )


@each_loss
def test_conjugates_are_infinite_out_of_the_box_but_for_rounding(name):
    """Convex combinations of a dual point with itself leave the box by rounding."""
    loss, (_, targets, weights) = LOSSES[name].oracle, rows(name)
    for end, sign in zip(DUAL_FORMS[name][1:3], (-1.0, 1.0), strict=True):
        if np.isfinite(end):
            v = np.full(N, float(end))
            u = dual_of(name, v, targets, weights)
            for share in np.random.default_rng(3).random(20):
                mixed = (1.0 - share) * u + share * u
                assert np.isfinite(loss.conjugate(mixed, targets, weights))
            v[-1] += sign * 1e-9
            u = dual_of(name, v, targets, weights)
            assert loss.conjugate(u, targets, weights) == np.inf


def usual_form(name, z, y):
    """Return the loss of each row as it is usually written."""
    if name == "novelty":
        return np.maximum(y - z, 0.0)
    return np.asarray(ONE_SCORE[name](z, y, EachRow()), dtype=float)


@each_loss
def test_gradients_and_curvatures_are_differences(name):
    loss, (scores, targets, weights) = LOSSES[name], rows(name)
    h = 1e-6
    u = loss.oracle.subgradient(scores, targets, weights)
    for i in range(20):
        e = h * (np.arange(N) == i)
        change = loss.oracle.value(scores + e, targets, weights)
        change -= loss.oracle.value(scores - e, targets, weights)
        assert u[i] == pytest.approx(change / (2 * h), rel=1e-5, abs=1e-8)
    if not loss.smooth:
        return
    change = loss.oracle.subgradient(scores + h, targets, weights)
    change -= loss.oracle.subgradient(scores - h, targets, weights)
    curvature = loss.oracle.curvature(scores, targets, weights).diagonal()
    assert_allclose(curvature, change / (2 * h), atol=1e-8)


@pytest.mark.parametrize("name", [k for k, v in LOSSES.items() if v.has_envelope])
@pytest.mark.parametrize("width", [1e-3, 0.3, 5.0])
def test_envelopes_by_enumeration(name, width):
    """A concave function of v is largest where it is flat, or at an end of a piece."""
    loss, (scores, targets, weights) = LOSSES[name], rows(name)
    center = some_variables(loss, np.random.default_rng(3))
    envelope = loss.envelope(center, width)
    t = DUAL_FORMS[name][0](scores, targets)
    flat = [center + (t - tilt) / width for tilt in (loss.set.tube, -loss.set.tube)]
    ends = [np.full(N, end) for end in (loss.set.low, 0.0, loss.set.high)]
    candidates = np.clip([*flat, *ends], loss.set.low, loss.set.high)
    values = candidates * t - loss.set.tube * np.abs(candidates)
    values -= 0.5 * width * (candidates - center) ** 2
    value = envelope.oracle.value(scores, targets, weights)
    expected = weights @ values.max(axis=0)
    assert value == pytest.approx(expected, rel=4e-15, abs=4e-15)
    v = candidates[values.argmax(axis=0), np.arange(N)]
    u = dual_of(name, v, targets, weights)
    assert_allclose(
        envelope.oracle.subgradient(scores, targets, weights), u, atol=4e-15
    )
    few = envelope.of_rows(np.arange(0, N, 2))
    part = few.oracle.value(
        scores[::2].copy(), targets[::2].copy(), weights[::2].copy()
    )
    assert part == pytest.approx(weights[::2] @ values.max(axis=0)[::2], rel=1e-13)


@each_loss
def test_facts_follow_from_box_and_smoothing(name):
    loss, (_, low, high, penalty) = LOSSES[name], DUAL_FORMS[name]
    # Losses are smooth where h is strictly convex, on either side of zero.
    v = np.linspace(max(low, -1.0), min(high, 1.0), 9)[1:-1]
    v = v[v > 0.0]
    bend = penalty(1.1 * v) + penalty(0.9 * v) - 2.0 * penalty(v)
    assert loss.smooth == bool(np.all(bend > 1e-9))
    assert loss.has_envelope == (not loss.smooth)
    # Curvature has no end where h grows more slowly than squares.
    assert loss.steep == (high == np.inf and penalty(1e9) < 1e-3 * 1e18)
    # Losses with a margin are zero beyond it, and on no other side.
    y = np.array([1.0])
    sides = [usual_form(name, side * np.array([30.0]), y)[0] for side in (-1.0, 1.0)]
    assert loss.has_margin == (sides[0] > 0.0 == sides[1])
    # Analytic losses are strictly convex everywhere.
    z, h = np.linspace(-8.0, 8.0, 161), 0.05
    y = np.ones(len(z))
    ends = usual_form(name, z - h, y) + usual_form(name, z + h, y)
    assert loss.analytic == bool(np.all(ends - 2.0 * usual_form(name, z, y) > 1e-9))


def test_a_new_loss_is_a_row():
    """Squares beyond a tube: all follows, though nobody has written it down."""
    first = regression_losses(epsilon=0.4)["epsilon_insensitive"]
    box = Box(first.set.map, -np.inf, np.inf, tube=0.4)
    loss = DualLoss(box, Quadratic(1.0))
    scores, targets, weights = rows("huber")
    beyond = np.maximum(np.abs(targets - scores) - 0.4, 0.0)
    value = loss.oracle.value(scores, targets, weights)
    assert value == pytest.approx(0.5 * weights @ beyond**2, rel=1e-14)
    u = loss.oracle.subgradient(scores, targets, weights)
    assert_allclose(u, weights * np.sign(scores - targets) * beyond, atol=1e-15)
    both = value + loss.oracle.conjugate(u, targets, weights)
    assert both == pytest.approx(u @ scores, abs=1e-14)
    inside = loss.oracle.curvature(scores, targets, weights).diagonal() == 0.0
    assert_array_equal(inside, beyond == 0.0)
    assert (loss.smooth, loss.analytic, loss.has_envelope) == (True, False, False)


KINKED = [name for name, loss in LOSSES.items() if not loss.smooth]


@pytest.mark.parametrize("name", KINKED)
def test_kinks_are_where_slopes_to_both_sides_differ(name):
    """Slopes of piecewise linear losses are differences, and argsup has the larger."""
    loss, step = LOSSES[name], 2.0**-20
    rng = np.random.default_rng(4)
    targets, weights = rng.choice([-1.0, 1.0], 40), rng.dirichlet(np.ones(40))
    # Most scores are on kinks, or at zero, others far from each.
    ends = rng.choice([-1.0, 0.0, 1.0, 2.5], 40)
    tube = getattr(loss.set, "tube", 0.0)
    scores = targets + ends * (tube or 1.0)
    p = rng.choice([-1.0, 1.0], 40)

    def slopes(p):
        def value(z):
            return [
                loss.oracle.value(z[i : i + 1], targets[i : i + 1], np.ones(1))
                for i in range(40)
            ]

        return np.subtract(value(scores + step * p), value(scores)) / step

    ahead, back = slopes(p), slopes(-p)
    kinks = loss.oracle.kink_rows(scores, targets)
    assert_array_equal(kinks, np.flatnonzero(np.abs(ahead + back) > 1e-6))
    assert 5 < len(kinks) < 40
    u = loss.oracle.argsup(scores, p, targets, weights)
    assert_allclose((u * p)[kinks], (weights * ahead)[kinks], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("tube", [0.0, 0.3])
def test_boxes_are_maxima_over_their_variables(tube, ridge, width, labels):
    """Of v t - tube |v| - ridge v² / 2 - width (v - center)² / 2, by a fine grid."""
    form = RowForm(0, labels, -0.5, 1.0, tube, ridge, width)
    rng = np.random.default_rng(0)
    grid = np.linspace(-0.5, 1.0, 3001)
    center, s = rng.uniform(-0.5, 1.0, 40), rng.random(40)
    y = rng.choice([-1.0, 1.0], 40) if labels else rng.normal(size=40)
    z = 1.5 * rng.normal(size=40)
    signs = y if labels else np.ones(40)

    def terms(v):
        return tube * np.abs(v) + 0.5 * ridge * v**2

    t = (signs * (y - z))[:, np.newaxis]
    moved = 0.5 * width * (grid - center[:, np.newaxis]) ** 2
    heights = t * grid - terms(grid) - moved
    best, of_width = grid[heights.argmax(axis=1)], center if width else None
    value = kernel.value(form, z, y, s, of_width)
    assert value == pytest.approx(s @ heights.max(axis=1), abs=1e-5)
    out = np.empty(40)
    kernel.derivatives(form, z, y, s, of_width, 1, 0.0, 1.0, out)
    assert_allclose(out, -s * signs * best, atol=1e-3)
    v = rng.uniform(-0.5, 1.0, 40)
    u = -s * signs * v
    conjugate, size = kernel.conjugate(form, u, y, s, of_width)
    moved = 0.5 * width * (v - center) ** 2
    assert conjugate == pytest.approx(u @ y + s @ (terms(v) + moved), rel=1e-13)
    assert size == pytest.approx(2.0 * np.abs(u) @ np.abs(y) + width * s @ center**2)
