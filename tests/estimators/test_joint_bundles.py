"""Joint hinges by bundle methods, with squares, an L1 norm or both."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import MulticlassHingeClassifier, MultilabelHingeClassifier

K, D = 3, 4
RNG = np.random.default_rng(0)
Y = np.arange(24) % K
X = RNG.normal(size=(24, D)) + RNG.normal(size=(K, D))[Y]
COSTS = np.array([[0.0, 1.0, 0.5], [2.0, 0.0, 1.0], [1.0, 0.3, 0.0]])
WEIGHTS = RNG.uniform(0.2, 2.0, 24)


def optimum(alpha, l1_ratio, fit_intercept=False):
    """The optimum of the program with slacks and halves of coefficients, by SLSQP."""
    q, n = K * D, len(Y)
    shares = WEIGHTS / WEIGHTS.sum()
    rows, floor = [], []
    for i, y in enumerate(Y):
        for j in range(K):
            normal = np.outer(np.eye(K)[j] - np.eye(K)[y], X[i]).ravel()
            shift = (np.eye(K)[j] - np.eye(K)[y]) * fit_intercept
            rows.append(np.concatenate([-normal, normal, np.eye(n)[i], -shift]))
            floor.append(COSTS[y, j])
    A, b = np.array(rows), np.array(floor)

    def value(v):
        w = v[:q] - v[q : 2 * q]
        penalty = l1_ratio * v[: 2 * q].sum() + (1.0 - l1_ratio) / 2.0 * w @ w
        return alpha * penalty + shares @ v[2 * q : 2 * q + n]

    def gradient(v):
        w = alpha * (1.0 - l1_ratio) * (v[:q] - v[q : 2 * q])
        share = alpha * l1_ratio
        return np.concatenate([share + w, share - w, shares, np.zeros(K)])

    found = optimize.minimize(
        value,
        np.concatenate([np.full(2 * q, 0.1), np.full(n, 3.0), np.zeros(K)]),
        jac=gradient,
        bounds=[(0.0, None)] * (2 * q + n) + [(None, None)] * K,
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert np.min(A @ found.x - b) > -1e-9
    return found.fun


def objective(model, alpha, l1_ratio):
    scores = X @ model.coef_.T + model.intercept_
    margins = COSTS[Y] + scores - scores[np.arange(len(Y)), Y][:, np.newaxis]
    penalty = l1_ratio * np.abs(model.coef_).sum()
    penalty += (1.0 - l1_ratio) / 2.0 * np.square(model.coef_).sum()
    return alpha * penalty + np.average(margins.max(axis=1), weights=WEIGHTS)


@pytest.mark.parametrize("solver", ["auto", "ls-bmrm", "bmrm"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_optimum(solver, l1_ratio, alpha):
    model = MulticlassHingeClassifier(
        alpha,
        label_cost=COSTS,
        l1_ratio=l1_ratio,
        solver=solver,
        fit_intercept=False,
        tol=1e-6,
    ).fit(X, Y, sample_weight=WEIGHTS)
    best = optimum(alpha, l1_ratio)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)
    assert model.objective_ == pytest.approx(objective(model, alpha, l1_ratio))
    if l1_ratio == 1.0:
        assert (model.coef_ == 0.0).any()


@pytest.mark.parametrize(
    "solver",
    [
        "auto",
        "ls-bmrm",
        "bmrm",
        "bmrm-aggregated",
        # The fits take up to 17 seconds.
        pytest.param("proximal-bundle", marks=pytest.mark.slow),
        "trust-region-bundle",
    ],
)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_bundle_methods_with_and_without_intercepts(
    solver, l1_ratio, fit_intercept
):
    if l1_ratio and solver == "bmrm-aggregated":
        pytest.skip("It is for squares.")
    model = MulticlassHingeClassifier(
        0.05,
        label_cost=COSTS,
        l1_ratio=l1_ratio,
        solver=solver,
        fit_intercept=fit_intercept,
        tol=1e-6,
        max_iter=300,
    )
    with warnings.catch_warnings():
        # Bounds of some of them are poor, as the end of the aggregated one is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y, sample_weight=WEIGHTS)
    best = optimum(0.05, l1_ratio, fit_intercept)
    rel = 1e-2 if solver == "bmrm-aggregated" else 2e-6
    assert model.objective_ == pytest.approx(best, rel=rel)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)
    assert model.objective_ == pytest.approx(objective(model, 0.05, l1_ratio))
    if solver in ("auto", "ls-bmrm", "bmrm"):
        assert model.dual_gap_ <= 1e-6 * model.objective_


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_two_classes_have_one_row_whatever_the_penalty(l1_ratio):
    # Halves of the difference have the least penalty of all pairs with it.
    kept = Y < 2
    model = MulticlassHingeClassifier(
        0.05, l1_ratio=l1_ratio, fit_intercept=False, tol=1e-8
    ).fit(X[kept], Y[kept])
    margins = 1.0 - (2.0 * Y[kept] - 1.0) * model.decision_function(X[kept])
    half = model.coef_ / 2.0
    penalty = 2.0 * l1_ratio * np.abs(half).sum()
    penalty += (1.0 - l1_ratio) * np.square(half).sum()
    value = 0.05 * penalty + np.maximum(margins, 0.0).mean()
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    assert model.dual_gap_ <= 1e-8 * value


@pytest.mark.parametrize(
    "options",
    [
        {"reduction": "max"},
        {"reduction": "max", "threshold": False},
        {"reduction": "max", "fit_intercept": True},
        {"reduction": "max", "threshold": False, "fit_intercept": True},
        {"reduction": "max", "threshold": False, "label_cost": 1.0 - np.eye(5)},
        {"reduction": "mean"},
        {"reduction": "mean", "fit_intercept": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", ["ls-bmrm", "bmrm"])
@pytest.mark.filterwarnings("ignore:.*of the relevant labels")
def test_sets_of_labels(options, solver):
    features, labels = make_multilabel_classification(60, 6, random_state=0)
    options = {"fit_intercept": False, **options}
    best = MultilabelHingeClassifier(0.3, **options).fit(features, labels)
    model = MultilabelHingeClassifier(0.3, **options, solver=solver, tol=1e-4)
    model.fit(features, labels)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    assert model.objective_ <= best.objective_ * (1.0 + 1e-4)
    assert model.objective_ - model.dual_gap_ <= best.objective_ * (1.0 + 1e-9)


def test_automatic_strength_does_not_depend_on_units():
    model = MulticlassHingeClassifier(l1_ratio=1.0, fit_intercept=False).fit(X, Y)
    value, coef, factor = model.objective_, model.coef_, model.penalty_factor_
    units = np.array([1e-3, 1.0, 10.0, 1e4])
    model.fit(X * units, Y)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert_allclose(model.coef_ * units, coef, rtol=1e-6, atol=1e-9)
    assert_allclose(model.penalty_factor_, factor * units, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (
            MulticlassHingeClassifier,
            {"solver": "cd"},
            "fit_intercept=True; solvers that do are "
            "'auto', 'sublbfgs', 'subbfgs', 'alm', 'subgradient', 'ls-bmrm'",
        ),
        (
            MulticlassHingeClassifier,
            {"solver": "sublbfgs", "fit_intercept": False, "l1_ratio": 0.5},
            "l1_ratio=0.5 and .*; solvers that do are 'auto', 'subgradient', 'ls-bmrm'",
        ),
        (
            MulticlassHingeClassifier,
            {"l1_ratio": 1.5},
            "l1_ratio must be >= 0 and <= 1",
        ),
        (
            MultilabelHingeClassifier,
            {"solver": "newton-cg", "reduction": "max"},
            "reduction='max' with fit_intercept=True; solvers that do are "
            "'auto', 'sublbfgs', 'subbfgs', 'alm', 'subgradient', 'ls-bmrm'",
        ),
    ],
)
def test_errors_name_what_is_taken(make, options, message):
    labels = Y if make is MulticlassHingeClassifier else np.eye(K, dtype=int)[Y]
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X, labels)
