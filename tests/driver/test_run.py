"""The driver: when it stops, what it records, what it returns."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    Chosen,
    CutBundle,
    DenseInverseHessian,
    Dual,
    FunctionObjective,
    History,
    Iterate,
    LimitedMemoryInverseHessian,
    Stopping,
    bfgs,
    run,
    subbfgs,
    to_the_end,
    wolfe,
)
from _problems import binary_objective, gaussian_data
from numpy.testing import assert_array_equal

#: A gap of 1e-2 will do, all of it is asked for.
LIMITS = {"stopping": Stopping(0.0, enough=1e-2), "max_iter": 200}


def script(values, bounds=None, status=None, phases=None):
    """A solver that yields points of the given values, then returns ``status``."""
    for i, value in enumerate(values):
        yield Iterate(
            SimpleNamespace(w=np.array([float(i)]), value=value),
            lower_bound=-np.inf if bounds is None else bounds[i],
            phase="" if phases is None else phases[i],
        )
    return status


def forever(value, bound=-np.inf):
    while True:
        yield Iterate(SimpleNamespace(w=np.zeros(1), value=value), None, bound)


def hinge_problem(*, alpha=1e-2, loss=None, fit_intercept=True):
    X, y = gaussian_data(np.random.default_rng(0), 60, 4)
    objective = binary_objective(
        X, y, alpha=alpha, loss=loss, fit_intercept=fit_intercept
    )
    w = np.zeros(objective.n_params)
    hessian = LimitedMemoryInverseHessian(objective.n_params, 10)
    return objective, subbfgs(objective, w, hessian)


def test_stops_once_the_relative_gap_is_proven():
    result = run(
        script([4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 1.8, 1.0]), Stopping(0.1), max_iter=10
    )
    assert (result.status, result.n_iter) == ("converged", 2)
    assert (result.point.value, result.lower_bound) == (2.0, 1.8)
    assert result.gap == pytest.approx(0.2)


@pytest.mark.parametrize("points_prove", [False, True])
def test_points_prove_where_iterates_do_not(points_prove):
    """Of the three bounds one is the iterate's own, worse than the point's."""

    def solver():
        for value, own in ((3.0, -np.inf), (2.8, 1.0), (2.6, -np.inf)):
            point = SimpleNamespace(w=np.zeros(1), value=value, lower_bound=value - 0.5)
            yield Iterate(point, lower_bound=own)

    result = run(solver(), Stopping(0.0), max_iter=10, points_prove=points_prove)
    known = [2.5, 2.5, 2.5] if points_prove else [-np.inf, 1.0, 1.0]
    assert result.history.lower_bound == known


@pytest.mark.parametrize(("first", "last"), [(3, 40), (20, 100), (30, 130)])
def test_what_was_asked_for_limits_the_iterations_beyond_it(first, last):
    """More exactness takes a multiple of the iterations so far, a hundred at most."""
    values = [2.0] * first + [1.0 + 1e-3 * 0.9**i for i in range(200)]
    solver = script(values, [1.0] * len(values))
    result = run(solver, Stopping(1e-13, asked=1e-2), max_iter=800)
    assert (result.status, result.n_iter) == ("converged", last)


def test_beyond_what_is_enough_runs_end_where_they_are_slow():
    fast, slow = [2.0 ** (1 - i) for i in range(12)], [2e-4 * 0.9**i for i in range(90)]
    result = run(script([1.0 + gap for gap in fast + slow], [1.0] * 102), **LIMITS)
    assert (result.status, result.n_iter) == ("converged", len(fast) + 5)
    slow_before = [2.0 * 0.99**i for i in range(90)]
    result = run(script([1.0 + gap for gap in slow_before], [1.0] * 90), **LIMITS)
    assert (result.status, result.n_iter) == ("stopped", 89)


def test_optima_of_zero_end_at_rounding():
    values = [2.0**-k for k in range(500)]
    result = run(
        script(values, [0.0] * 500),
        Stopping(1e-3),
        max_iter=499,
        is_rounding=lambda point, gap: gap <= 1e-15,
    )
    # Iterations that are powers of two ask for it: 1e-15 is reached after 50.
    assert (result.status, result.n_iter) == ("rounding", 64)


def test_gap_is_relative_to_the_size_of_the_objective():
    result = run(script([-4.0, -8.0], [-9.0, -9.0]), Stopping(0.2), max_iter=10)
    assert (result.status, result.n_iter) == ("converged", 1)


def test_another_bound_is_asked_for_where_the_objective_hardly_falls():
    asked = []

    def prove(point):
        asked.append(point.value)
        return 1.0 if len(asked) > 2 else 0.0

    values = [9.0, 2.0, 1.5, 1.4005, 1.4, 1.0005, 1.0004, 1.0003, 1.0002, 1.0001]
    stopping = Stopping(1e-3)
    result = run(script(values), stopping, max_iter=100, prove=prove)
    # At first at once, and then after at least one, two and more iterations.
    assert asked == [1.4, 1.0004, 1.0002]
    assert result.status == "converged"
    assert result.lower_bound == 1.0
    assert result.point.value == 1.0002


def test_the_best_point_counts_not_the_last():
    result = run(script([4.0, 2.0, 3.0], [0.5, 1.0, 0.0]), Stopping(0.0), max_iter=2)
    assert (result.status, result.n_iter) == ("max_iter", 2)
    assert_array_equal(result.point.w, [1.0])
    assert result.history.objective == [4.0, 2.0, 2.0]
    assert result.history.lower_bound == [0.5, 1.0, 1.0]


@pytest.mark.parametrize("max_iter", [0, 1, 7])
def test_max_iter_counts_iterations_after_the_starting_point(max_iter):
    result = run(forever(1.0), Stopping(0.0), max_iter=max_iter)
    assert (result.status, result.n_iter) == ("max_iter", max_iter)
    assert len(result.history) == max_iter + 1


def test_solver_is_closed():
    solver = forever(1.0)
    run(solver, Stopping(0.0), max_iter=3)
    with pytest.raises(StopIteration):
        next(solver)


def taken_over(end):
    """A solver that is chosen, followed by one that returns ``end``."""
    last = script([3.0, 1.0], [0.5, 0.0], status=end)

    def first():
        yield from script([4.0, 2.0], [0.0, 0.2])
        return last

    def choose():
        yield from ()
        return Chosen(first(), "two methods")

    return choose(), last


@pytest.mark.parametrize("whole", [False, True])
def test_solvers_continue_the_runs_of_others(whole):
    """The counts go on, and the reason for the end is the last one's."""
    solver, _ = taken_over("no_step")
    solver = to_the_end(solver) if whole else solver
    result = run(solver, Stopping(0.0), max_iter=10)
    assert (result.status, result.n_iter) == ("no_step", 3)
    assert result.history.objective == [4.0, 2.0, 2.0, 1.0]
    assert result.history.lower_bound == [0.0, 0.2, 0.5, 0.5]
    assert result.plan == ("" if whole else "two methods")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("calls", [False, True])
def test_solver_that_continues_is_closed(whole, calls):
    """At a limit and by a callback."""
    solver, last = taken_over("never reached")
    solver = to_the_end(solver) if whole else solver
    report = (lambda result: result.n_iter == 2) if calls else None
    result = run(solver, Stopping(0.0), max_iter=10 if calls else 2, report=report)
    assert (result.status, result.n_iter) == ("callback" if calls else "max_iter", 2)
    assert next(last, None) is None


def test_gap_of_zero_converges_with_tolerance_zero():
    result = run(forever(2.0, bound=2.0), Stopping(0.0), max_iter=5)
    assert (result.status, result.n_iter, result.gap) == ("converged", 0, 0.0)


def test_gap_is_never_negative():
    """Rounding can lift a bound above the objective."""
    result = run(script([1.0], [1.0 + 1e-15]), Stopping(0.0), max_iter=5)
    assert result.gap == 0.0


@pytest.mark.parametrize("status", ["no_descent", "unbounded"])
def test_solver_that_stops_by_itself_says_why(status):
    result = run(script([3.0, 2.0], status=status), Stopping(0.0), max_iter=10)
    assert (result.status, result.n_iter) == (status, 1)
    assert len(result.history) == 2


def test_solver_that_stops_without_a_word():
    assert run(script([3.0]), Stopping(0.0), max_iter=10).status == "stopped"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("earlier", [[], [1.0, 0.5]])
def test_objective_that_is_not_finite(value, earlier):
    solver = script([*earlier, value], status="never reached")
    with pytest.raises(FloatingPointError, match="objective became"):
        run(solver, Stopping(0.0), max_iter=10)


# Stalling.


@pytest.mark.parametrize("bound", [-np.inf, 0.5])
def test_run_without_progress_stalls(bound):
    result = run(forever(1.0, bound), Stopping(1e-3), max_iter=1000)
    assert result.status == "stalled"
    assert result.n_iter < 1000


def test_slow_progress_of_the_objective_is_progress():
    values = 2.0 - 1e-5 * np.arange(300.0)
    result = run(script(values, status="end"), Stopping(1e-3), max_iter=1000)
    assert result.status == "end"
    # A tenth of the tolerance in a hundred iterations is the least.
    values = 2.0 - 1e-7 * np.arange(300.0)
    assert run(script(values), Stopping(1e-3), max_iter=1000).status == "stalled"


def test_slow_progress_of_the_bound_is_progress():
    values, bounds = np.ones(300), 1e-5 * np.arange(300.0)
    result = run(script(values, bounds, "end"), Stopping(1e-3), max_iter=1000)
    assert result.status == "end"
    result = run(script(values, 1e-2 * bounds), Stopping(1e-3), max_iter=1000)
    assert result.status == "stalled"


@pytest.mark.parametrize("tol", [0.2, 0.1, 0.01])
def test_looser_tolerances_do_not_give_up_what_is_near(tol):
    """Of a gap of 0.35 that shrinks by a hundredth in a hundred iterations."""
    values = 1.35 * np.ones(400)
    bounds = 1.0 + 3.5e-5 * np.arange(400.0)
    assert (
        run(script(values, bounds, "end"), Stopping(tol), max_iter=1000).status == "end"
    )


def test_first_bound_is_progress():
    values, bounds = np.ones(130), np.full(130, -np.inf)
    bounds[50:] = 0.5
    result = run(script(values, bounds, "end"), Stopping(1e-3), max_iter=1000)
    assert result.status == "end"


# Reports.


def test_report_sees_every_iteration_and_may_stop():
    seen = []

    def report(result):
        assert len(result.history) == result.n_iter + 1
        seen.append((result.n_iter, result.point.value, result.lower_bound))
        return result.n_iter == 2

    result = run(
        script([4.0, 3.0, 3.5, 1.0], [0.0, 0.5, 0.25, 0.0]),
        Stopping(0.0),
        max_iter=10,
        report=report,
    )
    assert seen == [(0, 4.0, 0.0), (1, 3.0, 0.5), (2, 3.0, 0.5)]
    assert (result.status, result.n_iter) == ("callback", 2)


@pytest.mark.parametrize("answer", [None, False, 1, "yes"])
def test_report_stops_by_true_only(answer):
    result = run(forever(1.0), Stopping(0.0), max_iter=3, report=lambda result: answer)
    assert result.status == "max_iter"


def test_convergence_outranks_the_callback_and_the_limit():
    result = run(
        script([1.0, 1.0], [0.0, 1.0]),
        Stopping(1e-3),
        max_iter=1,
        report=lambda result: result.n_iter == 1,
    )
    assert result.status == "converged"


# History.


class Passes:
    """What counts passes: one number after another."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    @property
    def passes(self):
        return next(self._numbers)


def test_history():
    result = run(
        script([4.0, 2.0, 3.0], phases=["a", "a", "b"], status="end"),
        Stopping(0.0),
        max_iter=10,
        counter=Passes([2.0, 4.5, 7.0]),
        since=1.0,
    )
    history = result.history
    assert history.passes == [1.0, 3.5, 6.0]
    assert history.phase == ["a", "a", "b"]
    assert history.seconds == sorted(history.seconds)
    records = vars(history).copy()
    assert records.pop("infimum") == 0.0
    for record in records.values():
        assert len(record) == len(history) == 3
    assert repr(history) == "<History of 2 iterations>"
    assert repr(History()) == "<History of 0 iterations>"


def test_history_ends_with_the_result():
    objective, solver = hinge_problem()
    result = run(
        solver,
        Stopping(1e-5),
        max_iter=300,
        bundle=partial(CutBundle, objective),
        counter=objective,
    )
    history = result.history
    assert result.status == "converged"
    assert len(history) == result.n_iter + 1
    assert history.objective[-1] == result.point.value
    assert history.lower_bound[-1] == result.lower_bound
    assert np.all(np.diff(history.objective) <= 0.0)
    assert np.all(np.diff(history.lower_bound) >= 0.0)
    assert np.all(np.diff(history.passes) > 0.0)
    assert history.passes[-1] <= objective.passes
    assert {phase.partition(":")[0] for phase in history.phase} == {"subbfgs"}
    assert 0.0 <= result.gap <= 1e-5 * result.point.value


# With a bundle.


def test_bundle_is_asked_at_the_end_whatever_the_end_is():
    """The best bound counts even where its program was not yet due."""
    for max_iter in range(3, 30, 5):
        objective, solver = hinge_problem()
        bundles = [CutBundle(objective)]
        made = iter(bundles).__next__
        result = run(solver, Stopping(0.0), max_iter=max_iter, bundle=made)
        assert result.status == "max_iter"
        assert result.lower_bound == pytest.approx(bundles[0].improve(), rel=1e-14)
    objective, solver = hinge_problem()
    bundle = CutBundle(objective)
    result = run(
        solver,
        Stopping(0.0),
        max_iter=100,
        bundle=lambda: bundle,
        report=lambda result: result.n_iter == 17,
    )
    assert result.status == "callback"
    assert result.lower_bound == pytest.approx(bundle.improve(), rel=1e-14)


@pytest.mark.parametrize("size", [2, 3, 12])
def test_small_bundles_are_asked_before_they_forget(size):
    """Every cut takes part in a program before it is dropped."""
    objective, solver = hinge_problem()
    bundle = CutBundle(objective, size)
    counts = []
    improve = bundle.improve
    bundle.improve = lambda: counts.append(0) or improve()
    run(
        solver,
        Stopping(0.0),
        max_iter=60,
        bundle=lambda: bundle,
        report=lambda result: counts.append(1),
    )
    # Runs of iterations without a program in between.
    lengths = [len(ones) for ones in "".join(map(str, counts)).split("0")]
    assert max(lengths) <= size - 1


def test_last_bound_may_still_prove_convergence():
    """A solver that ends by itself at the optimum has converged."""
    problem, solver = hinge_problem(
        loss=BINARY_LOSSES["squared_hinge"], fit_intercept=False
    )
    best = run(
        solver, Stopping(1e-10), max_iter=300, bundle=partial(CutBundle, problem)
    ).point

    def ends_between_two_programs():
        for w in (np.zeros(4), np.zeros(4), np.zeros(4), best.w):
            point = problem.at(w)
            yield Iterate(point, point.cut)
        return "no_descent"

    solver = ends_between_two_programs()
    result = run(
        solver, Stopping(1e-8), max_iter=300, bundle=partial(CutBundle, problem)
    )
    assert (result.status, result.n_iter) == ("converged", 3)
    assert result.history.lower_bound[-1] == result.lower_bound
    assert result.history.lower_bound[-2] < 0.9 * result.lower_bound
    assert (
        run(ends_between_two_programs(), Stopping(1e-8), max_iter=9).status
        == "no_descent"
    )


def test_stationary_point_ends_the_run():
    objective = FunctionObjective(lambda w: 0.5 * w @ w, lambda w: w.copy())
    solver = bfgs(objective, np.ones(2), DenseInverseHessian(2), search=wolfe)
    result = run(solver, Stopping(1e-3), max_iter=50)
    assert (result.status, result.n_iter) == ("stationary", 1)


def test_unbounded_objectives_end_the_run():
    objective = FunctionObjective(lambda w: -w[0], lambda w: -np.ones(1))
    for method in (bfgs, subbfgs):
        solver = method(
            objective, np.zeros(1), DenseInverseHessian(1), search=lambda line: np.inf
        )
        assert run(solver, Stopping(0.0), max_iter=50).status == "unbounded"


def test_search_that_cannot_move_ends_the_run():
    objective = FunctionObjective(lambda w: w @ w, lambda w: 2.0 * w)
    for method in (bfgs, subbfgs):
        solver = method(
            objective, np.ones(1), DenseInverseHessian(1), search=lambda line: 0.0
        )
        result = run(solver, Stopping(0.0), max_iter=50)
        assert (result.status, result.n_iter) == ("no_step", 0)


def test_search_that_cannot_move_on_ends_with_the_bound_of_a_fresh_point():
    """Updates of scores and gradients leave errors, which lower bounds allow for."""
    X, y = gaussian_data(np.random.default_rng(0), 60, 4)
    objective = binary_objective(1e6 * X, y, alpha=1e-2, loss=BINARY_LOSSES["log_loss"])
    steps = [0.5] * 8 + [0.0] * 2
    solver = bfgs(
        objective,
        np.full(objective.n_params, 1e-6),
        DenseInverseHessian(objective.n_params),
        search=lambda line: steps.pop(0) / np.linalg.norm(line.p) / 1e6,
    )
    *_, before, last = solver
    assert_array_equal(last.point.w, before.point.w)
    assert last.point.drift == 0.0 < before.point.drift
    assert last.lower_bound == objective.at(last.point.w).lower_bound


def test_keeps_the_dual_point_of_the_best_bound():
    points = [SimpleNamespace(w=np.zeros(1), value=1.0)] * 4
    bounds = [-np.inf, 0.5, 0.2, -np.inf]
    duals = [np.full(1, float(i)) for i in range(3)] + [None]

    def solver():
        for point, bound, dual in zip(points, bounds, duals, strict=True):
            proof = None if dual is None else Dual(dual)
            yield Iterate(point, None, bound, proof=proof)
        return "stopped"

    assert run(solver(), Stopping(0.0), max_iter=10).dual is duals[1]


def test_no_progress_is_asked_of_preparations():
    def solver(n_prepared):
        point = SimpleNamespace(w=np.zeros(1), value=1.0)
        for i in range(1000):
            yield Iterate(point, preparing=i < n_prepared)
        return "stopped"

    stalled = run(solver(0), Stopping(1e-3), max_iter=10_000)
    later = run(solver(300), Stopping(1e-3), max_iter=10_000)
    assert stalled.status == later.status == "stalled"
    assert later.n_iter == stalled.n_iter + 300
