"""Arithmetic on numbers of each row, such as scores and dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses._base import Floats, Mask, Rows, total_of_rows
from ..losses._curvature import Curvature
from ..rows.sampling import thinned
from .parts import maximal, rowwise, summed


class RowNumbers:
    """Arithmetic on numbers of each row, which stay where the rows are.

    Results are numbers of each row again, or sums and maxima over all rows: the marks
    of the methods say which, for rows in several parts.
    """

    # Numbers of each row.

    @rowwise
    def shifted(self, scores: Floats, shifts: Floats) -> Floats:
        """Return the scores of parameters with other intercepts."""
        return scores + shifts

    @rowwise
    def moved(self, x: Floats, step: float, y: Floats) -> Floats:
        """Return x + step * y."""
        return x + step * y

    @rowwise
    def scaled(self, factor: float, x: Floats) -> Floats:
        """Return a multiple of x."""
        return factor * x

    @rowwise
    def difference(self, x: Floats, y: Floats) -> Floats:
        """Return x - y."""
        return x - y

    @rowwise
    def products(self, x: Floats, y: Floats) -> Floats:
        """Return the products of the entries of x and y."""
        return x * y

    @rowwise
    def centered(self, scores: Floats) -> Floats:
        """Return the scores of each row less their mean."""
        return scores - scores.mean(axis=1, keepdims=True)

    @rowwise
    def take(self, x: Floats, rows: Rows) -> Floats:
        """Return the numbers of some of the rows."""
        return x[rows]

    @rowwise
    def replaced(self, x: Floats, rows: Rows, values: Floats | float) -> Floats:
        """Return x with other numbers for some of the rows."""
        x = x.copy()
        x[rows] = values
        return x

    @rowwise
    def side(self, products: Floats, sign: float, curvature: Curvature | None) -> Mask:
        """Return where products have a sign, perhaps of entries with curvature only."""
        side = products * sign > 0.0
        return side if curvature is None else side & (curvature.diagonal() > 0.0)

    @rowwise
    def shrunk(self, dual: Floats, entries: Mask, factor: float) -> Floats:
        """Return the dual with some of its entries multiplied by a factor."""
        dual = dual.copy()
        dual[entries] *= factor
        return dual

    @rowwise
    def mean(self, *xs: Floats) -> Floats:
        """Return the mean of several numbers of each row."""
        mean: Floats = np.mean(xs, axis=0)
        return mean

    # Sums over rows.

    @summed
    def length(self, x: Any) -> int:
        """Return how many rows x has numbers of."""
        return len(x)

    def has_fewer(self, x: Floats, y: Floats) -> bool:
        """Whether x has fewer entries than y that are not zero."""
        return self.surplus(x, y) < 0

    @summed
    def surplus(self, x: Floats, y: Floats) -> int:
        """Return how many more nonzero entries x has than y."""
        return int(np.count_nonzero(x)) - int(np.count_nonzero(y))

    @summed
    def n_curved(self, curvature: Curvature) -> int:
        """Return for how many scores second derivatives do not vanish."""
        return int(np.count_nonzero(curvature.diagonal()))

    @summed
    def curvature_moments(self, curvature: Curvature) -> Floats:
        """Return the sums of second derivatives of one score, and of their squares."""
        h = curvature.diagonal()
        return np.array([h.sum(), h @ h])

    @rowwise
    def thinned(self, curvature: Curvature, stride: int) -> Curvature:
        """Return the second derivatives of one row in ``stride``, see ``thinned``."""
        return thinned(curvature, stride)

    @summed
    def inner(self, x: Floats, y: Floats) -> float:
        """Return <x, y>."""
        return float(np.vdot(x, y))

    @summed
    def inner_size(self, x: Floats, y: Floats) -> float:
        """Return the sum of the absolute values of the terms of <x, y>."""
        return float(np.vdot(np.abs(x), np.abs(y)))

    @summed
    def total(self, x: Floats, entries: Mask) -> float:
        """Return the sum of some entries of x."""
        return float(x[entries].sum())

    @summed
    def size(self, x: Floats) -> float:
        """Return the sum of the absolute values of x."""
        return float(np.abs(x).sum())

    @summed
    def total_and_size(self, x: Floats) -> Floats:
        """Return the sum of x and that of its absolute values, in an array."""
        return np.array([x.sum(), np.abs(x).sum()])

    @summed
    def column_sums(self, dual: Floats) -> Floats:
        """Return the sum of the columns, as of free intercepts."""
        return np.atleast_1d(total_of_rows(dual))

    @summed
    def total_curvature(self, curvature: Curvature) -> Floats:
        """Return the sum of the second derivatives of all rows."""
        return curvature.total()

    # Others.

    @maximal
    def largest(self, x: Floats) -> float:
        """Return the largest absolute value of an entry."""
        return max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))

    def every(self, x: Any, step: int) -> Any:
        """Return every ``step``-th of the numbers of rows."""
        return x[::step]
