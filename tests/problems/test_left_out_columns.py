"""Columns without entries, as of hashed text: fits are those of the other columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    dual_gap,
)
from sklearn_subqn.linear_model import HuberRegressor, LogisticRegression
from sklearn_subqn.svm import LinearSVC

RNG = np.random.default_rng(0)
N, D = 60, 400
COLUMNS = np.sort(RNG.choice(D, 12, replace=False))
OTHERS = np.setdiff1d(np.arange(D), COLUMNS)
NARROW = sparse.random_array((N, 12), density=0.5, format="csr", rng=RNG)
# One is far from zero, and is shifted.
NARROW = sparse.csr_array(
    sparse.hstack([NARROW[:, :-1], 50.0 + RNG.random((N, 1))], format="csr")
)
SCORES = NARROW @ RNG.normal(size=(12, 3)) + 0.3 * RNG.normal(size=(N, 3))
SCORES -= SCORES.mean(axis=0)
THREE = SCORES.argmax(axis=1)
TWO = np.where(SCORES[:, 0] > 0.0, 1, 0)
LABELS = (SCORES > 0.2).astype(int)


def widened(X):
    """Return the features among others that have no entries."""
    return type(X)((X.data, COLUMNS[X.indices], X.indptr), shape=(X.shape[0], D))


WIDE = widened(NARROW)
FACTORS = RNG.uniform(0.5, 2.0, D)
SOME_FREE = np.where(np.arange(D) % 3 == 0, 0.0, FACTORS)
UNUSED_FREE = np.where(np.isin(np.arange(D), OTHERS), 0.0, FACTORS)
USED_FREE = np.where(UNUSED_FREE, 0.0, FACTORS)

CASES = {
    "hinge": (SubLBFGSLinearSVC(1e-2), TWO),
    "classes": (SubLBFGSLinearSVC(1e-2, loss="squared_hinge"), THREE),
    "joint": (MulticlassHingeClassifier(1e-2), THREE),
    "labels": (MultilabelHingeClassifier(1e-2), LABELS),
    "l1": (L1LogisticOWLQN(1e-2), TWO),
    "roc": (BMRMClassifier(1e-2, loss="roc_area"), TWO),
    "positive class first": (
        BMRMClassifier(1e-2, loss="f_beta_bound", pos_label=0),
        TWO,
    ),
    "ordinal": (BMRMClassifier(1e-2, loss="ordinal_all_threshold"), THREE),
    "lp": (BMRMRegressor(1e-2, loss="squared_error", penalty="lp"), SCORES[:, 0]),
    "auto": (BMRMRegressor("auto", penalty="elasticnet"), SCORES[:, 0]),
    "several": (BMRMRegressor(1e-2, loss="squared_error"), SCORES),
    "quantiles": (BMRMRegressor(1e-2, loss="quantile", quantile=[0.2, 0.7]), TWO + 0.5),
    "no penalty": (BMRMRegressor(0.0, loss="squared_error"), SCORES[:, 0]),
    "outliers": (BMRMOutlierDetector(contamination=0.1), None),
    "ranking": (BMRMRanker(1e-2), THREE),
    "cv": (SubLBFGSLinearSVCCV(alphas=[1e-2, 1e-1], cv=2), TWO),
    "svc": (LinearSVC(), THREE),
    "logistic": (LogisticRegression(), THREE),
    "plain logistic": (LogisticRegression(C=np.inf), SCORES[:, 0] > SCORES[:, 1]),
    "scale": (HuberRegressor(), SCORES[:, 0]),
}
BY_FEATURE = [
    {"penalty_factor": FACTORS},
    {"penalty_factor": SOME_FREE},
    {"penalty_factor": UNUSED_FREE},
    {"penalty_factor": USED_FREE},
    {"coef_bounds": (-0.1 * FACTORS, 0.2 * FACTORS)},
    {"penalty_factor": FACTORS, "alpha": "auto"},
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_are_those_of_the_columns_with_entries(case, dtype):
    estimator, y = CASES[case]
    data = {} if y is None else {"y": y}
    narrow, wide = (
        clone(estimator).fit(X.astype(dtype), **data) for X in (NARROW, WIDE)
    )
    assert wide.coef_.shape == (*narrow.coef_.shape[:-1], D)
    assert wide.coef_.dtype == narrow.coef_.dtype
    assert_array_equal(wide.coef_[..., COLUMNS], narrow.coef_)
    assert not wide.coef_[..., OTHERS].any()
    for name in ("intercept_", "objective_", "dual_gap_", "offset_", "alpha_"):
        if hasattr(narrow, name):
            assert_array_equal(getattr(wide, name), getattr(narrow, name))


def test_solvers_do_not_see_columns_without_entries():
    for estimator in (SubLBFGSLinearSVC(), LogisticRegression(), L1LogisticOWLQN()):
        assert estimator._encode(WIDE, TWO, None).design.n_features == 12
        # Of a dense X, and of one of which most columns are used, all are taken.
        for X, d in ((WIDE.toarray(), D), (WIDE[:, COLUMNS[0] : COLUMNS[0] + 1], 1)):
            assert clone(estimator)._encode(X, TWO, None).design.n_features == d


@pytest.mark.parametrize("given", BY_FEATURE, ids=lambda given: " ".join(given))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_for_each_feature_keep_their_places(given):
    def some(numbers):
        if isinstance(numbers, tuple):
            return tuple(map(some, numbers))
        return numbers if isinstance(numbers, str) else numbers[COLUMNS]

    y = SCORES[:, 0]
    model = BMRMRegressor(1e-2, loss="squared_error")
    wide = clone(model).set_params(**given).fit(WIDE, y)
    own = {name: some(numbers) for name, numbers in given.items()}
    narrow = clone(model).set_params(**own).fit(NARROW, y)
    assert_array_equal(wide.coef_[COLUMNS], narrow.coef_)
    assert not wide.coef_[OTHERS].any()
    assert wide.alpha_ == narrow.alpha_
    assert wide.penalty_factor_.shape == (D,)
    assert_allclose(wide.penalty_factor_[COLUMNS], narrow.penalty_factor_, 1e-14)
    expected = given.get("penalty_factor", np.ones(D))[OTHERS]
    assert_allclose(wide.penalty_factor_[OTHERS], expected, rtol=1e-14)


@pytest.mark.parametrize("penalty", ["quadratic", "entropy", "normalized_entropy"])
def test_penalties_with_centers_have_all_columns(penalty):
    matrix = np.eye(D) + 0.3 * np.eye(D, k=1) + 0.3 * np.eye(D, k=-1)
    model = BMRMRegressor(
        1e-2, loss="squared_error", penalty=penalty, fit_intercept=False
    )
    if penalty == "quadratic":
        model.set_params(penalty_matrix=matrix)
    sparse_model = clone(model).fit(WIDE, SCORES[:, 0])
    dense = clone(model).fit(WIDE.toarray(), SCORES[:, 0])
    assert sparse_model.coef_[OTHERS].any()
    assert abs(sparse_model.objective_ - dense.objective_) <= (
        sparse_model.dual_gap_ + dense.dual_gap_
    )


def test_starts_are_taken_of_all_columns():
    start = np.ones(D)
    model = SubLBFGSLinearSVC(1e-2, max_iter=100).fit(WIDE, TWO, coef_init=start[None])
    assert not model.coef_[:, OTHERS].any()
    again = SubLBFGSLinearSVC(1e-2, solver="alm", warm_start=True).fit(WIDE, TWO)
    n_iter = again.n_iter_
    assert again.fit(WIDE, TWO).n_iter_ < n_iter
    bounded = BMRMRegressor(1e-2, loss="squared_error", coef_bounds=(-1.0, 1.0))
    start[OTHERS[5]] = 2.0
    with pytest.raises(ValueError, match="coef_init has coefficients that"):
        bounded.fit(WIDE, SCORES[:, 0], coef_init=start)


def test_warm_starts_go_on_where_other_columns_are_used():
    # The second batch of columns has no entries in the first fit.
    first, second = (
        sparse.csr_array(
            (NARROW.data, NARROW.indices + at, NARROW.indptr), shape=(N, D)
        )
        for at in (0, 100)
    )
    model = LogisticRegression(C=0.1, warm_start=True, tol=1e-8)
    model.fit(first, TWO)
    model.fit(second, TWO)
    cold = clone(model).fit(second, TWO)
    assert_allclose(model.coef_, cold.coef_, atol=1e-3)
    assert not model.coef_[:, :100].any()


@pytest.mark.parametrize("penalty", ["l2", "l1", "lp"])
def test_gaps_of_given_models_count_all_coefficients(penalty):
    model = BMRMRegressor(
        1e-2, loss="squared_error", penalty=penalty, fit_intercept=False
    )
    coef = np.zeros(D)
    coef[COLUMNS] = RNG.normal(size=12)
    y = SCORES[:, 0]
    for left_out in (0.0, 3.0):
        coef[OTHERS[:4]] = left_out
        gap, value = dual_gap((coef, 0.0), WIDE, y, estimator=model, return_objective=1)
        dense = dual_gap(
            (coef, 0.0), WIDE.toarray(), y, estimator=model, return_objective=1
        )
        sizes = np.abs(coef)
        omega = {
            "l2": 0.5 * (sizes**2).sum(),
            "l1": sizes.sum(),
            "lp": 0.5 * (sizes**1.5).sum() ** (2.0 / 1.5),
        }[penalty]
        assert_allclose(value, dense[1], rtol=1e-12)
        best = clone(model).set_params(tol=1e-8).fit(WIDE, y)
        assert value - gap <= best.objective_
        if not left_out:
            assert dual_gap((coef[COLUMNS], 0.0), NARROW, y, estimator=model) == gap
        rest = value - 1e-2 * omega
        assert_allclose(rest, 0.5 * np.mean((WIDE @ coef - y) ** 2), rtol=1e-10)
