"""Leave-one-out of ridge regressions by one factorization, beside one fit a fold."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import LeaveOneOut

from sklearn_subqn import BMRMRegressor, BMRMRegressorCV
from sklearn_subqn._search.each_row import EachRow

MEAN_SQUARES = "neg_mean_squared_error"
SCORES = (MEAN_SQUARES, "neg_mean_absolute_error", "neg_root_mean_squared_error")


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d)
    y = 1e3 + X[:, 0] / X[:, 0].std() + rng.standard_normal(n)
    return X, y, rng.integers(1, 4, n).astype(float)


def both(X, y, weights=None, **parameters):
    """Return the search by one factorization, and with one fit a fold."""
    splits = list(LeaveOneOut().split(X))
    parameters = {"alphas": 5, "tol": 1e-9, "scoring": MEAN_SQUARES, **parameters}
    return tuple(
        BMRMRegressorCV(cv=cv, **parameters).fit(X, y, sample_weight=weights)
        for cv in ("loo", splits)
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("n", "d"), [(25, 4), (8, 8), (9, 8), (7, 20)])
def test_scores_are_those_of_one_fit_for_each_row(n, d, fit_intercept):
    X, y, weights = data(n, d)
    for given in (None, weights):
        fast, slow = both(X, y, given, fit_intercept=fit_intercept)
        assert fast.gaps_path_.max() < 1e-12
        np.testing.assert_allclose(fast.scores_path_, slow.scores_path_, rtol=2e-5)
        assert fast.alpha_ == slow.alpha_
        assert np.array_equal(fast.coef_, slow.coef_)
        assert fast.dual_gap_ <= 1e-9 * fast.objective_


@pytest.mark.parametrize("scoring", SCORES)
def test_each_score(scoring):
    X, y, _ = data(7, 3)
    fast, slow = both(X, np.column_stack([y, -X[:, 1]]), scoring=scoring)
    np.testing.assert_allclose(fast.scores_path_, slow.scores_path_, rtol=2e-5)
    assert fast.gaps_path_.max() < 1e-15


def test_errors_of_exact_fits():
    # With features (1, -1, 0) and weight 1/2 for two rows a fit to rows (a, b) without
    # an intercept has w = xᵀy / (xᵀx + 2 alpha).
    X, y, alpha = np.array([[1.0], [-1.0], [0.0]]), np.array([3.0, 1.0, 2.0]), 0.25
    search = BMRMRegressorCV([alpha], cv="loo", fit_intercept=False).fit(X, y)
    coefs = np.array([-1.0 / 1.5, 3.0 / 1.5, 2.0 / 2.5])
    expected = -((y - X[:, 0] * coefs) ** 2)
    np.testing.assert_allclose(search.scores_path_[:, 0], expected, rtol=1e-13)


def test_several_targets_sparse_rows_factors_and_offsets():
    X, y, weights = data(20, 5)
    Y = np.column_stack([y, y**2 / 1e3, X @ np.ones(5)])
    factors = {"penalty_factor": [1.0, 2.0, 0.5, 1.0, 3.0]}
    fast, slow = both(X, Y, weights, **factors)
    np.testing.assert_allclose(fast.scores_path_, slow.scores_path_, rtol=2e-5)
    assert fast.gaps_path_.max() < 1e-15
    by_rows, _ = both(sparse.csr_array(X), Y, weights, **factors)
    np.testing.assert_allclose(by_rows.scores_path_, fast.scores_path_, rtol=1e-9)
    search = BMRMRegressorCV(5, cv="loo", tol=1e-9)
    offset = np.linspace(-9.0, 9.0, 20)
    shifted = search.fit(X, y + offset, offset=offset).scores_path_
    np.testing.assert_allclose(shifted, search.fit(X, y).scores_path_, rtol=1e-9)


def test_scikit_learns_splitter_and_rows_without_weight():
    X, y, weights = data(30, 3)
    plain = BMRMRegressorCV(4, cv="loo").fit(X, y)
    same = BMRMRegressorCV(4, cv=LeaveOneOut()).fit(X, y)
    assert np.array_equal(plain.scores_path_, same.scores_path_)
    weights[::3] = 0.0
    some = BMRMRegressorCV(4, cv="loo").fit(X, y, sample_weight=weights)
    used = weights > 0.0
    others = BMRMRegressorCV(4, cv="loo").fit(X[used], y[used], weights[used])
    assert some.scores_path_.shape == (20, 4)
    np.testing.assert_allclose(some.scores_path_, others.scores_path_, rtol=1e-9)
    one = np.eye(30)[0]
    with pytest.raises(ValueError, match="at least two rows of positive weight"):
        BMRMRegressorCV(4, cv="loo").fit(X, y, sample_weight=one)


def test_intervals_are_searched_by_mean_squares_too():
    X, y, _ = data(8, 2)
    default, named = (
        BMRMRegressorCV((1e-2, 1.0), cv="loo", scoring=scoring, search_tol=0.2)
        for scoring in (None, MEAN_SQUARES)
    )
    assert default.fit(X, y).alpha_ == named.fit(X, y).alpha_
    assert np.array_equal(default.score_bounds_, named.score_bounds_)


def test_folds_are_a_sequence():
    folds = EachRow(np.array([2, 5, 7]))
    expected = [([5, 7], [2]), ([2, 7], [5]), ([2, 5], [7])]
    assert [(a.tolist(), b.tolist()) for a, b in folds] == expected
    assert [each.tolist() for each in folds[-1]] == [[2, 5], [7]]


def test_without_a_proof_each_fold_is_fitted():
    # The square of the features' condition is 1e12 times the strength and more.
    X, y, _ = data(8, 3)
    search = BMRMRegressorCV([1e-8, 1.0], cv="loo", tol=1e-9, scoring=SCORES[1])
    search.fit(X, y)
    assert 1e-15 < search.gaps_path_[:, 0].max() <= 1e-9
    for i in range(3):
        rest = np.delete(np.arange(8), i)
        one = BMRMRegressor(1.0, tol=1e-9).fit(X[rest], y[rest])
        error = np.abs(one.predict(X[i : i + 1]) - y[i])
        assert -search.scores_path_[i, 0] == pytest.approx(error[0], rel=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        {"penalty": "l1"},
        {"loss": "absolute_error"},
        {"loss": "quantile"},
        {"scoring": "neg_mean_poisson_deviance"},
        {"refit": False},
        {"solver": "bmrm"},
        {"coef_bounds": (0.0, 1.0)},
        {"penalty_factor": [0.0, 1.0]},
    ],
)
def test_other_models_fit_each_fold(parameters):
    X, y, _ = data(8, 2)
    parameters = {"alphas": [1.0, 0.1], "scoring": None, "tol": 1e-7, **parameters}
    search = BMRMRegressorCV(cv=LeaveOneOut(), **parameters).fit(X, y)
    one = {k: v for k, v in parameters.items() if k in BMRMRegressor().get_params()}
    for i, alpha in enumerate([1.0, 0.1]):
        model = BMRMRegressor(alpha, **one).fit(X[1:], y[1:])
        error = abs(float(model.predict(X[:1])[0]) - y[0])
        score = -search.scores_path_[0, i]
        if parameters["scoring"] is None:
            score = 2.0 * score if parameters.get("loss") == "quantile" else score**0.5
            assert score == pytest.approx(error, rel=1e-3, abs=1e-4)


def test_fits_are_reported():
    class Folds:
        def __init__(self):
            self.seen = []

        def __call__(self, progress):
            return None

        def fold(self, progress):
            self.seen.append(progress)

    X, y, _ = data(6, 2)
    folds = Folds()
    search = BMRMRegressorCV(3, cv="loo", callback=folds).fit(X, y)
    assert [each.n_done for each in folds.seen] == list(range(1, 19))
    scores = np.array([each.score for each in folds.seen]).reshape(6, 3)
    assert np.array_equal(scores, search.scores_path_)
