"""Independent optima of linear support vector machines, for tests of estimators.

``enclose`` brackets the optimum of alpha / 2 ||w||² + sum_i s_i loss_i, with weights s
that sum to one. Both ends are evaluated here, from a dual and a primal point, so that
they hold however accurate those points are.
"""

from __future__ import annotations

import numpy as np


def objective(X, y, coef, intercept, alpha, weights=None, loss="hinge"):
    """Evaluate the formula of the documentation, for labels y of -1 and 1."""
    s = _normalized(weights, len(y))
    m = np.maximum(1.0 - y * (X @ coef + intercept), 0.0)
    risk = m if loss == "hinge" else m**2
    return alpha / 2.0 * np.sum(np.square(coef)) + np.sum(s * risk)


def enclose(X, y, alpha, weights=None, *, loss="hinge", fit_intercept=True):
    """Return (lower, upper) with lower <= optimum <= upper, for labels -1 and 1."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    s = _normalized(weights, len(y))
    used = s > 0.0
    X, y, s = X[used], y[used], s[used]
    if loss == "hinge":
        return _enclose_hinge(X, y, alpha, s, fit_intercept)
    return _enclose_squared_hinge(X, y, alpha, s, fit_intercept)


def _normalized(weights, n):
    s = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    return s / s.sum()


def _enclose_hinge(X, y, alpha, s, fit_intercept):
    """Interior points on the dual, then the equations of the active set."""
    # Dual variables of separable data are of the size of alpha.
    v = alpha * y * _dual_hinge(X, y, s / alpha, fit_intercept)
    points = [v]
    for share in 10.0 ** -np.arange(1, 10):
        points.append(_polished(X, y, alpha, s, v, fit_intercept, share))
    ends = [_hinge_ends(X, y, alpha, s, v, fit_intercept) for v in points]
    lowers, uppers = zip(*ends, strict=True)
    return max(lowers), min(uppers)


def _dual_hinge(X, y, s, fit_intercept):
    """Minimize u'Qu / 2 - sum(u) over 0 <= u <= s and, with intercept, y'u = 0."""
    Z = y[:, None] * X
    Q = Z @ Z.T
    A = y[:, None] if fit_intercept else np.empty((len(y), 0))
    u, room, z, t = s / 2.0, s / 2.0, np.ones(len(y)), np.ones(len(y))
    b = np.zeros(A.shape[1])
    corner = np.zeros((A.shape[1], A.shape[1]))
    for _ in range(100):
        mu = 0.1 * (u @ z + room @ t) / (2 * len(y))
        stationarity = Q @ u - 1.0 + A @ b - z + t
        right = -stationarity + (mu / u - z) - (mu / room - t)
        system = np.block([[Q + np.diag(z / u + t / room), A], [A.T, corner]])
        step = np.linalg.lstsq(system, np.append(right, -A.T @ u), rcond=None)[0]
        du, db = step[: len(y)], step[len(y) :]
        dz, dt = mu / u - z - z / u * du, mu / room - t + t / room * du
        ratios = [-du / u, du / room, -dz / z, -dt / t]
        length = 0.99 / max(0.99, *(ratio.max() for ratio in ratios))
        u, room, b = u + length * du, room - length * du, b + length * db
        z, t = z + length * dz, t + length * dt
        if mu < 1e-17:
            break
    return u


def _polished(X, y, alpha, s, v, fit_intercept, share):
    """Return v with entries inside the bounds such that margins are one there."""
    free = (v * y > share * s) & (v * y < (1.0 - share) * s)
    bounded = np.where(v * y > 0.5 * s, s * y, 0.0) * ~free
    gram = X[free] @ X[free].T / alpha
    right = y[free] - X[free] @ (X.T @ bounded) / alpha
    if fit_intercept:
        ones = np.ones((free.sum(), 1))
        gram = np.block([[gram, ones], [ones.T, np.zeros((1, 1))]])
        right = np.append(right, -bounded.sum())
    solution = np.linalg.lstsq(gram, right, rcond=None)[0][: free.sum()]
    polished = bounded.copy()
    polished[free] = y[free] * np.clip(y[free] * solution, 0.0, s[free])
    return polished


def _hinge_ends(X, y, alpha, s, v, fit_intercept):
    coef = X.T @ v / alpha
    scores = X @ coef
    intercepts = [0.0, *(y - scores)] if fit_intercept else [0.0]
    upper = min(objective(X, y, coef, b, alpha, s) for b in intercepts)
    # A feasible dual point near by: inside the bounds, and of sum zero if need be.
    v = y * np.clip(y * v, 0.0, s)
    if fit_intercept:
        sums = v @ (y > 0.0), -v @ (y < 0.0)
        if not all(sums):
            return 0.0, upper
        v = v * np.where(y > 0.0, min(sums) / sums[0], min(sums) / sums[1])
    normal = X.T @ v
    return v @ y - normal @ normal / (2.0 * alpha), upper


def _enclose_squared_hinge(X, y, alpha, s, fit_intercept):
    """Newton's method; the objective is piecewise quadratic, so that it ends."""
    A = np.column_stack([X, np.ones(len(y))]) if fit_intercept else X
    penalty = np.full(A.shape[1], alpha)
    if fit_intercept:
        penalty[-1] = 0.0

    def value(w):
        m = np.maximum(1.0 - y * (A @ w), 0.0)
        return 0.5 * penalty @ w**2 + s @ m**2

    w = np.zeros(A.shape[1])
    for _ in range(500):
        m = np.maximum(1.0 - y * (A @ w), 0.0)
        gradient = penalty * w - 2.0 * A.T @ (s * y * m)
        active = A[m > 0.0]
        hessian = np.diag(penalty) + 2.0 * active.T @ (s[m > 0.0, None] * active)
        step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
        t = 1.0
        while value(w + t * step) > value(w) and t > 1e-10:
            t /= 2.0
        if not value(w + t * step) < value(w):
            break
        w = w + t * step
    u = 2.0 * s * np.maximum(1.0 - y * (A @ w), 0.0)
    normal = X.T @ (u * y)
    lower = np.sum(u - u**2 / (4.0 * s)) - normal @ normal / (2.0 * alpha)
    slack = abs(u @ y) * (1.0 + abs(w[-1])) * 2.0 if fit_intercept else 0.0
    return lower - slack, value(w)
