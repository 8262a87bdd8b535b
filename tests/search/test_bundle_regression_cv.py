"""Choice of alpha and l1_ratio along warm paths, of regressors and others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import ElasticNetCV
from sklearn.metrics import d2_tweedie_score, mean_pinball_loss, r2_score
from sklearn.model_selection import KFold, cross_val_score

from sklearn_subqn import (
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    PathScoreDisplay,
    SubLBFGSLinearSVCCV,
)

ALPHAS = [1.0, 1e-1, 1e-2]


def _data(n=150, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X @ [2.0, 1.0, 0.0, 0.0] + rng.exponential(size=n)


def _pinball(y, predictions, quantile):
    if np.ndim(quantile) == 0:
        return -mean_pinball_loss(y, predictions, alpha=quantile)
    pairs = zip(predictions.T, quantile, strict=True)
    return np.mean([_pinball(y, each, q) for each, q in pairs])


@pytest.mark.parametrize(
    ("parameters", "metric"),
    [
        ({}, r2_score),
        ({"loss": "huber"}, r2_score),
        ({"loss": "poisson"}, lambda y, z: d2_tweedie_score(y, z, power=1)),
        # No quantile of the samples is an interval, from which to choose.
        (
            {"loss": "quantile", "quantile": 0.873},
            lambda y, z: _pinball(y, z, 0.873),
        ),
        (
            {"loss": "quantile", "quantile": [0.873, 0.231]},
            lambda y, z: _pinball(y, z, [0.873, 0.231]),
        ),
    ],
)
def test_scores_are_those_of_fits_of_their_own(parameters, metric):
    X, y = _data()
    y = np.abs(y).round() if parameters.get("loss") == "poisson" else y
    folds = list(KFold(3).split(X))
    search = BMRMRegressorCV(ALPHAS[::-1], cv=3, tol=1e-8, **parameters).fit(X, y)
    assert_array_equal(search.alphas_, ALPHAS)
    for place, alpha in enumerate(ALPHAS):
        for fold, (train, test) in enumerate(folds):
            model = BMRMRegressor(alpha, tol=1e-8, **parameters)
            predictions = model.fit(X[train], y[train]).predict(X[test])
            score = search.scores_path_[fold, place]
            assert score == pytest.approx(metric(y[test], predictions), abs=1e-4)
    means = search.scores_path_.mean(axis=0)
    assert search.best_score_ == means.max()
    assert search.alpha_ == ALPHAS[int(means.argmax())]
    final = BMRMRegressor(search.alpha_, tol=1e-8, **parameters).fit(X, y)
    assert_allclose(search.objective_, final.objective_, rtol=1e-7)
    assert np.all(search.dual_gap_ <= 1e-8 * search.objective_)
    assert not hasattr(search, "l1_ratio_")


def test_scores_are_those_of_a_scorer_with_weights():
    X, y = _data()
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    search = BMRMRegressorCV([0.1], cv=KFold(2), scoring="neg_mean_squared_error")
    weighted = search.fit(sparse.csr_matrix(X), y, weights).scores_path_
    repeated = np.repeat(np.arange(len(y)) >= len(y) // 2, weights)
    folds = [(np.flatnonzero(repeated), np.flatnonzero(~repeated))]
    expected = cross_val_score(
        BMRMRegressor(0.1), X[rows], y[rows], cv=folds, scoring=search.scoring
    )
    assert weighted[0] == pytest.approx(expected, rel=1e-6)


def test_columns_of_y_have_one_alpha():
    X, y = _data()
    search = BMRMRegressorCV(3, cv=2, refit=False).fit(X, np.column_stack([y, -y]))
    assert search.coef_.shape == (2, 4)
    assert_allclose(search.coef_[0], -search.coef_[1], atol=1e-10)
    assert not hasattr(search, "objective_")


def test_an_elastic_net_is_that_of_scikit_learn():
    X, y = _data(120)
    ratios = [0.2, 0.9, 1.0]
    search = BMRMRegressorCV(
        5, cv=3, penalty="elasticnet", l1_ratio=ratios, tol=1e-10,
        scoring="neg_mean_squared_error",
    ).fit(X, y)  # fmt: skip
    sizes = X.std(axis=0)
    theirs = ElasticNetCV(alphas=5, cv=3, l1_ratio=ratios, tol=1e-10).fit(X / sizes, y)
    assert_allclose(search.penalty_factor_, sizes)
    assert_allclose(search.alphas_, theirs.alphas_)
    assert_allclose(-search.scores_path_.swapaxes(1, 2), theirs.mse_path_, rtol=1e-4)
    assert search.l1_ratio_ == theirs.l1_ratio_
    assert search.alpha_ == pytest.approx(theirs.alpha_)
    assert_allclose(search.coef_ * sizes, theirs.coef_, rtol=1e-3, atol=1e-4)
    assert search.gaps_path_.shape == search.scores_path_.shape == (3, 3, 5)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"loss": "huber"},
        {"loss": "absolute_error"},
        {"loss": "absolute_error", "penalty": "l1"},
        {"loss": "quantile", "quantile": [0.2, 0.7]},
    ],
)
def test_default_grids_follow_units(parameters):
    X, y = _data(60)
    epsilon = {"epsilon": 1.35} if parameters.get("loss") == "huber" else {}
    plain = BMRMRegressorCV(4, cv=2, **parameters, **epsilon).fit(X, y)
    epsilon = {name: 100.0 * value for name, value in epsilon.items()}
    units = np.array([8.0, 1e-3, 1e5, 1.0])
    scaled = BMRMRegressorCV(4, cv=2, **parameters, **epsilon).fit(units * X, 100.0 * y)
    squares = "penalty" not in parameters
    linear = parameters.get("loss") in ("absolute_error", "quantile")
    factor = 0.01 if squares and linear else 1.0
    assert_allclose(scaled.alphas_, factor * plain.alphas_, rtol=1e-8)
    assert_allclose(scaled.coef_ * units, 100.0 * plain.coef_, rtol=0.1, atol=5.0)
    if squares:
        # Half the way along the steepest slope is left of squared errors.
        assert scaled.alpha_ < scaled.alphas_[0]


def test_squares_as_curved_as_the_loss_are_a_tenth_of_the_largest_alpha():
    x, y = np.array([[-1.0], [1.0], [-2.0], [2.0]]), np.array([-1.0, 1.0, -2.0, 2.0])
    search = BMRMRegressorCV(2, cv=2).fit(x, y)
    # The feature is scaled to variance one.
    assert search.alphas_[0] == pytest.approx(10.0)
    assert search.penalty_factor_ == pytest.approx(np.mean(x**2))


def test_several_ratios_of_logistic_models():
    X, y = make_classification(200, random_state=0)
    ratios = [0.0, 0.5, 1.0]
    search = L1LogisticOWLQNCV(3, cv=3, l1_ratio=ratios, scoring="neg_log_loss")
    search.fit(X, y)
    assert search.scores_path_.shape == search.gaps_path_.shape == (3, 3, 3)
    own = [
        L1LogisticOWLQNCV(3, cv=3, l1_ratio=ratio, scoring="neg_log_loss").fit(X, y)
        for ratio in ratios
    ]
    for path, each in enumerate(own):
        assert_array_equal(search.scores_path_[path], each.scores_path_)
        assert_array_equal(search.alphas_[path], each.alphas_)
        assert each.l1_ratio_ == ratios[path]
    best = max(own, key=lambda each: each.best_score_)
    assert search.best_score_ == best.best_score_
    assert (search.alpha_, search.l1_ratio_) == (best.alpha_, best.l1_ratio_)
    assert_array_equal(search.coef_, best.coef_)
    assert search.penalty == best.penalty
    factors = search.penalty_factor_
    assert_array_equal(factors, best.penalty_factor_)
    expected = L1LogisticOWLQN(
        best.alpha_, l1_ratio=best.l1_ratio_, penalty_factor=factors
    ).fit(X, y)
    assert search.objective_ == pytest.approx(expected.objective_, rel=1e-3)
    selected = SelectFromModel(search, prefit=True).get_support()
    if search.l1_ratio_ == 1.0:
        assert_array_equal(selected, search.coef_[0] != 0.0)
    pytest.importorskip("matplotlib")
    display = PathScoreDisplay.from_estimator(search)
    assert_array_equal(display.scores, best.scores_path_)


def test_the_best_score_leaves_out_folds_without_scores():
    X, y = make_classification(60, random_state=0)
    y = np.sort(y)
    folds = [(np.arange(60), np.arange(10)), (np.arange(60), np.arange(20, 60))]

    def scorer(model, X, y):
        return np.nan if len(np.unique(y)) < 2 else model.score(X, y)

    search = SubLBFGSLinearSVCCV(ALPHAS, cv=folds, scoring=scorer)
    with pytest.warns(UserWarning, match="counts for nothing"):
        search.fit(X, y)
    assert search.best_score_ == search.scores_path_[1].max()


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"l1_ratio": []}, "non-empty list of numbers"),
        ({"l1_ratio": [0.5, 1.5]}, "l1_ratio must be >= 0 and <= 1, got 1.5"),
        ({"l1_ratio": "half"}, "l1_ratio must be a number or"),
        ({"penalty": "entropy"}, "penalty must be one of 'l2', 'l1', 'elasticnet'"),
        ({"scoring": ["r2"]}, "scoring must be a single metric"),
        ({"alphas": []}, "alphas must be an integer or a non-empty list"),
        ({"cv": iter([])}, "gives no folds"),
    ],
)
def test_wrong_parameters_are_refused(parameters, error):
    X, y = _data(40)
    search = BMRMRegressorCV(2, cv=2, penalty="elasticnet")
    with pytest.raises(ValueError, match=error):
        search.set_params(**parameters).fit(X, y)


def test_a_list_of_ratios_without_effect_is_warned_of_once():
    X, y = _data(40)
    with pytest.warns(UserWarning, match="l1_ratio has no effect") as told:
        BMRMRegressorCV(2, cv=2, l1_ratio=[0.1, 0.9]).fit(X, y)
    assert len(told) == 1
