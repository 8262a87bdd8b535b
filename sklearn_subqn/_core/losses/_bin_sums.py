"""Sums of ln(1 + exp(z_i - z_j)) over pairs of rows, by bins of the scores.

Scores are sorted into bins of width 1/4. For each pair of bins, the function is
expanded around the difference of the centers. Differences of scores in these bins
deviate from it by at most 1/4. By Cauchy's estimate on a circle of radius 3, within the
singularities at +-i pi, its r-th Taylor coefficient is below 6 / 3^r, relative to the
function where it decays exponentially. So the terms from order 16 on sum to less than 7
* 12^-16 < 4e-17, below the rounding error. Between bins that are farther apart than 40
the function is a line on one side and an exponential on the other, with a relative
error of exp(-40) < 5e-18.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import bin_sums as kernel
from ..lazy import cached_property
from ..rounding import ROUNDED, running_rounding
from ._base import Floats, Rows
from ._curvature import CoupledCurvature
from ._pairs import RowPairs

# The width of a bin, in units of the scores.
_WIDTH = 0.25

# Number of terms of the Taylor expansion around the difference of two centers.
_ORDERS = 16

# Between centers farther apart, the function is approximated by a line or an
# exponential.
_FAR = 40.0

# If there are more than four possible bins for each row, occupied bins are found by
# sorting instead of counting.
_SPARSE = 4


def _table() -> Floats:
    """Return derivatives of ln(1 + exp(x)) at multiples of the width, line by line.

    They follow from s' = s - s² for the slope s at x <= 0, and by symmetry at x > 0.
    """
    x = -_WIDTH * np.arange(_FAR / _WIDTH + 1.0)[::-1]
    coefficients = [np.exp(x) / (1.0 + np.exp(x))]
    for r in range(_ORDERS - 2):
        square = sum(coefficients[a] * coefficients[r - a] for a in range(r + 1))
        coefficients.append((coefficients[r] - square) / (r + 1.0))
    slopes = (_FACTORIAL * np.array(coefficients).T).T
    left = np.stack([np.log1p(np.exp(x)), *slopes], axis=1)
    right = left[-2::-1] * (-1.0) ** np.arange(_ORDERS)
    right[:, 0] -= x[-2::-1]
    right[:, 1] += 1.0
    return np.ascontiguousarray(np.concatenate([left, right]))


_FACTORIAL = np.cumprod(np.append(1.0, np.arange(1.0, _ORDERS - 1.0)))
_TABLE = _table()
_SECOND = np.ascontiguousarray(_TABLE[:, 2:3])


def _distinct(keys: Rows, n: int) -> tuple[Rows, Rows]:
    """Return the sorted distinct keys below n, and each key's index among them."""
    if n > _SPARSE * len(keys):
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, places.astype(np.intp)
    used = np.bincount(keys, minlength=n) > 0
    return np.flatnonzero(used), (np.cumsum(used) - 1)[keys]


class BinSums:
    """Sums over the pairs at some scores.

    Parameters
    ----------
    pairs : RowPairs
    scores : ndarray of shape (n,)
    """

    def __init__(self, pairs: RowPairs, scores: Floats) -> None:
        self.pairs, self.scores = pairs, scores
        self.rounding = running_rounding(len(scores))
        codes, k = pairs.groups.codes, pairs.n_levels
        lowest = np.full(len(pairs.groups), np.inf)
        if len(lowest) == 1:
            lowest[0] = scores.min(initial=np.inf)
        else:
            np.minimum.at(lowest, codes, scores)
        self._centered = scores - lowest[codes]
        # Within this range, rounding errors of scores are far below the width of a bin.
        if not self._centered.max(initial=0.0) <= 1.0 / ROUNDED:
            raise FloatingPointError("scores became too large")
        # Offsets from multiples of the width are exact. So scores near zero keep their
        # digits even if another score is very large.
        nearest = np.rint(scores / _WIDTH)
        self._offsets = scores - _WIDTH * nearest
        bins = (nearest - np.rint(lowest / _WIDTH)[codes]).astype(np.int64)
        span = int(bins.max(initial=0)) + 1
        keys, places = _distinct(codes * span + bins, span * len(lowest))
        self._positions = (keys % span).astype(np.intp)
        groups = keys // span
        self._starts = np.searchsorted(groups, np.arange(len(lowest) + 1))
        self.shares = np.tile(pairs.shares[groups], k)
        self._n_bins = len(keys)
        self.cells = pairs.levels * self._n_bins + places
        self.n_cells = k * self._n_bins

    def _by_cells(self, values: Floats) -> Floats:
        sums = np.bincount(self.cells, values, self.n_cells)
        return sums.astype(np.float64, copy=False)

    def spread(self, sums: Floats, table: Floats, higher: bool) -> Floats:
        """Return derivatives of sums over partners at the centers of all cells.

        The rows are the lower rows of their pairs, or with ``higher`` the higher rows;
        ``sums`` of shape (c, r) are moments of the partners in their cells.
        """
        k, m, r = self.pairs.n_levels, self._n_bins, sums.shape[1]
        costs = self.pairs.table
        costs = costs.T if higher else costs
        # For higher rows the signs of all scores and offsets are reversed.
        line = table is _TABLE
        sources = np.tensordot(costs, sums.reshape(k, m, r), 1)
        if line and not higher:
            sources *= (-1.0) ** np.arange(r)
        positions, starts = self._positions, self._starts
        if higher:
            sources = sources[:, ::-1]
            positions = np.ascontiguousarray(-positions[::-1])
            starts = np.ascontiguousarray(m - starts[::-1])
        out = np.zeros((k, m, r))
        sources = np.ascontiguousarray(sources)
        if line:
            kernel.derivatives(positions, starts, sources, table, _WIDTH, line, out)
        else:
            # Each column is one moment of order zero.
            for column in range(r):
                part, one = np.zeros((k, m, 1)), sources[:, :, column : column + 1]
                one = np.ascontiguousarray(one)
                kernel.derivatives(positions, starts, one, table, _WIDTH, line, part)
                out[:, :, column] = part[:, :, 0]
        if higher:
            out = out[:, ::-1]
        return np.ascontiguousarray(out).reshape(k * m, r)

    @cached_property
    def _moments(self) -> Floats:
        """Sums of s_i x_i^p / p! in each cell, of shape (c, orders)."""
        moments = np.empty((self.n_cells, _ORDERS))
        power = self.pairs.weights.copy()
        for p in range(_ORDERS):
            moments[:, p] = self._by_cells(power)
            power *= self._offsets / (p + 1.0)
        return moments

    @cached_property
    def _lower(self) -> Floats:
        return self.spread(self._moments, _TABLE, higher=False)

    @cached_property
    def value(self) -> float:
        """The sum over all pairs."""
        return float(self.shares @ np.einsum("cp,cp->c", self._lower, self._moments))

    @cached_property
    def gradient(self) -> Floats:
        """The gradient: sums of the slopes of each row's pairs, of shape (n,)."""
        lower, higher = self._slopes
        return self._at_scores(lower - higher)

    @cached_property
    def slope_sizes(self) -> Floats:
        """Sums of the absolute slopes of each row's pairs, of shape (n,)."""
        lower, higher = self._slopes
        return self._at_scores(lower + higher)

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """Derivatives of slopes by offsets, for rows as lower and as higher ones."""
        higher = self.spread(self._moments, _TABLE, higher=True)
        # Signs of odd derivatives change where scores are reflected.
        return self._lower[:, 1:], higher[:, 1:] * (-1.0) ** np.arange(_ORDERS - 1)

    def _at_scores(self, slopes: Floats) -> Floats:
        """Evaluate Taylor expansions around centers of cells at the scores."""
        u = np.empty(len(self.scores))
        kernel.polynomials(slopes / _FACTORIAL, self.cells, self._offsets, u)
        u *= self.pairs.factors
        return u

    @property
    def conjugate(self) -> tuple[float, float]:
        """R*(u) for the gradient u, and the sum of the absolute values of its terms."""
        u, z = self.gradient, self._centered
        return float(u @ z) - self.value, float(self.slope_sizes @ z) + self.value

    @property
    def curvature(self) -> BinCurvature:
        return BinCurvature(self)


class BinCurvature(CoupledCurvature):
    """Second derivatives with scores replaced by the centers of their bins.

    Their relative error is at most exp(1/4) - 1, ``error``, since the logarithm of a
    pair's second derivative has a slope of at most one. Like the exact second
    derivatives, they are a graph Laplacian.
    """

    error = float(np.expm1(_WIDTH))

    def __init__(self, sums: BinSums) -> None:
        self._sums = sums

    @cached_property
    def _diagonal(self) -> Floats:
        return self._partners(np.ones((len(self._sums.cells), 1)))[:, 0]

    def diagonal(self) -> Floats:
        return self._diagonal

    def _partners(self, v: Floats) -> Floats:
        """Return each row's sum of v over its partners, weighted by pairs."""
        sums, pairs = self._sums, self._sums.pairs
        totals = sums._by_cells(pairs.weights * v[:, 0])[:, np.newaxis]
        both = sum(sums.spread(totals, _SECOND, higher) for higher in (False, True))
        return pairs.factors[:, np.newaxis] * np.asarray(both)[sums.cells]

    def apply(self, dscores: Floats) -> Floats:
        product: Floats = self._diagonal * dscores
        product -= self._partners(dscores[:, np.newaxis])[:, 0]
        return product

    def crossed(self, design: Any) -> Floats:
        """Return the sum of weight times x_i x_jᵀ over pairs, each counted once."""
        sums, pairs = self._sums, self._sums.pairs
        rows = design.sums_of_rows(sums.cells, sums.n_cells, pairs.weights)
        partners = sums.spread(rows, _SECOND, higher=False)
        matrix: Floats = (sums.shares * rows.T) @ partners
        return matrix
