"""Public procedures of Yu (2009, chapter 3) against the printed algorithms."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize as scipy_minimize

from sklearn_subqn import ConvergenceDisplay, SubLBFGSLinearSVC, minimize
from sklearn_subqn.losses import PiecewiseQuadratic
from sklearn_subqn.optimize import (
    descent_direction,
    exact_line_search,
    exact_line_search_of_maxima,
    maximum_of_lines,
)

TIE = 1e-12


class MaximumOfParabolas:
    """max_j <a_j, w> + b_j plus lambda / 2 ||w||², with its restriction to lines."""

    def __init__(self, n, d, seed, lambda_):
        rng = np.random.default_rng(seed)
        self.A, self.b, self.lambda_ = (
            rng.normal(size=(n, d)),
            rng.normal(size=n),
            lambda_,
        )

    def highest(self, w):
        values = self.A @ w + self.b
        return self.A[values >= values.max() - TIE * max(1.0, abs(values.max()))]

    def __call__(self, w):
        value = float(np.max(self.A @ w + self.b) + 0.5 * self.lambda_ * w @ w)
        return value, self.highest(w)[0] + self.lambda_ * w

    def steepest(self, w, p):
        active = self.highest(w)
        return active[(active @ p).argmax()] + self.lambda_ * w

    def restrict(self, w, p):
        steps, lines = maximum_of_lines(self.A @ p, self.A @ w + self.b)
        slopes = (self.A @ p)[lines]
        return PiecewiseQuadratic(
            slopes[0] + self.lambda_ * w @ p,
            self.lambda_ * p @ p,
            steps[1:],
            np.diff(slopes),
            np.zeros(len(steps) - 1),
        )


def alg_3_2(B, g, oracle, epsilon, k_max):
    mean, p = [g], [-B @ g]
    after = [oracle(p[0])]
    gap = p[0] @ after[0] - p[0] @ mean[0]
    i = 1
    while (after[-1] @ p[-1] > 0.0 or gap > epsilon) and gap > 0.0 and i < k_max:
        change = mean[-1] - after[-1]
        mu = min(1.0, change @ B @ mean[-1] / (change @ B @ change))
        mean.append((1.0 - mu) * mean[-1] + mu * after[-1])
        p.append((1.0 - mu) * p[-1] - mu * B @ after[-1])
        after.append(oracle(p[-1]))
        gap = min(
            p[j] @ after[j] - 0.5 * (p[j] @ mean[j] + p[-1] @ mean[-1])
            for j in range(len(p))
        )
        i += 1
    models = [after[j] @ p[j] - 0.5 * p[j] @ mean[j] for j in range(len(p))]
    return p[int(np.argmin(models))], mean[-1], gap, i - 1


def alg_3_3(w, p, lambda_, f, df):
    """Of a binary hinge: margins f, their changes df (eq. 3.30)."""
    h, n = lambda_ * p @ p, len(f)
    eta = np.append((1.0 - f) / df, 0.0)
    order = np.argsort(eta, kind="stable")
    j = int(np.searchsorted(eta[order], 0.0, side="right"))
    inside = eta[order[j]] / 2.0
    delta = np.append(f + inside * df < 1.0, False)
    change = np.append(df, 0.0)
    rho = delta[:-1] @ df / n - lambda_ * w @ p
    step, before, g = 0.0, 0.0, -rho
    while g < 0.0:
        before = rho
        if j >= len(order):
            step = np.inf
            break
        step = eta[order[j]]
        while j < len(order) and eta[order[j]] == step:
            i = order[j]
            rho += (-1.0 if delta[i] else 1.0) * change[i] / n
            j += 1
        g = step * h - rho
    return min(step, before / h)


def alg_3_4(a, b, low, high):
    y = b + low * a
    order = np.argsort(-y, kind="stable")
    stack = [(low, order[0])]
    for q in order[1:]:
        while stack:
            eta, top = stack[-1]
            with np.errstate(all="ignore"):
                meeting = (b[q] - b[top]) / (a[top] - a[q])
            if low < meeting <= eta or (meeting == low and a[q] > a[top]):
                stack.pop()
            else:
                break
        if low < meeting <= high or (meeting == low and a[q] > a[top]):
            stack.append((meeting, q))
    return stack


def alg_3_5(w, p, lambda_, a, b):
    n, h = len(a), lambda_ * p @ p
    rows = [list(alg_3_4(a[i], b[i], 0.0, 1e9)) for i in range(n)]
    rho, active = lambda_ * w @ p, []
    for i in range(n):
        active.append(rows[i].pop(0)[1])
        rho += a[i, active[i]] / n
    step, before, g = 0.0, 0.0, rho
    while g < 0.0:
        before = rho
        if not any(rows):
            step = np.inf
            break
        step = min(row[0][0] for row in rows if row)
        for i in range(n):
            while rows[i] and rows[i][0][0] == step:
                rho -= a[i, active[i]] / n
                active[i] = rows[i].pop(0)[1]
                rho += a[i, active[i]] / n
        g = rho + step * h
    return min(step, -before / h)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k_max", [2, 5, 100])
def test_directions_are_those_of_algorithm_3_2(seed, k_max):
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(12, 6)) + 0.4
    root = rng.normal(size=(6, 6))
    B = root @ root.T + np.eye(6)

    def steepest(p):
        return corners[(corners @ p).argmax()]

    p, mean, gap, n = alg_3_2(B, corners[0], steepest, 1e-9, k_max)
    for given in (B, B.__matmul__):
        found = descent_direction(
            corners[0], steepest, given, epsilon=1e-9, k_max=k_max
        )
        assert found.nit == n
        assert_allclose(found.x, p, rtol=0.0, atol=1e-9)
        assert_allclose(found.aggregate, mean, rtol=0.0, atol=1e-9)
        assert_allclose(found.gap, gap, atol=1e-9)
        assert found.slope == pytest.approx(max(corners @ found.x))
        assert found.success == (found.slope < 0.0)


def test_a_direction_at_a_minimum_is_a_failure():
    found = descent_direction([1.0, 0.0], lambda p: np.array([np.sign(p[0]), 0.0]))
    assert not found.success
    assert found.nit == 1


@pytest.mark.parametrize("seed", range(5))
def test_steps_are_those_of_algorithms_3_3_and_3_5(seed):
    rng = np.random.default_rng(seed)
    w, p, lambda_ = rng.normal(size=4), rng.normal(size=4), 0.1
    f, df = rng.normal(size=60), rng.normal(size=60) + 1.0
    w -= (w @ p + 1.0) / (p @ p) * p
    kinks = (1.0 - f) / df
    ahead = kinks > 0.0
    restriction = PiecewiseQuadratic(
        lambda_ * w @ p - np.sum(df[f < 1.0]) / 60,
        lambda_ * p @ p,
        kinks[ahead],
        np.abs(df[ahead]) / 60,
        np.zeros(ahead.sum()),
    )
    step = exact_line_search(restriction)
    assert 0.0 < step < np.inf
    assert_allclose(step, alg_3_3(w, p, lambda_, f, df), rtol=1e-12)
    # The hinge is a maximum of two lines for each row.
    as_lines = exact_line_search_of_maxima(
        np.column_stack([np.zeros(60), -df]),
        np.column_stack([np.zeros(60), 1.0 - f]),
        slope=lambda_ * w @ p,
        curvature=lambda_ * p @ p,
    )
    assert_allclose(as_lines, step, rtol=1e-12)
    a, b = rng.normal(size=(2, 40, 5))
    a -= 0.3 + a.mean()
    step = exact_line_search_of_maxima(
        a, b, slope=lambda_ * w @ p, curvature=lambda_ * p @ p
    )
    assert_allclose(step, alg_3_5(w, p, lambda_, a, b), rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (0.5, 2.0)])
def test_segments_are_those_of_algorithm_3_4(seed, bounds):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 30))
    steps, lines = maximum_of_lines(a, b, *bounds)
    expected = alg_3_4(a, b, bounds[0], min(bounds[1], 1e9))
    assert_allclose(steps, [step for step, _ in expected], rtol=1e-12)
    assert lines.tolist() == [line for _, line in expected]


def test_segments_of_parallel_and_equal_lines():
    """Where the printed algorithm divides zero by zero, or by it."""
    a, b = [0.0, 0.0, 1.0, 1.0, 1.0, -1.0], [0.0, 0.0, -1.0, -1.0, -2.0, 0.0]
    steps, lines = maximum_of_lines(a, b)
    assert steps.tolist() == [0.0, 1.0]
    at = np.linspace(0.0, 4.0, 33)
    values = (np.array(b)[:, np.newaxis] + np.outer(a, at)).max(axis=0)
    which = lines[np.searchsorted(steps, at, side="right") - 1]
    assert_allclose(np.array(b)[which] + np.array(a)[which] * at, values)


@pytest.mark.parametrize("method", ["subbfgs", "sublbfgs"])
@pytest.mark.parametrize("lambda_", [0.0, 0.3])
def test_minimize_is_algorithm_3_1_with_exact_steps(method, lambda_):
    """Straight from the source, with steps by Alg. 3.5, over 20 iterations."""
    J = MaximumOfParabolas(40, 8, 3, 0.5)
    epsilon, k_max, h = 1e-6, 50, 1e-4
    seen = []
    with_squares = {"alpha": lambda_} if lambda_ else {}
    minimize(
        J,
        np.zeros(8),
        method,
        steepest=J.steepest,
        restrict=J.restrict,
        options={
            "line_search": "exact",
            "epsilon": epsilon,
            "k_max": k_max,
            "h": h,
            **({"memory": 30} if method == "sublbfgs" else {}),
        },
        tol=0.0,
        max_iter=20,
        callback=seen.append,
        **with_squares,
    )
    w = np.zeros(8)
    whole = MaximumOfParabolas(40, 8, 3, 0.5 + lambda_)
    g, B, pairs = whole(w)[1], np.eye(8), []
    for x in seen:
        assert_allclose(x, w, rtol=0.0, atol=1e-9 * max(1.0, np.abs(w).max()))
        p, *_ = alg_3_2(B, g, lambda p, w=w: whole.steepest(w, p), epsilon, k_max)
        if not whole.steepest(w, p) @ p < 0.0:
            break
        offsets = (whole.A @ w + whole.b)[np.newaxis]
        s = alg_3_5(w, p, whole.lambda_, (whole.A @ p)[np.newaxis], offsets) * p
        w = w + s
        new = whole.steepest(w, p)
        y = new - g
        s = s + max(0.0, h - s @ y / (y @ y)) * y
        pairs.append((s, y))
        # Alg. 2.1 scales the identity by the first pair, Alg. 2.3 by the last one.
        s, y = pairs[0 if method == "subbfgs" else -1]
        B, g = s @ y / (y @ y) * np.eye(8), new
        for s, y in pairs:
            rho = 1.0 / (s @ y)
            left = np.eye(8) - rho * np.outer(s, y)
            B = left @ B @ left.T + rho * np.outer(s, s)
    assert len(pairs) >= 5


def test_restrictions_of_smooth_functions_and_what_has_no_effect():
    Q = np.diag([1.0, 10.0, 100.0])
    calls = []

    def quadratic(w):
        calls.append(w)
        return 0.5 * float(w @ Q @ w), Q @ w

    def restrict(w, p):
        return lambda step: (float(p @ Q @ (w + step * p)), float(p @ Q @ p))

    exact = {"line_search": "exact"}
    start = np.ones(3)
    result = minimize(quadratic, start, "bfgs", restrict=restrict, options=exact)
    assert result.success
    # Three exact steps of BFGS minimize a quadratic in three dimensions.
    assert result.nit <= 4
    assert result.nfev <= result.nit + 2
    for method, options in (("bfgs", {}), ("bmrm", {}), ("owlqn", {})):
        penalty = {} if method == "bfgs" else {"alpha": 1.0}
        penalty |= {"l1_ratio": 0.5} if method == "owlqn" else {}
        with pytest.raises(ValueError, match="restrict has no effect without"):
            minimize(
                quadratic, start, method, restrict=restrict, options=options, **penalty
            )
    with pytest.raises(TypeError, match="restrict must return a PiecewiseQuadratic"):
        minimize(quadratic, start, "bfgs", restrict=lambda w, p: 1.0, options=exact)
    with pytest.raises(TypeError, match="restrict must be callable"):
        minimize(quadratic, start, "bfgs", restrict=1.0, options=exact)


@pytest.mark.parametrize(
    ("method", "options", "l1_ratio"),
    [
        ("ls-bmrm", {"theta": 0.9, "cut_at_best": False, "patience": None}, 0.0),
        ("bmrm", {"patience": 2}, 0.0),
        ("owlqn*", {"epsilon": 1e-8, "k_max": 3, "random_state": 0}, 1.0),
        ("fista", {"restart": False, "eta0": 0.1}, 0.5),
        ("ista", {"eta0": 0.1}, 1.0),
        ("subgradient", {"eta0": 0.05, "tau": None}, 0.0),
        ("proximal-bundle", {}, 0.5),
    ],
)
def test_methods_take_the_options_of_estimators(method, options, l1_ratio):
    Q, c = np.diag([1.0, 4.0, 9.0]), np.array([1.0, -2.0, 0.01])

    def f(w):
        return 0.5 * float(w @ Q @ w) - float(c @ w), Q @ w - c

    given = {"alpha": 0.1, "l1_ratio": l1_ratio, "infimum": -2.0}
    result = minimize(f, np.ones(3), method, options=options, **given)
    a = 0.1 * l1_ratio
    d = np.diag(Q) + 0.1 * (1.0 - l1_ratio)
    expected = np.sign(c) * np.maximum(np.abs(c) - a, 0.0) / d
    assert_allclose(result.x, expected, atol=2e-3)


def test_an_absolute_gap_ends_bundle_methods():
    J = MaximumOfParabolas(40, 8, 3, 0.0)
    seen = []
    result = minimize(
        J,
        np.zeros(8),
        "bmrm",
        alpha=0.5,
        tol=0.0,
        options={"epsilon": 1e-3},
        callback=lambda intermediate_result: seen.append(intermediate_result.gap),
    )
    assert result.success
    assert seen[-1] <= 1e-3 < min(seen[:-1])


def test_callbacks_see_the_current_point_and_its_coefficients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.where(X @ rng.normal(size=6) + rng.normal(size=300) > 0.0, 1, 0)
    signs = 2.0 * y - 1.0
    points = []

    def callback(progress):
        points.append((progress.objective, progress.current))

    model = SubLBFGSLinearSVC(1e-2, solver="ls-bmrm", tol=1e-3, callback=callback).fit(
        X, y
    )
    assert len(points) == model.n_iter_ + 1
    for best, current in points:
        coef, intercept = np.ravel(current.coef), float(np.ravel(current.intercept)[0])
        assert np.shape(current.coef) == model.coef_.shape
        hinge = np.maximum(0.0, 1.0 - signs * (X @ coef + intercept)).mean()
        assert_allclose(current.objective, 0.5e-2 * coef @ coef + hinge, rtol=1e-9)
        assert best <= current.objective


def test_points_worse_than_the_best_are_seen():
    values = []

    def note(intermediate_result):
        values.append((intermediate_result.fun, intermediate_result.current.fun))

    result = minimize(
        lambda w: (float(np.abs(w).sum()), np.sign(w)),
        np.array([0.31, -0.2]),
        "subgradient",
        alpha=1e-3,
        options={"eta0": 0.3, "tau": None},
        max_iter=15,
        callback=note,
    )
    assert all(best <= current for best, current in values)
    assert any(best < current for best, current in values)
    assert result.fun == min(current for _, current in values)


def test_results_are_plotted():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    J = MaximumOfParabolas(40, 8, 3, 0.0)
    result = minimize(J, np.zeros(8), alpha=0.5)
    display = ConvergenceDisplay.from_result(result, name="ls-bmrm")
    (line,) = display.lines_
    gap = np.subtract(result.history.objective, result.history.lower_bound)
    shown = line.get_ydata() * result.history.size
    finite = np.isfinite(shown)
    assert_allclose(shown[finite], gap[finite], rtol=1e-9)
    assert line.get_label() == "ls-bmrm"
    with pytest.raises(TypeError, match=re.escape("what minimize returned")):
        ConvergenceDisplay.from_result(scipy_minimize(lambda w: w @ w, np.ones(2)))
    with pytest.raises(ValueError, match="'iterations', 'seconds'"):
        ConvergenceDisplay.from_result(result, x="passes")
    plt.close("all")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: descent_direction([[1.0]], np.sign), ValueError, r"shape \(d,\)"),
        (lambda: descent_direction([1.0], 3), TypeError, "steepest must be callable"),
        (
            lambda: descent_direction([1.0], np.sign, np.eye(2)),
            ValueError,
            r"inverse_hessian must have shape \(1, 1\)",
        ),
        (lambda: descent_direction([1.0], np.sign, k_max=0), ValueError, "k_max"),
        (lambda: exact_line_search(3.0), TypeError, "must be a PiecewiseQuadratic"),
        (lambda: maximum_of_lines([1.0], [1.0, 2.0]), ValueError, r"shape \(1,\)"),
        (lambda: maximum_of_lines([1.0], [1.0], 2.0, 1.0), ValueError, "larger than"),
        (
            lambda: exact_line_search_of_maxima([1.0], [1.0]),
            ValueError,
            r"one shape \(n, k\)",
        ),
        (
            lambda: exact_line_search_of_maxima([[1.0]], [[1.0]], weights=[-1.0]),
            ValueError,
            "must not be negative",
        ),
    ],
)
def test_arguments_are_checked(call, error, message):
    with pytest.raises(error, match=message):
        call()
