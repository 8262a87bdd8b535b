"""BMRMRanker: optima, queries, weights, scores, warm starts, errors."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from _door import BUNDLE_SOLVERS
from _problems import EXPLORE
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import optimize, sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import ndcg_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_subqn import BMRMClassifier, BMRMRanker, BMRMRankerCV
from sklearn_subqn.losses import Ndcg

PAIRS = [
    f"pairwise{gain}{loss}"
    for gain in ("", "-linear")
    for loss in ("", "-squared", "-log")
]
MEASURES = ["ndcg", "mrr", "precision", "recall", "rank-utility"]
LOSSES = [*PAIRS, *MEASURES, *(f"{name}-assignment" for name in MEASURES)]


# Objectives are sums of about a hundred terms of size one.
ROUNDING = 1e-12


def queries(n_queries=8, n_rows=7, d=3, seed=0):
    """Rows whose relevance depends on the first features, and their queries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_rows, d))
    y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=len(X)), [0.0, 1.0])
    return X, y, np.repeat(np.arange(n_queries), n_rows)


def pairs_of(y, qid):
    """Indices (worse, better) of pairs, and the share of each in the mean loss."""
    worse, better = np.nonzero((y[:, None] < y) & (qid[:, None] == qid))
    counts = np.bincount(qid[worse], minlength=qid.max() + 1)
    return worse, better, 1.0 / (counts[qid[worse]] * len(counts))


def ranking_svm(X, y, qid, alpha, linear):
    """Enclose the optimum of the pairwise problem by its dual, over all pairs."""
    worse, better, shares = pairs_of(y, qid)
    if linear:
        shares *= y[better] - y[worse]
    D = X[better] - X[worse]

    def negative_dual(beta):
        v = D.T @ beta
        return 0.5 * v @ v / alpha - beta.sum(), D @ v / alpha - 1.0

    found = optimize.minimize(
        negative_dual,
        0.5 * shares,
        jac=True,
        bounds=[(0.0, share) for share in shares],
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-15, "gtol": 1e-10},
    )
    w = D.T @ found.x / alpha
    upper = 0.5 * alpha * w @ w + shares @ np.maximum(1.0 - D @ w, 0.0)
    return -found.fun, upper


@pytest.mark.parametrize("solver", ["auto", "narrowing", *BUNDLE_SOLVERS])
@pytest.mark.parametrize("alpha", [1e-1, 1e-2])
@pytest.mark.parametrize("loss", ["pairwise", "pairwise-linear"])
def test_pairwise_is_the_ranking_svm(solver, alpha, loss):
    X, y, qid = queries()
    lower, upper = ranking_svm(X, y, qid, alpha, loss == "pairwise-linear")
    assert upper - lower <= 1e-4 * upper
    model = BMRMRanker(alpha, loss=loss, solver=solver, tol=1e-3, max_iter=20000)
    model.fit(X, y, qid=qid)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ - model.dual_gap_ <= upper + ROUNDING
    assert lower <= model.objective_ + ROUNDING
    worse, better, shares = pairs_of(y, qid)
    if loss == "pairwise-linear":
        shares *= y[better] - y[worse]
    margins = (X[better] - X[worse]) @ model.coef_
    value = 0.5 * alpha * model.coef_ @ model.coef_
    value += shares @ np.maximum(1.0 - margins, 0.0)
    assert model.objective_ == pytest.approx(value)


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_is_solved_and_bounds_are_valid(loss):
    X, y, qid = queries()
    model = BMRMRanker(1e-2, loss=loss, k=3, tol=1e-6).fit(X, y, qid=qid)
    assert 0.0 <= model.dual_gap_ <= 1e-6 * model.objective_
    rough = BMRMRanker(1e-2, loss=loss, k=3, tol=1e-1).fit(X, y, qid=qid)
    assert rough.objective_ - rough.dual_gap_ <= model.objective_
    assert rough.objective_ >= model.objective_ - model.dual_gap_
    bounds = model.history_[0].lower_bound
    assert np.all(np.diff([b for b in bounds if b > -np.inf]) >= -1e-15)
    objective = model.objective_

    def value(w):
        one = BMRMRanker(1e-2, loss=loss, k=3, warm_start=True, tol=1e9, max_iter=1)
        one.coef_, one.n_features_in_ = w, 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return one.fit(X, y, qid=qid, query_weight=None).objective_

    # Nelder and Mead's simplex knows nothing of bundles.
    found = optimize.minimize(value, model.coef_ + 0.1, method="Nelder-Mead")
    assert found.fun >= objective - model.dual_gap_ - 1e-12


def test_group_is_another_form_of_qid():
    X, y, qid = queries()
    model = BMRMRanker().fit(X, y, qid=qid)
    by_group = BMRMRanker().fit(X, y, group=np.bincount(qid))
    names = np.array([f"query {i}" for i in qid])
    by_names = BMRMRanker().fit(X, y, qid=names)
    for other in (by_group, by_names):
        np.testing.assert_array_equal(other.coef_, model.coef_)
    assert by_group.score(X, y, group=np.bincount(qid)) == model.score(X, y, qid=qid)


def test_order_of_rows_does_not_matter():
    X, y, qid = queries()
    rows = np.random.default_rng(1).permutation(len(y))
    for loss in ("pairwise", "ndcg", "mrr-assignment"):
        model = BMRMRanker(1e-2, loss=loss, tol=1e-8).fit(X, y, qid=qid)
        other = BMRMRanker(1e-2, loss=loss, tol=1e-8)
        other.fit(X[rows], y[rows], qid=qid[rows])
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_two_grades_have_one_loss_of_pairs():
    X, y, qid = queries()
    y = np.minimum(y, 1)
    linear = BMRMRanker(1e-2).fit(X, y, qid=qid)
    constant = BMRMRanker(1e-2, loss="pairwise").fit(X, y, qid=qid)
    np.testing.assert_array_equal(linear.coef_, constant.coef_)
    # Grades in another unit are another alpha.
    model = BMRMRanker(1e-2).fit(X, y, qid=qid)
    other = BMRMRanker(3e-2).fit(X, 3 * y, qid=qid)
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-9, atol=1e-12)


def test_weight_of_a_query_is_repetition():
    X, y, qid = queries()
    weight = np.arange(8) % 3
    rows = [np.flatnonzero(qid == q) for q in range(8) for _ in range(weight[q])]
    repeated = np.concatenate(rows)
    model = BMRMRanker(1e-2, tol=1e-8).fit(X, y, qid=qid, query_weight=weight)
    other = BMRMRanker(1e-2, tol=1e-8)
    other.fit(X[repeated], y[repeated], group=[len(r) for r in rows])
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_score_is_ndcg():
    X, y, qid = queries()
    for k in (None, 3):
        model = BMRMRanker(k=k).fit(X, y, qid=qid)
        scores = model.predict(X)
        # Equal scores share their discounts in both.
        model.coef_ = np.round(model.coef_, 0)
        scores = model.predict(X)
        gains = 2.0**y - 1.0
        expected = [
            ndcg_score([gains[qid == q]], [scores[qid == q]], k=k) for q in range(8)
        ]
        assert model.score(X, y, qid=qid) == pytest.approx(np.mean(expected))
    assert model.score(X, np.zeros(len(y)), qid=qid) == 0.0


def test_without_queries_all_rows_are_one():
    X, y, _ = queries()
    model = BMRMRanker().fit(X, y)
    other = BMRMRanker().fit(X, y, group=[len(y)])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    expected = ndcg_score([2.0**y - 1.0], [model.predict(X)])
    assert model.score(X, y) == pytest.approx(expected)


def test_queries_without_pairs_cost_nothing():
    X, y, qid = queries()
    model = BMRMRanker(1e-2, tol=1e-6).fit(X, np.where(qid < 4, y, 1), qid=qid)
    half = BMRMRanker(2e-2, tol=1e-6).fit(X[qid < 4], y[qid < 4], qid=qid[qid < 4])
    assert 2.0 * model.objective_ == pytest.approx(half.objective_, rel=1e-5)
    with pytest.warns(UserWarning, match="nothing to rank") as told:
        nothing = BMRMRanker().fit(X, np.ones(len(y)), qid=qid)
    assert len(told) == 1
    assert nothing.objective_ == 0.0
    assert nothing.dual_gap_ == 0.0


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array]
)
def test_sparse_equals_dense(make):
    X, y, qid = queries()
    X[np.abs(X) < 0.5] = 0.0
    model = BMRMRanker(tol=1e-6).fit(X, y, qid=qid)
    other = BMRMRanker(tol=1e-6).fit(make(X), y, qid=qid)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)


def test_float32():
    X, y, qid = queries()
    model = BMRMRanker(tol=1e-5).fit(X.astype(np.float32), y, qid=qid)
    assert model.coef_.dtype == np.float32
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    other = BMRMRanker(tol=1e-5).fit(X, y, qid=qid)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)


def test_warm_start():
    X, y, qid = queries()
    model = BMRMRanker(warm_start=True, tol=1e-6).fit(X, y, qid=qid)
    first = model.history_[0].objective[0]
    best = model.objective_
    model.fit(X, y, qid=qid)
    assert model.history_[0].objective[0] == pytest.approx(best)
    assert best < first
    # Other features begin anew.
    assert model.fit(X[:, :2], y, qid=qid).coef_.shape == (2,)


def test_a_loss_of_ones_own():
    X, y, qid = queries()
    model = BMRMRanker(1e-2, loss=lambda groups: Ndcg(groups, k=3, decay=0.25))
    model.fit(X, y, qid=qid)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    with pytest.raises(TypeError, match="must return a Loss"):
        BMRMRanker(loss=len).fit(X, y, qid=qid)


def test_pickle_and_not_fitted():
    X, y, qid = queries()
    with pytest.raises(NotFittedError):
        BMRMRanker().predict(X)
    model = BMRMRanker().fit(X, y, qid=qid)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_what_is_not_reached_is_said():
    X, y, qid = queries()
    advice = r"reached max_iter=1 .* Increase max_iter or tol\."
    with pytest.warns(ConvergenceWarning, match=advice):
        BMRMRanker(1e-6, max_iter=1, tol=1e-9).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("params", "arguments", "message"),
    [
        ({"loss": "map"}, {}, "loss must be one of 'pairwise-linear'"),
        ({"loss": "precision"}, {}, "loss='precision' needs a rank k"),
        ({"loss": "recall-assignment"}, {}, "needs a rank k"),
        ({"k": 0}, {}, "k must be finite and >= 1"),
        ({"solver": "alm"}, {}, "solvers that do are 'auto', 'narrowing'"),
        ({"solver": "newton-cg"}, {}, "does not support loss='pairwise-linear'"),
        ({"solver": "narrowing", "loss": "ndcg"}, {}, "solvers that do are 'auto'"),
        ({"solver": "narrowing", "loss": "pairwise-squared"}, {}, "'newton-cg'"),
        ({"alpha": 0.0}, {}, "alpha must be finite and > 0"),
        ({"bundle_size": 1}, {}, "bundle_size must be finite and >= 2"),
        ({}, {"qid": [0] * 56, "group": [56]}, "either qid or group"),
        ({}, {"qid": [0] * 55}, "qid has 55 entries for 56 rows"),
        ({}, {"qid": [np.nan] * 56}, "NaN"),
        ({}, {"group": [50, 5]}, "sum is the number 56 of rows"),
        ({}, {"group": [57, -1]}, "numbers of rows of the queries.*got -1"),
        ({}, {"group": [28.5, 27.5]}, "numbers of rows of the queries.*got 28.5"),
        ({}, {"group": [56], "query_weight": [1, 2]}, "query_weight"),
        ({}, {"group": [56], "query_weight": [-1.0]}, "query_weight"),
    ],
)
def test_errors_leave_the_estimator_as_it_was(params, arguments, message):
    X, y, qid = queries()
    model = BMRMRanker().fit(X, y, qid=qid)
    before = dict(vars(model.set_params(**params)))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **arguments)
    assert vars(model) == before


@pytest.mark.parametrize("loss", ["ndcg", "mrr-assignment"])
def test_relevances_out_of_range(loss):
    X, y, qid = queries()
    for wrong in (-1.0 * y, 1000.0 * y):
        with pytest.raises(ValueError, match="relevances y between 0 and 500"):
            BMRMRanker(loss=loss).fit(X, wrong, qid=qid)
    with pytest.raises(ValueError, match="score needs relevances"):
        BMRMRanker().fit(X, -1.0 * y, qid=qid).score(X, -1.0 * y)


def test_queries_of_several_types_are_refused():
    X, y, qid = queries()
    mixed = [None if i == 0 else i for i in qid]
    with pytest.raises(ValueError, match="must not contain NaN, None"):
        BMRMRanker().fit(X, y, qid=mixed)
    with pytest.raises(ValueError, match="labels of one type"):
        BMRMRanker().fit(X, y, qid=["1" if i == 0 else i for i in qid.tolist()])


def test_equal_rows_have_equal_scores_in_any_order():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(1, 50)), 9, axis=0)
    y = np.arange(9) % 3
    others = rng.normal(size=(60, 50))
    model = BMRMRanker().fit(
        np.concatenate([X, others]),
        np.concatenate([y, rng.integers(0, 3, 60)]),
        qid=np.concatenate([np.zeros(9), 1 + np.arange(60) // 10]),
    )
    assert len(np.unique(model.predict(X))) == 1
    orders = [rng.permutation(9) for _ in range(20)]
    one = np.zeros(9)
    scores = {model.score(X[order], y[order], qid=one) for order in orders}
    assert max(scores) - min(scores) < 1e-12


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"qid": np.array([0, np.nan, 1, 1], dtype=object)}, "must not contain NaN"),
        ({"qid": pd.Series(pd.to_datetime(["2020", None, "2021", "2021"]))}, "NaN"),
        ({"qid": np.zeros((4, 2))}, "qid should be a 1d array"),
        ({"group": ["a"]}, "group must hold numbers of rows"),
    ],
)
def test_queries_that_are_none(keywords, message):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match=message):
        BMRMRanker().fit(X, [0, 1, 0, 1], **keywords)


HASHES = [2**63 + 5 + code if code < 5 else -1 for code in range(6)]
FORMS_OF_NAMES = {
    "list": list,
    "tuple": tuple,
    "objects": lambda names: pd.Series(names, dtype=object),
}


@pytest.mark.parametrize("form", FORMS_OF_NAMES)
def test_large_names_of_queries_are_different(form):
    """An array of such integers is one of floats, in which most are equal."""
    X, y, codes = queries(6)
    right = BMRMRanker().fit(X, y, qid=codes)
    names = FORMS_OF_NAMES[form]([HASHES[code] for code in codes])
    model = BMRMRanker().fit(X, y, qid=names)
    assert model.n_queries_ == 6
    assert model.objective_ == pytest.approx(right.objective_, rel=1e-9)
    expected = right.score(X, y, qid=codes)
    assert model.score(X, y, qid=names) == pytest.approx(expected)
    assert BMRMRankerCV([0.1], cv=3).fit(X, y, qid=names).n_queries_ == 6


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64[pyarrow]"])
def test_large_nullable_names_of_queries_are_different(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    X, y, codes = queries(4)
    names = pd.Series(2**53 + codes, dtype=dtype)
    assert BMRMRanker().fit(X, y, qid=names).n_queries_ == 4
    names = names.convert_dtypes()
    names[0] = pd.NA
    with pytest.raises(ValueError, match="must not contain NaN"):
        BMRMRanker().fit(X, y, qid=names)


NAMES = np.array(["zoo", "mid", "abc"])
PER_QUERY = pd.Series([100.0, 1.0, 4.0], index=NAMES)
FORMS_OF_WEIGHTS = {
    "by appearance": lambda weights: weights,
    "sorted": lambda weights: weights.sort_index(),
    "dict": dict,
    "others besides": lambda weights: pd.concat([pd.Series({"aaa": 9.0}), weights]),
}


@pytest.mark.parametrize("form", FORMS_OF_WEIGHTS)
def test_weights_of_queries_by_their_names(form):
    X, y, codes = queries(3)
    qid, given = NAMES[codes], FORMS_OF_WEIGHTS[form](PER_QUERY)
    right = BMRMRanker(tol=1e-8).fit(X, y, qid=qid, query_weight=PER_QUERY[qid])
    model = BMRMRanker(tol=1e-8).fit(X, y, qid=qid, query_weight=given)
    assert model.objective_ == pytest.approx(right.objective_, rel=1e-7)
    sizes = pd.Series(7, index=NAMES)
    by_size = BMRMRanker(tol=1e-8).fit(X, y, group=sizes, query_weight=given)
    assert by_size.objective_ == pytest.approx(right.objective_, rel=1e-7)
    expected = model.score(X, y, qid=qid, query_weight=PER_QUERY[qid].to_numpy())
    assert model.score(X, y, qid=qid, query_weight=given) == pytest.approx(expected)
    path = BMRMRankerCV([0.1], cv=3)
    right = path.fit(X, y, qid=qid, query_weight=PER_QUERY[qid]).objective_
    found = path.fit(X, y, qid=qid, query_weight=given).objective_
    assert found == pytest.approx(right, rel=1e-3)


def test_names_of_other_queries_are_refused():
    X, y, codes = queries(3)
    wrong = PER_QUERY.set_axis(["zoo", "mid", "abd"])
    with pytest.raises(ValueError, match="missing: 'abc'"):
        BMRMRanker().fit(X, y, qid=NAMES[codes], query_weight=wrong)
    with pytest.raises(ValueError, match="the queries have none: give names"):
        BMRMRanker().fit(X, y, group=[7, 7, 7], query_weight=PER_QUERY)
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(21)])
    qid = pd.Series(NAMES[codes], index=frame.index)
    model = BMRMRanker().fit(frame, y, qid=qid)
    for call in (BMRMRanker().fit, model.score):
        with pytest.raises(ValueError, match="qid has another index than X"):
            call(frame, y, qid=qid[::-1])
        with pytest.raises(ValueError, match="query_weight has another index than X"):
            call(frame, y, qid=qid, query_weight=pd.Series(1.0, index=qid.index[::-1]))


def test_queries_without_rows_are_left_out():
    """As pandas counts those of categories that do not occur."""
    X, y, codes = queries(3)
    right = BMRMRanker().fit(X, y, qid=codes, query_weight=[3.0, 1.0, 2.0])
    sizes = pd.Series([0, 7, 7, 0, 7, 0], index=[*"abcdef"])
    weights = pd.Series([5.0, 3.0, 1.0, 5.0, 2.0, 5.0], index=sizes.index)
    for group, per_query in [
        (sizes, weights),
        (sizes, weights[::-1]),
        (sizes.to_numpy(), weights.to_numpy()),
        (sizes.to_list(), [3.0, 1.0, 2.0]),
    ]:
        model = BMRMRanker().fit(X, y, group=group, query_weight=per_query)
        assert model.n_queries_ == 3
        assert model.objective_ == pytest.approx(right.objective_, rel=1e-12)
    one = BMRMRankerCV([0.1], cv=3).fit(X, y, group=[0, 0, 21])
    assert one.n_queries_ == 1


def test_cross_validation_of_a_pipeline():
    X, y, qid = queries()
    with config_context(enable_metadata_routing=True):
        ranker = BMRMRanker().set_fit_request(qid=True).set_score_request(qid=True)
        model = make_pipeline(StandardScaler(), ranker)
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid}
        )
    assert np.all(scores > 0.5)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_weight_are_left_out(loss):
    X, y, qid = queries()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    weight[qid == 2] = 0.0
    used = weight > 0.0
    model = BMRMRanker(1e-2, loss=loss, k=3).fit(X, y, weight, qid=qid)
    other = BMRMRanker(1e-2, loss=loss, k=3).fit(X[used], y[used], qid=qid[used])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.n_queries_ == 7
    score = model.score(X, y, weight, qid=qid)
    assert score == model.score(X[used], y[used], qid=qid[used])


@pytest.mark.parametrize("loss", PAIRS)
def test_weight_of_a_row_is_repetition(loss):
    X, y, qid = queries()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    by_query = np.arange(8.0)
    model = BMRMRanker(1e-2, loss=loss, tol=1e-8)
    model.fit(X, y, weight, qid=qid, query_weight=by_query)
    other = BMRMRanker(1e-2, loss=loss, tol=1e-8)
    other.fit(X[rows], y[rows], qid=qid[rows], query_weight=by_query[qid[rows]])
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)
    # Only shares of the weights of a query count in fits.
    scaled = BMRMRanker(1e-2, loss=loss, tol=1e-8)
    scaled.fit(X, y, weight * (1.0 + qid), qid=qid, query_weight=by_query)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-7)
    for k in (None, 3):
        model.set_params(k=k)
        model.coef_ = np.round(model.coef_)  # So that there are ties.
        score = model.score(X, y, weight, qid=qid, query_weight=by_query)
        again = model.score(
            X[rows], y[rows], qid=qid[rows], query_weight=by_query[qid[rows]]
        )
        assert score == pytest.approx(again, rel=1e-12)


@EXPLORE
@given(
    weight=arrays(np.int64, 12, elements=st.integers(0, 5)),
    y=arrays(np.int64, 12, elements=st.integers(0, 3)),
    x=arrays(np.int64, 12, elements=st.integers(0, 3)),
    k=st.sampled_from([None, 1, 2, 7]),
)
def test_score_counts_rows_by_weight(weight, y, x, k):
    assume(weight[:4].any() and weight[4:].any())
    qid = np.repeat([0, 1], [4, 8])
    model = BMRMRanker(k=k)
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(1), 0.0, 1
    X, rows = x[:, np.newaxis].astype(float), np.repeat(np.arange(12), weight)
    expected = [
        ndcg_score([2.0 ** y[r] - 1.0], [x[r]], k=k)
        if len(r) > 1
        else float(y[r[0]] > 0)
        for r in (rows[qid[rows] == q] for q in (0, 1))
    ]
    score = model.score(X, y, weight, qid=qid)
    assert score == pytest.approx(np.mean(expected), rel=1e-12, abs=1e-15)


def test_query_weight_by_rows():
    X, y, qid = queries()
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    weight = np.arange(8.0)
    model = BMRMRanker().fit(X, y, qid=qid, query_weight=weight)
    other = BMRMRanker().fit(X, y, qid=qid, query_weight=weight[qid])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    scores = [model.score(X[qid == q], y[qid == q], qid=qid[qid == q]) for q in qid]
    score = model.score(X, y, qid=qid, query_weight=weight[qid])
    assert score == model.score(X, y, qid=qid, query_weight=weight)
    assert score == pytest.approx(np.average(scores, weights=weight[qid]))


@pytest.mark.parametrize("loss", ["pairwise-log", "ndcg"])
def test_weights_survive_cross_validation(loss):
    X, y, qid = queries()
    by_query = 1.0 + qid % 3
    by_row = np.where(np.arange(len(y)) % 5 == 0, 0, 1)
    if loss in PAIRS:
        by_row[::2] *= 3
    names = {"qid": True, "sample_weight": True, "query_weight": True}
    given_rows = {"qid": qid, "sample_weight": by_row, "query_weight": by_query}
    ranker, cv = BMRMRanker(1e-3, loss=loss), GroupKFold(4)
    expected = []
    for train, test in cv.split(X, y, qid):
        part = {name: array[train] for name, array in given_rows.items()}
        model = BMRMRanker(1e-3, loss=loss).fit(X[train], y[train], **part)
        part = {name: array[test] for name, array in given_rows.items()}
        expected.append(model.score(X[test], y[test], **part))
    with config_context(enable_metadata_routing=True):
        ranker.set_fit_request(**names).set_score_request(**names)
        params = {**given_rows, "groups": qid}
        found = cross_validate(ranker, X, y, cv=cv, params=params)["test_score"]
        grid = GridSearchCV(ranker, {"alpha": [1e-3]}, cv=cv).fit(X, y, **params)
    np.testing.assert_array_equal(found, expected)
    assert grid.best_score_ == pytest.approx(np.mean(expected))
    direct = BMRMRanker(1e-3, loss=loss).fit(X, y, **given_rows)
    np.testing.assert_array_equal(grid.best_estimator_.coef_, direct.coef_)


@pytest.mark.parametrize(
    ("loss", "keywords", "message"),
    [
        ("ndcg", {"sample_weight": np.arange(56)}, "query_weight weighs queries"),
        ("pairwise", {"sample_weight": np.ones(55)}, "sample_weight.shape"),
        ("pairwise", {"query_weight": np.ones(7)}, "each of 8 queries or each of 56"),
        ("pairwise", {"query_weight": np.arange(56)}, "equal within each query"),
        ("pairwise", {"query_weight": np.full(8, np.nan)}, "query_weight is not"),
        (
            "pairwise",
            {"query_weight": [0, *[1] * 7], "sample_weight": [1] * 7 + [0] * 49},
            "leave no row",
        ),
        ("pairwise", {"qid": 3}, "qid should be a 1d array"),
    ],
)
def test_weights_that_do_not_fit(loss, keywords, message):
    X, y, qid = queries()
    model = BMRMRanker(loss=loss).fit(X, y, qid=qid)
    coef = model.coef_
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **{"qid": qid, **keywords})
    assert model.coef_ is coef
    with pytest.raises(ValueError, match="may sum to"):
        model.score(X, y, 1e7, qid=qid)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("loss", ["pairwise", "pairwise-squared", "pairwise-log"])
def test_penalties_are_those_of_explicit_pairs(loss, penalty):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 6)), rng.integers(0, 3, 40)
    better, worse = np.nonzero(y[:, np.newaxis] > y)
    pairs = X[better] - X[worse]
    signs = rng.choice([-1, 1], len(pairs))
    options = {"penalty": penalty, "tol": 1e-6}
    model = BMRMRanker(0.02, loss=loss, **options).fit(X, y)
    names = {"pairwise": "hinge", "pairwise-squared": "squared_hinge"}
    peer = BMRMClassifier(
        0.02, loss=names.get(loss, "log_loss"), fit_intercept=False, **options
    ).fit(pairs * signs[:, np.newaxis], signs)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.objective_ - model.dual_gap_ <= peer.objective_ * (1.0 + 1e-12)
    assert peer.objective_ - peer.dual_gap_ <= model.objective_ * (1.0 + 1e-12)


def test_penalties_of_measures_and_what_is_refused():
    rng = np.random.default_rng(6)
    X, y, qid = rng.normal(size=(60, 8)), rng.integers(0, 3, 60), np.arange(60) % 4
    y = y + (X[:, 0] > 0.0)
    model = BMRMRanker(0.1, loss="ndcg", penalty="l1").fit(X, y, qid=qid)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert 0 < np.count_nonzero(model.coef_) < 8
    with pytest.raises(ValueError, match="penalty must be one of 'l2', 'l1', 'ela"):
        BMRMRanker(penalty="lp").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="with penalty='l1'; solvers that do are"):
        BMRMRanker(solver="newton-cg", penalty="l1").fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="l1_ratio=0.3 has no effect"):
        BMRMRanker(l1_ratio=0.3).fit(X, y, qid=qid)


# Pairs of rows in place of relevances.


def preferences(X, seed=0, n=400):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(X), (n, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    scores = X @ np.arange(1.0, X.shape[1] + 1.0) + rng.normal(size=len(X))
    swapped = scores[rows[:, 0]] < scores[rows[:, 1]]
    rows[swapped] = rows[swapped, ::-1]
    return rows, rng.integers(0, 4, len(rows)).astype(float)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("loss", "peer"),
    [("pairwise", "hinge"), ("pairwise-linear-squared", "squared_hinge")],
)
def test_pairs_are_differences_for_an_independent_solver(loss, peer, convert):
    X, *_ = queries()
    pairs, weights = preferences(X)
    alpha = 1e-2
    model = BMRMRanker(alpha, loss=loss, tol=1e-8)
    model.fit(convert(X), pairs=pairs, pair_weight=weights)
    rows = X[pairs[:, 0]] - X[pairs[:, 1]]
    signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    svm = LinearSVC(
        C=1.0 / (alpha * weights.sum()),
        loss=peer,
        fit_intercept=False,
        tol=1e-9,
        max_iter=100_000,
        dual=True,
        random_state=0,
    )
    svm.fit(signs[:, np.newaxis] * rows, signs, sample_weight=weights)
    assert_allclose(model.coef_, svm.coef_[0], rtol=1e-3, atol=1e-5)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("loss", ["pairwise", "pairwise-squared", "pairwise-log"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_all_pairs_of_one_query_are_its_relevances(loss, penalty):
    X, y, qid = queries()
    X, y = X[qid == 0], y[qid == 0]
    pairs = np.argwhere(y[:, np.newaxis] > y)
    model = BMRMRanker(1e-2, loss=loss, penalty=penalty, tol=1e-8)
    expected = clone(model).fit(X, y)
    model.fit(X, pairs=pairs)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-3)
    repeated = clone(model).fit(X, pairs=np.repeat(pairs, 2, axis=0))
    assert repeated.objective_ == pytest.approx(expected.objective_, rel=1e-7)


def test_sets_of_rows_that_pairs_connect_are_queries():
    X, *_ = queries()
    model = BMRMRanker().fit(X, pairs=[(0, 1), (2, 1), (5, 7)])
    assert model.n_queries_ == 2
    with pytest.raises(ValueError, match="was fitted to 2 queries"):
        model.score(X, np.arange(len(X)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": [(0, 10_000)]}, r"from 0 to \d+, got 0 to 10000"),
        ({"pairs": [(0, -1)]}, r"got -1 to 0"),
        ({"pairs": [(0, 1), (3, 3)]}, "pair 1 is of row 3 twice"),
        ({"pairs": [(0, 1.5)]}, "integers from zero"),
        ({"pairs": [(0, 1, 2)]}, "must have 2 columns, got 3"),
        ({"pairs": [0, 1]}, "Expected 2D array"),
        ({"pairs": np.empty((0, 2), int)}, "minimum of 1 is required"),
        ({"pairs": [(0, 1)], "pair_weight": [0.0]}, "not zero for all"),
        ({"pairs": [(0, 1)], "pair_weight": [-1.0]}, "non-negative"),
        ({"pairs": [(0, 1)], "pair_weight": [1.0, 2.0]}, r"of shape \(1,\)"),
        ({"pairs": [(0, 1)], "y": np.ones(3)}, "in place of y"),
        ({"pairs": [(0, 1)], "qid": np.ones(3)}, "in place of qid"),
        ({"pair_weight": [1.0]}, "needs pairs"),
        ({}, "requires y to be passed"),
    ],
)
def test_pairs_that_are_none(options, message):
    X, *_ = queries()
    model = BMRMRanker()
    with pytest.raises(ValueError, match=message):
        model.fit(X, **options)
    assert not hasattr(model, "n_queries_")


def test_losses_of_measures_are_not_of_pairs():
    X, *_ = queries()
    with pytest.raises(ValueError, match="pairs need a loss among 'pairwise-linear'"):
        BMRMRanker(loss="ndcg").fit(X, pairs=[(0, 1)])


def test_pairs_are_not_routed():
    with (
        pytest.raises(TypeError, match="pairs"),
        config_context(enable_metadata_routing=True),
    ):
        BMRMRanker().set_fit_request(pairs=True)
