"""Fits of estimators against implementations straight from the papers.

A fit with ``max_iter=k`` is the iterate k of the best ones so far. Symbols are those of
the sources.
"""

import warnings
from copy import deepcopy
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    SubLBFGSLinearSVC,
)

STEPS = 20


def two_classes(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d)
    return X, np.where(X @ rng.normal(size=d) + 2.0 * rng.normal(size=n) > 0, 1.0, -1.0)


class Decisions:
    """What a source leaves open, as 0 or 1: first some that are given, then 0."""

    def __init__(self, given=()):
        self.made, self._given = [], list(given)

    def __call__(self, n):
        new = (self._given + n * [0])[:n]
        self._given = self._given[n:]
        self.made += new
        return np.array(new, dtype=float)


def outcomes(step):
    """Return what a step leads to, for all decisions that it asks for."""
    found, pending = [], [[]]
    while pending:
        given = pending.pop()
        decisions = Decisions(given)
        found.append(step(decisions))
        for i in range(len(given), len(decisions.made)):
            pending.append([*decisions.made[:i], 1])
    return found


class Hinge:
    """lambda / 2 ||w||² plus the mean of max(0, 1 - z <w, x>) (Yu 2009, eq. 3.27)."""

    power = 1

    def __init__(self, n, d, seed, lambda_):
        self.X, self.z = two_classes(n, d, seed)
        self.rows = self.z[:, np.newaxis] * self.X
        self.lambda_ = lambda_

    def risk(self, w):
        return np.mean(np.maximum(0.0, 1.0 - self.rows @ w) ** self.power)

    def value(self, w):
        return 0.5 * self.lambda_ * w @ w + self.risk(w)

    def risk_subgradient(self, w, p=None, decide=None):
        """The steepest one along p (3.28).

        Rows on the margin whose scores p leaves as they are may have any beta.
        """
        slack = 1.0 - self.rows @ w
        beta = np.where(slack > 0.0, 1.0, 0.0)
        margin = np.abs(slack) < 1e-9
        if p is not None:
            change = self.rows @ p
            beta[margin] = np.where(change[margin] < 0.0, 1.0, 0.0)
            if decide is not None:
                lengths = np.linalg.norm(self.rows, axis=1) * np.linalg.norm(p)
                either = margin & (np.abs(change) < 1e-8 * lengths)
                beta[either] = decide(np.count_nonzero(either))
        return -beta @ self.rows / len(beta)

    def subgradient(self, w, p=None, decide=None):
        return self.lambda_ * w + self.risk_subgradient(w, p, decide)

    def exact(self, w, p):
        """The minimizer on a half-line, by its kinks in order (Alg. 3.3)."""
        f, df = self.rows @ w, self.rows @ p
        with np.errstate(all="ignore"):
            kinks = (1.0 - f) / df
        kinks = np.sort(kinks[np.isfinite(kinks) & (kinks > 1e-12)])
        ends = np.concatenate([[0.0], kinks, [kinks.max(initial=1.0) * 4.0 + 1e6]])
        for low, high in pairwise(ends):
            middle = 0.5 * (low + high)
            active = 1.0 - f - middle * df > 0.0
            slope, curvature = self.parabola(w, p, f, df, active)
            if slope + curvature * low >= 0.0:
                return low
            if slope + curvature * high > 0.0:
                return -slope / curvature
        raise AssertionError

    def parabola(self, w, p, f, df, active):
        slope = self.lambda_ * w @ p - np.sum(df[active]) / len(f)
        return slope, self.lambda_ * p @ p


class SquaredHinge(Hinge):
    """The same with the square of the hinge, which is smooth."""

    power = 2

    def risk_subgradient(self, w, p=None, decide=None):
        slack = np.maximum(0.0, 1.0 - self.rows @ w)
        return -2.0 * slack @ self.rows / len(slack)

    def parabola(self, w, p, f, df, active):
        slack, df = (1.0 - f)[active], df[active]
        slope = self.lambda_ * w @ p - 2.0 * np.sum(slack * df) / len(f)
        return slope, self.lambda_ * p @ p + 2.0 * np.sum(df**2) / len(f)


class Logistic:
    """The mean log loss, and lambda ||w||_1 (Yu 2009, eq. 3.59)."""

    def __init__(self, n, d, seed, lambda_):
        self.X, self.z = two_classes(n, d, seed)
        self.lambda_ = lambda_

    def smooth(self, w):
        return np.mean(np.logaddexp(0.0, -self.z * (self.X @ w)))

    def gradient(self, w):
        p = 1.0 / (1.0 + np.exp(self.z * (self.X @ w)))
        return -(self.z * p) @ self.X / len(p)

    def value(self, w):
        return self.smooth(w) + self.lambda_ * np.abs(w).sum()

    def subgradient(self, w, p):
        """The steepest one along p."""
        signs = np.where(w == 0.0, np.sign(p), np.sign(w))
        return self.gradient(w) + self.lambda_ * signs

    def smallest_subgradient(self, w):
        """Andrew and Gao 2007, eq. 4."""
        g = self.gradient(w)
        up, down = g + self.lambda_, g - self.lambda_
        at_zero = np.where(down > 0.0, down, np.where(up < 0.0, up, 0.0))
        return np.where(w == 0.0, at_zero, g + self.lambda_ * np.sign(w))


def exact(J, w, p, options):
    return J.exact(w, p)


def wolfe(J, w, p, options):
    """A step that obeys (3.17) and (3.18), by doubling and bisection from 1."""
    slope = J.subgradient(w, p) @ p
    low, high, eta = 0.0, np.inf, 1.0
    while True:
        new = w + eta * p
        if J.value(new) > J.value(w) + options["c1"] * eta * slope:
            high = eta
        elif J.subgradient(new, p) @ p < options["c2"] * slope:
            low = eta
        else:
            return eta
        eta = 0.5 * (low + high) if high < np.inf else 2.0 * eta


class Dense:
    """B of Alg. 2.1, lines 9 to 13."""

    def __init__(self, d):
        self.B, self.t = np.eye(d), 0

    def __call__(self, v):
        return self.B @ v

    def update(self, s, y):
        eye = np.eye(len(s))
        if self.t == 0:
            self.B = s @ y / (y @ y) * eye
        rho = 1.0 / (s @ y)
        left = eye - rho * np.outer(s, y)
        self.B = left @ self.B @ left.T + rho * np.outer(s, s)
        self.t += 1


class Limited:
    """Alg. 2.3, of the last m pairs."""

    def __init__(self, m):
        self.m, self.pairs = m, []

    def __call__(self, v):
        alphas, p = [], v
        for s, y in reversed(self.pairs):
            alphas.append(s @ p / (s @ y))
            p = p - alphas[-1] * y
        if self.pairs:
            s, y = self.pairs[-1]
            p = s @ y / (y @ y) * p
        for s, y in self.pairs:
            p = p + (alphas.pop() - y @ p / (y @ s)) * s
        return p

    def update(self, s, y):
        pairs = [*self.pairs, (s, y)]
        self.pairs = pairs[max(0, len(pairs) - self.m) :]


def descent_direction(B, g, oracle, options):
    """Alg. 3.2; None for a failure."""

    epsilon, k_max = options["epsilon"], options["k_max"]
    mean, p = [g], [-B(g)]
    g_next = [oracle(p[0])]
    gap = p[0] @ g_next[0] - p[0] @ mean[0]
    i = 1
    while (g_next[-1] @ p[-1] > 0.0 or gap > epsilon) and gap > 0.0 and i < k_max:
        change = mean[-1] - g_next[-1]
        mu = min(1.0, change @ B(mean[-1]) / (change @ B(change)))
        mean.append((1.0 - mu) * mean[-1] + mu * g_next[-1])
        p.append((1.0 - mu) * p[-1] - mu * B(g_next[-1]))
        g_next.append(oracle(p[-1]))
        gap = min(
            p[j] @ g_next[j] - 0.5 * (p[j] @ mean[j] + p[-1] @ mean[-1])
            for j in range(len(p))
        )
        i += 1
    # M(p) = <p, B^-1 p> / 2 + sup <g, p>, with B^-1 p = -mean.
    models = [-0.5 * p[j] @ mean[j] + g_next[j] @ p[j] for j in range(len(p))]
    best = p[int(np.argmin(models))]
    return best if oracle(best) @ best < 0.0 else None


def bfgs(J, w, B, search, options):
    """Alg. 2.1 and 2.2."""
    while True:
        p = -B(J.subgradient(w))
        s = search(J, w, p, options) * p
        y = J.subgradient(w + s) - J.subgradient(w)
        B.update(s, y)
        w = w + s
        yield w


def subbfgs(J, w, g, B, search, options, decide, h=1e-8):
    """Alg. 3.1, lines 5 to 15."""
    p = descent_direction(B, g, lambda p: J.subgradient(w, p, decide), options)
    if p is None:
        return None
    s = search(J, w, p, options) * p
    w = w + s
    new = J.subgradient(w, p, decide)
    y = new - g
    s = s + max(0.0, h - s @ y / (y @ y)) * y
    B = deepcopy(B)
    B.update(s, y)
    return w, new, B


def model_minimizer(J, cuts):
    """Minimize lambda / 2 ||w||² + max <w, a> + b (Teo et al. 2010, eq. 7 and 10).

    On the unit simplex <x, Q x> / 2 - <b, x> is half of <x, (Q - b 1' - 1 b') x>, and
    the minimizer of a form that is positive there is one of a non-negative least
    squares problem, but for its scale.
    """
    A, b = (np.array(each) for each in zip(*cuts, strict=True))
    Q = A @ A.T / J.lambda_ - b[:, np.newaxis] - b
    Q += 1.0 + 2.0 * max(0.0, -np.linalg.eigvalsh(Q)[0])
    values, vectors = np.linalg.eigh(Q)
    root = np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * vectors.T
    scale = 1e-2
    y, _ = nnls(
        np.vstack([root, np.full(len(b), scale)]),
        np.append(np.zeros(len(b)), 1.0 / scale),
    )
    active = y > 1e-11 * y.max()
    # The multipliers of these cuts, by the linear system that they solve.
    n = int(active.sum())
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = A[active] @ A[active].T / J.lambda_
    system[n, n] = 0.0
    x = np.linalg.lstsq(system, np.append(b[active], 1.0), rcond=None)[0][:n]
    w = -x @ A[active] / J.lambda_
    value = 0.5 * J.lambda_ * w @ w + np.max(A @ w + b)
    dual = -0.5 * J.lambda_ * w @ w + b[active] @ x
    assert x.min() > -1e-12
    assert value - dual < 1e-11 * abs(value)
    return w, value


def cut_at(J, w):
    a = J.risk_subgradient(w)
    return a, J.risk(w) - w @ a


def bmrm(J, w, options):
    """Teo et al. 2010, Alg. 2: the best point so far, and the model's minimum."""
    cuts, best = [], w
    while True:
        cuts.append(cut_at(J, w))
        w, bound = model_minimizer(J, cuts)
        best = min(best, w, key=J.value)
        yield best, bound


def ls_bmrm(J, w, options):
    """Teo et al. 2010, Alg. 3, whose line search "might return a zero step"."""
    cuts, between = [], w
    while True:
        cuts.append(cut_at(J, between))
        target, bound = model_minimizer(J, cuts)
        w = w + J.exact(w, target - w) * (target - w)
        between = (1.0 - options["theta"]) * w + options["theta"] * target
        yield w, bound


def aggregated(J, w, options):
    """Teo et al. 2010, Alg. 4 and eq. 14; the first cut alone has its minimizer."""
    a, b = cut_at(J, w)
    w, start = -a / J.lambda_, w
    best = min(start, w, key=J.value)
    yield best, -0.5 * a @ a / J.lambda_ + b
    while True:
        new_a, new_b = cut_at(J, w)
        change = new_a - a
        eta = (w @ change + new_b - b) * J.lambda_ / (change @ change)
        eta = min(max(eta, 0.0), 1.0)
        a, b = (1.0 - eta) * a + eta * new_a, (1.0 - eta) * b + eta * new_b
        w = -a / J.lambda_
        best = min(best, w, key=J.value)
        yield best, -0.5 * a @ a / J.lambda_ + b


def backtrack(J, w, p, g, first):
    """Andrew and Gao 2007, section 3.2: steps within an orthant."""
    orthant = np.where(w == 0.0, np.sign(p), np.sign(w))
    alpha = min(1.0, 1.0 / np.linalg.norm(p)) if first else 1.0
    while True:
        new = w + alpha * p
        new[new * orthant < 0.0] = 0.0
        if J.value(new) <= J.value(w) + 1e-4 * g @ (new - w):
            return new
        alpha *= 0.5


def owlqn(J, w, options, star=False):
    """Andrew and Gao 2007, Alg. 1; with Alg. 3.2 of Yu 2009 OWL-QN*."""
    B = Limited(options["memory"])
    while True:
        g = J.smallest_subgradient(w)
        if star:
            p = descent_direction(B, g, partial(J.subgradient, w), options)
            g = J.subgradient(w, p)
        else:
            p = -B(g)
            p[p * g >= 0.0] = 0.0
        new = backtrack(J, w, p, g, first=not B.pairs)
        B.update(new - w, J.gradient(new) - J.gradient(w))
        w = new
        yield w


def owlqn_star(J, w, options):
    return owlqn(J, w, options, star=True)


def fits(J, cls, solver, options, start=None, **others):
    """Return the fitted models after 1 to 20 iterations."""
    found = []
    for k in range(1, STEPS + 1):
        model = cls(
            J.lambda_,
            solver=solver,
            solver_options=options,
            max_iter=k,
            tol=0.0,
            fit_intercept=False,
            **others,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(model.fit(J.X, J.z, coef_init=start))
        assert found[-1].n_iter_ == k
    return found


def tol(w):
    return 1e-9 * np.abs(w).max()


def assert_same(models, iterates):
    for model, w in zip(models, iterates, strict=False):
        assert_allclose(model.coef_[0], w, rtol=0.0, atol=tol(w))


SEARCHES = {
    "exact": (exact, {}),
    "wolfe": (wolfe, {"line_search": "wolfe", "c1": 1e-4, "c2": 0.9}),
    # Yu 2009, section 3.1.1.1.
    "wolfe as in section 3.1": (
        wolfe,
        {"line_search": "wolfe", "c1": 1e-3, "c2": 0.8},
    ),
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("memory", [None, 5, 15])
def test_bfgs_on_smooth_losses(memory, search):
    J = SquaredHinge(300, 30, 0, 1e-4)
    method, options = SEARCHES[search]
    B = Dense(30) if memory is None else Limited(memory)
    solver = "bfgs" if memory is None else "lbfgs"
    given = options if memory is None else {**options, "memory": memory}
    start = np.linspace(-0.1, 0.2, 30)
    models = fits(J, SubLBFGSLinearSVC, solver, given, start, loss="squared_hinge")
    assert_same(models, bfgs(J, start, B, method, options))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("memory", [None, 0, 5, 15])
def test_subbfgs_on_the_hinge(memory, search):
    """Yu 2009, chapter 4: epsilon = 1e-5, h = 1e-8, buffers of 15; 3.1.2: B = I.

    Exact steps end at kinks, where the source leaves open which subgradient is taken:
    each iterate is one of those that it allows after the ones before.
    """
    J = Hinge(300, 20, 1, 1e-3)
    method, options = SEARCHES[search]
    options = {**options, "epsilon": 1e-5, "k_max": 100}
    B = Dense(20) if memory is None else Limited(memory)
    solver = "subbfgs" if memory is None else "sublbfgs"
    given = options if memory is None else {**options, "memory": memory}
    probe = np.linspace(-1.0, 1.0, 20)
    states = [(np.zeros(20), J.subgradient(np.zeros(20)), B)]
    for k, model in enumerate(fits(J, SubLBFGSLinearSVC, solver, given), 1):
        coef = model.coef_[0]
        distinct = {}
        for before in states:
            for after in outcomes(partial(subbfgs, J, *before, method, options)):
                if after is None or np.abs(after[0] - coef).max() > tol(coef):
                    continue
                # Most decisions change nothing.
                _, g, new_B = after
                key = np.round(np.concatenate([g, new_B(probe)]), 6)
                distinct[tuple(key.tolist())] = after
        assert distinct, f"iterate {k} is none of the algorithm"
        states = list(distinct.values())


class MulticlassHinge:
    """lambda / 2 ||w||² plus the mean of max_j (1[j != z] + z_j - z_z) (3.40)."""

    def __init__(self, n, d, n_classes, seed, lambda_):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, d))
        scores = self.X @ rng.normal(size=(d, n_classes))
        self.z = (scores + 2.0 * rng.normal(size=scores.shape)).argmax(axis=1)
        self.lambda_, self.shape = lambda_, (n_classes, d)
        self.costs = 1.0 - np.eye(n_classes)[self.z]

    def margins(self, w):
        return self.costs + self.X @ w.reshape(self.shape).T

    def value(self, w):
        margins = self.margins(w)
        own = margins[np.arange(len(self.z)), self.z]
        return 0.5 * self.lambda_ * w @ w + np.mean(margins.max(axis=1) - own)

    def subgradient(self, w, p=None, decide=None):
        """With the steepest of the labels that attain the maximum, or the first."""
        margins, rows = self.margins(w), np.arange(len(self.z))
        at_most = margins < margins.max(axis=1, keepdims=True) - 1e-10
        change = np.zeros_like(margins)
        if p is not None:
            change = self.X @ p.reshape(self.shape).T
        best = np.where(at_most, -np.inf, change).argmax(axis=1)
        u = np.zeros_like(margins)
        u[rows, best] += 1.0 / len(rows)
        u[rows, self.z] -= 1.0 / len(rows)
        return self.lambda_ * w + (u.T @ self.X).ravel()


@pytest.mark.parametrize("epsilon_0", [None, 1.0])
def test_subbfgs_on_several_classes(epsilon_0):
    """At w = 0 all labels tie: Yu 2009, section 4.1.1, takes a tolerance of 1 there."""
    J = MulticlassHinge(150, 8, 4, 4, 1e-3)
    options = {"epsilon": 1e-5, "k_max": 30, "line_search": "wolfe"}
    published = {**options, "c1": 1e-4, "c2": 0.9}
    given = options if epsilon_0 is None else {**options, "epsilon_0": epsilon_0}
    models = fits(J, MulticlassHingeClassifier, "subbfgs", given)
    w = np.zeros(32)
    state = w, J.subgradient(w), Dense(32)
    for k, model in enumerate(models):
        first = {"epsilon": epsilon_0} if k == 0 and epsilon_0 is not None else {}
        state = subbfgs(J, *state, wolfe, published | first, None)
        w = state[0]
        assert_allclose(model.coef_.ravel(), w, rtol=0.0, atol=tol(w))


@pytest.mark.parametrize("k_max", [1, 3, 6])
def test_the_phase_counts_iterations_of_the_direction_search(k_max):
    """At w = 0 all labels tie: an exact search is ended by its limit alone."""
    J = MulticlassHinge(150, 8, 4, 4, 1e-3)
    options = {"epsilon": 0.0, "k_max": k_max}
    model = fits(J, MulticlassHingeClassifier, "sublbfgs", options)[0]
    assert model.history_[0].phase[1] == ("subbfgs", f"subbfgs: {k_max - 1}")[k_max > 1]


BUNDLES = [
    ("bmrm", bmrm, {"patience": None, "epsilon": 1e-12}),
    ("ls-bmrm", ls_bmrm, {"patience": None, "cut_at_best": False, "theta": 0.9}),
    ("ls-bmrm", ls_bmrm, {"patience": None, "cut_at_best": False, "theta": 0.1}),
    ("bmrm-aggregated", aggregated, {}),
]


@pytest.mark.parametrize(("solver", "published", "options"), BUNDLES)
def test_bundle_methods(solver, published, options):
    J = Hinge(200, 30, 2, 1e-2)
    start = np.linspace(-0.1, 0.1, 30)
    models = fits(J, BMRMClassifier, solver, options, start, loss="hinge")
    # No risk is negative, which is known beforehand.
    expected, highest = [], 0.0
    for model, (w, bound) in zip(models, published(J, start, options), strict=False):
        expected.append(w)
        highest = max(highest, bound)
        (history,) = model.history_
        assert_allclose(history.lower_bound[-1], highest, rtol=0.0, atol=1e-9)
        assert_allclose(history.objective[-1], J.value(w), rtol=0.0, atol=1e-9)
    assert_same(models, expected)


@pytest.mark.parametrize("memory", [4, 10])
@pytest.mark.parametrize(
    ("solver", "published", "options"),
    [
        ("owlqn", owlqn, {}),
        ("owlqn*", owlqn_star, {"epsilon": 1e-5, "k_max": 100}),
    ],
)
def test_owlqn(solver, published, options, memory):
    # Data of some other seeds lead OWL-QN* to a zero coefficient where its direction is
    # zero, too: there rounding decides which orthant comes next.
    J = Logistic(300, 30, 4, 1e-2)
    options = {**options, "memory": memory}
    models = fits(J, L1LogisticOWLQN, solver, options)
    iterates = published(J, np.zeros(30), options)
    assert_same(models, iterates)
    assert 0 < np.count_nonzero(models[-1].coef_) < 30


class Lasso:
    """||D w - y||² / 2 + lambda_1 ||w||_1 + lambda_2 ||w||² / 2 (Aggarwal 2020, 5.8.1).

    The estimator's objective is that over n, its alpha so much smaller.
    """

    def __init__(self, n, d, seed, lambda_1, lambda_2=0.0):
        rng = np.random.default_rng(seed)
        # Columns have much in common, so that no method arrives in a few steps.
        self.D = rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(n, 1))
        w = np.where(np.arange(d) % 3 == 0, rng.normal(size=d), 0.0)
        self.y = self.D @ w + rng.normal(size=n)
        self.lambda_1, self.lambda_2 = lambda_1, lambda_2

    def value(self, w):
        r = self.D @ w - self.y
        squares = 0.5 * self.lambda_2 * w @ w
        return 0.5 * r @ r + self.lambda_1 * np.abs(w).sum() + squares

    def fits(self, solver, options, **others):
        total, found = self.lambda_1 + self.lambda_2, []
        for k in range(1, STEPS + 1):
            model = BMRMRegressor(
                total / len(self.y),
                penalty="elasticnet",
                l1_ratio=self.lambda_1 / total,
                solver=solver,
                solver_options=options,
                fit_intercept=False,
                tol=0.0,
                max_iter=k,
                **others,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found.append(model.fit(self.D, self.y))
        return found


def shrunk(w, threshold):
    """Eq. 5.35."""
    return np.where(np.abs(w) <= threshold, 0.0, w - np.sign(w) * threshold)


def ista_steps(J, alpha):
    """Aggarwal 2020, section 5.8.2, with step size alpha; squares are part of G."""
    w = np.zeros(J.D.shape[1])
    while True:
        w = w - alpha * J.D.T @ (J.D @ w - J.y)
        w = shrunk(w, alpha * J.lambda_1) / (1.0 + alpha * J.lambda_2)
        yield w


def fista_steps(J, alpha):
    """Beck and Teboulle 2009, eq. 4.1 to 4.3, with a constant step size 1 / L."""
    w = y = np.zeros(J.D.shape[1])
    t = 1.0
    while True:
        new = y - alpha * J.D.T @ (J.D @ y - J.y)
        new = shrunk(new, alpha * J.lambda_1) / (1.0 + alpha * J.lambda_2)
        t, last = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)), t
        y = new + (last - 1.0) / t * (new - w)
        w = new
        yield w


def subgradient_steps(J, alpha, seed):
    """Section 5.8.1.1 with eq. 5.29: all w, of which the best one is kept."""
    rng = None if seed is None else np.random.default_rng(seed)
    w = np.zeros(J.D.shape[1])
    while True:
        s = np.sign(w)
        if rng is not None:
            s[w == 0.0] = rng.uniform(-1.0, 1.0, np.count_nonzero(w == 0.0))
        w = (
            w
            - alpha * (J.lambda_1 * s + J.lambda_2 * w)
            - alpha * J.D.T @ (J.D @ w - J.y)
        )
        yield w


def cyclic_cycles(J):
    """Eq. 5.32, and problem 5.8.2, once for each coefficient."""
    w = np.zeros(J.D.shape[1])
    while True:
        for i in range(len(w)):
            d = J.D[:, i]
            r = J.y - J.D @ w
            scale = d @ d + J.lambda_2
            least = (w[i] * (d @ d) + d @ r) / scale
            inside = -J.lambda_1 / scale <= least <= J.lambda_1 / scale
            w[i] = 0.0 if inside else least - J.lambda_1 / scale * np.sign(least)
        yield w.copy()


@pytest.mark.parametrize("lambda_2", [0.0, 5.0])
def test_proximal_gradients_and_coordinates(lambda_2):
    J = Lasso(60, 15, 7, 8.0, lambda_2)
    alpha = 0.9 / np.linalg.norm(J.D, 2) ** 2
    step = {"eta0": alpha * len(J.y)}
    methods = {
        "ista": (step, ista_steps(J, alpha)),
        "fista": ({**step, "restart": False}, fista_steps(J, alpha)),
        "cyclic-cd": (None, cyclic_cycles(J)),
    }
    for solver, (options, published) in methods.items():
        best = np.zeros(15)
        for model, w in zip(J.fits(solver, options), published, strict=False):
            # FISTA may raise J; the best point counts.
            best = min(best, w, key=J.value)
            assert_allclose(model.coef_, best, rtol=0.0, atol=tol(best))
            np.testing.assert_array_equal(model.coef_ == 0.0, best == 0.0)
        assert 0 < np.count_nonzero(best) < 15


@pytest.mark.parametrize("seed", [None, 0, 3])
def test_the_subgradient_method_keeps_the_best_point(seed):
    J = Lasso(60, 15, 7, 8.0)
    alpha = 2.3 / np.linalg.norm(J.D, 2) ** 2
    options = {"eta0": alpha * len(J.y), "tau": None, "random_state": seed}
    best, n_worse = np.zeros(15), 0
    steps = subgradient_steps(J, alpha, seed)
    for model, w in zip(J.fits("subgradient", options), steps, strict=False):
        n_worse += J.value(w) > J.value(best)
        best = min(best, w, key=J.value)
        assert_allclose(model.coef_, best, rtol=0.0, atol=tol(best))
        assert_allclose(len(J.y) * model.objective_, J.value(best), rtol=1e-9)
    assert n_worse
