"""Rankers that get no queries: warnings and errors that say how to give them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold

from sklearn_subqn import BMRMRanker, BMRMRankerCV

RANKERS = [BMRMRanker(), BMRMRankerCV([1e-1, 1e-3], cv=3)]
each_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=["one", "cv"])


def data():
    """Queries with grades of other sizes: between them nothing is to be compared."""
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(12), 8), rng.normal(size=(96, 3))
    base = 5.0 * rng.normal(size=12)[qid]
    X[:, 1] += base
    return X, np.digitize(X[:, 0] + base, [-5.0, -2.0, 0.0, 2.0, 5.0]), qid


def search(ranker):
    grid = {"k": [3, 5]}
    return GridSearchCV(ranker, grid, cv=GroupKFold(3), error_score="raise")


@each_ranker
def test_no_queries(ranker):
    X, y, _ = data()
    with pytest.warns(UserWarning, match=r"of all 96 rows.* Give qid.*set_fit_request"):
        found = sklearn.clone(ranker).fit(X, y)
    assert found.n_queries_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = sklearn.clone(ranker).fit(X, y, qid=np.zeros(len(y)))
        sklearn.clone(ranker).fit(X, y, group=[40, 40, 16])
    np.testing.assert_array_equal(said.coef_, found.coef_)
    if isinstance(ranker, BMRMRanker):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sklearn.clone(ranker).fit(X, pairs=[(0, 1), (2, 1)])


@each_ranker
def test_searches_with_groups_only(ranker):
    X, y, qid = data()
    with pytest.warns(UserWarning, match="groups of a search go to the splitter alone"):
        search(ranker).fit(X, y, groups=qid)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.warns(UserWarning, match="one query of all 64 rows"),
    ):
        search(ranker).fit(X, y, groups=qid)


@each_ranker
def test_routing_that_is_not_asked_for_or_gets_nothing(ranker):
    X, y, qid = data()
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = sklearn.clone(ranker)
        with pytest.raises(UnsetMetadataPassedError, match="qid"):
            search(ranker).fit(X, y, groups=qid, qid=qid)
        ranker.set_fit_request(qid=True)
        with pytest.raises(UnsetMetadataPassedError, match="qid"):
            search(ranker).fit(X, y, groups=qid, qid=qid)
        ranker.set_score_request(qid=True)
        with pytest.raises(ValueError, match="which set_fit_request asks for"):
            search(ranker).fit(X, y, groups=qid)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = search(ranker).fit(X, y, groups=qid, qid=qid)
        assert found.best_estimator_.n_queries_ == 12
