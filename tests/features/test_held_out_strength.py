"""Automatic strengths of classifiers, which held-out rows choose."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    RowBlocks,
    SubLBFGSLinearSVC,
    dual_gap,
)
from sklearn_subqn._estimators import classifier


def text(k, n=1000, d=1500, seed=0):
    """Return tf-idf of words by Zipf's law, some of which tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    common = rng.permutation(1.0 / np.arange(1, d + 1))
    of_class = common * np.exp(rng.normal(size=(k, d)) * (rng.random((k, d)) < 0.1))
    counts = np.stack([rng.multinomial(40, of_class[c] / of_class[c].sum()) for c in y])
    X = np.log1p(counts) * np.log(n / (1.0 + (counts > 0).sum(axis=0)))
    return sparse.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True)), y


def clicks(k, n=3000, seed=0):
    """Return indicators of categories, few of which are frequent; some are rare."""
    rng = np.random.default_rng(seed)
    codes = [np.minimum((3 * rng.pareto(0.7, n)).astype(int), 499) for _ in range(6)]
    scores = sum(rng.normal(size=500)[c] for c in codes) - 4.0
    X = sparse.hstack([sparse.csr_matrix(np.eye(500)[c]) for c in codes], format="csr")
    return X, (scores + rng.logistic(size=n) > 0).astype(int)


def table(k, n=1200, seed=0):
    """Return correlated numbers, each in its own unit, and noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12)))
    y = (X @ rng.normal(size=(12, k)) + 3.0 * rng.normal(size=(n, k))).argmax(axis=1)
    return X, y


def image(k, n=900, seed=0):
    """Return noisy pictures of classes that are seldom in doubt."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return np.maximum(
        rng.normal(size=(k, 60))[y] + 2.0 * rng.normal(size=(n, 60)), 0
    ), y


KINDS = [(text, 5), (text, 2), (clicks, 2), (table, 3), (image, 6)]


def halves(X, y):
    n = len(y) // 2
    return X[:n], y[:n], X[n:], y[n:]


def loss_of(model, X, y):
    return log_loss(y, model.predict_proba(X), labels=model.classes_)


@pytest.mark.parametrize(("kind", "k"), KINDS)
def test_log_losses_are_near_the_best_ones_and_those_of_scikit_learn(kind, k):
    X, y, A, b = halves(*kind(k))
    model = L1LogisticOWLQN(l1_ratio=0.0).fit(X, y)
    found = loss_of(model, A, b)
    assert found < 1.03 * loss_of(LogisticRegression(max_iter=1000).fit(X, y), A, b)
    # Other strengths for features as they are in this model.
    sizes = np.sqrt(model.penalty_factor_)
    U, V = (sparse.csr_matrix(M).multiply(1.0 / sizes).tocsr() for M in (X, A))
    others = [
        loss_of(L1LogisticOWLQN(model.alpha_ * c, l1_ratio=0.0).fit(U, y), V, b)
        for c in 10.0 ** np.arange(-2.0, 3.0)
    ]
    assert found < 1.1 * min(others)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "k"), KINDS)
def test_log_losses_with_l1_are_near_those_of_scikit_learn(kind, k):
    X, y, A, b = halves(*kind(k))
    peer = LogisticRegression(l1_ratio=1.0, solver="saga", max_iter=200, tol=1e-3)
    peers = loss_of(peer.fit(X, y), A, b)
    assert loss_of(L1LogisticOWLQN().fit(X, y), A, b) < 1.05 * peers


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "k"), KINDS)
@pytest.mark.parametrize("joint", [False, True])
def test_hinges_are_as_accurate_as_those_of_scikit_learn(kind, k, joint):
    X, y, A, b = halves(*kind(k))
    ours = MulticlassHingeClassifier() if joint else SubLBFGSLinearSVC()
    options = {"multi_class": "crammer_singer"} if joint else {"loss": "hinge"}
    peer = LinearSVC(**options, random_state=0, max_iter=20_000)
    # A percent, and a standard error of the difference of 450 rows.
    assert ours.fit(X, y).score(A, b) > peer.fit(X, y).score(A, b) - 0.02


@pytest.mark.parametrize("kind", [text, image])
def test_what_was_tried_tells_what_was_chosen(kind):
    X, y = kind(4)
    model = SubLBFGSLinearSVC().fit(X, y)
    tried = model.auto_scores_
    assert len(tried) >= 3
    assert {scaled for _, scaled, _ in tried} == (
        {True, False} if sparse.issparse(X) else {True}
    )
    least = min(loss for *_, loss in tried)
    rule = next(loss for multiple, _, loss in tried if multiple == 1.0)
    assert least <= rule
    again = SubLBFGSLinearSVC().fit(X, y)
    assert np.array_equal(again.alpha_, model.alpha_)


@pytest.mark.parametrize("kind", [text, table])
@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(),
        L1LogisticOWLQN(l1_ratio=0.5),
        MulticlassHingeClassifier(),
        BMRMClassifier(loss="log_loss"),
    ],
    ids=repr,
)
def test_gaps_are_those_of_the_strength_that_was_chosen(kind, model, monkeypatch):
    X, y = kind(3, n=400)
    model = clone(model).fit(X, y)
    assert model.auto_scores_
    # Gaps need no choice: the strength is that of the model, whatever the data are.
    monkeypatch.setattr(classifier, "choose", None)
    gaps, objectives = dual_gap(model, X, y, return_objective=True)
    np.testing.assert_allclose(objectives, model.objective_, rtol=1e-9)
    np.testing.assert_allclose(gaps, model.dual_gap_, atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [SubLBFGSLinearSVC(), MulticlassHingeClassifier(), L1LogisticOWLQN(l1_ratio=0.0)],
    ids=repr,
)
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_sparse_features_keep_their_units_unless_scales_predict_better(model, unit):
    X, y = clicks(2)
    numbers = unit * (y + np.random.default_rng(0).normal(size=(2, len(y)))).T
    X = sparse.hstack([X, sparse.csr_matrix(numbers)], format="csr")
    X, y, A, b = halves(X, y)
    model = clone(model).fit(X, y)
    first, *others = model.auto_scores_
    assert not first[1]
    assert any(scaled for _, scaled, _ in others)
    least = {
        units: min(loss for _, scaled, loss in model.auto_scores_ if scaled == units)
        for units in (True, False)
    }
    chosen = bool(np.ptp(model.penalty_factor_))
    assert chosen == (least[True] < least[False])
    # Both the numbers and the categories are of use, in any unit of the numbers.
    expected = clone(model).fit(X.toarray(), y)
    assert model.score(A, b) > expected.score(A, b) - 0.02


def test_a_choice_does_not_depend_on_an_earlier_fit():
    X, y = table(3)
    model = L1LogisticOWLQN(l1_ratio=0.0).fit(X[:, ::-1] + 1.0, y[::-1])
    model.fit(X, y)
    again = L1LogisticOWLQN(l1_ratio=0.0).fit(X, y)
    assert model.auto_scores_ == again.auto_scores_
    assert np.array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize(
    "model",
    [
        L1LogisticOWLQN(l1_ratio=0.0),
        L1LogisticOWLQN(),
        BMRMClassifier(loss="squared_hinge"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [table, image])
def test_fits_from_the_best_model_of_the_sample_are_proven(model, kind):
    X, y = kind(3)
    found = clone(model).set_params(tol=1e-6).fit(X, y)
    assert np.all(found.dual_gap_ <= 1e-6 * np.abs(found.objective_))
    cold = clone(found)
    cold.set_params(alpha=found.alpha_, penalty_factor=found.penalty_factor_)
    cold.fit(X, y)
    np.testing.assert_allclose(cold.objective_, found.objective_, rtol=2e-6)


def test_fits_to_data_frames_start_at_the_best_model_of_the_sample():
    X, y = table(3)
    frame = pd.DataFrame(X).add_prefix("x")
    model = L1LogisticOWLQN(l1_ratio=0.0, solver="lbfgs", tol=1e-6)
    expected, found = clone(model).fit(X, y), clone(model).fit(frame, y)
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("rare", range(6))
def test_samples_have_a_row_of_each_class(rare):
    X, y = table(3, n=300)
    y[rare] = 3
    costs = 1.0 - np.eye(4)
    model = MulticlassHingeClassifier(label_cost=costs).fit(X, y)
    expected = MulticlassHingeClassifier().fit(X, y)
    assert model.auto_scores_ == expected.auto_scores_ != []


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n", [150, 300])
def test_rows_of_no_weight_do_not_take_part_in_the_choice(make, n):
    X, y = table(2, n=12_000)
    weights = (np.arange(12_000) < n).astype(float)
    model = SubLBFGSLinearSVC().fit(make(X), y, sample_weight=weights)
    expected = SubLBFGSLinearSVC().fit(make(X[:n]), y[:n])
    assert model.alpha_ == pytest.approx(expected.alpha_)
    assert len(model.auto_scores_) == len(expected.auto_scores_)
    assert bool(model.auto_scores_) == (n >= 200)


def test_features_without_a_penalty_do_not_change_the_unit_of_the_others():
    X, y = text(2)
    free = X.getnnz(axis=0) == X.getnnz(axis=0).max()
    losses = [
        min(loss for _, scaled, loss in model.fit(X, y).auto_scores_ if not scaled)
        for model in (BMRMClassifier(penalty_factor=~free), BMRMClassifier())
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_a_choice_says_nothing_of_features_without_a_penalty(k, l1_ratio):
    X, y = table(k, n=400)
    factors = (np.arange(12) > 1).astype(float)
    model = L1LogisticOWLQN(penalty_factor=factors, l1_ratio=l1_ratio)
    warned = []
    for alpha in "auto", 1e-3:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(alpha=alpha).fit(X, y)
        warned.append(len(caught))
    # At most the warning of the fit itself.
    assert warned[0] == warned[1] <= 1


def test_all_solvers_have_the_same_strength():
    X, y = table(2)
    alphas = {
        float(L1LogisticOWLQN(l1_ratio=0.0, solver=solver, tol=0.1).fit(X, y).alpha_)
        for solver in ("auto", "newton-cg", "lbfgs")
    }
    assert len(alphas) == 1


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_of_dense_features_do_not_matter(unit):
    X, y = table(2)
    units = np.where(np.arange(12) % 2, unit, 1.0)
    expected = BMRMClassifier().fit(X, y).decision_function(X)
    scores = BMRMClassifier().fit(X * units, y).decision_function(X * units)
    np.testing.assert_allclose(scores, expected, atol=1e-2 * np.abs(expected).max())


@pytest.mark.parametrize(
    "model",
    [BMRMClassifier(loss="roc_area"), BMRMClassifier(loss="ordinal")],
    ids=lambda model: model.loss,
)
def test_other_losses_have_the_strength_of_the_rule(model):
    X, y = table(2, n=400)
    assert model.fit(X, y).auto_scores_ == []


def test_a_number_is_not_chosen():
    X, y = table(2, n=400)
    model = SubLBFGSLinearSVC().fit(X, y)
    assert model.auto_scores_
    assert not hasattr(clone(model).set_params(alpha=1e-3).fit(X, y), "auto_scores_")
    # Data in blocks have the strength of the rule.
    assert not hasattr(model.fit(RowBlocks(X, y)), "auto_scores_")


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_large_dense_data_in_any_units_are_not_copied(kind, order, l1_ratio, k):
    # More than two million numbers, of which products are made in their units.
    rng = np.random.default_rng(0)
    n, d = 70_000, 32
    X = rng.normal(size=(n, d))
    y = (X[:, :k] + 2.0 * rng.normal(size=(n, k))).argmax(axis=1)
    factors = 10.0 ** rng.integers(-2, 3, d)
    options = {"alpha": 1e-3, "l1_ratio": l1_ratio, "tol": 1e-6}
    expected = L1LogisticOWLQN(**options).fit(X, y)
    sizes = factors if l1_ratio else factors**2
    given = np.asarray(X * factors, dtype=kind, order=order)
    model = L1LogisticOWLQN(**options, penalty_factor=sizes).fit(given, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    atol = 1e-2 if kind is np.float32 else 1e-3
    np.testing.assert_allclose(model.coef_ * factors, expected.coef_, atol=atol)


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(),
        L1LogisticOWLQN(l1_ratio=0.0),
        L1LogisticOWLQN(),
        BMRMRegressor(loss="squared_error"),
        BMRMRegressor(loss="quantile"),
    ],
    ids=repr,
)
def test_scales_take_no_copy_of_large_dense_data(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 100)) * 10.0 ** rng.integers(-2, 3, 100)
    y = (X[:, 0] / X[:, 0].std() + rng.normal(size=40_000) > 0).astype(int)
    peak = peak_of(model, X, y)
    assert peak < X.nbytes


def peak_of(model, X, y):
    """Return the most memory that a fit takes."""
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
