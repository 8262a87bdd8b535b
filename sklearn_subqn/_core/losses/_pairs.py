"""Pairs of rows, their costs, and sums over pairs that violate a margin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels import pair_products
from ..kernels import pair_sums as kernel
from ..lazy import cached_property
from ._base import Floats, Rows
from ._groups import Groups


class Window(NamedTuple):
    """A function of m = 1 + z_i - z_j: coef * (max(0, m)² - max(0, m - width)²)."""

    coef: float = 1.0
    width: float = np.inf

    @property
    def squares(self) -> list[tuple[float, float]]:
        """Margins and factors of the squared violations whose sum is the function."""
        if self.width == np.inf:
            return [(1.0, self.coef)]
        return [(1.0, self.coef), (1.0 - self.width, -self.coef)]


class RowPairs:
    """The pairs i, j of rows of a group with level_i < level_j.

    The weight of a pair is s_i s_j C_ij, divided by the sum of s_i s_j over the pairs
    of its group and multiplied by the weight of the group.

    Parameters
    ----------
    groups : Groups
    levels : ndarray of int of shape (n,)
        Level of each row, an integer below k.
    values : ndarray of shape (k,) or (0,)
        C_ij is the difference of the values of the levels, or one if the array is
        empty.
    costs : ndarray of shape (k, k) or (0, 0)
        C_ij of each pair of levels, unless the array is empty.
    n_levels : int
        k.
    weights : ndarray of shape (n,)
        s.

    Attributes
    ----------
    shares : ndarray of shape (g,)
        The common factor of all pairs of a group.
    factors : ndarray of shape (n,)
        s_i times the factor of the row's group.
    """

    def __init__(
        self,
        groups: Groups,
        levels: Rows,
        values: Floats,
        costs: Floats,
        n_levels: int,
        weights: Floats,
    ) -> None:
        self.groups = groups
        self.weights = weights
        # Only differences have an effect, and smaller numbers have smaller rounding
        # errors.
        self.costs = values - values.min(initial=np.inf), costs
        self.levels, self.n_levels = levels, n_levels
        # The scores at the end of a line search are the scores of the next point.
        self._last: Sorted | None = None
        shares = np.zeros(len(groups))
        rows = groups.sort(np.zeros(len(weights)))
        sums = np.zeros((n_levels + 1, 2))
        kernel.shares(rows, groups.starts, levels, weights, sums, shares)
        self.shares, self.factors = shares, shares[groups.codes] * weights

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def table(self) -> Floats:
        """The table C_ij of pairs of levels, zero on and below the diagonal."""
        values, costs = self.costs
        if values.size:
            costs = values - values[:, np.newaxis]
        elif not costs.size:
            costs = np.ones((self.n_levels, self.n_levels))
        return np.triu(costs, 1)

    def sort(self, scores: Floats) -> Sorted:
        """Return the pairs after sorting their rows by scores."""
        last = self._last
        if last is None or not np.array_equal(last.scores, scores):
            last = self._last = Sorted(self, scores)
        return last


class Sorted:
    """Pairs whose rows are sorted by scores.

    A pair violates the margin by m = margin + z_i - z_j, and sums are over pairs with m
    > 0. Sums for a window are over pairs where its second derivative is not zero.
    """

    def __init__(self, pairs: RowPairs, scores: Floats) -> None:
        self.pairs, self.scores = pairs, scores
        self._order, self._starts = pairs.groups.sort(scores), pairs.groups.starts
        self._moments: dict[float, tuple[Floats, Floats]] = {}
        self._levels = pairs.levels, *pairs.costs

    def _workspace(self, n_sums: int) -> Floats:
        return np.zeros((self.pairs.n_levels + 1, 2 * n_sums + 1))

    def moments(self, margin: float) -> tuple[Floats, Floats]:
        """Return sums of C_ij s_j (1, m, m²) for each row, of shape (3, n).

        In the first array each row is the lower one of its pairs, in the second the
        higher one.
        """
        if margin in self._moments:
            return self._moments[margin]
        n, workspace = len(self.scores), self._workspace(3)
        both = np.empty((3, n)), np.empty((3, n))
        rows = self.scores, self._order, self._starts, *self._levels
        for higher, out in zip((False, True), both, strict=True):
            kernel.moments(*rows, self.pairs.weights, margin, higher, workspace, out)
        self._moments[margin] = both
        return both

    def slope(self, dscores: Floats, margin: float) -> tuple[float, float]:
        """Return the sums of m dm and dm² over all pairs."""
        pairs, rows = self.pairs, (self._order, self._starts, *self._levels)
        weights = pairs.weights, pairs.factors
        return kernel.slope(
            self.scores, dscores, *rows, *weights, margin, self._workspace(5)
        )

    def products(
        self, V: Floats, window: Window, higher: bool, places: Rows, out: Floats
    ) -> None:
        """Add 2 coef times sums of C_ij s_j v_j to the results of given rows."""
        rows = self.scores, self._order, self._starts, *self._levels
        pair_products.products(
            *rows,
            V,
            self.pairs.weights,
            1.0,
            window.width,
            higher,
            places,
            2.0 * window.coef,
            self._workspace(V.shape[1]),
            out,
        )

    def crossed(
        self, X: Any, factors: Floats, window: Window, higher: bool, out: Floats
    ) -> None:
        """Add 2 coef times the sum of factor_i C_ij s_j x_i x_jᵀ, for a sparse X."""
        rows = self.scores, self._order, self._starts, *self._levels
        pair_products.crossed(
            *rows,
            self.pairs.weights,
            2.0 * window.coef * factors,
            1.0,
            window.width,
            higher,
            X.indptr,
            X.indices,
            X.data.astype(np.float64, copy=False),
            self._workspace(X.shape[1]),
            out,
        )
