"""Line searches against brute force."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    FunctionObjective,
    Objective,
    Risk,
    ThresholdDesign,
    exact,
    minimize_intercept,
    newton_step,
    scaled,
    wolfe,
)
from _problems import (
    EXPLORE,
    binary_objective,
    binary_problems,
    bisect,
    each_loss,
    gaussian_data,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sklearn_subqn._core.steps.line_search import exact_on_function
from sklearn_subqn._core.steps.one_dimension import (
    Trial,
    bracket_by_cuts,
    minimize_smooth,
    zero_between,
)
from sklearn_subqn.losses import OrdinalLogistic, PiecewiseQuadratic
from sklearn_subqn.optimize import exact_line_search


def piecewise(slope, curvature, kinks=(), slope_jumps=(), curvature_jumps=None):
    kinks = np.array(kinks, dtype=float)
    if curvature_jumps is None:
        curvature_jumps = np.zeros(kinks.size)
    jumps = np.array(slope_jumps, dtype=float), np.array(curvature_jumps, dtype=float)
    return PiecewiseQuadratic(slope, curvature, kinks, *jumps)


def smallest_minimizer(f):
    """Walk through all segments: the first eta with a right-hand slope >= 0."""
    starts = np.unique(np.append(0.0, f.kinks))
    ends = np.append(starts[1:], np.inf)
    for start, end in zip(starts, ends, strict=True):
        slope = f.slope_at(start)
        if slope >= 0.0:
            return start
        curvature = f.curvature + f.curvature_jumps[f.kinks <= start].sum()
        if curvature > 0.0 and start - slope / curvature < end:
            return start - slope / curvature
    return np.inf


@st.composite
def convex_functions(draw):
    """Convex piecewise quadratics of dyadic numbers, hence without rounding.

    Few different kinks, so that many are equal.
    """
    n = draw(st.integers(0, 12))
    kinks = draw(
        st.lists(st.sampled_from([0.25, 0.5, 1, 2, 8]), min_size=n, max_size=n)
    )
    jumps = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))
    growth = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    # A change of curvature by c at kink t leaves the slope continuous with a jump -c t.
    slopes = np.array(jumps, dtype=float) / 4.0
    slopes -= np.array(growth, dtype=float) * np.array(kinks, dtype=float)
    slope = draw(st.integers(-40, 2)) / 4.0
    return piecewise(slope, float(draw(st.integers(0, 2))), kinks, slopes, growth)


@EXPLORE
@given(f=convex_functions())
def test_smallest_minimizer_of_convex_functions_with_ties(f):
    assert exact_line_search(f) == pytest.approx(smallest_minimizer(f), rel=1e-14)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (piecewise(1.0, 1.0, [1.0], [1.0]), 0.0),
        (piecewise(0.0, 0.0), 0.0),
        (piecewise(-1.0, 0.5), 2.0),
        (piecewise(-1.0, 0.0), np.inf),
        (piecewise(-1.0, 0.0, [1.0, 4.0], [0.25, 0.25]), np.inf),
        (piecewise(-1.0, 0.5, [3.0], [1.0]), 2.0),
        (piecewise(-2.0, 0.5, [3.0], [0.0]), 4.0),
        (piecewise(-2.0, 0.5, [3.0], [1.0]), 3.0),
        (piecewise(-2.0, 0.0, [3.0, 3.0, 3.0], [0.75] * 3), 3.0),
        # Constant between 2 and 5: the smallest minimizer.
        (piecewise(-1.0, 0.0, [5.0, 2.0, 1.0], [1.0, 0.5, 0.5]), 2.0),
        # Constant beyond 2.
        (piecewise(-1.0, 0.0, [2.0, 1.0], [0.5, 0.5]), 2.0),
        # Zero slope right at a kink after a parabola.
        (piecewise(-2.0, 1.0, [2.0, 1.0], [5.0, 0.0]), 2.0),
    ],
)
def test_small_cases(f, expected):
    assert exact_line_search(f) == expected


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [300, 5000])
def test_thousands_of_kinks_at_wildly_different_scales(n, seed):
    rng = np.random.default_rng(seed)
    kinks = 10.0 ** rng.uniform(-12.0, 12.0, n)
    # Most of them several times over.
    kinks = rng.choice(kinks, n)
    jumps = 10.0 ** rng.uniform(-3.0, 3.0, n)
    curvature = 10.0 ** rng.uniform(-9.0, 3.0)
    f = piecewise(-rng.random() * jumps.sum(), curvature, kinks, jumps)
    step = exact_line_search(f)
    assert step == pytest.approx(smallest_minimizer(f), rel=1e-9)


def test_thousands_of_equal_kinks():
    n = 4096
    for slope in (-n / 2.0, -float(n)):
        assert exact_line_search(piecewise(slope, 0.0, [7.0] * n, [1.0] * n)) == 7.0
    f = piecewise(-n - 1.0, 0.0, [7.0] * n + [9.0], [1.0] * n + [2.0])
    assert exact_line_search(f) == 9.0


@pytest.mark.parametrize("seed", range(4))
def test_largest_kink_is_found_among_many(seed):
    rng = np.random.default_rng(seed)
    kinks = rng.permutation(1.0 + np.arange(1000.0))
    jumps = np.where(kinks == 1000.0, 1.0, 2.0**-20)
    assert exact_line_search(piecewise(-0.5, 0.0, kinks, jumps)) == 1000.0


def test_rounding_does_not_hide_a_flat_end():
    """With one class the risk is zero beyond the last kink, but for rounding."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n = rng.integers(1, 40)
        scores, weights = rng.normal(size=n), rng.dirichlet(np.ones(n))
        f = BINARY_LOSSES["hinge"].oracle.restrict(
            scores, np.ones(n), np.ones(n), weights
        )
        assert exact_line_search(f) == max(1.0 - scores.min(), 0.0)


# Smooth functions.


@EXPLORE
@given(
    seed=st.integers(0, 999),
    n=st.integers(0, 30),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_smooth_minimizer_of_piecewise_quadratics(seed, n, scale):
    rng = np.random.default_rng(seed)
    kinks = scale * 10.0 ** rng.uniform(-3.0, 3.0, n)
    # The slope is continuous; the curvature grows and falls, but stays positive.
    growth = rng.normal(size=n)
    total = np.abs(growth).sum() + 0.1
    f = piecewise(-rng.random() * scale, total, kinks, -growth * kinks, growth)

    def derivatives(step):
        return f.slope_at(step), total + growth[kinks <= step].sum()

    step = minimize_smooth(derivatives)
    assert step == pytest.approx(bisect_zero(f.slope_at), rel=1e-9)


def bisect_zero(slope):
    low, high = 0.0, 1.0
    while slope(high) < 0.0:
        high *= 2.0
    while low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high


@pytest.mark.parametrize("minimizer", [3e-6, 3.0, 3e6])
@pytest.mark.parametrize("power", [1.2, 1.5, 2.0, 3.0, 4.0])
def test_smooth_minimizer_where_newton_steps_go_astray(power, minimizer):
    """|eta - c|^power: Newton's steps are too long, cycle, or are ever too short."""

    def derivatives(step):
        distance = abs(step - minimizer)
        curvature = (power - 1.0) * distance ** (power - 2.0) if distance else np.inf
        return np.sign(step - minimizer) * distance ** (power - 1.0), curvature

    assert minimize_smooth(derivatives) == pytest.approx(minimizer, rel=1e-4)


def test_smooth_functions_without_descent_or_minimizer():
    assert minimize_smooth(lambda step: (0.5 + step, 1.0)) == 0.0
    assert minimize_smooth(lambda step: (step, 1.0)) == 0.0
    assert minimize_smooth(lambda step: (-1.0, 0.0)) == np.inf
    assert minimize_smooth(lambda step: (-1.0 - 1.0 / (1.0 + step), 0.0)) == np.inf


def test_smooth_parabola_is_minimized_in_one_newton_step():
    trials = []

    def derivatives(step):
        trials.append(step)
        return 2.0 * step - 1.0, 2.0

    assert minimize_smooth(derivatives) == 0.5
    assert trials == [0.0, 0.5]


def test_smooth_searches_end_where_slopes_are_rounding():
    """Of sums of large terms, which does not fall with the slope at the start."""
    rng = np.random.default_rng(0)
    trials = []

    def derivatives(step):
        trials.append(step)
        return step - 1e-8 + 1e-17 * rng.normal(), 1.0

    assert minimize_smooth(derivatives) == pytest.approx(1e-8, rel=1e-8)
    assert len(trials) <= 5


def trials_to(minimizer, climb, negligible):
    """Search a function that falls by 1e-33 to a minimizer, and climbs from there."""
    trials = []

    def derivatives(step):
        trials.append(step)
        return -1e-33 if step < minimizer else climb, 1e-33

    return minimize_smooth(derivatives, negligible=negligible), len(trials)


def test_smooth_searches_end_where_nothing_is_left_to_gain():
    """Slopes of rounding errors jump, so that none of them vanishes."""
    step, n_trials = trials_to(0.643, climb=1e-33, negligible=1e-32)
    assert 0.0 < step <= 1.0
    assert n_trials <= 3
    # Halving goes on to the jump where a step too long would climb.
    for climb, negligible in [(1.0, 1e-32), (1e-33, 0.0)]:
        step, n_trials = trials_to(0.643, climb, negligible)
        assert step == pytest.approx(0.643, rel=1e-12)
        assert n_trials > 40


@pytest.mark.parametrize("target", [1e3, 1e6, 1e12])
def test_smooth_searches_do_not_walk_down_exponentials(target):
    """From the first trial, exp(target), all Newton steps are equally long."""
    trials = []

    def derivatives(score):
        trials.append(score)
        # The exponential goes on as its tangent, as in losses.
        mean = np.exp(min(score * target, 50.0))
        return target * (mean - target), target**2 * mean

    minimizer = np.log(target) / target
    assert minimize_smooth(derivatives) == pytest.approx(minimizer, rel=1e-9)
    assert len(trials) < 100


def test_smooth_searches_go_on_while_slopes_fall_little():
    """A first step that is hardly too long leads to a steep slope."""

    def derivatives(step):
        return (step - 1.0, 1.0) if step < 0.9 else (7.0 * (step - 0.9) - 0.1, 7.0)

    assert minimize_smooth(derivatives) == pytest.approx(0.9 + 0.1 / 7.0)


# Lines of objectives.


@pytest.mark.parametrize("search", [exact, partial(newton_step, rows_apart=True)])
def test_searches_end_where_parameters_change_by_rounding(search):
    """An objective of one changes there by the square of the rounding unit."""
    trials = []

    def derivatives(step):
        trials.append(step)
        return -1e-33 if step < 0.643 else 1e-33, 1e-33

    loss = SimpleNamespace(analytic=True)
    start = SimpleNamespace(value=1.0, objective=SimpleNamespace(loss=loss))
    line = SimpleNamespace(is_known=True, smooth=True, start=start)
    line.derivatives = derivatives
    assert 0.0 < search(line) <= 1.0
    assert len(trials) <= 3
    trials.clear()
    start.value = 1e-12
    assert search(line) == pytest.approx(0.643)
    assert len(trials) > 20


@EXPLORE
@given(
    problem=binary_problems(),
    squared=st.booleans(),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 99),
)
def test_exact_step_is_no_worse_than_any_other(problem, squared, fit_intercept, seed):
    X, y, weights, alpha = problem
    objective = binary_objective(
        X,
        y,
        loss=BINARY_LOSSES["squared_hinge"] if squared else BINARY_LOSSES["hinge"],
        alpha=alpha,
        weights=weights,
        fit_intercept=fit_intercept,
    )
    rng = np.random.default_rng(seed)
    w, p = rng.normal(size=(2, objective.n_params))
    line = objective.at(w).along(p)
    step = exact(line)
    assert 0.0 <= step < np.inf
    kinks = [] if squared else line.restriction.kinks
    others = np.concatenate([[0.0], kinks, step * np.array([0.5, 0.99, 1.01, 2.0])])
    best = min(line.value(other) for other in others)
    assert line.value(step) <= best + 1e-12 * abs(best)
    if step == 0.0:
        assert line.slope(0.0) >= 0.0


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_exact_step_equals_the_bisected_one(seed, squared):
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, 300, 5)
    objective = binary_objective(
        X, y, loss=BINARY_LOSSES["squared_hinge"] if squared else BINARY_LOSSES["hinge"]
    )
    point = objective.at(rng.normal(size=6))
    line = point.along(-point.gradient)
    assert exact(line) == pytest.approx(bisect(line), rel=1e-9)


def test_no_minimizer_along_a_free_parameter():
    """Without penalty, nothing stops a row's score from leaving the other way."""
    objective = binary_objective(np.zeros((1, 1)), np.ones(1))
    line = objective.at(np.zeros(2)).along_free(-np.ones(1))
    assert exact(line) == 0.0
    f = piecewise(-1.0, 0.0, [1.0], [0.5])
    assert exact_line_search(f) == np.inf


# Minimizing over the intercept.


@each_loss
@EXPLORE
@given(problem=binary_problems(), seed=st.integers(0, 99))
def test_settle_minimizes_over_the_intercept(loss, problem, seed):
    X, y, weights, alpha = problem
    objective = binary_objective(X, y, loss=loss, alpha=alpha, weights=weights)
    w = np.random.default_rng(seed).normal(size=objective.n_params)
    point = objective.at(w)
    passes = objective.passes
    settled = minimize_intercept(point)
    value = settled.value
    assert objective.passes == passes
    assert_allclose(settled.w[:-1], w[:-1], rtol=0.0, atol=0.0)
    assert_allclose(settled.scores, objective.at(settled.w).scores, atol=1e-9)
    # The piecewise function of the intercept has a minimizer at a kink or, squared,
    # where the derivative vanishes.
    kinks = y - point.scores + w[-1]
    for intercept in [*kinks, w[-1], *(settled.w[-1] + np.array([-1e-3, 1e-3]))]:
        other = objective.at(np.append(w[:-1], intercept))
        assert value <= other.value + 1e-13 * max(1.0, other.value)
    # Dual variables of the squared hinge are violations, and so is their rounding.
    if loss.smooth and np.abs(point.scores).max() > 100.0:
        assert abs(settled.gradient[-1]) <= 1e-15 * np.abs(point.scores).max()
    else:
        assert abs(settled.gradient[-1]) <= 1e-13
        assert settled.cut.is_balanced(objective.regularizer.n_penalized)
        assert -np.inf < settled.lower_bound <= value + 1e-12


@each_loss
def test_settle_with_one_class_only(loss):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = rng.integers(1, 40)
        weights = rng.uniform(0.1, 2.0, n)
        objective = binary_objective(
            rng.normal(size=(n, 3)), np.ones(n), loss=loss, weights=weights
        )
        settled = minimize_intercept(objective.at(rng.normal(size=4)))
        assert settled.cut.is_balanced(3)
        penalty = objective.alpha * objective.regularizer.value(settled.w)
        assert settled.value == pytest.approx(penalty, abs=1e-12)


@pytest.mark.parametrize("far", np.arange(690.0, 760.0, 2.0))
def test_settle_where_curvature_is_below_normal_numbers(far):
    """One row far from the others is nearest to the thresholds."""
    X = np.array([[1.0], [5.0], [-5.0], [-6.0]])
    loss = OrdinalLogistic(immediate=True).loss
    targets, weights = np.array([0.0, 2.0, 0.0, 2.0]), np.full(4, 0.25)
    risk = Risk(ThresholdDesign(X, 2), loss, targets, weights)
    objective = Objective(risk, L2(1), 1e-3)
    point = objective.at(np.array([far, -1.0, 2.0]))
    settled = minimize_intercept(point)
    assert np.all(np.isfinite(settled.w))
    assert settled.value <= point.value


def test_settle_without_free_parameters_does_nothing():
    X, y = gaussian_data(np.random.default_rng(0), 10, 2)
    point = binary_objective(X, y, fit_intercept=False).at(np.ones(2))
    assert minimize_intercept(point) is point


def test_settled_points_stay():
    X, y = gaussian_data(np.random.default_rng(1), 20, 2)
    settled = minimize_intercept(binary_objective(X, y).at(np.ones(3)))
    again = minimize_intercept(settled)
    assert again.w[-1] == settled.w[-1]
    assert again.cut.is_balanced(2)


# Inexact searches.


def wolfe_conditions(line, step, c1, c2):
    """(3.17) and (3.18)."""
    slope = line.slope(0.0)
    decreased = line.value(step) <= line.value(0.0) + c1 * step * slope
    return decreased and line.slope(step) >= c2 * slope


@EXPLORE
@given(
    problem=binary_problems(),
    first=st.sampled_from([1e-6, 1.0, 1e6]),
    constants=st.sampled_from([(1e-4, 0.9), (0.1, 0.2), (0.4, 0.5)]),
    seed=st.integers(0, 99),
)
def test_wolfe_steps_obey_the_subgradient_wolfe_conditions(
    problem, first, constants, seed
):
    X, y, weights, alpha = problem
    objective = binary_objective(X, y, alpha=alpha, weights=weights)
    point = objective.at(np.random.default_rng(seed).normal(size=objective.n_params))
    line = point.along(-point.gradient)
    step = wolfe(line, first, c1=constants[0], c2=constants[1])
    assert 0.0 < step < np.inf
    assert wolfe_conditions(line, step, *constants)


def test_wolfe_accepts_the_first_step_where_it_will_do():
    parabola = FunctionObjective(lambda w: 0.5 * w @ w, lambda w: w.copy())
    line = parabola.at(np.array([4.0])).along(np.array([-4.0]))
    assert wolfe(line) == 1.0
    # A fifth of the way is too short for a curvature condition of one half.
    assert wolfe(line, 0.2, c2=0.5) == 0.8
    # Across the minimizer to the other side, no decrease: half of it.
    assert wolfe(line, 2.0) == 1.0


def test_wolfe_on_a_function_without_minimum():
    line = FunctionObjective(lambda w: -w[0], lambda w: -np.ones(1)).at(np.zeros(1))
    assert wolfe(line.along(np.ones(1))) == np.inf


def test_wolfe_finds_no_step_uphill_in_value():
    # A "subgradient" that does not belong to the function.
    wrong = FunctionObjective(lambda w: w[0], lambda w: -np.ones(1))
    assert wolfe(wrong.at(np.zeros(1)).along(np.ones(1))) == 0.0


def test_wolfe_backs_off_from_where_the_objective_is_no_number():
    def value(w):
        return w[0] ** 2 - 2.0 * w[0] if w[0] <= 1.5 else np.nan

    objective = FunctionObjective(value, lambda w: 2.0 * w - 2.0)
    assert wolfe(objective.at(np.zeros(1)).along(np.ones(1)), 4.0) == 1.0


def absolute(center):
    """|w - center| with right-hand slopes."""
    return FunctionObjective(
        lambda w: abs(w[0] - center),
        lambda w: np.array([1.0 if w[0] >= center else -1.0]),
    )


@pytest.mark.parametrize("center", [1.0, 0.3, 1e-8, 1e8, np.pi])
@pytest.mark.parametrize("first", [1.0, 1e-3, 1e3])
def test_bisect_finds_kinks_to_the_last_digit(center, first):
    line = absolute(center).at(np.zeros(1)).along(np.ones(1))
    assert bisect(line, first) == center


def test_bisect_without_descent_or_minimizer():
    line = absolute(-1.0).at(np.zeros(1)).along(np.ones(1))
    assert bisect(line) == 0.0
    line = absolute(2.0**40).at(np.zeros(1)).along(np.ones(1))
    assert bisect(line, max_doublings=30) == np.inf


# Multiples of the parameters


@each_loss
@EXPLORE
@given(problem=binary_problems(), seed=st.integers(0, 99), size=st.floats(-6.0, 6.0))
def test_scaled_points_are_the_best_multiples(loss, problem, seed, size):
    X, y, weights, alpha = problem
    objective = binary_objective(X, y, loss=loss, weights=weights, alpha=alpha)
    w = 10.0**size * np.random.default_rng(seed).normal(size=objective.n_params)
    point = objective.at(w)
    best = scaled(point)
    assert best.value <= point.value
    # Scores are less a multiple of those of w, whose last digits they keep.
    rounding = 4.0 * np.finfo(float).eps * point.largest_score
    value = objective.at(best.w).value
    assert best.value == pytest.approx(value, rel=1e-9, abs=rounding)
    for factor in np.geomspace(1e-3, 1e3, 61):
        assert best.value <= objective.at(factor * point.w).value * (1.0 + 1e-12)


def test_no_multiple_of_zero_is_better():
    X, y = gaussian_data(np.random.default_rng(0), 9, 3)
    origin = binary_objective(X, y).origin()
    assert scaled(origin) is origin


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_functions_that_end_flat_do_so_in_all_units(unit):
    """Slopes of 1e-16 are rounding, those of 1e-6 fall for ever."""
    slope, kinks = -unit, [1.0, 2.0]
    for rest, minimizer in ((1e-16, 2.0), (1e-6, np.inf)):
        jumps = np.array([0.5, 0.5 - rest]) * unit
        assert exact_line_search(piecewise(slope, 0.0, kinks, jumps)) == minimizer
    # A parabola up to the kink at 2.
    for rest, minimizer in ((1e-14, 2.0), (1e-6, np.inf)):
        f = piecewise(-3.0 * unit, unit, [2.0], [(3.0 - rest) * unit], [-unit])
        assert exact_line_search(f) == minimizer


#: Convex functions by value and slope, with their smallest minimizers.
SEARCHED = {
    "parabola": (lambda t: 0.5 * (t - 3.0) ** 2, lambda t: t - 3.0, 3.0),
    "negative": (lambda t: 0.5 * (t - 3.0) ** 2 - 9.0, lambda t: t - 3.0, 3.0),
    "kink": (lambda t: abs(t - 0.7), lambda t: 1.0 if t >= 0.7 else -1.0, 0.7),
    "steep kink": (
        lambda t: max(0.7 - t, 50.0 * (t - 0.7)),
        lambda t: 50.0 if t >= 0.7 else -1.0,
        0.7,
    ),
    "flat from a kink": (lambda t: max(1.0 - t, 0.0), lambda t: -float(t < 1.0), 1.0),
    "flat from a bend": (
        lambda t: 0.5 * max(1.0 - t, 0.0) ** 2,
        lambda t: min(t - 1.0, 0.0),
        1.0,
    ),
    "quartic": (lambda t: 0.25 * (t - 2.0) ** 4, lambda t: (t - 2.0) ** 3, 2.0),
    "exponential": (
        lambda t: np.exp(t) - 5.0 * t,
        lambda t: np.exp(t) - 5.0,
        np.log(5),
    ),
    # Tangents at its steep side meet the others a fiftieth nearer each time.
    "steep exponential": (
        lambda t: np.exp(50.0 * (t - 1.3)) / 50.0 - t,
        lambda t: np.exp(50.0 * (t - 1.3)) - 1.0,
        1.3,
    ),
}


def counted(name):
    """Return what is tried, and the list of the steps tried so far."""
    value, slope, _ = SEARCHED[name]
    steps = []

    def trial(step):
        steps.append(step)
        return Trial(step, float(value(step)), float(slope(step)), np.empty(0))

    return trial, steps


@pytest.mark.parametrize("accuracy", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("name", SEARCHED)
def test_cutting_planes_leave_no_more_to_gain_than_allowed(name, accuracy):
    trial, steps = counted(name)
    best, other = bracket_by_cuts(trial, accuracy=accuracy)
    value, _, minimizer = SEARCHED[name]
    rest = best.value - value(minimizer)
    fall = value(0.0) - best.value
    assert rest <= accuracy * fall + 1e-14 * abs(best.value) + 1e-14
    assert best.value == min(value(step) for step in steps)
    assert min(best.slope, other.slope) < 0.0 <= max(best.slope, other.slope)
    assert len(steps) <= 70


@pytest.mark.parametrize("name", SEARCHED)
def test_three_trials_of_cutting_planes_halve_the_bracket(name):
    """However slowly the tangents meet nearer and nearer."""
    trial, steps = counted(name)
    bracket_by_cuts(trial)
    slope = SEARCHED[name][1]
    low = high = None
    widths = []
    for step in steps:
        if slope(step) < 0.0:
            low = step
        else:
            high = step
        if high is not None:
            widths.append(high - low)
    for before, after in zip(widths, widths[3:], strict=False):
        assert after <= 0.5 * before * (1.0 + 1e-12)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("name", SEARCHED)
def test_smallest_minimizers_by_values_and_slopes(name, unit):
    _, slope, minimizer = SEARCHED[name]
    trial, steps = counted(name)
    line = SimpleNamespace(
        restriction=None,
        value=lambda t: unit * trial(t).value,
        slope=lambda t: unit * slope(t),
    )
    found = exact_on_function(line)
    # A function is flat from where slopes vanish as rounding of their sums does.
    accuracy = 1e-4 if name == "quartic" else 1e-9
    assert_allclose(found, minimizer, rtol=accuracy)
    assert len(steps) <= 130


def test_smallest_zeros_of_slopes_before_a_flat_end():
    """The bracket ends where the function is flat, a millionth of it is allowed."""
    for name in ("flat from a kink", "flat from a bend"):
        for high in (4.0, 7.3):
            trial, _ = counted(name)
            found = zero_between(trial, trial(0.0), trial(high))
            assert 1.0 <= found.step <= 1.0 + 2e-6 * high
            assert found.slope == 0.0
