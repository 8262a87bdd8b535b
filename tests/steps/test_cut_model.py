"""Bounds by cuts where features are in extreme units, and where terms cancel."""

from __future__ import annotations

import numpy as np
import pytest
from _door import (
    L2,
    Answers,
    Design,
    ElasticNet,
    NormalizedEntropy,
    Objective,
    OracleHinge,
    OracleObjective,
    Risk,
    Stopping,
    run,
)
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import BMRMRanker, losses
from sklearn_subqn._core.solvers import bundle
from sklearn_subqn._core.steps.cut_model import Unsolved, _solve_linear, cut_model


def test_normals_of_structures_that_cancel():
    """The error of an oracle's cut is that of what its normals are sums of."""
    rng = np.random.default_rng(0)
    n, d = 1000, 3
    a = rng.normal(size=(n, d))
    a[n // 2 :] = -a[: n // 2] + 1e-12 * rng.normal(size=(n // 2, d))
    costs, weights = rng.random(n), np.full(n, 1.0 / n)
    answers = Answers(Design(a, fit_intercept=False), costs, 0.0 * costs)
    objective = OracleObjective(OracleHinge(lambda w: answers, weights), L2(d), 1.0)
    cut = objective.at(rng.normal(size=d)).cut
    sizes = objective.column_sizes.astype(np.longdouble)
    s = weights.astype(np.longdouble)
    for w in rng.normal(size=(50, d)) * 1e6:
        bound = cut.normal.astype(np.longdouble) @ w + np.longdouble(cut.offset)
        bound -= cut.error * (sizes @ np.abs(w))
        assert bound <= s @ (a.astype(np.longdouble) @ w + costs)


def rows(scale, regularizer, alpha=1e-6):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(30, 4))
    y = np.where(X @ rng.normal(size=4) + scale * rng.normal(size=30) > 0.0, 1.0, -1.0)
    risk = Risk(
        Design(X, fit_intercept=False), losses.RocArea(), y, np.full(30, 1.0 / 30)
    )
    return Objective(risk, regularizer, alpha)


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e11])
def test_linear_programs_in_large_units(scale):
    """The simplex method refuses numbers from 1e15 on, as these are over alpha."""
    rng = np.random.default_rng(1)
    A, b = scale / 1e-6 * rng.normal(size=(9, 4)), np.append(rng.random(9), 0.0)
    w, x = _solve_linear(A, b)
    assert np.all(np.abs(x[:-1] @ A) <= 1.0 + 1e-6 + 1e-15 * (x[:-1] @ np.abs(A)))
    height = max(float((A @ w + b[:-1]).max()), b[-1])
    # Strong duality, but for tolerances of the solver.
    assert np.abs(w).sum() + height == pytest.approx(float(x @ b), abs=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 0.02, 0.3])
def test_models_with_an_l1_norm_are_those_of_all_columns(alpha):
    """Columns that are generated as needed leave the program's value as it is."""
    rng = np.random.default_rng(2)
    n, d = 60, 40
    X = rng.normal(size=(n, d)) * np.logspace(0, 1, d)
    y = np.where(X[:, -5:].sum(axis=1) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    risk = Risk(
        Design(X, fit_intercept=False), losses.RocArea(), y, np.full(n, 1.0 / n)
    )
    objective = Objective(risk, ElasticNet(d, 1.0), alpha)
    model = cut_model(objective)
    for w in rng.normal(size=(8, d)) / d:
        model.add(objective.at(w).cut)
        model.minimize()
        A, b = model.cuts.normals, model.cuts.offsets
        w, x = _solve_linear(A / alpha, np.append(b, risk.infimum) / alpha)
        value = alpha * float(x @ np.append(b, risk.infimum) / alpha)
        assert model.lower_bound <= value + 1e-12
        assert model.lower_bound == pytest.approx(value, abs=1e-9)
        heights = np.append(A @ model.w + b, risk.infimum)
        found = alpha * np.abs(model.w).sum() + heights.max()
        assert found == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("solver", [bundle.bmrm, bundle.ls_bmrm])
def test_programs_that_are_not_solved_end_the_run(solver, monkeypatch):
    def fail(A, b):
        raise Unsolved("no solution")

    monkeypatch.setattr("sklearn_subqn._core.steps.cut_model._solve_linear", fail)
    objective = rows(1.0, ElasticNet(4, 1.0))
    result = run(solver(objective, np.zeros(4)), Stopping(1e-6), max_iter=50)
    assert result.status == "stalled"


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_no_bound_is_below_the_infima_of_risk_and_penalty(scale):
    X = scale * np.random.default_rng(0).normal(size=(30, 4))
    y = np.arange(30) % 2
    model = BMRMRanker(1e-8, solver="bmrm", max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.objective_ - model.dual_gap_ >= -1e-15 * model.objective_


def test_the_least_objective_with_negative_penalties():
    """An entropy is negative: minus the logarithm of the number of shares at most."""
    objective = rows(1.0, NormalizedEntropy(4), alpha=0.5)
    assert objective.least <= -0.5 * np.log(4.0)
    assert objective.least == pytest.approx(-0.5 * np.log(4.0), rel=1e-12)
