"""Online methods on the parameters of each batch of sequences."""

import pickle

import numpy as np
import pytest
from _chains import fitted, random_problem

from sklearn_subqn._chains.batches import ChainBatch, LazyMethod
from sklearn_subqn._chains.design import tokens_of
from sklearn_subqn._chains.log_loss import ChainLogLoss
from sklearn_subqn._core.objectives.objective import Objective
from sklearn_subqn._core.online.olbfgs import OLBFGS
from sklearn_subqn._core.online.sgd import SGD
from sklearn_subqn._core.online.smd import SMD

METHODS = [SGD(0.5, 100.0), SMD(0.5, 0.1, 0.9), OLBFGS(1.0, 100.0, 5, lambda_=0.1)]
methods = pytest.mark.parametrize("method", METHODS, ids=["sgd", "smd", "olbfgs"])


def batch_of(o, sequences):
    tokens, starts = tokens_of(o.loss.set.starts, np.asarray(sequences))
    weights = np.full(len(sequences), 1.0 / len(sequences))
    loss = ChainLogLoss(starts, o.loss.set.allowed)
    design = o.design.take(np.asarray(sequences))
    return ChainBatch(design, o.targets[tokens], loss, o.alpha, weights)


def problem(seed=0, n=30):
    rng = np.random.default_rng(seed)
    return random_problem(rng, n=n, d=30, alpha=0.05, weighted=False, forbidden=0.2)


def test_batch_is_the_objective_of_its_own_parameters():
    o, rng = problem(), np.random.default_rng(1)
    batch = batch_of(o, [3, 7])
    assert 0 < len(batch.rows) < o.n_params
    w = np.zeros(o.n_params)
    w[batch.rows] = rng.normal(size=len(batch.rows))
    value, gradient = batch.value_and_gradient(w[batch.rows])
    weights = np.zeros(30)
    weights[[3, 7]] = 0.5
    whole = Objective(o.risk.with_weights(weights), o.regularizer, o.alpha).at(w)
    np.testing.assert_allclose(value, whole.value)
    expected = whole.gradient
    np.testing.assert_allclose(gradient, expected[batch.rows], atol=1e-14)
    expected[batch.rows] = 0.0
    assert not expected.any()
    v, step = rng.normal(size=len(gradient)), 1e-6
    difference = batch.gradient(w[batch.rows] + step * v) - gradient
    product = batch.hessian_product(w[batch.rows], v)
    np.testing.assert_allclose(product, difference / step, atol=1e-5)


@methods
def test_methods_come_near_the_optimum(method):
    o, rng = problem(), np.random.default_rng(1)
    lazy = LazyMethod(method)
    state = lazy.start(np.zeros(o.n_params))
    for _ in range(60):
        for some in rng.permutation(30).reshape(-1, 5):
            state = lazy.step(batch_of(o, np.sort(some)), state)
    best = fitted(o).point.value
    assert o.at(state.w).value < best + 0.1 * (o.origin().value - best)


def test_sgd_is_that_on_all_parameters_but_for_second_order_shrinkage():
    o, method = problem(), SGD(0.01)
    lazy = LazyMethod(method)
    state, w = lazy.start(np.zeros(o.n_params)), np.zeros(o.n_params)
    for i in range(30):
        batch = batch_of(o, [i])
        state = lazy.step(batch, state)
        gradient = o.alpha * w
        gradient[batch.rows] = batch.gradient(w[batch.rows])
        w = w - 0.01 * gradient
    np.testing.assert_allclose(state.w, w, rtol=1e-4, atol=1e-7)
    assert np.abs(w).max() > 1e-2


@methods
def test_states_are_values(method):
    o, lazy = problem(), LazyMethod(method)
    state = lazy.start(np.zeros(o.n_params))
    for i in range(6):
        state = lazy.step(batch_of(o, [i]), state)
    w = state.w
    copy = pickle.loads(pickle.dumps(state))
    one, other = (lazy.step(batch_of(o, [9]), s) for s in (state, copy))
    np.testing.assert_array_equal(one.w, other.w)
    np.testing.assert_array_equal(state.w, w)
    assert one.n_steps == 7
