"""Squared errors with an L1 norm, on dense rows and on sparse ones."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn import BMRMRegressor


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
