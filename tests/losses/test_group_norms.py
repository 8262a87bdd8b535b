"""Norms of groups against their definitions, and conjugates by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from _door import GroupPenalty
from scipy import optimize

LABELS = np.array([0, 1, 0, 2, 1, 1])
KINDS = {
    "norms": ([0.0, 0.0, 0.0], [0.7, 1.2, 0.4], [0.0, 0.0, 0.0]),
    "elastic": ([0.0, 0.0, 0.0], [0.7, 1.2, 0.4], [0.5, 0.2, 1.0]),
    "sparse": ([0.3, 0.2, 0.1], [0.7, 1.2, 0.4], [0.0, 0.0, 0.0]),
    "all": ([0.3, 0.2, 0.1], [0.7, 1.2, 0.4], [0.5, 0.2, 1.0]),
}
SIDES = {"any": None, "signs": np.array([1.0, 0.0, -1.0, 1.0, 1.0, 0.0])}


def penalty_of(kind, side):
    return GroupPenalty(LABELS, *map(np.array, KINDS[kind]), SIDES[side])


def by_definition(kind, w):
    total = 0.0
    for g, (a, b, c) in enumerate(zip(*KINDS[kind], strict=True)):
        v = w[g == LABELS]
        total += a * np.abs(v).sum() + b * np.linalg.norm(v) + c / 2 * v @ v
    return total


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_prox_and_conjugate_are_those_of_the_definition(kind, side):
    rng = np.random.default_rng(0)
    omega = penalty_of(kind, side)
    signs = np.zeros(6) if SIDES[side] is None else SIDES[side]
    for size in (0.5, 2.0, 8.0):
        v = size * rng.normal(size=7)
        w = omega.prox(v, 0.6)
        assert w[6] == v[6]
        assert omega.contains(w)
        near = w[:6]
        np.testing.assert_allclose(omega.value(w), by_definition(kind, near))
        # No point near or far is better than the proximal one.
        trials = near + 10.0 ** rng.uniform(-4, 1, (400, 1)) * rng.normal(size=(400, 6))
        trials = np.where(signs * trials < 0.0, 0.0, trials)
        trials[:200] *= rng.random((200, 6)) < 0.5
        best = 0.6 * by_definition(kind, near) + 0.5 * np.sum((near - v[:6]) ** 2)
        for trial in trials:
            value = 0.6 * by_definition(kind, trial)
            assert best <= value + 0.5 * np.sum((trial - v[:6]) ** 2) + 1e-12
        # v - prox(v) is a subgradient of 0.6 Omega there: Fenchel and Young.
        u = (v[:6] - near) / 0.6
        np.testing.assert_allclose(
            omega.conjugate(u * (1.0 - 1e-12)), u @ near - omega.value(w), atol=1e-9
        )
        smallest = omega.smallest_subgradient(w, np.append(-u, 0.0), 1.0)
        np.testing.assert_allclose(smallest, 0.0, atol=1e-12)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["elastic", "all"])
def test_conjugates_with_squares_have_these_derivatives(kind, side):
    rng = np.random.default_rng(1)
    omega = penalty_of(kind, side)
    for _ in range(5):
        v = 3.0 * rng.normal(size=6)
        w = omega.conjugate_gradient(v)
        numeric = optimize.approx_fprime(v, omega.conjugate, 1e-7)
        np.testing.assert_allclose(w, numeric, atol=1e-5)
        normals = rng.normal(size=(3, 6))
        columns = [(omega.conjugate_gradient(v + 1e-6 * a) - w) / 1e-6 for a in normals]
        gram = omega.conjugate_gram(v, normals)
        np.testing.assert_allclose(gram, normals @ np.array(columns).T, atol=1e-4)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_scaled_points_are_feasible_and_no_larger_ones_are(kind, side):
    rng = np.random.default_rng(2)
    omega = penalty_of(kind, side)
    for _ in range(20):
        v, radius = 10.0 * rng.normal(size=6), 0.1 * rng.random(6)
        c = omega.scaling_within(v, radius)
        worst = 0.0
        for _ in range(50):
            u = v + rng.choice([-1.0, 1.0], 6) * radius
            worst = max(worst, omega.conjugate(1.0000001 * c * u))
            assert omega.conjugate(c * u) == 0.0
            assert omega.conjugate(u) <= omega.conjugate_within(v, radius)
        assert worst > 0.0 or c > 0.999
        alpha = omega.critical(v)
        assert omega.conjugate(v / (1.000001 * alpha)) == 0.0
        assert omega.conjugate(v / (0.999999 * alpha)) > 0.0


def test_scaled_slopes_of_groups_in_any_order_are_feasible():
    rng = np.random.default_rng(23)
    for _ in range(30):
        labels = rng.permutation(np.arange(12) // 2)
        l1, norm = rng.uniform(0.1, 1.0, (2, 6))
        penalty = GroupPenalty(labels, l1, norm, np.zeros(6))
        v = rng.standard_normal(12) * 10.0 ** rng.uniform(-1.0, 1.0, 12)
        c = penalty.scaling(v)
        assert penalty.conjugate(c * v) == 0.0
        assert c == 1.0 or penalty.conjugate(1.001 * c * v) == np.inf
