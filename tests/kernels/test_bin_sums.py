"""The kernel of sums by bins against its NumPy twin, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import bin_sums

REACH, ORDERS = 4, 3


def data():
    rng = np.random.default_rng(0)
    starts = np.array([0, 6, 6, 13])
    positions = [np.sort(rng.choice(15, n, replace=False)) for n in (6, 7)]
    sources = rng.normal(size=(2, 13, ORDERS))
    table = rng.normal(size=(2 * REACH + 1, ORDERS))
    return np.concatenate(positions), starts, sources, table


@pytest.mark.parametrize("line", [False, True])
def test_derivatives(line):
    positions, starts, sources, table = data()
    out = np.ones_like(sources)
    bin_sums.derivatives(positions, starts, sources, table, 0.5, line, out)
    expected = np.ones_like(sources)
    for g in range(3):
        for k in range(starts[g], starts[g + 1]):
            for i in range(starts[g], starts[g + 1]):
                distance = positions[k] - positions[i]
                row = np.zeros(ORDERS)
                if abs(distance) <= REACH:
                    row = table[distance + REACH]
                elif line and distance > 0:
                    row[:2] = 0.5 * distance, 1.0
                elif line:
                    # All derivatives of the exponential are alike, of whatever order.
                    expected[:, k] += np.exp(0.5 * distance) * sources[:, [i]].sum(-1)
                for p in range(ORDERS):
                    for q in range(ORDERS - p):
                        expected[:, k, p] += row[p + q] * sources[:, i, q]
    assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_polynomials():
    rng = np.random.default_rng(1)
    coefficients, x = rng.normal(size=(4, 3)), rng.normal(size=20)
    cells, out = rng.integers(0, 4, 20), np.empty(20)
    bin_sums.polynomials(coefficients, cells, x, out)
    a, b, c = coefficients[cells].T
    assert_allclose(out, a + b * x + c * x * x, rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("positions", np.zeros(13, dtype=np.intp)),
        ("positions", np.arange(12)),
        ("starts", np.array([0, 14])),
        ("starts", np.array([0, 9, 6, 13])),
        ("starts", np.empty(0, dtype=np.intp)),
        ("sources", np.zeros((2, 13, 2))),
        ("sources", np.zeros((1, 13, ORDERS))),
        ("table", np.zeros((8, ORDERS))),
        ("out", np.zeros((2, 12, ORDERS))),
    ],
)
def test_what_derivatives_refuse(name, wrong):
    given = dict(zip(("positions", "starts", "sources", "table"), data(), strict=True))
    given |= {"width": 0.5, "line": True, "out": np.zeros((2, 13, ORDERS))}
    given[name] = wrong
    with pytest.raises(ValueError, match=r"must|differ in length"):
        bin_sums.derivatives(*given.values())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cells", np.array([0, 4])),
        ("cells", np.array([-1, 0])),
        ("offsets", np.zeros(3)),
        ("out", np.zeros(1)),
    ],
)
def test_what_polynomials_refuse(name, wrong):
    given = {"coefficients": np.ones((4, 3)), "cells": np.array([0, 1])}
    given |= {"offsets": np.zeros(2), "out": np.empty(2)}
    given[name] = wrong
    with pytest.raises(ValueError, match=r"must|differ in length"):
        bin_sums.polynomials(*given.values())
