"""Small convex quadratic programs on the unit simplex."""

from __future__ import annotations

import numpy as np

from .losses._base import Floats


def minimize_on_simplex(
    Q: Floats, c: Floats, start: Floats, *, tol: float = 1e-12
) -> Floats:
    """Minimize x'Qx / 2 - c'x over x >= 0, sum(x) = 1, by an active-set method.

    Parameters
    ----------
    Q : ndarray of shape (m, m)
        Symmetric positive semidefinite.
    c : ndarray of shape (m,)
    start : ndarray of shape (m,)
        A point of the simplex; a good one saves iterations.
    tol : float
        Tolerance on the reduced costs, relative to the size of the data.

    Returns
    -------
    x : ndarray of shape (m,)
        Always a point of the simplex, and no worse than ``start`` up to rounding.

    Notes
    -----
    The support grows by the index of the most negative reduced cost; on a support the
    minimizer solves a linear system, and where that leaves the simplex the step stops
    at the boundary and the index that blocked it is dropped. A multiple of the identity
    far below the size of Q keeps the systems regular where cuts repeat.
    """
    m = len(c)
    x = np.maximum(start, 0.0)
    x /= x.sum()
    size = float(np.max(np.diag(Q))) if m else 0.0
    ridge = 1e-14 * size
    scale = max(size, float(np.max(np.abs(c))), np.finfo(float).tiny)
    support = [int(j) for j in np.flatnonzero(x > 0.0)]
    for _ in range(10 * m + 20):
        target = _minimize_on_support(Q, c, support, ridge)
        step = target - x[support]
        blocked = step < 0.0
        limits = np.where(blocked, -x[support] / np.where(blocked, step, -1.0), np.inf)
        first = int(np.argmin(limits))
        if limits[first] < 1.0:
            x[support] += limits[first] * step
            x[support[first]] = 0.0
            del support[first]
            continue
        x[support] = target
        costs = Q @ x - c
        price = float(costs @ x)
        entering = int(np.argmin(costs))
        if costs[entering] >= price - tol * scale or entering in support:
            break
        support.append(entering)
    x = np.maximum(x, 0.0)
    return x / x.sum()


def _minimize_on_support(
    Q: Floats, c: Floats, support: list[int], ridge: float
) -> Floats:
    """Return the minimizer over sum(x) = 1 with all other entries zero."""
    n = len(support)
    kkt = np.zeros((n + 1, n + 1))
    kkt[:n, :n] = Q[np.ix_(support, support)]
    # The border is scaled like Q, for the sake of the system's condition.
    border = max(float(np.max(np.diag(kkt)[:n])), ridge, np.finfo(float).tiny)
    kkt[np.arange(n), np.arange(n)] += max(ridge, 1e-300)
    kkt[:n, n] = kkt[n, :n] = border
    rhs = np.append(c[support], border)
    try:
        solution = np.linalg.solve(kkt, rhs)[:n]
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(kkt, rhs, rcond=None)[0][:n]
    return solution
