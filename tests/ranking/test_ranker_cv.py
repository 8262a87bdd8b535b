"""Rankers that choose alpha by cross-validation over queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from sklearn_subqn import BMRMRanker, BMRMRankerCV, PathScoreDisplay

ALPHAS = [1.0, 1e-2, 1e-4]


def queries(n_queries=9, size=8):
    """Return rows whose order is known but for noise, shuffled over queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_queries * size, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [-0.5, 0.5])
    qid = rng.permutation(np.repeat(np.arange(n_queries), size))
    return X, y, qid


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_grids_with_an_l1_norm_begin_where_coefficients_are_zero(penalty):
    X, y, qid = queries()
    options = {"loss": "pairwise-log", "penalty": penalty}
    model = BMRMRankerCV(4, cv=3, **options).fit(X, y, qid=qid)
    largest = model.alphas_[0]
    np.testing.assert_allclose(model.alphas_, largest * np.logspace(0, -3, 4))
    above, below = (
        BMRMRanker(
            factor * largest, penalty_factor=model.penalty_factor_, tol=1e-8, **options
        ).fit(X, y, qid=qid)
        for factor in (1.01, 0.99)
    )
    assert not above.coef_.any()
    assert below.coef_.any()


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("pairwise-linear", "l2"),
        ("pairwise-log", "l2"),
        ("pairwise-log", "l1"),
        ("ndcg", "l2"),
    ],
)
def test_path_is_that_of_separate_fits(loss, penalty):
    X, y, qid = queries()
    by_query = 1.0 + qid % 3
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    cv = GroupKFold(3)
    rows = {"sample_weight": weight, "qid": qid, "query_weight": by_query}
    options = {"loss": loss, "penalty": penalty, "k": 3, "tol": 1e-7}
    model = BMRMRankerCV(ALPHAS, cv=3, **options).fit(X, y, **rows)
    assert model.alphas_.tolist() == ALPHAS
    assert model.gaps_path_.max() <= 1e-7
    for fold, (train, test) in enumerate(cv.split(X, y, qid)):
        of_train = {name: value[train] for name, value in rows.items()}
        of_test = {name: value[test] for name, value in rows.items()}
        for place, alpha in enumerate(ALPHAS):
            single = BMRMRanker(alpha, **options)
            single.fit(X[train], y[train], **of_train)
            score = single.score(X[test], y[test], **of_test)
            assert model.scores_path_[fold, place] == pytest.approx(score, abs=1e-9)
    best = model.scores_path_.mean(axis=0).argmax()
    assert model.alpha_ == ALPHAS[best]
    whole = BMRMRanker(model.alpha_, **options).fit(X, y, **rows)
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-7)
    assert model.objective_ - model.dual_gap_ <= whole.objective_
    assert model.n_queries_ == 9
    assert model.score(X, y, **rows) == pytest.approx(whole.score(X, y, **rows))


def test_threads_and_sparse_rows_give_the_same():
    X, y, qid = queries()
    model = BMRMRankerCV(ALPHAS, cv=3, tol=1e-6).fit(X, y, qid=qid)
    threads = BMRMRankerCV(ALPHAS, cv=3, tol=1e-6, n_jobs=2).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.scores_path_, threads.scores_path_)
    rows = BMRMRankerCV(ALPHAS, cv=3, tol=1e-6)
    rows.fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(model.scores_path_, rows.scores_path_, atol=1e-3)
    assert rows.alpha_ == model.alpha_


def test_means_over_folds_without_refit():
    X, y, qid = queries()
    cv = list(GroupKFold(3).split(X, y, qid))
    model = BMRMRankerCV([1e-2], cv=cv).fit(X, y, qid=qid)
    model.set_params(refit=False).fit(X, y, qid=qid)
    assert not hasattr(model, "objective_")
    folds = [BMRMRanker(1e-2).fit(X[t], y[t], qid=qid[t]).coef_ for t, _ in cv]
    np.testing.assert_allclose(model.coef_, np.mean(folds, axis=0), rtol=1e-12)
    assert model.intercept_ == 0.0


def test_scores_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    X, y, qid = queries()
    model = BMRMRankerCV(ALPHAS, cv=2).fit(X, y, qid=qid)
    display = PathScoreDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() == "NDCG"


def test_routing():
    X, y, qid = queries()
    names = {"qid": True, "query_weight": True}
    with config_context(enable_metadata_routing=True):
        model = BMRMRankerCV(ALPHAS, cv=2)
        model.set_fit_request(**names).set_score_request(**names)
        params = {"qid": qid, "query_weight": 1.0 + qid, "groups": qid}
        scores = cross_val_score(model, X, y, cv=GroupKFold(3), params=params)
    for (train, test), score in zip(
        GroupKFold(3).split(X, y, qid), scores, strict=True
    ):
        inner = BMRMRankerCV(ALPHAS, cv=2)
        inner.fit(X[train], y[train], qid=qid[train], query_weight=1.0 + qid[train])
        of_test = {"qid": qid[test], "query_weight": 1.0 + qid[test]}
        assert score == inner.score(X[test], y[test], **of_test)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": list(KFold(3).split(np.ones(72)))}, "cuts queries"),
        ({"cv": 10}, "n_splits=10 greater than the number of groups: 9"),
        ({"cv": []}, "no folds"),
        ({"alphas": []}, "alphas must be"),
        ({"alphas": 0}, "alphas"),
        ({"k": 0}, "k must be"),
    ],
)
def test_what_does_not_fit(settings, message):
    X, y, qid = queries()
    model = BMRMRankerCV(ALPHAS, cv=3).fit(X, y, qid=qid)
    coef = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(**settings).fit(X, y, qid=qid)
    assert model.coef_ is coef
    with pytest.raises(ValueError, match="NDCG, by which alpha is chosen, needs"):
        BMRMRankerCV(ALPHAS).fit(X, y - 1.0, qid=qid)
    weight = np.where(qid < 8, 0.0, 1.0)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        BMRMRankerCV(ALPHAS, cv=3).fit(X, y, weight, qid=qid)
