"""Lattice kernels against all labelings one by one."""

import numpy as np
import pytest
from _chains import enumerations, random_scores, starts_of
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st

from sklearn_subqn._core.kernels import chain, chain_ascent, chain_pairs, chain_viterbi

seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 1.0, 30.0, 400.0, 1e4])
shares = st.sampled_from([0.0, 0.3, 0.8])


def problem(seed, scale, forbidden):
    rng = np.random.default_rng(seed)
    k, lengths = int(rng.integers(1, 4)), rng.integers(1, 5, size=3)
    options = {"scale": scale, "forbidden": forbidden, "ends": rng.choice([0.0, 0.5])}
    return random_scores(rng, k, lengths, **options)


@EXPLORE
@given(seeds, scales, shares)
def test_marginals_are_those_of_all_labelings(seed, scale, forbidden):
    args = problem(seed, scale, forbidden)
    emissions, starts = args[0], args[2]
    n_tokens, k = emissions.shape
    log_z, only_z = np.empty((2, 3))
    nodes, edges = np.empty_like(emissions), np.zeros((n_tokens, k, k))
    chain.marginals(*args, log_z, nodes, edges)
    chain.log_partition(*args, only_z)
    np.testing.assert_array_equal(log_z, only_z)
    for i, own in enumerate(enumerations(*args)):
        tokens = slice(starts[i], starts[i + 1])
        np.testing.assert_allclose(log_z[i], own.log_z, rtol=1e-13, atol=1e-11)
        np.testing.assert_allclose(nodes[tokens], own.nodes, atol=1e-10)
        np.testing.assert_allclose(edges[tokens], own.edges, atol=1e-10)
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, rtol=1e-14)
    inner = np.setdiff1d(np.arange(n_tokens), starts)
    np.testing.assert_allclose(edges.sum(axis=1)[inner], nodes[inner], atol=1e-12)
    np.testing.assert_allclose(edges.sum(axis=2)[inner], nodes[inner - 1], atol=1e-12)


@EXPLORE
@given(seeds, scales, shares, st.integers(1, 9))
def test_best_labelings_are_those_of_all(seed, scale, forbidden, m):
    emissions, transitions, starts = args = problem(seed, scale, forbidden)
    n_tokens = len(emissions)
    labels, scores = np.empty(n_tokens, dtype=np.intp), np.empty(3)
    chain_viterbi.viterbi(*args, labels, scores)
    several, their_scores = np.empty((m, n_tokens), dtype=np.intp), np.empty((3, m))
    chain_viterbi.n_best(*args, several, their_scores)
    np.testing.assert_array_equal(several[0], labels)
    for i, own in enumerate(enumerations(*args)):
        tokens = slice(starts[i], starts[i + 1])
        np.testing.assert_allclose(scores[i], own.scores.max(), rtol=1e-13)
        expected = np.full(m, -np.inf)
        best = np.sort(own.scores)[::-1][:m]
        expected[: len(best)] = best
        np.testing.assert_allclose(their_scores[i], expected, rtol=1e-13, atol=1e-10)
        found = several[: len(best), tokens]
        assert len(np.unique(found, axis=0)) == len(best)
        assert np.all(several[len(best) :, tokens] == -1)
        for y, score in zip(found, best, strict=True):
            e = emissions[tokens][np.arange(len(y)), y].sum()
            total = e + transitions[y[:-1], y[1:]].sum()
            np.testing.assert_allclose(total, score, rtol=1e-13, atol=1e-10)


def test_of_equal_labelings_the_lowest_from_the_end_is_best():
    labels, scores = np.empty(5, dtype=np.intp), np.empty(2)
    args = np.zeros((5, 3)), np.zeros((3, 3)), starts_of([4, 1])
    chain_viterbi.viterbi(*args, labels, scores)
    np.testing.assert_array_equal(labels, 0)
    several, scores = np.empty((2, 5), dtype=np.intp), np.empty((2, 2))
    chain_viterbi.n_best(*args, several, scores)
    np.testing.assert_array_equal(several, [[0, 0, 0, 0, 0], [1, 0, 0, 0, 1]])


@EXPLORE
@given(seeds, scales, shares, st.booleans())
def test_violated_margins_are_those_of_all_labelings(seed, scale, forbidden, slack):
    args = problem(seed, scale, forbidden)
    emissions, starts = args[0], args[2]
    both = emissions[starts[:-1]] + emissions[starts[1:] - 1]
    both[np.isinf(both)] = np.inf
    right = np.repeat(both.argmin(axis=1), np.diff(starts))
    worst, losses = np.empty(len(right), dtype=np.intp), np.empty(3)
    weights = np.array([1.0, 0.0, 2.0])
    chain_viterbi.most_violated_margins(*args, right, weights, slack, worst, losses)
    for i, own in enumerate(enumerations(*args)):
        y = right[starts[i] : starts[i + 1]]
        n_wrong = (own.labelings != y).sum(axis=1)
        same = np.all(own.labelings == y, axis=1)
        gains = own.scores - own.scores[same][0]
        gains = n_wrong * (1.0 + gains) if slack else n_wrong + gains
        expected = gains.max() if weights[i] else 0.0
        np.testing.assert_allclose(losses[i], expected, rtol=1e-12, atol=1e-9)
        found = worst[starts[i] : starts[i + 1]]
        if not weights[i]:
            np.testing.assert_array_equal(found, y)
            continue
        attained = gains[np.all(own.labelings == found, axis=1)][0]
        np.testing.assert_allclose(attained, gains.max(), rtol=1e-12, atol=1e-9)


@EXPLORE
@given(seeds, st.sampled_from([0.3, 3.0]), shares)
def test_tangents_are_differences_of_marginals(seed, scale, forbidden):
    emissions, transitions, starts = problem(seed, scale, forbidden)
    rng = np.random.default_rng(seed)
    de, dT = rng.normal(size=emissions.shape), rng.normal(size=transitions.shape)
    weights, step = np.array([0.5, 0.0, 2.0]), 1e-5
    allowed = np.isfinite(transitions)
    labels = np.zeros(len(emissions), dtype=np.intp)

    def gradient(eta):
        u, v = np.empty_like(emissions), np.zeros_like(transitions)
        moved = np.where(allowed, transitions + eta * dT, -np.inf)
        chain.log_loss(emissions + eta * de, moved, starts, labels, weights, u, v)
        return u, v

    change, pairs = np.empty_like(emissions), np.zeros_like(transitions)
    chain.tangent(emissions, transitions, starts, de, dT, weights, change, pairs)
    for product, up, down in zip(
        (change, pairs), gradient(step), gradient(-step), strict=True
    ):
        np.testing.assert_allclose(product, (up - down) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("forbidden", [False, True])
def test_a_long_sequence(scale, forbidden):
    rng = np.random.default_rng(0)
    emissions, transitions, starts = random_scores(rng, 3, [10_000], scale=scale)
    if forbidden:
        transitions[2, 0] = -np.inf
    log_z, best = np.empty(1), np.empty(1)
    nodes, edges = np.empty_like(emissions), np.empty((10_000, 3, 3))
    labels = np.empty(10_000, dtype=np.intp)
    chain.marginals(emissions, transitions, starts, log_z, nodes, edges)
    chain_viterbi.viterbi(emissions, transitions, starts, labels, best)
    prefix = emissions[0].copy()
    for z in emissions[1:]:
        prefix = z + np.logaddexp.reduce(prefix[:, np.newaxis] + transitions, axis=0)
    np.testing.assert_allclose(log_z[0], np.logaddexp.reduce(prefix), rtol=1e-13)
    assert (
        best[0]
        <= log_z[0] * (1 + 1e-14)
        <= best[0]
        + 1.1 * 10_000 * (scale == 1)
        + (scale > 1) * (100 + abs(best[0]) * 1e-12)
    )
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(edges[1:].sum(axis=1), nodes[1:], atol=1e-9)


def test_many_labels():
    rng = np.random.default_rng(0)
    k = 300
    emissions, transitions, starts = random_scores(rng, k, [2, 1])
    log_z, nodes = np.empty(2), np.empty((3, k))
    chain.marginals(emissions, transitions, starts, log_z, nodes, None)
    sums = emissions[0][:, None] + transitions + emissions[1]
    expected = np.logaddexp.reduce(sums.ravel()), np.logaddexp.reduce(emissions[2])
    np.testing.assert_allclose(log_z, expected, rtol=1e-13)
    pairs = np.exp(sums - log_z[0])
    np.testing.assert_allclose(nodes[0], pairs.sum(axis=1), atol=1e-13)
    np.testing.assert_allclose(nodes[1], pairs.sum(axis=0), atol=1e-13)


def test_what_is_lost_to_underflow_is_summed_with_logarithms():
    # Label 1 can only be kept; after the 400th token it is the only one left.
    emissions = np.zeros((801, 2))
    emissions[:800, 1] = -2.0
    emissions[800] = [-2000.0, 0.0]
    transitions = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    log_z, nodes = np.empty(1), np.empty((801, 2))
    chain.marginals(emissions, transitions, starts_of([801]), log_z, nodes, None)
    np.testing.assert_allclose(log_z, -1600.0, rtol=1e-13)
    np.testing.assert_allclose(nodes, [[0.0, 1.0]] * 801, atol=1e-12)


def test_blocks_of_sequences_are_the_whole():
    rng = np.random.default_rng(3)
    emissions, transitions, starts = random_scores(rng, 4, [3, 1, 5, 2])
    whole, parts = np.empty(4), np.empty(4)
    chain.log_partition(emissions, transitions, starts, whole)
    chain.log_partition(emissions, transitions, starts[:3], parts[:2])
    chain.log_partition(emissions, transitions, starts[2:], parts[2:])
    np.testing.assert_array_equal(whole, parts)


def test_refused():
    z, T, one = np.zeros((3, 2)), np.zeros((2, 2)), np.empty(1)
    with pytest.raises(ValueError, match="sequence 0 has no tokens"):
        chain.log_partition(z, T, np.array([0, 0], dtype=np.intp), one)
    with pytest.raises(ValueError, match="not within 3 tokens"):
        chain.log_partition(z, T, np.array([0, 4], dtype=np.intp), one)
    with pytest.raises(ValueError, match="number of labels"):
        chain.log_partition(z, np.zeros((3, 3)), starts_of([3]), one)
    closed = np.full((2, 2), -np.inf)
    with pytest.raises(ValueError, match="no labeling of a sequence of 3 tokens"):
        chain.marginals(z, closed, starts_of([3]), one, np.empty((3, 2)), None)
    chain.log_partition(z, closed, starts_of([3]), one)
    assert one[0] == -np.inf
    labels = np.array([0, 2, 0], dtype=np.intp)
    with pytest.raises(ValueError, match="label 2 is none of 2"):
        chain.log_loss(z, T, starts_of([3]), labels, np.ones(1), None, None)


@EXPLORE
@given(seeds, st.booleans(), st.integers(1, 9))
def test_products_of_pairs(seed, binary, k):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(7, 5)) * (rng.random((7, 5)) < 0.5)
    dense = (dense != 0.0).astype(float) if binary else dense
    rows, indices = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=7))])
    mask = rng.random((5, k)) < 0.6
    ptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.intc)
    labels = np.nonzero(mask)[1].astype(np.uint16)
    w, u = rng.normal(size=mask.sum()), rng.normal(size=(7, k))
    W = np.zeros((5, k))
    W[mask] = w
    stride = -(-k // 4) * 4
    padded = np.zeros((5, stride))
    padded[:, :k] = W
    data = np.empty(0) if binary else dense[rows, indices]
    matrix = data, indices.astype(np.int32), indptr.astype(np.int32), ptr, labels
    for params, width in ((w, 0), (padded.ravel(), stride)):
        z = np.empty((7, k))
        chain_pairs.forward(*matrix, width, params, 0, 4, z)
        chain_pairs.forward(*matrix, width, params, 4, 7, z)
        np.testing.assert_allclose(z, dense @ W, atol=1e-13)
        v = np.zeros_like(params)
        chain_pairs.adjoint(*matrix, width, u, 0, 7, v)
        v = v.reshape(5, width)[:, :k][mask] if width else v
        np.testing.assert_allclose(v, (dense.T @ u)[mask], atol=1e-13)


def test_features_of_sequences():
    indices = np.array([4, 2, 4, 2, 0, 4], dtype=np.int32)
    indptr = np.array([0, 2, 3, 6], dtype=np.int32)
    local, own = np.empty(6, dtype=np.intc), np.empty(6, dtype=np.intc)
    own_ptr = np.empty(3, dtype=np.intp)
    starts = starts_of([2, 1])
    last = np.zeros(5, dtype=np.intc)
    chain_ascent.localize(indices, indptr, starts, last, local, own, own_ptr)
    np.testing.assert_array_equal(own_ptr, [0, 2, 5])
    np.testing.assert_array_equal(own[:5], [4, 2, 2, 0, 4])
    np.testing.assert_array_equal(local, [0, 1, 0, 0, 1, 2])
