"""Rankers that get no queries: warnings and errors that say how to give them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    cross_val_score,
)

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
    match = r"groups of a search go to the splitter alone.*search.fit\(X, y, qid=qid"
    for routing in (False, True):
        with (
            sklearn.config_context(enable_metadata_routing=routing),
            pytest.raises(ValueError, match=match),
        ):
            search(ranker).fit(X, y, groups=qid)
    # A search that goes on after errors has no fit either.
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        search(ranker).set_params(error_score=np.nan).fit(X, y, groups=qid)
    with pytest.raises(ValueError, match=match):
        cross_val_score(ranker, X, y, cv=3, error_score="raise")


def test_what_is_kept_together_in_a_path():
    X, y, qid = data()
    users = np.array([0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2])[qid]
    model = BMRMRankerCV([1e-1, 1e-3], cv=LeaveOneGroupOut())
    assert model.fit(X, y, qid=qid).scores_path_.shape == (12, 2)
    assert model.fit(X, y, qid=qid, groups=users).scores_path_.shape == (3, 2)
    with pytest.raises(ValueError, match="give them as qid, too"):
        model.fit(X, y, groups=qid)


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
