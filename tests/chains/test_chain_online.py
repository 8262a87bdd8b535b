"""Online methods on batches of sequences."""

from itertools import islice

import numpy as np
import pytest
from _chains import fitted, random_problem
from _door import OLBFGS, SGD, SMD, ChainLogLoss, Objective, Options, Start

from sklearn_subqn._chains.batches import ChainBatch
from sklearn_subqn._chains.passes import chain_online
from sklearn_subqn._chains.sequences import tokens_of

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


def test_batch_is_the_objective_with_the_losses_of_its_sequences():
    o, rng = problem(), np.random.default_rng(1)
    batch = batch_of(o, [3, 7])
    assert 0 < len(batch.rows) < o.n_params
    w, v = rng.normal(size=(2, o.n_params))
    value, gradient = batch.value_and_gradient(w)
    weights = np.zeros(30)
    weights[[3, 7]] = 0.5
    whole = Objective(o.risk.with_weights(weights), o.regularizer, o.alpha).at(w)
    np.testing.assert_allclose(value, whole.value)
    np.testing.assert_allclose(gradient, whole.gradient, atol=1e-14)
    step = 1e-6
    difference = batch.gradient(w + step * v) - gradient
    product = batch.hessian_product(w, v)
    np.testing.assert_allclose(product, difference / step, atol=1e-5)


@methods
def test_methods_come_near_the_optimum(method):
    o, rng = problem(), np.random.default_rng(1)
    state = method.start(np.zeros(o.n_params))
    for _ in range(60):
        for some in rng.permutation(30).reshape(-1, 5):
            state = method.step(batch_of(o, np.sort(some)), state)
    best = fitted(o).point.value
    assert o.at(state.w).value < best + 0.1 * (o.origin().value - best)


class AllParameters:
    """Batches as the source has them: functions of all parameters (Yu 2009, eq. 6.8).

    With seed and size the same sequences as those of the solvers.
    """

    def __init__(self, o, size, seed):
        self.o, self.n = o, len(o.weights)
        self.size, self.random = size, np.random.default_rng(seed)

    def __iter__(self):
        while True:
            order = self.random.permutation(self.n)
            for first in range(0, self.n, self.size):
                rows = order[first : first + self.size]
                weights = np.zeros(self.n)
                weights[rows] = self.n / len(rows) * self.o.weights[rows]
                risk = self.o.risk.with_weights(weights)
                yield Objective(risk, self.o.regularizer, self.o.alpha)

    @property
    def each_pass(self):
        return -(-self.n // self.size)


def sgd(w, batches, *, eta0, tau):
    """Yu 2009, eq. 5.2 and 5.4."""
    for t, J in enumerate(batches):
        w = w - eta0 * tau / (tau + t) * J.at(w).gradient
        yield w


def smd(w, batches, *, eta0, mu, lambda_):
    """Yu 2009, eq. 5.5 to 5.8."""
    eta, v = np.full_like(w, eta0), np.zeros_like(w)
    for J in batches:
        point = J.at(w)
        g, risk = point.gradient, J.risk
        args = risk.targets, risk.weights
        curvature = risk.oracle.curvature(risk.design.forward(w), *args)
        product = risk.design.adjoint(curvature.apply(risk.design.forward(v)))
        eta = eta * np.maximum(0.5, 1.0 - mu * g * v)
        v = lambda_ * v - eta * (g + lambda_ * (product + J.alpha * v))
        w = w - eta * g
        yield w


def olbfgs(w, batches, *, eta0, tau, memory, epsilon, lambda_):
    """Yu 2009, Alg. 5.1 with eq. 5.18, updates of B one in the other (2.24)."""

    def product(v, pairs, scale):
        if not pairs:
            return scale * v
        *older, (s, y) = pairs
        rho = 1.0 / (s @ y)
        p = product(v - rho * (s @ v) * y, older, scale)
        return p - rho * (y @ p) * s + rho * (s @ v) * s

    pairs = []
    for t, J in enumerate(batches):
        g = J.at(w).gradient
        scales = [s @ y / (y @ y) for s, y in pairs]
        B_g = product(g, pairs, np.mean(scales) if scales else epsilon)
        s = -eta0 * tau / (tau + t) * B_g
        y = J.at(w + s).gradient - g + lambda_ * s
        pairs = [*pairs, (s, y)][-memory:]
        w = w + s
        yield w


PAPERS = {
    "sgd": (sgd, {"eta0": 0.8, "tau": 50.0}),
    "smd": (smd, {"eta0": 0.4, "mu": 0.3, "lambda_": 0.9}),
    "olbfgs": (
        olbfgs,
        {"eta0": 1.0, "tau": 50.0, "memory": 4, "epsilon": 1e-2, "lambda_": 0.2},
    ),
}


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_trajectories_are_those_of_the_source_whatever_the_size_of_batches(name, size):
    o = problem(3, n=12)
    assert len(batch_of(o, [0]).rows) < 0.9 * o.n_params
    paper, settings = PAPERS[name]
    batches = AllParameters(o, size, 5)
    steps = paper(np.zeros(o.n_params), batches, **settings)
    expected = islice(steps, batches.each_pass - 1, None, batches.each_pass)
    options = Options(seed=5, online={"batch_size": size, **settings})
    iterates = chain_online(name, o, Start(np.zeros(o.n_params)), options)
    iterates = islice(iterates, 1, 21)
    for iterate, w in zip(iterates, expected, strict=False):
        np.testing.assert_allclose(iterate.point.w, w, rtol=1e-9, atol=1e-10)
    assert np.abs(w).max() > 0.1
