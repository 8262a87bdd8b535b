"""Second derivatives of some of the rows in place of those of all."""

import sys
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.losses import BINARY_LOSSES
from sklearn_subqn._core.objectives.objective import Objective
from sklearn_subqn._core.objectives.risk import Risk
from sklearn_subqn._core.objectives.risk_of_parts import RiskOfParts
from sklearn_subqn._core.regularizers import L2
from sklearn_subqn._core.rows.design import Design
from sklearn_subqn._core.solvers.newton import newton
from sklearn_subqn._core.steps import newton_direction as directions
from sklearn_subqn._core.steps.newton_direction import hessian_stride

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


@pytest.fixture
def finely(monkeypatch):
    """Samples for fewer features and rows than those for which they pay."""
    monkeypatch.setattr(directions, "_DEAR", 2.0)
    monkeypatch.setattr(directions, "_ROWS_PER_PARAMETER", 100.0)


@pytest.mark.usefixtures("finely")
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_estimates_are_near_and_of_the_same_total(loss):
    objective = problem(loss)
    point = objective.at(np.random.default_rng(1).normal(size=objective.n_params) / 9)
    stride = hessian_stride(point)
    assert stride >= 3
    sampled, whole = point.sampled_hessian(stride), point.hessian
    assert sampled.n_rows <= whole.n_rows / stride + 1
    estimate, matrix = sampled.matrix(), whole.matrix()
    # The entry of the intercept is the sum of all second derivatives.
    assert estimate[-1, -1] == pytest.approx(matrix[-1, -1], rel=1e-12)
    values = np.linalg.eigvals(np.linalg.solve(matrix, estimate))
    assert np.abs(values - 1.0).max() < 4.0 / np.sqrt(100.0)


@pytest.mark.usefixtures("finely")
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
    stride = hessian_stride(point)
    assert stride == hessian_stride(whole.at(w)) >= 3
    sampled, all_rows = point.sampled_hessian(stride), point.hessian
    assert sampled.risk.n_rows <= all_rows.risk.n_rows / stride + 4
    estimate, matrix = sampled.matrix(), all_rows.matrix()
    assert_allclose(matrix, whole.at(w).hessian.matrix(), rtol=1e-9, atol=1e-15)
    assert estimate[-1, -1] == pytest.approx(matrix[-1, -1], rel=1e-12)
    values = np.linalg.eigvals(np.linalg.solve(matrix, estimate))
    assert np.abs(values - 1.0).max() < 4.0 / np.sqrt(100.0)


def gaps(objective, n_iter):
    """Return the gaps of iterates of Newton's method."""
    iterates = islice(newton(objective, np.zeros(objective.n_params)), n_iter)
    return np.array([i.point.value - i.lower_bound for i in iterates])


@pytest.mark.usefixtures("finely")
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_each_step_takes_most_of_the_gap(loss, monkeypatch):
    strides = []

    def stride_of(point):
        strides.append(hessian_stride(point))
        return strides[-1]

    module = sys.modules[newton.__module__]
    monkeypatch.setattr(module, "hessian_stride", stride_of)
    found = gaps(problem(loss, alpha=1e-2), 5)
    assert len(strides) == 4
    assert min(strides) >= 3
    assert (found[1:] < 0.1 * found[:-1]).all()
    assert found[-1] < 1e-6


@pytest.mark.usefixtures("finely")
def test_all_rows_are_taken_where_a_sample_says_little():
    """A feature of three rows only, of large entries, is in hardly any sample."""
    X = np.random.default_rng(0).normal(size=(N, D))
    X[:, 0] = 0.0
    X[[7, 20_001, 33_333], 0] = 1e3
    assert gaps(problem(X=X), 12)[-1] < 1e-8


def test_few_rows_or_features_are_all_taken():
    assert hessian_stride(problem(n=5000, d=50).origin()) == 1
    assert hessian_stride(problem(d=5).origin()) == 1
    assert hessian_stride(problem(n=150_000, d=100).origin()) > 1


def test_rows_next_to_none_of_which_have_curvature_do_not_count():
    objective = problem(n=150_000, d=100)
    scores = np.full(150_000, 40.0)
    scores[:10] = 0.0
    assert hessian_stride(objective.at(np.zeros(101), scores)) == 1


def test_the_same_rows_are_taken_again():
    objective = problem(n=100_000, d=30)
    first, second = (objective.origin().sampled_hessian(5).matrix() for _ in "ab")
    assert_allclose(first, second, rtol=0, atol=0)
