"""The kernel of the multinomial loss against its definition in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.kernels import softmax

each_shape = pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 2), (300, 3), (40, 26)])
each_scale = pytest.mark.parametrize("scale", [1e-12, 1.0, 30.0, 1e4])


def rows(n, k, scale):
    """Return scores, their changes, classes and weights, some of them zero."""
    rng = np.random.default_rng(n + k)
    scores, change = scale * rng.standard_normal((n, k)), rng.standard_normal((n, k))
    weights = rng.random(n)
    weights[::7] = 0.0
    return scores, change, rng.integers(0, k, n).astype(float), weights


def definition(z):
    """Return probabilities, and logarithms of the sums of exponentials."""
    z = z.astype(np.longdouble)
    largest = z.max(axis=1, keepdims=True)
    e = np.exp(z - largest)
    total = e.sum(axis=1, keepdims=True)
    return e / total, (largest + np.log(total))[:, 0]


@each_shape
@each_scale
def test_probabilities_and_value(n, k, scale):
    scores, _, classes, weights = rows(n, k, scale)
    p, logs = definition(scores)
    out = np.empty((n, k))
    softmax.probabilities(scores, out)
    # Exponentials change by as much as the rounding of scores up to 700.
    assert_allclose(out, p.astype(float), rtol=2e-13, atol=1e-300)
    losses = logs - scores[np.arange(n), classes.astype(int)]
    value = softmax.value(scores, classes, weights)
    assert value == pytest.approx(float(weights @ losses), rel=1e-14)


@each_shape
@each_scale
def test_slope_on_a_line(n, k, scale):
    scores, change, classes, weights = rows(n, k, scale)
    p, _ = definition(scores + 0.7 * change)
    mean = (p * change).sum(axis=1)
    slopes = weights * (mean - change[np.arange(n), classes.astype(int)])
    squares = weights * (p * (change - mean[:, np.newaxis]) ** 2).sum(axis=1)
    slope, second = softmax.on_line(scores, change, classes, weights, 0.7)
    size = float(np.abs(slopes).sum())
    assert slope == pytest.approx(float(slopes.sum()), rel=0.0, abs=1e-14 * size)
    assert second == pytest.approx(float(squares.sum()), rel=1e-13, abs=1e-300)


@each_shape
@each_scale
def test_subgradients_sum_to_zero(n, k, scale):
    scores, _, classes, weights = rows(n, k, scale)
    p, _ = definition(scores)
    own = np.arange(n), classes.astype(int)
    p[own] = 0.0
    p[own] = -p.sum(axis=1)
    out = np.empty((n, k))
    softmax.subgradient(scores, classes, weights, out)
    expected = weights[:, np.newaxis] * p
    assert_allclose(out, expected.astype(float), rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize(
    ("n", "d", "k"), [(0, 3, 2), (3, 1, 2), (50, 11, 4), (2000, 3, 3)]
)
def test_blocks_of_classes(n, d, k):
    rng = np.random.default_rng(n)
    X, weights = rng.standard_normal((n, d)), rng.random(n)
    p = rng.dirichlet(np.ones(k), n)
    blocks = p[:, :, np.newaxis] * (np.eye(k) - p[:, np.newaxis])
    expected = 1.0 + np.einsum("i,iab,ij,il->abjl", weights, blocks, X, X)
    out = np.ones((k, k, d, d))
    softmax.add_gram(X, p, weights, out)
    assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_what_is_given_is_checked():
    z, classes, one = np.ones((2, 3)), np.zeros(2), np.ones(2)
    with pytest.raises(ValueError, match="differ in length"):
        softmax.probabilities(z, np.ones((2, 2)))
    with pytest.raises(ValueError, match="class 3 is none of 3"):
        softmax.value(z, classes + 3.0, one)
    with pytest.raises(ValueError, match="differ in length"):
        softmax.subgradient(z, classes, one[:1], z.copy())
    with pytest.raises(ValueError, match="differ in length"):
        softmax.on_line(z, np.ones((2, 2)), classes, one, 1.0)
    with pytest.raises(ValueError, match="differ in length"):
        softmax.add_gram(np.ones((3, 4)), z, one, np.ones((3, 3, 4, 4)))
    with pytest.raises(ValueError, match="differ in length"):
        softmax.add_gram(np.ones((2, 4)), z, one, np.ones((3, 3, 4, 3)))
