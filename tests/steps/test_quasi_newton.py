"""Estimates of the inverse Hessian against their defining formulas."""

import numpy as np
import pytest
from _door import DenseInverseHessian, LimitedMemoryInverseHessian
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.steps.quasi_newton import Pair, has_curvature


def displacements(seed, n_pairs, q=6):
    """Pairs (dw, dg) of a random convex quadratic, with a little noise."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(q, q))
    hessian = root @ root.T + np.eye(q)
    pairs = []
    for dw in rng.normal(size=(n_pairs, q)):
        dg = hessian @ dw + 0.1 * rng.normal(size=q)
        pairs.append((dw, dg))
    return pairs


def product_formula(B, pairs):
    """Apply (2.24) once for each pair; unrolled this is (2.25)."""
    eye = np.eye(len(B))
    for dw, dg in pairs:
        rho = 1.0 / (dw @ dg)
        A = eye - rho * np.outer(dg, dw)
        B = A.T @ B @ A + rho * np.outer(dw, dw)
    return B


def scaled_identity(pair):
    dw, dg = pair
    return (dw @ dg) / (dg @ dg) * np.eye(len(dw))


def matrix(estimate, q=6):
    return np.column_stack([estimate.apply(column) for column in np.eye(q)])


def updated(estimate, pairs):
    for dw, dg in pairs:
        estimate.update(dw, dg)
    return estimate


@pytest.mark.parametrize("n_pairs", [1, 2, 9])
def test_dense_estimate_is_the_product_formula(n_pairs):
    pairs = displacements(0, n_pairs)
    estimate = updated(DenseInverseHessian(6), pairs)
    # The identity is scaled once, by the first pair.
    expected = product_formula(scaled_identity(pairs[0]), pairs)
    assert_allclose(matrix(estimate), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("memory", [1, 3, 5])
@pytest.mark.parametrize("n_pairs", [1, 2, 3, 4, 12])
def test_limited_memory_is_the_product_formula_of_the_last_pairs(memory, n_pairs):
    pairs = displacements(1, n_pairs)
    estimate = updated(LimitedMemoryInverseHessian(6, memory), pairs)
    # The identity is scaled anew, by the last pair.
    expected = product_formula(scaled_identity(pairs[-1]), pairs[-memory:])
    assert_allclose(matrix(estimate), expected, rtol=1e-10, atol=1e-12)


def test_enough_memory_equals_dense_where_the_scaling_does():
    pairs = displacements(2, 8)
    (dw, dg), (first_dw, first_dg) = pairs[-1], pairs[0]
    ratio = (first_dw @ first_dg) / (first_dg @ first_dg) * (dg @ dg) / (dw @ dg)
    pairs[-1] = ratio * dw, dg
    dense = updated(DenseInverseHessian(6), pairs)
    limited = updated(LimitedMemoryInverseHessian(6, 8), pairs)
    assert_allclose(matrix(limited), matrix(dense), rtol=1e-10, atol=1e-12)


ESTIMATES = {
    "dense": lambda: DenseInverseHessian(6),
    "limited": lambda: LimitedMemoryInverseHessian(6, 4),
}


@pytest.fixture(params=ESTIMATES)
def estimate(request):
    return ESTIMATES[request.param]()


def test_secant_equation_symmetry_and_definiteness(estimate):
    for dw, dg in displacements(3, 20):
        estimate.update(dw, dg)
        assert_allclose(estimate.apply(dg), dw, rtol=1e-9, atol=1e-11)
        B = matrix(estimate)
        assert_allclose(B, B.T, atol=1e-12 * np.abs(B).max())
        assert np.linalg.eigvalsh(B).min() > 0.0


def test_definiteness_with_hardly_any_curvature(estimate):
    """As between two points on the same kinks: dg is nearly orthogonal to dw."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        dw, dg = rng.normal(size=(2, 6))
        dg -= (dg @ dw - 1e-6) / (dw @ dw) * dw
        estimate.update(dw, dg)
        v = rng.normal(size=6)
        assert v @ estimate.apply(v) > 0.0


def test_identity_until_the_first_update_and_after_a_reset(estimate):
    v = np.random.default_rng(5).normal(size=6)
    assert estimate.pristine
    assert_array_equal(estimate.apply(v), v)
    pairs = displacements(5, 6)
    updated(estimate, pairs)
    assert not estimate.pristine
    before = estimate.apply(v)
    estimate.reset()
    assert estimate.pristine
    assert_array_equal(estimate.apply(v), v)
    # Nothing of the time before the reset comes back.
    assert_allclose(updated(estimate, pairs).apply(v), before, rtol=1e-12)
    estimate.reset()
    dw, dg = pairs[0]
    estimate.update(dw, dg)
    expected = product_formula(scaled_identity(pairs[0]), pairs[:1]) @ v
    assert_allclose(estimate.apply(v), expected, rtol=1e-10)


def test_arguments_are_only_read_and_not_kept(estimate):
    (dw, dg), *_ = displacements(6, 1)
    v = np.random.default_rng(6).normal(size=6)
    copies = dw.copy(), dg.copy(), v.copy()
    for array in (dw, dg, v):
        array.flags.writeable = False
    estimate.update(dw, dg)
    product = estimate.apply(v)
    for array in (dw, dg, v):
        array.flags.writeable = True
    assert_array_equal(np.array([dw, dg, v]), np.array(copies))
    expected = product.copy()
    for array in (dw, dg, product):
        array[:] = np.nan
    assert_array_equal(estimate.apply(v), expected)


@pytest.mark.parametrize("size", [1e-200, 1e-154, 1e-100, 1.0, 1e100])
@pytest.mark.parametrize("stretch", [1e-150, 1.0, 1e50])
def test_pairs_of_positive_curvature_have_a_scale(size, stretch):
    """Those whose products underflow have none, nor those along which slopes fall."""
    dw, dg = size * np.array([1.0, 2.0]), size * stretch * np.array([1.0, 1.0])
    products = float(dw @ dg), float(dg @ dg)
    assert has_curvature(dw, dg) == (min(products) > 1e-307)
    assert not has_curvature(-dw, dg)
    assert not has_curvature(0.0 * dw, dg)
    if has_curvature(dw, dg):
        scale = Pair(dw, dg, products[0]).scale
        assert scale == pytest.approx(1.5 / stretch, rel=1e-9)
