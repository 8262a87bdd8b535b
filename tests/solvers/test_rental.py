"""Limited-memory steps around a metric, for smooth losses of one score."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    Objective,
    Risk,
    Stopping,
    newton,
    regression_losses,
    rental,
    run,
)
from scipy import sparse

LOSSES = {
    "log_loss": BINARY_LOSSES["log_loss"],
    "squared_hinge": BINARY_LOSSES["squared_hinge"],
    **{name: regression_losses()[name] for name in ("huber", "poisson", "gamma")},
}


def objective(name, alpha, container=np.asarray, n=600, d=30, fit_intercept=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
    X = X @ (rng.normal(size=(d, d)) / np.sqrt(d))
    scores = X @ rng.normal(size=d)
    scores *= 2.0 / scores.std()
    if name in BINARY_LOSSES:
        y = np.where(scores + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    elif name == "huber":
        y = scores + rng.standard_t(2, size=n)
    else:
        y = rng.poisson(np.exp(scores / 4.0)) + 1.0
    design = Design(container(X), fit_intercept=fit_intercept)
    risk = Risk(design, LOSSES[name], y.astype(float), np.full(n, 1.0 / n))
    return Objective(risk, L2(d), alpha)


def solved(method, o, tol, max_iter=500):
    w, stopping = np.zeros(o.n_params), Stopping(tol)
    iterates = method(o, w, stopping)
    return run(iterates, stopping, max_iter=max_iter, counter=o, points_prove=True)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-5, 0.1])
@pytest.mark.parametrize("name", LOSSES)
def test_optima_are_those_of_newtons_method(name, alpha, fit_intercept):
    o = objective(name, alpha, fit_intercept=fit_intercept)
    best = solved(newton, o, 1e-12)
    found = solved(rental, o, 1e-9)
    assert found.gap <= 1e-9 * abs(found.point.value)
    assert found.lower_bound <= best.point.value + 1e-13 * abs(best.point.value)
    assert found.point.value >= best.lower_bound
    assert all(bound <= best.point.value for bound in found.history.lower_bound)


@pytest.mark.parametrize("container", [np.float32, sparse.csr_array])
def test_data_of_any_kind(container):
    o = objective("huber", 1e-3, container)
    found = solved(rental, o, 1e-8)
    assert found.gap <= 1e-8 * found.point.value
    if container is sparse.csr_array:
        dense = solved(rental, objective("huber", 1e-3), 1e-8)
        assert found.point.value == pytest.approx(dense.point.value, rel=1e-8)


def test_runs_take_fewer_products_than_newtons_method_takes_for_a_matrix():
    """A matrix takes an eighth as many products as there are columns, or so."""
    o = objective("huber", 0.1, n=2000, d=200)
    found = solved(rental, o, 1e-3)
    assert found.gap <= 1e-3 * found.point.value
    cost = o.design.gram_cost(np.arange(200))
    assert found.history.passes[-1] <= 3.0 * cost


def test_runs_end_where_no_direction_leads_further():
    o = objective("huber", 1e-3)
    found = solved(rental, o, 0.0)
    assert found.status == "no_step"
    assert found.gap <= 1e-11 * found.point.value
    assert found.n_iter < 60
