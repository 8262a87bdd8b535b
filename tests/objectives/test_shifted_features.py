"""Features far from zero: a free intercept makes up for any shift."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn import (
    BMRMRegressor,
    L1LogisticOWLQN,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5))
    return X, X @ rng.normal(size=5) + rng.normal(size=200)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("edges", [[0.0], [-2.0, 0.0, 2.0]], ids=["two", "four"])
@pytest.mark.parametrize("seed", [0, 2])
def test_logistic_fits_take_no_more_iterations_for_a_shift(container, edges, seed):
    X, s = data(seed)
    y = np.digitize(s, edges)
    plain = L1LogisticOWLQN(1e-3, tol=1e-6).fit(X, y)
    moved = L1LogisticOWLQN(1e-3, tol=1e-6).fit(container(X + 1000.0), y)
    assert moved.dual_gap_ <= 1e-6 * moved.objective_
    assert_allclose(moved.objective_, plain.objective_, rtol=1e-6)
    if len(edges) == 1:
        # With four classes coefficients may move together without a change of J.
        assert_allclose(moved.coef_, plain.coef_, atol=1e-3)
    assert moved.n_iter_ <= 2 * plain.n_iter_


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_sparse_regression_does_not_suffer_from_a_shift(loss):
    X, s = data(1)
    shift = np.array([0.0, 10.0, 1990.0, -273.15, 1e4])
    plain = BMRMRegressor(1e-2, loss=loss, penalty="l1").fit(X, s)
    moved = BMRMRegressor(1e-2, loss=loss, penalty="l1").fit(X + shift, s)
    assert moved.dual_gap_ <= 1e-3 * moved.objective_
    assert_allclose(moved.objective_, plain.objective_, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shift", [1.7e12, 1e6])
@pytest.mark.parametrize(
    "Estimator",
    [SubLBFGSLinearSVC, L1LogisticOWLQN, OnlineLBFGSClassifier],
)
def test_scores_are_those_of_the_coefficients_whatever_the_scales(Estimator, shift):
    rng = np.random.default_rng(3)
    a = rng.normal(size=4000)
    # Such as milliseconds since 1970 beside a standardized feature.
    X = np.column_stack([shift * (1.0 + 0.02 * rng.random(4000)), a])
    y = a + 0.2 * rng.normal(size=4000) > 0.0
    model = Estimator(alpha=1e-4, max_iter=20)
    if Estimator is OnlineLBFGSClassifier:
        model.partial_fit(X, y, classes=[False, True])
    else:
        model.fit(X, y)
    scores = X @ model.coef_[0] + model.intercept_[0]
    sizes = np.abs(X) @ np.abs(model.coef_[0]) + np.abs(model.intercept_[0])
    for some in (X, sparse.csr_array(X)):
        assert np.all(np.abs(model.decision_function(some) - scores) <= 1e-11 * sizes)


def test_predictions_of_small_terms_beside_large_features():
    rng = np.random.default_rng(4)
    a = rng.normal(size=2000)
    X = np.column_stack([1.7e12 + 3e10 * rng.random(2000), a])
    model = OnlineLBFGSRegressor(random_state=0).fit(X, a)
    assert model.score(X, a) > 0.9999
