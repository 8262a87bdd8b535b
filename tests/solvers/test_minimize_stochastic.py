"""Noisy gradients of one's own functions: the published steps, and known minima."""

import numpy as np
import pytest
from _door import ONLINE_METHODS
from numpy.testing import assert_allclose

from sklearn_subqn.optimize import minimize_stochastic, stochastic_steps

SCALES = np.array([1.0, 10.0, 40.0])
CENTER = np.array([1.0, -2.0, 0.5])


def sample_gradient(x, seed):
    r = x - np.random.default_rng(seed).normal(CENTER, 0.1)
    return 0.5 * float(r @ (SCALES * r)), SCALES * r


SETTINGS = {
    "auto": {},
    "sgd": {"eta0": 0.03, "tau": 200.0},
    "obfgs": {"eta0": 0.5, "tau": 20.0, "epsilon": 1e-3},
    "olbfgs": {"eta0": 0.5, "tau": 20.0, "epsilon": 1e-3},
    "res-bfgs": {"eta0": 0.5, "tau": 20.0, "delta": 1e-3},
    "res-lbfgs": {"eta0": 0.5, "tau": 20.0, "delta": 1e-3},
}


@pytest.mark.parametrize("method", SETTINGS)
def test_known_minima_of_expectations(method):
    x0 = np.array([5.0, 5.0, 5.0])
    result = minimize_stochastic(
        sample_gradient, x0, method=method, options=SETTINGS[method], max_iter=600
    )
    assert result.success
    assert result.nit == 600
    r = result.x - CENTER
    start = x0 - CENTER
    assert r @ (SCALES * r) < 1e-3 * (start @ (SCALES * start))
    assert_allclose(x0, 5.0)


@pytest.mark.parametrize("method", ONLINE_METHODS)
def test_every_method_steps_on_one_sample_at_a_time(method):
    seen = []

    def watched(x, sample):
        seen.append(sample)
        return sample_gradient(x, sample)

    steps = stochastic_steps(watched, np.ones(3), iter([7, 3, 5]), method.upper())
    assert [result.nit for result in steps] == [1, 2, 3]
    assert sorted(seen, key=[7, 3, 5].index) == seen


def test_the_first_steps_of_online_bfgs():
    """Schraudolph et al. (2007), Alg. oBFGS with lambda = 0 and c = 1."""
    eta, epsilon, x = 0.5, 1e-3, np.ones(3)
    B = epsilon * np.eye(3)
    options = {"eta0": eta, "epsilon": epsilon}
    steps = stochastic_steps(sample_gradient, x, method="obfgs", options=options)
    for t, result in zip(range(4), steps, strict=False):
        g = sample_gradient(x, t)[1]
        s = -eta * B @ g
        y = sample_gradient(x + s, t)[1] - g
        if t == 0:
            B = (s @ y) / (y @ y) * np.eye(3)
        rho = 1.0 / (s @ y)
        V = np.eye(3) - rho * np.outer(s, y)
        B = V @ B @ V.T + rho * np.outer(s, s)
        x = x + s
        assert_allclose(result.x, x, rtol=1e-9)


def test_runs_that_diverge_end_at_a_finite_point():
    result = minimize_stochastic(
        lambda x, _: np.full(1, np.inf if x[0] < -1e9 else 4.0 * x[0] ** 3),
        [3.0],
        method="sgd",
        options={"eta0": 9.0},
    )
    assert (result.status, result.success) == (2, False)
    assert "diverged" in result.message
    assert np.isfinite(result.x).all()


def test_callbacks_stop_a_run():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result.nit)
        return len(seen) == 3

    result = minimize_stochastic(sample_gradient, np.ones(3), callback=callback)
    assert (result.nit, result.status, seen) == (3, 99, [1, 2, 3])
    points = []
    result = minimize_stochastic(
        sample_gradient, np.ones(3), [1, 2], callback=points.append
    )
    assert result.message == "All samples were used."
    assert_allclose(points[-1], result.x)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"method": "adm"}, ValueError, "method must be one of 'auto'.*'adam'"),
        ({"options": {"epsilon": 1.0}}, ValueError, "Give method= one of 'olbfgs'"),
        ({"options": {"eta0": -1.0}}, ValueError, r"options\['eta0'\] must be"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
        ({"x0": [[1.0]]}, ValueError, "x0 must have shape"),
        ({"sample_gradient": 3}, TypeError, "must be callable"),
        ({"sample_gradient": lambda x, s: x}, TypeError, "a pair of value and grad"),
        (
            {"sample_gradient": lambda x, s: x[:1], "method": "sgd"},
            ValueError,
            r"gradient of shape \(3,\), as x0 has; got shape \(1,\)",
        ),
    ],
)
def test_arguments_are_checked(given, error, message):
    call = {"sample_gradient": sample_gradient, "x0": np.ones(3), **given}
    with pytest.raises(error, match=message):
        minimize_stochastic(**call)
