"""Sums over many equal rows, each of which rounding changes alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn._core.design import Design
from sklearn_subqn._core.losses import BINARY_LOSSES
from sklearn_subqn._core.losses._base import rounding

N = 200_000


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_values(name):
    """Errors remain below what the root of the number of terms is charged for."""
    oracle = BINARY_LOSSES[name].oracle
    z, y, s = np.full(N, 0.3), np.ones(N), np.full(N, 1.0 / N)
    one = oracle.value(z[:1], y[:1], np.ones(1))
    expected = np.longdouble(one) * np.longdouble(s[0]) * N
    assert abs(oracle.value(z, y, s) - expected) <= rounding(N) * expected


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_columns(make, dtype):
    X = np.full((N, 3), 0.1, dtype=dtype)
    dual = np.full(N, 0.7 / N)
    expected = np.longdouble(dual[0]) * np.longdouble(X[0, 0]) * N
    product = Design(make(X)).adjoint(dual)[:3]
    assert np.all(np.abs(product - expected) <= rounding(N) * expected)
