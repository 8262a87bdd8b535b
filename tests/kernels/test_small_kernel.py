"""The compiled loop for few rows: its minimizer, dual point and refusals."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    DualLoss,
    ScaledHuber,
    regression_losses,
)
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn_subqn._core.kernels.multinomial import REACHED, STUCK, Multinomial

from sklearn_subqn._core.kernels import small
from sklearn_subqn._core.losses._base import RowForm

SCALED = DualLoss(ScaledHuber(1.35, 1e-9))
LOSSES = {**BINARY_LOSSES, **regression_losses(epsilon=0.3), "scaled": SCALED}
# Gamma distributed targets are positive; Tweedie's may be zero.
POSITIVE = {"gamma": 1.0, "tweedie": 0.8}
POISSON = LOSSES["poisson"].oracle
LOOPED = {name: loss for name, loss in LOSSES.items() if loss.oracle.looped}


def arguments(name, seed, n=40, d=3, intercept=True, l1=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    if name in BINARY_LOSSES:
        y = np.where(y > 0.0, 1.0, -1.0)
    elif name == "poisson":
        y = rng.poisson(np.exp(0.3 * y)).astype(float)
    elif name in ("gamma", "tweedie"):
        y = rng.gamma(2.0, np.exp(0.3 * y)) * (rng.random(n) < POSITIVE[name])
    weights = rng.dirichlet(np.ones(n))
    loss = LOOPED[name]
    width = 0.0 if loss.smooth else 0.3
    sizes = rng.uniform(0.1, 10.0, d)
    numbers = l1, 0.1 - l1, d, 1e-11, 0.0, width
    return [
        *(X * sizes, sizes, y, 0.1 * rng.normal(size=n), weights),
        *(loss.oracle.looped, *numbers),
        *(np.zeros(d + intercept), np.zeros(n), np.empty(n)),
    ]


def test_takes_all_losses_of_one_score():
    assert set(LOOPED) == set(LOSSES)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", LOOPED)
def test_the_dual_point_proves_the_minimum(name, intercept):
    """Fenchel's duality: the values agree, and dual variables are subgradients."""
    oracle = LOOPED[name].oracle
    for seed in range(5):
        given = arguments(name, seed, intercept=intercept)
        X, sizes, y, offsets, weights = given[:5]
        X = X / sizes
        w, dual = given[-3], given[-1]
        reached, _ = small.minimize(*given)
        assert reached
        coef, b = w[:3], w[3:].sum()
        scores = X @ coef + b + offsets
        value = oracle.value(scores, y, weights) + 0.05 * coef @ coef
        normal = X.T @ dual
        bound = dual @ offsets - oracle.conjugate(dual, y, weights)
        bound -= 5.0 * (normal @ normal)
        assert_allclose(bound, value, rtol=1e-9, atol=1e-12)
        assert_allclose(normal, -0.1 * coef, atol=1e-5)
        if intercept:
            assert abs(dual.sum()) <= 1e-9


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("name", LOOPED)
def test_the_dual_point_proves_the_minimum_with_an_l1_norm(name, share):
    """By Fenchel's duality, and zeros are exact where products are below the norm."""
    oracle = LOOPED[name].oracle
    for seed in range(5):
        l1 = 0.1 * share
        given = arguments(name, seed, d=6, l1=l1)
        X, sizes, y, offsets, weights = given[:5]
        X = X / sizes
        w, dual = given[-3], given[-1]
        reached, _ = small.minimize(*given)
        assert reached
        coef = w[:6]
        scores = X @ coef + w[6] + offsets
        value = oracle.value(scores, y, weights) + l1 * np.abs(coef).sum()
        value += 0.5 * (0.1 - l1) * coef @ coef
        normal = np.abs(X.T @ dual)
        # Without squares the dual point has to shrink until its products are bounded.
        dual = dual * min(1.0, l1 / normal.max()) if share == 1.0 else dual
        bound = dual @ offsets - oracle.conjugate(dual, y, weights)
        if share < 1.0:
            bound -= (np.maximum(normal - l1, 0.0) ** 2).sum() / (0.2 - 2.0 * l1)
        assert_allclose(bound, value, rtol=1e-9, atol=1e-11)
        assert abs(dual.sum()) <= 1e-9
        assert not coef[normal < l1 - 1e-4].any()


@pytest.mark.parametrize("l1", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("name", [name for name in LOOPED if name != "scaled"])
def test_stops_under_an_l1_norm_once_the_dual_point_proves_it(name, l1):
    """Any u of the domain with |Xᵀu| <= l1 proves a bound, as its multiples do."""
    oracle, tol = LOOPED[name].oracle, 1e-3
    for seed in range(5):
        given = arguments(name, seed, d=6, intercept=False)
        X, sizes, y, offsets, weights = given[:5]
        infimum = -oracle.conjugate(np.zeros(40), y, weights)
        given[6], given[7], given[9], given[10] = l1, 0.0, tol, infimum
        w, dual = given[-3], given[-1]
        reached, _ = small.minimize(*given)
        assert reached
        value = oracle.value(X @ (w / sizes) + offsets, y, weights)
        value += l1 * np.abs(w).sum()
        dual *= min(1.0, l1 / np.abs(X.T @ dual / sizes).max())
        bound = dual @ offsets - oracle.conjugate(dual, y, weights)
        assert value - bound <= tol * abs(value - infimum) + 1e-14
        assert value >= bound - 1e-14


@pytest.mark.parametrize("l1", [0.0, 1e-3])
@pytest.mark.parametrize("size", [8.0, 11.0])
def test_reaches_counts_of_thousands_from_zero(size, l1):
    """The first step is too long by that factor, and exponentials would overflow."""
    for seed in range(3):
        given = arguments("poisson", seed, n=200, d=5, l1=l1)
        X, sizes, _, offsets, weights = given[:5]
        eta = X @ (np.linspace(-0.5, 0.5, 5) / sizes) + offsets
        given[2] = np.random.default_rng(seed).poisson(np.exp(size + eta)).astype(float)
        infimum = -POISSON.conjugate(np.zeros(200), given[2], weights)
        given[7], given[9], given[10] = 1e-3 - l1, 1e-5, infimum
        reached, _ = small.minimize(*given)
        assert reached
        scores = X @ (given[-3][:5] / sizes) + given[-3][5] + offsets
        assert weights @ np.exp(scores) == pytest.approx(weights @ given[2], rel=1e-4)


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize(
    "name", [k for k, loss in LOOPED.items() if loss.smooth and not loss.steep]
)
def test_far_starts_and_long_rows_lead_to_the_same_minimum(name, l1):
    """Unit steps from far away are too long, and blocks of long rows are short.

    Exponentials are continued by tangents, so that they have no curvature there.
    """
    found = []
    for distance in (0.0, 1.0):
        given = arguments(name, 0, n=700, d=150, l1=l1)
        given[-3][:] = distance * np.random.default_rng(1).normal(size=151)
        reached, _ = small.minimize(*given)
        assert reached
        found.append(given[-3])
    assert_allclose(*found, atol=1e-4)


@pytest.mark.parametrize("name", LOOPED)
def test_an_intercept_alone(name):
    """Without features dual variables sum to zero at the minimum."""
    given = arguments(name, 0)
    _, _, y, offsets, weights, *others = given
    w, center, dual = np.zeros(1), np.zeros(40), np.empty(40)
    numbers = *others[:3], 0, *others[4:7]
    none = np.empty((40, 0)), np.empty(0)
    small.minimize(*none, y, offsets, weights, *numbers, w, center, dual)
    assert abs(dual.sum()) <= 1e-6


def test_follows_kinks_without_squares_to_a_vertex():
    """As many rows are fitted exactly as there are parameters that are not zero."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(100, 5)), np.full(100, 0.01)
    y = X @ rng.normal(size=5) + 2.0 * rng.normal(size=100)
    w, center, dual = np.zeros(6), np.zeros(100), np.empty(100)
    loss = RowForm(0, False, -0.5, 0.5)
    numbers = 0.1, 0.0, 5, 1e-12, 0.0, 0.9
    reached, _ = small.minimize(
        X, np.ones(5), y, np.zeros(100), weights, loss, *numbers, w, center, dual
    )
    assert reached
    residuals = y - X @ w[:5] - w[5]
    assert np.sum(np.abs(residuals) < 1e-9) == np.count_nonzero(w)


@pytest.mark.parametrize("name", ["log_loss", "poisson"])
def test_curvature_of_some_rows_leads_to_the_same_minimum(name):
    found = []
    for n_more in range(3):
        given = arguments(name, 3, n=600)
        # Rows without weight move no minimum, but which rows are chosen.
        given[0] = np.vstack([np.ones((n_more, 3)), given[0]])
        for i in (2, 3, 4, -2, -1):
            given[i] = np.append(np.zeros(n_more), given[i])
        reached, _ = small.minimize(*given)
        assert reached
        found.append(given[-3])
    assert_allclose(found[1:], found[:1] * 2, rtol=1e-5)


@pytest.mark.parametrize("l1", [0.0, 0.05, 100.0])
@pytest.mark.parametrize("name", ["log_loss", "hinge", "huber", "gamma"])
def test_says_where_a_gap_is_out_of_reach(name, l1):
    """Also where an L1 norm leaves no parameter that would move."""
    given = arguments(name, 0, intercept=False, l1=l1)
    given[-6], given[-8] = -1.0, 0.1
    reached, _ = small.minimize(*given)
    assert not reached


@pytest.mark.parametrize("place", [2, 3, 4, -2, -1])
def test_refuses_wrong_lengths(place):
    given = arguments("hinge", 0)
    given[place] = np.ones(39)
    with pytest.raises(ValueError, match="39 numbers for 40 rows"):
        small.minimize(*given)


def test_refuses_parameters_of_other_columns():
    given = arguments("hinge", 0)
    given[-3] = np.zeros(7)
    with pytest.raises(ValueError, match="7 parameters for 40 rows of 3 features"):
        small.minimize(*given)


@pytest.mark.parametrize("classes", [False, True])
def test_refuses_sizes_of_other_columns(classes):
    given = arguments_of_classes(0) if classes else arguments("hinge", 0)
    given[1] = np.ones(len(given[1]) + 1)
    with pytest.raises(ValueError, match=r"for 60 rows|sizes of 3 features"):
        (minimize_classes if classes else small.minimize)(*given)


@pytest.mark.parametrize("name", ["hinge", "scaled"])
def test_refuses_kinks_without_a_width(name):
    given = arguments(name, 0)
    given[5] = given[5]._replace(ridge=0.0)
    given[-4] = 0.0
    with pytest.raises(ValueError, match="need a width"):
        small.minimize(*given)


def arguments_of_classes(seed, n=60, d=4, k=3, intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)) + np.arange(k)
    labels, weights = scores.argmax(axis=1), rng.dirichlet(np.ones(n))
    labels[:k] = np.arange(k)
    W, sizes = np.zeros((d + intercept, k)), rng.uniform(0.1, 10.0, d)
    return [X * sizes, sizes, labels, weights, 0.1, d * k, 1e-11, W]


def minimize_classes(X, sizes, labels, weights, alpha, n_penalized, tol, W):
    """Return whether the gap was reached; W becomes the solution."""
    steps = Multinomial(X, sizes, labels, weights, alpha, n_penalized, W)
    while (status := steps.minimize(tol)) not in (REACHED, STUCK):
        pass
    return status == REACHED


def test_two_passes_for_each_evaluation():
    *given, tol, W = arguments_of_classes(0)
    steps = Multinomial(*given, W)
    assert steps.passes == 0.0
    assert steps.minimize(np.inf) == REACHED
    assert steps.passes == 2.0
    steps.minimize(tol)
    assert steps.passes > 4.0


def dual_of_classes(scores, targets, weights, free):
    """Return the dual point, at the best intercepts if they are free."""
    oracle, shift = MULTINOMIAL_LOSS.oracle, np.zeros(scores.shape[1])
    for _ in range(4 if free else 0):
        first, second = oracle.derivatives_of_shift(scores, shift, targets, weights)
        shift -= np.linalg.lstsq(second, first, rcond=1e-10)[0]
    return oracle.subgradient(scores + shift, targets, weights)


@pytest.mark.parametrize("n", [60, 2000])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_dual_point_of_classes_proves_the_minimum(k, intercept, n):
    oracle = MULTINOMIAL_LOSS.oracle
    for seed in range(3):
        given = arguments_of_classes(seed, n=n, k=k, intercept=intercept)
        X, sizes, labels, weights, *_, W = given
        X = X / sizes
        assert minimize_classes(*given)
        targets = labels.astype(float)
        scores = X @ W[:4] + W[4:].sum(axis=0)
        dual = dual_of_classes(scores, targets, weights, free=intercept)
        value = oracle.value(scores, targets, weights) + 0.05 * (W[:4] ** 2).sum()
        bound = -oracle.conjugate(dual, targets, weights)
        bound -= 5.0 * ((X.T @ dual) ** 2).sum()
        assert_allclose(bound, value, rtol=1e-9)
        assert_allclose(dual.sum(axis=1), 0.0, atol=1e-15)
        if intercept:
            assert_allclose(dual.sum(axis=0), 0.0, atol=1e-14)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [0.0, 5.0])
def test_a_few_digits_are_those_of_all(scale, intercept, alpha):
    """To 1e-4 many parameters go another way, by L-BFGS, and nearly as far."""
    given = arguments_of_classes(3, n=500, d=30, k=4, intercept=intercept)
    X, sizes, labels, weights, *_, W = given
    X = X / sizes
    W[:] = scale * np.random.default_rng(0).normal(size=W.shape)
    given[4], given[6] = alpha, 1e-4
    assert minimize_classes(*given)
    exact = [*given]
    exact[6:] = 1e-12, np.zeros_like(W)
    assert minimize_classes(*exact)

    def value(W):
        scores = X @ W[:30] + W[30:].sum(axis=0)
        loss = MULTINOMIAL_LOSS.oracle.value(scores, labels.astype(float), weights)
        return loss + 0.5 * alpha * (W[:30] ** 2).sum()

    assert value(exact[7]) <= value(W) <= (1.0 + 1e-4) * value(exact[7])
    assert np.abs(W - exact[7]).max() > 0.0


def test_steps_that_go_too_far_are_shortened():
    """Classes that are apart have almost no curvature where all are certain."""
    given = arguments_of_classes(0)
    given[4] = 1e-6
    given[7][:] = 30.0 * np.random.default_rng(1).normal(size=(5, 3))
    assert minimize_classes(*given)
    X, W, targets = given[0] / given[1], given[7], given[2].astype(float)
    dual = MULTINOMIAL_LOSS.oracle.subgradient(X @ W[:4] + W[4], targets, given[3])
    assert_allclose(X.T @ dual, -1e-6 * W[:4], atol=1e-7)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (2, np.zeros(59, np.intp), "59 labels, 60 weights"),
        (2, np.full(60, 3), "the label 3 is none of 3 classes"),
        (5, 13, "for 60 rows"),
        (7, np.zeros((7, 3)), r"shape \(7, 3\) for 60 rows"),
        (0, np.zeros((60, 5)), r"rows are not of shape \(60, 4\)"),
    ],
)
def test_refuses_classes_of_wrong_shapes(place, value, message):
    given = arguments_of_classes(0)
    given[place] = value
    with pytest.raises(ValueError, match=message):
        minimize_classes(*given)


def compressed(X):
    X = sparse.csr_array(X)
    return X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)


@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize("d", [3, 60])
def test_all_forms_of_rows_lead_to_the_same_minimum(d, penalized):
    """Correlated features are orthogonalized, whatever the form of the rows."""
    rng = np.random.default_rng(d)
    given = arguments_of_classes(1, n=400, d=d, k=5)
    sizes = given[1]
    X = given[0] @ rng.normal(size=(d, d)) * (rng.random((400, d)) < 0.7)
    X = X.astype(np.float32)
    X[:, 0] *= 1e3
    given[6] = 1e-13
    given[5] += 5 * penalized
    wide = np.zeros((400, 2 * d + 1))
    wide[:, 1::2] = X
    forms = [
        np.ascontiguousarray(X, np.float64),
        *(X, np.asfortranarray(X), wide[:, 1::2], compressed(X)),
        compressed(X.astype(np.float64)),
    ]
    found, weights, targets = [], given[3], given[2].astype(float)
    for form in forms:
        W = np.zeros((d + 1, 5))
        minimize_classes(form, *given[1:7], W)
        scores = X / sizes @ W[:d] + W[d]
        dual = dual_of_classes(scores, targets, weights, free=not penalized)
        loss = MULTINOMIAL_LOSS.oracle
        value = loss.value(scores, targets, weights)
        value += 0.05 * (W[: d + penalized] ** 2).sum()
        found.append(value)
        normal = (X / sizes).T @ dual
        bound = -loss.conjugate(dual, targets, weights)
        bound -= 5.0 * ((normal**2).sum() + penalized * (dual.sum(axis=0) ** 2).sum())
        assert_allclose(bound, value, rtol=1e-11)
    assert_allclose(found, found[0], rtol=1e-12)


def test_weights_repeat_rows_of_classes():
    X, sizes, labels, _, *numbers, W = arguments_of_classes(2, n=50, d=30, k=6)
    counts = np.random.default_rng(0).integers(0, 4, 50)
    rows = np.repeat(np.arange(50), counts)
    n = len(rows)
    minimize_classes(X, sizes, labels, counts / n, *numbers, W)
    other = np.zeros_like(W)
    repeated = X[rows], sizes, labels[rows], np.full(n, 1.0 / n)
    minimize_classes(*repeated, *numbers, other)
    assert_allclose(W, other, atol=1e-5)


def test_a_class_of_one_row_and_intercepts_alone():
    """Without features probabilities are the shares of the classes."""
    labels = np.array([0, 1, 1, 2, 2, 2, 2, 2])
    W, weights = np.zeros((1, 3)), np.full(8, 0.125)
    numbers = 1.0, 0, 1e-12
    given = np.empty((8, 0)), np.ones(0), labels, weights
    assert minimize_classes(*given, *numbers, W)
    assert_allclose(np.exp(W[0]) / np.exp(W[0]).sum(), [0.125, 0.25, 0.625])
    with pytest.raises(ValueError, match=r"shape \(0, 3\) for 8 rows"):
        minimize_classes(*given, *numbers, W[:0])
