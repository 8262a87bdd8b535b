"""Newton's method on faces of orthants, which proves what OWL-QN leaves unproven."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    SOLVERS,
    Design,
    ElasticNet,
    Objective,
    Options,
    Risk,
    RiskOfParts,
    Start,
    Stopping,
    face_newton,
    run,
)
from _l1_problems import data, problem, solve
from scipy import sparse

from sklearn_subqn.losses import LogisticRocArea

TOL = 1e-9


def wide(alpha, loss, *, n_parts=1, fit_intercept=True):
    """A problem with an L1 norm of sparse rows and twice as many features."""
    n, q = 400, 800
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, q), density=0.02, rng=rng).tocsr()
    score = X[:, : q // 10].sum(axis=1) - X[:, q // 10 : q // 5].sum(axis=1)
    y = np.where(score + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)

    def risk(rows):
        design = Design(X[rows], fit_intercept=fit_intercept)
        return Risk(design, loss, y[rows], np.full(len(y[rows]), 1.0 / n))

    penalty = ElasticNet(q)
    if n_parts == 1:
        return Objective(risk(slice(None)), penalty, alpha)
    bounds = [0, *np.sort(rng.integers(0, n, n_parts - 1)), n]
    parts = [risk(slice(*ends)) for ends in pairwise(bounds)]
    return Objective(RiskOfParts(parts), penalty, alpha)


def solved(objective, solver):
    start = Start(np.zeros(objective.n_params))
    iterates = SOLVERS[solver].start(objective, start, Options(stopping=Stopping(TOL)))
    return run(iterates, Stopping(TOL), max_iter=1000)


CASES = {
    "seven parts": lambda: wide(1e-3, BINARY_LOSSES["log_loss"], n_parts=7),
    "pairs": lambda: wide(1e-2, LogisticRocArea(), fit_intercept=False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_owlqn_leaves_is_proven(name):
    owlqn, auto = (solved(CASES[name](), solver) for solver in ("owlqn", "auto"))
    assert owlqn.status == "no_step", "else the case shows nothing"
    assert owlqn.gap > TOL * owlqn.point.value
    assert auto.plan == "OWL-QN"
    assert auto.status == "converged"
    assert auto.gap <= TOL * auto.point.value
    assert auto.lower_bound <= owlqn.point.value
    assert auto.point.value <= owlqn.point.value * (1.0 + 1e-15)
    np.testing.assert_array_equal(auto.point.w != 0.0, owlqn.point.w != 0.0)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coordinates_leave_zero_and_come_back_to_it(n_classes, l1_ratio):
    X, y = data(n_classes=n_classes)
    objective = problem(X, y, l1_ratio=l1_ratio)
    known = solve(objective)
    signs = np.sign(known.point.w)
    assert (signs[: objective.regularizer.n_penalized] == 0.0).any()
    # All signs are wrong, and zeros are not zero.
    start = Start(np.where(signs == 0.0, 0.1, -0.1 * signs))
    found = run(face_newton(objective, start), Stopping(TOL), max_iter=100)
    assert found.status == "converged"
    assert found.point.value == pytest.approx(known.point.value, rel=2.0 * TOL)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_it_ends_where_only_rounding_is_left(l1_ratio):
    objective = problem(*data(), l1_ratio=l1_ratio)
    start = Start(solve(objective).point.w)
    result = run(face_newton(objective, start), Stopping(0.0), max_iter=100)
    assert result.status in {"no_progress", "no_step", "stationary", "converged"}
    assert result.gap <= 1e-13 * result.point.value
