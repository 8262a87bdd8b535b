"""Default grids measure features in scales, and warn where the score still rises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn import (
    BMRMRegressor,
    BMRMRegressorCV,
    CoxRegressionCV,
    L1LogisticOWLQNCV,
    SubLBFGSLinearSVCCV,
    dual_gap,
)

UNITS = np.array([1e-3, 1.0, 1e4, 1.0, 1.0])


def _data(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, len(UNITS)))
    return X, X @ [1.0, 1.0, 0.0, -1.0, 0.0] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    "search",
    [
        BMRMRegressorCV(),
        BMRMRegressorCV(cv="loo"),
        BMRMRegressorCV(penalty="elasticnet", l1_ratio=[0.5, 1.0], refit=False),
        SubLBFGSLinearSVCCV(4),
        L1LogisticOWLQNCV(4),
        CoxRegressionCV(4),
    ],
    ids=lambda search: type(search).__name__,
)
def test_default_searches_do_not_depend_on_units(search):
    X, y = _data()
    if isinstance(search, CoxRegressionCV):
        target = np.exp(-y), np.ones(len(y), dtype=bool)
    else:
        target = y if isinstance(search, BMRMRegressorCV) else y > 0.0
    search.set_params(tol=1e-8)
    plain = search.fit(X, target)
    scores, alphas, coef = plain.scores_path_, plain.alphas_, plain.coef_
    search.fit(X * UNITS, target)
    assert_allclose(search.alphas_, alphas, rtol=1e-9)
    assert_allclose(search.scores_path_, scores, rtol=1e-4, atol=1e-4)
    assert_allclose(search.coef_ * UNITS, coef, rtol=1e-3, atol=1e-4)


def test_the_model_is_that_of_the_chosen_alpha_and_scales():
    X, y = _data()
    X = X * UNITS
    search = BMRMRegressorCV(6, cv=3, tol=1e-9).fit(X, y)
    assert_allclose(search.penalty_factor_, X.var(axis=0))
    same = BMRMRegressor(search.alpha_, penalty_factor=search.penalty_factor_, tol=1e-9)
    assert_allclose(search.coef_, same.fit(X, y).coef_, rtol=1e-6)
    assert dual_gap(search, X, y) <= 1e-8 * search.objective_
    search.set_params(alphas=[0.1]).fit(X, y)
    assert_array_equal(search.penalty_factor_, np.ones(len(UNITS)))
    assert_allclose(search.coef_, BMRMRegressor(0.1, tol=1e-9).fit(X, y).coef_)


@pytest.mark.parametrize(("penalty", "scales"), [("l2", np.var), ("l1", np.std)])
def test_scales_are_multiplied_by_the_factors_given(penalty, scales):
    X, y = _data()
    X, factors = X * UNITS, np.array([1.0, 2.0, 0.0, 0.5, 1.0])
    options = {"penalty": penalty, "tol": 1e-9}
    search = BMRMRegressorCV(4, cv=3, penalty_factor=factors, **options).fit(X, y)
    assert_allclose(search.penalty_factor_, factors * scales(X, axis=0))
    assert_array_equal(factors, [1.0, 2.0, 0.0, 0.5, 1.0])
    options["penalty_factor"] = search.penalty_factor_
    same = BMRMRegressor(search.alpha_, **options).fit(X, y)
    assert_allclose(search.coef_ * UNITS, same.coef_ * UNITS, atol=1e-6)
    given = BMRMRegressorCV(search.alphas_, cv=3, **options).fit(X, y)
    assert_allclose(search.scores_path_, given.scores_path_, atol=1e-6)


def test_a_score_that_still_rises_at_the_end_of_the_grid_is_warned_of():
    X, y = _data()
    units = np.array([3e-4, 3e-4, 1.0, 3e-4, 1.0])
    # Norms of groups have the units of the features.
    search = BMRMRegressorCV(10, penalty="group", groups=[0, 0, 1, 2, 3], cv=3)
    with pytest.warns(UserWarning, match=r"still rises at alpha=.*smallest value"):
        search.fit(X * units, y)
    assert search.alpha_ == search.alphas_[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, y)
        search.set_params(alphas=[0.3, 0.2]).fit(X, y)
