"""Online methods against their formulas, on streams of stochastic quadratics."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pytest
from _door import (
    OBFGS,
    OLBFGS,
    ONLINE_METHODS,
    RES,
    Averaged,
    ConvergenceTest,
    LimitedRES,
    State,
    hyperparameters,
    online_method,
)
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.online import step_size
from sklearn_subqn._core.online.curvature_pairs import pair_of
from sklearn_subqn._core.online.olbfgs import mean_scale
from sklearn_subqn._core.steps.quasi_newton import two_loop

Q = 5


@dataclass(frozen=True)
class Quadratic:
    """Mean of squares of rows @ (w - optimum) + noise, halved."""

    rows: np.ndarray
    optimum: np.ndarray
    noise: np.ndarray

    def value_and_gradient(self, w):
        errors = self.rows @ (w - self.optimum) + self.noise
        return 0.5 * np.mean(errors**2), errors @ self.rows / len(errors)

    def gradient(self, w):
        return self.value_and_gradient(w)[1]

    def hessian_product(self, w, v):
        return (self.rows @ v) @ self.rows / len(self.rows)

    @property
    def hessian(self):
        return self.rows.T @ self.rows / len(self.rows)


class Quartic:
    """A convex function whose Hessian depends on w."""

    def value_and_gradient(self, w):
        return np.sum(w**4 / 4 + w**2 / 2), w**3 + w

    def gradient(self, w):
        return w**3 + w

    def hessian_product(self, w, v):
        return (3 * w**2 + 1) * v


def sparse_hilbert(d=Q):
    """(5.29) of Yu 2009."""
    i, j = np.indices((d, d)) + 1
    return np.where((i % j == 0) | (j % i == 0), 1.0 / (i + j - 1), 0.0)


def stream(seed, b, sigma=0.0, jacobian=None):
    """Batches of the stochastic quadratic (5.26), for ever."""
    rng = np.random.default_rng(seed)
    jacobian = sparse_hilbert() if jacobian is None else jacobian
    optimum = rng.normal(size=len(jacobian))
    while True:
        rows = rng.normal(size=(b, len(jacobian))) @ jacobian.T
        yield Quadratic(rows, optimum, sigma * rng.normal(size=b))


def mild(seed, b=32, sigma=0.1):
    """Batches of a well-conditioned quadratic."""
    jacobian = np.diag(np.linspace(0.7, 1.3, Q))
    return stream(seed, b, sigma, jacobian)


def run(method, batches, n_steps, state=None):
    state = method.start(np.zeros(Q)) if state is None else state
    for _, batch in zip(range(n_steps), batches, strict=False):
        state = method.step(batch, state)
    return state


# The published methods ask for no more than a ``Batch``; "auto" does.
PUBLISHED = [name for name in ONLINE_METHODS if name != "auto"]
METHODS = {name: online_method(name) for name in PUBLISHED}
METHODS["averaged"] = Averaged(online_method("sgd"), burn_in=3)
METHODS["averaged olbfgs"] = Averaged(online_method("olbfgs", eta0=0.5))
each_method = pytest.mark.parametrize("name", METHODS)


def assert_same(a, b):
    """Two states, or parts of them, are equal bit for bit."""
    assert type(a) is type(b)
    if isinstance(a, State):
        a, b = tuple(vars(a).values()), tuple(vars(b).values())
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert_array_equal(a, b, strict=True)


# What all methods promise


@each_method
def test_pickling_in_mid_stream_changes_nothing(name):
    method = METHODS[name]
    whole = run(method, mild(0), 40)
    batches = mild(0)
    state = run(method, batches, 17)
    restored = pickle.loads(pickle.dumps((method, state)))
    resumed = run(restored[0], batches, 23, restored[1])
    assert_same(resumed, whole)


def arrays(content):
    """All arrays within a state."""
    if isinstance(content, np.ndarray):
        return [content]
    if isinstance(content, State):
        content = tuple(vars(content).values())
    if isinstance(content, tuple):
        return [array for item in content for array in arrays(item)]
    return []


@each_method
def test_a_step_leaves_the_old_state_alone(name):
    method = METHODS[name]
    state = run(method, mild(1), 12)
    for array in arrays(state):
        array.flags.writeable = False
    before = pickle.dumps(state)
    after = method.step(next(mild(2)), state)
    assert pickle.dumps(state) == before
    assert after.n_steps == state.n_steps + 1
    with pytest.raises(FrozenInstanceError):
        state.w = after.w


@each_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_batches_that_are_not_finite_are_refused(name, bad):
    method = METHODS[name]
    state = run(method, mild(3), 12)
    before = pickle.dumps(state)
    good = next(mild(4))
    rows = good.rows.copy()
    rows[0, 1] = bad
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):
        method.step(replace(good, rows=rows), state)
    assert pickle.dumps(state) == before


class FailsAfterTheStep(Quadratic):
    """Fine at the starting point, overflowing wherever a step leads."""

    def gradient(self, w):
        return np.full_like(w, np.inf)


@pytest.mark.parametrize("name", ["olbfgs", "obfgs", "res-bfgs", "res-lbfgs"])
def test_gradients_that_are_not_finite_after_the_step_are_refused(name):
    batch = next(mild(5))
    bad = FailsAfterTheStep(batch.rows, batch.optimum, batch.noise)
    method = METHODS[name]
    with pytest.raises(FloatingPointError, match="gradient of the batch"):
        method.step(bad, method.start(np.zeros(Q)))


@each_method
def test_states_tell_value_and_gradient_of_the_last_batch(name):
    method = METHODS[name]
    state = method.start(np.zeros(Q))
    assert state.n_steps == 0
    assert np.isnan(state.value)
    assert_array_equal(state.gradient, np.zeros(Q))
    batch = next(mild(6))
    value, gradient = batch.value_and_gradient(np.zeros(Q))
    state = method.step(batch, state)
    assert state.value == value
    assert_array_equal(state.gradient, gradient)


@each_method
def test_batches_without_gradient_do_no_harm(name):
    """At its optimum a batch has neither gradient nor curvature to measure."""
    method = METHODS[name]
    flat = Quadratic(np.ones((1, Q)), np.zeros(Q), np.zeros(1))
    state = run(method, [flat] * 4, 4)
    assert_array_equal(state.w, np.zeros(Q))
    for batch, _ in zip(mild(7), range(5), strict=False):
        state = method.step(batch, state)
    assert np.isfinite(state.w).all()


SETTINGS = {
    "olbfgs": {"tau": 10.0},
    "obfgs": {"tau": 10.0},
    "res-bfgs": {"eta0": 1.0, "tau": 10.0},
    "res-lbfgs": {"eta0": 1.0, "tau": 10.0},
    "sgd": {"eta0": 0.5, "tau": 20.0},
    "smd": {"eta0": 0.05, "mu": 0.01},
    "ng": {"eta0": 0.5, "tau": 20.0, "epsilon": 10.0},
    "momentum": {"eta0": 0.1, "tau": 50.0},
    "nesterov": {"eta0": 0.1, "tau": 50.0},
    "adagrad": {"eta0": 0.5, "tau": 50.0},
    "rmsprop": {"eta0": 0.1, "tau": 20.0},
    "adam": {"eta0": 0.1, "tau": 100.0},
}


def test_every_method_has_a_setting():
    assert SETTINGS.keys() == set(PUBLISHED)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_all_approach_the_optimum_of_a_noisy_quadratic(name, seed):
    batches = mild(seed, b=16, sigma=0.1)
    optimum = next(batches).optimum
    state = run(online_method(name, **SETTINGS[name]), batches, 600)
    assert np.linalg.norm(state.w - optimum) < 0.1 * np.linalg.norm(optimum)


@pytest.mark.parametrize("name", ["olbfgs", "obfgs", "res-bfgs", "res-lbfgs"])
def test_quasi_newton_methods_converge_linearly_without_noise(name):
    batches = stream(0, 64)
    optimum = next(batches).optimum
    options = {"delta": 0.0} if name.startswith("res") else {}
    method = online_method(name, eta0=0.9, **options)
    state = run(method, batches, 600)
    assert_allclose(state.w, optimum, rtol=1e-8, atol=1e-8)


# Step sizes, averages, the test of convergence, the registry


def test_step_sizes():
    assert step_size(0.5, 10.0, 0) == 0.5
    assert step_size(0.5, 10.0, 30) == pytest.approx(0.5 * 10 / 40)
    assert step_size(0.5, np.inf, 10**9) == 0.5


@pytest.mark.parametrize("burn_in", [0, 4])
def test_averages_are_means_of_iterates(burn_in):
    sgd = online_method("sgd", eta0=0.3)
    averaged = Averaged(sgd, burn_in)
    batches = [batch for batch, _ in zip(mild(8), range(12), strict=False)]
    iterates = [run(sgd, batches, t).w for t in range(13)]
    state = averaged.start(np.zeros(Q))
    for t, batch in enumerate(batches, 1):
        state = averaged.step(batch, state)
        expected = np.mean(iterates[min(burn_in, t - 1) + 1 : t + 1], axis=0)
        if t <= burn_in:
            expected = iterates[t]
        assert_allclose(state.w, expected, rtol=1e-12)
        assert_array_equal(state.inner.w, iterates[t])


def test_convergence_is_that_of_the_averaged_gradient():
    """Noise that cancels in the mean does not keep it from passing, a drift does."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(500, Q))
    test = ConvergenceTest(tol=0.8, patience=5, window=50.0)
    state = test.start()
    assert not test.passed(state)
    for gradient in noise:
        state = test.step(state, gradient)
    assert test.passed(state)
    assert np.linalg.norm(noise, axis=1).min() > 0.1
    state = test.start()
    for gradient in noise + 1.0:
        state = test.step(state, gradient)
    assert not test.passed(state)


def test_convergence_needs_patience_without_interruption():
    test = ConvergenceTest(tol=1e-3, patience=3, window=1.0)
    state = test.start()
    for size, passed in zip([0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0], strict=True):
        state = test.step(state, np.array([float(size)]))
        assert test.passed(state) == bool(passed)


def test_the_average_of_gradients_has_no_bias_from_its_start():
    test = ConvergenceTest(tol=1.0001, patience=1, window=100.0)
    assert test.passed(test.step(test.start(), np.array([1.0])))
    assert not test.passed(test.step(test.start(), np.array([1.001])))


def test_hyperparameters_by_name():
    assert hyperparameters("sgd") == {"eta0": 0.1, "tau": np.inf}
    assert "nesterov" not in hyperparameters("nesterov")
    assert online_method("nesterov").nesterov
    with pytest.raises(TypeError, match=r"'sgd' takes no memory, mu"):
        online_method("sgd", mu=1.0, memory=3)
    for name in ONLINE_METHODS:
        assert online_method(name, **hyperparameters(name)) == online_method(name)


# Quasi-Newton methods


def test_obfgs_is_its_algorithm():
    """Alg. 5.1 line by line, with the product form of line 15."""
    c, lambda_, eta0, tau, epsilon = 0.3, 0.05, 0.7, 9.0, 1e-3
    method = OBFGS(eta0=eta0, tau=tau, epsilon=epsilon, lambda_=lambda_, c=c)
    state = method.start(np.zeros(Q))
    w, B = np.zeros(Q), epsilon * np.eye(Q)
    for t, batch in zip(range(8), stream(1, 8, 0.1), strict=False):
        s = tau / (tau + t) * eta0 / c * -(B @ batch.gradient(w))
        y = batch.gradient(w + s) - batch.gradient(w) + lambda_ * s
        w = w + s
        if t == 0:
            B = (s @ y) / (y @ y) * np.eye(Q)
        rho = 1.0 / (s @ y)
        A = np.eye(Q) - rho * np.outer(y, s)
        B = A.T @ B @ A + c * rho * np.outer(s, s)
        state = method.step(batch, state)
        assert_allclose(state.w, w, rtol=1e-9, atol=1e-12)
        assert_allclose(state.B, B, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("c", [1.0, 0.1])
@pytest.mark.parametrize("b", [1, 2, 64])
def test_obfgs_keeps_its_secant_equation_and_stays_positive_definite(b, c):
    """B dg = c dw, the damped form of (2.14); batches of one row are singular."""
    lambda_ = 1e-3
    method = OBFGS(eta0=b / (b + 2), c=c, lambda_=lambda_)
    state = method.start(np.zeros(Q))
    for _, batch in zip(range(50), stream(2, b, 0.1), strict=False):
        new = method.step(batch, state)
        dw = new.w - state.w
        dg = batch.hessian @ dw + lambda_ * dw
        error = new.B @ dg - c * dw
        # Gradients cancel in their difference.
        assert np.linalg.norm(error) <= 1e-5 * np.linalg.norm(dw)
        eigenvalues = np.linalg.eigvalsh(new.B)
        assert eigenvalues[0] > 0.0
        state = new


@pytest.mark.parametrize("memory", [3, 10])
def test_olbfgs_is_the_bfgs_update_of_its_pairs(memory):
    """From the mean scale (5.18), the full update for every kept pair."""
    state = run(OLBFGS(eta0=0.5, memory=memory), stream(3, 16), 12)
    assert len(state.pairs) == memory
    ratios = [(s @ y) / (y @ y) for s, y, _ in state.pairs]
    B = np.mean(ratios) * np.eye(Q)
    for s, y, _ in state.pairs:
        A = np.eye(Q) - np.outer(y, s) / (s @ y)
        B = A.T @ B @ A + np.outer(s, s) / (s @ y)
    scale = mean_scale(state.pairs, 1e-10)
    applied = [two_loop(e, state.pairs, lambda v: scale * v) for e in np.eye(Q)]
    assert_allclose(applied, B, rtol=1e-7, atol=1e-7 * np.abs(B).max())
    assert_allclose(B @ state.pairs[-1].dg, state.pairs[-1].dw, rtol=1e-6, atol=1e-12)


def test_olbfgs_of_full_memory_is_obfgs_where_all_pairs_have_one_scale():
    """Two steps always: one pair; for any number where Hessians are h I."""
    settings = {"eta0": 0.4, "tau": 5.0, "epsilon": 1e-4}
    full, limited = OBFGS(**settings, c=1.0), OLBFGS(**settings, memory=50)
    batches = [batch for batch, _ in zip(stream(4, 16), range(2), strict=False)]
    assert_allclose(run(full, batches, 2).w, run(limited, batches, 2).w, rtol=1e-9)
    rng = np.random.default_rng(0)
    round_ones = [
        Quadratic(1.7 * np.eye(Q), rng.normal(size=Q), rng.normal(size=Q))
        for _ in range(30)
    ]
    a, b = run(full, round_ones, 30), run(limited, round_ones, 30)
    assert len(b.pairs) == 30
    assert_allclose(a.w, b.w, rtol=1e-8)


def test_consistent_pairs_are_free_of_noise():
    """Where two batches differ by noise in targets only, so do not their pairs."""
    quiet = next(stream(5, 8))
    noisy = replace(quiet, noise=np.random.default_rng(0).normal(size=8))
    for batch in (quiet, noisy):
        state = OLBFGS(epsilon=0.1).step(batch, OLBFGS().start(np.zeros(Q)))
        (pair,) = state.pairs
        assert_allclose(pair.dg, batch.hessian @ pair.dw, rtol=1e-10)


def test_pairs_without_positive_curvature_are_none():
    one = np.ones(2)
    assert pair_of(one, one).curvature == 2.0
    assert pair_of(one, -one) is None
    assert pair_of(one, np.zeros(2)) is None
    assert pair_of(one, np.full(2, 1e-170)) is None
    assert pair_of(np.full(2, 1e-170), np.full(2, 1e-170)) is None


def convex_batches(seed, alpha, n_steps, b=3):
    """Hessians with eigenvalues of at least alpha, many of them equal to it."""
    rng = np.random.default_rng(seed)
    for _ in range(n_steps):
        rows = np.vstack(
            [rng.normal(size=(b, Q)), np.sqrt((b + Q) * alpha) * np.eye(Q)]
        )
        rows[:b] *= np.sqrt((b + Q) / b)
        yield Quadratic(rows, np.zeros(Q), np.append(rng.normal(size=b), np.zeros(Q)))


@pytest.mark.parametrize("seed", range(3))
def test_res_keeps_secant_equation_and_bounds(seed):
    """(9) and (14): B dw = change of the gradient, eigenvalues of at least delta."""
    delta, gamma, eta0 = 0.05, 0.01, 0.3
    method = RES(eta0=eta0, delta=delta, gamma=gamma)
    state = method.start(np.ones(Q))
    for batch in convex_batches(seed, 0.1, 60):
        gradient = batch.gradient(state.w)
        multiplier = np.linalg.inv(state.B) + gamma * np.eye(Q)
        new = method.step(batch, state)
        dw = new.w - state.w
        assert_allclose(dw, -eta0 * multiplier @ gradient, rtol=1e-9, atol=1e-12)
        assert_allclose(new.B @ dw, batch.hessian @ dw, rtol=1e-6, atol=1e-10)
        assert np.linalg.eigvalsh(new.B)[0] >= delta * (1 - 1e-9)
        spectrum = np.linalg.eigvalsh(multiplier)
        assert gamma <= spectrum[0]
        assert spectrum[-1] <= (gamma + 1 / delta) * (1 + 1e-9)
        state = new


def res_objective(Z, B, delta):
    """The differential entropy that (7) minimizes, up to a constant."""
    M = np.linalg.solve(B, Z - delta * np.eye(len(Z)))
    return np.trace(M) - np.linalg.slogdet(M)[1]


def test_the_update_of_res_minimizes_the_entropy():
    """Lemma 1: no feasible matrix near by is better."""
    delta = 0.05
    method = RES(delta=delta, eta0=0.5)
    state = run(method, list(convex_batches(0, 0.1, 5)), 5, method.start(np.ones(Q)))
    batch = next(convex_batches(1, 0.1, 1))
    new = method.step(batch, state)
    best = res_objective(new.B, state.B, delta)
    dw = new.w - state.w
    rng = np.random.default_rng(0)
    keep = np.eye(Q) - np.outer(dw, dw) / (dw @ dw)
    for size in (1e-3, 1e-2):
        for _ in range(20):
            root = rng.normal(size=(Q, Q))
            change = size * keep @ (root + root.T) @ keep
            assert res_objective(new.B + change, state.B, delta) > best


def test_limited_res_of_full_memory_is_res():
    settings = {"eta0": 0.3, "tau": 20.0, "delta": 0.05, "gamma": 0.01, "b0": 0.8}
    full, limited = RES(**settings), LimitedRES(**settings, memory=40)
    batches = list(convex_batches(3, 0.1, 30))
    a = run(full, batches, 30, full.start(np.ones(Q)))
    b = run(limited, batches, 30, limited.start(np.ones(Q)))
    assert len(b.pairs) == 30
    assert_allclose(a.w, b.w, rtol=1e-6)
    inverse = [limited.solve(b.pairs, e) for e in np.eye(Q)]
    assert_allclose(inverse, np.linalg.inv(a.B), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("memory", [1, 4])
def test_limited_res_keeps_secant_equation_and_bounds(memory):
    delta = 0.05
    method = LimitedRES(eta0=0.3, delta=delta, memory=memory)
    state = method.start(np.ones(Q))
    for batch in convex_batches(4, 0.1, 30):
        new = method.step(batch, state)
        dw = new.w - state.w
        assert len(new.pairs) <= memory
        assert_allclose(method.solve(new.pairs, batch.hessian @ dw), dw, rtol=1e-6)
        inverse = np.array([method.solve(new.pairs, e) for e in np.eye(Q)])
        assert_allclose(inverse, inverse.T, rtol=1e-6, atol=1e-9)
        spectrum = np.linalg.eigvalsh(inverse)
        assert spectrum[0] > 0.0
        assert spectrum[-1] <= (1 + 1e-9) / delta
        state = new


@pytest.mark.parametrize("method", [RES(delta=0.1), LimitedRES(delta=0.1)])
def test_res_skips_batches_whose_corrected_variation_vanishes(method):
    """The source's own setting, delta equal to the smallest eigenvalue."""
    state = run(method, list(convex_batches(5, 0.1, 5)), 5, method.start(np.ones(Q)))
    flat = Quadratic(np.sqrt(Q * 0.1) * np.eye(Q), np.zeros(Q), np.zeros(Q))
    new = method.step(flat, state)
    assert not np.array_equal(new.w, state.w)
    if isinstance(method, RES):
        assert_array_equal(new.B, state.B)
    else:
        assert new.pairs is state.pairs


def test_res_without_regularization_is_bfgs():
    """delta = gamma = 0: the inverse of B is that of oBFGS from the same start."""
    res = RES(eta0=0.5, delta=0.0, gamma=0.0)
    state = res.start(np.ones(Q))
    inverse = np.eye(Q)
    for batch in convex_batches(6, 0.1, 10):
        new = res.step(batch, state)
        s = new.w - state.w
        y = batch.hessian @ s
        A = np.eye(Q) - np.outer(y, s) / (s @ y)
        inverse = A.T @ inverse @ A + np.outer(s, s) / (s @ y)
        assert_allclose(np.linalg.inv(new.B), inverse, rtol=1e-6, atol=1e-8)
        state = new


def test_res_says_when_the_estimate_is_not_positive_definite():
    method = RES()
    state = replace(method.start(np.zeros(Q)), B=-np.eye(Q))
    with pytest.raises(FloatingPointError, match="not positive definite"):
        method.step(next(mild(0)), state)


# First-order methods


def test_smd_is_gradient_descent_in_the_logarithms_of_steps():
    """v is the derivative of w by ln(eta) where it is constant and lambda_ = 1."""
    n_steps, w0 = 6, np.linspace(-0.8, 0.9, Q)
    ln_eta = np.log(np.linspace(0.05, 0.15, Q))

    def iterate(logs):
        w = w0
        for _ in range(n_steps):
            w = w - np.exp(logs) * Quartic().gradient(w)
        return w

    from _door import SMD

    method = SMD(mu=0.0, lambda_=1.0)
    state = replace(method.start(w0), eta=np.exp(ln_eta))
    for _ in range(n_steps):
        state = method.step(Quartic(), state)
    assert_allclose(state.w, iterate(ln_eta), rtol=1e-12)
    h = 1e-5
    # Separable: the derivative of w_i by ln(eta_i).
    differences = (iterate(ln_eta + h) - iterate(ln_eta - h)) / (2 * h)
    assert_allclose(state.v, differences, rtol=1e-6)


def test_smd_by_its_formulas():
    eta0, mu, decay = 0.2, 0.5, 0.7
    method = online_method("smd", eta0=eta0, mu=mu, lambda_=decay)
    state = method.start(np.zeros(Q))
    w, v, eta = np.zeros(Q), np.zeros(Q), np.full(Q, eta0)
    halved = 0
    for _, batch in zip(range(20), stream(7, 4, 3.0), strict=False):
        g = batch.gradient(w)
        factor = np.maximum(0.5, 1 - mu * g * v)
        halved += np.count_nonzero(factor == 0.5)
        eta = eta * factor
        v = decay * v - eta * (g + decay * batch.hessian @ v)
        w = w - eta * g
        state = method.step(batch, state)
        assert_allclose(state.w, w, rtol=1e-10)
        assert_allclose(state.v, v, rtol=1e-9, atol=1e-12)
        assert_allclose(state.eta, eta, rtol=1e-10)
    assert halved


def test_natural_gradient_is_the_inverse_of_the_running_average():
    """(5.11) against (5.10) inverted, the first of which is left out as singular."""
    epsilon, eta0, tau = 0.3, 0.05, 10.0
    method = online_method("ng", epsilon=epsilon, eta0=eta0, tau=tau)
    state = method.start(np.zeros(Q))
    G = epsilon * np.eye(Q)
    for t, batch in zip(range(1, 40), stream(8, 4, 1.0), strict=False):
        g = batch.gradient(state.w)
        new = method.step(batch, state)
        step = eta0 * tau / (tau + t - 1) * np.linalg.solve(G, g)
        assert_allclose(new.w, state.w - step, rtol=1e-8, atol=1e-12)
        if t == 1:
            assert np.linalg.matrix_rank(np.outer(g, g)) == 1
        else:
            G = (1 - 1 / t) * G + np.outer(g, g) / t
        assert_allclose(new.inverse, np.linalg.inv(G), rtol=1e-7, atol=1e-9)
        assert np.linalg.eigvalsh(new.inverse)[0] > 0.0
        state = new


def test_momentum_by_hand():
    """Gradients of w²/2 from w = 1, eta = 1/2, beta = 1/2."""
    one = Quadratic(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    heavy, ahead = [], []
    for nesterov, found in ((False, heavy), (True, ahead)):
        method = online_method("momentum", eta0=0.5, beta=0.5, nesterov=nesterov)
        state = method.start(np.ones(1))
        for _ in range(3):
            state = method.step(one, state)
            found.append(float(state.w[0]))
    assert heavy == [0.5, 0.0, -0.25]
    # v: -1/2; -1/4 - 1/8; -3/16 + 1/32 (the gradient is taken at 1/8 - 3/16).
    assert ahead == [0.5, 0.125, -0.03125]


def linear_batches(*gradients):
    """Batches whose gradients do not depend on w."""

    @dataclass
    class Linear:
        g: np.ndarray

        def value_and_gradient(self, w):
            return float(self.g @ w), self.g

    return [Linear(np.array([float(g)])) for g in gradients]


def one_parameter(method, *gradients):
    state = method.start(np.zeros(1))
    found = []
    for batch in linear_batches(*gradients):
        state = method.step(batch, state)
        found.append(float(state.w[0]))
    return found


def test_adam_by_hand():
    """Gradients 2, -1, with rho = 3/4 and rho_f = 1/2.

    A: 1, then 3/4 + 1/4 = 1; F: 1, then 1/2 - 1/2 = 0. Without bias these are the
    first gradient itself and its square: 1 / (1 - 1/2) = 2, 1 / (1 - 3/4) = 4.
    """
    method = online_method("adam", eta0=0.1, rho=0.75, rho_f=0.5, epsilon=0.0)
    found = one_parameter(method, 2.0, -1.0, 4.0)
    assert found[:2] == pytest.approx([-0.1, -0.1], rel=1e-14)
    # A = 3/4 + 4 = 19/4, F = 2; bias 1 - 27/64 = 37/64 and 1 - 1/8 = 7/8.
    third = 0.1 * (2 / (7 / 8)) / np.sqrt((19 / 4) / (37 / 64))
    assert found[2] == pytest.approx(-0.1 - third, rel=1e-14)


def test_adams_epsilon_is_added_to_the_root():
    method = online_method("adam", eta0=1.0, rho=0.75, rho_f=0.5, epsilon=1.0)
    # A = 1, F = 1, bias sqrt(1/4) / (1/2) = 1.
    assert one_parameter(method, 2.0) == pytest.approx([-1 / 2], rel=1e-14)


def test_adagrad_and_rmsprop_by_hand():
    adagrad = online_method("adagrad", eta0=1.0, epsilon=0.0)
    # A = 9, 25.
    assert one_parameter(adagrad, 3.0, 4.0) == pytest.approx([-1.0, -1.8], rel=1e-14)
    rmsprop = online_method("rmsprop", eta0=1.0, rho=0.75, epsilon=0.0)
    # A = 4, 3 + 1 = 4.
    assert one_parameter(rmsprop, 4.0, 2.0) == pytest.approx([-2.0, -3.0], rel=1e-14)
    # epsilon is under the root.
    rooted = online_method("adagrad", eta0=1.0, epsilon=7.0)
    assert one_parameter(rooted, 3.0) == pytest.approx([-3 / 4], rel=1e-14)


@pytest.mark.parametrize("name", ["adagrad", "rmsprop", "adam"])
def test_parameters_without_derivatives_stay(name):
    state = run(METHODS[name], [Quadratic(np.eye(Q)[:2], np.ones(Q), np.zeros(2))], 1)
    assert np.all(state.w[:2] != 0.0)
    assert_array_equal(state.w[2:], np.zeros(Q - 2))


# What the sources show, in small


def points_needed(method, b, target, limit, seed=0, sigma=0.0):
    """Data points until the deterministic objective is at most ``target``, or inf."""
    batches = stream(seed, b, sigma)
    jacobian = sparse_hilbert()
    state = method.start(np.zeros(Q))
    with np.errstate(all="ignore"):
        for points in range(b, limit + 1, b):
            batch = next(batches)
            try:
                state = method.step(batch, state)
            except FloatingPointError:
                return np.inf
            error = (state.w - batch.optimum) @ jacobian
            if not error @ error < 1e100:
                return np.inf
            if 0.5 * error @ error <= target:
                return points
    return np.inf


def scheduled(name, b, **options):
    if name == "obfgs":
        options["c"] = 0.1
    return online_method(name, eta0=b / (b + 2), **options)


@pytest.mark.parametrize("b", [64, 4])
def test_orderings_on_the_realizable_quadratic(b):
    """Figure 5.2 of Yu 2009, down to J <= 1e-15."""

    def mean(method, n_steps, n_runs):
        limit = n_steps * b
        return np.mean(
            [points_needed(method, b, 1e-15, limit, s) for s in range(n_runs)]
        )

    obfgs = mean(scheduled("obfgs", b), 2000, 10)
    ten = mean(scheduled("olbfgs", b, memory=10), 2000, 10)
    four = mean(scheduled("olbfgs", b, memory=4), 10_000, 2)
    ng = mean(online_method("ng", eta0=1.0, tau=100.0, epsilon=10.0), 10_000, 2)
    assert obfgs < 7000
    # At b = 4 the last bits decide how long runs are: 2.0 to 2.3 times by processor.
    assert ten < (2 if b == 64 else 3) * obfgs
    assert 2 * ten < four
    assert 5 * obfgs < ng < np.inf
    for name in ("sgd", "smd"):
        assert mean(scheduled(name, b), 8000, 1) == np.inf


def test_memory_matters_in_small_batches():
    """m = 4 fails where m = 10 does as well as the full matrix (section 5.6.1)."""
    for seed in range(3):
        assert points_needed(scheduled("obfgs", 1), 1, 1e-15, 5000, seed) < np.inf
        ten = scheduled("olbfgs", 1, memory=10)
        assert points_needed(ten, 1, 1e-15, 5000, seed) < np.inf
        four = scheduled("olbfgs", 1, memory=4)
        assert points_needed(four, 1, 1e-15, 5000, seed) == np.inf


@pytest.mark.parametrize("seed", range(3))
def test_orderings_on_the_quadratic_with_noise(seed):
    """Figure 5.3 of Yu 2009 at b = 4: far fewer points than gradient descent."""
    b = 4

    def needed(method):
        return points_needed(method, b, 1e-5, 40_000, seed, sigma=1e-2)

    sgd = needed(scheduled("sgd", b, tau=1e4))
    assert needed(scheduled("obfgs", b, tau=20.0)) < sgd / 4
    assert needed(scheduled("olbfgs", b, tau=10.0)) < sgd / 4


class HalfSquaredHinge:
    """alpha / 2 ||w||² + half the mean of max(0, 1 - signed rows . w)²."""

    alpha = 1e-3

    def __init__(self, signed):
        self.signed = signed

    def value_and_gradient(self, w):
        slack = np.maximum(0.0, 1.0 - self.signed @ w)
        gradient = self.alpha * w - slack @ self.signed / len(slack)
        return 0.5 * self.alpha * w @ w + 0.5 * np.mean(slack**2), gradient

    def gradient(self, w):
        return self.value_and_gradient(w)[1]


def overlapping(n, seed):
    """Signed rows of the two classes of Mokhtari and Ribeiro 2014, section 4."""
    rows = np.random.default_rng(seed).uniform(-0.2, 0.8, size=(4000, n))
    return HalfSquaredHinge(rows)


def objectives(method, size, data, w0, n_points, seed=0):
    """Objectives after every batch drawn from the data."""
    rng = np.random.default_rng(seed)
    state = method.start(w0)
    values = []
    for _ in range(n_points // size):
        rows = data.signed[rng.integers(0, len(data.signed), size)]
        state = method.step(HalfSquaredHinge(rows), state)
        values.append(data.value_and_gradient(state.w)[0])
    return np.array(values)


@pytest.mark.parametrize("name", ["res-bfgs", "res-lbfgs"])
@pytest.mark.parametrize("seed", range(2))
def test_res_needs_fewer_points_than_gradient_descent(name, seed):
    """Figures 1 and 2: n = 4 to 6.5e-2 in 315 points, n = 40 to 5.55e-4 in 3500."""
    steps = {"eta0": 3e-2, "tau": 100.0}
    res = online_method(name, b0=3e-3, **steps)
    sgd = online_method("sgd", **steps)
    data, w0 = overlapping(4, seed), np.zeros(4)
    assert objectives(res, 5, data, w0, 315, seed)[-1] <= 6.5e-2
    assert objectives(sgd, 1, data, w0, 1000, seed).min() > 6.5e-2
    data, w0 = overlapping(40, seed), np.ones(40)
    assert objectives(sgd, 1, data, w0, 3500, seed)[-1] > 1.7e-2
    if name == "res-bfgs":
        assert objectives(res, 5, data, w0, 3500, seed)[-1] <= 5.55e-4


def test_regularization_bounds_the_jumps():
    """Figure 4: with a constant step the method without it leaves the optimum."""
    regular = online_method("res-bfgs", eta0=0.1)
    free = online_method("res-bfgs", eta0=0.1, delta=0.0, gamma=0.0)
    worst = {regular: [], free: []}
    for method, found in worst.items():
        for seed in range(4):
            data = overlapping(10, seed)
            values = objectives(method, 5, data, np.zeros(10), 6000, seed)
            found.append(values[500:].max())
    assert max(worst[regular]) < 0.05
    assert max(worst[free]) > 3 * max(worst[regular])
