"""Second derivatives of some of the rows in place of those of all."""

import numpy as np
import pytest
from _door import BINARY_LOSSES, L2, Design, Objective, Risk, RiskOfParts
from numpy.testing import assert_allclose

N, D = 40_000, 40


def problem(loss="log_loss", *, n=N, d=D, seed=0, alpha=1e-3, X=None):
    """Return an objective, tall enough for samples; weights differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) if X is None else X
    n, d = X.shape
    w = rng.normal(size=d) / np.sqrt(d)
    y = np.where(X @ w + rng.logistic(size=n) > 0.3, 1.0, -1.0)
    weights = rng.dirichlet(np.full(n, 3.0))
    return Objective(Risk(Design(X), BINARY_LOSSES[loss], y, weights), L2(d), alpha)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_estimates_are_near_and_of_the_same_total(loss):
    objective = problem(loss)
    point = objective.at(np.random.default_rng(1).normal(size=objective.n_params) / 9)
    stride = 5
    sampled, whole = point.sampled_hessian(stride), point.hessian
    assert sampled.n_rows <= whole.n_rows / stride + 1
    estimate, matrix = sampled.matrix(), whole.matrix()
    # The entry of the intercept is the sum of all second derivatives.
    assert estimate[-1, -1] == pytest.approx(matrix[-1, -1], rel=1e-12)
    values = np.linalg.eigvals(np.linalg.solve(matrix, estimate))
    assert np.abs(values - 1.0).max() < 4.0 / np.sqrt(100.0)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_estimates_of_rows_in_several_parts(loss):
    """Also where a part has few rows, or none with curvature."""
    whole = problem(loss)
    risk, risks = whole.risk, []
    for rows in np.split(np.arange(N), [3, 4, 25_000]):
        design = whole.design.rows(rows)
        args = whole.targets[rows].copy(), whole.weights[rows]
        risks.append(Risk(design, risk.loss, *args))
    risks[1].targets[:] = np.sign(risks[1].design.forward(np.ones(D + 1)))
    risk.targets[3] = risks[1].targets[0]
    parts = Objective(RiskOfParts(risks), L2(D), whole.alpha)
    w = np.full(D + 1, 0.3)
    w[:D] += np.random.default_rng(1).normal(size=D) / 9
    point = parts.at(w)
    stride = 5
    sampled, all_rows = point.sampled_hessian(stride), point.hessian
    assert sampled.risk.n_rows <= all_rows.risk.n_rows / stride + 4
    estimate, matrix = sampled.matrix(), all_rows.matrix()
    assert_allclose(matrix, whole.at(w).hessian.matrix(), rtol=1e-9, atol=1e-15)
    assert estimate[-1, -1] == pytest.approx(matrix[-1, -1], rel=1e-12)
    values = np.linalg.eigvals(np.linalg.solve(matrix, estimate))
    assert np.abs(values - 1.0).max() < 4.0 / np.sqrt(100.0)


def test_the_same_rows_are_taken_again():
    objective = problem(n=100_000, d=30)
    first, second = (objective.origin().sampled_hessian(5).matrix() for _ in "ab")
    assert_allclose(first, second, rtol=0, atol=0)
