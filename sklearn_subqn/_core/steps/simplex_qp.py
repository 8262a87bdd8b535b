"""Small convex quadratic programs on the unit simplex, and points with few vertices."""

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
        Starting point on the simplex.

    Returns
    -------
    x : ndarray of shape (m,)
        A point of the simplex, no worse than ``start`` up to rounding.

    Notes
    -----
    The index with the most negative reduced cost enters the support. On a support the
    step to the minimizer solves a linear system. A step that leaves the simplex stops
    at the boundary, and the blocking index leaves the support. A small multiple of the
    identity keeps linear systems nonsingular if cuts are repeated. The multiple damps
    steps, not x, so the minimizer is unchanged.
    """
    m = len(c)
    x = np.maximum(start, 0.0)
    x /= x.sum()
    scale = max(float(np.max(np.diag(Q))), float(np.max(np.abs(c))))
    if not scale > 0.0:
        return x
    Q, c = np.ascontiguousarray(Q / scale), c / scale
    # If Q is negligible relative to c, the program is linear.
    size = float(np.max(np.diag(Q)))
    ridge = max(ROUNDED * size, 1e-20)
    simplex.minimize(
        Q,
        c,
        x,
        max(size, ridge),
        ridge,
        # Accuracy of a reduced cost, relative to its terms.
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
        A point of the simplex with at most d + 1 positive entries.

    Notes
    -----
    As ``minimize_on_simplex``, except that systems are solved by QR factors of the rows
    of the support. In the Gram matrix of the rows, large columns hide small columns and
    a small c, so rounding errors add indices to the support. With the Gram matrix, on
    10 rows of MRR and 382 cuts of 4 parameters, the support grows to all cuts, and the
    run takes 25 times the processor time.
    """
    m, d = A.shape
    x = with_few_vertices(A, c, np.maximum(start, 0.0) / np.maximum(start, 0.0).sum())
    sizes = np.abs(A).max(axis=0)
    unit = max(float(sizes.max(initial=0.0)), float(np.sqrt(np.abs(c).max()))) or 1.0
    # Errors of Householder reflections are proportional to the columns if columns are
    # sorted by descending size.
    order = np.argsort(-sizes)
    rows = np.ascontiguousarray(np.column_stack([np.ones(m), A[:, order] / unit]))
    r = d + 1
    simplex_by_rows.minimize(
        rows,
        c / unit / unit,
        x,
        # Accuracy of a reduced cost, relative to its terms.
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
    """Return a point with equal Aᵀx, no smaller bᵀx and few positive entries.

    Parameters
    ----------
    A : ndarray of shape (m, d)
    b : ndarray of shape (m,)
    x : ndarray of shape (m,)
        A point of the simplex.

    Returns
    -------
    x : ndarray of shape (m,)
        At most d + 1 of the positive entries remain positive (Carathéodory's theorem).

    Notes
    -----
    If more entries are positive, there are directions that change neither Aᵀx nor the
    sum of x. Along each direction x moves without decreasing bᵀx until an entry is
    zero.
    """
    support = np.flatnonzero(x)
    if support.size <= A.shape[1] + 1:
        return x
    A, b, x, full = A[support], b[support], x[support], np.zeros_like(x)
    # Columns are scaled so that rounding errors do not depend on their units.
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
        # The remaining directions do not change this zero entry.
        free = free - np.multiply.outer(step, free[first] / step[first])
        free[first] = 0.0
    full[support] = x / x.sum()
    return full
