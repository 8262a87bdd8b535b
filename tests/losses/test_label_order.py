"""Mean squared hinge of pairs of labels and of a threshold, against enumeration."""

from itertools import product

import numpy as np
import pytest
from _door import L2, Design, DualLoss, LabelOrder, Objective, Risk
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from sklearn_subqn import MultilabelHingeClassifier

each_form = pytest.mark.parametrize("threshold", [False, True])
seeds = given(seed=st.integers(0, 2**31))


def pairs_of(labels, costs, threshold):
    """Weight, margin, and numbers of the lower and the higher score, of each pair."""
    relevant, irrelevant = np.flatnonzero(labels), np.flatnonzero(labels == 0)
    n_labels, share = len(labels), 0.5 if threshold else 1.0
    found = [
        (share / (len(relevant) * len(irrelevant)), costs[1, h] + costs[0, j], j, h)
        for h, j in product(relevant, irrelevant)
    ]
    if threshold:
        t = n_labels
        found += [(share / n_labels, costs[0, j], j, t) for j in irrelevant]
        found += [(share / n_labels, costs[1, h], t, h) for h in relevant]
    return found


def enumerated(z, targets, weights, costs):
    """Value, gradient and matrices of second derivatives, pair by pair."""
    n, k = z.shape
    value, gradient, second = 0.0, np.zeros((n, k)), np.zeros((n, k, k))
    for i in range(n):
        for a, margin, j, h in pairs_of(targets[i], costs, k > targets.shape[1]):
            m = margin + z[i, j] - z[i, h]
            if m > 0.0:
                edge = np.eye(k)[j] - np.eye(k)[h]
                value += weights[i] * a * m * m
                gradient[i] += 2.0 * weights[i] * a * m * edge
                second[i] += 2.0 * weights[i] * a * np.outer(edge, edge)
    return value, gradient, second


def problem(seed, threshold, n=7, n_labels=4):
    """Rows with ties, all or no relevant labels, and weights of zero."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 2, (n, n_labels)).astype(np.uint8)
    targets[0], targets[-1] = 0, 1
    weights = rng.integers(0, 5, n) / 16.0
    z, dz = rng.integers(-6, 7, (2, n, n_labels + threshold)) / 4.0
    costs = rng.integers(0, 5, (2, n_labels)) / 4.0
    return DualLoss(LabelOrder(costs)), z, dz, targets, weights


@each_form
@EXPLORE
@seeds
def test_value_gradient_and_curvature(threshold, seed):
    loss, z, dz, y, s = problem(seed, threshold)
    value, gradient, second = enumerated(z, y, s, loss.set.costs)
    assert loss.oracle.value(z, y, s) == pytest.approx(value, abs=1e-14)
    assert_allclose(loss.oracle.subgradient(z, y, s), gradient, atol=1e-14)
    curvature = loss.oracle.curvature(z, y, s)
    products = np.einsum("ijk,ik->ij", second, dz)
    assert_allclose(curvature.apply(dz), products, atol=1e-14)
    assert_allclose(curvature.diagonal(), np.einsum("ijj->ij", second), atol=1e-14)
    assert_allclose(curvature.total(), second.sum(axis=0), atol=1e-14)
    moved = enumerated(z + 0.25 * dz, y, s, loss.set.costs)
    slope, bend = loss.oracle.derivatives(z, dz, y, s)(0.25)
    assert slope == pytest.approx(np.vdot(moved[1], dz), abs=1e-13)
    square = np.einsum("ij,ijk,ik", dz, moved[2], dz)
    assert bend == pytest.approx(square, abs=1e-13)


@each_form
@EXPLORE
@seeds
def test_gradients_prove_lower_bounds(threshold, seed):
    """R(z') >= <u, z'> - R*(u), with equality at the scores of u."""
    loss, z, dz, y, s = problem(seed, threshold)
    u = loss.oracle.subgradient(z, y, s)
    conjugate = loss.oracle.conjugate_at(u, z, y, s)
    assert np.vdot(u, z) - conjugate == pytest.approx(
        loss.oracle.value(z, y, s), abs=1e-13
    )
    assert loss.oracle.value(dz, y, s) >= np.vdot(u, dz) - conjugate - 1e-13


@each_form
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "trust-region", "sublbfgs"])
def test_the_optimum_and_its_bound(threshold, fit_intercept, solver):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(30, 4)) > 0.5).astype(np.uint8)
    s = rng.dirichlet(np.ones(30))
    alpha, costs, k = 0.03, rng.random((2, 4)), 4 + threshold
    design = np.hstack([X, np.ones((30, 1))]) if fit_intercept else X

    def objective(w):
        W = w.reshape(-1, k)
        value, gradient, _ = enumerated(design @ W, y, s, costs)
        penalized = W.copy()
        penalized[3:] = 0.0
        slopes = alpha * penalized + design.T @ gradient
        return value + 0.5 * alpha * np.sum(penalized**2), slopes.ravel()

    start = np.zeros(design.shape[1] * k)
    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10}
    best = minimize(objective, start, jac=True, options=options, method="L-BFGS-B").fun
    model = MultilabelHingeClassifier(
        alpha,
        label_cost=costs,
        threshold=threshold,
        fit_intercept=fit_intercept,
        solver=solver,
        tol=1e-6,
    ).fit(X, y, sample_weight=s)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)


@each_form
def test_hessian_matrix_is_its_products(threshold):
    rng = np.random.default_rng(2)
    loss, _, _, y, s = problem(2, threshold)
    design = Design(rng.normal(size=(7, 3)), n_outputs=4 + threshold)
    o = Objective(Risk(design, loss, y, s / s.sum()), L2(design.n_coef), 0.1)
    hessian = o.at(rng.normal(size=design.n_params)).hessian
    products = [hessian.apply(e) for e in np.eye(design.n_params)]
    assert_allclose(hessian.matrix(), np.array(products), atol=1e-12)
    assert_allclose(hessian.diagonal(), np.diag(products), atol=1e-12)


def labels(n=60, d=5, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    noise = rng.normal(size=(n, n_labels))
    return X, (X @ rng.normal(size=(d, n_labels)) + noise > 0.3).astype(int)


def test_sparse_is_dense_and_weights_are_repetition():
    X, y = labels()
    counts = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    one = MultilabelHingeClassifier(1e-2).fit(X, y, sample_weight=counts)
    two = MultilabelHingeClassifier(1e-2).fit(sparse.csr_array(X[rows]), y[rows])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)
    assert_allclose(one.coef_, two.coef_, atol=1e-6)


def test_noisy_labels_are_predicted():
    """Where the worst label says nothing, the mean of all does."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    y = (X[:, :1] + 1.5 * rng.normal(size=(400, 12)) > 1.0).astype(int)
    with pytest.warns(UserWarning, match="reduction='mean'"):
        empty = MultilabelHingeClassifier(1e-1, reduction="max").fit(X, y)
    assert not empty.predict(X).any()
    model = MultilabelHingeClassifier(1e-1).fit(X, y)
    assert np.corrcoef(model.predict(X).sum(axis=1), X[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_all_rows_have_or_none(value):
    X, y = labels()
    model = MultilabelHingeClassifier(1e-1).fit(X, np.full_like(y, value))
    assert model.dual_gap_ <= 1e-3 * model.objective_ + 1e-12
    assert np.all(model.predict(X) == value)


def test_what_does_not_go_together_is_refused():
    X, y = labels()
    with pytest.raises(ValueError, match="reduction must be one of"):
        MultilabelHingeClassifier(reduction="sum").fit(X, y)
    with pytest.raises(ValueError, match="solvers that do are 'auto'"):
        MultilabelHingeClassifier(solver="alm").fit(X, y)
    costs = 1.0 - np.eye(4)
    with pytest.raises(ValueError, match="needs reduction='max'"):
        MultilabelHingeClassifier(label_cost=costs, threshold=False).fit(X, y)


def test_small_violations_count_beside_large_scores():
    """If they exceed rounding: 1e-12 of the largest score is more than that."""
    z = np.array([[-3e4, 3e4, 3e4 + 1.0 - 2.5e-8]])
    targets = np.array([[0, 0, 1]], dtype=np.uint8)
    costs = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    loss, weights = DualLoss(LabelOrder(costs)).oracle, np.ones(1)
    value, gradient, _ = enumerated(z, targets, weights, costs)
    assert value > 0.0
    assert_allclose(loss.value(z, targets, weights), value, rtol=1e-12)
    assert_allclose(loss.subgradient(z, targets, weights), gradient, rtol=1e-12)


@each_form
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_complementary_labels_are_proven(threshold, alpha):
    """Duals of the threshold between them cancel, but for rounding, in all rows."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    for relevant in (X[:, 0] > 0.0, np.arange(12) % 2):
        Y = np.column_stack([relevant, 1 - relevant])
        model = MultilabelHingeClassifier(
            alpha, reduction="mean", threshold=threshold, tol=1e-6
        ).fit(X, Y)
        assert model.dual_gap_ <= 1e-6 * model.objective_
