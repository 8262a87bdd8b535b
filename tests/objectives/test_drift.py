"""What updates of scores cost, and that nothing is claimed beyond it."""

import warnings

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    MULTINOMIAL_LOSS,
    Design,
    Line,
    Objective,
    Point,
    Risk,
    minimize_intercept,
    regression_losses,
    rounding,
)
from _problems import EXPLORE, binary_objective
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sklearn_subqn import (
    BMRMRegressor,
    L1LogisticOWLQN,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.steps import intercepts

LONG = np.longdouble


def gaussian_objective(rng, n=30, d=4):
    X, y = rng.normal(size=(n, d)), np.sign(rng.normal(size=n))
    return binary_objective(X, y, alpha=1e-2)


def test_refreshed_scores_are_those_of_w():
    rng = np.random.default_rng(0)
    objective = gaussian_objective(rng)
    w = rng.normal(size=objective.n_params)
    scores = objective.design.forward(w)
    drifted = Point(objective, w, scores + 1e-6, drift=1e10)
    refreshed = drifted.refreshed()
    assert_allclose(refreshed.scores, scores, rtol=0, atol=0)
    assert refreshed.w is w
    assert refreshed.refreshed() is refreshed


@EXPLORE
@given(
    seed=st.integers(0, 2**32 - 1),
    n_steps=st.integers(1, 60),
    overshoot=st.floats(0.0, 12.0),
)
def test_drift_bounds_the_rounding_errors_of_updates(seed, n_steps, overshoot):
    rng = np.random.default_rng(seed)
    objective = gaussian_objective(rng)
    point, far = objective.at(rng.normal(size=objective.n_params)), 10.0**overshoot
    for _ in range(n_steps):
        p = far * rng.normal(size=objective.n_params) - point.w
        point = point.along(p).point(rng.uniform(0.5, 1.0))
    end = rng.normal(size=objective.n_params)
    point = point.along(end - point.w).point(1.0)
    error = np.abs(point.scores - objective.design.forward(point.w)).max()
    assert error <= rounding(objective.n_params) * point.drift
    refreshed = point.refreshed()
    exact = objective.at(point.w).value
    assert refreshed.value == pytest.approx(exact, rel=1e-12)
    if overshoot >= 6.0:
        assert refreshed is not point
    elif overshoot == 0.0 and n_steps < 4:
        assert refreshed is point


def softmax_objective(rng, k=3):
    """Of classes; scores less their mean give the same risk."""
    X, y = rng.normal(size=(30, 4)), rng.integers(0, k, size=30)
    design = Design(X, n_outputs=k)
    risk = Risk(design, MULTINOMIAL_LOSS, y, np.full(30, 1.0 / 30))
    return Objective(risk, L2(design.n_coef), 1e-2)


def along(objective, far, w):
    start = objective.at(far * w[::-1])
    return start.along(w - start.w).point(1.0)


def towards(objective, far, w):
    return objective.at(far * w[::-1]).towards(objective.at(w)).point(1.0)


def beyond_towards(objective, far, w):
    """Of a line whose ends are far away, and which passes near zero."""
    start, other = objective.at(far * w), objective.at((1.0 - far) * w)
    return start.towards(other).point((far - 1.0) / (2.0 * far - 1.0))


def shorter(objective, far, w):
    start = objective.at(far * w)
    scores = objective.risk.scaled(-1.0, start.scores)
    return Line(start, -start.w, scores, share=-1.0).point(1.0 - 1.0 / far)


def free(objective, far, w):
    shift = np.full(objective.n_free, far)
    moved = objective.at(w).along_free(shift).point(1.0)
    return moved.along_free(-shift).point(1.0)


def centered(objective, far, w):
    W = w.reshape(-1, objective.design.n_outputs or 1)
    return objective.at((W + far).ravel()).centered()


def of_another(objective, far, w):
    other = objective.with_alpha(1.0)
    return along(other, far, w).under(objective)


WAYS = [along, towards, beyond_towards, shorter, free, centered, of_another]


@pytest.mark.parametrize("make", [gaussian_objective, softmax_objective])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@EXPLORE
@given(seed=st.integers(0, 2**32 - 1), magnitude=st.floats(0.0, 12.0))
def test_updates_are_charged_by_what_they_add(way, make, seed, magnitude):
    """However small their results are."""
    rng = np.random.default_rng(seed)
    objective = make(rng)
    w = rng.normal(size=objective.n_params)
    point = way(objective, 10.0**magnitude, w)
    fresh = objective.at(point.w)
    error = np.abs(point.scores - fresh.scores).max()
    assert error <= rounding(objective.n_params) * point.drift
    assert point.refreshed().value == pytest.approx(fresh.value, rel=1e-12)


def test_mixtures_have_the_mean_of_the_errors_of_both():
    """So that those of many do not grow without end."""
    rng = np.random.default_rng(0)
    objective = gaussian_objective(rng)
    points = [objective.at(w) for w in rng.normal(size=(40, objective.n_params))]
    largest, mixed = max(point.largest_score for point in points), points[0]
    for point in points:
        mixed = mixed.towards(point).point(0.5)
    assert 0.0 < mixed.drift <= 8.0 * largest
    assert mixed.refreshed() is mixed


def hinge_of_scores(model, X, y, alpha):
    """The objective of a support vector classifier, in extended precision."""
    w, b = model.coef_.astype(LONG).ravel(), LONG(model.intercept_[0])
    margins = y * ((X.astype(LONG) * w).sum(axis=1) + b)
    return LONG(alpha) * (w @ w) / 2 + np.maximum(1 - margins, 0).mean()


@pytest.mark.parametrize("seed", [67, 68, 69])
def test_bounds_after_a_warm_start_in_other_units(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 1))
    y = np.where(X[:, 0] + rng.normal(size=12) > 0, 1, -1)
    reference = SubLBFGSLinearSVC(1e-2, tol=1e-12).fit(X, y)
    optimum = hinge_of_scores(reference, X, y, 1e-2)
    model = SubLBFGSLinearSVC(1e-22, solver="sublbfgs", warm_start=True)
    model.fit(X / 1e10, y).set_params(alpha=1e-2).fit(X, y)
    bound = LONG(model.objective_) - LONG(model.dual_gap_)
    assert bound <= optimum + 1e-15
    assert bound >= optimum * (1 - LONG(1e-3))
    exact = hinge_of_scores(model, X, y, 1e-2)
    assert model.objective_ == pytest.approx(float(exact), rel=1e-12)


def test_the_objective_after_large_scores_is_that_of_the_coefficients():
    """Entropies begin at w = 1, whose scores are those of the columns."""
    X = np.array([[1e8, 1.0], [2e8, 3.0], [-1e8, 1.0], [5e7, 2.0]])
    y = np.array([1.0, 2.0, 3.0, 1.0])
    model = BMRMRegressor(
        1e-2, loss="absolute_error", penalty="entropy", fit_intercept=False
    ).fit(X, y)
    w = model.coef_.astype(LONG).ravel()
    residuals = np.abs(y - (X.astype(LONG) * w).sum(axis=1))
    positive = w[w > 0]
    entropy = (positive * np.log(positive)).sum() - w.sum()
    exact = LONG(1e-2) * entropy + residuals.mean()
    assert model.objective_ == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_scores_on_kinks_are_refreshed_where_duals_vanish(loss):
    """Errors of scores there cost what the loss rises by, not what duals are here."""
    X, y = np.diag([1.0, 1e-9]), np.ones(2)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES[loss], alpha=1e-20, fit_intercept=False
    )
    w = np.array([1e6, 1e9])
    # One row is at its kink, up to what is left of a far start; the other is far away.
    drifted = objective.risk.forward(w) + np.array([0.0, 1e-10])
    point = Point(objective, w, drifted, drift=1e6)
    assert point.risk == 0.0
    assert not point.dual.any()
    assert point.refreshed() is not point
    assert point.refreshed(at_kinks=False) is point


def log_loss_of_terms(w, X, y, alpha):
    """The objective of a logistic regression, and the largest sum of terms."""
    w, X = w.astype(LONG).ravel(), X.astype(LONG)
    margins = (X * w).sum(axis=1) * np.where(y, 1, -1)
    losses = np.maximum(-margins, 0) + np.log1p(np.exp(-np.abs(margins)))
    return LONG(alpha) * (w @ w) / 2 + losses.mean(), float((abs(X) @ abs(w)).max())


def test_the_objective_after_terms_that_cancel_is_that_of_the_coefficients():
    """Columns far from zero have small scores at large coefficients."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        X = rng.normal(size=(8, 3)) + 10.0 ** rng.uniform(7, 8)
        y = rng.permutation(8) < 4
        model = L1LogisticOWLQN(
            1e-12, l1_ratio=0.0, fit_intercept=False, warm_start=True, tol=1e-9
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y).set_params(alpha=1e3).fit(X, y)
        exact, size = log_loss_of_terms(model.coef_, X, y, 1e3)
        rounding_of_terms = 1e-15 * size + 1e-12 * float(exact)
        assert abs(model.objective_ - exact) <= rounding_of_terms


@pytest.mark.parametrize("k", [2, 3, 5])
def test_cuts_of_several_intercepts_do_not_depend_on_them(k):
    """Away from the best intercepts they are those of nearby balanced duals."""
    objective = softmax_objective(np.random.default_rng(k), k)
    n, rng = objective.regularizer.n_penalized, np.random.default_rng(0)
    assert objective.n_free == k
    values, bounds = [], []
    for w in 0.3 * rng.normal(size=(20, objective.n_params)):
        point = objective.at(w)
        assert point.cut.is_balanced(n)
        values.append(point.value)
        bounds.append(point.lower_bound)
        for other in rng.normal(size=(5, objective.n_params)):
            cut = point.cut
            sizes = cut.error * (objective.column_sizes @ np.abs(other[:n]))
            height = float(cut.normal @ other) + cut.offset - sizes
            assert height <= objective.at(other).risk
    assert np.isfinite(bounds).all()
    assert max(bounds) <= min(values)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_intercepts_near_the_best_ones_need_no_line_search(k, monkeypatch):
    """Newton's method converges there by whole steps."""
    rng = np.random.default_rng(k)
    objective = softmax_objective(rng, k)
    best = minimize_intercept(objective.at(0.3 * rng.normal(size=objective.n_params)))
    monkeypatch.setattr(intercepts, "minimize_smooth", None)
    for _ in range(10):
        w = best.w.copy()
        w[-k:] += 0.1 * rng.normal(size=k)
        settled = minimize_intercept(objective.at(w))
        assert settled.value == pytest.approx(best.value, rel=1e-12)
        assert settled.cut.is_balanced(objective.regularizer.n_penalized)


def one_heavy_row(name):
    """Return the objective of a row of nearly all weight, with a feature of its own."""
    n = 40
    X, weights = np.zeros((n, 2)), np.full(n, 1e-9)
    X[0, 0], X[1:, 1], weights[0] = 1.0, 1.0, 1.0 - 1e-9 * (n - 1)
    loss = {**BINARY_LOSSES, **regression_losses()}[name]
    risk = Risk(Design(X, fit_intercept=False), loss, np.ones(n), weights)
    return Objective(risk, L2(2), 1e-3)


def test_errors_of_updated_gradients_add_up():
    """Those of the gradients and of the products with the changes of dual variables.

    Where the row passes its target, its dual variable changes by twice its size, the
    most that the norms of both points allow.
    """
    objective = one_heavy_row("absolute_error")
    share, error = rounding(objective.risk.n_scored), 0.0
    point = objective.at(np.array([3.0, 0.3]))
    _ = point.gradient
    for k in range(5):
        change = np.array([(-4.0, 4.0)[k % 2], 0.0])
        new = point.along(change).point(1.0)
        assert_allclose(new.risk_gradient, objective.design.adjoint(new.dual))
        of_change = objective.risk.dual_norm(new.dual - point.dual)
        assert of_change == pytest.approx(2.0 * new.norm, rel=1e-6)
        error += share * (point.norm + of_change)
        assert new.gradient_error == pytest.approx(error, rel=1e-6, abs=0.0)
        point = new


def test_gradients_are_computed_anew_after_much_larger_dual_variables():
    objective = one_heavy_row("squared_hinge")
    for far, is_new in ((-40.0, False), (-60.0, True)):
        point = objective.at(np.array([far, 0.3]))
        _ = point.gradient
        new = point.along(np.array([-far, 0.0])).point(1.0)
        assert_allclose(new.risk_gradient, objective.design.adjoint(new.dual))
        assert (new.gradient_error == 0.0) == is_new
