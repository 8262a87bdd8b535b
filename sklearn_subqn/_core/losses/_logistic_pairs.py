"""Logistic loss of pairs of rows with a required order."""

from __future__ import annotations

import numpy as np

from ._base import Floats
from ._bin_sums import BinCurvature, BinSums
from ._of_sums import OfSums
from ._pairwise import OrderedPairs

# Bins store moments of at most 1,000 levels.
_MOST_LEVELS = 1000


class LogisticPairs(OfSums, OrderedPairs):
    """Logistic loss of all pairs of rows with unequal targets.

    As ``OrderedPairs``, with the loss C ln(1 + exp(z_i - z_j)) of a pair (Burges et al.
    2005). The time is O(n) plus a convolution over bins of the scores.

    Parameters
    ----------
    cost : {"constant", "linear"} or ndarray of shape (k, k), default="constant"
        C of pairs, as for :class:`OrderedPairs`.
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

    See Also
    --------
    OrderedPairs, SquaredPairs : Other losses of the same pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import LogisticPairs
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BMRMClassifier(loss=LogisticPairs("linear"), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

    analytic = True
    curvature_error = BinCurvature.error
    _memos = (*OrderedPairs._memos, "_last_bins")
    _last_bins: BinSums | None = None

    def sums_at(self, scores: Floats, targets: Floats, weights: Floats) -> BinSums:
        pairs, last = self._pairs(targets, weights), self._last_bins
        if pairs.n_levels > _MOST_LEVELS:
            raise ValueError(
                f"Logistic losses of pairs take at most {_MOST_LEVELS} different "
                f"targets, got {pairs.n_levels}."
            )
        known = last is not None and last.pairs is pairs
        if last is None or not (known and np.array_equal(last.scores, scores)):
            last = self._last_bins = BinSums(pairs, scores)
        return last
