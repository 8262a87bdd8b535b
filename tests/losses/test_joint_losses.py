"""Joint multiclass and multilabel hinge: losses, envelopes, oracles, line searches."""

import math
from itertools import pairwise

import numpy as np
import pytest
from _door import MULTINOMIAL_LOSS, DualLoss, KindsOfLabels, LabelPairs, Simplex
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.losses._base import total_of_rows
from sklearn_subqn.losses import Ontology

KINDS = ["margin", "slack", "rates", "uniform", "multilabel", "threshold", "pairs"]


def brute_force(kind, loss, z, target):
    """The lines (offset, gradient) of which the loss of one row is the maximum."""
    k = len(z)
    eye = np.eye(k)
    if kind in ("margin", "slack", "rates", "uniform"):
        return [
            (
                loss.set.offsets[target, j],
                loss.set.rates[target, j] * (eye[j] - eye[target]),
            )
            for j in range(k)
        ]
    n_labels = len(target)
    none = [(0.0, np.zeros(k))]
    irrelevant, relevant = np.flatnonzero(target == 0), np.flatnonzero(target)
    if kind == "pairs":
        return none + [
            (loss.set.costs[h, j], eye[j] - eye[h])
            for h in relevant
            for j in irrelevant
        ]
    low, high = loss.set.costs
    if kind == "multilabel":
        return none + [
            (low[j] + high[h], eye[j] - eye[h]) for j in irrelevant for h in relevant
        ]
    a = none + [(low[j], eye[j] - eye[n_labels]) for j in irrelevant]
    b = none + [(high[h], eye[n_labels] - eye[h]) for h in relevant]
    return [(x[0] + y[0], x[1] + y[1]) for x in a for y in b]


def dyadic(rng, shape, top=12):
    return rng.integers(-top, top + 1, size=shape) / 4.0


def problem(kind, seed, n=6, k=4):
    """A loss with rows: loss, targets, weights, scores, dscores."""
    rng = np.random.default_rng(seed)
    n_scores = k + (kind == "threshold")
    if kind in ("multilabel", "threshold", "pairs"):
        loss = DualLoss(KindsOfLabels(np.abs(dyadic(rng, (2, k), 6))))
        if kind == "pairs":
            loss = DualLoss(LabelPairs(np.abs(dyadic(rng, (k, k), 6))))
        targets = rng.integers(0, 2, size=(n, k)).astype(np.uint8)
        targets[0], targets[-1] = 0, 1
    else:
        costs = np.abs(dyadic(rng, (k, k), 6))
        if kind == "uniform":
            costs = np.ones((k, k))
        np.fill_diagonal(costs, 0.0)
        rescaling = "slack" if kind == "slack" else "margin"
        if kind == "rates":
            rescaling = (costs > 0.0) + np.abs(dyadic(rng, (k, k), 3)) * (costs > 1.0)
        loss = DualLoss(Simplex(costs, rescaling))
        targets = rng.integers(0, k, size=n)
    weights = rng.integers(0, 5, size=n) / 16.0
    scores, dscores = dyadic(rng, (2, n, n_scores))
    return loss, targets, weights, scores, dscores


each_kind = pytest.mark.parametrize("kind", KINDS)
seeds = given(seed=st.integers(0, 2**31))


def expected_value(kind, loss, scores, targets, weights):
    return sum(
        s * max(a + g @ z for a, g in brute_force(kind, loss, z, t))
        for z, t, s in zip(scores, targets, weights, strict=True)
    )


@each_kind
@EXPLORE
@seeds
def test_value_is_the_largest_line(kind, seed):
    loss, targets, weights, scores, _ = problem(kind, seed)
    value = expected_value(kind, loss, scores, targets, weights)
    assert loss.oracle.value(scores, targets, weights) == pytest.approx(
        value, abs=1e-14
    )


@each_kind
@EXPLORE
@seeds
def test_subgradient_and_oracle(kind, seed):
    loss, targets, weights, scores, dscores = problem(kind, seed)
    u = loss.oracle.subgradient(scores, targets, weights)
    rows = loss.oracle.kink_rows(scores, targets)
    steep = u.copy()
    steep[rows] = loss.oracle.argsup(
        scores[rows], dscores[rows], targets[rows], weights[rows]
    )
    for i, (z, t) in enumerate(zip(scores, targets, strict=True)):
        lines = brute_force(kind, loss, z, t)
        heights = np.array([a + g @ z for a, g in lines])
        best = [
            g for (a, g), h in zip(lines, heights, strict=True) if h == heights.max()
        ]
        assert any(np.allclose(u[i], weights[i] * g) for g in best)
        slope = weights[i] * max(g @ dscores[i] for g in best)
        assert steep[i] @ dscores[i] == pytest.approx(slope, abs=1e-14)
        unique = all(np.allclose(g, best[0]) for g in best)
        assert unique or i in rows


@each_kind
@EXPLORE
@seeds
def test_fenchel_young(kind, seed):
    loss, targets, weights, scores, dscores = problem(kind, seed)
    u = loss.oracle.subgradient(scores, targets, weights)
    conjugate = loss.oracle.conjugate(u, targets, weights)
    value = loss.oracle.value(scores, targets, weights)
    assert value + conjugate == pytest.approx(np.vdot(u, scores), abs=1e-13)
    bound = np.vdot(u, dscores) - conjugate
    assert loss.oracle.value(dscores, targets, weights) >= bound - 1e-13


def slope_integral(f, step):
    ends = np.unique(np.concatenate([[0.0], f.kinks[f.kinks < step], [step]]))
    return sum((b - a) * f.slope_at(0.5 * (a + b)) for a, b in pairwise(ends))


@each_kind
@EXPLORE
@seeds
def test_restriction_is_the_loss_on_the_line(kind, seed):
    loss, targets, weights, scores, dscores = problem(kind, seed)
    f = loss.oracle.restrict(scores, dscores, targets, weights)
    assert np.all(f.kinks > 0.0)
    assert np.all(f.slope_jumps >= 0.0)
    start = loss.oracle.value(scores, targets, weights)
    for step in (0.1, 0.5, 1.0, 3.0, 20.0):
        rise = loss.oracle.value(scores + step * dscores, targets, weights) - start
        assert slope_integral(f, step) == pytest.approx(rise, abs=1e-11)


@pytest.mark.parametrize("n_lines", [1, 2, 30, 1000])
@pytest.mark.parametrize("shape", ["random", "tied", "parallel", "concurrent", "flat"])
def test_segmenting_degenerate_lines(n_lines, shape):
    rng = np.random.default_rng(n_lines)
    offsets, slopes = np.abs(rng.normal(size=n_lines)), rng.normal(size=n_lines)
    if shape == "tied":
        offsets, slopes = rng.integers(0, 3, n_lines) / 4, rng.integers(-2, 3, n_lines)
    elif shape == "parallel":
        slopes = np.ones(n_lines)
    elif shape == "concurrent":
        offsets = 3.0 - 1.5 * slopes  # all lines meet at eta = 1.5
        offsets -= min(0.0, offsets.min())
    elif shape == "flat":
        slopes = np.zeros(n_lines)
    # Label 0 is the true one: its line is zero.
    costs = np.zeros((n_lines + 1, n_lines + 1))
    costs[0, 1:] = offsets
    loss = DualLoss(Simplex(costs))
    scores = np.zeros((1, n_lines + 1))
    dscores = np.append(0.0, slopes)[np.newaxis]
    target, weight = np.zeros(1, dtype=np.intp), np.ones(1)
    f = loss.oracle.restrict(scores, dscores, target, weight)
    for step in (0.0, 0.01, 0.7, 1.4, 1.6, 50.0):
        heights = np.append(0.0, offsets + step * slopes)
        top = heights >= heights.max() - 1e-12
        expected = np.append(0.0, slopes)[top].max()
        assert f.slope_at(step) == pytest.approx(expected, abs=1e-9)
    assert len(f.kinks) <= n_lines


def envelope_of(kind, seed, width):
    loss, targets, weights, scores, dscores = problem(kind, seed)
    rng = np.random.default_rng(seed)
    weights = weights + 1.0 / 16.0
    duals = [
        loss.oracle.subgradient(3.0 * rng.normal(size=scores.shape), targets, weights)
        for _ in range(3)
    ]
    center = loss.oracle.dual_variables(np.mean(duals, axis=0), targets, weights)
    scores = scores + 0.1 * rng.normal(size=scores.shape)
    return loss, loss.envelope(center, width), targets, weights, scores, dscores


@each_kind
@pytest.mark.parametrize("width", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(8))
def test_envelope(kind, width, seed):
    loss, smooth, targets, weights, scores, dscores = envelope_of(kind, seed, width)
    args = targets, weights
    assert (
        smooth.oracle.value(scores, *args) <= loss.oracle.value(scores, *args) + 1e-13
    )
    u = smooth.oracle.subgradient(scores, *args)
    assert_allclose(u.sum(axis=1), 0.0, atol=1e-15)
    # The gradient is a feasible dual point: its cut lies below the hinge everywhere.
    conjugate = loss.oracle.conjugate(u, *args)
    for other in (scores, dscores, -dscores, 0.0 * scores):
        bound = np.vdot(u, other) - conjugate
        assert loss.oracle.value(other, *args) >= bound - 1e-13
    # Fenchel-Young for the envelope itself, and its gradient by differences.
    if kind != "pairs":
        both = smooth.oracle.value(scores, *args) + smooth.oracle.conjugate(u, *args)
        assert both == pytest.approx(np.vdot(u, scores), abs=1e-12)
    h = 1e-6
    for _ in range(5):
        direction = np.random.default_rng(seed).normal(size=scores.shape)
        ahead = smooth.oracle.value(scores + h * direction, *args)
        behind = smooth.oracle.value(scores - h * direction, *args)
        slope = np.vdot(u, direction)
        assert (ahead - behind) / (2 * h) == pytest.approx(slope, abs=1e-7)
    at = smooth.oracle.derivatives(scores, dscores, *args)
    for step in (0.0, 0.3):
        expected = np.vdot(
            smooth.oracle.subgradient(scores + step * dscores, *args), dscores
        )
        assert at(step)[0] == pytest.approx(expected, abs=1e-13)
    change = smooth.oracle.subgradient(scores + h * dscores, *args) - u
    product = smooth.oracle.curvature(scores, *args).apply(dscores.copy())
    assert_allclose(product, change / h, atol=1e-6 / width)
    assert at(0.0)[1] == pytest.approx(np.vdot(product, dscores), abs=1e-12)


@each_kind
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_gradients_of_envelopes_at_large_scores_are_feasible(kind, apart, seed):
    loss, smooth, targets, weights, scores, _ = envelope_of(kind, seed, 1.0)
    # Shifts cost digits, of all labels or of those that are not relevant.
    scores = 0.1 * scores
    relevant = np.zeros(scores.shape, dtype=bool)
    if apart and targets.ndim == 1:
        relevant[np.arange(len(targets)), targets] = True
    elif apart:
        relevant[:, : targets.shape[1]] = targets > 0
    scores[~relevant] += 1e9 / 3.0
    u = smooth.oracle.subgradient(scores, targets, weights)
    assert u.any()
    assert_allclose(u.sum(axis=1), 0.0, atol=1e-15)
    parts = [np.maximum(u, 0.0), np.maximum(-u, 0.0)]
    if kind == "threshold":
        # Of relevant and of irrelevant labels, which the threshold makes up for.
        parts = [part[:, :-1] for part in parts]
    most = weights * (loss.set.rates.max() if kind in ("slack", "rates") else 1.0)
    for part in parts:
        assert np.all(part.sum(axis=1) <= most + 1e-15)


@each_kind
@pytest.mark.parametrize("width", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_feasible_dual_is_better_than_the_gradient(kind, width, seed):
    loss, smooth, targets, weights, scores, _ = envelope_of(kind, seed, width)
    best = smooth.oracle.value(scores, targets, weights)
    u = smooth.oracle.subgradient(scores, targets, weights)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        if kind == "pairs":
            assert value_of_random_pairs(
                smooth, loss, scores, targets, weights, rng
            ) <= (best + 1e-12)
            continue
        other = loss.oracle.subgradient(
            9.0 * rng.normal(size=scores.shape), targets, weights
        )
        for share in (1e-3, 0.1, 1.0):
            v = u + share * (other - u)
            value = np.vdot(v, scores) - smooth.oracle.conjugate(v, targets, weights)
            assert value <= best + 1e-12


def value_of_random_pairs(smooth, loss, scores, targets, weights, rng):
    """The envelope's objective at random dual variables of pairs."""
    total, start = 0.0, 0
    for z, t, s in zip(scores, targets, weights, strict=True):
        lines = brute_force("pairs", loss, z, t)[1:]
        m = np.array([a + g @ z for a, g in lines] + [0.0])
        b = rng.dirichlet(np.full(len(m), 0.3))
        c = smooth.smoothing.center[start : start + len(lines)]
        c = np.append(c, 1.0 - c.sum())
        total += s * (b @ m - 0.5 * smooth.smoothing.ridge * (b - c) @ (b - c))
        start += len(lines)
    return total


@pytest.mark.parametrize("seed", range(4))
def test_no_probabilities_are_better_than_the_softmax(seed):
    rng = np.random.default_rng(seed)
    loss, y, s = MULTINOMIAL_LOSS, rng.integers(0, 4, 6), rng.dirichlet(np.ones(6))
    z = 3.0 * rng.normal(size=(6, 4))
    best, u = loss.oracle.value(z, y, s), loss.oracle.subgradient(z, y, s)
    own = np.vdot(u, z) - loss.oracle.conjugate(u, y, s)
    assert own == pytest.approx(best, rel=1e-13)
    for _ in range(50):
        other = s[:, np.newaxis] * (rng.dirichlet(np.full(4, 0.5), 6) - np.eye(4)[y])
        for share in (1e-3, 0.1, 1.0):
            v = u + share * (other - u)
            assert np.vdot(v, z) - loss.oracle.conjugate(v, y, s) <= best + 1e-13


GRAPH = [[-1], [-1], [0], [0, 1], [1], [3], [3]]


@pytest.mark.parametrize("width", [0.1, 1.0])
def test_envelope_of_paths(width):
    """A linear map in front of the simplex: gradients, bounds and curvature."""
    rng = np.random.default_rng(0)
    loss = Ontology.from_parents(GRAPH).loss
    y, s = rng.integers(0, 4, 20), rng.dirichlet(np.ones(20))
    z, dz, other = rng.normal(size=(3, 20, 7))
    u = loss.oracle.subgradient(other, y, s)
    gap = loss.oracle.value(other, y, s) + loss.oracle.conjugate(u, y, s)
    assert gap == pytest.approx(np.vdot(u, other), rel=1e-12)
    assert loss.oracle.distance(u, y, s) <= 1e-14
    smooth = loss.envelope(loss.oracle.dual_variables(u, y, s), width)
    u, value, h = smooth.oracle.subgradient(z, y, s), smooth.oracle.value(z, y, s), 1e-6
    assert value + smooth.oracle.conjugate(u, y, s) == pytest.approx(
        np.vdot(u, z), rel=1e-12
    )
    assert value <= loss.oracle.value(z, y, s)
    bound = np.vdot(u, other) - loss.oracle.conjugate(u, y, s)
    assert loss.oracle.value(other, y, s) >= bound - 1e-14
    ahead, behind = (smooth.oracle.value(z + c * dz, y, s) for c in (h, -h))
    assert (ahead - behind) / (2 * h) == pytest.approx(np.vdot(u, dz), abs=1e-8)
    curvature = smooth.oracle.curvature(z, y, s)
    ahead, behind = (smooth.oracle.subgradient(z + c * dz, y, s) for c in (h, -h))
    product = curvature.apply(dz.copy())
    assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-7)
    slope, bend = smooth.oracle.derivatives(z, dz, y, s)(0.0)
    assert slope == pytest.approx(np.vdot(u, dz), rel=1e-12)
    assert bend == pytest.approx(np.vdot(product, dz), rel=1e-12)
    X, blocks = rng.normal(size=(20, 2)), np.zeros((7, 7, 2, 2))
    curvature.add_gram(X, slice(None), blocks)
    for j in range(7):
        column = curvature.apply(np.tile(np.eye(7)[j], (20, 1)))
        assert_allclose(column[:, j], curvature.diagonal()[:, j], atol=1e-14)
        assert_allclose(column.sum(axis=0), curvature.total()[:, j], atol=1e-14)
        full = np.einsum("il,if,ig->lfg", column, X, X)
        assert_allclose(blocks[j, j:], full[j:], atol=1e-13)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_paths_of_many_nodes(loss):
    """Features that are mostly zero, by their products with all of them."""
    rng = np.random.default_rng(0)
    parents = [[-1]] * 4 + [[i % 4] for i in range(30)]
    paths = Ontology.from_parents(parents, loss=loss)
    phi, oracle = paths.features, paths.loss.oracle
    y, s = rng.integers(0, 30, 12), rng.dirichlet(np.ones(12))
    z = rng.normal(size=(12, 34))
    own = DualLoss(Simplex(paths.costs)) if loss == "hinge" else MULTINOMIAL_LOSS
    u = own.oracle.subgradient(z @ phi.T, y, s)
    assert_allclose(oracle.subgradient(z, y, s), u @ phi, atol=1e-15)
    assert oracle.value(z, y, s) == pytest.approx(own.oracle.value(z @ phi.T, y, s))
    assert oracle.conjugate(u @ phi, y, s) == pytest.approx(
        own.oracle.conjugate(u, y, s), abs=1e-14
    )
    if loss == "hinge":
        oracle = paths.loss.envelope(oracle.dual_variables(u @ phi, y, s), 0.5).oracle
    curvature = oracle.curvature(z, y, s)
    unit = np.zeros((12, 34))
    for j in range(34):
        unit[:] = np.eye(34)[j]
        column = curvature.apply(unit.copy())[:, j]
        assert_allclose(column, curvature.diagonal()[:, j], atol=1e-15)


def test_log_loss_of_paths():
    """Values by sums over leaves, derivatives by differences, conjugates by chance."""
    rng = np.random.default_rng(0)
    paths = Ontology.from_parents(GRAPH, loss="log_loss")
    loss, phi = paths.loss, paths.features
    y, s = rng.integers(0, 4, 20), rng.dirichlet(np.ones(20))
    z, dz, other = rng.normal(size=(3, 20, 7))
    terms = (z[:, np.newaxis] * (phi[np.newaxis] - phi[y][:, np.newaxis])).sum(axis=2)
    assert loss.oracle.value(z, y, s) == pytest.approx(
        s @ np.log(np.exp(terms).sum(axis=1))
    )
    u, h = loss.oracle.subgradient(z, y, s), 1e-6
    ahead, behind = (loss.oracle.value(z + c * dz, y, s) for c in (h, -h))
    assert (ahead - behind) / (2 * h) == pytest.approx(np.vdot(u, dz), abs=1e-8)
    ahead, behind = (loss.oracle.subgradient(z + c * dz, y, s) for c in (h, -h))
    product = loss.oracle.curvature(z, y, s).apply(dz.copy())
    assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-7)
    height = loss.oracle.conjugate(u, y, s)
    assert loss.oracle.value(z, y, s) + height == pytest.approx(
        np.vdot(u, z), rel=1e-11
    )
    assert loss.oracle.distance(u, y, s) <= 1e-14
    for _ in range(20):
        other = rng.normal(size=(20, 7)) * 10.0 ** rng.integers(-1, 2)
        assert np.vdot(u, other) - loss.oracle.value(other, y, s) <= height + 1e-13


@pytest.mark.parametrize("name", ["hinge", "log_loss"])
@pytest.mark.parametrize("near_optimum", [False, True])
def test_duals_of_paths_balance(name, near_optimum):
    """Sums of columns over nodes vanish, within the domain."""
    rng = np.random.default_rng(0)
    loss = Ontology.from_parents(GRAPH, loss=name).loss
    y, s = rng.integers(0, 4, 40), rng.dirichlet(np.ones(40))
    z = rng.normal(size=(40, 7))
    if name == "log_loss":
        # Near a minimum over the intercepts.
        z = 0.1 * z
        z += np.linalg.pinv(Ontology.from_parents(GRAPH).features) @ np.log(
            np.bincount(y, s)
        )
    duals = [
        loss.oracle.subgradient(z + rng.normal(size=(40, 7)), y, s) for _ in range(20)
    ]
    u = np.mean(duals, axis=0) if name == "hinge" else loss.oracle.subgradient(z, y, s)
    balance = loss.oracle.balance_near_optimum if near_optimum else loss.oracle.balance
    v = balance(u, y, s)
    assert v.any()
    assert_allclose(v.sum(axis=0), 0.0, atol=1e-15)
    assert loss.oracle.distance(v, y, s) <= 1e-13
    if name == "log_loss":
        assert loss.oracle.feasible(v, y, s).all()
    share = loss.oracle.imbalance(v, v.sum(axis=0), y, s)
    assert share <= 1e-12
    cut = np.vdot(v, z) - loss.oracle.conjugate(v, y, s)
    assert cut <= loss.oracle.value(z, y, s) + 1e-14


def test_paths_of_dependent_features_tell_no_conjugate():
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    loss = Ontology(features, 1.0 - np.eye(3)).loss
    assert not loss.has_envelope
    assert not loss.has_conjugate
    z, y, s = np.zeros((3, 2)), np.arange(3), np.full(3, 1 / 3)
    assert loss.oracle.value(z, y, s) == pytest.approx(1.0)
    assert 0.0 < loss.oracle.rounding(z, s) < 1e-8


@each_kind
def test_curvature_as_matrix(kind):
    _, smooth, targets, weights, scores, _ = envelope_of(kind, 3, 1.0)
    n, k = scores.shape
    X = np.random.default_rng(0).normal(size=(n, 3))
    curvature = smooth.oracle.curvature(scores, targets, weights)
    blocks = np.zeros((k, k, 3, 3))
    curvature.add_gram(X, slice(None), blocks)
    full, totals = np.zeros((k, k, 3, 3)), np.zeros((k, k))
    for j in range(k):
        unit = np.zeros((n, k))
        unit[:, j] = 1.0
        column = curvature.apply(unit)
        assert_allclose(column[:, j], curvature.diagonal()[:, j], atol=1e-14)
        totals[:, j] = column.sum(axis=0)
        full[:, j] = np.einsum("il,if,ig->lfg", column, X, X)
    for j in range(k):
        for m in range(j, k):
            assert_allclose(blocks[j, m], full[j, m], atol=1e-12)
    assert_allclose(curvature.total(), totals, atol=1e-14)
    rows = curvature.rows()
    assert_array_equal(rows, np.flatnonzero(curvature.diagonal().any(axis=1)))


@each_kind
@EXPLORE
@seeds
@pytest.mark.parametrize("near_optimum", [False, True])
def test_leveled_duals_are_feasible_and_level(kind, near_optimum, seed):
    loss, targets, weights, scores, dscores = problem(kind, seed, n=30)
    duals = [
        loss.oracle.subgradient(s, targets, weights) for s in (scores, dscores, -scores)
    ]
    level = loss.oracle.balance_near_optimum if near_optimum else loss.oracle.balance
    u = level(np.mean(duals, axis=0), targets, weights)
    assert_allclose(u.sum(axis=0), 0.0, atol=1e-13)
    assert_allclose(u.sum(axis=1), 0.0, atol=1e-13)
    conjugate = loss.oracle.conjugate(u, targets, weights)
    for other in (scores, dscores, -scores, -dscores, 3.0 * dscores):
        bound = np.vdot(u, other) - conjugate
        assert loss.oracle.value(other, targets, weights) >= bound - 1e-12


@pytest.mark.parametrize("shape", [(3,), (5, 2), (4, 3, 2)])
@pytest.mark.parametrize("n", [0, 7, 1000])
def test_sums_of_rows_of_any_shape(n, shape):
    x = np.random.default_rng(0).normal(size=(n, *shape)) + 1e3
    exact = [math.fsum(column) for column in x.reshape(n, math.prod(shape)).T]
    assert_allclose(total_of_rows(x), np.reshape(exact, shape), rtol=1e-14)


@each_kind
@pytest.mark.parametrize("width", [2.0, 50.0])
def test_curvature_by_roots(kind, width):
    _, smooth, targets, weights, scores, _ = envelope_of(kind, 3, width)
    n, k = scores.shape
    curvature = smooth.oracle.curvature(scores, targets, weights)
    rows, v = curvature.roots()
    assert 0 < len(rows) <= curvature.rank
    for j in range(k):
        column = curvature.apply(np.tile(np.eye(k)[j], (n, 1)))
        sums = np.zeros((n, k))
        np.add.at(sums, rows, v[:, [j]] * v)
        assert_allclose(sums, column, atol=1e-12)


@pytest.mark.parametrize("falling", [False, True])
def test_slopes_of_many_labels(falling):
    """Lines far below the maximum are dropped, and none that it meets."""
    rng = np.random.default_rng(0)
    n, k = 40, 300
    loss = DualLoss(Simplex(np.ones((k, k)) - np.eye(k)))
    targets, weights = rng.integers(k, size=n), rng.random(n)
    scores, dscores = rng.normal(size=(2, n, k))
    own = np.arange(n), targets
    # The own labels rise faster than others where all of these fall.
    scores[own] += 1.0
    dscores[own] += 6.0 if falling else 0.0
    piecewise = loss.oracle.restrict(scores, dscores, targets, weights)
    assert len(piecewise.kinks) < 10 * n
    violations = 1.0 + scores - scores[own][:, np.newaxis]
    rises = dscores - dscores[own][:, np.newaxis]
    violations[own] = 0.0
    for step in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0):
        worst = np.argmax(violations + step * rises, axis=1)
        expected = weights @ rises[np.arange(n), worst]
        passed = piecewise.kinks < step
        slope = piecewise.slope + piecewise.slope_jumps[passed].sum()
        assert slope == pytest.approx(expected, abs=1e-12)


def test_multinomial_conjugate_near_a_gradient():
    """No scores prove R* there to be larger, and a maximizer comes close."""
    rng, oracle = np.random.default_rng(6), MULTINOMIAL_LOSS.oracle
    y, s = rng.integers(0, 3, 12).astype(float), rng.dirichlet(np.ones(12))
    for size, step in ((1.0, 0.5), (1.0, 1e-3), (30.0, 0.1), (30.0, 1e-6)):
        z, p = size * rng.normal(size=(12, 3)), 7.0 + step * rng.random((12, 3))
        u, curvature = oracle.subgradient(z, y, s), oracle.curvature(z, y, s)
        height = oracle.conjugate_near(u, z, p, y, s)
        exact = oracle.conjugate(u - curvature.apply(p), y, s)
        bend = np.vdot(p, curvature.apply(p))
        charge = 1e-12 * (1.0 + size)
        assert exact <= height + charge
        assert height - exact <= bend + charge
        assert oracle.conjugate_near(u, z, 3.0 * p / step, y, s) == np.inf


@pytest.mark.parametrize("apart", [20.0, 37.0, 60.0, 200.0])
def test_multinomial_conjugate_near_certain_classes(apart):
    """Rounding errors are relative to R*, which is nearly zero."""
    rng, oracle = np.random.default_rng(8), MULTINOMIAL_LOSS.oracle
    y, s = rng.integers(0, 4, 20).astype(float), rng.dirichlet(np.ones(20))
    z, p = rng.normal(size=(20, 4)), 0.5 * rng.random((20, 4))
    z[np.arange(20), y.astype(int)] += apart
    p -= p[np.arange(20), y.astype(int), np.newaxis]
    u, curvature = oracle.subgradient(z, y, s), oracle.curvature(z, y, s)
    height = oracle.conjugate_near(u, z, p, y, s)
    exact = oracle.conjugate(u - curvature.apply(p), y, s)
    bend = np.vdot(p, curvature.apply(p))
    assert exact < height <= exact + bend + 1e-13 * abs(exact)
