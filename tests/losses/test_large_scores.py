"""Values and cuts at scores of all sizes against definitions in extended precision.

A cut may lie above the loss nowhere, by nothing, after the allowance for rounding.
Scores that are much larger than margins and gains take those away where sums are of
both; the losses of few rows are enumerated here, from scores as they are.
"""

from __future__ import annotations

from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    Objective,
    Risk,
    regression_losses,
    rounding,
)

from sklearn_subqn import losses

LONG = np.longdouble
SCALES = 10.0 ** np.array([-6, -2, 0, 3, 6, 8])


def members(codes):
    return [np.flatnonzero(codes == g) for g in range(codes.max() + 1)]


# Rankings: the maximum over permutations.

PERMUTATIONS = {n: np.array(list(permutations(range(n)))) for n in range(1, 6)}


def discounts(name, n):
    ranks = np.arange(1, n + 1).astype(LONG)
    if name.startswith("ndcg"):
        a = 1 / np.log2(1 + ranks)
        return np.where(ranks <= 2, a, 0) if name == "ndcg at 2" else a
    if name == "mrr":
        return 1 / ranks
    if name == "utility":
        return LONG(2) ** (-(ranks - 1) / 4)
    return np.where(ranks <= 2, LONG(1) / 2, LONG(0))


def gains(name, y):
    y = y.astype(LONG)
    if name.startswith("ndcg"):
        return LONG(2) ** y - 1
    return y if name == "utility" else (y > 0).astype(LONG)


def scaled(name, ideal, b):
    if name in ("mrr", "precision"):
        return LONG(1)
    return 2 / b.sum() if name == "recall" else 1 / ideal


def measured(name, a, ranked):
    """Return the measure of gains by ranks, rows of an array."""
    if name == "mrr":
        return 1 / (1 + np.argmax(ranked > 0, axis=1).astype(LONG))
    return ranked @ a


def assignment(name, decay=None):
    def value(y, s, codes, z):
        total = LONG(0)
        for rows in members(codes):
            orders = PERMUTATIONS[len(rows)]
            b, zg = gains(name, y[rows]), z[rows]
            a = discounts(name, len(rows))
            c = a
            if decay is not None:
                c = (2 + np.arange(len(rows)).astype(LONG)) ** LONG(-decay)
            values = measured(name, a, b[orders])
            if values.max() - values.min() < 1e-12:
                continue
            values *= scaled(name, values.max(), b)
            ideal = np.all(np.diff(b[orders], axis=1) <= 0, axis=1)
            factors = np.empty((len(orders), len(rows)), LONG)
            np.put_along_axis(factors, orders, c[None], axis=1)
            changes = factors - factors[ideal].mean(axis=0)
            tied = np.abs(changes) < 1e-17
            changes = np.where(tied, 0, changes)
            total += s[rows].sum() * (changes @ zg + (values.max() - values)).max()
        return total

    return value


def inversions(name):
    def value(y, s, codes, z):
        total = LONG(0)
        for rows in members(codes):
            b, a = gains(name, y[rows]), discounts(name, len(rows))
            orders = PERMUTATIONS[len(rows)]
            every = measured(name, a, b[orders])
            if every.max() - every.min() < 1e-12:
                continue
            b = b * scaled(name, every.max(), b)
            levels = np.unique(b)
            places = np.argsort(orders, axis=1)
            for low, high in pairwise(levels):
                relevant = b >= high
                height = LONG(1) if name == "mrr" else high - low
                values = height * measured(name, a, relevant[orders].astype(LONG))
                lost = values.max() - values
                factor = values.max() / (relevant.sum() * (~relevant).sum())
                for i, j in product(
                    np.flatnonzero(relevant), np.flatnonzero(~relevant)
                ):
                    above = places[:, j] < places[:, i]
                    lost = lost + factor * above * (z[rows[j]] - z[rows[i]])
                total += s[rows].sum() * lost.max()
        return total

    return value


# Pairs, tables, and rows by themselves.


def pairs(kind, cost=None):
    def value(y, s, codes, z):
        total = LONG(0)
        for rows in members(codes):
            i, j = np.nonzero(y[rows][:, None] < y[rows][None])
            i, j = rows[i], rows[j]
            if not len(i):
                continue
            weights = s[i] * s[j]
            costs = (y[j] - y[i]) if cost == "linear" else np.ones(len(i))
            terms = kind(z[i] - z[j]) * costs * weights
            total += s[rows].sum() * terms.sum() / weights.sum()
        return total

    return value


def given(n):
    return np.array([*combinations(range(n), 2)]).T


def preferences(y, s, codes, z):
    better, worse = given(len(z))
    weights = s[better] * s[worse]
    return (weights * hinge(z[worse] - z[better])).sum() / weights.sum()


def f_beta(y, s, codes, z):
    best, weight = -np.inf, s.max()
    for labels in product((-1.0, 1.0), repeat=len(y)):
        labels = np.array(labels)
        missed = np.sum((y > 0) & (labels < 0)).astype(LONG)
        false = np.sum((y <= 0) & (labels > 0)).astype(LONG)
        wrong = 4 * missed + false
        cost = wrong / (5 * (np.sum(y > 0) - missed) + wrong) if wrong else LONG(0)
        same = labels == np.where(y > 0, 1.0, -1.0)
        changed = z[~same & (labels > 0)].sum() - z[~same & (labels < 0)].sum()
        best = max(best, weight * changed + cost)
    return best


def of_rows(kind):
    return lambda y, s, codes, z: (s * kind(z, y)).sum()


def hinge(m):
    return np.maximum(0, 1 + m)


def squared(m):
    return hinge(m) ** 2


def logistic(m):
    return np.log1p(np.exp(-np.abs(m))) + np.maximum(0, m)


#: By name the loss of groups, its definition, and the largest target.
CASES = {}
for _name, _make in {
    "ndcg": losses.Ndcg,
    "ndcg at 2": lambda g, **k: losses.Ndcg(g, k=2, **k),
    "precision": lambda g, **k: losses.PrecisionAtK(2, g, **k),
    "recall": lambda g, **k: losses.RecallAtK(2, g, **k),
    "utility": losses.ExpectedRankUtility,
    "mrr": losses.ReciprocalRank,
}.items():
    CASES[_name] = (_make, assignment(_name), 2)
    CASES[f"{_name}, inversions"] = (
        lambda g, make=_make: losses.Inversions(make(g)),
        inversions(_name),
        2,
    )
CASES["ndcg, decay"] = (
    lambda g: losses.Ndcg(g, decay=0.25),
    assignment("ndcg", 0.25),
    2,
)
CASES |= {
    "pairs": (lambda g: losses.OrderedPairs(groups=g), pairs(hinge), 2),
    "pairs, linear": (
        lambda g: losses.OrderedPairs("linear", g),
        pairs(hinge, "linear"),
        2,
    ),
    "roc area": (losses.RocArea, pairs(hinge), 1),
    "squared pairs": (lambda g: losses.SquaredPairs(groups=g), pairs(squared), 2),
    "squared pairs, linear": (
        lambda g: losses.SquaredPairs("linear", g),
        pairs(squared, "linear"),
        2,
    ),
    "squared roc area": (losses.SquaredRocArea, pairs(squared), 1),
    "logistic pairs": (lambda g: losses.LogisticPairs(groups=g), pairs(logistic), 2),
    "logistic roc area": (losses.LogisticRocArea, pairs(logistic), 1),
    "preferences": (
        lambda g: losses.Preferences(given(len(g.codes)).T),
        preferences,
        2,
    ),
    "f_beta": (lambda g: losses.FBeta(2.0), f_beta, 1),
    "hinge": (
        lambda g: BINARY_LOSSES["hinge"],
        of_rows(lambda z, y: np.maximum(0, 1 - np.where(y > 0, z, -z))),
        1,
    ),
    "absolute error": (
        lambda g: regression_losses()["absolute_error"],
        of_rows(lambda z, y: np.abs(y - z)),
        2,
    ),
}
WEIGHTED = "hinge", "absolute", "squared", "logistic", "preferences"
COUNTS = {n for n in CASES if not ("pairs" in n or n.startswith(WEIGHTED))}


class OwnNdcg(losses.Loss):
    """As a user may write it, who does not think of rounding."""

    ranks = counts_rows = True

    def __init__(self, groups):
        self._groups = groups

    def evaluate(self, scores, targets, weights):
        value, u = 0.0, np.zeros_like(scores)
        for rows in members(self._groups.codes):
            z, b = scores[rows], 2.0 ** targets[rows] - 1.0
            a = 1.0 / np.log2(2.0 + np.arange(len(rows)))
            ideal = np.argsort(-b, kind="stable")
            b = b / (a @ b[ideal]) if b.any() else b
            c = np.zeros(len(rows))
            for gain in np.unique(b):
                c[b == gain] = a[np.flatnonzero(b[ideal] == gain)].mean()
            order, share = np.argsort(b - z), weights[rows].sum()
            if np.ptp(b) == 0.0:
                continue
            value += share * (a @ (z - b)[order] - c @ z + a @ b[ideal])
            u[rows[order]] += share * a
            u[rows] -= share * c
        return value, u

    def value(self, *args):
        return self.evaluate(*args)[0]

    def subgradient(self, *args):
        return self.evaluate(*args)[1]


CASES["one's own"] = (lambda g: OwnNdcg(g), assignment("ndcg"), 2)
COUNTS.add("one's own")


def problem(name, seed):
    """Return objective and definition of rows, each of which is a parameter."""
    make, definition, largest = CASES[name]
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    codes = np.sort(np.arange(n) % (1 + (n > 5)))
    y = rng.integers(0, largest + 1, n).astype(float)
    y[:2] = 0.0, largest
    if "roc" in name or name in ("f_beta", "hinge"):
        y = np.where(y > 0.0, 1.0, -1.0)
    if name == "f_beta":
        codes[:] = 0
    s = np.ones(n) if name in COUNTS else rng.random(n) + 0.1
    s /= s.sum()
    risk = Risk(
        Design(np.eye(n), fit_intercept=False), make(losses.Groups(codes)), y, s
    )
    exact = s.astype(LONG) if name not in COUNTS else np.full(n, LONG(1) / n)
    return (
        Objective(risk, L2(n), 1e-3),
        lambda z: definition(y, exact, codes, z.astype(LONG)),
        y,
        rng,
    )


def scores(rng, y):
    """Return scores of all sizes, some in the right order, some with ties."""
    found = [np.zeros(len(y))]
    for scale in SCALES:
        noise = rng.normal(size=len(y))
        found += [
            scale * noise,
            scale * np.round(noise),
            scale * y,
            scale * (y + noise),
        ]
        found += [scale * (1.0 + y) + noise, scale * y + 1e-7 * scale * noise]
    return found


@pytest.mark.parametrize("name", CASES)
def test_values_and_cuts_at_scores_of_all_sizes(name):
    for seed in range(5):
        objective, exact, y, rng = problem(name, seed)
        points = scores(rng, y)
        values = [exact(z) for z in points]
        sizes = objective.column_sizes.astype(LONG)
        for z, value in zip(points, values, strict=True):
            point = objective.at(z)
            terms = float(np.abs(point.dual) @ np.abs(z)) + float(value)
            charged = float(point.cut.error * (sizes @ np.abs(z)))
            error = abs(float(point.risk - value))
            # The value of one's own loss is what it says.
            assert (
                name == "one's own" or error <= 4.0 * rounding(len(z)) * terms + charged
            )
            cut = point.cut
            for other, height in zip(points, values, strict=True):
                at = other.astype(LONG)
                bound = cut.normal.astype(LONG) @ at + LONG(cut.offset)
                bound -= cut.error * (sizes @ np.abs(at))
                assert bound <= height + 1e-18 * (abs(bound) + abs(height))


@pytest.mark.parametrize("far", [-1e6, -1e9])
def test_logistic_pairs_keep_digits_beside_a_score_far_away(far):
    """Their bins are multiples of a width, not distances from the lowest score."""
    z = np.array([0.1, 0.3, far])
    targets, weights = np.array([1, 0, 1]), np.array([0.5, 0.5, 1e-12])
    pairs = [(1, 0), (1, 2)]
    exact = [
        LONG(weights[low])
        * LONG(weights[high])
        * np.logaddexp(LONG(0), LONG(z[low]) - LONG(z[high]))
        for low, high in pairs
    ]
    loss = losses.LogisticRocArea()
    total = LONG(weights[1]) * (LONG(weights[0]) + LONG(weights[2]))
    value = loss.value(z, targets, weights)
    assert value == pytest.approx(float(sum(exact) / total), rel=1e-14)
