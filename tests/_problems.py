"""Small problems and reference solutions that several test files share."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from _door import BINARY_LOSSES, L2, Design, Objective, Risk
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from sklearn_subqn import optimize

#: Settings of all property tests: the same examples at every run.
EXPLORE = settings(deadline=None, max_examples=60, derandomize=True)

each_loss = pytest.mark.parametrize(
    "loss",
    [BINARY_LOSSES["hinge"], BINARY_LOSSES["squared_hinge"]],
    ids=["hinge", "squared hinge"],
)


def binary_objective(
    X, y, *, loss=None, alpha=0.1, weights=None, fit_intercept=True, **design
):
    """L2-regularized objective with normalized weights."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    loss = BINARY_LOSSES["hinge"] if loss is None else loss
    design = Design(X, fit_intercept=fit_intercept, **design)
    regularizer = L2(design.n_coef)
    return Objective(Risk(design, loss, y, weights / weights.sum()), regularizer, alpha)


def gaussian_data(rng, n, d, *, shift=0.5):
    """Two overlapping Gaussian classes, both present."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def margin_data(rng, n, d):
    """Data and a point w (no intercept) where all rows lie exactly on the margin.

    Everything is a small dyadic number, so that the scores are exact.
    """
    w = np.zeros(d)
    w[0] = 0.5
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.integers(-8, 9, size=(n, d)) / 4.0
    X[:, 0] = 2.0 * y
    return X, y, w


def kink_objective(seed, n=5, d=3, **options):
    """A hinge objective with all rows on the margin at the w returned with it."""
    X, y, w = margin_data(np.random.default_rng(seed), n, d)
    options = {"alpha": 0.125, "fit_intercept": False, **options}
    objective = binary_objective(X, y, **options)
    return objective, np.append(w, np.zeros(objective.n_params - d))


def subdifferential_vertices(objective, w):
    """All extreme points of the subdifferential of a hinge objective at w (3.27)."""
    X = objective.design.X
    y, weights = objective.targets, objective.weights
    coef, intercept = objective.design.split(w)
    violations = 1.0 - y * (X @ coef + intercept)
    choices = [(0.0, 1.0) if abs(m) < 1e-9 else (float(m > 0.0),) for m in violations]
    columns = X
    if objective.design.fit_intercept:
        columns = np.column_stack([X, np.ones(len(y))])
    smooth = objective.alpha * objective.regularizer.gradient(w)
    return np.array(
        [smooth - columns.T @ (weights * y * beta) for beta in product(*choices)]
    )


@st.composite
def binary_problems(draw, max_rows=14, max_features=4):
    """Hinge problems of many kinds: (X, y, weights, alpha), both classes present.

    Shapes, scales, repeated rows, zero columns, separable and inseparable labels.
    """
    n = draw(st.integers(2, max_rows))
    d = draw(st.integers(1, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "shifted", "separable", "integers"]))
    X, y = gaussian_data(rng, n, d, shift=0.5 if kind == "shifted" else 0.0)
    if kind == "separable":
        X[:, 0] = y * (1.0 + rng.random(n))
    elif kind == "integers":
        X = rng.integers(-1, 2, size=(n, d)).astype(float)
    if draw(st.booleans()):
        rows = rng.integers(0, n, size=n)
        rows[:2] = 0, n - 1
        X, y = X[rows], y[rows]
    X *= 10.0 ** draw(st.integers(-3, 3))
    weights = np.ones(n)
    if draw(st.booleans()):
        weights = rng.choice([0.1, 0.5, 1.0, 2.0, 10.0], size=n)
    alpha = 10.0 ** draw(st.integers(-4, 1))
    return X, y, weights, alpha


def svc_bounds(X, y, weights, alpha):
    """Enclose the optimum of the hinge problem with a free intercept: (lower, upper).

    Both ends are evaluated here from libsvm's dual variables, so that the enclosure
    holds however accurate those are; the intercept is the best of all kinks. On badly
    scaled problems libsvm gets nowhere within its limit, and the ends are far apart.
    """
    weights = weights / weights.sum()
    # The problem times 1 / alpha is libsvm's; C is folded into the sample weights.
    svc = SVC(kernel="linear", C=1.0, tol=1e-10, max_iter=20000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(X, y, sample_weight=weights / alpha)
    dual = np.zeros(len(y))
    dual[svc.support_] = alpha * svc.dual_coef_[0]
    normal = X.T @ dual
    lower = dual @ y - normal @ normal / (2.0 * alpha)
    coef = normal / alpha
    scores = X @ coef
    values = [
        weights @ np.maximum(1.0 - y * (scores + b), 0.0) for b in [0.0, *(y - scores)]
    ]
    upper = alpha / 2.0 * (coef @ coef) + min(values)
    # libsvm meets its equality constraint only up to rounding.
    slack = abs(dual.sum()) * (1.0 + np.max(np.abs(y - scores)))
    return lower - slack, upper


def bisect(line, first=1.0, max_doublings=200):
    """Return the minimizer on a line of which only right-hand slopes are known.

    The step is doubled until the slope is non-negative, then the bracket is halved
    until its ends are neighboring numbers. Returns ``inf`` where no minimizer lies
    within ``first * 2**max_doublings``.
    """
    if line.slope(0.0) >= 0.0:
        return 0.0
    low, high = 0.0, first
    for _ in range(max_doublings):
        if line.slope(high) >= 0.0:
            break
        low, high = high, 2.0 * high
    else:
        return np.inf
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        if line.slope(middle) >= 0.0:
            high = middle
        else:
            low = middle


def descent_direction(point, hessian, tol, max_iter):
    """Find a direction at a point by the oracle of its subgradients."""
    return optimize.descent_direction(
        point.gradient, point.steepest, hessian.apply, epsilon=tol, k_max=max_iter
    )
