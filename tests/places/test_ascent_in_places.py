"""Dual ascent over rows in several places: the optimum, and what belongs to a dual."""

from __future__ import annotations

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    SOLVERS,
    Design,
    Here,
    Objective,
    Options,
    Place,
    Risk,
    RiskOfParts,
    Session,
    Start,
    Stopping,
    run,
)
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn._core.rows.read_design import ReadDesign, Shelf
from sklearn_subqn._core.solvers.sweeps_of_parts import sweeps_of

N, D = 600, 1500
TOL = 1e-3
each_loss = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


def texts(*, by_label=False):
    """Return sparse rows with a few frequent columns, and signs."""
    rng = np.random.default_rng(0)
    places = (D * rng.random((N, 10)) ** 4).astype(np.intp)
    ones = np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, 10)
    X = sparse.csr_array(ones, shape=(N, D))
    X.sum_duplicates()
    y = np.sign(X @ rng.normal(size=D) + rng.normal(size=N) + 0.5)
    order = np.argsort(y, kind="stable") if by_label else np.arange(N)
    return X[order], y[order]


def objectives(loss, fit_intercept, alpha, n_places, **kwargs):
    """Return the objective of all rows in one place, and in four parts in places."""
    X, y = texts(**kwargs)
    weights = np.random.default_rng(1).random(N)
    weights /= weights.sum()

    def risk(rows):
        design = Design(X[rows], fit_intercept=fit_intercept)
        return Risk(design, BINARY_LOSSES[loss], y[rows], weights[rows])

    bounds = [slice(0, 100), slice(100, 290), slice(290, 310), slice(310, N)]
    parts = np.array_split(np.array(bounds, dtype=object), n_places)
    ways = [Here(Place(map(risk, own))) for own in parts]
    session = Session(ways, [len(own) for own in parts])
    elsewhere = RiskOfParts(session.parts)
    return [Objective(r, L2(D), alpha) for r in (risk(slice(N)), elsewhere)]


@each_loss
@each_intercept
@pytest.mark.parametrize(
    ("n_places", "by_label"), [(1, True), (2, False), (2, True), (4, False)]
)
def test_finds_the_optimum_in_about_as_many_passes(
    loss, fit_intercept, by_label, n_places
):
    both = objectives(loss, fit_intercept, 1e-3, n_places, by_label=by_label)
    spec, results = SOLVERS["auto"], []
    for objective in both:
        solver = spec.start(objective, Start(np.zeros(objective.n_params)), Options())
        results.append(run(solver, Stopping(TOL), max_iter=200))
    one, several = results
    assert one.status == several.status == "converged"
    assert one.plan == several.plan == "dual ascent"
    assert several.lower_bound <= one.point.value
    assert one.lower_bound <= several.point.value
    if not by_label:
        assert both[1].passes <= 3.0 * n_places**0.5 * both[0].passes


@each_loss
def test_two_places_take_as_many_passes_as_one(loss):
    both = objectives(loss, True, 1e-2, 2)
    for objective in both:
        start = Start(np.zeros(objective.n_params))
        solver = SOLVERS["auto"].start(objective, start, Options())
        assert run(solver, Stopping(TOL), max_iter=50).status == "converged"
    assert both[1].passes <= 1.05 * both[0].passes


@each_loss
@each_intercept
@pytest.mark.parametrize("proximity", [0.0, 0.3])
def test_parameters_belong_to_the_dual(loss, fit_intercept, proximity):
    _, objective = objectives(loss, fit_intercept, 1e-3, 2)
    risk, alpha = objective.risk, objective.alpha
    sweeps = sweeps_of(risk, alpha, None, proximity)
    center, scores = np.zeros(objective.n_params), None
    for seed in range(3):
        sweeps.run(scores)
        normal = risk.adjoint(sweeps.dual)[:D]
        assert_allclose(sweeps.conjugate_point, normal / -alpha, rtol=1e-9, atol=1e-11)
        w = (proximity * center[:D] - normal) / (alpha + proximity)
        assert_allclose(sweeps.w[:D], w, rtol=1e-9, atol=1e-11)
        center = np.random.default_rng(seed).normal(size=objective.n_params)
        sweeps.recenter(center)
        scores = risk.forward(sweeps.w)
    again = sweeps_of(risk, alpha, sweeps.dual, proximity)
    again.recenter(center)
    assert_allclose(again.w, sweeps.w, rtol=1e-9, atol=1e-11)


@each_loss
def test_rounds_raise_the_dual(loss):
    """They do so in four places, whatever the others do at the same time."""
    _, objective = objectives(loss, False, 1e-4, 4)
    risk = objective.risk
    sweeps = sweeps_of(risk, objective.alpha)
    last = -np.inf
    for _ in range(5):
        sweeps.run()
        new = -risk.conjugate_and_size(sweeps.dual)[0]
        new -= 0.5 * objective.alpha * float(sweeps.w @ sweeps.w)
        assert new > last
        last = new


def test_rows_that_are_read_for_each_use_are_left_alone():
    X, y = texts()
    design = Design(X)
    design = ReadDesign(design, lambda: X, None, Shelf())
    risk = Risk(design, BINARY_LOSSES["hinge"], y, np.full(N, 1.0 / N))
    assert RiskOfParts([risk]).rowwise_dual() is None
