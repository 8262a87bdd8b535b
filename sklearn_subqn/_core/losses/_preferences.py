"""Hinge of given pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rounding import rounding, running_rounding
from ._arguments import checked_costs, checked_rows
from ._base import TIE_TOLERANCE, Floats, PiecewiseQuadratic, norm_by_weights
from ._loss import Loss


class Preferences(Loss):
    """Hinge of given pairs of rows (Teo et al. 2010, Alg. 9).

    R(z) is the mean of C_p max(0, 1 + z_i - z_j) over pairs p in which j is preferred
    to i, with weights s_i s_j. Targets are ignored. At the kink the subgradient of a
    pair is zero.

    Parameters
    ----------
    pairs : array-like of shape (p, 2)
        Rows (j, i): the first is preferred.
    costs : array-like of shape (p,), optional
        Non-negative, default one.

    Raises
    ------
    ValueError
        If pairs or costs are invalid, and in a fit if a pair names a row that does not
        exist.

    See Also
    --------
    OrderedPairs : The pairs of all rows with unequal targets.
    sklearn_subqn.BMRMRanker : Takes preferences as ``fit(X, pairs=pairs)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import Preferences
    >>> scores, equal = np.array([2.0, 1.0, 0.5]), np.full(3, 1 / 3)
    >>> Preferences([(0, 1), (2, 1)]).value(scores, np.zeros(3), equal)
    0.75
    """

    ranks = True

    def __init__(self, pairs: Any, costs: Any = None) -> None:
        pairs = checked_rows("pairs", pairs, 2)
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have 2 columns, got {pairs.shape[1]}.")
        self._better, self._worse = np.ascontiguousarray(pairs.T)
        self._n_rows = int(pairs.max(initial=-1)) + 1
        self._costs = np.ones(len(pairs))
        if costs is not None:
            self._costs = checked_costs("costs", costs, (len(pairs),))

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        m = 1.0 - self._differences(scores)
        return float(self._weights(weights) @ np.maximum(m, 0.0))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        worse, better = self._sums(scores, weights)
        return worse - better

    def _sums(self, scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return for each row the weights of its active pairs, for either side."""
        m = 1.0 - self._differences(scores)
        active = np.where(m > TIE_TOLERANCE, self._weights(weights), 0.0)
        n = len(scores)
        worse, better = (
            np.bincount(rows, active, n).astype(np.float64, copy=False)
            for rows in (self._worse, self._better)
        )
        return worse, better

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return minus the costs of the violated pairs."""
        active = 1.0 - self._differences(scores) > TIE_TOLERANCE
        height = float(self._weights(weights)[active].sum())
        return -height * (1.0 - rounding(len(active)))

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return a bound of rounding errors of u, a difference of sums over pairs."""
        worse, better = self._sums(scores, weights)
        both = self._worse, self._better
        longest = max(np.bincount(rows).max(initial=0) for rows in both)
        return running_rounding(longest) * norm_by_weights(worse + better, weights)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with a jump at the kink of each pair."""
        m, dm = 1.0 - self._differences(scores), -self._differences(dscores)
        m[np.abs(m) <= TIE_TOLERANCE] = 0.0
        weights = self._weights(weights)
        active = np.where(m == 0.0, dm > 0.0, m > 0.0)
        ahead = m * dm < 0.0
        jumps = (weights * np.abs(dm))[ahead]
        return PiecewiseQuadratic(
            slope=float((weights * dm)[active].sum()),
            curvature=0.0,
            kinks=-m[ahead] / dm[ahead],
            slope_jumps=jumps,
            curvature_jumps=np.zeros(len(jumps)),
        )

    def _differences(self, scores: Floats) -> Floats:
        if len(scores) < self._n_rows:
            raise ValueError(
                f"pairs name row {self._n_rows - 1}, but there are {len(scores)} rows."
            )
        differences: Floats = scores[self._better] - scores[self._worse]
        return differences

    def _weights(self, weights: Floats) -> Floats:
        products = weights[self._better] * weights[self._worse]
        total = float(products.sum())
        products *= self._costs
        if total > 0.0:
            products /= total
        return products
