"""Factors of the penalty of each feature."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)

pd = pytest.importorskip("pandas")

FACTORS = np.array([0.01, 1.0, 4.0, 100.0, 0.3])
ALPHA = 0.05


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 3.0, 0.5, 1.0, 2.0] + 0.5
    z = X @ [1.0, -0.5, 2.0, 0.3, 0.0] + rng.normal(size=n)
    return X, z, np.where(z > np.median(z), "yes", "no")


def exact(X, loss_of_scores, omega):
    """The least objective by a conic solver."""
    cp = pytest.importorskip("cvxpy")
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    risk = loss_of_scores(cp, X @ w + b) / len(X)
    problem = cp.Problem(cp.Minimize(ALPHA * omega(cp, w) + risk))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    return problem.value


LOSSES = {
    "squared_error": lambda cp, z, y: cp.sum_squares(y - z) / 2,
    "quantile": lambda cp, z, y: cp.sum(cp.maximum(0.3 * (y - z), 0.7 * (z - y))),
    "huber": lambda cp, z, y: cp.sum(cp.huber(y - z, 1.35)) / 2,
}
OMEGAS = {
    "l2": lambda cp, w: cp.sum(cp.multiply(FACTORS, cp.square(w))) / 2,
    "l1": lambda cp, w: cp.norm1(cp.multiply(FACTORS, w)),
    "elasticnet": lambda cp, w: (
        0.4 * cp.norm1(cp.multiply(FACTORS, w))
        + 0.3 * cp.sum_squares(cp.multiply(FACTORS, w))
    ),
    "lp": lambda cp, w: cp.square(cp.norm(cp.multiply(FACTORS, w), 1.5)) / 2,
}


@pytest.mark.parametrize("penalty", OMEGAS)
@pytest.mark.parametrize("loss", LOSSES)
def test_least_objective_with_factors(loss, penalty):
    X, y, _ = data()
    options = {"l1_ratio": 0.4} if penalty == "elasticnet" else {}
    options |= {"quantile": 0.3} if loss == "quantile" else {}
    model = BMRMRegressor(
        ALPHA, loss=loss, penalty=penalty, penalty_factor=FACTORS, tol=1e-7, **options
    ).fit(X, y)
    least = exact(X, lambda cp, z: LOSSES[loss](cp, z, y), OMEGAS[penalty])
    assert model.objective_ - model.dual_gap_ <= least * (1 + 1e-8)
    assert model.objective_ >= least * (1 - 1e-8)
    assert model.dual_gap_ <= 1e-6 * least
    np.testing.assert_allclose(model.penalty_factor_, FACTORS, rtol=1e-15)


ONE_SCORE = [
    BMRMRegressor(loss="absolute_error"),
    BMRMRegressor(penalty="l1"),
    BMRMRegressor(penalty="elasticnet"),
    BMRMRegressor(penalty="lp"),
    BMRMRegressorCV(alphas=[0.1, 0.01], cv=2),
]
CLASSIFIERS = [
    BMRMClassifier(),
    BMRMClassifier(loss="hinge", penalty="l1"),
    BMRMClassifier(loss="roc_area"),
    SubLBFGSLinearSVC(),
    SubLBFGSLinearSVCCV(alphas=[0.1, 0.01], cv=2),
    L1LogisticOWLQN(),
    L1LogisticOWLQN(l1_ratio=0.0),
    L1LogisticOWLQNCV(alphas=[0.1, 0.01], cv=2),
    MulticlassHingeClassifier(),
    MultilabelHingeClassifier(),
    BMRMRanker(),
]


def squares(model):
    return getattr(model, "penalty", "l2") == "l2"


@pytest.mark.parametrize("alpha", [ALPHA, "auto"])
@pytest.mark.parametrize("model", ONE_SCORE + CLASSIFIERS, ids=str)
def test_units_of_columns_and_factors_cancel(model, alpha):
    X, z, classes = data(30)
    y = z if model in ONE_SCORE else classes
    if isinstance(model, MultilabelHingeClassifier):
        y = np.column_stack([z > 0.0, z < 1.0, X[:, 0] > 1.0]).astype(int)
    if isinstance(model, BMRMRanker):
        y = np.digitize(z, [0.0, 1.0])
    if "alpha" in model.get_params():
        model.set_params(alpha=alpha)
    elif alpha == "auto":
        pytest.skip("has no alpha")
    # Powers of two, so that products are the same.
    units = np.array([16.0, 1.0, 1.0, 0.25, 1.0])
    powers = 2 if squares(model) else 1
    # Scales are in units of the columns.
    other = FACTORS if alpha == "auto" else FACTORS * units**powers
    kind = sparse.csr_array if alpha == "auto" else np.asarray
    model.set_params(penalty_factor=FACTORS).fit(kind(X), y)
    coef, objective = model.coef_, model.objective_
    model.set_params(penalty_factor=other).fit(kind(X * units), y)
    np.testing.assert_allclose(model.coef_ * units, coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-12)
    if alpha != "auto":
        plain = model.set_params(penalty_factor=None).fit(kind(X), y).objective_
        assert np.all(np.abs(plain - objective) > 1e-6 * np.abs(objective))


@pytest.mark.parametrize("given", [dict, pd.Series])
def test_factors_by_names(given):
    X, y, classes = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = given(dict(zip("edcba", FACTORS[::-1], strict=True)))
    by_name = BMRMRegressor(0.1, penalty_factor=named).fit(frame, y)
    by_place = BMRMRegressor(0.1, penalty_factor=FACTORS).fit(frame, y)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)
    # Folds are arrays without names.
    search = SubLBFGSLinearSVCCV(alphas=[0.1, 1.0], cv=2, penalty_factor=named)
    other = SubLBFGSLinearSVCCV(alphas=[0.1, 1.0], cv=2, penalty_factor=FACTORS)
    np.testing.assert_array_equal(
        search.fit(frame, classes).coef_, other.fit(frame, classes).coef_
    )
    unknown = given({**dict(named), "z": 1.0})
    with pytest.raises(ValueError, match=r"do not match the features.*unknown: 'z'"):
        BMRMRegressor(penalty_factor=unknown).fit(frame, y)
    # Features without a factor have one.
    some = BMRMRegressor(0.1, penalty_factor=given({"b": 2.0})).fit(frame, y)
    ones = np.where(frame.columns == "b", 2.0, 1.0)
    expected = BMRMRegressor(0.1, penalty_factor=ones).fit(frame, y)
    np.testing.assert_array_equal(some.coef_, expected.coef_)
    negative = BMRMRegressor(penalty_factor=given({"b": -1.0}))
    with pytest.raises(ValueError, match="got -1 for the feature 'b'"):
        negative.fit(frame, y)
    bounded = BMRMRegressor(coef_bounds=(given({"b": 1.0}), None))
    with pytest.raises(ValueError, match=r"got \(1, inf\) for the feature 'b'"):
        bounded.fit(frame, y)
    with pytest.raises(ValueError, match="the features have none"):
        BMRMRegressor(penalty_factor=named).fit(X, y)
    numbers = pd.Series(FACTORS)
    model = BMRMRegressor(0.1, penalty_factor=numbers).fit(frame, y)
    np.testing.assert_array_equal(model.coef_, by_place.coef_)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ([1.0] * 4, ValueError, "one number for each of the 5 features"),
        (2.0, ValueError, "one number for each of the 5 features"),
        ([1.0, 1.0, -1.0, 1.0, 1.0], ValueError, ">= 0 for each.*-1 for the feature 2"),
        ([1.0, 1.0, 1.0, 1.0, np.inf], ValueError, "inf for the feature 4"),
        ([1.0, 1.0, 1.0, np.nan, 1.0], ValueError, "must not be NaN"),
        (["a"] * 5, TypeError, "must be numbers"),
        ("high", TypeError, "must be numbers"),
    ],
)
def test_factors_that_are_refused(given, error, match):
    X, y, classes = data()
    for model, targets in ((BMRMRegressor(), y), (SubLBFGSLinearSVC(), classes)):
        with pytest.raises(error, match=match):
            model.set_params(penalty_factor=given).fit(X, targets)


@pytest.mark.parametrize("penalty", ["quadratic", "entropy", "normalized_entropy"])
def test_penalties_without_factors(penalty):
    X, y, _ = data()
    options = {"penalty_matrix": np.eye(5)} if penalty == "quadratic" else {}
    model = BMRMRegressor(0.1, penalty=penalty, penalty_factor=FACTORS, **options)
    with pytest.raises(ValueError, match=f"penalty_factor needs.*got.*{penalty!r}"):
        model.fit(X, y)


def test_float32_and_warm_start_with_factors():
    X, y, _ = data()
    model = BMRMRegressor(0.1, penalty_factor=FACTORS, loss="huber", warm_start=True)
    model.set_params(solver="newton-cg").fit(X, y)
    first, cold = model.coef_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < cold
    np.testing.assert_allclose(model.coef_, first, rtol=1e-9)
    model.fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, first, rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-4, 1e3])
@pytest.mark.parametrize(
    "kind", [SubLBFGSLinearSVCCV, partial(L1LogisticOWLQNCV, l1_ratio=0.0)]
)
def test_grids_are_in_units_of_the_factors(kind, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    one = kind(alphas=5).fit(X, y)
    other = kind(alphas=5, penalty_factor=np.full(4, unit)).fit(X, y)
    np.testing.assert_allclose(other.alphas_ * unit, one.alphas_, rtol=1e-12)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-3)
