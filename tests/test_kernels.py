"""Kernels against their NumPy twins, and what they refuse."""

import numpy as np
import pytest

from sklearn_subqn._core.kernels import hinge


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


@pytest.mark.parametrize("kernel", [hinge.value])
@pytest.mark.parametrize("place", range(3))
class TestArraysOfHinge:
    """What each kernel of the hinge makes of its first three arrays."""

    def test_read_only(self, kernel, place):
        arrays = rows(5)
        expected = kernel(*arrays)
        arrays[place].flags.writeable = False
        assert kernel(*arrays) == expected

    @pytest.mark.parametrize("n", [0, 4, 6])
    def test_wrong_length(self, kernel, place, n):
        arrays = list(rows(5))
        arrays[place] = np.ones(n)
        with pytest.raises(ValueError, match=r"arrays have .* rows"):
            kernel(*arrays)

    @pytest.mark.parametrize(
        "wrong",
        [np.ones((5, 1)), np.ones(10)[::2], np.ones(5, np.float32), np.ones(5, int)],
        ids=["two dimensions", "strides", "float32", "integers"],
    )
    def test_wrong_kind(self, kernel, place, wrong):
        arrays = list(rows(5))
        arrays[place] = wrong
        with pytest.raises(ValueError, match=r"Buffer|contiguous"):
            kernel(*arrays)
