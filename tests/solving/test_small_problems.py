"""Small problems, of which rounding is a large part: proofs hold, and fits end soon."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from _door import BINARY_LOSSES, without_compiled_loop
from _optimum import objective
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

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

each_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def small(seed):
    """Rows of a few digits, classes of which there are at least two, and an alpha."""
    rng = np.random.default_rng(seed)
    n, d, k = (int(rng.integers(*ends)) for ends in ((2, 12), (1, 5), (2, 4)))
    X = rng.normal(size=(n, d)).round(1)
    y = rng.integers(0, k, size=n)
    y[:2] = 0, 1
    return X, y, 10.0 ** rng.uniform(-4.0, 0.0)


def check_proof(model, value):
    """The objective is that of the coefficients, and no bound exceeds it."""
    assert model.objective_ == pytest.approx(value, rel=1e-9, abs=1e-14)
    (history,) = model.history_
    assert history.lower_bound[-1] <= model.objective_ * (1.0 + 1e-10) + 1e-14


@each_intercept
@pytest.mark.parametrize("first", [50, 150])
def test_dual_ascent_of_binary_classes(fit_intercept, first):
    for seed in range(first, first + 50):
        X, y, alpha = small(seed)
        y = np.minimum(y, 1)
        # With many features, as text has, which are not in use.
        X = sparse.csr_array(np.hstack([X, np.zeros((len(X), 300))]))
        model = SubLBFGSLinearSVC(alpha, fit_intercept=fit_intercept).fit(X, y)
        signs = np.where(y == 1, 1.0, -1.0)
        value = objective(X, signs, model.coef_[0], model.intercept_[0], alpha)
        check_proof(model, value)


@each_intercept
@pytest.mark.parametrize("first", [50, 150])
def test_multiclass(fit_intercept, first):
    for seed in range(first, first + 50):
        X, y, alpha = small(seed)
        model = MulticlassHingeClassifier(alpha, fit_intercept=fit_intercept).fit(X, y)
        coef, intercept = model.coef_, model.intercept_
        if len(coef) == 1:
            coef, intercept = np.vstack([-coef, coef]) / 2.0, np.append(-1, 1) / 2.0
            intercept = intercept * model.intercept_
        scores = X @ coef.T + intercept
        own = scores[np.arange(len(y)), y][:, np.newaxis]
        margins = scores - own + 1.0
        margins[np.arange(len(y)), y] = 0.0
        value = 0.5 * alpha * (coef**2).sum() + margins.max(axis=1).mean()
        check_proof(model, value)


@each_intercept
@pytest.mark.parametrize("threshold", [False, True])
@pytest.mark.parametrize("first", [0, 100])
def test_multilabel(fit_intercept, threshold, first):
    for seed in range(first, first + 25):
        X, y, alpha = small(seed)
        Y = np.random.default_rng(seed).random((len(y), 3)) < 0.4
        model = MultilabelHingeClassifier(
            alpha, reduction="max", fit_intercept=fit_intercept, threshold=threshold
        )
        with warnings.catch_warnings():
            # No gap is small beside an optimum of zero.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, Y.astype(int))
        value = multilabel_objective(model, X, Y)
        check_proof(model, value)
        # Intercepts so large that scores are rounded more have been found.
        size = max(5.0, np.abs(model.decision_function(X)).max())
        rounding = size * np.finfo(float).eps
        assert model.objective_ == pytest.approx(value, rel=1e-13, abs=rounding)


def multilabel_objective(model, X, Y):
    """That of the coefficients, of a loss with unit costs of labels."""
    W, b = model.coef_.astype(float), model.intercept_.astype(float)
    margins = X @ W.T + b
    if model.threshold:
        # Those of the threshold, which are subtracted, make their sum zero.
        own = -W.sum(axis=0) / (len(W) + 1)
        W = np.vstack([W + own, own])
    inside = np.where(Y, -np.inf, 0.5 + margins).max(axis=1)
    beyond = np.where(Y, 0.5 - margins, -np.inf).max(axis=1)
    if model.threshold:
        losses = np.maximum(inside, 0.0) + np.maximum(beyond, 0.0)
    else:
        losses = np.maximum(inside + beyond, 0.0)
    return 0.5 * model.alpha * float(np.sum(W * W)) + float(losses.mean())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_of_labels_that_are_apart(dtype):
    """Those of the threshold are subtracted, and rounded, before they are stored."""
    rng = np.random.default_rng(0)
    for n, d, k in ((50, 100, 5), (8, 30, 2)):
        X = rng.normal(size=(n, d)).astype(dtype)
        Y = X[:, :k] > 0.0
        model = MultilabelHingeClassifier(1e-2, reduction="max", fit_intercept=False)
        model.fit(X, Y.astype(int))
        value = multilabel_objective(model, X.astype(float), Y)
        assert model.objective_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_of_two_classes_far_from_the_origin(dtype):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = (rng.normal(size=(40, 3)) + 3.0 * y[:, np.newaxis] + 1e4).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MulticlassHingeClassifier(1e-2).fit(X, y)
    # Both classes have half of the difference, with opposite signs.
    w, b = model.coef_[0].astype(float), float(model.intercept_[0])
    margins = (2.0 * y - 1.0) * (X.astype(float) @ w + b)
    value = 0.25 * model.alpha * (w @ w) + np.maximum(1.0 - margins, 0.0).mean()
    assert model.objective_ == pytest.approx(value, rel=1e-9)


def test_outliers_of_two_rows():
    X = sparse.csr_array(([1.4, 0.3], ([0, 1], [0, 0])), shape=(2, 300))
    model = BMRMOutlierDetector(0.01).fit(X)
    value = 0.005 * (model.coef_**2).sum()
    value += np.maximum(0.0, 1.0 - model.score_samples(X)).mean()
    check_proof(model, value)
    assert value == pytest.approx(1.0 / 18.0)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 4.0, 5.0, 6.0, 10.0])
def test_a_common_shift_of_tilted_duals(alpha):
    rng = np.random.default_rng(90)
    n, d = int(rng.integers(3, 40)), int(rng.integers(1, 6))
    rng.integers(2, 5)
    X = rng.normal(size=(n, d))
    y = rng.integers(0, 2, size=n)
    y[:2] = 0, 1
    model = MulticlassHingeClassifier(alpha).fit(X, y)
    assert model.objective_ == pytest.approx(14.0 / 27.0)


@pytest.mark.parametrize(
    "model",
    [
        BMRMRegressor(0.1, loss="absolute_error", penalty="l1"),
        BMRMRegressor(0.1, loss="huber", penalty="l1"),
        BMRMRegressor(0.02, loss="quantile", penalty="elasticnet"),
        BMRMClassifier(0.02, penalty="l1"),
    ],
    ids=repr,
)
def test_sparse_penalties_of_losses_with_kinks_end(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(47, 17)), rng.normal(size=47)
    model.fit(X, y > 0.0 if isinstance(model, BMRMClassifier) else y)
    # Two hundred more show that nothing moves any more.
    assert model.n_iter_ < 100
    assert model.dual_gap_ <= 1e-12


@pytest.mark.parametrize(
    "model",
    [
        MulticlassHingeClassifier(1e-4, fit_intercept=False),
        MultilabelHingeClassifier(1e-4, reduction="max", fit_intercept=False),
        MultilabelHingeClassifier(
            1e-4, reduction="max", fit_intercept=False, threshold=False
        ),
    ],
    ids=repr,
)
def test_rows_beside_which_alpha_vanishes(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) * [1e8, 1.0]
    y = (X[:, 0] + rng.normal(size=30) > 0.0).astype(int)
    several = isinstance(model, MultilabelHingeClassifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, np.column_stack([y, 1 - y]) if several else y)
    assert np.isfinite(model.coef_).all()
    assert model.objective_ < 0.05


@pytest.mark.parametrize("seed", [0, 5, 8])
def test_wide_data_of_many_scales(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 17)) * 10.0 ** rng.uniform(-8.0, 8.0, size=17)
    y = np.arange(12) % 3
    model = MulticlassHingeClassifier(1e-3).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("solver", ["owlqn", "owlqn*"])
def test_pairs_whose_curvature_underflows(solver):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(6, 50)) * 1e4, [0, 1, 0, 1, 1, 0]
    model = L1LogisticOWLQN(alpha=5.7656, solver=solver).fit(X, y)
    best = L1LogisticOWLQN(alpha=5.7656, tol=1e-9).fit(X, y)
    assert model.objective_ <= best.objective_ * (1.0 + 1e-3)


@pytest.mark.parametrize("solver", ["bmrm", "ls-bmrm"])
@pytest.mark.parametrize("seed", range(5))
def test_steep_cuts_with_a_sparse_penalty(solver, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=30) + 1000.0
    shared = {"alpha": 1e-4, "penalty": "l1", "fit_intercept": False}
    model = BMRMRegressor(**shared, solver=solver).fit(X, y)
    best = BMRMRegressor(**shared, tol=1e-8).fit(X, y)
    assert model.objective_ <= best.objective_ * (1.0 + 1e-3)
    assert model.objective_ - model.dual_gap_ <= best.objective_


def test_offsets_of_far_cuts_are_rounded_down():
    X = np.array([[8.167418923275596], [15.354243857968124], [11.240765108282327]])
    y, alpha = np.array([1.0, 0.0, 1.0]), 5.0665046008256846e-05
    models = [
        BMRMRanker(alpha, loss="mrr-assignment", k=6, tol=1e-8, solver=solver).fit(X, y)
        for solver in ("bmrm", "ls-bmrm")
    ]
    for model in models:
        for other in models:
            bound = model.objective_ - model.dual_gap_
            assert bound <= other.objective_ + 1e-14


@pytest.mark.parametrize("seed", range(3))
def test_exactness_does_not_take_much_longer_than_the_tolerance(seed):
    rng = np.random.default_rng(seed)
    X = 1e8 + rng.normal(size=(15, 10))
    weights = 10.0 ** rng.uniform(-5.0, 5.0, 15)
    model = BMRMOutlierDetector(penalty="lp").fit(X, sample_weight=weights)
    (history,) = model.history_
    values, bounds = np.array(history.objective), np.array(history.lower_bound)
    reached = np.flatnonzero(values - bounds <= 1e-3 * values)[0]
    assert model.n_iter_ <= max(5 * reached, 40)


@pytest.mark.parametrize("solver", ["proximal-bundle", "trust-region-bundle"])
@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
@pytest.mark.parametrize("seed", range(4))
def test_bundle_methods_prove_small_problems_of_unequal_columns(solver, loss, seed):
    """Eight decades lie between the scales of columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 7)) * 10.0 ** rng.uniform(-4.0, 4.0, 7)
    X += (rng.random(7) < 0.3) * 10.0 ** rng.uniform(-4.0, 4.0, 7)
    y = np.append([0, 1], rng.integers(0, 2, 7))
    model = BMRMClassifier(1e-4, loss=loss, solver=solver, max_iter=200).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    exact = BMRMClassifier(1e-4, loss=loss).fit(X, y)
    bound = model.objective_ - model.dual_gap_
    assert bound <= exact.objective_ * (1.0 + 1e-9)


@pytest.mark.parametrize("solver", ["proximal-bundle", "trust-region-bundle"])
def test_bundle_methods_prove_small_rankings(solver):
    """Where the model's minimum is within the radius, no multiplier meets that."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(10, 60), rng.integers(2, 8)
        X, qid, y = (
            rng.normal(size=(n, d)),
            rng.integers(0, 5, n),
            rng.integers(0, 3, n),
        )
        alpha = 10.0 ** rng.uniform(-5.0, -1.0)
        model = BMRMRanker(alpha, loss="pairwise", solver=solver).fit(X, y, qid=qid)
        assert model.dual_gap_ <= 1e-3 * model.objective_


EACH_LOSS = [
    ("hinge", {}),
    ("squared_hinge", {}),
    ("modified_huber", {}),
    ("log_loss", {}),
    ("exponential", {}),
    ("squared_error", {}),
    ("absolute_error", {}),
    ("quantile", {"quantile": 0.3}),
    ("epsilon_insensitive", {"epsilon": 0.2}),
    ("squared_epsilon_insensitive", {"epsilon": 0.2}),
    ("huber", {"epsilon": 0.5}),
    ("poisson", {}),
]


@pytest.mark.parametrize(("loss", "parameters"), EACH_LOSS)
def test_the_compiled_loop_finds_what_other_methods_find(loss, parameters, monkeypatch):
    """With weights, some zero, features of other units, offsets of X, few rows or many.

    Each bound is below both objectives.
    """
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 80)), int(rng.integers(1, 20))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d)
        y = (X / np.abs(X).max(axis=0)).sum(axis=1) + rng.normal(size=n)
        kind = BMRMRegressor
        if loss in BINARY_LOSSES:
            kind, y = BMRMClassifier, (y > np.median(y)).astype(int)
            y[:2] = 0, 1
        elif loss == "poisson":
            y = rng.poisson(np.exp(0.3 * y)) + 1.0 * (np.arange(n) == 0)
        weights = rng.exponential(size=n) * (rng.random(n) < 0.9)
        weights[:2] = 1.0
        alpha, intercept = 10.0 ** rng.uniform(-4, 0), bool(seed % 2)
        model = kind(alpha, loss=loss, tol=1e-8, fit_intercept=intercept, **parameters)
        found = []
        for compiled in (True, False):
            if not compiled:
                without_compiled_loop(monkeypatch)
            model.fit(X, y, sample_weight=weights)
            (history,) = model.history_
            found.append((model.objective_, history.lower_bound[-1], model.plan_))
        monkeypatch.undo()
        (ours, our_bound, plan), (other, other_bound, _) = found
        assert plan in ("one compiled loop", "larger alphas")
        size = max(abs(ours - history.infimum), 1e-6 * abs(ours))
        assert ours == pytest.approx(other, rel=0.0, abs=2e-8 * size)
        rounding = 4.0 * np.finfo(float).eps * abs(ours)
        assert max(our_bound, other_bound) <= min(ours, other) + rounding
