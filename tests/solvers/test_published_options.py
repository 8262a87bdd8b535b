"""Options of published methods: fits against code straight from the sources.

A fit with ``max_iter=k`` is the best of the first k iterates. Symbols are those of the
sources.
"""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    OnlineLBFGSClassifier,
    StructuredSVM,
    SubLBFGSLinearSVC,
    minimize,
)
from sklearn_subqn._core.steps.newton_direction import CG_ACCURACY

STEPS = 20


class Problem:
    """lambda / 2 ||w||² plus a mean loss of margins z <w, x>."""

    def __init__(self, n, d, seed, lambda_, loss):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d)
        noise = 2.0 * rng.normal(size=n)
        self.X, self.z = X, np.where(X @ rng.normal(size=d) + noise > 0.0, 1.0, -1.0)
        self.rows, self.lambda_, self.loss = self.z[:, np.newaxis] * X, lambda_, loss

    def value(self, w):
        m = np.maximum(0.0, 1.0 - self.rows @ w)
        risk = m if self.loss == "hinge" else m * m
        return 0.5 * self.lambda_ * w @ w + risk.mean()

    def subgradient(self, w, beta_at_kinks=0.0):
        slack = 1.0 - self.rows @ w
        beta = np.where(slack > 0.0, 1.0, 0.0)
        if self.loss == "squared_hinge":
            beta = 2.0 * np.maximum(slack, 0.0)
        else:
            beta[np.abs(slack) < 1e-9] = beta_at_kinks
        return self.lambda_ * w - beta @ self.rows / len(beta)

    def hessian(self, w):
        active = self.rows[self.rows @ w <= 1.0]
        gram = 2.0 * active.T @ active / len(self.rows)
        return self.lambda_ * np.eye(len(w)) + gram

    def exact(self, w, p):
        """The minimizer on a half-line, by bisection of slopes (convexity)."""
        low, high = 0.0, 1.0
        while self.subgradient(w + high * p) @ p < 0.0:
            low, high = high, 2.0 * high
        # Between kinks the slope is affine.
        f, df = self.rows @ w, self.rows @ p
        with np.errstate(all="ignore"):
            kinks = (1.0 - f) / df
        kinks = np.sort(kinks[(kinks > low) & (kinks < high)])
        ends = np.concatenate([[low], kinks, [high]])
        for a, b in pairwise(ends):
            inside = self.subgradient(w + (a + 0.25 * (b - a)) * p) @ p
            other = self.subgradient(w + (a + 0.75 * (b - a)) * p) @ p
            slope = (other - inside) / (0.5 * (b - a))
            start = inside - 0.25 * (b - a) * slope
            if start >= 0.0:
                return a
            if start + slope * (b - a) >= 0.0:
                return a - start / slope
        return high


def fits(J, cls, solver, options, steps=STEPS, **others):
    found = []
    for k in range(1, steps + 1):
        model = cls(
            J.lambda_,
            loss=J.loss,
            solver=solver,
            solver_options=options,
            max_iter=k,
            tol=0.0,
            fit_intercept=False,
            **others,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(model.fit(J.X, J.z))
    return found


def assert_same(J, models, iterates):
    best = np.zeros(J.X.shape[1])
    for model, w in zip(models, iterates, strict=False):
        best = min(best, w, key=J.value)
        tol = 1e-9 * np.abs(best).max()
        assert_allclose(model.coef_[0], best, rtol=0.0, atol=tol)


def within(H, g, radius):
    """Minimize <g, p> + <p, H p> / 2 for ||p|| <= radius (Steihaug 1983)."""
    p, r = np.zeros_like(g), -g
    q, first = r.copy(), r @ r
    while r @ r > CG_ACCURACY**2 * first:
        step = (r @ r) / (q @ H @ q)
        b, c = p @ q, p @ p - radius**2
        boundary = (-b + np.sqrt(b * b - (q @ q) * c)) / (q @ q)
        if boundary <= step:
            return p + boundary * q
        p = p + step * q
        new = r - step * H @ q
        q, r = new + (new @ new) / (r @ r) * q, new
    return p


def trust_region(J, delta, low, high):
    """Aggarwal 2020, section 5.6.3.1; radii change by factors of two."""
    w = np.zeros(J.X.shape[1])
    while True:
        g, H = J.subgradient(w), J.hessian(w)
        while True:
            p = within(H, g, delta)
            ratio = (J.value(w) - J.value(w + p)) / -(g @ p + 0.5 * p @ H @ p)
            length = np.linalg.norm(p)
            if ratio < low:
                delta = 0.5 * min(delta, length)
            elif ratio > high and length >= 0.99 * delta:
                delta *= 2.0
            if ratio > 0.0:
                break
        w = w + p
        yield w


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.05},
        {"delta": 5.0, "low": 0.4, "high": 0.95},
        {"delta": 0.3, "low": 0.1, "high": 0.5},
    ],
)
def test_trust_regions(options):
    J = Problem(200, 20, 0, 1e-3, "squared_hinge")
    published = {"low": 0.25, "high": 0.75} | options
    models = fits(J, SubLBFGSLinearSVC, "trust-region", options, 10)
    assert_same(J, models, trust_region(J, **published))
    plain = fits(J, SubLBFGSLinearSVC, "trust-region", None, 2)
    assert np.abs(plain[1].coef_ - models[1].coef_).max() > 1e-6


def conjugate_gradients(J, formula):
    w = np.zeros(J.X.shape[1])
    g = J.subgradient(w)
    q = -g
    while True:
        w = w + J.exact(w, q) * q
        new = J.subgradient(w)
        y = new - g
        beta = {
            "fletcher-reeves": new @ new / (g @ g),
            # Eq. 5.22, H q by eq. 5.23 along the last step.
            "hestenes-stiefel": max(0.0, new @ y / (q @ y)),
            "polak-ribiere": max(0.0, new @ y / (g @ g)),
        }[formula]
        q, g = beta * q - new, new
        if q @ g >= 0.0:
            q = -g
        yield w


@pytest.mark.parametrize(
    "formula", ["fletcher-reeves", "hestenes-stiefel", "polak-ribiere"]
)
def test_formulas_of_conjugate_gradients(formula):
    J = Problem(200, 20, 1, 1e-3, "squared_hinge")
    models = fits(J, SubLBFGSLinearSVC, "cg", {"beta": formula})
    assert_same(J, models, conjugate_gradients(J, formula))


def model_minimizer(cuts, center, zeta):
    """Minimize max <w, a> + b plus zeta / 2 ||w - center||², by its dual (eq. 5)."""
    A, b = (np.array(each) for each in zip(*cuts, strict=True))
    b = b + A @ center
    # On the simplex <x, Q x> / 2 - <b, x> is a form, and its minimizer one of NNLS.
    Q = A @ A.T / zeta - b[:, np.newaxis] - b
    Q += 1.0 + 2.0 * max(0.0, -np.linalg.eigvalsh(Q)[0])
    values, vectors = np.linalg.eigh(Q)
    root = np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * vectors.T
    y, _ = nnls(np.vstack([root, np.full(len(b), 1e-2)]), np.append(0.0 * b, 1e2))
    active = y > 1e-11 * y.max()
    n = int(active.sum())
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = A[active] @ A[active].T / zeta
    system[n, n] = 0.0
    x = np.linalg.lstsq(system, np.append(b[active], 1.0), rcond=None)[0][:n]
    step = -x @ A[active] / zeta
    return center + step, float(np.max(A @ step + b))


def cut_of(J, w):
    s = J.subgradient(w)
    return s, J.value(w) - s @ w


def proximal_bundle(J, rho, zeta):
    """Teo et al. 2010, Alg. 1."""
    center = np.zeros(J.X.shape[1])
    cuts = [cut_of(J, center)]
    while True:
        target, model = model_minimizer(cuts, center, zeta)
        p = target - center
        gap = J.value(center) - (model + 0.5 * zeta * p @ p)
        eta = J.exact(center, p) if J.subgradient(center + 1e-9 * p) @ p < 0.0 else 1.0
        w = center + eta * p
        cuts.append(cut_of(J, w))
        if J.value(center) - J.value(w) >= rho * gap:
            center = w
        yield center


def trust_region_bundle(J, rho, kappa):
    """The same with eq. 6: steps of length at most the root of 2 kappa."""
    center = np.zeros(J.X.shape[1])
    cuts = [cut_of(J, center)]
    while True:
        low, high = 1e-6, 1e6
        for _ in range(200):
            zeta = np.sqrt(low * high)
            w, model = model_minimizer(cuts, center, zeta)
            if np.linalg.norm(w - center) > np.sqrt(2.0 * kappa):
                low = zeta
            else:
                high = zeta
        promise = J.value(center) - model
        cuts.append(cut_of(J, w))
        if J.value(center) - J.value(w) >= rho * promise:
            center = w
        yield center


@pytest.mark.parametrize(("rho", "zeta"), [(0.1, 1.0), (0.5, 0.3)])
def test_the_proximal_bundle_method(rho, zeta):
    J = Problem(150, 12, 2, 1e-2, "squared_hinge")
    options = {"rho": rho, "zeta": zeta}
    models = fits(J, BMRMClassifier, "proximal-bundle", options, 12)
    assert_same(J, models, proximal_bundle(J, rho, zeta))


@pytest.mark.parametrize(("rho", "kappa"), [(0.1, 0.02), (0.4, 0.01)])
def test_the_bundle_method_with_a_trust_region(rho, kappa):
    J = Problem(150, 12, 2, 1e-2, "squared_hinge")
    options = {"rho": rho, "kappa": kappa}
    models = fits(J, BMRMClassifier, "trust-region-bundle", options, 10)
    assert_same(J, models, trust_region_bundle(J, rho, kappa))


def test_random_subgradients_at_kinks():
    """Yu 2009, Alg. 3.1, with beta_i of 0 or 1 at random after each step."""
    J = Problem(120, 10, 3, 1e-2, "hinge")
    options = {"random_state": 5, "epsilon": 1e-5, "h": 1e-6}
    models = fits(J, SubLBFGSLinearSVC, "subbfgs", options, 8)
    rng = np.random.default_rng(5)

    def steepest(w, p):
        kinks = np.abs(1.0 - J.rows @ w) < 1e-9
        return J.subgradient(w, np.where(J.rows[kinks] @ p < 0.0, 1.0, 0.0))

    w, B, first, iterates = np.zeros(10), np.eye(10), True, []
    g = J.subgradient(w)
    for _ in range(8):
        mean, p = g, -B @ g
        after = steepest(w, p)
        tried = [(after @ p - 0.5 * p @ mean, p)]
        gap = p @ after - p @ mean
        i = 1
        while (after @ p > 0.0 or gap > 1e-5) and gap > 0.0 and i < 100:
            change = mean - after
            mu = min(1.0, change @ B @ mean / (change @ B @ change))
            mean, p = (1.0 - mu) * mean + mu * after, (1.0 - mu) * p - mu * B @ after
            after = steepest(w, p)
            tried.append((after @ p - 0.5 * p @ mean, p))
            gap = min(model for model, _ in tried) - 0.5 * p @ mean
            i += 1
        p = min(tried, key=lambda pair: pair[0])[1]
        s = J.exact(w, p) * p
        w = w + s
        kinks = np.flatnonzero(np.abs(1.0 - J.rows @ w) < 1e-9)
        ups = rng.choice([-1.0, 1.0], size=len(kinks)) if len(kinks) else np.zeros(0)
        # A score that rises against its label makes a larger violation.
        new = J.subgradient(w, np.where(ups * J.z[kinks] < 0.0, 1.0, 0.0))
        y = new - g
        s = s + max(0.0, 1e-6 - s @ y / (y @ y)) * y
        if first:
            B, first = s @ y / (y @ y) * np.eye(10), False
        rho = 1.0 / (s @ y)
        left = np.eye(10) - rho * np.outer(s, y)
        B, g = left @ B @ left.T + rho * np.outer(s, s), new
        iterates.append(w)
    assert_same(J, models, iterates)
    others = fits(J, SubLBFGSLinearSVC, "subbfgs", {**options, "random_state": 6}, 8)
    assert np.abs(others[-1].coef_ - models[-1].coef_).max() > 1e-9


@pytest.mark.parametrize("solver", ["lbfgs", "bfgs"])
@pytest.mark.parametrize("epsilon", [1e-2, 1e-5])
def test_methods_end_at_a_small_norm_of_the_gradient(solver, epsilon):
    """Alg. 2.1 and 2.2, line 3; ``tol`` has no say then."""
    J = Problem(200, 20, 4, 1e-3, "squared_hinge")
    model = SubLBFGSLinearSVC(
        J.lambda_,
        loss=J.loss,
        solver=solver,
        tol=1e9,
        fit_intercept=False,
        solver_options={"epsilon": epsilon},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(J.X, J.z)
    assert np.linalg.norm(J.subgradient(model.coef_[0])) <= epsilon
    k = model.n_iter_
    assert k > 1
    with pytest.warns(ConvergenceWarning, match=f"epsilon={epsilon:g} was asked"):
        model.set_params(max_iter=k - 1).fit(J.X, J.z)
    assert np.linalg.norm(J.subgradient(model.coef_[0])) > epsilon
    result = minimize(
        lambda w: (J.value(w), J.subgradient(w)),
        np.zeros(20),
        solver,
        options={"epsilon": epsilon},
    )
    assert result.success
    assert np.linalg.norm(result.jac) <= epsilon


@pytest.mark.parametrize("damping", [1.0, 0.7, 0.2])
@pytest.mark.parametrize("solver", ["obfgs", "olbfgs"])
def test_damped_pairs(solver, damping):
    """Yu 2009, Alg. 5.1 with y by eq. 5.15 and B⁻¹ s computed from B."""
    J = Problem(STEPS * 10, 6, 6, 0.05, "squared_hinge")
    options = {"eta0": 0.5, "tau": 20.0, "lambda_": 0.1, "epsilon": 1e-2}
    given = {**options, "damping": damping}
    if solver == "olbfgs":
        given["memory"] = 30
    model = OnlineLBFGSClassifier(
        J.loss,
        alpha=J.lambda_,
        solver=solver,
        solver_options=given,
        fit_intercept=False,
        average=False,
        batch_size=10,
    )
    w, pairs = np.zeros(6), []
    for t in range(STEPS):
        some = slice(10 * t, 10 * t + 10)
        part = Problem(1, 6, 0, J.lambda_, J.loss)
        part.rows = J.rows[some]
        g = part.subgradient(w)
        B = matrix(pairs, solver, 1e-2)
        s = -0.5 * 20.0 / (20.0 + t) * B @ g
        y = damping * (part.subgradient(w + s) - g)
        y += (1.0 - damping) * np.linalg.solve(B, s) + 0.1 * s
        w = w + s
        if s @ y > 0.0:
            pairs.append((s, y))
        model.partial_fit(J.X[some], J.z[some], classes=[-1.0, 1.0])
        tol = 1e-9 * max(1e-6, np.abs(w).max())
        assert_allclose(model.coef_[0], w, rtol=0.0, atol=tol)


def matrix(pairs, solver, epsilon):
    """B after some pairs: of Alg. 5.1, or by eq. 5.18 with the mean of their scales."""
    if not pairs:
        return epsilon * np.eye(6)
    scales = [s @ y / (y @ y) for s, y in pairs]
    B = (scales[0] if solver == "obfgs" else np.mean(scales)) * np.eye(6)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        left = np.eye(6) - rho * np.outer(s, y)
        B = left @ B @ left.T + rho * np.outer(s, s)
    return B


# Structures with a general factor (Teo et al. 2010, eq. 24).

CLASSES = np.arange(4)
SAMPLES = np.random.default_rng(8).normal(size=(30, 3))
TRUTHS = (SAMPLES @ np.random.default_rng(9).normal(size=(3, 4))).argmax(axis=1)


def feature(x, y):
    joint = np.zeros((4, 3))
    joint[y] = x
    return joint.ravel()


def cost(y, y_hat):
    return float(abs(int(y) - int(y_hat)))


def factor(y, y_hat):
    return 0.5 + 0.25 * abs(int(y) - int(y_hat)) ** 0.5


def finder(rate):
    def argmax(x, y, w):
        scores = np.array([w @ feature(x, c) for c in CLASSES])
        if y is not None:
            costs = np.array([cost(y, c) for c in CLASSES])
            rates = np.array([rate(y, c) for c in CLASSES])
            scores = costs + rates * (scores - scores[y])
        return int(scores.argmax())

    return argmax


@pytest.mark.parametrize("solver", ["n-slack", "bmrm", "ls-bmrm"])
def test_structures_with_a_general_factor(solver):
    given = {"loss": cost, "alpha": 0.1, "tol": 1e-7, "solver": solver}
    model = StructuredSVM(feature, finder(factor), rescaling=factor, **given)
    model.fit(list(SAMPLES), list(TRUTHS))

    def parts(x):
        return x[:12].reshape(4, 3), x[12:]

    def slacks(x):
        W, t = parts(x)
        scores = SAMPLES @ W.T
        rows = np.arange(30)
        return np.concatenate(
            [
                t
                - [cost(y, c) for y in TRUTHS]
                - np.array([factor(y, c) for y in TRUTHS])
                * (scores[:, c] - scores[rows, TRUTHS])
                for c in CLASSES
            ]
        )

    found = scipy_minimize(
        lambda x: 0.05 * x[:12] @ x[:12] + x[12:].mean(),
        np.append(np.zeros(12), np.full(30, 4.0)),
        method="SLSQP",
        constraints={"type": "ineq", "fun": slacks},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert model.objective_ == pytest.approx(found.fun, rel=1e-6)
    assert model.dual_gap_ <= 1e-6 * model.objective_


def test_margins_and_slacks_are_factors():
    for name, rate in (("margin", lambda y, c: 1), ("slack", cost)):
        models = [
            StructuredSVM(
                feature, finder(rate), rescaling=each, loss=cost, alpha=0.1, tol=1e-6
            ).fit(list(SAMPLES), list(TRUTHS))
            for each in (name, rate)
        ]
        assert_array_equal(models[0].coef_, models[1].coef_)
    bad = StructuredSVM(
        feature, finder(cost), rescaling=lambda y, c: -1.0, loss=cost, alpha=0.1
    )
    with pytest.raises(ValueError, match="rescaling must return a finite number >= 0"):
        bad.fit(list(SAMPLES), list(TRUTHS))
    with pytest.raises(ValueError, match="rescaling must be one of"):
        bad.set_params(rescaling="cost").fit(list(SAMPLES), list(TRUTHS))
