"""Small convex quadratic programs on the unit simplex."""

from __future__ import annotations

import numpy as np

from .losses._base import Floats


def minimize_on_simplex(
    Q: Floats, c: Floats, start: Floats, *, tol: float = 1e-14
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
        Tolerance on each reduced cost, relative to the terms that it sums.

    Returns
    -------
    x : ndarray of shape (m,)
        Always a point of the simplex, and no worse than ``start`` up to rounding.

    Notes
    -----
    The support grows by the index of the most negative reduced cost; on a support the
    step to the minimizer solves a linear system, and where that leaves the simplex the
    step stops at the boundary and the index that blocked it is dropped. A multiple of
    the identity far below the size of Q keeps the systems regular where cuts repeat;
    as it damps steps, not x, it does not move the minimizer.
    """
    m = len(c)
    x = np.maximum(start, 0.0)
    x /= x.sum()
    scale = max(float(np.max(np.diag(Q))), float(np.max(np.abs(c))))
    if not scale > 0.0:
        return x
    Q, c = Q / scale, c / scale
    # Where Q vanishes against c, a linear program remains.
    ridge = max(1e-14 * float(np.max(np.diag(Q))), 1e-20)
    support = [int(j) for j in np.flatnonzero(x > 0.0)]
    for _ in range(10 * m + 20):
        step = _step_on_support(Q, Q @ x - c, support, ridge)
        blocked = step < 0.0
        limits = np.where(blocked, -x[support] / np.where(blocked, step, -1.0), np.inf)
        first = int(np.argmin(limits))
        if limits[first] < 1.0:
            x[support] += limits[first] * step
            x[support[first]] = 0.0
            del support[first]
            continue
        x[support] += step
        costs = Q @ x - c
        price = float(costs @ x)
        # What is left of them by rounding.
        costs += tol * (np.abs(Q) @ x + np.abs(c))
        costs[support] = np.inf
        entering = int(np.argmin(costs))
        if costs[entering] >= price:
            break
        support.append(entering)
    x = np.maximum(x, 0.0)
    return x / x.sum()


def _step_on_support(
    Q: Floats, costs: Floats, support: list[int], ridge: float
) -> Floats:
    """Return the step to the minimizer on a support, with sum zero."""
    n = len(support)
    kkt = np.zeros((n + 1, n + 1))
    kkt[:n, :n] = Q[np.ix_(support, support)]
    # The border is scaled like Q, for the sake of the system's condition.
    border = max(float(np.max(np.diag(kkt))), ridge)
    kkt[np.arange(n), np.arange(n)] += ridge
    kkt[:n, n] = kkt[n, :n] = border
    rhs = np.append(np.mean(costs[support]) - costs[support], 0.0)
    try:
        step = np.linalg.solve(kkt, rhs)[:n]
    except np.linalg.LinAlgError:
        step = np.linalg.lstsq(kkt, rhs, rcond=None)[0][:n]
    return step
