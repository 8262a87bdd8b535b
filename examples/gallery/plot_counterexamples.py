"""
Where other methods fail, and subgradient BFGS does not
=======================================================

Four functions with kinks of Yu (2009, figures 3.1 and A.1 to A.3), minimized by
``minimize``. On the left the method that fails, on the right subgradient BFGS, which
finds directions of descent at kinks by an oracle of steepest subgradients. Steps are
exact along lines, except for those of BFGS, which meet Wolfe's conditions.

BFGS with inexact steps oscillates around the hinge of the first function. Steepest
descent ends at the origin of the second one, which falls without end to the left, and
descent along the shortest subgradients at that of the third one, whose minimum is -100.
BFGS makes hardly any progress on the hinge of the fourth one, which has no minimum; in
the thesis its steps are exact, which rounding on a computer lets cross the kink.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_subqn import minimize


def maximum(*pieces):
    """Return the maximum of linear functions, and its steepest subgradients."""
    slopes = np.array([piece[:2] for piece in pieces], dtype=float)
    offsets = np.array([piece[2] for piece in pieces], dtype=float)

    def active(w):
        values = slopes @ w + offsets
        return slopes[values >= values.max() - 1e-12 * max(1.0, abs(values.max()))]

    def value_and_subgradient(w):
        return float(np.max(slopes @ w + offsets)), active(w)[0]

    return value_and_subgradient, lambda w, p: max(active(w), key=lambda g: g @ p)


def root_or_wedge(w):
    """(A.65)."""
    x, y = w
    if x >= abs(y):
        root = np.sqrt(9.0 * x * x + 16.0 * y * y)
        return 5.0 * root, 5.0 * np.array([9.0 * x, 16.0 * y]) / (root or 1.0)
    return 9.0 * x + 16.0 * abs(y), np.array([9.0, 16.0 * np.sign(y)])


def steepest_of_root_or_wedge(w, p):
    """Return the steepest subgradient of (A.65) along p."""
    x, y = w
    on_hinge = abs(y) <= 1e-12 * abs(x) and x <= 0.0
    return np.array([9.0, 16.0 * np.sign(p[1])]) if on_hinge else root_or_wedge(w)[1]


toy = maximum((10, 1, 0), (10, -1, 0), (-10, 1, 0), (-10, -1, 0))
pyramid = maximum((0, 0, -100), (2, 3, 0), (-2, 3, 0), (5, 2, 0), (-5, 2, 0))
valley = maximum((2, 1, 0), (-2, 1, 0), (0, 3, 0))
exact = {"line_search": "exact"}
descent = {**exact, "memory": 0}

# Function, oracle, start, and method with options and oracle or none that fails.
CASES = {
    "10 |x| + |y|: BFGS": (*toy, (1.0, 1.0), "bfgs", {}, False),
    "(A.65): steepest descent": (
        root_or_wedge,
        steepest_of_root_or_wedge,
        (2.0, 1.0),
        "sublbfgs",
        descent,
        False,
    ),
    "(A.66): steepest subgradients": (
        *pyramid,
        (1.0, 3.0),
        "sublbfgs",
        {**descent, "epsilon": 1e-12, "k_max": 10_000},
        True,
    ),
    "(A.67): BFGS": (*valley, (2.0, 1.0), "bfgs", {}, False),
}


def points_of(function, start, method, **given):
    """Return the points of a run of at most a dozen iterations."""
    points = []
    minimize(
        function,
        np.array(start),
        method,
        max_iter=12,
        tol=0.0,
        callback=points.append,
        **given,
    )
    return np.array(points)


fig, axes = plt.subplots(4, 2, figsize=(8, 12), layout="constrained")
cases = zip(axes, CASES.items(), strict=True)
for (left, right), (name, (f, steepest, start, method, options, knows)) in cases:
    oracle = {"steepest": steepest} if knows else {}
    runs = {
        left: points_of(f, start, method, options=options, **oracle),
        right: points_of(f, start, "subbfgs", options=exact, steepest=steepest),
    }
    for ax, points in runs.items():
        # Steps without end lead out of the picture.
        shown = points.clip(-1e3, 1e3)
        most = 1.5 * max(start)
        x, y = np.meshgrid(*2 * [np.linspace(-most, most, 101)])
        grid = np.stack([x, y], axis=-1)
        z = np.apply_along_axis(lambda w, f=f: f(w)[0], -1, grid)
        ax.contour(x, y, z, 20, linewidths=0.5)
        ax.plot(*shown.T, "o-", color="tab:red", markersize=3)
        ax.set(xlim=(-most, most), ylim=(-most, most))
    left.set_title(name)
    right.set_title("subgradient BFGS")
plt.show()
