"""Nonsmooth functions on which other methods fail and subBFGS does not.

Yu 2009, sections 3.1.1 and A.5. Line searches are exact throughout.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from _door import (
    DenseInverseHessian,
    FunctionObjective,
    LimitedMemoryInverseHessian,
    Stopping,
    bfgs,
    exact,
    run,
    subbfgs,
)
from _problems import (
    binary_objective,
    bisect,
    descent_direction,
    gaussian_data,
    svc_bounds,
)
from numpy.testing import assert_allclose

# Pieces whose values differ by less than this count as tied.
TIE = 1e-12


def maximum(*pieces):
    """The maximum of linear functions <g, w> + c, given as pairs (g, c)."""
    slopes = np.array([g for g, _ in pieces], dtype=float)
    offsets = np.array([c for _, c in pieces], dtype=float)

    def active(w):
        values = slopes @ w + offsets
        highest = values.max()
        return slopes[values >= highest - TIE * max(1.0, abs(highest))]

    return FunctionObjective(
        lambda w: np.max(slopes @ w + offsets),
        lambda w: active(w)[0],
        lambda w, p: max(active(w), key=lambda g: g @ p),
    )


# f = 10 |x| + |y| (3.1).
toy = maximum(((10, 1), 0), ((10, -1), 0), ((-10, 1), 0), ((-10, -1), 0))

# f = max(-100, ±2 x + 3 y, ±5 x + 2 y) (A.66), Hiriart-Urruty and Lemaréchal 1993.
zigzag = maximum(((0, 0), -100), ((2, 3), 0), ((-2, 3), 0), ((5, 2), 0), ((-5, 2), 0))

# f = max(2 |x| + y, 3 y) (A.67), Lewis and Overton 2008.
breakdown = maximum(((2, 1), 0), ((-2, 1), 0), ((0, 3), 0))


def wolfe_value(w):
    x, y = w
    if x >= abs(y):
        return 5.0 * np.sqrt(9.0 * x * x + 16.0 * y * y)
    return 9.0 * x + 16.0 * abs(y)


def wolfe_steepest(w, p):
    x, y = w
    if x >= abs(y) and x > 0.0:
        return np.array([45.0 * x, 80.0 * y]) / np.sqrt(9.0 * x * x + 16.0 * y * y)
    return np.array([9.0, 16.0 * np.sign(p[1] if abs(y) <= TIE * abs(x) else y)])


# (A.65), Wolfe 1975; not differentiable where x <= 0 = y.
short_sighted = FunctionObjective(
    wolfe_value, lambda w: wolfe_steepest(w, np.zeros(2)), wolfe_steepest
)


def trajectory(method, objective, start, max_iter=20):
    """Points of a quasi-Newton method with exact line search, and why it stopped."""
    solver = method(
        objective, np.array(start, dtype=float), DenseInverseHessian(2), search=bisect
    )
    points = []
    for _ in range(max_iter):
        try:
            points.append(next(solver).point)
        except StopIteration as stop:
            return points, stop.value
    return points, "running"


class Identity:
    pristine = True

    def apply(self, v):
        return v.copy()


def steepest_descent(objective, start, n_iter):
    """Follow -g, whatever subgradient g comes."""
    w = np.array(start, dtype=float)
    points = [w]
    for _ in range(n_iter):
        p = -objective.subgradient(w)
        w = w + bisect(objective.at(w).along(p)) * p
        points.append(w)
    return np.array(points)


def steepest_subgradient_descent(objective, start, n_iter):
    """Follow the negative of the shortest subgradient (3.7)."""
    w = np.array(start, dtype=float)
    points = [w]
    for _ in range(n_iter):
        point = objective.at(w)
        p = descent_direction(point, Identity(), 1e-12, 10000).x
        w = w + bisect(point.along(p)) * p
        points.append(w)
    return np.array(points)


# The toy example of section 3.1.1.1.


def test_subbfgs_solves_the_toy_example_in_two_steps():
    points, status = trajectory(subbfgs, toy, (1.0, 1.0))
    assert_allclose(points[1].w, [0.0, 0.9], atol=1e-12)
    assert_allclose(points[2].w, [0.0, 0.0], atol=1e-11)
    assert points[2].value <= 1e-11
    assert status == "no_descent"


@pytest.mark.parametrize("first", np.linspace(-10.0, 10.0, 9))
def test_second_step_of_the_toy_example_from_any_subgradient(first):
    start = toy.at(np.array([1.0, 1.0]))
    line = start.along(-start.gradient)
    point = line.point(bisect(line))
    hessian = DenseInverseHessian(2)
    hessian.update(point.w - start.w, point.gradient - start.gradient)
    # Any subgradient at x = 0 to start the search from.
    point.gradient = np.array([first, 1.0])
    direction = descent_direction(point, hessian, 1e-5, 100)
    assert direction.success
    assert abs(direction.x[0]) <= 1e-12 * abs(direction.x[1])
    line = point.along(direction.x)
    assert line.point(bisect(line)).value <= 1e-11


def test_bfgs_fails_on_the_toy_example_after_the_first_step():
    points, status = trajectory(bfgs, toy, (1.0, 1.0))
    assert status == "no_descent"
    assert len(points) == 2
    assert points[-1].value == pytest.approx(0.9)


# (A.65), unbounded below.


def test_steepest_descent_converges_to_a_point_that_is_no_minimizer():
    points = steepest_descent(short_sighted, (2.0, 1.0), 60)
    assert_allclose(points[-1], 0.0, atol=1e-10)
    assert np.all(points[:, 0] > 0.0)
    values = [wolfe_value(w) for w in points]
    assert np.all(np.diff(values) < 0.0)
    # Successive directions are orthogonal.
    steps = np.diff(points[:20], axis=0)
    steps /= np.linalg.norm(steps, axis=1)[:, np.newaxis]
    assert_allclose(np.sum(steps[1:] * steps[:-1], axis=1), 0.0, atol=1e-6)


def test_subbfgs_does_not():
    points, status = trajectory(subbfgs, short_sighted, (2.0, 1.0))
    assert status == "unbounded"
    assert len(points) <= 3


# (A.66), with minimum -100.


def test_steepest_subgradient_descent_zigzags_between_two_hinges():
    points = steepest_subgradient_descent(zigzag, (1.0, 3.0), 15)
    expected = (-1.0 / 3.0) ** np.arange(16.0)
    assert_allclose(points[:, 0], expected, rtol=1e-3)
    assert_allclose(points[:, 1], 3.0 * np.abs(points[:, 0]), rtol=1e-3)
    assert min(zigzag.value(w) for w in points) > 0.0


@pytest.mark.parametrize(
    "start", [(1.0, 3.0), (1.0, 10.0), (0.5, 4.0), (9.0, -3.0), (3.0, 1.0)]
)
def test_subbfgs_reaches_the_minimum(start):
    points, status = trajectory(subbfgs, zigzag, start)
    assert status == "no_descent"
    assert points[-1].value == pytest.approx(-100.0, abs=1e-9)
    assert len(points) <= 5


def test_subbfgs_follows_the_trajectory_of_figure_a2():
    points, _ = trajectory(subbfgs, zigzag, (1.0, 3.0))
    assert_allclose(points[2].w, [100.0, -300.0], rtol=1e-9)


# (A.67), unbounded below.

STARTS = [(2.0, 1.0), (3.0, 1.0), (8.0, 1.0), (1.0, -1.0), (-1.0, 0.5)]


@pytest.mark.parametrize("start", STARTS)
def test_bfgs_fails_where_the_first_step_ends(start):
    points, status = trajectory(bfgs, breakdown, start)
    assert status == "no_descent"
    assert len(points) == 2
    assert abs(points[-1].w[0]) < 1e-11


@pytest.mark.parametrize("start", [*STARTS, (1.0, 0.9)])
def test_subbfgs_descends_for_ever(start):
    points, status = trajectory(subbfgs, breakdown, start)
    assert status == "unbounded"
    assert len(points) <= 3


# Binary hinge with fewer rows than features (fig. 3.2).


def breaks_down_and_goes_on(objective, optimum, *, excess, n_iter):
    """L-BFGS stops far from the optimum, subLBFGS falls to a multiple of it.

    The optimum is that with an intercept, a lower bound of the one without.
    """
    w = np.zeros(objective.n_params)
    hessian = LimitedMemoryInverseHessian(len(w), 15)
    classical = run(
        bfgs(objective, w, hessian, search=exact), Stopping(0.0), max_iter=n_iter
    )
    assert classical.status == "no_descent"
    assert classical.n_iter <= 5
    # It ended on a kink, where there is a descent direction, but not -B g.
    assert classical.point.kinks.size
    hessian = LimitedMemoryInverseHessian(len(w), 15)
    sub = run(subbfgs(objective, w, hessian), Stopping(0.0), max_iter=n_iter)
    assert sub.status == "max_iter"
    assert classical.point.value > excess[1] * optimum
    assert sub.point.value < excess[0] * optimum


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lbfgs_breaks_down_on_few_rows_of_many_features(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 38, 500, shift=0.0)
    X = (X + 0.5 * y[:, np.newaxis] * rng.normal(size=500)) / np.sqrt(500.0)
    objective = binary_objective(X, y, alpha=1e-3, fit_intercept=fit_intercept)
    _, optimum = svc_bounds(X, y, objective.weights, 1e-3)
    breaks_down_and_goes_on(objective, optimum, excess=(1.1, 1.2), n_iter=150)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
def test_lbfgs_breaks_down_on_leukemia(alpha, fit_intercept):
    from sklearn.datasets import load_svmlight_file

    folder = os.environ.get("SUBQN_DATA_DIR")
    if not folder:
        pytest.skip("SUBQN_DATA_DIR does not name a folder with leukemia.svm.bz2")
    path = Path(folder) / "leukemia.svm.bz2"
    if not path.exists():
        pytest.skip(f"{path.name} is not in SUBQN_DATA_DIR")
    X, y = load_svmlight_file(str(path), n_features=7129)
    X = X.toarray()
    objective = binary_objective(X, y, alpha=alpha, fit_intercept=fit_intercept)
    _, optimum = svc_bounds(X, y, objective.weights, alpha)
    breaks_down_and_goes_on(objective, optimum, excess=(5.0, 10.0), n_iter=200)
