"""No tolerance accepts a model that is no better than a constant while one is known.

What features can gain is at most the gain so far and the gap: a fit goes on until it
has at least half of that.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_poisson_deviance

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)

# Beyond what is solved to the last digits anyway.
N = 3000
QUERIES = np.repeat(np.arange(N // 20), 20)


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 8))
    signal = X.sum(axis=1)
    return X, signal, 0.06 * signal + rng.normal(size=N)


X, SIGNAL, Y = data()
TWO, FOUR = (Y > 0.0).astype(int), np.digitize(Y, [-0.7, 0.0, 0.7])
LABELS = np.column_stack([Y > -0.2, Y > 0.0, Y > 0.2]).astype(int)
COUNTS = np.random.default_rng(1).poisson(np.exp(0.02 * SIGNAL + 3.0))
TOL = 0.3


def regressor(loss, **params):
    return BMRMRegressor(1e-4, loss=loss, tol=TOL, **params)


def classifier(loss, **params):
    return BMRMClassifier(1e-4, loss=loss, tol=TOL, **params)


CASES = [
    *((regressor(loss), Y) for loss in ("absolute_error", "quantile", "huber")),
    *((regressor(loss), Y) for loss in ("squared_error", "epsilon_insensitive")),
    *(
        (regressor("absolute_error", solver=solver), Y)
        for solver in ("ls-bmrm", "bmrm", "sublbfgs", "subbfgs", "alm")
    ),
    *((regressor("huber", penalty=p), Y) for p in ("l1", "elasticnet", "lp")),
    (regressor("absolute_error", penalty="l1"), Y),
    (regressor("poisson"), COUNTS),
    (regressor("poisson", penalty="l1"), COUNTS),
    *((classifier(loss), TWO) for loss in ("hinge", "log_loss", "exponential")),
    *((classifier(loss), TWO) for loss in ("roc_area", "f_beta_bound")),
    (classifier("hinge", penalty="l1"), TWO),
    (classifier("hinge", solver="ls-bmrm"), TWO),
    (classifier("ordinal"), FOUR),
    (classifier("ordinal_all_threshold"), FOUR),
    (SubLBFGSLinearSVC(1e-4, tol=TOL), TWO),
    (SubLBFGSLinearSVC(1e-4, tol=TOL, loss="squared_hinge"), TWO),
    (L1LogisticOWLQN(1e-4, tol=TOL), FOUR),
    (L1LogisticOWLQN(1e-4, tol=TOL, solver="owlqn"), TWO),
    (MulticlassHingeClassifier(1e-4, tol=TOL), FOUR),
    (MultilabelHingeClassifier(1e-4, tol=TOL), LABELS),
    (BMRMRanker(1e-4, tol=TOL), FOUR),
    (BMRMRanker(1e-4, tol=TOL, loss="ndcg"), FOUR),
    (BMRMOutlierDetector(1e-4, tol=TOL), None),
]


def name(index):
    estimator, _ = CASES[index]
    params = [str(getattr(estimator, key, "")) for key in ("loss", "penalty", "solver")]
    return "-".join([type(estimator).__name__, *params])


def fit(estimator, y, **params):
    more = {"qid": QUERIES} if isinstance(estimator, BMRMRanker) else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* makes no use of the features")
        return clone(estimator).set_params(**params).fit(X, y, **more)


@pytest.mark.parametrize("index", range(len(CASES)), ids=name)
def test_features_gain_at_least_half_of_what_they_can(index):
    estimator, y = CASES[index]
    constant = fit(estimator, y, alpha=1e9, tol=1e-7).objective_
    model = fit(estimator, y)
    left = 1e-6 * np.abs(constant) + 1e-9
    assert np.all(model.dual_gap_ <= constant - model.objective_ + left)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "ls-bmrm"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_tolerance_for_counts_is_relative_to_the_deviance(solver, penalty):
    if (solver, penalty) == ("lbfgs", "l1"):
        pytest.skip("for smooth penalties")
    rng = np.random.default_rng(0)
    y = rng.poisson(1000.0 * np.exp(0.03 * X[:, 0]))
    model = BMRMRegressor(1e-4, loss="poisson", solver=solver, penalty=penalty)
    model.fit(X, y)
    half = 0.5 * mean_poisson_deviance(y, model.predict(X))
    norm = (
        np.sum(np.abs(model.coef_))
        if penalty == "l1"
        else 0.5 * model.coef_ @ model.coef_
    )
    assert model.dual_gap_ <= 1e-3 * (half + 1e-4 * norm) * (1.0 + 1e-6)
    # Half of the number of samples, nearly, over that.
    assert 0.45 < half < 0.55


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
@pytest.mark.parametrize("loss", ["squared_error", "quantile"])
def test_targets_that_become_constant_are_fitted_at_once(loss, alpha):
    # The optimum is zero, where relative gaps are one however small the coefficients.
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = BMRMRegressor(alpha, loss=loss, warm_start=True).fit(X, X[:, 0] + 5e5)
    model.fit(X, np.full(40, 5e5))
    assert model.n_iter_ <= 16
    # Sums of four products of this size are rounded by some units of the last place.
    rounded = 32 * np.spacing(5e5)
    assert model.objective_ <= (rounded**2 if loss == "squared_error" else rounded)
    assert np.abs(model.predict(X) - 5e5).max() <= rounded
