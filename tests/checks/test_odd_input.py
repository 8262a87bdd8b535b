"""Odd input is answered rightly or refused clearly, never with a crash or nonsense.

An answer is right if the objective encloses the optimum with its gap, in exact
arithmetic or within rounding. A refusal names what was wrong.
"""

from __future__ import annotations

import copy
import functools
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _door import BINARY_LOSSES, L2, SOLVERS
from _optimum import enclose, objective
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import r2_score

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)

LOSSES = ["hinge", "squared_hinge"]
ALPHA = 0.1


def data():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return rng.normal(size=(40, 5)) + 0.5 * y[:, None], y


def fit(X, y, sample_weight=None, **params):
    """Fit; not reaching tol is an honest answer, any other warning is not."""
    model = SubLBFGSLinearSVC(**{"alpha": ALPHA, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=sample_weight)


def fit_or_message(X, y, **params):
    """Return the fitted model, or what the ValueError said."""
    try:
        return fit(X, y, **params)
    except ValueError as error:
        return str(error)


def assert_finite(model):
    for name in ("coef_", "intercept_", "objective_", "dual_gap_"):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(np.asarray(model.dual_gap_) >= 0.0)
    assert model.n_iter_ >= 1


def assert_encloses(model, optimum, *, rel=1e-9):
    """The optimum is known: it lies between the bound and the objective."""
    assert_finite(model)
    slack = rel * abs(optimum) + 1e-300
    assert model.objective_ - model.dual_gap_ <= optimum + slack
    assert optimum - slack <= model.objective_


def assert_right(model, X, y, weights=None):
    """The objective is that of the coefficients and encloses an independent optimum."""
    X = np.asarray(X, dtype=float)
    target = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    coef, intercept = model.coef_[0].astype(float), float(model.intercept_[0])
    value = objective(X, target, coef, intercept, model.alpha, weights, model.loss)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    lower, upper = enclose(
        X, target, model.alpha, weights, loss=model.loss, fit_intercept=True
    )
    assert upper - lower <= 1e-6 * upper, "the reference is too inaccurate"
    assert_finite(model)
    assert model.objective_ - model.dual_gap_ <= upper * (1.0 + 1e-9)
    assert lower * (1.0 - 1e-9) <= model.objective_


def assert_same(model, reference):
    assert_finite(model)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-6, atol=1e-9)
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-9)


def refused(match, X, y, sample_weight=None, error=ValueError, **params):
    """Fitting raises an error that says what was wrong, before or after a good fit."""
    fitted = copy.copy(good_fit())
    coef = fitted.coef_
    for model in (SubLBFGSLinearSVC(), fitted):
        model.set_params(**params)
        with pytest.raises(error, match=match):
            model.fit(X, y, sample_weight=sample_weight)
    assert fitted.coef_ is coef


@functools.cache
def good_fit():
    return SubLBFGSLinearSVC().fit(*data())


# Values of X


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "container", [np.asarray, np.float32, sparse.csr_array, sparse.csc_matrix]
)
def test_values_that_are_not_finite(value, container):
    X, y = data()
    X[3, 2] = value
    refused("Input X contains (NaN|infinity)", container(X), y)


@pytest.mark.parametrize("value", [1e141, -1e155, 1e300, -np.finfo(float).max])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_values_whose_products_overflow(value, container):
    X, y = data()
    X[3, 2] = value
    refused(r"X contains values beyond 1e\+140.*Scale the features", container(X), y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "change",
    [
        lambda X: _with_entry(X, 1e20),
        lambda X: _with_entry(X, 1e139),
        lambda X: X * 1e50,
        lambda X: X * 1e139,
        lambda X: X * [1e100, 1e-100, 1e-300, 1.0, 1e50],
        lambda X: _with_entry(X.astype(np.float32), np.finfo(np.float32).max),
        lambda X: (X * 1e37).astype(np.float32),
    ],
    ids=["1e20", "1e139", "all 1e50", "all 1e139", "mixed", "float32 max", "all 1e37"],
)
def test_huge_values(change, loss):
    X, y = data()
    X = change(X)
    model = fit_or_message(X, y, loss=loss)
    if isinstance(model, str):
        assert "too extreme; scale the features" in model
        return
    assert_finite(model)
    # The objective of w = 0 is 1.
    assert model.objective_ - model.dual_gap_ <= model.objective_ <= 1.0 + 1e-6
    target = np.where(y == 1, 1.0, -1.0)
    with np.errstate(over="ignore"):
        value = objective(
            X.astype(float),
            target,
            model.coef_[0].astype(float),
            float(model.intercept_[0]),
            ALPHA,
            loss=loss,
        )
    assert model.objective_ == pytest.approx(value, rel=1e-3)


def _with_entry(X, value):
    X = X.copy()
    X[3, 2] = value
    return X


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-150, 1e-45, 1e-20, 1e-10])
def test_tiny_values(scale, dtype, loss):
    X, y = data()
    # w = 0 is the optimum up to rounding: the penalty of any other w is too high.
    model = fit((X * scale).astype(dtype), y, loss=loss)
    assert_encloses(model, 1.0, rel=1e-12)
    assert model.dual_gap_ <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-30])
def test_a_tiny_value_among_others(value, loss):
    X, y = data()
    X = _with_entry(X, value)
    assert_right(fit(X, y, loss=loss), X, y)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("loss", LOSSES)
def test_moderate_scales(scale, loss):
    X, y = data()
    model = fit(X * scale, y, loss=loss, alpha=ALPHA * scale**2)
    # The same problem for w * scale.
    assert_encloses(model, fit(X, y, loss=loss).objective_)
    assert model.dual_gap_ <= 1e-3 * model.objective_


# Shapes and degenerate data


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.empty((0, 3)), "0 sample"),
        (sparse.csr_array((0, 3)), "0 sample"),
        (np.empty((40, 0)), "0 feature"),
        (sparse.csc_array((40, 0)), "0 feature"),
        (np.ones(40), "Expected 2D array, got 1D array"),
        (np.ones((40, 2, 2)), "dim 3"),
        (np.float64(3.0), "Expected 2D array, got scalar"),
        (None, "Expected 2D array, got scalar"),
        (np.ones((39, 2)), "inconsistent numbers of samples"),
        ([[1.0, 2.0], [3.0]] * 20, "inhomogeneous"),
        (np.ones((40, 1), dtype=complex), "Complex data not supported"),
        (sparse.csr_array(np.ones((40, 1), dtype=complex)), "Complex data not"),
        (np.full((40, 2), "a"), "could not convert string"),
        (np.full((40, 2), "a", dtype=object), "could not convert string"),
        (np.full((40, 2), None), "contains NaN"),
        (pl.DataFrame({"a": [None, *[1.0] * 39]}), "contains NaN"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_refused_shapes_and_types(X, match):
    n = 0 if getattr(X, "shape", None) == (0, 3) else 40
    refused(match, X, np.arange(n) % 2)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ("text", "X must be an array, a sparse matrix or a data frame"),
        ({"a": [1.0] * 40}, "float\\(\\) argument"),
        (np.zeros((40, 1), dtype=[("a", float), ("b", float)]), "Cannot cast"),
        (pd.DataFrame(np.ones((40, 2)), columns=["a", 1]), "only supported if all"),
    ],
    ids=["text", "dict", "structured", "mixed names"],
)
def test_refused_with_type_errors(X, match):
    refused(match, X, np.arange(40) % 2, error=TypeError)


@pytest.mark.parametrize("shape", [(40,), (40, 2, 2)])
def test_sparse_arrays_that_are_no_matrices(shape):
    try:
        X = sparse.coo_array(np.ones(shape))
    except (TypeError, ValueError):
        pytest.skip("this SciPy has no such arrays")
    if X.ndim == 2:
        pytest.skip("this SciPy makes a matrix of it")
    refused("Expected 2D input", X, np.arange(40) % 2)


@pytest.mark.parametrize(
    "y", [[0], [1.0], ["a"], [True]], ids=["int", "float", "str", "bool"]
)
def test_one_sample(y):
    refused("2 classes .* only one class", [[1.0, 2.0]], y)


def test_one_class():
    X, _ = data()
    refused("only one class with positive weight: no", X, ["no"] * 40)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 100.0])
def test_two_samples(alpha, loss):
    model = fit([[1.0, 0.0], [0.0, 1.0]], [0, 1], alpha=alpha, loss=loss)
    # w = c (-1, 1) by symmetry, with scores -c and c: alpha c² + loss(c).
    if loss == "hinge":
        c = min(0.5 / alpha, 1.0)
        optimum = alpha * c**2 + 1.0 - c
    else:
        c = 1.0 / (1.0 + alpha)
        optimum = alpha * c**2 + (1.0 - c) ** 2
    assert_encloses(model, optimum)
    np.testing.assert_allclose(model.coef_, [[-c, c]], rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, [0.0], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_positive", [1, 3, 5])
@pytest.mark.parametrize(
    "X",
    [np.zeros((10, 2)), np.ones((10, 3)), np.full((10, 1), 3.0)],
    ids=["zeros", "identical rows", "one constant feature"],
)
def test_rows_that_do_not_differ(X, n_positive, solver):
    taken = [
        loss
        for loss in ("hinge", "squared_hinge")
        if SOLVERS[solver].supports(BINARY_LOSSES[loss], L2(X.shape[1]))
    ]
    if not taken:
        pytest.skip("Other losses and penalties.")
    loss = taken[0]
    share = n_positive / 10.0
    # Only the intercept can help: the smaller class pays.
    optimum = 2.0 * share if loss == "hinge" else 4.0 * share * (1.0 - share)
    y = np.arange(10) < n_positive
    for container in (np.asarray, sparse.csr_array):
        model = fit(container(X), y, loss=loss, solver=solver)
        assert_encloses(model, optimum)
        # Strong convexity: alpha / 2 ||w||² is no more than the gap.
        distance = np.sqrt(2.0 * model.dual_gap_ / ALPHA) + 1e-6
        assert np.linalg.norm(model.coef_) <= distance
        scores = model.decision_function(container(X))
        np.testing.assert_array_equal(model.predict(container(X)), scores > 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_zeros_without_intercept(loss):
    y = np.arange(10) < 3
    model = fit(np.zeros((10, 2)), y, loss=loss, fit_intercept=False)
    assert_encloses(model, 1.0)
    np.testing.assert_array_equal(model.coef_, 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_of_identical_rows(loss):
    X = np.array([[1.0, 2.0]] * 5 + [[0.0, -1.0]] * 7)
    y = np.arange(12) < 5
    assert_right(fit(X, y, loss=loss), X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_row_with_both_labels(loss):
    X, _ = data()
    model = fit(np.repeat(X, 2, axis=0), np.arange(80) % 2, loss=loss)
    # Losses of z and -z average to at least 1, attained at z = 0.
    assert_encloses(model, 1.0)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)


def test_as_many_classes_as_samples():
    X = np.random.default_rng(1).normal(size=(24, 30))
    with pytest.warns(UserWarning, match="number of unique classes"):
        model = SubLBFGSLinearSVC().fit(X, np.arange(24))
    assert_finite(model)
    np.testing.assert_array_equal(model.predict(X), np.arange(24))


# Types of X


@pytest.mark.parametrize(
    "dtype",
    ["int64", "int8", "bool", "float16", "longdouble", "object", "uint8"],
)
def test_dtypes(dtype):
    X, y = data()
    X = (X * 3).astype("int8" if dtype == "uint8" else dtype).astype(dtype)
    assert_right(fit(X, y), X.astype(float), y)
    if dtype not in ("float16", "object"):
        X_sparse = sparse.csr_array(X)
        assert_right(fit(X_sparse, y), X.astype(float), y)


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "Float64", "boolean"])
def test_nullable_types_of_pandas(dtype):
    X, y = data()
    frame = pd.DataFrame((X * 3).astype(int)).clip(0, 1 if dtype == "boolean" else 9)
    frame = frame.astype(bool if dtype == "boolean" else float).astype(dtype)
    frame.columns = list("abcde")
    model = fit(frame, y)
    assert_same(model, fit(frame.to_numpy(dtype=float), y))
    frame.iloc[3, 2] = pd.NA
    refused("Input X contains NaN", frame, y)


def test_numbers_in_strings_are_numbers():
    X, y = data()
    assert_same(fit(X.astype(str).astype(object), y), fit(X, y))


def test_huge_integers():
    _, y = data()
    with pytest.raises(OverflowError, match="too large"):
        SubLBFGSLinearSVC().fit([[10**400], [0]], [0, 1])
    with pytest.raises(ValueError, match="beyond"):
        SubLBFGSLinearSVC().fit([[10**200], [0]], [0, 1])
    model = fit(np.full((40, 2), 2**63 - 1), y)
    assert_encloses(model, 1.0)


# Sparse formats

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"]


def thin():
    """Data with half of the entries zero, a row and a column among them."""
    X, y = data()
    X[np.abs(X) < 0.6] = 0.0
    X[7] = 0.0
    X[:, 3] = 0.0
    return X, y


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_every_sparse_format(name, kind, dtype):
    X, y = thin()
    X = (X * 4).astype(dtype)
    converted = getattr(sparse, f"{name}_{kind}")(X)
    model = fit(converted, y)
    assert converted.format == name
    reference = fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5, atol=1e-7)
    assert model.coef_.dtype == reference.coef_.dtype
    np.testing.assert_allclose(
        model.decision_function(converted),
        reference.decision_function(X),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_sparse_zeros(name):
    _, y = data()
    X = getattr(sparse, f"{name}_array")((40, 3))
    assert_encloses(fit(X, y), 1.0)


def _unsorted_csr(X):
    X = sparse.csr_array(X)
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        X.indices[part] = X.indices[part][::-1].copy()
        X.data[part] = X.data[part][::-1].copy()
    X.has_sorted_indices = False
    return X


def _with_duplicates(X, format):
    """Every entry in two parts."""
    X = sparse.coo_array(X)
    parts = np.concatenate([0.25 * X.data, 0.75 * X.data])
    row, col = np.tile(X.row, 2), np.tile(X.col, 2)
    if format == "coo":
        return sparse.coo_array((parts, (row, col)), shape=X.shape)
    order = np.argsort(row if format == "csr" else col, kind="stable")
    row, col = row[order], col[order]
    major, minor = (row, col) if format == "csr" else (col, row)
    n_major = X.shape[0] if format == "csr" else X.shape[1]
    indptr = np.searchsorted(major, np.arange(n_major + 1))
    container = getattr(sparse, f"{format}_array")
    return container((parts[order], minor, indptr), shape=X.shape)


def _with_explicit_zeros(X):
    full = sparse.csr_array(np.where(X == 0.0, 1.0, X))
    full.data[X.ravel() == 0.0] = 0.0
    return full


def _with_room_to_spare(X):
    """Arrays longer than indptr says."""
    X = sparse.csr_array(X)
    X.data = np.append(X.data, [7.0, 8.0])
    X.indices = np.append(X.indices, [0, 1]).astype(X.indices.dtype)
    return X


def _with_strides(X):
    """Arrays of every second entry."""
    X = sparse.csr_array(X)
    for name in ("data", "indices", "indptr"):
        setattr(X, name, np.repeat(getattr(X, name), 2)[::2])
        assert not getattr(X, name).flags.c_contiguous
    return X


class _Wide(sparse.csr_matrix):
    """A matrix that says to have another shape than it was made with."""

    said = None

    @property
    def shape(self):
        return self.said or self._shape

    @shape.setter
    def shape(self, shape):
        self._shape = shape


def _narrower_than_said(X):
    said = _Wide(X[:, np.flatnonzero(np.any(X != 0.0, axis=0)).max() :: -1][:, ::-1])
    said.said = X.shape
    return said


def _with_false_flags(X):
    X = _with_duplicates(X, "csr")
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


@pytest.mark.parametrize(
    "make",
    [
        _unsorted_csr,
        lambda X: _with_duplicates(X, "csr"),
        lambda X: _with_duplicates(X, "csc"),
        lambda X: _with_duplicates(X, "coo"),
        _with_explicit_zeros,
        _with_room_to_spare,
        _with_false_flags,
        _with_strides,
        _narrower_than_said,
        lambda X: sparse.bsr_array(X, blocksize=(4, 5)),
        lambda X: sparse.csr_array(X).T.tocsr().T,
        lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.coo_array(X)),
    ],
    ids=[
        "unsorted",
        "duplicates csr",
        "duplicates csc",
        "duplicates coo",
        "explicit zeros",
        "room to spare",
        "false flags",
        "strides",
        "narrower than said",
        "blocks",
        "transposed",
        "pandas",
    ],
)
def test_unusual_but_valid_sparse_input(make):
    X, y = thin()
    weights = np.arange(40.0)
    converted = make(X)
    assert_same(fit(converted, y, weights), fit(X, y, weights))


@pytest.mark.parametrize(
    "estimator", [BMRMClassifier(), L1LogisticOWLQN(), OnlineLBFGSClassifier()]
)
@pytest.mark.parametrize("make", [_with_strides, _narrower_than_said])
def test_predictions_for_unusual_but_valid_sparse_input(make, estimator):
    X, y = thin()
    X = np.hstack([X, np.zeros((len(X), 2))])
    converted = make(X)
    estimator.fit(converted, y)
    np.testing.assert_array_equal(estimator.predict(converted), estimator.predict(X))


def _set(**attributes):
    """Return a function that replaces attributes of a matrix by functions of them."""

    def change(X):
        for name, replacement in attributes.items():
            setattr(X, name, replacement(getattr(X, name)))

    return change


def _put(name, position, value):
    """Return a function that sets one entry of an attribute."""

    def change(X):
        array = getattr(X, name).copy()
        array[position] = value
        setattr(X, name, array)

    return change


def _as_64_bit(change):
    def changed(X):
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        change(X)

    return changed


COMPRESSED = {
    "index too large": (_put("indices", 3, 10**6), "indices must lie between"),
    "index negative": (_put("indices", 3, -1), "indices must lie between"),
    "index of 64 bits too large": (
        _as_64_bit(_put("indices", 3, 2**40)),
        "indices must lie between",
    ),
    "index of 64 bits negative": (
        _as_64_bit(_put("indices", 3, -(2**40))),
        "indices must lie between",
    ),
    "indptr decreasing": (_put("indptr", 2, 10**6), "indptr must rise"),
    "indptr negative": (_put("indptr", 2, -5), "indptr must rise"),
    "indptr does not start at 0": (_put("indptr", 0, 1), "indptr must rise"),
    "indptr ends too late": (_put("indptr", -1, 10**6), "indptr must rise"),
    "indptr too short": (_set(indptr=lambda a: a[:-1]), "indptr has .* needed"),
    "indptr too long": (_set(indptr=lambda a: np.append(a, a[-1:])), "indptr has"),
    "indptr of floats": (_set(indptr=lambda a: a + 0.5), "indptr must be .* integers"),
    "indptr empty": (_set(indptr=lambda a: a[:0]), "indptr has 0 entries"),
    "indices too short": (_set(indices=lambda a: a[:-1]), "indices has"),
    "indices too long": (_set(indices=lambda a: np.append(a, a[:1])), "indices has"),
    "indices of floats": (_set(indices=lambda a: a + 0.5), "indices must be"),
    "indices with NaN": (_set(indices=lambda a: a * np.nan), "indices must be"),
    "indices unsigned": (
        _set(indices=lambda a: a.astype(np.uint64)),
        "indices must be .* signed integers",
    ),
    "indices of objects": (_set(indices=lambda a: a.astype(object)), "indices must be"),
    "indices a list": (_set(indices=lambda a: a.tolist()), "indices must be"),
    "indices None": (_set(indices=lambda a: None), "indices must be"),
    "indices 2-D": (_set(indices=lambda a: a[:, None]), "indices must be a one-dim"),
    "data too short": (_set(data=lambda a: a[:-1]), "indices has"),
    "data None": (_set(data=lambda a: None), "data must be an array"),
    "data a list": (_set(data=lambda a: a.tolist()), "data must be an array"),
    "data of one dimension more": (_set(data=lambda a: a[None]), "data must be an"),
    "data of strings": (_set(data=lambda a: a.astype(str)), "data must be numeric"),
    "data of objects": (_set(data=lambda a: a.astype(object)), "data must be numeric"),
    "shape too large": (_set(_shape=lambda s: (s[0] + 1, s[1] + 1)), "needed|not tile"),
}

BLOCKS = {
    "blocks do not tile the rows": (_set(data=lambda a: a[:, :3]), "do not tile"),
    "blocks do not tile the columns": (_set(data=lambda a: a[:, :, :2]), "not tile"),
    "blocks too wide": (_set(data=lambda a: np.repeat(a, 2, axis=2)), "not tile"),
    "blocks empty": (_set(data=lambda a: a[:, :0]), "do not tile"),
    "blocks flat": (_set(data=lambda a: a.reshape(len(a), -1)), "3 dimensions"),
}

COORDINATES = {
    "row too large": (lambda X: X.coords[0].__setitem__(3, 10**6), "row must lie"),
    "row negative": (lambda X: X.coords[0].__setitem__(3, -1), "row must lie"),
    "column too large": (lambda X: X.coords[1].__setitem__(3, 10**6), "col must lie"),
    "column negative": (lambda X: X.coords[1].__setitem__(3, -1), "col must lie"),
    "rows too few": (_set(coords=lambda c: (c[0][:-1], c[1])), "row has"),
    "columns too many": (_set(coords=lambda c: (c[0], np.append(c[1], 0))), "col has"),
    "coordinates too few": (_set(coords=lambda c: (c[0][:-1], c[1][:-1])), "row has"),
    "values too many": (_set(data=lambda a: np.append(a, a)), "row has"),
    "one axis": (_set(coords=lambda c: c[:1]), "2 axes, got 1"),
    "three axes": (_set(coords=lambda c: (*c, c[0])), "2 axes, got 3"),
    "columns of floats": (_set(coords=lambda c: (c[0], c[1] + 0.5)), "col must be"),
    "columns with NaN": (_set(coords=lambda c: (c[0], c[1] * np.nan)), "col must be"),
    "rows a list": (_set(coords=lambda c: (c[0].tolist(), c[1])), "row must be"),
    "values of strings": (_set(data=lambda a: a.astype(str)), "must be numeric"),
}

LISTS = {
    "column too large": (lambda X: X.rows[3].__setitem__(-1, 10**6), r"rows\[3\] must"),
    "column negative": (lambda X: X.rows[3].__setitem__(0, -1), r"rows\[3\] must lie"),
    "column huge": (lambda X: X.rows[3].__setitem__(0, 10**30), r"rows\[3\] must be"),
    "column a float": (lambda X: X.rows[3].__setitem__(0, 0.5), r"rows\[3\] must be"),
    "column NaN": (lambda X: X.rows[3].__setitem__(-1, np.nan), r"rows\[3\] must be"),
    "column a string": (lambda X: X.rows[3].__setitem__(0, "a"), r"rows\[3\] must be"),
    "column None": (lambda X: X.rows[3].__setitem__(0, None), r"rows\[3\] must be"),
    "column missing": (lambda X: X.rows[3].pop(), r"rows\[3\] has"),
    "value missing": (lambda X: X.data[3].pop(), r"rows\[3\] has"),
    "value a string": (lambda X: X.data[3].__setitem__(0, "a"), r"data\[3\] must be"),
    "value complex": (lambda X: X.data[3].__setitem__(0, 1j), r"data\[3\] must be"),
    "row a tuple": (lambda X: X.rows.__setitem__(3, (0, 1)), "must be lists"),
    "row None": (lambda X: X.rows.__setitem__(3, None), "must be lists"),
    "row a number": (lambda X: X.rows.__setitem__(3, 7), "must be lists"),
    "rows too few": (
        _set(rows=lambda a: a[:-3], data=lambda a: a[:-3]),
        "rows must be an array of 40 lists",
    ),
    "rows too many": (
        _set(rows=lambda a: np.append(a, a), data=lambda a: np.append(a, a)),
        "rows must be an array of 40 lists",
    ),
    "data too few": (_set(data=lambda a: a[:-3]), "data must be an array of 40 lists"),
    "rows None": (_set(rows=lambda a: None), "rows must be an array"),
}

DIAGONALS = {
    "offset too large": (_put("offsets", 0, 10**9), "offsets must lie between"),
    "offset too small": (_put("offsets", 0, -(2**31)), "offsets must lie between"),
    "offsets equal": (_put("offsets", 0, 1), "offsets must differ"),
    "offsets too few": (_set(offsets=lambda a: a[:-1]), "diagonals, but"),
    "offsets of floats": (_set(offsets=lambda a: a + 0.5), "offsets must be"),
    "offsets with NaN": (_set(offsets=lambda a: a * np.nan), "offsets must be"),
    "offsets 2-D": (_set(offsets=lambda a: a[None]), "offsets must be a one-dim"),
    "data flat": (_set(data=np.ravel), "data must be an array of 2 dimensions"),
    "data 3-D": (_set(data=lambda a: a[..., None]), "data must be an array of 2 dim"),
}

KEYS = {
    "row too large": ((10**6, 0), 1.0, "keys must lie within shape"),
    "column too large": ((0, 5), 1.0, "keys must lie within shape"),
    "row negative": ((-1, 0), 1.0, "keys must lie within shape"),
    "row a float": ((0.5, 0), 1.0, "keys must be pairs of integers"),
    "row NaN": ((np.nan, 0), 1.0, "keys must be pairs of integers"),
    "strings": (("a", "b"), 1.0, "keys must be pairs of integers"),
    "a string": ("ab", 1.0, "keys must be pairs of integers"),
    "a number": (3, 1.0, "keys must be pairs of integers"),
    "three numbers": ((1, 2, 3), 1.0, "keys must be pairs of integers"),
    "value a string": ((1, 2), "a", "values must be numeric"),
    "value complex": ((1, 2), 1j, "values must be numeric"),
    "value None": ((1, 2), None, "values must be numeric"),
}


def corrupted(name, cases, **options):
    return [
        pytest.param(name, change, match, options, id=f"{name}: {case}")
        for case, (change, match) in cases.items()
    ]


@pytest.mark.parametrize(
    ("name", "change", "match", "options"),
    [
        *corrupted("csr", COMPRESSED),
        *corrupted("csc", COMPRESSED),
        *corrupted("bsr", {**COMPRESSED, **BLOCKS}, blocksize=(4, 5)),
        *corrupted("coo", COORDINATES),
        *corrupted("lil", LISTS),
        *corrupted("dia", DIAGONALS),
    ],
)
def test_corrupted_sparse_input(name, change, match, options):
    X, y = data()
    X = getattr(sparse, f"{name}_array")(X, **options)
    if name == "coo" and not hasattr(X, "coords"):
        pytest.skip("this SciPy has separate attributes")
    change(X)
    model = copy.copy(good_fit())
    message = f"X is a corrupted sparse matrix of format '{name}': .*{match}"
    for call in (model.predict, lambda X: model.fit(X, y)):
        with pytest.raises(ValueError, match=message):
            call(X)


@pytest.mark.parametrize("case", KEYS)
def test_corrupted_dictionaries(case):
    key, value, match = KEYS[case]
    X, y = data()
    X = sparse.dok_array(X)
    # Old SciPy's class is a dictionary itself, with checks of its own.
    dict.__setitem__(X._dict if hasattr(X, "_dict") else X, key, value)
    refused(f"corrupted sparse matrix of format 'dok': {match}", X, y)


def test_sparse_matrix_without_its_arrays():
    X, y = data()
    X = sparse.csr_array(X)
    del X.indptr
    refused("corrupted sparse matrix of format 'csr': AttributeError", X, y)


# Labels


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.linspace(0.0, 1.0, 40), "Unknown label type: continuous"),
        (np.where(np.arange(40) < 20, 0.0, np.nan), "Input y contains NaN"),
        (np.where(np.arange(40) < 20, 0.0, np.inf), "Input y contains infinity"),
        (np.eye(2)[np.arange(40) % 2], r"1d array, got .* shape \(40, 2\)"),
        (np.ones((40, 1, 2)), "dim 3|1d array"),
        (np.arange(39) % 2, "inconsistent numbers of samples"),
        (np.float64(1.0), "1d array"),
        (None, "requires y to be passed"),
        ([None, 1] * 20, "Input y contains NaN, None or NA"),
        (["a", np.nan] * 20, "Input y contains NaN, None or NA"),
        (np.array(["a", None] * 20, dtype=object), "y contains NaN, None or NA"),
        (np.array(["a", np.nan] * 20, dtype=object), "y contains NaN, None or NA"),
        (np.array([0, 1.5, "a", "b"] * 10, dtype=object), "label type: unknown"),
        (pd.Series(["a", None] * 20), "Input y contains NaN, None or NA"),
        (pd.Series([0, pd.NA] * 20, dtype="Int64"), "y contains NaN, None or NA"),
        (pd.Series([True, pd.NA] * 20, dtype="boolean"), "NaN, None or NA"),
        (pd.Series(["a", pd.NA] * 20, dtype="string"), "NaN, None or NA"),
        (pd.Series(["a", None] * 20, dtype="category"), "NaN, None or NA"),
        (pl.Series(["a", None] * 20), "Input y contains NaN, None or NA"),
        (np.arange(40) % 2 * 1j, "Complex data not supported"),
    ],
)
def test_refused_labels(y, match):
    refused(match, data()[0], y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.array([b"a", b"b"] * 20), "bytes"),
        (sparse.csr_array(np.eye(2)[np.arange(40) % 2]), "dense data is required"),
    ],
    ids=["bytes", "sparse"],
)
def test_labels_refused_with_type_errors(y, match):
    refused(match, data()[0], y, error=TypeError)


@pytest.mark.parametrize(
    "make",
    [
        lambda y: y.astype(bool),
        lambda y: y.astype(np.float32),
        lambda y: 2.0 * y - 1.0,
        lambda y: y.astype(np.uint64) * np.uint64(2**64 - 1),
        lambda y: y.tolist(),
        lambda y: np.array(["no", "yes"])[y].tolist(),
        lambda y: pd.Series(y).astype("Int64"),
        lambda y: pd.Series(y).astype("boolean"),
        lambda y: pd.Series(np.array(["no", "yes"])[y]).astype("string"),
        lambda y: pd.Series(np.array(["no", "yes"])[y]).astype("category"),
        lambda y: pl.Series(np.array(["no", "yes"])[y]),
        lambda y: np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")[y],
    ],
)
def test_accepted_labels(make):
    X, y = data()
    labels = make(y)
    model = fit(X, labels)
    assert_same(model, fit(X, y))
    np.testing.assert_array_equal(model.predict(X), np.asarray(labels)[_row_of(y, X)])


def _row_of(y, X):
    """For each predicted code a row that carries its label."""
    first = [int(np.argmax(y == code)) for code in (0, 1)]
    return np.array(first)[fit(X, y).predict(X)]


def test_a_column_of_labels():
    X, y = data()
    model = SubLBFGSLinearSVC(alpha=ALPHA)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model.fit(X, y[:, None])
    assert_same(model, fit(X, y))


def test_zero_and_minus_zero_are_one_label():
    refused("only one class", data()[0], [0.0, -0.0] * 20)


# Weights


def _weights(value):
    weights = np.ones(40)
    weights[3] = value
    return weights


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (_weights(np.nan), "sample_weight contains NaN"),
        (_weights(np.inf), "sample_weight contains infinity"),
        (_weights(-1.0), "Negative values in data passed to `sample_weight`"),
        (_weights(-1e-300), "Negative values in data passed to `sample_weight`"),
        (np.zeros(40), "at least one non-zero number"),
        (0.0, "at least one non-zero number"),
        (-1, "Negative values"),
        (np.nan, "sample_weight must be finite"),
        (np.inf, "sample_weight must be finite"),
        (np.ones(39), r"sample_weight.shape == \(39,\), expected \(40,\)"),
        (np.ones((40, 1)), "Sample weights must be 1D array or scalar, got 2D"),
        (np.ones((40, 2)), "Sample weights must be 1D array or scalar, got 2D"),
        (np.ones((2, 2, 2)), "sample_weight is not acceptable: .*dim 3"),
        ([], "sample_weight is not acceptable: .*0 sample"),
        ("balanced", "sample_weight is not acceptable: could not convert"),
        (["a"] * 40, "sample_weight is not acceptable: could not convert"),
        (np.ones(40) * 1j, "sample_weight is not acceptable: Complex data"),
        ([None] * 40, "sample_weight contains NaN"),
        (pd.Series([1, pd.NA] * 20, dtype="Int64"), "sample_weight contains NaN"),
        ((np.arange(40) % 2).astype(float), "only one class with positive weight: 1"),
        (np.arange(40) == 3, "only one class with positive weight: 1"),
        # Beyond the range of float64, one class has no weight next to the other.
        (np.where(np.arange(40) % 2, 1e300, 1e-300), "only one class with positive"),
    ],
)
def test_refused_weights(weights, match):
    refused(match, *data(), weights)


@pytest.mark.parametrize(
    "weights",
    [1j, {"a": 1.0}, sparse.csr_array(np.ones((1, 40))), object()],
    ids=["complex", "dict", "sparse", "object"],
)
def test_weights_refused_with_type_errors(weights):
    refused("sample_weight", *data(), weights, error=TypeError)


@pytest.mark.parametrize(
    "value", [1e300, 1e-300, 1e308, 5e-324, 1, True, np.float32(2)]
)
def test_equal_weights_of_any_size(value):
    X, y = data()
    reference = fit(X, y)
    assert_same(fit(X, y, value), reference)
    assert_same(fit(X, y, np.full(40, value)), reference)
    assert_same(fit(X, y, [value] * 40), reference)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [1e-300, 5e-324, 0.0])
def test_a_row_of_vanishing_weight_is_a_missing_row(value, loss):
    X, y = data()
    rest = np.arange(40) != 3
    model = fit(X, y, _weights(value), loss=loss)
    assert_same(model, fit(X[rest], y[rest], loss=loss))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [1e3, 1e6])
def test_a_row_of_large_weight(value, loss):
    X, y = data()
    assert_right(fit(X, y, _weights(value), loss=loss), X, y, _weights(value))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [1e10, 1e100, 1e300])
def test_one_class_has_nearly_all_weight(value, loss):
    X, y = data()
    light = 1.0 / value if value < 1e300 else 1e-7
    model = fit(X, y, np.where(y == 1, value, light), loss=loss)
    assert_finite(model)
    # The intercept alone leaves no more than 4 times the weight of the light class.
    best = 4.0 * light / value
    # Bounds are proven up to rounding, against the objective 1 of w = 0.
    assert model.objective_ - model.dual_gap_ <= best + 1e-15
    assert model.objective_ <= best + 1e-15
    assert np.all(model.predict(X) == 1)


# Parameters


@pytest.mark.parametrize("name", ["alpha", "tol", "direction_tol"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, -np.inf, -1e-300, 10**400])
def test_refused_numbers(name, value):
    refused(f"{name} must be finite and >=? 0, got ", *data(), **{name: value})


@pytest.mark.parametrize(
    "name",
    ["alpha", "tol", "max_iter", "memory", "direction_tol", "direction_max_iter"],
)
@pytest.mark.parametrize(
    "value",
    ["1", None, True, 1j, [1.0], np.ones(2), Decimal(1)],
    ids=lambda value: type(value).__name__,
)
def test_parameters_that_must_be_numbers(name, value):
    match = f"{name} must be (a number|an integer)( or 'auto')?, got .* of type "
    refused(match, *data(), error=TypeError, **{name: value})


@pytest.mark.parametrize("name", ["max_iter", "memory", "direction_max_iter"])
def test_refused_counts(name):
    refused(f"{name} must be finite and >= 1, got 0", *data(), **{name: 0})
    refused(f"{name} must be finite and >= 1, got -5", *data(), **{name: -5})
    match = f"{name} must be an integer, got 10.0 of type float"
    refused(match, *data(), error=TypeError, **{name: 10.0})


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"loss": "log"}, ValueError, "loss must be one of 'hinge', 'squared_hinge'"),
        ({"loss": None}, ValueError, "loss must be one of .*; got None"),
        ({"loss": ["hinge"]}, ValueError, r"loss must be one of .*; got \['hinge'\]"),
        ({"solver": "liblinear"}, ValueError, "solver must be one of 'auto', .*; got"),
        ({"solver": 3}, ValueError, "solver must be one of .*; got 3"),
        (
            {"solver": "lbfgs"},
            ValueError,
            "solver='lbfgs' does not support loss='hinge'.*'sublbfgs'",
        ),
        (
            {"solver": "alm", "loss": "squared_hinge"},
            ValueError,
            "solver='alm' does not support loss='squared_hinge'.*'newton-cg'",
        ),
        ({"fit_intercept": "no"}, TypeError, "fit_intercept must be True or False"),
        ({"fit_intercept": None}, TypeError, "fit_intercept must be True or False"),
        ({"fit_intercept": 2}, TypeError, "fit_intercept must be True or False, got 2"),
        ({"warm_start": 1}, TypeError, "warm_start must be True or False, got 1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None, a positive .* got 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be None or an integer, got 1.5"),
        ({"n_jobs": "all"}, TypeError, "n_jobs must be None or an integer, got 'all'"),
        ({"callback": 3}, TypeError, "callback must be callable or None, got 3"),
        ({"verbose": -1}, ValueError, "verbose must be finite and >= 0, got -1"),
        ({"verbose": "yes"}, TypeError, "verbose must be an integer, got 'yes'"),
        ({"verbose": None}, TypeError, "verbose must be an integer, got None"),
        ({"class_weight": "equal"}, ValueError, "class_weight must be .*'balanced'"),
        ({"class_weight": [1.0, 2.0]}, ValueError, "class_weight must be a dict"),
        ({"class_weight": {0: -1.0}}, ValueError, "class_weight must map .*: -1.0"),
        ({"class_weight": {0: np.nan}}, ValueError, "class_weight must map .* nan"),
        ({"class_weight": {0: np.inf}}, ValueError, "class_weight must map .* inf"),
        ({"class_weight": {0: "a"}}, ValueError, "class_weight must map .*'a'"),
        ({"class_weight": {0: 1j}}, ValueError, "class_weight must map .*1j"),
        ({"class_weight": {0: None}}, ValueError, "class_weight must map .*None"),
        ({"class_weight": {0: 0.0}}, ValueError, "class_weight leaves fewer than 2"),
        ({"class_weight": {0: 0, 1: 0}}, ValueError, "class_weight leaves fewer than"),
        ({"class_weight": {5: 1.0}}, ValueError, "not in class_weight"),
    ],
    ids=str,
)
def test_refused_parameters(params, error, match):
    refused(match, *data(), error=error, **params)


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": np.float32(ALPHA)},
        {"alpha": Fraction(1, 10)},
        {"tol": 0},
        {"tol": 1e-300},
        {"tol": 1e300},
        {"max_iter": 10**30},
        {"max_iter": np.int64(1)},
        {"memory": 10**9},
        {"direction_tol": 0},
        {"direction_tol": 1e300},
        {"direction_max_iter": 10**12},
        {"direction_max_iter": 1},
        {"fit_intercept": np.True_},
        {"warm_start": np.False_},
        {"n_jobs": -1},
        {"n_jobs": -1000},
        {"n_jobs": 10**9},
        {"n_jobs": np.int64(2)},
        {"verbose": False},
        {"class_weight": {0: 1e308, 1: 1e308}},
        {"class_weight": {0: 5e-324, 1: 5e-324}},
        {"class_weight": {0: np.float32(2), 1: True}},
        {"class_weight": {0: 1.0, 1: 1.0, 7: 3.0}},
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", ["auto", "sublbfgs", "subbfgs", "alm"])
def test_unusual_but_valid_parameters(params, solver):
    X, y = data()
    weights = None
    if "class_weight" in params:
        weights = np.array([float(params["class_weight"][label]) for label in y])
        weights /= weights.max()
    model = fit(X, y, solver=solver, **params)
    model.alpha = float(model.alpha)
    assert_right(model, X, y, weights)


def test_balanced_classes_whose_weights_overflow_in_sums():
    X, y = data()
    given = {"alpha": 0.01, "class_weight": "balanced"}
    expected = fit(X, y, **given)
    for weight in (1e308, 5e-324):
        model = SubLBFGSLinearSVC(**given).fit(X, y, np.full(len(y), weight))
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e10, 1e100, 1e300])
def test_huge_alpha(alpha, loss):
    X, y = data()
    model = fit(X, y, alpha=alpha, loss=loss)
    assert_encloses(model, 1.0)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1.0 / alpha)
    # Three quarters in one class: only the intercept counts.
    model = fit(X, y % 2 + np.arange(40) % 4 > 0, alpha=alpha, loss=loss)
    assert_encloses(model, 0.5 if loss == "hinge" else 0.75)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-8, 1e-20, 1e-100, 1e-300])
@pytest.mark.parametrize("separable", [True, False])
def test_tiny_alpha(alpha, loss, separable):
    X, y = data()
    if separable:
        X[:, 0] = np.where(y == 1, 1.0, -1.0) * (1.0 + np.abs(X[:, 0]))
    model = fit_or_message(X, y, alpha=alpha, loss=loss)
    if isinstance(model, str):
        assert "Values of X, y, alpha or costs are too extreme" in model
        assert alpha < 1e-10
        return
    # The objective rises with alpha, by less than alpha / 2 ||w||² of any w.
    target = np.where(y == 1, 1.0, -1.0)
    _, upper = enclose(X, target, 1e-6, loss=loss)
    assert_finite(model)
    assert model.objective_ - model.dual_gap_ <= upper
    if separable:
        assert model.objective_ - model.dual_gap_ <= 0.5 * alpha * (1.0 + 1e-9)


# --- numbers to be predicted ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
@pytest.mark.parametrize("make", [np.asarray, pd.Series, lambda y: y.tolist()])
@pytest.mark.parametrize(
    "estimator", [BMRMRegressor(), OnlineLBFGSRegressor(), BMRMRanker()], ids=repr
)
def test_times_are_no_numbers_to_predict(estimator, make, kind):
    X, _ = data()
    with pytest.raises(TypeError, match=r"must be numbers|must be a string or a"):
        estimator.fit(X, make(np.arange(40).astype(kind)))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-20, 1e20])
@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_numbers_of_any_size_are_predicted(loss, scale):
    X, _ = data()
    y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=40)
    model = BMRMRegressor(1e-4, loss=loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, scale * y)
    # The penalty is nearly nothing beside the loss, or the loss beside the penalty.
    if scale < 1.0:
        assert r2_score(y, model.predict(X) / scale) > 0.9
    assert model.objective_ - model.dual_gap_ <= model.objective_ < np.inf


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(5e-324),
        MulticlassHingeClassifier(5e-324),
        MulticlassHingeClassifier(label_cost=1e139 * (1.0 - np.eye(3))),
    ],
    ids=["tiny alpha", "tiny alpha of several", "huge costs"],
)
def test_what_breaks_numbers_down_is_named(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, size=20)
    with pytest.raises(ValueError, match="too extreme"):
        model.fit(X, y)
