"""Dual coordinate ascent on text-like data."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    Objective,
    Risk,
    Start,
    alm,
    dual_ascent,
    newton,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import normalize

from sklearn_subqn import (
    BMRMRegressor,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.solvers.row_sweeps import row_sweeps

LOSSES = {
    "hinge": BINARY_LOSSES["hinge"],
    "squared_hinge": BINARY_LOSSES["squared_hinge"],
}
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def text(n=400, d=2000, *, seed=0):
    """Return sparse rows of unit length and labels that a few columns decide."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.008, rng=rng, format="csr")
    X.data = rng.exponential(size=X.nnz)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    X = sparse.csr_array(X / np.maximum(norms, 1e-300)[:, np.newaxis])
    y = np.where(X[:, : d // 4].sum(axis=1) > 0.3, 1.0, -1.0)
    return X, y


def problem(loss, fit_intercept, alpha=1e-3, **options):
    X, y = text(**options)
    weights = np.random.default_rng(7).random(len(y))
    weights[::9] = 0.0
    weights /= weights.sum()
    design = Design(X, fit_intercept=fit_intercept)
    return Objective(Risk(design, LOSSES[loss], y, weights), L2(X.shape[1]), alpha)


def optimum(objective):
    start = Start(np.zeros(objective.n_params))
    if objective.loss.smooth:
        solver = newton(objective, start.w)
    else:
        solver = alm(objective, start)
    best, bound = np.inf, -np.inf
    for _, iterate in zip(range(500), solver, strict=False):
        best = min(best, iterate.point.value)
        bound = max(bound, iterate.lower_bound, iterate.point.lower_bound)
        if best - bound < 1e-6 * best:
            return best, bound
    raise AssertionError(f"only proven to {best - bound}")


def origin(objective):
    return Start(np.zeros(objective.n_params))


@each_loss
@each_intercept
def test_bounds_enclose_the_optimum_and_close_in(loss, fit_intercept):
    objective = problem(loss, fit_intercept)
    assert objective.design.is_text_like
    best, bound = optimum(objective)
    iterates = list(dual_ascent(objective, origin(objective)))
    assert len(iterates) > 2
    for iterate in iterates:
        assert iterate.lower_bound <= best
        assert iterate.point.value >= bound
        assert iterate.point.value == pytest.approx(
            objective.at(iterate.point.w).value, rel=1e-12
        )
    values = np.array([iterate.point.value for iterate in iterates[1:]])
    bounds = np.array([iterate.lower_bound for iterate in iterates[1:]])
    assert np.all(np.diff(bounds) >= 0.0)
    assert values[-1] - bounds[-1] < 0.02 * best


@each_loss
@each_intercept
def test_duals_are_feasible_and_balanced(loss, fit_intercept):
    objective = problem(loss, fit_intercept)
    *_, last = dual_ascent(objective, origin(objective))
    beta = -last.dual * objective.targets
    assert np.all(beta >= 0.0)
    if loss == "hinge":
        assert np.all(beta <= objective.weights * (1 + 1e-14))
    assert not beta[objective.weights == 0.0].any()
    if fit_intercept:
        assert abs(last.dual.sum()) < 1e-15


def test_a_rare_class_takes_few_rounds():
    # Rows are selected by scores with the intercept that balances the dual variables.
    # With the best intercept of the parameters nine rounds are needed.
    X, _ = text(seed=3)
    y = np.where(X[:, :50].sum(axis=1) > 0.4, 1.0, -1.0)
    assert np.sum(y > 0.0) == 12
    weights = np.full(len(y), 1.0 / len(y))
    risk = Risk(Design(X, fit_intercept=True), LOSSES["hinge"], y, weights)
    objective = Objective(risk, L2(X.shape[1]), weights[0])
    iterates = dual_ascent(objective, origin(objective), patience=20)
    first = [next(iterates) for _ in range(8)]
    best = min(iterate.point.value for iterate in first)
    assert best - first[-1].lower_bound < 1e-4 * best


def test_a_weaker_term_follows_slow_progress():
    # With the strongest proximal term until it fades, 134 rounds are needed.
    rng, n, d = np.random.default_rng(0), 3000, 8000
    columns = (d * rng.random((n, 20)) ** 3).astype(int).ravel()
    entries = rng.exponential(size=20 * n), columns, np.arange(0, 20 * n + 1, 20)
    X = normalize(sparse.csr_array(entries, shape=(n, d)))
    y = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    model = BMRMRegressor(loss="quantile", alpha=1e-3 / n, tol=1e-3)
    assert model.fit(X, y).n_iter_ < 100


@each_intercept
def test_goes_on_from_a_dual_point(fit_intercept):
    objective = problem("hinge", fit_intercept)
    *_, last = dual_ascent(objective, origin(objective))
    again = dual_ascent(objective, Start(last.point.w, last.dual))
    first = next(again)
    assert first.point.value == pytest.approx(last.point.value, rel=1e-6)
    second = next(again)
    assert second.lower_bound > last.lower_bound * (1 - 1e-3)


@each_loss
@pytest.mark.parametrize("proximity", [0.0, 0.3])
def test_parameters_belong_to_the_dual(loss, proximity):
    objective = problem(loss, False)
    design, alpha = objective.design, objective.alpha
    form = objective.loss.rowwise_dual(objective.targets)
    args = form, objective.weights, alpha
    sweeps = row_sweeps(design, *args, None, proximity)
    center = np.zeros(design.n_params)
    scores = None
    for seed in range(3):
        sweeps.run(scores)
        normal = design.adjoint(sweeps.dual)
        assert_allclose(sweeps.conjugate_point, normal / -alpha, rtol=1e-9, atol=1e-11)
        w = (proximity * center - normal) / (alpha + proximity)
        assert_allclose(sweeps.w, w, rtol=1e-9, atol=1e-11)
        center = np.random.default_rng(seed).normal(size=design.n_params)
        sweeps.recenter(center)
        scores = design.forward(sweeps.w)
    again = row_sweeps(design, *args, sweeps.dual, proximity)
    again.recenter(center)
    assert_allclose(again.w, sweeps.w, rtol=1e-9, atol=1e-11)


def test_scores_tell_which_rows_rest():
    """Rows whose dual variable is at an end and wants to stay there are left out."""
    objective = problem("hinge", False)
    design, y = objective.design, objective.targets
    form = objective.loss.rowwise_dual(y)
    sweeps = row_sweeps(design, form, objective.weights, objective.alpha)
    passes = design.passes
    sweeps.run(3.0 * y)
    assert design.passes == passes
    assert not sweeps.dual.any()
    awake = np.arange(len(y)) % 3 == 0
    sweeps.run(np.where(awake, 0.0, 3.0 * y))
    assert_array_equal(sweeps.dual != 0.0, awake & (objective.weights > 0.0))


@each_loss
@each_intercept
def test_a_small_alpha_takes_few_rounds_with_momentum(loss, fit_intercept):
    objective = problem(loss, fit_intercept, alpha=1e-6)
    best, bound = np.inf, -np.inf
    for n_rounds, iterate in enumerate(  # noqa: B007
        dual_ascent(objective, origin(objective), patience=20)
    ):
        best = min(best, iterate.point.value)
        bound = max(bound, iterate.lower_bound)
        if best - bound < 1e-3 * best:
            break
    assert best - bound < 1e-3 * best
    assert n_rounds < 60


@each_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_types_of_data(loss, dtype, indices):
    X, y = text()
    X = sparse.csr_array(
        (X.data.astype(dtype), X.indices.astype(indices), X.indptr.astype(indices)),
        shape=X.shape,
    )
    model = SubLBFGSLinearSVC(1e-3, loss=loss, tol=1e-5).fit(X, y)
    peer = SubLBFGSLinearSVC(1e-3, loss=loss, tol=1e-5).fit(X.toarray(), y)
    assert "dual ascent" in model.history_[0].phase
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(peer.objective_, rel=2e-5)
    assert model.dual_gap_ <= 1.1e-5 * model.objective_


def test_the_same_data_give_the_same_model():
    X, y = text()
    first = SubLBFGSLinearSVC(1e-3).fit(X, y)
    second = SubLBFGSLinearSVC(1e-3).fit(X.copy(), y.copy())
    assert_array_equal(first.coef_, second.coef_)
    assert_array_equal(first.history_[0].objective, second.history_[0].objective)


@each_loss
def test_weights_are_repetitions(loss):
    X, y = text()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    options = {"loss": loss, "tol": 1e-9}
    weighted = SubLBFGSLinearSVC(1e-3, **options).fit(X, y, sample_weight=counts)
    repeated = SubLBFGSLinearSVC(1e-3, **options).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_handing_over_shows_in_the_history():
    X, y = text()
    history = SubLBFGSLinearSVC(1e-5, tol=1e-12).fit(X, y).history_[0]
    phases = list(dict.fromkeys(history.phase))
    assert phases == ["dual ascent", "alm"]
    assert np.all(np.diff(history.passes) >= 0.0)
    assert np.all(np.diff(history.objective) <= 0.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_large_alpha_takes_a_few_passes(fit_intercept):
    X, y = text()
    model = SubLBFGSLinearSVC(1.0, fit_intercept=fit_intercept).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # One of them for the sizes of columns, by which bounds account for rounding.
    assert model.history_[0].passes[-1] < 9.0
    model.set_params(tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    # A start from another point is none at which all dual variables are known.
    model.set_params(warm_start=True).fit(X, y)
    warm = model.set_params(alpha=0.5).fit(X, y)
    assert warm.dual_gap_ <= 1e-6 * warm.objective_


def test_rows_without_entries():
    X, y = text()
    X = sparse.vstack([X, sparse.csr_array((50, X.shape[1]))], format="csr")
    y = np.append(y, np.ones(50))
    for fit_intercept in (False, True):
        model = SubLBFGSLinearSVC(1e-3, fit_intercept=fit_intercept).fit(X, y)
        assert model.dual_gap_ <= 1e-3 * model.objective_


@each_loss
def test_a_small_gap_is_free_of_rounding_that_adds_up(loss):
    objective = problem(loss, False)
    for iterate, _ in zip(
        dual_ascent(objective, origin(objective), patience=30), range(60), strict=False
    ):
        last = iterate
    assert last.point.value - last.lower_bound < 1e-6 * last.point.value
    exact = objective.dual_value(objective.cut(last.proof))
    assert last.lower_bound == pytest.approx(exact, rel=1e-15)


def changes_of_a_problem():
    """Estimators, and what changes from one fit to the next, weights aside."""
    svm = SubLBFGSLinearSVC(1e-3, fit_intercept=False)
    quantile = BMRMRegressor(1e-3, loss="quantile", quantile=0.8)
    squares = BMRMRegressor(1e-3, fit_intercept=False)
    return [
        (svm, {}),
        (SubLBFGSLinearSVC(1e-3), {}),
        (SubLBFGSLinearSVC(1e-3, loss="squared_hinge"), {"loss": "hinge"}),
        (quantile, {"quantile": 0.2}),
        (squares, {"loss": "absolute_error"}),
        (squares, {"loss": "huber"}),
        (MulticlassHingeClassifier(1e-2, fit_intercept=False), {}),
        (MultilabelHingeClassifier(1e-2, reduction="max", fit_intercept=False), {}),
        (
            MultilabelHingeClassifier(
                1e-2, reduction="max", threshold=False, fit_intercept=False
            ),
            {},
        ),
    ]


@pytest.mark.parametrize("reweighted", [False, True])
@pytest.mark.parametrize(
    ("model", "change"), changes_of_a_problem(), ids=lambda value: repr(value)
)
def test_warm_starts_prove_bounds_of_the_problem_at_hand(model, change, reweighted):
    X, y = text(600, 900)
    rng = np.random.default_rng(0)
    if isinstance(model, BMRMRegressor):
        y = X @ rng.normal(size=900) + 0.1 * rng.normal(size=600)
    elif isinstance(model, MulticlassHingeClassifier):
        y = np.argmax(X @ rng.normal(size=(900, 3)), axis=1)
    elif isinstance(model, MultilabelHingeClassifier):
        y = (X @ rng.normal(size=(900, 4)) > 0.0).astype(int)
    first = rng.exponential(size=600)
    second = rng.exponential(size=600) if reweighted else first
    changed = clone(model).set_params(**change)
    optimum = clone(changed).set_params(tol=1e-6).fit(X, y, second)
    model = clone(model).set_params(warm_start=True).fit(X, y, first)
    model.set_params(**change).fit(X, y, second)
    assert model.objective_ - model.dual_gap_ <= optimum.objective_
    assert optimum.objective_ - optimum.dual_gap_ <= model.objective_
    assert model.dual_gap_ <= model.tol * model.objective_
