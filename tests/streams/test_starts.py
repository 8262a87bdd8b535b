"""Streams that begin at the coefficients of a model."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_poisson_deviance

from sklearn_subqn import (
    BMRMRegressor,
    L1LogisticOWLQN,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
)

D = 30
UNITS = 10.0 ** np.linspace(-1.0, 1.0, D)


class Source:
    """Rows of a model, few of them dense or sparse ones of very many columns."""

    def __init__(self, n_classes, n_columns=D):
        self._rng = np.random.default_rng(0)
        self._coef = self._rng.normal(size=(n_classes, D)) / UNITS
        self._n_columns = n_columns
        self._places = np.linspace(0, n_columns - 1, D).astype(int)

    def rows(self, n):
        rng = self._rng
        X = rng.normal(size=(n, D)) * UNITS
        if self._n_columns > D:
            X *= rng.uniform(size=X.shape) < 0.3
        chances = 0.7 * X @ self._coef.T + rng.gumbel(size=(n, len(self._coef)))
        labels = chances.argmax(axis=1)
        if self._n_columns == D:
            return X, labels
        X = sparse.coo_array(X)
        rows, columns = X.coords[0], self._places[X.coords[1]]
        return sparse.csr_array((X.data, (rows, columns)), (n, self._n_columns)), labels


@pytest.mark.parametrize(
    ("n_classes", "n_columns"), [(2, D), (3, D), (2, 60_000)], ids=str
)
def test_a_good_start_stays_good_from_the_first_batch_on(n_classes, n_columns):
    source = Source(n_classes, n_columns)
    rest = source.rows(20_000)
    model = L1LogisticOWLQN(1e-4, l1_ratio=0.0).fit(*source.rows(5000))
    known = log_loss(rest[1], model.predict_proba(rest[0]))
    start = {"coef_init": model.coef_, "intercept_init": model.intercept_}
    warm, cold = OnlineLBFGSClassifier(), OnlineLBFGSClassifier()
    for n_batches in range(1, 101):
        batch = source.rows(64)
        warm.partial_fit(*batch, model.classes_, **start)
        cold.partial_fit(*batch, model.classes_)
        start = {}
        if n_batches in (1, 3, 10, 30, 100):
            warm, cold = (pickle.loads(pickle.dumps(each)) for each in (warm, cold))
            own = log_loss(rest[1], warm.predict_proba(rest[0]))
            assert own <= known * 1.01
            assert own <= log_loss(rest[1], cold.predict_proba(rest[0])) * 1.005
    # 6,400 rows more are worth something.
    assert own < known


def test_a_wrong_start_is_left():
    source = Source(2)
    rest = source.rows(20_000)
    model = L1LogisticOWLQN(1e-4, l1_ratio=0.0).fit(*source.rows(5000))
    start = {"coef_init": -model.coef_[0], "intercept_init": model.intercept_}
    warm, cold = OnlineLBFGSClassifier(), OnlineLBFGSClassifier()
    for _ in range(100):
        batch = source.rows(64)
        warm.partial_fit(*batch, model.classes_, **start)
        cold.partial_fit(*batch, model.classes_)
        start = {}
    losses = [log_loss(rest[1], each.predict_proba(rest[0])) for each in (warm, cold)]
    assert losses[0] <= 1.03 * losses[1]


def test_regression_starts_where_a_proven_model_is():
    rng = np.random.default_rng(0)
    coef = rng.normal(size=D) / UNITS / np.sqrt(D)

    def rows(n):
        X = rng.normal(size=(n, D)) * UNITS + 10.0 * UNITS
        return X, rng.poisson(np.exp((X - 10.0 * UNITS) @ coef))

    rest, data = rows(20_000), rows(5000)
    model = BMRMRegressor(1e-6, loss="poisson").fit(*data)
    stream = OnlineLBFGSRegressor("poisson", alpha=1e-6)
    start = {"coef_init": model.coef_, "intercept_init": model.intercept_}
    for size in (32, 64, 128):
        stream.partial_fit(*rows(size), **start)
        start = {}
        own, known = (
            mean_poisson_deviance(rest[1], each.predict(rest[0]))
            for each in (stream, model)
        )
        assert own <= known * 1.005


@pytest.mark.parametrize("solver", ["sgd", "olbfgs"])
def test_other_methods_start_there_too(solver):
    source = Source(2)
    X, y = source.rows(50)
    coef = np.linspace(-0.1, 0.1, D)
    stream = OnlineLBFGSClassifier(solver=solver, eta0=1e-12)
    stream.partial_fit(X, y, [0, 1], coef_init=coef, intercept_init=0.5)
    np.testing.assert_allclose(stream.coef_[0], coef, atol=1e-8)
    np.testing.assert_allclose(stream.intercept_, 0.5, atol=1e-8)


def test_what_is_refused():
    X, y = Source(2).rows(50)
    stream = OnlineLBFGSClassifier()
    with pytest.raises(ValueError, match="coef_init must have shape"):
        stream.partial_fit(X, y, [0, 1], coef_init=np.zeros(3))
    assert not hasattr(stream, "classes_")
    free = clone(stream).set_params(fit_intercept=False)
    with pytest.raises(ValueError, match="no effect with fit_intercept=False"):
        free.partial_fit(X, y, [0, 1], intercept_init=0.0)
    begun = clone(stream).partial_fit(X, y, [0, 1])
    fitted = clone(stream).set_params(tol=10.0).fit(X, y)
    for model in (begun, fitted):
        before = model.coef_.copy()
        with pytest.raises(ValueError, match="has learned already"):
            model.partial_fit(X, y, coef_init=np.zeros(D))
        np.testing.assert_array_equal(model.coef_, before)
    regressor = OnlineLBFGSRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="has learned already"):
        regressor.partial_fit(X, y, intercept_init=0.0)
