"""Kernels against their NumPy twins, and what they refuse."""

import numpy as np
import pytest

from sklearn_subqn._core.kernels import hinge, piecewise


def rows(n, seed=0):
    """Return scores, targets and weights, each of shape (n,); some scores at kinks."""
    rng = np.random.default_rng(seed)
    targets = rng.choice([-1.0, 1.0], n)
    scores = 2 * rng.standard_normal(n)
    scores[::3] = targets[::3]
    return scores, targets, rng.random(n)


@pytest.mark.parametrize("n", [0, 1, 2, 100, 1001])
def test_hinge_value(n):
    scores, targets, weights = rows(n)
    expected = weights @ np.maximum(1 - targets * scores, 0)
    assert hinge.value(scores, targets, weights) == pytest.approx(expected, rel=1e-13)


def test_read_only():
    arrays = rows(5)
    expected = hinge.value(*arrays)
    for array in arrays:
        array.flags.writeable = False
    assert hinge.value(*arrays) == expected


# The parameters of each kernel in order: a for arrays of n rows, s for numbers.
PARAMETERS = [
    (hinge.value, "aaa"),
    (hinge.subgradient, "aaasa"),
    (hinge.kinks_ahead, "aaaasaa"),
    (hinge.squared_line, "aaaaa"),
    (hinge.squared_slope, "aaas"),
    (hinge.envelope_dual, "aaaasa"),
    (hinge.envelope_curvature, "aaaassa"),
    (hinge.envelope_line, "aaaasaa"),
    (hinge.envelope_slope, "aaass"),
    (piecewise.minimize, "ssaaa"),
]
each_array = pytest.mark.parametrize(
    ("kernel", "kinds", "place"),
    [
        pytest.param(kernel, kinds, place, id=f"{kernel.__name__}-{place}")
        for kernel, kinds in PARAMETERS
        for place, kind in enumerate(kinds)
        if kind == "a"
    ],
)


def call(kernel, kinds, place, wrong):
    """Call a kernel with ones and arrays of 5 ones, but for one parameter."""
    arguments = [np.ones(5) if kind == "a" else 1.0 for kind in kinds]
    arguments[place] = wrong
    return kernel(*arguments)


@each_array
@pytest.mark.parametrize("n", [0, 4, 6])
def test_wrong_length(kernel, kinds, place, n):
    with pytest.raises(ValueError, match=r"arrays of|kinks, but"):
        call(kernel, kinds, place, np.ones(n))


@each_array
@pytest.mark.parametrize(
    "wrong",
    [np.ones((5, 1)), np.ones(10)[::2], np.ones(5, np.float32), np.ones(5, int)],
    ids=["two dimensions", "strides", "float32", "integers"],
)
def test_wrong_kind(kernel, kinds, place, wrong):
    with pytest.raises(ValueError, match=r"Buffer|contiguous"):
        call(kernel, kinds, place, wrong)
