"""Columns in units so large that the penalty all but leaves them free."""

import numpy as np
import pytest
from _door import (
    L2,
    Design,
    DualLoss,
    Objective,
    Options,
    PartlyFree,
    Risk,
    Simplex,
    Start,
    auto,
    minimize_intercept,
    to_the_end,
)
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
)
from sklearn_subqn._core.steps.free_mixtures import bound_without
from sklearn_subqn.losses import RocArea

#: Units of a column of times: of size one hundred thousand, seconds, milliseconds and
#: nanoseconds since 1970.
ROUGH, UNITS = 1e5, (1.7e9, 1.7e12, 1.7e18)


def times(n, unit, seed=0):
    """Return two features and a time, missing as 0, and scores with noise."""
    rng = np.random.default_rng(seed)
    time = (1.0 + 0.02 * rng.random(n)) * (rng.random(n) < 0.8)
    X = np.column_stack([rng.normal(size=(n, 2)), unit * time])
    return X, X[:, 0] - X[:, 1] + (time > 0) + rng.logistic(size=n)


def grades(scores):
    return np.digitize(scores, [-0.5, 0.8])


def labels(scores):
    return np.stack([scores > 0, scores > 1, scores < -0.5], axis=1).astype(int)


def of_queries(model, X, y):
    return model.fit(X, y, qid=np.arange(len(y)) // 10)


def fit(model, X, y):
    return model.fit(X, y)


CASES = [
    (BMRMClassifier(1e-2, loss="roc_area"), lambda scores: scores > 0.5, fit),
    (BMRMRanker(1e-2), grades, of_queries),
    (MulticlassHingeClassifier(1e-2), grades, fit),
    (MultilabelHingeClassifier(1e-2), labels, fit),
    (L1LogisticOWLQN(1e-2, l1_ratio=0), grades, fit),
    (BMRMClassifier(1e-2), lambda scores: scores > 0.5, fit),
    (BMRMClassifier(1e-2, loss="log_loss"), lambda scores: scores > 0.5, fit),
    (BMRMClassifier(1e-2, loss="squared_hinge"), lambda scores: scores > 0.5, fit),
    (BMRMRegressor(1e-2), np.array, fit),
    (BMRMRegressor(1e-2, loss="huber"), np.array, fit),
    (BMRMRegressor(1e-2, loss="quantile"), np.array, fit),
    (BMRMRegressor(1e-2, loss="poisson"), grades, fit),
]
IDS = ["roc_area", "ranker", "multiclass", "multilabel", "multinomial"]
IDS += ["hinge", "log_loss", "squared_hinge"]
IDS += ["squared_error", "huber", "quantile", "poisson"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("model", "encode", "fitted"), CASES, ids=IDS)
def test_objectives_do_not_depend_on_large_units(model, encode, fitted, unit):
    """In a unit of 1e5 the penalty of the column is next to nothing, too."""
    expected = fitted(model, *encoded(ROUGH, encode)).objective_
    model = fitted(model, *encoded(unit, encode))
    assert model.objective_ == pytest.approx(expected, rel=1e-5)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # The penalty in the rough unit is larger.
    assert model.objective_ - model.dual_gap_ <= expected


def encoded(unit, encode):
    X, scores = times(120, unit)
    return X, encode(scores)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_any_kind(kind, dtype):
    X, y = encoded(1.7e9, grades)
    expected = MulticlassHingeClassifier(1e-2).fit(X.astype(dtype), y)
    model = MulticlassHingeClassifier(1e-2).fit(kind(X.astype(dtype)), y)
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-3)


def test_a_column_that_tells_classes_apart_alone():
    """No dual point is balanced in it, and the optimum is next to zero."""
    X, _ = times(60, 1.7e9)
    y = (X[:, 2] > 0.0).astype(int)
    model = BMRMClassifier(1e-2, loss="roc_area").fit(X, y)
    assert model.objective_ <= 1e-9
    assert model.dual_gap_ <= 1e-9


def objectives(loss, targets, X, free, fit_intercept=False, n_outputs=None):
    """Return an objective, and the one that leaves some of the columns free."""
    n = len(X)
    design = Design(X, fit_intercept=fit_intercept, n_outputs=n_outputs)
    risk = Risk(design, DualLoss.of(loss), targets, np.full(n, 1.0 / n))
    penalized = Objective(risk, L2(design.n_coef), 1e-2)
    mask = np.repeat(free, n_outputs or 1)
    return penalized, penalized.with_regularizer(PartlyFree(L2(design.n_coef), mask))


def problem(name, seed):
    X, scores = times(40, 1.0, seed)
    X = np.column_stack([X, np.random.default_rng(seed).normal(size=(40, 1))])
    free = np.array([False, False, True, True])
    # The penalty of large columns is tiny.
    X[:, free] *= 1e5
    if name == "pairs":
        return objectives(RocArea(), np.sign(scores - 0.5), X, free)
    costs = 1.0 - np.eye(3)
    return objectives(Simplex(costs), grades(scores), X, free, True, 3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["pairs", "simplex"])
def test_mixtures_prove_bounds_without_a_penalty(name, seed):
    penalized, free = problem(name, seed)
    start = Start(np.zeros(penalized.n_params))
    best = None
    iterates = to_the_end(auto(penalized, start, Options()))
    for _, iterate in zip(range(150), iterates, strict=False):
        best = iterate if best is None else best.or_better(iterate)
    cut = best.cut if best.proof is None or best.cut else penalized.cut(best.proof)
    bound = bound_without(free, cut, best.point)
    # True at the solution and at points around it, whatever the free coefficients.
    rng, w = np.random.default_rng(seed), best.point.w
    for size in (0.0, 1e-3, 1e-1, 1.0, 10.0):
        for _ in range(10):
            change = rng.normal(size=w.shape) / penalized.risk.column_sizes
            point = free.at(w + size * change)
            assert bound <= minimize_intercept(point).value
    assert bound >= free.at(w).value - 1e-3
