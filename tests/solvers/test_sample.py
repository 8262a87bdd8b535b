"""Starts from a sample of the rows."""

from functools import partial

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    Design,
    Objective,
    Options,
    Risk,
    Start,
    Stopping,
    auto,
    run,
    sample,
    solve_related,
    spread,
    to_the_end,
    without_compiled_loop,
)

from sklearn_subqn import SubLBFGSLinearSVC


@pytest.fixture(autouse=True)
def no_loop(monkeypatch):
    """Samples are of problems that are too large for the compiled loop."""
    without_compiled_loop(monkeypatch)


def tall(n=20_000, d=5, *, seed=0, fit_intercept=False, weights=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    weights = np.full(n, 1.0 / n) if weights is None else weights
    design = Design(X, fit_intercept=fit_intercept)
    return Objective(Risk(design, BINARY_LOSSES["hinge"], y, weights), L2(d), 1e-3)


def sampled(objective):
    """Return the solution of a sixteenth of the rows as a point of all."""
    related = next(sample(objective, len(objective.weights) // 16), None)
    if related is None:
        return None
    start = Start(np.zeros(objective.n_params))
    steps = solve_related(related, partial(auto, options=Options()), start)
    (*_, last) = steps
    return last.point


@pytest.mark.parametrize(("n", "n_sampled"), [(16, 1), (1000, 62), (99_999, 6249)])
def test_sampled_rows_arespread_over_all(n, n_sampled):
    rows = spread(n, n_sampled)
    assert len(rows) == n_sampled
    assert np.all(np.diff(rows) > 0)
    assert rows.min() >= 0
    assert rows.max() < n
    counts, _ = np.histogram(rows, bins=8, range=(0, n))
    assert np.ptp(counts) <= 4


@pytest.mark.parametrize("period", [2, 3, 7, 16, 50])
def test_sampled_rows_follow_no_period(period):
    rows = spread(50_000, 3125)
    counts = np.bincount(rows % period, minlength=period)
    assert counts.min() > 0.5 * counts.mean()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_solution_of_a_sample_is_nearly_that_of_all(fit_intercept):
    objective = tall(fit_intercept=fit_intercept)
    near = sampled(objective).value
    start = Start(np.zeros(objective.n_params))
    iterates = to_the_end(auto(objective, start, Options()))
    best = min(iterate.point.value for iterate in iterates)
    assert best < near < 1.02 * best


def test_a_sample_counts_as_the_share_of_a_pass():
    objective = tall()
    sampled(objective)
    assert 0.1 < objective.passes < 3.0


def test_no_sample_unless_rows_are_many_times_the_features():
    for n, expected in ((16 * 64 * 5 - 16, False), (16 * 64 * 5, True)):
        objective = tall(n)
        iterates = auto(objective, Start(np.zeros(objective.n_params)), Options())
        plan = run(iterates, Stopping(1e-3), max_iter=50).plan
        assert plan.startswith("sample") == expected


def test_no_sample_of_rows_without_weight():
    n = 20_000
    weights = np.ones(n)
    weights[spread(n, n // 16)] = 0.0
    assert sampled(tall(n, weights=weights / weights.sum())) is None


def test_a_sample_of_one_class_misleads_nobody():
    X = np.random.default_rng(1).normal(size=(20_000, 3))
    y = np.ones(20_000)
    y[np.setdiff1d(np.arange(20_000), spread(20_000, 1250))[:2000]] = -1.0
    model = SubLBFGSLinearSVC(solver="auto").fit(X, y)
    peer = SubLBFGSLinearSVC(solver="alm").fit(X, y)
    assert "sample" in model.history_[0].phase
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(peer.objective_, rel=2e-3)


def test_history_begins_at_the_origin():
    objective = tall()
    model = SubLBFGSLinearSVC(1e-3, fit_intercept=False)
    model.fit(objective.design.X, objective.targets)
    history = model.history_[0]
    assert history.objective[0] == pytest.approx(1.0)
    assert history.objective[1] < 0.9
