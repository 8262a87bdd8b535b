"""Large dense arrays of mostly zeros are solved as sparse, and stored as dense."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn import BMRMRegressor, L1LogisticOWLQN, MulticlassHingeClassifier
from sklearn_subqn._core.rows import row_views
from sklearn_subqn._core.rows.row_views import mostly_zeros_as_csr


@pytest.fixture
def of_any_size(monkeypatch):
    monkeypatch.setattr(row_views, "_FEWEST_ENTRIES", 0)


def frame(n=300, sizes=(20, 15, 25), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    parts = [np.eye(size)[rng.integers(0, size, n)] for size in sizes]
    X = np.concatenate([*parts, rng.normal(size=(n, 1))], axis=1).astype(dtype)
    return X, X @ rng.normal(size=X.shape[1]) + rng.normal(size=n)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csr_has_the_same_entries(of_any_size, order, dtype, monkeypatch):
    monkeypatch.setattr(row_views, "BLOCK_SIZE", 1000)
    X, _ = frame(dtype=dtype)
    X = np.asarray(X, order=order)
    X.flags.writeable = False
    found = mostly_zeros_as_csr(X)
    expected = sparse.csr_array(X)
    assert found.dtype == dtype
    assert found.has_canonical_format
    assert found.nnz == expected.nnz
    np.testing.assert_array_equal(found.toarray(), X)
    sizes = [each.nbytes for each in (found.data, found.indices, found.indptr)]
    assert sum(sizes) < X.nbytes / 2


def test_other_rows_stay_as_they_are(of_any_size, monkeypatch):
    X, _ = frame()
    dense = np.ones((50, 4))
    assert mostly_zeros_as_csr(dense) is dense
    csr = sparse.csr_array(X)
    assert mostly_zeros_as_csr(csr) is csr
    # Zeros in the sampled rows alone.
    periodic = np.ones((4000, 5))
    periodic[:: len(periodic) // row_views._SAMPLED_ROWS] = 0.0
    assert mostly_zeros_as_csr(periodic) is periodic
    monkeypatch.undo()
    assert mostly_zeros_as_csr(X) is X


@pytest.mark.parametrize(
    "model",
    [
        BMRMRegressor(1e-3, loss="squared_error", tol=1e-8),
        BMRMRegressor(1e-3, loss="quantile", tol=1e-5),
        L1LogisticOWLQN(1e-3, tol=1e-8),
        L1LogisticOWLQN("auto", tol=1e-8),
        MulticlassHingeClassifier(1e-2, tol=1e-5),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stored_model_is_that_of_dense_rows(model, dtype, monkeypatch):
    pandas = pytest.importorskip("pandas")
    X, y = frame(dtype=dtype)
    names = [f"feature {j}" for j in range(X.shape[1])]
    data = pandas.DataFrame(X, columns=names)
    if not isinstance(model, BMRMRegressor):
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
        if isinstance(model, L1LogisticOWLQN):
            y = y > 0
    dense = dict(vars(model.fit(data, y)))
    before = dense["objective_"], dense["dual_gap_"]
    monkeypatch.setattr(row_views, "_FEWEST_ENTRIES", 0)
    model.fit(data, y)
    assert type(model.coef_) is np.ndarray
    assert model.coef_.dtype == dense["coef_"].dtype == dtype
    assert model.coef_.shape == dense["coef_"].shape
    assert list(model.feature_names_in_) == names
    assert np.all(model.alpha_ == dense["alpha_"])
    # Each value is above the other's lower bound.
    slack = 1e-6 * np.abs(before[0])
    assert np.all(model.objective_ - model.dual_gap_ <= before[0] + slack)
    assert np.all(before[0] - before[1] <= model.objective_ + slack)
