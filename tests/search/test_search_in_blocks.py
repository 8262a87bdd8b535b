"""Searches over folds of rows in blocks: choices and models are those in memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

from sklearn_subqn import (
    BMRMRegressorCV,
    L1LogisticOWLQNCV,
    RowBlocks,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn._search.warm_paths import WarmPaths

N, TOL = 180, 1e-9
SEARCHES = {
    "hinge": SubLBFGSLinearSVCCV([0.1, 0.01], cv=2),
    "squares": SubLBFGSLinearSVCCV(
        [0.1, 0.01], loss="squared_hinge", class_weight="balanced", cv=KFold(4)
    ),
    "log loss": L1LogisticOWLQNCV(4, cv=3, scoring="neg_log_loss"),
    "ratios": L1LogisticOWLQNCV([0.1, 0.01], l1_ratio=[0.5, 1.0], cv=3),
    "without refit": L1LogisticOWLQNCV([0.1, 0.01], cv=3, refit=False),
    "huber": BMRMRegressorCV(
        3, loss="huber", cv=KFold(3, shuffle=True, random_state=0)
    ),
    "L1": BMRMRegressorCV(3, penalty="l1", cv=3),
    "quantile": BMRMRegressorCV([10.0, 0.1], loss="quantile", quantile=0.73, cv=2),
    "two columns": BMRMRegressorCV(
        2, scoring=make_scorer(mean_absolute_error, greater_is_better=False), cv=2
    ),
}


def data(kind, n=N):
    """Return samples sorted by labels, targets and weights, some of them zero."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4)) * [1.0, 1.0, 3.0, 0.1]
    X[:, 1] += 100.0
    scores = X[:, 0] + rng.normal(size=n)
    weights = rng.random(n) * (rng.random(n) < 0.9)
    if "col" in kind:
        return X, np.column_stack([scores, X[:, 2] + rng.normal(size=n)]), weights
    if kind in ("huber", "L1", "quantile"):
        return X, scores, weights
    y = np.array(list("ab"))[(scores > 0.3).astype(int)]
    order = np.argsort(y, kind="stable")
    return X[order], y[order], weights[order]


def in_blocks(*arrays, ends=(0, 60, 60, 65, N)):
    """Return rows in uneven blocks, one of which is empty."""
    parts = [slice(a, b) for a, b in pairwise(ends)]
    return RowBlocks([lambda r=r: tuple(x[r] for x in arrays) for r in parts])


def assert_same_search(found, expected):
    assert_allclose(found.alphas_, expected.alphas_, rtol=1e-9)
    # Scores near zero are differences of numbers near one.
    assert_allclose(found.scores_path_, expected.scores_path_, rtol=1e-8, atol=1e-9)
    assert_allclose(found.alpha_, expected.alpha_, rtol=1e-9)
    assert_allclose(found.best_score_, expected.best_score_, rtol=1e-8)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-7)
    assert_allclose(found.intercept_, expected.intercept_, rtol=1e-5, atol=1e-5)
    assert np.all(found.gaps_path_ <= found.tol)
    if found.refit:
        assert_allclose(found.objective_, expected.objective_, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", SEARCHES)
def test_searches_in_blocks_are_those_in_memory(kind, weighted):
    X, y, weights = data(kind)
    search = clone(SEARCHES[kind]).set_params(tol=TOL)
    rows = (X, y, weights) if weighted else (X, y)
    expected = clone(search).fit(*rows)
    found = clone(search).fit(in_blocks(*rows))
    assert_same_search(found, expected)
    if kind == "ratios":
        assert found.l1_ratio_ == expected.l1_ratio_
    some = np.flatnonzero(weights)[::20]
    method = "decision_function" if y.dtype.kind == "U" else "predict"
    predictions = [getattr(model, method)(X[some]) for model in (found, expected)]
    assert_allclose(*predictions, rtol=1e-6, atol=1e-6)
    assert found.n_features_in_ == 4


def test_default_grids_of_sparse_classifiers_keep_units():
    X, y, _ = data("hinge")
    X = sparse.csr_array(X * [1.0, 0.0, 1.0, 1.0])
    search = SubLBFGSLinearSVCCV(2, cv=2, loss="squared_hinge", tol=TOL)
    expected, found = clone(search).fit(X, y), clone(search).fit(in_blocks(X, y))
    assert_same_search(found, expected)
    assert_array_equal(found.penalty_factor_, np.ones(4))


def test_folds_may_be_blocks_groups_or_without_a_class():
    """A fold has all classes, as in memory, whichever its training part has."""
    X, _, _ = data("hinge")
    y = np.repeat([0, 1, 2], 60)
    names = list("stuv")
    frame = pd.DataFrame(X, columns=names)
    blocks = np.repeat([0, 1, 2, 3], [60, 30, 30, 60])
    search = SubLBFGSLinearSVCCV([0.1], loss="squared_hinge", tol=TOL)
    for splitter, groups in ((PredefinedSplit(blocks), None), (GroupKFold(3), blocks)):
        search.set_params(cv=splitter)
        expected = clone(search).fit(frame, y, groups=groups)
        rows = in_blocks(frame, y, ends=(0, 60, 90, 120, N))
        found = clone(search).fit(rows, groups=groups)
        assert_same_search(found, expected)
        assert_array_equal(found.feature_names_in_, names)


def test_rows_that_are_drawn_several_times_count_so():
    X, y, _ = data("huber")
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, N, (2, N))
    folds = [(each, np.setdiff1d(np.arange(N), each)[::-1]) for each in drawn]
    search = BMRMRegressorCV([0.1, 0.01], loss="huber", cv=folds, tol=TOL)
    found = clone(search).fit(in_blocks(X, y))
    assert_same_search(found, clone(search).fit(X, y))


@pytest.mark.parametrize("in_one_place", [False, True])
def test_paths_are_warm(monkeypatch, in_one_place):
    """Fits but the first of a fold take hardly any iterations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    y = (X[:, 0] + rng.normal(size=6000) > 0.0).astype(int)
    n_iters, path = [], WarmPaths._path
    monkeypatch.setattr(
        WarmPaths,
        "_path",
        lambda *args: n_iters.append((got := path(*args)).n_iters) or got,
    )
    search = SubLBFGSLinearSVCCV([0.1, 0.03, 0.01, 3e-3, 1e-3], cv=2, refit=False)
    search.fit(X, y)
    rows = (in_blocks(X, y, ends=(0, 2000, 6000)),)
    if in_one_place:
        da = pytest.importorskip("dask.array")
        rows = [da.from_array(x, chunks=-1) for x in (X, y)]
    clone(search).fit(*rows)
    in_memory, found = np.array(n_iters[:2]), np.array(n_iters[2:])
    assert found[:, 1:].sum() <= in_memory[:, 1:].sum() + 2


@pytest.mark.parametrize(
    ("search", "given", "match"),
    [
        (
            SubLBFGSLinearSVCCV((1e-3, 1.0), search_tol=0.01),
            {},
            "search_tol is not supported for data in blocks",
        ),
        (BMRMRegressorCV(loss="quantile", quantile=[0.1, 0.9]), {}, "single quantile"),
    ],
)
def test_what_is_refused_is_refused_before_rows_are_read(search, given, match):
    def never():
        raise AssertionError("rows have been read")

    with pytest.raises(ValueError, match=match):
        search.fit(RowBlocks(never), **given)


def test_errors_of_folds_and_targets():
    X, y, _ = data("hinge")
    y[:60:2] = "b"
    search = SubLBFGSLinearSVCCV(
        [0.1, 0.01], cv=[(np.arange(60), np.arange(60, N))], tol=0.5
    )
    with pytest.raises(ValueError, match="no y"):
        search.fit(RowBlocks(X))
    with pytest.raises(ValueError, match="training part of cv has no samples"):
        search.fit(in_blocks(X, y, np.repeat([0.0, 1.0], [60, 120])))
    with pytest.raises(ValueError, match="test part of cv has no samples"):
        search.fit(in_blocks(X, y, np.repeat([1.0, 0.0], [60, 120])))
    assert not hasattr(search, "alpha_")
