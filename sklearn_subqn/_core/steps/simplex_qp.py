"""Small convex quadratic programs on the unit simplex, and points of few vertices."""

from __future__ import annotations

import numpy as np

from ..kernels import simplex, simplex_by_rows
from ..losses._base import Floats
from ..rounding import ROUNDED
from .one_dimension import EXACT


def minimize_on_simplex(Q: Floats, c: Floats, start: Floats) -> Floats:
    """Minimize x'Qx / 2 - c'x over x >= 0, sum(x) = 1, by an active-set method.

    Parameters
    ----------
    Q : ndarray of shape (m, m)
        Symmetric positive semidefinite.
    c : ndarray of shape (m,)
    start : ndarray of shape (m,)
        A point of the simplex; a good one saves iterations.

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
    Q, c = np.ascontiguousarray(Q / scale), c / scale
    # Where Q vanishes against c, a linear program remains.
    size = float(np.max(np.diag(Q)))
    ridge = max(ROUNDED * size, 1e-20)
    simplex.minimize(
        Q,
        c,
        x,
        max(size, ridge),
        ridge,
        # The accuracy of each reduced cost, relative to the terms that it sums.
        EXACT,
        10 * m + 20,
        np.empty((m, m)),
        np.empty((4, m)),
        np.empty(m, dtype=np.intp),
    )
    x = np.maximum(x, 0.0)
    return x / x.sum()


def minimize_by_rows(A: Floats, c: Floats, start: Floats) -> Floats:
    """Minimize ||A'x||² / 2 - c'x over x >= 0, sum(x) = 1, by an active-set method.

    Parameters
    ----------
    A : ndarray of shape (m, d)
    c, start
        As in ``minimize_on_simplex``.

    Returns
    -------
    x : ndarray of shape (m,)
        A point of the simplex with d + 1 positive entries at most.

    Notes
    -----
    As ``minimize_on_simplex``, except for the systems: these are solved by QR factors
    of the rows of the support, and not of their products, in which small columns are
    lost beside large ones, and small c beside both. The support then grows by what is
    no news except for rounding: with 10 rows of MRR and 382 cuts of 4 parameters to all
    cuts, in 25 times the processor time of the run.
    """
    m, d = A.shape
    x = with_few_vertices(A, c, np.maximum(start, 0.0) / np.maximum(start, 0.0).sum())
    sizes = np.abs(A).max(axis=0)
    unit = max(float(sizes.max(initial=0.0)), float(np.sqrt(np.abs(c).max()))) or 1.0
    # Errors of reflections stay in proportion to columns if large ones come first.
    order = np.argsort(-sizes)
    rows = np.ascontiguousarray(np.column_stack([np.ones(m), A[:, order] / unit]))
    r = d + 1
    simplex_by_rows.minimize(
        rows,
        c / unit / unit,
        x,
        # The accuracy of each reduced cost, relative to the terms that it sums.
        EXACT,
        10 * m + 20,
        np.empty((r, r)),
        np.empty((r, r)),
        np.empty((8, r)),
        np.empty(m),
        np.empty(r, dtype=np.intp),
    )
    x = np.maximum(x, 0.0)
    return x / x.sum()


def with_few_vertices(A: Floats, b: Floats, x: Floats) -> Floats:
    """Return a point of equal Aᵀx and no smaller bᵀx that has few positive entries.

    Parameters
    ----------
    A : ndarray of shape (m, d)
    b : ndarray of shape (m,)
    x : ndarray of shape (m,)
        A point of the simplex.

    Returns
    -------
    x : ndarray of shape (m,)
        At most d + 1 entries are positive, of those that were (Carathéodory's theorem).

    Notes
    -----
    As long as more are, there are directions that change neither Aᵀx nor the sum; along
    each of them x moves up bᵀx, or keeps it, until an entry vanishes.
    """
    support = np.flatnonzero(x)
    if support.size <= A.shape[1] + 1:
        return x
    A, b, x, full = A[support], b[support], x[support], np.zeros_like(x)
    # Columns of any unit weigh the same in what rounding leaves of them.
    sizes = np.abs(A).max(axis=0)
    equations = np.column_stack(
        [A / np.where(sizes > 0.0, sizes, 1.0), np.ones(len(A))]
    )
    free = np.linalg.qr(equations, mode="complete")[0][:, equations.shape[1] :]
    while free.shape[1]:
        step, free = free[:, -1], free[:, :-1]
        if step @ b < 0.0:
            step = -step
        falling = np.flatnonzero(step < 0.0)
        ratios = x[falling] / -step[falling]
        first = falling[np.argmin(ratios)]
        x = np.maximum(x + ratios.min() * step, 0.0)
        x[first] = 0.0
        # The other directions leave that entry at zero.
        free = free - np.multiply.outer(step, free[first] / step[first])
        free[first] = 0.0
    full[support] = x / x.sum()
    return full
