"""Streams of estimators against implementations straight from the papers.

Symbols are those of the sources; parameters are those of their experiments.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import OnlineLBFGSClassifier, OnlineLBFGSRegressor

STEPS, BATCH = 20, 8


class Quadratic:
    """Mean of (<w, x> - y)² / 2, with y of a linear function (Yu 2009, eq. 5.26)."""

    estimator, loss, alpha, d = OnlineLBFGSRegressor, "squared_error", 0.0, 5

    def batches(self, seed=0):
        i, j = np.indices((self.d, self.d)) + 1
        jacobian = np.where((i % j == 0) | (j % i == 0), 1.0 / (i + j - 1), 0.0)
        rng = np.random.default_rng(seed)
        best = rng.normal(size=self.d)
        for _ in range(STEPS):
            X = rng.normal(size=(BATCH, self.d)) @ jacobian.T
            yield X, X @ best

    def gradient(self, w, X, y):
        # In the order of operations of the library: the first step of oBFGS is so short
        # that its difference of gradients has but six digits, the others rounding.
        return X.T @ ((X @ w - y) / len(y)) + self.alpha * w

    def hessian(self, w, X, y):
        return X.T @ X / len(y) + self.alpha * np.eye(self.d)


class Logistic(Quadratic):
    """alpha / 2 ||w||² plus the mean log loss, of classes that overlap."""

    estimator, loss, alpha, d = OnlineLBFGSClassifier, "log_loss", 1e-3, 6

    def batches(self, seed=0):
        rng = np.random.default_rng(seed)
        best = rng.normal(size=self.d)
        for _ in range(STEPS):
            X = rng.normal(size=(BATCH, self.d)) * np.linspace(0.3, 3.0, self.d)
            yield X, np.where(X @ best + rng.normal(size=BATCH) > 0.0, 1.0, -1.0)

    def gradient(self, w, X, y):
        return -(X.T @ (y / (1.0 + np.exp(y * (X @ w))))) / len(y) + self.alpha * w

    def hessian(self, w, X, y):
        p = 1.0 / (1.0 + np.exp(-(X @ w)))
        return (X.T * (p * (1.0 - p))) @ X / len(y) + self.alpha * np.eye(self.d)


class SquaredHinge(Logistic):
    """The training set of Mokhtari and Ribeiro 2014, section 4."""

    loss, alpha = "squared_hinge", 1e-3

    def __init__(self, d):
        self.d = d

    def batches(self, seed=0):
        rng = np.random.default_rng(seed)
        for _ in range(STEPS):
            y = np.where(rng.uniform(size=5) > 0.5, 1.0, -1.0)
            yield y[:, np.newaxis] * rng.uniform(-0.2, 0.8, size=(5, self.d)), y

    def gradient(self, w, X, y):
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        return -2.0 * X.T @ (y * slack) / len(y) + self.alpha * w


def eta(eta0, tau, t):
    return tau / (tau + t) * eta0


def obfgs(J, data, w, eta0, tau, c, lambda_, epsilon):
    """Schraudolph, Yu and Günter 2007, Alg. 2; Yu 2009, Alg. 5.1."""
    eye = np.eye(len(w))
    B = epsilon * eye
    for t, batch in enumerate(data):
        p = -B @ J.gradient(w, *batch)
        s = eta(eta0, tau, t) / c * p
        y = J.gradient(w + s, *batch) - J.gradient(w, *batch) + lambda_ * s
        w = w + s
        if t == 0:
            B = s @ y / (y @ y) * eye
        rho = 1.0 / (s @ y)
        left = eye - rho * np.outer(s, y)
        B = left @ B @ left.T + c * rho * np.outer(s, s)
        yield w


def olbfgs(J, data, w, eta0, tau, memory, lambda_, epsilon):
    """Yu 2009, Alg. 2.3 with line 9 as in (5.18)."""
    pairs = []
    for t, batch in enumerate(data):
        p = -J.gradient(w, *batch)
        alphas = []
        for s, y in reversed(pairs):
            alphas.append(s @ p / (s @ y))
            p = p - alphas[-1] * y
        if t == 0:
            p = epsilon * p
        else:
            p = p / len(pairs) * sum(s @ y / (y @ y) for s, y in pairs)
        for s, y in pairs:
            p = p + (alphas.pop() - y @ p / (y @ s)) * s
        s = eta(eta0, tau, t) * p
        y = J.gradient(w + s, *batch) - J.gradient(w, *batch) + lambda_ * s
        w = w + s
        pairs = [*pairs, (s, y)][-memory:]
        yield w


def res(J, data, w, eta0, tau, delta, gamma, b0):
    """Mokhtari and Ribeiro 2014, Alg. 1."""
    eye = np.eye(len(w))
    B = b0 * eye
    for t, batch in enumerate(data):
        s = J.gradient(w, *batch)
        new = w - eta(eta0, tau, t) * (np.linalg.inv(B) + gamma * eye) @ s
        v = new - w
        r = J.gradient(new, *batch) - s - delta * v
        Bv = B @ v
        B = B + np.outer(r, r) / (v @ r) - np.outer(Bv, Bv) / (v @ Bv) + delta * eye
        w = new
        yield w


def sgd(J, data, w, eta0, tau):
    """Yu 2009, eq. 5.2 and 5.4."""
    for t, batch in enumerate(data):
        w = w - eta(eta0, tau, t) * J.gradient(w, *batch)
        yield w


def smd(J, data, w, eta0, mu, lambda_):
    """Yu 2009, eq. 5.5 to 5.8."""
    step, v = np.full(len(w), eta0), np.zeros(len(w))
    for batch in data:
        g = J.gradient(w, *batch)
        step = step * np.maximum(0.5, 1.0 - mu * g * v)
        v = lambda_ * v - step * (g + lambda_ * J.hessian(w, *batch) @ v)
        w = w - step * g
        yield w


def natural_gradient(J, data, w, eta0, tau, epsilon):
    """Yu 2009, eq. 5.9 and 5.10, the first metric as one observation among t."""
    G = epsilon * np.eye(len(w))
    for t, batch in enumerate(data, 1):
        g = J.gradient(w, *batch)
        w = w - eta(eta0, tau, t - 1) * np.linalg.solve(G, g)
        if t > 1:
            G = (1.0 - 1.0 / t) * G + np.outer(g, g) / t
        yield w


def momentum(J, data, w, eta0, beta, ahead=0.0):
    """Aggarwal 2020, section 5.3.1."""
    V = np.zeros(len(w))
    for batch in data:
        V = beta * V - eta0 * J.gradient(w + ahead * beta * V, *batch)
        w = w + V
        yield w


def nesterov(J, data, w, eta0, beta):
    return momentum(J, data, w, eta0, beta, ahead=1.0)


def adagrad(J, data, w, eta0, epsilon):
    """Aggarwal 2020, eq. 5.1."""
    A = np.zeros(len(w))
    for batch in data:
        g = J.gradient(w, *batch)
        A = A + g**2
        w = w - eta0 / np.sqrt(A + epsilon) * g
        yield w


def rmsprop(J, data, w, eta0, rho, epsilon):
    """Aggarwal 2020, eq. 5.2."""
    A = np.zeros(len(w))
    for batch in data:
        g = J.gradient(w, *batch)
        A = rho * A + (1.0 - rho) * g**2
        w = w - eta0 / np.sqrt(A + epsilon) * g
        yield w


def adam(J, data, w, eta0, rho, rho_f, epsilon):
    """Aggarwal 2020, eq. 5.3 to 5.5."""
    A, F = np.zeros(len(w)), np.zeros(len(w))
    for t, batch in enumerate(data, 1):
        g = J.gradient(w, *batch)
        A = rho * A + (1.0 - rho) * g**2
        F = rho_f * F + (1.0 - rho_f) * g
        rate = eta0 * np.sqrt(1.0 - rho**t) / (1.0 - rho_f**t)
        w = w - rate / (np.sqrt(A) + epsilon) * F
        yield w


# The sources' own settings, but for a longer first step on logistic losses, whose
# gradients round otherwise here: Schraudolph et al. 2007, Fig. 1 and 3; Yu 2009,
# sections 5.6 and 6.2; Mokhtari and Ribeiro 2014, section 4; Aggarwal 2020, 5.3.
ONLINE = {"eta0": BATCH / (BATCH + 2.0), "tau": 1e4}
OBFGS = {**ONLINE, "c": 0.1, "lambda_": 0.0, "epsilon": 1e-10}
OLBFGS = {**ONLINE, "lambda_": 0.0, "epsilon": 1e-10}
CRF = {"eta0": 1.0, "tau": 1e4, "memory": 5, "lambda_": 1.0, "epsilon": 1e-10}
RES = {"eta0": 3e-2, "tau": 100.0, "delta": 1e-3, "gamma": 1e-4, "b0": 1.0}
NONE = {"eta0": 0.1, "tau": 100.0, "delta": 0.0, "gamma": 0.0, "b0": 1.0}
CASES = [
    ("obfgs", obfgs, Quadratic(), OBFGS),
    ("obfgs", obfgs, Logistic(), {**OBFGS, "lambda_": 1.0, "epsilon": 1e-3}),
    ("olbfgs", olbfgs, Quadratic(), {**OLBFGS, "memory": 4}),
    ("olbfgs", olbfgs, Quadratic(), {**OLBFGS, "memory": 10}),
    ("olbfgs", olbfgs, Quadratic(), CRF),
    ("olbfgs", olbfgs, Logistic(), {**CRF, "epsilon": 1e-3}),
    ("res-bfgs", res, SquaredHinge(4), RES),
    ("res-bfgs", res, SquaredHinge(40), RES),
    ("res-bfgs", res, SquaredHinge(10), NONE),
    ("sgd", sgd, Quadratic(), ONLINE),
    ("sgd", sgd, SquaredHinge(4), {"eta0": 3e-2, "tau": 100.0}),
    ("smd", smd, Logistic(), {"eta0": 0.1, "mu": 0.1, "lambda_": 1.0}),
    ("smd", smd, Logistic(), {"eta0": 0.1, "mu": 0.02, "lambda_": 0.99}),
    ("smd", smd, Logistic(), {"eta0": 2.0, "mu": 0.02, "lambda_": 0.99}),
    ("smd", smd, Quadratic(), {"eta0": 0.1, "mu": 0.02, "lambda_": 0.1}),
    ("ng", natural_gradient, Quadratic(), {"eta0": 1.0, "tau": 100.0, "epsilon": 10.0}),
    ("momentum", momentum, Logistic(), {"eta0": 0.1, "beta": 0.9}),
    ("nesterov", nesterov, Logistic(), {"eta0": 0.1, "beta": 0.9}),
    ("adagrad", adagrad, Logistic(), {"eta0": 0.3, "epsilon": 0.0}),
    ("rmsprop", rmsprop, Logistic(), {"eta0": 0.1, "rho": 0.9, "epsilon": 1e-8}),
    (
        "adam",
        adam,
        Logistic(),
        {"eta0": 1e-3, "rho": 0.999, "rho_f": 0.9, "epsilon": 1e-8},
    ),
]


@pytest.mark.parametrize(
    ("solver", "published", "J", "options"),
    CASES,
    ids=[
        f"{name} {type(J).__name__} {J.d} {i}"
        for i, (name, _, J, _) in enumerate(CASES)
    ],
)
def test_streams_run_as_published(solver, published, J, options):
    data = list(J.batches())
    model = J.estimator(
        J.loss,
        alpha=J.alpha,
        solver=solver,
        solver_options=options,
        average=False,
        fit_intercept=False,
    )
    known = {"classes": [-1, 1]} if J.estimator is OnlineLBFGSClassifier else {}
    expected = published(J, data, np.zeros(J.d), **options)
    for (X, y), w in zip(data, expected, strict=True):
        model.partial_fit(X, y, **known)
        coef = np.ravel(model.coef_)
        assert_allclose(coef, w, rtol=1e-9, atol=1e-9 * np.abs(w).max())
    assert model.t_ == STEPS


def test_epochs_run_as_published_from_a_start():
    """RES from w_0 of ones, as an epoch of ``fit`` in its order of rows.

    There batches have no errors, so that delta has to be less than lambda: the source
    sets them equal, against its own assumption 3, and divides zero by zero here.
    """
    J, n, options = SquaredHinge(40), 5 * STEPS, {**RES, "delta": 5e-4}
    rows = list(J.batches())
    X, y = (np.concatenate([batch[i] for batch in rows]) for i in (0, 1))
    model = OnlineLBFGSClassifier(
        J.loss,
        alpha=J.alpha,
        solver="res-bfgs",
        solver_options=options,
        batch_size=5,
        average=False,
        fit_intercept=False,
        max_iter=1,
        random_state=0,
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, coef_init=np.ones(40))
    order = np.random.RandomState(0).permutation(n)
    data = [(X[part], y[part]) for part in order.reshape(STEPS, 5)]
    *_, w = res(J, data, np.ones(40), **options)
    assert_allclose(model.coef_[0], w, rtol=0.0, atol=1e-9)
