"""Bounds against exact fractions: no rounding error makes a bound too large."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Bounded,
    Cut,
    Design,
    Dual,
    ElasticNet,
    regression_losses,
)
from _problems import binary_objective, gaussian_data
from numpy.testing import assert_allclose

from sklearn_subqn._core.objectives.free_columns import _Inverse


def exact(numbers):
    return [Fraction(float(x)) for x in np.ravel(numbers)]


def dot(a, b):
    return sum((x * y for x, y in zip(exact(a), exact(b), strict=True)), Fraction(0))


def solved(matrix, right):
    """Return the solution of a system of fractions, by Gauss and Jordan."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        pivot[:] = [x / pivot[i] for x in pivot]
        for other in rows:
            if other is not pivot:
                other[:] = [x - other[i] * p for x, p in zip(other, pivot, strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("m", [2, 3, 40])
def test_mixed_cuts_are_below_the_mixture_of_the_cuts(m):
    """Offsets are lowered, and errors raised, by the rounding errors of the sums."""
    rng = np.random.default_rng(m)
    for _ in range(50):
        shares = rng.dirichlet(np.ones(m))
        shares[-1] += 1.0 - shares.sum()
        normals = rng.normal(size=(m, 3))
        # Each normal is exact, and at most its norm in columns of size one.
        norms = np.abs(normals).max(axis=1)
        offsets = rng.normal(size=m) + rng.choice([-10.0, 10.0])
        others = np.column_stack([offsets, np.zeros(m), norms])
        cut = Cut.mixed(shares, normals, others)
        # The exact shares sum to one.
        total = sum(exact(shares))
        assert Fraction(cut.offset) <= dot(shares, offsets) / total
        for j in range(3):
            a = dot(shares, normals[:, j]) / total
            assert abs(a - Fraction(cut.normal[j])) <= Fraction(cut.error)


def test_mixed_duals_are_below_the_mixture_of_the_duals():
    rng = np.random.default_rng(0)
    X, y = gaussian_data(rng, 6, 2)
    risk = binary_objective(X, y).risk
    u, v = rng.normal(size=(2, 6))
    for share in rng.random(100):
        a, b = rng.normal(size=2) + 10.0
        mixed = Dual.mixed(risk, share, Dual(u, offset=a), Dual(v, offset=b))
        assert_allclose(mixed.u, (1.0 - share) * u + share * v, rtol=1e-14)
        part = Fraction(share)
        chord = (1 - part) * Fraction(a) + part * Fraction(b)
        assert Fraction(mixed.offset) <= chord


def test_cuts_are_below_the_exact_conjugate():
    """R* of the hinge is the sum of y_i u_i, exactly, whose float sum may be less."""
    rng = np.random.default_rng(1)
    X, y = gaussian_data(rng, 300, 2)
    objective = binary_objective(X, y, fit_intercept=False)
    for _ in range(30):
        u = -y * objective.weights * rng.random(300)
        cut = objective.cut(Dual(u))
        assert Fraction(cut.offset) <= -dot(y, u)
        sums = [dot(x, u) for x in X.T]
        sizes = exact(objective.column_sizes)
        for a, normal, size in zip(sums, exact(cut.normal), sizes, strict=True):
            assert abs(a - normal) <= Fraction(cut.error) * size


def test_cuts_of_imbalanced_duals_hold_for_every_intercept():
    """The hinge of features that are zero is least at the sign of the larger class."""
    n_up, n_down = 5001, 4999
    y = np.repeat([1.0, -1.0], [n_up, n_down])
    objective = binary_objective(np.zeros((len(y), 1)), y)
    cut = objective.cut(Dual(-y * objective.weights))
    assert cut.is_balanced(1)
    assert cut.offset <= 2.0 * n_down / len(y)
    assert cut.offset > 0.998


def test_cuts_at_far_points_hold_for_every_intercept():
    """All rows are far on their wrong side, and one class is a little heavier."""
    y = np.repeat([1.0, -1.0], 10)
    weights = np.where(y > 0.0, 1.0001, 1.0) / 20.001
    objective = binary_objective(-y[:, np.newaxis], y, weights=weights, alpha=1e-9)
    point = objective.at(np.array([1e6, 0.0]))
    cut = point.cut_of(point.gradient)
    assert cut.is_balanced(1)
    # With coefficients of zero the intercept takes the heavier class.
    assert cut.offset <= 2.0 * weights[y < 0.0].sum()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_cuts_at_far_points_are_below_the_exact_tangent(sign):
    """Terms of the height cancel, the tangent of the hinge is known exactly."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = gaussian_data(rng, 20, 3)
        objective = binary_objective(X, y, alpha=1e-9, fit_intercept=False)
        point = objective.at(sign * 1e6 * rng.random(3))
        cut, u = point.cut_of(point.gradient), point.dual
        assert Fraction(cut.offset) <= -dot(y, u)
        # And hardly lower.
        assert cut.offset + float(cut.normal @ point.w) >= (1.0 - 1e-12) * point.risk
        sizes = exact(objective.column_sizes)
        for x, normal, size in zip(X.T, exact(cut.normal), sizes, strict=True):
            assert abs(dot(x, u) - normal) <= Fraction(cut.error) * size


def test_cuts_where_the_penalty_hides_the_gradient_of_the_risk():
    """A gradient of 1e-12 is lost in a penalty of 1e12, and is nothing in the cut."""
    rng = np.random.default_rng(0)
    X, y = gaussian_data(rng, 20, 1)
    loss = BINARY_LOSSES["log_loss"]
    objective = binary_objective(
        1e-12 * X, y, loss=loss, alpha=1.0, fit_intercept=False
    )
    for w in (np.array([1e12]), np.array([-1e12])):
        point = objective.at(w)
        cut = point.cut_of(point.gradient)
        assert cut.offset <= objective.at(np.zeros(1)).risk
        slack = cut.error * float(np.abs(w) @ objective.column_sizes)
        assert cut.offset + float(cut.normal @ w) - slack <= point.risk


@pytest.mark.parametrize("error", [0.0, 1e-13, 1e-3])
@pytest.mark.parametrize("alpha", [0.05, 20.0])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_values_of_cuts_hold_for_every_normal_within_the_error(l1_ratio, alpha, error):
    """The worst normal is known, and so is the best share of the cut beside R >= 0."""
    rng = np.random.default_rng(2)
    X, y = gaussian_data(rng, 30, 5)
    X *= np.logspace(-1, 1, 5)
    objective = binary_objective(X, y, fit_intercept=False, alpha=alpha)
    objective = objective.with_regularizer(ElasticNet(5, l1_ratio))
    assert objective.risk.infimum == 0.0
    strength = Fraction(alpha)
    limit = strength * Fraction(l1_ratio)
    for _ in range(30):
        cut = Cut(1.2 * alpha * rng.normal(size=5), 0.5, error, 1.0)
        sizes = exact(objective.column_sizes)
        worst = [
            abs(a) + Fraction(error) * size
            for a, size in zip(exact(cut.normal), sizes, strict=True)
        ]
        # The least value of alpha rho |w| + (1 - rho) alpha w² / 2 - |a w|.
        excess = sum(max(a - limit, 0) ** 2 for a in worst)
        share = min(limit / max(worst), 1)
        best = share / 2
        if l1_ratio < 1.0:
            rest = 2 * (1 - Fraction(l1_ratio)) * strength
            best = max(best, Fraction(1, 2) - excess / rest)
        bound = objective.dual_value(cut)
        assert Fraction(bound) <= best
        assert_allclose(bound, float(best), rtol=1e-9)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_changes_of_duals_that_correct_sums_are_bounded(n_columns):
    """By the inverse of the exact X^T D X: |x_i (X^T D X)^-1 e| for all |e| <= lost."""
    rng = np.random.default_rng(n_columns)
    for _ in range(100):
        X, weights = (
            rng.normal(size=(n_columns + 1, n_columns)),
            rng.random(n_columns + 1),
        )
        lost = 1e-16 * rng.random(n_columns)
        inverse = _Inverse(Design(X, fit_intercept=False), weights)
        assert not inverse.is_completed()
        found = inverse.largest_changes(lost, 0.0)
        gram = [[dot(weights * a, b) for b in X.T] for a in X.T]
        for x, bound in zip(X, found, strict=True):
            change = solved(gram, exact(x))
            worst = sum(abs(c) * e for c, e in zip(change, exact(lost), strict=True))
            assert Fraction(bound) >= worst
            # A single column has no slack but rounding.
            if n_columns == 1:
                assert bound <= float(worst) * (1.0 + 1e-14)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_shares_of_cuts_that_cancel_against_the_infimum_are_not_too_large(sign):
    """Under an L1 norm; the infimum of Poisson's loss is far below zero."""
    rng = np.random.default_rng(4)
    X, y = gaussian_data(rng, 30, 1)
    counts, loss = 1e3 * (2.0 + y), regression_losses(quantile=0.3)["poisson"]
    for _ in range(200):
        alpha = float(rng.uniform(0.1, 1.0))
        objective = binary_objective(
            X, counts, loss=loss, alpha=alpha, fit_intercept=False
        ).with_regularizer(ElasticNet(1, 1.0))
        infimum = objective.risk.infimum
        slope = alpha * rng.uniform(1.5, 3.0)
        # The cut and the infimum have a sum near zero.
        offset = infimum * (1.0 - slope / alpha)
        cut = Cut(np.array([sign * slope]), float(offset))
        share = Fraction(alpha) / Fraction(slope)
        best = share * Fraction(offset) + (1 - share) * Fraction(infimum)
        bound = objective.dual_value(cut)
        assert Fraction(bound) <= best
        assert bound >= float(best) - 1e-14 * abs(infimum)


def test_values_of_cuts_where_only_one_point_is_allowed():
    """Conjugates are negative there, and larger than the result."""
    rng = np.random.default_rng(3)
    X, y = gaussian_data(rng, 30, 1)
    objective = binary_objective(X, y, fit_intercept=False, alpha=0.1)
    for w in rng.uniform(1.0, 2.0, size=(200, 1)):
        at_w = objective.with_regularizer(Bounded(0.0, w, w))
        cut = Cut(rng.uniform(1.0, 2.0, 1), -float(rng.uniform(0.0, 0.1)))
        (a,), (x,) = exact(cut.normal), exact(w)
        value = a * x + Fraction(0.1) * x * x / 2 + Fraction(cut.offset)
        bound = at_w.dual_value(cut)
        assert Fraction(bound) <= value
        assert_allclose(bound, float(value), rtol=1e-13)
