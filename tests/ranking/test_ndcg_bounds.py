"""NDCG with weights over many decades, against 60 decimal digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from sklearn_subqn._ranking.queries import Queries


def exact_ndcg(scores, y, codes, weights, query_weights, k):
    """Return the mean NDCG of scores without ties, in 60 digits."""
    one = Decimal(1)

    def discount(rank):
        inside = k is None or rank < k
        return Decimal(2).ln() / Decimal(rank + 2).ln() if inside else Decimal(0)

    def dcg(order, rows):
        total, begin = Decimal(0), Decimal(0)
        for i in rows[order]:
            end = begin + Decimal(weights[i])
            gain = Decimal(2) ** Decimal(y[i]) - one
            for rank in range(int(begin), int(end) + 1):
                part = min(end, Decimal(rank + 1)) - max(begin, Decimal(rank))
                total += gain * discount(rank) * part
            begin = end
        return total

    with localcontext() as context:
        context.prec = 60
        mean, total = Decimal(0), Decimal(0)
        for q in np.unique(codes):
            rows = np.flatnonzero(codes == q)
            ideal = dcg(np.argsort(-y[rows], kind="stable"), rows)
            found = dcg(np.argsort(-scores[rows]), rows)
            share = Decimal(query_weights[rows[0]])
            mean += share * (found / ideal if ideal else Decimal(0))
            total += share
        return mean / total


def problem(seed, whole=False):
    rng = np.random.default_rng(seed)
    n = 30
    codes = np.append(np.arange(4), rng.integers(0, 4, n - 4))
    weights = 10.0 ** rng.uniform(-15.0, 1.2, n)
    y = rng.choice([0.0, 1e-9, 0.3, 1.0, 4.0, 40.0], n)
    if whole:
        weights, y = rng.integers(1, 4, n).astype(float), rng.integers(0, 5, n) * 1.0
    query_weights = (10.0 ** rng.uniform(-6.0, 6.0, 4))[codes]
    scores = rng.permutation(n) / 8.0
    return Queries(codes, weights, query_weights), scores, y


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("whole", [True, False])
def test_scores_and_bounds_of_equal_ends(k, whole):
    """Bounds hold in exact arithmetic, and are apart by rounding errors only."""
    for seed in range(20):
        queries, scores, y = problem(seed, whole)
        given = queries.codes, queries.row_weights, queries.query_weights
        exact = exact_ndcg(scores, y, *given, k)
        low, high = queries.ndcg_bounds(scores, scores, y, k)
        assert Decimal(low) <= exact <= Decimal(high)
        assert high - low <= (1e-12 if whole else 1e-11) * high
        assert queries.ndcg(scores, y, k) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("k", [None, 2])
def test_bounds_over_intervals_of_scores(k):
    for seed in range(10):
        queries, scores, y = problem(seed)
        rng = np.random.default_rng([1, seed])
        width = rng.choice([0.0, 0.5, 3.0], len(y)) * rng.random(len(y))
        low, high = queries.ndcg_bounds(scores - width, scores + width, y, k)
        assert 0.0 <= low < high <= 1.0
        given = queries.codes, queries.row_weights, queries.query_weights
        for _ in range(5):
            some = scores + rng.uniform(-1.0, 1.0, len(y)) * width
            exact = exact_ndcg(some, y, *given, k)
            assert Decimal(low) <= exact <= Decimal(high)
