"""Solvers on rows in three parts: the same optimum, with the same certificate."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from _door import (
    L2,
    SOLVERS,
    CutBundle,
    Options,
    Start,
    Stopping,
    elastic_net,
    proximal_newton,
    run,
)
from _parts import LOSSES, D, pair, pair_that_compares_rows

TOL = 1e-4

# Methods that go by columns need all rows in one place, and that with two cuts takes
# thousands of iterations, like any other.
_LEFT_OUT = {"cd", "cyclic-cd", "bmrm-aggregated"}

# These bundle methods take up to ten seconds and more with an L1 norm.
_SLOW = {"proximal-bundle", "trust-region-bundle"}
# All solvers of these losses ask parts the same questions, which test_risk.py answers.
_JOINT = {"multiclass", "multilabel", "label pairs"}
_OF_JOINT = {"auto", "ls-bmrm"}

CASES = [
    pytest.param(
        name,
        l1_ratio,
        solver,
        marks=[pytest.mark.slow]
        if (l1_ratio and (name in _JOINT or solver in _SLOW))
        or (name in _JOINT and solver not in _OF_JOINT)
        else [],
    )
    for name, (loss, *_) in LOSSES.items()
    for l1_ratio in (None, 0.5)
    for solver in sorted(SOLVERS.keys() - _LEFT_OUT)
    if SOLVERS[solver].supports(loss, elastic_net(1, l1_ratio or 0.0))
]


def solved(objective, spec, start=None):
    """Return the result of a run, with bounds from cuts if need be."""
    cuts = not spec.proves and isinstance(objective.regularizer, L2)
    bundle = partial(CutBundle, objective) if cuts else None
    start = start or Start(np.zeros(objective.n_params))
    solver = spec.start(objective, start, Options(stopping=Stopping(TOL)))
    return run(solver, Stopping(TOL), max_iter=300, bundle=bundle)


@pytest.mark.parametrize(("name", "l1_ratio", "solver"), CASES)
def test_solvers_find_the_same_optimum(name, l1_ratio, solver):
    spec = SOLVERS[solver]
    one, three = pair(name, l1_ratio=l1_ratio, alpha=0.02)
    a, b = (solved(objective, spec) for objective in (one, three))
    assert (a.status == "converged") == (b.status == "converged")
    assert b.lower_bound <= a.point.value * (1.0 + 1e-14)
    assert a.lower_bound <= b.point.value * (1.0 + 1e-14)
    if a.status == "converged":
        assert b.point.value == pytest.approx(a.point.value, rel=3.0 * TOL)
        assert b.gap <= TOL * abs(b.point.value)


@pytest.mark.parametrize("name", ["hinge", "multiclass", "squared_hinge", "softmax"])
def test_warm_starts_with_dual_points(name):
    l1_ratio = 0.5 if name == "softmax" else None
    spec = SOLVERS["auto"]
    counts = []
    for objective in pair(name, l1_ratio=l1_ratio, alpha=0.02):
        first = solved(objective.with_alpha(0.1), spec)
        again = solved(objective, spec, Start(first.point.w, first.dual))
        assert again.status == "converged"
        counts.append(again.point.value)
    assert counts[1] == pytest.approx(counts[0], rel=3.0 * TOL)


@pytest.mark.parametrize(
    "name", ["hinge", "multiclass", "absolute_error", "label pairs"]
)
def test_tall_data_begin_with_a_sample_in_one_place(name):
    one, three = pair(name, n=8000)
    result = solved(three, SOLVERS["auto"])
    assert result.plan == "sample, proximal method of multipliers"
    assert "sample" in result.history.phase
    assert result.status == "converged"
    assert three.passes < 60.0
    expected = solved(one, SOLVERS["auto"]).point.value
    assert result.point.value == pytest.approx(expected, rel=3.0 * TOL)


@pytest.mark.parametrize("name", ["hinge", "multiclass", "squared_hinge", "huber"])
def test_small_alphas(name):
    one, three = pair(name, alpha=1e-9)
    a, b = (solved(o, SOLVERS["auto"]) for o in (one, three))
    assert b.point.value == pytest.approx(a.point.value, rel=3.0 * TOL, abs=1e-12)
    assert b.lower_bound <= a.point.value * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["roc", "squared", "logistic", "ndcg", "f_beta"])
def test_losses_that_compare_rows_of_different_parts(loss):
    one, three = pair_that_compares_rows(loss)
    for name in ("auto", "ls-bmrm"):
        spec = SOLVERS[name]
        a, b = (solved(objective, spec) for objective in (one, three))
        assert a.status == b.status == "converged"
        assert b.point.value == pytest.approx(a.point.value, rel=3.0 * TOL)
        assert b.lower_bound <= a.point.value


@pytest.mark.parametrize("name", ["log_loss", "squared_hinge", "huber", "ordinal"])
def test_proximal_newton_steps(name):
    """The only method for an L1 penalty on parts that needs few iterations."""
    one, three = pair(name, l1_ratio=1.0, alpha=1e-3)
    result = solved(three, SOLVERS["auto"])
    assert result.plan == "proximal Newton method"
    assert result.n_iter <= 10
    # Against a method of no second derivatives.
    other = SOLVERS["fista"].start(one, Start(np.zeros(one.n_params)), Options())
    expected = run(other, Stopping(1e-6), max_iter=20_000)
    assert result.lower_bound <= expected.point.value * (1.0 + 1e-14)
    assert expected.lower_bound <= result.point.value
    assert result.gap <= TOL * result.point.value


def test_models_of_parts_are_damped():
    """Far on its wrong side a loss has a slope, but hardly any curvature."""
    _, three = pair("log_loss", n=60, alpha=1e-4)
    risk = three.risk
    point = three.at(30.0 * np.ones(three.n_params))
    least = risk.parts.collect("subgradient", point.scores)
    damped = risk.damped(point.curvature, point.scores, point.dual, 2.0)
    plain = [c.diagonal() for c in point.curvature]
    found = np.concatenate([c.diagonal() for c in damped])
    assert (found >= np.concatenate(plain)).all()
    assert (found >= np.abs(least) / 4.0).all()
    assert found.sum() > 2.0 * np.concatenate(plain).sum()


def test_proximal_newton_ends_at_zero_where_the_penalty_is_large():
    _, three = pair("log_loss", l1_ratio=1.0, alpha=10.0)
    result = solved(three, SOLVERS["auto"])
    assert result.status == "converged"
    assert not result.point.w[:D].any()
    assert list(proximal_newton(three, Start(result.point.w)))[-1].gap < 1e-12


@pytest.mark.parametrize("name", ["log_loss", "squared_hinge", "softmax"])
def test_coordinate_descent_refuses_parts(name):
    _, three = pair(name, l1_ratio=1.0, alpha=0.02)
    with pytest.raises(TypeError, match="needs all rows in one place"):
        solved(three, SOLVERS["cd"])
