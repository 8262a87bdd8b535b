"""Online methods on stochastic quadratics: Yu 2009, figures 5.2 and 5.3 (section 5.6).

They are Schraudolph et al. 2007, figures 1 and 2. Data points until the deterministic
objective J (5.19) is small, by the size b of batches; the Jacobian is (5.29), and 5
parameters. A least-squares regression by ``partial_fit`` on fresh rows is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import common
import numpy as np
from _harness import new_figure

from sklearn_subqn import OnlineLBFGSRegressor

from ._case import Case, Draw, Settings

N_PARAMS = 5


class Experiment(NamedTuple):
    """sigma of the noise, the objective to reach, and parameters of each method.

    A factor "b" stands for eta0 = b / (b + 2) times it, with batches of size b.
    """

    sigma: float
    target: float
    methods: Mapping[str, tuple[str, dict[str, Any]]]


class Inconsistent:
    """oBFGS with gradients of different batches in a difference (Yu 2009, eq. 5.17)."""

    def __init__(self, batch_size: int, eta0: float, epsilon: float) -> None:
        self._size, self._eta0, self._c = batch_size, eta0, 0.1
        self.coef_ = np.zeros(N_PARAMS)
        self._B, self._first = epsilon * np.eye(N_PARAMS), True
        self._step = self._gradient = np.zeros(N_PARAMS)

    def partial_fit(self, X: Any, y: Any) -> None:
        for start in range(0, len(y), self._size):
            rows = X[start : start + self._size]
            errors = rows @ self.coef_ - y[start : start + self._size]
            gradient = errors @ rows / self._size
            s, t = self._step, gradient - self._gradient
            if s @ t != 0.0:
                if self._first:
                    self._B, self._first = s @ t / (t @ t) * np.eye(N_PARAMS), False
                rho = 1.0 / (s @ t)
                left = np.eye(N_PARAMS) - rho * np.outer(s, t)
                self._B = left @ self._B @ left.T + self._c * rho * np.outer(s, s)
            self._step = -self._eta0 / self._c * (self._B @ gradient)
            self.coef_ = self.coef_ + self._step
            self._gradient = gradient


def jacobian() -> Any:
    """Return the sparse Hilbert matrix (5.29)."""
    i, j = np.indices((N_PARAMS, N_PARAMS)) + 1
    return np.where((i % j == 0) | (j % i == 0), 1.0 / (i + j - 1), 0.0)


def make(name: str, b: int, given: dict[str, Any]) -> Any:
    given = dict(given)
    if "b" in given:
        given["eta0"] = given.pop("b") * b / (b + 2)
    if name == "inconsistent":
        return Inconsistent(b, **given)
    return OnlineLBFGSRegressor(
        alpha=0.0,
        fit_intercept=False,
        average=False,
        solver=name,
        batch_size=b,
        solver_options=given,
    )


def trial(
    method: Any, b: int, experiment: Experiment, seed: int, limit: int, max_steps: int
) -> tuple[float, list[tuple[int, float]]]:
    """Return the data points until J is small, and J on the way.

    Steps between two looks at J are a sixteenth of those before.
    """
    rng = np.random.default_rng([seed, b])
    optimum, J = rng.normal(size=N_PARAMS), jacobian()
    n_steps, curve = 0, []
    while n_steps < min(limit // b, max_steps):
        new = max(1, n_steps // 16)
        X = rng.normal(size=(new * b, N_PARAMS)) @ J.T
        noise = experiment.sigma * rng.normal(size=new * b)
        try:
            method.partial_fit(X, X @ optimum - noise)
        except (FloatingPointError, ValueError):
            break
        n_steps += new
        value = 0.5 * float(np.sum((J.T @ (np.ravel(method.coef_) - optimum)) ** 2))
        curve.append((n_steps * b, value))
        if value <= experiment.target:
            return n_steps * b, curve
        if not value < 1e100:
            break
    return np.nan, curve


def run(experiment: Experiment, settings: Settings) -> tuple[str, Draw]:
    sizes = [4**i for i in (range(9) if settings.full else range(1, 6))]
    n_runs = 10 if settings.full else 3
    limits = (2**22, 2**17) if settings.full else (2**21, 2**16)
    found, lines = {}, []
    for label, (name, given) in experiment.methods.items():
        cells = []
        for b in sizes:
            with np.errstate(all="ignore"):
                trials = [
                    trial(make(name, b, given), b, experiment, seed, *limits)
                    for seed in range(n_runs)
                ]
            points = np.array([p for p, _ in trials])
            found[label, b] = points, trials[0][1]
            cells.append(cell(points))
        lines.append([label, *cells])
    header = ["method", *(f"b = {b}" for b in sizes)]
    text = (
        f"Thousands of data points to J ≤ {experiment.target:g}, mean of the runs that "
        f"arrive within {limits[0]} points and {limits[1]} steps, ± standard error; in "
        f"brackets how many of {n_runs}, if not all:\n\n"
    )
    text += common.markdown_table(header, lines)
    return text, partial(draw, experiment, sizes, found)


def cell(points: Any) -> str:
    arrived = points[np.isfinite(points)] / 1000.0
    if not len(arrived):
        return "–"
    error = np.std(arrived, ddof=1) / len(arrived) ** 0.5 if len(arrived) > 1 else 0.0
    share = "" if len(arrived) == len(points) else f" ({len(arrived)})"
    return f"{arrived.mean():.3g} ± {error:.1g}{share}"


STYLES = {
    "oBFGS": "ko-",
    "oLBFGS, m = 10": "C0^--",
    "oLBFGS, m = 4": "C0^-",
    "NG": "C2s--",
    "SGD": "C3D-",
    "inconsistent BFGS": "C4x--",
}


def draw(experiment: Experiment, sizes: list[int], found: Any) -> Any:
    figure, axes = new_figure(1, 2, (4.0, 3.2))
    left, right = axes[0]
    for label in experiment.methods:
        style = STYLES[label]
        # As in the source, a size at which some run fails has no point.
        means = np.array([found[label, b][0].mean() for b in sizes])
        left.plot(sizes, means, style, ms=4, label=label)
        if np.isfinite(means).any():
            b = sizes[int(np.nanargmin(means))]
            line = style.translate(str.maketrans("", "", "o^sDx"))
            right.plot(*zip(*found[label, b][1], strict=True), line, label=f"b = {b}")
    left.set(xscale="log", yscale="log", xlabel="b", ylabel="data points")
    right.set(xscale="log", yscale="log", xlabel="data points", ylabel="J, first run")
    right.set_ylim(experiment.target / 10, 10)
    left.legend(fontsize=7)
    right.legend(fontsize=7)
    return figure


REALIZABLE = {
    "oBFGS": ("obfgs", {"c": 0.1, "b": 1.0}),
    "oLBFGS, m = 10": ("olbfgs", {"b": 1.0, "memory": 10}),
    "oLBFGS, m = 4": ("olbfgs", {"b": 1.0, "memory": 4}),
    "NG": ("ng", {"eta0": 1.0, "tau": 100.0, "epsilon": 10.0}),
    "SGD": ("sgd", {"b": 1.0}),
    "inconsistent BFGS": ("inconsistent", {"b": 1.0, "epsilon": 1e-2}),
}
NOISY = {
    "oBFGS": ("obfgs", {"c": 0.1, "b": 1.0, "tau": 20.0}),
    "oLBFGS, m = 10": ("olbfgs", {"b": 1.0, "tau": 10.0, "memory": 10}),
    "oLBFGS, m = 4": ("olbfgs", {"b": 0.1, "tau": 2e4, "memory": 4}),
    "NG": ("ng", {"eta0": 0.04, "tau": 20.0}),
    "SGD": ("sgd", {"b": 1.0, "tau": 1e4}),
}
EARLIER = NOISY | {"NG": ("ng", {"eta0": 0.1, "tau": 50.0})}
CASES = [
    Case(
        "yu-5.2",
        "Yu 2009, figure 5.2; Schraudolph et al. 2007, figure 1: realizable quadratic",
        partial(run, Experiment(0.0, 1e-15, REALIZABLE)),
    ),
    Case(
        "yu-5.3",
        "Yu 2009, figure 5.3: non-realizable quadratic",
        partial(run, Experiment(1e-2, 1e-5, NOISY)),
    ),
    Case(
        "schraudolph-2",
        "Schraudolph et al. 2007, figure 2: non-realizable quadratic",
        partial(run, Experiment(1e-2, 1e-5, EARLIER)),
    ),
]
