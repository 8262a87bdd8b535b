"""Trust-region Newton steps and nonlinear conjugate gradients."""

import numpy as np
import pytest
from _door import BINARY_LOSSES, Stopping, cg, newton, run, trust_region
from _problems import binary_objective, gaussian_data
from numpy.testing import assert_allclose

from sklearn_subqn._core.steps.newton_direction import (
    conjugate_gradients,
    preconditioner,
)


def problem(seed, fit_intercept):
    X, y = gaussian_data(np.random.default_rng(seed), 80, 6, shift=0.5)
    X = X * np.logspace(-1, 1, 6)
    return binary_objective(
        X,
        y,
        alpha=1e-2,
        loss=BINARY_LOSSES["squared_hinge"],
        fit_intercept=fit_intercept,
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", [cg, trust_region])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_newton(solver, fit_intercept, seed):
    objective = problem(seed, fit_intercept)
    w = np.zeros(objective.n_params)
    exact = run(newton(objective, w), Stopping(1e-12), max_iter=100)
    result = run(solver(objective, w), Stopping(1e-10), max_iter=2000)
    assert result.status == "converged"
    assert result.lower_bound <= exact.point.value * (1 + 1e-12)
    assert_allclose(result.point.value, exact.point.value, rtol=1e-9)


@pytest.mark.parametrize("solver", [cg, trust_region])
def test_never_rises(solver):
    objective = problem(0, True)
    values = [
        iterate.point.value
        for iterate, _ in zip(
            solver(objective, np.zeros(objective.n_params)), range(30), strict=False
        )
    ]
    assert len(values) > 3
    assert np.all(np.diff(values) <= 1e-15)


def test_steps_end_at_the_boundary_and_minimize_the_model_along_the_path():
    point = problem(1, False).at(np.zeros(6))
    hessian, g = point.hessian, point.gradient
    diagonal = preconditioner(hessian)
    whole, _ = conjugate_gradients(hessian, -g, rtol=1e-12, max_iter=50)
    length = np.sqrt(whole @ (diagonal * whole))
    models = []
    for share in (0.01, 0.1, 0.5, 0.9, 1.1):
        p, _ = conjugate_gradients(
            hessian,
            -g,
            rtol=1e-12,
            max_iter=50,
            diagonal=diagonal,
            radius=share * length,
        )
        assert_allclose(
            np.sqrt(p @ (diagonal * p)), min(share, 1.0) * length, rtol=1e-9
        )
        models.append(g @ p + 0.5 * p @ hessian.apply(p))
    assert np.all(np.diff(models) < 0.0)
    # In a small region the step is the preconditioned gradient.
    p, _ = conjugate_gradients(
        hessian,
        -g,
        rtol=1e-12,
        max_iter=50,
        diagonal=diagonal,
        radius=1e-6 * length,
    )
    assert_allclose(
        p / np.linalg.norm(p),
        -(g / diagonal) / np.linalg.norm(g / diagonal),
        rtol=1e-5,
    )
