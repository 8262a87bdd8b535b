"""Losses and penalties by their definitions, of exact scores in extended precision.

None of the package's code is used: sums over pairs, rankings and labelings are taken
one term after the other. Weights ``s`` sum to one, scores are extended numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

LONG = np.longdouble


def long(x: Any) -> Any:
    return np.asarray(x).astype(LONG)


def _fraction(x: Any) -> Fraction:
    high = float(x)
    return Fraction(high) + Fraction(float(LONG(x) - LONG(high)))


def _extended(x: Fraction) -> Any:
    high = float(x)
    return LONG(high) + LONG(float(x - Fraction(high)))


def exact_scores(X: Any, coef: Any, intercept: Any) -> Any:
    """X @ coef + intercept of shape (n, k), rounded once."""
    rows = [[(j, _fraction(v)) for j, v in enumerate(row) if v] for row in X]
    columns = [[_fraction(v) for v in column] for column in np.atleast_2d(coef)]
    free = [_fraction(b) for b in np.atleast_1d(intercept)]
    return np.array(
        [
            [
                _extended(sum((a * c[j] for j, a in row), f))
                for c, f in zip(columns, free, strict=True)
            ]
            for row in rows
        ]
    ).reshape(len(X), len(columns))


def sizes_of_scores(X: Any, coef: Any, intercept: Any) -> Any:
    """The sums of the absolute values of the terms of ``exact_scores``."""
    return np.abs(long(X)) @ np.abs(long(np.atleast_2d(coef))).T + np.abs(
        long(np.atleast_1d(intercept))
    )


def positive(m: Any) -> Any:
    return np.maximum(m, LONG(0))


def log1p_exp(t: Any) -> Any:
    return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))


# Pairs of rows.

#: Functions of the difference z_i - z_j where row j is to be above row i.
OF_DIFFERENCES: dict[str, Callable[[Any], Any]] = {
    "": lambda m: positive(1 + m),
    "squared": lambda m: positive(1 + m) ** 2,
    "log": log1p_exp,
}


def each_pair(
    z: Any, y: Any, s: Any, form: str = "", linear: bool = False, queries: Any = None
) -> Any:
    """Mean over pairs y_i < y_j of cost * f(z_i - z_j), the mean over queries of it.

    Pairs weigh by the product of the weights of their rows, queries by the sum of them.
    """
    queries = np.zeros(len(z), dtype=int) if queries is None else queries
    total = LONG(0)
    for query in np.unique(queries):
        rows = queries == query
        zq, yq, sq = z[rows], long(y[rows]), s[rows]
        differences = yq - yq[:, np.newaxis]
        weights = np.where(differences > 0, sq[:, np.newaxis] * sq, LONG(0))
        if weights.any():
            costs = differences if linear else LONG(1)
            each = OF_DIFFERENCES[form](zq[:, np.newaxis] - zq)
            total += sq.sum() * (weights * costs * each).sum() / weights.sum()
    return total


PAIRS: dict[str, Callable[..., Any]] = {
    f"{name}_{form}".rstrip("_"): partial(each_pair, form=form, linear=linear)
    for name, linear in {
        "roc_area": False,
        "ordinal": False,
        "ordinal_linear": True,
    }.items()
    for form in OF_DIFFERENCES
}


def given_pairs(z: Any, weights: Any, form: str) -> Any:
    """Mean over pairs, of scores of a better row less those of a worse one."""
    s = long(weights) / long(weights).sum()
    return s @ OF_DIFFERENCES[form](-z)


# Measures of rankings, of one query with z of shape (m,).


def discounts(measure: str, m: int, k: int | None) -> Any:
    ranks = long(np.arange(1, m + 1))
    if measure == "ndcg":
        a = 1 / np.log2(1 + ranks)
        return a if k is None else np.where(ranks <= k, a, 0)
    if measure == "mrr":
        return 1 / ranks
    if measure == "rank-utility":
        return LONG(2) ** (-(ranks - 1) / 4)
    return np.where(ranks <= k, 1 / LONG(k or 1), 0)


def gains(measure: str, y: Any) -> Any:
    if measure == "ndcg":
        return LONG(2) ** long(y) - 1
    if measure == "rank-utility":
        return positive(long(y))
    return long(np.asarray(y) > 0)


def _scaled_gains(measure: str, y: Any, a: Any, k: int | None) -> Any:
    """Gains in units of which the ideal ranking is worth one, None without a choice."""
    b = gains(measure, y)
    best = np.sort(b)[::-1]
    ideal, worst = (a * best).sum(), (a * best[::-1]).sum()
    if ideal - worst <= 1e-12 * abs(ideal):
        return None
    if measure == "recall":
        return b * LONG(k or 1) / b.sum()
    return b if measure in ("mrr", "precision") else b / ideal


def by_assignment(z: Any, y: Any, measure: str, k: int | None = None) -> Any:
    """The most, over rankings, of what the measure and the scores lose by them.

    Scores count by the discounts of their ranks, those of rows with equal gains in the
    ideal ranking by the mean of theirs.
    """
    a = discounts(measure, len(z), k)
    b = _scaled_gains(measure, y, a, k)
    if b is None:
        return LONG(0)
    of_ideal = np.zeros(len(z), dtype=LONG)
    begun = 0
    for gain in np.unique(b)[::-1]:
        rows = b == gain
        of_ideal[rows] = a[begun : begun + rows.sum()].mean()
        begun += rows.sum()

    def gained(order: Any) -> Any:
        # Far scores whose ranks are the ideal ones take no digits from others.
        return ((a - of_ideal[order]) * z[order]).sum()

    if measure != "mrr":
        order = np.argsort(b - z, kind="stable")
        return gained(order) + (a * (np.sort(b)[::-1] - b[order])).sum()
    # The best relevant row comes after so many others, those of the largest scores.
    ranked = np.argsort(-z, kind="stable")
    others, relevant = ranked[b[ranked] == 0], ranked[b[ranked] > 0]
    most = LONG(-np.inf)
    for n in range(len(others) + 1):
        rest = np.concatenate([others[n:], relevant[1:]])
        rest = rest[np.argsort(-z[rest], kind="stable")]
        order = np.concatenate([others[:n], relevant[:1], rest])
        most = max(most, gained(order) + 1 - 1 / LONG(n + 1))
    return most


def by_inversions(z: Any, y: Any, measure: str, k: int | None = None) -> Any:
    """The most of what the measure loses, and of the mean of inverted differences.

    Level by level of the gains, for numbers n_1 <= n_2 <= ... of other rows above the
    first, second, ... relevant one.
    """
    a = discounts(measure, len(z), k)
    b = _scaled_gains(measure, y, a, k)
    if b is None:
        return LONG(0)
    total, levels = LONG(0), np.unique(b)
    for low, high in pairwise(levels):
        relevant = np.sort(z[b >= high])[::-1]
        others = np.sort(z[b < high])[::-1]
        m, n_above = len(relevant), np.arange(len(others) + 1)
        step = high - low
        ideal = LONG(1) if measure == "mrr" else step * a[:m].sum()
        above = np.concatenate([[LONG(0)], np.cumsum(others)])
        best = None
        for i, own in enumerate(relevant):
            height = ideal / (m * len(others)) * (above - n_above * own)
            if measure != "mrr":
                height = height - step * a[i + n_above]
            elif i == 0:
                height = height - 1 / (1 + long(n_above))
            best = height if best is None else np.maximum.accumulate(best) + height
        assert best is not None, "rows of the highest gain"
        total += best.max() + ideal
    return total


def of_queries(loss: Callable[..., Any], z: Any, y: Any, queries: Any, v: Any) -> Any:
    """The weighted mean over queries, whose weights v are by their order."""
    names = np.unique(queries)
    each = [loss(z[queries == name], y[queries == name]) for name in names]
    return (long(v) * np.array(each)).sum() / long(v).sum()


def f_beta(z: Any, y: Any, s: Any, beta: Any = 1) -> Any:
    """By enumeration of the tables, for equal weights."""
    hits, alarms = np.sort(z[y > 0]), -np.sort(-z[y <= 0])
    square, best = LONG(beta) ** 2, LONG(-np.inf)
    for f, p in product(range(len(hits) + 1), range(len(alarms) + 1)):
        right = (1 + square) * (len(hits) - f)
        total = right + square * f + p
        cost = 1 - right / total if total else LONG(0)
        gain = alarms[:p].sum() - hits[:f].sum()
        best = max(best, s[0] * gain + cost)
    return best


#: Of the mean, to which variances of "tweedie" are proportional.
POWER = LONG(1.7)

# Binary losses take y of -1 or 1.
ONE_SCORE: dict[str, Callable[..., Any]] = {
    "hinge": lambda z, y, s: s @ positive(1 - y * z),
    "squared_hinge": lambda z, y, s: s @ positive(1 - y * z) ** 2,
    "modified_huber": lambda z, y, s: (
        s @ np.where(y * z >= -1, positive(1 - y * z) ** 2, -4 * y * z)
    ),
    "log_loss": lambda z, y, s: s @ log1p_exp(-y * z),
    "exponential": lambda z, y, s: s @ np.exp(-y * z),
    "f_beta_bound": f_beta,
    "precision_at_k": lambda z, y, s: by_assignment(z, y > 0, "precision", 2),
    "recall_at_k": lambda z, y, s: by_assignment(z, y > 0, "recall", 2),
    **PAIRS,
    "squared_error": lambda z, y, s: s @ (y - z) ** 2 / 2,
    "absolute_error": lambda z, y, s: s @ np.abs(y - z),
    "quantile": lambda z, y, s: (
        s @ np.maximum(LONG(0.3) * (y - z), (LONG(0.3) - 1) * (y - z))
    ),
    "epsilon_insensitive": lambda z, y, s: s @ positive(np.abs(y - z) - LONG(0.1)),
    "squared_epsilon_insensitive": lambda z, y, s: (
        s @ positive(np.abs(y - z) - LONG(0.1)) ** 2
    ),
    "huber": lambda z, y, s: (
        s
        @ np.where(
            np.abs(y - z) <= LONG(0.1),
            (y - z) ** 2 / 2,
            LONG(0.1) * np.abs(y - z) - LONG(0.1) ** 2 / 2,
        )
    ),
    "poisson": lambda z, y, s: s @ (np.exp(z) - y * z),
    "gamma": lambda z, y, s: s @ (y * np.exp(-z) + z),
    "tweedie": lambda z, y, s: (
        s
        @ (
            y * np.exp((1 - POWER) * z) / (POWER - 1)
            + np.exp((2 - POWER) * z) / (2 - POWER)
        )
    ),
}


# Losses as maxima over v in a box of v t - h(v): t of score and target, both ends, h.
DUAL_FORMS: dict[str, tuple[Callable[..., Any], float, float, Callable[..., Any]]] = {
    "hinge": (lambda z, y: 1 - y * z, 0, 1, lambda v: 0 * v),
    "squared_hinge": (lambda z, y: 1 - y * z, 0, np.inf, lambda v: v**2 / 4),
    "modified_huber": (lambda z, y: 1 - y * z, 0, 4, lambda v: v**2 / 4),
    "log_loss": (
        lambda z, y: -y * z,
        0,
        1,
        lambda v: v * np.log(v) + (1 - v) * np.log1p(-v),
    ),
    "exponential": (lambda z, y: -y * z, 0, np.inf, lambda v: v * np.log(v) - v),
    "squared_error": (lambda z, y: y - z, -np.inf, np.inf, lambda v: v**2 / 2),
    "absolute_error": (lambda z, y: y - z, -1, 1, lambda v: 0 * v),
    "quantile": (lambda z, y: y - z, -0.7, 0.3, lambda v: 0 * v),
    "epsilon_insensitive": (lambda z, y: y - z, -1, 1, lambda v: 0.1 * np.abs(v)),
    "squared_epsilon_insensitive": (
        lambda z, y: y - z,
        -np.inf,
        np.inf,
        lambda v: 0.1 * np.abs(v) + v**2 / 4,
    ),
    "huber": (lambda z, y: y - z, -0.1, 0.1, lambda v: v**2 / 2),
    "poisson": (lambda z, y: z, 0, np.inf, lambda v: v * np.log(v) - v),
    "novelty": (lambda z, y: y - z, 0, 1, lambda v: 0 * v),
}


# Several scores per row.


def _own(z: Any, y: Any) -> Any:
    """Scores less that of the own class."""
    return z - z[np.arange(len(y)), y][:, np.newaxis]


def softmax_loss(z: Any, y: Any, s: Any) -> Any:
    z = _own(z, y)
    top = z.max(axis=1)
    own = np.exp(z - top[:, np.newaxis])
    # Accurate where the own class is all but certain.
    at_top = np.arange(z.shape[1]) == z.argmax(axis=1)[:, np.newaxis]
    return s @ (top + np.log1p(np.where(at_top, 0, own).sum(axis=1)))


def multiclass_hinge(z: Any, y: Any, s: Any, costs: Any, rates: Any = 1) -> Any:
    rates = rates if np.isscalar(rates) else long(rates)[y]
    violations = long(costs)[y] + rates * _own(z, y)
    violations[np.arange(len(y)), y] = 0
    return s @ violations.max(axis=1)


def ordinal_logistic(z: Any, y: Any, s: Any, immediate: bool) -> Any:
    """Of scores above each threshold, all or those next to the class."""
    above = y[:, np.newaxis] - np.arange(z.shape[1])
    counts = (above == 0) | (above == 1) if immediate else above == above
    costs = log1p_exp(np.where(above > 0, -z, z))
    return s @ np.where(counts, costs, 0).sum(axis=1)


def _violations(z: Any, labels: Any, margins: Any) -> tuple[Any, Any, Any]:
    """Of irrelevant and relevant labels, and of their pairs, for a threshold of 0."""
    wrong = margins[0][labels == 0] + z[labels == 0]
    right = margins[1][labels == 1] - z[labels == 1]
    return wrong, right, wrong[:, np.newaxis] + right


def multilabel_hinge(z: Any, y: Any, s: Any, margins: Any, threshold: bool) -> Any:
    """The worst irrelevant and the worst relevant label, or none."""
    total = LONG(0)
    for row, labels, weight in zip(z, y, s, strict=True):
        wrong, right, pairs = _violations(row, labels, long(margins))
        if threshold:
            worst = wrong.max(initial=LONG(0)) + right.max(initial=LONG(0))
        else:
            worst = pairs.max(initial=LONG(0))
        total += weight * worst
    return total


def multilabel_mean(z: Any, y: Any, s: Any, margins: Any, threshold: bool) -> Any:
    """Means of squares over pairs of labels, and over labels beside the threshold."""
    total, half = LONG(0), LONG(0.5)
    for row, labels, weight in zip(z, y, s, strict=True):
        wrong, right, pairs = _violations(row, labels, long(margins))
        mean = (positive(pairs) ** 2).mean() if pairs.size else LONG(0)
        if threshold:
            beside = (positive(wrong) ** 2).sum() + (positive(right) ** 2).sum()
            mean = half * mean + half * beside / len(row)
        total += weight * mean
    return total


def multilabel_pairs(z: Any, y: Any, s: Any, costs: Any) -> Any:
    """The worst pair of a relevant and an irrelevant label, by the costs of pairs."""
    total = LONG(0)
    for row, labels, weight in zip(z, y, s, strict=True):
        right, wrong = np.flatnonzero(labels), np.flatnonzero(labels == 0)
        pairs = long(costs)[np.ix_(right, wrong)]
        pairs = pairs + row[wrong] - row[right][:, np.newaxis]
        total += weight * pairs.max(initial=LONG(0))
    return total


def path_shares(parents: list[list[int]]) -> Any:
    """For each leaf the share of its paths from the root that pass each node."""

    def paths(node: int) -> list[list[int]]:
        above = [p for parent in parents[node] if parent >= 0 for p in paths(parent)]
        if -1 in parents[node]:
            above.append([])
        return [[*path, node] for path in above]

    inner = {parent for above in parents for parent in above}
    rows = []
    for leaf in range(len(parents)):
        if leaf not in inner:
            found = paths(leaf)
            nodes = range(len(parents))
            passing = [sum(node in path for path in found) for node in nodes]
            rows.append(np.array(passing) / len(found))
    return np.array(rows)


# Sequences: scores of tokens (n, k), then of transitions (k, k).


def chain_loss(
    emissions: Any, transitions: Any, y: Any, kind: str, allowed: Any = None
) -> Any:
    """One sequence's loss over all its labelings: "log_loss", "margin" or "slack"."""
    n, k = emissions.shape
    labelings = np.array(list(product(range(k), repeat=n)))
    if allowed is not None:
        labelings = labelings[allowed[labelings[:, :-1], labelings[:, 1:]].all(axis=1)]
    ahead = emissions[np.arange(n), labelings] - emissions[np.arange(n), y]
    scores = ahead.sum(axis=1) - transitions[y[:-1], y[1:]].sum()
    scores += transitions[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)
    wrong = long(np.count_nonzero(labelings != y, axis=1))
    found = {
        "log_loss": scores,
        "margin": wrong + scores,
        "slack": wrong * (1 + scores),
    }[kind]
    if kind != "log_loss":
        return found.max()
    top = found.argmax()
    return found[top] + np.log1p(np.exp(np.delete(found, top) - found[top]).sum())


# Penalties.


def entropy(w: Any) -> Any:
    return np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0).sum()


def matrix(d: int) -> Any:
    """A positive definite one for the quadratic penalty."""
    return np.diag(np.arange(1.0, d + 1)) + 0.5


def squares(w: Any) -> Any:
    return (w * w).sum() / 2


def elastic(w: Any, ratio: Any = 0.5) -> Any:
    return LONG(ratio) * np.abs(w).sum() + (1 - LONG(ratio)) * squares(w)


def squared_norm(w: Any, p: Any = 1.5) -> Any:
    largest = np.abs(w).max(initial=LONG(0)) or LONG(1)
    norm = largest * ((np.abs(w) / largest) ** LONG(p)).sum() ** (1 / LONG(p))
    return norm**2 / 2


def group_norms(
    w: Any, l1: float, norm: float, square: float, factors: Any = None
) -> Any:
    """Pairs of neighbors are groups, with the root of their size as default factors."""
    total = LONG(0)
    for start in range(0, len(w), 2):
        v = w[start : start + 2]
        largest = np.abs(v).max() or LONG(1)
        length = largest * np.sqrt(np.sum((v / largest) ** 2))
        factor = np.sqrt(LONG(len(v))) if factors is None else LONG(factors[start // 2])
        total = total + factor * (LONG(norm) * length + LONG(square) * (v @ v) / 2)
        total = total + (LONG(l1) * np.abs(v).sum() if factor else LONG(0))
    return total


#: Penalties of pairs of features, by names that add "_positive" for signs.
GROUP_NORMS: dict[str, Callable[..., Any]] = {
    "group": lambda w, factors=None: group_norms(w, 0.0, 1.0, 0.0, factors),
    "group_elasticnet": lambda w, factors=None: group_norms(w, 0.0, 0.5, 0.5, factors),
    "sparse_group": lambda w, factors=None: group_norms(w, 0.5, 0.5, 0.0, factors),
}
GROUP_NORMS |= {f"{name}_positive": omega for name, omega in GROUP_NORMS.items()}

PENALTIES: dict[str, Callable[[Any], Any]] = {
    "l2": squares,
    "l1": lambda w: np.abs(w).sum(),
    "elasticnet": elastic,
    "lp": squared_norm,
    "quadratic": lambda w: w @ matrix(len(w)).astype(LONG) @ w / 2,
    "entropy": lambda w: entropy(w) - w.sum(),
    "normalized_entropy": entropy,
}
