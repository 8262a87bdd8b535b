"""Losses of pairs, rankings and contingency tables against their definitions."""

import tracemalloc
from itertools import permutations, product

import numpy as np
import pytest
from _door import DualLoss, Simplex, minimize_intercept, path_shares
from _problems import EXPLORE, binary_objective
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn.losses import (
    ExpectedRankUtility,
    FBeta,
    Groups,
    Inversions,
    Ndcg,
    Ontology,
    OrderedPairs,
    PrecisionAtK,
    Preferences,
    RecallAtK,
    ReciprocalRank,
    RocArea,
)

TABLE = np.random.default_rng(0).random((3, 3))


@st.composite
def rankings(draw, max_rows=9, largest=5):
    """Rows of one to three groups in any order: targets, weights, scores, others.

    Scores are quarters, so that there are ties and kinks; groups are of at most
    ``largest`` rows.
    """
    n = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.sort(rng.integers(0, 3, n))
    codes = rng.permutation(codes + 3 * (np.arange(n) // largest))
    codes = np.unique(codes, return_inverse=True)[1].astype(np.intp)
    targets = rng.integers(0, draw(st.integers(1, 3)), n).astype(float)
    weights = rng.choice([0.0, 1.0, 2.0, 0.3], n) + 1e-3
    scores = rng.integers(-8, 9, n) / 4.0
    return Groups(codes), targets, weights / weights.sum(), scores, rng.normal(size=n)


def members(groups):
    return [np.flatnonzero(groups.codes == g) for g in range(len(groups))]


# Definitions


def pairs_by_definition(cost):
    def value(groups, y, s, z):
        total = 0.0
        for rows in members(groups):
            found = [(i, j) for i, j in product(rows, rows) if y[i] < y[j]]
            mass = sum(s[i] * s[j] for i, j in found)
            loss = sum(
                s[i] * s[j] * cost(y[i], y[j]) * max(0.0, 1.0 + z[i] - z[j])
                for i, j in found
            )
            total += s[rows].sum() * loss / mass if found else 0.0
        return total

    return value


def dcg_discount(k=np.inf):
    return lambda r: (r < k) / np.log2(r + 2.0)


def binary(y):
    return (y > 0.0).astype(float)


def ndcg(k):
    def measure(y):
        gains, a = 2.0**y - 1.0, dcg_discount(k)(np.arange(len(y)))
        ideal = a @ np.sort(gains)[::-1]
        return a @ gains / ideal if ideal else 0.0

    return measure


def utility(y):
    a = 2.0 ** (-np.arange(len(y)) / 4.0)
    ideal = a @ np.sort(y)[::-1]
    return a @ y / ideal if ideal else 0.0


def reciprocal(y):
    return 1.0 / (1.0 + np.flatnonzero(y)[0]) if y.any() else 0.0


#: name: loss from groups, measure of ranked targets, factors c of ranks from zero,
#: gains. Ranks end at 2.
MEASURES = {
    "ndcg": (lambda g: Ndcg(g), ndcg(np.inf), dcg_discount(), lambda y: 2.0**y - 1.0),
    "ndcg at 2": (
        lambda g: Ndcg(g, k=2),
        ndcg(2),
        dcg_discount(2),
        lambda y: 2.0**y - 1.0,
    ),
    "precision": (
        lambda g: PrecisionAtK(2, g),
        lambda y: binary(y)[:2].sum() / 2.0,
        lambda r: (r < 2) * 0.5,
        binary,
    ),
    "recall": (
        lambda g: RecallAtK(2, g),
        lambda y: binary(y)[:2].sum() / max(binary(y).sum(), 1.0),
        lambda r: (r < 2) * 0.5,
        binary,
    ),
    "rank utility": (
        lambda g: ExpectedRankUtility(g),
        utility,
        lambda r: 2.0 ** (-r / 4.0),
        lambda y: y,
    ),
    "mrr": (lambda g: ReciprocalRank(g), reciprocal, lambda r: 1.0 / (r + 1.0), binary),
}
LINEAR = {"decay": 0.25}
each_measure = pytest.mark.parametrize("name", MEASURES)


def assignment_by_definition(measure, factors, gains, groups, y, s, z):
    """(28) by all permutations, the mean over all ideal rankings."""
    total = 0.0
    for rows in members(groups):
        orders = [rows[list(p)] for p in permutations(range(len(rows)))]
        values = [measure(y[order]) for order in orders]
        if max(values) - min(values) < 1e-9:
            continue
        c = factors(np.arange(len(rows)))
        ideal = [c @ z[o] for o in orders if np.all(np.diff(gains(y[o])) <= 0.0)]
        highest = max(c @ z[o] - v for o, v in zip(orders, values, strict=True))
        total += s[rows].sum() * (highest - np.mean(ideal) + max(values))
    return total


def inversions_by_definition(measure, gains, groups, y, s, z):
    """The sum over levels of relevance of a maximum over all permutations."""
    total = 0.0
    levels = np.unique(gains(y))
    for rows in members(groups):
        orders = [rows[list(p)] for p in permutations(range(len(rows)))]
        values = [measure(y[order]) for order in orders]
        best, worst = max(values), min(values)
        if best - worst < 1e-9:
            continue
        losses = []
        for level in levels[1:]:
            relevant = gains(y) >= level
            p = relevant[rows].sum()
            n = len(rows) - p
            if p * n == 0:
                continue
            parts = [part_of(measure, gains, y, rows, o, level) for o in orders]
            top = max(parts)
            losses.append(
                max(
                    top / (p * n) * inverted(z, relevant, o) + top - part
                    for o, part in zip(orders, parts, strict=True)
                )
            )
        total += s[rows].sum() * sum(losses)
    return total


def inverted(z, relevant, order):
    """The sum of z_other - z_relevant over pairs with the other above."""
    return sum(
        z[above] - z[row]
        for place, row in enumerate(order)
        for above in order[:place]
        if relevant[row] and not relevant[above]
    )


def part_of(measure, gains, y, rows, order, level):
    """What the step of the gains up to a level contributes to a measure.

    A measure is linear in the gains, whose scale the ideal ranking fixes.
    """
    if measure is reciprocal:
        return reciprocal(y[order])
    below = np.unique(gains(y))[np.unique(gains(y)) < level].max()
    step = (level - below) * (gains(y) >= level)
    ideal = rows[np.argsort(-gains(y[rows]), kind="stable")]
    discounts = {m[1]: m[2] for m in MEASURES.values()}[measure](np.arange(len(rows)))
    scale = measure(y[ideal]) / (discounts @ gains(y[ideal]))
    return scale * float(discounts @ step[order])


def f_beta_by_definition(beta, y, s, z):
    best = -np.inf
    for labels in product([-1.0, 1.0], repeat=len(y)):
        given = np.array(labels)
        hits = np.sum((given > 0) & (y > 0)) * (1.0 + beta**2)
        missed, false = np.sum((given < 0) & (y > 0)), np.sum((given > 0) & (y < 0))
        score = hits / (hits + beta**2 * missed + false)
        best = max(best, 0.5 * s @ ((given - y) * z) + 1.0 - score)
    return best


# Values and subgradients


def assert_is_convex_bound(loss, y, s, z, others, value):
    assert loss.value(z, y, s) == pytest.approx(value, abs=1e-12)
    u = loss.subgradient(z, y, s)
    both = loss.evaluate(z, y, s)
    assert both[0] == loss.value(z, y, s)
    assert_array_equal(both[1], u)
    for point in (others, z + others, -z):
        ahead = value + u @ (point - z)
        assert loss.value(point, y, s) >= ahead - 1e-12
    # Only differences of scores count.
    assert u.sum() == pytest.approx(0.0, abs=1e-14)
    middle = loss.value(0.5 * (z + others), y, s)
    assert middle <= 0.5 * (value + loss.value(others, y, s)) + 1e-12
    conjugate = loss.conjugate_at(u, z, y, s)
    assert conjugate == pytest.approx(u @ z - value, abs=1e-12)
    assert loss.conjugate(np.zeros_like(z), y, s) == 0.0


@pytest.mark.parametrize(
    ("cost", "function"),
    [
        ("constant", lambda a, b: 1.0),
        ("linear", lambda a, b: b - a),
        (TABLE, lambda a, b: TABLE[int(a), int(b)]),
    ],
    ids=["constant", "linear", "table"],
)
@EXPLORE
@given(data=rankings())
def test_ordered_pairs(cost, function, data):
    groups, y, s, z, others = data
    value = pairs_by_definition(function)(groups, y, s, z)
    assert_is_convex_bound(OrderedPairs(cost, groups), y, s, z, others, value)


@EXPLORE
@given(data=rankings())
def test_roc_area_and_preferences_are_ordered_pairs(data):
    _, y, s, z, others = data
    y = np.where(y > 0.0, 1.0, -1.0)
    groups = Groups.one(len(y))
    value = pairs_by_definition(lambda a, b: 1.0)(groups, y, s, z)
    assert_is_convex_bound(RocArea(), y, s, z, others, value)
    pairs = np.argwhere(y[:, np.newaxis] > y)
    loss = Preferences(pairs.astype(np.intp))
    assert_is_convex_bound(loss, y, s, z, others, value)
    slope = loss.restrict(z, others, y, s).slope_at(1.0)
    h = 1e-7
    ahead = loss.value(z + (1.0 + h) * others, y, s) - loss.value(z + others, y, s)
    assert slope == pytest.approx(ahead / h, abs=1e-5)


def test_roc_area_bounds_one_minus_the_area():
    rng = np.random.default_rng(0)
    y, z = rng.choice([-1.0, 1.0], 50), rng.normal(size=50)
    wrong = np.mean(z[y > 0][:, np.newaxis] <= z[y < 0])
    s = np.full(50, 0.02)
    assert RocArea().value(z, y, s) >= wrong
    # Beyond a distance of one nothing is lost.
    assert RocArea().value(1.5 * y, y, s) == pytest.approx(0.0, abs=1e-15)


def test_costs_of_preferences():
    pairs, z = np.array([[0, 1], [1, 2]]), np.zeros(3)
    loss = Preferences(pairs, np.array([1.0, 3.0]))
    assert loss.value(z, z, np.full(3, 1 / 3)) == 2.0
    assert_allclose(loss.subgradient(z, z, np.full(3, 1 / 3)), [-0.5, -1.0, 1.5])


@each_measure
@EXPLORE
@given(data=rankings())
def test_measures_by_linear_assignment(name, data):
    groups, y, s, z, others = data
    make, measure, factors, gains = MEASURES[name]
    value = assignment_by_definition(measure, factors, gains, groups, y, s, z)
    assert_is_convex_bound(make(groups), y, s, z, others, value)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("ndcg at 2", lambda g: Ndcg(g, k=2, **LINEAR)),
        ("precision", lambda g: PrecisionAtK(2, g, **LINEAR)),
        ("recall", lambda g: RecallAtK(2, g, **LINEAR)),
        ("rank utility", lambda g: ExpectedRankUtility(g, **LINEAR)),
    ],
)
@EXPLORE
@given(data=rankings(max_rows=7))
def test_measures_with_other_factors(name, make, data):
    groups, y, s, z, others = data
    _, measure, _, gains = MEASURES[name]

    def factors(r):
        return (r + 2.0) ** -0.25

    value = assignment_by_definition(measure, factors, gains, groups, y, s, z)
    assert_is_convex_bound(make(groups), y, s, z, others, value)


@each_measure
@EXPLORE
@given(data=rankings())
def test_measures_by_inverted_pairs(name, data):
    groups, y, s, z, others = data
    make, measure, _, gains = MEASURES[name]
    value = inversions_by_definition(measure, gains, groups, y, s, z)
    assert_is_convex_bound(Inversions(make(groups)), y, s, z, others, value)


@each_measure
@EXPLORE
@given(data=rankings())
def test_losses_bound_what_a_measure_is_short_of(name, data):
    groups, y, s, _, z = data
    make, measure, _, gains = MEASURES[name]
    short = 0.0
    for rows in members(groups):
        best = measure(y[rows[np.argsort(-gains(y[rows]))]])
        short += s[rows].sum() * (best - measure(y[rows[np.argsort(-z[rows])]]))
    assert make(groups).value(z, y, s) >= short - 1e-12
    assert Inversions(make(groups)).value(z, y, s) >= short - 1e-12


@each_measure
def test_rows_of_equal_relevance_may_spread_at_no_cost(name):
    y, s = np.array([1.0, 0.0, 0.0, 1.0, 0.0]), np.full(5, 0.2)
    z = np.array([9.0, -7.0, -4.0, 6.0, -30.0])
    measure = MEASURES[name][0](Groups.one(5))
    assert Inversions(measure).value(z, y, s) == pytest.approx(0.0, abs=1e-12)
    # By linear assignment it costs something where discounts of their ranks differ.
    if name in ("ndcg", "mrr", "rank utility"):
        assert measure.value(z, y, s) > 1.0


def test_linear_gains():
    y, s, z = np.array([0.0, 3.0, 1.0]), np.full(3, 1 / 3), np.array([1.0, 0.0, 0.5])
    groups = Groups.one(3)
    linear = Ndcg(groups, gain="linear")
    assert linear.value(z, np.log2(y + 1.0), s) != linear.value(z, y, s)
    value = Ndcg(groups).value(z, np.log2(y + 1.0), s)
    assert linear.value(z, y, s) == pytest.approx(value)


@EXPLORE
@given(data=rankings(max_rows=7), beta=st.sampled_from([0.5, 1.0, 2.0]))
def test_f_beta(data, beta):
    _, y, s, z, others = data
    y = np.where(y > 0.0, 1.0, -1.0)
    y[0] = 1.0
    s = np.full(len(y), 1.0 / len(y))
    loss = FBeta(beta)
    value = f_beta_by_definition(beta, y, s, z)
    assert loss.value(z, y, s) == pytest.approx(value, abs=1e-12)
    u = loss.subgradient(z, y, s)
    for point in (others, z + others, -z):
        ahead = value + u @ (point - z)
        assert loss.value(point, y, s) >= ahead - 1e-12
    # Rows of no weight are missing ones.
    more = [np.append(a, [b, b]) for a, b in ((z, 3.0), (y, -1.0), (s, 0.0))]
    assert loss.value(*more) == pytest.approx(value, abs=1e-12)


@EXPLORE
@given(data=rankings(max_rows=7), seed=st.integers(0, 99))
def test_f_beta_of_shifted_scores(data, seed):
    """Each value is right whatever shifts came before it."""
    _, y, s, z, _ = data
    y = np.where(y > 0.0, 1.0, -1.0)
    y[0] = 1.0
    s = np.full(len(y), 1.0 / len(y))
    loss = FBeta(2.0)
    shifted = loss.shifted(z, y, s)
    for shift in np.random.default_rng(seed).integers(-20, 20, 12) / 4.0:
        value, u = shifted(float(shift))
        expected = f_beta_by_definition(2.0, y, s, z + shift)
        assert value == pytest.approx(expected, abs=1e-12)
        height = u @ (z + shift) - loss.conjugate_at(u, z + shift, y, s)
        assert height == pytest.approx(expected, abs=1e-12)
    mixed = 0.5 * (u + loss.subgradient(-z, y, s))
    height = mixed @ z - loss.conjugate_at(mixed, z, y, s)
    assert height <= loss.value(z, y, s) + 1e-12


class CountingFBeta(FBeta):
    """It counts the tables of which it is asked the cost."""

    n_tables = 0

    def cost(self, missed, false, n_positive, n_negative):
        self.n_tables += np.size(false)
        return super().cost(missed, false, n_positive, n_negative)


def test_the_intercept_of_f_beta_takes_few_tables():
    """One sort does for all trials, and the last ones bound what the next may be."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(3000, 2)) + 0.4 * y[:, np.newaxis]
    loss = CountingFBeta()
    objective = binary_objective(X, y, loss=loss)
    settled = minimize_intercept(objective.at(np.array([0.4, 0.4, 0.3])))
    assert np.isfinite(settled.lower_bound)
    assert loss.n_tables <= 20 * len(y)


def test_tables_count_rows():
    y, z = np.array([1.0, -1.0]), np.zeros(2)
    with pytest.raises(ValueError, match="weights must be equal or zero"):
        FBeta().value(z, y, np.array([0.4, 0.6]))


def test_plans_follow_the_targets():
    y, s = np.array([0.0, 1.0, 2.0]), np.full(3, 1 / 3)
    z = np.array([0.3, -0.2, 0.1])
    for loss in (OrderedPairs(), Ndcg(), Inversions(Ndcg())):
        first = loss.value(z, y, s)
        other = loss.value(z, y[::-1].copy(), s)
        assert other != first
        assert loss.value(z, y, s) == first


@EXPLORE
@given(data=rankings(max_rows=9))
def test_weights_of_pairs_are_repetitions(data):
    _, y, _, z, _ = data
    counts = np.random.default_rng(len(y)).integers(0, 4, len(y))
    counts[0] = 1
    repeated = np.repeat(np.arange(len(y)), counts)
    n = len(repeated)
    for loss in (OrderedPairs(), OrderedPairs("linear")):
        weighted = loss.value(z, y, counts / n)
        plain = loss.value(z[repeated], y[repeated], np.full(n, 1.0 / n))
        assert weighted == pytest.approx(plain, abs=1e-12)


# Ontologies

#: Nodes 0 to 6; 3 is below 0 and 1, leaves are 2, 4, 5 and 6.
GRAPH = [[-1], [-1], [0], [0, 1], [1], [3], [3]]


def test_path_shares():
    expected = [
        [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.5, 0.5, 0.0, 1.0, 0.0, 1.0, 0.0],
        [0.5, 0.5, 0.0, 1.0, 0.0, 0.0, 1.0],
    ]
    assert_array_equal(path_shares(GRAPH), expected)


def test_path_shares_of_the_second_graph_of_the_source():
    # Figure 13, right: its nodes 2, ..., 15 are ours from 0.
    above = {2: [1], 3: [1], 4: [2], 5: [2, 3], 6: [3], 7: [4], 8: [4], 9: [4]}
    above |= {10: [5], 11: [5], 12: [6], 13: [6], 14: [12], 15: [12]}
    features = path_shares([[p - 2 for p in above[v]] for v in range(2, 16)])
    ten = features[3]
    assert_array_equal(np.flatnonzero(ten) + 2, [2, 3, 5, 10])
    assert_array_equal(ten[ten > 0.0], [0.5, 0.5, 1.0, 1.0])


def test_costs_of_many_leaves_take_little_memory():
    rng = np.random.default_rng(0)
    parents = [[-1]] * 4
    parents += [[int(rng.integers(0, k))] for k in range(4, 80)]
    parents += [rng.choice(80, 1 + k % 2, replace=False).tolist() for k in range(150)]
    tracemalloc.start()
    loss = Ontology.from_parents(parents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    features, n_labels = loss.features, len(loss.features)
    assert peak <= 12 * 8 * n_labels * len(parents)
    y, s = np.arange(n_labels), np.full(n_labels, 1.0 / n_labels)
    costs = 0.5 * np.abs(features[:, np.newaxis] - features).sum(axis=2)
    expected = Ontology(features, costs)
    z = 0.1 * rng.normal(size=(n_labels, len(parents)))
    assert loss.value(z, y, s) == pytest.approx(expected.value(z, y, s))
    assert loss.value(0.0 * z, y, s) == pytest.approx(costs.max(axis=1).mean())


@pytest.mark.parametrize(
    ("parents", "message"),
    [([[1], [0]], "cycle"), ([[-1], []], "parents among"), ([[-1], [2]], "among")],
)
def test_graphs_that_are_none(parents, message):
    with pytest.raises(ValueError, match=message):
        path_shares(parents)


def test_ontology_is_a_maximum_over_paths():
    rng = np.random.default_rng(0)
    features = path_shares(GRAPH)
    costs = 0.5 * np.abs(features[:, np.newaxis] - features).sum(axis=2)
    y, s = rng.integers(0, 4, 20), rng.dirichlet(np.ones(20))
    loss = Ontology(features, costs)
    z, others = rng.normal(size=(2, 20, 7))
    terms = (features[np.newaxis] - features[y][:, np.newaxis]) @ z[..., np.newaxis]
    value = s @ (terms[..., 0] + costs[y]).max(axis=1)
    assert loss.value(z, y, s) == pytest.approx(value)
    u = loss.subgradient(z, y, s)
    assert loss.value(others, y, s) >= value + np.vdot(u, others - z) - 1e-12
    h = 1e-7
    slope = (loss.value(z + h * others, y, s) - value) / h
    assert loss.loss.oracle.restrict(z, others, y, s).slope == pytest.approx(
        slope, abs=1e-5
    )


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_conjugates_of_dependent_features_are_known_at_subgradients(loss):
    """A dual of scores does not determine which labels it stands for, the scores do."""
    rng = np.random.default_rng(2)
    features = rng.random((6, 3))
    costs = 1.0 - np.eye(6) if loss == "hinge" else None
    composed = Ontology(features, costs, loss=loss).loss
    assert not composed.has_conjugate
    y, s = rng.integers(0, 6, 20), rng.dirichlet(np.ones(20))
    z, others = rng.normal(size=(2, 20, 3))
    u = composed.oracle.subgradient(z, y, s)
    conjugate = composed.oracle.conjugate_at(u, z, y, s)
    value = composed.oracle.value(z, y, s)
    assert conjugate == pytest.approx(np.vdot(u, z) - value)
    assert composed.oracle.value(others, y, s) >= np.vdot(u, others) - conjugate - 1e-12
    with pytest.raises(TypeError, match="no conjugate except at zero"):
        composed.oracle.conjugate(u, y, s)


def test_ontology_without_hierarchy_is_the_multiclass_hinge():
    rng = np.random.default_rng(1)
    costs = 1.0 - np.eye(3)
    flat = Ontology(path_shares([[-1]] * 3), costs)
    z, y, s = rng.normal(size=(9, 3)), rng.integers(0, 3, 9), np.full(9, 1 / 9)
    assert flat.value(z, y, s) == DualLoss(Simplex(costs)).oracle.value(z, y, s)


@pytest.mark.parametrize("make", [Ndcg, ExpectedRankUtility])
def test_levels_of_groups_are_their_own(make):
    """The relevances of one group make no work in the others."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(30), 8)
    y, z = rng.random(240) * 3.0, rng.normal(size=240)
    y[codes == 3] = np.round(y[codes == 3])
    loss = Inversions(make(Groups(codes)))
    value, dual = loss.evaluate(z, y, np.full(240, 1 / 240))
    alone = [
        Inversions(make()).evaluate(z[rows], y[rows], np.full(8, 1 / 240))
        for rows in np.split(np.arange(240), 30)
    ]
    assert value == pytest.approx(sum(v for v, _ in alone))
    assert_allclose(dual, np.concatenate([u for _, u in alone]), atol=1e-15)
    assert len(loss._prepare(y)) == 7
