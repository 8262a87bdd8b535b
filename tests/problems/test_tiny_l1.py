"""An L1 norm of next to no strength, and features in units that all but free them.

Dual points that are scaled down until every slope is at most alpha prove little where
alpha is no larger than rounding errors of slopes.
"""

import importlib

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Design,
    ElasticNet,
    Objective,
    Risk,
    lower_bound,
    regression_losses,
)
from scipy import optimize

from sklearn_subqn import BMRMClassifier, BMRMRegressor
from sklearn_subqn.linear_model import QuantileRegressor

small = importlib.import_module("sklearn_subqn._core.solvers.small")

LOSSES = {
    "quantile": (0.1, 0.9, 0.0),
    "absolute_error": (1.0, 1.0, 0.0),
    "epsilon_insensitive": (1.0, 1.0, 0.3),
    "hinge": (0.0, 1.0, 0.0),
}


def least(X, targets, loss, alpha):
    """The optimum by a linear program, of coefficients in units of the columns.

    Scores, of rows times labels for the hinge, are targets less two parts that cost
    something, and one between bounds that costs nothing.
    """
    below, above, tube = LOSSES[loss]
    n, d = X.shape
    ones = np.ones((n, 1))
    if loss == "hinge":
        X, ones, targets = targets[:, None] * X, targets[:, None], np.ones(n)
    sizes = np.abs(X).max(axis=0)
    parts = [np.eye(n), -np.eye(n), np.eye(n)]
    columns = np.hstack([X / sizes, -X / sizes, ones, *parts])
    weights = np.full(n, 1.0 / n)
    # Smaller costs are zero for the solver, and next to nothing here.
    penalty = np.where(alpha > 2e-9 * sizes, alpha / sizes, 0.0)
    costs = np.r_[penalty, penalty, 0.0, above * weights, below * weights, 0 * weights]
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (2 * n)
    bounds += [(-tube, tube)] * n
    return optimize.linprog(costs, A_eq=columns, b_eq=targets, bounds=bounds).fun


def model_of(loss, alpha):
    if loss == "hinge":
        return BMRMClassifier(alpha, loss="hinge", penalty="l1")
    known = {"quantile": {"quantile": 0.9}, "epsilon_insensitive": {"epsilon": 0.3}}
    return BMRMRegressor(alpha, loss=loss, penalty="l1", **known.get(loss, {}))


def data(loss, n, d, units, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    y = X @ rng.normal(size=d) + rng.standard_t(3, size=n)
    targets = np.where(y > 0.0, 1.0, -1.0) if loss == "hinge" else y
    return X * units, targets


UNITS = [np.full(5, 100.0), 10.0 ** np.array([-3, 0, 4, 8, 12])]


@pytest.mark.parametrize("alpha", [1e-4, 1e-7, 1e-10, 1e-13])
@pytest.mark.parametrize("units", UNITS, ids=["equal", "unequal"])
@pytest.mark.parametrize("loss", LOSSES)
def test_small_problems_by_a_linear_program(loss, units, alpha):
    X, y = data(loss, 150, 5, units)
    model = model_of(loss, alpha).fit(X, y)
    expected = least(X, y, loss, alpha)
    assert model.objective_ == pytest.approx(expected, rel=1e-7)
    assert model.dual_gap_ <= 1e-3 * expected
    assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-7)


@pytest.mark.parametrize("loss", ["quantile", "absolute_error"])
def test_many_columns_by_a_linear_program(loss):
    """They are too many for one compiled loop."""
    units = 10.0 ** np.random.default_rng(1).uniform(-3, 6, 101)
    X, y = data(loss, 550, 101, units)
    model = model_of(loss, 1e-7).fit(X, y)
    expected = least(X, y, loss, 1e-7)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ - model.dual_gap_ <= expected * (1 + 1e-7)
    assert expected * (1 - 1e-7) <= model.objective_


def test_drop_in_on_raw_data():
    X, y = data("quantile", 150, 5, np.full(5, 100.0))
    model = QuantileRegressor(quantile=0.9, alpha=1e-10).fit(X, y)
    expected = least(X, y, "quantile", 1e-10)
    residuals = y - model.predict(X)
    risk = np.maximum(0.9 * residuals, -0.1 * residuals).mean()
    objective = risk + 1e-10 * np.abs(model.coef_).sum()
    assert objective == pytest.approx(expected, rel=1e-9)


def test_lists_of_quantiles():
    X, y = data("quantile", 150, 5, UNITS[1])
    options = {"loss": "quantile", "penalty": "l1"}
    model = BMRMRegressor(1e-9, quantile=[0.1, 0.9], **options).fit(X, y)
    for i, quantile in enumerate((0.1, 0.9)):
        one = BMRMRegressor(1e-9, quantile=quantile, **options).fit(X, y)
        assert model.objective_[i] == pytest.approx(one.objective_, rel=1e-3)
        assert model.dual_gap_[i] <= 1e-3 * one.objective_


@pytest.mark.parametrize("loss", ["hinge", "absolute_error"])
def test_no_column_at_its_limit(loss):
    """Where w = 0 is optimal, there may be none, nor one of an intercept."""
    X, y = data(loss, 40, 3, 1.0)
    model = model_of(loss, 1e3).set_params(fit_intercept=False).fit(X, y)
    objective = Objective(
        Risk(Design(X, fit_intercept=False), *loss_and_targets(loss, y)),
        ElasticNet(3, 1.0),
        1e3,
    )
    point = objective.origin()
    bound = lower_bound(point, [point.dual], np.inf)
    assert bound == pytest.approx(model.objective_, rel=1e-6)
    assert bound <= model.objective_


def loss_and_targets(loss, y):
    weights = np.full(len(y), 1.0 / len(y))
    if loss == "hinge":
        return BINARY_LOSSES[loss], y, weights
    return regression_losses()[loss], y, weights


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_bounds_by_held_columns_are_left_out_where_the_gap_is_rounding(
    monkeypatch, loss, penalty
):
    """They took more than half of the time of small fits, and proved no more."""

    def unwanted(*args):
        pytest.fail("the dual point of the loop proves enough")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = np.exp(X @ rng.normal(size=5) / 5.0)
    monkeypatch.setattr(small, "lower_bound", unwanted)
    model = BMRMRegressor(loss=loss, alpha=0.01, penalty=penalty).fit(X, y)
    assert model.dual_gap_ <= 1e-12 * model.objective_
