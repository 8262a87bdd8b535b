"""Sums over many equal rows, each of which rounding changes alike."""

from __future__ import annotations

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    DualLoss,
    KindsOfLabels,
    LabelOrder,
    LabelPairs,
    Objective,
    Risk,
    Simplex,
    rounding,
)
from scipy import sparse

from sklearn_subqn import losses

N = 200_000
LONG = np.longdouble


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_values(name):
    """Errors remain below what the root of the number of terms is accounted for."""
    oracle = BINARY_LOSSES[name].oracle
    z, y, s = np.full(N, 0.3), np.ones(N), np.full(N, 1.0 / N)
    one = oracle.value(z[:1], y[:1], np.ones(1))
    expected = LONG(one) * LONG(s[0]) * N
    assert abs(oracle.value(z, y, s) - expected) <= rounding(N) * expected


LABELS = np.tile(np.array([1, 0, 0], dtype=np.uint8), (N, 1))
COSTS = np.ones((3, 3)) - np.eye(3)
JOINT = {
    "multiclass": (DualLoss(Simplex(COSTS)), np.zeros(N, dtype=np.intp)),
    "multilabel": (DualLoss(KindsOfLabels(np.ones((2, 3)))), LABELS),
    "label pairs": (DualLoss(LabelPairs(COSTS)), LABELS),
    "label order": (DualLoss(LabelOrder(np.ones((2, 3)))), LABELS),
}


def values(loss, z, targets, weights):
    """Yield values of a loss, and of its envelope."""
    yield loss.oracle.value(z, targets, weights)
    if loss.has_envelope:
        center = loss.oracle.neutral_variables(targets)
        yield loss.envelope(center, 0.7).oracle.value(z, targets, weights)


@pytest.mark.parametrize("name", JOINT)
def test_values_of_several_scores(name):
    loss, targets = JOINT[name]
    z, s = np.tile([0.3, 0.2, 0.1], (N, 1)), np.full(N, 1.0 / N)
    ones = values(loss, z[:1], targets[:1], np.ones(1))
    for value, one in zip(values(loss, z, targets, s), ones, strict=True):
        expected = LONG(one) * LONG(s[0]) * N
        assert abs(value - expected) <= rounding(N) * expected


@pytest.mark.parametrize(
    ("make", "n_outputs", "by_columns"),
    [
        (np.asarray, None, False),
        (np.asarray, 2, False),
        (sparse.csr_array, None, False),
        (sparse.csr_array, None, True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_columns(make, n_outputs, by_columns, dtype):
    design = Design(make(np.full((N, 3), 0.1, dtype=dtype)), n_outputs=n_outputs)
    if by_columns:
        assert design.by_columns.shape == (N, 3)
    dual = np.full((N, n_outputs) if n_outputs else N, 0.7 / N)
    one = LONG(0.7 / N) * N
    product = design.adjoint(dual)
    for found, entry in ((product[: design.n_coef], dtype(0.1)), (product[-1:], 1.0)):
        expected = one * LONG(entry)
        assert np.all(np.abs(found - expected) <= rounding(N) * expected)


def squared(m):
    return np.maximum(0, 1 + m) ** 2, 2 * np.maximum(0, 1 + m)


def hinge(m):
    return np.maximum(0, 1 + m), LONG(1 + m > 0)


def logistic(m):
    return np.log1p(np.exp(m)), 1 / (1 + np.exp(-m))


PAIRS = {
    "hinge": (losses.RocArea(), hinge),
    "squared hinge": (losses.SquaredRocArea(), squared),
    "logistic": (losses.LogisticRocArea(), logistic),
}


@pytest.mark.parametrize("name", PAIRS)
def test_cuts_of_pairs(name):
    """The tangent at some scores is no higher, and lower by rounding only."""
    loss, definition = PAIRS[name]
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    s = np.full(N, 1.0 / N)
    X = np.where(y > 0.0, 0.3, 0.1)[:, np.newaxis]
    risk = Risk(Design(X, fit_intercept=False), loss, y, s)
    cut = Objective(risk, L2(1), 1.0).at(np.ones(1)).cut
    m = LONG(0.1) - LONG(0.3)
    value, slope = definition(m)
    total = LONG(s[0]) * N
    size = risk.column_sizes[0] * cut.error
    for w in (-1.0, 0.0, 1.0, 2.0):
        tangent = total * (value + slope * m * (LONG(w) - 1))
        bound = cut.normal[0] * LONG(w) + LONG(cut.offset) - size * abs(LONG(w))
        assert bound <= tangent
        assert bound >= tangent - 20.0 * N * np.finfo(float).eps * (1.0 + abs(w))
