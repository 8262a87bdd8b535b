"""Bundle methods, their models, and the regularizers (Teo et al. 2010)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    BUNDLE_SOLVERS,
    L2,
    SOLVERS,
    Cut,
    CutBundle,
    Design,
    DualLoss,
    ElasticNet,
    EntropyPenalty,
    NormalizedEntropy,
    Objective,
    Options,
    QuadraticForm,
    Risk,
    Simplex,
    SquaredNorm,
    Start,
    Stopping,
    aggregated_bmrm,
    bmrm,
    exact,
    ls_bmrm,
    minimize_by_cuts,
    minimize_intercept,
    regression_losses,
    run,
)
from _problems import EXPLORE, binary_objective, binary_problems, gaussian_data
from _problems import svc_bounds as bounds_of_svc
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, linprog, minimize

from sklearn_subqn import LinearChainCRF
from sklearn_subqn._core.solvers import bundle as bundle_methods
from sklearn_subqn._core.solvers.proximal_bundle import CenteredModel
from sklearn_subqn._core.steps import cut_model as cut_models
from sklearn_subqn._core.steps import simplex_qp
from sklearn_subqn._core.steps.cut_model import CutModel, L1CutModel, cut_model
from sklearn_subqn._core.steps.kept_cuts import Cuts
from sklearn_subqn.losses import Loss

MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 0.5]])
REGULARIZERS = {
    "l2": L2(3),
    "elastic net": ElasticNet(3, 0.5),
    "p = 1.5": SquaredNorm(3, 1.5),
    "p = 1.1": SquaredNorm(3, 1.1),
    "p = 3": SquaredNorm(3, 3.0),
    "p = 8": SquaredNorm(3, 8.0),
    "quadratic": QuadraticForm(MATRIX),
    "entropy": EntropyPenalty(3),
    "normalized entropy": NormalizedEntropy(3),
}
each_regularizer = pytest.mark.parametrize("name", REGULARIZERS)
each_solver = pytest.mark.parametrize("solver", BUNDLE_SOLVERS)


class SlowHinge(Loss):
    """The hinge by value and subgradient alone."""

    def value(self, scores, targets, weights):
        return BINARY_LOSSES["hinge"].oracle.value(scores, targets, weights)

    def subgradient(self, scores, targets, weights):
        return BINARY_LOSSES["hinge"].oracle.subgradient(scores, targets, weights)


def solve(solver, objective, *, tol=1e-6, max_iter=3000, **options):
    spec = SOLVERS[solver]
    start = Start(objective.regularizer.center(objective.n_params))
    proves = spec.proves or solver == "auto"
    bundle = None if proves else partial(CutBundle, objective)
    generator = spec.start(objective, start, Options(**options))
    return run(generator, Stopping(tol), max_iter=max_iter, bundle=bundle)


# Regularizers


@each_regularizer
def test_conjugates_and_their_derivatives(name):
    omega = REGULARIZERS[name]
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = np.append(rng.normal(size=3), 0.0)
        w = omega.conjugate_gradient(v)
        assert w[3] == 0.0
        both = omega.value(w) + omega.conjugate(v)
        assert both == pytest.approx(v @ w, abs=1e-12)
        h = 1e-6
        steps = h * np.eye(4)[:3]
        rates = [
            (omega.conjugate(v + e) - omega.conjugate(v - e)) / 2 / h for e in steps
        ]
        assert_allclose(w[:3], rates, atol=1e-8)
        A = rng.normal(size=(2, 4))
        moved = [
            omega.conjugate_gradient(v + h * a * [1, 1, 1, 0])
            - omega.conjugate_gradient(v - h * a * [1, 1, 1, 0])
            for a in A
        ]
        expected = A[:, :3] @ (np.array(moved)[:, :3] / (2.0 * h)).T
        assert_allclose(omega.conjugate_gram(v, A), expected, atol=1e-6)


@each_regularizer
def test_gradients_give_lower_bounds(name):
    omega = REGULARIZERS[name]
    rng = np.random.default_rng(1)
    for _ in range(10):
        w, other = (omega.conjugate_gradient(rng.normal(size=4)) for _ in range(2))
        bound = omega.value(w) + omega.gradient(w) @ (other - w)
        assert omega.value(other) >= bound - 1e-13
        # Within the domain up to the longest step, and no further.
        p = rng.normal(size=4) * [1, 1, 1, 0]
        if name == "normalized entropy":
            # Along the simplex.
            p[:3] -= p[:3].mean()
        longest = omega.longest_step(w, p)
        if longest < np.inf:
            assert np.isfinite(omega.value(w + 0.999 * longest * p))
            assert omega.value(w + 1.001 * longest * p) == np.inf


@pytest.mark.parametrize("name", ["p = 1.5", "entropy", "normalized entropy"])
def test_what_is_not_piecewise_quadratic_says_so(name):
    omega = REGULARIZERS[name]
    with pytest.raises(TypeError, match="is not piecewise quadratic"):
        omega.restrict(np.ones(4), np.ones(4))
    with pytest.raises(TypeError, match="no diagonal Hessian"):
        omega.curvature(np.ones(4))


def test_the_l1_norm_has_no_differentiable_conjugate():
    with pytest.raises(TypeError, match="no differentiable conjugate"):
        ElasticNet(3).conjugate_gradient(np.ones(3))
    with pytest.raises(TypeError, match="no differentiable conjugate"):
        ElasticNet(3).conjugate_gram(np.ones(3), np.eye(3))


# Models


def model_of(omega, n_cuts=6, alpha=0.3, seed=0):
    """A model of random cuts; nothing else of the objective matters."""
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 4, 3)
    design = Design(X, fit_intercept=False)
    objective = Objective(
        Risk(design, BINARY_LOSSES["hinge"], y, np.full(4, 0.25)), omega, alpha
    )
    cuts = [Cut(rng.normal(size=3), float(rng.normal())) for _ in range(n_cuts)]
    return cut_model(objective, patience=None), cuts


# For p > 2 the model is minimized over several of its calls.
@pytest.mark.parametrize(
    "name", [k for k in REGULARIZERS if k not in ("p = 3", "p = 8")]
)
@pytest.mark.parametrize("seed", range(3))
def test_minimum_of_the_model(name, seed):
    omega = REGULARIZERS[name]
    model, cuts = model_of(omega, seed=seed)
    previous = -np.inf
    for cut in cuts:
        model.add(cut)
        model.minimize()
        # More cuts, a higher model.
        assert model.lower_bound >= previous - 1e-12
        previous = model.lower_bound
    heights = [a @ model.w + b for a, b, *_ in cuts]
    value = 0.3 * omega.value(model.w) + max(heights)
    # Primal and dual values agree: both are optimal. Where the dual is exact to 16
    # digits, its gradient and with it the primal point are to half as many.
    assert value == pytest.approx(model.lower_bound, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_linear_program_with_columns_generated(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    d, alpha = 30, 0.2
    X, y = gaussian_data(rng, 20, d)
    design = Design(X, fit_intercept=False)
    objective = Objective(
        Risk(design, BINARY_LOSSES["hinge"], y, np.full(20, 0.05)), ElasticNet(d), alpha
    )
    model = cut_model(objective)
    assert isinstance(model, L1CutModel)
    A, b = rng.normal(size=(8, d)), rng.normal(size=8)
    for normal, offset in zip(A, b, strict=True):
        model.add(Cut(normal, float(offset)))
    model.minimize()
    value = alpha * np.abs(model.w).sum() + max(0.0, np.max(A @ model.w + b))
    assert value == pytest.approx(model.lower_bound, abs=1e-8)
    full = linprog(
        np.append(np.full(2 * d, alpha), 1.0),
        A_ub=np.hstack([A, -A, -np.ones((8, 1))]),
        b_ub=-b,
        bounds=[(0, None)] * (2 * d + 1),
    )
    assert value == pytest.approx(full.fun, abs=1e-8)


class Kept(NamedTuple):
    """A cut as the bundle should keep it, oldest first in a list."""

    normal: np.ndarray
    offset: float
    x: float
    idle: int


def with_one_more(kept, cut, size, patience):
    """Return the cuts after one is added (Teo et al. 2010, sections 3.1 and 5.1.1)."""
    kept = [each for each in kept if patience is None or each.idle < patience]
    unused = [i for i, each in enumerate(kept) if each.idle > 0]
    if len(kept) == size and unused:
        del kept[unused[0]]
    elif len(kept) == size:
        one, other, *kept = kept
        x = one.x + other.x
        share = one.x / x if x else 0.0
        normal = share * one.normal + (1.0 - share) * other.normal
        offset = share * one.offset + (1.0 - share) * other.offset
        kept = [Kept(normal, offset, x, 0), *kept]
    return [*kept, Kept(cut.normal, cut.offset, 0.0 if kept else 1.0, 0)]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("size", "patience"),
    [(2, None), (3, None), (5, None), (3, 2), (4, 2), (5, 3), (None, 2)],
)
def test_kept_cuts_are_those_of_a_list_by_age(size, patience, seed):
    rng = np.random.default_rng(seed)
    cuts, kept = Cuts(4, size=size, patience=patience), []
    for _ in range(25):
        cut = Cut(rng.normal(size=4), float(rng.normal()))
        kept = with_one_more(kept, cut, size, patience)
        cuts.add(cut, cut.normal)
        # The order of the arrays is free.
        order = [np.abs(cuts.normals - k.normal).sum(axis=1).argmin() for k in kept]
        assert sorted(order) == list(range(cuts.n_cuts))
        assert_allclose(cuts.normals[order], [k.normal for k in kept], atol=1e-14)
        assert_allclose(cuts.offsets[order], [k.offset for k in kept], atol=1e-14)
        assert_allclose(cuts.multipliers[order], [k.x for k in kept], atol=1e-14)
        assert_allclose(cuts.gram, cuts.normals @ cuts.normals.T, atol=1e-12)
        x = rng.dirichlet(np.ones(len(kept))) * (rng.random(len(kept)) < 0.6)
        x[rng.integers(len(x))] += 1.0 - x.sum()
        idle = [0 if new > 0.0 else k.idle + 1 for k, new in zip(kept, x, strict=True)]
        kept = [
            k._replace(x=float(new), idle=count)
            for k, new, count in zip(kept, x, idle, strict=True)
        ]
        multipliers = np.empty(len(kept))
        multipliers[order] = x
        cuts.multipliers = multipliers
        cuts.count_idle()


def test_centered_models_forget_cuts_by_iterations_and_not_by_programs():
    """A radius may take many programs, whose cuts are the same."""
    X = np.array([[1.0], [-0.5], [2.0]])
    y, weights = np.array([1.0, -1.0, 1.0]), np.full(3, 1.0 / 3.0)
    risk = Risk(Design(X, fit_intercept=False), BINARY_LOSSES["hinge"], y, weights)
    objective = Objective(risk, L2(1), 0.1)
    model = CenteredModel(objective.at(np.array([3.0])))
    model.add(objective.at(np.array([-3.0])))
    for zeta in np.geomspace(1e-3, 1e3, 40):
        model.step(float(zeta))
    for place in (1.0, -1.0):
        model.add(objective.at(np.array([place])))
    assert model._cuts.n_cuts == 4


# Methods


@each_solver
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bounds_rise_and_hold_and_the_optimum_is_reached(solver, fit_intercept):
    X, y = gaussian_data(np.random.default_rng(0), 80, 4)
    objective = binary_objective(X, y, alpha=0.05, fit_intercept=fit_intercept)
    best = solve("auto", objective, tol=1e-12)
    optimum, lowest = best.point.value, best.lower_bound
    tol = 1e-3 if solver == "bmrm-aggregated" else 1e-5
    result = solve(solver, objective, tol=tol)
    assert result.status == "converged"
    assert lowest - 1e-12 <= result.point.value <= optimum * (1.0 + 1.1 * tol)
    bounds = np.array(result.history.lower_bound)
    assert np.all(bounds[1:] >= bounds[:-1])
    assert np.all(bounds <= optimum + 1e-12)
    # The gap is never less than the true one.
    gaps = np.array(result.history.objective) - bounds
    assert np.all(gaps >= np.array(result.history.objective) - optimum - 1e-12)


@pytest.mark.parametrize("solver", ["proximal-bundle", "trust-region-bundle"])
def test_stabilized_methods_leave_a_point_with_kinks_in_every_row(solver):
    # All scores are equal at the origin, where each class is a side of each kink: the
    # model needs many cuts there before any step gains, and steps must not shrink.
    rng = np.random.default_rng(0)
    y = rng.integers(12, size=200)
    X = rng.normal(size=(200, 6)) + 2.0 * rng.normal(size=(12, 6))[y]
    design = Design(X, fit_intercept=False, n_outputs=12)
    objective = Objective(
        Risk(design, DualLoss(Simplex(1.0 - np.eye(12))), y, np.full(200, 1.0 / 200)),
        L2(design.n_coef),
        1e-2,
    )
    optimum = solve("auto", objective, tol=1e-6).point.value
    assert solve(solver, objective, tol=1e-3).point.value <= 1.01 * optimum


@pytest.mark.parametrize("method", [bmrm, ls_bmrm])
def test_the_model_itself_never_falls(method):
    X, y = gaussian_data(np.random.default_rng(1), 60, 3)
    objective = binary_objective(X, y, alpha=0.01)
    bounds = []
    for iterate in method(objective, np.zeros(4), patience=None):
        bounds.append(iterate.lower_bound)
        if iterate.point.value - max(bounds) < 1e-6:
            break
    bounds = np.array(bounds[1:])
    assert np.all(bounds[1:] >= bounds[:-1] - 1e-13)


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("solver", ["bmrm", "ls-bmrm"])
def test_limited_bundles_converge(solver, size):
    X, y = gaussian_data(np.random.default_rng(2), 60, 3)
    objective = binary_objective(X, y, alpha=0.1)
    result = solve(solver, objective, tol=1e-3, bundle_size=size)
    assert result.status == "converged"


def test_larger_bundles_take_fewer_iterations():
    X, y = gaussian_data(np.random.default_rng(2), 200, 5)
    objective = binary_objective(X, y, alpha=0.01)
    counts = [
        solve("bmrm", objective, tol=1e-3, bundle_size=size).n_iter
        for size in (2, 5, None)
    ]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("options", [{"bundle_size": 2}, {"bundle_size": None}])
def test_gaps_shrink_as_theorem_4_says(alpha, options):
    X, y = gaussian_data(np.random.default_rng(1), 300, 5)
    objective = binary_objective(X, y, alpha=alpha, fit_intercept=False)
    result = solve("bmrm", objective, tol=1e-3, **options)
    assert result.status == "converged"
    history = result.history
    gaps = (np.array(history.objective) - np.array(history.lower_bound))[1:]
    # No subgradient of the risk is longer than the mean of the rows' norms.
    G = objective.weights @ np.linalg.norm(X, axis=1)
    least = 0.5 * gaps[:-1] * np.minimum(1.0, 0.25 * alpha * gaps[:-1] / G**2)
    assert np.all(gaps[:-1] - gaps[1:] >= least)
    # Iterations grow no faster than the 1 / eps of theorem 5 (figure 5: more slowly).
    counts = [np.argmax(gaps <= tol * result.point.value) for tol in (1e-1, 1e-2, 1e-3)]
    assert counts[2] <= 10 * counts[1] <= 100 * counts[0]


UNSCALED = {
    "elastic net": ElasticNet(2, 0.5),
    "p = 1.2": SquaredNorm(2, 1.2),
    "p = 4": SquaredNorm(2, 4.0),
    "entropy": EntropyPenalty(2),
    "normalized entropy": NormalizedEntropy(2),
    "quadratic": QuadraticForm(np.diag([1.0, 2.0])),
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", UNSCALED)
def test_no_more_cuts_have_multipliers_than_parameters_ask_for(name, loss):
    # In large units, cuts that repeat others up to rounding all kept multipliers.
    rng = np.random.default_rng(0)
    X, omega = 1e3 * rng.normal(size=(20, 2)), UNSCALED[name]
    y = np.where(X[:, 0] + 1e3 * rng.normal(size=20) > 0.0, 1.0, -1.0)
    risk = Risk(
        Design(X, fit_intercept=False), BINARY_LOSSES[loss], y, np.full(20, 0.05)
    )
    objective = Objective(risk, omega, 1e-3)
    model = cut_model(objective)
    counts = []
    for iterate in ls_bmrm(objective, omega.center(2), model=model):
        counts.append(np.count_nonzero(model.cuts.multipliers))
        # Two new cuts an iteration, which stay for ten.
        assert model.cuts.n_cuts <= 3 + 2 * 11
        if iterate.gap <= 1e-10 * abs(iterate.point.value):
            break
    assert max(counts) <= 3
    assert len(counts) <= 50


def test_the_minimizer_has_the_digits_of_its_last_step():
    # Before Newton's last step is taken, w has half the digits of the bound, and cuts
    # there do not help any more.
    X, y = gaussian_data(np.random.default_rng(3), 30, 3)
    risk = Risk(
        Design(X, fit_intercept=False), BINARY_LOSSES["hinge"], y, np.full(30, 1 / 30)
    )
    objective = Objective(risk, EntropyPenalty(3), 1e-2)
    result = solve("ls-bmrm", objective, tol=1e-11)
    assert result.status == "converged"
    assert result.n_iter <= 15


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quadratic_programs_end_where_only_rounding_is_left(monkeypatch):
    # Where all rows can be right and alpha is tiny, indices came and went without
    # lowering the value until the limit of ten iterations for each cut.
    counts = []
    solve_program = simplex_qp.simplex.minimize

    def counted(Q, c, *others):
        counts.append((solve_program(Q, c, *others), len(c)))

    monkeypatch.setattr(simplex_qp.simplex, "minimize", counted)
    rng = np.random.default_rng(1)
    X = np.split(rng.standard_cauchy(size=(24, 20)), 6)
    y = [list(labels) for labels in np.split(rng.integers(3, size=24).astype(str), 6)]
    model = LinearChainCRF(1e-8, loss="hinge", max_iter=300).fit(X, y)
    assert model.dual_gap_ <= 1e-2 * model.objective_
    assert len(counts) >= 50
    assert all(count <= 20 + 3 * n_cuts for count, n_cuts in counts)


def test_quadratic_programs_go_on_at_degenerate_vertices():
    # With offsets this small normals cancel at the minimum, that of a linear program.
    # Rounding leaves 93 % of it; ending after ten exchanges without gain left 88 %.
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 5))
    offsets = np.append(0.0, rng.integers(1, 6, size=60)[1:])
    start = np.append(1.0, 1e-13 * rng.dirichlet(np.ones(59)))
    x = simplex_qp.minimize_on_simplex(A @ A.T, 1e-13 * offsets, start)
    equations = np.column_stack([A, np.ones(60)]).T
    exact = linprog(-offsets, A_eq=equations, b_eq=np.append(np.zeros(5), 1.0))
    assert offsets @ x >= 0.9 * -exact.fun


@pytest.mark.parametrize("method", [bmrm, ls_bmrm])
@pytest.mark.parametrize("n", [3, 70])
def test_bundle_methods_end_where_gaps_hardly_shrink(method, n, monkeypatch):
    # They went on to max_iter, with bounds that rise by the same tiny amount each time.
    class Slow(CutModel):
        def minimize(self):
            self.lower_bound = 1e-4 * self.cuts.n_cuts

    X, y = gaussian_data(np.random.default_rng(3), 10, n)
    objective = binary_objective(X, y, alpha=1.0)
    model = Slow(objective, Cuts(objective.n_params, patience=None))
    monkeypatch.setattr(bundle_methods, "cut_model", lambda *args, **options: model)
    solver = method(objective, np.zeros(objective.n_params))
    result = run(solver, Stopping(1e-9), max_iter=400)
    assert result.status == "stalled"
    assert result.n_iter >= 2 * objective.n_params


def test_aggregated_bmrm_needs_no_quadratic_program(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a quadratic program")

    monkeypatch.setattr(cut_models, "minimize_on_simplex", refuse)
    X, y = gaussian_data(np.random.default_rng(3), 60, 3)
    objective = binary_objective(X, y, alpha=0.1)
    result = solve("bmrm-aggregated", objective, tol=1e-3)
    assert result.status == "converged"


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_aggregated_bmrm_is_bmrm_with_two_cuts(fit_intercept):
    X, y = gaussian_data(np.random.default_rng(4), 60, 3)
    objective = binary_objective(X, y, alpha=0.1, fit_intercept=fit_intercept)
    start = np.zeros(objective.n_params)
    pairs = zip(
        aggregated_bmrm(objective, start),
        bmrm(objective, start, size=2, patience=None),
        strict=False,
    )
    for _, (first, second) in zip(range(30), pairs, strict=False):
        assert_allclose(first.point.w, second.point.w, atol=1e-9)
        assert first.lower_bound == pytest.approx(second.lower_bound, abs=1e-10)


def test_bmrm_converges_about_as_log_of_the_gap():
    # Figures 4 and 5: iterations grow far more slowly than the 1 / eps of theorem 5.
    X, y = gaussian_data(np.random.default_rng(5), 1000, 5)
    objective = binary_objective(X, y, alpha=0.01)
    counts = [solve("bmrm", objective, tol=tol).n_iter for tol in (1e-2, 1e-4, 1e-6)]
    assert counts[2] - counts[1] < 4.0 * (counts[1] - counts[0] + 10)
    assert counts[2] < 1000


@EXPLORE
@given(problem=binary_problems())
def test_ls_bmrm_encloses_the_optimum(problem):
    X, y, weights, alpha = problem
    objective = binary_objective(X, y, weights=weights, alpha=alpha)
    result = solve("ls-bmrm", objective, tol=1e-6, max_iter=500)
    lower, upper = bounds_of_svc(X, y, weights, alpha)
    scale = 1e-9 * max(1.0, abs(upper))
    assert result.lower_bound <= upper + scale
    assert result.point.value >= lower - scale
    # Beyond that lies the rounding of scores of about one.
    assert result.gap <= 1e-6 * result.point.value + 1e-13


@pytest.mark.parametrize(
    "loss",
    [
        BINARY_LOSSES["squared_hinge"],
        BINARY_LOSSES["log_loss"],
        BINARY_LOSSES["exponential"],
    ],
)
def test_smooth_losses(loss):
    X, y = gaussian_data(np.random.default_rng(6), 60, 3)
    objective = binary_objective(X, y, alpha=0.05, loss=loss)
    newton = solve("newton-cg", objective, tol=1e-10)
    result = solve("ls-bmrm", objective, tol=1e-5)
    assert result.status == "converged"
    assert result.lower_bound <= newton.point.value + 1e-12
    assert result.point.value <= newton.point.value * (1.0 + 1.1e-5)


def test_steep_losses_from_where_cuts_would_be_useless():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 2))
    y = rng.poisson(np.exp(1.0 + X @ [0.5, -0.5])).astype(float)
    weights = np.full(50, 0.02)
    objective = Objective(
        Risk(Design(X), regression_losses()["poisson"], y, weights), L2(2), 1e-3
    )
    best = solve("newton-cg", objective, tol=1e-10)
    for solver in BUNDLE_SOLVERS:
        result = solve(solver, objective, tol=1e-4, max_iter=3000)
        assert result.lower_bound <= best.point.value
        assert best.point.value <= result.point.value
        if solver != "bmrm-aggregated":
            assert result.status == "converged"


# Regularizers in bundle methods, against SciPy


@each_regularizer
@pytest.mark.parametrize("solver", ["bmrm", "ls-bmrm"])
def test_each_regularizer_against_scipy(name, solver):
    omega, alpha = REGULARIZERS[name], 0.1
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3))
    y = X @ [0.6, 0.3, 0.1] + 0.3 * rng.normal(size=40)
    weights = rng.dirichlet(np.ones(40))
    design = Design(X, fit_intercept=False)
    objective = Objective(
        Risk(design, regression_losses()["squared_error"], y, weights), omega, alpha
    )
    result = solve(solver, objective, tol=1e-5)
    assert result.status == "converged"
    assert result.lower_bound <= result.point.value

    def J(w):
        return alpha * omega.value(w) + regression_losses()[
            "squared_error"
        ].oracle.value(X @ w, y, weights)

    constraints, bounds = (), None
    if "entropy" in name:
        bounds = [(1e-12, None)] * 3
    if name == "normalized entropy":
        constraints = LinearConstraint(np.ones(3), 1.0, 1.0)
    found = minimize(
        J,
        np.full(3, 1.0 / 3.0),
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    tolerance = 1e-4 if name == "elastic net" else 2e-5
    assert result.point.value == pytest.approx(found.fun, rel=tolerance, abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["bmrm", "ls-bmrm"])
def test_l1_quantile_regression_against_a_linear_program(solver, fit_intercept):
    rng = np.random.default_rng(9)
    n, d, tau, alpha = 60, 4, 0.8, 0.03
    X = rng.normal(size=(n, d))
    y = X @ [1.0, -0.5, 0.0, 0.0] + rng.standard_t(3, size=n)
    design = Design(X, fit_intercept=fit_intercept)
    weights = np.full(n, 1.0 / n)
    objective = Objective(
        Risk(design, regression_losses(quantile=tau)["quantile"], y, weights),
        ElasticNet(d),
        alpha,
    )
    result = solve(solver, objective, tol=1e-6)
    assert result.status == "converged"
    # Variables: w+, w-, b+, b-, residuals above and below.
    columns = np.column_stack([X, -X, np.ones(n), -np.ones(n), np.eye(n), -np.eye(n)])
    cost = np.concatenate(
        [
            np.full(2 * d, alpha),
            np.zeros(2),
            np.full(n, tau / n),
            np.full(n, (1 - tau) / n),
        ]
    )
    bounds = [(0, None)] * len(cost)
    if not fit_intercept:
        bounds[2 * d : 2 * d + 2] = [(0, 0)] * 2
    program = linprog(cost, A_eq=columns, b_eq=y, bounds=bounds)
    assert result.lower_bound <= program.fun * (1.0 + 1e-7)
    assert result.point.value >= program.fun * (1.0 - 1e-7)


# Losses of which only values and subgradients are known


@pytest.mark.parametrize("fit_intercept", [False, True])
@each_solver
def test_first_order_losses_reach_the_same_optimum(solver, fit_intercept):
    X, y = gaussian_data(np.random.default_rng(10), 60, 3)
    options = {"alpha": 0.1, "fit_intercept": fit_intercept}
    known = solve("auto", binary_objective(X, y, **options), tol=1e-10)
    objective = binary_objective(X, y, loss=SlowHinge(), **options)
    result = solve(solver, objective, tol=1e-4)
    assert result.status == "converged"
    assert result.lower_bound <= known.point.value + 1e-12
    assert result.point.value <= known.point.value * (1.0 + 1.1e-4)


@EXPLORE
@given(seed=st.integers(0, 999))
def test_minimizing_by_cuts_is_exact(seed):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 12, 2)
    known = binary_objective(X, y, alpha=0.1)
    slow = binary_objective(X, y, alpha=0.1, loss=SlowHinge())
    w, p = rng.normal(size=(2, 3))
    step = exact(known.at(w).along(p))
    first, second = minimize_by_cuts(slow.at(w).along(p))
    assert first.value <= second.value
    value = known.at(w + step * p).value
    assert first.value == pytest.approx(value, rel=1e-9)


def test_minimizing_by_cuts_gives_a_balanced_cut_that_touches():
    X, y = gaussian_data(np.random.default_rng(11), 30, 2)
    slow = binary_objective(X, y, loss=SlowHinge())
    known = binary_objective(X, y)
    for w in np.random.default_rng(12).normal(size=(5, 3)):
        point, expected = (
            minimize_intercept(slow.at(w)),
            minimize_intercept(known.at(w)),
        )
        assert point.value == pytest.approx(expected.value, rel=1e-9)
        assert point.cut.is_balanced(2)
        height = point.cut.normal[:2] @ w[:2] + point.cut.offset
        risk = point.value - 0.1 * slow.regularizer.value(w)
        assert height == pytest.approx(risk, rel=1e-9)
