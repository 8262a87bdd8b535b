"""Scores without their last digits, for rows of any layout."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn._estimators.predictions import rounded_scores


@pytest.mark.parametrize("k", [1, 3])
def test_scores_do_not_depend_on_the_layout_of_rows(k):
    rng = np.random.default_rng(k)
    X, coef = rng.standard_normal((9000, 20)), rng.standard_normal((k, 20))
    X[0], intercept = 0.0, rng.standard_normal(k)
    exact = X @ coef.T + intercept
    found = rounded_scores(X, coef, intercept)
    assert np.abs(found - exact).max() < 1e-10
    assert np.array_equal(found[:3], rounded_scores(X[:3], coef, intercept))
    for other in (np.asfortranarray(X), X[::-1][::-1], sparse.csr_array(X)):
        np.testing.assert_allclose(
            rounded_scores(other, coef, intercept), found, rtol=0.0, atol=1e-10
        )
    single = rounded_scores(X, coef[0], intercept[0])
    assert single.shape == (9000,)
    np.testing.assert_allclose(single, found[:, 0], rtol=0.0, atol=1e-10)
    by_float = rounded_scores(X.astype(np.float32), coef, intercept)
    assert by_float.dtype == np.float64
    np.testing.assert_allclose(by_float, exact, atol=1e-5)
