"""Columns far from zero, in any units, give the models of the same columns near zero.

Numbers have so few digits that adding offsets to them is exact.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from operator import mul

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    RowBlocks,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    dual_gap,
)
from sklearn_subqn._features.shift import Shift
from sklearn_subqn.losses import Ontology

N = 90
# About 1e3, 1e6 and 1e9 times the spread of the columns.
OFFSETS = np.array([2.0**10, -(2.0**20), 2.0**30])
QUERIES = np.repeat(np.arange(9), N // 9)


def features(seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, 3)) * 2**16) / 2**16
    return X, X @ np.array([2.0, -1.0, 0.5]) + 0.7 * rng.normal(size=N)


X, S = features()
TWO, FOUR = (S > 0.5).astype(int), np.digitize(S, [-2.0, 0.0, 2.0])
SEVERAL = np.column_stack([S, -S + X[:, 2]])
LABELS = np.column_stack([S > 0.0, X[:, 0] > 0.3, X[:, 1] > S]).astype(int)
COUNTS = np.floor(np.exp(0.4 * S))

# Two groups of two leaves.
TREE = Ontology(
    np.column_stack([np.repeat(np.eye(2), 2, axis=0), np.eye(4)]), 1.0 - np.eye(4)
)


def svc(**params):
    return SubLBFGSLinearSVC(1e-2, **params)


def classifier(loss, **params):
    return BMRMClassifier(params.pop("alpha", 1e-2), loss=loss, **params)


def regressor(loss, **params):
    return BMRMRegressor(params.pop("alpha", 1e-2), loss=loss, **params)


CASES = [
    (svc(), TWO),
    (svc(), FOUR),
    (svc(loss="squared_hinge"), TWO),
    (SubLBFGSLinearSVCCV([1e-1, 1e-2], cv=3), TWO),
    (MulticlassHingeClassifier(1e-2), TWO),
    (MulticlassHingeClassifier(1e-2), FOUR),
    (MulticlassHingeClassifier(1e-2, rescaling="slack"), FOUR),
    (MultilabelHingeClassifier(1e-2), LABELS),
    (MultilabelHingeClassifier(1e-2, reduction="max"), LABELS),
    (MultilabelHingeClassifier(1e-2, threshold=False), LABELS),
    (L1LogisticOWLQN(1e-2), TWO),
    (L1LogisticOWLQN(1e-2), FOUR),
    (L1LogisticOWLQN(1e-2, l1_ratio=0.0), FOUR),
    (L1LogisticOWLQNCV([1e-1, 1e-2], cv=3), TWO),
    *((classifier(loss), TWO) for loss in ("hinge", "log_loss", "modified_huber")),
    *((classifier(loss), TWO) for loss in ("exponential", "f_beta", "f_beta_bound")),
    (classifier("roc_area"), TWO),
    (classifier("roc_area"), FOUR),
    (classifier("precision_at_k", k=9), TWO),
    (classifier("recall_at_k", k=9), TWO),
    (classifier("ordinal"), FOUR),
    (classifier("ordinal_all_threshold"), FOUR),
    (classifier("ordinal_immediate_threshold"), TWO),
    (classifier(TREE), FOUR),
    (classifier("hinge", penalty="l1"), TWO),
    *((regressor(loss), S) for loss in ("absolute_error", "quantile", "huber")),
    *((regressor(loss), S) for loss in ("squared_error", "epsilon_insensitive")),
    (regressor("poisson"), COUNTS),
    (regressor("absolute_error"), SEVERAL),
    (regressor("squared_error", metric=np.array([[2.0, 1.0], [1.0, 2.0]])), SEVERAL),
    *((regressor("huber", penalty=p), S) for p in ("elasticnet", "lp")),
    (regressor("squared_error", penalty="quadratic", penalty_matrix=np.eye(3)), S),
    (regressor("squared_error", penalty="entropy"), S),
    *(
        (BMRMRanker(1e-2, loss=loss), FOUR)
        for loss in ("pairwise", "pairwise-log", "ndcg", "ndcg-assignment")
    ),
    (BMRMRankerCV([1e-1, 1e-2], cv=3), FOUR),
]


def name(index):
    estimator, _ = CASES[index]
    loss = getattr(estimator, "loss", "")
    return f"{type(estimator).__name__}-{loss if isinstance(loss, str) else 'tree'}"


def fit(estimator, X, y, **params):
    model = clone(estimator).set_params(**params)
    more = {"qid": QUERIES} if isinstance(model, (BMRMRanker, BMRMRankerCV)) else {}
    return model.fit(X, y, **more)


def scores(model, X):
    """Return scores by the stored coefficients, less what the loss leaves open."""
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    found = X @ coef.T + intercept
    loss = getattr(model, "loss", "")
    if isinstance(model, (BMRMRanker, BMRMRankerCV)) or loss in ("roc_area", "ordinal"):
        # Differences of rows count; hinges have several best intercepts.
        return found - found.mean(axis=0)
    if isinstance(model, L1LogisticOWLQN) and len(coef) > 1:
        return found - found.mean(axis=1, keepdims=True)
    return found


@cache
def plain(index):
    return fit(CASES[index][0], X, CASES[index][1])


def check_same(moved, plain, X_moved):
    assert np.all(moved.dual_gap_ <= 1e-3 * np.abs(moved.objective_) + 1e-12)
    gap = np.max(plain.dual_gap_ + moved.dual_gap_)
    assert_allclose(moved.objective_, plain.objective_, rtol=1e-9, atol=gap)
    if gap <= 1e-9:
        assert_allclose(scores(moved, X_moved), scores(plain, X), atol=1e-4)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("index", range(len(CASES)), ids=name)
def test_far_columns_give_the_same_model(index, container):
    estimator, y = CASES[index]
    check_same(fit(estimator, container(X + OFFSETS), y), plain(index), X + OFFSETS)


@pytest.mark.parametrize("unit", [2.0**-17, 2.0**17])
@pytest.mark.parametrize("index", range(len(CASES)), ids=name)
def test_far_columns_in_other_units_give_the_same_model(index, unit):
    estimator, y = CASES[index]
    far = unit * (X + OFFSETS)
    penalty = getattr(estimator, "penalty", "l2")
    if penalty in ("elasticnet", "entropy"):
        pytest.skip("no alpha makes up for units")
    is_l1 = penalty == "l1" or getattr(estimator, "l1_ratio", 0.5) == 1.0
    power = 1 if is_l1 else 2
    of = "alphas" if hasattr(estimator, "alphas") else "alpha"
    strength = np.multiply(getattr(estimator, of), unit**power)
    check_same(fit(estimator, far, y, **{of: strength}), plain(index), far)


def test_objective_is_that_of_the_stored_coefficients():
    far = X + OFFSETS
    model = BMRMRegressor(1e-2, loss="absolute_error").fit(far, S)
    w = [Fraction(c) for c in model.coef_.tolist()]
    rows = [[Fraction(x) for x in row] for row in far.tolist()]
    b = Fraction(float(model.intercept_))
    losses = [
        abs(sum(map(mul, row, w)) + b - Fraction(y))
        for row, y in zip(rows, S.tolist(), strict=True)
    ]
    exact = sum(losses) / N + Fraction(1, 200) * sum(c * c for c in w)
    assert abs(model.objective_ - float(exact)) <= 1e-14


@pytest.mark.parametrize("index", [1, 5, 7, 10, 22, 26, 29, 33])
def test_warm_starts_with_far_columns_begin_at_the_solution(index):
    estimator, y = CASES[index]
    model = clone(estimator).set_params(warm_start=True)
    first = model.fit(X + OFFSETS, y).history_[0].objective[0]
    value = np.max(np.atleast_1d(model.objective_)[0])
    again = model.fit(X + OFFSETS, y).history_[0].objective[0]
    # The intercept has lost digits.
    assert again <= value + 1e-5 * (first - value)


@pytest.mark.parametrize("weighted", [False, True])
def test_float32_columns_far_from_zero(weighted):
    far = (X[:, :1] + OFFSETS[0]).astype(np.float32)
    weights = 1.0 + np.arange(N) % 3 if weighted else None
    exact = BMRMRegressor(1e-2, loss="huber").fit(far.astype(float), S, weights)
    model = BMRMRegressor(1e-2, loss="huber").fit(far, S, weights)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert_allclose(model.coef_, exact.coef_, rtol=1e-4)
    # Intercepts about 2000 are rounded to 1e-4.
    assert_allclose(model.predict(far), exact.predict(far), atol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_without_weight_do_not_count_for_what_is_far(container):
    weights = (np.arange(N) % 3 > 0).astype(float)
    junk = X + OFFSETS
    junk[weights == 0.0] = 1e-3
    model = BMRMRegressor(1e-2, loss="quantile").fit(container(junk), S, weights)
    used = BMRMRegressor(1e-2, loss="quantile").fit(
        (X + OFFSETS)[weights > 0.0], S[weights > 0.0]
    )
    gap = model.dual_gap_ + used.dual_gap_
    assert_allclose(model.objective_, used.objective_, rtol=1e-9, atol=gap)


def test_columns_of_sparse_data_with_entries_that_are_not_stored():
    far = X + OFFSETS
    far[::2, 1] = 0.0
    model = BMRMRegressor(1e-2, loss="huber").fit(sparse.csr_array(far), S)
    dense = BMRMRegressor(1e-2, loss="huber").fit(far, S)
    assert_allclose(model.objective_, dense.objective_, rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_data_are_left_as_they_are_and_copied_only_if_need_be(container, monkeypatch):
    far, near = container(X + OFFSETS), container(X + 20.0)
    kept = far.copy()
    (far.data if sparse.issparse(far) else far).setflags(write=False)
    svc().fit(far, TWO)
    assert abs(far - kept).max() == 0.0
    monkeypatch.setattr(Shift, "subtracted", None)
    svc().fit(near, TWO)


@pytest.mark.parametrize("offset", [2.0**10, 2.0**16, 2.0**20, 2.0**30])
def test_streams_of_far_columns(offset):
    rng = np.random.default_rng(5)
    near = rng.normal(size=(3000, 3))
    s = near @ np.array([2.0, -1.0, 0.5])
    far = near + np.array([offset, 0.0, -offset])
    regressor = OnlineLBFGSRegressor(alpha=1e-6, random_state=0)
    classifier = OnlineLBFGSClassifier(alpha=1e-6, random_state=0)
    assert clone(regressor).fit(far, s).score(far, s) > 0.99
    assert clone(classifier).fit(far, s > 0.0).score(far, s > 0.0) > 0.97
    for start in range(0, 3000, 100):
        rows = slice(start, start + 100)
        regressor.partial_fit(far[rows], s[rows])
        classifier.partial_fit(far[rows], s[rows] > 0.0, classes=[False, True])
    assert regressor.score(far, s) > 0.99
    assert classifier.score(far, s > 0.0) > 0.97


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_objectives_where_single_precision_would_round_differences(form):
    # In blocks, columns are far from zero where nearly all weight is in one row.
    far = np.array([[0.3], [34.93279], [12.211286], [-1.1849455]], dtype=np.float32)
    targets = np.array([-0.1, -1500.0, -7.0, 700.0])
    weights = np.array([6e-5, 1e-3, 2e5, 3.0])
    estimator = BMRMRegressor(2e-3, loss="squared_error", penalty="l1", tol=1e-12)
    exact = clone(estimator).fit(far.astype(np.float64), targets, weights)
    blocks = RowBlocks(form(far), targets, weights, block_size=2)
    given = {"estimator": estimator, "return_objective": True}
    gap, objective = dual_gap(exact, blocks, **given)
    assert objective == pytest.approx(exact.objective_, rel=1e-13)
    assert gap <= 1e-9 * objective
