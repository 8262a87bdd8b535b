"""Samples of rows, spread evenly and without a period, which data might share."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature, DiagonalCurvature


def spread(n: int, n_sampled: int) -> Rows:
    """Return indices of evenly spread rows without a period, which data might share."""
    sampled = np.zeros(n, dtype=bool)
    sampled[(fractions(n_sampled) * n).astype(np.intp)] = True
    return np.flatnonzero(sampled)


def fractions(n: int) -> Floats:
    """Return numbers spread evenly over [0, 1), unordered."""
    # For every n, n multiples of the golden ratio modulo one are spread most evenly.
    return np.asarray(np.arange(n) * (0.5 * (5.0**0.5 - 1.0)) % 1.0, dtype=np.float64)


def thinned(curvature: Curvature, stride: int) -> DiagonalCurvature:
    """Return the second derivatives of a sample of the rows, scaled up to their sum.

    The sample is one in ``stride`` of the rows with nonzero second derivatives, and at
    least one row. There is one score per row.
    """
    h = curvature.diagonal()
    rows = np.flatnonzero(h)
    if not len(rows):
        return DiagonalCurvature(np.zeros_like(h))
    rows = rows[spread(len(rows), max(len(rows) // stride, 1))]
    some = np.zeros_like(h)
    some[rows] = h[rows]
    some[rows] *= float(h.sum()) / float(some.sum())
    return DiagonalCurvature(some)
