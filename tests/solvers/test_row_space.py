"""Wide dense data with several scores per row: solved in the span of the rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from _door import (
    L2,
    Design,
    DualLoss,
    Iterate,
    Objective,
    Options,
    Risk,
    Simplex,
    Start,
    Stopping,
    alm,
    row_space,
    run,
    solve_related,
)

from sklearn_subqn import (
    BMRMRegressor,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
)
from sklearn_subqn._core.solvers.facts import Facts
from sklearn_subqn._core.solvers.plans import PLANS, choose

ALPHA = 1e-2


def wide(n=40, d=120, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.arange(n) % k


def problem(X, y, fit_intercept=True):
    k, n = y.max() + 1, len(y)
    design = Design(X, fit_intercept=fit_intercept, n_outputs=k)
    costs = 1.0 - np.eye(k)
    return Objective(
        Risk(design, DualLoss(Simplex(costs)), y.astype(np.intp), np.full(n, 1.0 / n)),
        L2(design.n_coef),
        ALPHA,
    )


def by_alm(objective, start):
    return alm(objective, start)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_iterates_are_those_of_all_features(fit_intercept):
    X, y = wide()
    objective = problem(X, y, fit_intercept)
    start = Start(np.zeros(objective.n_params))
    iterates = solve_related(row_space(objective, Stopping(1e-6)), by_alm, start)
    bounds, values = [], []
    for _ in range(40):
        iterate = next(iterates)
        whole = objective.at(iterate.point.w)
        assert iterate.point.value == pytest.approx(whole.value, rel=1e-12)
        values.append(whole.value)
        bounds.append(iterate.lower_bound)
    best = run(by_alm(objective, start), Stopping(1e-10), max_iter=500)
    assert max(bounds) <= best.point.value * (1.0 + 1e-12)
    assert min(values) - max(bounds) <= 1e-2 * min(values)
    # Optimal coefficients are combinations of the rows.
    w = iterate.point.w[: objective.design.n_coef].reshape(X.shape[1], -1)
    inside = X.T @ np.linalg.lstsq(X.T, w, rcond=None)[0]
    np.testing.assert_allclose(w, inside, atol=1e-12)


def test_starts_keep_their_scores():
    X, y = wide()
    objective = problem(X, y)
    w = np.random.default_rng(1).normal(size=objective.n_params)

    def stay(objective, start):
        yield Iterate(start.at(objective))
        return "stayed"

    (first, _) = solve_related(row_space(objective, Stopping(1e-3)), stay, Start(w))
    scores = objective.design.forward(first.point.w)
    np.testing.assert_allclose(first.point.scores, scores, atol=1e-11)
    np.testing.assert_allclose(scores, objective.at(w).scores, atol=1e-11)
    assert first.point.value < objective.at(w).value


LABELS = partial(MultilabelHingeClassifier, reduction="max")


@pytest.mark.parametrize("make", [MulticlassHingeClassifier, LABELS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators(make, dtype):
    X, y = wide(150, 400)
    X = X.astype(dtype)
    if make is LABELS:
        y = np.eye(3, dtype=int)[y]
    model = make(ALPHA).fit(X, y)
    exact = make(ALPHA, solver="alm", tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ - model.dual_gap_ <= exact.objective_ * (1.0 + 1e-9)
    assert exact.objective_ - exact.dual_gap_ <= model.objective_
    assert model.coef_.dtype == dtype
    # Products of rows with as many coordinates as rows are short.
    assert model.history_[0].passes[-1] < 0.7 * exact.history_[0].passes[-1]


def test_rows_of_very_different_features():
    X, y = wide()
    X = X * 10.0 ** np.random.default_rng(2).uniform(-3.0, 3.0, size=X.shape[1])
    model = MulticlassHingeClassifier(ALPHA).fit(X, y)
    scores = model.decision_function(X)
    own = scores[np.arange(len(y)), y][:, np.newaxis]
    margins = 1.0 + scores - own
    margins[np.arange(len(y)), y] = 0.0
    value = 0.5 * ALPHA * (model.coef_**2).sum() + margins.max(axis=1).mean()
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.dual_gap_ <= 1e-3 * value


def test_where_rows_are_short():
    X, y = wide()
    for d, expected in ((120, True), (60, False)):
        objective = problem(X[:, :d], y)
        start = Start(np.zeros(objective.n_params))
        plan = choose(Facts(objective, start, Options()), PLANS).name
        assert (plan == "span of the rows") == expected


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_smooth_losses_of_several_scores_on_wide_data(fit_intercept):
    X, _ = wide()
    rng = np.random.default_rng(1)
    Y = X[:, :3] @ rng.normal(size=(3, 2)) + rng.normal(size=(len(X), 2))
    parameters = {"metric": [[2.0, 0.5], [0.5, 1.0]], "fit_intercept": fit_intercept}
    model = BMRMRegressor(0.1, **parameters).fit(X, Y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # The last ones are for exactness, which rounding in bounds keeps from some digits.
    assert model.n_iter_ < 15
