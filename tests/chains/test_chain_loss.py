"""Losses of chains as objectives: against enumeration, differences, other losses."""

from itertools import pairwise

import numpy as np
import pytest
from _chains import SlackHinge, enumerations, random_problem, starts_of
from _door import MULTINOMIAL_LOSS, ChainDesign, ChainHinge, ChainLogLoss
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sklearn_subqn._chains.pairs import (
    all_pairs,
    observed_pairs,
    observed_transitions,
)
from sklearn_subqn._chains.sequences import tokens_of

seeds = st.integers(0, 2**32 - 1)
losses = pytest.mark.parametrize("kind", [ChainLogLoss, ChainHinge, SlackHinge])


def at_random(objective, rng, scale=1.0):
    return objective.at(scale * rng.normal(size=objective.n_params))


@losses
@EXPLORE
@given(seed=seeds)
def test_values_are_those_of_all_labelings(kind, seed):
    rng = np.random.default_rng(seed)
    o = random_problem(rng, loss=kind, forbidden=0.3, ends=0.3, longest=4)
    point = at_random(o, rng)
    k, starts, value = o.design.n_labels, o.loss.set.starts, 0.0
    emissions, transitions = point.scores[:-k].copy(), point.scores[-k:].copy()
    if o.loss.set.allowed is not None:
        transitions[~o.loss.set.allowed] = -np.inf
    if o.loss.set.ends is not None:
        for a, b in pairwise(starts):
            emissions[a, ~o.loss.set.ends[0]] = emissions[
                b - 1, ~o.loss.set.ends[1]
            ] = -np.inf
    for i, own in enumerate(enumerations(emissions, transitions, starts)):
        y = o.targets[starts[i] : starts[i + 1]]
        wrong = own.labelings != y
        score = own.scores[~wrong.any(axis=1)][0]
        if kind is ChainLogLoss:
            value += o.weights[i] * (own.log_z - score)
        else:
            gains = own.scores + wrong.sum(axis=1) - score
            if kind is SlackHinge:
                gains = wrong.sum(axis=1) * (1.0 + own.scores - score)
            value += o.weights[i] * gains.max()
    np.testing.assert_allclose(point.risk, value, atol=1e-11)


@losses
@EXPLORE
@given(seed=seeds)
def test_subgradients_are_slopes_and_below(kind, seed):
    rng = np.random.default_rng(seed)
    o = random_problem(rng, loss=kind, forbidden=0.3, ends=0.3)
    point, other = at_random(o, rng), at_random(o, rng)
    change = other.w - point.w
    step = 1e-6
    up, down = (o.at(point.w + eta * change).value for eta in (step, -step))
    slope = float(point.gradient @ change)
    if kind is ChainLogLoss:
        np.testing.assert_allclose((up - down) / (2 * step), slope, atol=1e-6)
    # What it says of any other point is no more than is true.
    bound = point.cut.offset + float(point.cut.normal @ other.w)
    assert bound <= other.risk
    touched = point.cut.offset + point.cut.normal @ point.w
    np.testing.assert_allclose(touched, point.risk, atol=1e-12)
    assert point.lower_bound <= min(point.value, other.value)


@EXPLORE
@given(seeds)
def test_second_derivatives_are_differences_of_gradients(seed):
    rng = np.random.default_rng(seed)
    o = random_problem(rng, forbidden=0.3, ends=0.3)
    point, p, step = at_random(o, rng), rng.normal(size=o.n_params), 1e-5
    dscores = o.design.forward(p)
    curvature = o.loss.oracle.curvature(point.scores, o.targets, o.weights)
    product = o.design.adjoint(curvature.apply(dscores)) + o.alpha * p
    up, down = (o.at(point.w + eta * p).gradient for eta in (step, -step))
    np.testing.assert_allclose(product, (up - down) / (2 * step), atol=1e-7)


@losses
@EXPLORE
@given(seed=seeds)
def test_weights_are_repetitions(kind, seed):
    rng = np.random.default_rng(seed)
    o = random_problem(rng, loss=kind, ends=0.3)
    times = np.rint(o.weights / o.weights[o.weights > 0.0].min() * 6).astype(int)
    chosen = np.repeat(np.arange(len(times)), times)
    tokens, starts = tokens_of(o.loss.set.starts, chosen)
    design = o.design.take(chosen)
    point = at_random(o, rng)
    scores = design.forward(point.w)
    same = np.full(len(chosen), 1.0 / len(chosen))
    loss = o.loss.set.of_sequences(starts)
    value, dual = loss.evaluate(scores, o.targets[tokens], same)
    np.testing.assert_allclose(value, point.risk, rtol=1e-2, atol=1e-13)
    exact = times / times.sum()
    np.testing.assert_allclose(
        value,
        o.loss.oracle.value(point.scores, o.targets, exact),
        rtol=1e-12,
        atol=1e-13,
    )
    expected = o.loss.oracle.subgradient(point.scores, o.targets, exact)
    np.testing.assert_allclose(
        design.adjoint(dual), o.design.adjoint(expected), atol=1e-13
    )


def test_chains_of_one_token_are_softmax_regression():
    rng = np.random.default_rng(0)
    n, k = 40, 5
    labels = rng.integers(k, size=n)
    scores, weights = 3.0 * rng.normal(size=(n + k, k)), rng.random(n)
    chains, softmax = ChainLogLoss(np.arange(n + 1)), MULTINOMIAL_LOSS
    own = scores[:n], labels.astype(float), weights
    value, dual = chains.evaluate(scores, labels, weights)
    np.testing.assert_allclose(value, softmax.oracle.value(*own), rtol=1e-14)
    np.testing.assert_allclose(dual[:n], softmax.oracle.subgradient(*own), atol=1e-15)
    assert not dual[n:].any()


def test_a_loss_of_one_labeling_is_zero():
    ends = np.eye(3, dtype=bool)[[1, 1]]
    loss = ChainLogLoss(starts_of([1] * 50), None, ends)
    scores = np.random.default_rng(0).normal(size=(53, 3))
    targets, weights = np.ones(50, dtype=np.intp), np.ones(50)
    value, dual = loss.evaluate(scores, targets, weights)
    assert value == 0.0
    assert not dual.any()
    # With sums over several tokens, up to rounding, but never less.
    loss = ChainLogLoss(starts_of([5] * 10), np.eye(3, dtype=bool), ends)
    value, dual = loss.evaluate(scores, targets, weights[:10])
    assert 0.0 <= value < 1e-12
    np.testing.assert_allclose(dual, 0.0, atol=1e-12)


def test_forbidden_labels_are_refused():
    allowed = np.array([[True, False], [True, True]])
    loss = ChainLogLoss(starts_of([2]), allowed)
    with pytest.raises(ValueError, match="or its own is not"):
        loss.value(np.zeros((4, 2)), np.array([0, 1]), np.ones(1))
    for end in range(2):
        ends = np.ones((2, 2), dtype=bool)
        ends[end, end] = False
        loss = ChainLogLoss(starts_of([2]), None, ends)
        with pytest.raises(ValueError, match="or its own is not"):
            loss.value(np.zeros((4, 2)), np.array([0, 1]), np.ones(1))


@EXPLORE
@given(seeds, st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_design_is_a_dense_product(seed, padded, dtype):
    rng = np.random.default_rng(seed)
    n_tokens, d, k = 9, 6 if padded else 400, 3
    density = 0.3 if padded else 0.03
    X = sparse.random_array((n_tokens, d), density=density, rng=rng, dtype=dtype)
    X = sparse.csr_array(X)
    labels, starts = rng.integers(k, size=n_tokens), starts_of([4, 5])
    pairs = observed_pairs(X, labels, k)
    free = observed_transitions(labels, starts, k)
    design = ChainDesign(X, starts, k, pairs, free, n_threads=2)
    assert bool(design.stride) == padded
    w = rng.normal(size=design.n_params)
    W, A = np.zeros((d, k)), np.zeros((k, k))
    W[pairs.features, pairs.labels] = w[: design.n_pairs]
    A[free] = w[design.n_pairs :]
    expected = np.vstack([X.toarray().astype(float) @ W, A])
    np.testing.assert_allclose(design.forward(w), expected, atol=1e-14)
    u = rng.normal(size=expected.shape)
    np.testing.assert_allclose(w @ design.adjoint(u), np.vdot(expected, u))
    seen = np.zeros((d, k), dtype=bool)
    seen[X.indices, np.repeat(labels, np.diff(X.indptr))] = True
    np.testing.assert_array_equal(
        np.argwhere(seen), np.c_[pairs.features, pairs.labels]
    )
    some = design.take(np.array([1]))
    np.testing.assert_allclose(some.forward(w)[:5], expected[4:9], atol=1e-14)


def test_all_pairs():
    pairs = all_pairs(3, 2)
    np.testing.assert_array_equal(pairs.ptr, [0, 2, 4, 6])
    np.testing.assert_array_equal(pairs.labels, [0, 1, 0, 1, 0, 1])
