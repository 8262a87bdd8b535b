"""Objectives of float32 data are those of the coefficients as they are stored.

By definitions in extended precision, of scores of the stored coefficients.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
    losses,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LONG = np.longdouble
N, D = 24, 3


def data(n_classes=2, dtype=np.float32):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D)).astype(dtype)
    y = np.argmax(
        X @ rng.normal(size=(D, n_classes)) + rng.normal(size=(N, n_classes)), 1
    )
    return X, y


def stored(model):
    """Return coefficients of shape (k, d) and intercepts in extended precision."""
    coef = np.atleast_2d(model.coef_)
    return coef.astype(LONG), np.atleast_1d(model.intercept_).astype(LONG)


def scores(model, X, *, both=False):
    coef, intercept = stored(model)
    Z = X.astype(LONG) @ coef.T + intercept
    if both and Z.shape[1] == 1:
        # Of two classes the difference is stored: half of it is for either.
        Z = np.hstack([-Z / 2, Z / 2])
        coef = np.vstack([-coef / 2, coef / 2])
    return Z, (coef**2).sum() / 2


def softplus(x):
    return np.logaddexp(LONG(0), x)


def pairs(z, y, kind, linear=False):
    i, j = np.nonzero(y[:, None] < y[None])
    costs = (y[j] - y[i]) if linear else np.ones(len(i))
    return (kind(z[i] - z[j]) * costs).sum() / len(i)


def hinge(m):
    return np.maximum(0, 1 + m)


def of_signs(make, kind):
    def fitted():
        X, y = data()
        model = make().fit(X, y)
        Z, penalty = scores(model, X)
        return model, model.alpha * penalty + kind(np.where(y, -1, 1) * Z[:, 0]).mean()

    return fitted


def multiclass(n_classes):
    def fitted():
        X, y = data(n_classes)
        model = MulticlassHingeClassifier(1e-2).fit(X, y)
        Z, penalty = scores(model, X, both=True)
        margins = (np.arange(n_classes) != y[:, None]) + Z - Z[np.arange(N), y][:, None]
        return model, 1e-2 * penalty + margins.max(axis=1).mean()

    return fitted


def softmax(n_classes):
    def fitted():
        X, y = data(n_classes)
        model = L1LogisticOWLQN(1e-2).fit(X, y)
        Z, _ = scores(model, X, both=True)
        if n_classes == 2:
            Z = Z - Z[:, :1]
        loss = np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(N), y]
        return model, 1e-2 * np.abs(stored(model)[0]).sum() + loss.mean()

    return fitted


def multilabel():
    X, y = data(3)
    Y = np.stack([y > 0, y < 2, X[:, 0] > 0], axis=1).astype(int)
    model = MultilabelHingeClassifier(1e-2, reduction="max").fit(X, Y)
    coef, _ = stored(model)
    Z, _ = scores(model, X)
    # The threshold is subtracted: all four sum to zero before.
    own = -coef.sum(axis=0) / 4
    penalty = ((coef + own) ** 2).sum() / 2 + (own**2).sum() / 2
    off = np.where(Y, -np.inf, LONG(0.5) + Z).max(axis=1)
    on = np.where(Y, LONG(0.5) - Z, -np.inf).max(axis=1)
    loss = np.maximum(off, 0) + np.maximum(on, 0)
    return model, 1e-2 * penalty + loss.mean()


def f_beta():
    X, y = data()
    # Intercepts are large, and so is what rounding takes from them.
    X += np.float32(1000.0)
    model = BMRMClassifier(1e-2, loss="f_beta").fit(X, y)
    coef, intercept = stored(model)
    z = X.astype(LONG) @ coef[0] + intercept[0] + LONG(model.threshold_)
    weights = np.where(y, LONG(model.positive_weight_), 1)
    squares = np.maximum(0, 1 - np.where(y, z, -z)) ** 2
    loss = (weights * squares).sum() / weights.sum()
    return model, 1e-2 * (coef**2).sum() / 2 + loss


def roc_area():
    X, y = data()
    model = BMRMClassifier(1e-2, loss="roc_area").fit(X, y)
    Z, penalty = scores(model, X)
    return model, 1e-2 * penalty + pairs(Z[:, 0], y, hinge)


def ordinal(loss):
    def fitted():
        X, y = data(5)
        X += np.float32(1000.0)
        model = BMRMClassifier(1e-2, loss=loss).fit(X, y)
        coef, intercept = stored(model)
        z, free = X.astype(LONG) @ coef[1], np.diff(intercept)
        if loss == "ordinal":
            risk = pairs(z, y, hinge)
        else:
            above = np.arange(4) < y[:, None]
            m = z[:, None] + free
            every = softplus(np.where(above, -m, m))
            risk = every.sum(axis=1).mean()
        return model, 1e-2 * (coef[1] ** 2).sum() / 2 + risk

    return fitted


GRAPHS = {
    "two": ([[-1], [0], [0]], [[1, 1, 0], [1, 0, 1]]),
    "four": (
        [[-1], [-1], [0], [0], [1], [1]],
        [
            [1, 0, 1, 0, 0, 0],
            [1, 0, 0, 1, 0, 0],
            [0, 1, 0, 0, 1, 0],
            [0, 1, 0, 0, 0, 1],
        ],
    ),
}


def ontology(name):
    def fitted():
        parents, paths = GRAPHS[name]
        paths = np.array(paths, dtype=float)
        k = len(paths)
        X, y = data(k)
        loss = losses.Ontology.from_parents(parents)
        model = BMRMClassifier(1e-2, loss=loss).fit(X, y)
        coef, intercept = stored(model)
        features = paths if k > 2 else paths[1:] - paths[:1]
        nodes = np.linalg.pinv(features).astype(LONG)
        # Newton's step towards the inverse in extended precision.
        nodes = nodes @ (2 * np.eye(len(features)) - features @ nodes)
        Z = X.astype(LONG) @ coef.T + intercept
        Z = Z if k > 2 else np.hstack([0 * Z, Z])
        costs = np.abs(paths[:, None] - paths[None]).sum(axis=2) / 2
        margins = costs[y] + Z - Z[np.arange(N), y][:, None]
        penalty = ((nodes @ coef) ** 2).sum() / 2
        return model, 1e-2 * penalty + margins.max(axis=1).mean()

    return fitted


def regression(loss, kind):
    def fitted():
        X, _ = data()
        t = np.random.default_rng(1).normal(size=N)
        model = BMRMRegressor(1e-2, loss=loss).fit(X, t)
        Z, penalty = scores(model, X)
        return model, 1e-2 * penalty + kind(t - Z[:, 0]).mean()

    return fitted


def preferences():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)).astype(np.float32)
    X[::2] *= np.float32(1e-6)
    utility = X.astype(float) @ [1.0, -1.0, 0.3] + rng.normal(size=N)
    better, worse = np.nonzero(utility[:, None] > utility + 1.0)
    model = BMRMRanker(1e-2, loss="pairwise").fit(X, pairs=np.stack([better, worse], 1))
    Z, penalty = scores(model, X)
    return model, 1e-2 * penalty + hinge(Z[worse, 0] - Z[better, 0]).mean()


def ranking():
    X, y = data(3)
    model = BMRMRanker(1e-2, loss="pairwise").fit(X, y)
    Z, penalty = scores(model, X)
    return model, 1e-2 * penalty + pairs(Z[:, 0], y, hinge)


def outliers():
    X, _ = data()
    model = BMRMOutlierDetector(1e-2).fit(X + np.float32(2.0))
    coef, _ = stored(model)
    z = (X + np.float32(2.0)).astype(LONG) @ coef[0]
    return model, 1e-2 * (coef**2).sum() / 2 + np.maximum(0, 1 - z).mean()


CASES = {
    "svc": of_signs(lambda: SubLBFGSLinearSVC(1e-2), hinge),
    "squared svc": of_signs(
        lambda: SubLBFGSLinearSVC(1e-2, loss="squared_hinge"), lambda m: hinge(m) ** 2
    ),
    "log loss": of_signs(lambda: BMRMClassifier(1e-2, loss="log_loss"), softplus),
    "multiclass, 2": multiclass(2),
    "multiclass, 4": multiclass(4),
    "logistic, 2": softmax(2),
    "logistic, 3": softmax(3),
    "multilabel": multilabel,
    "f_beta": f_beta,
    "roc_area": roc_area,
    "ordinal": ordinal("ordinal"),
    "thresholds": ordinal("ordinal_all_threshold"),
    "ontology, 2": ontology("two"),
    "ontology, 4": ontology("four"),
    "absolute error": regression("absolute_error", np.abs),
    "squared error": regression("squared_error", lambda r: r**2 / 2),
    "preferences": preferences,
    "ranking": ranking,
    "outliers": outliers,
}


@pytest.mark.parametrize("name", CASES)
def test_objectives_are_those_of_stored_coefficients(name):
    model, expected = CASES[name]()
    assert model.coef_.dtype == np.float32
    assert abs(model.objective_ - expected) <= 1e-13 * abs(expected)


def test_shares_of_a_warm_start_sum_to_one_in_double_precision():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(2, 3)), rng.normal(size=2)
    model = BMRMRegressor(
        10.0, loss="absolute_error", penalty="normalized_entropy", warm_start=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.astype(np.float32), y).fit(X, y)
    w = model.coef_
    assert abs(w.sum() - 1.0) <= 1e-15
    value = np.abs(X @ w + model.intercept_ - y).mean() + 10.0 * (w @ np.log(w))
    assert model.objective_ == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("solver", ["ls-bmrm", "auto"])
def test_coefficients_far_below_the_intercept_are_those_that_are_stored(solver):
    """Rounding to float32 changes them by little of the intercept -1, but it counts."""
    X = np.zeros((12, 1), dtype=np.float32)
    X[:3, 0] = 1.1e9, 3e9, -0.7e9
    y = np.repeat([1, 0], [3, 9])
    model = BMRMClassifier(1e-3, loss="hinge", solver=solver, tol=1e-9).fit(X, y)
    assert model.intercept_ == -1.0
    assert 0.0 < model.coef_[0, 0] < 1e-8
    z, penalty = scores(model, X)
    each = np.maximum(1 - np.where(y == 1, 1, -1) * z[:, 0], 0)
    exact = float(LONG(1e-3) * penalty + each.mean())
    assert model.objective_ == pytest.approx(exact, rel=1e-14)
