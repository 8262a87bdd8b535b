"""Memory of fits: arrays of the size of the coefficients, and rows after the fit."""

import gc
import tracemalloc
from functools import partial

import numpy as np
import pytest
from _door import Design
from scipy import sparse

from sklearn_subqn import (
    BMRMRegressorCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    OnlineLBFGSClassifier,
)
from sklearn_subqn.svm import LinearSVC


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (LinearSVC(loss="hinge", tol=0.1), 3.0),
        (MulticlassHingeClassifier(alpha=0.02), 10.5),
    ],
    ids=["one against the rest", "joint"],
)
def test_text_takes_few_arrays_of_the_size_of_the_coefficients(model, most):
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 5000), density=0.009, format="csr", rng=rng)
    y = rng.integers(20, size=500)
    # Modules that the first fit loads do not count.
    model.fit(X, y)
    assert peak_of(lambda: model.fit(X, y)) <= most * model.coef_.nbytes


def test_streams_begin_with_few_arrays_of_all_columns():
    """Six numbers for each column are kept, and the start has three zeros."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((50, 2**16), density=2e-4, format="csr", rng=rng)
    y = rng.integers(2, size=50)
    OnlineLBFGSClassifier().partial_fit(X, y, classes=[0, 1])
    peak = peak_of(lambda: OnlineLBFGSClassifier().partial_fit(X, y, classes=[0, 1]))
    assert peak <= 9.7 * 8 * 2**16


def peak_of(call):
    """The largest number of bytes in use during a call."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_rows_without_a_penalty_on_all_features_are_released_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = L1LogisticOWLQN(alpha=0.01, penalty_factor=[0.0, 1.0, 1.0])

    def n_designs():
        return sum(isinstance(each, Design) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = n_designs()
        model.fit(X, X[:, 0] + rng.normal(size=60) > 0.0)
        assert n_designs() == before
    finally:
        gc.enable()


def test_folds_release_training_rows_before_test_rows_are_copied():
    """Log losses hold the training rows; squared errors divide no copy by scales."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    y = X[:, 0] + rng.normal(size=len(X))
    for search, targets, most in (
        (L1LogisticOWLQNCV([1e-2, 1e-3], l1_ratio=0.0, cv=2), y > 0.0, 0.75),
        (BMRMRegressorCV(10, penalty="l1", cv=2), y, 0.85),
    ):
        # Modules that the first fit loads do not count.
        search.fit(X[:100], targets[:100])
        assert peak_of(partial(search.fit, X, targets)) <= most * X.nbytes


def test_folds_do_not_store_coefficients_that_are_larger_than_the_rows():
    rng = np.random.default_rng(0)
    X = sparse.random(200, 20_000, 1e-3, random_state=0, format="csr")
    y = rng.integers(0, 4, X.shape[0])
    search = L1LogisticOWLQNCV(
        np.geomspace(1e-1, 1e-2, 15), l1_ratio=0.0, cv=2, tol=1e-2, scoring="accuracy"
    ).fit(X, y)
    assert peak_of(partial(search.fit, X, y)) <= 10 * search.coef_.nbytes
