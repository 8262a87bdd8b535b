"""Rows far from their kinks give way to few, and what is proven holds for all."""

import numpy as np
import pytest
from _problems import EXPLORE, binary_objective, gaussian_data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_subqn._core.driver import Stopping
from sklearn_subqn._core.losses import BINARY_LOSSES, regression_losses
from sklearn_subqn._core.objectives.objective import Dual
from sklearn_subqn._core.solvers import Start, alm, run
from sklearn_subqn._core.solvers.near_kinks import near_kinks
from sklearn_subqn._core.solvers.related.few_rows import FewRows
from sklearn_subqn._core.solvers.related.sample import spread

MODULE = "sklearn_subqn._core.solvers.near_kinks"
HINGE = BINARY_LOSSES["hinge"]
LOSSES = {
    "hinge": HINGE,
    "absolute": regression_losses()["absolute_error"],
    "quantile": regression_losses(quantile=0.8)["quantile"],
    "tube": regression_losses(epsilon=0.3)["epsilon_insensitive"],
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def problem(loss, seed=0, n=40, d=3, *, csr=False, **options):
    """An objective of the loss with weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X, y = gaussian_data(rng, n, d)
    if loss is not HINGE:
        y = X @ rng.normal(size=d) + rng.normal(size=n)
    weights = rng.choice([0.0, 1.0, 2.5], size=n)
    weights[0] = weights[-1] = 1.0
    X = sparse.csr_array(X) if csr else X
    options = {"alpha": 1e-2, "weights": weights, **options}
    return binary_objective(X, y, loss=loss, **options)


def random_near(rng, n):
    return rng.random(n) < rng.choice([0.0, 0.3, 0.9])


@each_loss
@EXPLORE
@given(seed=st.integers(0, 2**32 - 1), fit_intercept=st.booleans(), csr=st.booleans())
def test_few_rows_bound_all_from_below(loss, seed, fit_intercept, csr):
    o = problem(loss, seed, fit_intercept=fit_intercept, csr=csr)
    rng = np.random.default_rng(seed)
    point = o.at(rng.normal(size=o.n_params))
    few = FewRows(o, point, random_near(rng, len(o.weights)))
    assert few.start.value == pytest.approx(point.value, rel=1e-12)
    for scale in (0.1, 1.0, 10.0):
        w = point.w + scale * rng.normal(size=o.n_params)
        assert few.objective.at(w).value <= o.at(w).value * (1.0 + 1e-12)


@each_loss
@EXPLORE
@given(seed=st.integers(0, 2**32 - 1), csr=st.booleans())
def test_duals_of_few_rows_are_duals_of_all(loss, seed, csr):
    o = problem(loss, seed, csr=csr)
    rng = np.random.default_rng(seed)
    point = o.at(rng.normal(size=o.n_params))
    few = FewRows(o, point, random_near(rng, len(o.weights)))
    # Shares of a subgradient are feasible, since every interval holds zero.
    part = few.objective
    args = part.targets, part.weights
    dual = loss.oracle.subgradient(rng.normal(size=len(part.weights)), *args)
    dual *= rng.random(len(dual))
    whole = few.share_out(dual)
    variables = loss.oracle.dual_variables(whole, o.targets, o.weights)
    u = -o.weights * variables * (o.targets if loss is HINGE else 1.0)
    assert_allclose(u, whole, atol=1e-15)
    assert_allclose(o.design.adjoint(whole), part.design.adjoint(dual), atol=1e-12)
    conjugates = (
        loss.oracle.conjugate(whole, o.targets, o.weights),
        loss.oracle.conjugate(dual, *args),
    )
    assert conjugates[0] == pytest.approx(conjugates[1], rel=1e-12, abs=1e-14)
    assert_allclose(few.collect(whole), dual, atol=1e-15)


@each_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.0])
def test_optimum_is_that_of_all_rows(loss, fit_intercept, share, monkeypatch):
    """However few rows it begins with: those that cross join them."""
    monkeypatch.setattr(f"{MODULE}._REACH", share)
    monkeypatch.setattr(f"{MODULE}._MOST", 1.0)
    o = problem(loss, n=400, d=5, alpha=1e-3, fit_intercept=fit_intercept)
    reference = run(alm(o, Start(np.zeros(o.n_params))), Stopping(1e-9), max_iter=1000)
    start = Start(reference.point.w + 0.1)
    result = run(near_kinks(o, start, Stopping(1e-6)), Stopping(1e-6), max_iter=1000)
    assert result.status == "converged"
    assert result.lower_bound <= reference.point.value * (1.0 + 1e-12)
    assert result.point.value >= reference.lower_bound * (1.0 - 1e-12)
    assert result.gap <= 1e-6 * result.point.value


def test_bounds_of_iterates_belong_to_their_duals():
    o = problem(HINGE, n=2000, d=5, alpha=1e-4)
    point = o.at(0.1 * np.ones(o.n_params))
    few = FewRows(o, point, np.abs(1.0 - o.targets * point.scores) < 0.3)
    for _, inner in zip(range(8), alm(few.objective, Start(few.start.w)), strict=False):
        dual = few.share_out(inner.dual)
        bound = o.dual_value(o.cut(Dual(dual)))
        assert inner.lower_bound == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("alpha", [1e-4, 1e-6])
def test_few_rows_save_products(alpha):
    rng = np.random.default_rng(0)
    X, y = gaussian_data(rng, 20_000, 8, shift=0.4)

    def passes(method):
        o = binary_objective(X, y, alpha=alpha)
        sample = o.sample(spread(20_000, 1250))
        zero = Start(np.zeros(o.n_params))
        start = Start(run(alm(sample, zero), Stopping(3e-2), max_iter=99).point.w)
        before = o.passes
        assert (
            run(method(o, start), Stopping(1e-6), max_iter=1000).status == "converged"
        )
        return o.passes - before

    few = passes(lambda o, start: near_kinks(o, start, Stopping(1e-6)))
    assert few < 0.5 * passes(alm)


@pytest.mark.parametrize("csr", [False, True])
def test_few_rows_of_float32_data_are_exact(csr):
    rng = np.random.default_rng(0)
    X, y = gaussian_data(rng, 300, 4)
    X = X.astype(np.float32)
    X = sparse.csr_array(X) if csr else X
    o = binary_objective(X, y, alpha=1e-3)
    result = run(
        near_kinks(o, Start(np.ones(5)), Stopping(1e-10)),
        Stopping(1e-10),
        max_iter=1000,
    )
    double = binary_objective(X.astype(np.float64), y, alpha=1e-3)
    reference = run(alm(double, Start(np.zeros(5))), Stopping(1e-11), max_iter=1000)
    assert result.status == "converged"
    assert result.point.value == pytest.approx(reference.point.value, rel=1e-9)


def test_separable_rows():
    """All rows end far from the kink, without a slope."""
    X, y = gaussian_data(np.random.default_rng(0), 200, 3)
    X[:, 0] = 100.0 * y
    o = binary_objective(X, y, alpha=1e-2)
    start = Start(np.array([1.0, 0.0, 0.0, 0.0]))
    result = run(near_kinks(o, start, Stopping(1e-6)), Stopping(1e-6), max_iter=1000)
    assert result.status == "converged"
