"""Steps on functions of two variables: Yu 2009, figures 3.1 and A.1 to A.3.

Other methods stop or go wrong there, and subBFGS does not (sections 3.1.1 and A.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import common
import numpy as np
from _harness import new_figure

from sklearn_subqn.losses import PiecewiseQuadratic
from sklearn_subqn.optimize import maximum_of_lines, minimize

from ._case import Case, Draw, Settings

# Pieces whose values differ by less than this count as tied.
TIE = 1e-12


class Function(NamedTuple):
    """A function with one subgradient, the steepest one along p, and f(w + step p)."""

    value_and_subgradient: Callable[[Any], tuple[float, Any]]
    steepest: Callable[[Any, Any], Any]
    restrict: Callable[[Any, Any], Any] | None = None


def maximum(*pieces: tuple[float, float, float]) -> Function:
    """Return the maximum of a x + b y + c over pieces (a, b, c)."""
    slopes, offsets = np.array(pieces)[:, :2], np.array(pieces)[:, 2]

    def heights(w: Any) -> Any:
        values = slopes @ w + offsets
        highest = values.max()
        tied = values >= highest - TIE * max(1.0, abs(highest))
        return np.where(tied, highest, values)

    def active(w: Any) -> Any:
        values = heights(w)
        return slopes[values == values.max()]

    def restrict(w: Any, p: Any) -> PiecewiseQuadratic:
        steps, lines = maximum_of_lines(slopes @ p, heights(w))
        rates = (slopes @ p)[lines]
        none = np.zeros(len(steps) - 1)
        return PiecewiseQuadratic(rates[0], 0.0, steps[1:], np.diff(rates), none)

    return Function(
        lambda w: (float(heights(w).max()), active(w)[0]),
        lambda w, p: max(active(w), key=lambda g: g @ p),
        restrict,
    )


def wolfe_1975() -> Function:
    """Return (A.65)."""

    def steepest(w: Any, p: Any) -> Any:
        x, y = w
        if x >= abs(y) and x > 0.0:
            return 5.0 * np.array([9.0 * x, 16.0 * y]) / np.hypot(3.0 * x, 4.0 * y)
        at_kink = abs(y) <= TIE * abs(x)
        return np.array([9.0, 16.0 * np.sign(p[1] if at_kink else y)])

    def value_and_subgradient(w: Any) -> tuple[float, Any]:
        x, y = w
        value = 9.0 * x + 16.0 * abs(y)
        if x >= abs(y):
            value = 5.0 * np.hypot(3.0 * x, 4.0 * y)
        return float(value), steepest(w, np.zeros(2))

    return Function(value_and_subgradient, steepest)


class Experiment(NamedTuple):
    """A function, where to start, how far to draw, and another method than subBFGS.

    ``knows`` says whether that method gets the steepest subgradients.
    """

    function: Function
    start: tuple[float, float]
    reach: float
    other: str
    method: str
    options: Mapping[str, Any]
    knows: bool = False


def steps(
    experiment: Experiment, method: str, knows: bool, options: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return the points of a method, and its result."""
    points: list[Any] = []
    function = experiment.function
    is_exact = options["line_search"] == "exact"
    result = minimize(
        function.value_and_subgradient,
        np.array(experiment.start),
        method,
        steepest=function.steepest if knows else None,
        restrict=function.restrict if is_exact else None,
        options=options,
        tol=0.0,
        max_iter=20,
        callback=points.append,
    )
    return np.array(points), result


def run(experiment: Experiment, settings: Settings) -> tuple[str, Draw]:
    other = experiment.other, experiment.method, experiment.knows, experiment.options
    ours = "subBFGS", "subbfgs", True, EXACT | {"h": 1e-8, "epsilon": 1e-5}
    found, lines = {}, []
    for label, *given in (other, ours):
        points, result = steps(experiment, *given)
        found[label] = points
        values = [experiment.function.value_and_subgradient(w)[0] for w in points]
        shown = "; ".join(f"({w[0]:.4g}, {w[1]:.4g})" for w in points[:5])
        cells = shown, f"{values[-1]:.4g}", len(points) - 1, result.message
        lines.append([label, *map(str, cells)])
    header = ["method", "first points", "last f", "steps", "why it ended"]
    text = common.markdown_table(header, lines)
    return text, partial(draw, experiment, found)


def draw(experiment: Experiment, found: Mapping[str, Any]) -> Any:
    figure, axes = new_figure(1, 2, (4.0, 3.6))
    x = np.linspace(-experiment.reach, experiment.reach, 201)
    grid = [
        [experiment.function.value_and_subgradient((a, b))[0] for a in x] for b in x
    ]
    for axis, (label, points) in zip(axes[0], found.items(), strict=True):
        axis.contour(x, x, grid, 20, colors="0.7", linewidths=0.7)
        axis.plot(*points.T, "C0o-", ms=4)
        axis.set(title=label, xlabel="x", ylabel="y", xlim=x[[0, -1]], ylim=x[[0, -1]])
    return figure


EXACT = {"line_search": "exact"}
WOLFE = {"line_search": "wolfe", "c1": 1e-3, "c2": 0.8}
NO_METRIC = EXACT | {"memory": 0}
TOY = maximum(*((10.0 * i, 1.0 * j, 0.0) for i in (1, -1) for j in (1, -1)))
ZIGZAG = maximum((0, 0, -100), (2, 3, 0), (-2, 3, 0), (5, 2, 0), (-5, 2, 0))
BREAKDOWN = maximum((2, 1, 0), (-2, 1, 0), (0, 3, 0))
SHORTEST = NO_METRIC | {"epsilon": 1e-12, "k_max": 10_000}
YU = "Yu 2009, figure"
CASES = [
    Case(
        "yu-3.1",
        f"{YU} 3.1: 10 |x| + |y|",
        partial(run, Experiment(TOY, (1, 1), 1.2, "BFGS, inexact", "bfgs", WOLFE)),
    ),
    Case(
        "yu-a.1",
        f"{YU} A.1: counterexample for steepest descent",
        partial(
            run,
            Experiment(wolfe_1975(), (2, 1), 2.5, "GD", "sublbfgs", NO_METRIC),
        ),
    ),
    Case(
        "yu-a.2",
        f"{YU} A.2: counterexample for steepest subgradient descent",
        partial(
            run, Experiment(ZIGZAG, (1, 3), 4.0, "subGD", "sublbfgs", SHORTEST, True)
        ),
    ),
    Case(
        "yu-a.3",
        f"{YU} A.3: counterexample for BFGS",
        partial(run, Experiment(BREAKDOWN, (3, 1), 4.0, "BFGS", "bfgs", EXACT)),
    ),
]
