"""Dense problems of one compiled loop: its proofs hold, whatever the features are."""

from __future__ import annotations

import numpy as np
import pytest
from _door import copy_no_rows
from sklearn.base import clone

from sklearn_subqn import BMRMClassifier, BMRMRegressor, L1LogisticOWLQN, dual_gap

CLASSES = ["hinge", "squared_hinge", "log_loss", "modified_huber"]
NUMBERS = ["poisson", "gamma", "huber", "quantile", "squared_error"]


def features(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    if kind == "correlated":
        X = X @ rng.normal(size=(d, d)) / np.sqrt(d)
    elif kind == "units":
        X *= 10.0 ** rng.uniform(-2.0, 2.0, size=d)
    elif kind == "degenerate":
        X[:, 0], X[:, 1], X[:, 2] = 0.0, 1.0, X[:, 3]
    elif kind == "far from zero":
        X += 5.0 * rng.normal(size=d)
    return X


def problem(kind, loss, n=4500, d=95):
    rng = np.random.default_rng(0)
    X = features(kind, n, d, rng)
    scores = X @ rng.normal(size=d)
    scores *= 2.0 / scores.std()
    scores -= scores.mean()
    if loss in CLASSES:
        return X, (scores + rng.logistic(size=n) > 0.0).astype(int)
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.25 * scores)).astype(float)
    if loss == "gamma":
        return X, rng.gamma(2.0, np.exp(0.25 * scores))
    return X, scores + rng.standard_t(2, size=n)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", CLASSES + NUMBERS)
@pytest.mark.parametrize(
    "kind", ["independent", "correlated", "units", "degenerate", "far from zero"]
)
def test_tolerances_are_reached_and_proven(kind, loss, penalty):
    X, y = problem(kind, loss)
    estimator = BMRMClassifier if loss in CLASSES else BMRMRegressor
    # Sparse data in units of their own go other ways, to the same minimum.
    alpha = 1e-3 if penalty == "l2" else 1e-2
    model = estimator(alpha, loss=loss, penalty=penalty, tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * max(abs(model.objective_), 1e-3)
    other = estimator(alpha, loss=loss, penalty=penalty, tol=1e-4)
    other.fit(X.astype(np.float32), y)
    bound = other.objective_ - other.dual_gap_
    assert model.objective_ >= bound - 1e-5 * abs(bound)
    assert other.objective_ >= (model.objective_ - model.dual_gap_) * (1.0 - 1e-5)


@pytest.mark.parametrize("k", [3, 12])
@pytest.mark.parametrize("kind", ["independent", "correlated", "degenerate"])
def test_classes_together(kind, k):
    rng = np.random.default_rng(0)
    X = features(kind, 5000, 85, rng)
    scores = X @ rng.normal(size=(85, k)) / 9.0 + rng.gumbel(size=(5000, k))
    y = scores.argmax(axis=1)
    model = L1LogisticOWLQN(1e-3, l1_ratio=0.0, tol=1e-5).fit(X, y)
    assert model.dual_gap_ <= 1e-5 * model.objective_
    assert float(np.max(dual_gap(model, X, y))) <= 2e-5 * model.objective_


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS, "classes"])
def test_columns_divided_in_products_lead_to_the_same_optimum(
    loss, penalty, monkeypatch
):
    """The loop reads data as they are that are too large to be divided in a copy."""
    X, y = problem("units", loss, n=1500, d=20)
    if loss == "classes":
        model = L1LogisticOWLQN(l1_ratio=0.0, tol=1e-7)
        y = np.digitize(y, [-1.0, 1.0])
    else:
        estimator = BMRMClassifier if loss in CLASSES else BMRMRegressor
        model = estimator(loss=loss, penalty=penalty, tol=1e-7)
    copied = clone(model).fit(X, y)
    copy_no_rows(monkeypatch)
    model.fit(X, y)
    assert model.alpha_ == copied.alpha_
    gap = model.dual_gap_ + copied.dual_gap_
    assert model.dual_gap_ <= 1e-7 * max(abs(model.objective_), 1e-3)
    assert model.objective_ == pytest.approx(copied.objective_, abs=gap + 1e-13)
