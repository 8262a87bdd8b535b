"""Functions of one's own: known minima, bounds, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special
from sklearn.datasets import make_classification

import sklearn_subqn
from sklearn_subqn import SubLBFGSLinearSVC, minimize

BY_CUTS = [
    "ls-bmrm",
    "bmrm",
    "bmrm-aggregated",
    "proximal-bundle",
    "trust-region-bundle",
]
QUASI_NEWTON = ["sublbfgs", "subbfgs", "lbfgs", "bfgs"]
TIE = 1e-12


def maximum(value_and_gradients):
    """Value and subgradient, and steepest subgradient, of a maximum of functions."""

    def evaluate(w):
        values, gradients = value_and_gradients(w)
        i = values.argmax()
        return float(values[i]), gradients[i]

    def steepest(w, p):
        values, gradients = value_and_gradients(w)
        highest = values.max()
        active = gradients[values >= highest - TIE * max(1.0, abs(highest))]
        return active[(active @ p).argmax()]

    return evaluate, steepest


def maxq(w):
    return w * w, 2.0 * np.diag(w)


def mxhilb(w):
    i = np.arange(len(w))
    H = 1.0 / (i[:, np.newaxis] + i + 1.0)
    return np.append(H @ w, -H @ w), np.vstack([H, -H])


def chained_lq(w):
    """The sum over j of max(-a - b, -a - b + a² + b² - 1), of a = w_j, b = w_(j+1)."""
    a, b = w[:-1], w[1:]
    g = np.zeros(len(w))
    g[:-1] -= 1.0
    g[1:] -= 1.0
    outside = a * a + b * b > 1.0
    g[:-1] += 2.0 * a * outside
    g[1:] += 2.0 * b * outside
    return float(np.sum(-a - b + np.maximum(a * a + b * b - 1.0, 0.0))), g


def l1(w):
    return float(np.abs(w - 1.0).sum()), np.sign(w - 1.0)


def l1_steepest(w, p):
    r = w - 1.0
    return np.where(np.abs(r) <= TIE, np.sign(p), np.sign(r))


# Haarala, Miettinen and Mäkelä (2004): start and minimum.
MAXQ = (*maximum(maxq), np.r_[1.0:11.0, -11.0:-21.0:-1.0], 0.0)
MXHILB = (*maximum(mxhilb), np.ones(10), 0.0)
CHAINED_LQ = (chained_lq, None, np.full(10, -0.5), -9.0 * np.sqrt(2.0))
L1 = (l1, l1_steepest, np.arange(10.0), 0.0)


@pytest.mark.parametrize("problem", [MAXQ, L1], ids=["maxq", "l1"])
@pytest.mark.parametrize("method", ["sublbfgs", "subbfgs"])
def test_known_minima_by_steepest_subgradients(problem, method):
    f, steepest, w0, least = problem
    result = minimize(f, w0, method, steepest=steepest)
    assert result.fun == pytest.approx(least, abs=1e-7)
    assert result.fun == f(result.x)[0]


@pytest.mark.parametrize(
    "problem", [MAXQ, MXHILB, CHAINED_LQ, L1], ids=["maxq", "mxhilb", "lq", "l1"]
)
def test_known_minima_by_bfgs(problem):
    f, _, w0, least = problem
    result = minimize(f, w0, "bfgs", max_iter=3000)
    assert result.fun == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize(
    "problem", [MAXQ, MXHILB, CHAINED_LQ, L1], ids=["maxq", "mxhilb", "lq", "l1"]
)
@pytest.mark.parametrize("method", ["ls-bmrm", "bmrm", "proximal-bundle"])
def test_known_minima_with_a_small_penalty(problem, method):
    f, _, w0, least = problem
    result = minimize(f, w0, method, alpha=1e-6, tol=1e-5, max_iter=3000)
    assert result.success
    assert result.gap <= 1e-5 * max(1.0, abs(result.fun))
    # The penalty of a minimizer, whose square is at most 10, bounds what it adds.
    assert result.lower_bound <= least + 0.5e-5 + 1e-9
    assert least - 1e-9 <= result.fun <= least + 0.5e-5 + result.gap + 1e-9


@pytest.mark.parametrize("method", [*QUASI_NEWTON, *BY_CUTS])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 3.0])
def test_bounds_of_distances_hold(method, alpha):
    center = np.array([0.5, -1.0, 7.0, -20.0, 0.0])

    def distance(w):
        return float(np.abs(w - center).sum()), np.sign(w - center)

    best = center.clip(-1.0 / alpha, 1.0 / alpha)
    least = distance(best)[0] + 0.5 * alpha * best @ best
    result = minimize(distance, np.ones(5), method, alpha=alpha)
    assert result.lower_bound <= least * (1.0 + 1e-12)
    assert result.fun >= least * (1.0 - 1e-12)
    assert result.gap == result.fun - result.lower_bound
    if method in ("ls-bmrm", "bmrm"):
        assert result.success
        assert_allclose(result.x, best, atol=1e-4)


@pytest.mark.parametrize("method", ["owlqn", "owlqn*", "ls-bmrm", "bmrm"])
@pytest.mark.parametrize(
    ("l1_ratio", "infimum"), [(0.3, -np.inf), (0.3, 0.0), (1.0, 0.0), (1.0, -50.0)]
)
def test_soft_thresholds(method, l1_ratio, infimum):
    center, alpha = np.array([3.0, -2.0, 0.1, -0.4, 0.0]), 0.5

    def half_square(w):
        return 0.5 * float((w - center) @ (w - center)), w - center

    options = {"alpha": alpha, "l1_ratio": l1_ratio, "infimum": infimum}
    result = minimize(half_square, np.full(5, 0.7), method, **options, tol=1e-5)
    best = np.sign(center) * np.maximum(np.abs(center) - alpha * l1_ratio, 0.0)
    best /= 1.0 + alpha * (1.0 - l1_ratio)
    penalty = l1_ratio * np.abs(best).sum() + (1.0 - l1_ratio) / 2.0 * best @ best
    least = half_square(best)[0] + alpha * penalty
    assert result.success
    assert result.lower_bound <= least * (1.0 + 1e-12)
    assert result.fun == pytest.approx(least, rel=2e-5)
    # F is strongly convex with the constant one.
    assert 0.5 * (result.x - best) @ (result.x - best) <= 2e-5 * least


def test_l1_norms_without_infimum_end_at_small_subgradients():
    center = np.array([3.0, -2.0, 0.1])

    def half_square(w):
        return 0.5 * float((w - center) @ (w - center)), w - center

    result = minimize(half_square, np.ones(3), "owlqn", alpha=0.5, l1_ratio=1.0)
    assert (result.success, result.gap) == (True, np.inf)
    assert_allclose(result.x, [2.5, -1.5, 0.0], atol=1e-5)


def hinge_risk(seed=0):
    X, y = make_classification(60, 5, random_state=seed)
    signs = 2.0 * y - 1.0

    def risk(w):
        margins = 1.0 - signs * (X @ w)
        return float(np.maximum(margins, 0.0).mean()), -(
            X.T @ (signs * (margins > 0.0)) / len(y)
        )

    return X, y, risk


@pytest.mark.parametrize("method", ["ls-bmrm", "bmrm", "sublbfgs"])
def test_hinges_as_of_the_estimator(method):
    X, y, risk = hinge_risk()
    model = SubLBFGSLinearSVC(0.1, fit_intercept=False, tol=1e-9).fit(X, y)
    result = minimize(risk, np.zeros(5), method, alpha=0.1, tol=1e-5)
    assert result.success
    assert result.fun == pytest.approx(model.objective_, abs=1e-5)
    assert result.lower_bound <= model.objective_ * (1.0 + 1e-12)


def test_smooth_functions_end_at_small_gradients():
    A = np.random.default_rng(0).normal(size=(20, 5))

    def square(w):
        return 0.5 * float(np.square(A @ w - 1.0).sum()), A.T @ (A @ w - 1.0)

    best = np.linalg.lstsq(A, np.ones(20), rcond=None)[0]
    for method in QUASI_NEWTON:
        result = minimize(square, np.zeros(5), method, tol=1e-8)
        assert result.success
        assert_allclose(result.x, best, atol=1e-7)
        assert np.abs(result.jac).max() <= 1e-8 * max(1.0, result.fun)
        assert result.gap == np.inf


def test_a_subgradient_of_zero_proves_the_minimum():
    result = minimize(lambda w: (max(0.0, w[0]), (w > 0.0) * 1.0), [3.0], "bfgs")
    assert (result.success, result.fun, result.gap) == (True, 0.0, 0.0)


def test_an_infimum_that_is_reached_proves_the_minimum():
    result = minimize(MAXQ[0], MAXQ[2], "lbfgs", infimum=0.0, tol=1e-7)
    assert result.success
    assert 0.0 <= result.fun == result.gap <= 1e-7


def test_calls_are_counted_and_arguments_are_passed_on():
    calls = []

    def shifted(w, center, factor):
        calls.append(w)
        return factor * float(np.abs(w - center).sum()), factor * np.sign(w - center)

    def steepest(w, p, center, factor):
        return factor * np.where(w == center, np.sign(p), np.sign(w - center))

    args = (np.array([1.0, -2.0]), 3.0)
    result = minimize(shifted, [0, 5], args=args, steepest=steepest, infimum=0.0)
    assert result.nfev == len(calls)
    assert_allclose(result.x, args[0], atol=1e-6)
    # The same function and arguments as for SciPy.
    theirs = optimize.minimize(shifted, [0.0, 5.0], args=args, jac=True)
    assert result.fun <= theirs.fun + 1e-6


@pytest.mark.parametrize("method", ["bmrm", "subbfgs", "proximal-bundle"])
@pytest.mark.parametrize("n_calls", [0, 1, 4])
def test_functions_do_not_stop_a_run(method, n_calls):
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) > n_calls:
            raise StopIteration
        return MAXQ[0](x)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        minimize(function, MAXQ[2], method, alpha=1e-3)


@pytest.mark.parametrize("stop", [True, StopIteration])
def test_callbacks_stop_a_run(stop):
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        if intermediate_result.nit == 2:
            if stop is True:
                return True
            raise StopIteration
        return False

    result = minimize(MAXQ[0], MAXQ[2], "bmrm", alpha=1e-3, callback=callback)
    assert (result.status, result.success, result.nit) == (99, False, 2)
    assert [each.nit for each in seen] == [0, 1, 2]
    assert [each.fun for each in seen] == result.history.objective
    assert "callback" in result.message


def test_limits_and_functions_without_minimum_are_no_success():
    result = minimize(MAXQ[0], MAXQ[2], "bfgs", max_iter=3)
    assert (result.status, result.success, result.nit) == (1, False, 3)
    result = minimize(lambda w: (-w[0], -np.ones(1)), [0.0], "bfgs")
    assert (result.status, result.success) == (2, False)
    assert "without end" in result.message


def test_functions_with_a_domain():
    # -log w + w, infinite for w <= 0.
    def barrier(w):
        if w[0] <= 0.0:
            return np.inf, np.array([np.nan])
        return w[0] - np.log(w[0]), 1.0 - 1.0 / w

    result = minimize(barrier, [30.0], "bfgs", tol=1e-8)
    assert result.success
    assert_allclose(result.x, 1.0, atol=1e-6)
    with pytest.raises(ValueError, match="finite value at w0"):
        minimize(barrier, [-1.0], "bfgs")


@pytest.mark.parametrize("method", ["ls-bmrm", "lbfgs"])
@pytest.mark.parametrize(
    "function",
    [lambda w: (-w @ w, -2.0 * w), lambda w: (w @ w, -w)],
    ids=["not convex", "no subgradient"],
)
def test_what_contradicts_convexity_is_an_error(method, function):
    with pytest.raises(ValueError, match="value_and_subgradient contradicts itself"):
        minimize(function, [1.0, 1.0], method, alpha=0.1)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (1.0, TypeError, "must return a pair"),
        ((1.0, np.zeros(3)), ValueError, r"array of shape \(2,\).*got shape \(3,\)"),
        ((1.0, np.zeros(2, np.float32)), TypeError, "float64, got float32"),
        ((1.0, np.array([0.0, np.nan])), ValueError, "1 of 2 are NaN"),
        ((np.nan, np.zeros(2)), ValueError, "returned the value nan at w = "),
        (("a", np.zeros(2)), TypeError, "real number as the value, got str"),
        ((np.zeros(2), np.zeros(2)), TypeError, r"of shape \(2,\)"),
    ],
    ids=str,
)
def test_what_functions_return_is_checked(returned, error, message):
    with pytest.raises(error, match=message):
        minimize(lambda w: returned, np.ones(2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "newton"}, ValueError, "method must be one of 'sublbfgs'"),
        ({"method": "bmrm"}, ValueError, "needs a penalty, alpha > 0.*'bfgs', 'newton"),
        ({"bounds": [(0, 1)]}, ValueError, "no bounds. scipy.optimize.*coef_bounds"),
        ({"jac": False}, TypeError, "jac must be True.*Differences of values"),
        ({"options": {"maxiter": 0}}, ValueError, "max_iter must be .*>= 1"),
        ({"method": "Newton-CG"}, ValueError, "'newton-cg' needs hessp"),
        ({"method": "BFGS", "hessp": l1}, ValueError, "hessp has no effect.*'bfgs'"),
        ({"method": "owlqn", "alpha": 1.0}, ValueError, "does not support l1_ratio=0"),
        (
            {"method": "bfgs", "alpha": 1.0, "l1_ratio": 0.5},
            ValueError,
            "methods that do are 'owlqn', 'owlqn\\*', 'fista', 'ista', 'subgradient', "
            "'ls-bmrm', 'bmrm', 'proximal-bundle', 'trust-region-bundle'\\.",
        ),
        ({"l1_ratio": 0.5}, ValueError, "l1_ratio=0.5 needs alpha > 0"),
        (
            {"method": "bmrm", "alpha": 1.0, "l1_ratio": 1.0},
            ValueError,
            "needs infimum, a lower bound",
        ),
        ({"alpha": -1.0}, ValueError, "alpha must be finite and >= 0"),
        ({"tol": "a"}, TypeError, "tol must be a number"),
        ({"max_iter": 0}, ValueError, "max_iter must be .*>= 1"),
        ({"infimum": np.nan}, ValueError, "infimum must be"),
        ({"infimum": np.inf}, ValueError, "infimum must be"),
        ({"args": 3}, TypeError, "args must be a tuple"),
        ({"steepest": 3}, TypeError, "steepest must be callable"),
        (
            {"steepest": l1_steepest, "method": "bfgs"},
            ValueError,
            "steepest has no effect with method='bfgs'",
        ),
        ({"options": [1]}, TypeError, "options must be a dict"),
        (
            {"method": "bfgs", "options": {"memory": 3}},
            ValueError,
            "'memory', but of method='bfgs' are line_search, c1, c2",
        ),
        ({"options": {"ephsilon": 3}}, ValueError, "Did you mean 'epsilon'"),
        ({"options": {"c2": -1}}, ValueError, r"options\['c2'\] must be"),
        ({"options": {"c1": 0.95}}, ValueError, "less than c2, got c1=0.95 and c2=0.9"),
        ({"callback": 3}, TypeError, "callback must be callable"),
        ({"w0": [[1.0]]}, ValueError, r"shape \(d,\) with d >= 1, got \(1, 1\)"),
        ({"w0": []}, ValueError, r"got \(0,\)"),
        ({"w0": [1.0, np.inf]}, ValueError, "w0 must be finite"),
        ({"w0": [1j]}, TypeError, "w0 must be real numbers"),
    ],
)
def test_arguments_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        minimize(**{"value_and_subgradient": l1, "w0": np.ones(2), **options})


def test_options_reach_the_methods():
    f, w0 = MAXQ[0], MAXQ[2]
    plain = minimize(f, w0, "lbfgs", max_iter=60)
    short = minimize(f, w0, "lbfgs", max_iter=60, options={"memory": 1})
    assert plain.fun != short.fun
    strict = minimize(f, w0, "bfgs", max_iter=60, options={"c2": 0.1, "c1": 0.01})
    assert strict.nfev != minimize(f, w0, "bfgs", max_iter=60).nfev
    bundle = {"alpha": 1e-3, "max_iter": 20, "tol": 0.0}
    small = minimize(f, w0, "bmrm", **bundle, options={"bundle_size": 2})
    assert small.lower_bound < minimize(f, w0, "bmrm", **bundle).lower_bound


@pytest.mark.parametrize(
    "options", [{"memory": 5}, {"direction_tol": 1e-4}, {"c1": 0.1}]
)
def test_options_of_other_methods_than_the_default_say_which(options):
    f, w0 = MAXQ[0], MAXQ[2]
    match = f"{next(iter(options))}.*'ls-bmrm'.*Give method= one of 'sublbfgs', "
    with pytest.raises(ValueError, match=match):
        minimize(f, w0, alpha=1e-2, options=options)
    assert minimize(f, w0, "sublbfgs", alpha=1e-2, options=options).nit > 0


def test_the_default_takes_options_of_bundles():
    f, w0 = MAXQ[0], MAXQ[2]
    options = {"bundle_size": 20}
    assert minimize(f, w0, alpha=1e-2, options=options).success


def test_the_default_proves_an_optimum_with_a_penalty():
    """A maximum of affine functions, whose kinks stop methods for smooth functions."""
    rng = np.random.default_rng(0)
    slopes, levels = rng.normal(size=(30, 8)), rng.normal(size=30)

    def largest(w):
        values = slopes @ w + levels
        return values.max(), slopes[values.argmax()]

    result = minimize(largest, np.zeros(8), alpha=1e-2)
    assert result.success
    assert result.gap <= 1e-6 * max(1.0, abs(result.fun))


def logistic(w, hilly=1.0):
    X, y = make_classification(60, 8, random_state=0)
    X = X * np.logspace(0.0, hilly, 8)
    z = np.where(y > 0, 1.0, -1.0) * (X @ w)
    u = -np.where(y > 0, 1.0, -1.0) * special.expit(-z) / len(z)
    value = np.logaddexp(0.0, -z).mean() + 5e-3 * w @ w
    return value, X.T @ u + 1e-2 * w


def logistic_product(w, v, hilly=1.0):
    X, _ = make_classification(60, 8, random_state=0)
    X = X * np.logspace(0.0, hilly, 8)
    z = X @ w
    h = special.expit(z) * special.expit(-z) / len(z)
    return X.T @ (h * (X @ v)) + 1e-2 * v


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("method", [None, "Newton-CG", "trust-region"])
def test_products_with_the_hessian(method, alpha):
    result = minimize(
        logistic, np.ones(8), method, args=(1.5,), hessp=logistic_product, alpha=alpha
    )
    best = optimize.minimize(
        lambda w: logistic(w, 1.5)[0] + 0.5 * alpha * w @ w,
        np.zeros(8),
        jac=lambda w: logistic(w, 1.5)[1] + alpha * w,
        method="BFGS",
        options={"gtol": 1e-9},
    ).fun
    assert result.success
    assert result.nit < 30
    assert result.fun == pytest.approx(best, rel=2e-6)
    assert result.lower_bound <= best * (1.0 + 1e-9)
    assert np.isfinite(result.gap) == (alpha > 0.0)


def test_calls_in_the_manner_of_scipy():
    call = {"jac": lambda w, c: 2.0 * (w - c), "args": (3.0,), "method": "L-BFGS-B"}
    peer = optimize.minimize(lambda w, c: (w - c) @ (w - c), np.zeros(4), **call)
    call["method"] = "LBFGS"
    seen = []
    result = minimize(
        lambda w, c: (w - c) @ (w - c), np.zeros(4), callback=seen.append, **call
    )
    assert_allclose(result.x, peer.x, atol=1e-6)
    assert_allclose(seen[-1], result.x)
    call["options"] = {"maxiter": 1}
    assert minimize(lambda w, c: (w - c) @ (w - c), np.zeros(4), **call).nit == 1


def test_the_default_without_a_penalty_ends_on_bad_scales():
    result = minimize(logistic, np.zeros(8), args=(4.0,))
    peer = minimize(logistic, np.zeros(8), "bfgs", args=(4.0,))
    assert result.success
    assert result.fun == peer.fun


@pytest.mark.parametrize("function", [logistic, lambda w: (w @ w, 2.0 * w)])
@pytest.mark.parametrize("method", ["sublbfgs", "subbfgs", "lbfgs", "bfgs"])
def test_gradients_of_the_wrong_sign_are_told(method, function):
    calls = []

    def wrong(w):
        value, gradient = function(w)
        calls.append(w)
        return value, -gradient

    with pytest.raises(ValueError, match="has the wrong sign: the difference quotient"):
        minimize(wrong, np.ones(8), method)
    assert len(calls) < 100


def test_public_names_are_listed():
    assert dir(sklearn_subqn.optimize) == sorted(sklearn_subqn.optimize.__all__)
