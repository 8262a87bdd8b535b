"""Lower bounds against optima from elsewhere."""

from functools import partial

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Cut,
    CutBundle,
    LimitedMemoryInverseHessian,
    Stopping,
    minimize_intercept,
    run,
    subbfgs,
)
from _problems import (
    EXPLORE,
    binary_objective,
    binary_problems,
    each_loss,
    gaussian_data,
    kink_objective,
    svc_bounds,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC


def solve(objective, *, tol=1e-6, max_iter=150, size=40, memory=10):
    """Minimize by subLBFGS from zero, with a bundle."""
    w = np.zeros(objective.n_params)
    hessian = LimitedMemoryInverseHessian(objective.n_params, memory)
    bundle = partial(CutBundle, objective, size)
    solver = subbfgs(objective, w, hessian)
    return run(solver, Stopping(tol), max_iter=max_iter, bundle=bundle)


def bundle_optimum(objective, cuts):
    """min alpha Omega(w) + max of cuts, by SciPy on the epigraph."""
    normals = np.array([cut.normal for cut in cuts])
    offsets = np.array([cut.offset for cut in cuts])
    n = objective.regularizer.n_penalized
    start = np.append(np.zeros(n), max(offsets.max(), 0.0))
    found = minimize(
        lambda v: 0.5 * objective.alpha * v[:n] @ v[:n] + v[n],
        start,
        jac=lambda v: np.append(objective.alpha * v[:n], 1.0),
        method="SLSQP",
        bounds=[(None, None)] * n + [(0.0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda v: v[n] - normals[:, :n] @ v[:n] - offsets,
            "jac": lambda v: np.column_stack([-normals[:, :n], np.ones(len(cuts))]),
        },
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.fun


def gaussian_cuts(seed, n_cuts, *, n=40, d=3, **options):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, n, d)
    objective = binary_objective(X, y, **options)
    cuts = [
        minimize_intercept(objective.at(rng.normal(size=objective.n_params))).cut
        for _ in range(n_cuts)
    ]
    return objective, cuts


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_bound_is_the_minimum_of_the_cuts_with_the_penalty(seed, fit_intercept):
    objective, cuts = gaussian_cuts(seed, 8, fit_intercept=fit_intercept)
    bundle = CutBundle(objective)
    for i, cut in enumerate(cuts):
        bundle.add(cut)
        expected = bundle_optimum(objective, cuts[: i + 1])
        assert bundle.improve() == pytest.approx(expected, abs=1e-7)


@each_loss
def test_bound_before_any_cut_is_the_infimum_of_the_risk(loss):
    objective, cuts = gaussian_cuts(0, 1, loss=loss)
    bundle = CutBundle(objective)
    assert bundle.lower_bound == 0.0
    assert bundle.improve() == 0.0
    ((normal, offset, *_),) = cuts
    bundle.add(cuts[0])
    # The best share of the cut, by the derivative of its dual value.
    share = min(max(offset * objective.alpha / (normal @ normal), 0.0), 1.0)
    expected = objective.dual_value(Cut(share * normal, share * offset))
    assert bundle.improve() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_dropped_cuts_never_lower_the_bound(size):
    objective, cuts = gaussian_cuts(1, 30)
    optimum = solve(objective).point.value
    bundle, everything = CutBundle(objective, size), CutBundle(objective, 40)
    before = 0.0
    for cut in cuts:
        bundle.add(cut)
        everything.add(cut)
        bound = bundle.improve()
        # Even without the maximum over time: the aggregate is among the cuts.
        last = bundle._model.lower_bound
        assert last >= before - 1e-12
        assert bound == bundle.lower_bound
        assert bound <= everything.improve() + 1e-12
        assert before <= bound <= optimum
        before = bound
    assert before > 0.0


def test_few_cuts_prove_about_as_early_as_all():
    """Iterates are the same; cuts that the last program used are kept."""
    n_iterations = {40: 0, 1000: 0}
    for seed in range(3):
        X, y = make_classification(300, random_state=seed)
        objective = binary_objective(X, 2.0 * y - 1.0, alpha=1e-2, fit_intercept=True)
        for size in n_iterations:
            result = solve(objective, tol=1e-3, max_iter=400, size=size, memory=15)
            n_iterations[size] += len(result.history.objective) - 1
    assert n_iterations[40] <= 1.2 * n_iterations[1000]


def test_all_stored_cuts_count_until_they_are_dropped():
    objective, cuts = gaussian_cuts(2, 12)
    bundle = CutBundle(objective, 13)
    for cut in cuts:
        bundle.add(cut)
    assert bundle.improve() == pytest.approx(bundle_optimum(objective, cuts), abs=1e-7)
    # With one place less the oldest is gone, of which nothing was used yet.
    bundle = CutBundle(objective, 12)
    for cut in cuts:
        bundle.add(cut)
    expected = bundle_optimum(objective, cuts[1:])
    assert bundle.improve() == pytest.approx(expected, abs=1e-7)


def test_places_are_reused_in_turn():
    """However many cuts came before, the last ones count in full."""
    objective, cuts = gaussian_cuts(3, 25)
    for size in (2, 3, 4):
        for n_cuts in (10, 23, 24, 25):
            bundle = CutBundle(objective, size)
            for cut in cuts[:n_cuts]:
                bundle.add(cut)
            kept = cuts[n_cuts - (size - 1) : n_cuts]
            expected = bundle_optimum(objective, kept)
            assert bundle.improve() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("size", [2, 5])
def test_cuts_that_are_not_level_are_ignored(size):
    objective, cuts = gaussian_cuts(4, 4)
    bundle, expected = CutBundle(objective, size), CutBundle(objective, size)
    for cut in cuts:
        expected.add(cut)
        bundle.add(cut)
        tilted = cut.normal + np.array([0.0, 0.0, 0.0, 1e-3])
        bundle.add(Cut(tilted, cut.offset + 100.0))
        assert bundle.improve() == expected.improve()


def test_data_of_zeros():
    """Scores are zero whatever w: the bound is exact but for rounding."""
    objective = binary_objective(np.zeros((3, 2)), np.ones(3), fit_intercept=False)
    result = solve(objective)
    assert result.status == "converged"
    assert result.point.value == 1.0
    assert 1.0 - 1e-14 <= result.lower_bound <= 1.0


# Whole runs.


@EXPLORE
@given(problem=binary_problems(), size=st.sampled_from([2, 3, 40]))
def test_hinge_with_intercept_against_libsvm(problem, size):
    X, y, weights, alpha = problem
    objective = binary_objective(X, y, weights=weights, alpha=alpha)
    lower, upper = svc_bounds(X, y, weights, alpha)
    assume(upper - lower <= 1e-3 * upper + 1e-8)
    result = solve(objective, size=size)
    value = objective.at(result.point.w).value
    assert result.point.value == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert result.lower_bound <= upper * (1.0 + 1e-9)
    assert value >= lower - 1e-9 * abs(lower)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_start_with_all_rows_on_the_margin(seed, fit_intercept):
    objective, w = kink_objective(seed, n=12, fit_intercept=fit_intercept)
    assert objective.at(w).kinks.size == 12
    hessian = LimitedMemoryInverseHessian(objective.n_params, 10)
    bundle = CutBundle(objective)
    result = run(
        subbfgs(objective, w, hessian),
        Stopping(1e-6),
        max_iter=100,
        bundle=lambda: bundle,
    )
    X, y = objective.design.X, objective.targets
    if fit_intercept:
        lower, upper = svc_bounds(X, y, objective.weights, objective.alpha)
    else:
        lower = upper = without_intercept(objective)
    assert result.lower_bound <= upper + 1e-9
    assert lower - 1e-9 <= result.point.value <= upper * (1.0 + 1e-5)


def without_intercept(objective):
    """The optimum by liblinear."""
    options = {"fit_intercept": False, "tol": 1e-9, "max_iter": 10**6}
    peer = LinearSVC(loss="hinge", C=1.0, random_state=0, **options)
    weights = objective.weights / objective.alpha
    peer.fit(objective.design.X, objective.targets, sample_weight=weights)
    return objective.at(peer.coef_[0]).value


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-3])
def test_hinge_without_intercept_against_liblinear(seed, alpha):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 30, 3)
    weights = rng.uniform(0.5, 2.0, 30)
    objective = binary_objective(
        X, y, weights=weights, alpha=alpha, fit_intercept=False
    )
    optimum = without_intercept(objective)
    result = solve(objective, max_iter=400)
    assert result.lower_bound <= optimum * (1.0 + 1e-9)
    assert result.point.value >= optimum * (1.0 - 1e-7)
    assert result.point.value <= optimum * (1.0 + 1e-6)
    assert result.status in ("converged", "no_descent", "no_step")
    # At an optimum on kinks the search for a direction may end at its limit, by the
    # rounding of some kernels, before its aggregate is near enough to zero.
    stalled = result.status == "no_descent"
    assert result.gap <= (1e-2 if stalled else 1e-3) * optimum


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_squared_hinge_against_scipy(alpha, fit_intercept):
    rng = np.random.default_rng(5)
    X, y = gaussian_data(rng, 40, 4)
    objective = binary_objective(
        X,
        y,
        loss=BINARY_LOSSES["squared_hinge"],
        weights=rng.uniform(0.5, 2.0, 40),
        alpha=alpha,
        fit_intercept=fit_intercept,
    )

    def function(w):
        point = objective.at(w)
        return point.value, point.gradient

    peer = minimize(
        function,
        np.zeros(objective.n_params),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    result = solve(objective)
    assert result.status == "converged"
    assert result.lower_bound <= peer.fun * (1.0 + 1e-12)
    assert result.point.value == pytest.approx(peer.fun, rel=2e-6)


def test_cuts_of_dual_points_outside_of_the_domain_are_ignored():
    objective, cuts = gaussian_cuts(0, 1)
    bundle = CutBundle(objective)
    bundle.add(cuts[0])
    before = bundle.improve()
    bundle.add(cuts[0]._replace(offset=-np.inf))
    assert bundle.improve() == before
