"""The method of multipliers and the hybrid: valid bounds, convergence, warm starts."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    SOLVERS,
    CutBundle,
    Options,
    Start,
    Stopping,
    alm,
    divide_rows_for_threads,
    run,
    to_the_end,
)
from _optimum import enclose, objective
from _problems import EXPLORE, binary_objective, gaussian_data, margin_data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import SubLBFGSLinearSVC

METHODS = ["alm", "auto"]
each_method = pytest.mark.parametrize("method", METHODS)

#: Objectives are sums of terms of size one; below this all is rounding.
ROUNDING = 1e-12


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Threads take part however small the data."""
    divide_rows_for_threads(monkeypatch, 1)


@pytest.fixture(autouse=True)
def no_loop(monkeypatch):
    """The hybrid is chosen for few rows of data, too."""
    monkeypatch.setattr("sklearn_subqn._core.solvers.plan_conditions.MOST_ENTRIES", 0)


@st.composite
def problems(draw):
    """Hinge problems of many kinds: (X, y, weights, alpha)."""
    n = draw(st.integers(2, 14))
    d = draw(st.sampled_from([1, 2, 3, 4, 20]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "shifted", "separable", "integers", "ties"]))
    X, y = gaussian_data(rng, n, d, shift=0.5 if kind == "shifted" else 0.0)
    if kind == "separable":
        X[:, 0] = y * (1.0 + rng.random(n))
    elif kind == "integers":
        X = rng.integers(-1, 2, size=(n, d)).astype(float)
    elif kind == "ties":
        X, y, _ = margin_data(rng, n, d)
        y[0], y[-1] = 1.0, -1.0
    if draw(st.booleans()):
        rows = rng.integers(0, n, size=n)
        rows[:2] = 0, n - 1
        X, y = X[rows], y[rows]
    scale = draw(st.sampled_from(["one", "common", "columns"]))
    if scale == "common":
        X = X * 10.0 ** draw(st.integers(-6, 6))
    elif scale == "columns":
        X = X * 10.0 ** rng.integers(-6, 7, size=d)
    weights = np.ones(n)
    kind = draw(st.sampled_from(["equal", "zeros", "ratios"]))
    if kind == "zeros":
        weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=n)
        for sign in (-1.0, 1.0):
            weights[np.flatnonzero(y == sign)[0]] = 1.0
    elif kind == "ratios":
        weights = 10.0 ** rng.integers(-6, 7, size=n)
    return X, y, weights, 10.0 ** draw(st.integers(-4, 1))


def recorded(solver, iterates):
    """The same solver; its iterates are kept."""
    while True:
        try:
            iterates.append(next(solver))
        except StopIteration as stop:
            return stop.value
        yield iterates[-1]


def solve(o, method, *, w=None, dual=None, tol=1e-9, max_iter=1000):
    """Run; return the result and all that the solver yielded."""
    start = Start(np.zeros(o.n_params) if w is None else w, dual)
    iterates = []
    solver = to_the_end(SOLVERS[method].start(o, start, Options()))
    solver = recorded(solver, iterates)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        result = run(
            solver, Stopping(tol), max_iter=max_iter, bundle=partial(CutBundle, o)
        )
    return result, iterates


def rounding_errors(iterates):
    """What rounding may leave of scores that were updated along steps."""
    scores = [np.max(np.abs(iterate.point.scores)) for iterate in iterates]
    return ROUNDING * max(1.0, *scores, 1.0)


def assert_valid(result, iterates, lower, upper):
    """Bounds are below the optimum, and objectives above it."""
    rounding = rounding_errors(iterates)
    for iterate in iterates:
        assert iterate.lower_bound <= upper + ROUNDING
        assert iterate.point.value >= lower - rounding
    assert result.lower_bound <= upper + ROUNDING
    assert result.point.value >= lower - rounding


def assert_converged(result, iterates, tol=1e-9):
    rounding = rounding_errors(iterates)
    assert result.gap <= tol * result.point.value + rounding


def overlapping(seed=0, n=60, d=5, **options):
    X, y = gaussian_data(np.random.default_rng(seed), n, d)
    return binary_objective(X, y, **{"alpha": 1e-3, **options})


# Bounds and convergence


@each_method
@EXPLORE
@given(problem=problems(), fit_intercept=st.booleans())
def test_bounds_enclose_the_optimum_and_meet(method, problem, fit_intercept):
    X, y, weights, alpha = problem
    o = binary_objective(
        X, y, weights=weights, alpha=alpha, fit_intercept=fit_intercept
    )
    result, iterates = solve(o, method)
    ends = enclose(X, y, alpha, weights, fit_intercept=fit_intercept)
    assert_valid(result, iterates, *ends)
    assert_converged(result, iterates)
    # The value is that of w, not of scores that have drifted from it.
    coef, intercept = o.design.split(result.point.w)
    value = objective(X, y, coef, intercept, alpha, weights)
    rounding = rounding_errors(iterates)
    assert result.point.value == pytest.approx(value, rel=1e-9, abs=rounding)


@each_method
@pytest.mark.parametrize("container", ["float32", "CSR", "float32 CSR", "Fortran"])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_containers_and_threads(method, container, n_threads, fit_intercept):
    X, y = gaussian_data(np.random.default_rng(3), 60, 5)
    X = X.astype(np.float32).astype(float)
    convert = {
        "float32": lambda X: X.astype(np.float32),
        "CSR": sparse.csr_array,
        "float32 CSR": lambda X: sparse.csr_array(X.astype(np.float32)),
        "Fortran": np.asfortranarray,
    }[container]
    options = {"alpha": 1e-2, "fit_intercept": fit_intercept}
    o = binary_objective(convert(X), y, n_threads=n_threads, **options)
    result, iterates = solve(o, method)
    assert_valid(result, iterates, *enclose(X, y, 1e-2, fit_intercept=fit_intercept))
    assert_converged(result, iterates)
    plain, _ = solve(binary_objective(X, y, **options), method)
    assert result.point.value == pytest.approx(plain.point.value, rel=1e-8)
    assert_allclose(result.point.w, plain.point.w, rtol=1e-3, atol=1e-4)


@each_method
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_all_rows_on_the_margin_at_the_start(method, fit_intercept):
    X, y, coef = margin_data(np.random.default_rng(1), 12, 3)
    o = binary_objective(X, y, alpha=0.125, fit_intercept=fit_intercept)
    w = np.append(coef, np.zeros(o.n_params - 3))
    assert o.at(w).kinks.size == 12
    result, iterates = solve(o, method, w=w)
    assert_valid(result, iterates, *enclose(X, y, 0.125, fit_intercept=fit_intercept))
    assert_converged(result, iterates)


@pytest.mark.parametrize("scale", 10.0 ** np.arange(-6, 1))
def test_narrow_envelopes_still_prove_bounds(scale):
    # Where scores differ little the envelopes must become narrow, and the intercept
    # cannot balance the dual variables up to rounding any more.
    X = scale * np.random.default_rng(0).integers(-1, 2, size=(9, 2))
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    result, iterates = solve(binary_objective(X, y, alpha=10.0), "alm", tol=1e-12)
    assert_valid(result, iterates, *enclose(X, y, 10.0))
    assert_converged(result, iterates, 1e-12)


@each_method
@pytest.mark.parametrize("n_rows", [2, 200])
def test_every_dual_is_feasible(method, n_rows):
    o = overlapping(n=n_rows)
    result, iterates = solve(o, method)
    assert_converged(result, iterates)
    for iterate in iterates:
        if iterate.phase != "alm":
            continue
        assert np.all(iterate.dual * o.targets <= 0.0)
        assert np.all(-iterate.dual * o.targets <= o.weights * (1.0 + 1e-15))
        assert abs(iterate.dual.sum()) <= 1e-13
        v = o.design.adjoint(iterate.dual)[:-1]
        bound = -(v @ v) / (2.0 * o.alpha) - iterate.dual @ o.targets
        assert iterate.lower_bound == pytest.approx(bound, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("width", [1e-4, 1e-2, 1.0, 100.0])
def test_the_width_decides_the_speed_only(width):
    o = overlapping()
    reference, _ = solve(o, "alm", tol=1e-11)
    iterates = []
    solver = recorded(alm(o, Start(np.zeros(o.n_params)), width=width), iterates)
    result = run(solver, Stopping(1e-9), max_iter=2000)
    assert_converged(result, iterates)
    assert result.point.value == pytest.approx(reference.point.value, rel=1e-9)


# History, limits, determinism


def test_auto_goes_on_with_a_dual_at_once():
    o = overlapping()
    first, _ = solve(o, "auto")
    again, _ = solve(o, "auto", w=first.point.w, dual=first.dual)
    assert again.n_iter <= 0.3 * first.n_iter


@each_method
@pytest.mark.parametrize("max_iter", [1, 2, 5, 9])
def test_max_iter(method, max_iter):
    o = overlapping(alpha=1e-4)
    result, iterates = solve(o, method, tol=0.0, max_iter=max_iter)
    assert (result.status, result.n_iter) == ("max_iter", max_iter)
    assert len(iterates) == max_iter + 1


@each_method
@pytest.mark.parametrize("n_threads", [1, 2])
def test_deterministic(method, n_threads):
    X, y = gaussian_data(np.random.default_rng(0), 80, 6)
    first, second = (
        solve(binary_objective(X, y, alpha=1e-3, n_threads=n_threads), method)[0]
        for _ in range(2)
    )
    assert_array_equal(first.point.w, second.point.w)
    assert_array_equal(first.dual, second.dual)
    assert first.history.objective == second.history.objective
    assert first.history.lower_bound == second.history.lower_bound


@each_method
def test_tolerance_zero_ends(method):
    result, _ = solve(overlapping(n=20, alpha=0.1), method, tol=0.0)
    assert result.status in ("converged", "no_progress", "stalled")
    assert result.gap <= 1e-12


# Warm starts


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25, 2.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_duals_of_a_similar_problem_save_iterations(factor, fit_intercept):
    X, y = gaussian_data(np.random.default_rng(5), 400, 8)

    def problem(alpha):
        return binary_objective(X, y, alpha=alpha, fit_intercept=fit_intercept)

    first, _ = solve(problem(1e-3), "auto")
    o = problem(1e-3 * factor)
    cold, _ = solve(o, "auto")
    warm, iterates = solve(o, "auto", w=first.point.w, dual=first.dual)
    assert_converged(warm, iterates)
    assert warm.n_iter < cold.n_iter
    assert warm.point.value == pytest.approx(cold.point.value, rel=1e-9)


@each_method
@EXPLORE
@given(
    problem=problems(),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 99),
    inside=st.booleans(),
)
def test_any_dual_may_start(method, problem, fit_intercept, seed, inside):
    X, y, weights, alpha = problem
    o = binary_objective(
        X, y, weights=weights, alpha=alpha, fit_intercept=fit_intercept
    )
    rng = np.random.default_rng(seed)
    dual = -rng.random(len(y)) * o.weights * y
    if not inside:
        dual = 10.0 ** rng.integers(-3, 9) * rng.normal(size=len(y))
    # Scores of size one, in case the features are large.
    w = rng.normal(size=o.n_params) / max(1.0, np.max(np.abs(X)))
    result, iterates = solve(o, method, w=w, dual=dual)
    ends = enclose(X, y, alpha, weights, fit_intercept=fit_intercept)
    assert_valid(result, iterates, *ends)
    assert_converged(result, iterates)


def test_duals_outside_the_box_are_clipped():
    o = overlapping()
    dual = np.where(np.arange(60) % 2, 1e9, -1e9)
    clipped = np.where(dual * o.targets < 0.0, -o.weights * o.targets, 0.0)
    assert_array_equal(
        BINARY_LOSSES["hinge"].oracle.dual_variables(dual, o.targets, o.weights),
        BINARY_LOSSES["hinge"].oracle.dual_variables(clipped, o.targets, o.weights),
    )
    one, _ = solve(o, "alm", dual=dual)
    two, _ = solve(o, "alm", dual=clipped)
    assert_array_equal(one.point.w, two.point.w)


# The estimator


def medium(seed=0, n=3000, d=10):
    """Data beyond what is solved to the last digit whatever tol is."""
    return gaussian_data(np.random.default_rng(seed), n, d, shift=0.3)


def assert_certified(model, X, y):
    """Bounds hold, by a fit of another method as the reference."""
    coef, intercept = model.coef_[0], model.intercept_[0]
    value = objective(X, y, coef, intercept, model.alpha)
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    reference = SubLBFGSLinearSVC(alpha=model.alpha, solver="alm", tol=1e-8).fit(X, y)
    optimum = reference.objective_
    assert model.objective_ >= (optimum - reference.dual_gap_) - ROUNDING
    assert model.objective_ - model.dual_gap_ <= optimum + ROUNDING
    assert model.dual_gap_ <= model.tol * model.objective_


@each_method
def test_warm_start_refits_from_the_dual(method):
    X, y = medium()
    warm = SubLBFGSLinearSVC(alpha=1e-2, solver=method, tol=1e-6, warm_start=True)
    warm.fit(X, y)
    first = warm.n_iter_
    warm.fit(X, y)
    assert warm.n_iter_ <= 0.3 * first
    warm.set_params(alpha=8e-3).fit(X, y)
    cold = SubLBFGSLinearSVC(alpha=8e-3, solver=method, tol=1e-6).fit(X, y)
    # Iterations of the two methods differ in cost.
    assert warm.history_[0].passes[-1] < cold.history_[0].passes[-1]
    assert_certified(warm, X, y)


@each_method
@pytest.mark.parametrize("change", ["fewer rows", "more rows", "other order", "labels"])
def test_warm_start_on_other_rows(method, change):
    X, y = medium()
    model = SubLBFGSLinearSVC(alpha=1e-2, solver=method, tol=1e-6, warm_start=True)
    model.fit(X[:2500], y[:2500])
    rows = {
        "fewer rows": slice(2400),
        "more rows": slice(None),
        "other order": np.random.default_rng(1).permutation(2500),
        "labels": slice(2500),
    }[change]
    X, y = X[rows], y[rows]
    if change == "labels":
        y = -y
    assert_certified(model.fit(X, y), X, y)


def test_warm_start_for_more_classes_keeps_a_dual_of_each():
    X, _ = medium()
    y = np.arange(len(X)) % 3
    X[np.arange(len(X)), y] += 1.0
    warm = SubLBFGSLinearSVC(alpha=1e-2, tol=1e-6, warm_start=True).fit(X, y)
    warm.set_params(alpha=5e-3).fit(X, y)
    cold = SubLBFGSLinearSVC(alpha=5e-3, tol=1e-6).fit(X, y)
    assert_allclose(warm.objective_, cold.objective_, rtol=2e-6)
    assert np.all(warm.dual_gap_ <= 1e-6 * warm.objective_)


def test_warm_start_with_sample_weight_that_changes():
    X, y = medium()
    weights = np.random.default_rng(2).choice([0.0, 1.0, 5.0], size=len(y))
    model = SubLBFGSLinearSVC(alpha=1e-2, tol=1e-6, warm_start=True).fit(X, y)
    model.fit(X, y, weights)
    n_iter = model.n_iter_
    model.fit(X, y, 2.0 * weights)
    assert model.n_iter_ <= 0.3 * n_iter
    cold = SubLBFGSLinearSVC(alpha=1e-2, tol=1e-6).fit(X, y, weights)
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    model.fit(X, y)
    assert_certified(model, X, y)


def test_warm_start_goes_on_after_max_iter():
    X, y = medium()
    model = SubLBFGSLinearSVC(alpha=1e-3, solver="alm", tol=1e-6, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_iter=3).fit(X, y)
    gap = model.dual_gap_
    model.set_params(max_iter=1000).fit(X, y)
    assert model.dual_gap_ < gap
    assert_certified(model, X, y)


def test_pickles_keep_the_warm_start():
    X, y = medium()
    model = SubLBFGSLinearSVC(alpha=1e-2, tol=1e-6, warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.set_params(alpha=8e-3).fit(X, y)
    assert_array_equal(model.coef_, copy.coef_)
    fresh = clone(model).fit(X, y)
    assert fresh.n_iter_ > copy.n_iter_


def test_duals_are_kept_for_warm_starts_only():
    X, y = medium(n=200)
    cold = SubLBFGSLinearSVC(alpha=1e-2).fit(X, y)
    warm = SubLBFGSLinearSVC(alpha=1e-2, warm_start=True).fit(X, y)
    assert len(pickle.dumps(warm)) - len(pickle.dumps(cold)) >= 8 * 200


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@each_method
def test_n_jobs_changes_rounding_only(method, dtype):
    X, y = medium()
    X = X.astype(dtype)
    one, two = (
        SubLBFGSLinearSVC(alpha=1e-2, solver=method, tol=1e-5, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    assert one.coef_.dtype == two.coef_.dtype == dtype
    assert_allclose(one.coef_, two.coef_, rtol=1e-2, atol=1e-3)
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-5)
