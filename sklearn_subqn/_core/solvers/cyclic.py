"""Cyclic coordinate descent on squared errors (Aggarwal, section 5.8.1.2)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..driver import Iterate, Solver, Status
from ..kernels import coordinate_descent
from ..losses._base import Floats
from ..objectives.objective import Objective
from ..rows.columns import MatrixColumns
from ..steps.intercepts import minimize_intercept


def cyclic(objective: Objective, w: Floats) -> Solver:
    """Yield the iterates of cyclic coordinate descent, one for each cycle.

    Parameters
    ----------
    objective : Objective
        Objective with a quadratic loss of one score per row, and an ``ElasticNet``.
    w : ndarray of shape (q,)
        Starting point.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_progress": a cycle
        has no effect, because only rounding errors remain.

    Notes
    -----
    Each coefficient in turn is set to its minimizer for fixed other coefficients, by a
    soft threshold (eq. 5.32, and problem 5.8.2 for an elastic net). A free intercept is
    minimized over once at the end of each cycle.
    """
    if not objective.design.in_one_place:
        raise TypeError("Coordinate descent needs all rows in one place.")
    design, (l1, l2) = objective.design, objective.penalties
    d = design.n_features
    point = minimize_intercept(objective.at(w))
    # Second derivatives are constant.
    roots = np.sqrt(point.curvature.diagonal())
    indptr, indices, data = MatrixColumns(design, np.arange(d)).arrays
    columns = sparse.csc_array((data, indices, indptr), shape=(design.n_rows, d))
    columns = sparse.csc_array(sparse.diags_array(roots) @ columns)
    squares = np.asarray(columns.multiply(columns).sum(axis=0), np.float64)
    each = np.arange(d)
    while True:
        yield Iterate(point, None, point.lower_bound, "cyclic-cd")
        coef, image = point.w[:d].copy(), np.zeros(design.n_rows)
        violation = coordinate_descent.sweep_columns(
            columns.indptr,
            columns.indices,
            np.asarray(columns.data, np.float64),
            each,
            image,
            point.risk_gradient[:d],
            squares,
            coef,
            l1,
            l2,
        )
        if not violation:
            return Status.STATIONARY
        p = np.zeros_like(point.w)
        p[:d] = coef - point.w[:d]
        if not p.any():
            return Status.NO_PROGRESS
        new = point.along(p).point(1.0)
        # Coefficients are set to the result of the threshold, so that zeros are exact.
        new.w[:d] = coef
        point = minimize_intercept(new)
