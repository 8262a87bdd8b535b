"""The one-standard-error rule: the strongest penalty as good as the best one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from sklearn_subqn import (
    BMRMRankerCV,
    BMRMRegressorCV,
    CoxRegressionCV,
    L1LogisticOWLQNCV,
    SubLBFGSLinearSVCCV,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Z = X[:, 0] + 2.0 * RNG.normal(size=120)
SEARCHES = [
    (BMRMRegressorCV(12, penalty="elasticnet", l1_ratio=[0.2, 0.9]), Z, {}),
    (L1LogisticOWLQNCV(12), Z > 0.0, {}),
    (SubLBFGSLinearSVCCV(np.geomspace(30.0, 1e-3, 12)), Z > 0.0, {}),
    (
        BMRMRankerCV(np.geomspace(1.0, 1e-3, 6)),
        np.digitize(Z, [0.0, 1.0]),
        {"qid": np.arange(120) // 6},
    ),
    (CoxRegressionCV(12), (np.exp(-Z), RNG.random(120) < 0.8), {}),
]


def chosen_by_hand(search):
    """The largest alpha within one standard error, by loops over alphas and folds."""
    scores, alphas = search.scores_path_, search.alphas_
    if scores.ndim == 3:
        path = list(search.l1_ratio).index(search.l1_ratio_)
        scores, alphas = scores[path], alphas[path]
    means = [sum(column) / len(column) for column in scores.T]
    best = max(range(len(means)), key=means.__getitem__)
    apart = [(score - means[best]) ** 2 for score in scores[:, best]]
    error = (sum(apart) / (len(apart) - 1) / len(apart)) ** 0.5
    within = [a for a, m in zip(alphas, means, strict=True) if m >= means[best] - error]
    return max(within), alphas[best], means[best]


@pytest.mark.parametrize(("search", "y", "others"), SEARCHES)
@pytest.mark.parametrize("refit", [True, False])
def test_largest_alpha_within_one_standard_error(search, y, others, refit):
    search.set_params(one_standard_error=True, refit=refit, cv=4).fit(X, y, **others)
    strongest, best, mean = chosen_by_hand(search)
    assert search.alpha_ == strongest > best
    assert_allclose(search.best_score_, mean, rtol=1e-14)
    if refit:
        one = search._of_chosen().fit(X, y, **others)
        assert_allclose(search.objective_, one.objective_, rtol=2e-3)
        assert one.alpha == strongest
    search.set_params(one_standard_error=False).fit(X, y, **others)
    assert search.alpha_ == best


def test_folds_without_scores_are_excluded():
    def score(model, X, y):
        return np.nan if X[0, 0] == whole[0, 0] else model.score(X, y)

    whole = X
    given = {"alphas": 12, "cv": KFold(5), "scoring": score}
    search = BMRMRegressorCV(one_standard_error=True, **given)
    with pytest.warns(UserWarning, match="without any finite"):
        search.fit(X, Z)
    search.scores_path_ = search.scores_path_[1:]
    assert search.alpha_ == chosen_by_hand(search)[0]


def test_errors():
    search = BMRMRegressorCV(3, one_standard_error=True, cv=KFold(2).split(X[:100]))
    search.set_params(cv=[next(iter(search.cv))])
    with pytest.raises(ValueError, match="at least two folds"):
        search.fit(X, Z)
    search.set_params(cv=3, alphas=(1e-3, 1.0), search_tol=0.1)
    with pytest.raises(ValueError, match="not go with one_standard_error"):
        search.fit(X, Z)
    search.set_params(one_standard_error="yes", search_tol=None)
    with pytest.raises((TypeError, ValueError), match="one_standard_error"):
        search.fit(X, Z)
