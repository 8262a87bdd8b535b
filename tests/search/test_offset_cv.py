"""Offsets in the cross-validated choice of alpha."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import KFold, cross_validate

from sklearn_subqn import BMRMRegressor, BMRMRegressorCV, losses

ALPHAS = [1.0, 0.1, 0.01]


def data(loss, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    offset = rng.normal(scale=2.0, size=n)
    z = X @ [0.5, -0.3, 0.0] + offset
    if loss == "poisson":
        return X, rng.poisson(np.exp(z)).astype(float), offset
    return X, z + rng.normal(size=n), offset


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("loss", ["poisson", "huber", "quantile"])
def test_folds_are_fitted_and_scored_with_offsets(loss, scoring):
    X, y, offset = data(loss)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    cv = KFold(3, shuffle=True, random_state=0)
    search = BMRMRegressorCV(ALPHAS, loss=loss, cv=cv, scoring=scoring, tol=1e-8)
    search.fit(X, y, sample_weight=weights, offset=offset)
    expected = np.empty((3, len(ALPHAS)))
    for fold, (train, test) in enumerate(cv.split(X)):
        for place, alpha in enumerate(ALPHAS):
            model = BMRMRegressor(alpha, loss=loss, tol=1e-8)
            model.fit(X[train], y[train], weights[train], offset=offset[train])
            of_test = X[test], y[test], weights[test]
            if scoring is None and loss != "quantile":
                score = model.score(*of_test, offset=offset[test])
            else:
                error = np.abs(y[test] - model.predict(X[test], offset=offset[test]))
                share = 0.5 if scoring is None else 1.0
                score = -share * np.average(error, weights=weights[test])
            expected[fold, place] = score
    np.testing.assert_allclose(search.scores_path_, expected, rtol=1e-5)
    assert search.alpha_ == ALPHAS[np.argmax(expected.mean(axis=0))]
    final = BMRMRegressor(search.alpha_, loss=loss, tol=1e-8)
    final.fit(X, y, weights, offset=offset)
    np.testing.assert_allclose(search.coef_, final.coef_, rtol=1e-4, atol=1e-6)
    score = search.score(X, y, weights, offset=offset)
    assert score == pytest.approx(final.score(X, y, weights, offset=offset), rel=1e-5)


def test_offsets_are_routed_as_metadata():
    X, y, offset = data("poisson")
    with config_context(enable_metadata_routing=True):
        search = BMRMRegressorCV(ALPHAS, loss="poisson", cv=2)
        search.set_fit_request(offset=True).set_score_request(offset=True)
        routed = cross_validate(search, X, y, cv=2, params={"offset": offset})
    half = len(y) // 2
    search.fit(X[half:], y[half:], offset=offset[half:])
    expected = search.score(X[:half], y[:half], offset=offset[:half])
    assert routed["test_score"][0] == pytest.approx(expected, rel=1e-10)


def test_offsets_that_are_refused():
    X, y, offset = data("huber")
    with pytest.raises(ValueError, match="offset"):
        BMRMRegressorCV(ALPHAS).fit(X, y, offset=offset[:-1])

    class Own(losses.Loss):
        def value(self, scores, targets, weights):
            return float(weights @ np.abs(targets - scores))

        def subgradient(self, scores, targets, weights):
            return -weights * np.sign(targets - scores)

    with pytest.raises(ValueError, match="offset is for losses by name"):
        BMRMRegressorCV(ALPHAS, loss=Own()).fit(X, y, offset=offset)
