"""Rows in three parts give what rows in one place give."""

from __future__ import annotations

import numpy as np
import pytest
from _door import (
    L2,
    Objective,
    OfParts,
    PartlyFree,
    Risk,
    ThresholdDesign,
    lower_bound,
    minimize_intercept,
    minimizer,
    rounding_of,
    scaled,
)
from _parts import LOSSES, D, each_format, each_intercept, each_loss, pair
from numpy.testing import assert_allclose

from sklearn_subqn.losses import OrdinalLogistic


def together(x):
    return np.concatenate(x) if isinstance(x, OfParts) else x


def same(whole, parts, **options):
    assert_allclose(together(parts), whole, rtol=1e-12, atol=1e-12, **options)


@each_loss
@each_format
@each_intercept
def test_bounds_with_free_columns(name, convert, fit_intercept):
    """The held columns are those of parts, and scores come to one place."""
    one, three = points(pair(name, convert, fit_intercept))
    bounds = []
    for point in (one, three):
        o = point.objective
        free = np.arange(o.regularizer.n_penalized) % D < 2
        freed = point.under(o.with_regularizer(PartlyFree(o.regularizer, free)))
        bounds.append(lower_bound(freed, [point.dual], point.value))
    if np.isfinite(bounds[0]):
        assert bounds[1] == pytest.approx(bounds[0], rel=1e-9, abs=1e-12)
        assert bounds[1] <= one.value
    else:
        assert bounds[0] == bounds[1]


def points(objectives, seed=0, scale=0.3):
    w = scale * np.random.default_rng(seed).normal(size=objectives[0].n_params)
    return [objective.at(w) for objective in objectives]


@each_loss
@each_format
@each_intercept
def test_values_gradients_and_bounds(name, convert, fit_intercept):
    objectives = pair(name, convert, fit_intercept)
    assert objectives[0].passes == objectives[1].passes == 0.0
    one, three = points(objectives)
    for attribute in ("value", "risk", "scores", "dual", "gradient", "norm", "drift"):
        same(getattr(one, attribute), getattr(three, attribute))
    assert objectives[1].passes == pytest.approx(objectives[0].passes, rel=0.1)
    same(rounding_of(one), rounding_of(three))
    for a, b in zip(one.cut, three.cut, strict=True):
        assert_allclose(b, a, rtol=1e-12, atol=1e-12)
    assert three.lower_bound == pytest.approx(one.lower_bound, rel=1e-12, abs=1e-12)
    for fact in ("n_params", "column_sizes"):
        same(*(getattr(o, fact) for o in objectives))
    for fact in ("row_size", "infimum"):
        same(*(getattr(o.risk, fact) for o in objectives))
    for fact in ("mean_square", "row_size", "n_rows", "n_entries"):
        same(*(getattr(o.design, fact) for o in objectives))
    if one.cut.is_balanced(objectives[0].regularizer.n_penalized):
        assert three.lower_bound <= one.value


@each_loss
@each_format
@each_intercept
def test_settled_points_prove_the_same_bounds(name, convert, fit_intercept):
    one, three = (
        minimize_intercept(point)
        for point in points(pair(name, convert, fit_intercept))
    )
    assert_allclose(three.w, one.w, rtol=1e-9, atol=1e-9)
    assert three.value == pytest.approx(one.value, rel=1e-12)
    assert three.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)
    assert one.objective.n_free != 1 or three.lower_bound > -np.inf


@each_loss
def test_level_duals(name):
    one, three = points(pair(name))
    shares = [p.objective.imbalance(p.dual) for p in (one, three)]
    same(*shares)
    assert shares[0] > 1e-4
    levels = [p.objective.risk.balance(p.dual) for p in (one, three)]
    same(*levels)
    assert_allclose(together(levels[1]).sum(axis=0), 0.0, atol=1e-15)
    # What is level already has nothing to make up for.
    for point, dual in zip((one, three), levels, strict=True):
        assert point.objective.imbalance(dual) < 1e-12


@each_loss
@each_format
@each_intercept
def test_lines(name, convert, fit_intercept):
    objectives = pair(name, convert, fit_intercept)
    p = np.random.default_rng(1).normal(size=objectives[0].n_params)
    lines = [point.along(p) for point in points(objectives)]
    for step in (0.0, 0.3, 2.0):
        same(*(line.slope(step) for line in lines))
        same(*(line.value(step) for line in lines))
        one, three = (line.point(step) for line in lines)
        same(one.scores, three.scores)
        same(one.dual, three.dual)
        same(one.gradient, three.gradient)
    for search in (minimizer, lambda line: scaled(line.point(1.0))):
        one, three = (search(line) for line in lines)
        assert three.value == pytest.approx(one.value, rel=1e-12)
        assert_allclose(three.w, one.w, rtol=1e-7, atol=1e-9)
    one, three = (line.start.towards(line.point(1.0)) for line in lines)
    same(one.dscores, three.dscores)
    same(one.largest_change, three.largest_change)


@pytest.mark.parametrize("name", [n for n in LOSSES if LOSSES[n][0].smooth])
@each_format
@each_intercept
def test_second_derivatives(name, convert, fit_intercept):
    one, three = (p.hessian for p in points(pair(name, convert, fit_intercept)))
    if name != "softmax":
        same(one.matrix(), three.matrix())
    same(one.diagonal(), three.diagonal())
    v = np.random.default_rng(2).normal(size=len(one.diagonal()))
    same(one.apply(v), three.apply(v))
    assert one.n_rows == three.n_rows
    if name == "softmax":
        same(one.spectral_solve()(v), three.spectral_solve()(v))


@pytest.mark.parametrize("name", [n for n in LOSSES if LOSSES[n][0].has_envelope])
@each_format
@each_intercept
def test_envelopes(name, convert, fit_intercept):
    smooth = []
    for point in points(pair(name, convert, fit_intercept)):
        risk = point.objective.risk
        width = 0.4 * risk.score_scale(point.scores)
        center = risk.center(risk.scaled(0.5, point.dual))
        smooth.append(point.under(point.objective.with_envelope(center, width)))
    one, three = smooth
    for attribute in ("value", "dual", "gradient"):
        same(getattr(one, attribute), getattr(three, attribute))
    same(one.hessian.matrix(), three.hessian.matrix())
    same(*(point.objective.risk.n_curved(point.curvature) for point in smooth))
    one, three = map(minimize_intercept, smooth)
    assert three.value == pytest.approx(one.value, rel=1e-12)
    if three.objective.n_free:
        same(three.objective.imbalance(three.dual), one.objective.imbalance(one.dual))


def test_thresholds_where_curvatures_nearly_underflow():
    # Logistic losses of scores of 690 and more have curvatures below 1e-299.
    rng = np.random.default_rng(0)
    for score in np.linspace(650.0, 745.0, 200):
        z = score * rng.choice([-8.0, -1.0, 1.0, 8.0], 10)
        y = rng.integers(3, size=10).astype(float)
        design = ThresholdDesign(z[:, np.newaxis], 2)
        loss = OrdinalLogistic(immediate=True).loss
        risk = Risk(design, loss, y, np.full(10, 0.1))
        point = Objective(risk, L2(1), 1.0).at(np.array([1.0, -1.0, 1.5]))
        assert np.isfinite(minimize_intercept(point).w).all()


def test_steepest_subgradients_at_kinks_of_several_parts():
    # Scores of zero at targets of zero, in rows of all parts.
    objectives = pair("absolute_error", fit_intercept=False)
    w = np.zeros(D)
    for objective in objectives:
        parts = objective.risk.parts
        for risk in parts.objects if parts else [objective.risk]:
            risk.targets[::3] = 0.0
    one, three = (objective.at(w) for objective in objectives)
    assert one.n_kinks > 15
    p = np.random.default_rng(5).normal(size=D)
    same(one.steepest(p), three.steepest(p))
    cuts = (point.cut_of(point.gradient) for point in (one, three))
    for a, b in zip(*cuts, strict=True):
        same(a, b)


def test_samples_come_to_one_place():
    for name in ("hinge", "softmax", "ordinal"):
        one, three = pair(name)
        rows = np.array([0, 3, 6, 7, 20, 38, 39, 59])
        small = [objective.sample(rows) for objective in (one, three)]
        assert small[1].risk.design.in_one_place
        assert not three.risk.design.in_one_place
        a, b = points(small)
        same(a.gradient, b.gradient)
