"""Rankers evaluated on other queries after each iteration."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from sklearn_subqn import BMRMRanker, BMRMRankerCV


def queries(n, seed, n_features=30):
    rng = np.random.default_rng(seed)
    group = rng.integers(4, 12, n)
    X = rng.normal(size=(group.sum(), n_features))
    y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=len(X)), [0.0, 1.5])
    return X, y, group


X, Y, GROUP = queries(10, 0)
Z, T, SIZES = queries(30, 1)
HELD_OUT = {"eval_set": [(Z, T)], "eval_group": [SIZES]}


def unproven(max_iter, **params):
    """Return a ranker after so many iterations."""
    ranker = BMRMRanker(1e-3, max_iter=max_iter, **params)
    with pytest.warns(match="max_iter"):
        return ranker.fit(X, Y, group=GROUP)


@pytest.mark.parametrize("loss", ["pairwise-linear", "pairwise-linear-log", "ndcg"])
@pytest.mark.parametrize("k", [None, 3])
def test_scores_are_those_of_each_iteration(loss, k):
    params = {"loss": loss, "k": k}
    ranker = BMRMRanker(1e-3, **params).fit(X, Y, group=GROUP, **HELD_OUT)
    values = ranker.evals_result_["valid_0"]["ndcg" if k is None else "ndcg@3"]
    assert len(values) == ranker.n_iter_ == ranker.best_iteration_
    assert values[-1] == ranker.score(Z, T, group=SIZES)
    for n in (1, 2):
        assert values[n - 1] == unproven(n, **params).score(Z, T, group=SIZES)
    plain = BMRMRanker(1e-3, **params).fit(X, Y, group=GROUP)
    np.testing.assert_array_equal(plain.coef_, ranker.coef_)
    assert not hasattr(plain, "evals_result_")


def test_the_best_iteration_is_kept():
    whole = BMRMRanker(1e-3).fit(X, Y, group=GROUP, **HELD_OUT)
    ranker = BMRMRanker(1e-3, n_iter_no_change=2).fit(X, Y, group=GROUP, **HELD_OUT)
    values = ranker.evals_result_["valid_0"]["ndcg"]
    assert values == whole.evals_result_["valid_0"]["ndcg"][: len(values)]
    best = ranker.best_iteration_
    assert best == np.argmax(values) + 1 == len(values) - 2 < whole.n_iter_ - 2
    assert ranker.score(Z, T, group=SIZES) == max(values)
    same = unproven(best)
    np.testing.assert_allclose(ranker.coef_, same.coef_, rtol=1e-12)
    # What is proven is proven of these coefficients.
    assert ranker.objective_ == pytest.approx(same.objective_, rel=1e-12)
    assert ranker.objective_ - ranker.dual_gap_ <= whole.objective_
    assert ranker.objective_ > whole.objective_


def test_the_optimum_is_kept_where_it_comes_first():
    whole = BMRMRanker(1e-3).fit(X, Y, group=GROUP)
    ranker = BMRMRanker(1e-3, n_iter_no_change=10**4)
    ranker.fit(X, Y, group=GROUP, **HELD_OUT)
    np.testing.assert_array_equal(ranker.coef_, whole.coef_)
    assert ranker.best_iteration_ == whole.n_iter_


def test_several_sets_and_kinds_of_queries():
    numbers = np.repeat(np.arange(len(SIZES)), SIZES)
    order = np.random.default_rng(0).permutation(len(T))
    sets = [(Z, T), (Z[order], T[order])]
    ranker = BMRMRanker(1e-3)
    ranker.fit(X, Y, group=GROUP, eval_set=sets, eval_qid=[numbers, numbers[order]])
    first, second = ranker.evals_result_.values()
    np.testing.assert_allclose(first["ndcg"], second["ndcg"], rtol=1e-12)
    ranker.fit(X, Y, group=GROUP, eval_set=(Z, T), eval_qid=numbers)
    assert ranker.evals_result_["valid_0"] == first
    pairs = [(0, 1), (2, 3), (1, 2)]
    ranker.fit(X, pairs=pairs, eval_set=(Z, T), eval_group=SIZES)
    value = ranker.score(Z, T, group=SIZES)
    assert ranker.evals_result_["valid_0"]["ndcg"][-1] == value


def test_queries_without_relevant_rows():
    ranker = BMRMRanker().fit(X, Y, group=GROUP)
    empty = T.copy()
    empty[: SIZES[0]] = 0
    starts = np.cumsum(SIZES)[:-1]
    relevant, scores = np.split(empty, starts), np.split(ranker.predict(Z), starts)
    each = np.array(
        [
            ndcg_score([2.0**y - 1.0], [z]) if y.any() else np.nan
            for y, z in zip(relevant, scores, strict=True)
        ]
    )
    n_empty = np.isnan(each).sum()
    assert 0 < n_empty < len(each)
    for value, expected in (
        ("zero", np.nansum(each) / len(each)),
        ("one", (np.nansum(each) + n_empty) / len(each)),
        ("skip", np.nanmean(each)),
    ):
        ranker.set_params(empty_queries=value)
        assert ranker.score(Z, empty, group=SIZES) == pytest.approx(expected)
    with pytest.raises(ValueError, match="there is none left"):
        ranker.score(Z, 0 * empty, group=SIZES)
    with pytest.raises(ValueError, match="empty_queries must be one of 'zero'"):
        ranker.set_params(empty_queries="drop").score(Z, empty, group=SIZES)


def test_queries_without_relevant_rows_in_cross_validation():
    empty = Y.copy()
    empty[: GROUP[0]] = 0
    paths = {
        value: BMRMRankerCV([1e-2], cv=2, empty_queries=value)
        .fit(X, empty, group=GROUP)
        .scores_path_
        for value in ("zero", "one", "skip")
    }
    assert np.all(paths["zero"] <= paths["skip"])
    assert np.all(paths["skip"] <= paths["one"])
    assert np.any(paths["zero"] < paths["skip"])


@pytest.mark.parametrize(
    ("params", "given", "message"),
    [
        ({}, {"eval_set": [(Z, T)]}, "needs eval_qid or eval_group, with one entry"),
        ({}, {**HELD_OUT, "eval_qid": [T]}, "needs eval_qid or eval_group"),
        ({}, {"eval_group": [SIZES]}, "eval_group need eval_set"),
        ({}, {"eval_set": [(Z, T)], "eval_group": [SIZES[1:]]}, "group must hold"),
        ({}, {"eval_set": [(Z[:, 1:], T)], "eval_group": [SIZES]}, "29 features"),
        ({}, {"eval_set": [(Z, -T)], "eval_group": [SIZES]}, "between 0 and 500"),
        ({}, {"eval_set": [(Z[1:], T)], "eval_group": [SIZES]}, "as many rows"),
        ({}, {"eval_set": [(Z, T, T)], "eval_group": [SIZES]}, "tuples"),
        ({"n_iter_no_change": 3}, {}, "needs an eval_set in fit"),
        ({"n_iter_no_change": 0}, HELD_OUT, "n_iter_no_change must be"),
    ],
)
def test_what_is_refused(params, given, message):
    ranker = BMRMRanker(1e-3).fit(X, Y, group=GROUP, **HELD_OUT)
    before = ranker.evals_result_
    with pytest.raises(ValueError, match=message):
        ranker.set_params(**params).fit(X, Y, group=GROUP, **given)
    assert ranker.evals_result_ is before


def test_missing_values_are_refused_with_advice():
    missing = X.copy()
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"BMRMRanker does .* an imputer"):
        BMRMRanker().fit(missing, Y, group=GROUP)
    missing = Z.copy()
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match="imputer"):
        BMRMRanker().fit(X, Y, group=GROUP, eval_set=[(missing, T)], eval_group=[SIZES])
