"""What is kept of squared errors from one model, and from one run, to the next."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn import BMRMRegressor
from sklearn_subqn._core.rows.columns import KeptColumns
from sklearn_subqn._core.rows.design import Design


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_and_scores_of_columns_as_they_come(fit_intercept, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 9)) + 100.0).astype(dtype)
    weights = rng.uniform(0.5, 1.5, size=60) / 60
    kept = KeptColumns(Design(X, fit_intercept=fit_intercept), weights)
    for features in ([1, 4], [4], [0, 1, 8], np.arange(9)):
        some = X[:, features].astype(np.float64)
        centers = weights @ some / weights.sum() if fit_intercept else 0.0
        gram, found = kept.gram(np.asarray(features))
        np.testing.assert_allclose(found, np.broadcast_to(centers, len(features)))
        expected = (some - centers).T @ (weights[:, None] * (some - centers))
        np.testing.assert_allclose(gram, expected, rtol=1e-9, atol=1e-12)
        coef = rng.normal(size=len(features))
        scores = kept.forward(np.asarray(features), coef)
        np.testing.assert_allclose(scores, some @ coef, rtol=1e-9)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_fits_of_dense_rows_are_those_of_sparse_ones(l1_ratio, zeros):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40)) + 1.0
    y = X[:, :8] @ rng.normal(size=8) + rng.normal(size=3000)
    weights = rng.uniform(size=3000)
    weights[:100] *= not zeros
    model = BMRMRegressor(0.03, penalty="elasticnet", l1_ratio=l1_ratio, tol=1e-9)
    model.set_params(loss="squared_error")
    dense = model.fit(X, y, sample_weight=weights)
    coef, objective = dense.coef_, dense.objective_
    assert dense.dual_gap_ <= 1e-9 * objective
    other = model.fit(sparse.csr_array(X), y, sample_weight=weights)
    assert other.objective_ == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(other.coef_, coef, atol=1e-5)
