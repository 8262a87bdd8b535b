"""The contract of SubLBFGSLinearSVC: optima, weights, formats, warm starts, errors."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from _door import BINARY_LOSSES, SOLVERS, print_at_once, without_compiled_loop
from _optimum import enclose, objective
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import sklearn_subqn._problems
from sklearn_subqn import SubLBFGSLinearSVC

LOSSES = ["hinge", "squared_hinge"]
LOSS_AND_SOLVER = [
    (loss, solver)
    for loss in LOSSES
    for solver, spec in SOLVERS.items()
    if spec.supports(BINARY_LOSSES[loss])
]

# Objectives are sums of about a hundred terms of size one.
ROUNDING = 1e-12


def blobs(n=60, d=4, *, n_classes=2, seed=0, spread=1.0):
    """Overlapping Gaussian classes, labelled 0, 1, ..., all present."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(n_classes, d))[y], y


def large():
    """Data beyond what the default solver solves to the last digit whatever tol is."""
    return blobs(3000, 10, spread=0.3)


def fit(X, y, sample_weight=None, **params):
    """Fit; a warning is due if, and only if, tol is not reached."""
    model = SubLBFGSLinearSVC(**{"alpha": 1e-4, **params})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* makes no use of the features")
        model.fit(X, y, sample_weight=sample_weight)
    assert {type(w.message) for w in caught} <= {ConvergenceWarning}
    missed = np.asarray(model.dual_gap_) > model.tol * np.asarray(model.objective_)
    assert len(caught) == np.count_nonzero(missed)
    return model


def signs(model, y):
    """The labels -1 and 1 of each of the model's problems."""
    positives = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return [np.where(np.asarray(y) == positive, 1.0, -1.0) for positive in positives]


def assert_certified(model, X, y, weights=None):
    """The objective is that of the coefficients, and encloses the optimum with its gap.

    ``weights`` are the products of sample and class weights.
    """
    X = np.asarray(X, dtype=float)
    problem = {"loss": model.loss, "fit_intercept": model.fit_intercept}
    objectives = np.atleast_1d(model.objective_)
    gaps = np.atleast_1d(model.dual_gap_)
    assert np.all(np.isfinite(objectives))
    assert np.all(gaps >= 0.0)
    for k, target in enumerate(signs(model, y)):
        coef, intercept = model.coef_[k].astype(float), float(model.intercept_[k])
        value = objective(X, target, coef, intercept, model.alpha, weights, model.loss)
        assert objectives[k] == pytest.approx(value, rel=1e-10)
        lower, upper = enclose(X, target, model.alpha, weights, **problem)
        assert upper - lower <= 1e-6 * upper, "the reference is too inaccurate"
        assert objectives[k] - gaps[k] <= upper + ROUNDING
        assert lower - ROUNDING <= objectives[k]


# Optima


@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_alpha_is_the_reciprocal_of_n_samples_times_C(alpha):
    X, y = blobs()
    C = 1.0 / (len(y) * alpha)
    model = fit(X, y, alpha=alpha)
    svc = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, svc.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, svc.intercept_, rtol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X), svc.decision_function(X), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_without_intercept_equals_LinearSVC(loss):
    X, y = blobs()
    C = 1.0 / (len(y) * 0.01)
    model = fit(X, y, alpha=0.01, loss=loss, fit_intercept=False)
    options = {"fit_intercept": False, "tol": 1e-9, "max_iter": 10**6}
    peer = LinearSVC(loss=loss, C=C, random_state=0, **options)
    peer.fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-5)
    np.testing.assert_array_equal(model.intercept_, [0.0])


@pytest.mark.parametrize(("loss", "solver"), LOSS_AND_SOLVER)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_enclosure_of_the_optimum(loss, solver, fit_intercept, weighted):
    X, y = blobs()
    weights = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
    for alpha in (1e-4, 1e-2, 1.0):
        model = fit(
            X,
            y,
            weights,
            alpha=alpha,
            loss=loss,
            solver=solver,
            fit_intercept=fit_intercept,
        )
        assert_certified(model, X, y, weights)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_the_default_solver_reaches_tol(loss, seed):
    rng = np.random.default_rng(seed)
    X, y = blobs(int(rng.integers(10, 80)), int(rng.integers(1, 20)), seed=seed)
    for alpha in (1e-5, 1e-3, 1e-1):
        model = SubLBFGSLinearSVC(alpha=alpha, loss=loss).fit(X, y)
        assert model.dual_gap_ <= 1e-3 * model.objective_
        assert_certified(model, X, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_the_default_solver_reaches_tol_on_larger_data(loss, tol):
    X, y = large()
    model = SubLBFGSLinearSVC(1e-4, loss=loss, tol=tol).fit(X, y)
    assert 0.0 <= model.dual_gap_ <= tol * model.objective_
    target = np.where(y == 1, 1.0, -1.0)
    args = model.coef_[0], model.intercept_[0], model.alpha, None, loss
    assert model.objective_ == pytest.approx(objective(X, target, *args), rel=1e-10)
    best = SubLBFGSLinearSVC(1e-4, loss=loss, tol=1e-9).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= best.objective_ + ROUNDING
    assert best.objective_ - best.dual_gap_ <= model.objective_ + ROUNDING


def test_fewer_rows_than_features():
    X, y = blobs(12, 40)
    assert_certified(fit(X, y), X, y)


def test_one_feature():
    X, y = blobs(30, 1)
    assert_certified(fit(X, y), X, y)


@pytest.mark.parametrize("sparse_input", [False, True])
def test_columns_of_zeros_have_no_weight(sparse_input):
    X, y = blobs()
    padded = np.insert(X, [0, 2, 4], 0.0, axis=1)
    model = fit(sparse.csr_array(padded) if sparse_input else padded, y)
    np.testing.assert_array_equal(model.coef_[0, [0, 3, 6]], 0.0)
    assert_certified(model, padded, y)
    reference = fit(X, y)
    np.testing.assert_allclose(model.coef_[:, [1, 2, 4, 5]], reference.coef_, rtol=1e-6)


def test_constant_columns_leave_their_part_to_the_intercept():
    X, y = blobs()
    model = fit(np.column_stack([X, np.ones(len(y))]), y)
    # The intercept costs nothing, the weight of a constant feature does.
    assert abs(model.coef_[0, -1]) < 1e-8
    np.testing.assert_allclose(model.coef_[:, :-1], fit(X, y).coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaled_features(scale, loss):
    X, y = blobs()
    # J(w; X) with alpha equals J(w / c; c X) with alpha * c².
    model = fit(scale * X, y, alpha=0.01 * scale**2, loss=loss)
    reference = fit(X, y, alpha=0.01, loss=loss)
    assert model.objective_ - model.dual_gap_ <= reference.objective_ + ROUNDING
    assert reference.objective_ - reference.dual_gap_ <= model.objective_ + ROUNDING
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("loss", LOSSES)
def test_features_of_different_scales(loss):
    X, y = blobs()
    X = X * [1e3, 1.0, 1e-3, 10.0]
    model = fit(X, y, alpha=1e-2, loss=loss)
    assert_certified(model, X, y)


# More than two classes


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_against_the_rest(loss):
    X, y = blobs(n_classes=4)
    model = fit(X, y, loss=loss)
    assert model.coef_.shape == (4, X.shape[1])
    assert model.intercept_.shape == (4,)
    assert model.objective_.shape == (4,)
    assert model.dual_gap_.shape == (4,)
    assert len(model.history_) == 4
    assert model.n_iter_ == max(len(history) - 1 for history in model.history_)
    assert_certified(model, X, y)
    for k in range(4):
        binary = fit(X, y == k, loss=loss)
        np.testing.assert_allclose(model.coef_[[k]], binary.coef_, rtol=1e-7)
        assert model.objective_[k] == pytest.approx(binary.objective_)
    scores = model.decision_function(X)
    assert scores.shape == (len(y), 4)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_two_classes():
    X, y = blobs()
    model = fit(X, y)
    assert model.coef_.shape == (1, X.shape[1])
    assert model.intercept_.shape == (1,)
    assert isinstance(model.objective_, float)
    assert isinstance(model.dual_gap_, float)
    assert isinstance(model.n_iter_, int)
    assert len(model.history_) == 1
    scores = model.decision_function(X)
    assert scores.shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), scores > 0.0)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-3, 7], dtype=np.int8),
        np.array([0.0, 1.0]),
        np.array([2**62, 2**62 + 1]),
        np.array(["blue", "green", "red"]),
    ],
    ids=lambda labels: f"{labels.dtype}-{len(labels)}",
)
def test_labels(labels):
    X, codes = blobs(n_classes=len(labels))
    y = labels[codes]
    model = fit(X, y)
    np.testing.assert_array_equal(model.classes_, labels)
    assert model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(X), labels[fit(X, codes).predict(X)])


# Weights


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_weight_two_is_a_repeated_row_and_weight_zero_a_missing_one(
    loss, n_classes, class_weight
):
    X, y = blobs(40, n_classes=n_classes)
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    params = {"loss": loss, "class_weight": class_weight}
    weighted = fit(X, y, weights, **params)
    repeated = fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), **params)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6)


@pytest.mark.parametrize("solver", ["sublbfgs", "alm"])
def test_weights_and_repetition_have_the_same_optimum_on_larger_data(solver):
    X, y = large()
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = fit(X, y, weights, solver=solver)
    repeated = fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), solver=solver)
    for one, other in [(weighted, repeated), (repeated, weighted)]:
        assert one.objective_ - one.dual_gap_ <= other.objective_ + ROUNDING


def test_weights_count_relative_to_each_other():
    X, y = blobs()
    weights = np.random.default_rng(3).random(len(y))
    reference = fit(X, y, weights)
    for factor in (1e-200, 0.1, 7, 1e200):
        model = fit(X, y, factor * weights)
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-8)
    np.testing.assert_array_equal(fit(X, y, 3.0).coef_, fit(X, y).coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_class_weight_multiplies_sample_weight(loss):
    X, y = blobs(n_classes=3)
    weights = np.random.default_rng(4).random(len(y))
    class_weight = {0: 0.2, 1: 5.0}
    model = fit(X, y, weights, loss=loss, class_weight=class_weight)
    products = weights * np.array([0.2, 5.0, 1.0])[y]
    np.testing.assert_allclose(model.coef_, fit(X, y, products, loss=loss).coef_)
    assert_certified(model, X, y, products)


def test_balanced_classes_have_equal_weight():
    X, y = blobs()
    rows = np.flatnonzero((y == 0) | (np.arange(len(y)) < 15))
    X, y = X[rows], y[rows]
    products = np.where(y == 0, 1.0 / np.sum(y == 0), 1.0 / np.sum(y == 1))
    model = fit(X, y, class_weight="balanced")
    np.testing.assert_allclose(model.coef_, fit(X, y, products).coef_, rtol=1e-7)
    assert_certified(model, X, y, products)


@pytest.mark.parametrize("by", ["sample_weight", "class_weight"])
def test_a_class_without_weight_is_no_class(by):
    X, y = blobs(n_classes=3)
    if by == "sample_weight":
        model = fit(X, y, (y != 1).astype(float))
    else:
        model = fit(X, y, class_weight={1: 0.0})
    np.testing.assert_array_equal(model.classes_, [0, 2])
    np.testing.assert_allclose(model.coef_, fit(X[y != 1], y[y != 1]).coef_, rtol=1e-7)


# Types and memory layouts


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_float32_stays_float32(loss, container):
    X, y = blobs()
    X = X.astype(np.float32)
    model = fit(container(X), y, alpha=1e-2, loss=loss)
    for array in (model.coef_, model.intercept_):
        assert array.dtype == np.float32
    assert model.decision_function(container(X)).dtype == np.float32
    assert_certified(model, X, y)
    double = fit(X.astype(np.float64), y, alpha=1e-2, loss=loss)
    assert double.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-5)
    assert model.objective_ == pytest.approx(double.objective_, rel=1e-6)


def _memory_map(X, tmp_path):
    joblib.dump(X, tmp_path / "X.joblib")
    return joblib.load(tmp_path / "X.joblib", mmap_mode="r")


def _read_only(X, tmp_path):
    X = X.copy()
    X.setflags(write=False)
    return X


LAYOUTS = {
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "every other row of another array": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "every other column of another array": lambda X, _: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed rows": lambda X, _: X[::-1].copy()[::-1],
    "reversed columns": lambda X, _: X[:, ::-1].copy()[:, ::-1],
    "transposed": lambda X, _: X.T.copy().T,
    "read-only": _read_only,
    "memory map": _memory_map,
    "big-endian": lambda X, _: X.astype(X.dtype.newbyteorder(">")),
    "long double": lambda X, _: X.astype(np.longdouble),
    "list of lists": lambda X, _: X.tolist(),
    "pandas": lambda X, _: pd.DataFrame(X),
    "polars": lambda X, _: pl.DataFrame(X, schema=list("abcd")),
    "objects": lambda X, _: X.astype(object),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_layouts(layout, tmp_path):
    X, y = blobs()
    reference = fit(X, y)
    converted = LAYOUTS[layout](X, tmp_path)
    model = fit(converted, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(converted), reference.predict(X))


def _with_index_type(X, dtype):
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def _read_only_csr(X, tmp_path):
    X = sparse.csr_array(X)
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X


SPARSE_LAYOUTS = {
    "csr_matrix": lambda X, _: sparse.csr_matrix(X),
    "csr_array": lambda X, _: sparse.csr_array(X),
    "csc_matrix": lambda X, _: sparse.csc_matrix(X),
    "csc_array": lambda X, _: sparse.csc_array(X),
    "csr, int64": lambda X, _: _with_index_type(sparse.csr_matrix(X), np.int64),
    "csc, int64": lambda X, _: _with_index_type(sparse.csc_matrix(X), np.int64),
    "read-only": _read_only_csr,
    "memory map": lambda X, path: _memory_map(sparse.csr_matrix(X), path),
    "slice of rows": lambda X, _: sparse.csr_array(np.vstack([X, X]))[len(X) :],
    "pandas": lambda X, _: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
}


@pytest.mark.parametrize("layout", SPARSE_LAYOUTS)
def test_sparse_layouts(layout, tmp_path):
    X, y = blobs()
    X[np.abs(X) < 0.7] = 0.0
    reference = fit(X, y)
    converted = SPARSE_LAYOUTS[layout](X, tmp_path)
    model = fit(converted, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7)
    np.testing.assert_allclose(
        model.decision_function(converted), reference.decision_function(X), rtol=1e-6
    )


def test_index_arrays_of_different_types():
    X, y = blobs()
    mixed = sparse.csr_matrix(X)
    mixed.indptr = mixed.indptr.astype(np.int64)
    np.testing.assert_allclose(fit(mixed, y).coef_, fit(X, y).coef_, rtol=1e-7)


@pytest.mark.parametrize("make", [np.copy, np.asfortranarray, sparse.csr_array])
def test_input_is_not_changed(make):
    X, y = blobs()
    given = make(X)
    weights = np.arange(len(y), dtype=float)
    saved = y.copy(), weights.copy()
    fit(given, y, weights)
    np.testing.assert_array_equal(
        given.toarray() if sparse.issparse(given) else given, X
    )
    np.testing.assert_array_equal(y, saved[0])
    np.testing.assert_array_equal(weights, saved[1])


# Warm starts


def test_warm_start_begins_at_the_previous_solution():
    X, y = large()
    model = SubLBFGSLinearSVC(warm_start=True, alpha=1e-3, solver="alm").fit(X, y)
    coef, intercept = model.coef_[0], model.intercept_[0]
    for alpha in (1e-3, 5e-4):
        target = np.where(y == 1, 1.0, -1.0)
        expected = objective(X, target, coef, intercept, alpha)
        model.set_params(alpha=alpha).fit(X, y)
        # The intercept is set anew, and may be that of a smoothed loss.
        first = model.history_[0].objective[0]
        assert first <= expected * (1.0 + 1e-3)
        cold = SubLBFGSLinearSVC(alpha=alpha, solver="alm").fit(X, y)
        assert first < cold.history_[0].objective[0]
        assert model.n_iter_ < cold.n_iter_
        assert model.dual_gap_ <= 1e-3 * model.objective_
        coef, intercept = model.coef_[0], model.intercept_[0]


@pytest.mark.parametrize(("loss", "solver"), LOSS_AND_SOLVER)
def test_warm_start_with_every_solver(loss, solver):
    X, y = blobs(n_classes=3)
    params = {"loss": loss, "solver": solver, "alpha": 1e-2}
    model = fit(X, y, warm_start=True, **params)
    previous = model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    for history, value in zip(model.history_, previous, strict=True):
        assert history.objective[0] <= value * (1.0 + 1e-3)
    assert_certified(model, X, y)


def _cold(model, X, y):
    """Assert that the next fit is that of a new estimator."""
    model.fit(X, y)
    fresh = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    np.testing.assert_array_equal(model.intercept_, fresh.intercept_)
    assert model.n_iter_ == fresh.n_iter_
    assert model.history_[0].objective == fresh.history_[0].objective


@pytest.mark.parametrize("change", ["labels", "more classes", "features", "names"])
def test_warm_start_is_cold_for_other_classes_or_features(change):
    X, y = large()
    X = pd.DataFrame(X, columns=list("abcdefghij"))
    model = SubLBFGSLinearSVC(warm_start=True).fit(X, y)
    if change == "labels":
        y = np.array(["no", "yes"])[y]
    elif change == "more classes":
        y = (X["a"] > 0).to_numpy() + y
    elif change == "features":
        X = X.iloc[:, :-1]
    else:
        X = X.set_axis(list("bacdefghij"), axis=1)
    _cold(model, X, y)


def test_warm_start_after_any_change_of_data_and_parameters():
    rng = np.random.default_rng(7)
    model = SubLBFGSLinearSVC(warm_start=True)
    for _ in range(40):
        X = rng.normal(size=(int(rng.integers(30, 33)), 4))
        y = (X[:, 0] + rng.normal(size=len(X)) > 0.0).astype(int)
        weights = rng.integers(0, 3, size=len(X)) * 10.0 ** rng.integers(-2, 3)
        loss, solver = LOSS_AND_SOLVER[rng.integers(len(LOSS_AND_SOLVER))]
        model.set_params(
            loss=loss,
            solver=solver,
            fit_intercept=bool(rng.random() < 0.7),
            alpha=10.0 ** rng.integers(-3, 1),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight=weights)
        assert_certified(model, X, y, weights)


def test_without_warm_start_every_fit_is_the_same():
    X, y = large()
    _cold(SubLBFGSLinearSVC().fit(X, y), X, y)


def test_warm_start_without_intercept_ignores_the_previous_one():
    X, y = blobs()
    model = fit(X, y, warm_start=True)
    model.set_params(fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(model.intercept_, [0.0])
    assert_certified(model, X, y)


# Threads, repetition, copies


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_change_nothing_but_rounding(container, dtype):
    X, y = blobs()
    X = container(X.astype(dtype))
    one, two = (fit(X, y, alpha=1e-2, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_allclose(
        one.coef_, two.coef_, rtol=1e-7 if dtype == np.float64 else 1e-5
    )
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)


def test_n_jobs_follows_the_context_of_joblib(monkeypatch):
    seen = []

    class Recorder(sklearn_subqn._problems.linear.Design):
        def __init__(self, *args, n_threads, **kwargs):
            seen.append(n_threads)
            super().__init__(*args, n_threads=n_threads, **kwargs)

    monkeypatch.setattr(sklearn_subqn._problems.linear, "Design", Recorder)
    # joblib is not asked where X has too few entries for several threads.
    monkeypatch.setattr(sklearn_subqn._problems.linear, "PART_SIZE", 1)
    X, y = blobs()
    SubLBFGSLinearSVC().fit(X, y)
    SubLBFGSLinearSVC(n_jobs=2).fit(X, y)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        SubLBFGSLinearSVC().fit(X, y)
        SubLBFGSLinearSVC(n_jobs=1).fit(X, y)
    SubLBFGSLinearSVC(n_jobs=-1).fit(X, y)
    SubLBFGSLinearSVC(n_jobs=10**9).fit(X, y)
    assert seen[:4] == [1, 2, 2, 1]
    assert seen[4] == joblib.cpu_count()
    assert seen[5] <= 1000


@pytest.mark.parametrize(("loss", "solver"), LOSS_AND_SOLVER)
def test_fits_are_deterministic(loss, solver):
    X, y = blobs(n_classes=3)
    one, two = (fit(X, y, loss=loss, solver=solver) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.dual_gap_, two.dual_gap_)


def test_pickle():
    X, y = blobs(n_classes=3)
    model = fit(X, y, alpha=1e-3, n_jobs=2)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.get_params() == model.get_params()
    assert vars(copy).keys() == vars(model).keys()
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.dual_gap_, model.dual_gap_)


def test_clone():
    X, y = blobs()
    params = {"alpha": 0.5, "callback": print, "class_weight": {0: 2.0}, "memory": 3}
    model = SubLBFGSLinearSVC(**params)
    model.callback = None
    model.fit(X, y)
    copy = clone(model)
    assert copy.get_params() == {**model.get_params()}
    assert not hasattr(copy, "coef_")


# Progress and warnings


def test_callback_sees_every_iteration():
    X, y = blobs()
    seen = []
    model = fit(X, y, solver="sublbfgs", callback=seen.append)
    assert [progress.n_iter for progress in seen] == list(range(model.n_iter_ + 1))
    objectives = [progress.objective for progress in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] == pytest.approx(model.objective_)
    passes = [progress.passes for progress in seen]
    assert passes == sorted(passes)
    assert passes[0] >= 1.0
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)
    lower, upper = enclose(X, np.where(y == 1, 1.0, -1.0), model.alpha)
    for progress in seen:
        assert progress.objective - progress.dual_gap <= upper + ROUNDING
        assert lower <= progress.objective + ROUNDING
    history = model.history_[0]
    assert history.objective == objectives
    assert len(history.lower_bound) == len(history.seconds) == len(seen)


@pytest.mark.parametrize(("loss", "solver"), LOSS_AND_SOLVER)
def test_callback_can_stop(loss, solver):
    X, y = blobs()
    model = SubLBFGSLinearSVC(
        1e-4, loss=loss, solver=solver, callback=lambda progress: progress.n_iter == 1
    )
    model.fit(X, y)  # no warning: the user asked for it
    assert model.n_iter_ == 1
    assert_certified(model, X, y)


def test_callback_stops_one_problem_at_a_time():
    X, y = blobs(n_classes=3)
    n_iter = []

    def stop_at_two(progress):
        n_iter.append(progress.n_iter)
        return progress.n_iter == 2

    model = SubLBFGSLinearSVC(1e-4, solver="sublbfgs", callback=stop_at_two)
    model.fit(X, y)
    assert n_iter == 3 * [0, 1, 2]
    assert_certified(model, X, y)


def test_an_exception_in_a_callback_is_passed_on():
    def fail(progress):
        raise KeyboardInterrupt

    X, y = blobs()
    model = SubLBFGSLinearSVC(callback=fail)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_silent_by_default(capfd):
    X, y = blobs(n_classes=3)
    SubLBFGSLinearSVC().fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")


def test_verbose(monkeypatch, capsys):
    print_at_once(monkeypatch)
    X, y = blobs()
    model = fit(X, y, solver="sublbfgs", verbose=1)
    *iterations, last = capsys.readouterr().out.splitlines()
    powers = [0, *(2**k for k in range(20) if 2**k <= model.n_iter_)]
    assert len(iterations) == len(powers)
    for n_iter, line in zip(powers, iterations, strict=True):
        assert line.startswith(f"SubLBFGSLinearSVC: iteration {n_iter:4d}  objective ")
        assert "relative gap" in line
    assert "relative gap" in last
    model = fit(X, y, solver="sublbfgs", verbose=2)
    assert len(capsys.readouterr().out.splitlines()) == model.n_iter_ + 2


def test_verbose_names_the_class(capsys):
    X, y = blobs(n_classes=3)
    fit(X, np.array(["red", "green", "blue"])[y], verbose=1)
    out = capsys.readouterr().out
    for label in ("red", "green", "blue"):
        assert f"SubLBFGSLinearSVC, class {label}: iteration" in out


def test_convergence_warning_at_max_iter(monkeypatch):
    # As for more rows, which are not for one compiled loop.
    without_compiled_loop(monkeypatch)
    X, y = large()
    with pytest.warns(ConvergenceWarning) as caught:
        model = SubLBFGSLinearSVC(max_iter=2, tol=1e-6).fit(X, y)
    assert model.n_iter_ == 2
    assert_gap_is_stated(caught, model)
    message = str(caught[0].message)
    assert "reached max_iter=2" in message
    assert "Increase max_iter or tol." in message


def assert_gap_is_stated(caught, model):
    (record,) = caught
    message = str(record.message)
    assert message.startswith("Fitting SubLBFGSLinearSVC")
    assert f"Its objective {model.objective_:.6g}" in message
    assert f"within {model.dual_gap_:.2g} of the optimum" in message
    assert f"a relative gap of {model.dual_gap_ / model.objective_:.1e}" in message
    assert f"tol={model.tol:g} was asked for" in message


def test_convergence_warning_of_a_class():
    X, y = blobs(n_classes=3)
    model = SubLBFGSLinearSVC(solver="alm", max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, np.array(["a", "b", "c"])[y])
    for label, record in zip("abc", caught, strict=True):
        assert f"Fitting SubLBFGSLinearSVC, class {label} reached" in str(
            record.message
        )


def test_convergence_warning_where_no_progress_is_made():
    X, y = large()
    with pytest.warns(ConvergenceWarning) as caught:
        model = SubLBFGSLinearSVC(solver="sublbfgs", tol=0.0).fit(X, y)
    assert model.n_iter_ < model.max_iter
    assert_gap_is_stated(caught, model)
    assert "Increase tol, choose solver='auto'" in str(caught[0].message)


# Failed fits


FAILURES = {
    "alpha": ({"alpha": -1.0}, {}),
    "solver": ({"solver": "newton"}, {}),
    "n_jobs": ({"n_jobs": 0}, {}),
    "class_weight": ({"class_weight": {0: -1.0}}, {}),
    "callback fails": ({"callback": lambda progress: 1 / 0}, {}),
    "NaN": ({}, {"X": np.full((60, 4), np.nan)}),
    "too large": ({}, {"X": np.full((60, 4), 1e300)}),
    "strings": ({}, {"X": np.full((60, 4), "a")}),
    "one-dimensional": ({}, {"X": np.ones(60)}),
    "too few rows": ({}, {"X": np.ones((59, 3))}),
    "other names": (
        {},
        {"X": pd.DataFrame(np.full((60, 3), np.nan), columns=[*"xyz"])},
    ),
    "one class": ({}, {"y": np.zeros(60)}),
    "continuous labels": ({}, {"y": np.linspace(0.0, 1.0, 60)}),
    "missing labels": ({}, {"y": [None] * 60}),
    "too few labels": ({}, {"y": np.arange(59) % 2}),
    "no labels": ({}, {"y": None}),
    "negative weights": ({}, {"sample_weight": -np.ones(60)}),
    "zero weights": ({}, {"sample_weight": np.zeros(60)}),
    "too few weights": ({}, {"sample_weight": np.ones(59)}),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fit_leaves_the_estimator_as_it_was(case):
    params, data = FAILURES[case]
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = fit(frame, y, alpha=1e-2)
    scores = model.decision_function(frame)
    model.set_params(**params)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)):
        model.fit(**{"X": frame, "y": y, **data})
    after = vars(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(model.decision_function(frame), scores)


def test_a_failed_first_fit_leaves_nothing():
    X, y = blobs()
    model = SubLBFGSLinearSVC()
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(X, np.zeros_like(y))
    assert vars(model) == vars(SubLBFGSLinearSVC())
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_prediction_checks_its_input(method):
    X, y = blobs()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(SubLBFGSLinearSVC(), method)(X)
    call = getattr(fit(X, y), method)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 4"):
        call(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        call(np.full_like(X, np.nan))
    with pytest.raises(ValueError, match="Expected 2D array"):
        call(X[0])
    broken = sparse.csr_array(X)
    broken.indices[0] = 10**6
    with pytest.raises(ValueError, match="corrupted sparse matrix"):
        call(broken)
    np.testing.assert_allclose(call(sparse.csr_array(X)), call(X))


# With the rest of scikit-learn


# scikit-learn 1.8 asks for a protocol that polars has given up.
needs_polars_names = pytest.mark.skipif(
    sklearn.__version__.startswith("1.8.")
    and not hasattr(pl.DataFrame, "__dataframe__"),
    reason="this scikit-learn does not see the column names of this polars",
)


def _polars(X, columns):
    return pl.DataFrame(X, schema=columns)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pytest.param(_polars, marks=needs_polars_names)]
)
def test_feature_names(frame):
    X, y = blobs()
    named = frame(X, columns=list("abcd"))
    model = fit(named, y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(named), fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame(X, columns=list("abce")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    "output", ["pandas", pytest.param("polars", marks=needs_polars_names)]
)
def test_pipeline_with_named_output(output):
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), SubLBFGSLinearSVC())
    pipeline.set_output(transform=output).fit(frame, y)
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, list("abcd"))
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(
        pipeline.predict(frame), fit(scaled, y).predict(scaled)
    )


def test_grid_search_and_cross_validation():
    X, y = blobs(120, spread=0.5)
    grid = GridSearchCV(SubLBFGSLinearSVC(), {"alpha": [1e-3, 1e-1, 10.0]}, cv=3)
    grid.fit(X, y)
    assert grid.best_params_["alpha"] in (1e-3, 1e-1, 10.0)
    assert np.all(np.isfinite(grid.cv_results_["mean_test_score"]))
    scores = cross_val_score(SubLBFGSLinearSVC(**grid.best_params_), X, y, cv=3)
    assert scores.mean() == pytest.approx(grid.best_score_)


def test_sample_weight_is_routed():
    X, y = blobs(120, spread=0.5)
    weights = np.random.default_rng(5).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SubLBFGSLinearSVC().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        grid = GridSearchCV(model, {"alpha": [1e-2]}, cv=3)
        grid.fit(X, y, sample_weight=weights)
        unrouted = SubLBFGSLinearSVC().set_fit_request(sample_weight=False)
        unrouted.set_score_request(sample_weight=True)
        unweighted = GridSearchCV(unrouted, {"alpha": [1e-2]}, cv=3)
        unweighted.fit(X, y, sample_weight=weights)
    expected = fit(X, y, weights, alpha=1e-2)
    np.testing.assert_array_equal(grid.best_estimator_.coef_, expected.coef_)
    expected = fit(X, y, alpha=1e-2)
    np.testing.assert_array_equal(unweighted.best_estimator_.coef_, expected.coef_)


def test_calibration():
    X, y = blobs(120, n_classes=3)
    model = CalibratedClassifierCV(SubLBFGSLinearSVC(), cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (120, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6


def test_one_vs_rest_meta_estimator():
    X, y = blobs(n_classes=3)
    model = OneVsRestClassifier(SubLBFGSLinearSVC(1e-4)).fit(X, y)
    coef = np.vstack([estimator.coef_ for estimator in model.estimators_])
    np.testing.assert_allclose(coef, fit(X, y).coef_, rtol=1e-7)


def test_score_is_weighted_accuracy():
    X, y = blobs(spread=0.3)
    weights = np.random.default_rng(6).random(len(y))
    model = fit(X, y)
    right = model.predict(X) == y
    assert 0.0 < right.mean() < 1.0
    assert model.score(X, y) == pytest.approx(right.mean())
    assert model.score(X, y, sample_weight=weights) == pytest.approx(
        np.average(right, weights=weights)
    )


@pytest.mark.parametrize("kind", [int, bool, float, str])
def test_score_is_accuracy_of_labels_of_any_kind(kind):
    X, y = blobs(spread=0.3)
    y = y > 0
    model = SubLBFGSLinearSVC(alpha=0.1).fit(X, y.astype(kind))
    labels = np.roll(y, 1).astype(kind)
    expected = float(np.mean(labels == model.predict(X)))
    assert 0.0 < expected < 1.0
    assert model.score(X, labels) == expected
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, labels[1:])


def test_scores_of_few_columns_in_use_are_those_of_all():
    X = np.random.default_rng(3).normal(size=(60, 40))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    model = SubLBFGSLinearSVC(alpha=0.1).fit(X, y)
    model.coef_[0, 3:] = 0.0
    expected = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9)
    model.coef_[:] = 0.0
    np.testing.assert_allclose(model.decision_function(X), model.intercept_[0])
