"""Published online methods in ``LinearChainCRF.fit``, against their definitions."""

from itertools import pairwise

import numpy as np
import pytest

from sklearn_subqn import LinearChainCRF

N, BATCH = 24, 6
RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(2, 5, N)
X = RNG.normal(size=(LENGTHS.sum(), 3))
Y = (X @ RNG.normal(size=(3, 3)) + 0.5 * RNG.normal(size=(len(X), 3))).argmax(axis=1)
ALPHA = 0.05


def mean_loss(w, sequences):
    """Mean negative log-likelihood and penalty, by enumeration of all labelings."""
    ends = np.cumsum(LENGTHS)
    total, gradient = 0.0, np.zeros(18)
    for i in sequences:
        x, y = X[ends[i] - LENGTHS[i] : ends[i]], Y[ends[i] - LENGTHS[i] : ends[i]]
        labelings = np.indices((3,) * len(y)).reshape(len(y), -1).T
        features = np.array([counts(x, each) for each in labelings])
        scores = features @ w
        p = np.exp(scores - scores.max())
        log_z = np.log(p.sum()) + scores.max()
        own = counts(x, y)
        total += log_z - own @ w
        gradient += p @ features / p.sum() - own
    m = len(sequences)
    return total / m + ALPHA / 2.0 * w @ w, gradient / m + ALPHA * w


def counts(x, y):
    W, T = np.zeros((3, 3)), np.zeros((3, 3))
    for row, label in zip(x, y, strict=True):
        W[:, label] += row
    for pair in pairwise(y.tolist()):
        T[pair] += 1.0
    return np.concatenate([W.ravel(), T.ravel()])


def hessian_product(w, v, sequences):
    step = 1e-5
    ends = [mean_loss(w + sign * step * v, sequences)[1] for sign in (1.0, -1.0)]
    return (ends[0] - ends[1]) / (2.0 * step)


def sgd(batches, eta0, tau=np.inf):
    """Yu (2009), eq. 5.2 and 5.4."""
    w = np.zeros(18)
    for t, batch in enumerate(batches):
        eta = eta0 if tau == np.inf else eta0 * tau / (tau + t)
        w = w - eta * mean_loss(w, batch)[1]
    return w


def smd(batches, eta0, mu, lambda_):
    """Yu (2009), eq. 5.5 to 5.8."""
    w, eta, v = np.zeros(18), np.full(18, eta0), np.zeros(18)
    for batch in batches:
        g = mean_loss(w, batch)[1]
        eta = eta * np.maximum(0.5, 1.0 - mu * g * v)
        w, v = (
            w - eta * g,
            lambda_ * v - eta * (g + lambda_ * hessian_product(w, v, batch)),
        )
    return w


def olbfgs(batches, eta0, tau, memory, epsilon, lambda_):
    """Yu (2009), Alg. 5.1 with the direction of section 5.4, eq. 5.18."""
    w, pairs = np.zeros(18), []
    for t, batch in enumerate(batches):
        g = mean_loss(w, batch)[1]
        p, shares = -g, []
        for s, y in reversed(pairs):
            shares.append(s @ p / (s @ y))
            p = p - shares[-1] * y
        p = p * (np.mean([s @ y / (y @ y) for s, y in pairs]) if pairs else epsilon)
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            p = p + (share - y @ p / (s @ y)) * s
        s = eta0 * tau / (tau + t) * p
        y = mean_loss(w + s, batch)[1] - g + lambda_ * s
        w, pairs = w + s, [*pairs, (s, y)][-memory:]
    return w


def batches(n_passes, size=BATCH, seed=0):
    """In the order that the estimator takes."""
    first = int(np.random.RandomState(seed).randint(2**31 - 1))
    random = np.random.default_rng(first)
    return [
        np.sort(rows)
        for _ in range(n_passes)
        for rows in np.split(random.permutation(N), range(size, N, size))
    ]


def fitted(solver, max_iter, **options):
    """Return the last point of a run, as the only better one."""
    model = LinearChainCRF(
        ALPHA,
        solver=solver,
        solver_options={"batch_size": BATCH, **options},
        all_possible_states=True,
        all_possible_transitions=True,
        max_iter=max_iter,
        tol=1e-12,
    )
    with pytest.warns(UserWarning, match="max_iter"):
        return model.fit(X, Y, lengths=LENGTHS)


@pytest.mark.parametrize(
    ("solver", "method", "options", "rtol"),
    [
        ("sgd", sgd, {"eta0": 0.2}, 1e-9),
        ("sgd", sgd, {"eta0": 0.3, "tau": 20.0}, 1e-9),
        ("smd", smd, {"eta0": 0.1, "mu": 0.1, "lambda_": 0.9}, 1e-9),
        (
            "olbfgs",
            olbfgs,
            {"eta0": 0.5, "tau": 10.0, "memory": 3, "epsilon": 0.1, "lambda_": 0.2},
            1e-9,
        ),
    ],
)
def test_trajectories_are_those_of_the_definitions(solver, method, options, rtol):
    for n_passes in (1, 5):
        model = fitted(solver, n_passes, **options)
        # All sequences have all attributes, so that every batch has all parameters.
        w = method(batches(n_passes), **options)
        value = mean_loss(w, np.arange(N))[0]
        assert model.objective_ == pytest.approx(value, rel=rtol)


@pytest.mark.parametrize("solver", ["sgd", "smd", "olbfgs"])
def test_passes_approach_a_proven_optimum(solver):
    best = LinearChainCRF(
        ALPHA, all_possible_states=True, all_possible_transitions=True, tol=1e-9
    ).fit(X, Y, lengths=LENGTHS)
    model = fitted(solver, 60)
    start, end = model.history_[0].objective[0], model.objective_
    assert end - best.objective_ <= 0.05 * (start - best.objective_)
    assert end - model.dual_gap_ <= best.objective_ * (1.0 + 1e-9)
    assert np.isfinite(model.dual_gap_)


def test_weights_count_as_repetition_in_the_mean():
    # With one batch of all sequences, a step is one on the whole objective.
    weights = RNG.uniform(0.5, 2.0, N)
    model = LinearChainCRF(
        ALPHA,
        solver="sgd",
        solver_options={"batch_size": N, "eta0": 0.1},
        all_possible_states=True,
        all_possible_transitions=True,
        max_iter=1,
        tol=0.0,
    )
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, Y, weights, lengths=LENGTHS)
    shares = weights / weights.sum()
    gradient = sum(
        share * mean_loss(np.zeros(18), [i])[1] for i, share in enumerate(shares)
    )
    w = -0.1 * gradient
    value = sum(
        share * (mean_loss(w, [i])[0] - ALPHA / 2.0 * w @ w)
        for i, share in enumerate(shares)
    )
    value += ALPHA / 2.0 * w @ w
    assert model.objective_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": "sgd", "loss": "hinge"}, "solver='sgd' does not support"),
        ({"solver": "smd", "l1_ratio": 0.5}, "solver='smd' does not support"),
        ({"solver": "sgd", "solver_options": {"mu": 1.0}}, "'mu', which solver='sgd'"),
        ({"solver": "smd", "solver_options": {"eta0": 0.0}}, "eta0.*must be"),
        ({"solver": "lbfgs", "solver_options": {"eta0": 1.0}}, "does not take"),
    ],
    ids=str,
)
def test_what_is_not_taken_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        LinearChainCRF(**params).fit(X, Y, lengths=LENGTHS)
