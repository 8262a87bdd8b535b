"""Fits of repeated rows, and of distinct rows with their numbers as weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn._problems import LinearProblems
from sklearn_subqn.linear_model import HuberRegressor, PoissonRegressor

N = 6000


def data(seed=0):
    """Return indicators of two categories, a score and sample weights for each row."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(4, size=N), rng.integers(3, size=N)
    X = np.column_stack([np.eye(4)[first], np.eye(3)[second]])
    scores = X @ rng.normal(size=7)
    return X, scores + rng.logistic(size=N), rng.random(N)


def fits(model, X, y, monkeypatch, **others):
    """Return the same fit of distinct rows and of all rows."""
    found = []
    for merges in (True, False):
        monkeypatch.setattr(LinearProblems, "_merges_rows", merges)
        model.fit(X, y, **others)
        found.append(dict(vars(model)))
    return found


MODELS = {
    "log loss": (BMRMClassifier(loss="log_loss"), np.sign),
    "hinge": (BMRMClassifier(loss="hinge"), np.sign),
    "classes": (BMRMClassifier(loss="log_loss"), lambda z: np.digitize(z, [-1, 1])),
    "joint": (BMRMClassifier(loss="multinomial"), lambda z: np.digitize(z, [-1, 1])),
    "ordinal": (
        BMRMClassifier(loss="ordinal_logit"),
        lambda z: np.digitize(z, [-1, 1]),
    ),
    "Poisson": (BMRMRegressor(loss="poisson"), lambda z: np.floor(np.exp(z / 3))),
    "quantiles": (BMRMRegressor(loss="quantile", quantile=[0.2, 0.7]), np.round),
    "columns": (
        BMRMRegressor(loss="squared_error"),
        lambda z: np.column_stack([np.round(z), np.sign(z)]),
    ),
}


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, np.asfortranarray])
@pytest.mark.parametrize("name", list(MODELS))
def test_objective_and_bound_are_those_of_all_rows(name, make, weighted, monkeypatch):
    model, targets = MODELS[name]
    X, z, weights = data()
    weights = weights if weighted else None
    model.set_params(alpha=1e-3, tol=1e-7)
    merged, whole = fits(model, make(X), targets(z), monkeypatch, sample_weight=weights)
    # Both intervals from the lower bound to the objective have the minimum.
    value, gap = merged["objective_"], merged["dual_gap_"]
    other, other_gap = whole["objective_"], whole["dual_gap_"]
    rounding = 1e-12 * np.abs(value)
    assert np.all(value - gap <= other + rounding)
    assert np.all(other - other_gap <= value + rounding)
    assert np.all(gap <= 1e-6 * value)
    # In strongly convex objectives, the gaps bound the distance of coefficients.
    radius = np.sqrt(2.0 / 1e-3) * (np.sqrt(gap) + np.sqrt(other_gap))
    distance = np.linalg.norm(np.atleast_2d(merged["coef_"] - whole["coef_"]))
    assert distance <= np.sum(radius) + 1e-6


def test_a_fit_reads_distinct_rows_only():
    X, z, weights = data()
    model = BMRMClassifier(loss="log_loss").fit(X, np.sign(z))
    problems = model._encode(X, np.sign(z), weights)
    assert problems.n_samples == N
    assert problems.design.n_rows == len(problems.targets[0]) == 24
    assert problems.weights.sum() == pytest.approx(1.0, rel=1e-12)


def test_strength_counts_all_rows(monkeypatch):
    X, z, _ = data()
    merged, whole = fits(SubLBFGSLinearSVC(), X, np.sign(z), monkeypatch)
    assert merged["alpha_"] == pytest.approx(whole["alpha_"], rel=1e-9)


def test_outliers_are_of_all_rows(monkeypatch):
    X, z, _ = data()
    merged, whole = fits(HuberRegressor(), X, np.round(z), monkeypatch)
    assert_array_equal(merged["outliers_"], whole["outliers_"])
    assert len(merged["outliers_"]) == N


def test_offsets_are_compared(monkeypatch):
    X, z, _ = data()
    y = np.floor(np.exp(z / 3))
    offset = np.where(np.arange(N) % 2, 0.0, 1.0)
    model = BMRMRegressor(loss="poisson", alpha=1e-3, tol=1e-8)
    merged, whole = fits(model, X, y, monkeypatch, offset=offset)
    assert_allclose(merged["coef_"], whole["coef_"], atol=1e-3)
    assert_allclose(merged["objective_"], whole["objective_"], rtol=1e-7)


def test_deviance_is_that_of_all_rows(monkeypatch):
    X, z, weights = data()
    y = np.floor(np.exp(z / 3))
    model = PoissonRegressor(tol=1e-8)
    merged, whole = fits(model, X, y, monkeypatch, sample_weight=weights)
    assert_allclose(merged["objective_"], whole["objective_"], rtol=1e-7)
    assert model.score(X, y) > 0.0


def test_proven_searches_read_distinct_rows(monkeypatch):
    X, z, _ = data()
    search = SubLBFGSLinearSVCCV((1e-3, 1e-1), search_tol=0.05, cv=3)
    merged, whole = fits(search, X, np.sign(z), monkeypatch)
    # Each search proves that no alpha has a score above the best one by more than this.
    assert abs(merged["best_score_"] - whole["best_score_"]) <= 0.05
